//! Faults that are forgiven in a pod because they were there before the rules against them.
//!
//! Source: `GetValidationOptionsFromPodSpecAndMeta` in `pkg/api/pod`, release 1.36.

use std::collections::BTreeSet;

use super::affinity::{self, PREFERRED, REQUIRED};
use super::restart::RESTART_ALL;
use super::volumes::paths;
use super::{PodValidationOptions, annotations, container_lists, disabled, security};
use crate::kinds::{node_selector, resources};
use crate::meta::field_ref::FieldRef;
use crate::meta::gate::Gate;
use crate::meta::minor::Minor;
use crate::meta::names;
use crate::meta::selector::LabelSelector;
use crate::value::Value;

impl PodValidationOptions {
    /// The options of that version for the template `new`, which replaces `old`.
    pub fn for_template(minor: Minor, new: Option<&Value>, old: Option<&Value>) -> Self {
        let forgiven = old.map(PodValidationOptions::of).unwrap_or_default();
        PodValidationOptions {
            allow_relaxed_environment_variable_validation: minor.opens(Gate::RelaxedEnvironmentVariableValidation)
                || new.zip(old).is_some_and(|(new, old)| keeps_relaxed_variable(new, old)),
            allow_relaxed_dns_search_validation: forgiven.allow_relaxed_dns_search_validation
                || minor.opens(Gate::RelaxedDnsSearchValidation),
            allow_pod_lifecycle_sleep_action_zero_value: forgiven.allow_pod_lifecycle_sleep_action_zero_value
                || minor.opens(Gate::PodLifecycleSleepActionAllowZero),
            allow_restart_all_containers: forgiven.allow_restart_all_containers
                || minor.opens(Gate::RestartAllContainersOnContainerExits),
            allow_container_restart_policy_rules: forgiven.allow_container_restart_policy_rules
                || minor.opens(Gate::ContainerRestartRules),
            allow_legacy_ips: !minor.opens(Gate::StrictIpCidrValidation),
            allow_taint_toleration_comparison_operators: forgiven.allow_taint_toleration_comparison_operators
                || minor.opens(Gate::TaintTolerationComparisonOperators),
            allow_all_selinux_change_policies: forgiven.allow_all_selinux_change_policies
                || minor.opens(Gate::SELinuxMount),
            allow_invalid_pod_deletion_cost: forgiven.allow_invalid_pod_deletion_cost
                || !minor.opens(Gate::PodDeletionCost),
            allow_match_label_keys_in_pod_topology_spread_selector_merge: merges_label_keys(minor),
            ..forgiven
        }
    }

    /// The options of that version for the Pod `new`, which replaces `old`.
    pub fn for_pod(minor: Minor, new: &Value, old: Option<&Value>) -> Self {
        PodValidationOptions { resource_is_pod: true, ..PodValidationOptions::for_template(minor, Some(new), old) }
    }

    /// The options that `old`, a Pod or a template, needs to be valid.
    fn of(old: &Value) -> Self {
        let root = FieldRef::root(old);
        let spec = root.field("spec");
        PodValidationOptions {
            resource_is_pod: false,
            allow_invalid_pod_deletion_cost: annotations::has_invalid_cost(old.at(&["metadata", "annotations"])),
            allow_invalid_label_value_in_selector: has_invalid_selector(&spec.field("affinity")),
            allow_invalid_label_value_in_required_node_affinity: node_selector::has_invalid_value(old.at(&[
                "spec",
                "affinity",
                "nodeAffinity",
                REQUIRED,
            ])),
            allow_indivisible_huge_pages_values: has_indivisible_huge_pages(&spec),
            allow_invalid_topology_spread_constraint_label_selector: has_constraint(&spec, |constraint| {
                let selector = constraint.field("labelSelector");
                let errors = selector.value().map(|value| LabelSelector::validate(value, true, selector.path()));
                errors.is_some_and(|errors| !errors.is_empty())
            }),
            old_pod_violates_match_label_keys_validation: has_constraint(&spec, |constraint| {
                !affinity::validate_label_keys(constraint).is_empty()
            }),
            allow_non_local_projected_token_path: has_non_local_token(&spec),
            allow_namespaced_sysctls_for_host_net_and_host_ipc: has_host_sysctl(&spec),
            allow_taint_toleration_comparison_operators: has_comparison(&spec.field("tolerations")),
            allow_all_selinux_change_policies: spec.field("securityContext").field("seLinuxChangePolicy").is_set(),
            allow_user_namespaces_with_volume_devices: has_devices_of_own_users(&spec),
            allow_existing_restart_container_for_non_sidecar_init_container: has_restart_on_resize(&spec),
            allow_relaxed_environment_variable_validation: false,
            allow_relaxed_dns_search_validation: has_relaxed_search(&spec),
            allow_pod_lifecycle_sleep_action_zero_value: has_empty_sleep(&spec),
            allow_restart_all_containers: restarts_all(&spec),
            allow_container_restart_policy_rules: spec.value().is_some_and(disabled::has_restart_rules),
            allow_legacy_ips: false,
            allow_match_label_keys_in_pod_topology_spread_selector_merge: false,
            old_pod_violates_legacy_match_label_keys_validation: has_constraint(&spec, |constraint| {
                !affinity::validate_label_keys_alone(constraint).is_empty()
            }),
        }
    }
}

/// Whether the keys of topology spreads become part of their selectors.
pub fn merges_label_keys(minor: Minor) -> bool {
    minor.opens(Gate::MatchLabelKeysInPodTopologySpread)
        && minor.opens(Gate::MatchLabelKeysInPodTopologySpreadSelectorMerge)
}

/// Whether a variable keeps a name that only the relaxed check accepts. One such name lets others pass, too.
fn keeps_relaxed_variable(new: &Value, old: &Value) -> bool {
    let kept = relaxed_variables(old);
    !kept.is_empty() && !kept.is_disjoint(&relaxed_variables(new))
}

/// The names and prefixes of variables that only the relaxed check accepts.
fn relaxed_variables(object: &Value) -> BTreeSet<String> {
    let is_relaxed = |name: &str| {
        !names::is_plain_environment_variable(name).is_empty() && names::is_environment_variable(name).is_empty()
    };
    let mut found = BTreeSet::new();
    container_lists::visit(&FieldRef::root(object).field("spec"), |container| {
        for (list, field) in [("env", "name"), ("envFrom", "prefix")] {
            let written = container.field(list);
            let relaxed = written.items().filter(|item| is_relaxed(item.text_of(field)));
            found.extend(relaxed.map(|item| item.text_of(field).to_owned()));
        }
    });
    found
}

fn has_relaxed_search(spec: &FieldRef<'_>) -> bool {
    spec.field("dnsConfig").field("searches").texts().any(|search| search == "." || search.contains('_'))
}

/// Whether a container sleeps for no time when it begins or ends.
fn has_empty_sleep(spec: &FieldRef<'_>) -> bool {
    let mut found = false;
    container_lists::visit(spec, |container| {
        let lifecycle = container.field("lifecycle");
        found |= ["postStart", "preStop"].iter().any(|name| {
            let handler = lifecycle.field(name);
            let sleep = handler.field("sleep");
            sleep.is_set() && sleep.field("seconds").int() == 0
        });
    });
    found
}

/// Whether a container may restart all, or one that runs beside the others has rules, which came with that.
fn restarts_all(spec: &FieldRef<'_>) -> bool {
    let restarts = |rules: &FieldRef<'_>| rules.items().any(|rule| rule.text_of("action") == RESTART_ALL);
    spec.field("containers").items().any(|container| restarts(&container.field("restartPolicyRules")))
        || spec.field("initContainers").items().any(|container| {
            let rules = container.field("restartPolicyRules");
            restarts(&rules) || (container.text_of("restartPolicy") == "Always" && !rules.is_empty())
        })
}

fn has_invalid_selector(affinity: &FieldRef<'_>) -> bool {
    let is_invalid = |term: &FieldRef<'_>| !affinity::validate_selectors(term, true).is_empty();
    ["podAffinity", "podAntiAffinity"].iter().any(|name| {
        let pods = affinity.field(name);
        pods.field(REQUIRED).items().any(|term| is_invalid(&term))
            || pods.field(PREFERRED).items().any(|term| is_invalid(&term.field("podAffinityTerm")))
    })
}

fn has_indivisible_huge_pages(spec: &FieldRef<'_>) -> bool {
    let is_indivisible = |list: &FieldRef<'_>| {
        list.entries().any(|(name, quantity)| {
            resources::is_huge_page(name) && !resources::is_divisible_by_page(name, &resources::quantity(&quantity))
        })
    };
    let mut found = is_indivisible(&spec.field("overhead"));
    container_lists::visit(spec, |container| {
        let requirements = container.field("resources");
        found |= ["limits", "requests"].iter().any(|list| is_indivisible(&requirements.field(list)));
    });
    found
}

fn has_constraint(spec: &FieldRef<'_>, test: impl Fn(&FieldRef<'_>) -> bool) -> bool {
    spec.field("topologySpreadConstraints").items().any(|constraint| test(&constraint))
}

fn has_non_local_token(spec: &FieldRef<'_>) -> bool {
    spec.field("volumes").items().any(|volume| {
        volume.field("projected").field("sources").items().any(|source| {
            let token = source.field("serviceAccountToken");
            token.is_set() && !paths::local_not_reserved(&token.field("path")).is_empty()
        })
    })
}

fn has_host_sysctl(spec: &FieldRef<'_>) -> bool {
    let sysctls = spec.value().map(|spec| spec.items_at(&["securityContext", "sysctls"])).unwrap_or_default();
    sysctls.iter().any(|sysctl| security::host_fault(sysctl.str_at(&["name"]), spec).is_some())
}

fn has_comparison(tolerations: &FieldRef<'_>) -> bool {
    tolerations.items().any(|toleration| matches!(toleration.text_of("operator"), "Lt" | "Gt"))
}

fn has_devices_of_own_users(spec: &FieldRef<'_>) -> bool {
    let users = spec.field("hostUsers");
    let mut has_devices = false;
    container_lists::visit(spec, |container| has_devices |= !container.field("volumeDevices").is_empty());
    users.is_set() && !users.is_true() && has_devices
}

fn has_restart_on_resize(spec: &FieldRef<'_>) -> bool {
    let containers = spec.value().map(|spec| spec.items_at(&["initContainers"])).unwrap_or_default();
    let to_the_end = containers.iter().filter(|container| container.str_at(&["restartPolicy"]) != "Always");
    to_the_end
        .flat_map(|container| container.items_at(&["resizePolicy"]))
        .any(|policy| policy.str_at(&["restartPolicy"]) == "RestartContainer")
}
