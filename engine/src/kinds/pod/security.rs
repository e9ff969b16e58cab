//! Validation of the security contexts of pods and containers.
//!
//! Source: `pkg/apis/core/validation`, release 1.36.

use std::collections::HashSet;

use super::{PodValidationOptions, profiles, windows};
use crate::kinds::{checks, show_internal};
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;

const SYSCTL_BYTES_MAX: usize = 253;
const SYSCTL_PATTERN: &str = r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";
/// Kernel parameters that belong to the namespace for communication between processes.
const IPC_SYSCTLS: [&str; 10] = [
    "kernel.sem",
    "kernel.shmall",
    "kernel.shmmax",
    "kernel.shmmni",
    "kernel.shm_rmid_forced",
    "kernel.shm",
    "kernel.msgmax",
    "kernel.msgmnb",
    "kernel.msgmni",
    "kernel.msg",
];

/// The security context of a pod. The fields about what it shares with its host are in the spec.
pub fn validate_pod_context(spec: &FieldRef<'_>, options: &PodValidationOptions) -> ErrorList {
    let context = spec.field("securityContext");
    let mut errors = ErrorList::new();
    for name in ["fsGroup", "runAsUser", "runAsGroup"] {
        errors.extend(validate_id(&context.field(name)));
    }
    for group in context.field("supplementalGroups").items() {
        errors.extend(validate_id(&group));
    }
    if spec.field("shareProcessNamespace").is_true() && spec.field("hostPID").is_true() {
        let why = "ShareProcessNamespace and HostPID cannot both be enabled";
        errors.push(Error::invalid(&context.path().child("shareProcessNamespace"), true, why));
    }
    errors.extend(validate_sysctls(spec, &context.field("sysctls"), options));
    errors.extend(one_of_if_set(&context.field("fsGroupChangePolicy"), &["Always", "OnRootMismatch"]));
    errors.extend(profiles::validate_seccomp(&context.field("seccompProfile")));
    errors.extend(windows::validate_options(&context.field("windowsOptions")));
    errors.extend(profiles::validate_app_armor(&context.field("appArmorProfile")));
    errors.extend(one_of_if_set(&context.field("supplementalGroupsPolicy"), &["Merge", "Strict"]));
    let labels: &[&str] =
        if options.allow_all_selinux_change_policies { &["MountOption", "Recursive"] } else { &["Recursive"] };
    errors.extend(one_of_if_set(&context.field("seLinuxChangePolicy"), labels));
    errors
}

fn one_of_if_set(field: &FieldRef<'_>, supported: &[&str]) -> Option<Error> {
    if field.is_set() { checks::one_of(field, supported) } else { None }
}

/// The number of a user or a group.
fn validate_id(field: &FieldRef<'_>) -> Option<Error> {
    let is_wrong = field.is_set() && !(0..=i64::from(i32::MAX)).contains(&field.int());
    is_wrong.then(|| field.invalid("must be between 0 and 2147483647, inclusive"))
}

/// Kernel parameters; a pod may not set those of the host.
fn validate_sysctls(spec: &FieldRef<'_>, sysctls: &FieldRef<'_>, options: &PodValidationOptions) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen = HashSet::new();
    for sysctl in sysctls.items() {
        let name = sysctl.field("name");
        if name.is_empty() {
            errors.push(name.required(""));
        } else if !is_sysctl(name.text()) {
            let why = format!("must have at most {SYSCTL_BYTES_MAX} characters and match regex {SYSCTL_PATTERN}");
            errors.push(name.invalid(why));
        } else if seen.contains(sysctl.text_of("name")) {
            errors.push(name.duplicate());
        }
        if !options.allow_namespaced_sysctls_for_host_net_and_host_ipc
            && let Some(why) = host_fault(name.text(), spec)
        {
            errors.push(name.invalid(why));
        }
        seen.insert(sysctl.text_of("name"));
    }
    errors
}

/// Names joined by dots or slashes.
fn is_sysctl(name: &str) -> bool {
    let is_edge = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_segment = |segment: &str| {
        let bytes = segment.as_bytes();
        bytes.first().is_some_and(is_edge)
            && bytes.last().is_some_and(is_edge)
            && bytes.iter().all(|byte| is_edge(byte) || matches!(byte, b'-' | b'_'))
    };
    name.len() <= SYSCTL_BYTES_MAX && name.split(['.', '/']).all(is_segment)
}

/// Why a pod that shares a namespace with its host can't set a parameter of that namespace.
pub fn host_fault(sysctl: &str, spec: &FieldRef<'_>) -> Option<&'static str> {
    let name = normalized(sysctl);
    let name = name.split('*').next().unwrap_or_default();
    if name.starts_with("net.") {
        return spec.field("hostNetwork").is_true().then_some("may not be specified when 'hostNetwork' is true");
    }
    let is_ipc = IPC_SYSCTLS.contains(&name) || name.starts_with("fs.mqueue.");
    (is_ipc && spec.field("hostIPC").is_true()).then_some("may not be specified when 'hostIPC' is true")
}

/// A name that is written with slashes has dots within its parts: `net/ipv4/conf/eth0.1`.
fn normalized(name: &str) -> String {
    let is_dotted = matches!(name.find(['.', '/']).and_then(|at| name.as_bytes().get(at)), None | Some(b'.'));
    let swap = |char| match char {
        '.' => '/',
        '/' => '.',
        other => other,
    };
    if is_dotted { name.to_owned() } else { name.chars().map(swap).collect() }
}

/// The context of a container.
pub fn validate_context(context: &FieldRef<'_>, host_users: bool) -> ErrorList {
    let mut errors = ErrorList::new();
    if !context.is_set() {
        return errors;
    }
    for name in ["runAsUser", "runAsGroup"] {
        errors.extend(validate_id(&context.field(name)));
    }
    let mount = context.field("procMount");
    errors.extend(one_of_if_set(&mount, &["Default", "Unmasked"]));
    if host_users && mount.text() == "Unmasked" {
        errors.push(mount.invalid("`hostUsers` must be false to use `Unmasked`"));
    }
    errors.extend(profiles::validate_seccomp(&context.field("seccompProfile")));
    errors.extend(validate_escalation(context));
    errors.extend(windows::validate_options(&context.field("windowsOptions")));
    errors.extend(profiles::validate_app_armor(&context.field("appArmorProfile")));
    errors
}

/// A container that must not gain privileges does not have them all to begin with.
fn validate_escalation(context: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let may_gain = context.field("allowPrivilegeEscalation");
    if !may_gain.is_set() || may_gain.is_true() {
        return errors;
    }
    let shown = || context.value().map(|context| show_internal("core.v1.SecurityContext", context)).unwrap_or_default();
    if context.field("privileged").is_true() {
        let why = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
        errors.push(context.invalid(why).shown_as(shown()));
    }
    let capabilities = context.field("capabilities");
    let added = capabilities.field("add");
    for _ in added.texts().filter(|capability| *capability == "CAP_SYS_ADMIN") {
        let why = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN";
        errors.push(context.invalid(why).shown_as(shown()));
    }
    errors
}
