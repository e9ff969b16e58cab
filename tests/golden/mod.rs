//! Recorded conversations, against the real binary: those of a Kubernetes 1.37 CRD server here, those about the built-in
//! kinds in `kinds`.
//!
//! `KNOWN` lists those that do not hold, with the cause: the test fails when one of them begins to hold, and when another
//! ceases to. `SKIFF_GOLDEN=name` shows the first differences of the conversations whose names contain it;
//! `SKIFF_GOLDEN_STORE=sqlite` plays them against another store than memory.

pub mod compare;
mod request;
mod watch;
pub mod webhook;
mod run;
pub mod kinds;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use crate::server::{Folder, Server};
use run::{Door, gunzip};

/// How many conversations run side by side: many, as they wait more than they compute.
const AT_A_TIME: usize = 32;
/// How many differences are shown of a conversation that was asked for.
const SHOWN_MAX: usize = 3;
/// The recordings come from a server without a garbage collector: what waits for one waits for ever there.
const CONTROLLERS: &str = "*,-garbage-collector-controller";

#[test]
fn conversations_hold_but_for_the_known_ones() {
    let root = root();
    let mut files = Vec::new();
    collect(&root.join("conversations"), &mut files);
    let read = |path| {
        let text = fs::read_to_string(path).expect("the conversation is readable");
        serde_json::from_str(&text).expect("the conversation is JSON")
    };
    let folder = Folder::for_test();
    let store = store();
    let start = |data: &str, more: &[&str]| {
        let arguments =
            ["--store", &store, "--disable-admission-plugins", "NamespaceLifecycle", "--controllers", CONTROLLERS];
        Server::start(&folder.0.join(data), &[&arguments, more].concat())
    };
    Recorded {
        rounds: vec![Round::of(files.into_iter().map(read).collect())],
        known: root.join("KNOWN"),
        only: std::env::var("SKIFF_GOLDEN").ok(),
        door: Door::Plain,
        start: &start,
    }
    .check();
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn store() -> String {
    std::env::var("SKIFF_GOLDEN_STORE").unwrap_or_else(|_| "memory".to_owned())
}

/// Conversations, and what they are played against.
struct Recorded<'r> {
    /// Those that are played side by side.
    rounds: Vec<Round>,
    /// The file that lists those that do not hold.
    known: PathBuf,
    /// A part of the names of those that are asked for; `None` for all.
    only: Option<String>,
    door: Door<'r>,
    /// Starts a server with its data in the folder of that name, and with more arguments.
    start: &'r (dyn Fn(&str, &[&str]) -> Server + Sync),
}

/// Conversations that are played side by side, with a server of their own.
struct Round {
    conversations: Vec<Value>,
    /// Of the server, beside those that all have.
    arguments: &'static [&'static str],
}

impl Round {
    fn of(conversations: Vec<Value>) -> Self {
        Round { conversations, arguments: &[] }
    }
}

/// How often a conversation that differs is played again: on a busy machine two writes seldom meet the same second.
const AGAIN_MAX: usize = 4;

/// What differs, by conversation; nothing for one that holds.
type Problems = BTreeMap<String, Vec<String>>;
type Again<'a> = dyn Fn(&Round, &Value, &[String]) -> Option<Vec<String>> + Sync + 'a;

impl Recorded<'_> {
    /// Shows what was asked for, or holds the conversations against the list.
    fn check(mut self) {
        if let Some(only) = self.only.take() {
            let is_meant = |conversation: &Value| name(conversation).contains(&only);
            self.rounds.iter_mut().for_each(|round| round.conversations.retain(is_meant));
            self.rounds.retain(|round| !round.conversations.is_empty());
            assert!(!self.rounds.is_empty(), "no conversation is called `{only}`");
            for (name, found) in self.play(SHOWN_MAX, &|_, _, _| None) {
                println!("{name}: {}", if found.is_empty() { "holds" } else { "differs" });
                found.iter().for_each(|problem| println!("   {problem}"));
            }
            return;
        }
        let known = known(&self.known);
        // It counts only whether they differ; what comes after the first difference often waits in vain.
        let problems = self.play(1, &|round, conversation, found| {
            let name = name(conversation);
            // Some answers depend on whether two writes meet the same second.
            (!known.contains_key(name)).then(|| {
                println!("{name} is played again, alone, as it differed: {}", found[0]);
                let play = || run::play(&(self.start)(name, round.arguments), conversation, self.door, 1);
                let mut again = play();
                for _ in 1..AGAIN_MAX {
                    if !again.is_empty() {
                        again = play();
                    }
                }
                again
            })
        });
        compare_with(&known, &problems, &self.known);
    }

    /// Plays them; `again` may give a second verdict on one that differs.
    fn play(&self, problems_max: usize, again: &Again<'_>) -> Problems {
        let problems: Mutex<Problems> = Mutex::default();
        for (at, round) in self.rounds.iter().enumerate() {
            let server = (self.start)(&format!("round-{at}"), round.arguments);
            let next = AtomicUsize::new(0);
            let work = || {
                while let Some(conversation) = round.conversations.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let mut found = run::play(&server, conversation, self.door, problems_max);
                    if !found.is_empty() {
                        found = again(round, conversation, &found).unwrap_or(found);
                    }
                    problems.lock().expect("no thread panics").insert(name(conversation).to_owned(), found);
                }
            };
            std::thread::scope(|scope| {
                for _ in 0..AT_A_TIME.min(round.conversations.len()) {
                    scope.spawn(work);
                }
            });
        }
        problems.into_inner().expect("no thread panics")
    }
}

fn name(conversation: &Value) -> &str {
    conversation["name"].as_str().expect("it has a name")
}

/// Fails unless those that differ are those that are known to.
fn compare_with(known: &BTreeMap<String, String>, problems: &Problems, list: &Path) {
    let list = list.file_name().unwrap_or_default().to_string_lossy();
    let failed: BTreeSet<&str> =
        problems.iter().filter(|(_, found)| !found.is_empty()).map(|(name, _)| name.as_str()).collect();
    let mut faults = Vec::new();
    for name in &failed {
        if !known.contains_key(*name) {
            faults.push(format!("{name} no longer holds: {}", problems[*name][0]));
        }
    }
    for name in known.keys() {
        if !problems.contains_key(name) {
            faults.push(format!("{name} is listed in {list} but not recorded"));
        } else if !failed.contains(name.as_str()) {
            faults.push(format!("{name} holds now: take it off {list}"));
        }
    }
    println!("{} conversations hold, {} of {} do not", problems.len() - failed.len(), failed.len(), problems.len());
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// The conversations that are known not to hold, and why.
fn known(path: &Path) -> BTreeMap<String, String> {
    let text = fs::read_to_string(path).expect("the list of known ones is there");
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let (name, cause) = line.split_once(": ").expect("a line is NAME: CAUSE");
            (name.to_owned(), cause.to_owned())
        })
        .collect()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder is readable") {
        let path = entry.expect("the folder is readable").path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "json") {
            files.push(path);
        }
    }
    files.sort();
}
