//! ClusterRole, rbac.authorization.k8s.io/v1.

use crate::crd::Scope;

use crate::kinds::Kind;
use crate::kinds::rbac::{GROUP, Reach, Roles};

pub static KINDS: [&Kind; 1] = [&Kind {
    plural: "clusterroles",
    singular: "clusterrole",
    scope: Scope::Cluster,
    example: "metadata: {name: example}\nrules: [{apiGroups: [''], resources: [configmaps], verbs: [get, list]}]",
    ..Kind::new(GROUP, "v1", "ClusterRole", &Roles(Reach::Cluster))
}];
