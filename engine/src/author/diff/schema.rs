//! What changes from one schema to another, node by node.

use super::{Change, change, join, rules};
use crate::schema::structural::{Structural, StructuralOrBool, ValueValidation};
use crate::value::{Value, json};

/// A walk over two schemas of a version.
pub struct Walk<'w> {
    pub version: &'w str,
    pub changes: &'w mut Vec<Change>,
}

impl Walk<'_> {
    fn tell(&mut self, path: &str, id: &'static str, breaks: bool, detail: impl Into<String>) {
        let path = if path.is_empty() { "<nil>" } else { path };
        self.changes.push(change(Some(self.version.to_owned()), path, id, breaks, detail.into()));
    }

    pub fn node(&mut self, path: &str, old: &Structural, new: &Structural) {
        let (before, after) = (type_of(old), type_of(new));
        if before != after {
            // What takes more than before takes all that it took.
            let widens = matches!(
                (before.as_str(), after.as_str()),
                ("integer", "number" | "integer or string") | ("string", "integer or string")
            );
            self.tell(path, "type-changed", !widens, format!("{before} became {after}"));
        }
        match (old.generic.nullable, new.generic.nullable) {
            (true, false) => self.tell(path, "nullable-removed", true, "null is dropped or refused"),
            (false, true) => self.tell(path, "nullable-added", false, "null is kept"),
            _ => {}
        }
        match (&old.generic.default, &new.generic.default) {
            (Some(before), None) => self.tell(path, "default-removed", true, format!("it was {}", shown(before))),
            (None, Some(after)) => self.tell(path, "default-added", false, format!("it is {}", shown(after))),
            (Some(before), Some(after)) if before != after => {
                // Objects that leave the field out read differently, those in the store included.
                self.tell(path, "default-changed", true, format!("{} became {}", shown(before), shown(after)));
            }
            _ => {}
        }
        self.unknown_fields(path, old, new);
        self.merging(path, old, new);
        self.values(path, old, new);
        for (id, breaks, detail) in rules::diff(&old.validations, &new.validations) {
            self.tell(path, id, breaks, detail);
        }
        self.below(path, old, new);
    }

    fn unknown_fields(&mut self, path: &str, old: &Structural, new: &Structural) {
        match (old.extensions.preserve_unknown_fields, new.extensions.preserve_unknown_fields) {
            (true, false) => {
                self.tell(path, "unknown-fields-pruned", true, "fields that are not specified are dropped")
            }
            (false, true) => self.tell(path, "unknown-fields-kept", false, "fields that are not specified stay"),
            _ => {}
        }
    }

    fn merging(&mut self, path: &str, old: &Structural, new: &Structural) {
        let list_type =
            |schema: &Structural| schema.extensions.list_type.clone().unwrap_or_else(|| "atomic".to_owned());
        let (before, after) = (list_type(old), list_type(new));
        if before != after {
            // Who applies to the list owns and replaces other items than before.
            self.tell(path, "list-type-changed", true, format!("{before} became {after}"));
        } else if old.extensions.list_map_keys != new.extensions.list_map_keys {
            self.tell(path, "list-map-keys-changed", true, "items are told apart by other keys");
        }
        let map_type = |schema: &Structural| schema.extensions.map_type.clone().unwrap_or("granular".to_owned());
        let (before, after) = (map_type(old), map_type(new));
        if before != after {
            self.tell(path, "map-type-changed", after == "atomic", format!("{before} became {after}"));
        }
    }

    fn values(&mut self, path: &str, old: &Structural, new: &Structural) {
        let none = ValueValidation::default();
        let before = old.value_validation.as_deref().unwrap_or(&none);
        let after = new.value_validation.as_deref().unwrap_or(&none);
        self.required(path, new, before, after);
        let as_float = |bound: Option<i64>| bound.map(|bound| bound as f64);
        let upper = [
            ("maximum", before.bounds.maximum, after.bounds.maximum),
            ("maxLength", as_float(before.bounds.max_length), as_float(after.bounds.max_length)),
            ("maxItems", as_float(before.bounds.max_items), as_float(after.bounds.max_items)),
            ("maxProperties", as_float(before.bounds.max_properties), as_float(after.bounds.max_properties)),
        ];
        let lower = [
            ("minimum", before.bounds.minimum, after.bounds.minimum),
            ("minLength", as_float(before.bounds.min_length), as_float(after.bounds.min_length)),
            ("minItems", as_float(before.bounds.min_items), as_float(after.bounds.min_items)),
            ("minProperties", as_float(before.bounds.min_properties), as_float(after.bounds.min_properties)),
        ];
        let bounds = upper.into_iter().map(|bound| (bound, 1.0)).chain(lower.into_iter().map(|bound| (bound, -1.0)));
        for ((name, before, after), sign) in bounds {
            let tightens = match (before, after) {
                (before, after) if before == after => continue,
                (_, None) => false,
                (None, Some(_)) => true,
                (Some(before), Some(after)) => after * sign < before * sign,
            };
            let shown = |bound: Option<f64>| bound.map_or("none".to_owned(), |bound| bound.to_string());
            let id = if tightens { "bound-tightened" } else { "bound-loosened" };
            self.tell(path, id, tightens, format!("{name} {} became {}", shown(before), shown(after)));
        }
        for (name, before, after) in [
            ("exclusiveMaximum", before.bounds.exclusive_maximum, after.bounds.exclusive_maximum),
            ("exclusiveMinimum", before.bounds.exclusive_minimum, after.bounds.exclusive_minimum),
            ("uniqueItems", before.bounds.unique_items, after.bounds.unique_items),
        ] {
            if before != after {
                self.tell(
                    path,
                    if after { "bound-tightened" } else { "bound-loosened" },
                    after,
                    format!("{name} became {after}"),
                );
            }
        }
        for (name, before, after) in
            [("pattern", &before.pattern, &after.pattern), ("format", &before.format, &after.format)]
        {
            if before != after {
                let detail = format!("{name} `{before}` became `{after}`");
                self.tell(path, "text-constraint-changed", !after.is_empty(), detail);
            }
        }
        if before.bounds.multiple_of != after.bounds.multiple_of {
            self.tell(path, "multiple-of-changed", after.bounds.multiple_of.is_some(), "multipleOf is another");
        }
        self.enumeration(path, &before.enum_, &after.enum_);
        if before.junctors != after.junctors {
            let gone = after.junctors.is_blank();
            self.tell(path, "junctors-changed", !gone, "allOf, anyOf, oneOf or not differ");
        }
    }

    fn required(&mut self, path: &str, new: &Structural, before: &ValueValidation, after: &ValueValidation) {
        for name in after.required.iter().filter(|name| !before.required.contains(name)) {
            let has_default = new.properties.get(name).is_some_and(|property| property.generic.default.is_some());
            let detail = if has_default { "it has a default" } else { "it has no default" };
            self.tell(&join(path, name), "required-added", !has_default, detail);
        }
        for name in before.required.iter().filter(|name| !after.required.contains(name)) {
            self.tell(&join(path, name), "required-removed", false, "it may be left out");
        }
    }

    fn enumeration(&mut self, path: &str, before: &[Value], after: &[Value]) {
        let (lost, gained): (Vec<&Value>, Vec<&Value>) = (
            before.iter().filter(|value| !after.contains(value)).collect(),
            after.iter().filter(|value| !before.contains(value)).collect(),
        );
        match (before.is_empty(), after.is_empty()) {
            (true, true) => {}
            (true, false) => self.tell(path, "enum-added", true, format!("only {} pass", list(&gained))),
            (false, true) => self.tell(path, "enum-removed", false, "any value passes"),
            (false, false) => {
                if !lost.is_empty() {
                    self.tell(path, "enum-values-removed", true, format!("without {}", list(&lost)));
                }
                if !gained.is_empty() {
                    self.tell(path, "enum-values-added", false, format!("with {}", list(&gained)));
                }
            }
        }
    }

    fn below(&mut self, path: &str, old: &Structural, new: &Structural) {
        for (name, before) in old.properties.iter() {
            let path = join(path, name);
            match new.properties.get(name) {
                Some(after) => self.node(&path, before, after),
                None => {
                    let stays = new.extensions.preserve_unknown_fields;
                    let detail = if stays { "it is no longer checked" } else { "it is dropped from objects" };
                    self.tell(&path, "property-removed", !stays, detail);
                }
            }
        }
        for name in new.properties.keys().filter(|name| !old.properties.contains_key(name)) {
            self.tell(&join(path, name), "property-added", false, "a new field");
        }
        if let (Some(before), Some(after)) = (&old.items, &new.items) {
            self.node(&format!("{path}[*]"), before, after);
        }
        match (&old.additional_properties, &new.additional_properties) {
            (Some(StructuralOrBool::Structural(before)), Some(StructuralOrBool::Structural(after))) => {
                self.node(&format!("{path}[*]"), before, after);
            }
            (Some(_), None) => self.tell(path, "entries-removed", true, "it is a map no longer"),
            (None, Some(_)) => self.tell(path, "entries-added", false, "it takes any keys"),
            _ => {}
        }
    }
}

fn type_of(schema: &Structural) -> String {
    match (schema.extensions.int_or_string, schema.generic.type_.as_str()) {
        (true, _) => "integer or string".to_owned(),
        (false, "") => "any".to_owned(),
        (false, type_) => type_.to_owned(),
    }
}

fn shown(value: &Value) -> String {
    json::encode_to_string(value)
}

fn list(values: &[&Value]) -> String {
    values.iter().map(|value| shown(value)).collect::<Vec<_>>().join(", ")
}
