//! A conversion webhook on loopback whose behaviour is data: what `webhook` and `webhookSeen` steps ask for.
//!
//! The script's form stands in the recorder's documentation (`convert`): per desired version and for all of them `move`,
//! `set` and `remove` by JSON pointers, a `mode` that is a fault or none, `when` it applies, and edits of the `review`
//! that is answered.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kubeskiff::server::Authority;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Map, Value, json};

use super::compare::{as_text, pointer};
use super::request::ascii_json;

/// How long a caller may take to send its request.
const READ_MAX: Duration = Duration::from_secs(60);

type Stream = StreamOwned<ServerConnection, TcpStream>;

/// A webhook with a CA and a port of its own, which it keeps when it is down for a while.
pub struct Webhook {
    /// The CA's certificate, base64 of PEM, as `caBundle` takes it.
    pub authority: String,
    tls: Arc<ServerConfig>,
    script: Arc<Mutex<Script>>,
    address: SocketAddr,
    listening: Option<Listening>,
}

#[derive(Default)]
struct Script {
    convert: Value,
    /// The requests since the script was given.
    seen: Vec<Value>,
}

struct Listening {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Webhook {
    /// A webhook whose certificate is for `name`, a host name or an IP address. It listens once it has a script.
    pub fn new(name: &str) -> Webhook {
        let authority = Authority::generate().expect("a CA can be made");
        let identity = authority.issue_server(&[name.to_owned()]).expect("the name is well formed");
        let (chain, key) = identity.to_der().expect("the certificate is well formed");
        let tls = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
            .expect("the certificate fits its key");
        Webhook {
            authority: STANDARD.encode(authority.certificate_pem()),
            tls: Arc::new(tls),
            script: Arc::default(),
            address: (Ipv4Addr::LOCALHOST, 0).into(),
            listening: None,
        }
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
            self.stop();
        }
    }

    /// The requests in which every pointer of `wanted` leads to its value.
    pub fn seen(&self, wanted: &Value) -> Vec<Value> {
        let script = self.script.lock().expect("no thread panics");
        script.seen.iter().filter(|request| holds(request, wanted)).cloned().collect()
    }

    fn listen(&mut self) {
        let listener = TcpListener::bind(self.address).expect("the port is free");
        self.address = listener.local_addr().expect("a listener has an address");
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, tls, script) = (Arc::clone(&stop), Arc::clone(&self.tls), Arc::clone(&self.script));
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if stopped.load(Ordering::SeqCst) {
                    break;
                }
                let (tls, script) = (Arc::clone(&tls), Arc::clone(&script));
                // A caller that does not trust the certificate goes away; that is its answer.
                std::thread::spawn(move || stream.and_then(|stream| serve(stream, tls, &script)));
            }
        });
        self.listening = Some(Listening { stop, thread });
    }

    fn stop(&mut self) {
        let Some(Listening { stop, thread }) = self.listening.take() else { return };
        stop.store(true, Ordering::SeqCst);
        // The listener waits for a connection: this is the last one.
        _ = TcpStream::connect(self.address);
        thread.join().expect("the listener does not panic");
    }
}

impl Drop for Webhook {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Answers one request.
fn serve(stream: TcpStream, tls: Arc<ServerConfig>, script: &Mutex<Script>) -> std::io::Result<()> {
    stream.set_read_timeout(Some(READ_MAX))?;
    let connection = ServerConnection::new(tls).map_err(std::io::Error::other)?;
    let mut reader = BufReader::new(StreamOwned::new(connection, stream));
    let mut request = read_request(&mut reader)?;
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
        "close" => return Ok(()),
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
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} Scripted\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    let stream: &mut Stream = reader.get_mut();
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())?;
    stream.conn.send_close_notify();
    stream.flush()
}

/// A request as `webhookSeen` compares it; its body is text still.
fn read_request(reader: &mut BufReader<Stream>) -> std::io::Result<Value> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut request = json!({"method": method, "path": path, "contentType": null});
    let (mut length, mut chunked) = (0, false);
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        let Some((name, value)) = header.trim_end().split_once(": ") else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-type" => request["contentType"] = json!(value),
            "content-length" => length = value.parse().unwrap_or_default(),
            "transfer-encoding" => chunked = value.contains("chunked"),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    while chunked {
        let mut size = String::new();
        reader.read_line(&mut size)?;
        let size = usize::from_str_radix(size.trim_end(), 16).map_err(std::io::Error::other)?;
        let from = body.len();
        body.resize(from + size, 0);
        reader.read_exact(&mut body[from..])?;
        reader.read_line(&mut String::new())?;
        chunked = size > 0;
    }
    request["review"] = json!(String::from_utf8_lossy(&body));
    Ok(request)
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

fn sorted(value: &Value) -> Value {
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
