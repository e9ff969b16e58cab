//! How much memory a server takes that has a limit, under more than fits into it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::Body;
use hyper::Request;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::json;

use super::limits::{SHIPS, send, serve_ships, ship};
use crate::server::{Folder, Server};

const LIMIT_BYTES: usize = 96 << 20;
/// Of one connection, as client-go opens them.
const STREAMS: usize = 1000;
const CLIENTS: usize = 200;
const BODY_BYTES: usize = 3 << 20;
/// What the server may answer to a body: it was taken, or it was too much at once.
const ANSWERS: [u16; 2] = [201, 429];

/// What the process has for itself, in bytes, at the most; looked at all the time.
struct Peak {
    bytes: Arc<AtomicUsize>,
    ended: Arc<AtomicBool>,
}

impl Peak {
    fn of(server: &Server) -> Peak {
        let peak = Peak { bytes: Arc::default(), ended: Arc::default() };
        let (bytes, ended, path) =
            (Arc::clone(&peak.bytes), Arc::clone(&peak.ended), format!("/proc/{}/status", server.id()));
        std::thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                let status = std::fs::read_to_string(&path).unwrap_or_default();
                let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap_or_default();
                let kib: usize = line.trim().trim_end_matches(" kB").parse().unwrap_or_default();
                bytes.fetch_max(kib << 10, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        peak
    }

    fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}

impl Drop for Peak {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

/// How much the process has for itself now, in bytes.
fn own_bytes(server: &Server) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap_or_default();
    let kib: usize = line.trim().trim_end_matches(" kB").parse().unwrap_or_default();
    kib << 10
}

fn eventually(holds: impl Fn() -> bool) {
    let begun = std::time::Instant::now();
    while !holds() {
        assert!(begun.elapsed() < super::PATIENCE, "it does not come to that");
        std::thread::sleep(Duration::from_millis(20));
    }
}

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const TEXT_BYTES: usize = 900_000;

fn config_map(name: &str) -> serde_json::Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"text": "x".repeat(TEXT_BYTES)}})
}

#[test]
fn a_database_in_memory_refuses_what_exceeds_its_part_of_the_limit() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory", "--memory-limit", "96Mi"]);
    let peak = Peak::of(&server);
    let made = |at: usize| send(&server, "POST", CONFIG_MAPS, &config_map(&format!("map-{at}")));
    let mut stored = 0;
    let refused = loop {
        let answer = made(stored);
        if answer.status != 201 {
            break answer;
        }
        stored += 1;
        assert!(stored < 300, "all of them are stored");
    };
    let told = refused.json();
    let expected = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "etcdserver: mvcc: database space exceeded", "code": 500});
    assert_eq!(told, expected);
    assert!(stored * TEXT_BYTES > LIMIT_BYTES / 4, "{stored} are stored");
    // Reads and deletions go on, and make room.
    assert_eq!(server.send("GET", &format!("{CONFIG_MAPS}/map-0"), &[], None).status, 200);
    for at in 0..2 {
        assert_eq!(server.send("DELETE", &format!("{CONFIG_MAPS}/map-{at}"), &[], None).status, 200);
    }
    assert_eq!(made(0).status, 201);
    assert_eq!(server.send("GET", "/readyz", &[], None).status, 200);
    assert!(peak.bytes() < LIMIT_BYTES, "{} MiB", peak.bytes() >> 20);
}

#[test]
fn a_list_of_a_built_in_kind_is_never_in_memory_as_a_whole() {
    const COUNT: usize = 60;
    const LIST_LIMIT_BYTES: usize = 160 << 20;
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--durability", "relaxed", "--memory-limit", "160Mi"]);
    for at in 0..COUNT {
        assert_eq!(send(&server, "POST", CONFIG_MAPS, &config_map(&format!("map-{at:03}"))).status, 201);
    }
    let peak = Peak::of(&server);
    let answer = server.send("GET", CONFIG_MAPS, &[], None);
    assert_eq!(answer.status, 200);
    assert!(answer.body.starts_with(br#"{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":""#));
    let list = answer.json();
    let items = list["items"].as_array().expect("it has items");
    // The first is kube-root-ca.crt.
    assert_eq!((items.len(), items[8]["metadata"]["name"].as_str()), (COUNT + 1, Some("map-007")));
    assert_eq!((items[8].get("kind"), items[8]["data"]["text"].as_str().map(str::len)), (None, Some(TEXT_BYTES)));
    assert!(peak.bytes() < LIST_LIMIT_BYTES, "{} MiB", peak.bytes() >> 20);
    // What has to be made as a whole, and could not be held, is refused at once.
    let yaml = server.send("GET", CONFIG_MAPS, &[("Accept", "application/yaml")], None);
    assert_eq!(yaml.status, 429);
    assert!(peak.bytes() < LIST_LIMIT_BYTES, "{} MiB", peak.bytes() >> 20);
}

#[test]
fn what_deleted_definitions_took_is_given_back() {
    const COUNT: usize = 60;
    /// Were what they compile to kept, each would leave half a megabyte.
    const LEFT_BYTES_MAX: usize = COUNT * (250 << 10);
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--memory-limit", "512Mi"]);
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let definition = |at: usize| {
        let property = |at: usize| (format!("field-{at}"), json!({"type": "string", "description": "x".repeat(30)}));
        let properties: serde_json::Map<_, _> = (0..1_000).map(property).collect();
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("things{at}.example.com")},
            "spec": {
                "group": "example.com", "scope": "Cluster",
                "names": {"plural": format!("things{at}"), "kind": format!("Thing{at}")},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                    "type": "object", "properties": {"spec": {"type": "object", "properties": properties}},
                }}}],
            },
        })
    };
    let round = |from: usize| {
        for at in from..from + COUNT {
            assert_eq!(send(&server, "POST", definitions, &definition(at)).status, 201);
            eventually(|| server.send("GET", &format!("/apis/example.com/v1/things{at}"), &[], None).status == 200);
        }
        for at in from..from + COUNT {
            assert_eq!(server.send("DELETE", &format!("{definitions}/things{at}.example.com"), &[], None).status, 200);
        }
        eventually(|| {
            let left = server.send("GET", definitions, &[], None).json();
            left["items"].as_array().is_some_and(Vec::is_empty)
        });
    };
    // The first round finds what the process takes for such work in any case.
    round(0);
    let before = own_bytes(&server);
    round(COUNT);
    let left = own_bytes(&server).saturating_sub(before);
    assert!(left < LEFT_BYTES_MAX, "{} KiB are left", left >> 10);
}

/// Watches whose events nobody reads, on two connections.
async fn watch_slowly(server: &Server) -> Vec<hyper::Response<hyper::body::Incoming>> {
    let mut watches = Vec::new();
    for _ in 0..2 {
        let stream = tokio::net::TcpStream::connect(server.plain).await.expect("the server listens");
        let mut builder = http2::Builder::new(TokioExecutor::new());
        // As client-go has it: the connection is no bound to its streams.
        builder.initial_stream_window_size(4 << 20).initial_connection_window_size(1 << 30);
        let (mut client, connection) = builder.handshake(TokioIo::new(stream)).await.expect("it is HTTP/2");
        tokio::spawn(connection);
        for _ in 0..STREAMS {
            let request = Request::get(format!("http://localhost{SHIPS}?watch=1")).body(Body::empty());
            let answer = client.send_request(request.expect("it is a request")).await.expect("it is answered");
            assert_eq!(answer.status(), 200);
            watches.push(answer);
        }
    }
    watches
}

#[test]
fn the_limit_holds_under_large_bodies_lists_and_slow_watches() {
    let folder = Folder::for_test();
    let server = serve_ships(&folder, &["--memory-limit", "96Mi"]);
    for at in 0..10 {
        let mut ship = ship(&format!("ship-{at}"));
        ship["hold"]["cargo"] = json!("x".repeat(1 << 20));
        assert_eq!(send(&server, "POST", SHIPS, &ship).status, 201);
    }
    let peak = Peak::of(&server);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("there is a runtime");
    // Nothing drives their connections from here on: nobody reads.
    let watches = runtime.block_on(watch_slowly(&server));
    let after_watches = peak.bytes();
    let body = |at: usize| {
        let mut ship = ship(&format!("barge-{at}"));
        ship["hold"] =
            json!((0..1000).map(|at| (at.to_string(), json!("x".repeat(2900)))).collect::<serde_json::Map<_, _>>());
        ship.to_string()
    };
    assert!(body(0).len() < BODY_BYTES);
    std::thread::scope(|scope| {
        for at in 0..CLIENTS {
            let (server, body) = (&server, body(at));
            scope.spawn(move || {
                let json = [("Content-Type", "application/json")];
                // What is watched stays in memory, so it is not stored.
                let path = format!("{SHIPS}?dryRun=All");
                let status = server.send("POST", &path, &json, Some(body.as_bytes())).status;
                assert!(ANSWERS.contains(&status), "{status}");
                if at % 20 == 0 {
                    _ = server.send("GET", SHIPS, &[], None);
                }
            });
        }
    });
    drop(watches);
    let mib = |bytes: usize| bytes >> 20;
    println!("{} MiB with the watches, {} MiB at the most", mib(after_watches), mib(peak.bytes()));
    assert!(peak.bytes() < LIMIT_BYTES, "{} MiB", mib(peak.bytes()));
}
