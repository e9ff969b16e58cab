//! Authentication, which every request passes first.

use std::sync::Arc;

use axum::body::Body;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{HeaderMap, Request, Response, StatusCode};

use super::cors::AllowedOrigins;
use super::tls::Peer;
use crate::auth::{AuthenticationNotes, RequestHeader, Tokens, UserInfo, bearer_token, extra_space_warning};
use crate::http::{EarlyRefusals, audit_id, websocket};

/// Paths that are answered without an identity.
const HEALTH_PATHS: [&str; 3] = ["/healthz", "/livez", "/readyz"];

const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

/// Determines the sender of a request: first by a proxy's headers, then by the client certificate, then by a bearer
/// token.
#[derive(Clone)]
pub struct Gate {
    tokens: Arc<Tokens>,
    /// Whether a client without credentials is accepted, as the anonymous user.
    anonymous: bool,
    request_header: Arc<RequestHeader>,
    pub(super) allowed_origins: Arc<AllowedOrigins>,
    /// Answers the requests that are refused.
    early_refusals: EarlyRefusals,
}

impl Gate {
    /// A gate that accepts the bearer tokens that `tokens` know.
    pub fn new(tokens: Arc<Tokens>) -> Self {
        Gate {
            tokens,
            anonymous: false,
            request_header: Arc::default(),
            allowed_origins: Arc::default(),
            early_refusals: EarlyRefusals::default(),
        }
    }

    /// The same gate, which accepts anonymous requests if `anonymous`.
    pub fn with_anonymous(self, anonymous: bool) -> Self {
        Gate { anonymous, ..self }
    }

    /// The same gate, which trusts these headers of proxies.
    pub fn with_request_header(self, request_header: RequestHeader) -> Self {
        Gate { request_header: Arc::new(request_header), ..self }
    }

    /// The same gate, which lets web pages of these origins read the answers.
    pub fn with_allowed_origins(self, allowed_origins: Arc<AllowedOrigins>) -> Self {
        Gate { allowed_origins, ..self }
    }

    /// The same gate, which lets `early_refusals` answer the requests that it refuses.
    pub fn with_early_refusals(self, early_refusals: EarlyRefusals) -> Self {
        Gate { early_refusals, ..self }
    }

    /// Refuses a request of an unknown client.
    pub(super) fn refuse<B>(&self, peer: &Peer, request: &mut Request<B>) -> Response<Body> {
        // The audit line and the answer have the same id.
        if let Ok(id) = HeaderValue::from_str(&audit_id(request.headers())) {
            request.headers_mut().insert(AUDIT_ID, id);
        }
        self.early_refusals.unauthenticated(request, *peer != Peer::Unnamed)
    }

    /// Refuses a request for whose head there is no memory left.
    pub(super) fn crowded<B>(&self, request: &Request<B>) -> Response<Body> {
        self.early_refusals.crowded(request)
    }

    /// The user; `None` for a request without valid credentials. `notes` gets what is told beside.
    ///
    /// A certificate that our CA did not sign is ignored, and a token is still checked.
    pub(super) async fn authenticate(
        &self,
        peer: &Peer,
        headers: &HeaderMap,
        notes: &mut AuthenticationNotes,
    ) -> Option<UserInfo> {
        let peer = match peer {
            Peer::Proxy(itself) => match self.request_header.user_of(&named_texts(headers)) {
                Some(user) => return Some(user),
                None => itself,
            },
            peer => peer,
        };
        if let Peer::User(user) = peer {
            return Some(user.clone());
        }
        let token = match headers.get(AUTHORIZATION) {
            Some(authorization) => {
                let authorization = authorization.to_str().ok()?;
                notes.warnings.extend(extra_space_warning(authorization));
                bearer_token(authorization).map(str::to_owned)
            }
            None => websocket_token(headers),
        };
        let Some(token) = token else {
            return (self.anonymous && *peer == Peer::Unnamed).then(UserInfo::anonymous);
        };
        match self.tokens.authenticate(&token, &[]).await {
            Ok(found) => {
                *notes = found.notes;
                Some(found.user)
            }
            Err(error) => {
                tracing::info!(error = error.to_string(), "a request is refused");
                None
            }
        }
    }
}

/// The headers that are text, their names in lower case.
fn named_texts(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |(name, value): (&hyper::header::HeaderName, &HeaderValue)| {
        value.to_str().ok().map(|text| (name.as_str().to_owned(), text.to_owned()))
    };
    headers.iter().filter_map(text).collect()
}

/// The token among the sub-protocols of a WebSocket, where there must also be another one for the answer.
fn websocket_token(headers: &HeaderMap) -> Option<String> {
    if !websocket::is_upgrade(headers) {
        return None;
    }
    let (tokens, others): (Vec<&str>, Vec<&str>) =
        websocket::protocols(headers).partition(|protocol| protocol.starts_with(websocket::TOKEN_PROTOCOL));
    let [token] = tokens[..] else { return None };
    let token = URL_SAFE_NO_PAD.decode(token.strip_prefix(websocket::TOKEN_PROTOCOL)?).ok()?;
    (!others.is_empty()).then(|| String::from_utf8(token).ok())?
}

/// Whether `path` is a health check, or one check of several (`/readyz/ping`).
pub fn is_health_path(path: &str) -> bool {
    HEALTH_PATHS
        .iter()
        .any(|health| path.strip_prefix(health).is_some_and(|rest| matches!(rest.as_bytes(), [] | [b'/', ..])))
}

/// The 403 for a request on the port without TLS that a web page may have sent.
pub fn not_local() -> Response<Body> {
    let text = "this port answers programs on this machine only: the Host header must be a loopback name\n";
    refusal(StatusCode::FORBIDDEN, "text/plain; charset=utf-8", text)
}

/// The answer to a browser's preflight request.
pub(super) fn preflight() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response.headers_mut().insert("cache-control", HeaderValue::from_static("no-cache, private"));
    response
}

/// Adds the id of the audit log to the refusal.
pub fn with_audit_id(mut refusal: Response<Body>, headers: &HeaderMap) -> Response<Body> {
    if let Ok(id) = HeaderValue::from_str(&audit_id(headers)) {
        refusal.headers_mut().insert(AUDIT_ID, id);
    }
    refusal
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
    use crate::auth::TokenFile;

    #[test]
    fn health_paths_are_whole_segments() {
        for path in ["/healthz", "/livez", "/readyz", "/readyz/ping", "/readyz/"] {
            assert!(is_health_path(path), "{path}");
        }
        for path in ["/", "/version", "/readyzz", "/api/readyz", ""] {
            assert!(!is_health_path(path), "{path}");
        }
    }

    fn gate() -> Gate {
        let audiences = vec!["api".to_owned()];
        let file = TokenFile::parse("s3cret,jane,u-1", &audiences).expect("well-formed");
        Gate::new(Arc::new(Tokens { api_audiences: audiences, authenticators: vec![Box::new(file)] }))
    }

    async fn user(gate: &Gate, peer: &Peer, headers: &HeaderMap) -> Option<UserInfo> {
        gate.authenticate(peer, headers, &mut AuthenticationNotes::default()).await
    }

    #[tokio::test]
    async fn a_request_without_credentials_is_anonymous_and_one_with_wrong_ones_is_not() {
        let gate = gate().with_anonymous(true);
        let who = async |peer, authorization: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            authorization.map(|text| headers.insert(AUTHORIZATION, HeaderValue::from_static(text)));
            user(&gate, &peer, &headers).await.map(|user| user.name)
        };
        assert_eq!(who(Peer::Unnamed, None).await.as_deref(), Some("system:anonymous"));
        assert_eq!(who(Peer::Unnamed, Some("Basic abc")).await.as_deref(), Some("system:anonymous"));
        assert_eq!(who(Peer::Unnamed, Some("Bearer bad")).await, None);
        assert_eq!(who(Peer::Refused, None).await, None);
    }

    #[tokio::test]
    async fn a_certificate_of_others_does_not_count() {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, HeaderValue::from_static("Bearer s3cret"));
        for peer in [Peer::Refused, Peer::Unnamed] {
            let found = user(&gate(), &peer, &headers).await;
            assert_eq!(found.map(|user| user.name).as_deref(), Some("jane"));
            assert_eq!(user(&gate(), &peer, &HeaderMap::new()).await, None);
        }
    }

    #[tokio::test]
    async fn a_websocket_may_bring_its_token_as_a_sub_protocol() {
        let who = async |protocols: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert("upgrade", HeaderValue::from_static("websocket"));
            headers.insert("connection", HeaderValue::from_static("keep-alive, Upgrade"));
            headers.insert("sec-websocket-protocol", HeaderValue::from_static(protocols));
            user(&gate(), &Peer::Unnamed, &headers).await.map(|user| user.name)
        };
        assert_eq!(who("base64url.bearer.authorization.k8s.io.czNjcmV0, v1").await.as_deref(), Some("jane"));
        assert_eq!(who("base64url.bearer.authorization.k8s.io.czNjcmV0").await, None);
        assert_eq!(who("base64url.bearer.authorization.k8s.io.b3RoZXI, v1").await, None);
    }
}
