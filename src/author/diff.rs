//! What a new definition changes for those who use the old one.
//!
//! In: two definitions of a kind. Out: the changes, each breaking (an object or a client that was fine may no longer be) or
//! safe. Whether two rules say the same is not decided: another text is another rule. Objects can be replayed to see
//! which are hit.

use std::collections::BTreeSet;

use super::Kind;
use super::check::{Options, create, update};
use crate::crd::ServedVersion;
use crate::schema::structural::{Structural, StructuralOrBool, ValueValidation};
use crate::value::{Value, json};

/// A change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// `None` for what is no version's own.
    pub version: Option<String>,
    /// The field of objects, `spec.ports[*]`, or that of the definition.
    pub path: String,
    /// What kind of change: `property-removed`, …
    pub id: &'static str,
    pub breaks: bool,
    pub detail: String,
}

/// What came of an object under both definitions.
#[derive(Clone, Debug, Default)]
pub struct Replayed {
    /// Errors of creating it, in fields that the old definition had nothing against.
    pub errors: Vec<String>,
    /// Whether the errors are forgiven as long as the object is left alone.
    pub ratchets: bool,
    /// Fields that only the new definition drops.
    pub lost: Vec<String>,
    /// Fields that only the new definition sets.
    pub defaulted: Vec<String>,
}

/// What `new` changes.
pub fn diff(old: &Kind, new: &Kind) -> Vec<Change> {
    let mut changes = Vec::new();
    let (before, after) = (&old.definition.spec, &new.definition.spec);
    let names = [
        ("spec.scope", "scope-changed", &before.scope, &after.scope),
        ("spec.group", "group-changed", &before.group, &after.group),
        ("spec.names.kind", "kind-changed", &before.names.kind, &after.names.kind),
        ("spec.names.plural", "plural-changed", &before.names.plural, &after.names.plural),
    ];
    for (path, id, before, after) in names {
        if before != after {
            changes.push(change(None, path, id, true, format!("`{before}` became `{after}`")));
        }
    }
    for name in before.names.short_names.iter().filter(|name| !after.names.short_names.contains(name)) {
        changes.push(change(None, "spec.names.shortNames", "short-name-removed", true, format!("`{name}` is gone")));
    }
    for before in &old.versions {
        let name = Some(before.version.clone());
        match new.versions.iter().find(|after| after.version == before.version) {
            None => {
                let detail = "objects can't be read nor written in this version".to_owned();
                changes.push(change(name, "spec.versions", "version-removed", before.served, detail));
            }
            Some(after) => diff_versions(before, after, &mut changes),
        }
    }
    for added in new.versions.iter().filter(|new| !old.versions.iter().any(|old| old.version == new.version)) {
        let name = Some(added.version.clone());
        changes.push(change(name, "spec.versions", "version-added", false, "a new version".to_owned()));
    }
    changes
}

fn change(version: Option<String>, path: &str, id: &'static str, breaks: bool, detail: String) -> Change {
    Change { version, path: path.to_owned(), id, breaks, detail }
}

fn diff_versions(old: &ServedVersion, new: &ServedVersion, changes: &mut Vec<Change>) {
    let mut tell = |path: &str, id, breaks, detail: &str| {
        changes.push(change(Some(old.version.clone()), path, id, breaks, detail.to_owned()));
    };
    match (old.served, new.served) {
        (true, false) => tell("served", "version-unserved", true, "the version is no longer served"),
        (false, true) => tell("served", "version-served", false, "the version is served"),
        _ => {}
    }
    if old.storage != new.storage {
        let detail = if new.storage {
            "objects are stored in this version now"
        } else {
            "objects are stored in another version now"
        };
        tell("storage", "storage-version-changed", false, detail);
    }
    match (old.status, new.status) {
        (true, false) => tell("subresources.status", "status-removed", true, "/status is gone"),
        (false, true) => {
            tell("subresources.status", "status-added", true, "writes to the object no longer change its status");
        }
        _ => {}
    }
    match (&old.scale, &new.scale) {
        (Some(_), None) => tell("subresources.scale", "scale-removed", true, "/scale is gone"),
        (Some(old), Some(new)) if old != new => {
            tell("subresources.scale", "scale-changed", true, "its paths are others");
        }
        _ => {}
    }
    for field in old.selectable_fields.iter().filter(|field| !new.selectable_fields.contains(field)) {
        tell("selectableFields", "selectable-field-removed", true, &format!("`{field}` can't be selected by any more"));
    }
    if old.columns != new.columns {
        tell("additionalPrinterColumns", "columns-changed", false, "kubectl get prints other columns");
    }
    Walk { version: &old.version, changes }.node("", &old.structural, &new.structural);
}

/// A walk over two schemas of a version.
struct Walk<'w> {
    version: &'w str,
    changes: &'w mut Vec<Change>,
}

impl Walk<'_> {
    fn tell(&mut self, path: &str, id: &'static str, breaks: bool, detail: impl Into<String>) {
        let path = if path.is_empty() { "<nil>" } else { path };
        self.changes.push(change(Some(self.version.to_owned()), path, id, breaks, detail.into()));
    }

    fn node(&mut self, path: &str, old: &Structural, new: &Structural) {
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
                self.tell(path, "default-changed", false, format!("{} became {}", shown(before), shown(after)));
            }
            _ => {}
        }
        self.unknown_fields(path, old, new);
        self.merging(path, old, new);
        self.values(path, old, new);
        self.rules(path, old, new);
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
            let breaks = after != "atomic";
            self.tell(path, "list-type-changed", breaks, format!("{before} became {after}"));
        } else if old.extensions.list_map_keys != new.extensions.list_map_keys {
            self.tell(path, "list-map-keys-changed", true, "items are told apart by other keys");
        }
        if old.extensions.map_type != new.extensions.map_type {
            self.tell(path, "map-type-changed", false, "fields are owned and merged in another way");
        }
    }

    fn values(&mut self, path: &str, old: &Structural, new: &Structural) {
        let none = ValueValidation::default();
        let before = old.value_validation.as_deref().unwrap_or(&none);
        let after = new.value_validation.as_deref().unwrap_or(&none);
        self.required(path, new, before, after);
        let as_float = |bound: Option<i64>| bound.map(|bound| bound as f64);
        let upper = [
            ("maximum", before.maximum, after.maximum),
            ("maxLength", as_float(before.max_length), as_float(after.max_length)),
            ("maxItems", as_float(before.max_items), as_float(after.max_items)),
            ("maxProperties", as_float(before.max_properties), as_float(after.max_properties)),
        ];
        let lower = [
            ("minimum", before.minimum, after.minimum),
            ("minLength", as_float(before.min_length), as_float(after.min_length)),
            ("minItems", as_float(before.min_items), as_float(after.min_items)),
            ("minProperties", as_float(before.min_properties), as_float(after.min_properties)),
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
            ("exclusiveMaximum", before.exclusive_maximum, after.exclusive_maximum),
            ("exclusiveMinimum", before.exclusive_minimum, after.exclusive_minimum),
            ("uniqueItems", before.unique_items, after.unique_items),
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
        if before.multiple_of != after.multiple_of {
            self.tell(path, "multiple-of-changed", after.multiple_of.is_some(), "multipleOf is another");
        }
        self.enumeration(path, &before.enum_, &after.enum_);
        let junctors = |values: &ValueValidation| {
            (values.all_of.clone(), values.any_of.clone(), values.one_of.clone(), values.not.clone())
        };
        if junctors(before) != junctors(after) {
            let gone =
                after.all_of.is_empty() && after.any_of.is_empty() && after.one_of.is_empty() && after.not.is_none();
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

    fn rules(&mut self, path: &str, old: &Structural, new: &Structural) {
        let texts = |schema: &Structural| {
            schema.validations.iter().map(|rule| rule.rule.trim().to_owned()).collect::<BTreeSet<_>>()
        };
        let (before, after) = (texts(old), texts(new));
        for rule in after.difference(&before) {
            self.tell(path, "rule-added", true, format!("`{rule}`; values that an update leaves alone are forgiven"));
        }
        for rule in before.difference(&after) {
            self.tell(path, "rule-removed", false, format!("`{rule}`"));
        }
    }

    fn below(&mut self, path: &str, old: &Structural, new: &Structural) {
        for (name, before) in &old.properties {
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
        for name in new.properties.keys().filter(|name| !old.properties.contains_key(*name)) {
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

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn shown(value: &Value) -> String {
    json::encode_to_string(value)
}

fn list(values: &[&Value]) -> String {
    values.iter().map(|value| shown(value)).collect::<Vec<_>>().join(", ")
}

/// What `object` comes to under both kinds.
pub fn replay(old: &Kind, new: &Kind, object: &Value) -> Replayed {
    let mut object = object.clone();
    // Stored objects have what creation refuses.
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("resourceVersion");
    }
    let (before, after) = (create(old, &object, Options::default()), create(new, &object, Options::default()));
    let is_known = |field: &str| before.errors.iter().any(|rejected| rejected.error.field == field);
    let errors = after.errors.iter().map(|rejected| &rejected.error).filter(|error| !is_known(&error.field));
    let errors: Vec<String> = errors.map(|error| error.to_string()).collect();
    let ratchets = !errors.is_empty() && update(new, &object, &object, Options::default()).errors.is_empty();
    let lost = after.unknown.iter().filter(|path| !before.unknown.contains(path)).cloned().collect();
    let mut defaulted = Vec::new();
    gained("", &before.object, &after.object, &mut defaulted);
    Replayed { errors, ratchets, lost, defaulted }
}

/// The paths of what only `after` has.
fn gained(path: &str, before: &Value, after: &Value, found: &mut Vec<String>) {
    match (before, after) {
        (Value::Object(old), Value::Object(new)) => {
            for (name, value) in new.iter() {
                match old.get(name) {
                    Some(before) => gained(&join(path, name), before, value, found),
                    None => found.push(join(path, name)),
                }
            }
        }
        (Value::Array(old), Value::Array(new)) => {
            for (index, (before, after)) in old.iter().zip(new).enumerate() {
                gained(&format!("{path}[{index}]"), before, after, found);
            }
        }
        _ => {}
    }
}
