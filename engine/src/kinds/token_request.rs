//! TokenRequest, authentication.k8s.io/v1: the request and the response of a service account's `/token`. It has no path
//! of its own.

use crate::crd::ServedVersion;
use crate::meta::field::{Error, ErrorList, Path};
use crate::value::Value;

use super::Kind;
use super::strategy::{Strategy, Subresource};

const EXPIRATION_S: i64 = 3600;
const EXPIRATION_MIN_S: i64 = 600;
const EXPIRATION_MAX_S: i64 = 1 << 32;

/// The kind `TokenRequest`, which is answered and never stored.
pub static TOKEN_REQUEST: Kind = Kind {
    plural: "tokenrequests",
    singular: "tokenrequest",
    ..Kind::new("authentication.k8s.io", "v1", "TokenRequest", &TokenRequest)
};

struct TokenRequest;

impl Strategy for TokenRequest {
    fn set_typed_defaults(&self, object: &mut Value) {
        let spec = object.make_object().entry("spec").make_object();
        if spec.get("expirationSeconds").is_none_or(Value::is_null) {
            spec.insert("expirationSeconds", Value::Int(EXPIRATION_S));
        }
    }

    fn validate_create(&self, _: &ServedVersion, object: &Value) -> ErrorList {
        let seconds = object.at(&["spec", "expirationSeconds"]).and_then(Value::as_i64).unwrap_or_default();
        let why = match seconds {
            ..EXPIRATION_MIN_S => "may not specify a duration less than 10 minutes",
            EXPIRATION_MIN_S..=EXPIRATION_MAX_S => return ErrorList::new(),
            _ => "may not specify a duration larger than 2^32 seconds",
        };
        Error::invalid(&Path::new("spec").child("expirationSeconds"), seconds, why).into()
    }

    fn validate_update(&self, version: &ServedVersion, _: Subresource, new: &Value, _: &Value) -> ErrorList {
        self.validate_create(version, new)
    }
}
