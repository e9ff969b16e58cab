//! A webhook's answer to a review: decoding it and checking its type.
//!
//! Input: the bytes of an answer, and the review it should be. Output: the decoded review, whose fields are not checked
//! yet, or the error text of the reference's codec. Conversion and admission read their answers alike.
//!
//! Source: `runtime/serializer` of apimachinery 0.37.

use thiserror::Error;

use crate::meta::scheme::SchemeError;
use crate::meta::type_meta;
use crate::meta::unmarshal::UnmarshalError;
use crate::types::decoder::TypedDecoder;
use crate::value::{Map, Value, json, json_type, yaml};

use crate::meta::api_version::{ApiVersionError, split_api_version};

/// The name of the scheme that decodes answers, as errors show it.
const SCHEME: &str = "pkg/runtime/scheme.go:111";

/// The review that was sent.
pub struct SentReview<'w> {
    /// The API group of the review.
    pub group: &'w str,
    /// The version of the review.
    pub version: &'w str,
    /// The kind of the review.
    pub kind: &'w str,
    /// Other kinds that the reference's scheme registers in the group, in v1 and v1beta1.
    pub others: &'w [&'w str],
}

/// A decoded answer; type and version may be empty.
pub struct Answered {
    /// The apiVersion of the answer.
    pub api_version: String,
    /// The kind of the answer.
    pub kind: String,
    /// The whole answer.
    pub body: Value,
}

/// Why an answer is not a review, in Go's words.
#[derive(Debug, Error)]
pub enum AnswerError {
    /// It is not JSON.
    #[error("couldn't get version/kind; json parse error: {0}")]
    Json(json::JsonError),
    /// It is not YAML.
    #[error("{0}")]
    Yaml(yaml::YamlError),
    /// Its type and version can't be read.
    #[error("couldn't get version/kind; json parse error: {0}")]
    TypeMeta(UnmarshalError),
    /// Its version is malformed.
    #[error(transparent)]
    ApiVersion(#[from] ApiVersionError),
    /// It is of the wrong kind.
    #[error(transparent)]
    Kind(#[from] SchemeError),
    /// A field of it is of the wrong type.
    #[error(transparent)]
    Unmarshal(#[from] UnmarshalError),
}

/// Reads an answer as the reference's codec does: JSON, or YAML if it does not look like JSON.
///
/// # Errors
///
/// It is not JSON or YAML, or not the expected review.
pub fn read(body: &[u8], wanted: &SentReview<'_>) -> Result<Answered, AnswerError> {
    let answered = decode(body)?;
    check_type(&answered.api_version, &answered.kind, wanted)?;
    Ok(answered)
}

/// Reads an answer of any type, as [`read`] does.
///
/// # Errors
///
/// It is not JSON or YAML, or its type can't be determined.
pub fn decode(body: &[u8]) -> Result<Answered, AnswerError> {
    let looks_like_json = body.trim_ascii_start().starts_with(b"{");
    let body = if looks_like_json {
        json::decode(body).map_err(AnswerError::Json)?
    } else {
        yaml::decode(body).map_err(AnswerError::Yaml)?
    };
    if !matches!(body, Value::Object(_) | Value::Null) {
        return Err(AnswerError::TypeMeta(UnmarshalError::of_type(json_type(&body), type_meta::GO_TYPE)));
    }
    let (mut api_version, mut kind) = (String::new(), String::new());
    let types = TypedDecoder::run(|typed| {
        for (name, value) in body.as_object().into_iter().flat_map(Map::iter) {
            match name {
                "apiVersion" => api_version = typed.string(value).unwrap_or_default(),
                "kind" => kind = typed.string(value).unwrap_or_default(),
                _ => {}
            }
        }
        Ok(())
    });
    types.map_err(AnswerError::TypeMeta)?;
    Ok(Answered { api_version, kind, body })
}

/// The type must be registered in the reference's scheme for webhooks, and be the expected one.
fn check_type(api_version: &str, kind: &str, wanted: &SentReview<'_>) -> Result<(), AnswerError> {
    let (group, name) = split_api_version(api_version)?;
    let group = if group.is_empty() && name.is_empty() { wanted.group } else { group };
    let name = if name.is_empty() && group == wanted.group { wanted.version } else { name };
    let kind = if kind.is_empty() { wanted.kind } else { kind };
    let is_status = (group, name, kind) == ("", "v1", "Status");
    if (group, name, kind) == (wanted.group, wanted.version, wanted.kind) {
        return Ok(());
    }
    let is_known = kind == wanted.kind || wanted.others.contains(&kind);
    if is_status || (group == wanted.group && ["v1", "v1beta1"].contains(&name) && is_known) {
        return Err(SchemeError::not_convertible((name, kind), (wanted.version, wanted.kind)).into());
    }
    let version = if group.is_empty() { name.to_owned() } else { format!("{group}/{name}") };
    Err(SchemeError::not_registered(kind, &version, SCHEME).into())
}
