//! Requests that are refused before their sender is known: the timeout that they ask for makes no sense, or their sender
//! can't be authenticated. They have one line in the audit log.
//!
//! Source: `k8s.io/apiserver/pkg/endpoints/filters`, `WithRequestDeadline` and `WithFailedAuthenticationAudit`, release
//! 1.37.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderMap, Request, Response, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;

use crate::audit::{AuditEvent, AuditStage, Log, PLANE};
use crate::auth::UserInfo;
use crate::meta::Status;

use super::exchange::{Exchange, no_memory};
use super::limits::RequestKind;
use super::path::{self, Target};
use super::query::Query;
use super::{answer, classify};

/// Answers these requests, and records them.
#[derive(Clone, Default)]
pub struct EarlyRefusals {
    pub(super) logs: Arc<[Log]>,
    pub(super) plane: Arc<str>,
}

impl EarlyRefusals {
    /// The answer to a request whose sender can't be authenticated: 401, unless the request itself is refused.
    /// `certified` is whether its client showed a certificate.
    pub fn unauthenticated<B>(&self, request: &Request<B>, certified: bool) -> Response<Body> {
        let mut exchange = exchange_of(request);
        let target = path::parse(&exchange.path).ok();
        if let Some(refusal) = self.wrong_timeout(&mut exchange, target.as_ref()) {
            return refusal;
        }
        let attempted = attempted(request.headers(), &exchange.query, certified);
        self.refuse(&exchange, target.as_ref(), &Status::unauthorized(), attempted)
    }

    /// The answer to a request whose head is too long for the memory that is left for such heads: 429.
    pub fn crowded<B>(&self, request: &Request<B>) -> Response<Body> {
        let exchange = exchange_of(request);
        let (target, refusal) = (path::parse(&exchange.path).ok(), no_memory());
        let why = refusal.message.clone();
        self.refuse(&exchange, target.as_ref(), &refusal, why)
    }

    /// The answer to a request with a timeout that makes no sense; `None` for any other, and for one that goes on for as
    /// long as it takes. It tells nothing of what authentication found, which comes later in kube-apiserver.
    pub(super) fn wrong_timeout(&self, exchange: &mut Exchange, target: Option<&Target>) -> Option<Response<Body>> {
        // A path that can't be read is refused for that.
        let target = target.filter(|target| !matches!(target, Target::Undetermined))?;
        let error = exchange.query.timeout().err()?;
        if classify::kind(exchange, Some(target)) == RequestKind::LongRunning {
            return None;
        }
        exchange.forget_authentication();
        let why = format!("invalid timeout specified in the request URL - {error}");
        Some(self.refuse(exchange, Some(target), &Status::bad_request(&why), why))
    }

    /// Answers the request, and writes its one line; `why` is for people.
    fn refuse(&self, exchange: &Exchange, target: Option<&Target>, refusal: &Status, why: String) -> Response<Body> {
        if !self.logs.is_empty() {
            self.write(exchange, target, refusal, why);
        }
        answer::status(exchange, refusal)
    }

    fn write(&self, exchange: &Exchange, target: Option<&Target>, refusal: &Status, why: String) {
        let mut event = AuditEvent {
            code: refusal.code,
            failure: Some(refusal.clone()),
            refused_early: why,
            user: UserInfo::default(),
            ..classify::event(exchange, target)
        };
        event.bodies.answer(&refusal.to_value(), true);
        if !self.plane.is_empty() {
            event.annotations.push((PLANE.into(), self.plane.to_string()));
        }
        let now = Timestamp::now();
        self.logs.iter().for_each(|log| log.write(&event, &log.extent(&event), AuditStage::ResponseStarted, now));
    }
}

/// The exchange of a request, without its body.
fn exchange_of<B>(request: &Request<B>) -> Exchange {
    let mut head = Request::new(Body::empty());
    *head.method_mut() = request.method().clone();
    *head.uri_mut() = request.uri().clone();
    *head.headers_mut() = request.headers().clone();
    *head.extensions_mut() = request.extensions().clone();
    Exchange::read(head).0
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
