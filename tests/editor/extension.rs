//! The extension for Visual Studio Code as a package, made by the tool that publishes such.

use std::fs;
use std::path::Path;
use std::process::Command;

/// What a package must have.
const WANTED: [&str; 6] = [
    "[Content_Types].xml",
    "extension.vsixmanifest",
    "extension/package.json",
    "extension/extension.js",
    "extension/LICENSE.txt",
    "extension/node_modules/vscode-languageclient/package.json",
];

#[test]
fn the_extension_is_packaged() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("editors/vscode");
    let tool = folder.join("node_modules/.bin/vsce");
    if !tool.is_file() {
        assert!(std::env::var_os("CI").is_none(), "{} is not there: tests/setup installs it", tool.display());
        crate::client::left_out("the extension for Visual Studio Code, as editors/vscode/node_modules is not there");
        return;
    }
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kubeskiff.vsix");
    _ = fs::remove_file(&out);
    let made = Command::new(&tool).args(["package", "--out"]).arg(&out).current_dir(&folder).output().expect("it runs");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let names = names(&fs::read(&out).expect("it was made"));
    for wanted in WANTED {
        assert!(names.iter().any(|name| name == wanted), "{wanted} is not in {names:?}");
    }
    assert!(!names.iter().any(|name| name.contains("@vscode/vsce")), "tools are not part of it");
}

#[test]
fn the_extension_starts_what_the_program_has() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("editors/vscode");
    let manifest = fs::read_to_string(folder.join("package.json")).expect("it is there");
    let manifest: serde_json::Value = serde_json::from_str(&manifest).expect("it is JSON");
    assert_eq!(manifest["version"], env!("CARGO_PKG_VERSION"));
    let source = fs::read_to_string(folder.join("extension.js")).expect("it is there");
    assert!(source.contains("args: [\"lsp\"]"));
    let help = Command::new(env!("CARGO_BIN_EXE_skiff")).args(["lsp", "--help"]).output().expect("it runs");
    assert!(help.status.success());
}

/// The names of the files in a zip, by its directory.
fn names(zip: &[u8]) -> Vec<String> {
    let number = |at: usize, bytes: usize| {
        zip[at..at + bytes].iter().rev().fold(0_usize, |sum, byte| sum << 8 | usize::from(*byte))
    };
    let end = zip.windows(4).rposition(|word| word == b"PK\x05\x06").expect("it is a zip");
    let (count, mut at) = (number(end + 10, 2), number(end + 16, 4));
    let mut names = Vec::new();
    for _ in 0..count {
        let lengths = [28, 30, 32].map(|field| number(at + field, 2));
        names.push(String::from_utf8_lossy(&zip[at + 46..at + 46 + lengths[0]]).into_owned());
        at += 46 + lengths.iter().sum::<usize>();
    }
    names
}
