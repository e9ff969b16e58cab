//! Descriptions of types and fields, for people: `schemas/descriptions/GROUP.txt`.
//!
//! A line is a type or a field of a group, in all of its versions, and a sentence: `Namespace.spec: What …`. They are in our own
//! words, as published sentences are not copied. What every list and every object has is described once.

use std::collections::HashMap;
use std::sync::LazyLock;

include!(concat!(env!("OUT_DIR"), "/descriptions.rs"));

/// The descriptions by the groups and names of their subjects: `("core", "Namespace.spec")`.
static SENTENCES: LazyLock<HashMap<(&str, &str), &str>> = LazyLock::new(|| {
    let lines = FILES.iter().flat_map(|&(group, text)| text.lines().map(move |line| (group, line)));
    lines.filter_map(|(group, line)| line.split_once(": ").map(|(name, sentence)| ((group, name), sentence))).collect()
});

/// The description of a type of a package, or of one of its fields; empty if there is none.
pub(super) fn description(package: &str, type_: &str, field: &str) -> &'static str {
    let group = package.split_once('.').map_or(package, |(group, _)| group);
    let name = if field.is_empty() { type_.to_owned() } else { format!("{type_}.{field}") };
    SENTENCES.get(&(group, name.as_str())).copied().unwrap_or_else(|| general(type_, field))
}

/// What is so for every type that has such a name or field.
fn general(type_: &str, field: &str) -> &'static str {
    match (type_.ends_with("List"), field) {
        (true, "") => "A list of objects of one kind.",
        (true, "items") => "The objects of the list.",
        (true, "metadata") => "The version of the list, and how to go on where it is only a part.",
        (false, "metadata") => "The object's name, namespace, labels, annotations and what else every object has.",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::kinds;
    use crate::meta::minor::Minor;
    use crate::types::{self, Named};

    /// The group of the kind that tests alone have.
    const MADE_UP: &str = "gadgets.example.com";

    /// All types that the documents of the built-in kinds have, but those that `schemas/openapi.json` holds.
    fn published() -> Vec<&'static Named> {
        let shared = include_str!(concat!(env!("SCHEMAS"), "/openapi.json"));
        let shared = crate::value::json::decode(shared.as_bytes()).expect("it is JSON");
        let shared = shared.get("definitions").expect("they are there");
        let parts = |kind: &'static kinds::Kind| kind.parts_in(Minor::NEWEST).filter_map(|part| part.kind);
        let mut waiting: Vec<&'static Named> = kinds::all()
            .filter(|kind| kind.group != MADE_UP)
            .flat_map(|kind| parts(kind).chain([kind]))
            .flat_map(|kind| [kind.kind.to_owned(), format!("{}List", kind.kind)].map(|name| (kind, name)))
            .filter_map(|(kind, name)| types::of_kind(kind.group, kind.version, &name))
            .collect();
        let (mut seen, mut found) = (HashSet::new(), Vec::new());
        while let Some(named) = waiting.pop() {
            let name = named.definition_name();
            if shared.get(&name).is_none() && seen.insert(name) {
                waiting.extend(named.definition_in(Minor::NEWEST).references);
                found.push(named);
            }
        }
        found
    }

    #[test]
    fn every_published_type_and_field_has_a_description() {
        let types = published();
        assert!(types.len() > 500, "{}", types.len());
        let mut lacking = Vec::new();
        for named in types {
            let schema = named.definition().schema;
            if schema.get("properties").is_none() {
                continue;
            }
            let name = named.definition_name();
            if schema.get("description").is_none() {
                lacking.push(name.clone());
            }
            let properties = schema.get("properties").and_then(|properties| properties.as_object()).expect("a map");
            let without = properties.iter().filter(|(_, property)| property.get("description").is_none());
            lacking.extend(without.map(|(field, _)| format!("{name}.{field}")));
        }
        assert!(lacking.is_empty(), "{lacking:#?}");
    }

    /// Whether a version of a group has this type, and the type this field.
    fn is_known(group: &str, name: &str) -> bool {
        let (type_, field) = name.split_once('.').unwrap_or((name, ""));
        let has =
            |named: &'static Named| field.is_empty() || named.message().members().any(|member| member.json == field);
        let mut packages = types::packages().filter(|package| package.split('.').next() == Some(group));
        packages.any(|package| types::find(package, type_).is_some_and(has))
    }

    #[test]
    fn every_description_is_of_a_type_or_a_field() {
        let lines = FILES.iter().flat_map(|&(group, text)| text.lines().map(move |line| (group, line)));
        let names: Vec<(&str, &str)> =
            lines.map(|(group, line)| (group, line.split(": ").next().unwrap_or_default())).collect();
        let stray: Vec<_> = names.iter().filter(|(group, name)| !is_known(group, name)).collect();
        assert!(stray.is_empty(), "{stray:#?}");
        assert_eq!(SENTENCES.len(), names.len(), "each has one sentence");
    }

    #[test]
    fn sentences_fit_a_line_and_end() {
        for (name, sentence) in SENTENCES.iter() {
            assert!(sentence.len() <= 240 && sentence.is_ascii(), "{name:?}: {sentence}");
            assert!(sentence.ends_with(['.', ')']), "{name:?}: {sentence}");
        }
    }
}
