//! Role, rbac.authorization.k8s.io/v1.

use crate::types::metadata::{LIST_METADATA, METADATA, items};
use crate::types::{Message, message};

use super::super::Kind;
use super::super::rbac::{GROUP, POLICY_RULE, Reach, Roles};

pub(super) static KINDS: [&Kind; 1] = [&Kind {
    group: GROUP,
    plural: "roles",
    singular: "role",

    example: "metadata: {name: example}\nrules: [{apiGroups: [''], resources: [configmaps], verbs: [get, list]}]",
    ..Kind::new(&ROLE, &LIST, &Roles(Reach::Namespace))
}];

static ROLE: Message = Message::object(
    "Role",
    &[METADATA, message(2, "rules", &POLICY_RULE).list().always().atomic().describe("What may be done.")],
)
.describe("Role is a set of rules that count in its namespace.");

static LIST: Message = Message::object("RoleList", &[LIST_METADATA, items(&ROLE)]);

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
