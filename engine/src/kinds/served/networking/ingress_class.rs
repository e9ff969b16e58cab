//! IngressClass, networking.k8s.io/v1, and which one an ingress gets that names none.
//!
//! Source: `pkg/registry/networking/ingressclass`, `pkg/apis/networking/validation` and
//! `plugin/pkg/admission/network/defaultingressclass` of Kubernetes 1.37.

use std::cmp::Reverse;

use crate::crd::{Column, Scope, ServedVersion};
use crate::kinds::checks::{named, unchanged};
use crate::kinds::network::names::check_domain_prefixed;
use crate::kinds::network::{raise_generation, set_first_generation};
use crate::kinds::strategy::{Cell, Strategy, Subresource, Table};
use crate::kinds::{Kind, metadata};
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::names;
use crate::value::Value;

use super::ingress::{class, class_annotation};

pub static KINDS: [&Kind; 1] = [&Kind {
    plural: "ingressclasses",
    singular: "ingressclass",
    scope: Scope::Cluster,
    example: "metadata: {name: example}\nspec: {controller: example.com/controller, parameters: {apiGroup: example.com, \
              kind: Parameters, name: a}}",
    ..Kind::new("networking.k8s.io", "v1", "IngressClass", &IngressClass)
}];

const CONTROLLER_BYTES_MAX: i64 = 250;
const IS_DEFAULT: &str = "ingressclass.kubernetes.io/is-default-class";

/// Whether ingresses that name no class get this one.
pub fn is_default(class: &Value) -> bool {
    class.str_at(&["metadata", "annotations", IS_DEFAULT]) == "true"
}

/// Gives an ingress that names no class the default one, the newest of several.
pub fn set_default_class<'c>(ingress: &mut Value, classes: impl Iterator<Item = &'c Value>) {
    if class(ingress).is_some() || class_annotation(ingress).is_some() {
        return;
    }
    let text = |class: &'c Value, name: &str| class.str_at(&["metadata", name]);
    // Times in whole seconds compare as texts.
    let newest = classes
        .filter(|class| is_default(class))
        .min_by_key(|class| (Reverse(text(class, "creationTimestamp")), text(class, "name")));
    if let Some(class) = newest {
        let spec = ingress.make_object().entry("spec").make_object();
        spec.insert("ingressClassName", Value::from(text(class, "name")));
    }
}

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
        set_first_generation(object);
    }

    fn validate_create(&self, _: &ServedVersion, object: &Value) -> ErrorList {
        validate(object)
    }

    fn prepare_update(&self, _: &ServedVersion, _: Subresource, new: &mut Value, old: &Value) {
        if new.get("spec") != old.get("spec") {
            raise_generation(new, old);
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

/// `Kind.group/name`.
fn show_parameters(parameters: &Value) -> String {
    let group = parameters.get("apiGroup").and_then(Value::as_str);
    let group = group.map(|group| format!(".{group}")).unwrap_or_default();
    format!("{}{group}/{}", parameters.str_at(&["kind"]), parameters.str_at(&["name"]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object;
    use crate::value::yaml;

    #[test]
    fn an_ingress_gets_the_newest_default_class() {
        let yaml = |text: &str| yaml::decode(text.as_bytes()).expect("it is YAML");
        let class_of = |name: &str, created: &str, is_default: &str| {
            let annotations = object! { IS_DEFAULT => is_default };
            let metadata = object! { "name" => name, "creationTimestamp" => created, "annotations" => annotations };
            object! { "metadata" => metadata }
        };
        let classes = [
            class_of("old", "2026-01-01T00:00:00Z", "true"),
            class_of("z", "2026-01-02T00:00:00Z", "true"),
            class_of("b", "2026-01-02T00:00:00Z", "true"),
            class_of("a", "2026-01-03T00:00:00Z", "false"),
        ];
        for (ingress, expected) in [
            ("{spec: {}}", Some("b")),
            ("{spec: {ingressClassName: own}}", Some("own")),
            ("{metadata: {annotations: {kubernetes.io/ingress.class: x}}, spec: {}}", None),
        ] {
            let mut ingress = yaml(ingress);
            set_default_class(&mut ingress, classes.iter());
            assert_eq!(class(&ingress), expected);
        }
    }
}
