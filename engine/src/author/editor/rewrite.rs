//! Edits YAML by the positions of an outline, so that comments and everything else are kept.
//!
//! Input: a text, and the change of a field. Output: the changed text, verified by parsing it: it must have the
//! intended value, or there is no result.

use super::outline::{Outline, OutlineStep, ValueStyle, outline};
use crate::author::editor::complete::plain;
use crate::value::{Value, json, yaml};

/// The lists of files at the beginning of a suite.
const LISTS: [&str; 2] = ["crds", "policies"];

/// Sets `field` of the map at `path` to `value`. Returns `None` if no edit gives exactly that value.
pub fn with_field(text: &str, path: &[OutlineStep], field: &str, value: &Value) -> Option<String> {
    let outline = outline(text);
    let holder = outline.find(path)?;
    let way: Vec<OutlineStep> = path.iter().cloned().chain([OutlineStep::Key(field.to_owned())]).collect();
    let there = outline.find(&way);
    let node = &outline.nodes[holder];
    let in_json = json::encode_to_string(value);
    let changed = match there {
        _ if node.form == ValueStyle::Flow => match there {
            Some(there) if !outline.nodes[there].value.is_empty() => {
                replaced(text, outline.nodes[there].value.clone(), &in_json)
            }
            Some(_) => return None,
            None => {
                let end = node.value.end.checked_sub(1).filter(|end| text[*end..].starts_with('}'))?;
                let join = if text[node.value.start + 1..end].trim().is_empty() { "" } else { ", " };
                let end = node.value.start + text[node.value.start..end].trim_end().len();
                replaced(text, end..end, &format!("{join}{field}: {in_json}"))
            }
        },
        Some(there) => {
            let start = outline.nodes[there].key.start;
            let column = column(text, start);
            replaced(text, start..block_end(text, start, column), &block(field, value, column))
        }
        None => {
            let first = outline.children(holder).next()?;
            let start = outline.nodes[first].key.start;
            let column = column(text, start);
            // After the last line of the map.
            let end = block_end(text, start, column.saturating_sub(1));
            let end = if column == 0 { text.len() } else { end };
            let join = if text[..end].ends_with('\n') || end == 0 { "" } else { "\n" };
            replaced(text, end..end, &format!("{join}{}{}", " ".repeat(column), block(field, value, column)))
        }
    };
    let mut meant = yaml::decode(text.as_bytes()).ok()?;
    node_mut(&mut meant, path)?.as_object_mut()?.insert(field, value.clone());
    (yaml::decode(changed.as_bytes()).ok()? == meant).then_some(changed)
}

/// Adds strings to the list `field` of the root, and creates the list if it does not exist.
pub fn with_entries(text: &str, field: &str, entries: &[String]) -> Option<String> {
    if entries.is_empty() {
        return Some(text.to_owned());
    }
    let mut meant = yaml::decode(text.as_bytes()).ok()?;
    let values = entries.iter().map(|entry| Value::from(entry.as_str()));
    let list: Vec<Value> = meant.items_at(&[field]).iter().cloned().chain(values).collect();
    meant.as_object_mut()?.insert(field, Value::Array(list));
    let changed = entries_written(text, &outline(text), field, entries)?;
    (yaml::decode(changed.as_bytes()).ok()? == meant).then_some(changed)
}

fn entries_written(text: &str, outline: &Outline, field: &str, entries: &[String]) -> Option<String> {
    let shown: Vec<String> = entries.iter().map(|entry| plain(&Value::from(entry.as_str()))).collect();
    let Some(list) = outline.find(&[OutlineStep::Key(field.to_owned())]) else {
        let quoted: Vec<String> =
            entries.iter().map(|entry| json::encode_to_string(&Value::from(entry.as_str()))).collect();
        // Lists of files come first.
        let is_other = |node: &usize| !matches!(&outline.nodes[*node].step, OutlineStep::Key(name) if LISTS.contains(&name.as_str()));
        let first = outline.children(0).find(is_other).or_else(|| outline.children(0).next());
        let first = first.map_or(0, |first| outline.nodes[first].key.start);
        let start = text[..first].rfind('\n').map_or(0, |end| end + 1);
        return Some(replaced(text, start..start, &format!("{field}: [{}]\n", quoted.join(", "))));
    };
    let node = &outline.nodes[list];
    if node.form == ValueStyle::Flow {
        let end = node.value.end.checked_sub(1).filter(|end| text[*end..].starts_with(']'))?;
        let quoted: Vec<String> =
            entries.iter().map(|entry| json::encode_to_string(&Value::from(entry.as_str()))).collect();
        let join = if text[node.value.start + 1..end].trim().is_empty() { "" } else { ", " };
        return Some(replaced(text, end..end, &format!("{join}{}", quoted.join(", "))));
    }
    let last = &outline.nodes[outline.children(list).last()?];
    let column = column(text, last.key.start);
    let end = line_end(text, last.value.end.max(last.key.end));
    let join = if text[..end].ends_with('\n') { "" } else { "\n" };
    let lines: String = shown.iter().map(|entry| format!("{}- {entry}\n", " ".repeat(column))).collect();
    Some(replaced(text, end..end, &format!("{join}{lines}")))
}

/// Formats a field and its value in block style, the first line without its indent.
fn block(field: &str, value: &Value, column: usize) -> String {
    let mut single = Value::Null;
    single.make_object().insert(field, value.clone());
    let lines = yaml::encode(&single);
    let mut written = String::new();
    for (at, line) in lines.lines().enumerate() {
        if at > 0 && !line.is_empty() {
            written.push_str(&" ".repeat(column));
        }
        written.push_str(line);
        written.push('\n');
    }
    written
}

/// The end of the lines that belong to what begins at `start`, that is, are indented deeper than `column`.
fn block_end(text: &str, start: usize, column: usize) -> usize {
    let mut end = line_end(text, start);
    let mut at = end;
    while at < text.len() {
        let next = line_end(text, at);
        let line = &text[at..next];
        let written = line.trim_start_matches(' ');
        if !written.trim().is_empty() {
            if line.len() - written.len() <= column || written.starts_with("---") && line.len() == written.len() {
                break;
            }
            end = next;
        }
        at = next;
    }
    end
}

/// The end of the line that contains a byte, including its line break.
fn line_end(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |end| at + end + 1)
}

fn column(text: &str, at: usize) -> usize {
    at - text[..at].rfind('\n').map_or(0, |end| end + 1)
}

fn replaced(text: &str, range: std::ops::Range<usize>, with: &str) -> String {
    [&text[..range.start], with, &text[range.end..]].concat()
}

fn node_mut<'v>(root: &'v mut Value, path: &[OutlineStep]) -> Option<&'v mut Value> {
    path.iter().try_fold(root, |node, step| match (node, step) {
        (Value::Array(items), OutlineStep::Item(index)) => items.get_mut(*index),
        (node, OutlineStep::Key(name)) => node.get_mut(name),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object;

    #[test]
    fn a_field_is_set_where_it_stands() {
        let case = [OutlineStep::Key("cases".to_owned()), OutlineStep::Item(0)];
        let value = object! { "valid" => true };
        let check = |text: &str, expected: &str| {
            assert_eq!(with_field(text, &case, "expect", &value).as_deref(), Some(expected), "{text}");
        };
        check(
            "cases:\n- name: a # one\n  expect:\n    valid: false\n    errors: []\n- name: b\n",
            "cases:\n- name: a # one\n  expect:\n    valid: true\n- name: b\n",
        );
        check("cases:\n  - name: a\n\n# end\n", "cases:\n  - name: a\n    expect:\n      valid: true\n\n# end\n");
        check("cases:\n- name: a\n  expect: {valid: false}", "cases:\n- name: a\n  expect:\n    valid: true\n");
        check("cases:\n- {name: a}\n", "cases:\n- {name: a, expect: {\"valid\":true}}\n");
        check("cases:\n- {name: a, expect: {}}\n", "cases:\n- {name: a, expect: {\"valid\":true}}\n");
    }

    #[test]
    fn entries_are_added_to_a_list() {
        let check = |text: &str, expected: &str| {
            assert_eq!(with_entries(text, "crds", &["b.yaml".to_owned()]).as_deref(), Some(expected), "{text}");
        };
        check("# c\ncases: []\n", "# c\ncrds: [\"b.yaml\"]\ncases: []\n");
        check("crds: [a.yaml]\ncases: []\n", "crds: [a.yaml, \"b.yaml\"]\ncases: []\n");
        check("crds:\n  - a.yaml # one\ncases: []\n", "crds:\n  - a.yaml # one\n  - b.yaml\ncases: []\n");
        check("crds: []\n", "crds: [\"b.yaml\"]\n");
    }
}
