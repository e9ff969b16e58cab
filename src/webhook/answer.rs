//! Interprets the HTTP response of a webhook.

use std::time::Duration;

use super::{AnswerBody, FailedCall};
use crate::meta::{Cause, Details, Status};
use crate::value::{go_quote, json, yaml};

/// How much of the body of an unsuccessful response is quoted, in bytes. Source: client-go.
const QUOTED_BYTES_MAX: usize = 2048;

/// The longest body that is read as a `Status`.
const STATUS_BYTES_MAX: usize = 256 << 10;

/// A response, read to its end.
pub(super) struct WebhookAnswer {
    pub status: u16,
    pub content_type: Option<String>,
    /// The `Retry-After` header, in seconds.
    pub retry_after: Option<u64>,
    pub body: AnswerBody,
}

impl WebhookAnswer {
    /// How long to wait before another try, if the webhook asks for one.
    pub fn pause(&self) -> Option<Duration> {
        self.retry_after.filter(|_| self.status == 429 || self.status >= 500).map(Duration::from_secs)
    }

    /// The body of a successful response; an error for anything else. If `reads_any_type`, the
    /// response may have any media type.
    pub fn into_body(self, reads_any_type: bool) -> Result<AnswerBody, FailedCall> {
        if !(200..=206).contains(&self.status) {
            return Err(FailedCall::answered(self.status, self.failure(reads_any_type)));
        }
        let content_type = self.content_type.as_deref().unwrap_or("application/json");
        if !reads_any_type && !is_decodable(content_type) {
            return Err(format!("serializer for {content_type} doesn't exist").into());
        }
        if self.body.is_empty() {
            let status = self.status;
            return Err(format!("0-length response with status code: {status} and content type: {content_type}").into());
        }
        Ok(self.body)
    }

    /// The `Status` in the body, or else one derived from the status code.
    fn failure(&self, reads_any_type: bool) -> Status {
        let decodable = reads_any_type || self.content_type.as_deref().is_none_or(is_decodable);
        let stated = decodable.then(|| failed_status(&self.body)).flatten();
        stated.unwrap_or_else(|| self.generic())
    }

    /// The `Status` that the status code alone stands for.
    ///
    /// Source: `newUnstructuredResponseError` of client-go 0.37.
    fn generic(&self) -> Status {
        let said = self.said();
        let (reason, message) = (reason(self.status), generic(self.status, &said));
        let seconds = self.retry_after.unwrap_or_default();
        let cause = Cause { reason: "UnexpectedServerResponse".to_owned(), message: said, field: String::new() };
        let details = Details {
            causes: vec![cause],
            retry_after_seconds: seconds.try_into().unwrap_or(u32::MAX),
            ..Details::default()
        };
        let details = Some(Box::new(details));
        Status { code: self.status, reason: reason.to_owned(), message, details, ..Status::default() }
    }

    fn said(&self) -> String {
        let is_text = self.content_type.as_deref().is_none_or(|media| media.trim_start().starts_with("text/"));
        if is_text {
            let quoted = &self.body[..self.body.len().min(QUOTED_BYTES_MAX)];
            String::from_utf8_lossy(quoted).trim().to_owned()
        } else {
            "unknown".to_owned()
        }
    }
}

/// Whether client-go has a decoder for this media type.
fn is_decodable(content_type: &str) -> bool {
    let media = content_type.split(';').next().unwrap_or_default().trim();
    ["application/json", "application/yaml", "text/plain", "application/vnd.kubernetes.protobuf"]
        .iter()
        .any(|known| media.eq_ignore_ascii_case(known))
}

/// The body as a `Status`, if it is one of a failure, and no longer than [`STATUS_BYTES_MAX`].
fn failed_status(body: &[u8]) -> Option<Status> {
    let body = Some(body).filter(|body| body.len() <= STATUS_BYTES_MAX)?;
    let decoded = json::decode(body).ok().or_else(|| yaml::decode(body).ok())?;
    let is = |name: &str, allowed: &[&str]| allowed.contains(&decoded.str_at(&[name]));
    let is_status = is("kind", &["Status"]) && is("apiVersion", &["v1", ""]) && is("status", &["Failure"]);
    is_status.then(|| Status::decode(&decoded))
}

/// The reason that a status code stands for in the response to a POST.
fn reason(status: u16) -> &'static str {
    match status {
        400 => "BadRequest",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        405 => "MethodNotAllowed",
        406 => "NotAcceptable",
        409 => "AlreadyExists",
        415 => "UnsupportedMediaType",
        422 => "Invalid",
        429 => "TooManyRequests",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        500.. => "InternalError",
        _ => "",
    }
}

/// Whether a failure may be temporary.
///
/// Source: `DefaultShouldRetry` of `k8s.io/apiserver/pkg/util/webhook`, release 1.37.
pub(super) fn may_pass(status: &Status) -> bool {
    let waits = |details: &Details| status.reason == "ServerTimeout" || details.retry_after_seconds > 0;
    status.is_for("InternalError", 500)
        || status.is_for("Timeout", 504)
        || status.reason == "TooManyRequests"
        || status.code == 429
        || status.details.as_deref().is_some_and(waits)
}

/// The message that a status code stands for in the response to a POST; `said` is the quoted body.
///
/// Source: `NewGenericServerResponse` of apimachinery 0.37.
fn generic(status: u16, said: &str) -> String {
    let text = match status {
        400 => "the server rejected our request for an unknown reason",
        401 => "the server has asked for the client to provide credentials",
        403 | 415 => said,
        404 => "the server could not find the requested resource",
        405 => "the server does not allow this method on the requested resource",
        406 if said.is_empty() || said == "unknown" => {
            "the server was unable to respond with a content type that the client supports"
        }
        406 => said,
        409 => "the server reported a conflict",
        422 => "the server rejected our request due to an error in our request",
        429 => "the server has received too many requests and has asked us to try again later",
        503 => "the server is currently unable to handle the request",
        504 => {
            "the server was unable to return a response in the time allotted, but may still be processing the request"
        }
        500.. => {
            return format!("an error on the server ({}) has prevented the request from succeeding", go_quote(said));
        }
        _ => {
            return format!("the server responded with the status code {status} but did not return more information");
        }
    };
    text.to_owned()
}
