//! Where fields stand in a text.
//!
//! In: YAML, and a field as errors name it (`spec.ports[0].name`, `metadata.labels[a/b]`). Out: a line and a column. The
//! nodes of the text are kept for this; who only wants values uses the other readers.

use std::fmt;

use super::parser::{Content, Document, Id, Node, Parser};
use super::{Error, decode_document, is_merge};
use crate::value::{Value, go_quote};

/// A place in a text: line and column, in characters, both from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Counted from 1.
    pub line: usize,
    /// Counted from 1, in characters.
    pub column: usize,
}

/// A key that stands a second time in its mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repeated {
    /// Where the later one stands.
    pub place: Place,
    /// What stands twice.
    pub key: RepeatedKey,
}

/// A key, which need not be a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RepeatedKey {
    /// A text.
    Text(String),
    /// Any other, as Go prints it.
    Other(String),
}

impl fmt::Display for Repeated {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = self.place.line;
        match &self.key {
            RepeatedKey::Text(key) => write!(out, "line {line}: key {} already set in map", go_quote(key)),
            RepeatedKey::Other(key) => write!(out, "line {line}: key {key} already set in map"),
        }
    }
}

/// A document, and where its parts stand.
pub struct Located {
    /// The document.
    pub value: Value,
    /// Keys that stand twice, which count by their last value.
    pub repeated: Vec<Repeated>,
    document: Document,
}

/// What of a field is meant.
struct Found {
    key: Option<Id>,
    value: Id,
}

/// Reads all documents, and keeps where their parts stand.
///
/// # Errors
///
/// One of them is not YAML, or has no form in JSON.
pub fn decode_all_located(bytes: &[u8]) -> Result<Vec<Located>, Error> {
    let mut parser = Parser::new(bytes);
    let mut located = Vec::new();
    while let Some(document) = parser.document()? {
        let (value, repeated) = decode_document(&document)?;
        located.push(Located { value, repeated, document });
    }
    Ok(located)
}

impl Located {
    /// Where to point at for `path`: at a scalar itself, at the key of anything larger. For a field that is not there, at
    /// what would hold it.
    pub fn place(&self, path: &str) -> Place {
        let path = if path == "<nil>" { "" } else { path };
        let nodes = &self.document.nodes;
        let found = find(nodes, Found { key: None, value: self.document.root }, path);
        let is_scalar = matches!(nodes[found.value].content, Content::Scalar { .. } | Content::Alias { .. });
        let is_empty =
            matches!(&nodes[found.value].content, Content::Scalar { text, plain: true, .. } if text.is_empty());
        let shown = match found.key {
            Some(key) if !is_scalar || is_empty => key,
            _ => found.value,
        };
        let node = &nodes[shown];
        Place { line: node.line + 1, column: node.column + 1 }
    }
}

/// The deepest node on the way to `path` that is there.
fn find(nodes: &[Node], from: Found, path: &str) -> Found {
    if path.is_empty() {
        return from;
    }
    match &nodes[resolved(nodes, from.value)].content {
        Content::Mapping(fields) => {
            let mut best: Option<(&str, usize, Found)> = None;
            for (key, value) in fields {
                if is_merge(&nodes[*key]) {
                    continue;
                }
                let Content::Scalar { text, .. } = &nodes[*key].content else { continue };
                let Some(rest) = behind_key(path, text) else { continue };
                if best.as_ref().is_none_or(|(_, length, _)| text.len() >= *length) {
                    best = Some((rest, text.len(), Found { key: Some(*key), value: *value }));
                }
            }
            match best {
                Some((rest, _, found)) => find(nodes, found, rest),
                None => from,
            }
        }
        Content::Sequence(items) => {
            let found = path.strip_prefix('[').and_then(|rest| rest.split_once(']'));
            let item = found.and_then(|(index, rest)| Some((*items.get(index.parse::<usize>().ok()?)?, rest)));
            match item {
                Some((value, rest)) => find(nodes, Found { key: None, value }, rest),
                None => from,
            }
        }
        Content::Scalar { .. } | Content::Alias { .. } => from,
    }
}

/// What an alias stands for. An anchor is known before its alias, so this ends.
fn resolved(nodes: &[Node], id: Id) -> Id {
    match &nodes[id].content {
        Content::Alias { target, .. } => *target,
        _ => id,
    }
}

/// What follows `key` at the start of `path`: `.key`, `key` or `[key]`.
fn behind_key<'p>(path: &'p str, key: &str) -> Option<&'p str> {
    if let Some(rest) = path.strip_prefix('[').and_then(|rest| rest.strip_prefix(key))
        && let Some(rest) = rest.strip_prefix(']')
    {
        return Some(rest);
    }
    let rest = path.strip_prefix('.').unwrap_or(path).strip_prefix(key)?;
    (rest.is_empty() || rest.starts_with(['.', '['])).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, path: &str, line: usize, column: usize) {
        let documents = decode_all_located(text.as_bytes()).expect("the test is YAML");
        assert_eq!(documents[0].place(path), Place { line, column }, "{path}");
    }

    const TEXT: &str = "\
metadata:
  labels: {a.b/c: x}
spec:
  ports:
  - name: web
    number: 80
  - &other
    name: api
  empty:
";

    #[test]
    fn scalars_are_pointed_at_and_larger_values_by_their_keys() {
        check(TEXT, "spec.ports[0].number", 6, 13);
        check(TEXT, "spec.ports", 4, 3);
        check(TEXT, "spec.ports[1]", 7, 5);
        check(TEXT, "metadata.labels[a.b/c]", 2, 19);
        check(TEXT, "metadata.labels.a.b/c", 2, 19);
        check(TEXT, "spec.empty", 9, 3);
    }

    #[test]
    fn what_is_missing_is_told_where_it_should_be() {
        check(TEXT, "spec.replicas", 3, 1);
        check(TEXT, "<nil>", 1, 1);
        check(TEXT, "spec.ports[7].name", 4, 3);
    }

    #[test]
    fn keys_that_stand_twice_have_a_line_and_a_column() {
        let documents = decode_all_located(b"a: 1\nb:\n  c: 1\n  c: 2\n").expect("the test is YAML");
        assert_eq!(
            documents[0].repeated,
            [Repeated { place: Place { line: 4, column: 3 }, key: RepeatedKey::Text("c".to_owned()) }]
        );
    }
}
