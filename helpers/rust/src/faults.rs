//! Faults of requests, on demand.

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::{ControlPlane, Error};

const PATH: &str = "/skiff/v1/faults";

/// What happens to requests that a test chooses.
///
/// ```
/// use skiff::Fault;
///
/// // Two updates of widgets are refused, after the first.
/// let fault = Fault::error(409).verbs(["update"]).resource("widgets").skip(1).times(2);
/// ```
#[derive(Clone, Debug)]
pub struct Fault {
    matching: Map<String, Value>,
    rest: Map<String, Value>,
}

/// How a watch ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// As at its time-out.
    Closed,
    /// Its connection breaks.
    Cut,
    /// Nothing more comes, until the fault is removed.
    Stalled,
    /// With an ERROR event, 410.
    Expired,
}

/// What is lost with a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// Nothing is done.
    Request,
    /// All is done.
    Answer,
}

impl Fault {
    fn of(name: &str, value: Value) -> Self {
        Fault { matching: Map::new(), rest: Map::from_iter([(name.to_owned(), value)]) }
    }

    /// They are answered with the Status that Kubernetes has for this code: 401, 403, 404, 409, 410, 429, 500, 503 or 504.
    pub fn error(code: u16) -> Self {
        Fault::of("error", json!({ "code": code }))
    }

    /// They wait.
    pub fn delay(time: Duration) -> Self {
        Fault::of("delay", go(time))
    }

    /// Watches end, those too that are open.
    pub fn watch(end: End) -> Self {
        let name = match end {
            End::Closed => "closed",
            End::Cut => "cut",
            End::Stalled => "stalled",
            End::Expired => "expired",
        };
        Fault::of("watch", json!({ "end": name }))
    }

    /// Lists and watches at `resourceVersion=0` begin with the state of so many changes ago.
    pub fn stale(changes: u64) -> Self {
        Fault::of("stale", changes.into())
    }

    /// The connection is cut in place of an answer.
    pub fn lose(lost: Lost) -> Self {
        let name = match lost {
            Lost::Request => "request",
            Lost::Answer => "answer",
        };
        Fault::of("lose", name.into())
    }

    /// The object is written before the request: an update of what the client has read conflicts.
    pub fn conflict() -> Self {
        Fault::of("conflict", true.into())
    }

    /// It is for these verbs.
    #[must_use]
    pub fn verbs(self, verbs: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let verbs = verbs.into_iter().map(|verb| Value::String(verb.into())).collect();
        self.matching("verbs", Value::Array(verbs))
    }

    /// It is for this API group; the empty one is that of the core.
    #[must_use]
    pub fn group(self, group: &str) -> Self {
        self.matching("group", group.into())
    }

    /// It is for this resource, by its plural name.
    #[must_use]
    pub fn resource(self, plural: &str) -> Self {
        self.matching("resource", plural.into())
    }

    /// It is for this subresource; the empty one is the object itself.
    #[must_use]
    pub fn subresource(self, subresource: &str) -> Self {
        self.matching("subresource", subresource.into())
    }

    /// It is for this namespace.
    #[must_use]
    pub fn namespace(self, namespace: &str) -> Self {
        self.matching("namespace", namespace.into())
    }

    /// It is for the object of this name.
    #[must_use]
    pub fn name(self, name: &str) -> Self {
        self.matching("name", name.into())
    }

    /// It is for this user.
    #[must_use]
    pub fn user(self, user: &str) -> Self {
        self.matching("user", user.into())
    }

    /// It is for this path, or those that begin with what stands before a `*`: this alone is for those that are not resources.
    #[must_use]
    pub fn path(self, path: &str) -> Self {
        self.matching("path", path.into())
    }

    /// So many requests that fit go by first.
    #[must_use]
    pub fn skip(self, count: u64) -> Self {
        self.with("skip", count.into())
    }

    /// So many requests meet it.
    #[must_use]
    pub fn times(self, count: u64) -> Self {
        self.with("times", count.into())
    }

    /// How likely each of them meets it, from 0 to 1. The same seed gives the same chances.
    #[must_use]
    pub fn probability(self, share: f64, seed: u32) -> Self {
        self.with("probability", share.into()).with("seed", seed.into())
    }

    /// They wait, before anything else.
    #[must_use]
    pub fn delayed(self, time: Duration) -> Self {
        self.with("delay", go(time))
    }

    /// The reason of the error, where its code has several: `AlreadyExists`, `Gone`, `ServerTimeout`.
    #[must_use]
    pub fn reason(self, reason: &str) -> Self {
        self.of_effect("reason", reason.into())
    }

    /// The message of the error, in place of Kubernetes' words.
    #[must_use]
    pub fn message(self, message: &str) -> Self {
        self.of_effect("message", message.into())
    }

    /// When the client may try again that gets the error.
    #[must_use]
    pub fn retry_after_seconds(self, seconds: u32) -> Self {
        self.of_effect("retryAfterSeconds", seconds.into())
    }

    /// The watch ends after so many objects.
    #[must_use]
    pub fn after_events(self, count: u64) -> Self {
        self.of_effect("afterEvents", count.into())
    }

    /// The watch ends after so long.
    #[must_use]
    pub fn after(self, time: Duration) -> Self {
        self.of_effect("after", go(time))
    }

    fn matching(mut self, name: &str, value: Value) -> Self {
        self.matching.insert(name.to_owned(), value);
        self
    }

    fn with(mut self, name: &str, value: Value) -> Self {
        self.rest.insert(name.to_owned(), value);
        self
    }

    /// What says more of an error or of the end of a watch; the server refuses it elsewhere.
    fn of_effect(mut self, name: &str, value: Value) -> Self {
        let effect = ["error", "watch"].into_iter().find(|effect| self.rest.contains_key(*effect));
        match effect.and_then(|effect| self.rest.get_mut(effect)).and_then(Value::as_object_mut) {
            Some(effect) => _ = effect.insert(name.to_owned(), value),
            None => _ = self.rest.insert(name.to_owned(), value),
        }
        self
    }

    fn to_body(&self) -> Value {
        let mut body = self.rest.clone();
        body.insert("match".to_owned(), Value::Object(self.matching.clone()));
        Value::Object(body)
    }
}

/// A fault that a control plane has, until it is removed.
#[derive(Debug)]
pub struct Injected {
    plane: ControlPlane,
    path: String,
}

impl ControlPlane {
    /// Has requests meet `fault` from now on.
    ///
    /// # Errors
    ///
    /// The fault makes no sense, or the server does not answer.
    pub async fn inject(&self, fault: Fault) -> Result<Injected, Error> {
        let added = self.send("POST", PATH, Some(fault.to_body())).await?;
        let id = added["id"].as_str().unwrap_or_default();
        Ok(Injected { plane: self.clone(), path: format!("{PATH}/{id}") })
    }
}

impl Injected {
    /// How often it took effect.
    ///
    /// # Errors
    ///
    /// It is removed, or the server does not answer.
    pub async fn hits(&self) -> Result<u64, Error> {
        Ok(self.plane.send("GET", &self.path, None).await?["hits"].as_u64().unwrap_or_default())
    }

    /// Has no request meet it any more; stalled watches go on.
    ///
    /// # Errors
    ///
    /// It is removed, or the server does not answer.
    pub async fn remove(self) -> Result<(), Error> {
        self.plane.send("DELETE", &self.path, None).await.map(drop)
    }
}

/// As Go writes it.
fn go(time: Duration) -> Value {
    Value::String(format!("{}us", time.as_micros()))
}
