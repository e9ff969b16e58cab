//! The changes from one schema to another, node by node.

use std::cell::OnceCell;
use std::collections::{BTreeSet, HashMap};

use super::Degree::{self, Breaking, MayBreak, Safe};
use super::before::Before;
use super::beyond::{is_meta_field, is_undescribed, items, meta_field, others, takes_all_types, takes_objects};
use super::watchers::{Watcher, are_watching};
use super::{DefinitionChange, change, join, rules};
use crate::author::lint::decide_without;
use crate::crd::bounds::descend;
use crate::crd::validate::expressions::{RuleCosts, SchemaCosts, SchemaStep};
use crate::meta::field::Path;
use crate::meta::format::Format;
use crate::schema::json_schema::ValidationRule;
use crate::schema::structural::{Structural, ValueValidation};
use crate::schema::validate::validate;
use crate::value::{Value, json};
use crate::work;

/// A walk over two schemas of a version.
pub struct SchemaComparison<'w> {
    version: &'w str,
    changes: &'w mut Vec<DefinitionChange>,
    /// The rules of the new schema, compiled, by the ways to their nodes and by what they say.
    rules: HashMap<(&'w [SchemaStep], &'w str), &'w RuleCosts>,
    roots: Option<(&'w Structural, &'w Structural)>,
    /// The values that may have been there before, computed when a rule needs them.
    before: OnceCell<Before>,
    /// From the roots to the nodes.
    steps: Vec<SchemaStep>,
    /// The checks of the parents in the new schema, one for each step.
    watchers: Vec<Watcher>,
}

impl<'w> SchemaComparison<'w> {
    pub fn new(version: &'w str, changes: &'w mut Vec<DefinitionChange>, costs: Option<&'w SchemaCosts>) -> Self {
        let rules = costs.into_iter().flat_map(|costs| &costs.rules);
        let rules = rules.map(|rule| ((rule.steps.as_slice(), rule.rule.rule.as_str()), rule)).collect();
        SchemaComparison {
            version,
            changes,
            rules,
            roots: None,
            before: OnceCell::new(),
            steps: Vec::new(),
            watchers: Vec::new(),
        }
    }

    /// Tells what changes from `old` to `new`.
    pub fn compare(mut self, old: &'w Structural, new: &'w Structural) {
        self.roots = Some((old, new));
        self.node("", old, new);
    }

    fn tell(&mut self, path: &str, id: &'static str, degree: Degree, detail: impl Into<String>) {
        let path = if path.is_empty() { "<nil>" } else { path };
        self.changes.push(change(Some(self.version.to_owned()), path, id, degree, detail.into()));
    }

    /// Whether a rule of the new schema, at the current node, holds for everything that the old schema accepted.
    fn always_holds(&self, rule: &ValidationRule) -> bool {
        let known = self.rules.get(&(self.steps.as_slice(), rule.rule.as_str()));
        let (Some((old, new)), Some(known)) = (self.roots, known) else { return false };
        let Some(expression) = &known.compiled.expression else { return false };
        let before = self.before.get_or_init(|| Before::new(old, new));
        let Some(node) = descend(&before.schema, &self.steps) else { return false };
        let is_resource = self.steps.is_empty() || node.extensions.embedded_resource;
        let rule = &expression.checked.ast.expr;
        let decision = decide_without(rule, node, is_resource, &self.steps, &before.never);
        !decision.may_fail && !decision.may_break
    }

    /// The degree of a change that alters a value without refusing it: checks of the parents may refuse it then.
    fn unless_watched(&self) -> Degree {
        if are_watching(&self.watchers, &self.steps) { MayBreak } else { Safe }
    }

    fn node(&mut self, path: &str, old: &Structural, new: &Structural) {
        work::step();
        let is_comparable = self.types(path, old, new);
        match (old.generic.nullable, new.generic.nullable) {
            (true, false) => self.tell(path, "nullable-removed", Breaking, "null is dropped or refused"),
            (false, true) => {
                let degree = if takes_null(new) { self.unless_watched() } else { MayBreak };
                self.tell(path, "nullable-added", degree, "null is kept, which was dropped");
            }
            _ => {}
        }
        match (&old.generic.default, &new.generic.default) {
            (Some(before), None) => self.tell(path, "default-removed", MayBreak, format!("it was {}", shown(before))),
            (None, Some(after)) => {
                self.tell(path, "default-added", self.unless_watched(), format!("it is {}", shown(after)));
            }
            (Some(before), Some(after)) if before != after => {
                // Objects that leave the field out read differently, those in the store included.
                self.tell(path, "default-changed", MayBreak, format!("{} became {}", shown(before), shown(after)));
            }
            _ => {}
        }
        self.merging(path, old, new);
        self.values(path, old, new);
        for (id, degree, detail) in rules::diff(&old.validations, &new.validations, |rule| self.always_holds(rule)) {
            self.tell(path, id, degree, detail);
        }
        if is_comparable {
            self.watchers.push(Watcher::of(new));
            self.below(path, old, new);
            self.watchers.pop();
        }
    }

    /// Reports a change of the type; returns whether there are values of both, so that the parts below can be compared.
    fn types(&mut self, path: &str, old: &Structural, new: &Structural) -> bool {
        let (before, after) = (type_of(old), type_of(new));
        if before == after {
            return true;
        }
        // A wider type accepts everything that the old one did.
        let widens = matches!(
            (before.as_str(), after.as_str()),
            (_, "any") | ("integer", "number" | "integer or string") | ("string", "integer or string")
        );
        let degree = if !widens {
            Breaking
        } else if new.validations.is_empty() {
            self.unless_watched()
        } else {
            // Rules see a value of another type.
            MayBreak
        };
        self.tell(path, "type-changed", degree, format!("{before} became {after}"));
        widens
    }

    fn merging(&mut self, path: &str, old: &Structural, new: &Structural) {
        let list_type =
            |schema: &Structural| schema.extensions.list_type.clone().unwrap_or_else(|| "atomic".to_owned());
        let (before, after) = (list_type(old), list_type(new));
        if before != after {
            // A client that applies the list owns and replaces other items than before.
            self.tell(path, "list-type-changed", MayBreak, format!("{before} became {after}"));
        } else if old.extensions.list_map_keys != new.extensions.list_map_keys {
            self.tell(path, "list-map-keys-changed", MayBreak, "items are told apart by other keys");
        }
        let map_type = |schema: &Structural| schema.extensions.map_type.clone().unwrap_or("granular".to_owned());
        let (before, after) = (map_type(old), map_type(new));
        if before != after {
            self.tell(
                path,
                "map-type-changed",
                if after == "atomic" { MayBreak } else { Safe },
                format!("{before} became {after}"),
            );
        }
        match (old.extensions.embedded_resource, new.extensions.embedded_resource) {
            (false, true) => {
                let detail = "what has no apiVersion, kind and metadata of a resource is refused";
                self.tell(path, "embedded-resource-added", Breaking, detail);
            }
            (true, false) => {
                let stay = new.extensions.preserve_unknown_fields;
                let detail = if stay { "it is a resource no longer" } else { "what it does not specify is dropped" };
                self.tell(path, "embedded-resource-removed", if stay { Safe } else { Breaking }, detail);
            }
            _ => {}
        }
    }

    fn values(&mut self, path: &str, old: &Structural, new: &Structural) {
        let none = ValueValidation::default();
        let before = old.value_validation.as_deref().unwrap_or(&none);
        let after = new.value_validation.as_deref().unwrap_or(&none);
        self.required(path, new, before, after);
        // If all values were listed, the list decides which ones no longer pass.
        let is_listed = !before.enum_.is_empty();
        let narrower = |degree| if is_listed { Safe } else { degree };
        self.bounds(path, before, after, narrower(Breaking));
        let texts = [("pattern", &before.pattern, &after.pattern), ("format", &before.format, &after.format)];
        for (name, before, after) in texts.into_iter().filter(|(_, before, after)| before != after) {
            let detail = match (before.as_str(), after.as_str()) {
                (before, "") => format!("{name} `{before}` removed"),
                ("", after) => format!("{name} `{after}` added"),
                (before, after) => format!("{name} `{before}` became `{after}`"),
            };
            // Whether one pattern accepts everything that another does can't be decided.
            let degree = match (held(name, old, before), held(name, new, after)) {
                (_, "") => Safe,
                (before, after) if before == after => Safe,
                ("", _) if name == "pattern" => Breaking,
                _ => MayBreak,
            };
            self.tell(path, "text-constraint-changed", narrower(degree), detail);
        }
        match (before.bounds.multiple_of, after.bounds.multiple_of) {
            (before, after) if before == after => {}
            (Some(before), None) => {
                self.tell(path, "multiple-of-changed", Safe, format!("multipleOf {before} removed"))
            }
            (None, Some(after)) => {
                self.tell(path, "multiple-of-changed", narrower(Breaking), format!("multipleOf {after} added"));
            }
            (Some(before), Some(after)) => {
                let is_safe = before % after == 0.0;
                let degree = if is_safe { Safe } else { narrower(Breaking) };
                self.tell(path, "multiple-of-changed", degree, format!("multipleOf {before} became {after}"));
            }
            (None, None) => {}
        }
        self.enumeration(path, old, new, before, after);
        if before.junctors != after.junctors {
            let degree = if after.junctors.is_blank() { Safe } else { narrower(MayBreak) };
            self.tell(path, "junctors-changed", degree, "allOf, anyOf, oneOf or not differ");
        }
    }

    fn bounds(&mut self, path: &str, before: &ValueValidation, after: &ValueValidation, narrower: Degree) {
        let as_float = |bound: Option<i64>| bound.map(|bound| bound as f64);
        // Nothing has a size below 0.
        let of_sizes = |bound: Option<i64>| as_float(bound.filter(|bound| *bound > 0));
        let upper = [
            ("maximum", before.bounds.maximum, after.bounds.maximum),
            ("maxLength", as_float(before.bounds.max_length), as_float(after.bounds.max_length)),
            ("maxItems", as_float(before.bounds.max_items), as_float(after.bounds.max_items)),
            ("maxProperties", as_float(before.bounds.max_properties), as_float(after.bounds.max_properties)),
        ];
        let lower = [
            ("minimum", before.bounds.minimum, after.bounds.minimum),
            ("minLength", of_sizes(before.bounds.min_length), of_sizes(after.bounds.min_length)),
            ("minItems", of_sizes(before.bounds.min_items), of_sizes(after.bounds.min_items)),
            ("minProperties", of_sizes(before.bounds.min_properties), of_sizes(after.bounds.min_properties)),
        ];
        let bounds = upper.into_iter().map(|bound| (bound, 1.0)).chain(lower.into_iter().map(|bound| (bound, -1.0)));
        for ((name, before, after), sign) in bounds {
            let (detail, tightens) = match (before, after) {
                (None, Some(after)) => (format!("{name} {after} added"), true),
                (Some(before), None) => (format!("{name} {before} removed"), false),
                (Some(before), Some(after)) if before != after => {
                    (format!("{name} {before} became {after}"), after * sign < before * sign)
                }
                _ => continue,
            };
            let (id, degree) = if tightens { ("bound-tightened", narrower) } else { ("bound-loosened", Safe) };
            self.tell(path, id, degree, detail);
        }
        for (name, before, after) in [
            ("exclusiveMaximum", before.bounds.exclusive_maximum, after.bounds.exclusive_maximum),
            ("exclusiveMinimum", before.bounds.exclusive_minimum, after.bounds.exclusive_minimum),
            ("uniqueItems", before.bounds.unique_items, after.bounds.unique_items),
        ] {
            let (id, degree) = if after { ("bound-tightened", narrower) } else { ("bound-loosened", Safe) };
            if before != after {
                self.tell(path, id, degree, format!("{name} became {after}"));
            }
        }
    }

    fn required(&mut self, path: &str, new: &Structural, before: &ValueValidation, after: &ValueValidation) {
        let is_resource = self.steps.is_empty() || new.extensions.embedded_resource;
        let is_kept = |name: &String| is_resource && is_meta_field(name);
        let added = after.required.iter().filter(|name| !before.required.contains(name) && !is_kept(name));
        // A name may occur twice.
        for name in added.collect::<BTreeSet<_>>() {
            let has_default = new.properties.get(name).is_some_and(|property| property.generic.default.is_some());
            let detail = if has_default { "it has a default" } else { "it has no default" };
            self.tell(&join(path, name), "required-added", if has_default { Safe } else { Breaking }, detail);
        }
        for name in before.required.iter().filter(|name| !after.required.contains(name)) {
            self.tell(&join(path, name), "required-removed", Safe, "it may be left out");
        }
    }

    /// The values of the old list that no longer pass, because of a new list or whatever replaced it.
    fn enumeration(
        &mut self,
        path: &str,
        old: &Structural,
        new: &Structural,
        before: &ValueValidation,
        after: &ValueValidation,
    ) {
        let passes = |value: &Value, schema: &Structural| validate(&Path::ROOT, value, schema).is_empty();
        let (own_old, own_new) = (alone(old), alone(new));
        // A value that is not listed is refused with the whole list.
        let passes_now = |value: &Value| {
            let may_pass = after.enum_.is_empty() || is_listed(after, value);
            may_pass && passes(value, &own_new)
        };
        let lost: Vec<&Value> =
            before.enum_.iter().filter(|value| passes(value, &own_old) && !passes_now(value)).collect();
        if !lost.is_empty() {
            self.tell(path, "enum-values-removed", Breaking, format!("without {}", list(&lost)));
        }
        let gained: Vec<&Value> = after.enum_.iter().filter(|value| !is_listed(before, value)).collect();
        match (before.enum_.is_empty(), after.enum_.is_empty()) {
            (true, false) => self.tell(path, "enum-added", Breaking, format!("only {} pass", list(&gained))),
            (false, true) => {
                let is_bare = after.pattern.is_empty() && after.format.is_empty() && after.junctors.is_blank();
                let detail = if is_bare { "any value passes" } else { "other values pass, too" };
                self.tell(path, "enum-removed", Safe, detail);
            }
            (false, false) if !gained.is_empty() => {
                self.tell(path, "enum-values-added", Safe, format!("with {}", list(&gained)));
            }
            _ => {}
        }
    }

    fn step(&mut self, step: SchemaStep, path: &str, old: &Structural, new: &Structural) {
        self.steps.push(step);
        self.node(path, old, new);
        self.steps.pop();
    }

    fn below(&mut self, path: &str, old: &Structural, new: &Structural) {
        let is_resource = self.steps.is_empty() || new.extensions.embedded_resource;
        let names =
            old.properties.keys().chain(new.properties.keys().filter(|name| !old.properties.contains_key(name)));
        for name in names {
            let (before, after) = (old.properties.get(name), new.properties.get(name));
            if is_resource && is_meta_field(name) {
                self.meta_field(path, name, before, after);
                continue;
            }
            let (path, step) = (join(path, name), SchemaStep::Property(name.to_owned()));
            match (before, after) {
                (Some(before), Some(after)) => self.step(step, &path, before, after),
                (Some(before), None) => self.removed(step, &path, before, others(new)),
                (None, Some(after)) => self.added(step, &path, others(old), after),
                (None, None) => {}
            }
        }
        self.others(path, old, new);
        if let (Some(before), Some(after)) = (items(old), items(new))
            && !(is_undescribed(before) && is_undescribed(after))
        {
            self.step(SchemaStep::Items, &format!("{path}[*]"), before, after);
        }
    }

    /// A field that the server keeps and checks in resources, whether it is specified or not.
    fn meta_field(&mut self, path: &str, name: &str, before: Option<&Structural>, after: Option<&Structural>) {
        let path = join(path, name);
        match (before, after) {
            (Some(_), None) => self.tell(&path, "property-removed", Safe, "the server keeps it"),
            (None, Some(_)) => self.tell(&path, "property-added", Safe, "the server kept it before"),
            _ => {}
        }
        self.step(SchemaStep::Property(name.to_owned()), &path, &meta_field(name, before), &meta_field(name, after));
    }

    /// A property that was removed: `now` is the schema that applies to its values.
    fn removed(&mut self, step: SchemaStep, path: &str, before: &Structural, now: Option<&Structural>) {
        let had_default = before.generic.default.is_some();
        match now {
            None => self.tell(path, "property-removed", Breaking, "it is dropped from objects"),
            Some(now) if takes_all_types(now) && now.extensions.preserve_unknown_fields => {
                let (degree, more) = if had_default { (MayBreak, ", and has no default") } else { (Safe, "") };
                self.tell(path, "property-removed", degree, format!("it is no longer checked{more}"));
            }
            Some(now) => {
                self.tell(path, "property-removed", Safe, "it is an entry of the map");
                self.step(step, path, before, now);
            }
        }
    }

    /// A property that is new: `was` is what its values were held to.
    fn added(&mut self, step: SchemaStep, path: &str, was: Option<&Structural>, after: &Structural) {
        self.steps.push(step.clone());
        let filled = if after.generic.default.is_some() { self.unless_watched() } else { Safe };
        self.steps.pop();
        match was {
            None => self.tell(path, "property-added", filled, "a new field"),
            Some(was) if is_undescribed(was) => {
                let told = self.changes.len();
                self.step(step, path, was, after);
                let is_safe = self.changes[told..].iter().all(|change| change.degree == Safe);
                self.changes.truncate(told);
                let (degree, detail) = if is_safe {
                    (filled, "it was kept before")
                } else {
                    (MayBreak, "what was kept may be of no use here")
                };
                self.tell(path, "property-added", degree, detail);
            }
            Some(was) => {
                self.tell(path, "property-added", Safe, "it was an entry of the map");
                self.step(step, path, was, after);
            }
        }
    }

    /// The treatment of fields that are not named.
    fn others(&mut self, path: &str, old: &Structural, new: &Structural) {
        let (is_kept, was_kept) = (new.extensions.preserve_unknown_fields, old.extensions.preserve_unknown_fields);
        match (others(old), others(new)) {
            // It had no fields at all.
            _ if !takes_objects(old) => {}
            (None, None) => {}
            (None, Some(_)) if is_kept => {
                self.tell(path, "unknown-fields-kept", Safe, "fields that are not specified stay");
            }
            (None, Some(_)) => self.tell(path, "entries-added", Safe, "it takes any keys"),
            (Some(_), None) if was_kept => {
                self.tell(path, "unknown-fields-pruned", Breaking, "fields that are not specified are dropped");
            }
            (Some(_), None) => self.tell(path, "entries-removed", Breaking, "it is a map no longer"),
            (Some(before), Some(after)) if std::ptr::eq(before, after) => {}
            (Some(before), Some(after)) => self.step(SchemaStep::Values, &format!("{path}[*]"), before, after),
        }
    }
}

/// The effective pattern or format of texts: a server only checks the formats that it knows for the type.
fn held<'t>(name: &str, schema: &Structural, text: &'t str) -> &'t str {
    if name == "format" { Format::effective(&schema.generic.type_, text) } else { text }
}

/// Whether null passes once it is kept: a list of values or a junctor may not take it.
fn takes_null(schema: &Structural) -> bool {
    schema.value_validation.as_deref().is_none_or(|values| {
        (values.enum_.is_empty() || values.enum_.contains(&Value::Null)) && values.junctors.is_blank()
    })
}

/// The node's own constraints on a value.
fn alone(schema: &Structural) -> Structural {
    Structural {
        generic: schema.generic.clone(),
        extensions: schema.extensions.clone(),
        value_validation: schema.value_validation.clone(),
        ..Structural::default()
    }
}

fn is_listed(values: &ValueValidation, value: &Value) -> bool {
    work::step();
    match (&values.enum_index, value) {
        (Some(index), Value::String(_) | Value::Int(_) | Value::Float(_)) => index.contains(value),
        _ => values.enum_.contains(value),
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
