//! Frames of the protocol: headers, an empty line, and a JSON body.
//!
//! Input: bytes from a client. Output: messages, and the responses to malformed ones. Frames are read
//! within bounds: no header determines how much is allocated.

use std::io::{self, BufRead, Read as _, Write};
use std::sync::mpsc::SyncSender;

use lsp_server::Message;
use serde_json::{Value, json};

use super::incoming::{Incoming, SharedState};

/// The longest body that is read, in bytes; longer ones are skipped.
const BODY_BYTES_MAX: u64 = 64 << 20;
/// The longest header line, in bytes.
const HEADER_BYTES_MAX: u64 = 4 << 10;

/// The contents of a frame.
enum Frame {
    Body(Vec<u8>),
    /// A body of this length was skipped.
    TooLong(u64),
    End,
}

/// Passes on the messages of a client until the input ends.
pub fn read(mut input: impl BufRead, sender: &SyncSender<Incoming>, shared: &SharedState) {
    loop {
        let incoming = match frame(&mut input) {
            Ok(Frame::Body(body)) => match serde_json::from_slice::<Message>(&body) {
                Ok(message) => Incoming::Message(message),
                Err(error) => Incoming::Malformed(malformed(&body, &error)),
            },
            Ok(Frame::TooLong(bytes)) => {
                let text = format!("a message of {bytes} bytes is longer than the {BODY_BYTES_MAX} that are read");
                Incoming::Malformed(refusal(&Value::Null, -32600, &text))
            }
            Ok(Frame::End) | Err(_) => Incoming::End,
        };
        let is_end = matches!(incoming, Incoming::End);
        shared.note(&incoming);
        if sender.send(incoming).is_err() || is_end {
            return;
        }
    }
}

/// The response to a body that is not a message, with its id if it has one.
fn malformed(body: &[u8], error: &serde_json::Error) -> Value {
    match serde_json::from_slice::<Value>(body) {
        Ok(value) => refusal(value.get("id").unwrap_or(&Value::Null), -32600, &format!("not a message: {error}")),
        Err(error) => refusal(&Value::Null, -32700, &format!("not JSON: {error}")),
    }
}

fn refusal(id: &Value, code: i32, text: &str) -> Value {
    let id = if id.is_string() || id.is_number() { id.clone() } else { Value::Null };
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": text}})
}

fn frame(input: &mut impl BufRead) -> io::Result<Frame> {
    let mut length: Option<u64> = None;
    loop {
        let mut line = Vec::new();
        let count = input.take(HEADER_BYTES_MAX).read_until(b'\n', &mut line)?;
        if count == 0 {
            return Ok(Frame::End);
        }
        let line = String::from_utf8_lossy(&line);
        let line = line.trim();
        match (line.split_once(':'), length) {
            (Some((name, value)), _) if name.trim().eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse().ok();
            }
            // The body follows; lines that are not headers are ignored.
            (None, Some(length)) if line.is_empty() => return body(input, length),
            _ => {}
        }
    }
}

fn body(input: &mut impl BufRead, length: u64) -> io::Result<Frame> {
    let mut within = input.take(length);
    if length > BODY_BYTES_MAX {
        io::copy(&mut within, &mut io::sink())?;
        return Ok(Frame::TooLong(length));
    }
    let mut body = Vec::new();
    within.read_to_end(&mut body)?;
    if (body.len() as u64) < length { Ok(Frame::End) } else { Ok(Frame::Body(body)) }
}

/// Writes a message as a frame, and flushes it.
pub fn write(out: &mut impl Write, message: &impl serde::Serialize) -> io::Result<()> {
    let mut message = serde_json::to_value(message)?;
    if let Some(fields) = message.as_object_mut() {
        fields.insert("jsonrpc".to_owned(), "2.0".into());
    }
    let body = message.to_string();
    out.write_all(format!("Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes())?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::sync_channel;

    fn told(bytes: &[u8]) -> Vec<String> {
        let (sender, receiver) = sync_channel(100);
        read(bytes, &sender, &SharedState::default());
        let show = |incoming| match incoming {
            Incoming::Message(message) => format!("{message:?}").split('(').next().unwrap_or_default().to_owned(),
            Incoming::Malformed(answer) => answer["error"]["code"].to_string(),
            Incoming::Definitions(_) => "definitions".to_owned(),
            Incoming::End => "end".to_owned(),
        };
        receiver.try_iter().map(show).collect()
    }

    fn framed(body: &str) -> Vec<u8> {
        format!("Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
    }

    #[test]
    fn what_is_not_a_message_is_told_and_passed_over() {
        let good = framed(r#"{"jsonrpc":"2.0","method":"initialized","params":{}}"#);
        let bytes = [
            good.clone(),
            framed("{"),
            framed("[1]"),
            framed(r#"{"id": 3}"#),
            b"x\r\n\r\nContent-Type: y\r\n".to_vec(),
            good,
        ]
        .concat();
        let found = told(&bytes);
        assert_eq!(found.first().map(String::as_str), Some("Notification"));
        assert_eq!(found[1], "-32700");
        assert_eq!(found[found.len() - 2..], ["Notification", "end"]);
    }

    #[test]
    fn a_frame_allocates_no_more_than_comes() {
        assert_eq!(told(b"Content-Length: 99999999999999\r\n\r\nabc"), ["-32600", "end"]);
        assert_eq!(told(b"Content-Length: 60000000\r\n\r\nabc"), ["end"]);
        assert_eq!(told(&[b'a'; 100_000]), ["end"]);
    }
}
