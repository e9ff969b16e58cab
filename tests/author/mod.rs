//! The tools of schema authors, through the real binary: what they print and how they end.

mod built_in;
mod claims;
mod cluster;
mod commands;
mod convert;
mod corpus;
mod diff;
mod eval;
mod inputs;
mod lint;
mod policies;
mod schemas;
mod suites;
mod terminal;
mod validate;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The definition of boats that these tests share.
pub const BOATS: &str = include_str!("boats.yaml");

/// A folder for one test, with these files.
pub fn folder(test: &str, files: &[(&str, &str)]) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(test);
    fs::create_dir_all(&folder).expect("the folder for tests is writable");
    for (name, content) in files {
        fs::write(folder.join(name), content).expect("the folder for tests is writable");
    }
    folder
}

/// Runs `skiff` with `arguments` in `folder`.
pub fn skiff(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_skiff"));
    command.current_dir(folder).args(arguments).output().expect("the binary was built with the tests")
}

/// Runs `skiff` and compares all of stdout, with nothing on stderr.
pub fn check(folder: &Path, arguments: &[&str], code: i32, expected: &str) {
    let output = skiff(folder, arguments);
    assert_eq!((text(&output.stdout).as_str(), text(&output.stderr).as_str()), (expected, ""), "{arguments:?}");
    assert_eq!(output.status.code(), Some(code), "{arguments:?}");
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("what is printed is UTF-8")
}
