//! IngressClass, networking.k8s.io/v1.
//!
//! Source: `pkg/registry/networking/ingressclass` and `pkg/apis/networking/validation` of Kubernetes 1.37.

use crate::crd::{Column, Scope, ServedVersion};
use crate::kinds::checks::{named, unchanged};
use crate::kinds::ingress_classes::is_default;
use crate::kinds::network::names::check_domain_prefixed;
use crate::kinds::strategy::{Cell, Strategy, Subresource, Table};
use crate::kinds::{Kind, metadata, prepare};
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::names;
use crate::value::Value;

pub static KINDS: [&Kind; 1] = [&Kind {
    plural: "ingressclasses",
    singular: "ingressclass",
    scope: Scope::Cluster,
    example: "metadata: {name: example}\nspec: {controller: example.com/controller, parameters: {apiGroup: example.com, \
              kind: Parameters, name: a}}",
    ..Kind::new("networking.k8s.io", "v1", "IngressClass", &IngressClass)
}];

const CONTROLLER_BYTES_MAX: i64 = 250;

struct IngressClass;

impl Strategy for IngressClass {
    fn set_typed_defaults(&self, object: &mut Value) {
        if let Some(Value::Object(parameters)) = object.at_mut(&["spec", "parameters"]) {
            let scope = parameters.entry("scope");
            if scope.is_null() {
                *scope = Value::from("Cluster");
            }
        }
    }

    fn prepare_create(&self, _: &ServedVersion, object: &mut Value) {
        prepare::first_generation(object);
    }

    fn validate_create(&self, _: &ServedVersion, object: &Value) -> ErrorList {
        validate(object)
    }

    fn prepare_update(&self, _: &ServedVersion, _: Subresource, new: &mut Value, old: &Value) {
        if new.get("spec") != old.get("spec") {
            prepare::raise_generation(new, old);
        }
    }

    fn validate_update(&self, _: &ServedVersion, _: Subresource, new: &Value, old: &Value) -> ErrorList {
        let mut errors = metadata::validate_update(new, old);
        let (now, before) = (FieldRef::root(new), FieldRef::root(old));
        let (now, before) = (now.field("spec"), before.field("spec"));
        errors.extend(unchanged(&now.field("controller"), &before.field("controller")));
        errors.extend(validate(new));
        errors
    }

    fn table(&self) -> Option<Table> {
        Some(table())
    }
}

fn validate(object: &Value) -> ErrorList {
    let mut errors = metadata::validate(object, false, names::name_is_dns1123_subdomain);
    let root = FieldRef::root(object);
    let spec = root.field("spec");
    let (controller, parameters) = (spec.field("controller"), spec.field("parameters"));
    if i64::try_from(controller.text().len()).is_ok_and(|bytes| bytes > CONTROLLER_BYTES_MAX) {
        errors.push(controller.too_long(CONTROLLER_BYTES_MAX));
    }
    errors.extend(check_domain_prefixed(controller.path(), controller.text()));
    if parameters.is_set() {
        errors.extend(validate_parameters(&parameters));
    }
    errors
}

fn validate_parameters(parameters: &FieldRef<'_>) -> ErrorList {
    let (group, scope) = (parameters.field("apiGroup"), parameters.field("scope"));
    let mut errors = ErrorList::new();
    if group.is_set() {
        errors.extend(named(&group, names::is_dns1123_subdomain));
    }
    for name in ["kind", "name"] {
        let field = parameters.field(name);
        match field.text() {
            "" => errors.push(field.required("")),
            _ => errors.extend(named(&field, |name| names::is_path_segment(name, false))),
        }
    }
    let namespace = parameters.field("namespace");
    match scope.text() {
        _ if !scope.is_set() => errors.push(scope.required("")),
        "Namespace" if !namespace.is_set() => {
            errors.push(namespace.required("`parameters.scope` is set to 'Namespace'"));
        }
        "Namespace" => errors.extend(named(&namespace, names::is_dns1123_label)),
        "Cluster" if namespace.is_set() => {
            errors.push(namespace.forbidden("`parameters.scope` is set to 'Cluster'"));
        }
        "Cluster" => {}
        other => errors.push(Error::not_supported(scope.path(), other, &["Cluster", "Namespace"])),
    }
    errors
}

fn table() -> Table {
    let columns = vec![
        Column::string("Controller", "Controller that is responsible for handling this class"),
        Column::string("Parameters", "A reference to a resource with additional parameters"),
    ];
    Table::named(columns, |object| {
        let parameters = object.at(&["spec", "parameters"]).filter(|parameters| !parameters.is_null());
        let shown = parameters.map_or_else(|| "<none>".to_owned(), show_parameters);
        let mut cells =
            Cell::named(object, vec![Cell::text(object.str_at(&["spec", "controller"])), Cell::text(&shown)]);
        if is_default(object) {
            cells[0] = Cell::text(&format!("{} (default)", object.str_at(&["metadata", "name"])));
        }
        cells
    })
}

/// Formats the parameters as `Kind.group/name`.
fn show_parameters(parameters: &Value) -> String {
    let group = parameters.get("apiGroup").and_then(Value::as_str);
    let group = group.map(|group| format!(".{group}")).unwrap_or_default();
    format!("{}{group}/{}", parameters.str_at(&["kind"]), parameters.str_at(&["name"]))
}
