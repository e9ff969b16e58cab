//! Paths into an object, as managedFields and conflicts spell them.
//!
//! Source: structured-merge-diff v6.4.2, package `fieldpath`.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use crate::value::number::{format_float, format_float_v};
use crate::value::{Key, Map, Value, go_quote, json};

/// One step from a container to what it holds. Clones share their text.
#[derive(Clone, Debug)]
pub enum PathElement {
    /// A field of an object, whether declared or a key of a map.
    Field(Key),
    /// The item of a list map that has these fields, sorted by name.
    Key(Arc<[KeyField]>),
    /// The item of a set, which is this value.
    Value(Arc<Value>),
    /// The item at this index.
    Index(i64),
}

/// A field of a list map's key.
#[derive(Clone, Debug)]
pub struct KeyField {
    /// The name of the field.
    pub name: Arc<str>,
    /// The value that the item has there.
    pub value: Value,
}

/// Why a path element of managedFields can't be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathElementError {
    /// A kind of element that a later version may know; it is skipped.
    UnknownKind,
    Malformed(String),
}

impl PathElement {
    /// A field of an object.
    pub fn field(name: &str) -> Self {
        PathElement::Field(Key::new(name))
    }

    /// The element of an item with this key. The fields may come in any order.
    pub fn key(mut fields: Vec<KeyField>) -> Self {
        fields.sort_by(|a, b| a.name.cmp(&b.name));
        PathElement::Key(Arc::from(fields))
    }

    /// Reads `f:name`, `k:{"port":80}`, `v:"text"` or `i:0`. Numbers come out as doubles, as in the reference.
    ///
    /// # Errors
    ///
    /// A text that is none of these.
    pub fn decode(text: &str) -> Result<Self, PathElementError> {
        let malformed = |reason: String| PathElementError::Malformed(reason);
        let bytes = text.as_bytes();
        if bytes.len() < 2 {
            return Err(malformed("key must be 2 characters long:".to_owned()));
        }
        if bytes[1] != b':' {
            return Err(malformed(format!("missing colon: {text}")));
        }
        // The second byte is ASCII; a kind outside ASCII would have a longer first character.
        let rest = text.get(2..).ok_or(PathElementError::UnknownKind)?;
        match bytes[0] {
            b'f' => Ok(PathElement::field(rest)),
            b'v' => {
                let mut value = json::decode(rest.as_bytes()).map_err(|error| malformed(error.to_string()))?;
                numbers_to_doubles(&mut value);
                Ok(PathElement::Value(Arc::new(value)))
            }
            b'k' => match json::decode(rest.as_bytes()).map_err(|error| malformed(error.to_string()))? {
                Value::Object(fields) => Ok(PathElement::key(
                    fields
                        .into_iter()
                        .map(|(name, mut value)| {
                            numbers_to_doubles(&mut value);
                            KeyField { name: Arc::from(name), value }
                        })
                        .collect(),
                )),
                Value::Null => Ok(PathElement::key(Vec::new())),
                _ => Err(malformed(format!("expected an object in {text}"))),
            },
            b'i' => rest.parse().map(PathElement::Index).map_err(|error| malformed(format!("{error}"))),
            _ => Err(PathElementError::UnknownKind),
        }
    }

    /// The form that [`PathElement::decode`] reads.
    pub fn encode(&self) -> String {
        match self {
            PathElement::Field(name) => format!("f:{name}"),
            PathElement::Key(fields) => encode_item_key(fields.iter().map(|field| (&*field.name, &field.value))),
            PathElement::Value(value) => encode_item_value(value),
            PathElement::Index(index) => format!("i:{index}"),
        }
    }

    /// Whether `text` is spelled as [`PathElement::encode`] would write its element.
    pub(super) fn is_canonical(text: &str) -> Result<bool, PathElementError> {
        if text.starts_with("f:") || is_plain_key(text, "\"") {
            return Ok(true);
        }
        PathElement::decode(text).map(|element| element.encode() == text)
    }

    const fn rank(&self) -> u8 {
        match self {
            PathElement::Field(_) => 0,
            PathElement::Key(_) => 1,
            PathElement::Value(_) => 2,
            PathElement::Index(_) => 3,
        }
    }
}

impl Ord for PathElement {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (PathElement::Field(a), PathElement::Field(b)) => a.cmp(b),
            (PathElement::Key(a), PathElement::Key(b)) => {
                let unequal = a
                    .iter()
                    .zip(b.iter())
                    .map(|(a, b)| a.name.cmp(&b.name).then_with(|| compare_values(&a.value, &b.value)));
                unequal.into_iter().find(|order| order.is_ne()).unwrap_or_else(|| a.len().cmp(&b.len()))
            }
            (PathElement::Value(a), PathElement::Value(b)) => compare_values(a, b),
            (PathElement::Index(a), PathElement::Index(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for PathElement {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PathElement {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for PathElement {}

/// As messages show it: `.name`, `[port=80,protocol="TCP"]`, `[="text"]`, `[0]`.
impl fmt::Display for PathElement {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PathElement::Field(name) => write!(out, ".{name}"),
            PathElement::Key(fields) => {
                out.write_str("[")?;
                for (at, field) in fields.iter().enumerate() {
                    let comma = if at > 0 { "," } else { "" };
                    write!(out, "{comma}{}={}", field.name, readable(&field.value))?;
                }
                out.write_str("]")
            }
            PathElement::Value(value) => write!(out, "[={}]", readable(value)),
            PathElement::Index(index) => write!(out, "[{index}]"),
        }
    }
}

/// The order of values in sets: numbers, texts, booleans, lists, maps, null. Integers and doubles compare by number.
pub(super) fn compare_values(a: &Value, b: &Value) -> Ordering {
    let as_double = |value: &Value| match value {
        Value::Int(number) => Some(*number as f64),
        Value::Float(number) => Some(*number),
        _ => None,
    };
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Array(a), Value::Array(b)) => {
            let mut pairs = a.iter().zip(b).map(|(a, b)| compare_values(a, b));
            pairs.find(|order| order.is_ne()).unwrap_or_else(|| a.len().cmp(&b.len()))
        }
        (Value::Object(a), Value::Object(b)) => compare_objects(a, b),
        _ => match (as_double(a), as_double(b)) {
            (Some(a), Some(b)) => a.partial_cmp(&b).unwrap_or(Ordering::Equal),
            _ => rank(a).cmp(&rank(b)),
        },
    }
}

fn compare_objects(a: &Map, b: &Map) -> Ordering {
    let (mut left, mut right) = (a.iter(), b.iter());
    loop {
        return match (left.next(), right.next()) {
            (None, None) => Ordering::Equal,
            (None, Some(_)) => Ordering::Less,
            (Some(_), None) => Ordering::Greater,
            (Some((left_name, left_value)), Some((right_name, right_value))) => match left_name.cmp(right_name) {
                Ordering::Equal => match compare_values(left_value, right_value) {
                    Ordering::Equal => continue,
                    unequal => unequal,
                },
                // The reference orders first the side whose first differing name is smaller.
                unequal => unequal,
            },
        };
    }
}

/// Whether two values are the same to the merge: integers and doubles compare by number.
pub(super) fn equal_values(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter().zip(b.iter()).all(|((a_name, a), (b_name, b))| a_name == b_name && equal_values(a, b))
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal_values(a, b)),
        (Value::Int(number), Value::Float(double)) | (Value::Float(double), Value::Int(number)) => {
            *number as f64 == *double
        }
        _ => a == b,
    }
}

const fn rank(value: &Value) -> u8 {
    match value {
        Value::Int(_) | Value::Float(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

fn numbers_to_doubles(value: &mut Value) {
    match value {
        Value::Int(number) => *value = Value::Float(*number as f64),
        Value::Array(items) => items.iter_mut().for_each(numbers_to_doubles),
        Value::Object(fields) => fields.values_mut().for_each(numbers_to_doubles),
        _ => {}
    }
}

fn readable(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(truth) => truth.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Float(number) => format_float_v(*number),
        Value::String(text) => go_quote(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(readable).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| format!("{name}={}", readable(value))).collect::<String>()
        }
    }
}

/// [`PathElement::encode`] of the item with this key, whose fields are sorted by name.
pub(super) fn encode_item_key<'k>(fields: impl Iterator<Item = (&'k str, &'k Value)>) -> String {
    let mut text = String::with_capacity(32);
    text.push_str("k:{");
    for (at, (name, value)) in fields.enumerate() {
        if at > 0 {
            text.push(',');
        }
        encode_string(name, &mut text);
        text.push(':');
        encode_value(value, &mut text);
    }
    text.push('}');
    text
}

/// [`PathElement::encode`] of the item of a set.
pub(super) fn encode_item_value(value: &Value) -> String {
    let mut text = String::with_capacity(32);
    text.push_str("v:");
    encode_value(value, &mut text);
    text
}

/// JSON as the reference writes it into keys: HTML escaped, `\b` and `\f` by number, exponents of two digits.
fn encode_value(value: &Value, text: &mut String) {
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(truth) => text.push_str(if *truth { "true" } else { "false" }),
        Value::Int(number) => text.push_str(&number.to_string()),
        Value::Float(number) => {
            let number = format_float(*number);
            match number.split_once("e-") {
                Some((digits, exponent)) if exponent.len() == 1 => {
                    text.push_str(digits);
                    text.push_str("e-0");
                    text.push_str(exponent);
                }
                _ => text.push_str(&number),
            }
        }
        Value::String(string) => encode_string(string, text),
        Value::Array(items) => {
            text.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    text.push(',');
                }
                encode_value(item, text);
            }
            text.push(']');
        }
        Value::Object(fields) => {
            text.push('{');
            for (at, (name, value)) in fields.iter().enumerate() {
                if at > 0 {
                    text.push(',');
                }
                encode_string(name, text);
                text.push(':');
                encode_value(value, text);
            }
            text.push('}');
        }
    }
}

fn encode_string(string: &str, text: &mut String) {
    use fmt::Write;
    text.push('"');
    let mut rest = string;
    while let Some(at) = rest.find(is_escaped) {
        let (plain, from_escaped) = rest.split_at(at);
        text.push_str(plain);
        let mut characters = from_escaped.chars();
        match characters.next() {
            Some('"') => text.push_str("\\\""),
            Some('\\') => text.push_str("\\\\"),
            Some('\n') => text.push_str("\\n"),
            Some('\r') => text.push_str("\\r"),
            Some('\t') => text.push_str("\\t"),
            Some(character) => write!(text, "\\u{:04x}", u32::from(character)).expect("a String takes all text"),
            None => {}
        }
        rest = characters.as_str();
    }
    text.push_str(rest);
    text.push('"');
}

fn is_escaped(character: char) -> bool {
    matches!(character, '"' | '\\' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..='\u{1f}')
}

/// Whether this is a key in its canonical form, checked without decoding; `quote` is how a quote is written. Keys that
/// are too complex for this check count as not canonical.
pub(super) fn is_plain_key(text: &str, quote: &str) -> bool {
    let Some(mut rest) = text.strip_prefix("k:{") else { return false };
    let mut last_name = "";
    loop {
        let Some((name, value)) = plain_string(rest, quote) else { return false };
        let Some(value) = value.strip_prefix(':') else { return false };
        if name <= last_name {
            return false;
        }
        last_name = name;
        rest = match plain_string(value, quote) {
            Some((_, rest)) => rest,
            None => value.trim_start_matches(|digit: char| digit.is_ascii_digit()),
        };
        let digits = value.len() - rest.len();
        let is_short_number = !value.starts_with('0') && digits <= 15;
        if digits == 0 || !(value.starts_with(quote) || is_short_number) {
            return false;
        }
        match rest.strip_prefix(',') {
            Some(next) => rest = next,
            None => return rest == "}",
        }
    }
}

/// Whether this is the item of a set that is a text, in its canonical form, checked without decoding; `quote` is how a
/// quote is written. Texts that are too complex for this check count as not canonical.
pub(super) fn is_plain_text_value(text: &str, quote: &str) -> bool {
    text.strip_prefix("v:").and_then(|value| plain_string(value, quote)).is_some_and(|(_, rest)| rest.is_empty())
}

/// The text within the quotes at the start of `text`, if JSON has only one way to write it, and the rest.
fn plain_string<'t>(text: &'t str, quote: &str) -> Option<(&'t str, &'t str)> {
    let quoted = text.strip_prefix(quote)?;
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\' | b'<' | b'>' | b'&');
    let (inner, rest) = quoted.split_at(quoted.bytes().take_while(is_plain).count());
    Some((inner, rest.strip_prefix(quote)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(encoded: &str, shown: &str) {
        let element = PathElement::decode(encoded).unwrap();
        assert_eq!(element.encode(), encoded);
        assert_eq!(element.to_string(), shown);
    }

    #[test]
    fn elements_survive_decoding_and_encoding() {
        check("f:spec", ".spec");
        check("f:", ".");
        check("f:a.b/c", ".a.b/c");
        check(r#"k:{"port":80,"protocol":"TCP"}"#, r#"[port=80,protocol="TCP"]"#);
        check(r#"v:"a\u003cb""#, r#"[="a<b"]"#);
        check("v:true", "[=true]");
        check("v:1.5", "[=1.5]");
        check("i:-3", "[-3]");
    }

    #[test]
    fn key_fields_are_sorted_by_name() {
        assert_eq!(PathElement::decode(r#"k:{"b":1,"a":2}"#).unwrap().encode(), r#"k:{"a":2,"b":1}"#);
    }

    #[test]
    fn numbers_of_keys_show_as_doubles() {
        assert_eq!(PathElement::decode("v:1000000").unwrap().to_string(), "[=1e+06]");
        assert_eq!(PathElement::Value(Arc::new(Value::Int(1_000_000))).to_string(), "[=1000000]");
    }

    #[test]
    fn an_unknown_kind_is_told_from_a_malformed_element() {
        assert_eq!(PathElement::decode("x:1").unwrap_err(), PathElementError::UnknownKind);
        for text in ["", "f", "ff:", "v:{", "k:[]", "i:one", "v:1 2"] {
            assert!(matches!(PathElement::decode(text), Err(PathElementError::Malformed(_))), "{text}");
        }
    }

    #[test]
    fn integers_and_doubles_are_one_order() {
        let element = |value| PathElement::Value(Arc::new(value));
        assert_eq!(element(Value::Int(80)), element(Value::Float(80.0)));
        assert!(element(Value::Int(9)) < element(Value::Float(80.5)));
        assert!(element(Value::Float(1.0)) < element(Value::from("")));
        assert!(element(Value::from("z")) < element(Value::Bool(false)));
    }
}
