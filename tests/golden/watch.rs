//! What a client sees of a watch.

use std::io::{ErrorKind, Read as _};
use std::net::TcpStream;
use std::sync::mpsc::Sender;

use serde_json::{Value, json};

use super::run::decode;
use crate::server::Answer;

#[derive(Default)]
pub struct Seen {
    /// Nothing when no answer came.
    pub status: Value,
    pub content_type: Value,
    pub events: Vec<Value>,
    /// How the stream ended before there were as many events as wanted: `closed`, or `error`.
    pub end: Option<&'static str>,
}

/// Reads events until there are `wanted` of them, the stream ends, or nothing comes for the read time-out of `stream`.
/// `opened` is told when the head of the answer is there. Of an answer other than 200, the body is the one event.
pub fn read(mut stream: TcpStream, wanted: usize, opened: &Sender<()>) -> Seen {
    let mut bytes = Vec::new();
    let mut chunk = [0; 65536];
    let mut seen = Seen::default();
    loop {
        let (ended, timed_out) = match stream.read(&mut chunk) {
            Ok(0) => (true, false),
            Ok(count) => {
                bytes.extend_from_slice(&chunk[..count]);
                (false, false)
            }
            Err(error) => (true, matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)),
        };
        if let Some(answer) = Answer::parse(&bytes) {
            // Nobody listens after the first time.
            _ = opened.send(());
            seen.status = json!(answer.status);
            seen.content_type = match answer.header("content-type") {
                "" => Value::Null,
                content_type => json!(content_type),
            };
            match answer.status {
                200 => seen.events = lines(&answer.body),
                _ if ended => seen.events = vec![decode(&answer.body, answer.header("content-type"))],
                _ => continue,
            }
            if seen.events.len() >= wanted {
                return seen;
            }
            if ended && !timed_out && answer.status == 200 {
                seen.end = Some(if answer.complete { "closed" } else { "error" });
            }
        }
        if ended {
            return seen;
        }
    }
}

/// The events in `body`, one a line; a line that has not come whole waits.
fn lines(body: &[u8]) -> Vec<Value> {
    let lines = body.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"));
    lines.filter_map(|line| serde_json::from_slice(line).ok()).collect()
}
