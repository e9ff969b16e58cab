//! The validation of metadata.
//!
//! Source: `apimachinery/pkg/api/validation`, release 1.37; answers recorded from it.

use std::collections::{BTreeSet, HashSet};

use super::super::api_version::group_version;
use super::super::field::{Error, ErrorList, ErrorType, Path};
use super::super::names;
use crate::value::json::Layout;
use crate::value::{Map, Value, go_quote, is_printable, json};
use crate::work;

/// The most bytes of all annotations together, with their names.
pub const ANNOTATIONS_BYTES_MAX: i64 = 256 << 10;
/// The maximum length of the name of a field manager.
pub const MANAGER_BYTES_MAX: usize = 128;
const SUBRESOURCE_BYTES_MAX: usize = 256;

/// The errors in the metadata of a new object whose name is set.
///
/// `name_check` returns the errors of a name; with `true`, those of a prefix that more characters will follow.
pub fn validate(
    metadata: &Value,
    namespaced: bool,
    name_check: impl Fn(&str, bool) -> Vec<String>,
    path: &Path<'_>,
) -> ErrorList {
    let mut errors = ErrorList::new();
    let text = |name: &str| metadata.str_at(&[name]);
    let (generate_name, name) = (text("generateName"), text("name"));
    if !generate_name.is_empty() {
        let faults = name_check(generate_name, true).into_iter();
        errors.extend(faults.map(|fault| Error::invalid(&path.child("generateName"), generate_name, fault)));
    }
    if name.is_empty() {
        errors.push(Error::required(&path.child("name"), "name or generateName is required"))
    } else {
        let faults = name_check(name, false).into_iter();
        errors.extend(faults.map(|fault| Error::invalid(&path.child("name"), name, fault)));
    }
    let (namespace, namespace_path) = (text("namespace"), path.child("namespace"));
    match (namespaced, namespace.is_empty()) {
        (true, true) => errors.push(Error::required(&namespace_path, "")),
        (true, false) => {
            let faults = names::is_dns1123_label(namespace).into_iter();
            errors.extend(faults.map(|fault| Error::invalid(&namespace_path, namespace, fault)));
        }
        (false, false) => errors.push(Error::forbidden(&namespace_path, "not allowed on this type")),
        (false, true) => {}
    }
    errors.extend(validate_generation(metadata, path));
    errors.extend(validate_labels(metadata.get("labels").unwrap_or(&Value::Null), &path.child("labels")));
    errors
        .extend(validate_annotations(metadata.get("annotations").unwrap_or(&Value::Null), &path.child("annotations")));
    errors.extend(validate_owner_references(metadata, path));
    errors.extend(validate_finalizers(metadata, path));
    errors.extend(validate_managed_fields(metadata, path));
    errors
}

/// The errors in the metadata of an updated object.
pub fn validate_update(new: &Value, old: &Value, path: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    if old.get("deletionTimestamp").is_some() {
        let added = added_finalizers(new, old);
        if !added.is_empty() {
            let added: Vec<String> = added.into_iter().map(go_quote).collect();
            let detail = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                added.join(", ")
            );
            errors.push(Error::forbidden(&path.child("finalizers"), detail));
        }
    }
    if new.str_at(&["resourceVersion"]).is_empty() {
        errors.push(Error::invalid(&path.child("resourceVersion"), "", "must be specified for an update"));
    }
    errors.extend(validate_generation(new, path));
    let generation = |metadata: &Value| metadata.get("generation").and_then(Value::as_i64).unwrap_or_default();
    if generation(new) < generation(old) {
        errors.push(Error::invalid(&path.child("generation"), generation(new), "must not be decremented"));
    }
    let immutable =
        ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"];
    for name in immutable {
        let (now, before) = (new.get(name), old.get(name));
        if now != before {
            let absent = match name {
                "name" | "namespace" | "uid" => Value::from(""),
                _ => Value::Null,
            };
            errors.push(Error::invalid(&path.child(name), now.cloned().unwrap_or(absent), "field is immutable"));
        }
    }
    errors.extend(validate_labels(new.get("labels").unwrap_or(&Value::Null), &path.child("labels")));
    errors.extend(validate_annotations(new.get("annotations").unwrap_or(&Value::Null), &path.child("annotations")));
    errors.extend(validate_owner_references(new, path));
    errors.extend(validate_managed_fields(new, path));
    errors
}

/// Finalizers that `new` has and `old` had not, each once, sorted. Both are metadata.
pub fn added_finalizers<'v>(new: &'v Value, old: &Value) -> Vec<&'v str> {
    let before: HashSet<&str> = texts(old, "finalizers").into_iter().collect();
    let added = texts(new, "finalizers").into_iter().inspect(|name| work::bytes(name.len()));
    let added: BTreeSet<&str> = added.filter(|name| !before.contains(name)).collect();
    added.into_iter().collect()
}

fn texts<'v>(metadata: &'v Value, name: &str) -> Vec<&'v str> {
    let list = metadata.get(name).and_then(Value::as_array).unwrap_or_default();
    list.iter().filter_map(Value::as_str).collect()
}

fn entries(map: &Value) -> impl Iterator<Item = (&str, &str)> {
    map.as_object().into_iter().flat_map(Map::iter).map(|(key, value)| (key, value.as_str().unwrap_or_default()))
}

fn validate_generation(metadata: &Value, path: &Path<'_>) -> Option<Error> {
    let generation = metadata.get("generation").and_then(Value::as_i64).filter(|generation| *generation < 0)?;
    Some(Error::invalid(&path.child("generation"), generation, "must be greater than or equal to 0"))
}

/// The errors of `labels`, a map of strings at `path`.
pub fn validate_labels(labels: &Value, path: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    for (key, value) in entries(labels) {
        work::bytes(key.len() + value.len());
        errors.extend(names::is_qualified_name(key).into_iter().map(|fault| Error::invalid(path, key, fault)));
        errors.extend(names::is_valid_label_value(value).into_iter().map(|fault| Error::invalid(path, value, fault)));
    }
    errors
}

/// The errors of `annotations`, a map of strings at `path`.
pub fn validate_annotations(annotations: &Value, path: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut bytes = 0_usize;
    for (key, value) in entries(annotations) {
        bytes += key.len() + value.len();
        work::bytes(key.len());
        let lower: String = key.chars().filter_map(|character| character.to_lowercase().next()).collect();
        let faults = names::is_qualified_name(&lower).into_iter();
        errors.extend(faults.map(|fault| Error::invalid(path, key, fault)));
    }
    if i64::try_from(bytes).is_ok_and(|bytes| bytes > ANNOTATIONS_BYTES_MAX) {
        errors.push(Error::too_long(path, ANNOTATIONS_BYTES_MAX));
    }
    errors
}

fn validate_owner_references(metadata: &Value, path: &Path<'_>) -> ErrorList {
    let list_path = path.child("ownerReferences");
    let mut errors = ErrorList::new();
    let references = metadata.get("ownerReferences").and_then(Value::as_array).unwrap_or_default();
    let mut controller: Option<String> = None;
    for (index, reference) in references.iter().enumerate() {
        work::step();
        let path = list_path.index(index);
        let api_version = reference.str_at(&["apiVersion"]);
        let (group, version) = group_version(api_version);
        if api_version.is_empty() {
            errors.push(Error::required(&path.child("apiVersion"), "must not be empty"));
        } else if version.is_empty() || version.contains('/') {
            let detail = "must be <group>/<version> or <version>";
            errors.push(Error::invalid(&path.child("apiVersion"), api_version, detail));
        }
        for name in ["kind", "name", "uid"] {
            if reference.str_at(&[name]).is_empty() {
                errors.push(Error::required(&path.child(name), "must not be empty"));
            }
        }
        if (group, version, reference.str_at(&["kind"])) == ("", "v1", "Event") {
            let detail = "/v1, Kind=Event is disallowed from being an owner";
            errors.push(Error::invalid(&path, reference.clone(), detail).shown_as(show_owner_references(reference)));
        }
        if reference.get("controller").and_then(Value::as_bool) == Some(true) {
            let this = format!("{}/{}", reference.str_at(&["kind"]), reference.str_at(&["name"]));
            match &controller {
                None => controller = Some(this),
                // Each such error shows all references.
                Some(first) => errors.push_with(ErrorType::Invalid, || {
                    let detail = format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references for {first} and \
                         {this}"
                    );
                    let references = Value::Array(references.to_vec());
                    let shown = show_owner_references(&references);
                    Error::invalid(&list_path, references, detail).shown_as(shown)
                }),
            }
        }
    }
    errors
}

static OWNER_REFERENCE: Layout = Layout::Struct(&[
    ("apiVersion", &Layout::Sorted),
    ("kind", &Layout::Sorted),
    ("name", &Layout::Sorted),
    ("uid", &Layout::Sorted),
    ("controller", &Layout::Sorted),
    ("blockOwnerDeletion", &Layout::Sorted),
]);

/// References with the fields in the order of Go's struct.
fn show_owner_references(references: &Value) -> String {
    String::from_utf8_lossy(&json::encode_as(references, OWNER_REFERENCE)).into_owned()
}

fn validate_finalizers(metadata: &Value, path: &Path<'_>) -> ErrorList {
    let path = path.child("finalizers");
    let finalizers = texts(metadata, "finalizers");
    let mut errors = ErrorList::new();
    for name in &finalizers {
        work::bytes(name.len());
        errors.extend(names::is_qualified_name(name).into_iter().map(|fault| Error::invalid(&path, *name, fault)));
    }
    if finalizers.contains(&"orphan") && finalizers.contains(&"foregroundDeletion") {
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        let shown: Vec<Value> = finalizers.iter().map(|name| Value::from(*name)).collect();
        errors.push(Error::invalid(&path, shown, detail));
    }
    errors
}

fn validate_managed_fields(metadata: &Value, path: &Path<'_>) -> ErrorList {
    let path = path.child("managedFields");
    let mut errors = ErrorList::new();
    let entries = metadata.get("managedFields").and_then(Value::as_array).unwrap_or_default();
    for (index, entry) in entries.iter().enumerate() {
        work::step();
        let path = path.index(index);
        match entry.str_at(&["operation"]) {
            "" => errors.push(Error::required(&path.child("operation"), "must not be empty")),
            "Apply" | "Update" => {}
            other => errors.push(Error::not_supported(&path.child("operation"), other, &["Apply", "Update"])),
        }
        let fields_type = entry.str_at(&["fieldsType"]);
        if !matches!(fields_type, "" | "FieldsV1") {
            errors.push(Error::invalid(&path.child("fieldsType"), fields_type, "must be `FieldsV1`"));
        }
        errors.extend(validate_manager(entry.str_at(&["manager"]), &path.child("manager")));
        if entry.str_at(&["subresource"]).len() > SUBRESOURCE_BYTES_MAX {
            errors.push(Error::too_long(&path.child("subresource"), SUBRESOURCE_BYTES_MAX as i64));
        }
    }
    errors
}

/// The errors of the name of a field manager.
pub fn validate_manager(manager: &str, path: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    if manager.len() > MANAGER_BYTES_MAX {
        errors.push(Error::too_long(path, MANAGER_BYTES_MAX as i64));
    }
    for (at, character) in manager.char_indices().filter(|(_, character)| !is_printable(*character)) {
        errors.push_with(ErrorType::Invalid, || {
            let detail = format!("invalid character U+{:04X} (at position {at})", u32::from(character));
            Error::invalid(path, manager, detail)
        });
    }
    errors
}
