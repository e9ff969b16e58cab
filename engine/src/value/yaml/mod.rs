//! YAML 1.1, as Kubernetes reads and writes it.
//!
//! Input: YAML, of which JSON is a part. Output: a [`Value`]; keys that are not text become text. Scalars have the
//! meaning that Go's YAML library gives them: `on`, `y`, `017` and `1_000` are not text unless they are quoted. Output
//! is in block style, in lines of about 80 characters, with quotes where they are needed.
//!
//! # Why not a crate
//!
//! Manifests must mean what they mean to `sigs.k8s.io/yaml`: scalars of YAML 1.1 in Go's reading (`0o17`, `1_000`,
//! `y` as a key), merge keys, budgets for aliases, errors; and what we emit must be what Go emits. Measured against
//! Go's library, serde-saphyr differed in these.
//!
//! Source: `sigs.k8s.io/yaml` and `go.yaml.in/yaml/v2`. Errors have their texts, and their leniency is kept: what
//! follows the first document's node is ignored.

mod field_order;
mod emitter;
mod parser;
mod place;
mod plain_json;
mod scalar;
mod scanner;
mod source;
mod tag;

use std::collections::{HashMap, HashSet};
use std::fmt;

use super::go::{go_float, go_syntax};
use super::json::DEPTH_MAX;
use super::{Map, Value, number};
use crate::meta::field::ERRORS_BYTES_MAX;
use crate::work;
use parser::{Id, ParseError, YamlContent, YamlDocument, YamlNode, YamlParser};
use scalar::{YamlScalar, resolve};
use scanner::ScanError;
use tag::Tag;

pub use emitter::{TooLong, encode, encode_within};
pub use place::{Broken, Located, Repeated, RepeatedKey, TextPosition, decode_all_located, decode_each_located};

/// The most bytes of text that the aliases of a document may expand to: as many as a body has. The reference only
/// counts nodes.
const ALIASED_BYTES_MAX: usize = 3 << 20;
/// The Go type of a decoded mapping.
const MAP: &str = "map[interface {}]interface {}";

/// Why text is not YAML, or can't be represented as JSON, in Go's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct YamlError(String);

impl YamlError {
    fn yaml(text: impl fmt::Display) -> Self {
        YamlError(format!("yaml: {text}"))
    }
}

impl ParseError {
    /// The line at which reading ended, from 0.
    fn line(&self) -> Option<usize> {
        match self {
            ParseError::Syntax(ScanError { line: 0, context_line: 0, .. }) | ParseError::UnknownAnchor(_) => None,
            ParseError::Syntax(ScanError { line: 0, context_line, .. }) => Some(*context_line),
            ParseError::Syntax(ScanError { line, .. }) => Some(*line),
        }
    }

    /// The error without its line.
    fn problem(&self) -> String {
        match self {
            ParseError::Syntax(ScanError { problem, .. }) => problem.clone(),
            ParseError::UnknownAnchor(name) => unknown_anchor(name),
        }
    }
}

fn unknown_anchor(name: &str) -> String {
    format!("unknown anchor '{name}' referenced")
}

impl From<ParseError> for YamlError {
    fn from(error: ParseError) -> Self {
        match error {
            ParseError::UnknownAnchor(name) => YamlError::yaml(unknown_anchor(&name)),
            ParseError::Syntax(ScanError { problem, line, context_line, from_scanner }) => {
                let line = match line {
                    0 => context_line,
                    line => line + usize::from(from_scanner),
                };
                match line {
                    0 => YamlError::yaml(problem),
                    line => YamlError::yaml(format_args!("line {line}: {problem}")),
                }
            }
        }
    }
}

/// Reads the first document; null if there is none.
///
/// # Errors
///
/// It is not YAML, or can't be represented as JSON.
pub fn decode(bytes: &[u8]) -> Result<Value, YamlError> {
    decode_strict(bytes).map(|(value, _)| value)
}

/// Reads the first document; also reports duplicate keys, all in one text like Go's library.
///
/// # Errors
///
/// It is not YAML, or can't be represented as JSON.
pub fn decode_strict(bytes: &[u8]) -> Result<(Value, Vec<String>), YamlError> {
    if let Some(value) = plain_json::decode(bytes) {
        return Ok((value, Vec::new()));
    }
    match YamlParser::new(bytes).document()? {
        Some(document) => decode_document(&document).map(|(value, repeated)| (value, strict_errors(&repeated))),
        None => Ok((Value::Null, Vec::new())),
    }
}

/// Reads all documents.
///
/// # Errors
///
/// One of them is not YAML, or can't be represented as JSON.
pub fn decode_all(bytes: &[u8]) -> Result<Vec<Value>, YamlError> {
    let mut parser = YamlParser::new(bytes);
    let mut values = Vec::new();
    while let Some(document) = parser.document()? {
        values.push(decode_document(&document)?.0);
    }
    Ok(values)
}

/// The errors of Go's library for duplicate keys.
fn strict_errors(repeated: &[Repeated]) -> Vec<String> {
    if repeated.is_empty() {
        return Vec::new();
    }
    let mut text = "yaml: unmarshal errors:".to_owned();
    for (at, key) in repeated.iter().enumerate() {
        let line = key.to_string();
        work::bytes(line.len());
        if at > 0 && text.len() + line.len() > ERRORS_BYTES_MAX {
            text.push_str(&format!("\n  and {} more errors", repeated.len() - at));
            break;
        }
        text.push_str("\n  ");
        text.push_str(&line);
    }
    vec![text]
}

fn decode_document(document: &YamlDocument) -> Result<(Value, Vec<Repeated>), YamlError> {
    let mut decoder = YamlDecoder {
        nodes: &document.nodes,
        depth: 0,
        open_aliases: HashSet::new(),
        // The document itself is counted as well.
        decoded: 1,
        decoded_by_alias: 0,
        aliased_bytes: 0,
        repeated: Vec::new(),
        unsupported: None,
        has_unbounded: false,
    };
    let value = decoder.value(document.root)?;
    if let Some(error) = decoder.unsupported {
        return Err(error);
    }
    if decoder.has_unbounded
        && let Some(number) = unbounded(&value)
    {
        return Err(YamlError(format!("json: unsupported value: {}", go_float(number))));
    }
    Ok((value, decoder.repeated))
}

/// A key of a mapping. Keys of different types are different, even if they have the same text in JSON.
#[derive(Clone, PartialEq, Eq, Hash)]
enum MappingKey {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    /// By its bits.
    Float(u64),
    Text(String),
}

/// A mapping that is being read: its fields in their order, and their positions by key.
#[derive(Default)]
struct MappingFields {
    fields: Vec<(MappingKey, Value)>,
    places: HashMap<MappingKey, usize>,
}

/// Nodes to values.
struct YamlDecoder<'d> {
    nodes: &'d [YamlNode],
    /// The depth of enclosing sequences and mappings.
    depth: usize,
    /// The aliases that are being followed.
    open_aliases: HashSet<Id>,
    decoded: usize,
    decoded_by_alias: usize,
    /// Bytes of the texts read through aliases.
    aliased_bytes: usize,
    repeated: Vec<Repeated>,
    /// A key that JSON can't represent; reported if there is no other error.
    unsupported: Option<YamlError>,
    /// An infinite number or NaN was read; it may have been replaced since.
    has_unbounded: bool,
}

impl<'d> YamlDecoder<'d> {
    /// Counts a node, and refuses documents that consist of little but aliases.
    fn count(&mut self) -> Result<(), YamlError> {
        work::step();
        self.decoded += 1;
        if !self.open_aliases.is_empty() {
            self.decoded_by_alias += 1;
        }
        let share = self.decoded_by_alias as f64 / self.decoded as f64;
        if self.decoded_by_alias > 100 && self.decoded > 1000 && share > alias_share_max(self.decoded) {
            return Err(excessive_aliasing());
        }
        Ok(())
    }

    /// Counts a text that is copied, and refuses documents that expand too much.
    fn count_text(&mut self, text: &str) -> Result<(), YamlError> {
        work::bytes(text.len());
        if !self.open_aliases.is_empty() {
            self.aliased_bytes += text.len();
        }
        if self.aliased_bytes > ALIASED_BYTES_MAX { Err(excessive_aliasing()) } else { Ok(()) }
    }

    /// Reads the contents of a sequence or mapping. Through aliases, these may nest deeper than the parser allows.
    fn within<T>(&mut self, sign: char, read: impl FnOnce(&mut Self) -> Result<T, YamlError>) -> Result<T, YamlError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(YamlError(format!("invalid character '{sign}' exceeded max depth")));
        }
        let value = read(self);
        self.depth -= 1;
        value
    }

    fn value(&mut self, id: Id) -> Result<Value, YamlError> {
        self.count()?;
        match &self.nodes[id].content {
            YamlContent::Alias { name, target } => self.alias(id, name, |decoder| decoder.value(*target)),
            YamlContent::Scalar { text, tag, plain } => self.scalar(text, *tag, *plain),
            YamlContent::Sequence(items) => {
                let read = |decoder: &mut Self| items.iter().map(|item| decoder.value(*item)).collect();
                self.within('[', read).map(Value::Array)
            }
            YamlContent::Mapping(fields) => self.within('{', |decoder| {
                let mut read = MappingFields::default();
                decoder.fields(fields, &mut read)?;
                Ok(decoder.object(read))
            }),
        }
    }

    fn alias<T>(
        &mut self,
        id: Id,
        name: &str,
        follow: impl FnOnce(&mut Self) -> Result<T, YamlError>,
    ) -> Result<T, YamlError> {
        if !self.open_aliases.insert(id) {
            return Err(YamlError::yaml(format_args!("anchor '{name}' value contains itself")));
        }
        let followed = follow(self);
        self.open_aliases.remove(&id);
        followed
    }

    fn fields(&mut self, fields: &'d [(Id, Id)], read: &mut MappingFields) -> Result<(), YamlError> {
        for (key, value) in fields {
            if is_merge(&self.nodes[*key]) {
                self.merge(*value, read)?;
                continue;
            }
            let column = self.nodes[*key].column;
            let key = self.key(*key)?;
            let line = self.nodes[*value].line;
            let value = self.value(*value)?;
            if let Some(before) = read.places.get(&key) {
                let place = TextPosition { line: line + 1, column: column + 1 };
                self.repeated.push(Repeated { place, key: repeated_key(&key) });
                read.fields[*before].1 = value;
            } else {
                read.places.insert(key.clone(), read.fields.len());
                read.fields.push((key, value));
            }
        }
        Ok(())
    }

    /// Merges the mapping at `<<`, or several. Their fields replace those read before, as all later fields do.
    fn merge(&mut self, id: Id, read: &mut MappingFields) -> Result<(), YamlError> {
        let wants_map = || Err(YamlError::yaml("map merge requires map or sequence of maps as the value"));
        match &self.nodes[id].content {
            YamlContent::Scalar { .. } => wants_map(),
            YamlContent::Mapping(_) | YamlContent::Alias { .. } => self.merge_one(id, read),
            YamlContent::Sequence(items) => items.iter().rev().try_for_each(|item| match self.nodes[*item].content {
                YamlContent::Mapping(_) | YamlContent::Alias { .. } => self.merge_one(*item, read),
                _ => wants_map(),
            }),
        }
    }

    fn merge_one(&mut self, id: Id, read: &mut MappingFields) -> Result<(), YamlError> {
        self.count()?;
        match &self.nodes[id].content {
            YamlContent::Mapping(fields) => self.fields(fields, read),
            YamlContent::Alias { name, target } if matches!(self.nodes[*target].content, YamlContent::Mapping(_)) => {
                self.alias(id, name, |decoder| decoder.merge_one(*target, read))
            }
            _ => Err(YamlError::yaml("map merge requires map or sequence of maps as the value")),
        }
    }

    fn key(&mut self, id: Id) -> Result<MappingKey, YamlError> {
        self.count()?;
        match &self.nodes[id].content {
            YamlContent::Alias { name, target } => self.alias(id, name, |decoder| decoder.key(*target)),
            YamlContent::Scalar { text, .. } if self.count_text(text).is_err() => Err(excessive_aliasing()),
            YamlContent::Scalar { text, tag, plain } => Ok(match resolve_tagged(text, *tag, *plain)? {
                (YamlScalar::Null, _) => MappingKey::Null,
                (YamlScalar::Bool(truth), _) => MappingKey::Bool(truth),
                (YamlScalar::Int(number), _) => MappingKey::Int(number),
                (YamlScalar::Uint(number), _) => MappingKey::Uint(number),
                (YamlScalar::Float(number), _) => MappingKey::Float(number.to_bits()),
                (YamlScalar::Time | YamlScalar::Text, text) => MappingKey::Text(text),
            }),
            YamlContent::Sequence(_) | YamlContent::Mapping(_) => {
                // It has been counted.
                self.decoded -= 1;
                let key = self.value(id)?;
                Err(YamlError::yaml(format_args!("invalid map key: {}", go_syntax(&key, MAP))))
            }
        }
    }

    fn scalar(&mut self, text: &str, tag: Tag, plain: bool) -> Result<Value, YamlError> {
        self.count_text(text)?;
        Ok(match resolve_tagged(text, tag, plain)? {
            (YamlScalar::Null, _) => Value::Null,
            (YamlScalar::Bool(truth), _) => Value::Bool(truth),
            (YamlScalar::Int(number), _) => Value::Int(number),
            (YamlScalar::Uint(number), _) => Value::Float(number as f64),
            (YamlScalar::Float(number), _) if number.is_finite() => {
                // It passes through JSON, where a whole number has no point.
                let text = number::format_float(number);
                text.parse().map_or(Value::Float(number), Value::Int)
            }
            (YamlScalar::Float(number), _) => {
                self.has_unbounded = true;
                Value::Float(number)
            }
            (YamlScalar::Time | YamlScalar::Text, text) => Value::String(text),
        })
    }

    /// The object of a mapping; its keys become text.
    fn object(&mut self, read: MappingFields) -> Value {
        let fields = read.fields.into_iter().filter_map(|(key, value)| {
            let (kind, printed) = match key {
                MappingKey::Text(text) => return Some((text.into(), value)),
                MappingKey::Bool(truth) => return Some((truth.to_string().into(), value)),
                MappingKey::Int(number) => return Some((number.to_string().into(), value)),
                MappingKey::Float(bits) => return Some((float_key(f64::from_bits(bits)).into(), value)),
                MappingKey::Uint(number) => ("uint64", format!("{number:#x}")),
                MappingKey::Null => ("%!s(<nil>)", "<nil>".to_owned()),
            };
            let value = if value.is_null() { "<nil>".to_owned() } else { go_syntax(&value, MAP) };
            let text = format!("unsupported map key of type: {kind}, key: {printed}, value: {value}");
            self.unsupported = Some(YamlError(text));
            None
        });
        Value::Object(Map::from_fields(fields.collect()))
    }
}

/// The share of a document of `decoded` nodes that may come from aliases: 99% of a small one, 10% of a large one.
fn alias_share_max(decoded: usize) -> f64 {
    const SMALL: f64 = 400_000.0;
    const LARGE: f64 = 4_000_000.0;
    0.99 - 0.89 * ((decoded as f64).clamp(SMALL, LARGE) - SMALL) / (LARGE - SMALL)
}

fn excessive_aliasing() -> YamlError {
    YamlError::yaml("document contains excessive aliasing")
}

fn is_merge(node: &YamlNode) -> bool {
    matches!(&node.content, YamlContent::Scalar { text, tag, plain }
        if text == "<<" && (*plain || *tag == Tag::Known("merge")))
}

/// The meaning of a scalar, and its text.
fn resolve_tagged(text: &str, tag: Tag, plain: bool) -> Result<(YamlScalar, String), YamlError> {
    let as_text = || Ok((YamlScalar::Text, text.to_owned()));
    let wanted = match tag {
        Tag::None if plain => return Ok((resolve(text), text.to_owned())),
        Tag::Known("binary") => {
            let bytes =
                decode_base64(text).ok_or_else(|| YamlError::yaml("!!binary value contains invalid base64 data"))?;
            return Ok((YamlScalar::Text, super::json::text_of(&bytes).into_owned()));
        }
        Tag::Known(wanted @ ("bool" | "int" | "float" | "null" | "timestamp")) => wanted,
        _ => return as_text(),
    };
    let mut scalar = resolve(text);
    if scalar == YamlScalar::Time && wanted != "timestamp" {
        scalar = YamlScalar::Text;
    }
    let found = match scalar {
        YamlScalar::Null => "null",
        YamlScalar::Bool(_) => "bool",
        YamlScalar::Int(_) | YamlScalar::Uint(_) => "int",
        YamlScalar::Float(_) => "float",
        YamlScalar::Time => "timestamp",
        YamlScalar::Text => "str",
    };
    match scalar {
        scalar if found == wanted => Ok((scalar, text.to_owned())),
        YamlScalar::Int(number) if wanted == "float" => Ok((YamlScalar::Float(number as f64), text.to_owned())),
        _ => Err(YamlError::yaml(format_args!("cannot decode !!{found} `{text}` as a !!{wanted}"))),
    }
}

/// Standard base64 with padding; line breaks don't count.
fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !matches!(byte, b'\r' | b'\n')).collect();
    let (groups, []) = digits.as_chunks::<4>() else { return None };
    let mut bytes = Vec::with_capacity(groups.len() * 3);
    for (index, group) in groups.iter().enumerate() {
        let padding = group.iter().rev().take_while(|digit| **digit == b'=').count();
        if padding > 2 || (padding > 0 && index + 1 < groups.len()) {
            return None;
        }
        let mut bits = 0_u32;
        for digit in &group[..4 - padding] {
            let sextet = match digit {
                b'A'..=b'Z' => digit - b'A',
                b'a'..=b'z' => digit - b'a' + 26,
                b'0'..=b'9' => digit - b'0' + 52,
                b'+' => 62,
                b'/' => 63,
                _ => return None,
            };
            bits = (bits << 6) | u32::from(sextet);
        }
        let [_, octets @ ..] = (bits << (6 * padding)).to_be_bytes();
        bytes.extend_from_slice(&octets[..3 - padding]);
    }
    Some(bytes)
}

/// The first number within `value` that JSON can't represent.
fn unbounded(value: &Value) -> Option<f64> {
    match value {
        Value::Float(number) if !number.is_finite() => Some(*number),
        Value::Array(items) => items.iter().find_map(unbounded),
        Value::Object(fields) => fields.values().find_map(unbounded),
        _ => None,
    }
}

/// A number as a key: rounded to single precision.
fn float_key(number: f64) -> String {
    let single = number as f32;
    match go_float(single.into()).as_str() {
        "+Inf" => ".inf".to_owned(),
        "-Inf" => "-.inf".to_owned(),
        "NaN" => ".nan".to_owned(),
        // The shortest digits of a single-precision number are those of the nearest double.
        _ => number::format_float_v(single.to_string().parse().unwrap_or(number)),
    }
}

/// A key as errors show it, in Go's `%#v`.
fn repeated_key(key: &MappingKey) -> RepeatedKey {
    RepeatedKey::Other(match key {
        MappingKey::Text(text) => return RepeatedKey::Text(text.clone()),
        MappingKey::Null => "<nil>".to_owned(),
        MappingKey::Bool(truth) => truth.to_string(),
        MappingKey::Int(number) => number.to_string(),
        MappingKey::Uint(number) => format!("{number:#x}"),
        MappingKey::Float(bits) => go_float(f64::from_bits(*bits)),
    })
}

#[cfg(test)]
mod tests;
