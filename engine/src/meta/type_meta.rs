//! What a document says that it is: its `apiVersion` and its `kind`, as Go's decoder reads them before all else.
//!
//! Source: `k8s.io/apimachinery/pkg/runtime/serializer/json`, release 1.36.

use super::unmarshal::UnmarshalError;
use crate::value::{Value, json, json_type, yaml};

/// What the reference calls the type that it reads both into.
const GO_TYPE: &str =
    r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;

/// A document, and what it says that it is; what it does not say is empty.
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
    /// Go's text for what is not an object with two texts.
    pub fn read(text: &[u8]) -> Result<Self, String> {
        let unreadable = |why: &dyn std::fmt::Display| format!("couldn't get version/kind; json parse error: {why}");
        let value = if text.trim_ascii_start().starts_with(b"{") {
            json::decode(text).map_err(|error| unreadable(&error))?
        } else {
            yaml::decode(text).map_err(|error| unreadable(&error))?
        };
        if value.as_object().is_none() {
            return Err(unreadable(&UnmarshalError::of_type(json_type(&value), GO_TYPE)));
        }
        let said = |field: &'static str| match value.get(field) {
            None | Some(Value::Null) => Ok(String::new()),
            Some(Value::String(text)) => Ok(text.clone()),
            Some(other) => Err(unreadable(&UnmarshalError::of_type(json_type(other), "string").below("", field))),
        };
        let (api_version, kind) = (said("apiVersion")?, said("kind")?);
        if api_version.matches('/').count() > 1 {
            return Err(format!("unexpected GroupVersion string: {api_version}"));
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
            assert_eq!(Document::read(text.as_bytes()), Err(expected.to_owned()), "{text}");
        };
        let unreadable = "couldn't get version/kind; json parse error:";
        check("{\"a\"", &format!("{unreadable} unexpected end of JSON input"));
        check("[]", &format!("{unreadable} json: cannot unmarshal array into Go value of type {GO_TYPE}"));
        let number = "json: cannot unmarshal number into Go struct field .apiVersion of type string";
        check(r#"{"apiVersion":1}"#, &format!("{unreadable} {number}"));
        check("apiVersion: a/b/c", "unexpected GroupVersion string: a/b/c");
    }
}
