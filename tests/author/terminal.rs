//! What a terminal gets that a pipe does not: colours. The terminal is one that `script` makes.

use std::process::{Command, Stdio};

use super::{BOATS, folder, skiff, text};
use crate::kubectl::left_out;

const BOAT: &str = "\
apiVersion: harbour.example.com/v1
kind: Boat
metadata: {name: a}
spec: {length: 7, crew: 5}
";

const EXPECTED: &str = "\
{red}error{end}{bold}: Boat a: spec: Invalid value: a boat has 2 m for each of its crew{end}
 {blue}--> {end}boat.yaml:4:1
  {blue}|{end}
{blue}4{end} {blue}|{end} spec: {length: 7, crew: 5}
  {blue}|{end} {red}^^^^{end} {red}rule: self.crew * 2 <= self.length{end}
  {blue}|{end}
  {blue}= {end}self.crew * 2 is 10
  {blue}= {end}self.crew is 5
  {blue}= {end}self.length is 7

1 document: 0 valid, 1 invalid
";

#[test]
fn a_terminal_gets_colours_and_a_pipe_none() {
    let folder = folder("terminal", &[("crd.yaml", BOATS), ("boat.yaml", BOAT)]);
    let plain = ["red", "blue", "bold", "end"]
        .iter()
        .fold(EXPECTED.to_owned(), |text, name| text.replace(&format!("{{{name}}}"), ""));
    let piped = skiff(&folder, &["validate", "-f", "crd.yaml", "boat.yaml"]);
    assert_eq!(text(&piped.stdout), plain);
    assert_eq!(text(&piped.stderr), "");
    let shown = on_terminal(&folder, "validate -f crd.yaml boat.yaml", &[]);
    let Some(shown) = shown else { return left_out("script") };
    assert_eq!(named(&shown), EXPECTED);
    let bare = on_terminal(&folder, "validate -f crd.yaml boat.yaml", &[("NO_COLOR", "1")]);
    assert_eq!(bare.as_deref(), Some(plain.as_str()));
}

/// What a terminal shows, its lines ended as in a file; `None` where there is no `script`.
fn on_terminal(folder: &std::path::Path, arguments: &str, variables: &[(&str, &str)]) -> Option<String> {
    let mut command = Command::new("script");
    command.current_dir(folder).env_remove("NO_COLOR").envs(variables.iter().copied()).stdin(Stdio::null());
    command.args(["--quiet", "--return", "--command"]);
    command.arg(format!("{} {arguments}", env!("CARGO_BIN_EXE_skiff"))).arg("/dev/null");
    let output = command.output().ok()?;
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    Some(text(&output.stdout).replace("\r\n", "\n"))
}

/// The signs that change colours, by names.
fn named(text: &str) -> String {
    let signs = [
        ("\u{1b}[1m\u{1b}[91m", "{red}"),
        ("\u{1b}[1m\u{1b}[94m", "{blue}"),
        ("\u{1b}[1m", "{bold}"),
        ("\u{1b}[0m", "{end}"),
    ];
    signs.iter().fold(text.to_owned(), |text, (sign, name)| text.replace(sign, name))
}
