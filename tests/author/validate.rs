//! `skiff validate`.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::{BOATS, check, folder, skiff, text};

const MANIFESTS: &str = "\
apiVersion: harbour.example.com/v1
kind: Boat
metadata: {name: daisy}
spec:
  length: 7
---
apiVersion: harbour.example.com/v1
kind: Boat
metadata: {name: crowded}
spec:
  length: 7
  crew: 5
  colour: red # unknown
  length: 8
---
apiVersion: harbour.example.com/v1
kind: Boat
metadata: {name: titanic}
spec: {length: 269, rig: \"steam\"}
---
apiVersion: harbour.example.org/v1
kind: Crane
metadata: {name: tower}
---
apiVersion: v1
kind: Namespace
metadata: {name: Harbour}
";

const NAME: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start \
                    and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
                    '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

#[test]
fn errors_stand_under_the_lines_that_cause_them_with_the_rule_beside() {
    let folder = folder("validate-text", &[("crd.yaml", BOATS), ("boats.yaml", MANIFESTS)]);
    let expected = format!(
        r#"error: Boat crowded: line 14: key "length" already set in map
  --> boats.yaml:14:3
   |
14 |   length: 8
   |   ^^^^^^

error: Boat crowded: unknown field "spec.colour"
  --> boats.yaml:13:3
   |
13 |   colour: red # unknown
   |   ^^^^^^

error: Boat crowded: spec: Invalid value: a boat has 2 m for each of its crew
  --> boats.yaml:10:1
   |
10 | spec:
   | ^^^^ rule: self.crew * 2 <= self.length
   |
   = self.crew * 2 is 10
   = self.crew is 5
   = self.length is 8

error: Boat titanic: spec.length: Invalid value: 269: spec.length in body should be less than or equal to 30
  --> boats.yaml:19:16
   |
19 | spec: {{length: 269, rig: "steam"}}
   |                ^^^

error: Boat titanic: spec.rig: Unsupported value: "steam": supported values: "ketch", "sloop", "none"
  --> boats.yaml:19:26
   |
19 | spec: {{length: 269, rig: "steam"}}
   |                          ^^^^^^^

error: Boat titanic: <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation
  --> boats.yaml:16:1
   |
16 | apiVersion: harbour.example.com/v1
   | ^^^^^^^^^^

error: Crane tower: not checked: there is no definition of Crane in harbour.example.org/v1
  --> boats.yaml:22:7
   |
22 | kind: Crane
   |       ^^^^^

error: Namespace Harbour: metadata.name: Invalid value: "Harbour": {NAME}
  --> boats.yaml:27:18
   |
27 | metadata: {{name: Harbour}}
   |                  ^^^^^^^

5 documents: 1 valid, 3 invalid, 1 not checked
"#
    );
    check(&folder, &["validate", "-f", "crd.yaml", "boats.yaml"], 1, &expected);
}

#[test]
fn an_error_in_a_very_long_line_is_told_by_its_place() {
    let told = |note: &str| {
        let object =
            format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: c}}, data: {{a: 1}}, note: {note}}}\n");
        let folder = folder("validate-long", &[("c.yaml", &object)]);
        text(&skiff(&folder, &["validate", "c.yaml"]).stdout).to_owned()
    };
    let short = told("x");
    assert!(short.contains("--> c.yaml:1:"), "{short}");
    let long = told(&"x".repeat(70_000));
    assert!(long.contains("note: in c.yaml:1:") && !long.contains("xxx"), "{long}");
}

#[test]
fn the_json_has_an_item_for_each_document() {
    let folder = folder("validate-json", &[("crd.yaml", BOATS), ("boats.yaml", MANIFESTS)]);
    let output = skiff(&folder, &["validate", "-f", "crd.yaml", "-o", "json", "boats.yaml"]);
    let items: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let daisy = json!({
        "file": "boats.yaml", "index": 0, "apiVersion": "harbour.example.com/v1", "kind": "Boat", "name": "daisy",
        "namespace": "", "valid": true, "errors": [], "warnings": [],
        "object": {
            "apiVersion": "harbour.example.com/v1", "kind": "Boat", "metadata": {"name": "daisy"},
            "spec": {"crew": 1, "length": 7, "rig": "none"},
        },
        "rules": [{"path": "spec", "rule": "self.crew * 2 <= self.length", "cost": 6}], "cost": 6,
    });
    assert_eq!(items[0], daisy);
    let errors = json!([
        {"type": "FieldValueDuplicate", "field": "length", "detail": "line 14: key \"length\" already set in map",
         "badValue": null, "line": 14, "column": 3},
        {"type": "FieldValueInvalid", "field": "spec.colour", "detail": "unknown field \"spec.colour\"",
         "badValue": null, "line": 13, "column": 3},
        {"type": "FieldValueInvalid", "field": "spec", "detail": "a boat has 2 m for each of its crew",
         "badValue": null, "line": 10, "column": 1},
    ]);
    assert_eq!(items[1]["errors"], errors);
    assert_eq!(items[2]["errors"][0]["badValue"], 269);
    assert_eq!(items[3]["valid"], Value::Null);
    let unchecked = json!([
        {"type": "FieldValueNotFound", "field": "kind", "badValue": null, "line": 22, "column": 7,
         "detail": "not checked: there is no definition of Crane in harbour.example.org/v1"},
    ]);
    assert_eq!(items[3]["errors"], unchecked);
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn old_objects_make_updates_with_transition_rules_and_ratcheting() {
    let crowded = "apiVersion: harbour.example.com/v1\nkind: Boat\nmetadata: {name: a}\nspec: {length: 7, crew: 5}\n";
    let shrunk = crowded.replace("7, crew: 5", "6");
    let files = [("crd.yaml", BOATS), ("old.yaml", crowded), ("same.yaml", crowded), ("shrunk.yaml", &shrunk)];
    let folder = folder("validate-old", &files);
    let expected =
        "warning: same.yaml: Boat a: spec: Invalid value: a boat has 2 m for each of its crew\n1 document: 1 valid\n";
    check(&folder, &["validate", "-f", "crd.yaml", "--old", "old.yaml", "same.yaml"], 0, expected);
    let expected = "\
error: Boat a: spec: Invalid value: a boat does not shrink
 --> shrunk.yaml:4:1
  |
4 | spec: {length: 6}
  | ^^^^ rule: self.length >= oldSelf.length
  |
  = self.length is 6
  = oldSelf.length is 7

1 document: 0 valid, 1 invalid
";
    check(&folder, &["validate", "-f", "crd.yaml", "--old", "old.yaml", "shrunk.yaml"], 1, expected);
}

#[test]
fn definitions_among_the_files_count_and_are_checked() {
    let faulty = BOATS.replace("self.crew * 2", "self.crews * 2");
    let folder =
        folder("validate-definitions", &[("all.yaml", &format!("{BOATS}---\n{MANIFESTS}")), ("faulty.yaml", &faulty)]);
    let output = skiff(&folder, &["validate", "all.yaml"]);
    assert!(text(&output.stdout).ends_with("6 documents: 2 valid, 3 invalid, 1 not checked\n"), "{output:?}");
    let output = skiff(&folder, &["validate", "faulty.yaml"]);
    assert!(text(&output.stdout).contains("undefined field 'crews'"), "{output:?}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn stdin_folders_and_patterns_are_read() {
    let folder = folder("validate-sources", &[("crd.yaml", BOATS)]);
    let inner = super::folder("validate-sources/objects", &[("a.yaml", MANIFESTS), ("b.txt", "{")]);
    assert!(inner.is_dir());
    for source in ["objects", "objects/*.yaml"] {
        let output = skiff(&folder, &["validate", "-f", ".", source, "--field-validation", "warn"]);
        let printed = text(&output.stdout);
        assert!(printed.ends_with("5 documents: 1 valid, 3 invalid, 1 not checked\n"), "{printed}");
        let warning = "\nwarning: objects/a.yaml: Boat crowded: unknown field \"spec.colour\"\n";
        assert!(printed.contains(warning), "{printed}");
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_skiff"));
    command.current_dir(&folder).args(["validate", "-f", "crd.yaml", "-o", "junit", "-"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the binary is there");
    child.stdin.take().expect("it is a pipe").write_all(MANIFESTS.as_bytes()).expect("it is read");
    let output = child.wait_with_output().expect("it ends");
    let printed = text(&output.stdout);
    let head = r#"<testsuite name="-" tests="5" skipped="0" errors="0" failures="4">"#;
    assert!(printed.contains(head), "{printed}");
}

#[test]
fn sarif_has_the_places() {
    let folder = folder("validate-sarif", &[("crd.yaml", BOATS), ("boats.yaml", MANIFESTS)]);
    let output = skiff(&folder, &["validate", "-f", "crd.yaml", "-o", "sarif", "boats.yaml"]);
    let log: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!(log["version"], "2.1.0");
    assert_eq!(log["runs"][0]["tool"]["driver"]["name"], "skiff");
    let expected = json!({
        "ruleId": "FieldValueInvalid", "level": "error",
        "message": {"text": "Boat titanic: spec.length: Invalid value: 269: spec.length in body should be less than or equal to 30"},
        "locations": [{"physicalLocation": {
            "artifactLocation": {"uri": "boats.yaml"}, "region": {"startLine": 19, "startColumn": 16},
        }}],
    });
    assert_eq!(log["runs"][0]["results"][3], expected);
    let place = &log["runs"][0]["results"][1]["locations"][0]["physicalLocation"];
    assert_eq!(place["region"], json!({"startLine": 13, "startColumn": 3}));
    assert_eq!(place["artifactLocation"]["uri"], "boats.yaml");
}

#[test]
fn junit_has_a_case_for_each_document() {
    let folder = folder("validate-junit", &[("crd.yaml", BOATS), ("boats.yaml", MANIFESTS)]);
    let expected = format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="skiff" tests="5" skipped="1" failures="3" errors="0">
    <testsuite name="boats.yaml" tests="5" skipped="1" errors="0" failures="3">
        <testcase name="Boat daisy" classname="boats.yaml"/>
        <testcase name="Boat crowded" classname="boats.yaml">
            <failure message="line 14: key &quot;length&quot; already set in map">line 14: key &quot;length&quot; already set in map
unknown field &quot;spec.colour&quot;
spec: Invalid value: a boat has 2 m for each of its crew</failure>
        </testcase>
        <testcase name="Boat titanic" classname="boats.yaml">
            <failure message="spec.length: Invalid value: 269: spec.length in body should be less than or equal to 30">spec.length: Invalid value: 269: spec.length in body should be less than or equal to 30
spec.rig: Unsupported value: &quot;steam&quot;: supported values: &quot;ketch&quot;, &quot;sloop&quot;, &quot;none&quot;
&lt;nil&gt;: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation</failure>
        </testcase>
        <testcase name="Crane tower" classname="boats.yaml">
            <skipped/>
        </testcase>
        <testcase name="Namespace Harbour" classname="boats.yaml">
            <failure message="metadata.name: Invalid value: &quot;Harbour&quot;: {NAME}">metadata.name: Invalid value: &quot;Harbour&quot;: {NAME}</failure>
        </testcase>
    </testsuite>
</testsuites>
"#
    );
    let output = skiff(&folder, &["validate", "-f", "crd.yaml", "boats.yaml", "-o", "junit", "--ignore-missing"]);
    assert_eq!(text(&output.stdout).replace("&apos;", "'"), expected);
}

#[test]
fn what_helm_prints_is_read_from_stdin_and_told_by_template() {
    let printed = "\
---
# Source: harbour/templates/empty.yaml
---
# Source: harbour/templates/boats.yaml
apiVersion: harbour.example.com/v1
kind: Boat
metadata:
  name: daisy
spec:
  length: 31
---
# Source: harbour/templates/list.yaml
apiVersion: v1
kind: List
items:
- apiVersion: harbour.example.com/v1
  kind: Boat
  metadata: {name: tern}
  spec: {length: 4}
- apiVersion: harbour.example.com/v1
  kind: Boat
  metadata: {name: heron}
  spec:
    length: 40
";
    let folder = folder("validate-helm", &[("crd.yaml", BOATS)]);
    let expected = "\
error: Boat daisy: spec.length: Invalid value: 31: spec.length in body should be less than or equal to 30
  --> -:10:11
   |
10 |   length: 31
   |           ^^
   |
   = from harbour/templates/boats.yaml

error: Boat heron: spec.length: Invalid value: 40: spec.length in body should be less than or equal to 30
  --> -:24:13
   |
24 |     length: 40
   |             ^^
   |
   = from harbour/templates/list.yaml

3 documents: 1 valid, 2 invalid
";
    let mut command = Command::new(env!("CARGO_BIN_EXE_skiff"));
    command.current_dir(&folder).args(["validate", "-f", "crd.yaml", "-"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the binary is there");
    child.stdin.take().expect("it is a pipe").write_all(printed.as_bytes()).expect("it is read");
    let output = child.wait_with_output().expect("it ends");
    let found = text(&output.stdout);
    let found = found.split("\n\n").filter(|part| !part.contains("some validation rules")).collect::<Vec<_>>();
    assert_eq!(found.join("\n\n"), expected);
}

#[test]
fn an_old_object_of_another_version_is_converted() {
    let versions = BOATS.replace(
        "    - name: v1\n",
        "    - name: v1beta1\n      served: true\n      storage: false\n      schema:\n        openAPIV3Schema:\n          \
         type: object\n          x-kubernetes-preserve-unknown-fields: true\n    - name: v1\n",
    );
    let old = "apiVersion: harbour.example.com/v1beta1\nkind: Boat\nmetadata: {name: a}\nspec: {length: 9, mast: 3}\n";
    let new = "apiVersion: harbour.example.com/v1\nkind: Boat\nmetadata: {name: a}\nspec: {length: 8}\n";
    let files =
        [("crd.yaml", &*versions), ("old.yaml", old), ("new.yaml", new), ("longer.yaml", &new.replace('8', "10"))];
    let folder = folder("validate-versions", &files);
    let arguments = |file| ["validate", "-f", "crd.yaml", "--old", "old.yaml", file];
    let output = skiff(&folder, &arguments("new.yaml"));
    assert!(text(&output.stdout).contains("spec: Invalid value: a boat does not shrink"), "{output:?}");
    check(&folder, &arguments("longer.yaml"), 0, "1 document: 1 valid\n");
}

#[test]
fn keys_that_stand_twice_have_places_in_json_too() {
    let boat = r#"{"apiVersion": "harbour.example.com/v1", "kind": "Boat", "metadata": {"name": "a"},
  "spec": {"length": 7, "length": 8}}"#;
    let folder = folder("validate-repeated", &[("crd.yaml", BOATS), ("boat.json", boat)]);
    let output = skiff(&folder, &["validate", "-f", "crd.yaml", "-o", "json", "boat.json"]);
    let items: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let error = &items[0]["errors"][0];
    assert_eq!(error["detail"], "duplicate field \"spec.length\"");
    assert_eq!((&error["line"], &error["column"]), (&json!(2), &json!(25)));
}

#[test]
fn definitions_that_no_file_needs_are_left_alone() {
    let other = BOATS.replace("boat", "car").replace("Boat", "Car").replace("self.crew * 2", "self.fault");
    let files = [("crds.yaml", &*format!("{BOATS}---\n{other}")), ("boats.yaml", MANIFESTS)];
    let folder = folder("validate-lazy", &files);
    let output = skiff(&folder, &["validate", "-f", "crds.yaml", "boats.yaml"]);
    assert!(text(&output.stdout).ends_with("5 documents: 1 valid, 3 invalid, 1 not checked\n"), "{output:?}");
}

#[test]
fn unreadable_input_ends_with_2() {
    let folder = folder("validate-unreadable", &[("bad.yaml", "a: [\n"), ("none.yaml", "kind: A\n")]);
    for arguments in [&["bad.yaml"][..], &["absent.yaml"], &["-f", "none.yaml", "none.yaml"], &["no*.json"], &[]] {
        let output = skiff(&folder, &[&["validate"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(!(output.stderr.is_empty() && output.stdout.is_empty()), "{output:?}");
    }
}

#[test]
fn the_examples_get_the_errors_of_the_server() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("crd-examples");
    let output = skiff(&examples, &["validate", "-o", "json", "."]);
    let items: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    for item in items.as_array().expect("it is an array") {
        let file = item["file"].as_str().expect("it has a file");
        let lines = |item: &Value| -> Vec<String> {
            let errors = item["errors"].as_array().expect("it has errors").iter();
            errors.map(|error| error["detail"].as_str().unwrap_or_default().to_owned()).collect()
        };
        // Those that were something before are for updates.
        if file.ends_with(".old.yaml") || examples.join(file).with_extension("old.yaml").is_file() {
            continue;
        }
        if !file.contains("/invalid/") {
            assert_eq!(item["valid"], true, "{item}");
            continue;
        }
        assert_eq!(item["valid"], false, "{item}");
        let expected = examples.join(file).with_extension("errors");
        let expected = fs::read_to_string(expected).expect("the errors stand beside");
        for (line, detail) in expected.lines().zip(lines(item)) {
            assert!(line.contains(&detail) || detail.contains("no version"), "{file}: {line} and {detail}");
        }
    }
}

#[test]
fn what_can_not_be_read_hides_nothing_else() {
    let boats = "\
apiVersion: harbour.example.com/v1
kind: Boat
metadata: {name: daisy}
spec: {length: 1}
---
kind: Boat
spec: {length: [}
---
apiVersion: harbour.example.com/v1
kind: Boat
metadata: {name: tern}
spec: {length: 7}
";
    let folder = folder("validate-broken", &[("crd.yaml", BOATS), ("boats.yaml", boats), ("bad.yaml", "a: [\n")]);
    let expected = "\
error: `bad.yaml` can't be understood: line 1: did not find expected node content
 --> bad.yaml:1:1
  |
1 | a: [
  | ^

error: `absent.yaml` can't be read: No such file or directory (os error 2)
 |
 = note: in absent.yaml

error: Boat daisy: spec.length: Invalid value: 1: spec.length in body should be greater than or equal to 2
 --> boats.yaml:4:16
  |
4 | spec: {length: 1}
  |                ^

error: Boat daisy: spec: Invalid value: a boat has 2 m for each of its crew
 --> boats.yaml:4:1
  |
4 | spec: {length: 1}
  | ^^^^ rule: self.crew * 2 <= self.length
  |
  = self.crew * 2 is 2
  = self.crew is 1
  = self.length is 1

error: `boats.yaml` can't be understood: line 7: did not find expected node content
 --> boats.yaml:7:1
  |
7 | spec: {length: [}
  | ^^^^

5 documents: 1 valid, 1 invalid, 3 unreadable
";
    check(&folder, &["validate", "-f", "crd.yaml", "bad.yaml", "absent.yaml", "boats.yaml"], 2, expected);
    let output = skiff(&folder, &["validate", "-f", "crd.yaml", "boats.yaml", "-o", "json"]);
    let items: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let verdicts: Vec<&Value> = items.as_array().expect("an array").iter().map(|item| &item["valid"]).collect();
    assert_eq!(verdicts, [false, false, true]);
    assert_eq!((&items[1]["index"], &items[1]["errors"][0]["line"]), (&json!(1), &json!(7)));
    // A broken file among the definitions hides no other.
    let output = skiff(&folder, &["validate", "-f", "bad.yaml", "-f", "crd.yaml", "boats.yaml"]);
    assert!(text(&output.stdout).ends_with("\n4 documents: 1 valid, 1 invalid, 2 unreadable\n"), "{output:?}");
}

#[test]
fn nothing_passes_unseen() {
    let ferry = "apiVersion: harbour.example.com/v1\nkind: Baot\nmetadata: {name: a}\n";
    let files = [("crd.yaml", BOATS), ("ferry.yaml", ferry), ("values.yaml", "a: 1\n"), ("blank.yaml", "# nothing\n")];
    let folder = folder("validate-unseen", &files);
    std::fs::create_dir_all(folder.join("empty")).expect("the folder is writable");
    let run = |arguments: &[&str]| {
        let output = skiff(&folder, &[&["validate", "-f", "crd.yaml"], arguments].concat());
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (code, said, _) = run(&["ferry.yaml"]);
    assert!(said.contains("there is no definition of Baot in harbour.example.com/v1; did you mean Boat?"), "{said}");
    assert!(said.ends_with("1 document: 0 valid, 1 not checked\n") && code == Some(1), "{said}");
    let (code, said, _) = run(&["values.yaml"]);
    assert!(said.contains("error: document: not checked: it has no kind") && code == Some(1), "{said}");
    let nothing = "skiff: there is nothing to check in `empty`\n";
    assert_eq!(run(&["empty"]), (Some(1), "0 documents: 0 valid\n".to_owned(), nothing.to_owned()));
    assert_eq!(run(&["blank.yaml"]).0, Some(1));
    // Beside others, a blank file is no more than that; an empty folder is.
    assert_eq!(run(&["blank.yaml", "crd.yaml"]).0, Some(0));
    assert_eq!(run(&["empty", "crd.yaml"]).0, Some(1));
    for allowed in ["--ignore-missing", "--ignore-missing=Baot", "--ignore-missing=Crane,Baot.harbour.example.com"] {
        let (code, said, _) = run(&[allowed, "ferry.yaml"]);
        assert!(said.starts_with("warning: ferry.yaml: Baot a: not checked: ") && code == Some(0), "{said}");
    }
    assert_eq!(run(&["--ignore-missing=Crane", "ferry.yaml"]).0, Some(1));
    assert_eq!(run(&["--ignore-missing", "values.yaml", "empty"]), {
        let said = "warning: values.yaml: document: not checked: it has no kind\n1 document: 0 valid, 1 not checked\n";
        (Some(0), said.to_owned(), String::new())
    });
}

#[test]
fn errors_of_definitions_stand_at_the_rule_the_key_and_the_field() {
    let faulty = BOATS
        .replace("self.crew * 2", "self.crews * 2")
        .replace("{type: integer, minimum: 2, maximum: 30}", "{type: integr, minimum: 2, maximum: 30, colour: red}");
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  b: x\n  a: 1\n";
    let folder = folder("validate-places", &[("crd.yaml", &faulty), ("map.yaml", map)]);
    let places = |file: &str| -> Vec<String> {
        let output = skiff(&folder, &["validate", "-o", "json", file]);
        let items: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
        let content = fs::read_to_string(folder.join(file)).expect("it is there");
        let shown = |error: &Value| {
            let line = content.lines().nth(error["line"].as_u64()? as usize - 1)?;
            Some(line[error["column"].as_u64()? as usize - 1..].chars().take(12).collect())
        };
        items[0]["errors"].as_array().expect("it has errors").iter().filter_map(shown).collect()
    };
    assert_eq!(places("crd.yaml"), ["colour: red}", "integr, mini"]);
    assert_eq!(places("map.yaml"), ["1"]);
    let rule = BOATS.replace("self.crew * 2", "self.crews * 2");
    fs::write(folder.join("crd.yaml"), rule).expect("the folder is writable");
    assert_eq!(places("crd.yaml"), ["self.crews *"]);
}

const UNSELECTED: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: other}}
    spec: {containers: [{name: web, image: web}]}
";

#[test]
fn a_deployment_whose_selector_does_not_match_its_template_is_refused() {
    let folder = folder("validate-selector", &[("web.yaml", UNSELECTED)]);
    let output = skiff(&folder, &["validate", "web.yaml"]);
    let told = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{told}");
    let fault = "spec.template.metadata.labels: Invalid value: {\"app\":\"other\"}: `selector` does not match template `labels`";
    assert!(told.starts_with(&format!("error: Deployment web: {fault}")), "{told}");
    let matching = UNSELECTED.replace("app: other", "app: web");
    std::fs::write(folder.join("web.yaml"), matching).expect("the folder is writable");
    assert_eq!(skiff(&folder, &["validate", "web.yaml"]).status.code(), Some(0));
}
