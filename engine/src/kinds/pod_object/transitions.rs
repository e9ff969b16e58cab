//! Containers that have ended and must not be reported as running again.
//!
//! Source: `ValidateContainerStateTransition` and its siblings, `ContainerShouldRestart`.

use std::collections::HashMap;

use crate::kinds::pod::{PodValidationOptions, RESTART_ALL};
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::gate::Gate;
use crate::meta::minor::Minor;
use crate::value::Value;
use crate::work;

use super::is_sidecar;

/// What decides whether containers of a pod are started again.
pub struct Restarts<'a> {
    /// The version of Kubernetes.
    pub minor: Minor,
    /// What the old pod may have.
    pub options: &'a PodValidationOptions,
    /// The spec of the pod before.
    pub spec: &'a Value,
}

/// The errors of the states of all containers.
pub fn validate(status: &FieldRef<'_>, old_status: &FieldRef<'_>, restarts: &Restarts<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let lists = [("containerStatuses", "containers"), ("initContainerStatuses", "initContainers")];
    if !restarts.all() {
        for (statuses, containers) in lists {
            let (list, old_list) = (status.field(statuses), old_status.field(statuses));
            errors.extend(validate_list(&list, &old_list, Some((restarts, containers))));
        }
    }
    let name = "ephemeralContainerStatuses";
    errors.extend(validate_list(&status.field(name), &old_status.field(name), None));
    errors
}

impl Restarts<'_> {
    /// Whether the end of some container may start all of them again.
    fn all(&self) -> bool {
        let has_rule = |container: &Value| {
            let rules = container.items_at(&["restartPolicyRules"]).iter();
            rules.inspect(|_| work::step()).any(|rule| rule.str_at(&["action"]) == RESTART_ALL)
        };
        let containers = ["initContainers", "containers"].iter().flat_map(|name| self.spec.items_at(&[name]));
        self.has_rules() && self.options.allow_restart_all_containers && containers.into_iter().any(has_rule)
    }

    /// Whether containers may say themselves when they are started again.
    fn has_rules(&self) -> bool {
        self.options.allow_container_restart_policy_rules
    }

    /// Whether the container of a list is to be started again after it ended with `code`.
    fn may_restart(&self, list: &str, container: Option<&Value>, code: i64) -> bool {
        if self.has_rules() {
            return container.is_some_and(|container| self.should_restart(container, code));
        }
        let by_policy = match self.spec.str_at(&["restartPolicy"]) {
            "Always" => true,
            "OnFailure" => code != 0,
            _ => false,
        };
        by_policy || (list == "initContainers" && container.is_some_and(is_sidecar))
    }

    /// Whether a container that ended with `code` is to be started again, by its own rules and policy or the pod's.
    fn should_restart(&self, container: &Value, code: i64) -> bool {
        let by_policy = |policy: &str| match policy {
            "Always" => Some(true),
            "OnFailure" => Some(code != 0),
            "Never" => Some(false),
            _ => None,
        };
        let own = container.str_at(&["restartPolicy"]);
        if !own.is_empty() {
            let restarts = match matching_action(container, code) {
                Some("Restart") => true,
                Some(RESTART_ALL) => self.minor.opens(Gate::RestartAllContainersOnContainerExits),
                _ => false,
            };
            if restarts {
                return true;
            }
            if let Some(restarts) = by_policy(own) {
                return restarts;
            }
        }
        by_policy(self.spec.str_at(&["restartPolicy"])).unwrap_or(true)
    }
}

fn validate_list(new: &FieldRef<'_>, old: &FieldRef<'_>, restarts: Option<(&Restarts<'_>, &str)>) -> ErrorList {
    let mut errors = ErrorList::new();
    let statuses = |list: &FieldRef<'_>| list.value().and_then(Value::as_array).unwrap_or_default().to_vec();
    let new_statuses = statuses(new);
    let mut running: HashMap<&str, usize> = HashMap::new();
    for status in new_statuses.iter().filter(|status| terminated(status).is_none()) {
        work::step();
        *running.entry(status.str_at(&["name"])).or_default() += 1;
    }
    let containers: HashMap<&str, &Value> = match restarts {
        // Of containers of one name the first is meant.
        Some((restarts, list)) => {
            let containers = restarts.spec.items_at(&[list]).iter().rev();
            containers.map(|one| (one.str_at(&["name"]), one)).collect()
        }
        None => HashMap::new(),
    };
    for (index, status) in statuses(old).iter().enumerate() {
        let Some(terminated) = terminated(status) else { continue };
        let name = status.str_at(&["name"]);
        let count = running.get(name).copied().unwrap_or_default();
        let code = terminated.get("exitCode").and_then(Value::as_i64).unwrap_or_default();
        let container = containers.get(name).copied();
        if restarts.is_some_and(|(restarts, list)| restarts.may_restart(list, container, code)) {
            continue;
        }
        // Where containers have no rules of their own, errors are reported once for each status.
        let times = if restarts.is_some_and(|(restarts, _)| restarts.has_rules()) { count.min(1) } else { count };
        for _ in 0..times {
            let path = new.path().index(index);
            errors.push(Error::forbidden(&path.child("state"), "may not be transitioned to non-terminated state"));
        }
    }
    errors
}

/// How the container ended, if it did.
fn terminated(status: &Value) -> Option<&Value> {
    status.at(&["state", "terminated"]).filter(|terminated| !terminated.is_null())
}

/// The action of the first rule that matches the exit code.
fn matching_action(container: &Value, code: i64) -> Option<&str> {
    let mut rules = container.items_at(&["restartPolicyRules"]).iter();
    let rule = rules.find(|rule| {
        let found = rule.items_at(&["exitCodes", "values"]).iter().any(|value| value.as_i64() == Some(code));
        match rule.str_at(&["exitCodes", "operator"]) {
            "In" => found,
            "NotIn" => !found,
            _ => false,
        }
    });
    rule.map(|rule| rule.str_at(&["action"]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    fn check(spec: &str, code: i64) -> bool {
        check_in(Minor::NEWEST, spec, code)
    }

    fn check_in(minor: Minor, spec: &str, code: i64) -> bool {
        let read = |text: &str| yaml::decode(text.as_bytes()).expect("YAML");
        let spec = read(spec);
        let old =
            read(&format!("status: {{containerStatuses: [{{name: c, state: {{terminated: {{exitCode: {code}}}}}}}]}}"));
        let new = read("status: {containerStatuses: [{name: c, state: {running: {}}}]}");
        let (root, old_root) = (FieldRef::root(&new), FieldRef::root(&old));
        let holder = crate::object! { "spec" => spec.clone() };
        let options = PodValidationOptions::for_pod(minor, &holder, Some(&holder));
        let restarts = Restarts { minor, options: &options, spec: &spec };
        let errors = validate(&root.field("status"), &old_root.field("status"), &restarts).aggregate();
        let told = "status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state";
        assert!(errors.is_empty() || errors == told, "{errors}");
        errors.is_empty()
    }

    #[test]
    fn a_container_runs_again_where_it_may() {
        assert!(check("{restartPolicy: Always, containers: [{name: c}]}", 0));
        assert!(!check("{restartPolicy: Never, containers: [{name: c}]}", 1));
        assert!(check("{restartPolicy: OnFailure, containers: [{name: c}]}", 1));
        assert!(!check("{restartPolicy: OnFailure, containers: [{name: c}]}", 0));
        assert!(!check("{restartPolicy: Always, containers: [{name: d}]}", 0));
        let rules = |action: &str| {
            format!(
                "{{restartPolicy: Never, containers: [{{name: c, restartPolicy: Never, restartPolicyRules: \
                 [{{action: {action}, exitCodes: {{operator: In, values: [42]}}}}]}}]}}"
            )
        };
        assert!(check(&rules("Restart"), 42));
        assert!(!check(&rules("Restart"), 1));
        assert!(check(&rules("RestartAllContainers"), 1));
    }

    #[test]
    fn before_1_36_no_container_restarts_all_by_a_rule_of_its_own() {
        let held = "{restartPolicy: Never, containers: [{name: c, restartPolicy: Never, restartPolicyRules: \
                    [{action: RestartAllContainers, exitCodes: {operator: In, values: [42]}}]}]}";
        let spec = yaml::decode(held.as_bytes()).expect("YAML");
        let restarts = |number, options| Restarts { minor: Minor::of(number), options, spec: &spec };
        let options = PodValidationOptions { allow_container_restart_policy_rules: true, ..Default::default() };
        assert!(!restarts(35, &options).all());
        assert!(!restarts(35, &options).may_restart("containers", Some(&spec.items_at(&["containers"])[0]), 42));
        assert!(restarts(36, &options).may_restart("containers", Some(&spec.items_at(&["containers"])[0]), 42));
        // What the old pod has goes on to hold.
        assert!(check_in(Minor::of(35), held, 1));
    }

    #[test]
    fn before_1_35_the_policy_of_the_pod_decides() {
        let old = Minor::of(34);
        assert!(check_in(old, "{restartPolicy: Always, containers: [{name: d}]}", 0));
        assert!(check_in(old, "{restartPolicy: OnFailure, containers: [{name: d}]}", 1));
        assert!(!check_in(old, "{restartPolicy: OnFailure, containers: [{name: c}]}", 0));
        assert!(!check_in(old, "{restartPolicy: Never, containers: [{name: c}]}", 1));
    }
}
