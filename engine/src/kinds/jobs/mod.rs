//! The common part of Job and CronJob: the spec of a job.
//!
//! Input: a JobSpec in the form that its Go type gives it. Output: its defaults, errors and warnings.
//!
//! Source: `pkg/apis/batch/v1`, `pkg/apis/batch/validation` and `pkg/api/job` of Kubernetes 1.37.

pub(crate) mod conditions;
mod failure_policy;
pub(crate) mod indexes;
pub(crate) mod spec;
pub(crate) mod status;
mod success_policy;
pub(crate) mod update;

use super::{defaults, pod};
use crate::meta::field_ref::FieldRef;
use crate::value::Value;

pub const INDEXED: &str = "Indexed";
pub const NON_INDEXED: &str = "NonIndexed";

/// Above so many completions other limits are lower.
const COMPLETIONS_SOFT_MAX: i64 = 100_000;

/// Sets the defaults of a job's spec, in a Job or a template.
pub fn set_template_defaults(spec: &mut Value) {
    pod::set_template_defaults(defaults::structure(spec, "template"));
    let Some(policy) = defaults::field(spec, "podFailurePolicy") else { return };
    for rule in defaults::items(policy, "rules") {
        defaults::items(rule, "onPodConditions").for_each(|pattern| defaults::set(pattern, "status", "True"));
    }
}

/// Sets the defaults of a Job's own spec.
pub fn set_defaults(spec: &mut Value) {
    let has = |spec: &Value, name: &str| spec.get(name).is_some();
    if !has(spec, "completions") && !has(spec, "parallelism") {
        defaults::set(spec, "completions", 1);
    }
    defaults::set(spec, "parallelism", 1);
    let limit = if has(spec, "backoffLimitPerIndex") { i64::from(i32::MAX) } else { 6 };
    defaults::set(spec, "backoffLimit", limit);
    defaults::set_pointer(spec, "completionMode", NON_INDEXED);
    defaults::set(spec, "suspend", false);
    let replaced = if has(spec, "podFailurePolicy") { "Failed" } else { "TerminatingOrFailed" };
    defaults::set_pointer(spec, "podReplacementPolicy", replaced);
    defaults::set(spec, "manualSelector", false);
}

/// Whether the job counts its pods by an index.
pub fn is_indexed(spec: &FieldRef<'_>) -> bool {
    spec.field("completionMode").text() == INDEXED
}

/// The warnings about the spec of a job; `old` is the spec that it replaces.
pub fn warnings(spec: &FieldRef<'_>, old: Option<&Value>) -> Vec<String> {
    const PARALLELISM_SOFT_MAX: i64 = 10_000;
    let mut warnings = Vec::new();
    let is_large = spec.field("completions").int() > COMPLETIONS_SOFT_MAX
        && spec.field("parallelism").int() > PARALLELISM_SOFT_MAX;
    if is_indexed(spec) && is_large {
        warnings.push(format!(
            "{}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, \
             Kubernetes might not be able to track completedIndexes when a big number of indexes fail",
            spec.path()
        ));
    }
    let old_template = old.and_then(|old| old.get("template"));
    warnings.extend(pod::template_warnings(&spec.field("template"), old_template));
    warnings
}
