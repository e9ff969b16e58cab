//! `skiff eval`, `skiff infer` and `skiff convert`.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::{BOATS, check, folder, skiff, text};

const BOAT: &str = "{apiVersion: harbour.example.com/v1, kind: Boat, metadata: {name: daisy}, spec: {length: 7}}\n";

#[test]
fn an_expression_is_evaluated_over_an_object() {
    let folder = folder("eval", &[("crd.yaml", BOATS), ("boat.yaml", BOAT)]);
    let arguments =
        ["eval", "--crd", "crd.yaml", "--object", "boat.yaml", "--at", "spec", "self.crew * 2 <= self.length"];
    let expected = "\
true
  bool, cost 6, at most 6
  self.crew * 2 is 2
  self.crew is 1
  self.length is 7
";
    check(&folder, &arguments, 0, expected);
    let output = skiff(&folder, &["eval", "--crd", "crd.yaml", "--object", "boat.yaml", "self.spec.mast"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("undefined field 'mast'"), "{output:?}");
}

#[test]
fn variables_may_be_given_by_hand() {
    let folder = folder("eval-hand", &[]);
    check(
        &folder,
        &["eval", "--var", "x={a: [1, 2]}", "x.a.map(i, i * 2)"],
        0,
        "[2, 4]\n  list(int), cost 31\n  x.a is [1, 2]\n",
    );
    let output = skiff(&folder, &["eval", "-o", "json", "1 / 0"]);
    let found: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!((output.status.code(), &found["error"]), (Some(1), &json!("division by zero")));
}

#[test]
fn lines_are_evaluated_one_by_one() {
    let folder = folder("eval-lines", &[]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_skiff"));
    command.current_dir(&folder).arg("eval").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("the binary is there");
    child.stdin.take().expect("it is a pipe").write_all(b"1 + 1\n\n2 * 3\n").expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(text(&output.stdout), "2\n  int, cost 1\n6\n  int, cost 1\n");
}

#[test]
fn a_definition_is_inferred_that_takes_its_examples() {
    let more = BOAT.replace("daisy", "tern").replace("length: 7", "length: 9, rig: sloop");
    let folder = folder("infer", &[("boats.yaml", &format!("---\n{BOAT}---\n{more}"))]);
    let output = skiff(&folder, &["infer", "boats.yaml"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    fs::write(folder.join("crd.yaml"), &output.stdout).expect("the folder is writable");
    let output = skiff(&folder, &["validate", "-f", "crd.yaml", "boats.yaml"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let output = skiff(&folder, &["lint", "crd.yaml"]);
    assert!(text(&output.stdout).starts_with("0 findings in 1 definition\n"), "{output:?}");
    let output = skiff(&folder, &["infer", "--kind", "Ferry", "boats.yaml"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

/// Every definition of the examples that come with kubeskiff is inferred from its valid objects.
#[test]
fn the_examples_are_learnt() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("crd-examples");
    let mut learnt = 0;
    for entry in fs::read_dir(&root).expect("it is there") {
        let valid = entry.expect("it is there").path().join("valid");
        if valid.is_dir() {
            let output = skiff(&root, &["infer", &valid.display().to_string()]);
            assert_eq!(output.status.code(), Some(0), "{}: {}", valid.display(), text(&output.stderr));
            learnt += 1;
        }
    }
    assert!(learnt > 3, "{learnt}");
}

/// Boats with a second version, in which they have a beam and no rig.
fn two_versions() -> String {
    let (head, versions) = BOATS.split_once("  versions:\n").expect("boats have versions");
    let other = versions.replacen("name: v1", "name: v2", 1).replacen("storage: true", "storage: false", 1);
    let other =
        other.replacen("                rig:", "                beam: {type: integer}\n                mast:", 1);
    format!("{head}  versions:\n{versions}{other}")
}

#[test]
fn what_a_round_trip_loses_is_told() {
    let boat = BOAT.replace("length: 7", "length: 7, rig: sloop");
    let folder = folder("convert", &[("crd.yaml", &two_versions()), ("boat.yaml", &boat)]);
    let expected = "\
boat.yaml: Boat daisy: harbour.example.com/v1 to harbour.example.com/v2 and back
  changes spec.rig from \"sloop\" to \"none\"
1 object, 1 round trip: 0 whole, 1 not
";
    check(&folder, &["convert", "crd.yaml", "boat.yaml"], 1, expected);
    let output = text(&skiff(&folder, &["convert", "crd.yaml", "boat.yaml", "--to", "v2"]).stdout);
    assert!(output.contains("apiVersion: harbour.example.com/v2\n") && !output.contains("rig: sloop"), "{output}");
    fs::write(folder.join("plain.yaml"), BOAT).expect("the folder is writable");
    let output = skiff(&folder, &["convert", "crd.yaml", "plain.yaml", "-o", "json"]);
    let found: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!((output.status.code(), &found[0]["differences"]), (Some(0), &json!([])), "{found}");
}

#[test]
fn a_webhook_that_does_not_answer_is_told() {
    let webhook = "  conversion:\n    strategy: Webhook\n    webhook:\n      conversionReviewVersions: [v1]\n      clientConfig: {url: \
                   'https://127.0.0.1:1/convert'}\n  scope:";
    let crd = two_versions().replacen("  scope:", webhook, 1);
    let folder = folder("convert-webhook", &[("crd.yaml", &crd), ("boat.yaml", BOAT)]);
    let output = skiff(&folder, &["convert", "crd.yaml", "boat.yaml"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(text(&output.stdout).contains("fails to harbour.example.com/v2: conversion webhook for "), "{output:?}");
}
