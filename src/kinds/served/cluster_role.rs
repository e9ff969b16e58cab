//! ClusterRole, rbac.authorization.k8s.io/v1.

use crate::crd::Scope;
use crate::types::metadata::{LIST_METADATA, METADATA, items};
use crate::types::selector::LABEL_SELECTOR;
use crate::types::{Message, message};

use super::super::Kind;
use super::super::rbac::{GROUP, POLICY_RULE, Reach, Roles};

pub(super) static KINDS: [&Kind; 1] = [&Kind {
    group: GROUP,
    plural: "clusterroles",
    singular: "clusterrole",
    scope: Scope::Cluster,
    example: "metadata: {name: example}\nrules: [{apiGroups: [''], resources: [configmaps], verbs: [get, list]}]",
    ..Kind::new(&CLUSTER_ROLE, &LIST, &Roles(Reach::Cluster))
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
