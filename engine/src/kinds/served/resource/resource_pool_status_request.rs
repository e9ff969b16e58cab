//! ResourcePoolStatusRequest, resource.k8s.io/v1alpha3: a query for the number of a driver's free devices.
//!
//! The answer is written once, to the status.
//!
//! Source: `pkg/apis/resource/validation` and `pkg/registry/resource/resourcepoolstatusrequest` of Kubernetes 1.36, with the
//! types of 1.37.

use crate::crd::{Column, Scope, ServedVersion};
use crate::kinds::strategy::{Cell, Strategy, Subresource, Table, reset_beside_status};
use crate::kinds::{Kind, conditions, declared, defaults, metadata, prepare, workloads};
use crate::meta::field::ErrorList;
use crate::meta::field_ref::FieldRef;
use crate::meta::names;
use crate::types::{self, Message};
use crate::value::Value;

const LIMIT_DEFAULT: i64 = 100;

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

    fn validate_create(&self, version: &ServedVersion, object: &Value) -> ErrorList {
        let mut errors = metadata::validate(object, false, names::name_is_dns1123_subdomain);
        errors.extend(declared::validate(message(version), &FieldRef::root(object), version.minor));
        errors
    }

    fn prepare_update(&self, _: &ServedVersion, subresource: Subresource, new: &mut Value, old: &Value) {
        prepare::for_update(subresource, new, old);
    }

    fn validate_update(
        &self,
        version: &ServedVersion,
        subresource: Subresource,
        new: &Value,
        old: &Value,
    ) -> ErrorList {
        let mut errors = metadata::validate_update(new, old);
        if subresource == Subresource::Status {
            errors.extend(validate_answer(new, old));
        }
        let (new, old) = (FieldRef::root(new), FieldRef::root(old));
        errors.extend(declared::validate_update(message(version), &new, &old, version.minor));
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

/// The type of the kind.
fn message(version: &ServedVersion) -> &'static Message {
    types::message_of_kind(&version.group, &version.version, &version.names.kind)
}

/// Checks a rule without a marker: the status with the answer is only set once.
fn validate_answer(new: &Value, old: &Value) -> ErrorList {
    let (root, old_root) = (FieldRef::root(new), FieldRef::root(old));
    let status = root.field("status");
    if !old_root.field("status").is_set() {
        return conditions::validate(&status.field("conditions"));
    }
    if prepare::is_same_part(new, old, "status") {
        return ErrorList::new();
    }
    let type_name = "resource.v1alpha3.ResourcePoolStatusRequestStatus";
    std::iter::once(workloads::invalid_struct(&status, type_name, "field is immutable")).collect()
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
