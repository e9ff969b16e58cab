//! Warnings about definitions: what is allowed, yet surely a mistake.
//!
//! Source: apiextensions-apiserver 1.29 to 1.37, answers recorded from them.

use std::collections::BTreeSet;

use super::definition::Definition;
use super::validate::schemas;
use crate::meta::minor::Minor;
use crate::schema::format::Format;
use crate::schema::json_schema::SchemaOrArray;
use crate::value::go_quote;

/// The versions of Kubernetes that began to warn: about formats of texts, about those of other types, and about sets of
/// lists and maps.
const FORMATS_SINCE: Minor = Minor::of(34);
const OTHER_TYPES_SINCE: Minor = Minor::of(36);
const SETS_SINCE: Minor = Minor::of(37);

/// Warnings about a new definition.
pub fn create(definition: &Definition) -> Vec<String> {
    let formats = unrecognized_formats(definition).into_iter().map(format_warning);
    formats.chain(set_warnings(definition)).collect()
}

/// Warnings that `new` has and `old` had not.
pub fn update(new: &Definition, old: &Definition) -> Vec<String> {
    let old_formats: BTreeSet<String> = unrecognized_formats(old).into_iter().collect();
    let formats = unrecognized_formats(new).into_iter().filter(|format| !old_formats.contains(format));
    let old_sets = set_warnings(old);
    let sets = set_warnings(new).into_iter().filter(|warning| !old_sets.contains(warning));
    formats.map(format_warning).chain(sets).collect()
}

fn format_warning(format: String) -> String {
    format!("unrecognized format {}", go_quote(&format))
}

/// Formats that have no meaning for their type, with repetitions.
fn unrecognized_formats(definition: &Definition) -> Vec<String> {
    let (mut formats, minor) = (Vec::new(), definition.minor);
    if minor < FORMATS_SINCE {
        return formats;
    }
    for schema in schemas(definition) {
        schema.any(&mut |schema| {
            let is_looked_at = minor >= OTHER_TYPES_SINCE || schema.type_ == "string";
            if is_looked_at
                && !schema.format.is_empty()
                && Format::effective_in(minor, &schema.type_, &schema.format).is_empty()
            {
                formats.push(schema.format.clone());
            }
            false
        });
    }
    formats
}

/// Warnings about sets of lists and of maps, once for each.
fn set_warnings(definition: &Definition) -> BTreeSet<String> {
    let mut warnings = BTreeSet::new();
    if definition.minor < SETS_SINCE {
        return warnings;
    }
    for schema in schemas(definition) {
        schema.any(&mut |schema| {
            let items = schema.items.as_ref().and_then(SchemaOrArray::schema);
            let type_ = items.map_or("", |items| items.type_.as_str());
            if schema.list_type.as_deref() == Some("set") && matches!(type_, "object" | "array") {
                warnings.insert(format!(
                    "x-kubernetes-list-type: set for items of type \"{type_}\" is not supported by server-side apply or \
                     CEL validation rules"
                ));
            }
            false
        });
    }
    warnings
}
