//! Validation of the annotations that mean something for a pod.
//!
//! Source: `pkg/apis/core/validation`, release 1.36.

use super::{PodValidationOptions, profiles, tolerations};
use crate::kinds::annotated;
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::unmarshal::UnmarshalError;
use crate::value::{Value, json};

/// Of pods that a kubelet has from a file.
pub const MIRROR: &str = "kubernetes.io/config.mirror";
const TOLERATIONS: &str = "scheduler.alpha.kubernetes.io/tolerations";
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// The annotations of a pod with this spec.
pub fn validate(annotations: &FieldRef<'_>, spec: &FieldRef<'_>, options: &PodValidationOptions) -> ErrorList {
    let mut errors = ErrorList::new();
    let of_key = |key| FieldRef::new(annotations.value().and_then(|value| value.get(key)), annotations.path().key(key));
    let mirror = of_key(MIRROR);
    if mirror.is_set() && spec.field("nodeName").is_empty() {
        errors.push(mirror.invalid("must set spec.nodeName if mirror pod annotation is set"));
    }
    let listed = annotations.field(TOLERATIONS);
    if !listed.is_empty() {
        errors.extend(validate_tolerations(&listed, annotations, options));
    }
    let cost = of_key(DELETION_COST);
    if cost.is_set() && !options.allow_invalid_pod_deletion_cost && !is_cost(cost.text()) {
        errors.push(cost.invalid("must be a 32bit integer"));
    }
    errors.extend(profiles::validate_annotations(annotations, spec));
    errors
}

/// Whether the annotations say a cost that can be read.
pub fn has_invalid_cost(annotations: Option<&Value>) -> bool {
    let cost = annotations.and_then(|annotations| annotations.get(DELETION_COST)).and_then(Value::as_str);
    cost.is_some_and(|cost| !is_cost(cost))
}

/// A number without a plus sign or leading zeros.
fn is_cost(text: &str) -> bool {
    let begins_well = text == "0" || text.starts_with(|first: char| matches!(first, '-' | '1'..='9'));
    begins_well && text.parse::<i32>().is_ok()
}

/// Tolerations as JSON, as they were written before there was a field for them.
fn validate_tolerations(
    listed: &FieldRef<'_>,
    annotations: &FieldRef<'_>,
    options: &PodValidationOptions,
) -> ErrorList {
    let decoded = json::decode(listed.text().as_bytes()).map_err(|error| error.to_string());
    match decoded.and_then(|sent| decode_tolerations(sent).map_err(|error| error.to_string())) {
        Ok(value) => {
            let path = annotations.path().child(TOLERATIONS);
            tolerations::validate(&FieldRef::new(Some(&value), path), options)
        }
        Err(error) => {
            let error = Error::invalid(annotations.path(), TOLERATIONS, error);
            [error].into_iter().collect()
        }
    }
}

/// The fields of Go's internal type, which has no names for JSON, and their names in the API.
const FIELDS: [(&str, &str); 5] = [
    ("Key", "key"),
    ("Operator", "operator"),
    ("Value", "value"),
    ("Effect", "effect"),
    ("TolerationSeconds", "tolerationSeconds"),
];

/// A list of tolerations, as Go decodes it into its internal type.
fn decode_tolerations(sent: Value) -> Result<Value, UnmarshalError> {
    let list = annotated::decode_list(sent, "Toleration", &FIELDS, |typed, name, value| match name {
        "TolerationSeconds" => typed.int64(value).map(Value::Int),
        "Operator" => typed.string_as(value, "core.TolerationOperator").map(Value::from),
        "Effect" => typed.string_as(value, "core.TaintEffect").map(Value::from),
        _ => typed.string(value).map(Value::from),
    })?;
    Ok(list.map_or(Value::Null, Value::Array))
}
