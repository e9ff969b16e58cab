//! The documents about the issuer of service accounts' tokens, for programs that verify tokens without asking the server.
//!
//! Source: `pkg/routes/openidmetadata.go` of Kubernetes, release 1.36; OpenID Connect Discovery 1.0; RFC 7517.

use axum::body::Body;
use axum::http::{HeaderValue, Method, Response, header};

use crate::meta::Status;
use crate::value::json;
use crate::value::json::Layout::{self, Sorted, Struct};

use super::answer;
use super::app::App;
use super::exchange::Exchange;
use super::negotiate::built_in_route;
use super::path::{NOT_FOUND_TEXT, Target};

const CACHE: HeaderValue = HeaderValue::from_static("public, max-age=3600");

/// The order of Go's fields.
static CONFIGURATION: Layout = Struct(&[
    ("issuer", &Sorted),
    ("jwks_uri", &Sorted),
    ("response_types_supported", &Sorted),
    ("subject_types_supported", &Sorted),
    ("id_token_signing_alg_values_supported", &Sorted),
]);

static KEY_SET: Layout = Struct(&[("keys", &KEY)]);

static KEY: Layout = Struct(&[
    ("use", &Sorted),
    ("kty", &Sorted),
    ("kid", &Sorted),
    ("crv", &Sorted),
    ("alg", &Sorted),
    ("x", &Sorted),
    ("y", &Sorted),
    ("n", &Sorted),
    ("e", &Sorted),
]);

/// Answers with the issuer's description, or with its keys.
pub(super) fn serve(app: &App, exchange: &Exchange, target: &Target) -> Response<Body> {
    let issuing = app.issuing.as_ref();
    let found =
        issuing.and_then(|issuing| issuing.issuer.discovery(&issuing.key_set_url).map(|found| (issuing, found)));
    let Some((issuing, configuration)) = found else { return answer::text(exchange, 404, NOT_FOUND_TEXT) };
    if exchange.method != Method::GET {
        return answer::status(exchange, &Status::method_not_allowed_generic());
    }
    let (content_type, bytes) = match target {
        Target::IssuerKeys => ("application/jwk-set+json", json::encode_as(&issuing.issuer.key_set(), KEY_SET)),
        _ => ("application/json", json::encode_as(&configuration, CONFIGURATION)),
    };
    if let Some(message) = built_in_route::not_offered(&exchange.accept, &[content_type]) {
        return answer::status(exchange, &Status::not_acceptable_route(&message));
    }
    let mut response = answer::body(exchange, 200, content_type, bytes);
    response.headers_mut().insert(header::CACHE_CONTROL, CACHE);
    response
}
