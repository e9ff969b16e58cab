//! The request that is sent to a webhook, and the meaning of its answer.
//!
//! Input: a request as a webhook sees it; the webhook's answer. Output: the bytes of an
//! `AdmissionReview`; the verdict, or an error in the words of Kubernetes.
//!
//! Source: `k8s.io/apiserver/pkg/admission/plugin/webhook/request`, release 1.37.

use std::collections::BTreeMap;

use crate::crd::review_answer::{self, SentReview};
use crate::meta::Status;
use crate::meta::api_version::group_version;
use crate::meta::unmarshal::UnmarshalError;
use crate::object;
use crate::types::decoder::{Stop, TypedDecoder};
use crate::value::{Map, Value, base64, go_quote, json};

const GROUP: &str = "admission.k8s.io";
const KIND: &str = "AdmissionReview";

/// The version of a review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdmissionReviewVersion {
    V1,
    V1Beta1,
}

impl AdmissionReviewVersion {
    /// The first of a webhook's `admissionReviewVersions` that this server supports.
    pub fn choose(versions: &[Value]) -> Option<Self> {
        versions.iter().find_map(|version| match version.as_str() {
            Some("v1") => Some(AdmissionReviewVersion::V1),
            Some("v1beta1") => Some(AdmissionReviewVersion::V1Beta1),
            _ => None,
        })
    }

    const fn name(self) -> &'static str {
        match self {
            AdmissionReviewVersion::V1 => "v1",
            AdmissionReviewVersion::V1Beta1 => "v1beta1",
        }
    }
}

/// Encodes the body of a call as compact JSON.
pub fn encode(version: AdmissionReviewVersion, uid: &str, mut request: Value, object: &Value, old: &Value) -> Vec<u8> {
    let fields = request.make_object();
    fields.insert("uid", Value::from(uid));
    fields.insert("object", object.clone());
    fields.insert("oldObject", old.clone());
    json::encode(&object! {
        "kind" => KIND,
        "apiVersion" => format!("{GROUP}/{}", version.name()),
        "request" => request,
    })
}

/// The verdict of a webhook.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WebhookVerdict {
    pub allowed: bool,
    /// The reason for a refusal; `None` if there is none.
    pub status: Option<Status>,
    /// Empty if there is no patch.
    pub patch: Vec<u8>,
    pub patch_type: String,
    pub audit_annotations: BTreeMap<String, String>,
    pub warnings: Vec<String>,
}

/// Why an answer is not a verdict: it can't be decoded, or is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebhookAnswerError {
    Unreadable(String),
    Invalid(String),
}

/// Decodes the answer to the call `uid`; it must not contain a patch unless `may_patch`.
pub fn verdict(
    version: AdmissionReviewVersion,
    uid: &str,
    may_patch: bool,
    body: &[u8],
) -> Result<WebhookVerdict, WebhookAnswerError> {
    let wanted = SentReview { group: GROUP, version: version.name(), kind: KIND, others: &[] };
    let answered =
        review_answer::read(body, &wanted).map_err(|error| WebhookAnswerError::Unreadable(error.to_string()))?;
    let invalid = |why: String| Err(WebhookAnswerError::Invalid(why));
    let absent = || WebhookAnswerError::Invalid("webhook response was absent".to_owned());
    let response =
        Response::decode(&answered.body).map_err(|error| WebhookAnswerError::Unreadable(error.to_string()))?;
    let response = response.ok_or_else(absent)?;
    let Response { uid: answered_uid, patch_type, mut verdict } = response;
    if version == AdmissionReviewVersion::V1Beta1 {
        // In v1beta1, neither the type nor the uid is checked, and every patch is a JSON patch.
        let is_patch = may_patch && !verdict.patch.is_empty();
        verdict.patch_type = if is_patch { "JSONPatch".to_owned() } else { String::new() };
        return Ok(verdict);
    }
    if answered_uid != uid {
        return invalid(format!("expected response.uid={}, got {}", go_quote(uid), go_quote(&answered_uid)));
    }
    if (answered.api_version.as_str(), answered.kind.as_str()) != ("admission.k8s.io/v1", KIND) {
        let (group, name) = group_version(&answered.api_version);
        let kind = &answered.kind;
        return invalid(format!(
            "expected webhook response of {GROUP}/v1, Kind={KIND}, got {group}/{name}, Kind={kind}"
        ));
    }
    match (may_patch, verdict.patch.is_empty(), patch_type) {
        (true, false, None) => invalid("webhook returned response.patch but not response.patchType".to_owned()),
        (true, true, Some(_)) => invalid("webhook returned response.patchType but not response.patch".to_owned()),
        (true, _, Some(empty)) if empty.is_empty() => {
            invalid("webhook returned invalid response.patchType of \"\"".to_owned())
        }
        (false, false, _) => invalid("validating webhook may not return response.patch".to_owned()),
        (false, true, Some(_)) => invalid("validating webhook may not return response.patchType".to_owned()),
        (_, _, patch_type) => {
            verdict.patch_type = patch_type.unwrap_or_default();
            Ok(verdict)
        }
    }
}

/// An AdmissionResponse as it was sent.
#[derive(Default)]
struct Response {
    uid: String,
    patch_type: Option<String>,
    verdict: WebhookVerdict,
}

impl Response {
    /// Decodes the response of a review; `None` if there is none.
    fn decode(review: &Value) -> Result<Option<Self>, UnmarshalError> {
        let mut response = None;
        TypedDecoder::run(|typed| {
            typed.structure(review, KIND, |typed, name, value| {
                if name == "response" && !value.is_null() {
                    response = Some(Response::decode_fields(typed, value)?);
                }
                Ok(true)
            })
        })?;
        Ok(response)
    }

    fn decode_fields<'v>(typed: &mut TypedDecoder<'v>, value: &'v Value) -> Result<Self, Stop> {
        let mut response = Response::default();
        let verdict = &mut response.verdict;
        typed.structure(value, "AdmissionResponse", |typed, name, value| {
            match name {
                "uid" => response.uid = typed.string_as(value, "types.UID").unwrap_or_default(),
                "allowed" => verdict.allowed = typed.boolean(value).unwrap_or_default(),
                "status" if !value.is_null() => verdict.status = Some(decode_status(typed, value)?),
                "patch" => verdict.patch = decode_bytes(typed, value)?,
                "patchType" => response.patch_type = typed.string_as(value, "v1.PatchType"),
                "auditAnnotations" => {
                    let annotations = typed
                        .map(value, "map[string]string", |typed, text| Ok(typed.string(text).unwrap_or_default()))?;
                    let annotations = annotations.unwrap_or_default().into_iter();
                    verdict.audit_annotations = annotations.map(|(name, text)| (name.into(), text)).collect();
                }
                "warnings" => verdict.warnings = typed.strings(value)?.unwrap_or_default(),
                _ => {}
            }
            Ok(true)
        })?;
        Ok(response)
    }
}

/// Decodes bytes, which Go accepts as base64 or as a list of numbers.
fn decode_bytes<'v>(typed: &mut TypedDecoder<'v>, value: &'v Value) -> Result<Vec<u8>, Stop> {
    if matches!(value, Value::Array(_)) {
        let bytes = typed.list(value, "[]uint8", |typed, item| Ok(typed.uint8(item).unwrap_or_default()))?;
        return Ok(bytes.unwrap_or_default());
    }
    Ok(match typed.string_as(value, "[]uint8").map(|text| base64::decode(&text)) {
        Some(Ok(bytes)) => bytes,
        Some(Err(error)) => {
            typed.save(error.to_string());
            Vec::new()
        }
        None => Vec::new(),
    })
}

/// Decodes a Status from a webhook; Kubernetes takes over all of it.
fn decode_status<'v>(typed: &mut TypedDecoder<'v>, value: &'v Value) -> Result<Status, Stop> {
    let mut status = Status::default();
    typed.structure(value, "Status", |typed, name, value| {
        match name {
            "message" => status.message = typed.string(value).unwrap_or_default(),
            "reason" => status.reason = typed.string_as(value, "v1.StatusReason").unwrap_or_default(),
            "code" => status.code = typed.int32(value).and_then(|code| code.try_into().ok()).unwrap_or_default(),
            "details" if !value.is_null() => status.details = Some(Box::new(Status::decode_details(value))),
            _ => {}
        }
        Ok(true)
    })?;
    Ok(status)
}

/// The refusal by the webhook `name`.
pub fn refusal(name: &str, status: Option<Status>) -> Status {
    const CODE_MIN: u16 = 400;
    let mut status = status.unwrap_or_default();
    status.code = status.code.max(CODE_MIN);
    let denied = format!("admission webhook {} denied the request", go_quote(name));
    status.message = match (status.message.as_str(), status.reason.as_str()) {
        ("", "") => format!("{denied} without explanation"),
        ("", said) | (said, _) => format!("{denied}: {said}"),
    };
    status
}

/// The audit annotation that says whether a webhook changed an object.
pub fn mutation(configuration: &str, webhook: &str, mutated: bool) -> String {
    let mut fields = Map::new();
    fields.insert("configuration", Value::from(configuration));
    fields.insert("mutated", Value::Bool(mutated));
    fields.insert("webhook", Value::from(webhook));
    let layout = json::Layout::Struct(&[
        ("configuration", &json::Layout::Sorted),
        ("webhook", &json::Layout::Sorted),
        ("mutated", &json::Layout::Sorted),
    ]);
    String::from_utf8_lossy(&json::encode_as(&Value::Object(fields), layout)).into_owned()
}

/// The audit annotation with the JSON patch that a webhook made.
pub fn patch(configuration: &str, webhook: &str, patch: &[u8]) -> String {
    let fields = object! {
        "configuration" => configuration,
        "patch" => json::decode(patch).unwrap_or_default(),
        "patchType" => "JSONPatch",
        "webhook" => webhook,
    };
    let layout = json::Layout::Struct(&[
        ("configuration", &json::Layout::Sorted),
        ("webhook", &json::Layout::Sorted),
        ("patch", &json::Layout::Sorted),
        ("patchType", &json::Layout::Sorted),
    ]);
    String::from_utf8_lossy(&json::encode_as(&fields, layout)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v1(response: &str) -> String {
        format!(r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{response}}}"#)
    }

    #[track_caller]
    fn check(may_patch: bool, body: &str, expected: &str) {
        let fault =
            verdict(AdmissionReviewVersion::V1, "u", may_patch, body.as_bytes()).expect_err("it is not a verdict");
        let (WebhookAnswerError::Unreadable(text) | WebhookAnswerError::Invalid(text)) = fault;
        assert_eq!(text, expected, "{body}");
    }

    #[test]
    fn answers_that_are_none_are_told_as_kubernetes_tells_them() {
        check(true, "{}", "webhook response was absent");
        check(true, &v1("null"), "webhook response was absent");
        check(true, &v1(r#"{"uid":"x","allowed":true}"#), r#"expected response.uid="u", got "x""#);
        check(
            true,
            r#"{"response":{"uid":"u","allowed":true}}"#,
            "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind=",
        );
        check(
            true,
            r#"{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview","response":{}}"#,
            "converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion",
        );
        check(
            true,
            &v1(r#"{"uid":"u","allowed":"yes"}"#),
            "json: cannot unmarshal string into Go struct field AdmissionResponse.response.allowed of type bool",
        );
        check(
            true,
            "{broken",
            "couldn't get version/kind; json parse error: invalid character 'b' looking for beginning of object key string",
        );
    }

    #[test]
    fn patches_come_with_their_type_and_from_who_may_patch() {
        check(
            true,
            &v1(r#"{"uid":"u","allowed":true,"patch":"W10="}"#),
            "webhook returned response.patch but not response.patchType",
        );
        check(
            true,
            &v1(r#"{"uid":"u","allowed":true,"patchType":"JSONPatch"}"#),
            "webhook returned response.patchType but not response.patch",
        );
        check(
            true,
            &v1(r#"{"uid":"u","allowed":true,"patch":"W10=","patchType":""}"#),
            "webhook returned invalid response.patchType of \"\"",
        );
        check(
            false,
            &v1(r#"{"uid":"u","allowed":true,"patch":"W10=","patchType":"JSONPatch"}"#),
            "validating webhook may not return response.patch",
        );
        check(
            false,
            &v1(r#"{"uid":"u","allowed":true,"patchType":"JSONPatch"}"#),
            "validating webhook may not return response.patchType",
        );
    }

    #[test]
    fn a_patch_is_base64_or_a_list_of_bytes() {
        for patch in [r#""W10=""#, "[91,93]"] {
            let body = v1(&format!(r#"{{"uid":"u","allowed":true,"patchType":"JSONPatch","patch":{patch}}}"#));
            let verdict = verdict(AdmissionReviewVersion::V1, "u", true, body.as_bytes()).expect("it is a verdict");
            assert_eq!(verdict.patch, b"[]");
        }
        check(
            true,
            &v1(r#"{"uid":"u","allowed":true,"patchType":"JSONPatch","patch":[300]}"#),
            "json: cannot unmarshal number 300 into Go struct field AdmissionResponse.response.patch of type uint8",
        );
    }

    #[test]
    fn a_refusal_is_a_failure_whatever_the_webhook_says() {
        let refused = |status: &str| {
            let body = v1(&format!(r#"{{"uid":"u","allowed":false,"status":{status}}}"#));
            let verdict = verdict(AdmissionReviewVersion::V1, "u", false, body.as_bytes()).expect("it is a verdict");
            let status = refusal("a.b.c", verdict.status);
            (status.code, status.message, status.reason)
        };
        let denied = r#"admission webhook "a.b.c" denied the request"#;
        assert_eq!(refused("null"), (400, format!("{denied} without explanation"), String::new()));
        assert_eq!(refused(r#"{"code":200,"message":"no"}"#), (400, format!("{denied}: no"), String::new()));
        assert_eq!(
            refused(r#"{"code":403,"reason":"Forbidden"}"#),
            (403, format!("{denied}: Forbidden"), "Forbidden".to_owned())
        );
    }
}
