//! CSIStorageCapacity, storage.k8s.io/v1: the available capacity of a storage class in a topology segment.
//!
//! Source: `pkg/apis/storage` and `pkg/registry/storage/csistoragecapacity` of Kubernetes 1.36, with the types of 1.37.

use crate::crd::ServedVersion;
use crate::kinds::storage::{columns, topologies};
use crate::kinds::strategy::{Strategy, Subresource, Table};
use crate::kinds::{Kind, checks, metadata, resources, semantic, show_internal};
use crate::meta::field::ErrorList;
use crate::meta::field_ref::FieldRef;
use crate::meta::names;
use crate::meta::selector::LabelSelector;
use crate::value::Value;

pub static KINDS: [&Kind; 1] = [&Kind {
    plural: "csistoragecapacities",
    singular: "csistoragecapacity",
    example: "metadata: {name: example}\nstorageClassName: fast\ncapacity: 10Gi",
    ..Kind::new("storage.k8s.io", "v1", "CSIStorageCapacity", &CsiStorageCapacity)
}];

struct CsiStorageCapacity;

impl Strategy for CsiStorageCapacity {
    fn validate_create(&self, _: &ServedVersion, object: &Value) -> ErrorList {
        validate(object, true)
    }

    fn validate_update(&self, _: &ServedVersion, _: Subresource, new: &Value, old: &Value) -> ErrorList {
        let was_valid = validate_topology(&FieldRef::root(old).field("nodeTopology"), true).is_empty();
        let mut errors = validate(new, was_valid);
        errors.extend(metadata::validate_update(new, old));
        let (new, old) = (FieldRef::root(new), FieldRef::root(old));
        let (topology, class) = (new.field("nodeTopology"), new.field("storageClassName"));
        if !semantic::equal_untyped(topology.value(), old.field("nodeTopology").value()) {
            let shown = topology.value().map(|value| show_internal("meta.v1.LabelSelector", value));
            let error = topology.invalid("field is immutable");
            errors.push(error.shown_as(shown.unwrap_or_else(|| "null".to_owned())));
        }
        errors.extend(checks::unchanged(&class, &old.field("storageClassName")));
        errors
    }

    fn warnings(&self, _: &ServedVersion, _: Subresource, new: &Value, _: Option<&Value>) -> Vec<String> {
        topologies::label_selector_warnings(&FieldRef::root(new).field("nodeTopology"))
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn table(&self) -> Option<Table> {
        Some(columns::plain_table())
    }
}

fn validate(object: &Value, checks_values: bool) -> ErrorList {
    let root = FieldRef::root(object);
    let mut errors = metadata::validate(object, true, names::name_is_dns1123_subdomain);
    errors.extend(validate_topology(&root.field("nodeTopology"), checks_values));
    errors.extend(checks::named(&root.field("storageClassName"), names::is_dns1123_subdomain));
    errors.extend(resources::validate_nonnegative(&root.field("capacity")));
    errors
}

fn validate_topology(topology: &FieldRef<'_>, checks_values: bool) -> ErrorList {
    let errors = topology.value().map(|value| LabelSelector::validate(value, checks_values, topology.path()));
    errors.unwrap_or_default()
}
