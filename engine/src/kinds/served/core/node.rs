//! Node, core/v1.
//!
//! Source: the types of `k8s.io/api/core/v1`, defaults, validation and columns of Kubernetes 1.37.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use crate::crd::{Column, Scope, ServedVersion};
use crate::meta::field::{Error, ErrorList, Path};
use crate::meta::field_ref::FieldRef;
use crate::meta::gate::Gate;
use crate::meta::minor::Minor;
use crate::meta::names;
use crate::types;
use crate::value::{Map, Value, go_quote};
use crate::work;

use crate::kinds::features::{self, Feature};
use crate::kinds::network::addresses::{check_prefix, parse_lenient_prefix, prefix_warnings};
use crate::kinds::strategy::{Cell, Strategy, Subresource, Table};
use crate::kinds::{Action, CONNECTING_VERBS, Kind, Part, declared, defaults, metadata, nodes, prepare, resources};

/// The maximum length in bytes of a feature's name.
const FEATURE_BYTES_MAX: usize = 253;
const FEATURES: [Feature; 3] = [
    Feature::new(Gate::SupplementalGroupsPolicy, &["status.features"]),
    Feature::new(Gate::NodeDeclaredFeatures, &["status.declaredFeatures"]),
    Feature::new(Gate::InPlacePodVerticalScalingSchedulerPreemption, &["spec.podPreemptionPolicy"]),
];

pub static KINDS: [&Kind; 1] = [&Kind {
    plural: "nodes",
    singular: "node",
    short_names: &["no"],
    scope: Scope::Cluster,
    status: true,
    parts: &[Part::new("proxy", CONNECTING_VERBS, Some(&PROXY_OPTIONS), Action::ConnectNode)],
    selectable_fields: &[".spec.unschedulable"],
    example: r"
metadata: {name: example}
spec: {podCIDR: 10.0.0.0/24, podCIDRs: [10.0.0.0/24], taints: [{key: dedicated, value: tests, effect: NoSchedule}]}
status: {capacity: {cpu: '2', memory: 4Gi}, allocatable: {cpu: '2', memory: 4Gi}}
",
    ..Kind::new("", "v1", "Node", &Node)
}];

/// The query options of `/proxy`.
static PROXY_OPTIONS: Kind = Kind::new("", "v1", "NodeProxyOptions", &crate::kinds::strategy::Unchecked);

struct Node;

impl Strategy for Node {
    fn set_typed_defaults(&self, object: &mut Value) {
        set_addresses(object);
        let Some(status) = object.get_mut("status") else { return };
        for list in ["capacity", "allocatable"] {
            resources::set_list_defaults(defaults::field(status, list));
        }
        let status = status.make_object();
        if let Some(capacity) = status.get("capacity").filter(|_| !status.contains_key("allocatable")) {
            let capacity = capacity.clone();
            status.insert("allocatable", capacity);
        }
    }

    fn keep_empty(&self, sent: &Value, decoded: &mut Value) {
        // An empty `allocatable` is not the same as an absent one.
        let is_none = sent.at(&["status", "allocatable"]).and_then(Value::as_object).is_some_and(Map::is_empty);
        if let Some(status) = decoded.get_mut("status").filter(|_| is_none) {
            status.make_object().remove("allocatable");
        }
    }

    fn validate_create(&self, version: &ServedVersion, object: &Value) -> ErrorList {
        let mut errors = validate(version.minor, object);
        errors.extend(validate_preemption(version.minor, object, None));
        errors
    }

    fn prepare_create(&self, version: &ServedVersion, object: &mut Value) {
        drop_kubelet_configuration(object, None);
        drop_disabled_fields(version.minor, object, None);
    }

    fn prepare_update(&self, version: &ServedVersion, subresource: Subresource, new: &mut Value, old: &Value) {
        prepare::keep_other(subresource, new, old);
        drop_kubelet_configuration(new, Some(old));
        drop_disabled_fields(version.minor, new, Some(old));
    }

    fn validate_update(
        &self,
        version: &ServedVersion,
        subresource: Subresource,
        new: &Value,
        old: &Value,
    ) -> ErrorList {
        // As in the reference, the checks of an update come after all checks of a create.
        let mut errors = match subresource {
            Subresource::Status => ErrorList::new(),
            _ => validate(version.minor, new),
        };
        errors.extend(metadata::validate_update(new, old));
        errors.extend(nodes::validate_annotations(new));
        for name in ["capacity", "allocatable"] {
            errors.extend(validate_quantities(new, name));
        }
        errors.extend(validate_features(new));
        errors.extend(validate_addresses(new));
        errors.extend(validate_kept(new, old));
        errors.extend(validate_taints(new));
        errors.extend(validate_external_id(new, old));
        errors.extend(validate_preemption(version.minor, new, Some(old)));
        errors
    }

    fn warnings(&self, _: &ServedVersion, subresource: Subresource, new: &Value, _: Option<&Value>) -> Vec<String> {
        if subresource == Subresource::Main { warnings(new) } else { Vec::new() }
    }

    fn stored_as(&self) -> Option<&'static str> {
        Some("minions")
    }

    fn lists_field_labels(&self) -> bool {
        true
    }

    fn select(&self, object: &Value, field: &str) -> Option<String> {
        let is_unschedulable = object.at(&["spec", "unschedulable"]).and_then(Value::as_bool).unwrap_or_default();
        (field == "spec.unschedulable").then(|| is_unschedulable.to_string())
    }

    fn table(&self) -> Option<Table> {
        Some(table())
    }
}

/// Validates a node, independently of its previous state.
fn validate(minor: Minor, object: &Value) -> ErrorList {
    let mut errors = metadata::validate(object, false, names::name_is_dns1123_subdomain);
    errors.extend(nodes::validate_annotations(object));
    errors.extend(validate_taints(object));
    for name in ["capacity", "allocatable"] {
        errors.extend(validate_quantities(object, name));
    }
    errors.extend(validate_swap(object));
    errors.extend(validate_features(object));
    errors.extend(validate_ranges(minor, object));
    errors
}

/// Validates `podPreemptionPolicy` by the markers of the type.
fn validate_preemption(minor: Minor, new: &Value, old: Option<&Value>) -> ErrorList {
    let message = types::message_named("core.v1", "NodeSpec");
    let (new, old) = (FieldRef::root(new), old.map(FieldRef::root));
    let (spec, old_spec) = (new.field("spec"), old.as_ref().map(|old| old.field("spec")));
    declared::validate_field(message, "podPreemptionPolicy", &spec, old_spec.as_ref(), minor)
}

fn drop_disabled_fields(minor: Minor, new: &mut Value, old: Option<&Value>) {
    features::drop_fields(&FEATURES, minor, new, old);
    let needs_handlers = [Gate::RecursiveReadOnlyMounts, Gate::UserNamespacesSupport];
    if let Some(status) = new.get_mut("status").and_then(Value::as_object_mut)
        && !needs_handlers.into_iter().any(|gate| minor.opens(gate))
    {
        status.remove("runtimeHandlers");
    }
}

/// Removes the kubelet configuration, which is no longer a feature, unless the object already has it.
fn drop_kubelet_configuration(new: &mut Value, old: Option<&Value>) {
    for (part, field) in [("spec", "configSource"), ("status", "config")] {
        let is_used = old.and_then(|old| old.at(&[part, field])).is_some_and(|used| !used.is_null());
        if let Some(part) = new.get_mut(part).and_then(Value::as_object_mut).filter(|_| !is_used) {
            part.remove(field);
        }
    }
}

/// Aligns `podCIDR` and `podCIDRs`; if they differ, the single range wins.
fn set_addresses(node: &mut Value) {
    let Some(spec) = node.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let first = spec.get("podCIDRs").and_then(Value::as_array).and_then(|ranges| ranges.first()).cloned();
    let only = spec.get("podCIDR").filter(|range| range.as_str().is_some_and(|range| !range.is_empty())).cloned();
    match (first, only) {
        (first, Some(only)) if first.as_ref() != Some(&only) => {
            spec.insert("podCIDRs", Value::Array(vec![only]));
        }
        (Some(first), None) => _ = spec.insert("podCIDR", first),
        _ => {}
    }
}

fn validate_taints(node: &Value) -> ErrorList {
    // The path is wrong, as in the reference.
    nodes::validate_taints(node.items_at(&["spec", "taints"]), &metadata::METADATA.child("taints"))
}

/// Validates the amounts of a list of resources, such as that they are not negative.
fn validate_quantities(node: &Value, name: &str) -> ErrorList {
    let root = FieldRef::root(node);
    let status = root.field("status");
    let amounts = status.field(name);
    let mut errors = ErrorList::new();
    // In the path, the name of an amount is written like that of a field.
    for (resource, _) in amounts.value().and_then(Value::as_object).into_iter().flat_map(Map::iter) {
        errors.extend(resources::validate_quantity(resource, &amounts.field(resource)));
    }
    errors
}

/// The warnings about a node that is accepted.
fn warnings(node: &Value) -> Vec<String> {
    /// The number of ranges for which there are warnings: more do not fit in a response.
    const RANGES_WARNED_OF_MAX: usize = 100;
    const SPEC: Path<'static> = Path::new("spec");
    let mut warnings = Vec::new();
    if node.at(&["spec", "configSource"]).is_some() {
        warnings.push("spec.configSource: the feature is removed".to_owned());
    }
    if !node.str_at(&["spec", "externalID"]).is_empty() {
        warnings.push("spec.externalID: this field is deprecated, and is unused by Kubernetes".to_owned());
    }
    let ranges = SPEC.child("podCIDRs");
    for (at, range) in node.items_at(&["spec", "podCIDRs"]).iter().enumerate().take(RANGES_WARNED_OF_MAX) {
        work::step();
        warnings.extend(prefix_warnings(&ranges.index(at), range.as_str().unwrap_or_default()));
    }
    warnings
}

fn validate_swap(node: &Value) -> Option<Error> {
    let capacity = node.at(&["status", "nodeInfo", "swap", "capacity"]).and_then(Value::as_i64)?;
    // The path is wrong, as in the reference.
    let metadata = Path::new("metadata");
    let path = metadata.child("nodeSwapStatus");
    (capacity <= 0).then(|| Error::invalid(&path.child("capacity"), capacity, "must be greater than zero"))
}

/// Checks that the features that a node declares have valid names and are sorted.
fn validate_features(node: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let status = Path::new("status");
    let path = status.child("declaredFeatures");
    let names: Vec<&str> = node.items_at(&["status", "declaredFeatures"]).iter().filter_map(Value::as_str).collect();
    for (index, name) in names.iter().enumerate() {
        errors.extend(feature_fault(name).map(|fault| Error::invalid(&path.index(index), *name, fault)));
        let Some(next) = names.get(index + 1) else { continue };
        let at = path.index(index + 1);
        match name.cmp(next) {
            Ordering::Less => {}
            Ordering::Equal => errors.push(Error::duplicate(&at, *next)),
            Ordering::Greater => errors.push(Error::invalid(&at, *next, "list must be sorted alphabetically")),
        }
    }
    errors
}

fn feature_fault(name: &str) -> Option<String> {
    let quoted = go_quote(name);
    if name.len() > FEATURE_BYTES_MAX {
        return Some(format!("invalid feature name {quoted}: must be no more than {FEATURE_BYTES_MAX} characters"));
    }
    let is_fit = |segment: &str| {
        segment.starts_with(|first: char| first.is_ascii_alphabetic())
            && segment.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    let is_named = name.starts_with(|first: char| first.is_ascii_uppercase()) && name.split('/').all(is_fit);
    (!is_named).then(|| {
        format!(
            "invalid feature name {quoted}: must start with an UpperCamelCase segment, with subsequent segments separated by \
             '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes"
        )
    })
}

/// Checks that there is at most one pod address range per family.
fn validate_ranges(minor: Minor, node: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let spec = Path::new("spec");
    let path = spec.child("podCIDRs");
    let ranges = node.items_at(&["spec", "podCIDRs"]);
    let mut families = Vec::new();
    let mut unread = None;
    for (index, range) in ranges.iter().enumerate() {
        let text = range.as_str().unwrap_or_default();
        errors.extend(check_prefix(minor, &path.index(index), text, []));
        match parse_lenient_prefix(text) {
            Some(range) => families.push(range.ip.is_ipv4()),
            None => _ = unread.get_or_insert((index, text)),
        }
    }
    if let Some((index, text)) = unread.filter(|_| ranges.len() > 1) {
        let why = format!(
            "invalid PodCIDRs. failed to check with dual stack with error:invalid CIDR[{index}]: <nil> (invalid CIDR address: {text})"
        );
        errors.push(Error::internal(&path, why));
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
        let shown = nodes::show(&[("Type", text("type")), ("Address", text("address"))]);
        Error::duplicate(&path.index(index), Value::Null).shown_as(shown)
    };
    repeated.map(error).collect()
}

/// Checks that the provider id and the pod address ranges do not change once they are set.
fn validate_kept(new: &Value, old: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let spec = Path::new("spec");
    let ranges = |node: &Value| node.items_at(&["spec", "podCIDRs"]).to_vec();
    let (kept, given) = (ranges(old), ranges(new));
    let changes = match kept.len() {
        0 => 0,
        length if length != given.len() => 1,
        _ => kept.iter().zip(&given).filter(|(old, new)| old != new).count(),
    };
    for _ in 0..changes {
        let why = "node updates may not change podCIDR except from \"\" to valid";
        errors.push(Error::forbidden(&spec.child("podCIDRs"), why));
    }
    let provider = |node: &Value| node.str_at(&["spec", "providerID"]).to_owned();
    if !provider(old).is_empty() && provider(old) != provider(new) {
        let why = "node updates may not change providerID except from \"\" to valid";
        errors.push(Error::forbidden(&spec.child("providerID"), why));
    }
    errors
}

fn validate_external_id(new: &Value, old: &Value) -> Option<Error> {
    let id = |node: &Value| node.str_at(&["spec", "externalID"]).to_owned();
    let spec = Path::new("spec");
    (id(new) != id(old)).then(|| Error::forbidden(&spec.child("externalID"), "may not be updated"))
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
    let kernel = match info("kernelVersion") {
        "" => "<unknown>",
        version => version,
    };
    let kernel = match info("architecture") {
        "" => kernel.to_owned(),
        architecture => format!("{kernel} ({architecture})"),
    };
    let mut cells = Cell::named(node, vec![Cell::text(&state(node)), or(&roles(node).join(","), "<none>")]);
    cells.extend([
        Cell::text(info("kubeletVersion")),
        address("InternalIP"),
        address("ExternalIP"),
        or(info("osImage"), "<unknown>"),
        Cell::text(&kernel),
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
