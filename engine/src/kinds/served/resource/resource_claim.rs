//! ResourceClaim, resource.k8s.io/v1, v1beta2 and v1beta1: the devices that pods need, and those allocated to them.
//!
//! Source: `pkg/apis/resource/validation` and `pkg/registry/resource/resourceclaim`, release 1.37.

use crate::crd::write::ReadError;
use crate::crd::{Column, ServedVersion};
use crate::kinds::devices::older::{Shape, is_oldest};
use crate::kinds::devices::{request, status};
use crate::kinds::strategy::{Cell, Strategy, Subresource, Table, reset_beside_status};
use crate::kinds::{Kind, defaults, metadata, prepare, semantic, show_internal};
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::names;
use crate::object;
use crate::types;
use crate::value::Value;

pub static KINDS: [&Kind; 3] = [&V1, &V1BETA2, &V1BETA1];

static V1: Kind = form("v1", true, NEWER);
static V1BETA2: Kind = form("v1beta2", false, NEWER);
static V1BETA1: Kind = form("v1beta1", false, OLDEST);

const NEWER: &str = "metadata: {name: example}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]}}";
const OLDEST: &str = "metadata: {name: example}
spec: {devices: {requests: [{name: gpu, deviceClassName: gpu.example.com}]}}";
const DEVICES: &[&str] = &["spec", "devices"];
const SHAPE: Shape = Shape::Claim(DEVICES);

const fn form(version: &'static str, is_default: bool, example: &'static str) -> Kind {
    Kind {
        plural: "resourceclaims",
        singular: "resourceclaim",
        status: true,
        example,
        forms: &KINDS,
        is_default,
        ..Kind::new("resource.k8s.io", version, "ResourceClaim", &ResourceClaim)
    }
}

struct ResourceClaim;

impl Strategy for ResourceClaim {
    fn set_typed_defaults(&self, object: &mut Value) {
        let is_oldest = is_oldest(object);
        let devices = defaults::field(object, "spec").and_then(|spec| defaults::field(spec, "devices"));
        if let Some(devices) = devices {
            request::set_defaults(devices, is_oldest);
        }
    }

    fn internalize(&self, object: &mut Value) -> Result<(), ReadError> {
        SHAPE.internalize(object);
        Ok(())
    }

    fn convert(&self, object: &Value, api_version: &str) -> Option<Value> {
        Some(SHAPE.convert(object, api_version))
    }

    fn prepare_create(&self, version: &ServedVersion, object: &mut Value) {
        prepare::reset(object, "status", object! {});
        SHAPE.change(object, |object| request::drop_disabled(version.minor, object.at_mut(DEVICES), None));
    }

    fn validate_create(&self, version: &ServedVersion, object: &Value) -> ErrorList {
        let mut errors = metadata::validate(object, true, names::name_is_dns1123_subdomain);
        let object = SHAPE.newest(object);
        let root = FieldRef::root(&object);
        let spec = root.field("spec");
        errors.extend(request::validate(version.minor, &spec.field("devices")));
        errors
    }

    fn prepare_update(&self, version: &ServedVersion, subresource: Subresource, new: &mut Value, old: &Value) {
        prepare::for_update(subresource, new, old);
        let newest = SHAPE.newest(old);
        SHAPE.change(new, |new| request::drop_disabled(version.minor, new.at_mut(DEVICES), newest.at(DEVICES)));
        if subresource == Subresource::Status {
            status::drop_deallocated(new, old);
            status::drop_disabled(version.minor, new, &newest);
        }
    }

    fn validate_update(
        &self,
        version: &ServedVersion,
        subresource: Subresource,
        new: &Value,
        old: &Value,
    ) -> ErrorList {
        if subresource == Subresource::Status {
            let mut errors = metadata::validate_update(new, old);
            errors.extend(status::validate(version.minor, &SHAPE.newest(new), &SHAPE.newest(old)));
            return errors;
        }
        let mut errors = metadata::validate(new, true, names::name_is_dns1123_subdomain);
        errors.extend(metadata::validate_update(new, old));
        errors.extend(immutable_spec(&SHAPE.newest(new), &SHAPE.newest(old), "ResourceClaimSpec"));
        errors
    }

    fn raw_field(&self) -> &'static [&'static str] {
        &["spec", "devices", "config", "*", "opaque", "parameters"]
    }

    fn rewritten(&self, new: &Value) -> Option<Error> {
        Some(immutable(&SHAPE.newest(new), "ResourceClaimSpec"))
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

/// Checks that the spec of a claim or a template has not changed.
pub(super) fn immutable_spec(new: &Value, old: &Value, type_name: &str) -> Option<Error> {
    let (root, old_root) = (FieldRef::root(new), FieldRef::root(old));
    let spec = root.field("spec");
    let message = types::message_named("resource.v1", type_name);
    let is_same = semantic::is_same_struct(message, &spec, &old_root.field("spec"));
    (!is_same).then(|| immutable(new, type_name))
}

/// The error that the spec has changed.
pub(super) fn immutable(new: &Value, type_name: &str) -> Error {
    let root = FieldRef::root(new);
    let spec = root.field("spec");
    let shown = show_internal(&format!("resource.v1.{type_name}"), spec.value().unwrap_or(&object! {}));
    spec.invalid("field is immutable").shown_as(shown)
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
