//! The changes that an update of a job may make: few in its spec, and in its template only while it is suspended.
//!
//! Source: `ValidateJobSpecUpdate` of Kubernetes 1.37.

use super::{conditions, is_indexed};
use crate::kinds::{declared, workloads};
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::gate::Gate;
use crate::meta::minor::Minor;
use crate::object;
use crate::types;
use crate::value::{Map, Value};

/// The errors of a change of the spec. `old` is the whole job, as its status decides which changes are allowed.
pub fn validate(minor: Minor, spec: &FieldRef<'_>, old: &Value) -> ErrorList {
    let old_root = FieldRef::root(old);
    let old_spec = old_root.field("spec");
    let kept = |name: &str| workloads::immutable(&spec.field(name), &old_spec.field(name));
    let kept_struct = |name: &str, type_| workloads::immutable_struct(&spec.field(name), &old_spec.field(name), type_);
    let mut errors = ErrorList::new();
    errors.extend(check_completions(spec, &old_spec));
    errors.extend(workloads::selector::immutable(&spec.field("selector"), &old_spec.field("selector")));
    errors.extend(check_template(minor, &spec.field("template"), old));
    errors.extend(kept("completionMode"));
    errors.extend(kept_struct("podFailurePolicy", "batch.v1.PodFailurePolicy"));
    errors.extend(kept("backoffLimitPerIndex"));
    errors.extend(kept("managedBy"));
    errors.extend(kept_struct("successPolicy", "batch.v1.SuccessPolicy"));
    let message = types::message_named("batch.v1", "JobSpec");
    errors.extend(declared::validate_field(message, "scheduling", spec, Some(&old_spec), minor));
    errors
}

/// An indexed job may become larger or smaller, together with its parallelism.
fn check_completions(spec: &FieldRef<'_>, old: &FieldRef<'_>) -> Option<Error> {
    let (new, old) = (spec.field("completions"), old.field("completions"));
    if !is_indexed(spec) {
        return workloads::immutable(&new, &old);
    }
    let is_kept = new.value() == old.value() || !new.is_set();
    let is_in_tandem = new.int() == spec.field("parallelism").int();
    (!is_kept && !is_in_tandem).then(|| new.invalid("can only be modified in tandem with spec.parallelism"))
}

/// The parts of a suspended job's template that may change.
struct Changeable {
    /// Where the pods go: before the job begins, and with a feature also later, while none of its pods is there.
    scheduling: bool,
    /// The resources of the pods: with a feature, while no pods exist.
    resources: bool,
}

impl Changeable {
    fn of(minor: Minor, job: &Value) -> Self {
        let has_not_begun = job.at(&["status", "startTime"]).is_none();
        let is_idle = workloads::cells::int(job, &["status", "active"]) == 0;
        let is_suspended = job.at(&["spec", "suspend"]).and_then(Value::as_bool) == Some(true);
        let rests = is_suspended && (has_not_begun || conditions::is_true(job, "Suspended")) && is_idle;
        Changeable {
            scheduling: if minor.opens(Gate::MutableSchedulingDirectivesForSuspendedJobs) {
                rests
            } else {
                is_suspended && has_not_begun
            },
            resources: rests && minor.opens(Gate::MutablePodResourcesForSuspendedJobs),
        }
    }
}

fn check_template(minor: Minor, template: &FieldRef<'_>, old: &Value) -> Option<Error> {
    let nothing = Value::Null;
    let mut kept = old.at(&["spec", "template"]).unwrap_or(&nothing).clone();
    let new = template.value().unwrap_or(&nothing);
    let changeable = Changeable::of(minor, old);
    if changeable.scheduling {
        take_scheduling(&mut kept, new);
    }
    if !changeable.resources {
        let kept = FieldRef::new(Some(&kept), *template.path());
        return workloads::immutable_struct(template, &kept, "core.v1.PodTemplateSpec");
    }
    take_resources(&mut kept, new);
    let (pod, kept) = (template.field("spec"), FieldRef::new(kept.get("spec"), *template.path()));
    workloads::immutable_struct(&pod, &kept, "core.v1.PodSpec")
}

/// Where the pods go may change.
fn take_scheduling(kept: &mut Value, new: &Value) {
    take_node_affinity(kept.make_object().entry("spec"), new.get("spec"));
    for name in ["nodeSelector", "tolerations", "schedulingGates"] {
        take(kept.make_object().entry("spec").make_object(), new.get("spec"), name);
    }
    for name in ["annotations", "labels"] {
        take(kept.make_object().entry("metadata").make_object(), new.get("metadata"), name);
    }
}

/// The field becomes that of `new`.
fn take(kept: &mut Map, new: Option<&Value>, name: &str) {
    match new.and_then(|new| new.get(name)) {
        Some(value) => _ = kept.insert(name, value.clone()),
        None => _ = kept.remove(name),
    }
}

fn take_node_affinity(kept: &mut Value, new: Option<&Value>) {
    const NAME: &str = "nodeAffinity";
    let kept = kept.make_object();
    let wanted = new.and_then(|new| new.get("affinity"));
    match (wanted, kept.get_mut("affinity").and_then(Value::as_object_mut)) {
        (None, None) => {}
        (None, Some(affinity)) => {
            affinity.remove(NAME);
            if affinity.is_empty() {
                kept.remove("affinity");
            }
        }
        (Some(wanted), Some(affinity)) => take(affinity, Some(wanted), NAME),
        (Some(wanted), None) => {
            let mut affinity = object! {};
            take(affinity.make_object(), Some(wanted), NAME);
            kept.insert("affinity", affinity);
        }
    }
}

/// The resources of each container may change, as long as it is the same container.
fn take_resources(kept: &mut Value, new: &Value) {
    for list in ["containers", "initContainers"] {
        let wanted = new.items_at(&["spec", list]);
        let Some(Value::Array(containers)) = kept.at_mut(&["spec", list]) else { continue };
        if containers.len() != wanted.len() {
            continue;
        }
        for (container, wanted) in containers.iter_mut().zip(wanted) {
            if container.str_at(&["name"]) == wanted.str_at(&["name"]) {
                take(container.make_object(), Some(wanted), "resources");
            }
        }
    }
}
