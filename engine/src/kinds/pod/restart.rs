//! Validation of when a container is started again.
//!
//! Source: `pkg/apis/core/validation`, release 1.36.

use std::collections::HashSet;

use super::PodValidationOptions;
use crate::kinds::checks;
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;

const RULES_MAX: i64 = 20;
const EXIT_CODES_MAX: i64 = 255;
/// The action of a rule that restarts all containers of the pod.
pub const RESTART_ALL: &str = "RestartAllContainers";

/// The policy of a container, which goes before that of its pod, and the rules that go before the policy.
pub fn validate_policy(container: &FieldRef<'_>, options: &PodValidationOptions) -> ErrorList {
    let actions = ["Restart", RESTART_ALL];
    let actions = if options.allow_restart_all_containers { &actions[..] } else { &actions[..1] };
    let (policy, rules) = (container.field("restartPolicy"), container.field("restartPolicyRules"));
    let mut errors = ErrorList::new();
    if policy.is_set() {
        errors.extend(checks::one_of(&policy, &["Always", "Never", "OnFailure"]));
    } else if !rules.is_empty() {
        errors.push(policy.required("must specify restartPolicy when restart rules are used"));
    }
    if rules.len() as i64 > RULES_MAX {
        errors.push(rules.too_many(RULES_MAX));
    }
    for rule in rules.items() {
        errors.extend(checks::one_of(&rule.field("action"), actions));
        let codes = rule.field("exitCodes");
        if !codes.is_set() {
            errors.push(codes.required("must be specified"));
            continue;
        }
        errors.extend(checks::one_of(&codes.field("operator"), &["In", "NotIn"]));
        let values = codes.field("values");
        if values.len() as i64 > EXIT_CODES_MAX {
            errors.push(values.too_many(EXIT_CODES_MAX));
        }
    }
    errors
}

/// The policy of an init container; rules need one.
pub fn validate_init_policy(container: &FieldRef<'_>, options: &PodValidationOptions) -> ErrorList {
    let (policy, rules) = (container.field("restartPolicy"), container.field("restartPolicyRules"));
    let has_rules = !rules.is_empty();
    if policy.text() == "Always" && !options.allow_restart_all_containers {
        let why = "restartPolicyRules are not allowed for init containers with restart policy Always";
        return has_rules.then(|| rules.forbidden(why)).into_iter().collect();
    }
    if policy.is_set() {
        return validate_policy(container, options);
    }
    let why = "must specify restartPolicy when restart rules are used";
    has_rules.then(|| policy.required(why)).into_iter().collect()
}

/// The treatment of a container when its resources change.
pub fn validate_resize_policies(policies: &FieldRef<'_>, pod_restart_policy: &str) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen = HashSet::new();
    for policy in policies.items() {
        // The reference reports the list, not the item, except for a duplicate.
        let of_list =
            |name: &'static str| FieldRef::new(policy.value().and_then(|value| value.get(name)), *policies.path());
        let (resource, restart) = (of_list("resourceName"), of_list("restartPolicy"));
        if !seen.insert(resource.text()) {
            let shown = crate::value::Value::from(resource.text());
            errors.push(Error::duplicate(policy.path(), shown));
        }
        errors.extend(checks::required_one_of(&resource, &["cpu", "memory"]));
        errors.extend(checks::required_one_of(&restart, &["NotRequired", "RestartContainer"]));
        if pod_restart_policy == "Never" && restart.text() != "NotRequired" {
            errors.push(restart.invalid_as_json("must be 'NotRequired' when pod `restartPolicy` is 'Never'"));
        }
    }
    errors
}

/// A container that runs to its end is not started again because its resources change.
pub fn forbid_restart_on_resize(container: &FieldRef<'_>, options: &PodValidationOptions) -> ErrorList {
    let mut errors = ErrorList::new();
    if options.allow_existing_restart_container_for_non_sidecar_init_container {
        return errors;
    }
    for policy in container.field("resizePolicy").items() {
        let restart = policy.field("restartPolicy");
        if restart.text() == "RestartContainer" {
            let why = "must not be set to 'RestartContainer' for non-sidecar initContainers";
            errors.push(restart.invalid_as_json(why));
        }
    }
    errors
}
