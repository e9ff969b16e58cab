//! Whole requests, in-process.

use std::cell::RefCell;
use std::time::Duration;

use kubeskiff::value::json;

use super::server::{Sent, Server};
use super::{Linear, Target};

/// Each step of a request has its own, and the documents of all that is served are made once.
pub const TARGET: Target = Target {
    name: "requests",
    run,
    steps: Linear { beside: 1 << 24, per_byte: 1_000 },
    allocated_bytes: Linear { beside: 64 << 20, per_byte: 20_000 },
};

/// How long an answer is read: watches have no end.
const ANSWER_WAIT: Duration = Duration::from_millis(200);
const DEFINITION: &[u8] = br#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
    "metadata":{"name":"widgets.example.com"},"spec":{"group":"example.com","scope":"Namespaced",
    "names":{"plural":"widgets","kind":"Widget"},"versions":[{"name":"v1","served":true,"storage":true,
    "subresources":{"status":{},"scale":{"specReplicasPath":".spec.size","statusReplicasPath":".status.size"}},
    "schema":{"openAPIV3Schema":{"type":"object","properties":{"status":{"type":"object",
    "x-kubernetes-preserve-unknown-fields":true},"spec":{"type":"object","properties":{"text":{"type":"string"},
    "size":{"type":"integer","default":1},"any":{"type":"object","x-kubernetes-preserve-unknown-fields":true},
    "items":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],"items":
    {"type":"object","required":["name"],"properties":{"name":{"type":"string"}}}}}}}}}}]}}"#;

/// What Kubernetes itself answers with 500, too.
const OWN_ERRORS: [&str; 4] = [
    "failed to create typed patch object",
    "failed to update managed fields",
    "accessor error",
    "the spec replicas field",
];

thread_local! {
    static SERVER: RefCell<Option<Server>> = const { RefCell::new(None) };
}

/// The input is a method, a path, and perhaps the types of the body and of the answer, a line `---`, and the body. Every
/// request is answered, and with 500 only where Kubernetes does so, too; an answer in JSON is JSON.
fn run(data: &[u8]) {
    let (head, body) = super::parts(data);
    let Ok(head) = str::from_utf8(head) else { return };
    let mut words = head.split_ascii_whitespace();
    let (Some(method), Some(path)) = (words.next(), words.next()) else { return };
    let content_type = words.next().unwrap_or("application/json");
    let accept = words.next().unwrap_or("application/json");
    let start = || Server::start(json::decode(DEFINITION).expect("it is JSON"));
    let answer = SERVER.with_borrow_mut(|server| {
        server.get_or_insert_with(start).send(Sent { method, path, accept, content_type, body }, ANSWER_WAIT)
    });
    let Some((code, body)) = answer else { return };
    let text = String::from_utf8_lossy(&body);
    assert!(code != 500 || OWN_ERRORS.iter().any(|error| text.contains(error)), "{text}");
    if accept == "application/json" && body.starts_with(b"{") {
        assert!(json::decode(&body).is_ok() || path.contains("watch"), "an answer in JSON is JSON");
    }
}
