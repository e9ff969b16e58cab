//! The Scale of `autoscaling/v1`, which represents two fields and the selector of another object.
//!
//! Input: an object, and the paths of these. Output: its Scale.

use crate::crd::nested::{NestedError, nested_int, nested_str, split_path};
use crate::crd::{Scale, SelectorForm};
use crate::kinds::workloads::selector;
use crate::object;
use crate::value::Value;

use super::metadata::metadata_mut;

/// The version of the Scales of this server.
pub const API_VERSION: &str = "autoscaling/v1";
/// The kind of the Scales.
pub const KIND: &str = "Scale";

/// Makes the Scale of `object`. Also returns whether the field for replicas is present.
///
/// # Errors
///
/// A field is of the wrong type.
pub fn of_object(scale: &Scale, object: &Value) -> Result<(Value, bool), NestedError> {
    let replicas = nested_int(object, &split_path(&scale.spec_replicas_path))?;
    let status = nested_int(object, &split_path(&scale.status_replicas_path))?;
    let selector = selector_of(scale, object)?;
    let mut value = object! {
        "apiVersion" => API_VERSION,
        "kind" => KIND,
        "metadata" => object! {},
        "spec" => object! {},
        "status" => object! { "replicas" => as_int32(status.unwrap_or_default()) },
    };
    for name in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(found) = object.at(&["metadata", name]) {
            metadata_mut(&mut value).insert(name, found.clone());
        }
    }
    set_replicas(&mut value, as_int32(replicas.unwrap_or_default()));
    if let (false, Some(Value::Object(status))) = (selector.is_empty(), value.get_mut("status")) {
        status.insert("selector", Value::from(selector));
    }
    Ok((value, replicas.is_some()))
}

/// The selector as text; empty if there is none.
fn selector_of(scale: &Scale, object: &Value) -> Result<String, NestedError> {
    let Some(path) = &scale.label_selector_path else { return Ok(String::new()) };
    let path = split_path(path);
    match scale.selector_form {
        SelectorForm::Text => nested_str(object, &path).map(|text| text.unwrap_or_default().to_owned()),
        // Only a valid selector is stored.
        SelectorForm::Requirements => Ok(selector::text(object.at(&path)).unwrap_or_default()),
        SelectorForm::Labels => Ok(selector::set_text(object.at(&path))),
    }
}

/// Truncates a number to its lower 32 bits, as Go does.
const fn as_int32(number: i64) -> i64 {
    number as i32 as i64
}

/// Sets the replicas of a Scale. Go omits a zero in the spec, but not in the status.
pub fn set_replicas(scale: &mut Value, replicas: i64) {
    let Some(Value::Object(spec)) = scale.get_mut("spec") else { return };
    match replicas {
        0 => _ = spec.remove("replicas"),
        _ => _ = spec.insert("replicas", Value::Int(replicas)),
    }
}
