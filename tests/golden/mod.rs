//! The recorded conversations of a Kubernetes 1.37 CRD server, against the real binary.
//!
//! `KNOWN` lists those that do not hold, with the cause: the test fails when one of them begins to hold, and when another
//! ceases to. `SKIFF_GOLDEN=name` shows the first differences of the conversations whose names contain it;
//! `SKIFF_GOLDEN_STORE=sqlite` plays them against another store than memory.

pub mod compare;
mod request;
mod watch;
mod webhook;
mod run;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use crate::server::{Folder, Server};

/// How many conversations run side by side: many, as they wait more than they compute.
const AT_A_TIME: usize = 32;
/// How many differences are shown of a conversation that was asked for.
const SHOWN_MAX: usize = 3;
/// The recordings come from a server without a garbage collector: what waits for one waits for ever there.
const CONTROLLERS: &str = "*,-garbage-collector-controller";

#[test]
fn conversations_hold_but_for_the_known_ones() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let only = std::env::var("SKIFF_GOLDEN").ok();
    let mut files = Vec::new();
    collect(&root.join("conversations"), &mut files);
    let known = known(&root.join("KNOWN"));
    let folder = Folder::for_test();
    let store = std::env::var("SKIFF_GOLDEN_STORE").unwrap_or_else(|_| "memory".to_owned());
    let start = |data: &str| {
        let arguments =
            ["--store", &store, "--disable-admission-plugins", "NamespaceLifecycle", "--controllers", CONTROLLERS];
        Server::start(&folder.0.join(data), &arguments)
    };
    let server = start("data");
    // Of the others it counts only whether they differ; what comes after the first difference often waits in vain.
    let problems_max = if only.is_some() { SHOWN_MAX } else { 1 };
    let next = AtomicUsize::new(0);
    let problems: Mutex<BTreeMap<String, Vec<String>>> = Mutex::default();
    let work = || {
        while let Some(path) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            let text = fs::read_to_string(path).expect("the conversation is readable");
            let conversation: Value = serde_json::from_str(&text).expect("the conversation is JSON");
            let name = conversation["name"].as_str().expect("it has a name").to_owned();
            if only.as_ref().is_some_and(|only| !name.contains(only)) {
                continue;
            }
            let mut found = run::play(&server, &conversation, problems_max);
            if !found.is_empty() && only.is_none() && !known.contains_key(&name) {
                // Some answers depend on whether two writes meet the same second.
                println!("{name} is played again, alone, as it differed: {}", found[0]);
                found = run::play(&start(&name), &conversation, problems_max);
            }
            problems.lock().expect("no thread panics").insert(name, found);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(work);
        }
    });
    let problems = problems.into_inner().expect("no thread panics");
    if let Some(only) = only {
        for (name, found) in &problems {
            println!("{name}: {}", if found.is_empty() { "holds" } else { "differs" });
            found.iter().for_each(|problem| println!("   {problem}"));
        }
        assert!(!problems.is_empty(), "no conversation is called `{only}`");
        return;
    }
    let failed: BTreeSet<&str> =
        problems.iter().filter(|(_, found)| !found.is_empty()).map(|(name, _)| name.as_str()).collect();
    let mut faults = Vec::new();
    for name in &failed {
        if !known.contains_key(*name) {
            faults.push(format!("{name} no longer holds: {}", problems[*name][0]));
        }
    }
    for name in known.keys() {
        match problems.contains_key(name) {
            false => faults.push(format!("{name} is listed in KNOWN but not recorded")),
            true if !failed.contains(name.as_str()) => faults.push(format!("{name} holds now: take it off KNOWN")),
            true => {}
        }
    }
    println!("{} conversations hold, {} of {} do not", problems.len() - failed.len(), failed.len(), problems.len());
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// The conversations that are known not to hold, and why.
fn known(path: &Path) -> BTreeMap<String, String> {
    let text = fs::read_to_string(path).expect("tests/golden/KNOWN is there");
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
