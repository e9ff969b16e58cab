//! The lists of containers of a pod's spec, and those of what its status says of them.

use crate::meta::field_ref::FieldRef;

/// The lists of containers of a spec, in the order that the reference visits them in.
pub const CONTAINER_LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];
/// What a status says of the containers in each of them.
pub const STATUS_LISTS: [&str; 3] = ["initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"];

/// Calls `visit` with each container of a spec, in the order of the reference.
pub fn visit(spec: &FieldRef<'_>, mut visit: impl FnMut(&FieldRef<'_>)) {
    for name in CONTAINER_LISTS {
        let list = spec.field(name);
        list.items().for_each(|container| visit(&container));
    }
}
