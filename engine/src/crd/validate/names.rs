//! The names of a resource and its group.

use crate::crd::Names;
use crate::meta::field::{Error, ErrorList, Path};
use crate::meta::names::{is_dns1035_label, is_dns1123_subdomain};

/// The group of a definition.
pub fn validate_group(group: &str, path: &Path<'_>) -> Option<Error> {
    let faults = is_dns1123_subdomain(group);
    if group.is_empty() {
        Some(Error::required(path, ""))
    } else if !faults.is_empty() {
        Some(Error::invalid(path, group, faults.join(",")))
    } else if !group.contains('.') {
        Some(Error::invalid(path, group, "should be a domain with at least one dot"))
    } else {
        None
    }
}

/// Names that a spec must have; a status need not.
pub fn validate_presence(names: &Names, path: &Path<'_>) -> ErrorList {
    let required = [
        ("plural", &names.plural),
        ("singular", &names.singular),
        ("kind", &names.kind),
        ("listKind", &names.list_kind),
    ];
    let missing = required.iter().filter(|(_, name)| name.is_empty());
    missing.map(|(field, _)| Error::required(&path.child(field), "")).collect()
}

/// Validates the names of a spec or of a status; missing ones pass.
pub fn validate_names(names: &Names, path: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut label = |path: &Path<'_>, name: &str| errors.extend(validate_label(path, name));
    label(&path.child("plural"), &names.plural);
    label(&path.child("singular"), &names.singular);
    for (field, kind) in [("kind", &names.kind), ("listKind", &names.list_kind)] {
        let faults = is_dns1035_label(&kind.to_lowercase());
        if !kind.is_empty() && !faults.is_empty() {
            let detail = format!("may have mixed case, but should otherwise match: {}", faults.join(","));
            errors.push(Error::invalid(&path.child(field), kind.as_str(), detail));
        }
    }
    errors.extend(validate_labels(&path.child("shortNames"), &names.short_names));
    if !names.kind.is_empty() && names.kind == names.list_kind {
        let detail = "kind and listKind may not be the same";
        errors.push(Error::invalid(&path.child("listKind"), names.list_kind.as_str(), detail));
    }
    errors.extend(validate_labels(&path.child("categories"), &names.categories));
    errors
}

/// Validates a name that must be a DNS label, if it is present.
pub fn validate_label(path: &Path<'_>, name: &str) -> Option<Error> {
    if name.is_empty() { None } else { validate_required_label(path, name) }
}

/// A name that must be a DNS label.
pub fn validate_required_label(path: &Path<'_>, name: &str) -> Option<Error> {
    let faults = is_dns1035_label(name);
    (!faults.is_empty()).then(|| Error::invalid(path, name, faults.join(",")))
}

fn validate_labels(path: &Path<'_>, names: &[String]) -> ErrorList {
    let labels = names.iter().enumerate();
    labels.filter_map(|(index, name)| validate_required_label(&path.index(index), name)).collect()
}
