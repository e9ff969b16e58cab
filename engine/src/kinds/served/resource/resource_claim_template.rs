//! ResourceClaimTemplate, resource.k8s.io/v1, v1beta2 and v1beta1: the template from which pods' claims are created.
//!
//! Source: `pkg/apis/resource/validation` and `pkg/registry/resource/resourceclaimtemplate`, release 1.37.

use crate::crd::ServedVersion;
use crate::crd::write::ReadError;
use crate::kinds::devices::older::{Shape, is_oldest};
use crate::kinds::devices::request;
use crate::kinds::strategy::{Cell, Strategy, Subresource, Table};
use crate::kinds::{Kind, defaults, metadata};
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::names;
use crate::value::Value;

use super::resource_claim::{immutable, immutable_spec};

pub static KINDS: [&Kind; 3] = [&V1, &V1BETA2, &V1BETA1];

static V1: Kind = form("v1", true, NEWER);
static V1BETA2: Kind = form("v1beta2", false, NEWER);
static V1BETA1: Kind = form("v1beta1", false, OLDEST);

const NEWER: &str = "metadata: {name: example}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com}}]}}}";
const OLDEST: &str = "metadata: {name: example}
spec: {spec: {devices: {requests: [{name: gpu, deviceClassName: gpu.example.com}]}}}";
const DEVICES: &[&str] = &["spec", "spec", "devices"];
const SHAPE: Shape = Shape::Claim(DEVICES);

const fn form(version: &'static str, is_default: bool, example: &'static str) -> Kind {
    Kind {
        plural: "resourceclaimtemplates",
        singular: "resourceclaimtemplate",
        example,
        forms: &KINDS,
        is_default,
        ..Kind::new("resource.k8s.io", version, "ResourceClaimTemplate", &ResourceClaimTemplate)
    }
}

struct ResourceClaimTemplate;

impl Strategy for ResourceClaimTemplate {
    fn set_typed_defaults(&self, object: &mut Value) {
        let is_oldest = is_oldest(object);
        let template = defaults::field(object, "spec");
        let spec = template.and_then(|template| defaults::field(template, "spec"));
        if let Some(devices) = spec.and_then(|spec| defaults::field(spec, "devices")) {
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

    fn tells_empty(&self) -> &'static [&'static [&'static str]] {
        &[
            &["spec", "metadata", "ownerReferences"],
            &["spec", "metadata", "finalizers"],
            &["spec", "metadata", "managedFields"],
        ]
    }

    fn prepare_create(&self, version: &ServedVersion, object: &mut Value) {
        SHAPE.change(object, |object| request::drop_disabled(version.minor, object.at_mut(DEVICES), None));
    }

    fn prepare_update(&self, version: &ServedVersion, _: Subresource, new: &mut Value, old: &Value) {
        let newest = SHAPE.newest(old);
        SHAPE.change(new, |new| request::drop_disabled(version.minor, new.at_mut(DEVICES), newest.at(DEVICES)));
    }

    fn validate_create(&self, version: &ServedVersion, object: &Value) -> ErrorList {
        let mut errors = metadata::validate(object, true, names::name_is_dns1123_subdomain);
        let object = SHAPE.newest(object);
        let root = FieldRef::root(&object);
        let template = root.field("spec");
        errors.extend(metadata::validate_of_template(&template.field("metadata")));
        let spec = template.field("spec");
        errors.extend(request::validate(version.minor, &spec.field("devices")));
        errors
    }

    fn validate_update(&self, version: &ServedVersion, _: Subresource, new: &Value, old: &Value) -> ErrorList {
        let mut errors = self.validate_create(version, new);
        errors.extend(metadata::validate_update(new, old));
        errors.extend(immutable_spec(&SHAPE.newest(new), &SHAPE.newest(old), "ResourceClaimTemplateSpec"));
        errors
    }

    fn raw_field(&self) -> &'static [&'static str] {
        &["spec", "spec", "devices", "config", "*", "opaque", "parameters"]
    }

    fn rewritten(&self, new: &Value) -> Option<Error> {
        Some(immutable(&SHAPE.newest(new), "ResourceClaimTemplateSpec"))
    }

    fn returns_deleted(&self) -> bool {
        true
    }

    fn table(&self) -> Option<Table> {
        Some(Table::named(Vec::new(), |object| Cell::named(object, Vec::new())))
    }
}
