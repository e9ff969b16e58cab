//! What is forgiven in a pod because it was there before the rule against it.

use crate::value::Value;

/// What validation allows; named as `PodValidationOptions`. The default is what a new object meets.
///
/// Options of features that are always on or off have no field.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
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
    pub allow_user_namespaces_host_network_support: bool,
    pub allow_user_namespaces_with_volume_devices: bool,
    pub allow_existing_restart_container_for_non_sidecar_init_container: bool,
}

impl Options {
    /// The options for a template that replaces `old`.
    pub fn for_template(_old: Option<&Value>) -> Self {
        Options::default()
    }

    /// The options for a Pod that replaces `old`.
    pub fn for_pod(_old: Option<&Value>) -> Self {
        Options { resource_is_pod: true, ..Options::default() }
    }
}
