//! The declared type of a document: its `apiVersion` and its `kind`, which Go's decoder reads first.
//!
//! Source: `k8s.io/apimachinery/pkg/runtime/serializer/json`, release 1.36.

use thiserror::Error;

use super::unmarshal::UnmarshalError;
use crate::value::{Value, json, json_type, yaml};

/// The reference's name for the type that it decodes both into.
pub(crate) const GO_TYPE: &str =
    r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;

/// Why the type of a document can't be determined.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum TypeMetaError {
    /// It is not JSON.
    #[error("couldn't get version/kind; json parse error: {0}")]
    Json(#[from] json::JsonError),
    /// It is not YAML.
    #[error("couldn't get version/kind; json parse error: {0}")]
    Yaml(#[from] yaml::YamlError),
    /// It is not an object, or its `apiVersion` or `kind` is not a text.
    #[error("couldn't get version/kind; json parse error: {0}")]
    Type(#[from] UnmarshalError),
    /// Its `apiVersion` has more than one slash.
    #[error("unexpected GroupVersion string: {0}")]
    GroupVersion(String),
}

/// An object without a kind, as it is written.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("Object 'Kind' is missing in '{0}'")]
pub struct MissingKind(String);

impl MissingKind {
    /// The error for `object`, JSON or YAML, which has no kind.
    pub fn of(object: &[u8]) -> Self {
        MissingKind(String::from_utf8_lossy(object).into_owned())
    }
}

/// The apiVersion and kind of an object; absent ones are empty, as both are for null.
///
/// # Errors
///
/// It is not an object, or one of the two is not a text.
pub fn type_meta(object: &Value) -> Result<(String, String), TypeMetaError> {
    if !matches!(object, Value::Object(_) | Value::Null) {
        return Err(UnmarshalError::of_type(json_type(object), GO_TYPE).into());
    }
    let said = |field: &'static str| match object.get(field) {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(other) => Err(UnmarshalError::of_type(json_type(other), "string").below("", field)),
    };
    Ok((said("apiVersion")?, said("kind")?))
}

/// A document with its apiVersion and kind; absent ones are empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    /// All of it.
    pub value: Value,
    /// `GROUP/VERSION`, or a version alone.
    pub api_version: String,
    /// The kind.
    pub kind: String,
}

impl Document {
    /// Reads JSON, which begins with a brace, or YAML.
    ///
    /// # Errors
    ///
    /// Go's error for a document that is not an object, or whose apiVersion or kind is not a text.
    pub fn read(text: &[u8]) -> Result<Self, TypeMetaError> {
        let value = if text.trim_ascii_start().starts_with(b"{") { json::decode(text)? } else { yaml::decode(text)? };
        if value.is_null() {
            return Err(UnmarshalError::of_type(json_type(&value), GO_TYPE).into());
        }
        let (api_version, kind) = type_meta(&value)?;
        if api_version.matches('/').count() > 1 {
            return Err(TypeMetaError::GroupVersion(api_version));
        }
        Ok(Document { value, api_version, kind })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_says_what_it_is() {
        for text in [r#"{"apiVersion":"v1","kind":"Pod"}"#, "apiVersion: v1\nkind: Pod\n"] {
            let read = Document::read(text.as_bytes()).map(|read| (read.api_version, read.kind));
            assert_eq!(read, Ok(("v1".to_owned(), "Pod".to_owned())));
        }
        assert_eq!(Document::read(b"{}").map(|read| read.kind), Ok(String::new()));
    }

    #[test]
    fn what_does_not_say_it_is_told_in_the_words_of_go() {
        let check = |text: &str, expected: &str| {
            let error = Document::read(text.as_bytes()).expect_err("it can't be read");
            assert_eq!(error.to_string(), expected, "{text}");
        };
        let unreadable = "couldn't get version/kind; json parse error:";
        check("{\"a\"", &format!("{unreadable} unexpected end of JSON input"));
        check("[]", &format!("{unreadable} json: cannot unmarshal array into Go value of type {GO_TYPE}"));
        let number = "json: cannot unmarshal number into Go struct field .apiVersion of type string";
        check(r#"{"apiVersion":1}"#, &format!("{unreadable} {number}"));
        check("apiVersion: a/b/c", "unexpected GroupVersion string: a/b/c");
    }
}
