//! EndpointSlice, discovery.k8s.io/v1.
//!
//! Source: `pkg/registry/discovery/endpointslice` and `pkg/apis/discovery` of Kubernetes 1.37.

use std::collections::{BTreeSet, HashSet};

use crate::crd::{Column, ServedVersion};
use crate::kinds::checks::{named, one_of};
use crate::kinds::defaults::items;
use crate::kinds::features::{self, Feature};
use crate::kinds::network::addresses::{
    address_warning, check_address, check_canonical_address, check_endpoint, parse_lenient,
};
use crate::kinds::network::names::check_fully_qualified;
use crate::kinds::network::{PROTOCOLS, check_app_protocol, check_optional_label, check_protocol, listed};
use crate::kinds::strategy::{Cell, Strategy, Subresource, Table};
use crate::kinds::{Kind, checks, metadata, prepare};
use crate::meta::field::{Error, ErrorList, Path};
use crate::meta::field_ref::FieldRef;
use crate::meta::gate::Gate;
use crate::meta::minor::Minor;
use crate::meta::{names, object_meta};
use crate::value::Value;

const FEATURES: [Feature; 1] = [Feature::new(Gate::PreferSameTrafficDistribution, &["endpoints.*.hints.forNodes"])];

pub static KINDS: [&Kind; 1] = [&Kind {
    plural: "endpointslices",
    singular: "endpointslice",
    example: r"
metadata: {name: example, labels: {kubernetes.io/service-name: example}}
addressType: IPv4
endpoints: [{addresses: [10.1.2.3], conditions: {ready: true}, nodeName: node-1}]
ports: [{name: http, port: 80}]
",
    ..Kind::new("discovery.k8s.io", "v1", "EndpointSlice", &EndpointSlice)
}];

const ADDRESSES_MAX: i64 = 100;
const ENDPOINTS_MAX: i64 = 1_000;
const HINTS_MAX: i64 = 8;
const PORTS_MAX: i64 = 20_000;
const TOPOLOGY_MAX: i64 = 16;
const HOSTNAME: &str = "kubernetes.io/hostname";
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
/// The controllers for whose objects there are no warnings.
const CONTROLLERS: [&str; 2] = ["endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"];

struct EndpointSlice;

impl Strategy for EndpointSlice {
    fn set_typed_defaults(&self, object: &mut Value) {
        for port in items(object, "ports") {
            for (name, value) in [("name", ""), ("protocol", "TCP")] {
                let field = port.make_object().entry(name);
                if field.is_null() {
                    *field = Value::from(value);
                }
            }
        }
    }

    fn prepare_create(&self, version: &ServedVersion, object: &mut Value) {
        features::drop_fields(&FEATURES, version.minor, object, None);
        prepare::first_generation(object);
        drop_topology(object, &BTreeSet::new());
    }

    fn validate_create(&self, version: &ServedVersion, object: &Value) -> ErrorList {
        validate(version.minor, object, None)
    }

    fn prepare_update(&self, version: &ServedVersion, _: Subresource, new: &mut Value, old: &Value) {
        features::drop_fields(&FEATURES, version.minor, new, Some(old));
        let is_same = |name: &str| items_of(new, name) == items_of(old, name);
        let labels = |object: &Value| object.at(&["metadata", "labels"]).filter(|labels| !labels.is_null()).cloned();
        let unchanged = is_same("endpoints")
            && is_same("ports")
            && new.get("addressType") == old.get("addressType")
            && labels(new) == labels(old);
        let endpoints_changed = !is_same("endpoints");
        if !unchanged {
            prepare::raise_generation(new, old);
        }
        if endpoints_changed {
            drop_topology(new, &topology_nodes(old));
        }
    }

    fn validate_update(&self, version: &ServedVersion, _: Subresource, new: &Value, old: &Value) -> ErrorList {
        let mut errors = validate(version.minor, new, Some(old));
        let (new, old) = (FieldRef::root(new), FieldRef::root(old));
        errors.extend(checks::unchanged_as_json(&new.field("addressType"), &old.field("addressType")));
        errors
    }

    fn warnings(&self, _: &ServedVersion, _: Subresource, new: &Value, old: Option<&Value>) -> Vec<String> {
        let mut warnings = Vec::new();
        if old.is_none() && new.str_at(&["addressType"]) == "FQDN" {
            warnings.push("spec.addressType: FQDN endpoints are deprecated".to_owned());
        }
        if !CONTROLLERS.contains(&new.str_at(&["metadata", "labels", MANAGED_BY])) {
            warnings.extend(address_warnings(new));
        }
        warnings
    }

    fn table(&self) -> Option<Table> {
        Some(table())
    }
}

fn items_of<'v>(object: &'v Value, name: &str) -> &'v [Value] {
    object.items_at(&[name])
}

/// Removes the topology of an older API version; sets the node's name from it if the stored object already had that
/// node.
fn drop_topology(object: &mut Value, nodes: &BTreeSet<String>) {
    for endpoint in items(object, "endpoints") {
        let Some(topology) = endpoint.make_object().remove("deprecatedTopology") else { continue };
        let node = topology.str_at(&[HOSTNAME]);
        let is_known = nodes.contains(node) && names::is_dns1123_subdomain(node).is_empty();
        if is_known && endpoint.get("nodeName").is_none_or(Value::is_null) {
            endpoint.make_object().insert("nodeName", Value::from(node));
        }
    }
}

fn topology_nodes(object: &Value) -> BTreeSet<String> {
    let nodes = items_of(object, "endpoints").iter().map(|endpoint| endpoint.str_at(&["deprecatedTopology", HOSTNAME]));
    nodes.filter(|node| !node.is_empty()).map(str::to_owned).collect()
}

fn validate(minor: Minor, object: &Value, old: Option<&Value>) -> ErrorList {
    let root = FieldRef::root(object);
    let mut errors = metadata::validate(object, true, names::name_is_dns1123_subdomain);
    let address_type = root.field("addressType");
    errors.extend(match address_type.text() {
        "" => Some(address_type.required("")),
        _ => one_of(&address_type, &["FQDN", "IPv4", "IPv6"]),
    });
    errors.extend(validate_ports(&root.field("ports")));
    let faults = validate_endpoints(minor, &root.field("endpoints"), address_type.text());
    // Values that were stored under older rules may be kept.
    if !faults.is_empty() && old.is_none_or(|old| items_of(old, "endpoints") != items_of(object, "endpoints")) {
        errors.extend(faults);
    }
    errors
}

/// The error for a list of more than `max` items.
fn too_many(list: &FieldRef<'_>, max: i64) -> Option<Error> {
    let is_too_long = i64::try_from(list.len()).is_ok_and(|len| len > max);
    is_too_long.then(|| list.too_many(max))
}

fn validate_ports(ports: &FieldRef<'_>) -> ErrorList {
    if let Some(error) = too_many(ports, PORTS_MAX) {
        return error.into();
    }
    let mut errors = ErrorList::new();
    let mut seen = HashSet::new();
    for port in ports.items() {
        let name = port.field("name");
        errors.extend(check_optional_label(&name, false));
        if !seen.insert(name.text().to_owned()) {
            errors.push(name.duplicate());
        }
        errors.extend(match port.field("protocol") {
            protocol if protocol.is_set() && protocol.text().is_empty() => one_of(&protocol, &PROTOCOLS),
            protocol => check_protocol(&protocol),
        });
        errors.extend(check_app_protocol(&port.field("appProtocol")));
    }
    errors
}

fn validate_endpoints(minor: Minor, endpoints: &FieldRef<'_>, address_type: &str) -> ErrorList {
    if let Some(error) = too_many(endpoints, ENDPOINTS_MAX) {
        return error.into();
    }
    let mut errors = ErrorList::new();
    for endpoint in endpoints.items() {
        let (addresses, topology) = (endpoint.field("addresses"), endpoint.field("deprecatedTopology"));
        errors.extend(match addresses.len() {
            0 => Some(addresses.required("must contain at least 1 address")),
            _ => too_many(&addresses, ADDRESSES_MAX),
        });
        for address in addresses.items() {
            errors.extend(validate_address(minor, &address, addresses.path(), address_type));
        }
        let node = endpoint.field("nodeName");
        if node.is_set() {
            errors.extend(named(&node, names::is_dns1123_subdomain));
        }
        errors.extend(too_many(&topology, TOPOLOGY_MAX));
        errors.extend(object_meta::validate_labels(topology.value().unwrap_or(&Value::Null), topology.path()));
        let hostname = endpoint.field("hostname");
        if hostname.is_set() {
            errors.extend(named(&hostname, names::is_dns1123_label));
        }
        errors.extend(validate_hints(&endpoint.field("hints")));
    }
    errors
}

/// Validates an address of the slice's type. An address of the other family is reported at the list.
fn validate_address(minor: Minor, address: &FieldRef<'_>, list: &Path<'_>, address_type: &str) -> ErrorList {
    let (path, text) = (address.path(), address.text());
    let mut errors = match address_type {
        "IPv4" => check_address(minor, path, text, []),
        "IPv6" => check_canonical_address(path, text),
        "FQDN" => return check_fully_qualified(path, text),
        _ => return ErrorList::new(),
    };
    if errors.is_empty() {
        let is_v4 = parse_lenient(text).is_some_and(|ip| ip.is_ipv4());
        if is_v4 != (address_type == "IPv4") {
            errors.push(Error::invalid(list, text, format!("must be an {address_type} address")));
        }
        errors.extend(check_endpoint(path, text));
    }
    errors
}

fn validate_hints(hints: &FieldRef<'_>) -> ErrorList {
    let (zones, nodes) = (hints.field("forZones"), hints.field("forNodes"));
    if let Some(error) = too_many(&zones, HINTS_MAX) {
        return error.into();
    }
    let mut errors = validate_named(&zones, names::is_valid_label_value);
    match too_many(&nodes, HINTS_MAX) {
        Some(error) => errors.push(error),
        None => errors.extend(validate_named(&nodes, names::is_dns1123_subdomain)),
    }
    errors
}

/// Validates a list of items with unique names.
fn validate_named(list: &FieldRef<'_>, check: fn(&str) -> Vec<String>) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen = HashSet::new();
    for item in list.items() {
        let name = item.field("name");
        if !seen.insert(name.text().to_owned()) {
            errors.push(name.duplicate());
        }
        errors.extend(check(name.text()).into_iter().map(|fault| Error::invalid(name.path(), name.text(), fault)));
    }
    errors
}

fn address_warnings(object: &Value) -> Vec<String> {
    let endpoints = Path::new("endpoints");
    let mut warnings = Vec::new();
    for (at, endpoint) in items_of(object, "endpoints").iter().enumerate() {
        let path = endpoints.index(at);
        let path = path.child("addresses");
        for (at, address) in endpoint.items_at(&["addresses"]).iter().enumerate() {
            warnings.extend(address_warning(&path.index(at), address.as_str().unwrap_or_default()));
        }
    }
    warnings
}

fn table() -> Table {
    let columns = vec![
        Column::string("AddressType", "What the addresses are: IPv4, IPv6 or names."),
        Column::string("Ports", "The ports of every endpoint."),
        Column::string("Endpoints", "The addresses of the endpoints."),
    ];
    Table::named(columns, |object| {
        let port = |port: &Value| match port.get("port").and_then(Value::as_i64) {
            Some(number) => number.to_string(),
            None => port.at(&["name"]).and_then(Value::as_str).unwrap_or("*").to_owned(),
        };
        let ports = listed(items_of(object, "ports").iter().map(port), "");
        let addresses = items_of(object, "endpoints").iter().flat_map(|endpoint| endpoint.items_at(&["addresses"]));
        let addresses = listed(addresses.map(|address| address.as_str().unwrap_or_default().to_owned()), "<unset>");
        let ports = if ports.is_empty() { "<unset>" } else { &ports };
        Cell::named(
            object,
            vec![Cell::text(object.str_at(&["addressType"])), Cell::text(ports), Cell::text(&addresses)],
        )
    })
}
