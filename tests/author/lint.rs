//! `skiff lint`.

use serde_json::Value;

use super::{BOATS, check, folder, skiff};

/// The ids and paths of what is found in a definition of boats with this in place of the field `rig` and of the rules.
fn found(name: &str, fields: &str, rules: &str) -> Vec<String> {
    let (head, _) = BOATS.split_once("                rig:").expect("boats have a rig");
    let crd = format!("{head}                {fields}\n              x-kubernetes-validations: [{rules}]\n");
    let folder = folder(&format!("lint-{name}"), &[("crd.yaml", &crd)]);
    let output = skiff(&folder, &["lint", "-o", "json", "crd.yaml"]);
    let found: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let found = found.as_array().expect("it is an array").iter();
    let mut found: Vec<String> = found
        .map(|finding| {
            format!("{} {}", finding["id"].as_str().unwrap_or_default(), finding["path"].as_str().unwrap_or_default())
        })
        .collect();
    found.sort();
    found
}

#[test]
fn a_finding_has_a_place_a_reason_and_a_fix() {
    let folder = folder("lint", &[("crd.yaml", BOATS)]);
    let expected = "\
crd.yaml:24:17: enum-camel-case: boats.harbour.example.com v1 spec.rig: the values ketch, sloop, none are not CamelCase
  why: API conventions, \"Constants\": enum values are CamelCase
  fix: write them as CamelCase words
1 finding
";
    check(&folder, &["lint", "crd.yaml"], 1, expected);
}

#[test]
fn an_annotation_turns_findings_off() {
    let ignored = |what: &str| {
        BOATS.replace(
            "  name: boats.h",
            &format!("  annotations: {{skiff.kubeskiff.dev/lint-ignore: '{what}'}}\n  name: boats.h"),
        )
    };
    let files = [("all.yaml", &*ignored("enum-camel-case")), ("one.yaml", &ignored("phase, enum-camel-case:spec.rig"))];
    let folder = folder("lint-ignore", &files);
    check(&folder, &["lint", "all.yaml"], 0, "0 findings\n");
    check(&folder, &["lint", "one.yaml"], 0, "0 findings\n");
}

#[test]
fn rules_that_decide_nothing_are_found_by_constants_and_required_alone() {
    let rules =
        "{rule: 1 < 2}, {rule: '1 > 2'}, {rule: has(self.length)}, {rule: self.length > 0}, {rule: has(self.crew)}";
    let found = found("constants", "sails: {type: integer}", rules);
    assert_eq!(found, ["rule-never-fails spec", "rule-never-fails spec", "rule-never-holds spec"]);
}

#[test]
fn optional_fields_are_read_with_has() {
    let fields = "sails: {type: integer}";
    let found_in = |name, rule: &str| found(name, fields, &format!("{{rule: '{rule}'}}"));
    assert_eq!(found_in("bare", "self.sails > 1"), ["optional-without-has spec"]);
    assert_eq!(found_in("has", "!has(self.sails) || self.sails > 1"), Vec::<String>::new());
    assert_eq!(found_in("optional", "self.?sails.orValue(1) > 0"), Vec::<String>::new());
    assert_eq!(found_in("default", "self.crew > 1"), Vec::<String>::new());
}

#[test]
fn the_headings_of_the_conventions() {
    let found = found(
        "conventions",
        "big: {type: integer, format: int64}\n                \
         ratio: {type: number}\n                \
         towed: {type: boolean}\n                \
         waitTimeout: {type: integer}\n                \
         ownerReference: {type: object, properties: {name: {type: string}, namespace: {type: string}}}\n                \
         berths: {type: object, additionalProperties: {type: object, properties: {a: {type: string}}}}\n                \
         names: {type: array, items: {type: string}}\n                \
         Flag_x: {type: string}",
        "",
    );
    let expected = [
        "boolean spec.towed",
        "cross-namespace-reference spec.ownerReference",
        "field-name-case spec.Flag_x",
        "float-in-spec spec.ratio",
        "int64-precision spec.big",
        "list-type-missing spec.names",
        "map-of-objects spec.berths",
        "reference-name spec.ownerReference",
        "unit-suffix spec.waitTimeout",
    ];
    assert_eq!(found, expected);
}

#[test]
fn dear_rules_have_a_remedy() {
    let fields = "names: {type: array, x-kubernetes-list-type: set, items: {type: string}}";
    let found =
        found("cost", fields, "{rule: 'has(self.names) && self.names.all(n, self.names.exists_one(m, m == n))'}");
    assert!(found.iter().any(|finding| finding.starts_with("rule-cost ")), "{found:?}");
    assert!(found.contains(&"unbounded-under-rule spec.names".to_owned()), "{found:?}");
}

#[test]
fn unreadable_input_ends_with_2() {
    let folder = folder("lint-unreadable", &[("a.yaml", "kind: A\n")]);
    assert_eq!(skiff(&folder, &["lint", "a.yaml"]).status.code(), Some(2));
}
