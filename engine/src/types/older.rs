//! How older minors publish a type: without later fields, and with their own facts about the others.
//!
//! Input: a definition of the newest minor, in the words of v3. Output: that of an older one. The records are in
//! `schemas/since.txt` (fields that were added) and `schemas/before.txt` (fields whose facts have changed).
//!
//! Source: the published modules of each minor, read by `schemas/generate/since` and `schemas/generate/before`.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::source::{find, list_type, since};
use super::table::Field;
use crate::meta::minor::Minor;
use crate::value::{Map, Value, json};
use crate::work;

/// The facts of older minors about the fields of types, by type: `core.v1.PodSpec`.
static BEFORE: LazyLock<HashMap<&str, &str>> = LazyLock::new(|| {
    include_str!(concat!(env!("SCHEMAS"), "/before.txt")).lines().filter_map(|line| line.split_once(' ')).collect()
});

/// Stands for the type itself among the names of its fields.
const SELF: &str = ".";

/// A fact about fields that held until some minor.
struct Fact {
    /// `list=atomic`, `required`.
    said: &'static str,
    until: Minor,
    fields: &'static str,
}

/// The facts of a type; if several are about one field, the newest comes first.
fn facts(name: &str) -> Vec<Fact> {
    let read = |word: &'static str| {
        let (said, rest) = word.split_once("<1.")?;
        let (until, fields) = rest.split_once(':')?;
        Some(Fact { said, until: Minor::of(until.parse().ok()?), fields })
    };
    let mut facts: Vec<Fact> =
        BEFORE.get(name).into_iter().flat_map(|words| words.split(' ').filter_map(read)).collect();
    facts.sort_by_key(|fact| std::cmp::Reverse(fact.until));
    facts
}

/// The fact among `wanted` that an older minor had about a field, if it differs from the newest minor's: its value, or
/// its name if it has none.
pub(crate) fn said_in(minor: Minor, field: &Field, wanted: &[&str]) -> Option<&'static str> {
    let owner = field.owner.filter(|_| minor != Minor::NEWEST)?;
    let facts = facts(&format!("{}.{}", owner.package(), owner.name()));
    let is_it = |fact: &&Fact| minor < fact.until && fact.fields.split(',').any(|name| name == field.json);
    // Of the facts that still held in the minor, the oldest comes last.
    let mut said =
        facts.iter().filter(is_it).rev().map(|fact| fact.said.split_once('=').unwrap_or((fact.said, fact.said)));
    said.find(|(fact, _)| wanted.contains(fact)).map(|(_, value)| value)
}

/// Changes a definition into that of an older minor. `definition` is its name: `io.k8s.api.core.v1.PodSpec`.
pub fn make_older(minor: Minor, definition: &str, schema: &mut Value) {
    if minor == Minor::NEWEST {
        return;
    }
    let Some((at, _)) = definition.rmatch_indices('.').nth(2) else { return };
    let name = &definition[at + 1..];
    let Some((package, of)) = name.rsplit_once('.') else { return };
    forget_fields(schema, |field| since(package, of, field).is_some_and(|since| since > minor));
    let order = find(package, of).map_or(&[][..], |named| named.message().fields);
    for fact in facts(name).iter().filter(|fact| minor < fact.until) {
        fact.fields.split(',').for_each(|field| say(schema, field, fact.said, order));
    }
}

/// Removes properties from a schema.
fn forget_fields(schema: &mut Value, is_newer: impl Fn(&str) -> bool) {
    let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) else { return };
    properties.retain(|name, _| {
        work::step();
        !is_newer(name)
    });
    let required = schema.get_mut("required").and_then(Value::as_array_mut);
    if let Some(required) = required {
        required.retain(|name| !name.as_str().is_some_and(&is_newer));
    }
}

/// Applies an older fact to a field. `order` has the fields in the order of the type.
fn say(schema: &mut Value, field: &str, said: &'static str, order: &[Field]) {
    let (fact, value) = said.split_once('=').unwrap_or((said, ""));
    if matches!(fact, "required" | "optional") {
        return require(schema, field, fact == "required", order);
    }
    let place = if field == SELF { Some(schema) } else { schema.at_mut(&["properties", field]) };
    let Some(place) = place.and_then(Value::as_object_mut) else { return };
    match fact {
        "list" => {
            let (list_type, keys) = list_type(value);
            set(place, "x-kubernetes-list-type", list_type.filter(|_| !value.is_empty()).map(Value::from));
            let keys: Vec<Value> = keys.iter().map(|&key| Value::from(key)).collect();
            set(place, "x-kubernetes-list-map-keys", (!keys.is_empty()).then(|| keys.into()));
        }
        "map" => set(place, "x-kubernetes-map-type", (!value.is_empty()).then(|| value.into())),
        "default" => set(place, "default", json::decode(value.as_bytes()).ok()),
        "enum" => {
            let mut values: Vec<&str> = if value.is_empty() { Vec::new() } else { value.split(',').collect() };
            values.sort_unstable();
            let values: Vec<Value> = values.into_iter().map(Value::from).collect();
            let one = ["items", "additionalProperties"].into_iter().find(|name| place.get(name).is_some());
            let place = match one {
                Some(name) => place.get_mut(name).and_then(Value::as_object_mut),
                None => Some(place),
            };
            if let Some(place) = place {
                set(place, "enum", (!values.is_empty()).then(|| values.into()));
            }
        }
        _ => {}
    }
}

fn set(place: &mut Map, name: &'static str, value: Option<Value>) {
    match value {
        Some(value) => _ = place.insert(name, value),
        None => _ = place.remove(name),
    }
}

/// Adds a field of the schema to the required ones, in the type's order, or removes it.
fn require(schema: &mut Value, field: &str, is_required: bool, order: &[Field]) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut required: Vec<String> = schema.items_at(&["required"]).iter().map(text).collect();
    required.retain(|name| name != field);
    if is_required && schema.at(&["properties", field]).is_some() {
        let place = |name: &str| order.iter().position(|of| of.json == name);
        let at = required.iter().position(|name| place(name) > place(field)).unwrap_or(required.len());
        required.insert(at, field.to_owned());
    }
    let required: Vec<Value> = required.into_iter().map(Value::from).collect();
    set(schema.make_object(), "required", (!required.is_empty()).then(|| required.into()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types;

    /// The definition of a type in a minor.
    fn published(minor: u16, package: &str, name: &str) -> Value {
        types::find(package, name).expect("the type is there").definition_in(Minor::of(minor)).schema
    }

    #[test]
    fn what_was_said_of_a_field_is_said_in_older_minors() {
        let of = |minor, name: &str, path: &[&str]| published(minor, "core.v1", name).at(path).cloned();
        let list_type = ["properties", "args", "x-kubernetes-list-type"];
        assert_eq!(of(29, "Container", &list_type), None);
        assert_eq!(of(30, "Container", &list_type), Some("atomic".into()));
        let keys = ["properties", "env", "x-kubernetes-list-map-keys"];
        assert_eq!(of(29, "Container", &keys), None);
        assert_eq!(of(30, "Container", &keys), Some(vec![Value::from("name")].into()));
        let default = ["properties", "cachingMode", "default"];
        assert_eq!(of(30, "AzureDiskVolumeSource", &default), None);
        assert_eq!(of(31, "AzureDiskVolumeSource", &default), Some("ReadWrite".into()));
        let operators = ["properties", "operator", "enum"];
        assert_eq!(of(34, "Toleration", &operators), Some(["Equal", "Exists"].map(Value::from).to_vec().into()));
        assert_eq!(of(35, "Toleration", &operators).map(|all| all.items_at(&[]).len()), Some(4));
    }

    #[test]
    fn what_was_required_is_required_in_older_minors() {
        let required = |minor, package, name| {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            published(minor, package, name).items_at(&["required"]).iter().map(text).collect::<Vec<_>>()
        };
        assert_eq!(required(37, "apps.v1", "StatefulSetSpec"), ["selector", "template"]);
        assert_eq!(required(32, "apps.v1", "StatefulSetSpec"), ["selector", "template", "serviceName"]);
        assert_eq!(required(36, "apps.v1", "Deployment"), [""; 0]);
        assert_eq!(required(37, "apps.v1", "Deployment"), ["spec"]);
    }

    #[test]
    fn types_of_newer_fields_are_not_referred_to() {
        let references = |minor| {
            let named = types::find("core.v1", "PodSpec").expect("it is there").definition_in(Minor::of(minor));
            assert!(named.schema.at(&["properties", "containers"]).is_some());
            named.references.iter().any(|named| named.name() == "PodSchedulingGroup")
        };
        assert!(references(36) && !references(35));
    }

    #[test]
    fn every_line_of_the_data_is_read_and_is_about_a_type_that_is_here() {
        let text = include_str!(concat!(env!("SCHEMAS"), "/before.txt"));
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (name, words) = line.split_once(' ').expect("a type and facts");
            assert_eq!(facts(name).len(), words.split(' ').count(), "{line}");
            let (package, of) = name.rsplit_once('.').expect("a package and a name");
            let named = types::find(package, of);
            let properties = named.map(|named| named.definition().schema);
            for field in facts(name).iter().flat_map(|fact| fact.fields.split(',')) {
                let is_known = |schema: &Value| {
                    field == SELF || schema.at(&["properties", field]).is_some() || schema.get("properties").is_none()
                };
                assert!(properties.as_ref().is_some_and(is_known), "{name} {field}");
            }
        }
    }
}
