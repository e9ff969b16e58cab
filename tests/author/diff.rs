//! `skiff diff`.

use serde_json::{Value, json};

use super::{BOATS, check, folder, skiff};

fn changed() -> String {
    BOATS
        .replace("maximum: 30", "maximum: 20")
        .replace("[ketch, sloop, none]", "[ketch, none, yawl]")
        .replace(
            "{type: integer, minimum: 1, maximum: 99, default: 1}",
            "{type: integer, minimum: 1, maximum: 99, default: 1}\n                sail: {type: integer, default: 2}",
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
fn rules_lists_names_and_versions() {
    let old = BOATS.replace(
        "                rig:",
        "                tags: {type: array, x-kubernetes-list-type: set, items: {type: string}}\n                rig:",
    );
    let new = old
        .replace("list-type: set", "list-type: atomic")
        .replace("self.crew * 2 <= self.length", "self.crew * 2 <= self.length && self.crew < 9")
        .replace("self.length >= oldSelf.length", "self.length>=oldSelf.length")
        .replace("a boat does not shrink", "no boat shrinks")
        .replace("singular: boat", "singular: boat, shortNames: [bt]")
        .replace("default: none}", "default: sloop}")
        .replace("scope: Namespaced", "scope: Cluster")
        + &beta_of(&old);
    let folder = folder("diff-more", &[("old.yaml", &old), ("new.yaml", &new)]);
    let expected = "\
boats.harbour.example.com
  BREAKING spec.scope: scope-changed: `Namespaced` became `Cluster`
  safe     spec.names.shortNames: short-name-added: `bt` is new
boats.harbour.example.com v1
  safe     spec: rule-message-changed: `self.length >= oldSelf.length` tells its failures differently
  BREAKING spec: rule-tightened: `self.crew * 2 <= self.length` became `self.crew * 2 <= self.length && self.crew < 9`; values that an update leaves alone are forgiven
  BREAKING spec.rig: default-changed: \"none\" became \"sloop\"
  BREAKING spec.tags: list-type-changed: set became atomic
boats.harbour.example.com v1beta1
  safe     spec.versions: version-added: a new version
boats.harbour.example.com v1beta1 to v1
  safe     spec.length: bound-loosened: maximum 9 became 30
";
    check(&folder, &["diff", "old.yaml", "new.yaml"], 1, expected);
}

/// The version of boats as one more of another name, in which boats are shorter and all else is as in the new definition.
fn beta_of(crd: &str) -> String {
    let (_, version) = crd.split_once("    - name: v1\n").expect("there is a version");
    let beta = version
        .replace("storage: true", "storage: false")
        .replace("maximum: 30", "maximum: 9")
        .replace("list-type: set", "list-type: atomic")
        .replace("self.crew * 2 <= self.length", "self.crew * 2 <= self.length && self.crew < 9")
        .replace("a boat does not shrink", "no boat shrinks")
        .replace("default: none}", "default: sloop}");
    format!("    - name: v1beta1\n{beta}")
}

#[test]
fn a_status_is_replayed_too() {
    let status = "\n      subresources: {status: {}}\n      schema:\n        openAPIV3Schema:\n          type: object\n          \
                  required: [spec]\n          properties:\n            status: {type: object, properties: {\
                  berth: {type: integer, maximum: 9}}}\n";
    let (head, tail) = BOATS.split_once("\n      schema:").expect("there is a schema");
    let (_, tail) = tail.split_once("properties:\n").expect("there are properties");
    let old = format!("{head}{status}{tail}");
    let boat =
        "apiVersion: harbour.example.com/v1\nkind: Boat\nmetadata: {name: a}\nspec: {length: 7}\nstatus: {berth: 5}\n";
    let files = [("old.yaml", &*old), ("new.yaml", &old.replace("maximum: 9}", "maximum: 4}")), ("boat.yaml", boat)];
    let folder = folder("diff-status", &files);
    let expected = "\
boats.harbour.example.com v1
  BREAKING status.berth: bound-tightened: maximum 9 became 4
boat.yaml: Boat a
  is kept only while left alone: status.berth: Invalid value: 5: berth in body should be less than or equal to 4
1 object replayed: 1 refused
";
    check(&folder, &["diff", "old.yaml", "new.yaml", "--objects", "boat.yaml"], 1, expected);
}

#[test]
fn the_same_definition_has_no_changes() {
    let folder = folder("diff-none", &[("old.yaml", BOATS)]);
    check(&folder, &["diff", "old.yaml", "old.yaml"], 0, "no changes\n");
    assert_eq!(skiff(&folder, &["diff", "old.yaml", "absent.yaml"]).status.code(), Some(2));
}
