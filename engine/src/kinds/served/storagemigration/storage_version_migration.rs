//! StorageVersionMigration, storagemigration.k8s.io/v1 and v1beta1: a request to rewrite a resource's stored objects.
//!
//! Source: `pkg/apis/storagemigration` and `pkg/registry/storagemigration` of Kubernetes 1.36, with the types of 1.37.
//!
//! Nothing here migrates objects: each is stored in the newest version when it is written.

use crate::crd::{Column, Scope, ServedVersion};
use crate::kinds::strategy::{Cell, Strategy, Subresource, Table, reset_beside_status};
use crate::kinds::{Kind, conditions, metadata, prepare, show_internal};
use crate::meta::field::{Error, ErrorList, Path};
use crate::meta::field_ref::FieldRef;
use crate::meta::gate::Gate;
use crate::meta::names;
use crate::object;
use crate::value::{Value, json};

pub static KINDS: [&Kind; 2] = [&V1, &V1BETA1];

static V1: Kind = form("v1", true);
static V1BETA1: Kind = form("v1beta1", false);

const fn form(version: &'static str, is_default: bool) -> Kind {
    Kind {
        plural: "storageversionmigrations",
        singular: "storageversionmigration",
        scope: Scope::Cluster,
        status: true,
        is_default,
        gate: Some(Gate::StorageVersionMigrator),
        forms: &KINDS,
        example: "metadata: {name: example}\nspec: {resource: {group: apps, resource: deployments}}",
        ..Kind::new("storagemigration.k8s.io", version, "StorageVersionMigration", &StorageVersionMigration)
    }
}

struct StorageVersionMigration;

impl Strategy for StorageVersionMigration {
    fn prepare_create(&self, _: &ServedVersion, object: &mut Value) {
        prepare::reset(object, "status", object! {});
    }

    fn validate_create(&self, _: &ServedVersion, object: &Value) -> ErrorList {
        let mut errors = metadata::validate(object, false, names::name_is_dns1123_subdomain);
        let root = FieldRef::root(object);
        let (spec, mut told) = (root.field("spec"), ErrorList::new());
        let migrated = spec.field("resource");
        let (resource, group) = (migrated.field("resource"), migrated.field("group"));
        let mut check = |field: &FieldRef<'_>, faults: Vec<String>| {
            if !faults.is_empty() {
                told.push(field.invalid(faults.join(",")));
            }
        };
        if resource.is_empty() {
            errors.push(resource.required("resource is required to be set"));
        } else {
            check(&resource, names::is_dns1035_label(resource.text()));
        }
        if !group.is_empty() {
            check(&group, names::is_dns1123_subdomain(group.text()));
        }
        errors.extend(told);
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
        if subresource == Subresource::Status {
            return validate_status(new, old);
        }
        let mut errors = self.validate_create(version, new);
        errors.extend(metadata::validate_update(new, old));
        if !prepare::is_same_part(new, old, "spec") {
            let resource = new.at(&["spec", "resource"]);
            let text =
                |name| json::encode_to_string(&Value::from(resource.map_or("", |resource| resource.str_at(&[name]))));
            let shown = format!(r#"{{"Resource":{{"group":{},"resource":{}}}}}"#, text("group"), text("resource"));
            errors.push(Error::invalid(&Path::new("spec"), Value::Null, "field is immutable").shown_as(shown));
        }
        errors
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn reset_fields(&self, _: &ServedVersion, subresource: Subresource) -> &'static [&'static [&'static str]] {
        reset_beside_status(subresource)
    }

    fn table(&self) -> Option<Table> {
        let columns = vec![
            Column::string("Name", ""),
            Column::string("Resource", "GroupResource to migrate"),
            Column::string("Status", "Status of the migration"),
        ];
        Some(Table { columns, cells })
    }
}

fn cells(migration: &Value) -> Vec<Cell> {
    let text = |name| migration.str_at(&["spec", "resource", name]);
    let resource = match text("group") {
        "" => text("resource").to_owned(),
        group => format!("{}.{group}", text("resource")),
    };
    let conditions = migration.items_at(&["status", "conditions"]).iter();
    let held = conditions.filter(|condition| condition.str_at(&["status"]) == "True");
    let mut states = held
        .map(|condition| condition.str_at(&["type"]))
        .filter(|type_| matches!(*type_, "Running" | "Failed" | "Succeeded"));
    let name = migration.str_at(&["metadata", "name"]);
    vec![Cell::text(name), Cell::text(&resource), Cell::text(states.next_back().unwrap_or("Unknown"))]
}

fn has_condition(object: &Value, type_: &str) -> bool {
    let conditions = object.items_at(&["status", "conditions"]).iter();
    let mut found = conditions.filter(|condition| condition.str_at(&["type"]) == type_);
    found.next().is_some_and(|condition| condition.str_at(&["status"]) == "True")
}

fn validate_status(new: &Value, old: &Value) -> ErrorList {
    let mut errors = metadata::validate_update(new, old);
    let root = FieldRef::root(new);
    let status = root.field("status");
    let (revision, list) = (status.field("resourceVersion"), status.field("conditions"));
    errors.extend(validate_revision(&revision));
    errors.extend(conditions::validate(&list));
    let before = old.str_at(&["status", "resourceVersion"]);
    if !before.is_empty() && before != revision.text() {
        errors.push(revision.invalid("field is immutable"));
    }
    let mut check = |is_wrong: bool, why: &str| {
        if is_wrong {
            let items = list.items().filter_map(|condition| condition.value());
            let shown: Vec<String> = items.map(|condition| show_internal("meta.v1.Condition", condition)).collect();
            let shown = if list.is_set() { format!("[{}]", shown.join(",")) } else { "null".to_owned() };
            errors.push(list.invalid(why).shown_as(shown));
        }
    };
    let (succeeded, failed) = (has_condition(new, "Succeeded"), has_condition(new, "Failed"));
    check(succeeded && failed, "Both success and failed conditions cannot be true at the same time");
    let was_successful = has_condition(old, "Succeeded");
    check(was_successful && !succeeded, "Success condition cannot be set to false once it is true");
    let had_failed = has_condition(old, "Failed");
    check(had_failed && !failed, "Failed condition cannot be set to false once it is true");
    errors
}

/// Checks that a resource version is a number without leading zeros.
fn validate_revision(revision: &FieldRef<'_>) -> Option<Error> {
    let text = revision.text();
    let why = match text.as_bytes() {
        [] => return None,
        [b'0', ..] => format!("resource version is not well formed: {text}"),
        digits if digits.iter().all(u8::is_ascii_digit) => return None,
        _ => format!("resource version is not well formed: {text}"),
    };
    Some(revision.invalid(why))
}
