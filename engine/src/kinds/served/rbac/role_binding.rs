//! RoleBinding, rbac.authorization.k8s.io/v1.

use crate::crd::ServedVersion;
use crate::meta::field::ErrorList;
use crate::value::Value;

use crate::kinds::Kind;
use crate::kinds::rbac::{self, GROUP, Reach};
use crate::kinds::strategy::{Strategy, Subresource, Table};

pub static KINDS: [&Kind; 1] = [&Kind {
    plural: "rolebindings",
    singular: "rolebinding",

    example: r"
metadata: {name: example}
subjects: [{kind: User, name: jane}, {kind: ServiceAccount, namespace: default, name: builder}]
roleRef: {kind: Role, name: viewer}
",
    ..Kind::new(GROUP, "v1", "RoleBinding", &RoleBinding)
}];

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
