//! RoleBinding, rbac.authorization.k8s.io/v1.

use crate::crd::ServedVersion;
use crate::meta::field::ErrorList;
use crate::types::metadata::{LIST_METADATA, METADATA, items};
use crate::types::{Message, message};
use crate::value::Value;

use super::super::Kind;
use super::super::rbac::{self, GROUP, ROLE_REF, Reach, SUBJECT};
use super::super::strategy::{Strategy, Subresource, Table};

pub(super) static KINDS: [&Kind; 1] = [&Kind {
    group: GROUP,
    plural: "rolebindings",
    singular: "rolebinding",

    example: r"
metadata: {name: example}
subjects: [{kind: User, name: jane}, {kind: ServiceAccount, namespace: default, name: builder}]
roleRef: {kind: Role, name: viewer}
",
    ..Kind::new(&ROLE_BINDING, &LIST, &RoleBinding)
}];

static ROLE_BINDING: Message = Message::object(
    "RoleBinding",
    &[
        METADATA,
        message(2, "subjects", &SUBJECT).list().atomic().describe("Whom the role is granted to."),
        message(3, "roleRef", &ROLE_REF).required().describe("The role that is granted. It can't be changed."),
    ],
)
.describe("RoleBinding grants a role to subjects in its namespace.");

static LIST: Message = Message::object("RoleBindingList", &[LIST_METADATA, items(&ROLE_BINDING)]);

struct RoleBinding;

impl Strategy for RoleBinding {
    fn set_typed_defaults(&self, object: &mut Value) {
        rbac::set_binding_defaults(object);
    }

    fn validate_create(&self, _: &ServedVersion, object: &Value) -> ErrorList {
        rbac::validate_binding(object, Reach::Namespace)
    }

    fn validate_update(&self, _: &ServedVersion, _: Subresource, new: &Value, old: &Value) -> ErrorList {
        rbac::validate_binding_update(new, old, Reach::Namespace)
    }

    fn creates_on_update(&self) -> bool {
        true
    }

    fn table(&self) -> Option<Table> {
        Some(rbac::binding_table("RoleBinding"))
    }
}

#[cfg(test)]
mod tests {
    use k8s_pb::api::rbac::v1;

    use super::*;
    use crate::kinds::wire_tests;

    #[test]
    fn the_wire_is_that_of_kubernetes() {
        wire_tests::agree::<v1::RoleBinding, v1::RoleBindingList>(KINDS[0]);
    }
}
