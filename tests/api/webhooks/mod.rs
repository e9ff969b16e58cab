//! Admission webhooks: real ones, over TLS, and what becomes of requests.

mod conditions;
mod credentials;
mod converting;
mod failures;
mod matching;
mod mutating;
mod shadow;
mod figures;
mod validating;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{CRONTABS, crontab, serve_crontabs};
use crate::https::{Https, Identity, Kept, Reply};
use crate::server::{Answer, Folder, Server};

const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1";
const JSON: (&str, &str) = ("Content-Type", "application/json");
const MERGE: (&str, &str) = ("Content-Type", "application/merge-patch+json");

/// A webhook that keeps what it was asked. What it answers follows from the path that it is called by.
pub struct Hook {
    authority: String,
    https: Https,
    seen: Arc<Mutex<Vec<Value>>>,
}

/// What a path of a webhook answers, made of the AdmissionReview.
pub type Respond = Box<dyn Fn(&Value) -> Option<Reply> + Send + Sync>;

impl Hook {
    /// A webhook with these paths, whose certificate is for 127.0.0.1.
    pub fn new<const N: usize>(paths: [(&'static str, Respond); N]) -> Hook {
        Hook::named("127.0.0.1", paths)
    }

    /// Like [`Hook::new`], but connections are kept for further requests.
    fn keeping<const N: usize>(paths: [(&'static str, Respond); N]) -> Hook {
        Hook::of("127.0.0.1", paths, Kept::Alive)
    }

    fn named<const N: usize>(name: &str, paths: [(&'static str, Respond); N]) -> Hook {
        Hook::of(name, paths, Kept::Once)
    }

    fn of<const N: usize>(name: &str, paths: [(&'static str, Respond); N], kept: Kept) -> Hook {
        let identity = Identity::new(name);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (noted, paths) = (Arc::clone(&seen), BTreeMap::from(paths));
        let address: SocketAddr = (Ipv4Addr::LOCALHOST, 0).into();
        let https = Https::serve(address, &identity, kept, move |mut request| {
            let review: Value = serde_json::from_str(request["review"].as_str()?).ok()?;
            request["review"] = review.clone();
            let path = request["path"].as_str()?.split('?').next()?.to_owned();
            noted.lock().expect("no thread panics").push(request);
            paths.get(path.as_str())?(&review)
        });
        Hook { authority: identity.authority, https, seen }
    }

    /// The requests so far, and forgets them.
    pub fn take_seen(&self) -> Vec<Value> {
        std::mem::take(&mut *self.seen.lock().expect("no thread panics"))
    }

    fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.https.address)
    }

    /// A webhook of a configuration that is called at `path` for whatever is done with CronTabs.
    pub fn webhook(&self, name: &str, path: &str) -> Value {
        json!({
            "name": name,
            "clientConfig": {"url": self.url(path), "caBundle": self.authority},
            "rules": [{
                "operations": ["*"], "apiGroups": ["stable.example.com"], "apiVersions": ["*"], "resources": ["crontabs"],
            }],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        })
    }
}

/// The answer that is this response, with the uid that was asked.
pub fn respond(response: impl Fn(&Value) -> Value + Send + Sync + 'static) -> Respond {
    Box::new(move |review| {
        let mut response = response(&review["request"]);
        if response.get("uid").is_none() {
            response["uid"] = review["request"]["uid"].clone();
        }
        let answer = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
        Some(Reply { status: 200, content_type: "application/json".to_owned(), body: answer.to_string() })
    })
}

/// Lets everything pass.
pub fn allow() -> Respond {
    respond(|_| json!({"allowed": true}))
}

/// Lets everything pass with a patch.
fn patch(patch: impl Fn(&Value) -> Value + Send + Sync + 'static) -> Respond {
    respond(move |request| {
        let patch = STANDARD.encode(patch(request).to_string());
        json!({"allowed": true, "patchType": "JSONPatch", "patch": patch})
    })
}

/// An answer that is this text.
fn raw(status: u64, content_type: &'static str, body: impl Into<String>) -> Respond {
    let body = body.into();
    Box::new(move |_| Some(Reply { status, content_type: content_type.to_owned(), body: body.clone() }))
}

/// `webhook` with the fields of `other` in place of its own.
fn with(mut webhook: Value, other: Value) -> Value {
    for (name, value) in other.as_object().expect("the test's fields are an object") {
        webhook[name] = value.clone();
    }
    webhook
}

/// Registers a configuration of `kind`: `Mutating` or `Validating`.
#[track_caller]
pub fn register(server: &Server, kind: &str, name: &str, webhooks: Vec<Value>) {
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": format!("{kind}WebhookConfiguration"),
        "metadata": {"name": name}, "webhooks": webhooks,
    });
    let path = format!("{CONFIGURATIONS}/{}webhookconfigurations", kind.to_lowercase());
    let answer = server.send("POST", &path, &[JSON], Some(configuration.to_string().as_bytes()));
    assert_eq!(answer.status, 201, "{}", answer.json());
}

/// A server in memory that serves CronTabs.
fn start(arguments: &[&str]) -> (Server, Folder) {
    let folder = Folder::for_test();
    let server = serve_crontabs(&folder, &[&["--store", "memory"], arguments].concat());
    (server, folder)
}

fn create(server: &Server, object: &Value) -> Answer {
    server.send("POST", CRONTABS, &[JSON], Some(object.to_string().as_bytes()))
}

/// That the request fails inside, for this.
#[track_caller]
fn check_internal(answer: &Answer, why: &str) {
    let status = answer.json();
    assert_eq!(status["message"], format!("Internal error occurred: {why}"), "{status}");
    assert_eq!((answer.status, &status["reason"]), (500, &json!("InternalError")));
    assert_eq!(status["details"]["causes"][0]["message"], why);
}
