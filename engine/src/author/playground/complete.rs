//! The completions of editors, for the texts of the page.

use super::inputs::{Inputs, Pane};
use super::shown::{number, shortened};
use crate::author::Catalog;
use crate::author::editor::complete::{CompletionItem, Sign};
use crate::author::editor::cursor::{Cursor, Slot, cursor};
use crate::author::editor::documents::{Head, part_at};
use crate::author::editor::workspace::UserLookup;
use crate::author::editor::{Text, Workspace};
use crate::object;
use crate::value::Value;
use crate::value::yaml::TextPosition;

/// The completions at a position: how many characters before the cursor are replaced, and the choices, each with the
/// text that is inserted (`apply`).
///
/// `line` and `column` count from 0, the column in characters.
pub fn complete(inputs: &Inputs, pane: Pane, line: usize, column: usize, find_user: UserLookup) -> Value {
    let text = Text::from(inputs.text(pane));
    let offset = text.offset_of(TextPosition { line: line.saturating_add(1), column: column.saturating_add(1) });
    let mut workspace = Workspace::of_minors(find_user, inputs.minors());
    let definitions = Pane::Definition.name();
    if pane == Pane::Definition && inputs.is_broken(pane) {
        workspace.add(definitions, &without_typed(text.as_str(), offset));
    }
    workspace.add(definitions, inputs.text(Pane::Definition));
    if matches!(pane, Pane::Object | Pane::Old) {
        workspace.assumed = assumed(text.as_str(), offset, workspace.catalog());
    }
    let offered = workspace.complete(pane.name(), &text, text.position(offset));
    let Some(first) = offered.first() else { return show(0, Vec::new()) };
    // All of them replace the same range. An open quote is kept, and is not part of the words to choose from.
    let written = &text.as_str()[text.offset(first.edit.range.start)..offset];
    let quote = &written[..usize::from(written.starts_with(['"', '\'']))];
    let replaced = written.chars().count() - quote.len();
    show(replaced, offered.iter().map(|completion| choice(completion, quote)).collect())
}

fn show(replaced: usize, choices: Vec<Value>) -> Value {
    object! { "replaced" => number(replaced as u64), "choices" => choices }
}

/// A choice, in the form that the page's editor expects.
fn choice(completion: &CompletionItem, quote: &str) -> Value {
    let CompletionItem { label, sign, detail, documentation, is_required, edit } = completion;
    let kind = match sign {
        Sign::Field => "property",
        Sign::Value | Sign::Kind => "enum",
        Sign::Variable => "variable",
        Sign::Function => "function",
        Sign::Keyword => "keyword",
    };
    let required = if *is_required { ", required" } else { "" };
    object! {
        "label" => label.as_str(),
        "type" => kind,
        "detail" => format!("{detail}{required}"),
        "info" => shortened(documentation),
        "apply" => edit.text.strip_prefix(quote).unwrap_or(&edit.text),
    }
}

/// The definitions without the text that is being typed, which may not be valid YAML yet.
fn without_typed(text: &str, offset: usize) -> String {
    let part = part_at(text, offset).range;
    let Cursor { slot, .. } = cursor(&text[part.clone()], offset - part.start);
    let (Slot::Key { written, .. } | Slot::Value { written, .. }) = slot else { return text.to_owned() };
    let start = part.start + written.start;
    let end = text[offset..].find('\n').map_or(text.len(), |end| offset + end);
    [&text[..start], &text[end..]].concat()
}

/// The kind to assume for an object without an API version, or even without a kind: then the first kind.
fn assumed(text: &str, offset: usize, catalog: &Catalog) -> Head {
    let head = Head::of_text(&text[part_at(text, offset).range]);
    let is_meant = |kind: &str| head.kind.is_empty() || head.kind == kind;
    let kind = catalog.kinds().find(|kind| is_meant(&kind.definition.spec.names.kind));
    let stored = kind.and_then(|kind| kind.versions.iter().find(|version| version.storage));
    stored.map_or_else(Head::default, |version| Head {
        api_version: version.api_version(),
        kind: version.names.kind.clone(),
        name: String::new(),
    })
}
