//! `Status`: the answer to a request if there is no object to answer with.
//!
//! Source: `k8s.io/apimachinery/pkg/api/errors` and answers recorded from Kubernetes 1.37, byte for byte, since clients
//! parse them and people compare them.

use super::Revision;
use super::field::ErrorList;
use crate::object;
use crate::value::{Map, Value, go_quote};
use crate::work;

/// The reasons that Kubernetes' clients know.
const KNOWN_REASONS: [&str; 19] = [
    "Unauthorized",
    "Forbidden",
    "NotFound",
    "AlreadyExists",
    "Conflict",
    "Gone",
    "Invalid",
    "ServerTimeout",
    "StorageReadError",
    "Timeout",
    "TooManyRequests",
    "BadRequest",
    "MethodNotAllowed",
    "NotAcceptable",
    "RequestEntityTooLarge",
    "UnsupportedMediaType",
    "InternalError",
    "Expired",
    "ServiceUnavailable",
];

/// A failure, or the success of a deletion.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Status {
    /// The HTTP status code; 200 for a success, which the body omits.
    pub code: u16,
    /// The reason, for machines; empty if the reference gives none.
    pub reason: String,
    /// The message, for people.
    pub message: String,
    /// What it is about.
    pub details: Option<Box<Details>>,
    /// A token for continuing a list at another revision.
    pub continue_token: String,
}

/// The subject of the status.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Details {
    /// The name of the object.
    pub name: String,
    /// The API group of the object.
    pub group: String,
    /// The kind of the object, or its name in paths.
    pub kind: String,
    /// The uid of the object.
    pub uid: String,
    /// The errors of single fields.
    pub causes: Vec<Cause>,
    /// 0 for none.
    pub retry_after_seconds: u32,
}

/// One of several errors.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cause {
    /// The reason, for programs.
    pub reason: String,
    /// The message, for people.
    pub message: String,
    /// The path of the field.
    pub field: String,
}

impl Status {
    fn new(code: u16, reason: &str, message: impl Into<String>) -> Self {
        Status { code, reason: reason.to_owned(), message: message.into(), ..Status::default() }
    }

    /// Sets the details: the object `name` of a resource (or kind) of `group`.
    fn about(mut self, group: &str, kind: &str, name: &str) -> Self {
        let (group, kind, name) = (group.to_owned(), kind.to_owned(), name.to_owned());
        self.details = Some(Box::new(Details { group, kind, name, ..Details::default() }));
        self
    }

    /// Sets `details: {}`, as in the answers of routes without a handler.
    fn with_empty_details(mut self) -> Self {
        self.details = Some(Box::default());
        self
    }

    /// The success of a deletion.
    pub fn success(details: Details) -> Self {
        Status { code: 200, details: Some(Box::new(details)), ..Status::default() }
    }

    /// A bare error: neither reason nor details.
    pub fn plain(code: u16, message: &str) -> Self {
        Status::new(code, "", message)
    }

    /// 404: the object does not exist.
    pub fn not_found(group: &str, plural: &str, name: &str) -> Self {
        let message = format!("{} {} not found", qualified(group, plural), go_quote(name));
        Status::new(404, "NotFound", message).about(group, plural, name)
    }

    /// No such resource.
    pub fn not_found_generic() -> Self {
        Status::new(404, "NotFound", "the server could not find the requested resource").with_empty_details()
    }

    /// 409: the name is taken.
    pub fn already_exists(group: &str, plural: &str, name: &str) -> Self {
        let message = format!("{} {} already exists", qualified(group, plural), go_quote(name));
        Status::new(409, "AlreadyExists", message).about(group, plural, name)
    }

    /// An object with a `generateName` whose generated name is taken: another try may find a free one.
    pub fn generate_name_conflict(group: &str, plural: &str, name: &str) -> Self {
        const RETRY_AFTER_SECONDS: u32 = 1;
        let mut status = Status::already_exists(group, plural, name);
        status.message.push_str(", the server was not able to generate a unique name for the object");
        status.details.get_or_insert_default().retry_after_seconds = RETRY_AFTER_SECONDS;
        status
    }

    /// Whether this is [`Status::already_exists`].
    pub fn is_already_exists(&self) -> bool {
        self.reason == "AlreadyExists"
    }

    /// 409: the object is not in the state that the client assumes.
    pub fn conflict(group: &str, plural: &str, name: &str, why: &str) -> Self {
        let of = qualified(group, plural);
        let message = format!("Operation cannot be fulfilled on {of} {}: {why}", go_quote(name));
        Status::new(409, "Conflict", message).about(group, plural, name)
    }

    /// 403: the action is not allowed.
    pub fn forbidden(group: &str, plural: &str, name: &str, why: &str) -> Self {
        let message = match (plural.is_empty(), name.is_empty()) {
            (true, _) => format!("forbidden: {why}"),
            (false, true) => format!("{} is forbidden: {why}", qualified(group, plural)),
            (false, false) => format!("{} {} is forbidden: {why}", qualified(group, plural), go_quote(name)),
        };
        Status::new(403, "Forbidden", message).about(group, plural, name)
    }

    /// 403: the user may not access this path.
    pub fn forbidden_path(why: &str) -> Self {
        Status::forbidden("", "", "", why)
    }

    /// An object with errors. The message names each error once; the causes list them all, except for those that the
    /// list left out.
    pub fn invalid(group: &str, kind: &str, name: &str, errors: &ErrorList) -> Self {
        work::steps(errors.len());
        let why = if errors.is_empty() { String::new() } else { format!(": {}", errors.aggregate()) };
        let message = format!("{} {} is invalid{why}", qualified(group, kind), go_quote(name));
        let mut status = Status::new(422, "Invalid", message).about(group, kind, name);
        let causes = errors.iter().map(|error| Cause {
            reason: error.kind.reason().to_owned(),
            message: error.body(),
            field: error.field.clone(),
        });
        status.details.get_or_insert_default().causes = causes.collect();
        status
    }

    /// A patch that does not apply; the reference gives no reason.
    pub fn unprocessable() -> Self {
        let message = "the server rejected our request due to an error in our request";
        Status::new(422, "Invalid", message).with_empty_details()
    }

    /// 400: the request can't be read.
    pub fn bad_request(message: &str) -> Self {
        Status::new(400, "BadRequest", message)
    }

    /// 401: nobody is authenticated.
    pub fn unauthorized() -> Self {
        Status::new(401, "Unauthorized", "Unauthorized")
    }

    /// `verb` is empty for methods that are not verbs.
    pub fn method_not_allowed(group: &str, plural: &str, verb: &str) -> Self {
        let of = go_quote(&qualified(group, plural));
        let message = format!("{verb} is not supported on resources of kind {of}");
        Status::new(405, "MethodNotAllowed", message).about(group, plural, "")
    }

    /// A method that the route of a built-in resource does not have.
    pub fn method_not_allowed_generic() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Status::new(405, "MethodNotAllowed", message).with_empty_details()
    }

    /// 406: no acceptable format is available.
    pub fn not_acceptable(message: &str) -> Self {
        Status::new(406, "NotAcceptable", message)
    }

    /// A 406 of the route of a built-in resource.
    pub fn not_acceptable_route(message: &str) -> Self {
        Status::not_acceptable(message).with_empty_details()
    }

    /// 415: the format of the body is not supported.
    pub fn unsupported_media_type(message: &str) -> Self {
        Status::new(415, "UnsupportedMediaType", message)
    }

    /// A 415 of the route of a built-in resource.
    pub fn unsupported_media_type_route(message: &str) -> Self {
        Status::unsupported_media_type(message).with_empty_details()
    }

    /// 413: the body is too large.
    pub fn request_entity_too_large(why: &str) -> Self {
        Status::new(413, "RequestEntityTooLarge", format!("Request entity too large: {why}"))
    }

    /// An object that is too large to be stored. Source: etcd, whose error kube-apiserver passes on.
    pub fn too_large_to_store() -> Self {
        Status::plain(500, "etcdserver: request is too large")
    }

    /// 500: the server failed.
    pub fn internal_error(why: &str) -> Self {
        let mut status = Status::new(500, "InternalError", format!("Internal error occurred: {why}"));
        let cause = Cause { message: why.to_owned(), ..Cause::default() };
        status.details = Some(Box::new(Details { causes: vec![cause], ..Details::default() }));
        status
    }

    /// An operation (`get`, `list`, `create`, `update` or `delete`) for which the database could not be reached.
    pub fn server_timeout(group: &str, plural: &str, operation: &str) -> Self {
        const RETRY_AFTER_SECONDS: u32 = 2;
        let resource = qualified(group, plural);
        let message = format!(
            "The {operation} operation against {resource} could not be completed at this time, please try again."
        );
        let mut status = Status::new(500, "ServerTimeout", message).about(group, plural, operation);
        status.details.get_or_insert_default().retry_after_seconds = RETRY_AFTER_SECONDS;
        status
    }

    /// 503: another server does not answer.
    pub fn service_unavailable(why: &str) -> Self {
        Status::new(503, "ServiceUnavailable", why)
    }

    /// 504: it took too long.
    pub fn timeout(why: &str) -> Self {
        Status::new(504, "Timeout", format!("Timeout: {why}")).with_empty_details()
    }

    /// A read at a revision that does not exist yet.
    pub fn too_large_resource_version(wanted: Revision, current: Revision) -> Self {
        let mut status = Status::timeout(&format!("Too large resource version: {wanted}, current: {current}"));
        let cause = Cause {
            reason: "ResourceVersionTooLarge".to_owned(),
            message: "Too large resource version".to_owned(),
            field: String::new(),
        };
        status.details = Some(Box::new(Details { causes: vec![cause], retry_after_seconds: 1, ..Details::default() }));
        status
    }

    /// 429: the server is overloaded; the client may try again after that many seconds.
    pub fn too_many_requests(message: &str, retry_after_seconds: u32) -> Self {
        let mut status = Status::new(429, "TooManyRequests", message);
        status.details = Some(Box::new(Details { retry_after_seconds, ..Details::default() }));
        status
    }

    /// A revision that was compacted.
    pub fn expired(message: &str) -> Self {
        Status::new(410, "Expired", message)
    }

    /// A page whose revision was compacted, with a token to continue at the newest.
    pub fn expired_continue(token: String) -> Self {
        let message = "The provided continue parameter is too old to display a consistent list result. You can start a new \
                       list without the continue parameter, or use the continue token in this response to retrieve the \
                       remainder of the results. Continuing with the provided token results in an inconsistent list - \
                       objects that were created, modified, or deleted between the time the first chunk was returned and \
                       now may show up in the list.";
        Status { continue_token: token, ..Status::expired(message) }
    }

    /// Decodes a Status made by another server; a code that HTTP does not allow becomes 0.
    pub fn decode(status: &Value) -> Status {
        let code = status.get("code").and_then(Value::as_i64);
        let details = status.get("details").filter(|details| details.as_object().is_some());
        Status {
            code: code.and_then(|code| code.try_into().ok()).unwrap_or_default(),
            reason: status.str_at(&["reason"]).to_owned(),
            message: status.str_at(&["message"]).to_owned(),
            details: details.map(|details| Box::new(Status::decode_details(details))),
            continue_token: status.str_at(&["metadata", "continue"]).to_owned(),
        }
    }

    /// Whether this is an error with a reason: it has that reason, or its code and a reason unknown to Kubernetes.
    pub fn is_for(&self, reason: &str, code: u16) -> bool {
        self.reason == reason || (self.code == code && !KNOWN_REASONS.contains(&self.reason.as_str()))
    }

    /// The details of a Status made by another server.
    pub fn decode_details(details: &Value) -> Details {
        let text = |of: &Value, name: &str| of.str_at(&[name]).to_owned();
        let causes = details.items_at(&["causes"]).iter().map(|cause| Cause {
            reason: text(cause, "reason"),
            message: text(cause, "message"),
            field: text(cause, "field"),
        });
        let seconds = details.get("retryAfterSeconds").and_then(Value::as_i64);
        Details {
            name: text(details, "name"),
            group: text(details, "group"),
            kind: text(details, "kind"),
            uid: text(details, "uid"),
            causes: causes.collect(),
            retry_after_seconds: seconds.and_then(|seconds| seconds.try_into().ok()).unwrap_or_default(),
        }
    }

    /// How long the client should wait, for the `Retry-After` header.
    pub fn retry_after_seconds(&self) -> Option<u32> {
        self.details.as_ref().map(|details| details.retry_after_seconds).filter(|seconds| *seconds > 0)
    }

    /// The object as it is sent.
    pub fn to_value(&self) -> Value {
        let failed = self.code >= 300;
        let mut status = object! {
            "apiVersion" => "v1",
            "kind" => "Status",
            "metadata" => object! {},
            "status" => if failed { "Failure" } else { "Success" },
        };
        let fields = status.make_object();
        if !self.continue_token.is_empty() {
            fields.insert("metadata", object! { "continue" => self.continue_token.clone() });
        }
        insert_text(fields, "message", &self.message);
        insert_text(fields, "reason", &self.reason);
        if let Some(details) = &self.details {
            fields.insert("details", details.to_value());
        }
        if failed {
            fields.insert("code", Value::Int(self.code.into()));
        }
        status
    }
}

impl Details {
    fn to_value(&self) -> Value {
        let mut fields = Map::new();
        for (name, text) in [("name", &self.name), ("group", &self.group), ("kind", &self.kind), ("uid", &self.uid)] {
            insert_text(&mut fields, name, text);
        }
        if !self.causes.is_empty() {
            let causes = self.causes.iter().map(|cause| {
                let mut fields = Map::new();
                for (name, text) in [("reason", &cause.reason), ("message", &cause.message), ("field", &cause.field)] {
                    insert_text(&mut fields, name, text);
                }
                Value::Object(fields)
            });
            fields.insert("causes", Value::Array(causes.collect()));
        }
        if self.retry_after_seconds > 0 {
            fields.insert("retryAfterSeconds", Value::Int(self.retry_after_seconds.into()));
        }
        Value::Object(fields)
    }
}

fn insert_text(fields: &mut Map, name: &str, text: &str) {
    if !text.is_empty() {
        fields.insert(name, Value::from(text));
    }
}

/// `plural.group`, or the plural alone for the core group.
fn qualified(group: &str, plural: &str) -> String {
    if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meta::field::{Error, Path};
    use crate::value::json;

    #[test]
    fn an_error_that_is_found_twice_stands_once_in_the_message() {
        let error = Error::invalid(&Path::new("metadata"), "x", "field is immutable");
        let status = Status::invalid("example.com", "Widget", "a", &ErrorList::from_iter([error.clone(), error]));
        let expected = r#"Widget.example.com "a" is invalid: metadata: Invalid value: "x": field is immutable"#;
        assert_eq!(status.message, expected);
        assert_eq!(status.details.map(|details| details.causes.len()), Some(2));
    }

    #[test]
    fn a_reason_that_clients_know_counts_more_than_the_code() {
        let status = Status { reason: "StorageReadError".into(), ..Status::plain(500, "") };
        assert!(!status.is_for("InternalError", 500));
        assert!(Status { reason: "Odd".into(), ..status }.is_for("InternalError", 500));
    }

    #[test]
    fn what_is_empty_is_left_out() {
        let text = json::encode_to_string(&Status::plain(500, "no reason").to_value());
        let expected =
            r#"{"apiVersion":"v1","code":500,"kind":"Status","message":"no reason","metadata":{},"status":"Failure"}"#;
        assert_eq!(text, expected);
    }
}
