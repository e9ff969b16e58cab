//! The parts of a Pod that templates don't have: how it is prepared, changed, reported on, bound, evicted and deleted.
//!
//! Everything here takes objects in the form of v1, with their defaults, and makes errors, objects or cells of them; nothing
//! reads the store. Source: `pkg/registry/core/pod`, `pkg/apis/core/validation` and `pkg/api/pod` of Kubernetes, release 1.36.

pub(crate) mod convert;
pub(crate) mod prepare;
pub(crate) mod app_armor;
mod qos;
pub mod conditions;
pub(crate) mod create;
pub(crate) mod update;
mod gated;
pub(crate) mod status;
mod container_statuses;
mod transitions;
mod claim_statuses;
pub(crate) mod ephemeral;
pub(crate) mod resize;
pub mod binding;
pub mod eviction;
pub mod connect;
pub mod simulated;
pub(crate) mod deletion;
mod ips;
pub(crate) mod table;
pub(crate) mod fields;
pub mod priority;
pub mod tolerations;
pub mod namespace_tolerations;
pub mod runtime_class;
pub mod references;
pub mod service_account;
pub mod topology;
pub mod resize_admission;

use crate::kinds::Kind;
pub use crate::kinds::pod::aggregate::of_containers as sum_of_containers;
use crate::kinds::strategy::Unchecked;
use crate::value::Value;

/// The kind sent to `/eviction`. It has no path of its own.
pub(crate) static EVICTION: Kind =
    Kind { plural: "evictions", singular: "eviction", ..Kind::new("policy", "v1", "Eviction", &Unchecked) };

/// The query options of a connection.
pub static ATTACH_OPTIONS: Kind = Kind::new("", "v1", "PodAttachOptions", &Unchecked);
/// The options of `exec` and `attach`.
pub static EXEC_OPTIONS: Kind = Kind::new("", "v1", "PodExecOptions", &Unchecked);
/// The options of `portforward`.
pub static PORT_FORWARD_OPTIONS: Kind = Kind::new("", "v1", "PodPortForwardOptions", &Unchecked);
/// The options of `proxy`.
pub static PROXY_OPTIONS: Kind = Kind::new("", "v1", "PodProxyOptions", &Unchecked);

/// The annotation `name` of an object.
fn annotation<'o>(object: &'o Value, name: &str) -> Option<&'o str> {
    object.at(&["metadata", "annotations", name]).and_then(Value::as_str)
}

/// Whether an init container runs beside the others.
fn is_sidecar(container: &Value) -> bool {
    container.str_at(&["restartPolicy"]) == "Always"
}

/// Whether the pod is made for Windows.
fn is_windows(spec: &Value) -> bool {
    spec.str_at(&["os", "name"]) == "windows"
}

/// Sets the field `name` of `new` to that of `old`.
fn keep(new: &mut Value, old: &Value, name: &str) {
    match old.get(name) {
        Some(value) => _ = new.make_object().insert(name, value.clone()),
        None => _ = new.make_object().remove(name),
    }
}

/// The metadata that only an update of the whole pod may change, as it was.
fn keep_metadata(new: &mut Value, old: &Value) {
    let null = Value::Null;
    let (metadata, old) = (new.make_object().entry("metadata"), old.get("metadata").unwrap_or(&null));
    for name in ["deletionTimestamp", "generation", "labels", "annotations", "finalizers", "ownerReferences"] {
        keep(metadata, old, name);
    }
}

/// A pod with its defaults, as the tests write it.
#[cfg(test)]
fn read(text: &str) -> Value {
    let mut pod = crate::value::yaml::decode(text.as_bytes()).expect("the test is YAML");
    super::pod::set_pod_defaults(&mut pod);
    pod
}
