//! Programs made of Kubernetes' Go libraries. Each is the tests of a folder in `tests/clients/go`, built by tests/setup.

use std::path::Path;
use std::process::Command;

use kubeskiff::kinds;

use crate::kinds::example;
use crate::kubectl::left_out;
use crate::server::Folder;

/// Runs the tests of a folder, which start their servers themselves. They must pass, without a word on stderr: that is
/// where the libraries put the warnings that they are sent, and errors that they get over.
#[track_caller]
fn check_passes(name: &str) {
    check_passes_with(name, &[]);
}

/// As [`check_passes`], with further variables in the environment.
#[track_caller]
fn check_passes_with(name: &str, variables: &[(&str, &Path)]) {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let program = tests.join("tools/go").join(format!("{name}.test"));
    if !program.is_file() {
        return left_out("the Go clients");
    }
    let skiff = env!("CARGO_BIN_EXE_skiff");
    let assets = Command::new(skiff).arg("assets").env("SKIFF_ASSETS_DIR", env!("CARGO_TARGET_TMPDIR")).output();
    let assets = assets.expect("the binary was built with the tests").stdout;
    let output = Command::new(program)
        .arg("-test.v")
        .current_dir(tests.join("clients/go").join(name))
        .env("SKIFF", skiff)
        .env("KUBEBUILDER_ASSETS", String::from_utf8_lossy(&assets).trim())
        .envs(variables.iter().copied())
        .output()
        .expect("the program was there a moment ago");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{name}: {stdout}{stderr}");
    assert_eq!(stderr, "", "{name}");
    assert!(!stdout.contains("panicked"), "{name}: {stdout}");
}

#[test]
fn typed_clients_work_with_every_built_in_kind_in_protobuf() {
    check_passes("typed");
}

/// The program reads the kinds' examples from a file, one a line.
#[test]
fn typed_clients_drive_every_kind_that_discovery_lists() {
    let folder = Folder::for_test();
    let file = folder.0.join("examples.jsonl");
    let examples: String = kinds::all().map(|kind| format!("{}\n", example(kind))).collect();
    std::fs::write(&file, examples).expect("the folder is ours");
    check_passes_with("kinds", &[("EXAMPLES", &file)]);
}

#[test]
fn clients_that_know_no_types_work_with_any_kind() {
    check_passes("dynamic");
}

#[test]
fn a_manager_of_controller_runtime_runs() {
    check_passes("manager");
}

#[test]
fn envtest_runs_on_the_programs_of_skiff_assets() {
    check_passes("envtest");
}
