//! VolumeAttributesClass, storage.k8s.io/v1, and v1beta1 and v1alpha1 in older minor versions.
//!
//! Source: `pkg/apis/storage` and `pkg/registry/storage/volumeattributesclass` of Kubernetes 1.36, with the types of 1.37.

use crate::crd::{Column, Scope, ServedVersion};
use crate::kinds::storage::class;
use crate::kinds::strategy::{Cell, Strategy, Subresource, Table};
use crate::kinds::{Kind, metadata};
use crate::meta::field::ErrorList;
use crate::meta::field_ref::FieldRef;
use crate::meta::gate::Gate;
use crate::meta::names;
use crate::value::Value;

pub static KINDS: [&Kind; 3] = [&V1, &V1BETA1, &V1ALPHA1];

static V1: Kind = form();
static V1BETA1: Kind = form().former("v1beta1");
static V1ALPHA1: Kind = form().former("v1alpha1");

const fn form() -> Kind {
    Kind {
        plural: "volumeattributesclasses",
        singular: "volumeattributesclass",
        short_names: &["vac"],
        scope: Scope::Cluster,
        example: "metadata: {name: example}\ndriverName: disks.example.com\nparameters: {iops: '3000'}",
        forms: &KINDS,
        gate: Some(Gate::VolumeAttributesClass),
        ..Kind::new("storage.k8s.io", "v1", "VolumeAttributesClass", &VolumeAttributesClass)
    }
}

struct VolumeAttributesClass;

impl Strategy for VolumeAttributesClass {
    fn validate_create(&self, _: &ServedVersion, object: &Value) -> ErrorList {
        let root = FieldRef::root(object);
        let mut errors = metadata::validate(object, false, names::name_is_dns1123_subdomain);
        errors.extend(class::validate_provisioner(&root.field("driverName")));
        errors.extend(class::validate_parameters(&root.field("parameters"), false));
        errors
    }

    fn validate_update(&self, version: &ServedVersion, _: Subresource, new: &Value, old: &Value) -> ErrorList {
        let mut errors = metadata::validate_update(new, old);
        let (now, before) = (FieldRef::root(new), FieldRef::root(old));
        for name in ["driverName", "parameters"] {
            let field = now.field(name);
            if field.value() != before.field(name).value() {
                errors.push(field.forbidden(format!("updates to {name} are forbidden.")));
            }
        }
        errors.extend(self.validate_create(version, new));
        errors
    }

    fn returns_deleted(&self) -> bool {
        true
    }

    fn table(&self) -> Option<Table> {
        let columns = vec![Column::string("DriverName", "The driver that the class is for.")];
        Some(Table::named(columns, |class| Cell::named(class, vec![Cell::text(class.str_at(&["driverName"]))])))
    }
}
