//! What storage classes and attributes classes have in common: the provisioner and its parameters.

use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::names;
use crate::value::Value;

use super::claim::CLASS_ANNOTATION;

/// The maximum total length of keys and values, in bytes.
pub const PARAMETERS_BYTES_MAX: i64 = 256 << 10;
const PARAMETERS_MAX: i64 = 512;
/// The annotations that mark a class as the default for claims that name none.
const DEFAULT_ANNOTATIONS: [&str; 2] =
    ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];

/// Validates the name of a provisioner.
pub fn validate_provisioner(name: &FieldRef<'_>) -> ErrorList {
    if name.is_empty() {
        return [name.required("")].into_iter().collect();
    }
    let lower = name.text().to_lowercase();
    let faults = names::is_qualified_name(&lower).into_iter();
    faults.map(|fault| Error::invalid(name.path(), lower.as_str(), fault)).collect()
}

/// Validates parameters; `may_be_empty` tells whether there may be none.
pub fn validate_parameters(parameters: &FieldRef<'_>, may_be_empty: bool) -> ErrorList {
    let mut errors = ErrorList::new();
    if i64::try_from(parameters.len()).is_ok_and(|count| count > PARAMETERS_MAX) {
        errors.push(parameters.too_long(PARAMETERS_MAX));
        return errors;
    }
    if parameters.entries().any(|(key, _)| key.is_empty()) {
        let why = "field can not be empty.";
        errors.push(Error::invalid(parameters.path(), "", why));
    }
    if bytes(parameters) > PARAMETERS_BYTES_MAX {
        errors.push(parameters.too_long(PARAMETERS_BYTES_MAX));
    }
    if !may_be_empty && parameters.is_empty() {
        errors.push(parameters.required("must contain at least one key/value pair"));
    }
    errors
}

/// The total length of the keys and values of a map of strings, in bytes.
pub fn bytes(map: &FieldRef<'_>) -> i64 {
    let bytes: usize = map.entries().map(|(key, value)| key.len() + value.text().len()).sum();
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// The class that a claim names. It may be the empty name, which stands for no class.
pub fn of_claim(claim: &Value) -> Option<&str> {
    let annotation = claim.at(&["metadata", "annotations", CLASS_ANNOTATION]);
    annotation.or_else(|| claim.at(&["spec", "storageClassName"])).and_then(Value::as_str)
}

/// What [`set_default`] reads of classes.
pub const READ: [&[&str]; 4] = [
    &["metadata", "name"],
    &["metadata", "creationTimestamp"],
    &["metadata", "annotations", DEFAULT_ANNOTATIONS[0]],
    &["metadata", "annotations", DEFAULT_ANNOTATIONS[1]],
];

/// Sets a claim's class to the newest of the default ones.
pub fn set_default(claim: &mut Value, classes: &[Value]) {
    let made = |class: &Value| class.str_at(&["metadata", "creationTimestamp"]).to_owned();
    let name = |class: &Value| class.str_at(&["metadata", "name"]).to_owned();
    let defaults = classes.iter().filter(|class| is_default(class));
    let newest = defaults.max_by_key(|class| (made(class), std::cmp::Reverse(name(class))));
    if let Some(class) = newest {
        claim.make_object().entry("spec").make_object().insert("storageClassName", Value::String(name(class)));
    }
}

/// Whether the class is a default for claims that name none.
pub fn is_default(class: &Value) -> bool {
    DEFAULT_ANNOTATIONS.iter().any(|name| class.str_at(&["metadata", "annotations", name]) == "true")
}
