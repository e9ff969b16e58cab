//! The conditions of a healthy node.

use crate::object;
use crate::value::Value;

/// The conditions of a node, with their values while it is healthy.
const CONDITIONS: [(&str, &str, &str, &str); 4] = [
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
];

/// The conditions of a healthy node, without times.
pub(super) fn of_a_node_that_is_well() -> impl Iterator<Item = Value> {
    CONDITIONS.iter().map(|(type_, status, reason, message)| {
        object! { "type" => *type_, "status" => *status, "reason" => *reason, "message" => *message }
    })
}
