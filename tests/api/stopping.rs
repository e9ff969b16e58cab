//! SIGTERM: whatever clients do, it ends the server, and takes nothing that was acknowledged.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use http_body_util::{BodyExt as _, Empty};
use hyper::body::Bytes;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::json;

use super::webhooks::{Hook, register, respond};
use super::{CRONTABS, crontab, serve_crontabs};
use crate::server::{Folder, Server};

const WAIT_MAX: Duration = Duration::from_secs(60);
/// What an end may take on a busy machine; it takes half a second.
const END_MAX: Duration = Duration::from_secs(5);
const WATCHES: usize = 2000;
const WATCHES_PER_CONNECTION: usize = 500;
const UPLOADS: usize = 50;
/// Takes many times longer than an end: half a million letters against a thousand states.
const PATTERN: &str = r"(\pL|x){1000}(\pL|y){1000}!";

/// An upload that has begun and goes no further.
fn stalled_upload(server: &Server) -> TcpStream {
    let mut stream = TcpStream::connect(server.plain).expect("the server listens");
    stream.set_read_timeout(Some(WAIT_MAX)).expect("a time-out is not zero");
    let head = format!(
        "POST {CRONTABS} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{{"
    );
    stream.write_all(head.as_bytes()).expect("the server reads");
    stream
}

/// Watches, many on a connection, until the server ends them; returns how many there were.
async fn watch(address: std::net::SocketAddr) -> usize {
    let stream = tokio::net::TcpStream::connect(address).await.expect("the server listens");
    let (client, connection) =
        http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.expect("it speaks HTTP/2");
    tokio::spawn(connection);
    let mut watches = Vec::new();
    for _ in 0..WATCHES_PER_CONNECTION {
        let request = hyper::Request::get(format!("http://localhost{CRONTABS}?watch=1")).body(Empty::<Bytes>::new());
        let answer = client.clone().send_request(request.expect("it is well formed")).await.expect("it is answered");
        assert_eq!(answer.status(), 200);
        watches.push(tokio::spawn(answer.into_body().collect()));
    }
    let count = watches.len();
    tokio::spawn(async move {
        let _client = client;
        for watch in watches {
            _ = watch.await;
        }
    });
    count
}

/// A request that computes for as long as it may.
fn compute(server: &Server) -> TcpStream {
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "slow.example.com"},
        "spec": {
            "group": "example.com", "scope": "Cluster",
            "names": {"plural": "slow", "singular": "slow", "kind": "Slow", "listKind": "SlowList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"text": {"type": "string", "pattern": PATTERN}},
            }}}],
        },
    });
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let json = [("Content-Type", "application/json")];
    assert_eq!(server.send("POST", path, &json, Some(definition.to_string().as_bytes())).status, 201);
    super::wait_for(server, "/apis/example.com/v1/slow", |answer| answer.status == 200);
    let object = json!({"apiVersion": "example.com/v1", "kind": "Slow", "metadata": {"name": "a"},
                        "text": "xy".repeat(200_000)});
    server.open("POST", "/apis/example.com/v1/slow", &json, Some(object.to_string().as_bytes()), WAIT_MAX)
}

#[test]
fn a_server_ends_at_once_whatever_is_under_way_and_keeps_what_it_acknowledged() {
    let hook = Hook::new([(
        "/hang",
        respond(|_| {
            std::thread::sleep(Duration::from_secs(20));
            json!({"allowed": true})
        }),
    )]);
    let folder = Folder::for_test();
    let server = serve_crontabs(&folder, &[]);
    let runtime = tokio::runtime::Runtime::new().expect("threads can be made");
    let watches: usize = runtime.block_on(async {
        let mut count = 0;
        for _ in 0..WATCHES / WATCHES_PER_CONNECTION {
            count += watch(server.plain).await;
        }
        count
    });
    assert_eq!(watches, WATCHES);
    let _uploads: Vec<_> = (0..UPLOADS).map(|_| stalled_upload(&server)).collect();
    let mut hanging = hook.webhook("w.example.com", "/hang");
    hanging["rules"][0]["operations"] = json!(["DELETE"]);
    register(&server, "Validating", "hanging", vec![hanging]);
    let json = [("Content-Type", "application/json")];
    let body = crontab("kept").to_string();
    assert_eq!(server.send("POST", CRONTABS, &json, Some(body.as_bytes())).status, 201);
    let _hanging: Vec<_> =
        (0..5).map(|_| server.open("DELETE", &format!("{CRONTABS}/kept"), &[], None, WAIT_MAX)).collect();
    let _computing = compute(&server);

    let stop = AtomicBool::new(false);
    let (acknowledged, took) = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut acknowledged = Vec::new();
            for at in 0.. {
                let (name, mut bytes) = (format!("written-{at}"), Vec::new());
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                let Ok(mut stream) = TcpStream::connect(server.plain) else { break };
                let body = crontab(&name).to_string();
                let head = format!(
                    "POST {CRONTABS} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
                     Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
                    body.len()
                );
                _ = stream.write_all(head.as_bytes()).and_then(|()| stream.read_to_end(&mut bytes).map(drop));
                if bytes.starts_with(b"HTTP/1.1 201") {
                    acknowledged.push(name);
                }
            }
            acknowledged
        });
        std::thread::sleep(Duration::from_millis(300));
        let told = Instant::now();
        server.signal("TERM");
        while TcpStream::connect(server.plain).is_ok() && told.elapsed() < WAIT_MAX {
            std::thread::sleep(Duration::from_millis(5));
        }
        stop.store(true, Ordering::Relaxed);
        (writer.join().expect("it does not panic"), told)
    });
    let (code, stderr) = server.end();
    let took = took.elapsed();
    println!("it ended in {took:?}, with {} writes acknowledged", acknowledged.len());
    assert_eq!(code, Some(0), "{stderr}");
    assert!(took < END_MAX, "it took {took:?}");

    let server = Server::start(&folder.0, &[]);
    for name in acknowledged.iter().map(String::as_str).chain(["kept"]) {
        assert_eq!(server.send("GET", &format!("{CRONTABS}/{name}"), &[], None).status, 200, "{name}");
    }
}

#[test]
fn a_second_signal_ends_at_once() {
    let folder = Folder::for_test();
    let server = serve_crontabs(&folder, &["--store", "memory"]);
    let _upload = stalled_upload(&server);
    assert_eq!(server.send("GET", "/livez", &[], None).status, 200);
    server.signal("TERM");
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(server.terminate().0, Some(1));
}
