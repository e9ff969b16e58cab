//! IPAddress, networking.k8s.io/v1, and v1beta1 in older minor versions: marks a cluster IP as taken, and by which
//! object.
//!
//! Source: `pkg/registry/networking/ipaddress` and `pkg/apis/networking/validation` of Kubernetes 1.37.

use crate::crd::{Column, Scope, ServedVersion};
use crate::kinds::checks::named;
use crate::kinds::network::addresses::check_canonical_address;
use crate::kinds::strategy::{Cell, Strategy, Subresource, Table};
use crate::kinds::{Kind, metadata, show_internal};
use crate::meta::field::{Error, ErrorList, Path};
use crate::meta::field_ref::FieldRef;
use crate::meta::gate::Gate;
use crate::meta::names;
use crate::value::Value;

pub static KINDS: [&Kind; 2] = [&V1, &V1BETA1];

static V1: Kind = form();
static V1BETA1: Kind = form().former("v1beta1");

const fn form() -> Kind {
    Kind {
        plural: "ipaddresses",
        singular: "ipaddress",
        short_names: &["ip"],
        scope: Scope::Cluster,
        example: "metadata: {name: 10.9.8.7}\nspec: {parentRef: {resource: services, namespace: default, name: example}}",
        forms: &KINDS,
        gate: Some(Gate::MultiCidrServiceAllocator),
        ..Kind::new("networking.k8s.io", "v1", "IPAddress", &IpAddress)
    }
}

struct IpAddress;

impl Strategy for IpAddress {
    fn validate_create(&self, _: &ServedVersion, object: &Value) -> ErrorList {
        validate(object)
    }

    fn validate_update(&self, _: &ServedVersion, _: Subresource, new: &Value, old: &Value) -> ErrorList {
        let mut errors = validate(new);
        errors.extend(metadata::validate_update(new, old));
        let parent = |object: &Value| object.at(&["spec", "parentRef"]).filter(|parent| !parent.is_null()).cloned();
        if parent(new) != parent(old) {
            let spec = Path::new("spec");
            let shown = parent(new)
                .map_or_else(|| "null".to_owned(), |parent| show_internal("networking.v1.ParentReference", &parent));
            let error = Error::invalid(&spec.child("parentRef"), Value::Null, "field is immutable");
            errors.push(error.shown_as(shown));
        }
        errors
    }

    fn generates_names(&self) -> bool {
        false
    }

    fn table(&self) -> Option<Table> {
        let columns = vec![Column::string("ParentRef", "What the address belongs to.")];
        let mut table = Table::named(columns, |object| Cell::named(object, vec![Cell::text(&shown_parent(object))]));
        // As in the reference, the cell with the age has no column.
        table.columns.pop();
        Some(table)
    }
}

/// Checks that the name is an address in canonical form. It is never generated.
fn check_name(name: &str, _: bool) -> Vec<String> {
    check_canonical_address(&Path::ROOT, name).into_iter().map(|error| error.detail.clone()).collect()
}

fn validate(object: &Value) -> ErrorList {
    let mut errors = metadata::validate(object, false, check_name);
    let root = FieldRef::root(object);
    let spec = root.field("spec");
    let parent = spec.field("parentRef");
    if !parent.is_set() {
        errors.push(parent.required(""));
        return errors;
    }
    let (group, namespace) = (parent.field("group"), parent.field("namespace"));
    if !group.text().is_empty() {
        errors.extend(named(&group, names::is_dns1123_subdomain));
    }
    for name in ["resource", "name"] {
        let field = parent.field(name);
        match field.text() {
            "" => errors.push(field.required("")),
            _ => errors.extend(named(&field, |name| names::is_path_segment(name, false))),
        }
    }
    if !namespace.text().is_empty() {
        errors.extend(named(&namespace, |name| names::is_path_segment(name, false)));
    }
    errors
}

/// Formats the parent, such as `services/default/kubernetes`.
fn shown_parent(object: &Value) -> String {
    let Some(parent) = object.at(&["spec", "parentRef"]).filter(|parent| !parent.is_null()) else {
        return "<none>".to_owned();
    };
    let text = |name: &str| parent.str_at(&[name]);
    let resource = match text("group") {
        "" => text("resource").to_lowercase(),
        group => format!("{}.{group}", text("resource")).to_lowercase(),
    };
    let path = [text("namespace"), text("name")].into_iter().filter(|part| !part.is_empty());
    path.fold(resource, |shown, part| format!("{shown}/{part}"))
}
