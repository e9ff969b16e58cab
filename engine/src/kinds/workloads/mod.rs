//! What the kinds that create pods have in common: selectors, numbers or percentages, counters of a status, columns,
//! and what an update keeps.
//!
//! Source: `pkg/apis/apps/validation`, `pkg/registry/apps` and `pkg/printers` of Kubernetes 1.37.

pub(crate) mod cells;
pub(crate) mod claims;
pub(crate) mod percent;
pub mod selector;
pub(crate) mod status;
pub(crate) mod template;

use self::template::PodValidationOptions;
use super::strategy::Subresource;
use super::{prepare, semantic, show_internal};
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::names;
use crate::types::{self, Message};
use crate::value::Value;

/// Prepares an update: keeps the status, and increments the generation if the spec has changed.
pub fn prepare_update(new: &mut Value, old: &Value) {
    prepare::keep(new, old, &["status"]);
    if new.get("spec") != old.get("spec") && !prepare::is_same_part(new, old, "spec") {
        prepare::raise_generation(new, old);
    }
}

/// Keeps the labels of `old`.
pub fn copy_labels(new: &mut Value, old: &Value) {
    let metadata = new.make_object().entry("metadata").make_object();
    match old.at(&["metadata", "labels"]) {
        Some(labels) => _ = metadata.insert("labels", labels.clone()),
        None => _ = metadata.remove("labels"),
    }
}

/// Sets an annotation of an object.
pub fn set_annotation(object: &mut Value, name: &str, value: &str) {
    let metadata = object.make_object().entry("metadata").make_object();
    metadata.entry("annotations").make_object().insert(name, Value::from(value));
}

/// Removes an annotation, and the map of annotations if it is empty then.
pub fn remove_annotation(object: &mut Value, name: &str) {
    let Some(Value::Object(metadata)) = object.get_mut("metadata") else { return };
    let Some(Value::Object(annotations)) = metadata.get_mut("annotations") else { return };
    annotations.remove(name);
    if annotations.is_empty() {
        metadata.remove("annotations");
    }
}

/// Gives `new` the annotation of `old`, or removes it if `old` has none.
pub fn copy_annotation(new: &mut Value, old: &Value, name: &str) {
    match old.at(&["metadata", "annotations", name]).and_then(Value::as_str) {
        Some(value) => set_annotation(new, name, value),
        None => remove_annotation(new, name),
    }
}

/// Whether the two objects have different generations.
pub fn generation_differs(new: &Value, old: &Value) -> bool {
    new.at(&["metadata", "generation"]) != old.at(&["metadata", "generation"])
}

/// The warnings about a workload: about its name if it is new, and about a template that is new or may have changed.
pub fn warnings(subresource: Subresource, new: &Value, old: Option<&Value>) -> Vec<String> {
    match old {
        None => name_warnings(new).into_iter().chain(template::warnings(new, None)).collect(),
        Some(_) if subresource == Subresource::Status => Vec::new(),
        Some(old) if generation_differs(new, old) => template::warnings(new, Some(old)),
        Some(_) => Vec::new(),
    }
}

/// Validates the selector and the template of a spec that requires both; `kind` names the kind that creates the pods.
pub fn validate_selected_template(spec: &FieldRef<'_>, options: &PodValidationOptions, kind: &str) -> ErrorList {
    let field = spec.field("selector");
    let mut errors = ErrorList::new();
    if field.is_set() {
        errors.extend(selector::validate(&field, true));
    } else {
        errors.push(field.required(""));
    }
    if selector::is_empty(&field) {
        errors.push(selector::invalid(&field, "empty selector is invalid for deployment"));
    }
    let template = spec.field("template");
    match selector::compile(&field) {
        None => errors.push(selector::invalid(&field, "invalid label selector")),
        Some(compiled) => {
            errors.extend(compiled.check_template(&template));
            errors.extend(template::validate_running(&template, options, kind));
        }
    }
    errors
}

/// The warning about a name that pods cannot use as their host name.
pub fn name_warnings(object: &Value) -> Vec<String> {
    let faults = names::is_dns1123_label(object.str_at(&["metadata", "name"]));
    if faults.is_empty() {
        return Vec::new();
    }
    vec![format!(
        "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is \
         recommended: [{}]",
        faults.join(" ")
    )]
}

/// Checks that a field behind a pointer has not changed; if it was removed, the error shows `null`.
pub fn immutable(new: &FieldRef<'_>, old: &FieldRef<'_>) -> Option<Error> {
    (new.value() != old.value()).then(|| new.invalid_or_null("field is immutable"))
}

/// The error for an invalid struct, shown as Go shows its internal types.
pub fn invalid_struct(field: &FieldRef<'_>, type_name: &str, detail: &str) -> Error {
    field.invalid(detail).shown_as(show(field, type_name))
}

/// Formats the struct at `field` in Go's internal form; `null` if it is absent.
pub fn show(field: &FieldRef<'_>, type_name: &str) -> String {
    field.value().map_or_else(|| "null".to_owned(), |value| show_internal(type_name, value))
}

/// Checks that a struct behind a pointer is semantically unchanged.
pub fn immutable_struct(new: &FieldRef<'_>, old: &FieldRef<'_>, type_name: &str) -> Option<Error> {
    let error = immutable(new, old)?;
    let message = type_name.rsplit_once('.').map(|(package, name)| types::message_named(package, name));
    let is_same = |message: &'static Message| {
        message.members().next().is_some()
            && new.is_set() == old.is_set()
            && semantic::is_same_struct(message, new, old)
    };
    (!message.is_some_and(is_same)).then(|| error.shown_as(show(new, type_name)))
}

/// The fields that a write resets: the status, or everything but the status.
pub const fn reset_fields(subresource: Subresource) -> &'static [&'static [&'static str]] {
    match subresource {
        Subresource::Main => &[&["status"]],
        Subresource::Status => &[&["spec"]],
        _ => &[],
    }
}
