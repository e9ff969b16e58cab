//! HTTP responses, all with headers that keep other pages out.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};

use crate::object;
use crate::value::{Value, json};

/// The headers of every response: its type is not guessed, it is not framed, cached, or read from
/// another origin.
const HEADERS: [(&str, &str); 6] = [
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cache-control", "no-store"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
];

/// The content security policy that allows nothing.
const NOTHING: &str = "default-src 'none'; frame-ancestors 'none'";

/// A response with this content type.
pub fn bytes(status: StatusCode, content_type: &'static str, body: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    protect(headers);
    response
}

/// The page. Its script comes from this server, its styles also with `nonce`; it connects only to
/// this server.
pub fn page(html: String, nonce: &str) -> Response<Body> {
    let policy = format!(
        "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; connect-src 'self'; img-src 'self'; \
         form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
    );
    let mut response = bytes(StatusCode::OK, "text/html; charset=utf-8", html);
    // A nonce consists of letters and digits, so the policy is valid.
    let policy = HeaderValue::from_str(&policy).unwrap_or(HeaderValue::from_static(NOTHING));
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    response
}

/// Adds the headers that keep other pages out to a response.
pub fn protect(headers: &mut HeaderMap) {
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(NOTHING));
}

/// A value as JSON.
pub fn value(value: &Value) -> Response<Body> {
    bytes(StatusCode::OK, "application/json", json::encode(value))
}

/// An error with a message, as JSON.
pub fn refusal(status: StatusCode, message: &str) -> Response<Body> {
    bytes(status, "application/json", json::encode(&object! { "error" => message }))
}
