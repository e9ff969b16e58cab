//! `skiff eval` and `skiff infer`.

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
    // Of several objects the one that the definition is about.
    let several = format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: a}}}}\n---\n{BOAT}");
    fs::write(folder.join("several.yaml"), several).expect("the folder is writable");
    let arguments = ["eval", "--crd", "crd.yaml", "--object", "several.yaml", "self.spec.length"];
    let output = skiff(&folder, &arguments);
    assert!(text(&output.stdout).starts_with("7\n"), "{output:?}");
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
fn input_that_is_no_text_is_told() {
    let folder = folder("eval-bytes", &[]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_skiff"));
    command.current_dir(&folder).arg("eval").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary is there");
    child.stdin.take().expect("it is a pipe").write_all(b"1 + 1\n'\xff'\n2 * 3\n").expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), text(&output.stdout).as_ref()), (Some(2), "2\n  int, cost 1\n"));
    assert!(text(&output.stderr).contains("standard input can't be read: "), "{output:?}");
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

#[test]
fn a_project_has_the_definitions_of_an_object() {
    let project = "definitions = [\"crd.yaml\"]\n";
    let folder = folder("eval-project", &[("skiff.toml", project), ("crd.yaml", BOATS), ("boat.yaml", BOAT)]);
    let evaluate = |expression: &str| text(&skiff(&folder, &["eval", "--object", "boat.yaml", expression]).stdout);
    assert!(evaluate("self.spec.rig").starts_with("\"none\"\n"), "the default comes from the definition");
    let other = BOAT.replace("harbour.example.com/v1", "harbour.example.com/v7");
    fs::write(folder.join("other.yaml"), other).expect("the folder is writable");
    let output = skiff(&folder, &["eval", "--object", "other.yaml", "self"]);
    let told = "skiff: no version harbour.example.com/v7; use harbour.example.com/v1\n";
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(2), told));
    fs::write(folder.join("foreign.yaml"), "kind: Crane\nspec: {a: 1}\n").expect("the folder is writable");
    let output = skiff(&folder, &["eval", "--object", "foreign.yaml", "self.spec.a"]);
    assert!(text(&output.stdout).starts_with("1\n"), "{output:?}");
}
