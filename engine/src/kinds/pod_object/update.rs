//! What may change in a pod.
//!
//! Source: `ValidatePodUpdate`.

use std::collections::HashSet;

use crate::kinds::pod::annotations::MIRROR;
use crate::kinds::{diff, metadata, pod as template, semantic, show_internal};
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::minor::Minor;
use crate::value::{Value, json};
use crate::work;

use super::{create, gated, keep};

const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";
const MAY_CHANGE: &str = "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
                          `spec.tolerations` (only additions to existing tolerations),\
                          `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// The errors of a changed pod.
pub fn validate(minor: Minor, new: &Value, old: &Value) -> ErrorList {
    let options = template::PodValidationOptions::for_pod(minor, new, Some(old));
    let mut errors = metadata::validate_update(new, old);
    errors.extend(create::validate_metadata_and_spec(new, &options));
    errors.extend(validate_annotations(new, old, &options));
    let (root, old_root) = (FieldRef::root(new), FieldRef::root(old));
    let (spec, old_spec) = (root.field("spec"), old_root.field("spec"));
    for name in ["containers", "initContainers"] {
        let (list, old_list) = (spec.field(name), old_spec.field(name));
        if list.len() != old_list.len() {
            errors.push(list.forbidden("pod updates may not add or remove containers"));
            return errors;
        }
        errors.extend(validate_images(&list));
    }
    match validate_deadline(&spec.field("activeDeadlineSeconds"), &old_spec.field("activeDeadlineSeconds")) {
        Deadline::Fits => {}
        Deadline::Gone(error) => errors.push(error),
        Deadline::Wrong(error) => {
            errors.push(error);
            return errors;
        }
    }
    errors.extend(validate_tolerations(&spec.field("tolerations"), &old_spec.field("tolerations"), &options));
    errors.extend(validate_gates(&spec.field("schedulingGates"), &old_spec.field("schedulingGates")));
    if !semantic::equal("spec", spec.value(), old_spec.value()) {
        errors.extend(validate_rest(&spec, &old_spec));
    }
    errors
}

/// Annotations that say what a pod is, or runs under. Those that it has are validated, too, which an update of the pod
/// itself does twice, as in the reference.
pub fn validate_annotations(new: &Value, old: &Value, options: &template::PodValidationOptions) -> ErrorList {
    let mut errors = ErrorList::new();
    let (root, old_root) = (FieldRef::root(new), FieldRef::root(old));
    let (metadata, old_metadata) = (root.field("metadata"), old_root.field("metadata"));
    let (annotations, old_annotations) = (metadata.field("annotations"), old_metadata.field("annotations"));
    let path = annotations.path();
    let mut forbid = |key: &str, of_profile: &str, of_mirror: &str| {
        if key.starts_with(APP_ARMOR) {
            errors.push(Error::forbidden(&path.key(key), of_profile));
        }
        if key == MIRROR {
            errors.push(Error::forbidden(&path.key(key), of_mirror));
        }
    };
    for (key, before) in old_annotations.entries() {
        if annotations.value().and_then(|annotations| annotations.get(key)) != before.value() {
            let of_profile = "may not remove or update AppArmor annotations";
            forbid(key, of_profile, "may not remove or update mirror pod annotation");
        }
    }
    for (key, _) in annotations.entries() {
        if old_annotations.value().and_then(|annotations| annotations.get(key)).is_none() {
            forbid(key, "may not add AppArmor annotations", "may not add mirror pod annotation");
        }
    }
    errors.extend(template::annotations::validate(&annotations, &root.field("spec"), options));
    errors
}

fn validate_images(containers: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    for container in containers.items() {
        let image = container.field("image");
        if image.is_empty() {
            errors.push(image.required(""));
        }
        errors.extend(template::containers::validate_image_text(&container));
    }
    errors
}

/// How a changed deadline is.
enum Deadline {
    Fits,
    /// It was there; the checks go on.
    Gone(Error),
    /// It is not allowed; nothing else is reported.
    Wrong(Error),
}

/// A deadline may be set, and come nearer.
fn validate_deadline(new: &FieldRef<'_>, old: &FieldRef<'_>) -> Deadline {
    if !new.is_set() {
        let why = "must not update from a positive integer to nil value";
        return if old.is_set() {
            Deadline::Gone(Error::invalid(new.path(), Value::Null, why))
        } else {
            Deadline::Fits
        };
    }
    if !(0..=i64::from(i32::MAX)).contains(&new.int()) {
        Deadline::Wrong(new.invalid("must be between 0 and 2147483647, inclusive"))
    } else if old.is_set() && old.int() < new.int() {
        Deadline::Wrong(new.invalid("must be less than or equal to previous value"))
    } else {
        Deadline::Fits
    }
}

/// Tolerations may be added, and tolerate for another time.
fn validate_tolerations(new: &FieldRef<'_>, old: &FieldRef<'_>, options: &template::PodValidationOptions) -> ErrorList {
    let without_seconds = |toleration: FieldRef<'_>| {
        let mut toleration = toleration.value().cloned().unwrap_or_default();
        toleration.make_object().remove("tolerationSeconds");
        json::encode(&toleration)
    };
    let present: HashSet<Vec<u8>> = new.items().map(without_seconds).collect();
    if !old.items().map(without_seconds).all(|toleration| present.contains(&toleration)) {
        return new.forbidden("existing toleration can not be modified except its tolerationSeconds").into();
    }
    template::tolerations::validate(new, options)
}

/// Gates may be taken away.
fn validate_gates(new: &FieldRef<'_>, old: &FieldRef<'_>) -> ErrorList {
    let name = |gate: FieldRef<'_>| gate.value().map(|gate| gate.str_at(&["name"]).to_owned()).unwrap_or_default();
    let mut known: HashSet<String> = old.items().map(name).collect();
    let mut errors = ErrorList::new();
    // The last of several gates with the same name is reported.
    let mut added = Vec::new();
    for gate in new.items().collect::<Vec<_>>().into_iter().rev() {
        if known.insert(name(gate)) {
            added.push(gate);
        }
    }
    for gate in added.into_iter().rev() {
        let name = gate.field("name");
        let why = format!("only deletion is allowed, but found new scheduling gate '{}'", name.text());
        errors.push(name.forbidden(why));
    }
    errors
}

/// Everything that may change taken as it was, nothing may have.
fn validate_rest(spec: &FieldRef<'_>, old_spec: &FieldRef<'_>) -> ErrorList {
    let null = Value::Null;
    let old = old_spec.value().unwrap_or(&null);
    let mut munged = spec.value().cloned().unwrap_or_default();
    for name in ["containers", "initContainers"] {
        keep_images(&mut munged, old, name);
    }
    for name in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
        keep(&mut munged, old, name);
    }
    let mut errors = ErrorList::new();
    if !old.items_at(&["schedulingGates"]).is_empty() {
        errors.extend(gated::validate(spec, old, &mut munged));
    }
    if !semantic::equal("spec", Some(&munged), Some(old)) {
        let lines = |spec: &Value| diff::in_lines(&show_internal("core.v1.PodSpec", spec));
        let difference = diff::unified(&lines(old), &lines(&munged));
        let why = format!("pod updates may not change fields other than {MAY_CHANGE}\n{difference}");
        errors.push(spec.forbidden(why));
    }
    errors
}

fn keep_images(spec: &mut Value, old: &Value, list: &str) {
    let images = old.items_at(&[list]).iter().map(|container| container.get("image").cloned());
    match spec.get_mut(list) {
        Some(Value::Array(containers)) if !containers.is_empty() => {
            for (container, image) in containers.iter_mut().zip(images) {
                work::step();
                match image {
                    Some(image) => _ = container.make_object().insert("image", image),
                    None => _ = container.make_object().remove("image"),
                }
            }
        }
        _ => _ = spec.make_object().remove(list),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::pod_object::read;

    fn check(old: &str, new: &str) -> String {
        let read = |spec: &str| {
            let text = format!(
                "metadata: {{name: a, namespace: b, resourceVersion: '1'}}\nspec: {{containers: [{{name: c, image: i}}], {spec}}}"
            );
            read(&text)
        };
        let errors = validate(Minor::NEWEST, &read(new), &read(old)).aggregate();
        // What a spec needs beside is not the matter here.
        errors.lines().next().unwrap_or_default().to_owned()
    }

    #[test]
    fn a_deadline_may_come_nearer() {
        let told = |new: &str| check("activeDeadlineSeconds: 10", new);
        assert_eq!(
            told("activeDeadlineSeconds: 11"),
            "spec.activeDeadlineSeconds: Invalid value: 11: must be less than or equal to previous value"
        );
        assert_eq!(
            told(""),
            "spec.activeDeadlineSeconds: Invalid value: null: must not update from a positive integer to nil value"
        );
        assert_eq!(told("activeDeadlineSeconds: 9"), "");
    }

    #[test]
    fn tolerations_are_added_and_gates_taken_away() {
        let old = "tolerations: [{key: a, value: v, effect: NoExecute, tolerationSeconds: 1}], schedulingGates: [{name: gate}]";
        assert_eq!(
            check(old, "tolerations: [{key: b}, {key: a, value: v, effect: NoExecute, tolerationSeconds: 2}]"),
            ""
        );
        assert_eq!(
            check(old, "tolerations: [{key: b}], schedulingGates: [{name: gate}, {name: hold}]"),
            "[spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds, \
             spec.schedulingGates[1].name: Forbidden: only deletion is allowed, but found new scheduling gate 'hold']"
        );
    }

    #[test]
    fn everything_else_stays() {
        let told = format!("spec: Forbidden: pod updates may not change fields other than {MAY_CHANGE}");
        assert_eq!(check("hostname: a", "hostname: b"), told);
        assert_eq!(check("initContainers: [{name: i, image: i}]", "initContainers: [{name: i, image: j}]"), "");
    }
}
