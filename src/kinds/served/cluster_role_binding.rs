//! ClusterRoleBinding, rbac.authorization.k8s.io/v1.

use crate::crd::{Scope, ServedVersion};
use crate::meta::field::ErrorList;
use crate::types::metadata::{LIST_METADATA, METADATA, items};
use crate::types::{Message, message};
use crate::value::Value;

use super::super::Kind;
use super::super::rbac::{self, GROUP, ROLE_REF, Reach, SUBJECT};
use super::super::strategy::{Strategy, Subresource, Table};

pub(super) static KINDS: [&Kind; 1] = [&Kind {
    group: GROUP,
    plural: "clusterrolebindings",
    singular: "clusterrolebinding",
    scope: Scope::Cluster,
    example: r"
metadata: {name: example}
subjects: [{kind: User, name: jane}, {kind: ServiceAccount, namespace: default, name: builder}]
roleRef: {kind: ClusterRole, name: viewer}
",
    ..Kind::new(&CLUSTER_ROLE_BINDING, &LIST, &ClusterRoleBinding)
}];

static CLUSTER_ROLE_BINDING: Message = Message::object(
    "ClusterRoleBinding",
    &[
        METADATA,
        message(2, "subjects", &SUBJECT).list().atomic().describe("Whom the role is granted to."),
        message(3, "roleRef", &ROLE_REF).required().describe("The role that is granted. It can't be changed."),
    ],
)
.describe("ClusterRoleBinding grants a cluster role to subjects everywhere.");

static LIST: Message = Message::object("ClusterRoleBindingList", &[LIST_METADATA, items(&CLUSTER_ROLE_BINDING)]);

struct ClusterRoleBinding;

impl Strategy for ClusterRoleBinding {
    fn set_typed_defaults(&self, object: &mut Value) {
        rbac::set_binding_defaults(object);
    }

    fn validate_create(&self, _: &ServedVersion, object: &Value) -> ErrorList {
        rbac::validate_binding(object, Reach::Cluster)
    }

    fn validate_update(&self, _: &ServedVersion, _: Subresource, new: &Value, old: &Value) -> ErrorList {
        rbac::validate_binding_update(new, old, Reach::Cluster)
    }

    fn creates_on_update(&self) -> bool {
        true
    }

    fn table(&self) -> Option<Table> {
        Some(rbac::binding_table("ClusterRoleBinding"))
    }
}

#[cfg(test)]
mod tests {
    use k8s_pb::api::rbac::v1;

    use super::*;
    use crate::kinds::wire_tests;

    #[test]
    fn the_wire_is_that_of_kubernetes() {
        wire_tests::agree::<v1::ClusterRoleBinding, v1::ClusterRoleBindingList>(KINDS[0]);
    }
}
