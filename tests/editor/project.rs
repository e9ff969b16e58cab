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

/// A definition whose rule only newer minors can compile.
fn with_addresses(minors: &str) -> Folder {
    let boats = BOATS.replace("self.rig != 'ketch' || self.length >= 9", "isIP(self.rig) || self.length >= 2");
    let file = format!("kubernetes-versions = {minors}\n{PROJECT}").replace("on = [\"enum-camel-case\"]\n", "");
    let object = "apiVersion: harbour.example.com/v1\nkind: Boat\nmetadata: {name: a}\nspec: {length: 7}\n";
    let name = format!("minors-{}", minors.replace(|sign: char| !sign.is_ascii_alphanumeric(), "-"));
    Folder::new(
        &name,
        &[
            ("skiff.toml", &file),
            ("crds/boats.yaml", &boats),
            ("suites/boats.suite.yaml", SUITE),
            ("objects/a.yaml", object),
        ],
    )
}

#[test]
fn its_minors_are_those_of_every_command() {
    let folder = with_addresses("[\"1.30-1.31\", \"1.33\"]");
    let check = |arguments: &[&str], code: i32, says: &str| {
        let (found, text) = run(&folder.0, arguments);
        assert!(found == code && text.contains(says), "{arguments:?}: {found}\n{text}");
    };
    for command in [&["validate", "crds"][..], &["lint", "--severity", "error"], &["cost"]] {
        check(command, 1, "fine from 1.31 on");
    }
    check(&["explain", "spec.length"], 1, "fine from 1.31 on");
    check(&["diff", "crds", "crds"], 1, "KUBERNETES");
    check(&["test"], 2, "fine from 1.31 on");
    // What the command line names goes before it.
    check(&["validate", "--kubernetes-version", "1.30", "crds"], 1, "undeclared reference to 'isIP'");
    check(&["validate", "--kubernetes-version", "1.36", "crds"], 0, "");
    // Where there is no table, the newest is answered for.
    check(&["validate", "-o", "sarif", "crds"], 0, "\"results\"");
    check(&["validate", "-o", "sarif", "--kubernetes-version", "1.30,1.31", "crds"], 2, "name one");
    let folder = with_addresses("[\"1.30\", \"1.38\"]");
    let (code, text) = run(&folder.0, &["validate"]);
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("skiff.toml:1:32: `kubernetes-versions`: `1.38` is not a minor version"), "{text}");
}

#[test]
fn the_server_takes_its_minors() {
    for (minors, told) in [
        ("[\"1.30\", \"1.33\"]", "older-refuses refused in Kubernetes 1.30: "),
        ("[\"1.30\"]", "expression undeclared reference to 'isIP'"),
    ] {
        let folder = with_addresses(minors);
        let mut client = Client::start(Some(&folder.0));
        let uri = folder.uri("crds/boats.yaml");
        let text = std::fs::read_to_string(folder.0.join("crds/boats.yaml")).expect("the file is there");
        client.open(&uri, &text);
        let faults = client.faults(&uri);
        assert!(faults.iter().any(|fault| fault.contains(told)), "{minors}: {faults:?}");
    }
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
