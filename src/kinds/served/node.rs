//! Node, core/v1.
//!
//! Source: the types of `k8s.io/api/core/v1`, defaults, validation and columns of Kubernetes 1.37.

use std::collections::BTreeSet;

use crate::crd::{Column, Scope, ServedVersion};
use crate::meta::address::Prefix;
use crate::meta::field::{Error, ErrorList, Path};
use crate::meta::names;
use crate::meta::quantity::Quantity;
use crate::types::metadata::{LIST_METADATA, METADATA, QUANTITY, TIME, items};
use crate::types::{Message, boolean, int32, int64, message, string};
use crate::value::{Value, json};

use super::super::strategy::{Cell, Strategy, Subresource, Table};
use super::super::{Kind, metadata};

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

pub(super) static KINDS: [&Kind; 1] = [&Kind {
    plural: "nodes",
    singular: "node",
    short_names: &["no"],
    scope: Scope::Cluster,
    status: true,
    selectable_fields: &[".spec.unschedulable"],
    example: r"
metadata: {name: example}
spec: {podCIDR: 10.0.0.0/24, podCIDRs: [10.0.0.0/24], taints: [{key: dedicated, value: tests, effect: NoSchedule}]}
status: {capacity: {cpu: '2', memory: 4Gi}, allocatable: {cpu: '2', memory: 4Gi}}
",
    ..Kind::new(&NODE, &LIST, &Node)
}];

static NODE: Message = Message::object(
    "Node",
    &[
        METADATA,
        message(2, "spec", &NODE_SPEC).describe("How the node is meant to be."),
        message(3, "status", &NODE_STATUS).describe("How the node is."),
    ],
)
.describe("Node is a machine that pods run on. Here nothing runs: it is an object for others to work with.");

static NODE_SPEC: Message = Message::new(
    "NodeSpec",
    &[
        string(1, "podCIDR").describe("The addresses of pods on the node; the first of podCIDRs."),
        string(7, "podCIDRs")
            .list()
            .set()
            .merge_by("")
            .describe("The addresses of pods on the node, one range for each family."),
        string(3, "providerID").describe("What the cloud calls the node. Once set, it stays."),
        boolean(4, "unschedulable").describe("Whether new pods stay away."),
        message(5, "taints", &TAINT).list().atomic().describe("What keeps pods away that do not tolerate it."),
        message(6, "configSource", &NODE_CONFIG_SOURCE).pointer().describe("No longer used."),
        string(2, "externalID").go("DoNotUseExternalID").describe("No longer used."),
        message(8, "podPreemptionPolicy", &NODE_POD_PREEMPTION_POLICY)
            .pointer()
            .describe("Whom pods may displace on the node."),
    ],
);

static NODE_POD_PREEMPTION_POLICY: Message =
    Message::new("NodePodPreemptionPolicy", &[string(1, "disableResizePreemption").list().set()]);

static TAINT: Message = Message::new(
    "Taint",
    &[
        string(1, "key").always().required().describe("What the taint is called."),
        string(2, "value").describe("What tells taints of one key apart."),
        string(3, "effect")
            .always()
            .required()
            .go_type("v1.TaintEffect")
            .describe("NoSchedule, PreferNoSchedule or NoExecute."),
        message(4, "timeAdded", &TIME).pointer().describe("When it was set; for NoExecute."),
    ],
);

static NODE_CONFIG_SOURCE: Message =
    Message::new("NodeConfigSource", &[message(2, "configMap", &CONFIG_MAP_NODE_CONFIG_SOURCE).pointer()]);

static CONFIG_MAP_NODE_CONFIG_SOURCE: Message = Message::new(
    "ConfigMapNodeConfigSource",
    &[
        string(1, "namespace").always().required(),
        string(2, "name").always().required(),
        string(3, "uid").go_type("types.UID").go("UID"),
        string(4, "resourceVersion"),
        string(5, "kubeletConfigKey").always().required(),
    ],
);

static NODE_STATUS: Message = Message::new(
    "NodeStatus",
    &[
        message(1, "capacity", &QUANTITY).map().container_type("v1.ResourceList").describe("All that the node has."),
        message(2, "allocatable", &QUANTITY)
            .map()
            .container_type("v1.ResourceList")
            .describe("What of it pods may use."),
        string(3, "phase").go_type("v1.NodePhase").describe("No longer used."),
        message(4, "conditions", &NODE_CONDITION)
            .list()
            .map_by(&["type"])
            .merge_by("type")
            .describe("What is known of the node."),
        message(5, "addresses", &NODE_ADDRESS)
            .list()
            .map_by(&["type"])
            .merge_by("type")
            .describe("Where the node is reached."),
        message(6, "daemonEndpoints", &NODE_DAEMON_ENDPOINTS).describe("Where its daemons listen."),
        message(7, "nodeInfo", &NODE_SYSTEM_INFO).describe("What the node says of itself."),
        message(8, "images", &CONTAINER_IMAGE).list().atomic().describe("Images that are on the node."),
        string(9, "volumesInUse").list().atomic().go_type("v1.UniqueVolumeName").describe("Volumes that are mounted."),
        message(10, "volumesAttached", &ATTACHED_VOLUME).list().atomic().describe("Volumes that are attached."),
        message(11, "config", &NODE_CONFIG_STATUS).pointer().describe("No longer used."),
        message(12, "runtimeHandlers", &NODE_RUNTIME_HANDLER)
            .list()
            .atomic()
            .describe("What runs containers on the node."),
        message(13, "features", &NODE_FEATURES).pointer().describe("What the runtime can do."),
        string(14, "declaredFeatures").list().atomic().describe("Features that the node speaks of."),
    ],
);

static NODE_CONDITION: Message = Message::new(
    "NodeCondition",
    &[
        string(1, "type").always().required().go_type("v1.NodeConditionType"),
        string(2, "status").always().required().go_type("v1.ConditionStatus"),
        message(3, "lastHeartbeatTime", &TIME),
        message(4, "lastTransitionTime", &TIME),
        string(5, "reason"),
        string(6, "message"),
    ],
);

static NODE_ADDRESS: Message = Message::new(
    "NodeAddress",
    &[string(1, "type").always().required().go_type("v1.NodeAddressType"), string(2, "address").always().required()],
);

static NODE_DAEMON_ENDPOINTS: Message =
    Message::new("NodeDaemonEndpoints", &[message(1, "kubeletEndpoint", &DAEMON_ENDPOINT)]);

static DAEMON_ENDPOINT: Message = Message::new("DaemonEndpoint", &[int32(1, "Port").always().required()]);

static NODE_SYSTEM_INFO: Message = Message::new(
    "NodeSystemInfo",
    &[
        string(1, "machineID").always().required(),
        string(2, "systemUUID").always().required(),
        string(3, "bootID").always().required(),
        string(4, "kernelVersion").always().required(),
        string(5, "osImage").always().required().go("OSImage"),
        string(6, "containerRuntimeVersion").always().required(),
        string(7, "kubeletVersion").always().required(),
        string(8, "kubeProxyVersion").always().required(),
        string(9, "operatingSystem").always().required(),
        string(10, "architecture").always().required(),
        message(11, "swap", &NODE_SWAP_STATUS).pointer(),
        boolean(12, "runningInUserNamespace").pointer(),
    ],
);

static NODE_SWAP_STATUS: Message = Message::new("NodeSwapStatus", &[int64(1, "capacity").pointer()]);

static CONTAINER_IMAGE: Message =
    Message::new("ContainerImage", &[string(1, "names").list().always().atomic(), int64(2, "sizeBytes")]);

static ATTACHED_VOLUME: Message = Message::new(
    "AttachedVolume",
    &[
        string(1, "name").always().required().go_type("v1.UniqueVolumeName"),
        string(2, "devicePath").always().required(),
    ],
);

static NODE_CONFIG_STATUS: Message = Message::new(
    "NodeConfigStatus",
    &[
        message(1, "assigned", &NODE_CONFIG_SOURCE).pointer(),
        message(2, "active", &NODE_CONFIG_SOURCE).pointer(),
        message(3, "lastKnownGood", &NODE_CONFIG_SOURCE).pointer(),
        string(4, "error"),
    ],
);

static NODE_RUNTIME_HANDLER: Message = Message::new(
    "NodeRuntimeHandler",
    &[string(1, "name").always(), message(2, "features", &NODE_RUNTIME_HANDLER_FEATURES).pointer()],
);

static NODE_RUNTIME_HANDLER_FEATURES: Message = Message::new(
    "NodeRuntimeHandlerFeatures",
    &[boolean(1, "recursiveReadOnlyMounts").pointer(), boolean(2, "userNamespaces").pointer()],
);

static NODE_FEATURES: Message = Message::new("NodeFeatures", &[boolean(1, "supplementalGroupsPolicy").pointer()]);

static LIST: Message = Message::object("NodeList", &[LIST_METADATA, items(&NODE)]);

struct Node;

impl Strategy for Node {
    fn set_typed_defaults(&self, object: &mut Value) {
        set_addresses(object);
        let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) else { return };
        if let Some(capacity) = status.get("capacity").filter(|_| !status.contains_key("allocatable")) {
            let capacity = capacity.clone();
            status.insert("allocatable", capacity);
        }
    }

    fn validate_create(&self, _: &ServedVersion, object: &Value) -> ErrorList {
        let mut errors = metadata::validate(object, false, names::name_is_dns1123_subdomain);
        errors.extend(validate_taints(object));
        for name in ["capacity", "allocatable"] {
            errors.extend(validate_quantities(object, name));
        }
        errors.extend(validate_ranges(object));
        errors
    }

    fn prepare_update(&self, _: &ServedVersion, subresource: Subresource, new: &mut Value, old: &Value) {
        let kept = if subresource == Subresource::Status { "spec" } else { "status" };
        match old.get(kept) {
            Some(value) => _ = new.make_object().insert(kept, value.clone()),
            None => _ = new.make_object().remove(kept),
        }
    }

    fn validate_update(&self, _: &ServedVersion, _: Subresource, new: &Value, old: &Value) -> ErrorList {
        let mut errors = metadata::validate_update(new, old);
        errors.extend(validate_addresses(new));
        errors.extend(validate_quantities(new, "capacity"));
        errors.extend(validate_kept(new, old));
        errors.extend(validate_taints(new));
        errors
    }

    fn unknown_field_label(&self, _: &ServedVersion, field: &str) -> String {
        format!("field label not supported: {field}")
    }

    fn select(&self, object: &Value, field: &str) -> Option<String> {
        let is_unschedulable = object.at(&["spec", "unschedulable"]).and_then(Value::as_bool).unwrap_or_default();
        (field == "spec.unschedulable").then(|| is_unschedulable.to_string())
    }

    fn table(&self) -> Option<Table> {
        Some(table())
    }

    fn reset_fields(&self, _: &ServedVersion, subresource: Subresource) -> &'static [&'static [&'static str]] {
        match subresource {
            Subresource::Status => &[&["spec"]],
            _ => &[&["status"]],
        }
    }
}

/// One range of addresses and a list of them say the same.
fn set_addresses(node: &mut Value) {
    let Some(spec) = node.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let first = spec.get("podCIDRs").and_then(Value::as_array).and_then(|ranges| ranges.first()).cloned();
    match (first, spec.get("podCIDR").cloned()) {
        (Some(first), _) => _ = spec.insert("podCIDR", first),
        (None, Some(only)) => _ = spec.insert("podCIDRs", Value::Array(vec![only])),
        (None, None) => {}
    }
}

fn validate_taints(node: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let spec = Path::new("spec");
    let taints = spec.child("taints");
    let mut seen = BTreeSet::new();
    for (index, taint) in node.items_at(&["spec", "taints"]).iter().enumerate() {
        let path = taints.index(index);
        let text = |name: &str| taint.str_at(&[name]);
        let (key, value, effect) = (text("key"), text("value"), text("effect"));
        let faults = names::is_qualified_name(key).into_iter();
        errors.extend(faults.map(|fault| Error::invalid(&path.child("key"), key, fault)));
        let faults = names::is_valid_label_value(value);
        if !faults.is_empty() {
            errors.push(Error::invalid(&path.child("value"), value, faults.join(";")));
        }
        match effect {
            "" => errors.push(Error::required(&path.child("effect"), "")),
            _ if !EFFECTS.contains(&effect) => {
                errors.push(Error::not_supported(&path.child("effect"), effect, &EFFECTS));
            }
            _ => {}
        }
        if !seen.insert((effect, key)) {
            let added = taint.get("timeAdded").unwrap_or(&Value::Null);
            let shown = show(&[
                ("Key", Value::from(key)),
                ("Value", Value::from(value)),
                ("Effect", Value::from(effect)),
                ("TimeAdded", added.clone()),
            ]);
            let mut error = Error::duplicate(&path, Value::Null).shown_as(shown);
            error.detail = "taints must be unique by key and effect pair".to_owned();
            errors.push(error);
        }
    }
    errors
}

/// A struct as field errors show it: with the names of Go's internal types.
fn show(fields: &[(&str, Value)]) -> String {
    let fields = fields.iter().map(|(name, value)| format!("\"{name}\":{}", json::encode_to_string(value)));
    format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
}

/// Amounts are not negative.
fn validate_quantities(node: &Value, name: &str) -> ErrorList {
    let status = Path::new("status");
    let path = status.child(name);
    let amounts = node.at(&["status", name]).and_then(Value::as_object);
    let negative = amounts.into_iter().flat_map(|amounts| amounts.iter()).filter(|(_, amount)| {
        let amount = Quantity::parse(amount.as_str().unwrap_or_default());
        amount.is_ok_and(|amount| amount.signum() < 0)
    });
    let error = |(key, amount): (&str, &Value)| {
        Error::invalid(&path.key(key), amount.clone(), "must be greater than or equal to 0")
    };
    negative.map(error).collect()
}

/// At most one range of addresses for each family.
fn validate_ranges(node: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let spec = Path::new("spec");
    let path = spec.child("podCIDRs");
    let ranges = node.items_at(&["spec", "podCIDRs"]);
    let mut families = Vec::new();
    for (index, range) in ranges.iter().enumerate() {
        let text = range.as_str().unwrap_or_default();
        match Prefix::parse(text) {
            Ok(range) => families.push(range.ip.is_ipv4()),
            Err(_) => {
                let why = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
                errors.push(Error::invalid(&path.index(index), text, why));
            }
        }
    }
    let is_pair = ranges.len() == 2 && families.len() == 2 && families[0] != families[1];
    if ranges.len() > 1 && !is_pair {
        let why = "may specify no more than one CIDR for each IP family";
        errors.push(Error::invalid(&path, ranges.to_vec(), why));
    }
    errors
}

fn validate_addresses(node: &Value) -> ErrorList {
    let status = Path::new("status");
    let path = status.child("addresses");
    let addresses = node.items_at(&["status", "addresses"]).iter().enumerate();
    let mut seen = Vec::new();
    let repeated = addresses.filter(|(_, address)| {
        let is_known = seen.contains(address);
        seen.push(*address);
        is_known
    });
    let error = |(index, address): (usize, &Value)| {
        let text = |name: &str| Value::from(address.str_at(&[name]));
        let shown = show(&[("Type", text("type")), ("Address", text("address"))]);
        Error::duplicate(&path.index(index), Value::Null).shown_as(shown)
    };
    repeated.map(error).collect()
}

/// Where a node is, and who made it, does not change.
fn validate_kept(new: &Value, old: &Value) -> ErrorList {
    const CHANGES: [&str; 6] = ["taints", "unschedulable", "podCIDR", "podCIDRs", "providerID", "podPreemptionPolicy"];
    let mut errors = ErrorList::new();
    let spec = Path::new("spec");
    for (name, called) in [("podCIDRs", "podCIDR"), ("providerID", "providerID")] {
        let of = |node: &Value| node.at(&["spec", name]).cloned();
        if of(old).is_some() && of(old) != of(new) {
            let why = format!("node updates may not change {called} except from \"\" to valid");
            errors.push(Error::forbidden(&spec.child(name), why));
        }
    }
    let rest = |node: &Value| {
        let mut spec = node.get("spec").and_then(Value::as_object).cloned().unwrap_or_default();
        CHANGES.iter().for_each(|name| _ = spec.remove(name));
        spec
    };
    if rest(new) != rest(old) {
        let why = "node updates may only change labels, taints, or capacity";
        errors.push(Error::forbidden(&Path::new(""), why));
    }
    errors
}

fn table() -> Table {
    let wide = |name, description| Column { priority: 1, ..Column::string(name, description) };
    const VERSION: &str = "Kubelet Version reported by the node.";
    const ADDRESSES: &str = "List of addresses reachable to the node. Queried from cloud provider, if available. More info: \
                             https://kubernetes.io/docs/reference/node/node-status/#addresses Note: This field is declared as \
                             mergeable, but the merge key is not sufficiently unique, which can cause data corruption when it \
                             is merged. Callers should instead use a full-replacement patch. See https://pr.k8s.io/79391 for \
                             an example. Consumers should assume that addresses can change during the lifetime of a Node. \
                             However, there are some exceptions where this may not be possible, such as Pods that inherit a \
                             Node's address in its own status or consumers of the downward API (status.hostIP).";
    const IMAGE: &str = "OS Image reported by the node from /etc/os-release (e.g. Debian GNU/Linux 7 (wheezy)).";
    const KERNEL: &str = "Kernel Version reported by the node from 'uname -r' (e.g. 3.16.0-0.bpo.4-amd64).";
    const RUNTIME: &str =
        "ContainerRuntime Version reported by the node through runtime remote API (e.g. containerd://1.4.2).";
    Table {
        columns: vec![
            Column { format: "name".to_owned(), ..Column::string("Name", "") },
            Column::string("Status", "The status of the node"),
            Column::string("Roles", "The roles of the node"),
            Column::string("Age", ""),
            Column::string("Version", VERSION),
            wide("Internal-IP", ADDRESSES),
            wide("External-IP", ADDRESSES),
            wide("OS-Image", IMAGE),
            wide("Kernel-Version", KERNEL),
            wide("Container-Runtime", RUNTIME),
        ],
        cells,
    }
}

fn cells(node: &Value) -> Vec<Cell> {
    let or = |text: &str, otherwise: &str| Cell::text(if text.is_empty() { otherwise } else { text });
    let info = |name: &str| node.str_at(&["status", "nodeInfo", name]);
    let address = |type_: &str| {
        let addresses = node.items_at(&["status", "addresses"]);
        let found = addresses.iter().find(|address| address.str_at(&["type"]) == type_);
        or(found.map_or("", |address| address.str_at(&["address"])), "<none>")
    };
    let mut cells = Cell::named(node, vec![Cell::text(&state(node)), or(&roles(node).join(","), "<none>")]);
    cells.extend([
        Cell::text(info("kubeletVersion")),
        address("InternalIP"),
        address("ExternalIP"),
        or(info("osImage"), "<unknown>"),
        or(info("kernelVersion"), "<unknown>"),
        or(info("containerRuntimeVersion"), "<unknown>"),
    ]);
    cells
}

fn state(node: &Value) -> String {
    let conditions = node.items_at(&["status", "conditions"]);
    let ready = conditions.iter().rev().find(|condition| condition.str_at(&["type"]) == "Ready");
    let mut state = match ready.map(|condition| condition.str_at(&["status"])) {
        None => "Unknown".to_owned(),
        Some("True") => "Ready".to_owned(),
        Some(_) => "NotReady".to_owned(),
    };
    if node.at(&["spec", "unschedulable"]).and_then(Value::as_bool) == Some(true) {
        state.push_str(",SchedulingDisabled");
    }
    state
}

fn roles(node: &Value) -> Vec<String> {
    const PREFIX: &str = "node-role.kubernetes.io/";
    let labels = node.at(&["metadata", "labels"]).and_then(Value::as_object);
    let roles = labels.into_iter().flat_map(|labels| labels.iter()).filter_map(|(label, value)| {
        let role = match label {
            "kubernetes.io/role" => value.as_str()?,
            _ => label.strip_prefix(PREFIX)?,
        };
        (!role.is_empty()).then(|| role.to_owned())
    });
    roles.collect::<BTreeSet<_>>().into_iter().collect()
}

#[cfg(test)]
mod tests {
    use k8s_pb::api::core::v1;

    use super::*;
    use crate::kinds::wire_tests;

    #[test]
    fn the_wire_is_that_of_kubernetes() {
        wire_tests::agree::<v1::Node, v1::NodeList>(KINDS[0]);
    }
}
