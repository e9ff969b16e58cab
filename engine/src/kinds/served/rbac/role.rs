//! Role, rbac.authorization.k8s.io/v1.

use crate::kinds::Kind;
use crate::kinds::rbac::{GROUP, Reach, Roles};

pub static KINDS: [&Kind; 1] = [&Kind {
    plural: "roles",
    singular: "role",

    example: "metadata: {name: example}\nrules: [{apiGroups: [''], resources: [configmaps], verbs: [get, list]}]",
    ..Kind::new(GROUP, "v1", "Role", &Roles(Reach::Namespace))
}];
