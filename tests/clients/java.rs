//! A program in Java that starts the programs of `skiff assets` through Fabric8's kube-api-test.

use std::path::Path;
use std::process::Command;

use crate::kubectl::left_out;
use crate::server::Folder;

/// Maven has what it needs from tests/setup.
#[test]
fn kube_api_test_runs_on_the_programs_of_skiff_assets() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    if !tests.join("tools/java_clients/.stamp").is_file() {
        return left_out("the Java packages");
    }
    let folder = Folder::for_test();
    let mut assets = Command::new(env!("CARGO_BIN_EXE_skiff"));
    let assets =
        assets.args(["assets", "--kubernetes-version", "1.34"]).env("SKIFF_ASSETS_DIR", folder.0.join("assets"));
    let assets = assets.output().expect("the binary was built with the tests").stdout;
    let assets = String::from_utf8(assets).expect("it is a path");
    // It looks for `k8s/VERSION-SYSTEM-PROCESSOR` in its own folder.
    let of_its_own = Path::new(assets.trim()).ancestors().nth(2).expect("there are two names");
    let mut maven = Command::new("mvn");
    maven.args(["--offline", "--quiet", "--batch-mode", "test"]).current_dir(tests.join("clients/java"));
    maven.arg(format!("-Dbuild.folder={}", folder.0.join("target").display()));
    maven.env("KUBE_API_TEST_DIR", of_its_own).env("KUBE_API_TEST_API_SERVER_VERSION", "1.34.0");
    let output = maven.output().expect("Maven is there");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{stdout}{stderr}");
}
