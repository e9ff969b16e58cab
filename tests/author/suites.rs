//! `skiff test`.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::{BOATS, check, folder, skiff, text};

/// A suite in which all is as expected.
pub const SUITE: &str = "\
crds: [crd.yaml]
base:
  apiVersion: harbour.example.com/v1
  kind: Boat
  metadata: {name: daisy}
  spec: {length: 7}
cases:
- name: a boat has defaults
  expect:
    object: {spec: {crew: 1, rig: none}}
    costAtMost: 10
- name: lengths
  table:
  - name: too long
    patch: [{op: replace, path: /spec/length, value: 31}]
    expect: {errors: [{field: spec.length, type: FieldValueInvalid, contains: less than or equal to 30}]}
  - name: as long as can be
    patch: [{op: replace, path: /spec/length, value: 30}]
- name: a boat does not shrink
  oldPatch: [{op: replace, path: /spec/length, value: 8}]
  expect: {errors: [{field: spec, message: a boat does not shrink}]}
- name: a crowded boat may stay
  patch: [{op: add, path: /spec/crew, value: 5}]
  oldPatch: [{op: add, path: /spec/crew, value: 5}]
  expect: {ratcheted: [a boat has 2 m]}
";

#[test]
fn what_is_as_expected_passes_and_the_gaps_are_told() {
    let suite = SUITE.split("- name: a boat does not").next().expect("there is a part before");
    let folder = folder("test-pass", &[("crd.yaml", BOATS), ("a.suite.yaml", suite)]);
    let expected = "\
./a.suite.yaml
  ok   a boat has defaults
  ok   lengths/too long
  ok   lengths/as long as can be
boats.harbour.example.com: 0 of 2 rules have held and failed (0%)
3 cases: 3 passed, 0 failed
";
    check(&folder, &["test", "."], 0, expected);
    let gaps = "\
boats.harbour.example.com: 0 of 2 rules have held and failed (0%)
  spec: self.crew * 2 <= self.length
    never failed
    `self.crew * 2 <= self.length` was never false
  spec: self.length >= oldSelf.length
    never evaluated
3 cases: 3 passed, 0 failed
";
    assert!(text(&skiff(&folder, &["test", "--coverage", "."]).stdout).ends_with(gaps));
    let output = skiff(&folder, &["test", "--min-coverage", "50", "."]);
    assert_eq!(output.status.code(), Some(1));
    let line = "FAIL boats.harbour.example.com: 0 of 2 rules are covered, less than 50%\n";
    assert!(text(&output.stdout).contains(line), "{output:?}");
}

#[test]
fn failures_stand_at_the_end_with_their_places() {
    let suite = SUITE.replace("rig: none}", "rig: sloop}");
    let folder = folder("test-last", &[("crd.yaml", BOATS), ("a.suite.yaml", &suite)]);
    let output = text(&skiff(&folder, &["test", "a.suite.yaml"]).stdout);
    let end = "\
FAIL a.suite.yaml:8:3: a boat has defaults
     spec.rig is \"none\", not \"sloop\"
5 cases: 4 passed, 1 failed
";
    assert!(output.ends_with(end), "{output}");
    let output = text(&skiff(&folder, &["test", "-o", "github", "a.suite.yaml"]).stdout);
    let line = "::error file=a.suite.yaml,line=8,col=3,title=failed::a boat has defaults: spec.rig is \"none\", not \"sloop\"\n";
    assert_eq!(output, line);
}

#[test]
fn what_schemas_forgive_is_ratcheted_too() {
    let suite = SUITE.replace("path: /spec/crew, value: 5", "path: /spec/anchor, value: 9");
    let crd = BOATS
        .replace("                crew:", "                anchor: {type: integer, maximum: 3}\n                crew:");
    let suite = suite.replace("a boat has 2 m", "should be less than or equal to 3");
    let folder = folder("test-ratcheted", &[("crd.yaml", &crd), ("a.suite.yaml", &suite)]);
    let output = skiff(&folder, &["test", "-o", "json", "a.suite.yaml"]);
    let found: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let case = &found["suites"][0]["cases"][4];
    assert_eq!(case["passed"], json!(true), "{case}");
    let kept = "spec.anchor: Invalid value: 9: spec.anchor in body should be less than or equal to 3";
    assert_eq!(case["ratcheted"], json!([kept]));
}

#[test]
fn the_json_has_cases_and_coverage() {
    let folder = folder("test-json", &[("crd.yaml", BOATS), ("a.suite.yaml", SUITE)]);
    let output = skiff(&folder, &["test", "-o", "json", "a.suite.yaml"]);
    let found: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!(output.status.code(), Some(0), "{found}");
    let case = json!({"name": "lengths/too long", "passed": true, "failures": [], "ratcheted": []});
    assert_eq!(found["suites"][0]["cases"][1], case);
    let shrinking = &found["coverage"][0]["rules"][1];
    assert_eq!((&shrinking["held"], &shrinking["failed"]), (&json!(1), &json!(1)));
}

#[test]
fn what_is_not_as_expected_fails() {
    let suite = SUITE.replace("spec.length,", "spec.width,").replace("rig: none}", "rig: sloop}");
    let folder = folder("test-fail", &[("crd.yaml", BOATS), ("a.suite.yaml", &suite)]);
    let output = skiff(&folder, &["test", "a.suite.yaml", "-o", "junit"]);
    let printed = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1));
    assert!(printed.contains(r#"tests="5""#) && printed.contains(r#"failures="2""#), "{printed}");
    assert!(printed.contains(r#"<testcase name="lengths/too long" classname="a.suite.yaml" time=""#), "{printed}");
    assert!(printed.contains("spec.rig is &quot;none&quot;, not &quot;sloop&quot;"), "{printed}");
    assert!(printed.contains("not expected: spec.length: Invalid value: 31"), "{printed}");
}

#[test]
fn snapshots_are_taken_and_compared() {
    let suite = SUITE.replace("ratcheted: [a boat has 2 m]", "snapshot: true");
    let folder = folder("test-snapshot", &[("crd.yaml", BOATS), ("a.suite.yaml", &suite)]);
    let snapshot = folder.join("a.suite.snap");
    _ = fs::remove_file(&snapshot);
    assert_eq!(skiff(&folder, &["test", "a.suite.yaml"]).status.code(), Some(1));
    assert_eq!(skiff(&folder, &["test", "a.suite.yaml", "--update"]).status.code(), Some(0));
    assert_eq!(skiff(&folder, &["test", "a.suite.yaml"]).status.code(), Some(0));
    let changed = fs::read_to_string(&snapshot).expect("it was written").replace("length: 7", "length: 8");
    fs::write(&snapshot, changed).expect("the folder is writable");
    let output = skiff(&folder, &["test", "a.suite.yaml"]);
    assert!(text(&output.stdout).contains("not as in the snapshot"), "{output:?}");
    // A case that fails otherwise keeps the snapshot that it has.
    let before = fs::read_to_string(&snapshot).expect("it is there");
    fs::write(folder.join("a.suite.yaml"), suite.replace("snapshot: true", "snapshot: true, valid: false"))
        .expect("the folder is writable");
    assert_eq!(skiff(&folder, &["test", "a.suite.yaml", "--update"]).status.code(), Some(1));
    assert_eq!(fs::read_to_string(&snapshot).expect("it is there"), before);
}

#[test]
fn with_watch_suites_run_again_when_a_file_changes() {
    let folder = folder("test-watch", &[("crd.yaml", BOATS), ("a.suite.yaml", SUITE)]);
    let stricter = BOATS.replace("minimum: 2, maximum: 30", "minimum: 2, multipleOf: 1, maximum: 29");
    let verdicts = watched(&folder, &folder.join("crd.yaml"), &stricter);
    assert_eq!(verdicts, ["5 cases: 5 passed, 0 failed", "5 cases: 3 passed, 2 failed"]);
}

#[test]
fn with_watch_definitions_that_lie_elsewhere_count_too() {
    let suite = SUITE.replace("crds: [crd.yaml]", "crds: [../watch-elsewhere-crds/crd.yaml]");
    let folder = folder("watch-elsewhere", &[("a.suite.yaml", &suite)]);
    let crds = super::folder("watch-elsewhere-crds", &[("crd.yaml", BOATS)]);
    let looser = BOATS.replace("minimum: 2, maximum: 30", "minimum: 2, maximum: 290");
    let verdicts = watched(&folder, &crds.join("crd.yaml"), &looser);
    assert_eq!(verdicts, ["5 cases: 5 passed, 0 failed", "5 cases: 4 passed, 1 failed"]);
}

/// What a watched suite comes to before and after a definition is replaced by a text.
fn watched(folder: &Path, definition: &Path, text: &str) -> [String; 2] {
    let mut command = Command::new(env!("CARGO_BIN_EXE_skiff"));
    command.current_dir(folder).args(["test", "--watch", "a.suite.yaml"]).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("the binary is there");
    let mut lines = BufReader::new(child.stdout.take().expect("it is a pipe")).lines();
    let mut verdict =
        || lines.by_ref().map_while(Result::ok).find(|line| line.contains(" passed, ")).unwrap_or_default();
    let before = verdict();
    // As editors do, so that nobody reads half of it.
    let beside = definition.with_extension("yaml.new");
    fs::write(&beside, text).expect("writable");
    fs::rename(&beside, definition).expect("it is one file system");
    let after = verdict();
    child.kill().expect("it runs");
    child.wait().expect("it is our child");
    [before, after]
}

#[test]
fn snapshots_of_a_suite_that_cannot_be_run_are_kept() {
    let folder = folder("kept-snapshots", &[("a.suite.yaml", "crds: [gone.yaml]\ncases: [{name: a, object: {}}]\n")]);
    let snapshots = folder.join("a.suite.snap");
    fs::write(&snapshots, "a: {}\n").expect("writable");
    assert_eq!(skiff(&folder, &["test", "a.suite.yaml", "--update"]).status.code(), Some(2));
    assert_eq!(fs::read_to_string(&snapshots).expect("it is there"), "a: {}\n");

    // A file that can't be read is not one that is not there.
    fs::remove_file(&snapshots).expect("it is there");
    fs::create_dir(&snapshots).expect("the folder is writable");
    let output = skiff(&folder, &["test", "a.suite.yaml"]);
    assert!(text(&output.stdout).contains("a.suite.snap: it can't be read: "), "{output:?}");
    fs::remove_dir(&snapshots).expect("it is there");

    // Neither hides the other.
    fs::write(&snapshots, "a: [").expect("writable");
    fs::write(folder.join("a.suite.yaml"), "cases: [").expect("writable");
    let output = skiff(&folder, &["test", "a.suite.yaml"]);
    assert_eq!(text(&output.stdout).matches("UNREADABLE").count(), 2, "{output:?}");
}

#[test]
fn the_examples_are_suites() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = skiff(root, &["test", "crd-examples"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
    assert!(text(&output.stdout).contains("  ok   invalid/unknown-field\n"));
}

#[test]
fn a_faulty_suite_ends_with_2() {
    let files = [("crd.yaml", BOATS), ("a.suite.yaml", "crd: a\ncases: [{name: a}]"), ("b.suite.yaml", "a: [")];
    let folder = folder("test-faulty", &files);
    for suite in ["a.suite.yaml", "b.suite.yaml", "absent.yaml"] {
        let output = skiff(&folder, &["test", suite]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
    }
    fs::write(folder.join("c.suite.yaml"), SUITE).expect("the folder is writable");
    let output = skiff(&folder, &["test", "a.suite.yaml", "b.suite.yaml", "c.suite.yaml"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let printed = text(&output.stdout);
    assert!(printed.contains("UNREADABLE a.suite.yaml:1:6: unknown field \"crd\""), "{printed}");
    assert!(printed.ends_with("5 cases: 5 passed, 0 failed, 2 unreadable\n"), "{printed}");
}

#[test]
fn a_broken_case_hides_no_other() {
    let suite = SUITE.replace("{op: add, path: /spec/crew, value: 5}", "{op: remove, path: /spec/mast}");
    let folder = folder("test-broken", &[("crd.yaml", BOATS), ("a.suite.yaml", &suite)]);
    let output = skiff(&folder, &["test", "a.suite.yaml"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(text(&output.stdout).ends_with("5 cases: 4 passed, 1 failed\n"), "{output:?}");
    let typed = SUITE.replacen("  - name:", "  - name: typed wrong\n    objekt: {}\n  - name:", 1);
    fs::write(folder.join("a.suite.yaml"), typed).expect("the folder is writable");
    let output = skiff(&folder, &["test", "a.suite.yaml"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let printed = text(&output.stdout);
    assert!(
        printed.contains("  FAIL lengths/typed wrong\n")
            && printed.contains("unknown field \"cases[1].table[0].objekt\""),
        "{printed}"
    );
    assert!(printed.ends_with("6 cases: 5 passed, 1 failed\n"), "{printed}");
}
