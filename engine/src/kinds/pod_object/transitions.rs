//! Containers that have ended and must not be reported as running again.
//!
//! Source: `ValidateContainerStateTransition` and its siblings, `ContainerShouldRestart`.

use std::collections::HashMap;

use crate::meta::field::ErrorList;
use crate::meta::field_ref::FieldRef;
use crate::value::Value;
use crate::work;

/// The errors of the states of all containers. `spec` is that of the pod before.
pub fn validate(status: &FieldRef<'_>, old_status: &FieldRef<'_>, spec: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let lists = [("containerStatuses", "containers"), ("initContainerStatuses", "initContainers")];
    if !restarts_all(spec) {
        for (statuses, containers) in lists {
            let (list, old_list) = (status.field(statuses), old_status.field(statuses));
            errors.extend(validate_list(&list, &old_list, Some((spec, containers))));
        }
    }
    let name = "ephemeralContainerStatuses";
    errors.extend(validate_list(&status.field(name), &old_status.field(name), None));
    errors
}

/// Whether the end of some container may start all of them again.
fn restarts_all(spec: &Value) -> bool {
    ["initContainers", "containers"].iter().flat_map(|name| spec.items_at(&[name])).any(|container| {
        let rules = container.items_at(&["restartPolicyRules"]).iter();
        rules.inspect(|_| work::step()).any(|rule| rule.str_at(&["action"]) == "RestartAllContainers")
    })
}

fn validate_list(new: &FieldRef<'_>, old: &FieldRef<'_>, restarts: Option<(&Value, &str)>) -> ErrorList {
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
        Some((spec, list)) => spec.items_at(&[list]).iter().rev().map(|one| (one.str_at(&["name"]), one)).collect(),
        None => HashMap::new(),
    };
    for (index, status) in statuses(old).iter().enumerate() {
        let Some(terminated) = terminated(status) else { continue };
        let name = status.str_at(&["name"]);
        let count = running.get(name).copied().unwrap_or_default();
        let code = terminated.get("exitCode").and_then(Value::as_i64).unwrap_or_default();
        let may_restart = restarts.is_some_and(|(spec, _)| {
            containers.get(name).is_some_and(|container| should_restart(container, spec, code))
        });
        // Errors of ephemeral containers are reported once for each status.
        let times = if restarts.is_some() { count.min(1) } else { count };
        for _ in 0..times {
            if !may_restart {
                let path = new.path().index(index);
                let path = path.child("state");
                errors.push(crate::meta::field::Error::forbidden(
                    &path,
                    "may not be transitioned to non-terminated state",
                ));
            }
        }
    }
    errors
}

/// How the container ended, if it did.
fn terminated(status: &Value) -> Option<&Value> {
    status.at(&["state", "terminated"]).filter(|terminated| !terminated.is_null())
}

/// Whether a container that ended with `code` is to be started again.
fn should_restart(container: &Value, spec: &Value, code: i64) -> bool {
    let by_policy = |policy: &str| match policy {
        "Always" => Some(true),
        "OnFailure" => Some(code != 0),
        "Never" => Some(false),
        _ => None,
    };
    let own = container.str_at(&["restartPolicy"]);
    if !own.is_empty() {
        if matches!(matching_action(container, code), Some("Restart" | "RestartAllContainers")) {
            return true;
        }
        if let Some(restarts) = by_policy(own) {
            return restarts;
        }
    }
    by_policy(spec.str_at(&["restartPolicy"])).unwrap_or(true)
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
        let read = |text: &str| yaml::decode(text.as_bytes()).expect("YAML");
        let spec = read(spec);
        let old =
            read(&format!("status: {{containerStatuses: [{{name: c, state: {{terminated: {{exitCode: {code}}}}}}}]}}"));
        let new = read("status: {containerStatuses: [{name: c, state: {running: {}}}]}");
        let (root, old_root) = (FieldRef::root(&new), FieldRef::root(&old));
        let errors = validate(&root.field("status"), &old_root.field("status"), &spec).aggregate();
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
}
