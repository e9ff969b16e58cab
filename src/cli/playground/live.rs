//! Access to the server that runs in this process: its own API, for clients with the secret of this
//! run.

use std::fmt;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Method, Response, StatusCode, Uri, header};
use hyper::Request;
use hyper::body::Incoming;
use tower::ServiceExt as _;

use super::answer;
use crate::auth::{UserInfo, bearer_token};

/// The path of the API.
const PREFIX: &str = "/live";

/// A random secret, new with each run.
#[derive(Clone)]
pub struct PageToken(String);

impl PageToken {
    /// Generates a token of 244 random bits, as hexadecimal digits.
    pub fn generate() -> PageToken {
        PageToken([uuid::Uuid::new_v4(), uuid::Uuid::new_v4()].map(|part| part.simple().to_string()).concat())
    }

    /// Whether a request contains the token. The time of the comparison does not depend on the
    /// position of a difference.
    fn is_shown(&self, headers: &HeaderMap) -> bool {
        let shown = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).and_then(bearer_token);
        let Some(shown) = shown.filter(|shown| shown.len() == self.0.len()) else { return false };
        shown.bytes().zip(self.0.bytes()).fold(0, |all, (one, other)| all | (one ^ other)) == 0
    }
}

impl fmt::Display for PageToken {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// Whether the page may change objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Writes {
    /// It reads, and tries writes out that are not made
    Read,
    /// It changes and deletes objects, too
    Write,
}

/// The API as the page accesses it.
#[derive(Clone)]
pub struct LiveApi {
    api: Router,
    token: PageToken,
    writes: Writes,
}

impl LiveApi {
    /// The API of this process, for clients that send `token`.
    pub fn new(api: Router, token: PageToken, writes: Writes) -> LiveApi {
        LiveApi { api, token, writes }
    }

    /// `read` or `write`.
    pub fn mode(&self) -> &'static str {
        match self.writes {
            Writes::Read => "read",
            Writes::Write => "write",
        }
    }

    /// Whether a path belongs to the API.
    pub fn is_for(path: &str) -> bool {
        path.strip_prefix(PREFIX).is_some_and(|rest| rest.starts_with('/'))
    }

    /// Passes a request on, in the name of the administrator.
    pub async fn answer(&self, mut request: Request<Incoming>) -> Response<Body> {
        if !self.token.is_shown(request.headers()) {
            return answer::refusal(
                StatusCode::UNAUTHORIZED,
                "the link that skiff printed at its start has a secret; use that link",
            );
        }
        if !self.lets(request.method()) {
            return answer::refusal(StatusCode::FORBIDDEN, "the page only reads: start skiff with --ui=write");
        }
        let within = request.uri().path_and_query().map_or("/", |path| path.as_str());
        let Ok(uri) = within.strip_prefix(PREFIX).unwrap_or("/").parse::<Uri>() else {
            return answer::refusal(StatusCode::BAD_REQUEST, "the path can't be read");
        };
        *request.uri_mut() = uri;
        // The secret alone decides about the user, and no other header of the client.
        let impersonation = |name: &&header::HeaderName| name.as_str().starts_with("impersonate-");
        let dropped: Vec<_> = request.headers().keys().filter(impersonation).cloned().collect();
        for name in dropped.into_iter().chain([header::AUTHORIZATION, header::UPGRADE]) {
            request.headers_mut().remove(name);
        }
        request.extensions_mut().insert(UserInfo::unsecured());
        let mut response = match self.api.clone().oneshot(request.map(Body::new)).await {
            Ok(response) => response,
            Err(never) => match never {},
        };
        answer::protect(response.headers_mut());
        response
    }

    fn lets(&self, method: &Method) -> bool {
        method == Method::GET || self.writes == Writes::Write
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_writes_may_patch() {
        let lets =
            |writes: Writes, method: Method| LiveApi::new(Router::new(), PageToken::generate(), writes).lets(&method);
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            assert!(lets(Writes::Write, method.clone()) && !lets(Writes::Read, method.clone()), "{method}");
        }
        assert!(lets(Writes::Read, Method::GET));
    }
}
