//! A field as it was written: with its spaces, its order of fields, its spelling.
//!
//! Input: well-formed JSON of an object; anything else ends a search early.

use std::ops::Range;

use super::{Value, json};
use crate::work;

/// The text of the field `name` of the object in `object`. The last of several fields with that name counts.
pub fn text_of_field<'j>(object: &'j [u8], name: &str) -> Option<&'j str> {
    let mut tokens = JsonTokens { text: object, at: 0 };
    if tokens.next_byte() != Some(b'{') {
        return None;
    }
    let mut found = None;
    while let Some(key) = tokens.value().filter(|key| object[key.start] == b'"') {
        tokens.next();
        let text = tokens.value()?;
        if is_key(&object[key], name) {
            found = Some(text);
        }
        if tokens.next_byte() != Some(b',') {
            break;
        }
    }
    std::str::from_utf8(&object[found?]).ok()
}

/// Whether there is whitespace between the tokens of a text.
pub fn is_spaced(text: &str) -> bool {
    let tokens = JsonTokens { text: text.as_bytes(), at: 0 };
    tokens.map(|token| token.len()).sum::<usize>() != text.len()
}

/// The text without whitespace between its tokens, as Go shows raw JSON: `<`, `>`, `&`, U+2028 and U+2029 are escaped.
pub fn compact(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for token in (JsonTokens { text: text.as_bytes(), at: 0 }) {
        for char in text.get(token).unwrap_or_default().chars() {
            match char {
                '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => out.push_str(&format!("\\u{:04x}", u32::from(char))),
                _ => out.push(char),
            }
        }
    }
    out
}

/// The texts at a path of field names, where `*` stands for each item of a list: one text per item, or a single one.
pub fn texts_at<'j>(text: &'j str, path: &[&str]) -> Vec<Option<&'j str>> {
    match path {
        [] => vec![Some(text)],
        ["*", rest @ ..] => {
            items_of(text).into_iter().map(|item| texts_at(item, rest).first().copied().flatten()).collect()
        }
        [name, rest @ ..] => match text_of_field(text.as_bytes(), name) {
            Some(text) => texts_at(text, rest),
            None => Vec::new(),
        },
    }
}

/// The value at such a path, in the item `index`.
pub fn value_at<'v>(value: &'v Value, path: &[&str], index: usize) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, name| match *name {
        "*" => value.as_array()?.get(index),
        name => value.get(name),
    })
}

/// [`json::encode`] of an object, with the values at `path` written as `texts`, if these are given.
pub fn encode_with_texts(object: &Value, path: &[&str], texts: &[Option<&str>], bytes: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes);
    encode_part(object, path, texts, &mut out);
    out
}

fn encode_part(value: &Value, path: &[&str], texts: &[Option<&str>], out: &mut Vec<u8>) {
    let text = texts.first().copied().flatten().filter(|_| path.is_empty());
    match (path, value) {
        ([], _) => match text {
            Some(text) => {
                work::bytes(text.len());
                out.extend_from_slice(text.as_bytes());
            }
            None => json::encode_into(value, out),
        },
        (["*", rest @ ..], Value::Array(items)) => {
            out.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                encode_part(item, rest, texts.get(index).map(std::slice::from_ref).unwrap_or_default(), out);
            }
            out.push(b']');
        }
        ([name, rest @ ..], Value::Object(fields)) => json::encode_fields(fields.iter(), out, |key, field, out| {
            if key == *name { encode_part(field, rest, texts, out) } else { json::encode_into(field, out) }
        }),
        _ => json::encode_into(value, out),
    }
}

/// The texts of the items of an array.
fn items_of(array: &str) -> Vec<&str> {
    let mut tokens = JsonTokens { text: array.as_bytes(), at: 0 };
    let mut items = Vec::new();
    if tokens.next_byte() != Some(b'[') {
        return items;
    }
    while let Some(item) = tokens.value().and_then(|item| array.get(item)).filter(|item| *item != "]") {
        items.push(item);
        if tokens.next_byte() != Some(b',') {
            break;
        }
    }
    items
}

/// Whether a key's text, with its quotes, stands for `name`.
fn is_key(key: &[u8], name: &str) -> bool {
    json::decode(key).is_ok_and(|key| key.as_str() == Some(name))
}

/// The positions of the tokens of a text.
struct JsonTokens<'t> {
    text: &'t [u8],
    at: usize,
}

impl JsonTokens<'_> {
    /// Skips the next token and returns its first byte.
    fn next_byte(&mut self) -> Option<u8> {
        self.next().map(|token| self.text[token.start])
    }

    /// Skips the next value, or the token in its place, and returns its position.
    fn value(&mut self) -> Option<Range<usize>> {
        let first = self.next()?;
        let (mut depth, mut last) = (0_usize, first.clone());
        loop {
            match self.text[last.start] {
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 {
                return Some(first.start..last.end);
            }
            last = self.next()?;
        }
    }
}

impl Iterator for JsonTokens<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let rest = &self.text[self.at..];
        let start = self.at + rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let rest = &self.text[start..];
        let length = match rest.first()? {
            b'"' => string_len(rest),
            b'{' | b'}' | b'[' | b']' | b',' | b':' => 1,
            _ => rest.iter().position(|byte| !is_of_word(*byte)).unwrap_or(rest.len()),
        };
        work::bytes(start + length - self.at);
        self.at = start + length;
        Some(start..self.at)
    }
}

/// The length in bytes of the string at the start of `text`, with its quotes.
fn string_len(text: &[u8]) -> usize {
    let mut at = 1;
    while let Some(byte) = text.get(at) {
        at += 1;
        match byte {
            b'\\' => at += 1,
            b'"' => break,
            _ => {}
        }
    }
    at.min(text.len())
}

/// Whether a byte continues a number or a literal.
fn is_of_word(byte: u8) -> bool {
    !byte.is_ascii_whitespace() && !matches!(byte, b'"' | b'{' | b'}' | b'[' | b']' | b',' | b':')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object;

    #[track_caller]
    fn check(object: &str, expect: Option<&str>) {
        assert_eq!(text_of_field(object.as_bytes(), "data"), expect, "{object}");
    }

    #[test]
    fn the_text_of_a_field_is_as_it_was_written() {
        check(r#"{"data": {"b":1, "a":[true,"x y"]} , "z": 1}"#, Some(r#"{"b":1, "a":[true,"x y"]}"#));
        check(r#"{"a": {"data": {"b": 1}}, "data": -1.0e2, "z": [1, 2]}"#, Some("-1.0e2"));
        check(r#" {"data" : {"a\"}": "b" }}"#, Some(r#"{"a\"}": "b" }"#));
        check(r#"{"other": {"a": 1}}"#, None);
        check(r#"[{"data": {"a": 1}}]"#, None);
        check("{}", None);
    }

    #[test]
    fn the_last_of_several_counts_however_its_name_is_spelled() {
        check(r#"{"data": {"a": 1}, "d\u0061ta": {"a": 2}}"#, Some(r#"{"a": 2}"#));
    }

    #[test]
    fn texts_that_break_off_end_the_search() {
        let whole = r#"{"data": {"a\\": [1, "b"]}, "c": nul"#;
        for end in 0..=whole.len() {
            text_of_field(&whole.as_bytes()[..end], "data");
        }
        for broken in [r#"{"data" "#, r#"{"a\"#, r#"{"data":,"b"]}"#, "{}}", "{1:2}", "\"", ""] {
            text_of_field(broken.as_bytes(), "data");
            compact(broken);
        }
    }

    #[test]
    fn space_between_tokens_goes_and_that_within_texts_stays() {
        let spaced = "{\"b\": [1,\t\"x  y\"],\n\"a\":\"<&\u{2028}\\u0061\" }";
        assert!(is_spaced(spaced));
        let compacted = compact(spaced);
        assert_eq!(compacted, r#"{"b":[1,"x  y"],"a":"\u003c\u0026\u2028\u0061"}"#);
        assert!(!is_spaced(&compacted));
    }

    #[test]
    fn the_text_stands_among_the_other_fields() {
        let object = object! { "a" => 1, "data" => object! { "b" => 2 }, "e" => "f" };
        let encoded = encode_with_texts(&object, &["data"], &[Some(r#"{"b": 2}"#)], 0);
        assert_eq!(String::from_utf8_lossy(&encoded), r#"{"a":1,"data":{"b": 2},"e":"f"}"#);
        assert_eq!(json::decode(&encoded).ok(), Some(object));
        assert_eq!(encode_with_texts(&object! {}, &["data"], &[Some("1")], 0), b"{}");
    }

    #[test]
    fn each_item_has_its_text() {
        const PATH: [&str; 4] = ["spec", "list", "*", "raw"];
        let text = r#"{"spec":{"list":[{"raw":{"a": 1}},{"b":[]},{"raw":[ 2],"z":3}]}}"#;
        let texts = texts_at(text, &PATH);
        assert_eq!(texts, [Some(r#"{"a": 1}"#), None, Some("[ 2]")]);
        let object = json::decode(text.as_bytes()).expect("the test is JSON");
        assert_eq!(String::from_utf8_lossy(&encode_with_texts(&object, &PATH, &texts, 0)), text);
        assert_eq!(encode_with_texts(&object, &PATH, &[], 0), json::encode(&object));
        assert_eq!(value_at(&object, &PATH, 2).map(json::encode_to_string).as_deref(), Some("[2]"));
        assert_eq!(value_at(&object, &PATH, 1), None);
        for broken in ["[", "[1", "[1,", "{}", "[]", "[}"] {
            items_of(broken);
        }
        assert_eq!(texts_at(r#"{"spec":{}}"#, &PATH), Vec::<Option<&str>>::new());
    }
}
