//! JSON: bytes to [`Value`] and back, as Kubernetes' servers read and write it.
//!
//! Decoding never refuses a text for its UTF-8: what is not UTF-8, and a surrogate without its partner, becomes U+FFFD.
//! Of a repeated field the last value stays. Nesting is limited to [`DEPTH_MAX`] levels, without recursion.
//!
//! # Why not serde_json
//!
//! Error texts are Go's, to the byte and with its quirks, and clients see them; invalid UTF-8 and lone surrogates
//! become U+FFFD instead of errors; duplicates are told by path; 10,000 levels are read without recursion. A
//! `Visitor` over serde_json would have needed all of this around it. serde_json is left to the tests, as another
//! reader than ours.
//!
//! Source: `sigs.k8s.io/json` and Go's `encoding/json`; the errors are theirs, byte for byte.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use super::path_text::{self, PathText};
use super::{Key, Map, Value, go_quote, go_quote_byte, number};
use crate::meta::field::ERRORS_BYTES_MAX;
use crate::work;

/// Levels of arrays and objects within each other.
pub const DEPTH_MAX: usize = 10_000;

/// Strict errors are counted up to here, or to the length of an answer's errors, and no further.
const STRICT_ERRORS_MAX: usize = 100;

/// Why bytes are not JSON, in Go's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// The bytes are not JSON: `invalid character 'x' looking for beginning of value`.
    #[error("{message}")]
    Syntax {
        /// What is wrong, in Go's words.
        message: String,
        /// Where the reader stopped, in bytes.
        offset: usize,
    },
    /// A number that no double can hold, as it was written.
    #[error("json: cannot unmarshal number {0} into Go value of type float64")]
    Range(String),
}

/// Counts the texts that were read on this thread, for tests that hold the budgets.
#[doc(hidden)]
pub mod tally {
    use std::cell::Cell;

    thread_local! {
        static DECODED: Cell<usize> = const { Cell::new(0) };
    }

    pub(super) fn count() {
        DECODED.set(DECODED.get() + 1);
    }

    pub fn decoded() -> usize {
        DECODED.get()
    }
}

/// Reads one JSON value. Integers that fit `i64` and have neither point nor exponent are integers, other numbers doubles.
///
/// # Errors
///
/// It is not JSON, too deep, or has a number that no double can hold.
pub fn decode(bytes: &[u8]) -> Result<Value, JsonError> {
    Decoder::new(bytes).decode()?.within_range().map(|decoded| decoded.value)
}

/// A field that stands twice in its object; shown as `duplicate field "spec.a[0].b"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepeatedField {
    /// `spec.a[0].b`.
    pub path: String,
}

impl fmt::Display for RepeatedField {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "duplicate field {}", go_quote(&self.path))
    }
}

/// Reads one JSON value and lists what strict clients want refused: fields that stand twice, each once, in the order they
/// stand, up to 100.
///
/// # Errors
///
/// It is not JSON, too deep, or has a number that no double can hold.
pub fn decode_strict(bytes: &[u8]) -> Result<(Value, Vec<RepeatedField>), JsonError> {
    let decoded = Decoder::new(bytes).decode()?.within_range()?;
    let repeated = if decoded.has_repeated_fields { repeated_fields(bytes)? } else { Vec::new() };
    Ok((decoded.value, repeated))
}

/// As [`decode`], with null for every number that no double can hold.
///
/// # Errors
///
/// It is not JSON, or too deep.
pub fn decode_within_range(bytes: &[u8]) -> Result<Value, JsonError> {
    Decoder::new(bytes).decode().map(|decoded| decoded.value)
}

struct Decoded {
    value: Value,
    has_repeated_fields: bool,
    /// The first number that no double can hold.
    out_of_range: Option<String>,
}

impl Decoded {
    fn within_range(self) -> Result<Self, JsonError> {
        match self.out_of_range {
            Some(number) => Err(JsonError::Range(number)),
            None => Ok(self),
        }
    }
}

/// An array or object that is being read: where its part of the values begins that wait for their container.
#[derive(Clone, Copy)]
enum OpenContainer {
    Array(usize),
    Object(usize),
}

/// Items and fields of all that is open, the innermost last. So each array and each object is made once, in its size.
#[derive(Default)]
struct OpenValues {
    items: Vec<Value>,
    fields: Vec<(Key, Value)>,
    /// Whether an object that was closed had a name twice.
    has_repeated_fields: bool,
}

impl OpenValues {
    fn array(&mut self, start: usize) -> Value {
        Value::Array(last(&mut self.items, start))
    }

    fn object(&mut self, start: usize) -> Value {
        let fields = last(&mut self.fields, start);
        let count = fields.len();
        let fields = Map::from_fields(fields);
        self.has_repeated_fields |= fields.len() < count;
        Value::Object(fields)
    }
}

/// Takes what stands from `start` on. All of it is not copied, if it is long.
fn last<T>(waiting: &mut Vec<T>, start: usize) -> Vec<T> {
    const LONG: usize = 64;
    if start == 0 && waiting.len() > LONG { std::mem::take(waiting) } else { waiting.split_off(start) }
}

/// What the next token may be.
#[derive(Clone, Copy)]
enum Next {
    /// After `[`: a value or the end of the array.
    ItemOrEnd,
    /// After `{`: a field or the end of the object.
    FieldOrEnd,
    /// After `,` in an object.
    Field,
    Value,
}

/// What is begun and not yet complete.
struct OpenDocument {
    open: Vec<OpenContainer>,
    waiting: OpenValues,
    next: Next,
}

struct Decoder<'a> {
    bytes: &'a [u8],
    at: usize,
    out_of_range: Option<String>,
}

impl<'a> Decoder<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Decoder { bytes, at: 0, out_of_range: None }
    }

    fn decode(mut self) -> Result<Decoded, JsonError> {
        tally::count();
        let mut document = OpenDocument { open: Vec::new(), waiting: OpenValues::default(), next: Next::Value };
        let value = loop {
            self.skip_space();
            work::step();
            // One step reads a whole value, or opens or closes one.
            let Some(value) = self.step(&mut document)? else { continue };
            if let Some(value) = self.place(value, &mut document)? {
                break value;
            }
        };
        self.skip_space();
        if self.at < self.bytes.len() {
            return Err(self.unexpected("after top-level value"));
        }
        let has_repeated_fields = document.waiting.has_repeated_fields;
        Ok(Decoded { value, has_repeated_fields, out_of_range: self.out_of_range })
    }

    /// Reads what comes next; gives the value that it is, unless it only begins one.
    fn step(&mut self, document: &mut OpenDocument) -> Result<Option<Value>, JsonError> {
        let OpenDocument { open, waiting, next } = document;
        let value = match (*next, self.peek()) {
            (Next::ItemOrEnd, Some(b']')) | (Next::FieldOrEnd, Some(b'}')) => {
                self.at += 1;
                match open.pop() {
                    Some(OpenContainer::Array(_)) => Value::Array(Vec::new()),
                    _ => Value::Object(Map::new()),
                }
            }
            (Next::FieldOrEnd | Next::Field, _) => {
                // The value takes its place when it is read.
                waiting.fields.push((self.field_name()?, Value::Null));
                *next = Next::Value;
                return Ok(None);
            }
            (_, Some(b'{')) => {
                open.push(OpenContainer::Object(waiting.fields.len()));
                self.check_depth(open.len())?;
                self.at += 1;
                *next = Next::FieldOrEnd;
                return Ok(None);
            }
            (_, Some(b'[')) => {
                open.push(OpenContainer::Array(waiting.items.len()));
                self.check_depth(open.len())?;
                self.at += 1;
                *next = Next::ItemOrEnd;
                return Ok(None);
            }
            (_, Some(b'"')) => Value::String(self.string()?.into_owned()),
            (_, Some(b'-' | b'0'..=b'9')) => self.number()?,
            (_, Some(b't')) => self.literal("true", Value::Bool(true))?,
            (_, Some(b'f')) => self.literal("false", Value::Bool(false))?,
            (_, Some(b'n')) => self.literal("null", Value::Null)?,
            _ => return Err(self.unexpected("looking for beginning of value")),
        };
        Ok(Some(value))
    }

    /// Puts a value into what is open; that may be complete now, and be a value in turn. Gives the one that is in nothing else.
    fn place(&mut self, mut value: Value, document: &mut OpenDocument) -> Result<Option<Value>, JsonError> {
        let OpenDocument { open, waiting, next } = document;
        loop {
            let Some(container) = open.last() else { return Ok(Some(value)) };
            let context = match container {
                OpenContainer::Array(_) => {
                    waiting.items.push(value);
                    "after array element"
                }
                OpenContainer::Object(_) => {
                    if let Some((_, field)) = waiting.fields.last_mut() {
                        *field = value;
                    }
                    "after object key:value pair"
                }
            };
            self.skip_space();
            value = match (container, self.peek()) {
                (OpenContainer::Array(_), Some(b',')) => {
                    self.at += 1;
                    *next = Next::Value;
                    return Ok(None);
                }
                (OpenContainer::Object(_), Some(b',')) => {
                    self.at += 1;
                    *next = Next::Field;
                    return Ok(None);
                }
                (OpenContainer::Array(start), Some(b']')) => waiting.array(*start),
                (OpenContainer::Object(start), Some(b'}')) => waiting.object(*start),
                _ => return Err(self.unexpected(context)),
            };
            self.at += 1;
            open.pop();
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\t' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    /// The byte here does not belong between tokens, or the text ends.
    fn unexpected(&self, context: &str) -> JsonError {
        match self.peek() {
            Some(byte) => self.invalid(byte, context),
            None => JsonError::Syntax { message: "unexpected end of JSON input".to_owned(), offset: self.bytes.len() },
        }
    }

    /// The byte here does not belong in a token. Go reads the end as a space.
    fn unexpected_within(&self, context: &str) -> JsonError {
        self.invalid(self.peek().unwrap_or(b' '), context)
    }

    fn invalid(&self, byte: u8, context: &str) -> JsonError {
        let message = format!("invalid character {} {context}", go_quote_byte(byte));
        JsonError::Syntax { message, offset: self.at + 1 }
    }

    fn check_depth(&self, depth: usize) -> Result<(), JsonError> {
        if depth > DEPTH_MAX { Err(self.unexpected("exceeded max depth")) } else { Ok(()) }
    }

    fn literal(&mut self, text: &str, value: Value) -> Result<Value, JsonError> {
        for expected in text.bytes() {
            if self.peek() != Some(expected) {
                return Err(
                    self.unexpected_within(&format!("in literal {text} (expecting '{}')", char::from(expected)))
                );
            }
            self.at += 1;
        }
        Ok(value)
    }

    /// A field's name and the colon behind it.
    fn field_name(&mut self) -> Result<Key, JsonError> {
        if self.peek() != Some(b'"') {
            return Err(self.unexpected("looking for beginning of object key string"));
        }
        let name = Key::from(self.string()?);
        self.skip_space();
        if self.peek() != Some(b':') {
            return Err(self.unexpected("after object key"));
        }
        self.at += 1;
        Ok(name)
    }

    fn string(&mut self) -> Result<Cow<'a, str>, JsonError> {
        self.at += 1;
        let start = self.at;
        self.skip_plain();
        work::bytes(self.at - start);
        if self.peek() == Some(b'"') {
            let plain = &self.bytes[start..self.at];
            self.at += 1;
            return Ok(text_of(plain));
        }
        let mut text = String::new();
        push_utf8(&mut text, &self.bytes[start..self.at]);
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(Cow::Owned(text));
                }
                Some(b'\\') => {
                    self.at += 1;
                    text.push(self.escaped()?);
                }
                _ => return Err(self.unexpected("in string literal")),
            }
            let start = self.at;
            self.skip_plain();
            work::bytes(self.at - start);
            push_utf8(&mut text, &self.bytes[start..self.at]);
        }
    }

    /// Goes to the next quote, backslash or control character.
    fn skip_plain(&mut self) {
        const ONES: u64 = u64::from_ne_bytes([0x01; 8]);
        const HIGHS: u64 = u64::from_ne_bytes([0x80; 8]);
        /// The high bit is set in each byte that is zero, and perhaps in bytes behind one.
        const fn zeros(word: u64) -> u64 {
            word.wrapping_sub(ONES) & !word & HIGHS
        }
        while let Some((chunk, _)) = self.bytes[self.at..].split_first_chunk::<8>() {
            let word = u64::from_le_bytes(*chunk);
            let controls = word.wrapping_sub(ONES * 0x20) & !word & HIGHS;
            let stops = controls | zeros(word ^ (ONES * b'"' as u64)) | zeros(word ^ (ONES * b'\\' as u64));
            if stops != 0 {
                self.at += (stops.trailing_zeros() / 8) as usize;
                return;
            }
            self.at += 8;
        }
        while self.peek().is_some_and(|byte| byte >= b' ' && byte != b'"' && byte != b'\\') {
            self.at += 1;
        }
    }

    /// The character of an escape, behind its backslash.
    fn escaped(&mut self) -> Result<char, JsonError> {
        let char = match self.peek() {
            Some(b'b') => '\x08',
            Some(b'f') => '\x0c',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
            Some(b'u') => {
                self.at += 1;
                let unit = self.hexadecimal()?;
                return Ok(match unit {
                    0xd800..=0xdbff => self.low_surrogate(unit).unwrap_or(char::REPLACEMENT_CHARACTER),
                    _ => char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER),
                });
            }
            _ => return Err(self.unexpected_within("in string escape code")),
        };
        self.at += 1;
        Ok(char)
    }

    fn hexadecimal(&mut self) -> Result<u32, JsonError> {
        let mut unit = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            unit = unit * 16 + digit.ok_or_else(|| self.unexpected_within("in \\u hexadecimal character escape"))?;
            self.at += 1;
        }
        Ok(unit)
    }

    /// The character of a pair, if an escaped low surrogate follows `high`; else nothing is read.
    fn low_surrogate(&mut self, high: u32) -> Option<char> {
        let escape = self.bytes.get(self.at..self.at + 6)?.strip_prefix(b"\\u")?;
        let low = escape.iter().try_fold(0, |unit, byte| Some(unit * 16 + char::from(*byte).to_digit(16)?))?;
        if !(0xdc00..0xe000).contains(&low) {
            return None;
        }
        self.at += 6;
        char::from_u32(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00))
    }

    fn number(&mut self) -> Result<Value, JsonError> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.skip_digits(),
            _ => return Err(self.unexpected_within("in numeric literal")),
        }
        let mut is_integer = true;
        if self.peek() == Some(b'.') {
            is_integer = false;
            self.at += 1;
            self.digits("after decimal point in numeric literal")?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            is_integer = false;
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits("in exponent of numeric literal")?;
        }
        let text = str::from_utf8(&self.bytes[start..self.at]).expect("a number's bytes are ASCII");
        if is_integer && let Ok(integer) = text.parse() {
            return Ok(Value::Int(integer));
        }
        let number: f64 = text.parse().expect("a JSON number is a decimal number");
        // A number out of range is an error only where the rest is well-formed; the first such one is named.
        if number.is_infinite() {
            self.out_of_range.get_or_insert_with(|| text.to_owned());
            return Ok(Value::Null);
        }
        Ok(Value::Float(number))
    }

    fn digits(&mut self, context: &str) -> Result<(), JsonError> {
        if !self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            return Err(self.unexpected_within(context));
        }
        self.skip_digits();
        Ok(())
    }

    fn skip_digits(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
    }
}

/// `bytes` as text; each byte that is not part of a UTF-8 sequence becomes U+FFFD.
pub fn text_of(bytes: &[u8]) -> Cow<'_, str> {
    match str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => {
            let mut text = String::with_capacity(bytes.len() + 8);
            push_utf8(&mut text, bytes);
            Cow::Owned(text)
        }
    }
}

/// Appends `bytes`; each byte that is not part of a UTF-8 sequence becomes U+FFFD.
fn push_utf8(text: &mut String, mut bytes: &[u8]) {
    loop {
        match str::from_utf8(bytes) {
            Ok(valid) => return text.push_str(valid),
            Err(error) => {
                let (valid, rest) = bytes.split_at(error.valid_up_to());
                text.push_str(str::from_utf8(valid).expect("valid up to here"));
                text.push(char::REPLACEMENT_CHARACTER);
                bytes = &rest[1..];
            }
        }
    }
}

/// An array with the index of its current item, or an object with the names seen in it.
enum LevelKind {
    Array(usize),
    Object(HashSet<Key>),
}

/// An array or an object that is open.
struct Level {
    kind: LevelKind,
    /// Where the path of this ends.
    end: path_text::PathEnd,
}

/// The duplicate fields of a well-formed text, in the order they stand.
fn repeated_fields(bytes: &[u8]) -> Result<Vec<RepeatedField>, JsonError> {
    let mut repeated = RepeatedFields::default();
    let mut levels: Vec<Level> = Vec::new();
    // The path of the value that comes next.
    let mut path = PathText::default();
    let mut decoder = Decoder::new(bytes);
    let mut expects_name = false;
    loop {
        decoder.skip_space();
        work::step();
        match decoder.peek() {
            None => return Ok(repeated.found),
            Some(b'{') => {
                decoder.at += 1;
                levels.push(Level { kind: LevelKind::Object(HashSet::new()), end: path.end() });
                expects_name = true;
            }
            Some(b'[') => {
                decoder.at += 1;
                levels.push(Level { kind: LevelKind::Array(0), end: path.end() });
                path.push_index(0);
                expects_name = false;
            }
            Some(b'}' | b']') => {
                decoder.at += 1;
                levels.pop();
                expects_name = false;
            }
            Some(b',') => {
                decoder.at += 1;
                if let Some(Level { kind: LevelKind::Array(index), end }) = levels.last_mut() {
                    *index += 1;
                    path.truncate(*end);
                    path.push_index(*index);
                } else {
                    expects_name = true;
                }
            }
            Some(b'"') if expects_name => {
                expects_name = false;
                let name = decoder.field_name()?;
                repeated.note_name(&mut levels, &mut path, name);
            }
            Some(b'"') => drop(decoder.string()?),
            Some(_) => decoder.at += 1,
        }
    }
}

/// Fields that stand twice, each once.
#[derive(Default)]
struct RepeatedFields {
    found: Vec<RepeatedField>,
    bytes: usize,
    seen: HashSet<u128>,
}

impl RepeatedFields {
    /// Takes in a name of the innermost object; `path` becomes that of its value.
    fn note_name(&mut self, levels: &mut [Level], path: &mut PathText, name: Key) {
        let is_nested = levels.len() > 1;
        let Some(Level { kind: LevelKind::Object(seen), end }) = levels.last_mut() else { return };
        path.truncate(*end);
        path.push_str(if is_nested { "." } else { "" });
        path.push_str(&name);
        if !seen.insert(name) {
            self.add(path);
        }
    }

    fn add(&mut self, path: &PathText) {
        let is_full = self.found.len() >= STRICT_ERRORS_MAX || self.bytes > ERRORS_BYTES_MAX;
        if !is_full && self.seen.insert(path.hash()) {
            self.bytes += path.as_str().len();
            self.found.push(RepeatedField { path: path.as_str().to_owned() });
        }
    }
}

/// Compact JSON with sorted fields and without a newline at the end. `<`, `>`, `&`, U+2028 and U+2029 are escaped.
pub fn encode(value: &Value) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    encode_into(value, &mut out);
    out
}

/// As [`encode`], for a text that is expected to be so long.
pub fn encode_with_capacity(value: &Value, bytes: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes);
    encode_into(value, &mut out);
    out
}

/// As [`encode`], as text.
pub fn encode_to_string(value: &Value) -> String {
    String::from_utf8(encode(value)).expect("strings and their escapes are UTF-8")
}

/// As [`encode`], behind what `out` holds.
pub fn encode_into(value: &Value, out: &mut Vec<u8>) {
    work::step();
    match value {
        Value::Array(items) => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                encode_into(item, out);
            }
            out.push(b']');
        }
        Value::Object(fields) => {
            out.push(b'{');
            for (index, (name, field)) in fields.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                encode_string(name, out);
                out.push(b':');
                encode_into(field, out);
            }
            out.push(b'}');
        }
        _ => encode_scalar(value, out),
    }
}

/// In which order the fields of objects are written.
#[derive(Clone, Copy)]
pub enum Layout {
    /// Sorted, here and below: as Go prints maps.
    Sorted,
    /// In the order of a Go struct, each with its own layout; fields that are not named follow, sorted. For an array, each
    /// item has it.
    Struct(&'static [(&'static str, &'static Layout)]),
    /// As [`Layout::Struct`], for a type that knows its fields.
    Declared(&'static dyn FieldOrder),
    /// Sorted, and every field's value has this layout.
    Map(&'static Layout),
    /// Sorted, and every field's value is of a type that knows its fields.
    DeclaredMap(&'static dyn FieldOrder),
    /// The object's own content tells.
    Choose(fn(&Value) -> Layout),
}

/// A type that knows the order of its fields.
pub trait FieldOrder: Sync {
    /// Shows the name and the layout of each field, in the order of the type.
    fn each(&self, show: &mut dyn FnMut(&'static str, Layout));

    /// The layout of a field; `None` if the type has no such field.
    fn layout_of(&self, name: &str) -> Option<Layout>;
}

impl Layout {
    /// The layout of a field of an object, or of an item's in an array of objects.
    pub fn field(self, name: &str) -> Layout {
        match self {
            Layout::Sorted | Layout::Choose(_) => Layout::Sorted,
            Layout::Struct(order) => order.layout_of(name).unwrap_or(Layout::Sorted),
            Layout::Declared(declared) => declared.layout_of(name).unwrap_or(Layout::Sorted),
            Layout::Map(layout) => *layout,
            Layout::DeclaredMap(declared) => Layout::Declared(declared),
        }
    }
}

impl FieldOrder for &'static [(&'static str, &'static Layout)] {
    fn each(&self, show: &mut dyn FnMut(&'static str, Layout)) {
        self.iter().for_each(|(name, layout)| show(name, **layout));
    }

    fn layout_of(&self, name: &str) -> Option<Layout> {
        self.iter().find(|(known, _)| *known == name).map(|(_, layout)| **layout)
    }
}

/// As [`encode`], with fields in the order of `layout`.
pub fn encode_as(value: &Value, layout: Layout) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    encode_as_into(value, layout, &mut out);
    out
}

pub(crate) fn encode_as_into(value: &Value, layout: Layout, out: &mut Vec<u8>) {
    match (value, layout) {
        (Value::Object(_) | Value::Array(_), Layout::Choose(choose)) => encode_as_into(value, choose(value), out),
        (Value::Array(items), Layout::Struct(_) | Layout::Declared(_)) => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                encode_as_into(item, layout, out);
            }
            out.push(b']');
        }
        (Value::Object(fields), Layout::Struct(order)) => {
            encode_declared(fields, &order, out);
        }
        (Value::Object(fields), Layout::Declared(declared)) => {
            encode_declared(fields, declared, out);
        }
        (Value::Object(fields), Layout::Map(layout)) => {
            encode_fields_as(fields.iter().map(|(name, field)| (name, field, *layout)), out);
        }
        (Value::Object(fields), Layout::DeclaredMap(declared)) => {
            encode_fields_as(fields.iter().map(|(name, field)| (name, field, Layout::Declared(declared))), out);
        }
        _ => encode_into(value, out),
    }
}

/// Fields in the order that is declared, then those that are not, sorted.
fn encode_declared(fields: &Map, declared: &dyn FieldOrder, out: &mut Vec<u8>) {
    let mut ordered = Vec::with_capacity(fields.len());
    declared.each(&mut |name, layout| ordered.extend(fields.get(name).map(|field| (name, field, layout))));
    if ordered.len() == fields.len() {
        return encode_fields_as(ordered.into_iter(), out);
    }
    let others = fields.iter().filter(|(name, _)| declared.layout_of(name).is_none());
    let others = others.map(|(name, field)| (name, field, Layout::Sorted));
    encode_fields_as(ordered.into_iter().chain(others), out);
}

fn encode_fields_as<'v>(fields: impl Iterator<Item = (&'v str, &'v Value, Layout)>, out: &mut Vec<u8>) {
    out.push(b'{');
    for (index, (name, field, layout)) in fields.enumerate() {
        work::step();
        if index > 0 {
            out.push(b',');
        }
        encode_string(name, out);
        out.push(b':');
        encode_as_into(field, layout, out);
    }
    out.push(b'}');
}

/// Compact JSON with two spaces of indentation per level, as Go's `MarshalIndent`; no newline at the end.
pub fn indent(compact: &[u8]) -> Vec<u8> {
    indent_within(compact, usize::MAX).unwrap_or_default()
}

/// [`indent`], if that gives `bytes_max` bytes at most. What stands deep has long lines.
pub fn indent_within(compact: &[u8], bytes_max: usize) -> Option<Vec<u8>> {
    work::bytes(compact.len());
    let mut out = Vec::with_capacity(2 * compact.len());
    let mut depth = 0;
    let mut in_string = false;
    let mut bytes = compact.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        out.push(byte);
        match byte {
            b'\\' if in_string => out.extend(bytes.next()),
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'{' | b'[' => match bytes.next_if(|next| matches!(next, b'}' | b']')) {
                // Empty ones stay on their line.
                Some(end) => out.push(end),
                None => {
                    depth += 1;
                    new_line(depth, &mut out);
                }
            },
            b',' => new_line(depth, &mut out),
            b':' => out.push(b' '),
            _ => {}
        }
        if !in_string && bytes.peek().is_some_and(|next| matches!(next, b'}' | b']')) {
            depth = depth.saturating_sub(1);
            new_line(depth, &mut out);
        }
        if out.len() > bytes_max {
            return None;
        }
    }
    Some(out)
}

fn new_line(depth: usize, out: &mut Vec<u8>) {
    work::bytes(2 * depth);
    out.push(b'\n');
    out.resize(out.len() + 2 * depth, b' ');
}

fn encode_scalar(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Int(number) => encode_integer(*number, out),
        Value::Float(number) => out.extend_from_slice(number::format_float(*number).as_bytes()),
        Value::String(text) => encode_string(text, out),
        Value::Null | Value::Array(_) | Value::Object(_) => out.extend_from_slice(b"null"),
    }
}

fn encode_integer(number: i64, out: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut rest = number.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if number < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&digits[at..]);
}

/// The bytes that may not stand in a JSON string as they are; U+2028 and U+2029 begin with 0xe2.
const ESCAPED: [bool; 256] = {
    let mut escaped = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        escaped[byte] = true;
        byte += 1;
    }
    escaped[b'"' as usize] = true;
    escaped[b'\\' as usize] = true;
    escaped[b'<' as usize] = true;
    escaped[b'>' as usize] = true;
    escaped[b'&' as usize] = true;
    escaped[0xe2] = true;
    escaped
};

/// A JSON string with its quotes.
pub fn encode_string(text: &str, out: &mut Vec<u8>) {
    work::bytes(text.len());
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut start = 0;
    let mut at = 0;
    while at < bytes.len() {
        if !ESCAPED[usize::from(bytes[at])] {
            at += 1;
            continue;
        }
        let escape: &[u8] = match bytes[at] {
            b'"' => b"\\\"",
            b'\\' => b"\\\\",
            b'\n' => b"\\n",
            b'\r' => b"\\r",
            b'\t' => b"\\t",
            0x08 => b"\\b",
            0x0c => b"\\f",
            0xe2 => match bytes.get(at + 1..at + 3) {
                Some([0x80, 0xa8]) => b"\\u2028",
                Some([0x80, 0xa9]) => b"\\u2029",
                _ => {
                    at += 3;
                    continue;
                }
            },
            byte => {
                const DIGITS: &[u8; 16] = b"0123456789abcdef";
                &[b'\\', b'u', b'0', b'0', DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]
            }
        };
        out.extend_from_slice(&bytes[start..at]);
        out.extend_from_slice(escape);
        at += if bytes[at] == 0xe2 { 3 } else { 1 };
        start = at;
    }
    out.extend_from_slice(&bytes[start..]);
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::with_a_deep_stack;

    #[track_caller]
    fn check(text: &str, canonical: &str) {
        assert_eq!(encode_to_string(&decode(text.as_bytes()).unwrap()), canonical);
    }

    #[track_caller]
    fn check_error(bytes: &[u8], message: &str) {
        assert_eq!(decode(bytes).unwrap_err().to_string(), message);
    }

    #[test]
    fn fields_are_sorted_and_the_last_of_a_repeated_one_stays() {
        check(r#" {"b" : [ 1 , {} , [] ] , "a":true,"c":null, "a" : "x" } "#, r#"{"a":"x","b":[1,{},[]],"c":null}"#);
    }

    #[test]
    fn integers_and_doubles_stay_apart() {
        for (text, value) in [
            ("1", Value::Int(1)),
            ("-0", Value::Int(0)),
            ("1.0", Value::Float(1.0)),
            ("1e3", Value::Float(1000.0)),
            ("-9223372036854775808", Value::Int(i64::MIN)),
            ("9223372036854775808", Value::Float(9223372036854775808.0)),
        ] {
            assert_eq!(decode(text.as_bytes()), Ok(value));
        }
        check("[1.0,1e3,12345678901234567890,0.1]", "[1,1000,12345678901234567000,0.1]");
    }

    #[test]
    fn syntax_errors_are_those_of_go() {
        for (text, message) in [
            ("", "unexpected end of JSON input"),
            ("  ", "unexpected end of JSON input"),
            ("{", "unexpected end of JSON input"),
            ("[1", "unexpected end of JSON input"),
            ("\"a", "unexpected end of JSON input"),
            ("-", "invalid character ' ' in numeric literal"),
            ("tru", "invalid character ' ' in literal true (expecting 'e')"),
            ("\"\\u00", "invalid character ' ' in \\u hexadecimal character escape"),
            ("x", "invalid character 'x' looking for beginning of value"),
            ("[,", "invalid character ',' looking for beginning of value"),
            ("[1,]", "invalid character ']' looking for beginning of value"),
            ("{1", "invalid character '1' looking for beginning of object key string"),
            ("{\"a\":1,}", "invalid character '}' looking for beginning of object key string"),
            ("{\"a\" 1}", "invalid character '1' after object key"),
            ("{\"a\":1 \"b\"", "invalid character '\"' after object key:value pair"),
            ("[1 2]", "invalid character '2' after array element"),
            ("01", "invalid character '1' after top-level value"),
            ("{} x", "invalid character 'x' after top-level value"),
            ("-x", "invalid character 'x' in numeric literal"),
            ("1.x", "invalid character 'x' after decimal point in numeric literal"),
            ("1ex", "invalid character 'x' in exponent of numeric literal"),
            ("trux", "invalid character 'x' in literal true (expecting 'e')"),
            ("\"\n\"", "invalid character '\\n' in string literal"),
            ("\"\\x\"", "invalid character 'x' in string escape code"),
            ("\"\\u12x4\"", "invalid character 'x' in \\u hexadecimal character escape"),
            ("1e400", "json: cannot unmarshal number 1e400 into Go value of type float64"),
            ("[1e400", "unexpected end of JSON input"),
        ] {
            check_error(text.as_bytes(), message);
        }
        check_error(b"\xff", "invalid character '\u{ff}' looking for beginning of value");
    }

    #[test]
    fn bad_utf8_and_lone_surrogates_become_replacement_characters() {
        for (bytes, text) in [
            (&b"\"\xe2\x82A\""[..], "\u{fffd}\u{fffd}A"),
            (b"\"\xff\\n\xff\"", "\u{fffd}\n\u{fffd}"),
            (br#""\ud83d\ude00""#, "😀"),
            (br#""\ud83d""#, "\u{fffd}"),
            (br#""\ud83d\u0041""#, "\u{fffd}A"),
            (br#""\ude00\ud83d""#, "\u{fffd}\u{fffd}"),
            (br#""\u00e9\/\"""#, "é/\""),
        ] {
            assert_eq!(decode(bytes), Ok(Value::from(text)));
        }
    }

    #[test]
    fn nesting_ends_at_the_limit() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        with_a_deep_stack(move || {
            check(&nested(DEPTH_MAX), &nested(DEPTH_MAX));
            check_error(nested(DEPTH_MAX + 1).as_bytes(), "invalid character '[' exceeded max depth");
        });
    }

    #[test]
    fn strict_decoding_lists_duplicate_fields_once_each() {
        let text =
            r#"{"a":1,"b":{"c":[{"d":1,"d":2,"d":3}],"":{"x":1,"x":2}},"a":{"y":1,"y":2},"b":{},"":{"k":1,"k":1}}"#;
        let (value, repeated) = decode_strict(text.as_bytes()).unwrap();
        assert_eq!(encode_to_string(&value), r#"{"":{"k":1},"a":{"y":2},"b":{}}"#);
        assert_eq!(
            repeated.iter().map(|field| field.path.as_str()).collect::<Vec<_>>(),
            ["b.c[0].d", "b..x", "a", "a.y", "b", ".k"]
        );
    }

    #[test]
    fn a_text_behind_an_empty_object_is_no_field() {
        let (_, repeated) = decode_strict(br#"[{},"a",{"b":1,"b":2}]"#).unwrap();
        assert_eq!(repeated.iter().map(ToString::to_string).collect::<Vec<_>>(), [r#"duplicate field "[2].b""#]);
    }

    #[test]
    fn encoding_escapes_as_go_does() {
        let text = "<&>\u{2028}\u{2029}\u{202a}\u{7f}\x08\x0c\x01\"\\é";
        let escaped = "\"\\u003c\\u0026\\u003e\\u2028\\u2029\u{202a}\u{7f}\\b\\f\\u0001\\\"\\\\é\"";
        assert_eq!(encode_to_string(&Value::from(text)), escaped);
        check("-9223372036854775808", "-9223372036854775808");
    }

    #[track_caller]
    fn check_growth(pass: impl Fn(usize)) {
        let steps = |count| work::counted(|| pass(count)).1;
        let (few, many) = (steps(1000), steps(10_000));
        assert!(many < 13 * few, "{few} steps, then {many}");
    }

    #[test]
    fn ten_times_the_text_takes_ten_times_the_steps() {
        let item = r#"{"b":[1,true,null,-1.5e3,"x\ny"],"a":{}},"#;
        let array = |item: &str, count: usize| format!("[{}0]", item.repeat(count));
        check_growth(|count| drop(decode_strict(array(item, count).as_bytes())));
        check_growth(|count| drop(decode_strict(array(r#""\u0001\ud800""#, count).as_bytes())));
        check_growth(|count| {
            let fields: String = (0..count).map(|at| format!(r#""f{}":1,"#, at * 7 % count)).collect();
            drop(decode(format!("{{{fields}\"a\":1}}").as_bytes()));
        });
        check_growth(|count| {
            let text = decode(array(item, count).as_bytes()).map(|value| encode(&value)).unwrap();
            assert!(indent(&text).len() < 20 * text.len());
        });
    }

    #[test]
    fn repeated_fields_behind_a_long_path_are_not_compared_with_it() {
        let text = |count: usize| format!(r#"{{"{}":{{{}"a":1}}}}"#, "k".repeat(10 * count), r#""a":1,"#.repeat(count));
        assert_eq!(decode_strict(text(1000).as_bytes()).map(|(_, errors)| errors.len()), Ok(1));
        check_growth(|count| drop(decode_strict(text(count).as_bytes())));
        let fields: String = (0..100).map(|at| format!(r#""{at}":1,"{at}":2,"#)).collect();
        let (_, errors) =
            decode_strict(format!(r#"{{"{}":{{{fields}"a":1}}}}"#, "k".repeat(1 << 18)).as_bytes()).unwrap();
        assert_eq!(errors.len(), 4);
    }

    #[test]
    fn deep_values_are_indented_up_to_a_length() {
        let deep = format!("{}{}1{}", "[".repeat(1000), "1,".repeat(1000), "]".repeat(1000));
        assert_eq!(indent_within(deep.as_bytes(), 1 << 20), None);
        assert_eq!(indent_within(deep.as_bytes(), 8 << 20), Some(indent(deep.as_bytes())));
    }

    #[test]
    fn pretty_output_indents_by_two_spaces() {
        let value = decode(br#"{"a":[1,{"b":{}}],"c":[],"d":"\"[{,:"}"#).unwrap();
        let pretty =
            "{\n  \"a\": [\n    1,\n    {\n      \"b\": {}\n    }\n  ],\n  \"c\": [],\n  \"d\": \"\\\"[{,:\"\n}";
        assert_eq!(String::from_utf8(indent(&encode(&value))).unwrap(), pretty);
    }
}
