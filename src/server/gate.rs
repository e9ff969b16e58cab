//! The first question to every request: who sends it?

use std::sync::Arc;

use axum::body::Body;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use hyper::{HeaderMap, Response, StatusCode};

use super::tls::Peer;
use crate::auth::{TokenFile, UserInfo};

/// Paths that answer whoever asks.
const HEALTH_PATHS: [&str; 3] = ["/healthz", "/livez", "/readyz"];

/// What kube-apiserver answers to somebody it does not know.
const UNAUTHORIZED: &str = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}
"#;

/// Tells who sends a request: first by the client certificate, then by a bearer token.
#[derive(Clone, Default)]
pub struct Gate {
    tokens: Option<Arc<TokenFile>>,
}

impl Gate {
    /// A gate that also takes the bearer tokens of `tokens`.
    pub fn with_tokens(tokens: TokenFile) -> Self {
        Gate { tokens: Some(Arc::new(tokens)) }
    }

    /// The user; `None` for a request without an identity that we issued.
    pub(super) fn who(&self, peer: &Peer, headers: &HeaderMap) -> Option<UserInfo> {
        match peer {
            Peer::User(user) => Some(user.clone()),
            Peer::Refused => None,
            Peer::Unnamed => {
                let authorization = headers.get(AUTHORIZATION)?.to_str().ok()?;
                self.tokens.as_ref()?.user_of_header(authorization).cloned()
            }
        }
    }
}

/// Whether `path` is a health check, or one check of several (`/readyz/ping`).
pub fn is_health_path(path: &str) -> bool {
    HEALTH_PATHS
        .iter()
        .any(|health| path.strip_prefix(health).is_some_and(|rest| matches!(rest.as_bytes(), [] | [b'/', ..])))
}

/// The 401 that Kubernetes answers.
pub fn unauthorized() -> Response<Body> {
    refusal(StatusCode::UNAUTHORIZED, "application/json", UNAUTHORIZED)
}

/// The 403 for a request to the port without TLS that a web page may have sent.
pub fn not_local() -> Response<Body> {
    let text = "this port answers programs on this machine only: the Host header must be a loopback name\n";
    refusal(StatusCode::FORBIDDEN, "text/plain; charset=utf-8", text)
}

fn refusal(status: StatusCode, content_type: &'static str, body: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response.headers_mut().insert("cache-control", HeaderValue::from_static("no-cache, private"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn health_paths_are_whole_segments() {
        for path in ["/healthz", "/livez", "/readyz", "/readyz/ping", "/readyz/"] {
            assert!(is_health_path(path), "{path}");
        }
        for path in ["/", "/version", "/readyzz", "/api/readyz", ""] {
            assert!(!is_health_path(path), "{path}");
        }
    }

    #[test]
    fn a_refused_certificate_is_not_saved_by_a_token() {
        let tokens = TokenFile::parse("s3cret,jane,u-1").expect("well-formed");
        let gate = Gate::with_tokens(tokens);
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, HeaderValue::from_static("Bearer s3cret"));
        assert_eq!(gate.who(&Peer::Refused, &headers), None);
        assert_eq!(gate.who(&Peer::Unnamed, &headers).map(|user| user.name).as_deref(), Some("jane"));
        assert_eq!(gate.who(&Peer::Unnamed, &HeaderMap::new()), None);
    }
}
