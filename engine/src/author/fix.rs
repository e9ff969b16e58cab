//! Edits of the text of a definition or a policy that change nothing for objects.
//!
//! Input: a text, and findings in its documents. Output: the text with what can be fixed fixed, comments and all else as it was.
//! An edit is made from the places of nodes and then proved: the text must read as the document that is meant, or the edit
//! is left out.

use std::ops::Range;

use super::lint::Finding;
use crate::value::yaml::{Located, TextPosition, decode_all_located};
use crate::value::{Value, json};

/// A text after its edits.
pub struct Fixed {
    /// The whole text, with the fixes.
    pub text: String,
    /// Whether each finding was fixed, in their order.
    pub is_fixed: Vec<bool>,
}

/// What is to become of a document.
enum DocumentChange {
    /// The field `name` of the node at `at` becomes `value`, a plain word or a number; it was not there.
    Set { at: String, name: &'static str, value: Value },
    /// The item or field at this place goes.
    Remove { at: String },
    /// The item at this place goes, unless it is the last of its list, without which the rest means something else.
    RemoveOne { at: String },
}

/// A change, and the bytes that it is about.
struct ByteEdit {
    finding: usize,
    document: usize,
    change: DocumentChange,
    range: Range<usize>,
    text: String,
}

/// Fixes what can be fixed of `findings`, each in the document of its number.
pub fn fix(text: &str, findings: &[(usize, &Finding)]) -> Fixed {
    let mut fixed = Fixed { text: text.to_owned(), is_fixed: vec![false; findings.len()] };
    let Ok(documents) = decode_all_located(text.as_bytes()) else { return fixed };
    let lines = Lines::new(text);
    let edit = |finding: usize, document: usize, at: &str| {
        let located = documents.get(document)?;
        let change = change(findings[finding].1, at)?;
        let (range, text) = lines.edit(located, &change)?;
        Some(ByteEdit { finding, document, change, range, text })
    };
    let places = findings
        .iter()
        .enumerate()
        .flat_map(|(finding, (document, found))| found.places.iter().map(move |at| (finding, *document, at)));
    let mut edits: Vec<ByteEdit> = places.filter_map(|(finding, document, at)| edit(finding, document, at)).collect();
    // The last first: what stands before keeps its place.
    edits.sort_by_key(|edit| std::cmp::Reverse(edit.range.start));
    let mut values: Vec<Value> = documents.into_iter().map(|document| document.value).collect();
    let mut apply = |edits: &[ByteEdit]| {
        let mut changed = fixed.text.clone();
        let mut wanted = values.clone();
        for edit in edits {
            changed.replace_range(edit.range.clone(), &edit.text);
            if edit.change.make(&mut wanted[edit.document]).is_none() {
                return false;
            }
        }
        let found = decode_all_located(changed.as_bytes());
        let is_meant = found.is_ok_and(|found| found.iter().map(|document| &document.value).eq(&wanted));
        if is_meant {
            edits.iter().for_each(|edit| fixed.is_fixed[edit.finding] = true);
            (fixed.text, values) = (changed, wanted);
        }
        is_meant
    };
    if !apply(&edits) {
        edits.chunks(1).for_each(|edit| _ = apply(edit));
    }
    fixed
}

/// Sets the keyword `name` of the schema at `at` to `limit`, by the number of the definition's document in the text; `None`
/// where that can't be done so that the text says just that.
pub fn set(text: &str, document: usize, at: &str, name: &'static str, limit: i64) -> Option<String> {
    let documents = decode_all_located(text.as_bytes()).ok()?;
    let value = Value::Int(limit);
    let change = DocumentChange::Set { at: at.to_owned(), name, value };
    let (range, with) = Lines::new(text).edit(documents.get(document)?, &change)?;
    let mut changed = text.to_owned();
    changed.replace_range(range, &with);
    let mut wanted: Vec<Value> = documents.into_iter().map(|document| document.value).collect();
    change.make(&mut wanted[document])?;
    let found = decode_all_located(changed.as_bytes()).ok()?;
    found.iter().map(|document| &document.value).eq(&wanted).then_some(changed)
}

/// Whether [`fix`] knows what to write for a finding.
pub fn is_fixable(finding: &Finding) -> bool {
    !finding.places.is_empty() && finding.places.iter().all(|at| change(finding, at).is_some())
}

fn change(finding: &Finding, at: &str) -> Option<DocumentChange> {
    let item = at.rfind(']').map_or("", |end| &at[..=end]).to_owned();
    let at = at.to_owned();
    match finding.lint.id {
        "variable-unread" | "condition-always-holds" => Some(DocumentChange::Remove { at: item }),
        "validation-never-fails" => Some(DocumentChange::RemoveOne { at: item }),
        "match-never" if item == at && at.contains(".resourceRules[") => Some(DocumentChange::RemoveOne { at }),
        "binding-params" if at == "spec.paramRef" => Some(DocumentChange::Remove { at }),
        // What a list without a type is anyway.
        "list-type-missing" => {
            Some(DocumentChange::Set { at, name: "x-kubernetes-list-type", value: Value::from("atomic") })
        }
        "rule-never-fails" => Some(DocumentChange::Remove { at }),
        "deprecated-construct" if at == "spec.preserveUnknownFields" && finding.fix == "remove it" => {
            Some(DocumentChange::Remove { at })
        }
        _ => None,
    }
}

impl DocumentChange {
    /// Makes the change in the document that was read; `None` where its place is not there.
    fn make(&self, document: &mut Value) -> Option<()> {
        match self {
            DocumentChange::Set { at, name, value } => {
                node_mut(document, &steps(at))?.as_object_mut()?.insert(*name, value.clone());
            }
            DocumentChange::Remove { at } | DocumentChange::RemoveOne { at } => {
                let steps = steps(at);
                if matches!(self, DocumentChange::RemoveOne { .. }) {
                    let (_, holder) = steps.split_last()?;
                    node(document, holder)?.as_array().filter(|items| items.len() > 1)?;
                }
                remove(document, &steps)?;
                let (_, holder) = steps.split_last()?;
                // A list without items goes, too.
                if node_mut(document, holder)?.as_array().is_some_and(<[Value]>::is_empty) {
                    remove(document, holder)?;
                }
            }
        }
        Some(())
    }
}

fn remove(document: &mut Value, steps: &[&str]) -> Option<()> {
    let (last, holder) = steps.split_last()?;
    match node_mut(document, holder)? {
        Value::Object(fields) => fields.remove(last).map(|_| ()),
        Value::Array(items) => {
            let index: usize = last.parse().ok()?;
            (index < items.len()).then(|| _ = items.remove(index))
        }
        _ => None,
    }
}

/// The steps of `spec.versions[0].schema`.
fn steps(path: &str) -> Vec<&str> {
    let mut steps = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        let (step, behind) = match rest.strip_prefix('[') {
            Some(inner) => inner.split_once(']').unwrap_or((inner, "")),
            None => rest.split_at(rest.find(['.', '[']).unwrap_or(rest.len())),
        };
        steps.push(step);
        rest = behind.strip_prefix('.').unwrap_or(behind);
    }
    steps
}

fn node<'v>(root: &'v Value, steps: &[&str]) -> Option<&'v Value> {
    steps.iter().try_fold(root, |node, step| match node {
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        node => node.get(step),
    })
}

fn node_mut<'v>(root: &'v mut Value, steps: &[&str]) -> Option<&'v mut Value> {
    steps.iter().try_fold(root, |node, step| match node {
        Value::Array(items) => items.get_mut(step.parse::<usize>().ok()?),
        node => node.get_mut(step),
    })
}

/// The lines of a text, by their first bytes.
struct Lines<'t> {
    text: &'t str,
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    fn new(text: &'t str) -> Self {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Lines { text, starts }
    }

    /// A line without its end, by its number from 0.
    fn line(&self, number: usize) -> Option<&'t str> {
        let start = *self.starts.get(number)?;
        let end = self.starts.get(number + 1).map_or(self.text.len(), |next| next - 1);
        Some(&self.text[start..end])
    }

    /// Where a line begins; the end of the text for the one behind the last.
    fn start(&self, number: usize) -> usize {
        self.starts.get(number).copied().unwrap_or(self.text.len())
    }

    fn offset(&self, place: TextPosition) -> Option<usize> {
        let line = self.line(place.line - 1)?;
        let within = line.char_indices().map(|(at, _)| at).chain([line.len()]).nth(place.column - 1)?;
        Some(self.start(place.line - 1) + within)
    }

    fn edit(&self, located: &Located, change: &DocumentChange) -> Option<(Range<usize>, String)> {
        match change {
            DocumentChange::Set { at, name, value } => self.set(located, at, name, value),
            DocumentChange::Remove { at } | DocumentChange::RemoveOne { at } if at.ends_with(']') => {
                self.item(located, at)
            }
            DocumentChange::Remove { at } | DocumentChange::RemoveOne { at } => {
                self.field_lines(located.key_place(at), steps(at).last()?)
            }
        }
    }

    /// A new value for a field that is there, or a new field beside the type.
    fn set(&self, located: &Located, at: &str, name: &str, value: &Value) -> Option<(Range<usize>, String)> {
        let steps: Vec<&str> = steps(at);
        let Some(old) = node(&located.value, &steps)?.get(name) else {
            return self.insertion(located.place(&format!("{at}.type")), name, value);
        };
        let start = self.offset(located.place(&format!("{at}.{name}")))?;
        let written = json::encode_to_string(old);
        self.text[start..].starts_with(&written).then(|| (start..start + written.len(), json::encode_to_string(value)))
    }

    /// A field behind the scalar at `place`: on a line of its own, or between the same braces.
    fn insertion(&self, place: TextPosition, name: &str, value: &Value) -> Option<(Range<usize>, String)> {
        let line = self.line(place.line - 1)?;
        let start = self.offset(place)?;
        let in_json = json::encode_to_string(value);
        let plain = value.as_str().unwrap_or(&in_json);
        let before = &self.text[self.start(place.line - 1)..start];
        let key = before.trim_start();
        let word = self.text[start..].split(|c: char| !(c.is_ascii_alphanumeric() || c == '"' || c == '\'')).next()?;
        if key.starts_with("type") && !before.contains('{') {
            let indent = &before[..before.len() - key.len()];
            let end = self.start(place.line - 1) + line.len();
            return Some((end..end, format!("\n{indent}{name}: {plain}")));
        }
        let end = start + word.len();
        let is_json = before.trim_end().ends_with("\"type\":");
        let field = if is_json { format!(", \"{name}\": {in_json}") } else { format!(", {name}: {plain}") };
        Some((end..end, field))
    }

    /// The lines of an item of a list, and of the list if it is the only one.
    fn item(&self, located: &Located, at: &str) -> Option<(Range<usize>, String)> {
        let first = located.place(at).line - 1;
        let opening = self.line(first)?;
        let dash = opening.len() - opening.trim_start().strip_prefix('-')?.len() - 1;
        let mut end = first + 1;
        let mut next = end;
        while let Some(line) = self.line(next) {
            let text = line.trim_start();
            if !text.is_empty() && line.len() - text.len() <= dash {
                break;
            }
            next += 1;
            if !text.is_empty() {
                end = next;
            }
        }
        let list = &at[..at.rfind('[')?];
        let key = located.place(list).line - 1;
        let is_only = node(&located.value, &steps(list))?.as_array()?.len() == 1;
        let start = if is_only { key } else { first };
        let is_alone = self.line(key)?.trim_end().ends_with(':');
        (!is_only || is_alone).then(|| (self.start(start)..self.start(end), String::new()))
    }

    /// The lines of a field that has them for itself: the first, and those below that are indented deeper.
    fn field_lines(&self, place: TextPosition, name: &str) -> Option<(Range<usize>, String)> {
        let first = place.line - 1;
        let opening = self.line(first)?;
        let indent = opening.len() - opening.trim_start().len();
        if !opening.trim_start().strip_prefix(name)?.starts_with(':') {
            return None;
        }
        let is_below = |line: &str| !line.trim().is_empty() && line.len() - line.trim_start().len() > indent;
        let below = (first + 1..).take_while(|next| self.line(*next).is_some_and(is_below)).count();
        Some((self.start(first)..self.start(first + 1 + below), String::new()))
    }
}
