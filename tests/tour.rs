//! The tour of the README, run from its own text: every command in a `console` block, with kubectl, in bash. What they
//! print is what stands below them.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use crate::kubectl;
use crate::server::{Folder, Server};

/// How long a line of a watch may take, also on a busy machine.
const LINE_MAX: Duration = Duration::from_secs(30);

#[test]
fn the_tour_prints_what_the_readme_says() {
    let Some(kubectl) = kubectl::program() else { return };
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = fs::read_to_string(root.join("README.md")).expect("the README is there");
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--crds", "crd-examples"]);
    let shell = |command: &str| {
        let mut shell = Command::new("bash");
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut folders: Vec<_> = std::env::split_paths(&path).collect();
        folders.splice(0..0, kubectl.parent().map(Path::to_path_buf));
        shell.args(["-c", &format!("exec 2>&1\n{command}")]);
        shell.env("PATH", std::env::join_paths(folders).expect("the folders came from a PATH"));
        // The cache of what is served stays in the home folder.
        shell.env("KUBECONFIG", &server.kubeconfig).env("HOME", &folder.0);
        shell
    };
    let mut watches = Vec::new();
    let steps = steps(&readme);
    assert!(steps.len() >= 10, "the tour has {} steps", steps.len());
    for step in steps {
        if step.command.contains("--watch") {
            watches.push(Watching::start(shell(&format!("exec {}", step.command)), step.printed));
            continue;
        }
        let output = shell(&step.command).output().expect("bash runs");
        let printed: Vec<String> = String::from_utf8_lossy(&output.stdout).lines().map(trimmed).collect();
        assert_eq!(printed, step.printed, "{}", step.command);
    }
    assert_eq!(watches.len(), 1);
    watches.into_iter().for_each(Watching::finish);
}

#[test]
fn the_readme_lists_what_the_examples_define() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = fs::read_to_string(root.join("README.md")).expect("the README is there");
    for example in fs::read_dir(root.join("crd-examples")).expect("the examples are there") {
        let definition = example.expect("the folder is readable").path().join("crd.yaml");
        let definition = kubeskiff::value::yaml::decode(&fs::read(definition).expect("it is readable"));
        let definition = definition.expect("it is YAML");
        let name = definition.str_at(&["metadata", "name"]);
        assert!(readme.contains(&format!("  {name} ")), "{name} is missing");
    }
}

/// A command, and the lines that it prints.
struct Step {
    command: String,
    printed: Vec<String>,
}

/// The commands of the `console` blocks. A command goes on to the end of its here-document, or of its quotes.
fn steps(readme: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let tour = readme.lines().skip_while(|line| *line != "## A tour in five minutes").skip(1);
    let mut lines = tour.take_while(|line| !line.starts_with("## "));
    while lines.by_ref().any(|line| line == "```console") {
        while let Some(line) = lines.next().filter(|line| *line != "```") {
            let Some(command) = line.strip_prefix("$ ") else {
                steps.last_mut().expect("a block begins with a command").printed.push(trimmed(line));
                continue;
            };
            let mut command = format!("{command}\n");
            let is_document = command.contains("<<EOF");
            while if is_document { !command.ends_with("\nEOF\n") } else { command.matches('\'').count() % 2 == 1 } {
                command.push_str(lines.next().expect("the command ends"));
                command.push('\n');
            }
            steps.push(Step { command, printed: Vec::new() });
        }
    }
    steps
}

/// A line without what nobody sees or not every kubectl prints: spaces at its end, and the namespace of what was deleted.
fn trimmed(line: &str) -> String {
    line.trim_end().trim_end_matches(" from default namespace").to_owned()
}

/// A command that goes on while others run.
struct Watching {
    child: Child,
    lines: Receiver<String>,
    seen: Vec<String>,
    expected: Vec<String>,
}

impl Watching {
    /// Starts the command, and waits until it prints: from then on it sees what happens.
    fn start(mut command: Command, expected: Vec<String>) -> Watching {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("bash runs");
        let stdout = BufReader::new(child.stdout.take().expect("stdout is a pipe"));
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                _ = sender.send(trimmed(&line));
            }
        });
        let mut watching = Watching { child, lines, seen: Vec::new(), expected };
        watching.read_up_to(2);
        watching
    }

    fn read_up_to(&mut self, count: usize) {
        while self.seen.len() < count {
            let Ok(line) = self.lines.recv_timeout(LINE_MAX) else { break };
            self.seen.push(line);
        }
    }

    fn finish(mut self) {
        self.read_up_to(self.expected.len());
        assert_eq!(self.seen, self.expected);
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}
