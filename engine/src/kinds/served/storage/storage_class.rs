//! StorageClass, storage.k8s.io/v1.
//!
//! Source: `pkg/apis/storage` and `pkg/registry/storage/storageclass` of Kubernetes 1.36, with the types of 1.37.

use crate::crd::{Column, Scope, ServedVersion};
use crate::kinds::node_selector;
use crate::kinds::storage::{class, columns, topologies};
use crate::kinds::strategy::{Cell, Strategy, Subresource, Table};
use crate::kinds::{Kind, checks, defaults, metadata};
use crate::meta::field::ErrorList;
use crate::meta::field_ref::FieldRef;
use crate::meta::names;
use crate::value::Value;

const RECLAIM_POLICIES: [&str; 2] = ["Delete", "Retain"];
const BINDING_MODES: [&str; 2] = ["Immediate", "WaitForFirstConsumer"];
pub static KINDS: [&Kind; 1] = [&Kind {
    plural: "storageclasses",
    singular: "storageclass",
    short_names: &["sc"],
    scope: Scope::Cluster,
    example: "metadata: {name: example}\nprovisioner: disks.example.com\nparameters: {type: fast}",
    ..Kind::new("storage.k8s.io", "v1", "StorageClass", &StorageClass)
}];

struct StorageClass;

impl Strategy for StorageClass {
    fn set_typed_defaults(&self, object: &mut Value) {
        defaults::set_pointer(object, "reclaimPolicy", "Delete");
        defaults::set_pointer(object, "volumeBindingMode", "Immediate");
    }

    fn validate_create(&self, _: &ServedVersion, object: &Value) -> ErrorList {
        let root = FieldRef::root(object);
        let mut errors = metadata::validate(object, false, names::name_is_dns1123_subdomain);
        errors.extend(class::validate_provisioner(&root.field("provisioner")));
        errors.extend(class::validate_parameters(&root.field("parameters"), true));
        let policy = root.field("reclaimPolicy");
        if !policy.is_empty() {
            errors.extend(checks::one_of(&policy, &RECLAIM_POLICIES));
        }
        let mode = root.field("volumeBindingMode");
        if mode.is_set() {
            errors.extend(checks::one_of(&mode, &BINDING_MODES));
        } else {
            errors.push(mode.required(""));
        }
        errors.extend(topologies::validate_topologies(&root.field("allowedTopologies")));
        errors
    }

    fn validate_update(&self, version: &ServedVersion, _: Subresource, new: &Value, old: &Value) -> ErrorList {
        let mut errors = self.validate_create(version, new);
        errors.extend(metadata::validate_update(new, old));
        let (new, old) = (FieldRef::root(new), FieldRef::root(old));
        let parameters = new.field("parameters");
        errors.extend(checks::unchanged_or_null(&parameters, &old.field("parameters")));
        errors.extend(checks::unchanged(&new.field("provisioner"), &old.field("provisioner")));
        for name in ["reclaimPolicy", "volumeBindingMode"] {
            errors.extend(checks::unchanged_as_json(&new.field(name), &old.field(name)));
        }
        errors
    }

    fn warnings(&self, _: &ServedVersion, _: Subresource, new: &Value, _: Option<&Value>) -> Vec<String> {
        let mut warnings = Vec::new();
        for term in FieldRef::root(new).field("allowedTopologies").items() {
            for expression in term.field("matchLabelExpressions").items() {
                let key = expression.field("key");
                let message = node_selector::deprecation(key.text());
                warnings.extend(message.map(|message| format!("{}: {message}", key.path())));
            }
        }
        warnings
    }

    fn returns_deleted(&self) -> bool {
        true
    }

    fn table(&self) -> Option<Table> {
        let columns = vec![
            Column::string("Provisioner", "Who provides the volumes."),
            Column::string("ReclaimPolicy", "What becomes of a volume that nobody claims any more."),
            Column::string("VolumeBindingMode", "When a volume is provided: at once, or for the first pod."),
            Column::string("AllowVolumeExpansion", "Whether claims of the class may grow."),
        ];
        Some(Table::named(columns, cells))
    }
}

fn cells(object: &Value) -> Vec<Cell> {
    let cells = vec![
        Cell::text(object.str_at(&["provisioner"])),
        columns::text_or(object.get("reclaimPolicy"), "Delete"),
        columns::text_or(object.get("volumeBindingMode"), "Immediate"),
        columns::truth(object, &["allowVolumeExpansion"]),
    ];
    let mut cells = Cell::named(object, cells);
    if let Some(name) = cells.first_mut().filter(|_| class::is_default(object)) {
        *name = Cell::Value(Value::String(format!("{} (default)", object.str_at(&["metadata", "name"]))));
    }
    cells
}
