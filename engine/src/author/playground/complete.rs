//! What may be typed next: fields of objects, keywords of schemas, and names in expressions.

mod expression;
mod words;

use super::catalog;
use super::cursor::{self, Cursor};
use super::inputs::{Inputs, Pane, is_definition};
use super::shown::{SHOWN_MAX, number, shortened};
use crate::author::explain::explain;
use crate::author::policies::is_policy;
use crate::author::{Catalog, Kind};
use crate::object;
use crate::schema::structural::{Structural, StructuralOrBool};
use crate::value::{Value, json, yaml};

/// Something that may be typed.
struct Choice {
    label: String,
    /// `property`, `enum`, `keyword`, `function`, `variable`: as editors draw them.
    kind: &'static str,
    detail: String,
    info: String,
}

impl Choice {
    fn new(kind: &'static str, label: impl Into<String>) -> Choice {
        Choice { label: label.into(), kind, detail: String::new(), info: String::new() }
    }
}

/// What may stand where somebody types: how many characters before the cursor it replaces, and the choices.
///
/// `line` and `column` count from 0, the column in characters.
pub fn complete(inputs: &Inputs, pane: Pane, line: usize, column: usize) -> Value {
    let text = inputs.text(pane);
    let Some(cursor) = cursor::at(text, line, column) else { return show(0, Vec::new()) };
    // What is no definition is told of by the verdict.
    let catalog = catalog(inputs, &mut Vec::new());
    let (replaced, choices) = match pane {
        Pane::Object | Pane::Old => (cursor.word.chars().count(), of_object(text, &cursor, &catalog)),
        Pane::Request => (cursor.word.chars().count(), words::of_request(&cursor)),
        Pane::Definition => of_definition(text, &cursor, line, &catalog),
    };
    show(replaced, choices)
}

fn show(replaced: usize, choices: Vec<Choice>) -> Value {
    let shown = choices.into_iter().take(SHOWN_MAX).map(|choice| {
        object! {
            "label" => choice.label,
            "type" => choice.kind,
            "detail" => choice.detail,
            "info" => shortened(&choice.info),
        }
    });
    object! { "replaced" => number(replaced as u64), "choices" => shown.collect::<Vec<_>>() }
}

/// Fields and values by the schema of the object's kind.
fn of_object(text: &str, cursor: &Cursor, catalog: &Catalog) -> Vec<Choice> {
    let path: Vec<&str> = cursor.path.iter().map(String::as_str).collect();
    let is_value = cursor.value.is_some();
    let kinds = || catalog.kinds();
    match (path.as_slice(), is_value) {
        (["apiVersion"], true) => {
            let versions = kinds().flat_map(|kind| kind.versions.iter().filter(|version| version.served));
            return versions.map(|version| Choice::new("enum", version.api_version())).collect();
        }
        (["kind"], true) => {
            return kinds().map(|kind| Choice::new("enum", kind.definition.spec.names.kind.as_str())).collect();
        }
        (["metadata", ..], _) => return words::of_metadata(&path, is_value),
        _ => {}
    }
    let Some(schema) = schema_of(text, cursor, catalog) else { return words::of_object(&path) };
    let Some(node) = below(schema, &path) else { return Vec::new() };
    let mut choices = if is_value { values(node) } else { fields(node) };
    if path.is_empty() {
        let known: Vec<String> = choices.iter().map(|choice| choice.label.clone()).collect();
        choices.extend(words::of_object(&path).into_iter().filter(|choice| !known.contains(&choice.label)));
    }
    choices
}

/// The schema of the object that the document of the cursor is, or of the only kind.
fn schema_of<'c>(text: &str, cursor: &Cursor, catalog: &'c Catalog) -> Option<&'c Structural> {
    let (first, last) = cursor.document;
    let lines = || text.lines().skip(first).take(last - first);
    let of_line = |name: &str| lines().find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim()));
    let (kind_name, api_version) = (of_line("kind").unwrap_or_default(), of_line("apiVersion").unwrap_or_default());
    let is_named = |kind: &&Kind| kind.definition.spec.names.kind == kind_name;
    let kind = catalog.kinds().find(is_named).or_else(|| catalog.kinds().next())?;
    let is_version = |version: &&std::sync::Arc<crate::crd::ServedVersion>| version.api_version() == api_version;
    let version =
        kind.versions.iter().find(is_version).or_else(|| kind.versions.iter().find(|version| version.storage));
    version.map(|version| &*version.structural)
}

/// The node of a value; keys of maps and items of lists are steps.
fn below<'s>(schema: &'s Structural, path: &[&str]) -> Option<&'s Structural> {
    path.iter().try_fold(schema, |node, step| match *step {
        "-" => node.items.as_deref(),
        name => {
            let values = || node.additional_properties.as_ref().and_then(StructuralOrBool::structural);
            node.properties.get(name).or_else(values)
        }
    })
}

fn fields(node: &Structural) -> Vec<Choice> {
    let required = node.value_validation.as_deref().map_or(&[][..], |values| &values.required);
    node.properties
        .keys()
        .filter_map(|name| {
            let field = explain(node.properties.get(name)?, "").ok()?;
            let required = if required.iter().any(|required| required == name) { ", required" } else { "" };
            let rules = field.rules.iter().map(|rule| format!("rule: {}", rule.rule));
            let info: Vec<String> = [field.description]
                .into_iter()
                .filter(|text| !text.is_empty())
                .chain(field.constraints)
                .chain(rules)
                .collect();
            Some(Choice {
                detail: format!("{}{required}", field.type_),
                info: info.join("\n"),
                ..Choice::new("property", name)
            })
        })
        .collect()
}

fn values(node: &Structural) -> Vec<Choice> {
    let listed = node.value_validation.as_deref().map_or(&[][..], |values| &values.enum_);
    let shown = |value: &Value| value.as_str().map_or_else(|| json::encode_to_string(value), str::to_owned);
    if !listed.is_empty() {
        return listed.iter().map(|value| Choice::new("enum", shown(value))).collect();
    }
    if node.generic.type_ == "boolean" {
        return ["true", "false"].map(|value| Choice::new("enum", value)).into();
    }
    let default = node
        .generic
        .default
        .as_deref()
        .map(|default| Choice { detail: "default".to_owned(), ..Choice::new("enum", shown(default)) });
    default.into_iter().collect()
}

/// Keywords of schemas, and names in expressions.
fn of_definition(text: &str, cursor: &Cursor, line: usize, catalog: &Catalog) -> (usize, Vec<Choice>) {
    let word = cursor.word.chars().count();
    let Some(document) = without_value(text, cursor, line) else { return (word, Vec::new()) };
    let expression =
        cursor.value.as_deref().map(|value| value.trim_start_matches(['\'', '"', '|', '>', '-', ' ', '\n']));
    let path: Vec<&str> = cursor.path.iter().map(String::as_str).collect();
    match (path.as_slice(), expression) {
        ([.., "x-kubernetes-validations", "-", "rule" | "messageExpression"], Some(text)) => {
            expression::of_rule(&document, &path, text)
        }
        ([.., "expression" | "messageExpression" | "valueExpression"], Some(text)) if is_policy(&document) => {
            expression::of_policy(catalog, text)
        }
        _ if is_definition(&document) => (word, words::of_schema(&path, cursor.value.is_some())),
        _ => (word, Vec::new()),
    }
}

/// The document of the cursor without what is being typed, which may be no YAML yet.
fn without_value(text: &str, cursor: &Cursor, line: usize) -> Option<Value> {
    let (first, last) = cursor.document;
    let kept = text.lines().enumerate().skip(first).take(last - first).map(|(at, text)| match text.split_once(':') {
        _ if at != line => text,
        Some((key, _)) if cursor.value.is_some() => &text[..key.len() + 1],
        _ => "",
    });
    yaml::decode(kept.collect::<Vec<_>>().join("\n").as_bytes()).ok()
}
