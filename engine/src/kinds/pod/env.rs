//! Validation of the environment of containers.
//!
//! Source: `pkg/apis/core/validation`, release 1.36.

use std::collections::HashMap;

use super::volumes::{downward_api, paths};
use super::{PodValidationOptions, container_lists};
use crate::kinds::checks;
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::names;
use crate::value::Value;

/// Fields of the pod that a variable may contain.
const FIELDS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

type EnvSourceCheck = fn(&FieldRef<'_>) -> ErrorList;

/// The check of the names of variables.
fn name_check(options: &PodValidationOptions) -> fn(&str) -> Vec<String> {
    let is_relaxed = options.allow_relaxed_environment_variable_validation;
    if is_relaxed { names::is_environment_variable } else { names::is_plain_environment_variable }
}

/// Variables one by one.
pub fn validate(variables: &FieldRef<'_>, options: &PodValidationOptions) -> ErrorList {
    let mut errors = ErrorList::new();
    for variable in variables.items() {
        let name = variable.field("name");
        if name.is_empty() {
            errors.push(name.required(""));
        } else {
            errors.extend(checks::named(&name, name_check(options)));
        }
        let source = variable.field("valueFrom");
        if source.is_set() {
            errors.extend(validate_source(&source, !variable.field("value").is_empty()));
        }
    }
    errors
}

/// The source of a value: exactly one, and no literal value besides it.
fn validate_source(source: &FieldRef<'_>, has_value: bool) -> ErrorList {
    let places: [(&str, EnvSourceCheck); 5] = [
        ("fieldRef", |reference| downward_api::field_reference(reference, &FIELDS)),
        ("resourceFieldRef", |reference| downward_api::resource_reference(reference, false)),
        ("configMapKeyRef", validate_key),
        ("secretKeyRef", validate_key),
        ("fileKeyRef", validate_file_key),
    ];
    let mut errors = ErrorList::new();
    let mut count = 0;
    for (name, check) in places {
        let place = source.field(name);
        if place.is_set() {
            count += 1;
            errors.extend(check(&place));
        }
    }
    let mut refuse = |why: &str| errors.push(Error::invalid(source.path(), "", why));
    match count {
        0 => refuse(
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
        ),
        _ if has_value => refuse("may not be specified when `value` is not empty"),
        1 => {}
        _ => refuse("may not have more than one field specified at a time"),
    }
    errors
}

/// A key of a config map or a secret.
fn validate_key(reference: &FieldRef<'_>) -> ErrorList {
    let mut errors = checks::named(&reference.field("name"), names::is_dns1123_subdomain);
    let key = reference.field("key");
    if key.is_empty() {
        errors.push(key.required(""));
    } else {
        errors.extend(checks::named(&key, names::is_config_map_key));
    }
    errors
}

/// A variable in a file on a volume.
fn validate_file_key(reference: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let key = reference.field("key");
    if key.is_empty() {
        errors.push(key.required(""));
    } else {
        errors.extend(checks::named(&key, names::is_environment_variable));
    }
    errors.extend(checks::required_label(&reference.field("volumeName")));
    let path = reference.field("path");
    if path.is_empty() {
        errors.push(path.required(""));
    } else {
        errors.extend(paths::no_backsteps(&path));
    }
    errors
}

/// Sources of many variables at once.
pub fn validate_sources(sources: &FieldRef<'_>, options: &PodValidationOptions) -> ErrorList {
    let mut errors = ErrorList::new();
    for source in sources.items() {
        let prefix = source.field("prefix");
        if !prefix.is_empty() {
            errors.extend(checks::named(&prefix, name_check(options)));
        }
        let mut count = 0;
        for place in ["configMapRef", "secretRef"].map(|name| source.field(name)).iter().filter(|place| place.is_set())
        {
            count += 1;
            errors.extend(validate_name(&place.field("name")));
        }
        let why = match count {
            0 => "must specify one of: `configMapRef` or `secretRef`",
            1 => continue,
            _ => "may not have more than one field specified at a time",
        };
        errors.push(Error::invalid(sources.path(), "", why));
    }
    errors
}

/// A name that may be the begin of one.
fn validate_name(name: &FieldRef<'_>) -> ErrorList {
    if name.is_empty() {
        return [name.required("")].into_iter().collect();
    }
    checks::named(name, |name| names::name_is_dns1123_subdomain(name, true))
}

/// Volumes that variables are read from are empty directories at first.
pub fn validate_file_volumes(spec: &FieldRef<'_>) -> ErrorList {
    let volumes = spec.value().map(|spec| spec.items_at(&["volumes"])).unwrap_or_default();
    let volumes: HashMap<&str, &Value> = volumes.iter().map(|volume| (volume.str_at(&["name"]), volume)).collect();
    let mut errors = ErrorList::new();
    container_lists::visit(spec, |container| {
        for variable in container.field("env").items() {
            let source = variable.field("valueFrom");
            let file = source.field("fileKeyRef");
            if !file.is_set() {
                continue;
            }
            let name = file.field("volumeName");
            match volumes.get(name.text()) {
                None => errors.push(name.not_found()),
                Some(volume) if volume.get("emptyDir").is_some_and(|source| !source.is_null()) => {}
                Some(_) => errors.push(name.invalid("referenced volume must be of type emptyDir")),
            }
        }
    });
    errors
}
