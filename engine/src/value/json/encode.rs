//! Values to JSON, compact or indented, with sorted fields or in the order of Go's structs.

use super::word;
use crate::value::{Map, Value, number};
use crate::work;

/// Compact JSON with sorted fields and without a newline at the end. `<`, `>`, `&`, U+2028 and U+2029 are escaped.
pub fn encode(value: &Value) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    encode_into(value, &mut out);
    out
}

/// As [`encode`], as text.
pub fn encode_to_string(value: &Value) -> String {
    String::from_utf8(encode(value)).expect("strings and their escapes are UTF-8")
}

/// [`encode`], appended to `out`.
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
        Value::Object(fields) => match fields.json_text() {
            Some(text) => {
                work::bytes(text.len());
                out.extend_from_slice(text.as_bytes());
            }
            None => encode_fields(fields.iter(), out, |_, field, out| encode_into(field, out)),
        },
        _ => encode_scalar(value, out),
    }
}

/// An object with these fields, whose values `encode` writes.
pub fn encode_fields<N: AsRef<str>, T>(
    fields: impl Iterator<Item = (N, T)>,
    out: &mut Vec<u8>,
    mut encode: impl FnMut(&str, T, &mut Vec<u8>),
) {
    out.push(b'{');
    for (index, (name, field)) in fields.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        encode_string(name.as_ref(), out);
        out.push(b':');
        encode(name.as_ref(), field, out);
    }
    out.push(b'}');
}

/// In which order the fields of objects are written.
#[derive(Clone, Copy)]
pub enum Layout {
    /// Sorted, here and below, as Go prints maps.
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
    /// Decided by the object's contents.
    Choose(fn(&Value) -> Layout),
}

/// A type that knows the order of its fields.
pub trait FieldOrder: Sync {
    /// The index of the field in the type, and its layout; `None` if the type has no such field.
    fn find(&self, name: &str) -> Option<(usize, Layout)>;
}

impl Layout {
    /// The layout of a field of an object, or of an item's in an array of objects.
    pub fn field(self, name: &str) -> Layout {
        match self {
            Layout::Sorted | Layout::Choose(_) => Layout::Sorted,
            Layout::Struct(order) => order.find(name).map_or(Layout::Sorted, |(_, layout)| layout),
            Layout::Declared(declared) => declared.find(name).map_or(Layout::Sorted, |(_, layout)| layout),
            Layout::Map(layout) => *layout,
            Layout::DeclaredMap(declared) => Layout::Declared(declared),
        }
    }
}

impl FieldOrder for &'static [(&'static str, &'static Layout)] {
    fn find(&self, name: &str) -> Option<(usize, Layout)> {
        let at = self.iter().position(|(known, _)| *known == name)?;
        Some((at, *self[at].1))
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
            encode_fields_as(fields.iter().map(|(name, field)| (name, (field, *layout))), out);
        }
        (Value::Object(fields), Layout::DeclaredMap(declared)) => {
            encode_fields_as(fields.iter().map(|(name, field)| (name, (field, Layout::Declared(declared)))), out);
        }
        _ => encode_into(value, out),
    }
}

/// Declared fields in their order, then the others, sorted.
fn encode_declared(fields: &Map, declared: &dyn FieldOrder, out: &mut Vec<u8>) {
    let found = fields.iter().map(|(name, field)| match declared.find(name) {
        Some((place, layout)) => (place, (name, (field, layout))),
        None => (usize::MAX, (name, (field, Layout::Sorted))),
    });
    let mut ordered: Vec<_> = found.collect();
    ordered.sort_by_key(|(place, _)| *place);
    encode_fields_as(ordered.into_iter().map(|(_, field)| field), out);
}

fn encode_fields_as<'v>(fields: impl Iterator<Item = (&'v str, (&'v Value, Layout))>, out: &mut Vec<u8>) {
    encode_fields(fields, out, |_, (field, layout), out| {
        work::step();
        encode_as_into(field, layout, out);
    });
}

/// Compact JSON with two spaces of indentation per level, as Go's `MarshalIndent`; no newline at the end.
pub fn indent(compact: &[u8]) -> Vec<u8> {
    indent_within(compact, usize::MAX).unwrap_or_default()
}

/// [`indent`], if the result has at most `bytes_max` bytes: in deeply nested values, lines are long.
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
                // Empty containers stay on one line.
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

/// The bytes that must be escaped in a JSON string; U+2028 and U+2029 begin with 0xe2.
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

/// The index of the first of eight bytes that is in [`ESCAPED`].
const fn first_escaped(word: u64) -> Option<usize> {
    // `"` and `&` differ in one bit, as `<` and `>` do.
    word::first(
        word::below(word, 0x20)
            | word::equal(word | (word::ONES * 0x04), b'&')
            | word::equal(word | (word::ONES * 0x02), b'>')
            | word::equal(word, b'\\')
            | word::equal(word, 0xe2),
    )
}

/// Whether none of the bytes is in [`ESCAPED`]. Most texts are so, and short.
fn is_plain(bytes: &[u8]) -> bool {
    // In this form the compiler takes the sixteen bytes at once: `"` and `&` differ in one bit, as `<` and `>` do.
    let escaped = |byte: u8| {
        let is_quote_or_and = u8::from(byte | 0x04 == b'&');
        let is_bracket = u8::from(byte | 0x02 == b'>');
        u8::from(byte < 0x20) | is_quote_or_and | is_bracket | u8::from(byte == b'\\') | u8::from(byte == 0xe2)
    };
    let is_plain_chunk = |chunk: &[u8; 16]| chunk.iter().fold(0, |any, byte| any | escaped(*byte)) == 0;
    let (chunks, _) = bytes.as_chunks();
    if let Some(last) = bytes.last_chunk() {
        return chunks.iter().all(is_plain_chunk) && is_plain_chunk(last);
    }
    // The halves overlap.
    match (bytes.first_chunk(), bytes.last_chunk()) {
        (Some(first), Some(last)) => {
            let words = [u64::from_le_bytes(*first), u64::from_le_bytes(*last)];
            words.iter().all(|word| first_escaped(*word).is_none())
        }
        _ => bytes.iter().all(|byte| !ESCAPED[usize::from(*byte)]),
    }
}

/// The position of the next byte in [`ESCAPED`], from `at` on, or the end.
pub(super) fn end_of_plain(bytes: &[u8], mut at: usize) -> usize {
    while let Some((chunk, _)) = bytes[at..].split_first_chunk() {
        if let Some(first) = first_escaped(u64::from_le_bytes(*chunk)) {
            return at + first;
        }
        at += 8;
    }
    match bytes.last_chunk() {
        // The last eight bytes, shifted past those already checked: the zeros shifted in count as escaped.
        Some(chunk) if at < bytes.len() => {
            let rest = bytes.len() - at;
            let word = u64::from_le_bytes(*chunk) >> (8 * (8 - rest));
            at + first_escaped(word).map_or(rest, |first| first.min(rest))
        }
        _ => at + bytes[at..].iter().take_while(|byte| !ESCAPED[usize::from(**byte)]).count(),
    }
}

/// A JSON string with its quotes.
pub fn encode_string(text: &str, out: &mut Vec<u8>) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    encode_text(text, out);
    out.push(b'"');
}

/// The text between the quotes of a JSON string.
pub(crate) fn encode_text(text: &str, out: &mut Vec<u8>) {
    work::bytes(text.len());
    if is_plain(text.as_bytes()) {
        out.extend_from_slice(text.as_bytes());
    } else {
        encode_escaped(text, out);
    }
}

fn encode_escaped(text: &str, out: &mut Vec<u8>) {
    let bytes = text.as_bytes();
    let mut start = 0;
    let mut at = 0;
    loop {
        at = end_of_plain(bytes, at);
        let Some(byte) = bytes.get(at) else { break };
        let escape: &[u8] = match *byte {
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
        at += if *byte == 0xe2 { 3 } else { 1 };
        start = at;
    }
    out.extend_from_slice(&bytes[start..]);
}
