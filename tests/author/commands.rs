//! `skiff explain`, completions, manual pages, and the plugin of kubectl.

use std::process::Command;

use serde_json::Value;

use super::{BOATS, check, folder, skiff, text};

#[test]
fn a_field_is_explained_with_its_constraints_and_rules() {
    let folder = folder("explain", &[("crd.yaml", BOATS)]);
    let expected = "\
Boat spec (harbour.example.com/v1): object, required

rules:
  crew * 2 is at most length
    rule: self.crew * 2 <= self.length
    else: a boat has 2 m for each of its crew
  length is at least the old length
    rule: self.length >= oldSelf.length
    else: a boat does not shrink

fields:
  crew: integer
  length: integer, required
  rig: string
";
    check(&folder, &["explain", "crd.yaml", "spec"], 0, expected);
    let expected = "\
Boat spec.rig (harbour.example.com/v1): string

constraints:
  defaults to `\"none\"`
  one of `\"ketch\"`, `\"sloop\"`, `\"none\"`
";
    check(&folder, &["explain", "crd.yaml", "boats.spec.rig"], 0, expected);
    let output = skiff(&folder, &["explain", "crd.yaml", "spec.length", "-o", "json"]);
    let found: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!(found["constraints"], serde_json::json!(["at least 2", "at most 30"]));
}

#[test]
fn a_field_that_is_not_there_ends_with_1() {
    let folder = folder("explain-none", &[("crd.yaml", BOATS)]);
    let output = skiff(&folder, &["explain", "crd.yaml", "spec.sail"]);
    assert_eq!(text(&output.stderr), "skiff: Boat has no field `sail` in `spec.sail`\n");
    assert_eq!(output.status.code(), Some(1));
    let output = skiff(&folder, &["explain", "crd.yaml", "spec.lenght"]);
    let expected = "skiff: Boat has no field `lenght` in `spec.lenght` (did you mean `length`?)\n";
    assert_eq!(text(&output.stderr), expected);
}

#[test]
fn a_kind_and_a_version_that_are_not_there_are_answered_with_those_that_are() {
    let ships = BOATS.replace("boats", "ships").replace("singular: boat", "singular: ship").replace("Boat", "Ship");
    let folder = folder("explain-names", &[("crd.yaml", BOATS), ("both.yaml", &format!("{BOATS}---\n{ships}"))]);
    let said = |arguments: &[&str]| text(&skiff(&folder, &[&["explain"], arguments].concat()).stderr);
    assert_eq!(said(&["both.yaml", "spec.length"]), "skiff: name a kind first: Boat, Ship\n");
    let unknown = said(&["crd.yaml", "spec", "--api-version", "v1"]);
    assert_eq!(unknown, "skiff: no version v1; use harbour.example.com/v1\n");
}

#[cfg(unix)]
#[test]
fn a_reader_that_has_seen_enough_ends_a_command_quietly() {
    let boats: String = (0..3000)
        .map(|at| {
            format!(
                "---\napiVersion: harbour.example.com/v1\nkind: Boat\nmetadata: {{name: b{at}}}\nspec: {{length: 1}}\n"
            )
        })
        .collect();
    let folder = folder("closed-pipe", &[("crd.yaml", BOATS), ("boats.yaml", &boats)]);
    let shell = |command: &str| {
        let run = format!("{} {command} | head -1", env!("CARGO_BIN_EXE_skiff"));
        let output = Command::new("sh").current_dir(&folder).args(["-c", &run]).output().expect("there is a shell");
        assert_eq!((text(&output.stderr).as_str(), text(&output.stdout).lines().count()), ("", 1), "{command}");
    };
    shell("validate -f crd.yaml boats.yaml");
    shell("validate -f crd.yaml boats.yaml -o json | tr , '\\n'");
    shell("cost crd.yaml");
    shell("lint --list");
    shell("explain crd.yaml spec");
    shell("diff crd.yaml crd.yaml --objects boats.yaml");
    shell("completion bash");
    shell("man");
    shell("help");
}

#[test]
fn shells_and_manual_readers_get_what_they_ask_for() {
    let folder = folder("commands", &[]);
    for (shell, word) in [("bash", "_skiff"), ("zsh", "#compdef skiff"), ("fish", "complete -c skiff")] {
        let output = skiff(&folder, &["completion", shell]);
        assert!(text(&output.stdout).contains(word), "{shell}");
    }
    assert!(text(&skiff(&folder, &["man"]).stdout).contains(".TH skiff 1"));
    assert_eq!(skiff(&folder, &["man", "--dir", "."]).status.code(), Some(0));
    assert!(folder.join("skiff-validate.1").is_file());
}

#[test]
fn the_help_of_each_command_has_an_example_and_exit_codes() {
    let folder = folder("help", &[]);
    for command in ["validate", "test", "cost", "lint", "diff", "explain", "eval", "infer", "convert", "docs", "lsp"] {
        let help = text(&skiff(&folder, &[command, "--help"]).stdout);
        assert!(help.contains(&format!("\n  skiff {command} ")) && help.contains("Exit codes: 0"), "{help}");
        let page = text(&skiff(&folder, &["man", "--dir", "."]).stdout);
        assert_eq!(page, "");
        let page = std::fs::read_to_string(folder.join(format!("skiff-{command}.1"))).expect("it was written");
        assert!(page.contains("skiff "), "{page}");
    }
}

#[cfg(unix)]
#[test]
fn kubectl_finds_it_as_a_plugin() {
    let folder = folder("plugin", &[("crd.yaml", BOATS)]);
    let link = folder.join("kubectl-skiff");
    _ = std::fs::remove_file(&link);
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_skiff"), &link).expect("the folder is writable");
    let output = Command::new(&link).args(["validate", "--help"]).output().expect("it runs");
    assert!(text(&output.stdout).contains("Usage: kubectl skiff validate"), "{output:?}");
    let output = Command::new(&link).arg("validate").arg(folder.join("crd.yaml")).output().expect("it runs");
    assert_eq!(text(&output.stdout), "1 document: 1 valid\n");
}

#[cfg(unix)]
#[test]
fn kubectl_completes_its_plugin() {
    let folder = folder("plugin-completion", &[("crd.yaml", BOATS)]);
    let link = folder.join("kubectl_complete-skiff");
    _ = std::fs::remove_file(&link);
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_skiff"), &link).expect("the folder is writable");
    let complete = |arguments: &[&str]| {
        let output = Command::new(&link).args(arguments).current_dir(&folder).output().expect("it runs");
        text(&output.stdout)
    };
    let commands = complete(&["val"]);
    assert!(commands.starts_with("validate\t") && commands.ends_with("\n:4\n"), "{commands}");
    assert!(complete(&["explain", "cr"]).contains("crd.yaml"));
    assert!(complete(&["cost", "--outp"]).starts_with("--output\t"));
}
