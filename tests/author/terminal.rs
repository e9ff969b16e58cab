//! What a terminal gets that a pipe does not: colours, how far long work is, questions with completion and history. The
//! terminal is one that `script` makes.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

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

#[test]
fn a_terminal_gets_the_verdicts_of_suites_in_colours() {
    let suite = super::suites::SUITE.replace("value: 31", "value: 29");
    let folder = folder("terminal-suites", &[("crd.yaml", BOATS), ("a.suite.yaml", &suite)]);
    let Some(shown) = on_terminal(&folder, "test a.suite.yaml", &[]) else { return left_out("script") };
    assert!(shown.contains("  \u{1b}[32mok  \u{1b}[0m a boat has defaults\n"), "{shown}");
    assert!(shown.contains("\u{1b}[1;31mFAIL\u{1b}[0m a.suite.yaml:"), "{shown}");
    assert!(shown.ends_with("5 cases: 4 passed, \u{1b}[1;31m1 failed\u{1b}[0m\n"), "{shown}");
}

#[cfg(unix)]
#[test]
fn a_terminal_is_shown_how_far_long_work_is() {
    let folder = folder("terminal-progress", &[("crd.yaml", BOATS), ("boat.yaml", BOAT)]);
    // A file whose writer takes its time.
    let slow = folder.join("slow.yaml");
    _ = std::fs::remove_file(&slow);
    assert!(Command::new("mkfifo").arg(&slow).status().is_ok_and(|status| status.success()));
    let Some(mut terminal) = Terminal::start(&folder, "validate -f crd.yaml boat.yaml slow.yaml", &[]) else {
        return left_out("script");
    };
    terminal.until("1 of 2 files");
    std::fs::write(&slow, BOAT.replace("crew: 5", "crew: 3")).expect("it is read");
    let (shown, code) = terminal.end();
    let (_, findings) = shown.split_once("\r\u{1b}[K").expect("the line goes before anything else is printed");
    assert!(findings.contains("Boat a: spec: Invalid value"), "{shown}");
    assert!(findings.ends_with("2 documents: 1 valid, 1 invalid\r\n"), "{shown}");
    assert_eq!(code, Some(1));
}

#[test]
fn expressions_are_asked_for_with_completion_and_history() {
    let folder = folder("terminal-eval", &[]);
    let state = folder.join("state");
    _ = std::fs::remove_dir_all(&state);
    let variables = [("XDG_STATE_HOME", state.to_str().expect("the path is text")), ("TERM", "xterm")];
    let Some(mut terminal) = Terminal::start(&folder, "eval --var lengthy=3", &variables) else {
        return left_out("script");
    };
    for (typed, result) in [("1 + 2\r", "int, cost"), ("lengt\t + 4\r", "7\r\n")] {
        terminal.until("> ");
        terminal.keys.write_all(typed.as_bytes()).expect("it reads");
        terminal.until(result);
    }
    terminal.until("> ");
    terminal.keys.write_all(b"\x04").expect("it reads");
    assert_eq!(terminal.end().1, Some(0));
    let history = std::fs::read_to_string(state.join("skiff/eval_history")).expect("lines are kept");
    assert!(history.contains("1 + 2\n") && history.contains("lengthy + 4\n"), "{history}");
}

/// A command on a terminal, while it runs.
struct Terminal {
    child: Child,
    keys: ChildStdin,
    shown: ChildStdout,
}

impl Terminal {
    /// `None` where there is no `script`.
    fn start(folder: &Path, arguments: &str, variables: &[(&str, &str)]) -> Option<Terminal> {
        let mut command = on_script(folder, arguments, variables);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
        let (keys, shown) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
        Some(Terminal { child, keys, shown })
    }

    /// Waits until this is shown.
    fn until(&mut self, mark: &str) {
        let mut seen = Vec::new();
        while !seen.ends_with(mark.as_bytes()) {
            let mut byte = [0];
            let is_read = self.shown.read_exact(&mut byte).is_ok();
            assert!(is_read, "it ends without {mark:?}: {}", String::from_utf8_lossy(&seen));
            seen.push(byte[0]);
        }
    }

    /// What is shown from here on, and the exit code.
    fn end(mut self) -> (String, Option<i32>) {
        let mut rest = Vec::new();
        _ = self.shown.read_to_end(&mut rest);
        (text(&rest), self.child.wait().expect("it is our child").code())
    }
}

fn on_script(folder: &Path, arguments: &str, variables: &[(&str, &str)]) -> Command {
    let mut command = Command::new("script");
    command.current_dir(folder).env_remove("NO_COLOR").envs(variables.iter().copied());
    command.args(["--quiet", "--return", "--command"]);
    command.arg(format!("{} {arguments}", env!("CARGO_BIN_EXE_skiff"))).arg("/dev/null");
    command
}

/// What a terminal shows, its lines ended as in a file; `None` where there is no `script`.
fn on_terminal(folder: &Path, arguments: &str, variables: &[(&str, &str)]) -> Option<String> {
    let output = on_script(folder, arguments, variables).stdin(Stdio::null()).output().ok()?;
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
