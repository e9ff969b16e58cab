//! The project's file, the same for every command.

use std::process::{Command, Output};

use crate::client::{Client, Folder};
use crate::session::BOATS;

const PROJECT: &str = "definitions = [\"crds\"]\nsuites = [\"suites\"]\nobjects = [\"objects/*.yaml\"]\n\n[lint]\non = [\"enum-camel-case\"]\noff = [\"optional-without-has\"]\n";
const SUITE: &str = "crds: [../crds]\ncases:\n- name: small\n  object: {apiVersion: harbour.example.com/v1, kind: Boat, metadata: {name: a}, spec: {length: 7}}\n  expect: {valid: true}\n";

fn project(name: &str, file: &str) -> Folder {
    let object = "apiVersion: harbour.example.com/v1\nkind: Boat\nmetadata: {name: a}\nspec: {length: 1}\n";
    Folder::new(
        name,
        &[
            ("skiff.toml", file),
            ("crds/boats.yaml", BOATS),
            ("suites/boats.suite.yaml", SUITE),
            ("objects/a.yaml", object),
            ("deep/er/x", ""),
        ],
    )
}

fn run(folder: &std::path::Path, arguments: &[&str]) -> (i32, String) {
    let Output { status, stdout, stderr } = Command::new(env!("CARGO_BIN_EXE_skiff"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("the program runs");
    (status.code().unwrap_or(-1), format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr)))
}

#[test]
fn every_author_command_finds_it() {
    let folder = project("every", PROJECT);
    for at in ["", "deep/er"] {
        let at = folder.0.join(at);
        let check = |arguments: &[&str], code: i32, says: &str| {
            let (found, text) = run(&at, arguments);
            assert!(found == code && text.contains(says), "{arguments:?}: {found}\n{text}");
        };
        check(&["validate"], 1, "should be greater than or equal to 2");
        check(&["test"], 0, "1 case: 1 passed");
        check(&["cost"], 0, "boats.harbour.example.com");
        check(&["explain", "spec.length"], 0, "in metres");
        check(&["explain", "boat.spec.length"], 0, "in metres");
        check(&["docs"], 0, "Example: small");
        check(&["lint"], 1, "enum-camel-case");
    }
    // What is named goes before it.
    let (code, text) = run(&folder.0, &["validate", "suites/../crds/boats.yaml"]);
    assert_eq!(code, 0, "{text}");
    let (code, text) = run(&folder.0, &["lint", "--ignore", "enum-camel-case"]);
    assert_eq!(code, 0, "{text}");
}

#[test]
fn without_it_what_is_needed_must_be_named() {
    let folder = Folder::new("without", &[("a.yaml", "a: 1\n")]);
    for command in ["validate", "test", "lint", "cost", "docs", "explain"] {
        let (code, text) = run(&folder.0, &[command]);
        assert!(code == 2 && text.contains("here or in a skiff.toml"), "{command}: {code} {text}");
    }
}

#[test]
fn each_mistake_in_it_is_told_with_its_place() {
    let folder = project("mistakes", "definition = []\n[lint]\noff = [\"x\"]\n");
    for command in ["validate", "test", "lint", "cost", "docs", "explain"] {
        let (code, text) = run(&folder.0.join("deep"), &[command]);
        assert_eq!(code, 2, "{text}");
        assert!(text.contains("../skiff.toml:1:1: unknown key `definition` (did you mean `definitions`?)"), "{text}");
        assert!(text.contains("../skiff.toml:3:8: no lint is called `x`"), "{text}");
    }
    let mut client = Client::start(Some(&folder.0));
    let message = client.receive();
    assert_eq!(message["method"], "window/showMessage");
    let told = client.receive();
    assert_eq!(told["params"]["diagnostics"].as_array().map(Vec::len), Some(2), "{told}");
}

#[test]
fn the_server_takes_its_lints() {
    let folder = project("lints", PROJECT);
    let mut client = Client::start(Some(&folder.0));
    let uri = folder.uri("crds/boats.yaml");
    client.open(&uri, BOATS);
    let faults = client.faults(&uri);
    assert!(faults.iter().all(|fault| fault.contains("enum-camel-case")) && !faults.is_empty(), "{faults:?}");
}
