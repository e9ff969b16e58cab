//! `additionalPrinterColumns` and the paths of subresources: what clients read from an object.

use crate::crd::definition::Subresources;
use crate::crd::{Column, Scale};
use crate::meta::field::{Error, ErrorList, Path};

const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const FORMATS: [&str; 8] = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];

pub fn validate_columns(columns: &[Column], path: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    for (index, column) in columns.iter().enumerate() {
        errors.extend(validate_column(column, &path.index(index)));
    }
    errors
}

fn validate_column(column: &Column, path: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    if column.name.is_empty() {
        errors.push(Error::required(&path.child("name"), ""));
    }
    let (type_path, one_of) = (path.child("type"), format!("must be one of {}", TYPES.join(",")));
    match column.type_.as_str() {
        "" => errors.push(Error::required(&type_path, one_of)),
        type_ if !TYPES.contains(&type_) => errors.push(Error::invalid(&type_path, type_, one_of)),
        _ => {}
    }
    let format = column.format.as_str();
    if !format.is_empty() && !FORMATS.contains(&format) {
        let one_of = format!("must be one of {}", FORMATS.join(","));
        errors.push(Error::invalid(&path.child("format"), format, one_of));
    }
    let json_path = path.child("JSONPath");
    if column.json_path.is_empty() {
        errors.push(Error::required(&json_path, ""))
    } else {
        errors.extend(validate_simple_path(&column.json_path, &json_path))
    }
    errors
}

pub fn validate_subresources(subresources: &Subresources, path: &Path<'_>) -> ErrorList {
    let Some(Scale { spec_replicas_path, status_replicas_path, label_selector_path, .. }) = &subresources.scale else {
        return ErrorList::new();
    };
    let mut errors = ErrorList::new();
    let scale = path.child("scale");
    let replicas =
        [("specReplicasPath", spec_replicas_path, ".spec"), ("statusReplicasPath", status_replicas_path, ".status")];
    for (field, replicas_path, root) in replicas {
        let path = scale.child(field);
        if replicas_path.is_empty() {
            errors.push(Error::required(&path, ""));
        } else if let Some(error) = validate_simple_path(replicas_path, &path) {
            errors.push(error);
        } else if !is_under(replicas_path, root) {
            errors.push(Error::invalid(&path, replicas_path.as_str(), format!("should be a json path under {root}")));
        }
    }
    if let Some(selector_path) = label_selector_path.as_deref().filter(|path| !path.is_empty()) {
        let path = scale.child("labelSelectorPath");
        if let Some(error) = validate_simple_path(selector_path, &path) {
            errors.push(error);
        } else if !is_under(selector_path, ".spec") && !is_under(selector_path, ".status") {
            let detail = "should be a json path under either .spec or .status";
            errors.push(Error::invalid(&path, selector_path, detail).shown_as_json());
        }
    }
    errors
}

/// All that Kubernetes requires of such a path is a leading dot.
fn validate_simple_path(text: &str, path: &Path<'_>) -> Option<Error> {
    let detail = "must be a simple json path starting with .";
    (!text.starts_with('.')).then(|| Error::invalid(path, text, detail))
}

fn is_under(path: &str, root: &str) -> bool {
    path.strip_prefix(root).is_some_and(|rest| rest.starts_with('.'))
}
