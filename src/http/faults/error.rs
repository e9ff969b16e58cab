//! The errors that faults answer with: the Status with which Kubernetes would answer this request.
//!
//! Source: `k8s.io/apimachinery/pkg/api/errors` and `apiserver/pkg/registry/generic/registry/store.go`, release 1.37.

use axum::body::Body;

use crate::kinds;
use crate::meta::Status;
use crate::protobuf;
use crate::store::continue_token::ContinueToken;
use crate::value::{Value, json, yaml};

use super::super::app::App;
use super::super::exchange::Exchange;
use super::super::negotiate::{Encoding, body_encoding};
use super::super::path::{Selected, Target};
use super::fault::InjectedError;
use super::matching::FaultSubject;

/// The codes, each with its reasons; the first one is the default for its code.
pub const REASONS: [(u16, &str); 12] = [
    (401, "Unauthorized"),
    (403, "Forbidden"),
    (404, "NotFound"),
    (409, "Conflict"),
    (409, "AlreadyExists"),
    (410, "Expired"),
    (410, "Gone"),
    (429, "TooManyRequests"),
    (500, "InternalError"),
    (500, "ServerTimeout"),
    (503, "ServiceUnavailable"),
    (504, "Timeout"),
];

/// The message for an update whose object has changed.
const MODIFIED: &str = "the object has been modified; please apply your changes to the latest version and try again";
const LIST_TOO_OLD: &str = "The resourceVersion for the provided list is too old.";
const WATCH_TOO_OLD: &str = "The resourceVersion for the provided watch is too old.";
const TOO_MANY_REQUESTS: &str = "Too many requests, please try again later.";
const TIMED_OUT: &str = "request did not complete within the allotted timeout";
const UNAVAILABLE: &str = "the server is currently unable to handle the request";
const FAILED: &str = "a fault was injected";

/// The answer to a watch whose revision has expired.
pub fn watch_expired() -> Status {
    Status::expired(WATCH_TOO_OLD)
}

/// The Status of `failure` for a request. The body of a creation is read, for the name in it.
pub async fn status(app: &App, exchange: &Exchange, target: &Target, failure: &InjectedError, body: Body) -> Status {
    let mut subject = FaultSubject::of(exchange, target);
    let is_create = subject.verb == "create" && !subject.resource.is_empty();
    let reason = match (failure.reason.as_str(), failure.code) {
        ("", 409) if is_create => "AlreadyExists",
        ("", code) => REASONS.iter().find(|(known, _)| *known == code).map_or("", |(_, reason)| reason),
        (reason, _) => reason,
    };
    if is_create && subject.name.is_empty() && matches!(reason, "Conflict" | "AlreadyExists" | "NotFound") {
        subject.name = name_in_body(app, exchange, body).await;
    }
    let mut status = of_reason(exchange, target, &subject, reason);
    if let Some(message) = &failure.message {
        status.message.clone_from(message);
    }
    if let Some(seconds) = failure.retry_after_seconds {
        status.details.get_or_insert_default().retry_after_seconds = seconds;
    }
    status
}

fn of_reason(exchange: &Exchange, target: &Target, subject: &FaultSubject, reason: &str) -> Status {
    let (group, resource, name) = (subject.group.as_str(), subject.resource.as_str(), subject.name.as_str());
    match reason {
        "Unauthorized" => Status::unauthorized(),
        "Forbidden" => forbidden(exchange, target, subject),
        "NotFound" if name.is_empty() => Status::not_found_generic(),
        "NotFound" => Status::not_found(group, resource, name),
        "AlreadyExists" => Status::already_exists(group, resource, name),
        "Conflict" => Status::conflict(group, resource, name, MODIFIED),
        "Expired" => expired(exchange, subject),
        "Gone" => Status { reason: reason.to_owned(), ..expired(exchange, subject) },
        "TooManyRequests" => Status::too_many_requests(TOO_MANY_REQUESTS, 1),
        "ServerTimeout" => Status::server_timeout(group, resource, &subject.verb),
        "ServiceUnavailable" => Status::service_unavailable(UNAVAILABLE),
        "Timeout" => Status::timeout(TIMED_OUT),
        _ => Status::internal_error(FAILED),
    }
}

fn forbidden(exchange: &Exchange, target: &Target, subject: &FaultSubject) -> Status {
    let Target::Resource(path) = target else {
        let attributes = crate::auth::Attributes::Path { verb: &subject.verb, path: &exchange.path };
        return Status::forbidden_path(&attributes.refusal(&exchange.user, ""));
    };
    let selected = Selected::default();
    let attributes = path.attributes(exchange.verb(path), &subject.name, &selected);
    Status::forbidden(&path.group, &path.resource, &subject.name, &attributes.refusal(&exchange.user, ""))
}

/// A list that continues gets a token to continue at the newest revision, if its own token can be decoded.
fn expired(exchange: &Exchange, subject: &FaultSubject) -> Status {
    if subject.verb == "watch" {
        return watch_expired();
    }
    let given = exchange.query.first("continue").unwrap_or_default();
    let prefix = if subject.namespace.is_empty() { String::new() } else { format!("{}/", subject.namespace) };
    match ContinueToken::decode(given, &prefix) {
        Ok(token) if !given.is_empty() => {
            Status::expired_continue(ContinueToken { revision: None, start: token.start }.encode(&prefix))
        }
        _ => Status::expired(LIST_TOO_OLD),
    }
}

/// The name of the object in a body; empty if it has none, or can't be decoded.
async fn name_in_body(app: &App, exchange: &Exchange, body: Body) -> String {
    let Ok(bytes) = exchange.read_body(&app.registry.memory, body).await else { return String::new() };
    let object = match body_encoding(&exchange.content_type) {
        Ok(Encoding::Json) => json::decode(&bytes).ok(),
        Ok(Encoding::Yaml) => yaml::decode(&bytes).ok(),
        Ok(Encoding::Protobuf) => open(&bytes),
        Err(_) => None,
    };
    object.map(|object| object.str_at(&["metadata", "name"]).to_owned()).unwrap_or_default()
}

fn open(bytes: &[u8]) -> Option<Value> {
    let envelope = protobuf::open(bytes).ok()?;
    protobuf::decode(kinds::message_of(&envelope.api_version, &envelope.kind)?, envelope.raw).ok()
}
