//! The commands of the documentation, run from its own text: what those of a page's `console` blocks print is what stands
//! below them, and its files are those that are shown, each named by its first line.
//!
//! Commands run in bash, in a folder for the page. `skiff serve` and `skiff playground` stay while the commands after them
//! run, on ports of their own, and end where the next one begins. `…` stands for what differs from run to run; so do the
//! ports of this machine.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::kubectl;
use crate::server::Folder;

/// Pages whose commands are run elsewhere, or by hand.
const ELSEWHERE: [(&str, &str); 3] = [
    ("contributing", "what builds, tests and measures the project"),
    ("envtest", "tests/clients: suites under the stand-in for kube-apiserver"),
    ("install", "tests/packages.rs"),
];

macro_rules! pages {
    ($($test:ident $page:literal;)+) => {
        /// The pages that have a test below.
        const RUN: &[&str] = &[$($page),+];
        $(#[test] fn $test() { check_page($page); })+
    };
}

pages! {
    the_page_of_more_tools_prints_what_it_says "author-tools";
    the_page_of_faults_prints_what_it_says "faults";
    the_page_of_minors_prints_what_it_says "minors";
    the_page_of_offline_checks_prints_what_it_says "offline-checks";
    the_page_of_planes_prints_what_it_says "planes";
    the_page_of_the_playground_prints_what_it_says "playground";
    the_page_of_policies_prints_what_it_says "policies";
    the_page_of_the_project_file_prints_what_it_says "project-file";
    the_page_of_records_prints_what_it_says "record";
    the_page_of_reference_pages_prints_what_it_says "reference-pages";
    the_page_for_schema_authors_prints_what_it_says "schema-authors";
    the_page_of_servers_prints_what_it_says "serving";
    the_page_of_workloads_prints_what_it_says "workloads";
}

#[test]
fn every_page_with_commands_is_run() {
    let mut unrun = BTreeSet::new();
    for entry in fs::read_dir(docs()).expect("the folder is there") {
        let path = entry.expect("the folder is readable").path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if path.extension().is_none_or(|extension| extension != "md") || ELSEWHERE.iter().any(|(page, _)| *page == name)
        {
            continue;
        }
        let text = fs::read_to_string(&path).expect("the page is there");
        let is_run = RUN.contains(&name.as_str());
        assert!(is_run || !text.contains("```console"), "no test runs docs/{name}.md");
        unrun.extend(unrun_commands(&text).map(|line| format!("docs/{name}.md: {line}")));
    }
    let unrun: Vec<String> = unrun.into_iter().collect();
    assert!(unrun.is_empty(), "commands that no test runs, as they stand in no `console` block:\n{}", unrun.join("\n"));
}

/// Lines that look like commands of ours and stand in blocks that are not run; those with `postgres:` need a database.
fn unrun_commands(text: &str) -> impl Iterator<Item = &str> {
    let mut block = None;
    text.lines().filter(move |line| {
        if let Some(kind) = line.strip_prefix("```") {
            block = if block.is_some() { None } else { Some(kind) };
        }
        let is_indented = block.is_none() && line.starts_with("    ");
        let is_shown = block.is_some_and(|kind| matches!(kind, "" | "sh" | "text"));
        let line = line.trim_start();
        (is_indented || is_shown)
            && ["skiff ", "kubectl "].iter().any(|program| line.starts_with(program))
            && !line.contains("postgres:")
    })
}

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs")
}

fn check_page(name: &str) {
    let text = fs::read_to_string(docs().join(format!("{name}.md"))).expect("the page is there");
    let steps = steps(&text);
    assert!(steps.iter().any(|step| matches!(step, Step::Run { .. })), "docs/{name}.md has no commands");
    let needs_kubectl =
        steps.iter().any(|step| matches!(step, Step::Run { command, .. } if command.contains("kubectl ")));
    let kubectl = if needs_kubectl { kubectl::program() } else { None };
    if needs_kubectl && kubectl.is_none() {
        return;
    }
    let mut page = Page { folder: Folder::for_test(), kubectl, server: None };
    for step in steps {
        match step {
            Step::Write { file, content } => page.write(file, content),
            Step::Run { command, printed } => {
                let found = page.run(command);
                assert!(
                    is_as_shown(&found, printed),
                    "docs/{name}.md: {command}\nprints:\n{found}\nand not:\n{printed}"
                );
            }
        }
    }
}

/// What a page has its reader do.
enum Step<'t> {
    Write { file: &'t str, content: &'t str },
    Run { command: &'t str, printed: &'t str },
}

/// The steps of a page, in their order. Blocks of other kinds are to be read.
fn steps(text: &str) -> Vec<Step<'_>> {
    let mut steps = Vec::new();
    for block in text.split("\n```").skip(1).step_by(2) {
        let (kind, body) = block.split_once('\n').unwrap_or_default();
        let file = body.lines().next().and_then(|line| line.strip_prefix("# ")).filter(|name| !name.contains(' '));
        match (kind, file) {
            ("yaml" | "toml", Some(file)) => steps.push(Step::Write { file, content: body }),
            ("console", _) => {
                assert!(body.starts_with("$ "), "a block begins with a command: {body}");
                steps.extend(body["$ ".len()..].split("\n$ ").map(|step| {
                    let (command, printed) = step.split_once('\n').unwrap_or((step, ""));
                    Step::Run { command, printed: printed.trim_end() }
                }));
            }
            _ => {}
        }
    }
    steps
}

/// Where the commands of a page run.
struct Page {
    folder: Folder,
    kubectl: Option<&'static Path>,
    server: Option<Child>,
}

impl Page {
    fn write(&self, file: &str, content: &str) {
        let path = self.folder.0.join(file);
        fs::create_dir_all(path.parent().expect("it is within the folder")).expect("the folder for tests is writable");
        fs::write(path, format!("{content}\n")).expect("the folder for tests is writable");
    }

    /// What a command prints, without the spaces that a source does not have at the ends of its lines.
    fn run(&mut self, command: &str) -> String {
        for (serving, ports) in [("skiff serve", "--listen 127.0.0.1:0"), ("skiff playground", "--listen 127.0.0.1:0")]
        {
            if let Some(options) = command.strip_prefix(serving) {
                return self.serve(&format!("{serving} {ports}{}", without_comment(options)));
            }
        }
        let output = self.shell(command).output().expect("bash runs");
        let printed = String::from_utf8(output.stdout).expect("what is printed is UTF-8");
        printed.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim_end().to_owned()
    }

    fn shell(&self, command: &str) -> Command {
        let mut path: Vec<PathBuf> = vec![Path::new(env!("CARGO_BIN_EXE_skiff")).to_path_buf()];
        path.extend(self.kubectl.map(Path::to_path_buf));
        let folders = path.iter().filter_map(|program| program.parent().map(Path::to_path_buf));
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths(folders.chain(std::env::split_paths(&path))).expect("they came from a PATH");
        let mut shell = Command::new("bash");
        shell.current_dir(&self.folder.0).env("PATH", path).env("HOME", &self.folder.0);
        shell.env("KUBECONFIG", self.folder.0.join(".skiff/kubeconfig"));
        shell.args(["-c", &format!("exec 2>&1\n{command}")]);
        shell
    }

    /// Starts a server in place of the one before; what it prints once it is ready, a line, or two where it has a page.
    fn serve(&mut self, command: &str) -> String {
        self.end();
        let mut shell = self.shell(&format!("exec {command}"));
        let mut child = shell.stdout(Stdio::piped()).spawn().expect("bash runs");
        let (sender, told) = std::sync::mpsc::channel();
        let mut out = BufReader::new(child.stdout.take().expect("stdout is a pipe"));
        self.server = Some(child);
        let lines = if command.contains(" --ui") { 2 } else { 1 };
        // Read to its end, so that the server can always write.
        std::thread::spawn(move || {
            let mut line = String::new();
            while out.read_line(&mut line).is_ok_and(|count| count > 0) {
                _ = sender.send(std::mem::take(&mut line));
            }
        });
        let is_told = |line: &String| line.starts_with("ready ") || line.starts_with("ui ");
        let told: Vec<String> = told.iter().filter(is_told).take(lines).collect();
        assert_eq!(told.len(), lines, "{command} does not say that it is ready");
        told.concat().trim_end().to_owned()
    }

    /// Ends the server as Ctrl-C does.
    fn end(&mut self) {
        if let Some(mut server) = self.server.take() {
            _ = Command::new("kill").args(["-TERM", &server.id().to_string()]).status();
            _ = server.wait();
        }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        self.end();
    }
}

fn without_comment(command: &str) -> &str {
    command.split("  #").next().unwrap_or(command).trim_end()
}

/// Whether a command printed what the page shows. A page need not show that a server is ready.
fn is_as_shown(found: &str, shown: &str) -> bool {
    let (found, shown) = (without_ports(found), without_ports(shown));
    let is_ready = shown.is_empty() && found.starts_with("ready ");
    let (found, shown): (Vec<&str>, Vec<&str>) = (found.lines().collect(), shown.lines().collect());
    is_ready || (found.len() == shown.len() && found.iter().zip(&shown).all(|(found, shown)| fits(found, shown)))
}

/// Whether a line is the one that is shown, with anything where that has `…`.
fn fits(found: &str, shown: &str) -> bool {
    let Some((first, rest)) = shown.split_once('…') else { return found == shown };
    let (between, last) = rest.rsplit_once('…').unwrap_or(("", rest));
    let inner = found.strip_prefix(first).and_then(|rest| rest.strip_suffix(last));
    let after = |rest: &str, part: &str| rest.find(part).map(|at| at + part.len());
    inner.is_some_and(|inner| {
        let end = between.split('…').try_fold(0, |at, part| Some(at + after(&inner[at..], part)?));
        end.is_some()
    })
}

/// A text without the ports of this machine.
fn without_ports(text: &str) -> String {
    let mut parts = text.split("127.0.0.1:");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |told, part| told + "127.0.0.1:" + part.trim_start_matches(|digit: char| digit.is_ascii_digit()))
}
