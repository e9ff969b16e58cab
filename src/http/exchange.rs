//! One request, read once: what every endpoint asks of its headers.

use std::sync::Mutex;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderName, Method, Request, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};

use crate::auth::UserInfo;
use crate::meta::Status;
use crate::registry::Warnings;

use super::Stopping;
use super::query::Query;

/// The largest body, as kube-apiserver takes it.
pub const BODY_BYTES_MAX: usize = 3 << 20;

/// A request without its body.
pub(super) struct Exchange {
    pub method: Method,
    /// As it was sent.
    pub path: String,
    pub uri: String,
    pub query: Query,
    pub accept: String,
    pub accept_encoding: String,
    pub content_type: String,
    pub user_agent: String,
    pub if_none_match: String,
    pub user: UserInfo,
    pub stopping: Option<Stopping>,
    pub warnings: Mutex<Warnings>,
}

impl Exchange {
    /// Takes a request apart.
    pub fn read(request: Request<Body>) -> (Self, Body) {
        let (parts, body) = request.into_parts();
        let user = parts.extensions.get::<UserInfo>().cloned();
        let exchange = Exchange {
            method: parts.method,
            path: parts.uri.path().to_owned(),
            uri: parts.uri.path_and_query().map(ToString::to_string).unwrap_or_default(),
            query: Query::parse(parts.uri.query().unwrap_or_default()),
            accept: text(&parts.headers, header::ACCEPT),
            accept_encoding: text(&parts.headers, header::ACCEPT_ENCODING),
            content_type: text(&parts.headers, header::CONTENT_TYPE),
            user_agent: text(&parts.headers, header::USER_AGENT),
            if_none_match: text(&parts.headers, header::IF_NONE_MATCH),
            user: user.unwrap_or_default(),
            stopping: parts.extensions.get::<Stopping>().cloned(),
            warnings: Mutex::default(),
        };
        (exchange, body)
    }

    /// Adds the warnings that a verb found.
    pub fn warn(&self, found: Warnings) {
        let mut warnings = self.warnings.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        warnings.extend(found.texts().iter().cloned());
    }
}

/// The values of a header, joined as one list.
fn text(headers: &HeaderMap, name: HeaderName) -> String {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.collect::<Vec<_>>().join(",")
}

/// Reads a body, up to the limit.
pub(super) async fn read_body(body: Body) -> Result<Bytes, Status> {
    match Limited::new(body, BODY_BYTES_MAX).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => {
            Err(Status::request_entity_too_large(&format!("limit is {BODY_BYTES_MAX}")))
        }
        Err(error) => Err(Status::bad_request(&error.to_string())),
    }
}
