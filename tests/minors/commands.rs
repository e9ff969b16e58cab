//! The commands, for minors that differ.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

pub const WIDGETS: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {plural: widgets, kind: Widget}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    selectableFields: [{jsonPath: .spec.address}]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              address: {type: string, maxLength: 1000}
              name: {type: string, format: k8s-short-name}
            x-kubernetes-validations:
            - rule: isIP(self.address)
"#;

const SUITE: &str = "
crds: [crd.yaml]
cases:
- name: an address
  object: {apiVersion: example.com/v1, kind: Widget, metadata: {name: a, namespace: d}, spec: {address: 10.0.0.1}}
";

/// A folder for one test, with the definition of widgets.
pub fn folder(test: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(test);
    fs::create_dir_all(&folder).expect("the folder for tests is writable");
    fs::write(folder.join("crd.yaml"), WIDGETS).expect("the folder for tests is writable");
    folder
}

/// Runs `skiff` in a folder.
pub fn skiff(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_skiff"));
    command.current_dir(folder).args(arguments).output().expect("the binary was built with the tests")
}

/// What `skiff` prints, and its exit code.
fn told(folder: &Path, arguments: &[&str]) -> (String, Option<i32>) {
    let output = skiff(folder, arguments);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{arguments:?}");
    (String::from_utf8_lossy(&output.stdout).into_owned(), output.status.code())
}

#[test]
fn one_minor_is_answered_for_as_the_newest_is() {
    let folder = folder("minors-one");
    let (text, code) = told(&folder, &["validate", "--kubernetes-version", "1.30", "crd.yaml"]);
    assert!(text.contains("undeclared reference to 'isIP'"), "{text}");
    assert_eq!(code, Some(1));
    assert_eq!(told(&folder, &["validate", "--kubernetes-version", "1.35", "crd.yaml"]).1, Some(0));
    assert_eq!(told(&folder, &["validate", "--kubernetes-version", "v1.37.2", "crd.yaml"]).1, Some(0));
}

#[test]
fn a_list_of_minors_is_one_table() {
    let folder = folder("minors-table");
    let (text, code) = told(&folder, &["validate", "--kubernetes-version", "1.29-1.37", "crd.yaml"]);
    let crd = "crd.yaml: CustomResourceDefinition widgets.example.com";
    for (minors, line) in [
        ("from 1.31", format!("{crd}: valid")),
        ("until 1.30", format!("{crd}: INVALID")),
        ("1.29", format!("{crd}: unknown field \"spec.versions[0].selectableFields\"")),
        ("1.34", format!("{crd}: warning: unrecognized format \"k8s-short-name\"")),
    ] {
        let is_it =
            |told: &str| told.split_once("  ").is_some_and(|(cell, rest)| cell == minors && rest.trim() == line);
        assert!(text.lines().any(is_it), "{minors} {line}: {text}");
    }
    assert!(text.ends_with("fine from 1.31 on\n"), "{text}");
    assert_eq!(code, Some(1));
    let (json, _) = told(&folder, &["validate", "--kubernetes-version", "1.30,1.31", "-o", "json", "crd.yaml"]);
    let json: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
    assert_eq!(json["fineFrom"], "1.31");
    assert_eq!(json["minors"][0], serde_json::json!({"minor": "1.30", "fine": false}));
}

#[test]
fn fields_of_built_in_kinds_are_those_of_the_minor() {
    let folder = folder("minors-fields");
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {hostnameOverride: x, containers: [{name: c, image: i}]}\n";
    fs::write(folder.join("pod.yaml"), pod).expect("the folder is writable");
    let (text, code) = told(&folder, &["validate", "--kubernetes-version", "1.33-1.35", "pod.yaml"]);
    let is_told = |cell: &str, what: &str| text.lines().any(|line| line.starts_with(cell) && line.contains(what));
    assert!(is_told("1.33 ", "unknown field \"spec.hostnameOverride\""), "{text}");
    assert!(is_told("from 1.34", "Pod a: valid") && text.ends_with("fine from 1.34 on\n"), "{text}");
    assert_eq!(code, Some(1));
}

#[test]
fn the_price_of_a_rule_is_that_of_the_minor() {
    let folder = folder("minors-cost");
    let of_quantities = WIDGETS.replace("isIP(", "isQuantity(");
    fs::write(folder.join("quantities.yaml"), of_quantities).expect("the folder is writable");
    let (text, _) = told(&folder, &["cost", "--kubernetes-version", "1.29..1.31", "quantities.yaml"]);
    let prices: Vec<&str> = text.lines().filter(|line| line.contains("widgets.example.com v1: ")).collect();
    assert_eq!(prices.len(), 2, "{text}");
    assert!(prices.iter().any(|line| line.starts_with("1.29 ") && line.contains(" v1: 3 (")), "{text}");
    assert!(prices.iter().any(|line| line.starts_with("from 1.30 ") && line.contains(" v1: 402 (")), "{text}");
}

#[test]
fn a_rule_that_is_refused_has_no_price() {
    let folder = folder("minors-unpriced");
    let output = skiff(&folder, &["cost", "--kubernetes-version", "1.30", "crd.yaml"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.starts_with("widgets.example.com v1: can't be priced for 1 rule\n"), "{text}");
    let output = skiff(&folder, &["cost", "--kubernetes-version", "1.30", "-o", "json", "crd.yaml"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert!(json[0]["total"].is_null() && json[0]["rules"][0]["estimatedCost"].is_null(), "{json}");
    let (text, code) = told(&folder, &["cost", "--kubernetes-version", "1.30,1.31", "crd.yaml"]);
    let is_told = |cell: &str, what: &str| text.lines().any(|line| line.starts_with(cell) && line.ends_with(what));
    assert!(is_told("1.30 ", "widgets.example.com v1: can't be priced"), "{text}");
    assert!(is_told("1.31 ", "widgets.example.com v1: 402 (less than 0.1% of 100,000,000)"), "{text}");
    assert_eq!(code, Some(1));
}

#[test]
fn expressions_of_policies_are_priced_as_the_minor_knows_them() {
    let folder = folder("minors-policy-prices");
    fs::write(folder.join("guarded.yaml"), GUARDED).expect("the folder is writable");
    let (text, code) = told(&folder, &["cost", "--kubernetes-version", "1.29,1.30", "guarded.yaml"]);
    let policy = "ValidatingAdmissionPolicy addresses";
    assert!(text.contains(&format!("{policy}: spec.validations[0].expression: can't be priced")), "{text}");
    assert!(text.contains(&format!("{policy}: validations with their messages ")), "{text}");
    assert_eq!(code, Some(0), "{text}");
}

#[test]
fn a_lint_names_what_older_clusters_refuse_and_ignore() {
    let folder = folder("minors-lint");
    let (text, code) = told(
        &folder,
        &["lint", "--min-kubernetes-version", "1.30", "--only", "older-refuses,older-ignores", "crd.yaml"],
    );
    assert_eq!(code, Some(1));
    for expected in [
        "error older-refuses: widgets.example.com: refused in Kubernetes 1.30: ",
        "fix: do without `isIP`, which new expressions may use since 1.31\n",
        "`spec.versions[0].selectableFields` is dropped unless the feature gate CustomResourceFieldSelectors is open",
        "ignored in Kubernetes 1.30 to 1.34: the format `k8s-short-name` is not checked",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let (text, code) = told(
        &folder,
        &["lint", "--min-kubernetes-version", "1.35", "--only", "older-refuses,older-ignores", "crd.yaml"],
    );
    assert_eq!(code, Some(0), "{text}");
}

const GUARDED: &str = "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: addresses}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  validations: [{expression: isIP(object.metadata.name)}]
---
apiVersion: v1
kind: Pod
metadata: {name: a, namespace: b}
spec: {hostnameOverride: x, containers: [{name: c, image: i}]}
";

#[test]
fn a_lint_names_what_older_clusters_do_to_policies_and_objects() {
    let folder = folder("minors-lint-objects");
    fs::write(folder.join("guarded.yaml"), GUARDED).expect("the folder is writable");
    let lint = |minor| {
        let only = ["--only", "older-refuses,older-ignores"];
        told(&folder, &[&["lint", "--min-kubernetes-version", minor], &only[..], &["guarded.yaml"]].concat())
    };
    let (text, code) = lint("1.29");
    for expected in [
        "error older-refuses: addresses: refused in Kubernetes 1.29: ValidatingAdmissionPolicy is not served in \
         admissionregistration.k8s.io/v1",
        "error older-refuses: addresses: refused in Kubernetes 1.30: spec.validations[0].expression: compilation failed",
        "warning older-ignores: a: ignored in Kubernetes 1.29 to 1.33: the field `spec.hostnameOverride` is not known",
        "ignored in Kubernetes 1.34: `spec.hostnameOverride` is dropped unless its feature gate is open",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert_eq!((code, lint("1.35").1), (Some(1), Some(0)));
}

#[test]
fn kinds_that_a_minor_does_not_serve_are_not_valid_there() {
    let folder = folder("minors-validate-policies");
    let device = "---\napiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: a}\nspec: {}\n";
    fs::write(folder.join("guarded.yaml"), format!("{GUARDED}{device}")).expect("the folder is writable");
    let (text, code) = told(&folder, &["validate", "--kubernetes-version", "1.29-1.34", "guarded.yaml"]);
    let is_told = |cell: &str, what: &str| text.lines().any(|line| line.starts_with(cell) && line.contains(what));
    let policy = "ValidatingAdmissionPolicy is served in admissionregistration.k8s.io/v1 from Kubernetes 1.30 on";
    assert!(is_told("1.29 ", policy), "{text}");
    assert!(is_told("until 1.33 ", "DeviceClass is served in resource.k8s.io/v1 from Kubernetes 1.34 on"), "{text}");
    assert!(is_told("1.34 ", "DeviceClass a: valid") && text.ends_with("fine from 1.34 on\n"), "{text}");
    assert_eq!(code, Some(1));
}

#[test]
fn fields_of_built_in_kinds_are_explained_as_each_minor_has_them() {
    let folder = folder("minors-explain-built-in");
    let (text, code) = told(&folder, &["explain", "--kubernetes-version", "1.33-1.35", "pods.spec.hostnameOverride"]);
    assert!(text.contains("from 1.34   Pod spec.hostnameOverride (v1): string"), "{text}");
    assert!(text.contains("1.33        Pod has no field `hostnameOverride` in `spec.hostnameOverride`"), "{text}");
    assert!(text.ends_with("fine from 1.34 on\n") && code == Some(1), "{text}");
    let (text, code) = told(&folder, &["explain", "--kubernetes-version", "1.33,1.34", "deviceclasses"]);
    assert!(text.contains("1.33        DeviceClass is served in resource.k8s.io/v1 from Kubernetes 1.34 on"), "{text}");
    assert!(text.contains("1.34        DeviceClass (resource.k8s.io/v1): object") && code == Some(1), "{text}");
    let (text, code) = told(&folder, &["explain", "hpa.spec.metrics"]);
    assert!(text.starts_with("HorizontalPodAutoscaler spec.metrics (autoscaling/v2): []object\n"), "{text}");
    assert_eq!(code, Some(0));
    let other = ["explain", "hpa.spec.targetCPUUtilizationPercentage", "--api-version", "autoscaling/v1"];
    assert_eq!(told(&folder, &other).1, Some(0));
}

#[test]
fn policies_are_linted_as_the_minor_takes_them() {
    let folder = folder("minors-lint-policies");
    fs::write(folder.join("guarded.yaml"), GUARDED).expect("the folder is writable");
    let (text, code) =
        told(&folder, &["lint", "--kubernetes-version", "1.29-1.31", "--only", "policy-refused", "guarded.yaml"]);
    let is_told = |cell: &str, what: &str| text.lines().any(|line| line.starts_with(cell) && line.contains(what));
    assert!(is_told("1.29 ", "there is no ValidatingAdmissionPolicy in admissionregistration.k8s.io/v1"), "{text}");
    assert!(is_told("1.30 ", "undeclared reference to 'isIP'") && text.ends_with("fine from 1.31 on\n"), "{text}");
    assert_eq!(code, Some(1));
}

#[test]
fn other_commands_take_minors_too() {
    let folder = folder("minors-others");
    let (text, _) = told(&folder, &["explain", "--kubernetes-version", "1.30,1.31", "crd.yaml", "spec"]);
    assert!(text.contains("refused: ") && text.ends_with("fine from 1.31 on\n"), "{text}");
    let (text, _) = told(&folder, &["diff", "--kubernetes-version", "1.30,1.31", "crd.yaml", "crd.yaml"]);
    assert!(text.starts_with("KUBERNETES"), "{text}");
    fs::write(folder.join("a.suite.yaml"), SUITE).expect("the folder is writable");
    let (text, code) = told(&folder, &["test", "--kubernetes-version", "1.30,1.31", "a.suite.yaml"]);
    assert!(text.contains("isIP") && text.ends_with("fine from 1.31 on\n"), "{text}");
    assert_eq!(code, Some(2));
}

#[test]
fn what_is_not_a_minor_is_refused() {
    let folder = folder("minors-wrong");
    for wrong in ["1.28", "1.38", "1.31-1.30", "newest"] {
        let output = skiff(&folder, &["validate", "--kubernetes-version", wrong, "crd.yaml"]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
    }
    let output = skiff(&folder, &["serve", "--emulated-version", "wardle=1.31"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("component not registered: wardle"), "{output:?}");
}
