//! Warnings about containers.

use std::collections::HashSet;

use super::fraction;
use crate::kinds::pod::container_lists;
use crate::kinds::pod::profiles::{APP_ARMOR_CONTAINER, SECCOMP_CONTAINER};
use crate::meta::field_ref::FieldRef;
use crate::value::{Value, go_quote};

/// The warnings of all containers of a spec.
pub fn of(spec: &FieldRef<'_>, annotations: &FieldRef<'_>, is_template: bool) -> Vec<String> {
    let mut warnings = Vec::new();
    let pod_profile = spec.value().and_then(|spec| spec.at(&["securityContext", "appArmorProfile"]));
    container_lists::visit(spec, |container| {
        let context = container.field("securityContext");
        if !context.field("seccompProfile").is_set() {
            let key = format!("{SECCOMP_CONTAINER}{}", container.text_of("name"));
            if annotation(annotations, &key).is_some() {
                let path = annotations.path().key(&key);
                warnings.push(format!(r#"{path}: non-functional in v1.27+; use the "seccompProfile" field instead"#));
            }
        }
        // For a Pod this is reported when the annotation is converted to a field.
        if is_template && !context.field("appArmorProfile").is_set() {
            let key = format!("{APP_ARMOR_CONTAINER}{}", container.text_of("name"));
            let annotation = annotation(annotations, &key);
            if annotation.is_some_and(|annotation| !is_profile(pod_profile, annotation)) {
                let path = annotations.path().key(&key);
                warnings.push(format!(r#"{path}: deprecated since v1.30; use the "appArmorProfile" field instead"#));
            }
        }
        warnings.extend(of_resources(&container.field("resources")));
        warnings.extend(of_environment(&container.field("env")));
    });
    warnings
}

fn annotation<'v>(annotations: &FieldRef<'v>, key: &str) -> Option<&'v str> {
    annotations.value()?.get(key).and_then(Value::as_str)
}

/// Whether a profile is that of an annotation.
fn is_profile(profile: Option<&Value>, annotation: &str) -> bool {
    let Some(profile) = profile else { return false };
    let file = profile.get("localhostProfile").and_then(Value::as_str);
    match (profile.str_at(&["type"]), annotation) {
        ("Unconfined", "unconfined") | ("RuntimeDefault", "runtime/default") => file.is_none(),
        ("Localhost", annotation) => {
            let named = annotation.strip_prefix("localhost/").filter(|named| !named.is_empty());
            named.is_some() && named == file
        }
        _ => false,
    }
}

fn of_resources(resources: &FieldRef<'_>) -> Vec<String> {
    let (limits, requests) = (resources.field("limits"), resources.field("requests"));
    let places = ["memory", "ephemeral-storage"].into_iter().flat_map(|name| [(&limits, name), (&requests, name)]);
    places.filter_map(|(list, name)| fraction(list, name)).collect()
}

/// Variables that hide others of their name, unless they are made of them.
fn of_environment(variables: &FieldRef<'_>) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut seen = HashSet::new();
    for variable in variables.items() {
        let (name, value) = (variable.text_of("name"), variable.text_of("value"));
        if seen.insert(name) {
            continue;
        }
        let reference = format!("$({name})");
        if variable.field("valueFrom").is_set() || value == reference || !value.contains(&reference) {
            let path = variable.path();
            let name = go_quote(name);
            warnings
                .push(format!("{path}: hides previous definition of {name}, which may be dropped when using apply"));
        }
    }
    warnings
}
