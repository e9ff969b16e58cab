//! ResourcePoolStatusRequest, resource.k8s.io/v1alpha3: somebody asks how many devices of a driver are free.
//!
//! The answer is written once, to the status.
//!
//! Source: `pkg/apis/resource/validation` and `pkg/registry/resource/resourcepoolstatusrequest` of Kubernetes 1.36, with the
//! types of 1.37.

use crate::crd::{Column, Scope, ServedVersion};
use crate::kinds::strategy::{Cell, Strategy, Subresource, Table, reset_beside_status};
use crate::kinds::{Kind, conditions, defaults, metadata, prepare, show_internal};
use crate::meta::field::{Error, ErrorList, Path};
use crate::meta::field_ref::FieldRef;
use crate::meta::names;
use crate::value::Value;

const LIMIT_DEFAULT: i64 = 100;
const LIMIT_MAX: i64 = 1000;
const POOLS_MAX: usize = 1000;
const POOL_BYTES_MAX: usize = 253;
const ERROR_BYTES_MAX: usize = 256;

pub static KINDS: [&Kind; 1] = [&Kind {
    plural: "resourcepoolstatusrequests",
    singular: "resourcepoolstatusrequest",
    scope: Scope::Cluster,
    status: true,
    is_default: false,
    example: "metadata: {name: example}\nspec: {driver: gpu.example.com}",
    ..Kind::new("resource.k8s.io", "v1alpha3", "ResourcePoolStatusRequest", &ResourcePoolStatusRequest)
}];

struct ResourcePoolStatusRequest;

impl Strategy for ResourcePoolStatusRequest {
    fn set_typed_defaults(&self, object: &mut Value) {
        if let Some(spec) = defaults::field(object, "spec") {
            defaults::set_pointer(spec, "limit", LIMIT_DEFAULT);
        }
    }

    fn prepare_create(&self, _: &ServedVersion, object: &mut Value) {
        object.make_object().remove("status");
    }

    fn validate_create(&self, _: &ServedVersion, object: &Value) -> ErrorList {
        let mut errors = metadata::validate(object, false, names::name_is_dns1123_subdomain);
        let root = FieldRef::root(object);
        let spec = root.field("spec");
        let (pool, limit) = (spec.field("poolName"), spec.field("limit"));
        errors.extend(validate_driver(&spec.field("driver")));
        if pool.is_set() {
            errors.extend(validate_pool_name(&pool));
        }
        if limit.int() < 1 {
            errors.push(limit.invalid("must be greater than or equal to 1"));
        } else if limit.int() > LIMIT_MAX {
            errors.push(limit.invalid(format!("must be less than or equal to {LIMIT_MAX}")));
        }
        errors
    }

    fn prepare_update(&self, _: &ServedVersion, subresource: Subresource, new: &mut Value, old: &Value) {
        prepare::for_update(subresource, new, old);
    }

    fn validate_update(&self, _: &ServedVersion, subresource: Subresource, new: &Value, old: &Value) -> ErrorList {
        let mut errors = metadata::validate_update(new, old);
        let at = if subresource == Subresource::Status { "status" } else { "spec" };
        let type_name = "resource.v1alpha3.ResourcePoolStatusRequestStatus";
        let root = FieldRef::root(new);
        if at == "status" && old.get(at).is_none_or(Value::is_null) {
            let status = root.field(at);
            if status.is_set() {
                errors.extend(conditions::validate(&status.field("conditions")));
                errors.extend(validate_status(&status));
            }
        } else if at == "spec" && !prepare::is_same_part(new, old, at) {
            errors.push(Error::invalid(&Path::new(at), Value::Null, "field is immutable"));
        } else if !prepare::is_same_part(new, old, at) {
            let shown = show_internal(type_name, new.get(at).unwrap_or(&Value::Null));
            errors.push(Error::invalid(&Path::new(at), Value::Null, "field is immutable").shown_as(shown));
        }
        errors
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn reset_fields(&self, _: &ServedVersion, subresource: Subresource) -> &'static [&'static [&'static str]] {
        reset_beside_status(subresource)
    }

    fn returns_deleted(&self) -> bool {
        true
    }

    fn table(&self) -> Option<Table> {
        let text = |(name, description): (&str, &str)| Column::string(name, description);
        let name = Column { format: "name".to_owned(), ..Column::string("Name", "") };
        let first = [
            ("Driver", "The driver to query pools for."),
            ("Total", "Total number of devices across all pools."),
            ("Available", "Number of available devices across all pools."),
            ("Allocated", "Number of allocated devices across all pools."),
            ("Unavailable", "Number of unavailable devices across all pools."),
            ("Errors", "Number of pools with validation errors."),
        ];
        let pools =
            Column { type_: "integer".to_owned(), ..Column::string("Pools", "Total number of matching pools.") };
        let last = [("Status", "Processing status."), ("Completed", "Time since the observation completed.")];
        let columns = [vec![name], first.map(text).into(), vec![pools], last.map(text).into()].concat();
        Some(Table { columns, cells })
    }
}

/// A DNS name in any case.
fn validate_driver(driver: &FieldRef<'_>) -> ErrorList {
    match driver.text() {
        "" => std::iter::once(driver.required("")).collect(),
        name => names::is_dns1123_subdomain_caseless(name).into_iter().map(|fault| driver.invalid(fault)).collect(),
    }
}

/// DNS names with slashes between them.
fn validate_pool_name(pool: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    if pool.text().len() > POOL_BYTES_MAX {
        errors.push(pool.too_long(POOL_BYTES_MAX as i64));
    }
    for (at, part) in pool.text().split('/').enumerate() {
        if part.is_empty() {
            errors.push(pool.invalid(format!("segment {at}: must not be empty")));
            continue;
        }
        let faults = names::is_long_name(part).into_iter();
        errors.extend(faults.map(|fault| Error::invalid(pool.path(), part, format!("segment {at}: {fault}"))));
    }
    errors
}

fn validate_status(status: &FieldRef<'_>) -> ErrorList {
    let mut errors = required_count(&status.field("poolCount"));
    let pools = status.field("pools");
    if pools.len() > POOLS_MAX {
        errors.push(pools.too_many(POOLS_MAX as i64));
        return errors;
    }
    for pool in pools.items() {
        let name = pool.field("poolName");
        errors.extend(validate_driver(&pool.field("driver")));
        match name.text() {
            "" => errors.push(name.required("")),
            _ => errors.extend(validate_pool_name(&name)),
        }
        let generation = pool.field("generation");
        match generation.int() {
            0 => errors.push(generation.required("")),
            _ => errors.extend(least(&generation, 0)),
        }
        for (count, min) in [
            ("resourceSliceCount", 1),
            ("totalDevices", 0),
            ("allocatedDevices", 0),
            ("availableDevices", 0),
            ("unavailableDevices", 0),
        ] {
            errors.extend(least(&pool.field(count), min));
        }
        let (node, why) = (pool.field("nodeName"), pool.field("validationError"));
        if node.is_set() {
            errors.extend(names::is_long_name(node.text()).into_iter().map(|fault| node.invalid(fault)));
        }
        if why.text().len() > ERROR_BYTES_MAX {
            errors.push(why.too_long(ERROR_BYTES_MAX as i64));
        }
    }
    errors
}

fn required_count(count: &FieldRef<'_>) -> ErrorList {
    if count.is_set() { least(count, 0) } else { std::iter::once(count.required("")).collect() }
}

/// A number that is not below `min`, where it is set.
fn least(number: &FieldRef<'_>, min: i64) -> ErrorList {
    let is_below = number.is_set() && number.int() < min;
    is_below.then(|| number.invalid(format!("must be greater than or equal to {min}"))).into_iter().collect()
}

fn cells(object: &Value) -> Vec<Cell> {
    let held = |type_: &str| {
        let mut conditions = object.items_at(&["status", "conditions"]).iter();
        conditions.find(|it| it.str_at(&["type"]) == type_ && it.str_at(&["status"]) == "True")
    };
    let pools = object.items_at(&["status", "pools"]);
    let count = object.at(&["status", "poolCount"]).and_then(Value::as_i64).unwrap_or_default();
    let is_answered = object.get("status").is_some_and(|status| !status.is_null());
    let (completed, failed) = (held("Complete"), held("Failed"));
    let state = match (completed, failed) {
        (Some(_), _) if count > pools.len() as i64 => format!("Complete ({}/{count} pools)", pools.len()),
        (Some(_), _) => "Complete".to_owned(),
        (None, Some(_)) => "Failed".to_owned(),
        (None, None) => "Pending".to_owned(),
    };
    let shown = |number: i64| {
        let is_counted = is_answered && (completed.is_some() || failed.is_none());
        Cell::text(&if is_counted { number.to_string() } else { "-".to_owned() })
    };
    let sum = |name: &str| pools.iter().filter_map(|pool| pool.get(name)).filter_map(Value::as_i64).sum();
    let errors = pools.iter().filter(|pool| pool.get("validationError").is_some()).count();
    let mut cells =
        vec![Cell::text(object.str_at(&["metadata", "name"])), Cell::text(object.str_at(&["spec", "driver"]))];
    let devices = ["totalDevices", "availableDevices", "allocatedDevices", "unavailableDevices"];
    cells.extend(devices.map(|name| shown(sum(name))));
    cells.extend([shown(errors as i64), Cell::Value(Value::Int(count)), Cell::text(&state)]);
    cells.push(match completed.filter(|_| is_answered) {
        Some(condition) => Cell::Since(condition.str_at(&["lastTransitionTime"]).to_owned()),
        None => Cell::text("<none>"),
    });
    cells
}
