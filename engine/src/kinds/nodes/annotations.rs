//! Validation of the annotations that mean something for a node: lists in JSON, as they were written before there were
//! fields for them.
//!
//! Input: a node. Output: field errors.
//!
//! Source: `ValidateNodeSpecificAnnotations` of `pkg/apis/core/validation`, release 1.36.

use crate::kinds::annotated;
use crate::kinds::metadata::METADATA;
use crate::meta::field::{Error, ErrorList, Path};
use crate::meta::object_meta;
use crate::meta::unmarshal::UnmarshalError;
use crate::types::decoder::{Stop, TypedDecoder};
use crate::value::{Value, json};

use super::taints;

const TAINTS: &str = "scheduler.alpha.kubernetes.io/taints";
const AVOID_PODS: &str = "scheduler.alpha.kubernetes.io/preferAvoidPods";
/// The fields of Go's internal type of a taint, which has no names for JSON, and their names in the API.
const OF_TAINTS: [(&str, &str); 4] =
    [("Key", "key"), ("Value", "value"), ("Effect", "effect"), ("TimeAdded", "timeAdded")];
/// The fields of the types in [`AVOID_PODS`].
const OF_AVOID_PODS: [&str; 12] = [
    "preferAvoidPods",
    "podSignature",
    "podController",
    "evictionTime",
    "reason",
    "message",
    "apiVersion",
    "kind",
    "name",
    "uid",
    "controller",
    "blockOwnerDeletion",
];

/// The errors of a node's annotations.
pub fn validate(node: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let path = METADATA.child("annotations");
    let text = |name: &str| Some(node.str_at(&["metadata", "annotations", name])).filter(|text| !text.is_empty());
    if let Some(text) = text(TAINTS) {
        errors.extend(validate_taints(text, &path));
    }
    if let Some(text) = text(AVOID_PODS) {
        errors.extend(validate_avoided(text, &path));
    }
    errors
}

fn validate_taints(text: &str, path: &Path<'_>) -> ErrorList {
    match read(text, decode_taints) {
        Ok(taints) => taints::validate(&taints, &path.child(TAINTS)),
        Err(error) => Error::invalid(path, TAINTS, error.to_string()).into(),
    }
}

/// What `decode` reads of a text in JSON.
fn read<T>(text: &str, decode: fn(Value) -> Result<T, UnmarshalError>) -> Result<T, UnmarshalError> {
    decode(json::decode(text.as_bytes()).map_err(UnmarshalError::other)?)
}

/// A list of taints, as Go decodes it into its internal type.
fn decode_taints(sent: Value) -> Result<Vec<Value>, UnmarshalError> {
    let list = annotated::decode_list(sent, "Taint", &OF_TAINTS, |typed, name, value| match name {
        "TimeAdded" => time(typed, value),
        "Effect" => typed.string_as(value, "core.TaintEffect").map(Value::from),
        _ => typed.string(value).map(Value::from),
    })?;
    Ok(list.unwrap_or_default())
}

fn time(typed: &mut TypedDecoder<'_>, value: &Value) -> Option<Value> {
    typed.adopt(object_meta::time_field(value).map(|time| (time, Vec::new()))).flatten()
}

/// Pods that the node does not want, by their controllers.
fn validate_avoided(text: &str, path: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let avoided = match read(text, decode_avoided) {
        Ok(avoided) => avoided,
        Err(error) => return Error::invalid(&path.child("AvoidPods"), AVOID_PODS, error.to_string()).into(),
    };
    let list = path.child(AVOID_PODS);
    for (index, controller) in avoided.into_iter().enumerate() {
        let item = list.index(index);
        let signature = item.child("PodSignature");
        match controller {
            None => errors.push(Error::required(&signature, "")),
            Some(false) => {
                let at = signature.child("PodController");
                errors.push(Error::invalid(&at.child("Controller"), false, "must point to a controller"));
            }
            Some(true) => {}
        }
    }
    errors
}

/// Of each entry, whether its owner is a controller, if it has an owner. (Go panics at one that does not say so.)
fn decode_avoided(sent: Value) -> Result<Vec<Option<bool>>, UnmarshalError> {
    let sent = annotated::with_names(sent, &OF_AVOID_PODS);
    let mut entries = None;
    TypedDecoder::run(|typed| {
        typed.structure(&sent, "AvoidPods", |typed, name, value| {
            if name == "preferAvoidPods" {
                entries = typed.list(value, "[]v1.PreferAvoidPodsEntry", decode_entry)?;
            }
            Ok(true)
        })
    })?;
    Ok(entries.unwrap_or_default())
}

fn decode_entry<'v>(typed: &mut TypedDecoder<'v>, entry: &'v Value) -> Result<Option<bool>, Stop> {
    let mut controller = None;
    typed.structure(entry, "PreferAvoidPodsEntry", |typed, name, value| {
        match name {
            "podSignature" => typed.structure(value, "PodSignature", |typed, name, value| {
                if name == "podController" && !value.is_null() {
                    controller = Some(decode_owner(typed, value)?);
                }
                Ok(true)
            })?,
            "evictionTime" => _ = time(typed, value),
            "reason" | "message" => _ = typed.string(value),
            _ => {}
        }
        Ok(true)
    })?;
    Ok(controller)
}

fn decode_owner<'v>(typed: &mut TypedDecoder<'v>, owner: &'v Value) -> Result<bool, Stop> {
    let mut is_controller = false;
    typed.structure(owner, "OwnerReference", |typed, name, value| {
        match name {
            "controller" => is_controller = typed.boolean(value).unwrap_or_default(),
            "blockOwnerDeletion" => _ = typed.boolean(value),
            "uid" => _ = typed.string_as(value, "types.UID"),
            _ => _ = typed.string(value),
        }
        Ok(true)
    })?;
    Ok(is_controller)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object;

    #[track_caller]
    fn check(name: &str, text: &str, expect: &[&str]) {
        let node = object! { "metadata" => object! { "annotations" => object! { name => text } } };
        let errors: Vec<_> = validate(&node).iter().map(ToString::to_string).collect();
        assert_eq!(errors, expect, "{text}");
    }

    #[test]
    fn taints_in_an_annotation_are_checked_as_those_of_the_spec() {
        check(TAINTS, "", &[]);
        check(TAINTS, "null", &[]);
        check(TAINTS, r#"[{"key": "a", "Effect": "NoSchedule", "TimeAdded": "2026-01-02T03:04:05Z"}]"#, &[]);
        check(
            TAINTS,
            r#"[{"key": "a"}, {"key": "a", "value": "!", "effect": "NoExecute"}]"#,
            &[
                "metadata.annotations.scheduler.alpha.kubernetes.io/taints[0].effect: Required value",
                "metadata.annotations.scheduler.alpha.kubernetes.io/taints[1].value: Invalid value: \"!\": a valid label \
                 must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                 alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is \
                 '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
            ],
        );
        let refused =
            "metadata.annotations: Invalid value: \"scheduler.alpha.kubernetes.io/taints\": json: cannot unmarshal";
        check(TAINTS, r#"{"key": "a"}"#, &[&format!("{refused} object into Go value of type []core.Taint")]);
        check(TAINTS, r#"[{"key": 1}]"#, &[&format!("{refused} number into Go struct field Taint.Key of type string")]);
    }

    #[test]
    fn pods_are_avoided_by_their_controllers() {
        check(AVOID_PODS, "{}", &[]);
        let owner =
            r#"{"apiVersion": "v1", "kind": "ReplicationController", "name": "a", "uid": "b", "controller": true}"#;
        check(
            AVOID_PODS,
            &format!(r#"{{"preferAvoidPods": [{{"podSignature": {{"podController": {owner}}}}}]}}"#),
            &[],
        );
        check(
            AVOID_PODS,
            r#"{"preferAvoidPods": [{}, {"podSignature": {"podController": {"controller": false}}}]}"#,
            &[
                "metadata.annotations.scheduler.alpha.kubernetes.io/preferAvoidPods[0].PodSignature: Required value",
                "metadata.annotations.scheduler.alpha.kubernetes.io/preferAvoidPods[1].PodSignature.PodController.Controller: \
                 Invalid value: false: must point to a controller",
            ],
        );
        let refused =
            "metadata.annotations.AvoidPods: Invalid value: \"scheduler.alpha.kubernetes.io/preferAvoidPods\":";
        check(
            AVOID_PODS,
            "[]",
            &[&format!("{refused} json: cannot unmarshal array into Go value of type v1.AvoidPods")],
        );
    }
}
