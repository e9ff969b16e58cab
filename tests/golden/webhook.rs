//! A conversion webhook on loopback whose behaviour is data: what `webhook` and `webhookSeen` steps ask for.
//!
//! The script's form stands in the recorder's documentation (`convert`): per desired version and for all of them `move`,
//! `set` and `remove` by JSON pointers, a `mode` that is a fault or none, `when` it applies, and edits of the `review`
//! that is answered.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::compare::{as_text, pointer};
use super::request::ascii_json;
use crate::https::{Https, Identity, Reply};

/// A webhook with a CA and a port of its own, which it keeps when it is down for a while.
pub struct Webhook {
    /// The CA's certificate, base64 of PEM, as `caBundle` takes it.
    pub authority: String,
    identity: Identity,
    script: Arc<Mutex<Script>>,
    address: SocketAddr,
    listening: Option<Https>,
}

#[derive(Default)]
struct Script {
    convert: Value,
    /// The requests since the script was given.
    seen: Vec<Value>,
}

impl Webhook {
    /// A webhook whose certificate is for `name`, a host name or an IP address. It listens once it has a script.
    pub fn new(name: &str) -> Webhook {
        let identity = Identity::new(name);
        let address = (Ipv4Addr::LOCALHOST, 0).into();
        Webhook { authority: identity.authority.clone(), identity, script: Arc::default(), address, listening: None }
    }

    /// `127.0.0.1:PORT`.
    pub fn host(&self) -> String {
        self.address.to_string()
    }

    /// Gives a new script, and forgets the requests seen under the last one.
    pub fn behave(&mut self, convert: &Value) {
        *self.script.lock().expect("no thread panics") = Script { convert: convert.clone(), seen: Vec::new() };
        let down = convert["mode"] == "down";
        if self.listening.is_none() && (!down || self.address.port() == 0) {
            self.listen();
        }
        if down {
            self.listening = None;
        }
    }

    /// The requests in which every pointer of `wanted` leads to its value.
    pub fn seen(&self, wanted: &Value) -> Vec<Value> {
        let script = self.script.lock().expect("no thread panics");
        script.seen.iter().filter(|request| holds(request, wanted)).cloned().collect()
    }

    fn listen(&mut self) {
        let script = Arc::clone(&self.script);
        let listening = Https::listen(self.address, &self.identity, move |request| reply(request, &script));
        self.address = listening.address;
        self.listening = Some(listening);
    }
}

/// The answer to a request; `None` where the connection is to be closed.
fn reply(mut request: Value, script: &Mutex<Script>) -> Option<Reply> {
    let review: Value = serde_json::from_str(&as_text(&request["review"])).unwrap_or_default();
    request["review"] = review.clone();
    let mut convert = {
        let mut script = script.lock().expect("no thread panics");
        script.seen.push(request);
        script.convert.clone()
    };
    if !holds(&review, &convert["when"]) {
        convert = json!({"to": convert["to"]});
    }
    let text = |name: &str, default: &str| convert[name].as_str().unwrap_or(default).to_owned();
    let (mut status, mut content_type) = (200, "application/json".to_owned());
    let mode = text("mode", "rename");
    let body = match mode.as_str() {
        "close" => return None,
        "http" | "http-500" => {
            status = convert["code"].as_u64().unwrap_or(500);
            content_type = text("type", "text/plain");
            text("text", "out of order\n")
        }
        "raw" | "not-json" => text("text", "this is not JSON"),
        "empty" => String::new(),
        _ => {
            if mode == "slow" {
                std::thread::sleep(Duration::from_secs_f64(convert["seconds"].as_f64().unwrap_or(1.0)));
            }
            ascii_json(&sorted(&answer(&review, &convert, &mode)))
        }
    };
    Some(Reply { status, content_type, body })
}

/// The ConversionReview that answers `review` by the script.
fn answer(review: &Value, convert: &Value, mode: &str) -> Value {
    let request = &review["request"];
    let wanted = request["desiredAPIVersion"].as_str().unwrap_or_default();
    let version = wanted.rsplit('/').next().unwrap_or_default();
    let mut objects = request["objects"].as_array().cloned().unwrap_or_default();
    for object in &mut objects {
        if mode != "noop-version" {
            object["apiVersion"] = json!(wanted);
        }
        edit(object, &convert["to"][version]);
        edit(object, convert);
    }
    match mode {
        "missing-object" => _ = objects.pop(),
        "extra-object" => objects.extend(objects.last().cloned()),
        "reorder" => objects.reverse(),
        _ => {}
    }
    let uid = if mode == "wrong-uid" { json!("other") } else { request["uid"].clone() };
    let mut response = json!({"uid": uid, "convertedObjects": objects, "result": {"status": "Success"}});
    if mode == "fail" {
        let message = convert["message"].as_str().unwrap_or("no conversion today");
        response["convertedObjects"] = json!([]);
        response["result"] = json!({"status": "Failed", "message": message});
    }
    let mut answer = json!({"apiVersion": review["apiVersion"], "kind": "ConversionReview", "response": response});
    edit(&mut answer, &convert["review"]);
    answer
}

fn holds(document: &Value, wanted: &Value) -> bool {
    let wanted = wanted.as_object().into_iter().flatten();
    wanted.into_iter().all(|(path, value)| as_text(pointer(document, path)) == as_text(value))
}

/// Carries out the `move`, `set` and `remove` of `rules`.
fn edit(document: &mut Value, rules: &Value) {
    for step in rules["move"].as_array().into_iter().flatten() {
        let from = as_text(&step["from"]);
        if !pointer(document, &from).is_null()
            && let Some(value) = take(document, &from)
        {
            put(document, &as_text(&step["to"]), value);
        }
    }
    for (path, value) in rules["set"].as_object().into_iter().flatten() {
        put(document, path, value.clone());
    }
    for path in rules["remove"].as_array().into_iter().flatten() {
        take(document, &as_text(path));
    }
}

/// Takes out what is behind `path`, if its parent is a map.
fn take(document: &mut Value, path: &str) -> Option<Value> {
    let (parent, name) = path.rsplit_once('/')?;
    document.pointer_mut(parent)?.as_object_mut()?.shift_remove(&unescaped(name))
}

/// Sets what is behind `path`; parents that are neither map nor list become maps.
fn put(document: &mut Value, path: &str, value: Value) {
    let mut at = document;
    for segment in path.split('/').skip(1).map(unescaped) {
        at = match at {
            Value::Array(items) => match segment.parse().ok().and_then(|at: usize| items.get_mut(at)) {
                Some(item) => item,
                None => return,
            },
            other => {
                if !other.is_object() {
                    *other = Value::Object(Map::new());
                }
                &mut other[segment]
            }
        };
    }
    *at = value;
}

fn unescaped(segment: &str) -> String {
    segment.replace("~1", "/").replace("~0", "~")
}

pub(super) fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().map(|(name, value)| (name.clone(), sorted(value))).collect();
            fields.sort_by(|left, right| left.0.cmp(&right.0));
            Value::Object(fields.into_iter().collect())
        }
        other => other.clone(),
    }
}
