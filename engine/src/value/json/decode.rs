//! JSON to values.

use std::borrow::Cow;

use super::word;
use crate::value::{Key, Map, Value, go_quote_byte};
use crate::work;

/// The maximum depth of nested arrays and objects.
pub const DEPTH_MAX: usize = 10_000;

/// Why bytes are not JSON, in Go's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// The bytes are not JSON: `invalid character 'x' looking for beginning of value`.
    #[error("{message}")]
    Syntax {
        /// The error, in Go's words.
        message: String,
        /// The offset at which the reader stopped, in bytes.
        offset: usize,
    },
    /// A number beyond the range of doubles, as it was written.
    #[error("json: cannot unmarshal number {0} into Go value of type float64")]
    Range(String),
}

/// Counts the texts read on this thread, for tests of budgets.
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

/// Reads one JSON value. Numbers that fit `i64` and have neither a point nor an exponent are integers, others doubles.
///
/// # Errors
///
/// It is not JSON, too deeply nested, or has a number beyond the range of doubles.
pub fn decode(bytes: &[u8]) -> Result<Value, JsonError> {
    Decoder::new(bytes).decode()?.within_range().map(|decoded| decoded.value)
}

/// As [`decode`], with null for every number beyond the range of doubles.
///
/// # Errors
///
/// It is not JSON, or too deeply nested.
pub fn decode_within_range(bytes: &[u8]) -> Result<Value, JsonError> {
    Decoder::new(bytes).decode().map(|decoded| decoded.value)
}

/// As [`decode`], for compact JSON with sorted fields that was encoded here: objects at one of `paths`, in which `*` is
/// any item of an array, are only read when their contents are accessed. Until then, only their brackets and the ends
/// of their texts are checked.
///
/// # Errors
///
/// As of [`decode`].
pub fn decode_leaving(bytes: &[u8], paths: &'static [&'static [&'static str]]) -> Result<Value, JsonError> {
    let decoder = Decoder { left_unread: paths, ..Decoder::new(bytes) };
    decoder.decode()?.within_range().map(|decoded| decoded.value)
}

pub(super) struct Decoded {
    pub value: Value,
    pub has_repeated_fields: bool,
    /// The first number beyond the range of doubles.
    out_of_range: Option<String>,
}

impl Decoded {
    pub fn within_range(self) -> Result<Self, JsonError> {
        match self.out_of_range {
            Some(number) => Err(JsonError::Range(number)),
            None => Ok(self),
        }
    }
}

/// How many bytes a text reserves after its first escape.
const BEHIND_ESCAPE_BYTES: usize = 24;

/// An array or object that is being read: the start of its part among the values that wait for their container.
#[derive(Clone, Copy)]
enum OpenContainer {
    Array(usize),
    Object(usize),
}

/// Items and fields of all open containers, the innermost last. So each array and each object is allocated once, at its
/// size.
#[derive(Default)]
struct OpenValues {
    items: Vec<Value>,
    fields: Vec<(Key, Value)>,
    /// Whether a closed object had a repeated name.
    has_repeated_fields: bool,
}

impl OpenValues {
    /// With room for the values of a text of ordinary size that has so many bytes.
    fn for_text(bytes: usize) -> Self {
        const BYTES_PER_FIELD: usize = 32;
        const FIELDS_MAX: usize = 64;
        let fields = Vec::with_capacity((bytes / BYTES_PER_FIELD).min(FIELDS_MAX));
        OpenValues { fields, ..OpenValues::default() }
    }

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

/// Takes the values from `start` on. If that is all of them, and they are many, they are not copied.
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

/// The containers that have begun and are not complete.
struct OpenDocument {
    open: Vec<OpenContainer>,
    waiting: OpenValues,
    next: Next,
}

pub(super) struct Decoder<'a> {
    bytes: &'a [u8],
    /// The bytes as text, if all of them are UTF-8.
    text: Option<&'a str>,
    pub at: usize,
    out_of_range: Option<String>,
    /// The paths of objects that are not read.
    left_unread: &'static [&'static [&'static str]],
}

impl<'a> Decoder<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Decoder { bytes, text: str::from_utf8(bytes).ok(), at: 0, out_of_range: None, left_unread: &[] }
    }

    pub fn decode(mut self) -> Result<Decoded, JsonError> {
        tally::count();
        let waiting = OpenValues::for_text(self.bytes.len());
        let mut document = OpenDocument { open: Vec::new(), waiting, next: Next::Value };
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

    /// Reads the next token; returns the value that is complete with it, if any.
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
                // The value is filled in when it is read.
                waiting.fields.push((self.field_name()?, Value::Null));
                *next = Next::Value;
                return Ok(None);
            }
            (_, Some(b'{')) if !open.is_empty() && self.is_left_unread(open, waiting) => self.unread(open.len())?,
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

    /// Puts a value into the innermost container; that may be complete now, and be a value in turn. Returns the
    /// outermost value.
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

    /// Whether the object that begins here is one of those left unread.
    fn is_left_unread(&self, open: &[OpenContainer], waiting: &OpenValues) -> bool {
        let is_here = |path: &&[&str]| {
            // The last field of each object is the one being read.
            let mut end = waiting.fields.len();
            open.len() == path.len()
                && open.iter().zip(*path).rev().all(|(container, step)| match container {
                    OpenContainer::Array(_) => *step == "*",
                    OpenContainer::Object(start) => {
                        let field = waiting.fields[*start..end].last();
                        end = *start;
                        field.is_some_and(|(name, _)| name == step)
                    }
                })
        };
        self.text.is_some() && self.left_unread.iter().any(is_here)
    }

    /// The object that begins here, at this depth, left unread.
    fn unread(&mut self, around: usize) -> Result<Value, JsonError> {
        let start = self.at;
        let mut depth = 0_usize;
        loop {
            match self.peek() {
                Some(b'{' | b'[') => {
                    depth += 1;
                    self.check_depth(around + depth)?;
                }
                Some(b'}' | b']') => depth -= 1,
                Some(b'"') => self.skip_string()?,
                Some(_) => {}
                None => return Err(self.unexpected("in object")),
            }
            self.at += 1;
            if depth == 0 {
                work::bytes(self.at - start);
                return Ok(Value::Object(Map::of_json(&*self.text_from(start))));
            }
        }
    }

    /// Moves to the end of the text that begins here.
    fn skip_string(&mut self) -> Result<(), JsonError> {
        self.at += 1;
        loop {
            self.skip_plain();
            match self.peek() {
                Some(b'"') => return Ok(()),
                Some(b'\\') if self.at + 1 < self.bytes.len() => self.at += 2,
                _ => return Err(self.unexpected("in string literal")),
            }
        }
    }

    pub fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    pub fn skip_space(&mut self) {
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

    /// The byte here is not allowed within a token. Go treats the end of the text as a space.
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

    /// A field's name and the colon after it.
    pub fn field_name(&mut self) -> Result<Key, JsonError> {
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

    pub fn string(&mut self) -> Result<Cow<'a, str>, JsonError> {
        self.at += 1;
        let start = self.at;
        self.skip_plain();
        work::bytes(self.at - start);
        if self.peek() == Some(b'"') {
            let plain = self.text_from(start);
            self.at += 1;
            return Ok(plain);
        }
        let mut text = String::with_capacity(self.at - start + BEHIND_ESCAPE_BYTES);
        text.push_str(&self.text_from(start));
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
            text.push_str(&self.text_from(start));
        }
    }

    /// The bytes from `start` to here, as text.
    fn text_from(&self, start: usize) -> Cow<'a, str> {
        match self.text.and_then(|text| text.get(start..self.at)) {
            Some(text) => Cow::Borrowed(text),
            None => text_of(&self.bytes[start..self.at]),
        }
    }

    /// Moves to the next quote, backslash or control character.
    fn skip_plain(&mut self) {
        while let Some((chunk, _)) = self.bytes[self.at..].split_first_chunk::<8>() {
            let word = u64::from_le_bytes(*chunk);
            let stops = word::below(word, b' ') | word::equal(word, b'"') | word::equal(word, b'\\');
            if let Some(first) = word::first(stops) {
                self.at += first;
                return;
            }
            self.at += 8;
        }
        while self.peek().is_some_and(|byte| byte >= b' ' && byte != b'"' && byte != b'\\') {
            self.at += 1;
        }
    }

    /// The character of an escape, after its backslash.
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

    /// The character of a surrogate pair, if an escaped low surrogate follows `high`; else nothing is consumed.
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
        // A number out of range is an error only if the rest is well formed; the first such number is named.
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
