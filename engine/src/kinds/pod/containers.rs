//! Validation of containers: regular ones, those that run before them, and those that are added for a look.
//!
//! Source: `pkg/apis/core/validation`, release 1.36.

use std::collections::HashSet;

use super::container_context::ContainerContext;
use super::{env, mounts, ports, probes, resources, restart, security};
use crate::kinds::checks;
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;

/// Fields that ephemeral containers can't have, in the order of Go's struct.
const NOT_EPHEMERAL: [&str; 9] = [
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
];

/// The containers of a pod.
pub fn validate_regular(containers: &FieldRef<'_>, context: &ContainerContext<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    if containers.is_empty() {
        errors.push(containers.required(""));
        return errors;
    }
    let mut seen = HashSet::new();
    for container in containers.items() {
        errors.extend(validate_common(&container, context));
        let name = container.field("name");
        if !seen.insert(container.text_of("name")) {
            errors.push(name.duplicate());
        }
        errors.extend(probes::validate_all(&container, context));
        errors.extend(restart::validate_policy(&container, context.options));
    }
    errors.extend(ports::validate_host_ports(containers));
    errors
}

/// Containers that run before those of the pod, one by one, or beside them if they restart always.
pub fn validate_init(containers: &FieldRef<'_>, regular: &FieldRef<'_>, context: &ContainerContext<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen: HashSet<&str> = regular.items().map(|container| container.text_of("name")).collect();
    for container in containers.items() {
        errors.extend(validate_common(&container, context));
        errors.extend(restart::validate_init_policy(&container, context.options));
        let name = container.field("name");
        if seen.contains(container.text_of("name")) {
            errors.push(name.duplicate());
        } else if !name.is_empty() {
            seen.insert(container.text_of("name"));
        }
        // The reference checks each one separately, as if it were the first.
        let first = FieldRef::new(container.value(), containers.path().index(0));
        errors.extend(ports::validate_host_ports_of(&first, &mut HashSet::new()));
        if container.field("restartPolicy").text() == "Always" {
            errors.extend(probes::validate_all(&container, context));
        } else {
            errors.extend(forbid_probes(&container));
            errors.extend(restart::forbid_restart_on_resize(&container, context.options));
        }
    }
    errors
}

/// Fields that make no sense for a container that runs to completion.
fn forbid_probes(container: &FieldRef<'_>) -> ErrorList {
    let names = ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"];
    let set = names.iter().map(|name| container.field(name)).filter(FieldRef::is_set);
    set.map(|field| field.forbidden("may not be set for init containers without restartPolicy=Always")).collect()
}

/// Containers that were added to a pod that runs.
pub fn validate_ephemeral(
    containers: &FieldRef<'_>,
    regular: &FieldRef<'_>,
    init: &FieldRef<'_>,
    context: &ContainerContext<'_>,
) -> ErrorList {
    let mut errors = ErrorList::new();
    let others: HashSet<&str> =
        regular.items().chain(init.items()).map(|container| container.text_of("name")).collect();
    let mut seen = others.clone();
    for container in containers.items() {
        errors.extend(validate_common(&container, context));
        errors.extend(validate_image_text(&container));
        let name = container.field("name");
        if !seen.insert(container.text_of("name")) {
            errors.push(name.duplicate());
        }
        let target = container.field("targetContainerName");
        if !target.is_empty() && !others.contains(target.text()) {
            errors.push(target.not_found());
        }
        errors.extend(validate_ephemeral_fields(&container));
    }
    errors
}

fn validate_ephemeral_fields(container: &FieldRef<'_>) -> ErrorList {
    const WHY: &str = "cannot be set for an Ephemeral Container";
    // `resources` is a struct: always there, and used if there is something in it.
    let is_used = |name: &str, field: &FieldRef<'_>| field.is_set() && (name != "resources" || !field.is_empty());
    let mut errors = ErrorList::new();
    for name in NOT_EPHEMERAL {
        let field = container.field(name);
        if is_used(name, &field) {
            errors.push(field.forbidden(WHY));
        }
    }
    for mount in container.field("volumeMounts").items() {
        for name in ["subPath", "subPathExpr"] {
            let path = mount.field(name);
            if !path.is_empty() {
                errors.push(path.forbidden(WHY));
            }
        }
    }
    errors
}

/// The checks that the reference makes for all containers.
fn validate_common(container: &FieldRef<'_>, context: &ContainerContext<'_>) -> ErrorList {
    let mut errors = checks::required_label(&container.field("name"));
    let image = container.field("image");
    if image.is_empty() {
        errors.push(image.required(""));
    }
    let policy = container.field("terminationMessagePolicy");
    errors.extend(checks::required_one_of(&policy, &["File", "FallbackToLogsOnError"]));
    errors.extend(ports::validate(&container.field("ports")));
    errors.extend(env::validate(&container.field("env"), context.options));
    errors.extend(env::validate_sources(&container.field("envFrom"), context.options));
    errors.extend(mounts::validate_mounts(container, context.volumes));
    errors.extend(mounts::validate_devices(container, context.volumes));
    let policy = container.field("imagePullPolicy");
    errors.extend(checks::required_one_of(&policy, &["Always", "IfNotPresent", "Never"]));
    errors.extend(resources::validate_container(&container.field("resources"), context.claims, context.options));
    errors.extend(restart::validate_resize_policies(&container.field("resizePolicy"), context.restart_policy));
    errors.extend(security::validate_context(&container.field("securityContext"), context.host_users));
    errors
}

/// Checks for the containers of pods only, as templates once allowed more.
pub fn validate_image_text(container: &FieldRef<'_>) -> Option<Error> {
    let image = container.field("image");
    let is_padded = image.text().trim() != image.text();
    is_padded.then(|| image.invalid("must not have leading or trailing whitespace"))
}
