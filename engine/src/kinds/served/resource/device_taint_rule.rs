//! DeviceTaintRule, resource.k8s.io/v1, v1beta2 and v1alpha3: a taint for every device that a selector matches.
//!
//! Source: `pkg/apis/resource/validation` and `pkg/registry/resource/devicetaintrule`, release 1.36, with the types of 1.37.

use crate::crd::{Column, Scope, ServedVersion};
use crate::kinds::devices::taint::{self, taint};
use crate::kinds::devices::{driver_name, pool_name};
use crate::kinds::strategy::{Cell, Strategy, Subresource, Table, reset_beside_status};
use crate::kinds::{Kind, checks, conditions, defaults, metadata, prepare};
use crate::meta::field::ErrorList;
use crate::meta::field_ref::FieldRef;
use crate::meta::gate::Gate;
use crate::meta::names;
use crate::object;
use crate::value::Value;

const CONDITIONS_MAX: usize = 8;

pub static KINDS: [&Kind; 3] = [&V1, &V1BETA2, &V1ALPHA3];

static V1: Kind = form("v1", true);
static V1BETA2: Kind = form("v1beta2", false);
static V1ALPHA3: Kind = form("v1alpha3", false);

const fn form(version: &'static str, is_default: bool) -> Kind {
    Kind {
        plural: "devicetaintrules",
        singular: "devicetaintrule",
        scope: Scope::Cluster,
        status: true,
        example: "metadata: {name: example}\nspec: {deviceSelector: {driver: gpu.example.com}, taint: {key: example.com/broken, effect: NoSchedule}}",
        forms: &KINDS,
        is_default,
        gate: if is_default { Some(Gate::DraDeviceTaintRules) } else { None },
        ..Kind::new("resource.k8s.io", version, "DeviceTaintRule", &DeviceTaintRule)
    }
}

struct DeviceTaintRule;

impl Strategy for DeviceTaintRule {
    fn set_times(&self, object: &mut Value, now: &str) {
        if let Some(spec) = defaults::field(object, "spec") {
            taint::set_time(defaults::structure(spec, "taint"), now);
        }
    }

    fn prepare_create(&self, _: &ServedVersion, object: &mut Value) {
        prepare::reset(object, "status", object! {});
        prepare::first_generation(object);
    }

    fn validate_create(&self, _: &ServedVersion, object: &Value) -> ErrorList {
        let mut errors = metadata::validate(object, false, names::name_is_dns1123_subdomain);
        errors.extend(validate_spec(object, None));
        errors
    }

    fn prepare_update_at(&self, _: &ServedVersion, subresource: Subresource, new: &mut Value, old: &Value, now: &str) {
        prepare::for_update(subresource, new, old);
        let of_taint = |object: &Value, name: &str| object.at(&["spec", "taint", name]).cloned();
        let is_same = |name: &str| of_taint(new, name) == of_taint(old, name);
        if !is_same("effect")
            && is_same("timeAdded")
            && let Some(taint) = new.at_mut(&["spec", "taint"])
        {
            taint.make_object().insert("timeAdded", Value::from(now));
        }
        prepare::count_generation(new, old, &["spec"]);
    }

    fn validate_update(&self, _: &ServedVersion, subresource: Subresource, new: &Value, old: &Value) -> ErrorList {
        let mut errors = metadata::validate_update(new, old);
        if subresource != Subresource::Status {
            errors.extend(validate_spec(new, old.at(&["spec", "taint"])));
            return errors;
        }
        let root = FieldRef::root(new);
        let status = root.field("status");
        let list = status.field("conditions");
        errors.extend(conditions::validate(&list));
        if list.len() > CONDITIONS_MAX {
            errors.push(list.too_many(CONDITIONS_MAX as i64));
        }
        errors
    }

    fn reset_fields(&self, _: &ServedVersion, subresource: Subresource) -> &'static [&'static [&'static str]] {
        reset_beside_status(subresource)
    }

    fn returns_deleted(&self) -> bool {
        true
    }

    fn table(&self) -> Option<Table> {
        let columns = ["Key", "Value", "Effect", "TimeAdded"].map(|name| Column::string(name, ""));
        Some(Table::named(columns.into(), |object| {
            let text = |name: &str| object.str_at(&["spec", "taint", name]);
            let added = match text("timeAdded") {
                "" => Cell::text(""),
                time => Cell::Since(time.to_owned()),
            };
            let row = vec![Cell::text(text("key")), Cell::text(text("value")), Cell::text(text("effect")), added];
            Cell::named(object, row)
        }))
    }
}

/// Validates the spec; an effect that `old_taint` already has is accepted.
fn validate_spec(object: &Value, old_taint: Option<&Value>) -> ErrorList {
    let root = FieldRef::root(object);
    let spec = root.field("spec");
    let selector = spec.field("deviceSelector");
    let mut errors = ErrorList::new();
    let (driver, pool, device) = (selector.field("driver"), selector.field("pool"), selector.field("device"));
    if driver.is_set() {
        errors.extend(driver_name(&driver));
    }
    if pool.is_set() {
        errors.extend(pool_name(&pool));
    }
    if device.is_set() {
        errors.extend(checks::named(&device, names::is_dns1123_label));
    }
    errors.extend(taint(&spec.field("taint"), old_taint));
    errors
}
