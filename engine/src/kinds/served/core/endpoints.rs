//! Endpoints, core/v1: the older form of [`crate::kinds::served::discovery::endpoint_slice`].
//!
//! Source: `pkg/registry/core/endpoint` and `pkg/apis/core/validation` of Kubernetes 1.37.

use crate::crd::{Column, ServedVersion};
use crate::kinds::checks::{named, port_number};
use crate::kinds::defaults::{items, set};
use crate::kinds::network::addresses::{address_warning, check_address, check_endpoint};
use crate::kinds::network::{check_app_protocol, check_optional_label, check_protocol, listed};
use crate::kinds::strategy::{Cell, Strategy, Subresource, Table};
use crate::kinds::{Kind, metadata};
use crate::meta::field::{Error, ErrorList, Path};
use crate::meta::field_ref::FieldRef;
use crate::meta::minor::Minor;
use crate::meta::names;
use crate::value::Value;

pub static KINDS: [&Kind; 1] = [&Kind {
    plural: "endpoints",
    singular: "endpoints",
    short_names: &["ep"],
    example: "metadata: {name: example}\nsubsets: [{addresses: [{ip: 10.1.2.3}], ports: [{name: http, port: 80}]}]",
    deprecation: Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"),
    ..Kind::new("", "v1", "Endpoints", &Endpoints)
}];

const MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";
const CONTROLLER: &str = "endpoint-controller";

struct Endpoints;

impl Strategy for Endpoints {
    fn set_typed_defaults(&self, object: &mut Value) {
        for subset in items(object, "subsets") {
            items(subset, "ports").for_each(|port| set(port, "protocol", "TCP"));
        }
    }

    fn validate_create(&self, version: &ServedVersion, object: &Value) -> ErrorList {
        validate(version.minor, object, None)
    }

    fn validate_update(&self, version: &ServedVersion, _: Subresource, new: &Value, old: &Value) -> ErrorList {
        let mut errors = metadata::validate_update(new, old);
        errors.extend(validate(version.minor, new, Some(old)));
        errors
    }

    fn warnings(&self, _: &ServedVersion, _: Subresource, new: &Value, _: Option<&Value>) -> Vec<String> {
        match new.at(&["metadata", "labels", MANAGED_BY]).and_then(Value::as_str) {
            Some(CONTROLLER) => Vec::new(),
            _ => warnings(new),
        }
    }

    fn stored_as(&self) -> Option<&'static str> {
        Some("services/endpoints")
    }

    fn creates_on_update(&self) -> bool {
        true
    }

    fn table(&self) -> Option<Table> {
        let columns = vec![Column::string("Endpoints", "Where the service is served, address and port.")];
        Some(Table::named(columns, |object| Cell::named(object, vec![Cell::text(&shown(object))])))
    }
}

fn validate(minor: Minor, object: &Value, old: Option<&Value>) -> ErrorList {
    let mut errors = metadata::validate(object, true, names::name_is_dns1123_subdomain);
    let subsets = |object: &Value| object.items_at(&["subsets"]).to_vec();
    let faults = validate_subsets(minor, object);
    // Values that were stored under older rules may be kept.
    if !faults.is_empty() && old.is_none_or(|old| subsets(old) != subsets(object)) {
        errors.extend(faults);
    }
    errors
}

fn validate_subsets(minor: Minor, object: &Value) -> ErrorList {
    let root = FieldRef::root(object);
    let mut errors = ErrorList::new();
    for subset in root.field("subsets").items() {
        let (ready, unready, ports) =
            (subset.field("addresses"), subset.field("notReadyAddresses"), subset.field("ports"));
        if ready.is_empty() && unready.is_empty() {
            errors.push(subset.required("must specify `addresses` or `notReadyAddresses`"));
        }
        for address in ready.items().chain(unready.items()) {
            errors.extend(validate_address(minor, &address));
        }
        let needs_names = ports.len() > 1;
        for port in ports.items() {
            errors.extend(check_optional_label(&port.field("name"), needs_names));
            let number = port.field("port");
            errors.extend(port_number(&number).map(|error| Error { bad_value: Some(number.int().into()), ..error }));
            errors.extend(check_protocol(&port.field("protocol")));
            errors.extend(check_app_protocol(&port.field("appProtocol")));
        }
    }
    errors
}

fn validate_address(minor: Minor, address: &FieldRef<'_>) -> ErrorList {
    let (ip, node) = (address.field("ip"), address.field("nodeName"));
    let mut errors = check_address(minor, ip.path(), ip.text(), []);
    errors.extend(check_optional_label(&address.field("hostname"), false));
    if node.is_set() {
        errors.extend(named(&node, names::is_dns1123_subdomain));
    }
    errors.extend(check_endpoint(ip.path(), ip.text()));
    errors
}

fn warnings(object: &Value) -> Vec<String> {
    let subsets = Path::new("subsets");
    let mut warnings = Vec::new();
    for (at, subset) in object.items_at(&["subsets"]).iter().enumerate() {
        let subset_path = subsets.index(at);
        for list in ["addresses", "notReadyAddresses"] {
            let path = subset_path.child(list);
            for (at, address) in subset.items_at(&[list]).iter().enumerate() {
                warnings.extend(address_warning(&path.index(at).child("ip"), address.str_at(&["ip"])));
            }
        }
    }
    warnings
}

/// The addresses with their ports, for the table; without ports if a subset has none.
fn shown(object: &Value) -> String {
    let subsets = object.items_at(&["subsets"]);
    if subsets.is_empty() {
        return "<none>".to_owned();
    }
    let endpoints = subsets.iter().flat_map(|subset| {
        let addresses = subset.items_at(&["addresses"]);
        let ports = subset.items_at(&["ports"]);
        let alone = addresses.iter().filter(|_| ports.is_empty()).map(|address| address.str_at(&["ip"]).to_owned());
        let pairs = ports.iter().flat_map(move |port| addresses.iter().map(move |address| joined(address, port)));
        alone.chain(pairs)
    });
    listed(endpoints, "")
}

fn joined(address: &Value, port: &Value) -> String {
    let (ip, port) = (address.str_at(&["ip"]), port.get("port").and_then(Value::as_i64).unwrap_or_default());
    if ip.contains(':') { format!("[{ip}]:{port}") } else { format!("{ip}:{port}") }
}
