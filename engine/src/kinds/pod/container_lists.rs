//! The lists of containers in a pod's spec, and the lists of their statuses.

use crate::meta::field_ref::FieldRef;

/// The lists of containers of a spec, in the order that the reference visits them in.
pub const CONTAINER_LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];
/// The lists of container statuses, one for each of them.
pub const STATUS_LISTS: [&str; 3] = ["initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"];

/// Calls `visit` with each container of a spec, in the order of the reference.
pub fn visit(spec: &FieldRef<'_>, mut visit: impl FnMut(&FieldRef<'_>)) {
    for name in CONTAINER_LISTS {
        let list = spec.field(name);
        list.items().for_each(|container| visit(&container));
    }
}
