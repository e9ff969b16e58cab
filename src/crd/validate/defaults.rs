//! Defaults of a schema: pruned, valid, and good metadata where they stand in metadata.
//!
//! Source: apiextensions-apiserver 1.37, answers recorded from it.

use crate::meta::field::{Error, ErrorList, Path, aggregate};
use crate::schema::structural::Structural;
use crate::schema::{coerce, prune, validate};
use crate::value::{Map, Value};

/// What is wrong with the defaults of `schema`, the root of a version. Defaults in `additionalProperties` are not visited.
pub fn validate_defaults(schema: &Structural, require_pruned: bool, path: &Path<'_>) -> ErrorList {
    let mut visit = Visit { require_pruned, errors: ErrorList::new() };
    let resource = Resource { schema, way: None };
    visit.enter(schema, &resource, true, false, path);
    visit.errors
}

/// The object that a schema is part of, at the root or embedded, and the way from there.
#[derive(Clone, Copy)]
struct Resource<'r> {
    schema: &'r Structural,
    way: Option<&'r Way<'r>>,
}

/// The last step and those before it; an item where it has no name.
struct Way<'r> {
    name: Option<&'r str>,
    before: Option<&'r Way<'r>>,
}

impl Resource<'_> {
    /// An object with `value` where the way ends, and nothing else but a type.
    fn surround(&self, value: &Value) -> Value {
        let mut object = value.clone();
        let mut way = self.way;
        while let Some(step) = way {
            object = match step.name {
                Some(name) => Map::from_iter([(name.to_owned(), object)]).into(),
                None => vec![object].into(),
            };
            way = step.before;
        }
        if let Value::Object(fields) = &mut object {
            for (name, text) in [("kind", "Validation"), ("apiVersion", "validation/v1")] {
                if !fields.contains_key(name) {
                    fields.insert(name, text.into());
                }
            }
        }
        object
    }
}

struct Visit {
    require_pruned: bool,
    errors: ErrorList,
}

impl Visit {
    fn enter(&mut self, schema: &Structural, outer: &Resource<'_>, is_root: bool, inside_meta: bool, path: &Path<'_>) {
        let is_resource = is_root || schema.extensions.embedded_resource;
        let inside_meta = inside_meta && !is_resource;
        let resource = if is_resource { Resource { schema, way: None } } else { *outer };
        if let Some(default) = schema.generic.default.as_ref().filter(|default| !default.is_null()) {
            let path = path.child("default");
            match inside_meta {
                true => self.check_meta_default(default, schema, &resource, &path),
                false => self.check_default(default, schema, is_resource, &path),
            }
        }
        if let Some(items) = &schema.items {
            let way = Way { name: None, before: resource.way };
            let within = Resource { way: Some(&way), ..resource };
            self.enter(items, &within, false, inside_meta, &path.child("items"));
        }
        let properties_path = path.child("properties");
        for (name, property) in &schema.properties {
            let is_meta = is_resource && matches!(name.as_str(), "metadata" | "apiVersion" | "kind");
            let way = Way { name: Some(name), before: resource.way };
            let within = Resource { way: Some(&way), ..resource };
            self.enter(property, &within, false, inside_meta || is_meta, &properties_path.key(name));
        }
    }

    fn check_meta_default(&mut self, default: &Value, schema: &Structural, resource: &Resource<'_>, path: &Path<'_>) {
        let mut object = resource.surround(default);
        let found = match coerce::coerce(&Path::ROOT, &mut object, resource.schema, true, false) {
            Err(error) => vec![error],
            Ok(_) => coerce::validate_embedded(&Path::ROOT, &object, resource.schema, true),
        };
        if found.is_empty() {
            return self.errors.extend(validate::validate_default(path, default, schema));
        }
        let detail = format!("must result in valid metadata: {}", aggregate(&found));
        self.errors.push(Error::invalid(path, default.clone(), detail));
    }

    fn check_default(&mut self, default: &Value, schema: &Structural, is_resource: bool, path: &Path<'_>) {
        let mut pruned = default.clone();
        prune::prune(&mut pruned, schema, is_resource);
        let is_pruned = !self.require_pruned || pruned == *default;
        let mut default = default.clone();
        let coerced = coerce::coerce(path, &mut default, schema, is_resource, false);
        if !is_pruned {
            // The message shows the default with its metadata coerced.
            self.errors.push(Error::invalid(path, default.clone(), "must not have unknown fields"));
        }
        if let Err(error) = coerced {
            return self.errors.push(error);
        }
        let found = coerce::validate_embedded(path, &default, schema, is_resource);
        match found.is_empty() {
            true => self.errors.extend(validate::validate_default(path, &default, schema)),
            false => self.errors.extend(found),
        }
    }
}
