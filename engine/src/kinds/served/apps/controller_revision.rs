//! ControllerRevision, apps/v1.
//!
//! Source: validation and columns of Kubernetes 1.37.

use crate::crd::{Column, ServedVersion};
use crate::kinds::strategy::{Cell, Strategy, Subresource, Table};
use crate::kinds::workloads::cells;
use crate::kinds::{Kind, checks, metadata};
use crate::meta::api_version::group_of;
use crate::meta::field::ErrorList;
use crate::meta::field_ref::FieldRef;
use crate::meta::names;
use crate::value::Value;

pub static KINDS: [&Kind; 1] = [&Kind {
    plural: "controllerrevisions",
    singular: "controllerrevision",
    example: "metadata: {name: example}\nrevision: 1\ndata: {spec: {replicas: 1}}",
    ..Kind::new("apps", "v1", "ControllerRevision", &ControllerRevision)
}];

struct ControllerRevision;

impl Strategy for ControllerRevision {
    fn validate_create(&self, _: &ServedVersion, object: &Value) -> ErrorList {
        let mut errors = validate(object);
        let root = FieldRef::root(object);
        let data = root.field("data");
        match data.value() {
            None => errors.push(data.required("data is mandatory")),
            Some(Value::Object(_)) => {}
            Some(_) => errors.push(data.required("data must be a valid JSON object")),
        }
        errors
    }

    fn validate_update(&self, _: &ServedVersion, _: Subresource, new: &Value, old: &Value) -> ErrorList {
        let mut errors = metadata::validate_update(new, old);
        errors.extend(validate(new));
        errors
    }

    fn raw_field(&self) -> &'static [&'static str] {
        &["data"]
    }

    fn table(&self) -> Option<Table> {
        let columns = vec![
            Column::string("Controller", "Controller of the object"),
            Column::string("Revision", "The number of the state that the data is of."),
        ];
        Some(Table::named(columns, |revision| {
            let controller = Cell::text(&controller(revision));
            Cell::named(revision, vec![controller, cells::of_int(revision, &["revision"])])
        }))
    }
}

fn validate(revision: &Value) -> ErrorList {
    let mut errors = metadata::validate(revision, true, names::name_is_dns1123_subdomain);
    errors.extend(checks::not_negative(&FieldRef::root(revision).field("revision")));
    errors
}

/// The controller that owns the revision: `statefulset.apps/web`.
fn controller(revision: &Value) -> String {
    let owners = revision.items_at(&["metadata", "ownerReferences"]);
    let controls = |owner: &&Value| owner.get("controller").and_then(Value::as_bool) == Some(true);
    let Some(owner) = owners.iter().find(controls) else { return "<none>".to_owned() };
    let (kind, name) = (owner.str_at(&["kind"]).to_lowercase(), owner.str_at(&["name"]));
    match group_of(owner.str_at(&["apiVersion"])) {
        "" => format!("{kind}/{name}"),
        group => format!("{kind}.{}/{name}", group.to_lowercase()),
    }
}
