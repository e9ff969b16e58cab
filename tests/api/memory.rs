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
