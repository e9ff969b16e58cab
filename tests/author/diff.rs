//! `skiff diff`.

use serde_json::{Value, json};

use super::{BOATS, check, folder, skiff};

fn changed() -> String {
    BOATS
        .replace("maximum: 30", "maximum: 20")
        .replace("[ketch, sloop, none]", "[ketch, none, yawl]")
        .replace(
            "{type: integer, default: 1}",
            "{type: integer, default: 1}\n                sail: {type: integer, default: 2}",
        )
        .replace("a boat does not shrink", "a boat does not shrink\n                - rule: self.length != 7")
}

const OBJECTS: &str = "\
apiVersion: harbour.example.com/v1
kind: Boat
metadata: {name: daisy}
spec: {length: 7}
---
apiVersion: harbour.example.com/v1
kind: Boat
metadata: {name: tern}
spec: {length: 4, colour: red}
";

#[test]
fn changes_are_breaking_or_safe_and_objects_are_replayed() {
    let files = [("old.yaml", BOATS), ("new.yaml", &changed()), ("boats.yaml", OBJECTS)];
    let folder = folder("diff", &files);
    let expected = "\
boats.harbour.example.com v1
  BREAKING spec: rule-added: `self.length != 7`; values that an update leaves alone are forgiven
  BREAKING spec.length: bound-tightened: maximum 30 became 20
  BREAKING spec.rig: enum-values-removed: without \"sloop\"
  safe     spec.rig: enum-values-added: with \"yawl\"
  safe     spec.sail: property-added: a new field
boats.yaml: Boat daisy
  is kept only while left alone: spec: Invalid value: failed rule: self.length != 7
  gains spec.sail
boats.yaml: Boat tern
  gains spec.sail
2 objects replayed: 1 refused
";
    check(&folder, &["diff", "old.yaml", "new.yaml", "--objects", "boats.yaml"], 1, expected);
}

#[test]
fn the_json_has_the_same() {
    let folder = folder("diff-json", &[("old.yaml", &changed()), ("new.yaml", BOATS), ("boats.yaml", OBJECTS)]);
    let output = skiff(&folder, &["diff", "old.yaml", "new.yaml", "--objects", "boats.yaml", "-o", "json"]);
    let found: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let removed = json!({
        "crd": "boats.harbour.example.com", "version": "v1", "path": "spec.sail", "change": "property-removed",
        "breaking": true, "detail": "it is dropped from objects",
    });
    assert!(found["changes"].as_array().is_some_and(|changes| changes.contains(&removed)), "{found}");
    assert_eq!(found["objects"][0]["errors"], json!([]));
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn the_same_definition_has_no_changes() {
    let folder = folder("diff-none", &[("old.yaml", BOATS)]);
    check(&folder, &["diff", "old.yaml", "old.yaml"], 0, "no changes\n");
    assert_eq!(skiff(&folder, &["diff", "old.yaml", "absent.yaml"]).status.code(), Some(2));
}
