//! Metadata of the kinds in the core group, which are stricter about finalizers than others.
//!
//! Source: the validation of Kubernetes 1.37 for the core group.

use crate::meta::field::{Error, ErrorList, Path};
use crate::meta::field_ref::FieldRef;
use crate::meta::object_meta;
use crate::value::{Map, Value};
use crate::work;

pub const METADATA: Path<'static> = Path::new("metadata");
/// Finalizers that need no domain before their name.
const STANDARD_FINALIZERS: [&str; 3] = ["foregroundDeletion", "kubernetes", "orphan"];
/// Metadata that a template must not have, as JSON and errors name it, in the order of Go's struct.
const FORBIDDEN_METADATA: [(&str, &str); 13] = [
    ("name", "name"),
    ("generateName", "generateName"),
    ("namespace", "namespace"),
    ("selfLink", "selfLink"),
    ("uid", "uID"),
    ("resourceVersion", "resourceVersion"),
    ("generation", "generation"),
    ("creationTimestamp", "creationTimestamp"),
    ("deletionTimestamp", "deletionTimestamp"),
    ("deletionGracePeriodSeconds", "deletionGracePeriodSeconds"),
    ("ownerReferences", "ownerReferences"),
    ("finalizers", "finalizers"),
    ("managedFields", "managedFields"),
];

pub fn of(object: &Value) -> &Value {
    object.get("metadata").unwrap_or(&Value::Null)
}

/// [`validate`] for a kind that allows any finalizer.
pub fn validate_plain(object: &Value, namespaced: bool, name_check: impl Fn(&str, bool) -> Vec<String>) -> ErrorList {
    object_meta::validate(of(object), namespaced, name_check, &METADATA)
}

/// The errors of the metadata of an object of the core group.
pub fn validate(object: &Value, namespaced: bool, name_check: impl Fn(&str, bool) -> Vec<String>) -> ErrorList {
    work::steps(of(object).as_object().map_or(0, Map::len));
    let mut errors = validate_plain(object, namespaced, name_check);
    errors.extend(validate_finalizers(object));
    errors
}

/// [`validate_update`] for a kind that allows any finalizer.
pub fn validate_plain_update(new: &Value, old: &Value) -> ErrorList {
    object_meta::validate_update(of(new), of(old), &METADATA)
}

/// The errors of the metadata of a changed object. The registry checks it as well; so does the reference, which reports
/// each cause twice.
pub fn validate_update(new: &Value, old: &Value) -> ErrorList {
    let mut errors = validate_plain_update(new, old);
    errors.extend(validate_finalizers(new));
    errors
}

/// The errors of the metadata of a template. Only its labels and annotations are used.
pub fn validate_of_template(metadata: &FieldRef<'_>) -> ErrorList {
    let (annotations, labels) = (metadata.field("annotations"), metadata.field("labels"));
    let value = |field: &FieldRef<'_>| field.value().cloned().unwrap_or(Value::Null);
    let mut errors = object_meta::validate_annotations(&value(&annotations), annotations.path());
    errors.extend(object_meta::validate_labels(&value(&labels), labels.path()));
    // The beginning of the year 1 is not a time for Go, but the pointer is set.
    let is_zero_time = |name| name == "deletionTimestamp" && metadata.value().and_then(|it| it.get(name)).is_some();
    for (name, called) in FORBIDDEN_METADATA {
        if metadata.field(name).is_set() || is_zero_time(name) {
            errors.push(Error::forbidden(&metadata.path().child(called), "cannot be set"));
        }
    }
    errors
}

fn validate_finalizers(object: &Value) -> ErrorList {
    let path = METADATA.child("finalizers");
    let names = object.items_at(&["metadata", "finalizers"]).iter().filter_map(Value::as_str).enumerate();
    names.filter_map(|(index, name)| check_finalizer(name, &path.index(index))).collect()
}

/// A finalizer that is neither known nor has a domain.
pub fn check_finalizer(name: &str, path: &Path<'_>) -> Option<Error> {
    let is_fit = name.contains('/') || STANDARD_FINALIZERS.contains(&name);
    let why = "name is neither a standard finalizer name nor is it fully qualified";
    (!is_fit).then(|| Error::invalid(path, name, why))
}

/// A field that an update must not change.
pub fn check_unchanged(new: &Value, old: &Value, name: &str) -> Option<Error> {
    let nothing = Value::from("");
    let value = new.get(name).unwrap_or(&nothing);
    (new.get(name) != old.get(name)).then(|| Error::invalid(&Path::new(name), value.clone(), "field is immutable"))
}

/// The fields of an immutable object that an update changes all the same.
pub fn check_immutable(new: &Value, old: &Value, fields: &[&str]) -> ErrorList {
    const WHY: &str = "field is immutable when `immutable` is set";
    let is_immutable = |object: &Value| object.get("immutable").and_then(Value::as_bool) == Some(true);
    if !is_immutable(old) {
        return ErrorList::new();
    }
    let changed = fields.iter().filter(|field| new.get(field) != old.get(field)).copied();
    let loosened = Some("immutable").filter(|_| !is_immutable(new));
    loosened.into_iter().chain(changed).map(|field| Error::forbidden(&Path::new(field), WHY)).collect()
}
