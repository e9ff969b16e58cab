//! Requests that compute for long: they stop nobody, and they end.

use std::io::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use super::PATIENCE;
use crate::server::{Folder, Server};

const JSON: (&str, &str) = ("Content-Type", "application/json");
const LONG: &str = "/apis/stable.example.com/v1/namespaces/default/longs";
/// More than there are processors on most machines that run tests.
const LONG_REQUESTS: usize = 8;
const SMALL_REQUESTS: usize = 20;
/// What a request may take, in seconds: enough for all the small ones on a busy machine.
const REQUEST_TIMEOUT: &str = "34";

/// A server with a kind whose objects can take minutes to validate.
fn serve_long(folder: &Folder) -> Server {
    let server = Server::start(&folder.0, &["--store", "memory", "--request-timeout", REQUEST_TIMEOUT]);
    let pattern = r"(\pL|x){1000}(\pL|y){1000}!";
    // Each text is looked through so often that no machine is done within the budget of processor time.
    let again: Vec<_> = ('a'..='p').map(|end| json!({"pattern": format!("{pattern}{end}")})).collect();
    let items = json!({"type": "string", "pattern": pattern, "allOf": again});
    let schema = json!({"type": "object", "properties": {"spec": {"type": "array", "items": items}}});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "longs.stable.example.com"},
        "spec": {
            "group": "stable.example.com",
            "scope": "Namespaced",
            "names": {"plural": "longs", "kind": "Long"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    });
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let answer = server.send("POST", path, &[JSON], Some(definition.to_string().as_bytes()));
    assert_eq!(answer.status, 201);
    server
}

/// An object with texts in which the automaton never comes to the same state twice.
fn long_object() -> String {
    let mut letters = 12_345_u64;
    let mut letter = || {
        letters = letters.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ['a', 'x', 'y', 'é', '1'][(letters >> 33) as usize % 5]
    };
    let texts: Vec<String> = (0..10).map(|_| (0..200_000).map(|_| letter()).collect()).collect();
    json!({"apiVersion": "stable.example.com/v1", "kind": "Long", "metadata": {"name": "long"}, "spec": texts})
        .to_string()
}

#[test]
fn long_requests_stop_nobody_and_end_in_time() {
    let folder = Folder::for_test();
    let server = serve_long(&folder);
    let body = long_object();
    let ended = AtomicUsize::new(0);
    thread::scope(|scope| {
        let long: Vec<_> = (0..LONG_REQUESTS)
            .map(|_| {
                scope.spawn(|| {
                    let answer = server.send("POST", LONG, &[JSON], Some(body.as_bytes()));
                    ended.fetch_add(1, Ordering::SeqCst);
                    answer
                })
            })
            .collect();
        eventually(|| at_work(&server) == LONG_REQUESTS);
        for at in 0..SMALL_REQUESTS {
            assert_eq!(server.send("GET", "/livez", &[], None).status, 200);
            let small = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("small-{at}")}});
            let path = "/api/v1/namespaces/default/configmaps";
            assert_eq!(server.send("POST", path, &[JSON], Some(small.to_string().as_bytes())).status, 201);
        }
        assert_eq!(ended.load(Ordering::SeqCst), 0, "the small ones were answered before any of the long ones");
        for long in long {
            let answer = long.join().expect("it does not panic");
            assert_eq!(answer.status, 504);
        }
    });
    eventually(|| at_work(&server) == 0);
}

#[test]
fn work_ends_when_its_client_goes() {
    let folder = Folder::for_test();
    let server = serve_long(&folder);
    let body = long_object();
    let head = format!("POST {LONG} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n");
    let head = format!("{head}Content-Length: {}\r\n\r\n", body.len());
    let mut stream = std::net::TcpStream::connect(server.plain).expect("the server listens");
    stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes())).expect("the server reads");
    eventually(|| at_work(&server) == 1);
    drop(stream);
    // Nothing else ends it, as it has minutes of work and an hour for it.
    eventually(|| at_work(&server) == 0);
    assert!(!figures(&server, "request_terminations_total").contains("504"), "its time is not over");
}

fn eventually(holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "it does not come to that");
        thread::sleep(Duration::from_millis(5));
    }
}

/// How many requests that may change something are at work.
fn at_work(server: &Server) -> usize {
    let lines = figures(server, "inflight_requests");
    let line = lines.lines().find(|line| line.contains("mutating"));
    line.and_then(|line| line.rsplit(' ').next()).and_then(|count| count.parse().ok()).expect("it has a figure")
}

/// The lines of `/metrics` with a word.
fn figures(server: &Server, word: &str) -> String {
    let answer = server.send("GET", "/metrics", &[], None);
    let text = String::from_utf8(answer.body).expect("figures are text");
    text.lines().filter(|line| line.contains(word)).collect::<Vec<_>>().join("\n")
}
