//! JSON that keeps its original spelling.
//!
//! The reference patches texts, not values, and clients see it: `test` compares numbers as they are written, and the
//! message about an invalid result quotes it with the fields of the patch in the client's order.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use super::list::ChunkedList;
use crate::meta::field::ERRORS_BYTES_MAX;
use crate::value::json::{self, Layout};
use crate::value::path_text::PathText;
use crate::value::{Value, go_quote};
use crate::work;

/// The most strict errors that are recorded, besides the limit for the length of an answer's errors.
const STRICT_ERRORS_MAX: usize = 100;

/// A value in a JSON text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WrittenNode {
    /// Its position, without the whitespace around it.
    pub span: Range<usize>,
    pub content: WrittenContent,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WrittenContent {
    Null,
    Bool,
    Number,
    String,
    Array(Vec<WrittenNode>),
    /// Fields in their order; the last of several with the same name counts.
    Object(Vec<(String, WrittenNode)>),
}

impl WrittenContent {
    /// The name of its type in Go's JSON decoder.
    pub fn go_name(&self) -> &'static str {
        match self {
            WrittenContent::Null => "null",
            WrittenContent::Bool => "bool",
            WrittenContent::Number => "number",
            WrittenContent::String => "string",
            WrittenContent::Array(_) => "array",
            WrittenContent::Object(_) => "object",
        }
    }
}

impl WrittenNode {
    /// Reads a text that is known to be JSON.
    pub fn read(text: &str) -> WrittenNode {
        JsonReader { text, at: 0 }.value()
    }

    /// The text of a string.
    pub fn as_string(&self, text: &str) -> Option<String> {
        match self.content {
            WrittenContent::String => unquoted(&text[self.span.clone()]),
            _ => None,
        }
    }

    /// The first number within this that is beyond the range of doubles, as it is written.
    pub fn out_of_range<'t>(&self, text: &'t str) -> Option<&'t str> {
        match &self.content {
            WrittenContent::Number => {
                let number = &text[self.span.clone()];
                let is_infinite = number.parse().is_ok_and(f64::is_infinite);
                is_infinite.then_some(number)
            }
            WrittenContent::Array(items) => items.iter().find_map(|item| item.out_of_range(text)),
            WrittenContent::Object(fields) => fields.iter().find_map(|(_, field)| field.out_of_range(text)),
            _ => None,
        }
    }

    /// Records the duplicate fields within this. `errors` has its path; the whole document has none.
    pub fn note_repeated(&self, is_whole: bool, errors: &mut StrictErrors) {
        let end = errors.path.end();
        match &self.content {
            WrittenContent::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    errors.path.push_index(index);
                    item.note_repeated(false, errors);
                    errors.path.truncate(end);
                }
            }
            WrittenContent::Object(fields) => {
                let mut names = HashSet::with_capacity(fields.len());
                for (name, field) in fields {
                    errors.path.push_str(if is_whole { "" } else { "." });
                    errors.path.push_str(name);
                    if !names.insert(name) {
                        errors.note("duplicate field");
                    }
                    field.note_repeated(false, errors);
                    errors.path.truncate(end);
                }
            }
            _ => {}
        }
    }
}

/// Strict errors, each once.
#[derive(Default)]
pub(super) struct StrictErrors {
    /// Where the reader is.
    pub path: PathText,
    pub texts: Vec<String>,
    bytes: usize,
    seen: HashSet<(&'static str, u128)>,
}

impl StrictErrors {
    /// Records an error at the current path.
    pub fn note(&mut self, what: &'static str) {
        let is_full = self.texts.len() >= STRICT_ERRORS_MAX || self.bytes > ERRORS_BYTES_MAX;
        if !is_full && self.seen.insert((what, self.path.hash())) {
            let error = format!("{what} {}", go_quote(self.path.as_str()));
            self.bytes += error.len();
            self.texts.push(error);
        }
    }
}

fn unquoted(quoted: &str) -> Option<String> {
    match json::decode(quoted.as_bytes()) {
        Ok(Value::String(text)) => Some(text),
        _ => None,
    }
}

struct JsonReader<'t> {
    text: &'t str,
    at: usize,
}

impl JsonReader<'_> {
    fn peek(&self) -> u8 {
        self.text.as_bytes().get(self.at).copied().unwrap_or_default()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), b' ' | b'\n' | b'\t' | b'\r') {
            self.at += 1;
        }
    }

    fn value(&mut self) -> WrittenNode {
        self.skip_space();
        work::step();
        let start = self.at;
        let content = match self.peek() {
            b'{' => self.object(),
            b'[' => self.array(),
            b'"' => {
                self.skip_string();
                WrittenContent::String
            }
            first => {
                while !matches!(self.peek(), b',' | b']' | b'}' | b' ' | b'\n' | b'\t' | b'\r' | 0) {
                    self.at += 1;
                }
                match first {
                    b'n' => WrittenContent::Null,
                    b't' | b'f' => WrittenContent::Bool,
                    _ => WrittenContent::Number,
                }
            }
        };
        WrittenNode { span: start..self.at, content }
    }

    fn skip_string(&mut self) {
        let start = self.at;
        self.at += 1;
        loop {
            match self.peek() {
                b'\\' => self.at += 2,
                b'"' | 0 => break,
                _ => self.at += 1,
            }
        }
        self.at = self.text.len().min(self.at + 1);
        work::bytes(self.at - start);
    }

    /// Whether another item follows; moves past the comma or the closing bracket, and initially past the opening one.
    fn goes_on(&mut self, is_first: bool, close: u8) -> bool {
        if is_first {
            self.at += 1;
        }
        self.skip_space();
        let closes = self.peek() == close || self.peek() == 0;
        if closes || !is_first {
            self.at = self.text.len().min(self.at + 1);
        }
        !closes
    }

    fn array(&mut self) -> WrittenContent {
        let mut items = Vec::new();
        while self.goes_on(items.is_empty(), b']') {
            items.push(self.value());
        }
        WrittenContent::Array(items)
    }

    fn object(&mut self) -> WrittenContent {
        let mut fields = Vec::new();
        while self.goes_on(fields.is_empty(), b'}') {
            self.skip_space();
            let start = self.at;
            self.skip_string();
            let name = unquoted(&self.text[start..self.at]).unwrap_or_default();
            self.skip_space();
            self.at += 1;
            fields.push((name, self.value()));
        }
        WrittenContent::Object(fields)
    }
}

/// A value that is being patched. Parts that are not opened stay as they are written.
#[derive(Clone)]
pub(super) enum WrittenValue<'p> {
    Null,
    /// A part of the patch with this text.
    Written(&'p str, &'p WrittenNode),
    /// A part of the object that is patched.
    Live(&'p Value, Layout),
    Array(ChunkedList<WrittenValue<'p>>),
    Object(BTreeMap<String, WrittenValue<'p>>),
}

impl<'p> WrittenValue<'p> {
    pub fn written(text: &'p str, written: &'p WrittenNode) -> Self {
        match written.content {
            WrittenContent::Null => WrittenValue::Null,
            _ => WrittenValue::Written(text, written),
        }
    }

    /// `layout` is used to write the parts of the object that are not opened.
    pub fn live(value: &'p Value, layout: Layout) -> Self {
        match value {
            Value::Null => WrittenValue::Null,
            _ => WrittenValue::Live(value, layout),
        }
    }

    pub fn is_null(&self) -> bool {
        matches!(self, WrittenValue::Null)
    }

    /// Opens its items or fields, if it has any.
    pub fn opened(self) -> Self {
        match self {
            WrittenValue::Written(text, WrittenNode { content: WrittenContent::Array(items), .. }) => {
                WrittenValue::Array(items.iter().map(|item| WrittenValue::written(text, item)).collect())
            }
            WrittenValue::Written(text, WrittenNode { content: WrittenContent::Object(fields), .. }) => {
                WrittenValue::Object(
                    fields.iter().map(|(name, field)| (name.clone(), WrittenValue::written(text, field))).collect(),
                )
            }
            WrittenValue::Live(Value::Array(items), layout) => {
                WrittenValue::Array(items.iter().map(|item| WrittenValue::live(item, layout)).collect())
            }
            WrittenValue::Live(Value::Object(fields), layout) => {
                let open =
                    |(name, field): (&str, &'p Value)| (name.to_owned(), WrittenValue::live(field, layout.field(name)));
                WrittenValue::Object(fields.iter().map(open).collect())
            }
            other => other,
        }
    }

    /// Opens it in place.
    pub fn open(&mut self) -> &mut Self {
        if self.is_closed() {
            *self = std::mem::replace(self, WrittenValue::Null).opened();
        }
        self
    }

    /// Whether it has items or fields that are not opened.
    fn is_closed(&self) -> bool {
        match self {
            WrittenValue::Written(_, written) => {
                matches!(written.content, WrittenContent::Array(_) | WrittenContent::Object(_))
            }
            WrittenValue::Live(value, _) => matches!(value, Value::Array(_) | Value::Object(_)),
            _ => false,
        }
    }

    /// Itself opened, but not the values within it.
    fn to_opened(&self) -> Cow<'_, WrittenValue<'p>> {
        if self.is_closed() { Cow::Owned(self.clone().opened()) } else { Cow::Borrowed(self) }
    }

    /// The maximum number of its items or fields.
    fn length_max(&self) -> usize {
        match self {
            WrittenValue::Written(_, WrittenNode { content: WrittenContent::Array(items), .. }) => items.len(),
            WrittenValue::Written(_, WrittenNode { content: WrittenContent::Object(fields), .. }) => fields.len(),
            WrittenValue::Live(Value::Array(items), _) => items.len(),
            WrittenValue::Live(Value::Object(fields), _) => fields.len(),
            WrittenValue::Array(items) => items.len(),
            WrittenValue::Object(fields) => fields.len(),
            _ => 0,
        }
    }

    /// Whether both have the same fields and items, and texts and numbers that are spelled alike.
    ///
    /// Takes time in proportion to `other`, a part of the patch: `self` may be much larger, and be compared often.
    pub fn equals(&self, other: &WrittenValue<'_>) -> bool {
        work::step();
        if self.length_max() > other.length_max() {
            return false;
        }
        match (self.to_opened().as_ref(), other.to_opened().as_ref()) {
            (WrittenValue::Null, WrittenValue::Null) => true,
            (WrittenValue::Array(left), WrittenValue::Array(right)) => {
                left.len() == right.len() && left.iter().zip(right.iter()).all(|(left, right)| left.equals(right))
            }
            (WrittenValue::Object(left), WrittenValue::Object(right)) => {
                left.len() == right.len()
                    && left.iter().all(|(name, left)| right.get(name).is_some_and(|right| left.equals(right)))
            }
            (
                left @ (WrittenValue::Written(..) | WrittenValue::Live(..)),
                right @ (WrittenValue::Written(..) | WrittenValue::Live(..)),
            ) => left.scalar_bytes_min() <= right.scalar_text().len() && left.scalar_text() == right.scalar_text(),
            _ => false,
        }
    }

    /// The minimum length of a scalar's text.
    fn scalar_bytes_min(&self) -> usize {
        match self {
            WrittenValue::Live(Value::String(text), _) => text.len(),
            _ => 0,
        }
    }

    fn scalar_text(&self) -> Cow<'p, str> {
        match self {
            WrittenValue::Written(text, written) => Cow::Borrowed(&text[written.span.clone()]),
            WrittenValue::Live(value, _) => Cow::Owned(json::encode_to_string(value)),
            _ => Cow::Borrowed(""),
        }
    }

    /// Its compact JSON text.
    pub fn to_text(&self) -> String {
        let mut out = Vec::with_capacity(1024);
        self.write(&mut out);
        String::from_utf8(out).expect("JSON texts are UTF-8")
    }

    fn write(&self, out: &mut Vec<u8>) {
        work::step();
        match self {
            WrittenValue::Null => out.extend_from_slice(b"null"),
            WrittenValue::Written(text, written) => write_compact(&text[written.span.clone()], out),
            WrittenValue::Live(value, layout) => json::encode_as_into(value, *layout, out),
            WrittenValue::Array(items) => {
                out.push(b'[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    item.write(out);
                }
                out.push(b']');
            }
            WrittenValue::Object(fields) => {
                out.push(b'{');
                for (index, (name, field)) in fields.iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    json::encode_string(name, out);
                    out.push(b':');
                    field.write(out);
                }
                out.push(b'}');
            }
        }
    }
}

/// Appends a JSON text without whitespace between its tokens, with Go's escapes.
fn write_compact(text: &str, out: &mut Vec<u8>) {
    work::bytes(text.len());
    let mut in_string = false;
    let mut is_escaped = false;
    let mut utf8 = [0; 4];
    for character in text.chars() {
        match character {
            ' ' | '\n' | '\t' | '\r' if !in_string => {}
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                out.extend_from_slice(format!("\\u{:04x}", u32::from(character)).as_bytes());
            }
            _ => out.extend_from_slice(character.encode_utf8(&mut utf8).as_bytes()),
        }
        in_string ^= character == '"' && !is_escaped;
        is_escaped = character == '\\' && !is_escaped;
    }
}
