//! The helpers for test suites in `helpers/`: their own tests, each with the package that users would install, made of the
//! binary under test.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::kubectl::left_out;
use crate::packages::{build, install_npm, install_wheel, made, python_packages, root, succeeds};
use crate::server::Folder;

mod rust;

/// How many processes of pytest work side by side.
const WORKERS: &str = "2";

#[test]
fn python() {
    let Some(made) = made() else { return };
    let folder = Folder::for_test();
    let package = folder.0.join("package");
    install_wheel(made, &package);
    let path = std::env::join_paths([package, python_packages()]).expect("the paths have no colons");
    let mut pytest = Command::new("python3");
    pytest.args(["-B", "-m", "pytest", "--quiet", "-p", "no:cacheprovider", "--numprocesses", WORKERS, "--basetemp"]);
    pytest.arg(folder.0.join("tests")).current_dir(root().join("helpers/python")).env("PYTHONPATH", path);
    succeeds(pytest.env_remove("SKIFF").env("HOME", &folder.0));
}

/// mypy, as strict as `pyproject.toml` says.
#[test]
fn types_of_python() {
    if !python_packages().join(".stamp").is_file() {
        return left_out("the Python packages");
    }
    let folder = Folder::for_test();
    let mut mypy = Command::new("python3");
    mypy.args(["-B", "-m", "mypy", "--cache-dir"]).arg(&folder.0).current_dir(root().join("helpers/python"));
    succeeds(mypy.env("PYTHONPATH", python_packages()));
}

/// vitest, jest and node:test, with the Node.js and the packages of tests/clients/node.
#[test]
fn node() {
    let Some(made) = made() else { return };
    let packages = root().join("tests/clients/node/node_modules");
    let node = packages.join(".bin/node");
    if !node.is_file() {
        return left_out("the packages for Node.js");
    }
    let folder = Folder::for_test();
    let project = folder.0.join("project");
    fs::create_dir(&project).expect("the folder is ours");
    // What the project does not have itself is looked for above it.
    symlink(&packages, folder.0.join("node_modules")).expect("the folder is ours");
    install_npm(made, &project);
    succeeds(Command::new("cp").arg("-r").arg(root().join("helpers/node/tests")).arg(&project));
    let runs = |arguments: &[&str]| {
        let mut node = Command::new(&node);
        node.args(arguments).current_dir(&project).env_remove("SKIFF").env("NO_COLOR", "1");
        node.env("SKIFF_DEFINITIONS", root().join("crd-examples/rules/crd.yaml"));
        node
    };
    let vitest = "../node_modules/vitest/vitest.mjs";
    succeeds(&mut runs(&["../node_modules/typescript/bin/tsc", "--project", "tests"]));
    succeeds(&mut runs(&["--test", "tests/process.test.js"]));
    succeeds(&mut runs(&[vitest, "run", "tests/vitest.test.js"]));
    succeeds(&mut runs(&["../node_modules/jest/bin/jest.js", "--rootDir=.", "--testMatch=**/jest.test.cjs"]));
    let failing = runs(&[vitest, "run", "tests/expected/failing.test.js"]).output().expect("there is Node.js");
    let told = String::from_utf8_lossy(&failing.stderr).into_owned() + &String::from_utf8_lossy(&failing.stdout);
    assert!(!failing.status.success(), "{told}");
    for name in ["asked", "own"] {
        assert!(told.contains(&format!("get /api/v1/namespaces/default/configmaps/{name} 404")), "{told}");
    }
    // What others of the same server were asked is not told.
    assert!(!told.contains("configmaps/origin") && !told.contains("configmaps/other"), "{told}");
}

/// Built by tests/setup.
#[test]
fn go() {
    let program = root().join("tests/tools/go/helper.test");
    if !program.is_file() {
        return left_out("the Go clients");
    }
    let folder = root().join("helpers/go");
    succeeds(Command::new(program).current_dir(folder).env("SKIFF", env!("CARGO_BIN_EXE_skiff")));
}

/// The jar of a release, with the tests beside it. Maven has what it needs from tests/setup.
#[test]
fn java() {
    if !root().join("tests/tools/java/.stamp").is_file() {
        return left_out("the Java packages");
    }
    let folder = Folder::for_test();
    // It is of no program.
    succeeds(build(Path::new("none"), &folder.0).arg("jar"));
    let name = concat!("kubeskiff-junit-", env!("CARGO_PKG_VERSION"));
    for end in ["-sources.jar", "-javadoc.jar", ".pom"] {
        assert!(folder.0.join(format!("{name}{end}")).is_file(), "{end}");
    }
    let mut maven = Command::new("mvn");
    maven.args(["--offline", "--quiet", "--batch-mode", "test"]).current_dir(root().join("helpers/java"));
    maven.arg(format!("-Dbuild.folder={}", folder.0.join("target").display()));
    maven.arg(format!("-Dtested.classes={}", folder.0.join(format!("{name}.jar")).display()));
    succeeds(maven.env("SKIFF", env!("CARGO_BIN_EXE_skiff")));
}

/// Every helper asks for the version of the program that it is published with.
#[test]
fn helpers_have_the_version_of_the_program() {
    let version = env!("CARGO_PKG_VERSION");
    let has = |file: &str, text: &str| {
        let content = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).expect("it is there");
        assert!(content.contains(text), "{file} lacks {text}");
    };
    has("helpers/node/package.json", &format!("\"version\": \"{version}\""));
    has("helpers/java/pom.xml", &format!("<artifactId>kubeskiff-junit</artifactId>\n  <version>{version}</version>"));
    has("helpers/java/README.md", &format!("<version>{version}</version>"));
}
