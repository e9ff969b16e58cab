//! Writes a bound that makes a rule cheaper into the definition.

use super::inputs::{Inputs, Pane, is_definition};
use crate::author::fix;
use crate::value::Value;

/// The keywords that bound the size of a value.
const KEYWORDS: [&str; 3] = ["maxItems", "maxProperties", "maxLength"];

/// Returns the definitions with the bounds of a rule's remedy set: `wanted` has the `name` of the definition, the
/// `version` and the `bounds` (`steps`, `keyword`, `limit`). Returns `None` if no edit gives exactly that.
pub fn add_bound(inputs: &Inputs, wanted: &Value) -> Option<String> {
    let name = wanted.str_at(&["name"]);
    let (at, document) =
        inputs.documents(Pane::Definition).iter().enumerate().find(|(_, document)| {
            is_definition(&document.value) && document.value.str_at(&["metadata", "name"]) == name
        })?;
    let versions = document.value.items_at(&["spec", "versions"]);
    let version = versions.iter().position(|version| version.str_at(&["name"]) == wanted.str_at(&["version"]))?;
    let mut text = inputs.text(Pane::Definition).to_owned();
    for bound in wanted.items_at(&["bounds"]).iter().take(KEYWORDS.len()) {
        let keyword = KEYWORDS.into_iter().find(|keyword| *keyword == bound.str_at(&["keyword"]))?;
        let limit = bound.get("limit").and_then(Value::as_i64)?;
        let mut node = format!("spec.versions[{version}].schema.openAPIV3Schema");
        for step in bound.items_at(&["steps"]) {
            match (step.as_str()?, step.as_str()?.strip_prefix('.')) {
                (_, Some(name)) => node.push_str(&format!(".properties[{name}]")),
                ("items", None) => node.push_str(".items"),
                (_, None) => node.push_str(".additionalProperties"),
            }
        }
        text = fix::set(&text, inputs.index_in_text(at), &node, keyword, limit)?;
    }
    Some(text)
}
