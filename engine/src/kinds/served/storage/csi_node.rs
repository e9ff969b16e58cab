//! CSINode, storage.k8s.io/v1: the CSI drivers on a node.
//!
//! Source: `pkg/apis/storage` and `pkg/registry/storage/csinode` of Kubernetes 1.36, with the types of 1.37.

use std::collections::{HashMap, HashSet};

use crate::crd::{Scope, ServedVersion};
use crate::kinds::node_selector;
use crate::kinds::storage::{columns, drivers};
use crate::kinds::strategy::{Cell, Strategy, Subresource, Table};
use crate::kinds::{Kind, checks, metadata, semantic, show_internal, type_of};
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::gate::Gate;
use crate::meta::minor::Minor;
use crate::meta::names;
use crate::types::Message;
use crate::value::Value;

/// The field of a feature that is off.
const DISABLED: &str = "status";
const NODE_ID_BYTES_MAX: usize = 256;

pub static KINDS: [&Kind; 1] = [&Kind {
    plural: "csinodes",
    singular: "csinode",
    scope: Scope::Cluster,
    example: "metadata: {name: example}\nspec: {drivers: [{name: disks.example.com, nodeID: a, topologyKeys: [zone]}]}",
    ..Kind::new("storage.k8s.io", "v1", "CSINode", &CsiNode)
}];

struct CsiNode;

impl Strategy for CsiNode {
    fn set_typed_defaults(&self, object: &mut Value) {
        object.make_object().remove(DISABLED);
    }

    fn zero(&self, version: &ServedVersion) -> Value {
        let message = type_of(&version.api_version(), &version.names.kind);
        let mut zero = message.map_or(Value::Null, Message::zero);
        zero.make_object().remove(DISABLED);
        zero
    }

    fn validate_create(&self, _: &ServedVersion, object: &Value) -> ErrorList {
        let mut errors = metadata::validate(object, false, names::name_is_dns1123_subdomain);
        let root = FieldRef::root(object);
        let spec = root.field("spec");
        let mut names = HashSet::new();
        for driver in spec.field("drivers").items() {
            let is_new = names.insert(driver.field("name").text().to_owned());
            errors.extend(validate_driver(&driver, is_new));
        }
        errors
    }

    fn validate_update(&self, version: &ServedVersion, _: Subresource, new: &Value, old: &Value) -> ErrorList {
        let mut errors = self.validate_create(version, new);
        errors.extend(validate_kept(version.minor, new, old));
        errors
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn returns_deleted(&self) -> bool {
        true
    }

    fn table(&self) -> Option<Table> {
        let columns = vec![columns::typed("Drivers", "integer", "How many drivers are on the node.")];
        Some(Table::named(columns, |node| {
            Cell::named(node, vec![Cell::count(node.items_at(&["spec", "drivers"]).len())])
        }))
    }
}

fn validate_driver(driver: &FieldRef<'_>, is_new: bool) -> ErrorList {
    let (name, node) = (driver.field("name"), driver.field("nodeID"));
    let mut errors = drivers::validate_name(&name);
    if node.is_empty() {
        errors.push(node.required(""));
    }
    if node.text().len() > NODE_ID_BYTES_MAX {
        errors.push(node.invalid(format!("must be {NODE_ID_BYTES_MAX} characters or less")));
    }
    let allocatable = driver.field("allocatable");
    errors.extend(checks::not_negative(&allocatable.field("count")));
    if !is_new {
        errors.push(name.duplicate());
    }
    errors.extend(validate_topology_keys(driver));
    errors
}

/// Validates the topology keys. Their errors are reported at the driver.
fn validate_topology_keys(driver: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut keys = HashSet::new();
    for key in driver.field("topologyKeys").items() {
        let key = FieldRef::new(key.value(), *driver.path());
        if key.is_empty() {
            errors.push(key.required(""));
        }
        if !keys.insert(key.text().to_owned()) {
            errors.push(key.duplicate());
        }
        errors.extend(node_selector::label_name(&key));
    }
    errors
}

/// Checks that a driver has not changed; with a feature enabled, the number of volumes that it allows may.
fn validate_kept(minor: Minor, new: &Value, old: &Value) -> ErrorList {
    let kept = if minor.opens(Gate::MutableCsiNodeAllocatableCount) { without_allocatable } else { Value::clone };
    let mut by_name: HashMap<&str, Vec<&Value>> = HashMap::new();
    for driver in new.items_at(&["spec", "drivers"]) {
        by_name.entry(driver.str_at(&["name"])).or_default().push(driver);
    }
    let root = FieldRef::root(new);
    let spec = root.field("spec");
    let drivers = spec.field("drivers");
    let mut errors = ErrorList::new();
    for driver in old.items_at(&["spec", "drivers"]) {
        for changed in by_name.get(driver.str_at(&["name"])).into_iter().flatten() {
            let now = kept(changed);
            if !semantic::equal_untyped(Some(&now), Some(&kept(driver))) {
                let shown = show_internal("storage.v1.CSINodeDriver", &now);
                errors.push(Error::invalid(drivers.path(), Value::Null, "field is immutable").shown_as(shown));
            }
        }
    }
    errors
}

fn without_allocatable(driver: &Value) -> Value {
    let mut driver = driver.clone();
    driver.make_object().remove("allocatable");
    driver
}
