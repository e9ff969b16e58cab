//! Frames of HTTP/2 that ask for nothing, as many as a client can send: each such flood ends its own connection, and soon.
//!
//! What holds them is the h2 crate; this holds that the program uses a version and limits that do.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::thread;

use super::memory::{LIMIT_BYTES, Peak};
use crate::server::{Folder, Server};

/// What a flood may send until its connection ends: what the system and the server have taken before they look.
const SENT_BYTES_MAX: usize = 32 << 20;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;

const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("it is short").to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Headers without compression, of fewer than 127 bytes each.
fn request(method: &str, path: &str) -> Vec<u8> {
    let text = |text: &str| [&[u8::try_from(text.len()).expect("it is short")], text.as_bytes()].concat();
    let fields = [(":method", method), (":scheme", "http"), (":authority", "localhost"), (":path", path)];
    fields.iter().flat_map(|(name, value)| [vec![0], text(name), text(value)].concat()).collect()
}

/// Whether a request made of the same frames is answered, so that a flood is not ended for its form.
fn is_answered(server: &Server) -> bool {
    let mut connection = TcpStream::connect(server.plain).expect("it listens");
    let asked = frame(HEADERS, END_HEADERS | END_STREAM, 1, &request("GET", "/livez"));
    let sent = [PREFACE.to_vec(), frame(SETTINGS, 0, 0, &[]), asked].concat();
    connection.write_all(&sent).expect("it is taken");
    loop {
        let mut head = [0; 9];
        if connection.read_exact(&mut head).is_err() {
            return false;
        }
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        connection.read_exact(&mut vec![0; length]).expect("the frame is whole");
        if head[3] == HEADERS {
            return head[8] == 1;
        }
    }
}

/// Sends what `next` makes, for 0 and what follows, until the connection ends.
fn flood(server: &Server, next: impl Fn(u32) -> Vec<u8>) {
    let mut connection = TcpStream::connect(server.plain).expect("it listens");
    let mut answers = connection.try_clone().expect("the system has descriptors");
    // Whoever reads nothing is another case.
    let reading = thread::spawn(move || while answers.read(&mut [0; 4096]).is_ok_and(|read| read > 0) {});
    let mut sent = 0;
    let preface = [PREFACE.to_vec(), frame(SETTINGS, 0, 0, &[])].concat();
    for part in std::iter::once(preface).chain((0..).map(next)) {
        sent += part.len();
        if connection.write_all(&part).is_err() {
            break;
        }
        assert!(sent < SENT_BYTES_MAX, "it takes {sent} bytes, and more");
    }
    drop(connection);
    reading.join().expect("it does not panic");
}

#[test]
fn floods_of_frames_end_their_connection() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory"]);
    const LIST: &str = "/api/v1/namespaces";
    assert!(is_answered(&server));
    let begun = |place: u32, method: &str, then: Vec<u8>| match place {
        0 => frame(HEADERS, if method == "GET" { 0 } else { END_HEADERS }, 1, &request(method, LIST)),
        _ => then.repeat(100),
    };
    // One field of 16,000 bytes.
    let long = [&[0, 1, b'a', 127, 0x81, 0x7c][..], &[b'b'; 16_000]].concat();
    let streams = |place: u32, of: &dyn Fn(u32) -> Vec<u8>| {
        (0..100).flat_map(|number| of(2 * (place * 100 + number) + 1)).collect::<Vec<u8>>()
    };
    flood(&server, |place| begun(place, "GET", frame(CONTINUATION, 0, 1, &long)));
    flood(&server, |place| begun(place, "GET", frame(CONTINUATION, 0, 1, &[])));
    // A field of the static table, again and again.
    flood(&server, |place| begun(place, "GET", frame(CONTINUATION, 0, 1, &[0x90])));
    flood(&server, |place| begun(place, "POST", frame(DATA, 0, 1, &[])));
    flood(&server, |place| begun(place, "POST", frame(DATA, PADDED, 1, &[&[255], &[0; 255][..]].concat())));
    let get = request("GET", LIST);
    let cancelled = |stream: u32| {
        [frame(HEADERS, END_HEADERS | END_STREAM, stream, &get), frame(RESET, 0, stream, &8u32.to_be_bytes())].concat()
    };
    flood(&server, |place| streams(place, &cancelled));
    // The server is made to reset them.
    let post = request("POST", LIST);
    let faulty = |stream: u32| {
        [frame(HEADERS, END_HEADERS, stream, &post), frame(WINDOW_UPDATE, 0, stream, &0u32.to_be_bytes())].concat()
    };
    flood(&server, |place| streams(place, &faulty));
    assert_eq!(server.send("GET", LIST, &[], None).status, 200);
}

#[test]
fn header_fields_of_a_byte_each_take_little_memory() {
    const STREAMS: u32 = 400;
    const FIELDS: usize = 16_000;
    /// The first entry of the dynamic table.
    const FIRST_INDEX: u8 = 0x80 | 62;
    /// A field that is added to that table, its name and its value.
    const ADDED: &[u8] = b"\x40\x01z\x00";
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--memory-limit", "96Mi"]);
    let peak = Peak::of(&server);
    let mut connection = TcpStream::connect(server.plain).expect("it listens");
    connection.write_all(&[PREFACE.to_vec(), frame(SETTINGS, 0, 0, &[])].concat()).expect("it is taken");
    for at in 0..STREAMS {
        let added = if at == 0 { ADDED } else { &[] };
        let fields = [&request("GET", "/api"), added, &[FIRST_INDEX].repeat(FIELDS)].concat();
        // The server may end it.
        if connection.write_all(&frame(HEADERS, END_HEADERS | END_STREAM, 2 * at + 1, &fields)).is_err() {
            break;
        }
    }
    assert!(is_answered(&server));
    assert!(peak.bytes() < LIMIT_BYTES, "{} MiB", peak.bytes() >> 20);
}
