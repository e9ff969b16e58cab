//! The objects of simulated nodes.

use std::net::Ipv4Addr;

use super::node_conditions;
use super::plan::NodePlan;
use crate::kinds::pod_object::simulated;
use crate::object;
use crate::value::{Map, Value};

const VERSION: &str = "v1.37.0-simulated";

/// A node of the plan.
pub(super) fn new(plan: &NodePlan, name: &str, block: &AddressBlock, now: &Value) -> Value {
    let mut labels: Map = [
        ("beta.kubernetes.io/arch", "amd64"),
        ("beta.kubernetes.io/os", "linux"),
        ("kubernetes.io/arch", "amd64"),
        ("kubernetes.io/hostname", name),
        ("kubernetes.io/os", "linux"),
    ]
    .into_iter()
    .fold(Map::new(), |mut labels, (name, value)| {
        labels.insert(name, Value::from(value));
        labels
    });
    plan.labels.iter().for_each(|(name, value)| _ = labels.insert(name, Value::from(value.as_str())));
    let mut node = object! {
        "apiVersion" => "v1",
        "kind" => "Node",
        "metadata" => object! {
            "name" => name,
            "labels" => labels,
            "annotations" => object! { simulated::NODE => "fake" },
        },
        "spec" => object! { "podCIDR" => block.text(), "podCIDRs" => vec![Value::String(block.text())] },
    };
    let status = status_of(&node, &plan.capacity, block, now);
    node.make_object().insert("status", status);
    node
}

/// The status of a node: existing values are kept.
pub(super) fn status_of(node: &Value, capacity: &[(String, String)], block: &AddressBlock, now: &Value) -> Value {
    let mut status = node.get("status").filter(|status| !status.is_null()).cloned().unwrap_or_else(|| object! {});
    let amounts = capacity.iter().fold(Map::new(), |mut amounts, (name, amount)| {
        amounts.insert(name, Value::from(amount.as_str()));
        amounts
    });
    let fields = status.make_object();
    let is_missing = |value: Option<&Value>| match value {
        Some(Value::Object(fields)) => fields.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        Some(value) => value.is_null(),
        None => true,
    };
    if is_missing(fields.get("capacity")) {
        fields.insert("capacity", fields.get("allocatable").cloned().unwrap_or_else(|| amounts.into()));
    }
    if is_missing(fields.get("allocatable")) {
        fields.insert("allocatable", fields.get("capacity").cloned().unwrap_or_default());
    }
    if is_missing(fields.get("addresses")) {
        let addresses =
            [("InternalIP", block.node.to_string()), ("Hostname", node.str_at(&["metadata", "name"]).into())];
        let addresses = addresses.map(|(type_, address)| object! { "type" => type_, "address" => address });
        fields.insert("addresses", Value::Array(addresses.into()));
    }
    if node.str_at(&["status", "nodeInfo", "kubeletVersion"]).is_empty() {
        fields.insert("nodeInfo", info());
    }
    let mut conditions = node.items_at(&["status", "conditions"]).to_vec();
    for mut condition in node_conditions::of_a_node_that_is_well() {
        if !conditions.iter().any(|known| known.str_at(&["type"]) == condition.str_at(&["type"])) {
            let fields = condition.make_object();
            fields.insert("lastHeartbeatTime", now.clone());
            fields.insert("lastTransitionTime", now.clone());
            conditions.push(condition);
        }
    }
    fields.insert("conditions", Value::Array(conditions));
    if !fields.contains_key("phase") {
        // As kwok's nodes have it: its stages look at it.
        fields.insert("phase", Value::from("Running"));
    }
    status
}

fn info() -> Value {
    object! {
        "architecture" => "amd64",
        "bootID" => "",
        "containerRuntimeVersion" => "simulated://0",
        "kernelVersion" => "simulated",
        "kubeProxyVersion" => "",
        "kubeletVersion" => VERSION,
        "machineID" => "",
        "operatingSystem" => "linux",
        "osImage" => "simulated",
        "systemUUID" => "",
    }
}

/// The addresses of a node, and of the pods on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AddressBlock {
    pub node: Ipv4Addr,
    first: u32,
    bits: u32,
}

impl AddressBlock {
    /// The blocks of pod addresses start here, one after the other.
    const FIRST: u32 = u32::from_be_bytes([10, 64, 0, 0]);
    const NODES_FIRST: u32 = u32::from_be_bytes([172, 31, 0, 1]);
    const BITS_MIN: u32 = 8;
    const BITS_MAX: u32 = 16;

    /// The block of the node with this number, with room for `pods_max` pods.
    pub fn of(number: u32, pods_max: i64) -> Self {
        let room = u32::try_from(pods_max.saturating_add(2)).unwrap_or(u32::MAX);
        let bits = (u32::BITS - room.leading_zeros()).clamp(Self::BITS_MIN, Self::BITS_MAX);
        // After the private range they start over, as there are more nodes than addresses.
        let first = Self::FIRST + ((number << bits) & 0x003f_ffff);
        AddressBlock { node: Ipv4Addr::from(Self::NODES_FIRST + (number & 0xffff)), first, bits }
    }

    /// As in `podCIDR`.
    pub fn text(&self) -> String {
        format!("{}/{}", Ipv4Addr::from(self.first), u32::BITS - self.bits)
    }

    /// The addresses of pods, of which the first is the node's own.
    pub fn pods(&self) -> impl Iterator<Item = Ipv4Addr> {
        let last = self.first + (1 << self.bits) - 1;
        (self.first + 2..last).map(Ipv4Addr::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_addresses_do_not_overlap() {
        let blocks = [AddressBlock::of(0, 110), AddressBlock::of(1, 110), AddressBlock::of(1, 1000)];
        assert_eq!(blocks.each_ref().map(AddressBlock::text), ["10.64.0.0/24", "10.64.1.0/24", "10.64.4.0/22"]);
        assert_eq!(blocks[1].pods().next(), Some(Ipv4Addr::new(10, 64, 1, 2)));
        assert_eq!((blocks[0].pods().count(), blocks[2].pods().count()), (253, 1021));
        assert_eq!(blocks[1].node, Ipv4Addr::new(172, 31, 0, 2));
    }

    #[test]
    fn a_node_says_that_it_is_ready_and_what_it_has() {
        let plan: NodePlan = "1,cpu=2,label=zone=a".parse().expect("a plan");
        let node = new(&plan, "node-0", &AddressBlock::of(0, 110), &Value::from("now"));
        assert!(simulated::is_simulated(&node));
        assert_eq!(node.str_at(&["status", "allocatable", "cpu"]), "2");
        assert_eq!(node.str_at(&["metadata", "labels", "zone"]), "a");
        let ready = node.items_at(&["status", "conditions"]).last().expect("there are some");
        assert_eq!((ready.str_at(&["type"]), ready.str_at(&["status"])), ("Ready", "True"));
        // What it says is not said again.
        let again = status_of(&node, &plan.capacity, &AddressBlock::of(3, 110), &Value::from("later"));
        assert_eq!(node.get("status"), Some(&again));
    }
}
