//! Defaults of a pod's spec and of its containers.
//!
//! Source: `pkg/apis/core/v1/{defaults,zz_generated.defaults,conversion}.go`, release 1.36.

use super::container_lists::CONTAINER_LISTS;
use super::image;
use super::volume_defaults::{self, set_field_selector_defaults};
use crate::kinds::defaults::{field, items, set, set_number, set_pointer, structure};
use crate::kinds::resources;
use crate::value::{Map, Value};

/// The annotations that once held init containers; they are always removed.
const INIT_CONTAINER_ANNOTATIONS: [&str; 4] = [
    "pod.beta.kubernetes.io/init-containers",
    "pod.alpha.kubernetes.io/init-containers",
    "pod.beta.kubernetes.io/init-container-statuses",
    "pod.alpha.kubernetes.io/init-container-statuses",
];
const GRACE_PERIOD_SECONDS: i64 = 30;

/// The defaults of a spec, in pods and templates.
pub fn set_spec_defaults(spec: &mut Value) {
    set(spec, "dnsPolicy", "ClusterFirst");
    set(spec, "restartPolicy", "Always");
    structure(spec, "securityContext");
    set_pointer(spec, "terminationGracePeriodSeconds", GRACE_PERIOD_SECONDS);
    set(spec, "schedulerName", "default-scheduler");
    set_service_account(spec);
    items(spec, "volumes").for_each(volume_defaults::set_volume_defaults);
    for list in CONTAINER_LISTS {
        items(spec, list).for_each(set_container_defaults);
    }
    resources::set_list_defaults(field(spec, "overhead"));
    resources::set_requirements_defaults(spec);
}

/// `serviceAccount` is the old name of `serviceAccountName`, which wins; both come back out.
fn set_service_account(spec: &mut Value) {
    let old = spec.str_at(&["serviceAccount"]).to_owned();
    if !old.is_empty() {
        set(spec, "serviceAccountName", old);
    }
    let name = spec.str_at(&["serviceAccountName"]).to_owned();
    if !name.is_empty() {
        spec.make_object().insert("serviceAccount", Value::from(name));
    }
}

/// Takes annotations out that no longer have a meaning.
pub fn drop_init_container_annotations(object: &mut Value) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) else { return };
    let count = annotations.len();
    annotations.retain(|key, _| !INIT_CONTAINER_ANNOTATIONS.contains(&key));
    if annotations.is_empty() && count > 0 {
        metadata.remove("annotations");
    }
}

fn set_container_defaults(container: &mut Value) {
    let policy = image::default_pull_policy(container.str_at(&["image"]));
    set(container, "imagePullPolicy", policy);
    set(container, "terminationMessagePath", "/dev/termination-log");
    set(container, "terminationMessagePolicy", "File");
    items(container, "ports").for_each(|port| set(port, "protocol", "TCP"));
    for variable in items(container, "env") {
        let Some(source) = field(variable, "valueFrom") else { continue };
        set_field_selector_defaults(source);
        if let Some(file) = field(source, "fileKeyRef") {
            set_pointer(file, "optional", false);
        }
    }
    resources::set_requirements_defaults(container);
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = field(container, probe) {
            set_probe_defaults(probe);
        }
    }
    if let Some(lifecycle) = field(container, "lifecycle") {
        for handler in ["postStart", "preStop"] {
            if let Some(handler) = field(lifecycle, handler) {
                set_http_get_defaults(handler);
            }
        }
    }
}

fn set_probe_defaults(probe: &mut Value) {
    for (name, value) in
        [("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)]
    {
        set_number(probe, name, value);
    }
    set_http_get_defaults(probe);
    if let Some(grpc) = field(probe, "grpc") {
        set_pointer(grpc, "service", "");
    }
}

fn set_http_get_defaults(handler: &mut Value) {
    if let Some(action) = field(handler, "httpGet") {
        set(action, "path", "/");
        set(action, "scheme", "HTTP");
    }
}

/// The defaults for a Pod, but not for templates, that are set before those of its spec.
pub fn set_only_in_pods(spec: &mut Value) {
    for list in ["containers", "initContainers"] {
        items(spec, list).for_each(set_requests);
    }
    set_pod_level_limits(spec);
    set_pod_level_requests(spec);
    set_pointer(spec, "enableServiceLinks", true);
    if spec.get("hostNetwork").and_then(Value::as_bool) == Some(true) {
        for list in ["containers", "initContainers"] {
            items(spec, list).flat_map(|container| items(container, "ports")).for_each(set_host_port);
        }
    }
    let seconds = spec.get("terminationGracePeriodSeconds").and_then(Value::as_i64);
    if seconds.is_some_and(|seconds| seconds < 0) {
        spec.make_object().insert("terminationGracePeriodSeconds", Value::Int(1));
    }
}

/// On the network of its host, a container's port is that of the host.
fn set_host_port(port: &mut Value) {
    if let Some(number) = port.get("containerPort").and_then(Value::as_i64) {
        set_number(port, "hostPort", number);
    }
}

/// A container with a limit for a resource requests as much, unless it has its own request.
fn set_requests(container: &mut Value) {
    let limits = container.at(&["resources", "limits"]).and_then(Value::as_object).cloned().unwrap_or_default();
    if !limits.is_empty() {
        add_missing(container, "requests", limits);
    }
}

/// Adds the missing entries to a list of `resources`.
fn add_missing(object: &mut Value, list: &str, missing: Map) {
    let list = structure(structure(object, "resources"), list).make_object();
    for (name, quantity) in missing.iter().filter(|(_, quantity)| !quantity.is_null()) {
        crate::work::step();
        let field = list.entry(name);
        if field.is_null() {
            *field = quantity.clone();
        }
    }
}

fn has_entries(spec: &Value, list: &str) -> bool {
    spec.at(&["resources", list]).and_then(Value::as_object).is_some_and(|list| !list.is_empty())
}

/// Sets the limits of a pod with pod-level resources for the huge pages that its containers may have.
fn set_pod_level_limits(spec: &mut Value) {
    if !has_entries(spec, "limits") && !has_entries(spec, "requests") {
        return;
    }
    let limits: Map = super::aggregate::of_containers(spec, "limits")
        .into_iter()
        .filter(|(name, _)| resources::is_huge_page(name))
        .filter(|(name, _)| spec.at(&["resources", "requests", name]).is_none())
        .map(|(name, total)| (name, Value::from(total.to_string())))
        .collect();
    if !limits.is_empty() {
        add_missing(spec, "limits", limits);
    }
}

/// Sets the requests of a pod with pod-level limits: those of its containers, and its limits for resources that none of
/// them requests.
fn set_pod_level_requests(spec: &mut Value) {
    let limits = spec.at(&["resources", "limits"]).and_then(Value::as_object).cloned().unwrap_or_default();
    if limits.is_empty() {
        return;
    }
    let asked = super::aggregate::of_containers(spec, "requests").into_iter();
    let mut requests: Map = asked
        .filter(|(name, _)| resources::is_pod_level(name) && resources::is_overcommit_allowed(name))
        .map(|(name, total)| (name, Value::from(total.to_string())))
        .collect();
    for (name, limit) in limits.iter().filter(|(name, _)| resources::is_pod_level(name)) {
        let request = requests.entry(name);
        if request.is_null() {
            *request = limit.clone();
        }
    }
    if !requests.is_empty() {
        add_missing(spec, "requests", requests);
    }
}
