//! ClusterRole, rbac.authorization.k8s.io/v1.

use crate::crd::{Scope, ServedVersion};
use crate::meta::field::ErrorList;
use crate::types::metadata::{LIST_METADATA, METADATA, items};
use crate::types::selector::LABEL_SELECTOR;
use crate::types::{Message, message};
use crate::value::Value;

use super::super::rbac::{self, GROUP, POLICY_RULE, Reach};
use super::super::strategy::{Strategy, Subresource, Table};
use super::super::{Kind, metadata};

pub(super) static KINDS: [&Kind; 1] = [&Kind {
    group: GROUP,
    plural: "clusterroles",
    singular: "clusterrole",
    scope: Scope::Cluster,
    example: "metadata: {name: example}\nrules: [{apiGroups: [''], resources: [configmaps], verbs: [get, list]}]",
    ..Kind::new(&CLUSTER_ROLE, &LIST, &ClusterRole)
}];

static CLUSTER_ROLE: Message = Message::object(
    "ClusterRole",
    &[
        METADATA,
        message(2, "rules", &POLICY_RULE).list().always().atomic().describe("What may be done."),
        message(3, "aggregationRule", &AGGREGATION_RULE)
            .pointer()
            .describe("From which other roles the rules are collected. They are then not written by hand."),
    ],
)
.describe("ClusterRole is a set of rules that a binding grants everywhere, or in its namespace.");

static AGGREGATION_RULE: Message = Message::new(
    "AggregationRule",
    &[message(1, "clusterRoleSelectors", &LABEL_SELECTOR)
        .list()
        .atomic()
        .describe("Selectors; the rules of a role that one of them selects are added.")],
);

static LIST: Message = Message::object("ClusterRoleList", &[LIST_METADATA, items(&CLUSTER_ROLE)]);

struct ClusterRole;

impl Strategy for ClusterRole {
    fn validate_create(&self, _: &ServedVersion, object: &Value) -> ErrorList {
        rbac::validate_role(object, Reach::Cluster)
    }

    fn validate_update(&self, _: &ServedVersion, _: Subresource, new: &Value, old: &Value) -> ErrorList {
        let mut errors = rbac::validate_role(new, Reach::Cluster);
        errors.extend(metadata::validate_update(new, old));
        errors
    }

    fn creates_on_update(&self) -> bool {
        true
    }

    fn table(&self) -> Option<Table> {
        Some(rbac::role_table())
    }
}

#[cfg(test)]
mod tests {
    use k8s_pb::api::rbac::v1;

    use super::*;
    use crate::kinds::wire_tests;

    #[test]
    fn the_wire_is_that_of_kubernetes() {
        wire_tests::agree::<v1::ClusterRole, v1::ClusterRoleList>(KINDS[0]);
    }
}
