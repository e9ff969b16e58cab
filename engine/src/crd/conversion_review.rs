//! The request to a conversion webhook, and the check of its answer.
//!
//! Input: an object and the version to convert it to; the webhook's answer. Output: the bytes of a `ConversionReview`;
//! the converted object, or Kubernetes' error about the answer. Each review has one object.
//!
//! Source: Kubernetes documentation, "Webhook conversion"; answers recorded from apiextensions-apiserver 1.37.

use std::fmt;

use thiserror::Error;

use crate::meta::field::{ErrorList, Path};
use crate::meta::object_meta;
use crate::meta::unmarshal::UnmarshalError;
use crate::object;
use crate::types::decoder::{Stop, TypedDecoder};
use crate::value::{Map, Value, go_quote, go_type, json, json_type};

use super::review_answer::{self, AnswerError, SentReview};
use crate::meta::api_version::split_api_version;

const GROUP: &str = "apiextensions.k8s.io";
const KIND: &str = "ConversionReview";
const SUCCESS: &str = "Success";
/// Go's error for an empty text.
const NOTHING: &str = "unexpected end of JSON input";

/// The version of a review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConversionReviewVersion {
    /// `apiextensions.k8s.io/v1`
    V1,
    /// `apiextensions.k8s.io/v1beta1`
    V1Beta1,
}

/// Why an object is not converted, in Kubernetes' words; they follow `object not decodable revision=7: `.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConversionError {
    /// The definition names no review version that this server supports.
    #[error("no supported conversion review versions")]
    NoReviewVersion,
    /// The call failed, or its answer does not report success.
    #[error("{webhook} failed: {why}")]
    Failed {
        /// `conversion webhook for g/v1, Kind=Foo`
        webhook: String,
        /// What is wrong.
        why: String,
    },
    /// The answer is not usable.
    #[error("{webhook} returned {what}")]
    Answer {
        /// `conversion webhook for g/v1, Kind=Foo`
        webhook: String,
        /// What the answer contains instead.
        what: String,
    },
    /// The answer contains something that is not an object; the text is that of Go's decoder.
    #[error("{0}")]
    NotAnObject(String),
    /// Too many conversions are waiting already, or there is no memory for their answers.
    #[error("{0}")]
    Crowded(&'static str),
}

impl ConversionReviewVersion {
    /// The first of a definition's `conversionReviewVersions` that this server supports.
    ///
    /// # Errors
    ///
    /// None of them is supported.
    pub fn choose(versions: &[String]) -> Result<Self, ConversionError> {
        let known = versions.iter().find_map(|version| match version.as_str() {
            "v1" => Some(ConversionReviewVersion::V1),
            "v1beta1" => Some(ConversionReviewVersion::V1Beta1),
            _ => None,
        });
        known.ok_or(ConversionError::NoReviewVersion)
    }

    const fn name(self) -> &'static str {
        match self {
            ConversionReviewVersion::V1 => "v1",
            ConversionReviewVersion::V1Beta1 => "v1beta1",
        }
    }
}

/// One call of a webhook: `object` is to be converted to `desired` (`group/version`).
#[derive(Clone, Copy, Debug)]
pub struct Review<'a> {
    /// The version of the review.
    pub version: ConversionReviewVersion,
    /// Chosen by the caller; the answer repeats it.
    pub uid: &'a str,
    /// The `apiVersion` that objects are to be converted to.
    pub desired: &'a str,
    /// The object to convert.
    pub object: &'a Value,
}

impl Review<'_> {
    /// The body of the request: compact JSON.
    pub fn request(&self) -> Vec<u8> {
        let result = object! { "metadata" => object! {} };
        let response = object! { "uid" => "", "convertedObjects" => Value::Null, "result" => result };
        let request = object! {
            "uid" => self.uid,
            "desiredAPIVersion" => self.desired,
            "objects" => Value::Array(vec![self.object.clone()]),
        };
        json::encode(&object! {
            "kind" => KIND,
            "apiVersion" => format!("{GROUP}/{}", self.version.name()),
            "request" => request,
            "response" => response,
        })
    }

    /// The error for a call without an answer.
    pub fn failed(&self, why: impl fmt::Display) -> ConversionError {
        ConversionError::Failed { webhook: self.webhook(), why: why.to_string() }
    }

    fn returned(&self, what: String) -> ConversionError {
        ConversionError::Answer { webhook: self.webhook(), what }
    }

    /// The converted object in the body of an answer: its metadata is the original's except for labels and annotations.
    ///
    /// # Errors
    ///
    /// The answer does not contain the object in the desired version.
    pub fn response(&self, body: &[u8]) -> Result<Value, ConversionError> {
        let answered = decode(body, self.version).map_err(|why| self.failed(why))?;
        let objects = self.objects(answered).map_err(|why| self.failed(why))?;
        if objects.len() != 1 {
            return Err(self.returned(format!("{} objects, expected 1", objects.len())));
        }
        let Some(Value::Object(mut converted)) = objects.into_iter().next().map(only_object).transpose()? else {
            return Err(ConversionError::NotAnObject(NOTHING.to_owned()));
        };
        let (group, version) = split_api_version(text(&converted, "apiVersion")).unwrap_or_default();
        let received = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
        let invalid = |why: String| self.returned(format!("invalid object{why}"));
        if received != self.desired {
            let why = format!(" at index 0: invalid groupVersion (expected {}, received {received})", self.desired);
            return Err(invalid(why));
        }
        let (expected, kind) = (self.object.str_at(&["kind"]), text(&converted, "kind"));
        if kind != expected {
            return Err(invalid(format!(" at index 0: invalid kind (expected {expected}, received {kind})")));
        }
        for (what, field) in [("name", "name"), ("namespace", "namespace"), ("UID", "uid")] {
            let expected = self.object.str_at(&["metadata", field]);
            let received = converted.get("metadata").map(|metadata| metadata.str_at(&[field])).unwrap_or_default();
            if expected != received {
                return Err(invalid(format!(": must have the same {what}: {expected} != {received}")));
            }
        }
        let metadata = self.restored_metadata(converted.get("metadata"));
        let metadata = metadata.map_err(|why| self.returned(format!("invalid metadata: {why}")))?;
        converted.insert("metadata", metadata);
        Ok(Value::Object(converted))
    }

    fn objects(&self, answered: ConversionAnswer) -> Result<Vec<Value>, ReviewError> {
        let ConversionAnswer { api_version, kind, response } = answered;
        if self.version == ConversionReviewVersion::V1 && (api_version != format!("{GROUP}/v1") || kind != KIND) {
            let (group, version) = split_api_version(&api_version).unwrap_or_default();
            return Err(ReviewError::OtherReview { found: format!("{group}/{version}, Kind={kind}") });
        }
        let response = response.ok_or(ReviewError::NoResponse)?;
        if self.version == ConversionReviewVersion::V1 && response.uid != self.uid {
            return Err(ReviewError::OtherUid { expected: self.uid.to_owned(), found: response.uid });
        }
        if response.status != SUCCESS {
            let Response { status, message, .. } = response;
            return Err(if message.is_empty() { ReviewError::Status(status) } else { ReviewError::Refused(message) });
        }
        Ok(response.objects)
    }

    /// The original's metadata with the labels and annotations of the answer.
    fn restored_metadata(&self, answered: Option<&Value>) -> Result<Value, MetadataError> {
        let answered = answered.ok_or(MetadataError::Missing)?;
        let Value::Object(answered) = answered else {
            return Err(MetadataError::Type { found: go_type(answered), object: "converted" });
        };
        let mut metadata = self.object.get("metadata").cloned().unwrap_or_else(|| object! {});
        let Value::Object(restored) = &mut metadata else {
            return Err(MetadataError::Type { found: go_type(&metadata), object: "input" });
        };
        for name in ["labels", "annotations"] {
            let Some(entries) = answered.get(name).filter(|value| !value.is_null()) else {
                restored.remove(name);
                continue;
            };
            let Value::Object(texts) = entries else {
                return Err(MetadataError::FieldType { name, found: go_type(entries) });
            };
            if let Some((key, value)) = texts.iter().find(|(_, value)| value.as_str().is_none()) {
                return Err(MetadataError::EntryType { name, key: key.to_owned(), found: go_type(value) });
            }
            if restored.get(name) != Some(entries) {
                let parent = Path::new("metadata");
                let errors = match name {
                    "labels" => object_meta::validate_labels(entries, &parent.child("labels")),
                    // The reference's own word.
                    _ => object_meta::validate_annotations(entries, &parent.child("annotation")),
                };
                if !errors.is_empty() {
                    return Err(MetadataError::Invalid(errors));
                }
            }
            restored.insert(name, entries.clone());
        }
        Ok(metadata)
    }

    fn webhook(&self) -> String {
        let kind = self.object.str_at(&["kind"]);
        format!("conversion webhook for {}, Kind={kind}", self.object.str_at(&["apiVersion"]))
    }
}

/// Why a review contains no objects.
#[derive(Debug, Error)]
enum ReviewError {
    #[error("expected webhook response of {GROUP}/v1, Kind={KIND}, got {found}")]
    OtherReview { found: String },
    #[error("no response provided")]
    NoResponse,
    #[error("expected response.uid={}, got {}", go_quote(.expected), go_quote(.found))]
    OtherUid { expected: String, found: String },
    #[error("response.result.status was '{0}', not '{SUCCESS}'")]
    Status(String),
    /// The webhook's own message.
    #[error("{0}")]
    Refused(String),
}

/// The errors in the metadata of a converted object.
#[derive(Debug, Error)]
enum MetadataError {
    #[error("missing metadata in converted object")]
    Missing,
    #[error("invalid metadata of type {found} in {object} object")]
    Type { found: &'static str, object: &'static str },
    #[error("invalid metadata.{name} of type {found} in converted object")]
    FieldType { name: &'static str, found: &'static str },
    #[error("metadata.{name}[{key}] must be a string, but is {found} in converted object")]
    EntryType { name: &'static str, key: String, found: &'static str },
    #[error("{}", .0.aggregate())]
    Invalid(ErrorList),
}

/// A decoded answer.
#[derive(Default)]
struct ConversionAnswer {
    api_version: String,
    kind: String,
    response: Option<Response>,
}

#[derive(Default)]
struct Response {
    uid: String,
    objects: Vec<Value>,
    status: String,
    message: String,
}

fn decode(body: &[u8], version: ConversionReviewVersion) -> Result<ConversionAnswer, AnswerError> {
    let wanted = SentReview {
        group: GROUP,
        version: version.name(),
        kind: KIND,
        others: &["CustomResourceDefinition", "CustomResourceDefinitionList"],
    };
    let answered = review_answer::read(body, &wanted)?;
    let mut response = None;
    TypedDecoder::run(|typed| {
        typed.structure(&answered.body, "ConversionReview", |typed, name, value| {
            match name {
                "response" if value.is_null() => response = None,
                "response" => response = Some(decode_response(typed, value)?),
                _ => {}
            }
            Ok(true)
        })
    })?;
    Ok(ConversionAnswer { api_version: answered.api_version, kind: answered.kind, response })
}

fn decode_response<'v>(typed: &mut TypedDecoder<'v>, value: &'v Value) -> Result<Response, Stop> {
    let mut response = Response::default();
    typed.structure(value, "ConversionResponse", |typed, name, value| {
        match name {
            "uid" => response.uid = typed.string_as(value, "types.UID").unwrap_or_default(),
            "convertedObjects" => {
                let objects = typed.list(value, "[]runtime.RawExtension", |_, item| Ok(item.clone()))?;
                response.objects = objects.unwrap_or_default();
            }
            "result" => typed.structure(value, "Status", |typed, name, value| {
                match name {
                    "status" => response.status = typed.string(value).unwrap_or_default(),
                    "message" => response.message = typed.string(value).unwrap_or_default(),
                    _ => {}
                }
                Ok(true)
            })?,
            _ => {}
        }
        Ok(true)
    })?;
    Ok(response)
}

/// A converted object must be an object with a kind.
fn only_object(converted: Value) -> Result<Value, ConversionError> {
    let not_an_object = |why| Err(ConversionError::NotAnObject(why));
    match &converted {
        Value::Null => not_an_object(NOTHING.to_owned()),
        Value::Object(fields) => {
            if !text(fields, "kind").is_empty() && split_api_version(text(fields, "apiVersion")).is_ok() {
                Ok(converted)
            } else {
                not_an_object(format!("Object 'Kind' is missing in '{}'", json::encode_to_string(&converted)))
            }
        }
        other => not_an_object(UnmarshalError::of_type(json_type(other), "map[string]interface {}").to_string()),
    }
}

fn text<'f>(fields: &'f Map, name: &str) -> &'f str {
    fields.get(name).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value {
        json::decode(text.as_bytes()).expect("the test's own JSON")
    }

    fn answer(object: &Value, body: &str) -> Result<Value, ConversionError> {
        let review = Review { version: ConversionReviewVersion::V1, uid: "u", desired: "g/v2", object };
        review.response(body.as_bytes())
    }

    fn original() -> Value {
        value(r#"{"apiVersion":"g/v1","kind":"Foo","metadata":{"name":"a","uid":"1","generation":3},"spec":{"x":1}}"#)
    }

    fn review(objects: &str) -> String {
        format!(
            r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","response":{{"uid":"u","result":{{"status":"Success"}},"convertedObjects":[{objects}]}}}}"#
        )
    }

    #[test]
    fn metadata_but_for_labels_and_annotations_is_the_originals() {
        let body = review(
            r#"{"apiVersion":"g/v2","kind":"Foo","metadata":{"name":"a","uid":"1","generation":9,"labels":{"x":"y"}},"spec":{}}"#,
        );
        let expected = r#"{"apiVersion":"g/v2","kind":"Foo","metadata":{"name":"a","uid":"1","generation":3,"labels":{"x":"y"}},"spec":{}}"#;
        assert_eq!(answer(&original(), &body), Ok(value(expected)));
    }

    #[test]
    fn answers_that_are_none_are_told_as_kubernetes_tells_them() {
        let failed = |body: &str| {
            let error = answer(&original(), body).expect_err("no answer");
            error.to_string().replace("conversion webhook for g/v1, Kind=Foo ", "")
        };
        assert_eq!(failed(&review("")), "returned 0 objects, expected 1");
        assert_eq!(failed(&review("null")), "unexpected end of JSON input");
        assert_eq!(
            failed("{}"),
            "failed: expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got /, Kind="
        );
        assert_eq!(
            failed(r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"Other"}"#),
            "failed: no kind \"Other\" is registered for version \"apiextensions.k8s.io/v1\" in scheme \"pkg/runtime/scheme.go:111\""
        );
        assert_eq!(
            failed(r#"{"apiVersion":"apiextensions.k8s.io/v1beta1","kind":"ConversionReview"}"#),
            "failed: converting (v1beta1.ConversionReview) to (v1.ConversionReview): unknown conversion"
        );
        for status in ["Success", "Failure"] {
            let body = format!(r#"{{"apiVersion":"v1","kind":"Status","status":"{status}","message":"no"}}"#);
            assert_eq!(failed(&body), "failed: converting (v1.Status) to (v1.ConversionReview): unknown conversion");
        }
        let other = r#"{"apiVersion":"g/v2","kind":"Foo","metadata":{"name":"b","uid":"1"}}"#;
        assert_eq!(failed(&review(other)), "returned invalid object: must have the same name: a != b");
    }
}
