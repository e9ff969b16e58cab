//! The outline of a text as a tree of symbols.
//!
//! Input: a text. Output: its documents and their fields, down to a maximum depth and up to a maximum number.

use super::documents::{Head, parts};
use super::outline::{Outline, OutlineStep, ValueStyle, outline};
use super::text::{Text, TextRange};

/// The number of levels below a document.
const DEPTH_MAX: usize = 12;
/// The maximum number of symbols.
const SYMBOLS_MAX: usize = 5000;

/// A document, a field or an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Its name.
    pub name: String,
    /// Its value, if that is short.
    pub detail: String,
    /// Whether it is a document.
    pub is_document: bool,
    /// The range of the whole symbol.
    pub range: TextRange,
    /// The range of its name.
    pub selection: TextRange,
    /// The symbols within it.
    pub children: Vec<Symbol>,
}

/// The documents of a text, with their fields.
pub fn symbols(text: &Text) -> Vec<Symbol> {
    let mut left = SYMBOLS_MAX;
    parts(text.as_str())
        .into_iter()
        .filter_map(|part| document(text, part.range.start, &text.as_str()[part.range], &mut left))
        .collect()
}

fn document(text: &Text, start: usize, own: &str, left: &mut usize) -> Option<Symbol> {
    let outline = outline(own);
    if outline.nodes.len() < 2 {
        return None;
    }
    let head = Head::of(own, &outline);
    let words = [head.kind.as_str(), head.name.as_str()];
    let name = words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    let name = if name.is_empty() { "document".to_owned() } else { name };
    // The end of the last descendant of each node, computed from the last node to the first.
    let nodes = &outline.nodes;
    let mut ends: Vec<usize> = nodes.iter().map(|node| node.key.end.max(node.value.end)).collect();
    for at in (1..nodes.len()).rev() {
        if let Some(parent) = nodes[at].parent {
            ends[parent] = ends[parent].max(ends[at]);
        }
    }
    let mut depths = vec![0_usize; nodes.len()];
    let mut made: Vec<Option<Symbol>> = vec![None; nodes.len()];
    for at in 1..nodes.len() {
        let node = &nodes[at];
        depths[at] = node.parent.map_or(0, |parent| depths[parent]) + 1;
        if depths[at] > DEPTH_MAX || *left == 0 {
            continue;
        }
        *left -= 1;
        let name = match &node.step {
            OutlineStep::Key(name) if name.is_empty() => "?".to_owned(),
            OutlineStep::Key(name) => name.clone(),
            OutlineStep::Item(index) => format!("[{index}]"),
        };
        let detail = match node.form {
            ValueStyle::Plain | ValueStyle::Quoted(_) => outline.scalar(own, at).chars().take(60).collect(),
            ValueStyle::Block => String::new(),
            ValueStyle::Below | ValueStyle::Flow => name_of_item(own, &outline, at),
        };
        let range = text.range(&(start + node.key.start..start + ends[at]));
        let selection = text.range(&(start + node.key.start..start + node.key.end));
        made[at] = Some(Symbol { name, detail, is_document: false, range, selection, children: Vec::new() });
    }
    for at in (1..nodes.len()).rev() {
        let Some(symbol) = made[at].take() else { continue };
        match nodes[at].parent {
            Some(parent) if parent > 0 => {
                if let Some(Some(holder)) = made.get_mut(parent) {
                    holder.children.insert(0, symbol);
                }
            }
            _ => made[at] = Some(symbol),
        }
    }
    let range = text.range(&(start + nodes[1].key.start..start + ends[0]));
    let selection = text.range(&(start + nodes[1].key.start..start + nodes[1].key.end));
    let children = made.into_iter().flatten().collect();
    Some(Symbol { name, detail: head.api_version, is_document: true, range, selection, children })
}

/// The name of a list item, if it has one.
fn name_of_item(own: &str, outline: &Outline, node: usize) -> String {
    if !matches!(outline.nodes[node].step, OutlineStep::Item(_)) {
        return String::new();
    }
    let own_field = |name: &str| {
        let is_it = |child: &usize| matches!(&outline.nodes[*child].step, OutlineStep::Key(key) if key == name);
        outline.children(node).find(is_it).map(|child| outline.scalar(own, child).to_owned())
    };
    ["name", "kind", "type", "key"].into_iter().find_map(own_field).unwrap_or_default().chars().take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_trees() {
        let text =
            Text::from("kind: A\nmetadata: {name: b}\nspec:\n  list:\n  - c: 1\n    name: d\n---\n# none\n---\nx: 1\n");
        let found = symbols(&text);
        let names: Vec<&str> = found.iter().map(|symbol| symbol.name.as_str()).collect();
        assert_eq!(names, ["A b", "document"]);
        let spec = &found[0].children[2];
        let item = &spec.children[0].children[0];
        assert_eq!((item.name.as_str(), item.detail.as_str(), item.children.len()), ("[0]", "d", 2));
        assert_eq!((spec.range.start.line, spec.range.end.line), (2, 5));
    }
}
