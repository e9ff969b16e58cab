//! Counters in the status of workloads.
//!
//! Source: `pkg/apis/apps/validation` of Kubernetes 1.37.

use crate::kinds::checks;
use crate::kinds::features::{self, Feature};
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::gate::Gate;
use crate::meta::minor::Minor;
use crate::value::Value;

const FEATURES: [Feature; 1] =
    [Feature::new(Gate::DeploymentReplicaSetTerminatingReplicas, &["status.terminatingReplicas"])];

/// Removes the fields of features that are off from the status of a Deployment or a ReplicaSet.
pub fn drop_disabled(minor: Minor, new: &mut Value, old: &Value) {
    features::drop_fields(&FEATURES, minor, new, Some(old));
}

/// Checks that none of the fields is negative.
pub fn not_negative(status: &FieldRef<'_>, names: &[&str]) -> ErrorList {
    names.iter().filter_map(|name| checks::not_negative(&status.field(name))).collect()
}

/// Checks that none of the fields is greater than the field `limit`.
pub fn not_above(status: &FieldRef<'_>, names: &[&str], limit: &str, why: &str) -> ErrorList {
    let limit = status.field(limit).int();
    let is_above = |name: &&&str| status.field(name).int() > limit;
    names.iter().filter(is_above).map(|name| count_error(&status.field(name), why)).collect()
}

/// Checks that a counter does not decrease.
pub fn not_decremented(new: &FieldRef<'_>, old: &FieldRef<'_>, name: &str) -> Option<Error> {
    let (new, old) = (new.field(name), old.field(name));
    let is_less = old.is_set() && (!new.is_set() || new.int() < old.int());
    is_less.then(|| count_error(&new, "cannot be decremented"))
}

/// An error that shows a number, which is 0 if it is absent.
fn count_error(field: &FieldRef<'_>, why: &str) -> Error {
    Error::invalid(field.path(), Value::Int(field.int()), why)
}

/// Validates the status of a kind that maintains a number of pods; `others` are its counters beyond those that all
/// have.
pub fn validate_replicas(object: &Value, others: &[&str]) -> ErrorList {
    const COUNTERS: [&str; 5] =
        ["replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration"];
    const PARTS: [&str; 3] = ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"];
    let root = FieldRef::root(object);
    let status = root.field("status");
    let mut errors = not_negative(&status, &COUNTERS);
    errors.extend(not_negative(&status, others));
    errors.extend(not_above(&status, &PARTS, "replicas", "cannot be greater than status.replicas"));
    let why = "cannot be greater than readyReplicas";
    errors.extend(not_above(&status, &["availableReplicas"], "readyReplicas", why));
    errors
}
