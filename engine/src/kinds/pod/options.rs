//! Options for the validation of a pod or a template.

/// Options for validation; named as in `PodValidationOptions`. The default applies to new objects.
///
/// Options of features that are always on or off have no field.
#[derive(Clone, Copy, Debug, Default)]
pub struct PodValidationOptions {
    /// The object is a Pod, not something that has a template.
    pub resource_is_pod: bool,
    pub allow_invalid_pod_deletion_cost: bool,
    pub allow_invalid_label_value_in_selector: bool,
    pub allow_invalid_label_value_in_required_node_affinity: bool,
    pub allow_indivisible_huge_pages_values: bool,
    pub allow_invalid_topology_spread_constraint_label_selector: bool,
    pub old_pod_violates_match_label_keys_validation: bool,
    pub allow_non_local_projected_token_path: bool,
    pub allow_namespaced_sysctls_for_host_net_and_host_ipc: bool,
    pub allow_taint_toleration_comparison_operators: bool,
    pub allow_all_selinux_change_policies: bool,
    pub allow_user_namespaces_with_volume_devices: bool,
    pub allow_existing_restart_container_for_non_sidecar_init_container: bool,
    pub allow_relaxed_environment_variable_validation: bool,
    pub allow_relaxed_dns_search_validation: bool,
    pub allow_pod_lifecycle_sleep_action_zero_value: bool,
    pub allow_restart_all_containers: bool,
    /// Containers may say themselves when they are started again.
    pub allow_container_restart_policy_rules: bool,
    /// Addresses may be written as Go once read them: with zeros before numbers, and IPv4 inside IPv6.
    pub allow_legacy_ips: bool,
    pub allow_match_label_keys_in_pod_topology_spread_selector_merge: bool,
    pub old_pod_violates_legacy_match_label_keys_validation: bool,
}
