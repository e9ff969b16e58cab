//! Plays a conversation step by step.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use regex::Regex;
use serde_json::{Map, Value, json};

use super::compare::{Placeholders, as_text, first_difference, ignore, pointer};
use super::request::{encode, headers_of, python_json, quote};
use super::watch;
use super::webhook::Webhook;
use crate::api::identity::exchange;
use crate::server::{Answer, Server, request as request_bytes};

const COMPARED_HEADERS: [&str; 5] = ["content-type", "warning", "content-encoding", "location", "retry-after"];

/// How long after the opening of a watch the steps meanwhile begin.
const WATCH_SETTLES: Duration = Duration::from_millis(150);

/// How requests reach the server.
#[derive(Clone, Copy)]
pub enum Door<'d> {
    /// Plain HTTP, where everybody is an administrator.
    Plain,
    /// TLS; a request that brings no credentials has this token.
    Token(&'d str),
}

/// What differs, up to `problems_max` differences; nothing for a conversation that holds.
pub fn play(server: &Server, conversation: &Value, door: Door<'_>, problems_max: usize) -> Vec<String> {
    let name = conversation["name"].as_str().unwrap_or_default().replace('_', "-").to_lowercase();
    let names = BTreeMap::from([("suffix".to_owned(), name)]);
    let mut run = Run { server, door, names, placeholders: Placeholders::default(), webhooks: BTreeMap::new() };
    let mut problems = Vec::new();
    for (at, step) in conversation["steps"].as_array().into_iter().flatten().enumerate() {
        let got = run.step(step);
        if let Some(expect) = step.get("expect")
            && let Some(difference) = first_difference(expect, &got, "")
        {
            let what = step.get("id").or_else(|| step.pointer("/request/path")).map(as_text).unwrap_or_default();
            problems.push(format!("step {at} ({what}): {difference}"));
            if problems.len() == problems_max {
                break;
            }
        }
    }
    problems
}

struct Run<'s> {
    server: &'s Server,
    door: Door<'s>,
    names: BTreeMap<String, String>,
    placeholders: Placeholders,
    webhooks: BTreeMap<String, Webhook>,
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
        if let Some(webhook) = step.get("webhook") {
            return self.webhook(webhook);
        }
        if let Some(seen) = step.get("webhookSeen") {
            return self.webhook_seen(&step, seen);
        }
        let answer = self.send(&step["request"]);
        self.answer(&step, &answer)
    }

    fn send(&self, request: &Value) -> Answer {
        let (mut headers, body) = encode(request);
        if let Door::Token(token) = self.door
            && !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"))
        {
            headers.push(("Authorization".to_owned(), format!("Bearer {token}")));
        }
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let method = request["method"].as_str().unwrap_or_default();
        let path = quote(request["path"].as_str().unwrap_or_default());
        match self.door {
            Door::Plain => self.server.send(method, &path, &headers, body.as_deref()),
            Door::Token(_) => {
                let request = request_bytes(method, &path, &headers, body.as_deref());
                exchange(self.server, &request, None).expect("there is an answer")
            }
        }
    }

    fn poll(&mut self, step: &Value, poll: &Value) -> Value {
        let seconds = poll.get("timeout").and_then(Value::as_f64).unwrap_or(15.0);
        let end = Instant::now() + Duration::from_secs_f64(seconds);
        let status = poll.get("status").and_then(Value::as_u64).unwrap_or(200);
        loop {
            let answer = self.send(&json!({"method": "GET", "path": poll["path"]}));
            let document = answer.json();
            let until = poll.get("until").and_then(Value::as_object);
            let holds =
                until.into_iter().flatten().all(|(path, wanted)| as_text(pointer(&document, path)) == as_text(wanted));
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
        let encoded = answer.header("content-encoding") == "gzip";
        let raw = if encoded { gunzip(&answer.body) } else { answer.body.clone() };
        let content_type = headers.get("content-type").map(as_text).unwrap_or_default();
        if !headers.is_empty() {
            out.insert("headers".to_owned(), Value::Object(headers));
        }
        let mut document = if raw.is_empty() { Value::Null } else { decode(&raw, &content_type) };
        self.capture(step, &document);
        if let Some(relate) = step.get("relate").and_then(Value::as_object) {
            let related =
                relate.iter().map(|(path, value)| (path.clone(), json!(relation(pointer(&document, path), value))));
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
        let headers = headers_of(watch);
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let path = quote(watch["path"].as_str().unwrap_or_default());
        let stream = self.server.open("GET", &path, &headers, None, limit);
        let (opened, is_open) = mpsc::channel();
        let reader = std::thread::spawn(move || watch::read(stream, wanted, &opened));
        let mut during = Vec::new();
        if let Some(steps) = step.get("during").and_then(Value::as_array) {
            // One that never opens differs by its status.
            _ = is_open.recv_timeout(limit);
            std::thread::sleep(WATCH_SETTLES);
            during = steps.iter().map(|step| self.step(step)).collect();
        }
        let mut seen = reader.join().expect("the reader does not panic");
        seen.events.truncate(wanted);
        self.capture(step, &Value::Array(seen.events.clone()));
        let events: Vec<Value> = seen
            .events
            .into_iter()
            .map(|mut event| {
                select(step, &mut event);
                self.placeholders.normal(&event, None)
            })
            .collect();
        let mut out = json!({"status": seen.status, "type": seen.content_type, "events": events, "during": during});
        if step.get("compareEnd") == Some(&json!(true))
            && let Some(end) = seen.end
        {
            out[end] = json!(true);
        }
        out
    }

    fn webhook(&mut self, wanted: &Value) -> Value {
        let name = wanted["name"].as_str().unwrap_or("webhook");
        // `IP:127.0.0.1` or `DNS:example.com`.
        let certified = wanted["san"].as_str().unwrap_or("IP:127.0.0.1").split_once(':').map_or("", |(_, name)| name);
        let webhook = self.webhooks.entry(name.to_owned()).or_insert_with(|| Webhook::new(certified));
        webhook.behave(&wanted["convert"]);
        self.names.insert(format!("{name}Url"), format!("https://{}", webhook.host()));
        self.names.insert(format!("{name}CA"), webhook.authority.clone());
        self.placeholders.stands_for(webhook.host(), format!("<{name}>"));
        self.placeholders.stands_for(webhook.authority.clone(), format!("<{name}CA>"));
        json!({"done": true})
    }

    fn webhook_seen(&mut self, step: &Value, asked: &Value) -> Value {
        let name = asked["name"].as_str().unwrap_or("webhook");
        let seen = self.webhooks.get(name).map(|webhook| webhook.seen(&asked["where"])).unwrap_or_default();
        let mut document = seen.last().cloned().unwrap_or_else(|| json!({}));
        document["called"] = json!(!seen.is_empty());
        // How often varies with what is cached, so it is compared only where it is picked.
        if step.get("pick").is_some() {
            document["calls"] = json!(seen.len());
        }
        select(step, &mut document);
        self.placeholders.normal(&document, None)
    }
}

fn substitute(value: &Value, names: &BTreeMap<String, String>) -> Value {
    let text = |text: &str| {
        names.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("${{{name}}}"), value))
    };
    match value {
        Value::String(string) => Value::String(text(string)),
        Value::Array(items) => Value::Array(items.iter().map(|item| substitute(item, names)).collect()),
        Value::Object(fields) => {
            Value::Object(fields.iter().map(|(name, value)| (text(name), substitute(value, names))).collect())
        }
        other => other.clone(),
    }
}

/// A body as it is compared: what is not JSON is text, or nothing but bytes.
pub fn decode(raw: &[u8], content_type: &str) -> Value {
    match serde_json::from_slice(raw) {
        Ok(document) => document,
        Err(_) if content_type.contains("protobuf") || content_type.contains("cbor") => json!({"<bytes>": true}),
        Err(_) => json!({"<text>": String::from_utf8_lossy(raw)}),
    }
}

pub fn gunzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    flate2::read::GzDecoder::new(bytes).read_to_end(&mut out).expect("it is gzip");
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
    let list = if document.as_object().is_some_and(|fields| fields.contains_key(path)) {
        document.get_mut(path)
    } else {
        document.pointer_mut(path)
    };
    if let Some(Value::Array(items)) = list {
        items.sort_by_key(|item| python_json(&super::webhook::sorted(item)));
    }
}
