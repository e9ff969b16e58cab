//! What an HTTP answer of a webhook means.

use std::time::Duration;

use bytes::Bytes;

use crate::value::{Value, go_quote, json, yaml};

/// How much of an answer that is not a success is quoted, in bytes. Source: client-go.
const QUOTED_BYTES_MAX: usize = 2048;

/// An answer, read to its end.
pub(super) struct Answer {
    pub status: u16,
    pub content_type: Option<String>,
    /// Set where the webhook asks for another try.
    pub retry_after: Option<Duration>,
    pub body: Bytes,
}

impl Answer {
    /// The body of a success; the words for anything else. `reads_any_type` is whether it may call itself what it likes.
    pub fn into_body(self, reads_any_type: bool) -> Result<Bytes, String> {
        if !(200..=206).contains(&self.status) {
            return Err(self.failure());
        }
        let content_type = self.content_type.as_deref().unwrap_or("application/json");
        if !reads_any_type && !is_decodable(content_type) {
            return Err(format!("serializer for {content_type} doesn't exist"));
        }
        if self.body.is_empty() {
            let status = self.status;
            return Err(format!("0-length response with status code: {status} and content type: {content_type}"));
        }
        Ok(self.body)
    }

    /// The message of a `Status` in the body, else what the status code alone says.
    fn failure(&self) -> String {
        let decodable = self.content_type.as_deref().is_none_or(is_decodable);
        let stated = decodable.then(|| failed_status(&self.body)).flatten();
        stated.unwrap_or_else(|| generic(self.status, &self.said()))
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

/// Whether the reference has a reader for this media type.
fn is_decodable(content_type: &str) -> bool {
    let media = content_type.split(';').next().unwrap_or_default().trim();
    ["application/json", "application/yaml", "text/plain", "application/vnd.kubernetes.protobuf"]
        .iter()
        .any(|known| media.eq_ignore_ascii_case(known))
}

/// The message of a body that is a `Status` of a failure.
fn failed_status(body: &[u8]) -> Option<String> {
    let decoded = json::decode(body).ok().or_else(|| yaml::decode(body).ok())?;
    let is = |name: &str, allowed: &[&str]| allowed.contains(&decoded.str_at(&[name]));
    let is_status = is("kind", &["Status"]) && is("apiVersion", &["v1", ""]) && is("status", &["Failure"]);
    is_status.then(|| decoded.get("message").and_then(Value::as_str).unwrap_or_default().to_owned())
}

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
