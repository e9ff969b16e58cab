//! ResourceSlice, resource.k8s.io/v1, v1beta2 and v1beta1: the devices of a driver on a node or in a pool.
//!
//! Source: `pkg/apis/resource/validation` and `pkg/registry/resource/resourceslice`, release 1.37.

use crate::crd::write::ReadError;
use crate::crd::{Column, Scope, ServedVersion};
use crate::kinds::devices::older::Shape;
use crate::kinds::devices::{slice, taint};
use crate::kinds::features::{self, Feature};
use crate::kinds::strategy::{Cell, Strategy, Subresource, Table};
use crate::kinds::{Kind, defaults, metadata, prepare};
use crate::meta::field::ErrorList;
use crate::meta::field_ref::FieldRef;
use crate::meta::gate::Gate;
use crate::meta::names;
use crate::value::{Value, go_quote};

/// The fields behind feature gates, by their paths in v1.
const FEATURES: [Feature; 9] = [
    Feature::new(Gate::DraDeviceTaints, &["spec.devices.*.taints"]),
    Feature::new(
        Gate::DraPartitionableDevices,
        &[
            "spec.sharedCounters",
            "spec.perDeviceNodeSelection",
            "spec.devices.*.consumesCounters",
            "spec.devices.*.nodeName",
            "spec.devices.*.nodeSelector",
            "spec.devices.*.allNodes",
        ],
    ),
    Feature::new(
        Gate::DraDeviceBindingConditions,
        &["spec.devices.*.bindsToNode", "spec.devices.*.bindingConditions", "spec.devices.*.bindingFailureConditions"],
    ),
    Feature::new(
        Gate::DraConsumableCapacity,
        &["spec.devices.*.allowMultipleAllocations", "spec.devices.*.capacity.*.requestPolicy"],
    ),
    Feature::new(
        Gate::DraListTypeAttributes,
        &[
            "spec.devices.*.attributes.*.bools",
            "spec.devices.*.attributes.*.ints",
            "spec.devices.*.attributes.*.strings",
            "spec.devices.*.attributes.*.versions",
        ],
    ),
    Feature::new(Gate::DraNodeAllocatableResources, &["spec.devices.*.nodeAllocatableResources"]),
    Feature::new(Gate::DraDeviceCompatibilityGroups, &["spec.devices.*.consumesCounters.*.compatibilityGroups"]),
    Feature::new(Gate::DraOptionalNodeOperations, &["spec.skipNodeOperations"]),
    Feature::new(Gate::DraPartitionableDevicesType, &["spec.partitionTypeAttribute"]),
];

pub static KINDS: [&Kind; 3] = [&V1, &V1BETA2, &V1BETA1];

static V1: Kind = form("v1", true);
static V1BETA2: Kind = form("v1beta2", false);
static V1BETA1: Kind = form("v1beta1", false);

const fn form(version: &'static str, is_default: bool) -> Kind {
    Kind {
        plural: "resourceslices",
        singular: "resourceslice",
        scope: Scope::Cluster,
        selectable_fields: &[".spec.nodeName", ".spec.driver"],
        example: "metadata: {name: example}
spec: {driver: gpu.example.com, nodeName: worker, pool: {name: worker, generation: 1, resourceSliceCount: 1}}",
        forms: &KINDS,
        is_default,
        ..Kind::new("resource.k8s.io", version, "ResourceSlice", &ResourceSlice)
    }
}

struct ResourceSlice;

impl Strategy for ResourceSlice {
    fn internalize(&self, object: &mut Value) -> Result<(), ReadError> {
        Shape::Slice.internalize(object);
        Ok(())
    }

    fn convert(&self, object: &Value, api_version: &str) -> Option<Value> {
        Some(Shape::Slice.convert(object, api_version))
    }

    fn indexed_field(&self) -> Option<&'static str> {
        Some("spec.nodeName")
    }

    fn set_times(&self, object: &mut Value, now: &str) {
        let Some(spec) = defaults::field(object, "spec") else { return };
        for device in defaults::items(spec, "devices") {
            defaults::items(device, "taints").for_each(|taint| taint::set_time(taint, now));
            if let Some(basic) = defaults::field(device, "basic") {
                defaults::items(basic, "taints").for_each(|taint| taint::set_time(taint, now));
            }
        }
    }

    fn prepare_create(&self, version: &ServedVersion, object: &mut Value) {
        prepare::first_generation(object);
        Shape::Slice.change(object, |object| features::drop_fields(&FEATURES, version.minor, object, None));
    }

    fn validate_create(&self, version: &ServedVersion, object: &Value) -> ErrorList {
        let mut errors = metadata::validate(object, false, names::name_is_dns1123_subdomain);
        let object = Shape::Slice.newest(object);
        errors.extend(slice::validate(version.minor, &FieldRef::root(&object).field("spec"), None));
        errors
    }

    fn prepare_update(&self, version: &ServedVersion, _: Subresource, new: &mut Value, old: &Value) {
        prepare::count_generation(new, old, &["spec"]);
        let old = Shape::Slice.newest(old);
        Shape::Slice.change(new, |new| features::drop_fields(&FEATURES, version.minor, new, Some(&old)));
    }

    fn validate_update(&self, version: &ServedVersion, _: Subresource, new: &Value, old: &Value) -> ErrorList {
        let mut errors = metadata::validate_update(new, old);
        let (new, old) = (Shape::Slice.newest(new), Shape::Slice.newest(old));
        let (new, old) = (FieldRef::root(&new), FieldRef::root(&old));
        errors.extend(slice::validate(version.minor, &new.field("spec"), Some(&old.field("spec"))));
        errors
    }

    fn warnings(&self, _: &ServedVersion, _: Subresource, new: &Value, _: Option<&Value>) -> Vec<String> {
        let driver = new.str_at(&["spec", "driver"]);
        let warning = || {
            format!("spec.driver: driver names should be lowercase; {} contains uppercase characters", go_quote(driver))
        };
        if driver.to_lowercase() == driver { Vec::new() } else { vec![warning()] }
    }

    fn unknown_field_label(&self, version: &ServedVersion, field: &str) -> String {
        format!("field label not supported for {}, Kind={}: {field}", version.api_version(), version.names.kind)
    }

    fn lists_field_labels(&self) -> bool {
        true
    }

    fn tells_empty(&self) -> &'static [&'static [&'static str]] {
        &[
            &["spec", "sharedCounters"],
            &["spec", "devices"],
            &["spec", "devices", "*", "attributes", "*", "bools"],
            &["spec", "devices", "*", "attributes", "*", "ints"],
            &["spec", "devices", "*", "attributes", "*", "strings"],
            &["spec", "devices", "*", "attributes", "*", "versions"],
            &["spec", "devices", "*", "basic", "attributes", "*", "bools"],
            &["spec", "devices", "*", "basic", "attributes", "*", "ints"],
            &["spec", "devices", "*", "basic", "attributes", "*", "strings"],
            &["spec", "devices", "*", "basic", "attributes", "*", "versions"],
        ]
    }

    fn returns_deleted(&self) -> bool {
        true
    }

    fn table(&self) -> Option<Table> {
        let columns = ["Node", "Driver", "Pool"].map(|name| Column::string(name, ""));
        Some(Table::named(columns.into(), |object| {
            let text = |path: &[&str]| Cell::text(object.str_at(path));
            let row = vec![text(&["spec", "nodeName"]), text(&["spec", "driver"]), text(&["spec", "pool", "name"])];
            Cell::named(object, row)
        }))
    }
}
