//! Role, rbac.authorization.k8s.io/v1.

use crate::crd::ServedVersion;
use crate::meta::field::ErrorList;
use crate::types::metadata::{LIST_METADATA, METADATA, items};
use crate::types::{Message, message};
use crate::value::Value;

use super::super::rbac::{self, GROUP, POLICY_RULE, Reach};
use super::super::strategy::{Strategy, Subresource, Table};
use super::super::{Kind, metadata};

pub(super) static KINDS: [&Kind; 1] = [&Kind {
    group: GROUP,
    plural: "roles",
    singular: "role",

    example: "metadata: {name: example}\nrules: [{apiGroups: [''], resources: [configmaps], verbs: [get, list]}]",
    ..Kind::new(&ROLE, &LIST, &Role)
}];

static ROLE: Message = Message::object(
    "Role",
    &[METADATA, message(2, "rules", &POLICY_RULE).list().always().atomic().describe("What may be done.")],
)
.describe("Role is a set of rules that count in its namespace.");

static LIST: Message = Message::object("RoleList", &[LIST_METADATA, items(&ROLE)]);

struct Role;

impl Strategy for Role {
    fn validate_create(&self, _: &ServedVersion, object: &Value) -> ErrorList {
        rbac::validate_role(object, Reach::Namespace)
    }

    fn validate_update(&self, _: &ServedVersion, _: Subresource, new: &Value, old: &Value) -> ErrorList {
        let mut errors = rbac::validate_role(new, Reach::Namespace);
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
        wire_tests::agree::<v1::Role, v1::RoleList>(KINDS[0]);
    }
}
