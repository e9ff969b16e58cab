//! The nodes of a document, and their paths.

use std::ops::Range;

use crate::work;

/// One step into a document.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum OutlineStep {
    /// A field.
    Key(String),
    /// An item, from 0.
    Item(usize),
}

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueStyle {
    /// On the lines below, or absent.
    Below,
    /// A scalar without quotes.
    Plain,
    /// In quotes: `'` or `"`.
    Quoted(u8),
    /// On the lines below a `|` or a `>`.
    Block,
    /// In brackets or braces.
    Flow,
}

/// A field or an item.
#[derive(Clone, Debug)]
pub struct OutlineNode {
    /// The index of its parent; `None` for the document itself.
    pub parent: Option<usize>,
    /// The step from the parent.
    pub step: OutlineStep,
    /// The range of its name with quotes; for an item, of its dash.
    pub key: Range<usize>,
    /// The range of its value with quotes, without the comment after it; empty if there is none on the line.
    pub value: Range<usize>,
    /// How the value is written.
    pub form: ValueStyle,
    /// Whether a colon follows the name; otherwise it may be the beginning of one.
    pub is_whole: bool,
    /// The number of its direct children.
    pub count: usize,
}

/// The path of a node.
pub(in crate::author::editor) fn path(nodes: &[OutlineNode], node: usize) -> Vec<OutlineStep> {
    let mut steps = Vec::new();
    let mut at = node;
    while let Some(parent) = nodes[at].parent {
        work::step();
        steps.push(nodes[at].step.clone());
        at = parent;
    }
    steps.reverse();
    steps
}

/// Makes a path from field names, each within the one before.
pub fn steps(names: &[&str]) -> Vec<OutlineStep> {
    names.iter().map(|name| OutlineStep::Key((*name).to_owned())).collect()
}

/// Formats a path as errors do: `spec.ports[0].name`.
pub fn shown(path: &[OutlineStep]) -> String {
    let mut shown = String::new();
    for step in path {
        match step {
            OutlineStep::Key(name) if shown.is_empty() => shown.push_str(name),
            OutlineStep::Key(name) if name.contains(['.', '/']) => shown.push_str(&format!("[{name}]")),
            OutlineStep::Key(name) => shown.push_str(&format!(".{name}")),
            OutlineStep::Item(index) => shown.push_str(&format!("[{index}]")),
        }
    }
    shown
}

/// The index of the version that a path in a definition's text leads into, `spec.versions[0].schema.openAPIV3Schema`,
/// and the remaining steps.
pub(in crate::author::editor) fn below_version(path: &[OutlineStep]) -> Option<(usize, &[OutlineStep])> {
    use OutlineStep::{Item, Key};
    match path {
        [Key(_), Key(_), Item(version), Key(_), Key(_), below @ ..] => Some((*version, below)),
        _ => None,
    }
}
