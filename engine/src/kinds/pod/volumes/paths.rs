//! Paths of files, on nodes and within volumes.

use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;

/// No element of the path is `..`.
pub fn no_backsteps(path: &FieldRef<'_>) -> Option<Error> {
    path.text().split('/').any(|part| part == "..").then(|| path.invalid("must not contain '..'"))
}

/// The path must be relative and stay below its start.
pub fn descending(path: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    if path.text().starts_with('/') {
        errors.push(path.invalid("must be a relative path"));
    }
    errors.extend(no_backsteps(path));
    errors
}

/// [`descending`], and no name that the kubelet keeps for itself.
pub fn local_not_reserved(path: &FieldRef<'_>) -> ErrorList {
    let mut errors = descending(path);
    let text = path.text();
    if text.starts_with("..") && !text.starts_with("../") {
        errors.push(path.invalid("must not start with '..'"));
    }
    errors
}

/// The mode of a file, if there is one.
pub fn file_mode(mode: &FieldRef<'_>) -> Option<Error> {
    let is_fit = (0..=0o777).contains(&mode.int());
    (!is_fit).then(|| mode.invalid("must be a number between 0 and 0777 (octal), both inclusive"))
}
