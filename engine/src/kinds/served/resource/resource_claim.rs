//! ResourceClaim, resource.k8s.io/v1: devices that pods need, and which of them they got.
//!
//! Source: `pkg/apis/resource/validation` and `pkg/registry/resource/resourceclaim`, release 1.37.

use crate::crd::{Column, ServedVersion};
use crate::kinds::devices::{request, status};
use crate::kinds::strategy::{Cell, Strategy, Subresource, Table, reset_beside_status};
use crate::kinds::{Kind, defaults, metadata, prepare, show_internal};
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::names;
use crate::object;
use crate::value::Value;

pub static KINDS: [&Kind; 1] = [&Kind {
    plural: "resourceclaims",
    singular: "resourceclaim",
    status: true,
    example: "metadata: {name: example}\nspec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]}}",
    ..Kind::new("resource.k8s.io", "v1", "ResourceClaim", &ResourceClaim)
}];

struct ResourceClaim;

impl Strategy for ResourceClaim {
    fn set_typed_defaults(&self, object: &mut Value) {
        let devices = defaults::field(object, "spec").and_then(|spec| defaults::field(spec, "devices"));
        if let Some(devices) = devices {
            request::set_defaults(devices);
        }
    }

    fn prepare_create(&self, _: &ServedVersion, object: &mut Value) {
        prepare::reset(object, "status", object! {});
    }

    fn validate_create(&self, _: &ServedVersion, object: &Value) -> ErrorList {
        let mut errors = metadata::validate(object, true, names::name_is_dns1123_subdomain);
        let root = FieldRef::root(object);
        let spec = root.field("spec");
        errors.extend(request::validate(&spec.field("devices")));
        errors
    }

    fn prepare_update(&self, _: &ServedVersion, subresource: Subresource, new: &mut Value, old: &Value) {
        if subresource == Subresource::Status {
            prepare::keep(new, old, &["spec"]);
            prepare::keep_metadata(new, old);
            return status::drop_deallocated(new, old);
        }
        prepare::keep(new, old, &["status"]);
    }

    fn validate_update(&self, _: &ServedVersion, subresource: Subresource, new: &Value, old: &Value) -> ErrorList {
        if subresource == Subresource::Status {
            let mut errors = metadata::validate_update(new, old);
            errors.extend(status::validate(new, old));
            return errors;
        }
        let mut errors = metadata::validate(new, true, names::name_is_dns1123_subdomain);
        errors.extend(metadata::validate_update(new, old));
        errors.extend(immutable_spec(new, old, "resource.v1.ResourceClaimSpec"));
        errors
    }

    fn reset_fields(&self, _: &ServedVersion, subresource: Subresource) -> &'static [&'static [&'static str]] {
        reset_beside_status(subresource)
    }

    fn returns_deleted(&self) -> bool {
        true
    }

    fn table(&self) -> Option<Table> {
        Some(Table::named(
            vec![Column::string("State", "A summary of the current state (allocated, pending, reserved, etc.).")],
            |object| Cell::named(object, vec![Cell::text(&state(object))]),
        ))
    }
}

/// The spec of a claim or a template never changes.
pub(super) fn immutable_spec(new: &Value, old: &Value, type_name: &str) -> Option<Error> {
    if prepare::equal(new.get("spec"), old.get("spec")) {
        return None;
    }
    let root = FieldRef::root(new);
    let spec = root.field("spec");
    let shown = show_internal(type_name, spec.value().unwrap_or(&object! {}));
    Some(spec.invalid("field is immutable").shown_as(shown))
}

fn state(object: &Value) -> String {
    let is_deleted = object.at(&["metadata", "deletionTimestamp"]).is_some();
    let is_allocated = object.at(&["status", "allocation"]).is_some();
    let mut states = Vec::new();
    if is_deleted {
        states.push("deleted");
    }
    if is_allocated {
        states.push("allocated");
        if !object.items_at(&["status", "reservedFor"]).is_empty() {
            states.push("reserved");
        }
    } else if !is_deleted {
        states.push("pending");
    }
    states.join(",")
}
