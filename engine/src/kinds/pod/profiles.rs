//! Validation of the profiles that confine a container, by seccomp and AppArmor, in fields and in the annotations that were
//! there before them.
//!
//! Source: `pkg/apis/core/validation`, release 1.36.

use std::collections::HashSet;

use super::container_lists;
use super::volumes::paths;
use crate::kinds::show_internal;
use crate::meta::field::{Error, ErrorList, Path};
use crate::meta::field_ref::FieldRef;
use crate::value::{Value, go_quote};

pub const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
pub const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
pub const APP_ARMOR_CONTAINER: &str = "container.apparmor.security.beta.kubernetes.io/";
const LOCALHOST: &str = "localhost/";
const PATH_BYTES_MAX: i64 = 4095;
const TYPES: [&str; 3] = ["Localhost", "RuntimeDefault", "Unconfined"];

/// A `SeccompProfile`.
pub fn validate_seccomp(profile: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    if !profile.is_set() {
        return errors;
    }
    let (kind, file) = (profile.field("type"), profile.field("localhostProfile"));
    if kind.is_empty() {
        errors.push(kind.required("type is required when seccompProfile is set"));
    } else if !TYPES.contains(&kind.text()) {
        errors.push(kind.not_supported(&TYPES));
    }
    if kind.text() != "Localhost" {
        if file.is_set() {
            let shown =
                profile.value().map(|profile| show_internal("core.v1.SeccompProfile", profile)).unwrap_or_default();
            errors.push(file.invalid("can only be set when seccomp type is Localhost").shown_as(shown));
        }
    } else if file.is_set() {
        errors.extend(paths::descending(&file));
    } else {
        errors.push(file.required("must be set when seccomp type is Localhost"));
    }
    errors
}

/// An `AppArmorProfile`.
pub fn validate_app_armor(profile: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    if !profile.is_set() {
        return errors;
    }
    let (kind, file) = (profile.field("type"), profile.field("localhostProfile"));
    match kind.text() {
        "Localhost" => {
            let name = file.text().trim();
            if !file.is_set() || file.text().is_empty() {
                errors.push(file.required("must be set when AppArmor type is Localhost"));
            } else if name != file.text() {
                errors.push(file.invalid("must not be padded with whitespace"));
            }
            if file.text().len() as i64 > PATH_BYTES_MAX {
                errors.push(file.too_long(PATH_BYTES_MAX));
            }
        }
        "RuntimeDefault" | "Unconfined" if file.is_set() => {
            errors.push(file.invalid_as_json("can only be set when AppArmor type is Localhost"));
        }
        "RuntimeDefault" | "Unconfined" => {}
        "" => errors.push(kind.required("type is required when appArmorProfile is set")),
        _ => errors.push(kind.not_supported(&TYPES)),
    }
    errors
}

/// The annotations that name profiles.
pub fn validate_annotations(annotations: &FieldRef<'_>, spec: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let seccomp = |key: &str, profile: &FieldRef<'_>| {
        seccomp_annotation_errors(&FieldRef::new(profile.value(), annotations.path().child(key)))
    };
    let pod = annotations.field(SECCOMP_POD);
    if pod.is_set() {
        errors.extend(seccomp(SECCOMP_POD, &pod));
    }
    for (key, profile) in annotations.entries().filter(|(key, _)| key.starts_with(SECCOMP_CONTAINER)) {
        errors.extend(seccomp(key, &profile));
    }
    let mut names: Option<HashSet<String>> = None;
    for (key, profile) in annotations.entries() {
        let Some(container) = key.strip_prefix(APP_ARMOR_CONTAINER) else { continue };
        if !names.get_or_insert_with(|| names_of_containers(spec)).contains(container) {
            errors.push(Error::invalid(profile.path(), container, "container not found"));
        }
        let is_fit = matches!(profile.text(), "" | "runtime/default" | "unconfined");
        if !is_fit && !profile.text().starts_with(LOCALHOST) {
            errors.push(profile.invalid(format!("invalid AppArmor profile name: {}", go_quote(profile.text()))));
        }
    }
    errors
}

fn seccomp_annotation_errors(profile: &FieldRef<'_>) -> ErrorList {
    match profile.text() {
        "runtime/default" | "docker/default" | "unconfined" => ErrorList::new(),
        text => match text.strip_prefix(LOCALHOST) {
            Some(file) => paths::descending(&FieldRef::new(Some(&Value::from(file)), *profile.path())),
            None => [profile.invalid("must be a valid seccomp profile")].into_iter().collect(),
        },
    }
}

fn names_of_containers(spec: &FieldRef<'_>) -> HashSet<String> {
    let mut names = HashSet::new();
    container_lists::visit(spec, |container| _ = names.insert(container.field("name").text().to_owned()));
    names
}

/// Seccomp profiles in annotations and in fields, where a pod has both, are the same.
pub fn validate_seccomp_match(metadata: Option<&Value>, spec: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut check = |holder: &FieldRef<'_>, key: &str| {
        let context = holder.field("securityContext");
        let profile = context.field("seccompProfile");
        let annotation = annotation(metadata, key).filter(|_| profile.is_set());
        errors.extend(annotation.and_then(|annotation| {
            let is_default = matches!(annotation, "runtime/default" | "docker/default");
            mismatch("seccomp", annotation, is_default, &profile, profile.path())
        }));
    };
    check(spec, SECCOMP_POD);
    container_lists::visit(spec, |container| {
        check(container, &format!("{SECCOMP_CONTAINER}{}", container.field("name").text()));
    });
    errors
}

/// AppArmor profiles in annotations and in fields, where a container has both, are the same.
pub fn validate_app_armor_match(metadata: Option<&Value>, spec: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    if spec.field("os").field("name").text() == "windows" {
        return errors;
    }
    let pod_context = spec.field("securityContext");
    let of_pod = pod_context.field("appArmorProfile");
    container_lists::visit(spec, |container| {
        let context = container.field("securityContext");
        let own = context.field("appArmorProfile");
        let profile = if own.is_set() { own } else { of_pod };
        let key = format!("{APP_ARMOR_CONTAINER}{}", container.field("name").text());
        if let Some(annotation) = annotation(metadata, &key).filter(|_| profile.is_set()) {
            errors.extend(mismatch("apparmor", annotation, annotation == "runtime/default", &profile, own.path()));
        }
    });
    errors
}

fn annotation<'v>(metadata: Option<&'v Value>, key: &str) -> Option<&'v str> {
    metadata?.at(&["annotations", key]).and_then(Value::as_str)
}

/// How a profile at `path` differs from an annotation.
fn mismatch(what: &str, annotation: &str, is_default: bool, profile: &FieldRef<'_>, path: &Path<'_>) -> Option<Error> {
    let file = annotation.strip_prefix(LOCALHOST);
    let has_type = match profile.field("type").text() {
        "Unconfined" => annotation == "unconfined",
        "RuntimeDefault" => is_default,
        "Localhost" => file.is_some(),
        _ => return None,
    };
    if !has_type {
        let why = format!("{what} type in annotation and field must match");
        return Some(Error::forbidden(&path.child("type"), why));
    }
    let own = profile.field("localhostProfile");
    let is_same = profile.field("type").text() != "Localhost" || own.is_set() && file == Some(own.text());
    let why = format!("{what} profile in annotation and field must match");
    (!is_same).then(|| Error::forbidden(&path.child("localhostProfile"), why))
}
