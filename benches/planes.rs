//! What control planes beside the main one cost: how long a fork takes, and what it and a thousand of them hold of memory.
//!
//!     cargo bench --bench planes
//!     SKIFF_BENCH_PLANES=100 cargo bench --bench planes      fewer of them
//!
//! Times are those of a client on a connection that is open already, and contain the request and its answer. Memory is what
//! the process has for itself (`RssAnon`), as Linux tells it.

#[path = "../tests/planes/server.rs"]
#[expect(dead_code, reason = "the tests do more with it")]
mod server;

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::{Value, json};

use server::{Plane, Server};

const DEFINITIONS: usize = 200;
const OBJECTS: usize = 2_000;
const FORKS: usize = 50;
const SIDE_BY_SIDE: usize = 100;
const MANY: usize = 1_000;

#[tokio::main]
async fn main() {
    let many = std::env::var("SKIFF_BENCH_PLANES").ok().and_then(|text| text.parse().ok()).unwrap_or(MANY);
    let server = Server::start(&[]).await;
    fill(&server.main).await;
    say("the process with 200 definitions and 2,000 objects", &format!("{} KiB", server.memory_kib()));

    // The first compiles what nobody has asked for yet.
    let (first, took) = timed(&server).await;
    say("the first fork", &format!("{took:?}"));
    server.delete(&first).await;

    // The allocator keeps for a while what requests have freed: later forks find that, and show what each holds by itself.
    for wave in ["first", "second"] {
        self::wave(&server, wave).await;
    }

    let begun = Instant::now();
    join_all((0..SIDE_BY_SIDE).map(async |at| {
        let fork = server.fork(&server.main).await;
        fork.put_map(&format!("m-{at}"), "1").await;
        fork.get("/apis/example.com/v1/namespaces/default/kind7s").await;
        server.delete(&fork).await;
    }))
    .await;
    say("100 side by side: forked, written to, read, deleted", &format!("{:?}", begun.elapsed()));

    let begun = Instant::now();
    for _ in 0..many {
        create(&server, json!({ "from": "main" })).await;
    }
    say(&format!("{many} forks, one after the other"), &format!("{:?}", begun.elapsed()));
    say(&format!("the process with {many} forks"), &format!("{} KiB", server.memory_kib()));
}

/// Forks, each asked, written to and deleted: how long each takes, and by how much the process has grown for it.
async fn wave(server: &Server, wave: &str) {
    let say = |what: &str, figure: &str| say(&format!("{wave} {FORKS}: {what}"), figure);
    let before = server.memory_kib();
    let (mut times, mut forks) = (Vec::new(), Vec::new());
    for _ in 0..FORKS {
        let (fork, took) = timed(server).await;
        times.push(took);
        forks.push(fork);
    }
    times.sort();
    say("a fork, p50 and p99", &format!("{:?} {:?}", times[FORKS / 2], times[FORKS * 99 / 100]));
    say("what a fork holds", &each(server, before, FORKS));
    for fork in &forks {
        fork.get("/api/v1/namespaces").await;
    }
    say("what it holds once it was asked", &each(server, before, FORKS));
    for fork in &forks {
        fork.put_map("a", "1").await;
    }
    say("what it holds once it was written to", &each(server, before, FORKS));
    join_all(forks.iter().map(|fork| server.delete(fork))).await;
    say("what is left of each that is deleted", &each(server, before, FORKS));
}

/// A fork, and how long its client waited for it.
async fn timed(server: &Server) -> (Plane, Duration) {
    let begun = Instant::now();
    let made = create(server, json!({ "from": "main" })).await;
    let took = begun.elapsed();
    let text = |name: &str| made[name].as_str().unwrap_or_default().to_owned();
    (Plane::new(&text("name"), text("kubeconfig")).await, took)
}

async fn create(server: &Server, wanted: Value) -> Value {
    server.main.post("/skiff/v1/planes", wanted).await
}

/// By how much the process has grown since `before`, for each of `count`.
fn each(server: &Server, before: u64, count: usize) -> String {
    let grown = server.memory_kib().saturating_sub(before);
    format!("{:.1} KiB", grown as f64 / count as f64)
}

/// Definitions as operators have them, and objects of ten of them.
async fn fill(plane: &Plane) {
    for at in 0..DEFINITIONS {
        let text = json!({ "type": "string", "maxLength": 63, "pattern": "^[a-z0-9-]*$" });
        let number = json!({ "type": "integer", "minimum": 0, "default": 1 });
        let list =
            json!({ "type": "array", "maxItems": 64, "items": { "type": "object", "properties": { "name": text } } });
        let spec = json!({ "type": "object", "properties": { "text": text, "number": number, "list": list } });
        let spec = with(spec, json!([{ "rule": "self.number >= 0", "message": "too small" }]));
        let schema = json!({ "openAPIV3Schema": { "type": "object", "properties": { "spec": spec } } });
        let definition = json!({
            "metadata": { "name": format!("kind{at}s.example.com") },
            "spec": {
                "group": "example.com", "scope": "Namespaced",
                "names": { "plural": format!("kind{at}s"), "kind": format!("Kind{at}") },
                "versions": [{ "name": "v1", "served": true, "storage": true, "schema": schema }],
            },
        });
        plane.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).await;
    }
    for at in 0..OBJECTS {
        let kind = at % 10;
        let object = json!({
            "apiVersion": "example.com/v1", "kind": format!("Kind{kind}"), "metadata": { "name": format!("o-{at}") },
            "spec": { "text": "text", "number": at, "list": [{ "name": "a" }, { "name": "b" }] },
        });
        plane.post(&format!("/apis/example.com/v1/namespaces/default/kind{kind}s"), object).await;
    }
}

fn with(mut schema: Value, rules: Value) -> Value {
    schema["x-kubernetes-validations"] = rules;
    schema
}

fn say(what: &str, figure: &str) {
    println!("{what:<58} {figure}");
}
