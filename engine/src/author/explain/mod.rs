//! A field of a kind, in words.
//!
//! Input: a schema and the path of a field, `spec.ports.name` (lists and maps need no step of their own). Output: its type, what
//! it is for, what it must be, its rules, and the fields below.

pub mod built_in;
mod constraints;
mod rules;

use super::near::near_word;
use crate::schema::structural::{Structural, StructuralOrBool};
use crate::work;

use thiserror::Error;

use constraints::constraints;
pub use rules::say;

/// What is known of a field.
pub struct Explained {
    /// `[]Object`, `integer`, …
    pub type_: String,
    /// Whether its parent requires it.
    pub is_required: bool,
    /// The schema's description.
    pub description: String,
    /// What a value must be, a sentence each.
    pub constraints: Vec<String>,
    /// Rules on it, with their costs.
    pub rules: Vec<ExplainedRule>,
    /// Its fields, in the order of their names.
    pub fields: Vec<FieldBelow>,
}

/// A rule of a field.
pub struct ExplainedRule {
    /// As it is written.
    pub rule: String,
    /// The same in words, where there are any.
    pub words: Option<String>,
    /// What a user is told whose object breaks it, if the rule says so.
    pub message: Option<String>,
}

/// A field below.
pub struct FieldBelow {
    /// The name of the field.
    pub name: String,
    /// The type, as `kubectl explain` writes it.
    pub type_: String,
    /// Whether its parent requires it.
    pub is_required: bool,
    /// The schema's description.
    pub description: String,
}

/// The part of a path that no field has.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{name}")]
pub struct UnknownField {
    /// The part.
    pub name: String,
    /// The field beside it that may have been meant.
    pub near: Option<String>,
}

/// Explains the field at `path`; empty for the whole object.
///
/// # Errors
/// The part of the path that no field has.
pub fn explain(root: &Structural, path: &str) -> Result<Explained, UnknownField> {
    let mut node = root;
    let mut is_required = false;
    let steps = path.split(['.', '[', ']']).filter(|step| !step.is_empty() && *step != "*");
    for step in steps {
        let holder = within(node);
        let Some(below) = holder.properties.get(step) else {
            let near = near_word(step, holder.properties.iter().map(|(name, _)| name)).map(str::to_owned);
            return Err(UnknownField { name: step.to_owned(), near });
        };
        is_required = requires(holder, step);
        node = below;
    }
    Ok(Explained { is_required, ..explain_node(node) })
}

/// Explains a node by itself: whether it is required, only its parent knows.
pub fn explain_node(node: &Structural) -> Explained {
    let holder = within(node);
    let fields = holder.properties.iter().map(|(name, below)| FieldBelow {
        name: name.to_owned(),
        type_: type_of(below),
        is_required: requires(holder, name),
        description: below.generic.description.to_string(),
    });
    let mut constraints = constraints(node);
    let mut rules: Vec<ExplainedRule> = rules_of(node).collect();
    if !std::ptr::eq(holder, node) {
        constraints.extend(constraints::constraints(holder).into_iter().map(|text| format!("each: {text}")));
        rules.extend(rules_of(holder));
    }
    Explained {
        type_: type_of(node),
        is_required: false,
        description: node.generic.description.to_string(),
        constraints,
        rules,
        fields: fields.collect(),
    }
}

fn rules_of(node: &Structural) -> impl Iterator<Item = ExplainedRule> {
    node.validations.iter().map(|rule| ExplainedRule {
        rule: rule.rule.trim().to_owned(),
        words: rules::say(&rule.rule),
        message: Some(&rule.message).filter(|text| !text.is_empty()).cloned(),
    })
}

/// What a list or map holds, else the node itself.
fn within(node: &Structural) -> &Structural {
    let values = node.additional_properties.as_ref().and_then(StructuralOrBool::structural);
    match node.items.as_deref().or(values) {
        Some(below) if node.properties.is_empty() => within(below),
        _ => node,
    }
}

/// Whether objects of this schema must have the field `name`.
pub(super) fn requires(node: &Structural, name: &str) -> bool {
    node.value_validation.as_deref().is_some_and(|values| values.required.iter().any(|required| required == name))
}

/// The type of a node, as `kubectl explain` writes it.
pub(super) fn type_of(node: &Structural) -> String {
    let (mut type_, mut node) = (String::new(), node);
    loop {
        work::step();
        if let Some(items) = node.items.as_deref() {
            type_.push_str("[]");
            node = items;
        } else if let Some(values) = node.additional_properties.as_ref().and_then(StructuralOrBool::structural) {
            type_.push_str("map[string]");
            node = values;
        } else {
            break;
        }
    }
    type_.push_str(match (node.extensions.int_or_string, node.generic.type_.as_str()) {
        (true, _) => "integer or string",
        (false, "") => "any",
        (false, name) => name,
    });
    type_
}
