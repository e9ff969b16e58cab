//! The positions of fields in a text.
//!
//! Input: YAML, and a field as errors name it (`spec.ports[0].name`, `metadata.labels[a/b]`). Output: a line and a
//! column. The nodes of the text are kept for this; callers that only need values use the other readers.

use std::collections::HashMap;
use std::fmt;
use std::sync::OnceLock;

use super::parser::{Id, YamlContent, YamlDocument, YamlNode, YamlParser};
use super::{YamlError, decode_document, is_merge};
use crate::value::{Value, go_quote};
use crate::work;

/// A mapping with more fields gets an index of them, once a position within it is asked for.
const SCANNED_FIELDS_MAX: usize = 16;

/// A position in a text: line and column, in characters, both from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TextPosition {
    /// Counted from 1.
    pub line: usize,
    /// Counted from 1, in characters.
    pub column: usize,
}

/// A duplicate key of a mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repeated {
    /// The position of the later key.
    pub place: TextPosition,
    /// What stands twice.
    pub key: RepeatedKey,
}

/// A key, which may be of any type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RepeatedKey {
    /// A text.
    Text(String),
    /// Any other, as Go prints it.
    Other(String),
}

impl fmt::Display for Repeated {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "line {}: {}", self.place.line, self.key)
    }
}

impl fmt::Display for RepeatedKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RepeatedKey::Text(key) => write!(out, "key {} already set in map", go_quote(key)),
            RepeatedKey::Other(key) => write!(out, "key {key} already set in map"),
        }
    }
}

/// A document, and the positions of its parts.
pub struct Located {
    /// The document.
    pub value: Value,
    /// Duplicate keys; the last value of each counts.
    pub repeated: Vec<Repeated>,
    document: YamlDocument,
    index: OnceLock<FieldIndex>,
}

/// For each mapping with many fields, the index of each field among them; the last one if it is a duplicate.
type FieldIndex = HashMap<Id, HashMap<String, usize>>;

/// A document that can't be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The error, without its line: Go counts lines from 0 or from 1.
    pub problem: String,
    /// Where.
    pub place: TextPosition,
}

/// The part of a field to point at.
struct LocatedField {
    key: Option<Id>,
    value: Id,
}

/// Reads all documents, with the positions of their parts.
///
/// # Errors
///
/// One of them is not YAML, or can't be represented as JSON.
pub fn decode_all_located(bytes: &[u8]) -> Result<Vec<Located>, YamlError> {
    let mut parser = YamlParser::new(bytes);
    let mut located = Vec::new();
    while let Some(document) = parser.document()? {
        let (value, repeated) = decode_document(&document)?;
        located.push(Located { value, repeated, document, index: OnceLock::new() });
    }
    Ok(located)
}

/// Reads each document separately, so that a broken one does not hide others.
///
/// A line that begins with `---` begins a document, whatever comes before it.
pub fn decode_each_located(bytes: &[u8]) -> Vec<Result<Located, Broken>> {
    match decode_all_located(bytes) {
        Ok(located) => located.into_iter().map(Ok).collect(),
        Err(_) => parts(bytes).into_iter().flat_map(|(line, part)| decode_part(part, line)).collect(),
    }
}

/// The parts of a stream that begin with a document marker, and the part before the first marker, with their lines.
fn parts(bytes: &[u8]) -> Vec<(usize, &[u8])> {
    let mut parts = Vec::new();
    let (mut start, mut start_line, mut at) = (0, 0, 0);
    for (number, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        work::bytes(line.len());
        let is_mark = line.strip_prefix(b"---").is_some_and(|rest| rest.first().is_none_or(u8::is_ascii_whitespace));
        if is_mark && at > start {
            parts.push((start_line, &bytes[start..at]));
            (start, start_line) = (at, number);
        }
        at += line.len();
    }
    parts.push((start_line, &bytes[start..]));
    parts
}

/// The documents of a part that begins at `line`, up to the first broken one.
fn decode_part(part: &[u8], line: usize) -> Vec<Result<Located, Broken>> {
    let mut parser = YamlParser::at_line(part, line);
    let mut read = Vec::new();
    loop {
        let document = match parser.document() {
            Ok(None) => return read,
            Ok(Some(document)) => document,
            Err(error) => {
                let place = TextPosition { line: error.line().unwrap_or(line) + 1, column: 1 };
                read.push(Err(Broken { place, problem: error.problem() }));
                return read;
            }
        };
        read.push(match decode_document(&document) {
            Ok((value, repeated)) => Ok(Located { value, repeated, document, index: OnceLock::new() }),
            Err(error) => Err(Broken { place: place_of(&document.nodes[document.root]), problem: error.to_string() }),
        });
    }
}

fn place_of(node: &YamlNode) -> TextPosition {
    TextPosition { line: node.line + 1, column: node.column + 1 }
}

impl Located {
    /// The position to point at for `path`: a scalar itself, or the key of any other value. For a missing field, that
    /// of its parent.
    pub fn place(&self, path: &str) -> TextPosition {
        let nodes = &self.document.nodes;
        let found = self.find(path);
        let is_scalar = matches!(nodes[found.value].content, YamlContent::Scalar { .. } | YamlContent::Alias { .. });
        let is_empty =
            matches!(&nodes[found.value].content, YamlContent::Scalar { text, plain: true, .. } if text.is_empty());
        let shown = match found.key {
            Some(key) if !is_scalar || is_empty => key,
            _ => found.value,
        };
        place_of(&nodes[shown])
    }

    /// The position to point at for a field that should not be there: its key.
    pub fn key_place(&self, path: &str) -> TextPosition {
        let found = self.find(path);
        place_of(&self.document.nodes[found.key.unwrap_or(found.value)])
    }

    /// The deepest existing node on the path `path`.
    fn find(&self, path: &str) -> LocatedField {
        let path = if path == "<nil>" { "" } else { path };
        let index = self.index.get_or_init(|| index(&self.document.nodes));
        find(&self.document.nodes, index, LocatedField { key: None, value: self.document.root }, path)
    }
}

fn index(nodes: &[YamlNode]) -> FieldIndex {
    let mut index = FieldIndex::new();
    for (id, node) in nodes.iter().enumerate() {
        work::step();
        let YamlContent::Mapping(fields) = &node.content else { continue };
        if fields.len() <= SCANNED_FIELDS_MAX {
            continue;
        }
        let named = fields.iter().enumerate().filter_map(|(at, (key, _))| match &nodes[*key].content {
            YamlContent::Scalar { text, .. } if !is_merge(&nodes[*key]) => {
                work::bytes(text.len());
                Some((text.clone(), at))
            }
            _ => None,
        });
        index.insert(id, named.collect());
    }
    index
}

/// The deepest existing node on the path `path`.
fn find(nodes: &[YamlNode], index: &FieldIndex, from: LocatedField, path: &str) -> LocatedField {
    work::step();
    if path.is_empty() {
        return from;
    }
    let id = resolved(nodes, from.value);
    match &nodes[id].content {
        YamlContent::Mapping(fields) => {
            let best = match index.get(&id) {
                Some(known) => look_up(known, path),
                None => scan(nodes, fields, path),
            };
            match best {
                Some((rest, at)) => {
                    let (key, value) = fields[at];
                    find(nodes, index, LocatedField { key: Some(key), value }, rest)
                }
                None => from,
            }
        }
        YamlContent::Sequence(items) => {
            let found = path.strip_prefix('[').and_then(|rest| rest.split_once(']'));
            let item = found.and_then(|(index, rest)| Some((*items.get(index.parse::<usize>().ok()?)?, rest)));
            match item {
                Some((value, rest)) => find(nodes, index, LocatedField { key: None, value }, rest),
                None => from,
            }
        }
        YamlContent::Scalar { .. } | YamlContent::Alias { .. } => from,
    }
}

/// The field with the longest name that `path` begins with, and the rest of `path`; the last of several.
fn scan<'p>(nodes: &[YamlNode], fields: &[(Id, Id)], path: &'p str) -> Option<(&'p str, usize)> {
    let mut best: Option<(&str, usize, usize)> = None;
    for (at, (key, _)) in fields.iter().enumerate() {
        if is_merge(&nodes[*key]) {
            continue;
        }
        let YamlContent::Scalar { text, .. } = &nodes[*key].content else { continue };
        let Some(rest) = behind_key(path, text) else { continue };
        if best.is_none_or(|(_, length, _)| text.len() >= length) {
            best = Some((rest, text.len(), at));
        }
    }
    best.map(|(rest, _, at)| (rest, at))
}

/// The same for a mapping with many fields: looks up each name that `path` may begin with.
fn look_up<'p>(known: &HashMap<String, usize>, path: &'p str) -> Option<(&'p str, usize)> {
    let first = usize::from(path.starts_with(['.', '[']));
    let ends = path.char_indices().filter(|(_, sign)| matches!(sign, '.' | '[' | ']')).map(|(at, _)| at);
    let mut best: Option<(&str, usize, usize)> = None;
    for end in ends.chain([path.len()]) {
        work::bytes(end);
        for start in [0, first] {
            let Some(name) = path.get(start..end) else { continue };
            let (Some(at), Some(rest)) = (known.get(name), behind_key(path, name)) else { continue };
            if best.is_none_or(|(_, length, _)| name.len() >= length) {
                best = Some((rest, name.len(), *at));
            }
        }
    }
    best.map(|(rest, _, at)| (rest, at))
}

/// The node that an alias refers to. An anchor comes before its alias, so this ends.
fn resolved(nodes: &[YamlNode], id: Id) -> Id {
    match &nodes[id].content {
        YamlContent::Alias { target, .. } => *target,
        _ => id,
    }
}

/// The rest of `path` if it begins with `key`, as `.key`, `key` or `[key]`.
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
    use crate::value::json;

    fn check(text: &str, path: &str, line: usize, column: usize) {
        let documents = decode_all_located(text.as_bytes()).expect("the test is YAML");
        assert_eq!(documents[0].place(path), TextPosition { line, column }, "{path}");
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
    fn fields_of_large_mappings_are_found_as_those_of_small_ones_are() {
        let fields: String = (0..20).map(|at| format!("  k{at}: {at}\n")).collect();
        let text = format!("data:\n{fields}  a: {{b: 1}}\n  a.b: 2\n  c/d.e: 3\n  k7: again\n");
        check(&text, "data.k12", 14, 8);
        check(&text, "data.a.b", 23, 8);
        check(&text, "data[a.b]", 23, 8);
        check(&text, "data.a[b]", 22, 10);
        check(&text, "data[c/d.e]", 24, 10);
        check(&text, "data.k7", 25, 7);
        check(&text, "data.k99", 1, 1);
    }

    #[test]
    fn what_should_not_be_there_is_pointed_at_by_its_key() {
        let documents = decode_all_located(TEXT.as_bytes()).expect("the test is YAML");
        assert_eq!(documents[0].key_place("spec.ports[0].number"), TextPosition { line: 6, column: 5 });
        assert_eq!(documents[0].key_place("spec.ports[1]"), TextPosition { line: 7, column: 5 });
    }

    #[test]
    fn a_broken_document_hides_no_other() {
        let text = "# one\na: 1\n---\nb: [\n---\nc: 3\n--- # four\nd: *x\n---\n---\n? [e]\n: 5\n";
        let found: Vec<_> = decode_each_located(text.as_bytes())
            .into_iter()
            .map(|read| match read {
                Ok(located) => format!("{} at {}", json::encode_to_string(&located.value), located.place("").line),
                Err(broken) => format!("{} at {}", broken.problem, broken.place.line),
            })
            .collect();
        let expected = [
            r#"{"a":1} at 2"#,
            "did not find expected node content at 5",
            r#"{"c":3} at 6"#,
            "unknown anchor 'x' referenced at 7",
            "null at 10",
            r#"yaml: invalid map key: []interface {}{"e"} at 11"#,
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn keys_that_stand_twice_have_a_line_and_a_column() {
        let documents = decode_all_located(b"a: 1\nb:\n  c: 1\n  c: 2\n").expect("the test is YAML");
        assert_eq!(
            documents[0].repeated,
            [Repeated { place: TextPosition { line: 4, column: 3 }, key: RepeatedKey::Text("c".to_owned()) }]
        );
    }
}
