//! Validation of a pod's spec.
//!
//! Source: `ValidatePodSpec` in `pkg/apis/core/validation`, release 1.36.

use std::collections::BTreeSet;

use super::container_context::ContainerContext;
use super::{
    PodValidationOptions, affinity, claims, containers, dns, os, resources, security, spread, tolerations, volumes,
    windows,
};
use crate::kinds::resources as names_of_resources;
use crate::kinds::{checks, declared};
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::minor::Minor;
use crate::meta::{names, object_meta};
use crate::types;
use crate::value::Value;

const RESTART_POLICIES: [&str; 3] = ["Always", "OnFailure", "Never"];
const DNS_POLICIES: [&str; 4] = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
const HOSTNAME_BYTES_MAX: i64 = 64;

/// The errors of a spec, in the order of the reference.
pub fn validate(spec: &FieldRef<'_>, metadata: Option<&Value>, options: &PodValidationOptions) -> ErrorList {
    let mut errors = ErrorList::new();
    let grace = spec.field("terminationGracePeriodSeconds");
    if !grace.is_set() {
        errors.push(grace.required(""));
    }
    errors.extend(validate_contents(spec, metadata, options));
    errors.extend(validate_host_ports(spec, options));
    errors.extend(checks::required_one_of(&spec.field("restartPolicy"), &RESTART_POLICIES));
    errors.extend(checks::required_one_of(&spec.field("dnsPolicy"), &DNS_POLICIES));
    let selector = spec.field("nodeSelector");
    errors.extend(object_meta::validate_labels(selector.value().unwrap_or(&Value::Null), selector.path()));
    errors.extend(security::validate_pod_context(spec, options));
    errors.extend(affinity::validate(&spec.field("affinity"), options));
    errors.extend(dns::validate_config(spec, options));
    errors.extend(validate_gates(spec));
    errors.extend(spread::validate(&spec.field("topologySpreadConstraints"), options));
    errors.extend(windows::validate_host_process(spec));
    errors.extend(os::validate_host_users(spec, options));
    errors.extend(validate_hostname_override(spec));
    errors.extend(validate_names(spec, options));
    errors.extend(os::validate(spec));
    errors.extend(validate_scheduling_group(&spec.field("schedulingGroup")));
    errors.extend(super::env::validate_file_volumes(spec));
    let message = types::message_named("core.v1", "PodSpec");
    errors.extend(declared::validate_field(message, "evictionResponders", spec, None, Minor::NEWEST));
    errors
}

/// Volumes, claims, containers and what all of them ask for.
fn validate_contents(spec: &FieldRef<'_>, metadata: Option<&Value>, options: &PodValidationOptions) -> ErrorList {
    let list = spec.field("volumes");
    let (volumes, mut errors) = volumes::validate_volumes(&list, metadata, options);
    let resource_claims = spec.field("resourceClaims");
    let claims: BTreeSet<&str> = claims::names(&resource_claims);
    errors.extend(claims::validate(&resource_claims, metadata));
    let os = spec.field("os");
    let host_users = spec.field("hostUsers");
    let context = ContainerContext {
        options,
        volumes: &volumes,
        claims: &claims,
        grace_seconds: spec.field("terminationGracePeriodSeconds").value().and_then(Value::as_i64),
        os: os.value().map(|os| os.str_at(&["name"])),
        restart_policy: spec.field("restartPolicy").text(),
        host_users: !host_users.is_set() || host_users.is_true(),
    };
    let (regular, init) = (spec.field("containers"), spec.field("initContainers"));
    errors.extend(containers::validate_regular(&regular, &context));
    errors.extend(containers::validate_init(&init, &regular, &context));
    errors.extend(containers::validate_ephemeral(&spec.field("ephemeralContainers"), &regular, &init, &context));
    errors.extend(resources::validate_pod_level(spec, &claims, options));
    errors
}

/// On the network of its host, a container has no other ports there than its own. A template may leave them out.
fn validate_host_ports(spec: &FieldRef<'_>, options: &PodValidationOptions) -> ErrorList {
    let mut errors = ErrorList::new();
    if !spec.field("hostNetwork").is_true() {
        return errors;
    }
    for container in spec.field("containers").items() {
        for port in container.field("ports").items() {
            let host = port.field("hostPort");
            if host.int() != port.field("containerPort").int() && (options.resource_is_pod || host.int() != 0) {
                let why = "must match `containerPort` when `hostNetwork` is true";
                errors.push(Error::invalid(host.path(), host.int(), why));
            }
        }
    }
    errors
}

/// The readiness gates of a pod, and its scheduling gates.
fn validate_gates(spec: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    for gate in spec.field("readinessGates").items() {
        errors.extend(checks::named(&gate.field("conditionType"), names::is_qualified_name));
    }
    let mut seen = BTreeSet::new();
    for gate in spec.field("schedulingGates").items() {
        let name = gate.text_of("name");
        let faults = names::is_qualified_name(name).into_iter();
        errors.extend(faults.map(|fault| Error::invalid(gate.path(), name, fault)));
        if !seen.insert(name) {
            errors.push(Error::duplicate(gate.path(), name));
        }
    }
    errors
}

/// A name for the pod's host that is not made of other fields.
fn validate_hostname_override(spec: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let name = spec.field("hostnameOverride");
    if !name.is_set() {
        return errors;
    }
    if spec.field("setHostnameAsFQDN").is_true() {
        errors.push(name.forbidden("may not be specified when setHostnameAsFQDN is true"));
    }
    if spec.field("hostNetwork").is_true() {
        errors.push(name.forbidden("may not be specified when hostNetwork is true"));
    }
    if name.text().len() as i64 > HOSTNAME_BYTES_MAX {
        errors.push(name.too_long(HOSTNAME_BYTES_MAX));
    }
    errors.extend(checks::named(&name, names::is_dns1123_subdomain));
    errors
}

/// Single fields that name something, with the lists between them.
fn validate_names(spec: &FieldRef<'_>, options: &PodValidationOptions) -> ErrorList {
    let mut errors = ErrorList::new();
    let check_optional = |name: &str, check: fn(&str) -> Vec<String>| {
        let field = spec.field(name);
        if field.is_empty() { ErrorList::new() } else { checks::named(&field, check) }
    };
    let before = ["serviceAccountName", "nodeName"].map(|name| check_optional(name, names::is_dns1123_subdomain));
    let hosts = ["hostname", "subdomain"].map(|name| check_optional(name, names::is_dns1123_label));
    let priority = check_optional("priorityClassName", names::is_dns1123_subdomain);
    before.into_iter().for_each(|found| errors.extend(found));
    errors.extend(validate_deadline(&spec.field("activeDeadlineSeconds")));
    hosts.into_iter().for_each(|found| errors.extend(found));
    errors.extend(tolerations::validate(&spec.field("tolerations"), options));
    errors.extend(dns::validate_host_aliases(&spec.field("hostAliases"), options));
    errors.extend(priority);
    errors.extend(validate_class(spec, options));
    errors
}

fn validate_deadline(field: &FieldRef<'_>) -> Option<Error> {
    let is_wrong = field.is_set() && !(1..=i64::from(i32::MAX)).contains(&field.int());
    is_wrong.then(|| field.invalid("must be between 1 and 2147483647, inclusive"))
}

/// The runtime class, the priority and preemption, and the overhead of the pod.
fn validate_class(spec: &FieldRef<'_>, options: &PodValidationOptions) -> ErrorList {
    let mut errors = ErrorList::new();
    let class = spec.field("runtimeClassName");
    if class.is_set() {
        errors.extend(checks::named(&class, names::is_dns1123_subdomain));
    }
    let preemption = spec.field("preemptionPolicy");
    if preemption.is_set() {
        errors.extend(checks::required_one_of(&preemption, &["PreemptLowerPriority", "Never"]));
    }
    let overhead = spec.field("overhead");
    if overhead.is_set() {
        let (limits, requests) = (
            FieldRef::new(overhead.value(), overhead.path().child("limits")),
            FieldRef::new(None, overhead.path().child("requests")),
        );
        errors.extend(resources::validate_lists(
            &limits,
            &requests,
            &overhead,
            names_of_resources::validate_container_name,
            options,
        ));
    }
    errors
}

/// The group of pods that the pod is scheduled with.
fn validate_scheduling_group(group: &FieldRef<'_>) -> ErrorList {
    let name = group.field("podGroupName");
    if !group.is_set() {
        ErrorList::new()
    } else if !name.is_set() {
        let why = "must specify one of: `podGroupName`";
        [Error::invalid(name.path(), Value::Null, why)].into_iter().collect()
    } else {
        checks::named(&name, names::is_dns1123_subdomain)
    }
}
