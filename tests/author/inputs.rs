//! What commands make of inputs that can't be read, and of those that have nothing: one bad input hides nothing, and nothing
//! passes unseen.

use std::fs;

use super::suites::SUITE;
use super::{BOATS, folder, skiff, text};

const BOAT: &str = "\
apiVersion: harbour.example.com/v1
kind: Boat
metadata: {name: daisy}
spec: {length: 7}
";
const BROKEN: &str = "spec: {a: [";

#[test]
fn a_broken_file_hides_no_other() {
    let files = [("crds.yaml", BOATS), ("broken.yaml", BROKEN), ("boat.yaml", BOAT)];
    let folder = folder("inputs-broken", &files);
    fs::create_dir_all(folder.join("crds")).expect("the folder is writable");
    for (name, content) in [("a.yaml", BROKEN), ("b.yaml", BOATS)] {
        fs::write(folder.join("crds").join(name), content).expect("the folder is writable");
    }
    let run = |arguments: &[&str], stdout: &str, stderr: &str| {
        let output = skiff(&folder, arguments);
        assert!(text(&output.stdout).contains(stdout), "{arguments:?}: {output:?}");
        assert!(text(&output.stderr).contains(stderr), "{arguments:?}: {output:?}");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    };
    run(&["infer", "broken.yaml", "boat.yaml"], "kind: CustomResourceDefinition", "`broken.yaml` ");
    run(&["docs", "crds"], "# Boat", "a.yaml` ");
    run(&["explain", "crds", "Boat.spec.length"], "Boat spec.length ", "a.yaml` ");
    run(&["eval", "--crd", "crds", "--object", "boat.yaml", "self.spec.length"], "7\n", "a.yaml` ");
    fs::write(folder.join("both.yaml"), format!("{BOAT}---\n{BROKEN}")).expect("the folder is writable");
    run(&["eval", "--crd", "crds.yaml", "--object", "both.yaml", "self.spec.length"], "7\n", "`both.yaml` ");
}

#[test]
fn a_broken_example_hides_no_other() {
    let folder = folder("inputs-examples", &[("crd.yaml", BOATS)]);
    fs::create_dir_all(folder.join("valid")).expect("the folder is writable");
    for (name, content) in [("a.yaml", BROKEN), ("b.yaml", BOAT)] {
        fs::write(folder.join("valid").join(name), content).expect("the folder is writable");
    }
    let output = skiff(&folder, &["test", "."]);
    let printed = text(&output.stdout);
    assert!(printed.contains("  ok   valid/b\n") && printed.contains("UNREADABLE ./valid/a.yaml"), "{printed}");
    assert!(printed.ends_with("1 case: 1 passed, 0 failed, 1 unreadable\n"), "{printed}");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn every_document_of_a_suite_is_run() {
    let second = SUITE.replace("value: 31", "value: 29").replace("- name: ", "- name: second ");
    let text_of_both = format!("{SUITE}---\n{second}---\ncases: [\n");
    let folder = folder("inputs-documents", &[("crd.yaml", BOATS), ("a.suite.yaml", &text_of_both)]);
    let output = skiff(&folder, &["test", "a.suite.yaml"]);
    let printed = text(&output.stdout);
    assert!(printed.ends_with("10 cases: 9 passed, 1 failed, 1 unreadable\n"), "{printed}");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_suite_without_a_case_is_a_fault() {
    let folder = folder("inputs-no-case", &[("crd.yaml", BOATS), ("a.suite.yaml", "crds: [crd.yaml]\ncases: []\n")]);
    let output = skiff(&folder, &["test", "a.suite.yaml"]);
    assert!(text(&output.stdout).contains("UNREADABLE a.suite.yaml:2:1: cases"), "{output:?}");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn several_minors_see_a_folder_without_manifests() {
    let folder = folder("inputs-empty", &[("crd.yaml", BOATS), ("boat.yaml", BOAT)]);
    fs::create_dir_all(folder.join("empty")).expect("the folder is writable");
    for files in [&["boat.yaml", "empty"][..], &["empty"]] {
        let output =
            skiff(&folder, &[&["validate", "--kubernetes-version", "1.36,1.37", "-f", "crd.yaml"], files].concat());
        assert!(text(&output.stderr).contains("there is nothing to check in `empty`"), "{output:?}");
        assert_eq!(output.status.code(), Some(1), "{files:?}");
    }
}

#[test]
fn what_is_wrong_with_a_definition_has_a_place() {
    let broken = BOATS.replace("rule: self.crew * 2 <= self.length", "rule: self.crew * 2 <=");
    let folder = folder("inputs-places", &[("old.yaml", BOATS), ("new.yaml", &broken)]);
    let line = 1 + broken.lines().position(|line| line.contains("self.crew * 2 <=")).expect("the rule is there");
    let told = text(&skiff(&folder, &["cost", "new.yaml"]).stderr);
    assert!(told.starts_with(&format!("new.yaml:{line}: boats.harbour.example.com: ")), "{told}");
    let told = text(&skiff(&folder, &["diff", "old.yaml", "new.yaml"]).stdout);
    assert!(told.contains(&format!("            at new.yaml:{line}:")), "{told}");
}

#[test]
fn examples_of_a_reference_need_not_say_that_they_are_valid() {
    let folder = folder("inputs-reference", &[("crd.yaml", BOATS), ("a.suite.yaml", SUITE)]);
    let printed = text(&skiff(&folder, &["docs", "crd.yaml", "--suites", "a.suite.yaml"]).stdout);
    let has = |name: &str| printed.contains(&format!("Example: {name}\n"));
    assert!(has("a boat has defaults") && !has("a boat does not shrink"), "{printed}");
}

#[test]
fn a_definition_without_a_kind_defines_no_document_without_one() {
    let patch = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a}\n";
    let folder = folder("inputs-no-kind", &[("crd.yaml", patch), ("alerts.yaml", "groups: []\n")]);
    let said = text(&skiff(&folder, &["validate", "crd.yaml", "alerts.yaml"]).stdout);
    assert!(said.contains("error: document: not checked: it has no kind\n --> alerts.yaml:1:1\n"), "{said}");
    assert!(said.ends_with("2 documents: 0 valid, 1 invalid, 1 not checked\n"), "{said}");
}
