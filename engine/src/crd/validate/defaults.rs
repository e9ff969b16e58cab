//! Defaults of a schema: they must be pruned, be valid, be valid metadata where they are in metadata, and satisfy their
//! rules.
//!
//! Source: apiextensions-apiserver 1.37, answers recorded from it.

use crate::meta::field::{Error, ErrorList, Path};
use crate::meta::minor::Minor;
use crate::schema::rules::{CostLimits, Rules};
use crate::schema::structural::Structural;
use crate::schema::{coerce, prune, validate};
use crate::value::{Map, Value};

/// The errors in the defaults of `schema`, the root of a version. Defaults in `additionalProperties` are not visited.
pub fn validate_defaults(minor: Minor, schema: &Structural, require_pruned: bool, path: &Path<'_>) -> ErrorList {
    let mut visit = Visit { minor, require_pruned, errors: ErrorList::new(), limits: CostLimits::default() };
    let resource = EmbeddingObject { schema, way: None };
    // Once the rules have exceeded their budget, no further defaults are checked.
    let _ = visit.enter(schema, &resource, true, false, path);
    visit.errors
}

/// The object that a schema is part of, at the root or embedded, and the path from there.
#[derive(Clone, Copy)]
struct EmbeddingObject<'r> {
    schema: &'r Structural,
    way: Option<&'r DefaultPath<'r>>,
}

/// The last step and those before it; a step without a name leads to an item.
struct DefaultPath<'r> {
    name: Option<&'r str>,
    before: Option<&'r DefaultPath<'r>>,
}

impl EmbeddingObject<'_> {
    /// An object with `value` at the end of the path; otherwise it has only a type.
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
    minor: Minor,
    require_pruned: bool,
    errors: ErrorList,
    /// The rest of the rules' budget.
    limits: CostLimits,
}

/// The rules of defaults exceeded their budget.
struct Exhausted;

impl Visit {
    fn enter(
        &mut self,
        schema: &Structural,
        outer: &EmbeddingObject<'_>,
        is_root: bool,
        inside_meta: bool,
        path: &Path<'_>,
    ) -> Result<(), Exhausted> {
        let is_resource = is_root || schema.extensions.embedded_resource;
        let inside_meta = inside_meta && !is_resource;
        let resource = if is_resource { EmbeddingObject { schema, way: None } } else { *outer };
        if let Some(default) = schema.generic.default.as_deref().filter(|default| !default.is_null()) {
            let path = path.child("default");
            let valid = if inside_meta {
                self.check_meta_default(default, schema, &resource, &path)
            } else {
                self.check_default(default, schema, is_resource, &path)
            };
            if let Some(default) = valid {
                self.run_rules(&default, schema, is_resource, &path)?;
            }
        }
        if let Some(items) = &schema.items {
            let way = DefaultPath { name: None, before: resource.way };
            let within = EmbeddingObject { way: Some(&way), ..resource };
            self.enter(items, &within, false, inside_meta, &path.child("items"))?;
        }
        let properties_path = path.child("properties");
        for (name, property) in schema.properties.iter() {
            let is_meta = is_resource && matches!(name, "metadata" | "apiVersion" | "kind");
            let way = DefaultPath { name: Some(name), before: resource.way };
            let within = EmbeddingObject { way: Some(&way), ..resource };
            self.enter(property, &within, false, inside_meta || is_meta, &properties_path.key(name))?;
        }
        Ok(())
    }

    /// Returns the default if its rules are still to be checked.
    fn check_meta_default(
        &mut self,
        default: &Value,
        schema: &Structural,
        resource: &EmbeddingObject<'_>,
        path: &Path<'_>,
    ) -> Option<Value> {
        let mut object = resource.surround(default);
        let found = match coerce::coerce(&Path::ROOT, &mut object, resource.schema, true, false) {
            Err(error) => (*error).into(),
            Ok(_) => coerce::validate_embedded(&Path::ROOT, &object, resource.schema, true),
        };
        if found.is_empty() {
            return self.check_values(default.clone(), schema, path);
        }
        let detail = format!("must result in valid metadata: {}", found.aggregate());
        self.errors.push(Error::invalid(path, default.clone(), detail));
        None
    }

    fn check_values(&mut self, default: Value, schema: &Structural, path: &Path<'_>) -> Option<Value> {
        let found = validate::validate_default(path, &default, schema);
        let is_valid = found.is_empty();
        self.errors.extend(found);
        is_valid.then_some(default)
    }

    /// Returns the default if its rules are still to be checked.
    fn check_default(
        &mut self,
        default: &Value,
        schema: &Structural,
        is_resource: bool,
        path: &Path<'_>,
    ) -> Option<Value> {
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
            self.errors.push(*error);
            return None;
        }
        let found = coerce::validate_embedded(path, &default, schema, is_resource);
        if found.is_empty() {
            return self.check_values(default, schema, path);
        }
        self.errors.extend(found);
        None
    }

    /// Runs the rules over a default: first as if it was unchanged by an update, then as if it was new.
    fn run_rules(
        &mut self,
        default: &Value,
        schema: &Structural,
        is_resource: bool,
        path: &Path<'_>,
    ) -> Result<(), Exhausted> {
        let rules = Rules::compile_within(self.minor, schema, is_resource, default);
        if rules.is_empty() {
            return Ok(());
        }
        let kept = rules.evaluate(path, default, Some(default), None, self.limits, &mut |_| {});
        let mut left = kept.left;
        let holds = kept.errors.is_empty();
        self.errors.extend(kept.errors);
        if holds {
            let new = rules.evaluate(path, default, None, None, self.limits, &mut |_| {});
            self.errors.extend(new.errors);
            left = left.min(new.left);
        }
        self.limits.object = left.ok_or(Exhausted)?;
        Ok(())
    }
}
