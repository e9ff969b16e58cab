//! Validation of what depends on the operating system of a pod, and on whose users its users are.
//!
//! Source: `pkg/apis/core/validation`, release 1.36.

use super::{PodValidationOptions, container_lists};
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;

/// Fields of a pod's security context that Windows has nothing like.
const NOT_IN_WINDOWS: [(bool, &str); 15] = [
    (true, "appArmorProfile"),
    (true, "seLinuxOptions"),
    (false, "hostUsers"),
    (false, "hostPID"),
    (false, "hostIPC"),
    (true, "seccompProfile"),
    (true, "fsGroup"),
    (true, "fsGroupChangePolicy"),
    (true, "sysctls"),
    (false, "shareProcessNamespace"),
    (true, "runAsUser"),
    (true, "runAsGroup"),
    (true, "supplementalGroups"),
    (true, "supplementalGroupsPolicy"),
    (true, "seLinuxChangePolicy"),
];
/// The same of a container.
const NOT_IN_WINDOWS_CONTAINERS: [&str; 10] = [
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
];

/// The operating system, if the pod has one, and the fields that it does not know.
pub fn validate(spec: &FieldRef<'_>) -> ErrorList {
    let os = spec.field("os");
    let name = os.field("name");
    match name.text() {
        _ if !os.is_set() => ErrorList::new(),
        "" => [name.required("")].into_iter().collect(),
        "linux" => validate_linux(spec),
        "windows" => validate_windows(spec),
        _ => {
            let of_struct = FieldRef::new(name.value(), *os.path());
            [of_struct.not_supported(&["linux", "windows"])].into_iter().collect()
        }
    }
}

fn validate_linux(spec: &FieldRef<'_>) -> ErrorList {
    const WHY: &str = "windows options cannot be set for a linux pod";
    let options = |holder: &FieldRef<'_>| -> Option<Error> {
        let context = holder.field("securityContext");
        let options = context.field("windowsOptions");
        options.is_set().then(|| options.forbidden(WHY))
    };
    let mut errors: ErrorList = options(spec).into_iter().collect();
    container_lists::visit(spec, |container| errors.extend(options(container)));
    errors
}

fn validate_windows(spec: &FieldRef<'_>) -> ErrorList {
    const WHY: &str = "cannot be set for a windows pod";
    let mut errors = ErrorList::new();
    let context = spec.field("securityContext");
    for (is_in_context, name) in NOT_IN_WINDOWS {
        let field = if is_in_context { context.field(name) } else { spec.field(name) };
        let is_used = match name {
            "hostPID" | "hostIPC" => field.is_true(),
            "sysctls" => !field.is_empty(),
            _ => field.is_set(),
        };
        if is_used {
            errors.push(field.forbidden(WHY));
        }
    }
    container_lists::visit(spec, |container| {
        let context = container.field("securityContext");
        for name in NOT_IN_WINDOWS_CONTAINERS {
            let field = context.field(name);
            if field.is_set() {
                errors.push(field.forbidden(WHY));
            }
        }
    });
    errors
}

/// A pod with users of its own shares nothing with its host, and no devices, which don't know these users.
pub fn validate_host_users(spec: &FieldRef<'_>, options: &PodValidationOptions) -> ErrorList {
    const WHY: &str = "when `hostUsers` is false";
    let mut errors = ErrorList::new();
    let users = spec.field("hostUsers");
    if !users.is_set() || users.is_true() {
        return errors;
    }
    // The reference spells the others as Go does.
    for (name, told) in [("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")] {
        if spec.field(name).is_true() {
            errors.push(Error::forbidden(&spec.path().child(told), WHY));
        }
    }
    if !options.allow_user_namespaces_with_volume_devices {
        container_lists::visit(spec, |container| {
            let devices = container.field("volumeDevices");
            if !devices.is_empty() {
                errors.push(devices.forbidden(WHY));
            }
        });
    }
    errors
}
