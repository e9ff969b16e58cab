//! Files and variables that contain fields of the pod itself.

use crate::kinds::checks;
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::names;
use crate::meta::quantity::Quantity;

use super::paths;

/// Fields of the pod that a file may contain.
const FILE_FIELDS: [&str; 5] =
    ["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];
/// Fields that the first version of the API knows.
const KNOWN_FIELDS: [&str; 15] = [
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.host",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.serviceAccountName",
    "spec.schedulerName",
    "status.phase",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
const RESOURCES: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];
const HUGE_PAGES: [&str; 2] = ["limits.hugepages-", "requests.hugepages-"];
const SIZE_DIVISORS: [&str; 13] = ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];

/// The source of a volume.
pub fn volume(source: &FieldRef<'_>) -> ErrorList {
    let mut errors: ErrorList = paths::file_mode(&source.field("defaultMode")).into_iter().collect();
    for item in source.field("items").items() {
        // The reference names the wrong field, but not its item.
        errors.extend(file(&FieldRef::new(item.value(), *source.path())));
    }
    errors
}

/// A file with a field of the pod, or with a resource of a container.
pub fn file(file: &FieldRef<'_>) -> ErrorList {
    let mut errors = checks::required_fields(file, &["path"]);
    errors.extend(paths::local_not_reserved(&file.field("path")));
    let (field, resource) = (file.field("fieldRef"), file.field("resourceFieldRef"));
    if field.is_set() {
        errors.extend(field_reference(&field, &FILE_FIELDS));
        if resource.is_set() {
            let why = "fieldRef and resourceFieldRef can not be specified simultaneously";
            errors.push(Error::invalid(file.path(), "resource", why));
        }
    } else if resource.is_set() {
        errors.extend(resource_reference(&resource, true));
    } else {
        errors.push(file.required("one of fieldRef and resourceFieldRef is required"));
    }
    errors.extend(paths::file_mode(&file.field("mode")));
    errors
}

/// A reference to a field of the pod, one of `fields` (sorted) or an entry of its labels or annotations.
pub fn field_reference(reference: &FieldRef<'_>, fields: &[&str]) -> ErrorList {
    let (version, path) = (reference.field("apiVersion"), reference.field("fieldPath"));
    for needed in [&version, &path] {
        if needed.is_empty() {
            return [needed.required("")].into_iter().collect();
        }
    }
    let label = match convert(version.text(), path.text()) {
        Ok(label) => label,
        Err(why) => return [path.invalid(format!("error converting fieldPath: {why}"))].into_iter().collect(),
    };
    match split_subscript(label) {
        Some(("metadata.annotations", key)) => qualified(reference, &key.to_lowercase()),
        Some(("metadata.labels", key)) => qualified(reference, key),
        Some((path, _)) => [Error::invalid(reference.path(), path, "does not support subscript")].into_iter().collect(),
        None if fields.contains(&label) => ErrorList::new(),
        None => [Error::not_supported(path.path(), label, fields)].into_iter().collect(),
    }
}

fn qualified(reference: &FieldRef<'_>, key: &str) -> ErrorList {
    let faults = names::is_qualified_name(key).into_iter();
    faults.map(|fault| Error::invalid(reference.path(), key, fault)).collect()
}

/// Why a label does not name a field of pods.
#[derive(Debug, thiserror::Error)]
enum LabelError {
    #[error("unsupported pod version: {0}")]
    Version(String),
    #[error("field label does not support subscript: {0}")]
    Subscript(String),
    #[error("field label not supported: {0}")]
    Unknown(String),
}

/// The field as pods call it today.
fn convert<'t>(version: &str, label: &'t str) -> Result<&'t str, LabelError> {
    if version != "v1" {
        return Err(LabelError::Version(version.to_owned()));
    }
    match split_subscript(label) {
        Some(("metadata.annotations" | "metadata.labels", _)) => return Ok(label),
        Some(_) => return Err(LabelError::Subscript(label.to_owned())),
        None => {}
    }
    match label {
        "spec.host" => Ok("spec.nodeName"),
        _ if KNOWN_FIELDS.contains(&label) => Ok(label),
        _ => Err(LabelError::Unknown(label.to_owned())),
    }
}

/// The path and the key of `metadata.labels['app']`.
fn split_subscript(label: &str) -> Option<(&str, &str)> {
    let (path, key) = label.strip_suffix("']")?.split_once("['")?;
    (!path.is_empty()).then_some((path, key))
}

/// A reference to a resource of a container, which a volume has to name.
pub fn resource_reference(reference: &FieldRef<'_>, is_volume: bool) -> ErrorList {
    let mut errors = ErrorList::new();
    let (container, resource) = (reference.field("containerName"), reference.field("resource"));
    let is_huge_pages = HUGE_PAGES.iter().any(|prefix| resource.text().starts_with(prefix));
    if is_volume && container.is_empty() {
        errors.push(container.required(""));
    } else if resource.is_empty() {
        errors.push(resource.required(""));
    } else if !RESOURCES.contains(&resource.text()) && !is_huge_pages {
        errors.push(Error::not_supported(resource.path(), resource.text(), &RESOURCES));
    }
    errors.extend(divisor(reference, resource.text()));
    errors
}

/// The unit in which a resource is expressed.
fn divisor(reference: &FieldRef<'_>, resource: &str) -> Option<Error> {
    const SIZES: &str = "1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei";
    let field = reference.field("divisor");
    let divisor = Quantity::parse(field.text()).ok().filter(|divisor| divisor.signum() != 0)?.to_string();
    let (values, divisors, called): (&str, &[&str], &str) = match resource {
        "limits.cpu" | "requests.cpu" => ("1m and 1", &["1m", "1"], "cpu"),
        "limits.memory" | "requests.memory" => (SIZES, &SIZE_DIVISORS, "memory"),
        "limits.ephemeral-storage" | "requests.ephemeral-storage" => (SIZES, &SIZE_DIVISORS, "local ephemeral storage"),
        _ if HUGE_PAGES.iter().any(|prefix| resource.starts_with(prefix)) => (SIZES, &SIZE_DIVISORS, "hugepages"),
        _ => return None,
    };
    let why = format!("only divisor's values {values} are supported with the {called} resource");
    (!divisors.contains(&divisor.as_str())).then(|| Error::invalid(field.path(), resource, why))
}
