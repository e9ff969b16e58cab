//! The folder that `skiff assets` makes, without any client.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use crate::server::Folder;

/// Test suites start kubectl with an environment of their own, which often lacks the PATH.
#[test]
fn kubectl_without_a_path_is_the_one_that_skiff_assets_found() {
    let folder = Folder::for_test();
    let (programs, home) = (folder.0.join("programs"), folder.0.join("assets"));
    fs::create_dir(&programs).expect("the folder is there");
    // Any program that is there will do; one that was just written could be busy.
    symlink("/bin/sh", programs.join("kubectl")).expect("the folder is there");

    let mut assets = Command::new(env!("CARGO_BIN_EXE_skiff"));
    let assets = assets.arg("assets").env("SKIFF_ASSETS_DIR", &home).env("PATH", &programs).output();
    let assets = String::from_utf8(assets.expect("the binary was built with the tests").stdout).expect("it is a path");
    let kubectl = format!("{}/kubectl", assets.trim());
    let answer = Command::new(kubectl).env_clear().args(["-c", "echo real"]).output();
    assert_eq!(String::from_utf8_lossy(&answer.expect("it was made").stdout), "real\n");
}
