//! Watches as their clients have them: over a WebSocket, hundreds on one connection, beside one that does not read.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use http_body_util::{BodyExt as _, Empty};
use hyper::body::Bytes;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};

use super::{CRONTABS, crontab, serve_crontabs};
use crate::server::{Answer, Folder, Server};

const JSON: (&str, &str) = ("Content-Type", "application/json");
const WAIT_MAX: Duration = Duration::from_secs(60);

fn create(server: &Server, object: &Value) -> Value {
    let created = server.send("POST", CRONTABS, &[JSON], Some(object.to_string().as_bytes()));
    assert_eq!(created.status, 201, "{}", String::from_utf8_lossy(&created.body));
    created.json()
}

/// A WebSocket's client, as bare as can be.
struct Socket(BufReader<TcpStream>);

impl Socket {
    /// Shakes hands; `headers` beside those that every handshake has. Returns the head of the answer, too.
    fn open(server: &Server, path: &str, headers: &str) -> (Socket, String) {
        let mut stream = TcpStream::connect(server.plain).expect("the server listens");
        stream.set_read_timeout(Some(WAIT_MAX)).expect("a time-out is not zero");
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n{headers}\r\n"
        );
        stream.write_all(request.as_bytes()).expect("the server reads");
        let mut stream = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") && stream.read_line(&mut head).is_ok_and(|count| count > 0) {}
        (Socket(stream), head)
    }

    /// The opcode and the content of the next frame.
    fn frame(&mut self) -> (u8, Vec<u8>) {
        let mut head = [0; 2];
        self.0.read_exact(&mut head).expect("a frame follows");
        assert_eq!(head[0] & 0x80, 0x80, "it is whole");
        let length = match head[1] {
            126 => {
                let mut length = [0; 2];
                self.0.read_exact(&mut length).expect("its length follows");
                u16::from_be_bytes(length).into()
            }
            short => usize::from(short),
        };
        let mut content = vec![0; length];
        self.0.read_exact(&mut content).expect("its content follows");
        (head[0] & 0x0f, content)
    }
}

const KEY: &str = "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

#[test]
fn a_websocket_has_a_text_frame_for_each_event() {
    let folder = Folder::for_test();
    let server = serve_crontabs(&folder, &["--store", "memory"]);
    create(&server, &crontab("nightly"));
    let path = format!("{CRONTABS}?watch=1&timeoutSeconds=3");
    let headers = format!("{KEY}Origin: http://localhost\r\nSec-WebSocket-Protocol: base64.binary.k8s.io\r\n");
    let (mut socket, head) = Socket::open(&server, &path, &headers);
    let head = head.to_ascii_lowercase();
    assert!(head.starts_with("http/1.1 101 "), "{head}");
    // Of RFC 6455, section 1.3.
    assert!(head.contains("sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo="), "{head}");
    assert!(head.contains("sec-websocket-protocol: base64.binary.k8s.io\r\n"), "{head}");
    create(&server, &crontab("hourly"));

    for name in ["nightly", "hourly"] {
        let (opcode, content) = socket.frame();
        let event: Value = serde_json::from_slice(&content).expect("a frame is an event");
        assert_eq!((opcode, &event["type"], &event["object"]["metadata"]["name"]), (1, &json!("ADDED"), &json!(name)));
    }
    let (opcode, _) = socket.frame();
    assert_eq!(opcode, 8, "the end of the watch closes the socket");
}

#[test]
fn a_bad_handshake_is_refused_in_the_words_of_the_reference() {
    let folder = Folder::for_test();
    let server = serve_crontabs(&folder, &["--store", "memory"]);
    let path = format!("{CRONTABS}?watch=1");
    let status = |path: &str, headers: &str| {
        Socket::open(&server, path, headers).1.lines().next().unwrap_or_default().to_owned()
    };
    assert!(status(&path, "").starts_with("HTTP/1.1 400 "));
    let (_, head) = Socket::open(&server, &path, "Sec-WebSocket-Version: 8\r\nSec-WebSocket-Key: YQ==\r\n");
    assert!(head.starts_with("HTTP/1.1 400 ") && head.contains("sec-websocket-version: 13"), "{head}");
    assert!(status(&path, &format!("{KEY}Sec-WebSocket-Protocol: a, b\r\n")).starts_with("HTTP/1.1 400 "));
    // What is not a watch is answered as ever, and so is a watch that is refused.
    assert!(status(CRONTABS, KEY).starts_with("HTTP/1.1 200 "));
    assert!(status(&format!("{path}&resourceVersionMatch=Exact"), KEY).starts_with("HTTP/1.1 422 "));
}

#[test]
fn hundreds_of_watches_on_one_connection_may_be_cancelled_at_once() {
    const WATCHES: usize = 400;
    let folder = Folder::for_test();
    let server = serve_crontabs(&folder, &["--store", "memory"]);
    create(&server, &crontab("nightly"));
    let runtime = tokio::runtime::Runtime::new().expect("there are threads");
    runtime.block_on(async {
        let stream = tokio::net::TcpStream::connect(server.plain).await.expect("the server listens");
        let (mut sender, connection) =
            http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.expect("it speaks HTTP/2");
        let connection = tokio::spawn(connection);
        let request = |path: &str| {
            let uri = format!("http://localhost{path}");
            hyper::Request::get(uri).body(Empty::<Bytes>::new()).expect("it is a request")
        };
        for _ in 0..3 {
            let mut watches = Vec::new();
            for _ in 0..WATCHES {
                watches.push(sender.send_request(request(&format!("{CRONTABS}?watch=1"))));
            }
            let mut bodies = Vec::new();
            for watch in watches {
                bodies.push(watch.await.expect("the watch opens").into_body());
            }
            for body in &mut bodies {
                body.frame().await.expect("there is an event").expect("it arrives");
            }
            // Dropped, each of them is reset.
        }
        let answer = sender.send_request(request(CRONTABS)).await.expect("the connection lives on");
        assert_eq!(answer.status(), 200);
        assert!(!connection.is_finished());
    });
}

#[test]
fn a_list_that_is_streamed_may_be_compressed() {
    let folder = Folder::for_test();
    let server = serve_crontabs(&folder, &["--store", "memory"]);
    create(&server, &crontab("nightly"));
    let gzip = [("Accept-Encoding", "gzip")];
    let query = "watch=1&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    let plain = server.send("GET", &format!("{CRONTABS}?{query}"), &gzip, None);
    assert_eq!(plain.header("content-encoding"), "");
    let packed = server.send("GET", &format!("{CRONTABS}?{query}&allowWatchBookmarks=true"), &gzip, None);
    assert_eq!((packed.header("content-encoding"), packed.header("vary")), ("gzip", "Accept-Encoding"));
    let mut text = String::new();
    flate2::read::MultiGzDecoder::new(packed.body.as_slice()).read_to_string(&mut text).expect("it is gzip");
    let types: Vec<Value> =
        text.lines().map(|line| serde_json::from_str::<Value>(line).expect("it is an event")).collect();
    let types: Vec<_> = types.iter().map(|event| event["type"].as_str().unwrap_or_default()).collect();
    assert_eq!(types, ["ADDED", "BOOKMARK"]);
}

#[test]
fn a_list_that_is_streamed_is_compressed_since_1_37_unless_the_gate_is_closed() {
    let query =
        "watch=1&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    for arguments in [["--emulated-version", "1.36"], ["--feature-gates", "WatchListCompression=false"]] {
        let folder = Folder::for_test();
        let server = serve_crontabs(&folder, &[&["--store", "memory"][..], &arguments].concat());
        let plain = server.send("GET", &format!("{CRONTABS}?{query}"), &[("Accept-Encoding", "gzip")], None);
        assert_eq!((plain.status, plain.header("content-encoding")), (200, ""), "{arguments:?}");
    }
}

/// The text of a stream in chunks, which may end within an event.
fn chunks(stream: TcpStream) -> impl Iterator<Item = Vec<u8>> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        reader.read_line(&mut line).expect("there is a head");
    }
    std::iter::from_fn(move || {
        let mut line = String::new();
        reader.read_line(&mut line).expect("the stream goes on");
        let length = usize::from_str_radix(line.trim(), 16).ok().filter(|length| *length > 0)?;
        let mut chunk = vec![0; length + 2];
        reader.read_exact(&mut chunk).expect("the chunk is whole");
        chunk.truncate(length);
        Some(chunk)
    })
}

/// The revisions of the events of a watch, as far as `count` of them.
fn revisions(watch: TcpStream, count: usize) -> Vec<u64> {
    let (mut revisions, mut text) = (Vec::new(), Vec::new());
    for chunk in chunks(watch) {
        text.extend(chunk);
        while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
            let event: Value = serde_json::from_slice(&text[..end]).expect("it is an event");
            text.drain(..=end);
            let revision = event["object"]["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok());
            revisions.push(revision.expect("an event has a revision"));
        }
        if revisions.len() >= count {
            break;
        }
    }
    revisions
}

#[test]
fn each_watch_has_every_change_once_beside_one_that_does_not_read() {
    const WATCHES: usize = 20;
    const WRITES: usize = 300;
    let folder = Folder::for_test();
    let server = serve_crontabs(&folder, &["--store", "memory"]);
    let path = format!("{CRONTABS}?watch=1&resourceVersion=0");
    let open = || server.open("GET", &path, &[], None, WAIT_MAX);
    // More than the buffers between here and there hold.
    let image = "x".repeat(20_000);
    let stalled = open();
    std::thread::scope(|scope| {
        let watches: Vec<_> = (0..WATCHES).map(|_| open()).collect();
        let readers: Vec<_> = watches.into_iter().map(|watch| scope.spawn(move || revisions(watch, WRITES))).collect();
        let mut written = Vec::new();
        for at in 0..WRITES {
            let mut object = crontab(&format!("c-{at}"));
            object["spec"]["image"] = json!(image);
            let created = create(&server, &object);
            let revision = created["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse::<u64>().ok());
            written.push(revision.expect("what is created has a revision"));
        }
        for reader in readers {
            let seen = reader.join().expect("no reader panics");
            assert!(seen == written, "a watch saw {} of {} changes, or in another order", seen.len(), written.len());
        }
    });
    drop(stalled);
}

#[test]
fn a_body_that_breaks_off_is_no_word_of_a_library() {
    let folder = Folder::for_test();
    let server = serve_crontabs(&folder, &["--store", "memory"]);
    let mut stream = TcpStream::connect(server.plain).expect("the server listens");
    stream.set_read_timeout(Some(WAIT_MAX)).expect("a time-out is not zero");
    let request = format!(
        "POST {CRONTABS} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"
    );
    stream.write_all(request.as_bytes()).expect("the server reads");
    let mut bytes = Vec::new();
    _ = stream.read_to_end(&mut bytes);
    if let Some(answer) = Answer::parse(&bytes) {
        assert_eq!((answer.status, &answer.json()["message"]), (500, &json!("unexpected EOF")));
    }
}
