//! A bare client over HTTP/1.1 and HTTP/2: it repeats nothing, and tells a connection that breaks.

use std::time::Duration;

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::{http1, http2};
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::server::{Folder, Server};

/// How long a server may take, also on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(30);
pub const FAULTS: &str = "/skiff/v1/faults";
pub const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Version {
    Http1,
    Http2,
}

pub const VERSIONS: [Version; 2] = [Version::Http1, Version::Http2];

/// A server with objects in memory, in whose namespaces nothing comes by itself.
pub fn serve(folder: &Folder) -> Server {
    let arguments = ["--store", "memory", "--controllers", "*,-root-ca-certificate-publisher-controller"];
    Server::start_in(&folder.0.join("data"), &arguments, &[("SKIFF_TRACE", "requests".as_ref())])
}

/// An answer that came whole.
#[derive(Debug)]
pub struct Answered {
    pub code: u16,
    pub retry_after: Option<String>,
    pub body: Value,
}

/// Sends a request on a connection of its own.
pub async fn open(
    server: &Server,
    version: Version,
    (method, path): (&str, &str),
    body: Option<&Value>,
) -> hyper::Result<Response<Incoming>> {
    let stream = TokioIo::new(TcpStream::connect(server.plain).await.expect("the server listens"));
    let request = Request::builder().method(method).header("Content-Type", "application/json");
    let body = Full::new(body.map_or_else(Bytes::new, |body| body.to_string().into()));
    match version {
        Version::Http1 => {
            let (mut sender, connection) = http1::handshake(stream).await?;
            tokio::spawn(connection);
            let request = request.uri(path).header("Host", "localhost").body(body).expect("it is well formed");
            sender.send_request(request).await
        }
        Version::Http2 => {
            let (mut sender, connection) = http2::handshake(TokioExecutor::new(), stream).await?;
            tokio::spawn(connection);
            let uri = format!("http://localhost{path}");
            let answer = sender.send_request(request.uri(uri).body(body).expect("it is well formed")).await;
            // The connection ends with its last sender.
            tokio::spawn(async move { timeout(PATIENCE, std::future::pending::<()>()).await.map(|()| drop(sender)) });
            answer
        }
    }
}

/// Sends a request, and reads its answer to the end.
pub async fn ask(
    server: &Server,
    version: Version,
    target: (&str, &str),
    body: Option<&Value>,
) -> hyper::Result<Answered> {
    let (head, body) = open(server, version, target, body).await?.into_parts();
    let retry_after = head.headers.get("retry-after").and_then(|value| value.to_str().ok()).map(str::to_owned);
    let body = serde_json::from_slice(&body.collect().await?.to_bytes()).unwrap_or_default();
    Ok(Answered { code: head.status.as_u16(), retry_after, body })
}

/// An answer over HTTP/1.1 that must come.
pub async fn sure(server: &Server, target: (&str, &str), body: Option<&Value>) -> Answered {
    ask(server, Version::Http1, target, body).await.expect("it is answered")
}

/// Adds a fault; its path.
pub async fn add(server: &Server, fault: Value) -> String {
    let added = sure(server, ("POST", FAULTS), Some(&fault)).await;
    assert_eq!(added.code, 201, "{}", added.body);
    assert_eq!(added.body["hits"], 0);
    format!("{FAULTS}/{}", added.body["id"].as_str().expect("it has an id"))
}

/// How often the fault was met.
pub async fn hits(server: &Server, fault: &str) -> u64 {
    sure(server, ("GET", fault), None).await.body["hits"].as_u64().expect("it counts")
}

/// Removes all faults.
pub async fn clear(server: &Server) {
    assert_eq!(sure(server, ("DELETE", FAULTS), None).await.code, 200);
}

/// Creates a config map; the object.
pub async fn create(server: &Server, name: &str) -> Value {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"at": "0"}});
    let created = sure(server, ("POST", CONFIG_MAPS), Some(&object)).await;
    assert_eq!(created.code, 201, "{}", created.body);
    created.body
}

/// The lines of a watch, as they come.
pub struct Events {
    body: Incoming,
    read: Vec<u8>,
}

impl Events {
    pub async fn open(server: &Server, version: Version, query: &str) -> Events {
        let path = format!("{CONFIG_MAPS}?watch=1{query}");
        let answer = open(server, version, ("GET", &path), None).await.expect("it is answered");
        assert_eq!(answer.status(), 200);
        Events { body: answer.into_body(), read: Vec::new() }
    }

    /// The next event as `ADDED a`, `end` where the stream ends and `broken` where it breaks; `None` where none comes in time.
    pub async fn next(&mut self, patience: Duration) -> Option<String> {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=end).collect();
                return Some(tell(&serde_json::from_slice(&line).expect("an event is JSON")));
            }
            match timeout(patience, self.body.frame()).await {
                Err(_) => return None,
                Ok(None) => return Some("end".to_owned()),
                Ok(Some(Err(_))) => return Some("broken".to_owned()),
                Ok(Some(Ok(frame))) => self.read.extend(frame.into_data().unwrap_or_default()),
            }
        }
    }

    /// The next so many.
    pub async fn take(&mut self, count: usize) -> Vec<String> {
        let mut taken = Vec::new();
        for _ in 0..count {
            taken.push(self.next(PATIENCE).await.expect("it comes in time"));
        }
        taken
    }
}

fn tell(event: &Value) -> String {
    let text = |path: &str| event.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
    match event["type"].as_str().unwrap_or_default() {
        "ERROR" => format!("ERROR {} {} {}", event["object"]["code"], text("/object/reason"), text("/object/message")),
        kind => format!("{kind} {}", text("/object/metadata/name")),
    }
}
