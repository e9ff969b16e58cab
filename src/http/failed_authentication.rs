//! Audit log entries for requests that fail because their sender can't be authenticated.
//!
//! Source: `k8s.io/apiserver/pkg/endpoints/filters`, `WithFailedAuthenticationAudit`, release 1.37.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;

use crate::audit::{AuditEvent, AuditStage, Log, PLANE};
use crate::meta::Status;

use super::classify;
use super::exchange::Exchange;
use super::path;
use super::query::Query;

/// Where failures are recorded.
#[derive(Clone)]
pub struct FailedAuthentication {
    pub(super) logs: Arc<[Log]>,
    pub(super) plane: Arc<str>,
}

impl FailedAuthentication {
    /// Writes the one line of a request that is answered 401. `certified` is whether its client showed a certificate.
    pub fn tell<B>(&self, request: &Request<B>, certified: bool) {
        if self.logs.is_empty() {
            return;
        }
        let mut head = Request::new(Body::empty());
        *head.method_mut() = request.method().clone();
        *head.uri_mut() = request.uri().clone();
        *head.headers_mut() = request.headers().clone();
        *head.extensions_mut() = request.extensions().clone();
        let attempted =
            attempted(request.headers(), &Query::parse(request.uri().query().unwrap_or_default()), certified);
        let (exchange, _) = Exchange::read(head);
        let refusal = Status::unauthorized();
        let mut event = AuditEvent {
            code: StatusCode::UNAUTHORIZED.as_u16(),
            failure: Some(refusal),
            attempted,
            ..classify::event(&exchange, path::parse(&exchange.path).ok().as_ref())
        };
        if let Some(refusal) = &event.failure {
            event.bodies.answer(&refusal.to_value(), true);
        }
        if !self.plane.is_empty() {
            event.annotations.push((PLANE.into(), self.plane.to_string()));
        }
        let now = Timestamp::now();
        self.logs.iter().for_each(|log| log.write(&event, &log.extent(&event), AuditStage::ResponseStarted, now));
    }
}

/// The methods by which a request tried to authenticate.
fn attempted(headers: &HeaderMap, query: &Query, certified: bool) -> String {
    let authorization = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let scheme = authorization.trim().split_once(' ').map(|(scheme, _)| scheme.to_ascii_lowercase());
    let ways = [
        ("basic", is_basic(authorization)),
        ("bearer", scheme.as_deref() == Some("bearer")),
        ("access_token", query.first("access_token").is_some_and(|token| !token.trim().is_empty())),
        ("x509", certified),
    ];
    let ways: Vec<_> = ways.into_iter().filter(|(_, is_tried)| *is_tried).map(|(way, _)| way).collect();
    match ways.as_slice() {
        [] => "Authentication failed, no credentials provided".to_owned(),
        ways => format!("Authentication failed, attempted: {}", ways.join(", ")),
    }
}

/// Whether the header holds a name and a password, as Go's `BasicAuth` reads them.
fn is_basic(authorization: &str) -> bool {
    const PREFIX: &str = "Basic ";
    let Some((prefix, encoded)) = authorization.split_at_checked(PREFIX.len()) else { return false };
    prefix.eq_ignore_ascii_case(PREFIX) && STANDARD.decode(encoded).is_ok_and(|decoded| decoded.contains(&b':'))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[track_caller]
    fn check(authorization: &'static str, query: &str, certified: bool, expected: &str) {
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, HeaderValue::from_static(authorization));
        assert_eq!(attempted(&headers, &Query::parse(query), certified), format!("Authentication failed, {expected}"));
    }

    #[test]
    fn the_ways_are_named_in_which_a_sender_tried_to_be_known() {
        check("", "", false, "no credentials provided");
        check("Basic YTpi", "", false, "attempted: basic");
        check("Basic YQ==", "", false, "no credentials provided");
        check("bearer wrong", "access_token=a", true, "attempted: bearer, access_token, x509");
        check("Bearer", "", true, "attempted: x509");
    }
}
