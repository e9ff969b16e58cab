//! What a value must be, besides its rules. Values and patterns stand between backticks.

use super::super::prose::quoted;
use crate::schema::structural::{NestedValueValidation, Structural, ValueValidation};
use crate::value::{Value, json};

/// The constraints of a field, a sentence each.
pub fn constraints(node: &Structural) -> Vec<String> {
    let mut texts = Vec::new();
    texts.extend(node.generic.default.as_deref().map(|default| format!("defaults to {}", shown(default))));
    if let Some(values) = node.value_validation.as_deref() {
        texts.append(&mut of_values(values));
    }
    let extensions = &node.extensions;
    let flags = [
        (node.generic.nullable, "may be null"),
        (extensions.preserve_unknown_fields, "fields that are not specified stay"),
        (extensions.embedded_resource, "a whole object with apiVersion, kind and metadata"),
    ];
    texts.extend(flags.iter().filter(|(is_set, _)| *is_set).map(|(_, text)| (*text).to_owned()));
    texts.extend(match extensions.list_type.as_deref() {
        Some("map") => Some(format!("items are told apart by {}", extensions.list_map_keys.join(", "))),
        Some("set") => Some("no item stands twice".to_owned()),
        Some("atomic") => Some("replaced as a whole".to_owned()),
        _ => None,
    });
    texts
}

fn of_values(values: &ValueValidation) -> Vec<String> {
    let mut texts = Vec::new();
    if !values.enum_.is_empty() {
        texts.push(format!("one of {}", values.enum_.iter().map(shown).collect::<Vec<_>>().join(", ")));
    }
    let least = if values.bounds.exclusive_minimum { "more than" } else { "at least" };
    let most = if values.bounds.exclusive_maximum { "less than" } else { "at most" };
    texts.extend(values.bounds.minimum.map(|bound| format!("{least} {bound}")));
    texts.extend(values.bounds.maximum.map(|bound| format!("{most} {bound}")));
    texts.extend(values.bounds.multiple_of.map(|factor| format!("a multiple of {factor}")));
    let counts = [
        (values.bounds.min_length, values.bounds.max_length, "characters"),
        (values.bounds.min_items, values.bounds.max_items, "items"),
        (values.bounds.min_properties, values.bounds.max_properties, "entries"),
    ];
    texts.extend(counts.into_iter().filter_map(|(least, most, what)| match (least, most) {
        (None, None) => None,
        (Some(least), None) => Some(format!("at least {least} {what}")),
        (None, Some(most)) => Some(format!("at most {most} {what}")),
        (Some(least), Some(most)) => Some(format!("{least} to {most} {what}")),
    }));
    texts.extend(given(&values.pattern).map(|pattern| format!("matches {}", quoted(pattern))));
    texts.extend(given(&values.format).map(|format| format!("has the format {format}")));
    texts.extend(values.junctors.all_of.iter().flat_map(of_nested));
    texts.extend(alternatives("at least one of these holds", &values.junctors.any_of));
    texts.extend(alternatives("exactly one of these holds", &values.junctors.one_of));
    texts.extend(values.junctors.not.as_deref().map(|denied| format!("this does not hold: {}", joined(denied))));
    texts
}

/// What a part of a junctor asks of a value.
fn of_nested(nested: &NestedValueValidation) -> Vec<String> {
    let mut texts = of_values(&nested.value_validation);
    texts.extend(given(&nested.forbidden_generics.type_).map(|type_| format!("of the type {type_}")));
    texts.extend(nested.value_validation.required.iter().map(|name| format!("{name} is set")));
    for (name, below) in nested.properties.iter() {
        texts.extend(of_nested(below).into_iter().map(|text| format!("{name}: {text}")));
    }
    for each in nested.items.iter().chain(&nested.additional_properties) {
        texts.extend(of_nested(each).into_iter().map(|text| format!("each: {text}")));
    }
    if nested.forbids_additional_properties {
        texts.push("no other field is set".to_owned());
    }
    texts
}

fn alternatives(how_many: &str, nested: &[NestedValueValidation]) -> Option<String> {
    let alternatives: Vec<String> = nested.iter().map(joined).collect();
    (!alternatives.is_empty()).then(|| format!("{how_many}: {}", alternatives.join("; ")))
}

fn joined(nested: &NestedValueValidation) -> String {
    match of_nested(nested).join(" and ") {
        nothing if nothing.is_empty() => "anything".to_owned(),
        texts => texts,
    }
}

fn given(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

fn shown(value: &Value) -> String {
    quoted(&json::encode_to_string(value))
}
