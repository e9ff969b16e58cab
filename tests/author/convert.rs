//! `skiff convert`.

use std::fs;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{BOATS, check, folder, skiff, text};
use crate::golden::webhook::Webhook;

const BOAT: &str = "\
apiVersion: harbour.example.com/v1
kind: Boat
metadata: {name: daisy}
spec: {length: 7}
";

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

#[test]
fn a_webhook_that_is_named_is_called() {
    let mut webhook = Webhook::new("127.0.0.1");
    webhook.behave(&json!({"to": {"v2": {"set": {"/spec/beam": 3}}, "v1": {"remove": ["/spec/beam"]}}}));
    let authority = STANDARD.decode(&webhook.authority).expect("it is base64");
    let folder = folder("convert-live", &[("crd.yaml", &two_versions()), ("boat.yaml", BOAT)]);
    fs::write(folder.join("ca.pem"), authority).expect("the folder is writable");
    let url = format!("https://{}/convert", webhook.host());
    let run = |more: &[&str]| {
        let arguments = ["convert", "crd.yaml", "boat.yaml", "--webhook", &url, "--webhook-ca", "ca.pem"];
        skiff(&folder, &[&arguments, more].concat())
    };

    let whole = run(&[]);
    assert_eq!(text(&whole.stdout), "1 object, 1 round trip: 1 whole, 0 not\n", "{whole:?}");
    assert_eq!((whole.status.code(), webhook.seen(&json!({})).len()), (Some(0), 2), "once there, once back");
    let there = text(&run(&["--to", "v2"]).stdout);
    assert!(there.contains("  beam: 3\n"), "{there}");

    webhook.behave(&json!({"to": {"v1": {"set": {"/spec/length": 9}}}}));
    let lossy = run(&[]);
    assert!(text(&lossy.stdout).contains("  changes spec.length from 7 to 9\n"), "{lossy:?}");
    assert_eq!(lossy.status.code(), Some(1));
}

#[test]
fn what_goes_nowhere_is_told_and_hides_nothing() {
    let foreign = BOAT.replace("Boat", "Crane");
    let objects = [("a.yaml", foreign.as_str()), ("b.yaml", "spec: {a: ["), ("c.yaml", BOAT)];
    let folder = folder("convert-broken", &objects);
    fs::write(folder.join("two.yaml"), two_versions()).expect("the folder is writable");
    fs::write(folder.join("one.yaml"), BOATS).expect("the folder is writable");
    let output = skiff(&folder, &["convert", "two.yaml", "a.yaml", "b.yaml", "c.yaml"]);
    let told = text(&output.stderr);
    assert!(told.contains("a.yaml: Crane daisy: no definition has its kind\n") && told.contains("`b.yaml` "), "{told}");
    assert_eq!(text(&output.stdout), "2 objects, 1 round trip: 1 whole, 0 not\n");
    assert_eq!(output.status.code(), Some(2));
    let output = skiff(&folder, &["convert", "two.yaml", "a.yaml", "c.yaml", "--to", "v2"]);
    assert!(text(&output.stdout).contains("harbour.example.com/v2"), "{output:?}");
    assert_eq!(output.status.code(), Some(1));

    let output = skiff(&folder, &["convert", "one.yaml", "c.yaml"]);
    assert_eq!(text(&output.stderr), "skiff: c.yaml: Boat daisy: there is no other version to go to\n");
    assert_eq!(output.status.code(), Some(1));
    let output = skiff(&folder, &["convert", "one.yaml", "c.yaml", "--to", "v3"]);
    assert!(text(&output.stderr).contains("use harbour.example.com/v1"), "{output:?}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_project_says_what_is_converted() {
    let project = "definitions = [\"two.yaml\"]\nobjects = [\"boat.yaml\"]\n";
    let folder =
        folder("convert-project", &[("skiff.toml", project), ("two.yaml", &two_versions()), ("boat.yaml", BOAT)]);
    check(&folder, &["convert"], 0, "1 object, 1 round trip: 1 whole, 0 not\n");
}
