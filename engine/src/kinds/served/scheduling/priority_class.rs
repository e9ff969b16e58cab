//! PriorityClass, scheduling.k8s.io/v1.
//!
//! Source: `pkg/apis/scheduling` and `pkg/registry/scheduling/priorityclass` of Kubernetes 1.36, with the types of 1.37.

use crate::crd::{Column, Scope, ServedVersion};
use crate::kinds::storage::columns;
use crate::kinds::strategy::{Cell, Strategy, Subresource, Table};
use crate::kinds::{Initial, Kind, checks, defaults, metadata, prepare};
use crate::meta::field::{Error, ErrorList, Path};
use crate::meta::field_ref::FieldRef;
use crate::meta::names;
use crate::object;
use crate::value::Value;

const POLICIES: [&str; 2] = ["PreemptLowerPriority", "Never"];
const USER_VALUE_MAX: i64 = 1_000_000_000;
/// The prefix of names that are reserved for the system's classes.
const SYSTEM_PREFIX: &str = "system-";

/// A class that every cluster has.
struct System {
    name: &'static str,
    value: i64,
    description: &'static str,
}

const SYSTEM: [System; 2] = [
    System {
        name: "system-node-critical",
        value: 2 * USER_VALUE_MAX + 1000,
        description: "Used for system critical pods that must not be moved from their current node.",
    },
    System {
        name: "system-cluster-critical",
        value: 2 * USER_VALUE_MAX,
        description: "Used for system critical pods that must run in the cluster, but can be moved to another node if \
                      necessary.",
    },
];

pub static KINDS: [&Kind; 1] = [&Kind {
    plural: "priorityclasses",
    singular: "priorityclass",
    short_names: &["pc"],
    scope: Scope::Cluster,
    initial: Some(Initial::AtStart(system_classes)),
    example: "metadata: {name: example}\nvalue: 1000",
    ..Kind::new("scheduling.k8s.io", "v1", "PriorityClass", &PriorityClass)
}];

/// The classes that the server creates at its start.
fn system_classes() -> Vec<Value> {
    let class = |class: &System| {
        object! {
            "apiVersion" => "scheduling.k8s.io/v1",
            "kind" => "PriorityClass",
            "metadata" => object! { "name" => class.name },
            "value" => class.value,
            "description" => class.description,
        }
    };
    SYSTEM.iter().map(class).collect()
}

struct PriorityClass;

impl Strategy for PriorityClass {
    fn set_typed_defaults(&self, object: &mut Value) {
        defaults::set_pointer(object, "preemptionPolicy", "PreemptLowerPriority");
    }

    fn prepare_create(&self, _: &ServedVersion, object: &mut Value) {
        prepare::first_generation(object);
    }

    fn validate_create(&self, _: &ServedVersion, object: &Value) -> ErrorList {
        let mut errors = metadata::validate(object, false, names::name_is_dns1123_subdomain);
        errors.extend(validate_value(object));
        let root = FieldRef::root(object);
        let policy = root.field("preemptionPolicy");
        if policy.is_set() && policy.is_empty() {
            errors.push(policy.required(""));
        } else if policy.is_set() {
            errors.extend(checks::one_of(&policy, &POLICIES));
        }
        errors
    }

    fn validate_update(&self, _: &ServedVersion, _: Subresource, new: &Value, old: &Value) -> ErrorList {
        let mut errors = metadata::validate_update(new, old);
        let (new, old) = (FieldRef::root(new), FieldRef::root(old));
        let value = new.field("value");
        if value.int() != old.field("value").int() {
            errors.push(value.forbidden("may not be changed in an update."));
        }
        errors.extend(checks::unchanged_or_null(&new.field("preemptionPolicy"), &old.field("preemptionPolicy")));
        errors
    }

    fn kept_for(&self, name: &str) -> Option<&'static str> {
        let is_system = SYSTEM.iter().any(|class| class.name == name);
        is_system.then_some("this is a system priority class and cannot be deleted")
    }

    fn table(&self) -> Option<Table> {
        let mut table = Table::named(
            vec![
                columns::typed("Value", "integer", "The priority that pods of the class get."),
                columns::typed("Global-Default", "boolean", "Whether pods that name no class get this one."),
            ],
            cells,
        );
        table.columns.push(Column::string("PreemptionPolicy", "Whether pods of the class make room for themselves."));
        Some(table)
    }
}

fn cells(class: &Value) -> Vec<Cell> {
    let value = class.get("value").and_then(Value::as_i64).unwrap_or_default();
    let cells = vec![Cell::Value(Value::Int(value)), columns::truth(class, &["globalDefault"])];
    let mut cells = Cell::named(class, cells);
    cells.push(Cell::text(class.str_at(&["preemptionPolicy"])));
    cells
}

/// Checks the priority's value: high ones are reserved for the system's classes.
fn validate_value(object: &Value) -> Option<Error> {
    let name = object.str_at(&["metadata", "name"]);
    let value = object.get("value").and_then(Value::as_i64).unwrap_or_default();
    if !name.starts_with(SYSTEM_PREFIX) {
        let why = format!("maximum allowed value of a user defined priority is {USER_VALUE_MAX}");
        return (value > USER_VALUE_MAX).then(|| Error::forbidden(&Path::new("value"), why));
    }
    let is_default = object.get("globalDefault").and_then(Value::as_bool).unwrap_or_default();
    let fault = match SYSTEM.iter().find(|class| class.name == name) {
        None => format!("{name} is not a known system priority class"),
        Some(class) if class.value != value => format!("value of {name} PriorityClass must be {}", class.value),
        Some(_) if is_default => format!("globalDefault of {name} PriorityClass must be false"),
        Some(_) => return None,
    };
    let why =
        format!("priority class names with '{SYSTEM_PREFIX}' prefix are reserved for system use only. error: {fault}");
    Some(Error::forbidden(&metadata::METADATA.child("name"), why))
}
