//! The recorded conversations about the built-in kinds: of a full Kubernetes 1.36 server with RBAC, started as envtest
//! starts one, so without controllers and without the admission plugin ServiceAccount.
//!
//! `kinds/objects.jsonl.gz` makes, reads, changes and deletes an object of each kind, `kinds/behaviour.jsonl.gz` is about
//! what a server does beside storing, and `kinds/behaviour-alone.jsonl.gz` changes what all others rely on.
//! `kinds/faults.jsonl.gz` was recorded from a kube-apiserver 1.36.2 of our own building where the two were found to differ.
//! A line is a conversation. Those that show what 1.37 does otherwise (`OF_1_36`) are played against 1.36. `KNOWN-KINDS` lists those that do not hold; `SKIFF_GOLDEN_KINDS=name` shows what differs.

use std::fs;

use serde_json::Value;

use super::run::Door;
use super::{Recorded, Round, gunzip, name, root, store};
use crate::server::{Folder, Server};

const TOKEN: &str = "recorder";
/// Who the recorder was.
const USERS: &str = "recorder,admin,6d6f7265-6f76-4572-a973-6f6d65626f64,system:masters\n";
const CONTROLLERS: &str = "-namespace-controller";
/// Nobody owns the fields of an object after an update that does not fit its types.
const OF_1_36: [&str; 1] = ["core-serviceaccount-robot"];
/// As the recorder's server was started.
const PLUGINS: &str = "--enable-admission-plugins=NodeRestriction";
const ISSUER: &str = "--service-account-issuer=https://kubernetes.default.svc";

#[test]
fn conversations_about_kinds_hold_but_for_the_known_ones() {
    let folder = Folder::for_test();
    let users = folder.0.join("users.csv");
    fs::write(&users, USERS).expect("the folder can be written to");
    let users = users.to_str().expect("the path is text");
    let store = store();
    let start = |data: &str, more: &[&str]| {
        let arguments = [
            "--store",
            &store,
            "--authorization-mode=RBAC",
            "--token-auth-file",
            users,
            "--controllers",
            CONTROLLERS,
            PLUGINS,
            ISSUER,
        ];
        Server::start(&folder.0.join(data), &[&arguments, more].concat())
    };
    let together = [read("objects"), read("behaviour"), read("faults")].concat();
    let (older, together): (Vec<_>, Vec<_>) =
        together.into_iter().partition(|conversation| OF_1_36.contains(&name(conversation)));
    assert_eq!(older.len(), OF_1_36.len());
    Recorded {
        rounds: vec![
            Round::of(together),
            Round::of(read("behaviour-alone")),
            Round { conversations: older, arguments: &["--emulated-version", "1.36"] },
        ],
        known: root().join("KNOWN-KINDS"),
        only: std::env::var("SKIFF_GOLDEN_KINDS").ok(),
        door: Door::Token(TOKEN),
        start: &start,
    }
    .check();
}

/// Longer than a second, so that what is made after a pause has a later time.
const PAUSE_S: f64 = 1.1;

/// The conversations of a file, without the long pauses that its server needed and ours does not.
pub fn read(file: &str) -> Vec<Value> {
    let bytes = fs::read(root().join("kinds").join(format!("{file}.jsonl.gz"))).expect("the file is there");
    let text = String::from_utf8(gunzip(&bytes)).expect("it is text");
    let mut conversations: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("a line is a conversation")).collect();
    for steps in conversations.iter_mut().filter_map(|conversation| conversation["steps"].as_array_mut()) {
        for pause in steps.iter_mut().filter_map(|step| step.get_mut("sleep")) {
            *pause = pause.as_f64().unwrap_or(PAUSE_S).min(PAUSE_S).into();
        }
    }
    conversations
}
