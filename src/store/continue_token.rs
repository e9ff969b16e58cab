//! The token that a page of a list ends with: the revision at which the list continues, and the key after which it
//! does.
//!
//! Source: `k8s.io/apiserver/pkg/storage/continue.go`, release 1.37; the form is the reference's, so that tokens in
//! clients' logs can be decoded in the same way.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use thiserror::Error;

use crate::meta::Revision;
use crate::object;
use crate::value::{Value, json, json_type};

const VERSION: &str = "meta.k8s.io/v1";

/// Where a list continues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContinueToken {
    /// `None` for the newest: the token of a list whose revision is gone.
    pub revision: Option<Revision>,
    /// The first key that may follow: the key of the last object of the previous page, and a zero byte.
    pub start: String,
}

/// Why a list can't continue with a token.
#[derive(Debug, PartialEq, Error)]
pub enum ContinueTokenError {
    /// The position at which Go finds a byte that is not base64.
    #[error("continue key is not valid: illegal base64 data at input byte {0}")]
    Base64(usize),
    #[error("continue key is not valid: {0}")]
    Json(#[from] json::JsonError),
    #[error("continue key is not valid: json: cannot unmarshal {0} into Go value of type storage.continueToken")]
    NotAnObject(&'static str),
    #[error(
        "continue key is not valid: json: cannot unmarshal {value} into Go struct field continueToken.{field} of type \
         {wanted}"
    )]
    Mistyped { field: &'static str, value: String, wanted: &'static str },
    #[error("continue key is not valid: server does not recognize this encoded version {0}")]
    Version(String),
    #[error("continue key is not valid: incorrect encoded start resourceVersion (version {VERSION})")]
    NoRevision,
    #[error("continue key is not valid: encoded start key empty (version {VERSION})")]
    NoKey,
    /// A path that leaves the prefix.
    #[error("continue key is not valid: {0}")]
    Key(String),
}

impl ContinueToken {
    /// The token for a list of the keys that begin with `prefix`.
    pub fn encode(&self, prefix: &str) -> String {
        let start = self.start.strip_prefix(prefix).unwrap_or(&self.start);
        let token = object! {
            "v" => VERSION,
            "rv" => self.revision.map_or(-1, Revision::get),
            "start" => start,
        };
        URL_SAFE_NO_PAD.encode(json::encode(&token))
    }

    /// Reads a token for a list of the keys that begin with `prefix`.
    ///
    /// # Errors
    ///
    /// Why it is invalid, in Kubernetes' words.
    pub fn decode(token: &str, prefix: &str) -> Result<Self, ContinueTokenError> {
        let data = decode_base64(token).map_err(ContinueTokenError::Base64)?;
        let token = json::decode(&data)?;
        if !matches!(token, Value::Object(_) | Value::Null) {
            return Err(ContinueTokenError::NotAnObject(json_type(&token)));
        }
        let mistyped = |field, value, wanted| ContinueTokenError::Mistyped { field, value, wanted };
        let text = |name: &'static str| match token.get(name) {
            None | Some(Value::Null) => Ok(""),
            Some(Value::String(text)) => Ok(text.as_str()),
            Some(other) => Err(mistyped(name, json_type(other).to_owned(), "string")),
        };
        let (version, start) = (text("v")?, text("start")?);
        let revision = match token.get("rv") {
            None | Some(Value::Null) => 0,
            Some(Value::Int(number)) => *number,
            Some(fraction @ Value::Float(_)) => {
                let number = String::from_utf8_lossy(&json::encode(fraction)).into_owned();
                return Err(mistyped("rv", format!("number {number}"), "int64"));
            }
            Some(other) => return Err(mistyped("rv", json_type(other).to_owned(), "int64")),
        };
        if version != VERSION {
            return Err(ContinueTokenError::Version(version.to_owned()));
        }
        if revision == 0 {
            return Err(ContinueTokenError::NoRevision);
        }
        if start.is_empty() {
            return Err(ContinueTokenError::NoKey);
        }
        // A path that leaves the prefix would list other objects than those requested.
        let path = start.strip_prefix('/').unwrap_or(start);
        if !path.is_empty() && path.split('/').any(|part| matches!(part, "" | "." | "..")) {
            return Err(ContinueTokenError::Key(start.to_owned()));
        }
        let start = format!("{prefix}{path}");
        Ok(ContinueToken { revision: (revision > 0).then(|| Revision::new(revision)), start })
    }
}

/// Reads base64 of the URL alphabet without padding as Go does: line ends are skipped and leftover bits are ignored.
///
/// The error is the position at which Go finds the fault.
fn decode_base64(text: &str) -> Result<Vec<u8>, usize> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 2);
    let (mut bits, mut bit_count) = (0_u32, 0_u32);
    let mut characters = 0_usize;
    for (at, character) in text.bytes().enumerate() {
        let six = match character {
            b'A'..=b'Z' => character - b'A',
            b'a'..=b'z' => character - b'a' + 26,
            b'0'..=b'9' => character - b'0' + 52,
            b'-' => 62,
            b'_' => 63,
            b'\r' | b'\n' => continue,
            _ => return Err(at),
        };
        characters += 1;
        bits = (bits << 6 | u32::from(six)) & 0xffff;
        bit_count += 6;
        if bit_count >= 8 {
            bit_count -= 8;
            bytes.push((bits >> bit_count & 0xff) as u8);
        }
    }
    // One character is less than a byte.
    match characters % 4 {
        1 => Err(text.len() - 1),
        _ => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `token` is the JSON inside, `expect` the revision and start key or the error.
    fn check(token: &str, expect: Result<(Option<i64>, &str), &str>) {
        let decoded = ContinueToken::decode(&URL_SAFE_NO_PAD.encode(token), "p/");
        let decoded = decoded.map(|token| (token.revision.map(Revision::get), token.start));
        let decoded = decoded.map_err(|error| error.to_string());
        assert_eq!(
            decoded,
            expect.map(|(revision, start)| (revision, start.to_owned())).map_err(str::to_owned),
            "{token}"
        );
    }

    #[test]
    fn a_token_goes_on_behind_its_key() {
        let token = ContinueToken { revision: Some(Revision::new(7)), start: "p/a\0".to_owned() };
        assert_eq!(ContinueToken::decode(&token.encode("p/"), "p/"), Ok(token));
    }

    #[test]
    fn a_negative_revision_asks_for_the_newest() {
        check(r#"{"v":"meta.k8s.io/v1","rv":-1,"start":"a"}"#, Ok((None, "p/a")));
    }

    #[test]
    fn a_token_without_a_revision_or_a_key_is_refused() {
        let no_revision = "continue key is not valid: incorrect encoded start resourceVersion (version meta.k8s.io/v1)";
        check(r#"{"v":"meta.k8s.io/v1"}"#, Err(no_revision));
        let no_key = "continue key is not valid: encoded start key empty (version meta.k8s.io/v1)";
        check(r#"{"v":"meta.k8s.io/v1","rv":1}"#, Err(no_key));
    }

    #[test]
    fn a_key_that_climbs_is_refused() {
        check(r#"{"v":"meta.k8s.io/v1","rv":1,"start":"../x"}"#, Err("continue key is not valid: ../x"));
        check(r#"{"v":"meta.k8s.io/v1","rv":1,"start":"a//b"}"#, Err("continue key is not valid: a//b"));
    }

    #[test]
    fn a_token_of_another_version_is_refused() {
        check("{}", Err("continue key is not valid: server does not recognize this encoded version "));
        let other = "continue key is not valid: server does not recognize this encoded version meta.k8s.io/v2";
        check(r#"{"v":"meta.k8s.io/v2","rv":1,"start":"a"}"#, Err(other));
    }

    #[test]
    fn fields_of_another_type_are_refused_in_gos_words() {
        let version = "continue key is not valid: json: cannot unmarshal number into Go struct field continueToken.v of type string";
        check(r#"{"v":1}"#, Err(version));
        let whole =
            "continue key is not valid: json: cannot unmarshal array into Go value of type storage.continueToken";
        check("[]", Err(whole));
    }

    #[test]
    fn what_is_not_base64_is_refused_where_go_stops() {
        let decode = |token: &str| ContinueToken::decode(token, "").expect_err("it is not a token").to_string();
        assert_eq!(decode("!!!"), "continue key is not valid: illegal base64 data at input byte 0");
        assert_eq!(decode("e30="), "continue key is not valid: illegal base64 data at input byte 3");
        assert_eq!(decode("e30ab"), "continue key is not valid: illegal base64 data at input byte 4");
        // Leftover bits are ignored, so this is a letter and half a character.
        assert_eq!(decode("abc"), "continue key is not valid: invalid character 'i' looking for beginning of value");
    }
}
