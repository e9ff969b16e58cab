//! A field of a kind, in words.
//!
//! In: a schema and the path of a field, `spec.ports.name` (lists and maps need no step of their own). Out: its type, what
//! it is for, what it must be, its rules, and the fields below.

use crate::schema::structural::{Structural, StructuralOrBool, ValueValidation};
use crate::value::{Value, json};

/// What is known of a field.
pub struct Explained {
    /// `[]Object`, `integer`, …
    pub type_: String,
    pub is_required: bool,
    pub description: String,
    /// What a value must be, a sentence each.
    pub constraints: Vec<String>,
    /// Each rule with its message, if it has one.
    pub rules: Vec<(String, Option<String>)>,
    pub fields: Vec<Field>,
}

/// A field below.
pub struct Field {
    pub name: String,
    pub type_: String,
    pub is_required: bool,
    pub description: String,
}

/// Explains the field at `path`; empty for the whole object.
///
/// # Errors
/// The part of the path that no field has.
pub fn explain(root: &Structural, path: &str) -> Result<Explained, String> {
    let mut node = root;
    let mut is_required = false;
    let steps = path.split(['.', '[', ']']).filter(|step| !step.is_empty() && *step != "*");
    for step in steps {
        let holder = within(node);
        let Some(below) = holder.properties.get(step) else { return Err(step.to_owned()) };
        is_required = requires(holder, step);
        node = below;
    }
    let holder = within(node);
    let fields = holder.properties.iter().map(|(name, below)| Field {
        name: name.to_owned(),
        type_: type_of(below),
        is_required: requires(holder, name),
        description: below.generic.description.clone(),
    });
    let mut constraints = constraints(node);
    let mut rules = rules(node);
    if !std::ptr::eq(holder, node) {
        constraints.extend(self::constraints(holder).into_iter().map(|text| format!("each: {text}")));
        rules.extend(self::rules(holder));
    }
    Ok(Explained {
        type_: type_of(node),
        is_required,
        description: node.generic.description.clone(),
        constraints,
        rules,
        fields: fields.collect(),
    })
}

fn rules(node: &Structural) -> Vec<(String, Option<String>)> {
    let message = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    node.validations.iter().map(|rule| (rule.rule.trim().to_owned(), message(&rule.message))).collect()
}

/// What a list or map holds, else the node itself.
fn within(node: &Structural) -> &Structural {
    let values = node.additional_properties.as_ref().and_then(StructuralOrBool::structural);
    match node.items.as_deref().or(values) {
        Some(below) if node.properties.is_empty() => within(below),
        _ => node,
    }
}

fn requires(node: &Structural, name: &str) -> bool {
    node.value_validation.as_deref().is_some_and(|values| values.required.iter().any(|required| required == name))
}

fn type_of(node: &Structural) -> String {
    if let Some(items) = node.items.as_deref() {
        return format!("[]{}", type_of(items));
    }
    if let Some(values) = node.additional_properties.as_ref().and_then(StructuralOrBool::structural) {
        return format!("map[string]{}", type_of(values));
    }
    match (node.extensions.int_or_string, node.generic.type_.as_str()) {
        (true, _) => "integer or string".to_owned(),
        (false, "") => "any".to_owned(),
        (false, type_) => type_.to_owned(),
    }
}

fn constraints(node: &Structural) -> Vec<String> {
    let none = ValueValidation::default();
    let values = node.value_validation.as_deref().unwrap_or(&none);
    let shown = |value: &Value| json::encode_to_string(value);
    let mut texts = Vec::new();
    let mut say = |text: Option<String>| texts.extend(text);
    say(node.generic.default.as_ref().map(|default| format!("defaults to {}", shown(default))));
    if !values.enum_.is_empty() {
        say(Some(format!("one of {}", values.enum_.iter().map(shown).collect::<Vec<_>>().join(", "))));
    }
    let exclusive = |is_exclusive: bool| if is_exclusive { "less than" } else { "at most" };
    say(values
        .minimum
        .map(|bound| format!("{} {bound}", if values.exclusive_minimum { "more than" } else { "at least" })));
    say(values.maximum.map(|bound| format!("{} {bound}", exclusive(values.exclusive_maximum))));
    say(values.multiple_of.map(|factor| format!("a multiple of {factor}")));
    let counts = [
        (values.min_length, values.max_length, "characters"),
        (values.min_items, values.max_items, "items"),
        (values.min_properties, values.max_properties, "entries"),
    ];
    for (least, most, word) in counts {
        say(match (least, most) {
            (None, None) => None,
            (Some(least), None) => Some(format!("at least {least} {word}")),
            (None, Some(most)) => Some(format!("at most {most} {word}")),
            (Some(least), Some(most)) => Some(format!("{least} to {most} {word}")),
        });
    }
    say(Some(&values.pattern).filter(|text| !text.is_empty()).map(|pattern| format!("matches `{pattern}`")));
    say(Some(&values.format).filter(|text| !text.is_empty()).map(|format| format!("has the format {format}")));
    say(node.generic.nullable.then(|| "may be null".to_owned()));
    say(node.extensions.preserve_unknown_fields.then(|| "fields that are not specified stay".to_owned()));
    say(node.extensions.embedded_resource.then(|| "a whole object with apiVersion, kind and metadata".to_owned()));
    say(match node.extensions.list_type.as_deref() {
        Some("map") => Some(format!("items are told apart by {}", node.extensions.list_map_keys.join(", "))),
        Some("set") => Some("no item stands twice".to_owned()),
        Some("atomic") => Some("replaced as a whole".to_owned()),
        _ => None,
    });
    let junctors = [
        (!values.all_of.is_empty(), "allOf"),
        (!values.any_of.is_empty(), "anyOf"),
        (!values.one_of.is_empty(), "oneOf"),
        (values.not.is_some(), "not"),
    ];
    for (_, word) in junctors.iter().filter(|(is_there, _)| *is_there) {
        say(Some(format!("further bound by {word}")));
    }
    texts
}
