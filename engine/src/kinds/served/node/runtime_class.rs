//! RuntimeClass, node.k8s.io/v1: the container runtime that runs a pod.
//!
//! Source: `pkg/apis/node` and `pkg/registry/node/runtimeclass` of Kubernetes 1.36, with the types of 1.37.

use std::collections::HashSet;

use crate::crd::{Column, Scope, ServedVersion};
use crate::kinds::node_selector;
use crate::kinds::pod::{self, PodValidationOptions};
use crate::kinds::strategy::{Cell, Strategy, Subresource, Table};
use crate::kinds::{Kind, checks, metadata, resources, show_internal};
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::{names, object_meta};
use crate::value::Value;

pub static KINDS: [&Kind; 1] = [&Kind {
    plural: "runtimeclasses",
    singular: "runtimeclass",
    scope: Scope::Cluster,
    example: "metadata: {name: example}\nhandler: runsc",
    ..Kind::new("node.k8s.io", "v1", "RuntimeClass", &RuntimeClass)
}];

struct RuntimeClass;

impl Strategy for RuntimeClass {
    fn validate_create(&self, _: &ServedVersion, object: &Value) -> ErrorList {
        let root = FieldRef::root(object);
        let mut errors = metadata::validate_plain(object, false, names::name_is_dns1123_subdomain);
        errors.extend(checks::required_label(&root.field("handler")));
        errors.extend(validate_overhead(&root.field("overhead")));
        let scheduling = root.field("scheduling");
        let selector = scheduling.field("nodeSelector");
        if let Some(labels) = selector.value() {
            errors.extend(object_meta::validate_labels(labels, selector.path()));
        }
        errors.extend(validate_tolerations(&scheduling.field("tolerations")));
        errors
    }

    fn validate_update(&self, version: &ServedVersion, _: Subresource, new: &Value, old: &Value) -> ErrorList {
        let mut errors = self.validate_create(version, new);
        errors.extend(metadata::validate_plain_update(new, old));
        let (new, old) = (FieldRef::root(new), FieldRef::root(old));
        errors.extend(checks::unchanged(&new.field("handler"), &old.field("handler")));
        errors
    }

    fn warnings(&self, _: &ServedVersion, _: Subresource, new: &Value, _: Option<&Value>) -> Vec<String> {
        let root = FieldRef::root(new);
        let scheduling = root.field("scheduling");
        let selector = scheduling.field("nodeSelector");
        let messages = selector.entries().filter_map(|(label, _)| node_selector::deprecation(label));
        messages.map(|message| format!("{}: {message}", selector.path())).collect()
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn creates_on_update(&self) -> bool {
        true
    }

    fn table(&self) -> Option<Table> {
        let columns = vec![Column::string("Handler", "What runs the containers.")];
        Some(Table::named(columns, |class| Cell::named(class, vec![Cell::text(class.str_at(&["handler"]))])))
    }
}

/// Validates the overhead of the class's pods. The errors are those of limits.
fn validate_overhead(overhead: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let own = overhead.field("podFixed");
    let limits = FieldRef::new(own.value(), overhead.path().child("limits"));
    for (name, amount) in limits.entries() {
        errors.extend(resources::validate_container_name(name, amount.path()));
        errors.extend(resources::validate_quantity(name, &amount));
        let quantity = resources::quantity(&amount);
        if resources::is_huge_page(name) && !resources::is_divisible_by_page(name, &quantity) {
            let why = format!("{quantity} is not positive integer multiple of {name}");
            errors.push(Error::invalid(amount.path(), quantity.to_string(), why));
        }
    }
    let has = |wanted: fn(&str) -> bool| limits.entries().any(|(name, _)| wanted(name));
    if has(resources::is_huge_page) && !has(|name| matches!(name, "cpu" | "memory")) {
        errors.push(overhead.forbidden("HugePages require cpu or memory"));
    }
    errors
}

/// Validates the tolerations like those of pods, and checks that each occurs once.
fn validate_tolerations(listed: &FieldRef<'_>) -> ErrorList {
    let mut errors = pod::validate_tolerations(listed, &PodValidationOptions::default());
    let mut seen = HashSet::new();
    for toleration in listed.items() {
        let key = ["key", "operator", "value", "effect"].map(|name| toleration.field(name).text().to_owned());
        if !seen.insert(key) {
            let shown = toleration.value().map(|value| show_internal("core.v1.Toleration", value));
            let error = Error::duplicate(toleration.path(), Value::Null);
            errors.push(error.shown_as(shown.unwrap_or_default()));
        }
    }
    errors
}
