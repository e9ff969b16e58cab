//! Packages, made of the binary under test by `packages/build`, installed where nothing else is, and run from there.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use crate::kubectl::left_out;
use crate::server::Folder;

/// What `skiff --version` prints.
const VERSION: &str = concat!("skiff ", env!("CARGO_PKG_VERSION"), "\n");

/// The folder of packages of the binary under test, once for all tests of a run; none where a tool is missing.
static MADE: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
    let tools = ["npm", "dpkg-deb", "objdump", "strip"].into_iter().find(|tool| on_path(tool).is_none());
    if tools.is_some() || !python_packages().join(".stamp").is_file() {
        return None;
    }
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("packages");
    _ = fs::remove_dir_all(&out);
    fs::create_dir_all(&out).expect("the folder is ours");
    // As the program of a release is: most of the rest is for debuggers.
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("skiff");
    succeeds(Command::new("strip").arg("-o").arg(&program).arg(env!("CARGO_BIN_EXE_skiff")));
    succeeds(build(&program, &out).args(["all", "npm-main"]));
    Some(out)
});

/// The folder of packages.
pub fn made() -> Option<&'static Path> {
    if MADE.is_none() {
        left_out("npm, dpkg-deb, objdump, strip and the Python packages");
    }
    MADE.as_deref()
}

/// What makes packages of a program.
pub fn build(program: &Path, out: &Path) -> Command {
    let mut build = Command::new("python3");
    build.arg(root().join("packages/build")).arg("--fast").arg("--binary").arg(program).arg("--out").arg(out);
    build.env("PYTHONPATH", python_packages());
    build
}

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// What tests/setup installed for Python.
pub fn python_packages() -> PathBuf {
    root().join("tests/tools/python")
}

pub fn on_path(program: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?).map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// Runs a program that must succeed; returns what it printed.
#[track_caller]
pub fn succeeds(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().expect("the program is there");
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{command:?}: {status}\n{stdout}{stderr}");
    stdout.into_owned()
}

/// The one file of that folder whose name begins and ends so.
fn file(folder: &Path, start: &str, end: &str) -> PathBuf {
    let files = fs::read_dir(folder).expect("the folder is there").map(|file| file.expect("it is readable"));
    let mut fits = files.filter(|file| {
        let name = file.file_name().into_string().expect("names are ASCII");
        name.starts_with(start) && name.ends_with(end)
    });
    let fitting = fits.next().expect("it was made").path();
    assert!(fits.next().is_none(), "there are several {start}…{end}");
    fitting
}

/// Makes a folder in which the wheel is installed, and nothing else.
pub fn install_wheel(made: &Path, folder: &Path) {
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--disable-pip-version-check"]);
    pip.args(["--root-user-action=ignore", "--target"]).arg(folder).arg(file(made, "kubeskiff-", ".whl"));
    succeeds(&mut pip);
}

/// Makes a project that has the npm packages, and nothing else.
pub fn install_npm(made: &Path, folder: &Path) {
    fs::write(folder.join("package.json"), r#"{"private": true, "type": "module"}"#).expect("the folder is ours");
    let mut npm = Command::new("npm");
    // Packages for other machines can't be had, and are not needed.
    npm.args(["install", "--offline", "--no-audit", "--no-fund", "--loglevel=error"]).current_dir(folder);
    npm.arg(file(made, "kubeskiff-linux-", ".tgz")).arg(file(
        made,
        concat!("kubeskiff-", env!("CARGO_PKG_VERSION")),
        ".tgz",
    ));
    succeeds(&mut npm);
}

/// The lines under "Install" in the README, each in a folder with the packages and a clean environment. What they install
/// runs.
#[test]
fn the_readme_installs_from_the_files_of_a_release() {
    let Some(made) = made() else { return };
    let readme = fs::read_to_string(root().join("README.md")).expect("the README is there");
    let (_, section) = readme.split_once("## Install\n").expect("there is a section");
    let (_, block) = section.split_once("```sh\n").expect("it has commands");
    let (block, _) = block.split_once("```").expect("they end");
    let lines: Vec<&str> = block.lines().collect();
    assert_eq!(lines.len(), 5, "{block}");
    for line in lines {
        installs(made, line);
    }
}

#[track_caller]
fn installs(made: &Path, line: &str) {
    if line.contains("docker") && on_path("skopeo").is_none() {
        return left_out("skopeo");
    }
    let folder = clean(made, line);
    succeeds(shell(&folder.0).arg(format!("{STAND_INS}\n{line}")));
    // Where each of them puts the program.
    let run =
        "for skiff in kubeskiff-*/skiff target/bin/skiff node_modules/.bin/skiff root/usr/bin/skiff image/usr/bin/skiff
        do [ ! -x $skiff ] || $skiff --version; done";
    assert_eq!(succeeds(shell(&folder.0).arg(run)), VERSION, "{line}");
}

/// What stands in for commands that a test can't run: root's, and a container daemon.
const STAND_INS: &str = r#"
sudo() { "$@"; }
docker() {
    skopeo --insecure-policy copy --quiet "docker-archive:$3" dir:loaded
    mkdir image
    for part in loaded/*; do tar -xf "$part" -C image 2>/dev/null || true; done
}
set -e"#;

/// A folder with the packages, and a system of packages of its own for dpkg.
fn clean(made: &Path, line: &str) -> Folder {
    let folder = Folder::new(line.split(' ').next().unwrap_or_default());
    for package in fs::read_dir(made).expect("it is there") {
        let package = package.expect("it is readable");
        let copy = folder.0.join(package.file_name());
        // Where the temporary folder is on another disk, it is copied.
        fs::hard_link(package.path(), &copy)
            .or_else(|_| fs::copy(package.path(), &copy).map(drop))
            .expect("there is room");
    }
    for part in ["info", "updates"] {
        fs::create_dir_all(folder.0.join("root/var/lib/dpkg").join(part)).expect("the folder is ours");
    }
    fs::write(folder.0.join("root/var/lib/dpkg/status"), "").expect("the folder is ours");
    fs::write(folder.0.join("package.json"), r#"{"private": true}"#).expect("the folder is ours");
    folder
}

/// Runs its argument in that folder, where installers leave the rest of the machine alone.
fn shell(folder: &Path) -> Command {
    let mut shell = Command::new("bash");
    shell.current_dir(folder).env("HOME", folder);
    shell.env("PIP_TARGET", "target").env("PIP_NO_INDEX", "1").env("PIP_ROOT_USER_ACTION", "ignore");
    shell.env("npm_config_offline", "true").env("npm_config_audit", "false");
    shell.env("DPKG_ROOT", folder.join("root")).env("DPKG_FORCE", "not-root,depends,script-chrootless");
    shell.arg("-c");
    shell
}

#[test]
fn the_python_package_runs_as_a_module() {
    let Some(made) = made() else { return };
    let folder = Folder::for_test();
    install_wheel(made, &folder.0);
    let mut python = Command::new("python3");
    python.args(["-B", "-m", "kubeskiff", "--version"]).env("PYTHONPATH", &folder.0).env_remove("SKIFF");
    assert_eq!(succeeds(&mut python), VERSION);
    assert_eq!(succeeds(Command::new(folder.0.join("bin/skiff")).arg("--version")), VERSION);
}

#[test]
fn npx_runs_the_program() {
    let Some(made) = made() else { return };
    let folder = Folder::for_test();
    install_npm(made, &folder.0);
    let mut npx = Command::new("npx");
    npx.args(["--offline", "skiff", "--version"]).current_dir(&folder.0).env_remove("SKIFF");
    assert_eq!(succeeds(&mut npx), VERSION);
    // It ends as the program does.
    let status = Command::new("npx").args(["--offline", "skiff", "lint", "nowhere"]).current_dir(&folder.0).output();
    assert_eq!(status.expect("there is npx").status.code(), Some(2));
}

/// Both forms that are in the file are read by a tool of others, which compares every digest.
#[test]
fn a_container_of_the_image_serves() {
    let Some(made) = made() else { return };
    if on_path("skopeo").is_none() {
        return left_out("skopeo");
    }
    let folder = Folder::for_test();
    let image = file(made, "kubeskiff-", "-image-amd64.tar").display().to_string();
    let read = |form: &str, to: &str| {
        let mut skopeo = Command::new("skopeo");
        skopeo.args(["--insecure-policy", "copy", "--quiet", &format!("{form}:{image}"), &format!("dir:{to}")]);
        succeeds(skopeo.current_dir(&folder.0));
    };
    read("docker-archive", "docker");
    read("oci-archive", "oci");
    let told = succeeds(Command::new("skopeo").args(["inspect", "--config", &format!("oci-archive:{image}")]));
    let config: Value = serde_json::from_str(&told).expect("it is JSON");
    assert_eq!(config["config"]["User"], "65532:65532");
    assert_eq!(config["config"]["Entrypoint"][0], "/usr/bin/skiff");
    let manifest = fs::read(folder.0.join("oci/manifest.json")).expect("it was read");
    let manifest: Value = serde_json::from_slice(&manifest).expect("it is JSON");
    let layer = manifest["layers"][0]["digest"].as_str().and_then(|digest| digest.strip_prefix("sha256:"));
    let container = folder.0.join("container");
    fs::create_dir(&container).expect("the folder is ours");
    let mut tar = Command::new("tar");
    tar.arg("-xzf").arg(folder.0.join("oci").join(layer.expect("it has a digest"))).arg("-C").arg(&container);
    succeeds(&mut tar);
    serves_inside(&container);
}

/// Nothing of this machine is there: the program finds all that it loads in the image.
fn serves_inside(container: &Path) {
    let mut inside = Command::new("unshare");
    inside.arg("--map-root-user").arg("--root").arg(container).args(["/usr/bin/skiff", "serve", "--temporary"]);
    inside.args(["--listen", "127.0.0.1:0", "--store", "memory", "--data-dir", "/tmp/data"]);
    let mut server = inside.stdout(Stdio::piped()).spawn().expect("there is unshare");
    let mut line = String::new();
    let stdout = server.stdout.take().expect("it is a pipe");
    BufReader::new(stdout).read_line(&mut line).expect("it is text");
    server.kill().expect("it is ours");
    server.wait().expect("it is ours");
    assert!(line.starts_with("ready https://127.0.0.1:"), "{line}");
}

#[test]
fn a_release_has_a_formula_and_checksums() {
    let Some(made) = made() else { return };
    let folder = Folder::for_test();
    // Which program it is does not matter here.
    let program = root().join("LICENSE");
    for target in
        ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu", "x86_64-apple-darwin", "aarch64-apple-darwin"]
    {
        succeeds(build(&program, &folder.0).args(["archive", "--target", target]));
    }
    succeeds(build(&program, &folder.0).args(["homebrew", "checksums"]));
    let read = |name: &str| fs::read_to_string(folder.0.join(name)).expect("it was made");
    let (formula, sums) = (read("skiff.rb"), read("SHA256SUMS"));
    assert!(!formula.contains("${"), "{formula}");
    for line in sums.lines().filter(|line| line.ends_with(".tar.gz")) {
        let (sum, name) = line.split_once("  ").expect("a sum and a name");
        assert!(formula.contains(&format!("/{name}\"\n      sha256 \"{sum}\"")), "{line}\n{formula}");
    }
    succeeds(Command::new("sha256sum").args(["--check", "SHA256SUMS"]).current_dir(&folder.0));
    // The same program gives the same bytes.
    let first = fs::read(file(made, "kubeskiff-", "linux-gnu.tar.gz")).expect("it was made");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("skiff");
    succeeds(build(&program, &folder.0).arg("archive"));
    assert!(fs::read(file(&folder.0, "kubeskiff-", "x86_64-unknown-linux-gnu.tar.gz")).expect("it was made") == first);
}

/// The script of the GitHub Action, with a folder in place of the release.
#[test]
fn setup_skiff_installs_what_has_the_right_checksum() {
    let Some(made) = made() else { return };
    let folder = Folder::for_test();
    let archive = file(made, "kubeskiff-", "linux-gnu.tar.gz");
    let release = folder.0.join("release");
    fs::create_dir(&release).expect("the folder is ours");
    fs::copy(&archive, release.join(archive.file_name().expect("it is a file"))).expect("there is room");
    succeeds(build(Path::new("none"), &release).arg("checksums"));
    let run = |to: &str| {
        let mut script = Command::new("bash");
        script.arg(root().join("packages/setup-skiff/install")).current_dir(&folder.0);
        script.env("SKIFF_VERSION", env!("CARGO_PKG_VERSION")).env("SKIFF_FOLDER", folder.0.join(to));
        script.env("SKIFF_RELEASES", format!("file://{}", release.display()));
        script.env("GITHUB_PATH", folder.0.join("path")).env("GITHUB_ENV", folder.0.join("env"));
        script.env("GITHUB_OUTPUT", folder.0.join("output"));
        script
    };
    succeeds(&mut run("tools"));
    assert_eq!(succeeds(Command::new(folder.0.join("tools/skiff")).arg("--version")), VERSION);
    let path = fs::read_to_string(folder.0.join("path")).expect("it was told");
    assert_eq!(path.trim_end(), folder.0.join("tools").display().to_string());
    let output = fs::read_to_string(folder.0.join("output")).expect("it was told");
    assert_eq!(output, format!("path={}\n", folder.0.join("tools/skiff").display()));
    let sums = fs::read_to_string(release.join("SHA256SUMS")).expect("it is there");
    let damaged: OsString = sums.chars().map(|it| if it == 'a' { 'b' } else { it }).collect::<String>().into();
    fs::write(release.join("SHA256SUMS"), damaged.as_encoded_bytes()).expect("the folder is ours");
    assert!(!run("others").output().expect("there is bash").status.success());
    assert!(!folder.0.join("others/skiff").exists());
}

/// pip, dpkg and the loader refuse a program where glibc is older than it needs; a release has none that needs a new one.
#[test]
fn a_program_that_needs_a_newer_glibc_is_refused() {
    let folder = Folder::for_test();
    let program = Path::new(env!("CARGO_BIN_EXE_skiff"));
    let made = |most: &str| {
        let output =
            build(program, &folder.0).args(["archive", "--glibc-max", most]).output().expect("there is Python");
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    if on_path("objdump").is_none() {
        return left_out("objdump");
    }
    let (succeeded, told) = made("2.2");
    let needed = told.split_once(" needs glibc ").and_then(|(_, rest)| rest.split_once(", which is newer than 2.2"));
    let (needed, _) = needed.unwrap_or_else(|| panic!("{told}"));
    assert!(!succeeded);
    assert!(made(needed).0, "it needs {needed}");
    let (major, minor) = needed.split_once('.').expect("it has two parts");
    let needed: (u32, u32) = (major.parse().expect("a number"), minor.parse().expect("a number"));
    // The limit of a release.
    assert_eq!(made("2.28").0, needed <= (2, 28), "it needs {needed:?}");
}

/// What can't be run here is at least what its readers take.
#[test]
fn workflows_formulas_and_nix_expressions_are_well_formed() {
    let actionlint = root().join("tests/tools/actionlint");
    if !actionlint.is_file() || on_path("ruby").is_none() || on_path("nix-instantiate").is_none() {
        return left_out("actionlint, ruby and nix-instantiate");
    }
    // With the workflow it reads the action that this uses.
    let workflow = ".github/workflows/release.yml";
    let text = fs::read_to_string(root().join(workflow)).expect("it is there");
    assert!(text.contains("uses: ./packages/setup-skiff\n") && text.contains("--glibc-max 2.28"), "{text}");
    succeeds(Command::new(actionlint).arg(workflow).current_dir(root()));
    let formula = Command::new("ruby").args(["-c", "packages/homebrew/skiff.rb"]).current_dir(root()).output();
    let formula = formula.expect("there is ruby");
    assert!(formula.status.success() && formula.stdout == b"Syntax OK\n", "{formula:?}");
    for expression in ["flake.nix", "package.nix"] {
        let path = root().join("packages/nix").join(expression);
        let mut nix = Command::new("nix-instantiate");
        // It makes folders for a store that parsing does not need.
        let state = Folder::for_test();
        nix.arg("--parse").arg(path).env("NIX_STATE_DIR", &state.0).env("NIX_STORE_DIR", &state.0);
        succeeds(&mut nix);
    }
}

/// cargo-binstall fills in the templates of `Cargo.toml`: they lead to the archive of a release and to the program in it.
#[test]
fn binstall_finds_the_program_in_the_archive() {
    let Some(made) = made() else { return };
    let manifest = fs::read_to_string(root().join("Cargo.toml")).expect("it is there");
    let field = |name: &str| {
        let line = manifest.lines().find_map(|line| line.strip_prefix(&format!("{name} = \"")));
        line.and_then(|line| line.strip_suffix('"')).expect("it is there").to_owned()
    };
    let target = format!("{}-unknown-linux-gnu", env::consts::ARCH);
    let values: [(&str, &str); 5] = [
        ("repo", env!("CARGO_PKG_REPOSITORY")),
        ("name", env!("CARGO_PKG_NAME")),
        ("version", env!("CARGO_PKG_VERSION")),
        ("target", &target),
        ("bin", "skiff"),
    ];
    let filled_in = |name: &str| {
        let fill_in = |text: String, (name, value): &(&str, &str)| text.replace(&format!("{{ {name} }}"), value);
        values.iter().fold(field(name), fill_in)
    };
    assert_eq!(field("pkg-fmt"), "tgz");
    let url = filled_in("pkg-url");
    let (release, name) = url.rsplit_once('/').expect("it is a URL");
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(release, format!("https://github.com/kubeskiff/kubeskiff/releases/download/v{version}"));
    let listed = succeeds(Command::new("tar").arg("-tzf").arg(made.join(name)));
    assert!(listed.lines().any(|file| file == filled_in("bin-dir")), "{listed}");
}

/// What Cargo would publish is made, is as small as crates.io wants it, and is a package without the rest of the project.
#[test]
fn the_crates_can_be_published() {
    const CRATE_BYTES_MAX: u64 = 10 << 20;
    let folder = Folder::for_test();
    let mut package = Command::new(env!("CARGO"));
    package.args(["package", "--workspace", "--no-verify", "--allow-dirty", "--locked", "--offline", "--target-dir"]);
    succeeds(package.arg(&folder.0).current_dir(root()));
    let made = folder.0.join("package");
    let version = env!("CARGO_PKG_VERSION");
    for name in ["kubeskiff-engine", "kubeskiff", "kubeskiff-test-macros", "kubeskiff-test"] {
        let file = made.join(format!("{name}-{version}.crate"));
        let length = fs::metadata(&file).expect("it was made").len();
        assert!(length < CRATE_BYTES_MAX, "{name} has {length} bytes");
        succeeds(Command::new("tar").arg("-xzf").arg(&file).arg("-C").arg(&folder.0));
    }
    for name in ["kubeskiff-engine", "kubeskiff"] {
        let package = folder.0.join(format!("{name}-{version}"));
        let missing = missing_inclusions(&package);
        assert!(missing.is_empty(), "{name} includes what it does not have: {missing:?}");
        assert!(name == "kubeskiff" || package.join("schemas/types").is_dir());
    }
    // The others come from the registry, where they are not yet.
    let mut metadata = Command::new(env!("CARGO"));
    metadata.args(["metadata", "--format-version", "1", "--offline", "--no-deps", "--manifest-path"]);
    metadata.arg(folder.0.join(format!("kubeskiff-{version}/Cargo.toml")));
    let told: Value = serde_json::from_str(&succeeds(&mut metadata)).expect("it is JSON");
    let targets = told["packages"][0]["targets"].as_array().expect("it has some").iter();
    assert!(targets.into_iter().any(|target| target["kind"][0] == "bin" && target["name"] == "skiff"), "{told}");
    let engine = told["packages"][0]["dependencies"].as_array().expect("it has some").iter();
    let engine = engine.into_iter().find(|needed| needed["name"] == "kubeskiff-engine").expect("it needs it");
    assert!(engine["path"].is_null() && engine["req"] == format!("^{version}"), "{engine}");
}

/// The files that the sources of an unpacked crate include, and that are not in it. Pages of documentation are for its tests.
fn missing_inclusions(package: &Path) -> Vec<PathBuf> {
    let inclusion = r#"include_(?:str|bytes)!\((concat!\(env!\("SCHEMAS"\), )?"([^"]+)""#;
    let inclusion = Regex::new(inclusion).expect("it is a pattern");
    let (mut folders, mut missing) = (vec![package.join("src")], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("it is unpacked") {
            let path = entry.expect("it is readable").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = fs::read_to_string(&path).unwrap_or_default();
            let code = text.lines().filter(|line| !line.starts_with("#[doc"));
            for found in code.flat_map(|line| inclusion.captures_iter(line)) {
                let from = if found.get(1).is_some() { package.join("schemas") } else { folder.clone() };
                let included = from.join(found[2].trim_start_matches('/'));
                missing.extend(Some(included).filter(|included| !included.exists()));
            }
        }
    }
    missing
}

/// The packages for Windows have the program where its users look for it.
#[test]
fn packages_for_windows_have_a_program_with_its_ending() {
    if made().is_none() {
        return;
    }
    let folder = Folder::for_test();
    // Which program it is does not matter here.
    let program = folder.0.join("skiff.exe");
    fs::write(&program, "MZ").expect("the folder is ours");
    let out = folder.0.join("out");
    succeeds(build(&program, &out).args(["archive", "wheel", "npm", "--target", "x86_64-pc-windows-gnu"]));
    let listed = |end: &str| succeeds(Command::new("tar").arg("-tzf").arg(file(&out, "kubeskiff-", end)));
    let archive = listed("-x86_64-pc-windows-gnu.tar.gz");
    assert!(archive.lines().any(|line| line.ends_with("/skiff.exe")), "{archive}");
    let npm = listed(".tgz");
    assert!(npm.lines().any(|line| line == "package/bin/skiff.exe"), "{npm}");
    let manifest = file(&out, "kubeskiff-win32-x64-", ".tgz");
    let manifest = succeeds(Command::new("tar").arg("-xzOf").arg(manifest).arg("package/package.json"));
    let manifest: Value = serde_json::from_str(&manifest).expect("it is JSON");
    assert_eq!((&manifest["os"][0], &manifest["cpu"][0]), (&"win32".into(), &"x64".into()));
    let wheel = file(&out, "kubeskiff-", "-py3-none-win_amd64.whl");
    let listed = succeeds(Command::new("python3").args(["-m", "zipfile", "-l"]).arg(&wheel));
    assert!(listed.contains(".data/scripts/skiff.exe"), "{listed}");
    // Other kinds are of other systems.
    let refused = build(&program, &out).args(["deb", "--target", "x86_64-pc-windows-gnu"]).output();
    assert!(!refused.expect("there is Python").status.success());
}

/// What Cargo would publish has every file that the compiler has read to build the libraries under test.
#[test]
fn the_published_packages_have_all_that_the_build_reads() {
    for (package, library, folder) in
        [("kubeskiff", "libkubeskiff-", ""), ("kubeskiff-engine", "libkubeskiff_engine-", "engine")]
    {
        let mut list = Command::new(env!("CARGO"));
        list.args(["package", "--list", "--allow-dirty", "--offline", "--package", package]).current_dir(root());
        let listed = succeeds(&mut list);
        let listed: Vec<&str> = listed.lines().collect();
        let read = files_read(library);
        let read: Vec<&Path> = read.iter().filter_map(|file| file.strip_prefix(folder).ok()).collect();
        assert!(read.contains(&Path::new("src/lib.rs")), "{read:?}");
        for file in read {
            assert!(listed.iter().any(|listed| Path::new(listed) == file), "{package} lacks {}", file.display());
        }
    }
}

/// The files of this project that rustc has read for a library, as it tells Cargo. Those of earlier builds are among them, as
/// long as they are there.
fn files_read(library: &str) -> Vec<PathBuf> {
    let program = env::current_exe().expect("the system tells");
    let rules = fs::read_dir(program.parent().expect("it is in a folder")).expect("it is readable");
    let rules = rules.map(|file| file.expect("it is readable").path());
    let rules = rules.filter(|path| path.extension().is_some_and(|extension| extension == "d"));
    let texts = rules.filter_map(|path| fs::read_to_string(path).ok());
    let mut files = Vec::new();
    for text in texts.filter(|text| text.contains(&format!("/{library}"))) {
        let (_, read) = text.lines().next().and_then(|line| line.split_once(": ")).expect("it is a rule of make");
        files.extend(read.split(' ').map(PathBuf::from));
    }
    // What build scripts have made is made again. Some are named by way of other folders.
    let whole = |file: PathBuf| fs::canonicalize(root().join(file)).ok();
    let root = fs::canonicalize(root()).expect("it is there");
    let own = |file: PathBuf| file.strip_prefix(&root).ok().map(Path::to_owned);
    files.into_iter().filter(|file| file.is_relative()).filter_map(whole).filter_map(own).collect()
}
