//! DeviceClass, resource.k8s.io/v1, v1beta2 and v1beta1: a named set of devices that claims can request.
//!
//! Source: `pkg/apis/resource/validation` and `pkg/registry/resource/deviceclass`, release 1.37.

use crate::crd::{Scope, ServedVersion};
use crate::kinds::devices::{CONFIGS_MAX, configuration, list, selectors};
use crate::kinds::features::{self, Feature};
use crate::kinds::strategy::{Cell, Strategy, Subresource, Table};
use crate::kinds::{Kind, metadata, prepare, semantic};
use crate::meta::field::ErrorList;
use crate::meta::field_ref::FieldRef;
use crate::meta::gate::Gate;
use crate::meta::minor::Minor;
use crate::meta::names;
use crate::value::Value;

const FEATURES: [Feature; 1] = [Feature::new(Gate::DraExtendedResource, &["spec.extendedResourceName"])];

pub static KINDS: [&Kind; 3] = [&V1, &V1BETA2, &V1BETA1];

static V1: Kind = form("v1", true);
static V1BETA2: Kind = form("v1beta2", false);
static V1BETA1: Kind = form("v1beta1", false);

const fn form(version: &'static str, is_default: bool) -> Kind {
    Kind {
        plural: "deviceclasses",
        singular: "deviceclass",
        scope: Scope::Cluster,
        example: "metadata: {name: example}
spec: {selectors: [{cel: {expression: 'device.driver == \"gpu.example.com\"'}}]}",
        forms: &KINDS,
        is_default,
        ..Kind::new("resource.k8s.io", version, "DeviceClass", &DeviceClass)
    }
}

struct DeviceClass;

impl Strategy for DeviceClass {
    fn prepare_create(&self, version: &ServedVersion, object: &mut Value) {
        features::drop_fields(&FEATURES, version.minor, object, None);
        prepare::first_generation(object);
    }

    fn validate_create(&self, version: &ServedVersion, object: &Value) -> ErrorList {
        let mut errors = metadata::validate(object, false, names::name_is_long);
        errors.extend(validate_spec(version.minor, object, None));
        errors
    }

    fn prepare_update(&self, version: &ServedVersion, _: Subresource, new: &mut Value, old: &Value) {
        features::drop_fields(&FEATURES, version.minor, new, Some(old));
        prepare::count_generation(new, old, &["spec"]);
    }

    fn validate_update(&self, version: &ServedVersion, _: Subresource, new: &Value, old: &Value) -> ErrorList {
        let mut errors = metadata::validate(new, false, names::name_is_long);
        errors.extend(metadata::validate_update(new, old));
        errors.extend(validate_spec(version.minor, new, Some(old)));
        errors
    }

    fn returns_deleted(&self) -> bool {
        true
    }

    fn table(&self) -> Option<Table> {
        Some(Table::named(Vec::new(), |object| Cell::named(object, Vec::new())))
    }
}

/// Validates the spec. A field that has not changed may use everything that was allowed when it was written.
fn validate_spec(minor: Minor, object: &Value, old: Option<&Value>) -> ErrorList {
    let root = FieldRef::root(object);
    let spec = root.field("spec");
    let is_stored = |name: &str| {
        old.is_some_and(|old| semantic::equal_untyped(object.at(&["spec", name]), old.at(&["spec", name])))
    };
    let mut errors = selectors(minor, &spec.field("selectors"), is_stored("selectors"));
    let is_config_stored = is_stored("config");
    errors.extend(list(&spec.field("config"), CONFIGS_MAX, |config| configuration(config, is_config_stored)));
    let extended = spec.field("extendedResourceName");
    if extended.is_set() && !is_extended_resource(extended.text()) {
        errors.push(extended.invalid("must be a valid extended resource name"));
    }
    errors
}

/// Whether the name is that of a resource outside Kubernetes' own domains.
fn is_extended_resource(name: &str) -> bool {
    let is_native = !name.contains('/') || name.contains("kubernetes.io/");
    !is_native && !name.starts_with("requests.") && names::is_qualified_name(&format!("requests.{name}")).is_empty()
}
