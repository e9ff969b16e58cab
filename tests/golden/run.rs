//! Plays a conversation step by step.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read as _};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use regex::Regex;
use serde_json::{Map, Value, json};

use super::compare::{Placeholders, as_text, first_difference, ignore, pointer};
use crate::server::{Answer, Server, unchunk};

const COMPARED_HEADERS: [&str; 5] = ["content-type", "warning", "content-encoding", "location", "retry-after"];

/// What differs; nothing for a conversation that holds.
pub fn play(server: &Server, conversation: &Value) -> Vec<String> {
    let name = conversation["name"].as_str().unwrap_or_default().replace('_', "-").to_lowercase();
    let mut run = Run {
        server,
        names: BTreeMap::from([("suffix".to_owned(), name)]),
        placeholders: Placeholders::default(),
    };
    let mut problems = Vec::new();
    for (at, step) in conversation["steps"].as_array().into_iter().flatten().enumerate() {
        let got = run.step(step);
        if let Some(expect) = step.get("expect")
            && let Some(difference) = first_difference(expect, &got, "")
        {
            let what = step.get("id").or_else(|| step.pointer("/request/path")).map(as_text).unwrap_or_default();
            problems.push(format!("step {at} ({what}): {difference}"));
        }
    }
    problems
}

struct Run<'s> {
    server: &'s Server,
    names: BTreeMap<String, String>,
    placeholders: Placeholders,
}

impl Run<'_> {
    fn step(&mut self, step: &Value) -> Value {
        let mut step = step.clone();
        if let Value::Object(fields) = &mut step {
            fields.remove("expect");
        }
        let step = substitute(&step, &self.names);
        if let Some(namespace) = step.get("namespace") {
            let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
            self.send(&json!({"method": "POST", "path": "/api/v1/namespaces", "body": body}));
            return json!({"done": true});
        }
        if let Some(seconds) = step.get("sleep").and_then(|seconds| as_text(seconds).parse().ok()) {
            std::thread::sleep(Duration::from_secs_f64(seconds));
            return json!({"done": true});
        }
        if let Some(poll) = step.get("poll") {
            return self.poll(&step, poll);
        }
        if step.get("watch").is_some() {
            return self.watch(&step);
        }
        match step.get("request") {
            Some(request) => {
                let answer = self.send(request);
                self.answer(&step, &answer)
            }
            None => json!({"unknown": "this runner has no conversion webhook yet"}),
        }
    }

    fn send(&self, request: &Value) -> Answer {
        let (headers, body) = encode_body(request);
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let method = request["method"].as_str().unwrap_or_default();
        self.server.send(method, &quote(request["path"].as_str().unwrap_or_default()), &headers, body.as_deref())
    }

    fn poll(&mut self, step: &Value, poll: &Value) -> Value {
        let seconds = poll.get("timeout").and_then(Value::as_f64).unwrap_or(15.0);
        let end = Instant::now() + Duration::from_secs_f64(seconds);
        let status = poll.get("status").and_then(Value::as_u64).unwrap_or(200);
        loop {
            let answer = self.send(&json!({"method": "GET", "path": poll["path"]}));
            let document = answer.json();
            let until = poll.get("until").and_then(Value::as_object);
            let holds = until
                .into_iter()
                .flatten()
                .all(|(path, wanted)| as_text(pointer(&document, path)) == as_text(wanted));
            if holds && u64::from(answer.status) == status {
                self.capture(step, &document);
                return json!({"polled": true});
            }
            if Instant::now() > end {
                return json!({"polled": false, "last": document});
            }
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    fn capture(&mut self, step: &Value, document: &Value) {
        for (name, path) in step.get("capture").and_then(Value::as_object).into_iter().flatten() {
            let value = pointer(document, path.as_str().unwrap_or_default());
            let text = if value.is_null() { String::new() } else { as_text(value) };
            self.names.insert(name.clone(), text);
        }
    }

    fn answer(&mut self, step: &Value, answer: &Answer) -> Value {
        let mut out = Map::new();
        out.insert("status".to_owned(), json!(answer.status));
        if step.get("compare") == Some(&json!("status")) {
            return Value::Object(out);
        }
        let asked: Vec<String> = match step.get("headers").and_then(Value::as_array) {
            Some(names) => names.iter().map(as_text).collect(),
            None => COMPARED_HEADERS.map(str::to_owned).into(),
        };
        let mut headers = Map::new();
        for name in asked {
            let found = answer.headers.iter().filter(|(header, _)| header.eq_ignore_ascii_case(&name));
            let values: Vec<Value> = found.map(|(_, value)| json!(value)).collect();
            match values.as_slice() {
                [] => {}
                [one] => _ = headers.insert(name, one.clone()),
                _ => _ = headers.insert(name, Value::Array(values)),
            }
        }
        let encoded = answer.headers.iter().any(|(name, value)| name == "content-encoding" && value == "gzip");
        let raw = if encoded { gunzip(&answer.body) } else { answer.body.clone() };
        let content_type = headers.get("content-type").map(as_text).unwrap_or_default();
        if !headers.is_empty() {
            out.insert("headers".to_owned(), Value::Object(headers));
        }
        let mut document = if raw.is_empty() { Value::Null } else { decode(&raw, &content_type) };
        self.capture(step, &document);
        if let Some(relate) = step.get("relate").and_then(Value::as_object) {
            let related = relate.iter().map(|(path, value)| (path.clone(), json!(relation(pointer(&document, path), value))));
            out.insert("relate".to_owned(), Value::Object(related.collect()));
        }
        if let Some(matches) = step.get("matches").and_then(Value::as_object) {
            let matched = matches.iter().map(|(path, pattern)| {
                let pattern = Regex::new(pattern.as_str().unwrap_or_default()).expect("the pattern is well formed");
                (path.clone(), json!(pattern.is_match(&as_text(pointer(&document, path)))))
            });
            out.insert("matches".to_owned(), Value::Object(matched.collect()));
        }
        if step.get("compare") == Some(&json!("headers")) {
            return Value::Object(out);
        }
        if step.get("text").is_some_and(|text| text != &json!(false)) {
            let text = self.placeholders.whole_text(&String::from_utf8_lossy(&raw));
            out.insert("body".to_owned(), json!({"<text>": text}));
            return Value::Object(out);
        }
        select(step, &mut document);
        for path in step.get("sort").and_then(Value::as_array).into_iter().flatten().map(as_text) {
            sort(&mut document, &path);
        }
        out.insert("body".to_owned(), self.placeholders.normal(&document, None));
        Value::Object(out)
    }

    fn watch(&mut self, step: &Value) -> Value {
        let watch = &step["watch"];
        let wanted = watch.get("events").and_then(Value::as_u64).unwrap_or(1) as usize;
        let limit = Duration::from_secs_f64(watch.get("timeout").and_then(Value::as_f64).unwrap_or(6.0));
        let headers = request_headers(watch);
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let path = quote(watch["path"].as_str().unwrap_or_default());
        let stream = self.server.open("GET", &path, &headers, None, limit);
        let reader = std::thread::spawn(move || read_events(stream, wanted, limit));
        std::thread::sleep(Duration::from_millis(200));
        let during: Vec<Value> =
            step.get("during").and_then(Value::as_array).into_iter().flatten().map(|step| self.step(step)).collect();
        let seen = reader.join().expect("the reader does not panic");
        let mut events = seen.events;
        events.truncate(wanted);
        self.capture(step, &Value::Array(events.clone()));
        let events: Vec<Value> = events
            .into_iter()
            .map(|mut event| {
                select(step, &mut event);
                self.placeholders.normal(&event, None)
            })
            .collect();
        let mut out = json!({"status": seen.status, "type": seen.content_type, "events": events, "during": during});
        if step.get("compareEnd") == Some(&json!(true)) && seen.closed {
            out["closed"] = json!(true);
        }
        out
    }
}

struct Seen {
    status: u16,
    content_type: Value,
    events: Vec<Value>,
    closed: bool,
}

/// Reads events until there are enough, the server ends, or the time is up.
fn read_events(mut stream: std::net::TcpStream, wanted: usize, limit: Duration) -> Seen {
    let end = Instant::now() + limit;
    let mut bytes = Vec::new();
    let mut closed = false;
    let seen = |bytes: &[u8], closed: bool| {
        let answer = Answer::parse(bytes);
        let chunked = answer.headers.iter().any(|(name, value)| name == "transfer-encoding" && value == "chunked");
        let head = bytes.windows(4).position(|window| window == b"\r\n\r\n").map_or(bytes.len(), |at| at + 4);
        let body = if chunked { unchunk(&bytes[head..]) } else { answer.body.clone() };
        let content_type = answer.headers.iter().find(|(name, _)| name == "content-type");
        let content_type = content_type.map_or(Value::Null, |(_, value)| json!(value));
        let events = match answer.status {
            200 => body
                .split_inclusive(|byte| *byte == b'\n')
                .filter(|line| line.ends_with(b"\n"))
                .filter_map(|line| serde_json::from_slice(line).ok())
                .collect(),
            _ if closed => vec![decode(&body, &as_text(&content_type))],
            _ => Vec::new(),
        };
        Seen { status: answer.status, content_type, events, closed }
    };
    loop {
        let mut chunk = [0; 65536];
        match stream.read(&mut chunk) {
            Ok(0) => closed = true,
            Ok(count) => bytes.extend_from_slice(&chunk[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return seen(&bytes, false),
            Err(_) => closed = true,
        }
        let so_far = seen(&bytes, closed);
        if closed || so_far.events.len() >= wanted || Instant::now() > end {
            return so_far;
        }
    }
}

fn substitute(value: &Value, names: &BTreeMap<String, String>) -> Value {
    let text = |text: &str| names.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("${{{name}}}"), value));
    match value {
        Value::String(string) => Value::String(text(string)),
        Value::Array(items) => Value::Array(items.iter().map(|item| substitute(item, names)).collect()),
        Value::Object(fields) => {
            Value::Object(fields.iter().map(|(name, value)| (text(name), substitute(value, names))).collect())
        }
        other => other.clone(),
    }
}

/// The headers that the recorder sent: its own, and those of the step; null takes one away.
fn request_headers(request: &Value) -> Vec<(String, String)> {
    let mut headers: BTreeMap<String, Option<String>> = BTreeMap::from([
        ("User-Agent".to_owned(), Some("replay/1".to_owned())),
        ("Accept".to_owned(), Some("application/json".to_owned())),
        ("Accept-Encoding".to_owned(), Some("identity".to_owned())),
    ]);
    for (name, value) in request.get("headers").and_then(Value::as_object).into_iter().flatten() {
        headers.insert(name.clone(), value.as_str().map(str::to_owned));
    }
    headers.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

fn encode_body(request: &Value) -> (Vec<(String, String)>, Option<Vec<u8>>) {
    let mut headers = request_headers(request);
    if let Some(text) = request.get("bodyBase64").and_then(Value::as_str) {
        return (headers, Some(STANDARD.decode(text).expect("the body is base64")));
    }
    if let Some(text) = request.get("bodyText").and_then(Value::as_str) {
        return (headers, Some(text.as_bytes().to_vec()));
    }
    if let Some(parts) = request.get("bodyParts").and_then(Value::as_array) {
        let mut body = String::new();
        for part in parts {
            match part.as_str() {
                Some(text) => body.push_str(text),
                None => {
                    let times = part["times"].as_u64().unwrap_or_default();
                    let repeat = part["repeat"].as_str().unwrap_or_default();
                    let texts: Vec<String> = (0..times).map(|at| repeat.replace("%d", &at.to_string())).collect();
                    body.push_str(&texts.join(part["sep"].as_str().unwrap_or_default()));
                }
            }
        }
        return (headers, Some(body.into_bytes()));
    }
    match request.get("body") {
        None => (headers, None),
        Some(body) => {
            if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
                headers.push(("Content-Type".to_owned(), "application/json".to_owned()));
            }
            (headers, Some(python_json(body).into_bytes()))
        }
    }
}

/// JSON with the spaces of the recorder, since messages quote the first bytes of a body.
fn python_json(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(python_json).collect::<Vec<_>>().join(", ")),
        Value::Object(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|(name, value)| format!("{}: {}", ascii_json(&json!(name)), python_json(value))).collect();
            format!("{{{}}}", fields.join(", "))
        }
        other => ascii_json(other),
    }
}

fn ascii_json(value: &Value) -> String {
    let text = value.to_string();
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character.is_ascii() {
            true => out.push(character),
            false => {
                let mut units = [0; 2];
                for unit in character.encode_utf16(&mut units) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
        }
    }
    out
}

/// Percent-escapes what may not stand in a path or query.
fn quote(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte.is_ascii_alphanumeric() || b"_.-~/?&=%:,()!+*'@$;".contains(&byte) {
            true => out.push(char::from(byte)),
            false => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

fn decode(raw: &[u8], content_type: &str) -> Value {
    match serde_json::from_slice(raw) {
        Ok(document) => document,
        Err(_) if content_type.contains("protobuf") || content_type.contains("cbor") => json!({"<bytes>": true}),
        Err(_) => json!({"<text>": String::from_utf8_lossy(raw)}),
    }
}

fn gunzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    flate2::read::GzDecoder::new(bytes).read_to_end(&mut out).expect("the body is gzip");
    out
}

fn relation(left: &Value, right: &Value) -> &'static str {
    let (left, right) = (as_text(left), as_text(right));
    match (left.parse::<u64>(), right.parse::<u64>()) {
        _ if left == right => "equal",
        (Ok(left), Ok(right)) if left > right => "greater",
        (Ok(_), Ok(_)) => "less",
        _ => "different",
    }
}

/// Keeps what is picked, or drops what is ignored.
fn select(step: &Value, document: &mut Value) {
    if let Some(picked) = step.get("pick").and_then(Value::as_array) {
        let picked = picked.iter().map(|path| {
            let path = as_text(path);
            let value = pointer(document, &path).clone();
            (path, value)
        });
        *document = Value::Object(picked.collect());
    }
    for path in step.get("ignore").and_then(Value::as_array).into_iter().flatten() {
        ignore(document, &as_text(path));
    }
}

/// Sorts a list whose order the reference leaves to chance.
fn sort(document: &mut Value, path: &str) {
    let list = match document.as_object().is_some_and(|fields| fields.contains_key(path)) {
        true => document.get_mut(path),
        false => document.pointer_mut(path),
    };
    if let Some(Value::Array(items)) = list {
        items.sort_by_key(python_json);
    }
}
