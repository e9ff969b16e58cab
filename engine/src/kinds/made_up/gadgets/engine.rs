//! Engine, gadgets.example.com/v1: a kind that nobody serves.
//!
//! It consists only of this file and the types in `schemas/made-up`. `http::made_up` tests it with every verb and
//! representation, to ensure that a kind needs nothing else.

use crate::crd::{Column, SelectorForm, ServedVersion};
use crate::kinds::strategy::{Cell, Strategy, Subresource, Table};
use crate::kinds::{Action, Kind, Part, defaults, metadata, prepare};
use crate::meta::field::ErrorList;
use crate::meta::field_ref::FieldRef;
use crate::meta::names;
use crate::object;
use crate::value::Value;

/// Of an engine: how it is started.
const IGNITION: &str = "ignition";

pub static KINDS: [&Kind; 1] = [&Kind {
    plural: "engines",
    singular: "engine",
    short_names: &["en"],
    categories: &["all"],
    status: true,
    is_default: false,
    parts: &[
        Part::new(IGNITION, &["get", "patch", "update"], None, Action::Write),
        Part::scale(SelectorForm::Requirements),
    ],
    selectable_fields: &[".spec.ignition"],
    example: "metadata: {name: example}\nspec: {replicas: 2, parts: [{name: valve, size: 3}]}",
    ..Kind::new("gadgets.example.com", "v1", "Engine", &Engine)
}];

struct Engine;

impl Strategy for Engine {
    fn set_typed_defaults(&self, object: &mut Value) {
        defaults::set_pointer(defaults::structure(object, "spec"), "replicas", 1);
    }

    fn prepare_create(&self, _: &ServedVersion, object: &mut Value) {
        prepare::reset(object, "status", object! { "replicas" => 0 });
        prepare::first_generation(object);
    }

    fn validate_create(&self, _: &ServedVersion, object: &Value) -> ErrorList {
        let mut errors = metadata::validate(object, true, names::name_is_dns1123_subdomain);
        let root = FieldRef::root(object);
        let spec = root.field("spec");
        let replicas = spec.field("replicas");
        if replicas.int() < 0 {
            errors.push(replicas.invalid("must be greater than or equal to 0"));
        }
        errors
    }

    fn prepare_update(&self, _: &ServedVersion, subresource: Subresource, new: &mut Value, old: &Value) {
        let ignition = new.at(&["spec", IGNITION]).cloned().unwrap_or_default();
        prepare::keep_other(subresource, new, old);
        if subresource == Subresource::Part(IGNITION) {
            prepare::keep(new, old, &["spec"]);
            defaults::structure(new, "spec").make_object().insert(IGNITION, ignition);
        }
        prepare::count_generation(new, old, &["spec"]);
    }

    fn validate_update(&self, version: &ServedVersion, _: Subresource, new: &Value, old: &Value) -> ErrorList {
        let mut errors = self.validate_create(version, new);
        errors.extend(metadata::validate_plain_update(new, old));
        errors
    }

    fn table(&self) -> Option<Table> {
        Some(Table::named(vec![Column::string("Ignition", "How it is started.")], |engine| {
            Cell::named(engine, vec![Cell::text(engine.str_at(&["spec", IGNITION]))])
        }))
    }
}
