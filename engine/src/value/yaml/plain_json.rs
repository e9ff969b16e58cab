//! Detects YAML that is JSON and means the same as JSON: then the faster reader can be used.
//!
//! Clients send JSON under the content type of YAML with every apply. Nearly all of it is in forms that both languages
//! read alike. The YAML reader handles the others: tabs and carriage returns, numbers with exponents or many digits,
//! rare escapes, keys that are long, that are apart from their colon, or that merge, and Unicode line breaks.

use super::super::Value;
use super::super::json::{self, plain_start};

/// A key must be recognized as one within 1,024 bytes.
const KEY_BYTES_MAX: usize = 1_000;
/// A number with at most this many digits is the same double in both languages.
const DIGITS_MAX: usize = 15;

/// The value of an object in plain JSON; `None` for any other text.
pub(super) fn decode(bytes: &[u8]) -> Option<Value> {
    // Other YAML is ruled out by its first byte, without reading the rest.
    if !is_plain(bytes) || std::str::from_utf8(bytes).is_err() {
        return None;
    }
    match json::decode_strict(bytes) {
        Ok((value, repeated)) if repeated.is_empty() => Some(value),
        Ok(_) | Err(_) => None,
    }
}

/// Whether all tokens of a text are plain. It does not check that the text is JSON.
fn is_plain(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    if blanks_cut(rest).first() != Some(&b'{') {
        return false;
    }
    while let Some((first, after)) = rest.split_first() {
        let token_cut = match first {
            b'"' => string_cut(after),
            b'-' | b'0'..=b'9' => number_cut(rest),
            b'{' | b'}' | b'[' | b']' | b':' | b',' | b' ' | b'\n' | b'a'..=b'z' => Some(after),
            _ => None,
        };
        match token_cut {
            Some(after) => rest = after,
            None => return false,
        }
    }
    true
}

/// The text after leading spaces and line ends.
fn blanks_cut(bytes: &[u8]) -> &[u8] {
    let blanks = bytes.iter().take_while(|byte| matches!(byte, b' ' | b'\n')).count();
    &bytes[blanks..]
}

/// The text after a string whose opening quote has been read.
fn string_cut(bytes: &[u8]) -> Option<&[u8]> {
    let mut at = 0;
    loop {
        while let Some((chunk, _)) = bytes.get(at..)?.split_first_chunk() {
            let plain = plain_start(*chunk);
            at += plain;
            if plain < chunk.len() {
                break;
            }
        }
        match bytes.get(at)? {
            b'"' => break,
            b'\\' if matches!(bytes.get(at + 1)?, b'"' | b'\\' | b'n' | b'r' | b't' | b'b' | b'f') => at += 2,
            b' '..=b'~' if bytes[at] != b'\\' => at += 1,
            0xc3..=0xdf => at += 2,
            // Not U+2000 to U+2FFF, which have line breaks, nor the end of the plane, which has the byte order mark.
            0xe1 | 0xe3..=0xec | 0xee => at += 3,
            _ => return None,
        }
    }
    let after = &bytes[at + 1..];
    let is_key = blanks_cut(after).first() == Some(&b':');
    let is_plain_key = at <= KEY_BYTES_MAX && after.first() == Some(&b':') && &bytes[..at] != b"<<";
    (!is_key || is_plain_key).then_some(after)
}

/// What follows a number.
fn number_cut(bytes: &[u8]) -> Option<&[u8]> {
    let unsigned = bytes.strip_prefix(b"-").unwrap_or(bytes);
    let length = unsigned.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'.').count();
    let (number, after) = unsigned.split_at(length);
    // A whole number with a point is an integer in YAML only, as is a zero with a sign.
    let is_odd = number.contains(&b'.') && number.ends_with(b"0") || number == b"0" && bytes.len() > unsigned.len();
    let ends = matches!(after.first(), Some(b',' | b'}' | b']' | b' ' | b'\n'));
    (ends && !is_odd && length <= DIGITS_MAX).then_some(after)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{YamlParser, decode_document};
    use super::*;

    /// The result of the YAML reader.
    fn as_yaml(text: &str) -> Option<Value> {
        let document = YamlParser::new(text.as_bytes()).document().ok()??;
        let (value, repeated) = decode_document(&document).ok()?;
        repeated.is_empty().then_some(value)
    }

    #[test]
    fn what_clients_send_is_plain() {
        for text in [
            r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":{}},"data":{"a":"b\n\"c\""}}"#,
            "{\n  \"a\": [1, -2, 0.5, true, null, {\"é\": \"ü日本\"}]\n}\n",
        ] {
            let decoded = decode(text.as_bytes());
            assert!(decoded.is_some(), "{text}");
            assert_eq!(decoded, as_yaml(text));
        }
    }

    #[test]
    fn what_may_mean_something_else_is_not() {
        for text in [
            r#"["a"]"#,
            r#""a""#,
            "{\t\"a\":1}",
            "{\"a\":1}\r\n",
            r#"{"a":1e3}"#,
            r#"{"a":1.0}"#,
            r#"{"a":-0}"#,
            r#"{"a":12345678901234567890}"#,
            r#"{"<<":{"a":1}}"#,
            r#"{"a" :1}"#,
            r#"{"a":1,"a":2}"#,
            r#"{a: 1}"#,
            r#"{"a":"\/"}"#,
            r#"{"a":"\u0041"}"#,
            "{\"a\":\"\u{2028}\"}",
            "{\"a\":\"\u{85}\"}",
            "{\"a\":\"\u{feff}\"}",
            r#"{"a":"b"} c"#,
            r#"{"a":"b"#,
            "---\n{}",
            "{'a':1}",
            "{\"a\":\"\u{7f}\"}",
            "{\"a\":\"\t\"}",
            "{\"a\":01}",
            "{\"a\":.5}",
            "{\"a\":y}",
            "",
        ] {
            assert_eq!(decode(text.as_bytes()), None, "{text}");
        }
        for plain in [7, 8, 9, 15, 16] {
            for odd in ["\t", "\u{7f}", "\\/", "\\u0041", "\u{2028}", "\u{85}"] {
                let text = format!("{{\"a\":\"{}{odd}\"}}", "x".repeat(plain));
                assert_eq!(decode(text.as_bytes()), None, "{text}");
            }
        }
        assert_eq!(decode(format!("{{\"{}\":1}}", "a".repeat(KEY_BYTES_MAX + 1)).as_bytes()), None);
        assert_eq!(decode(b"{\"a\":\"\xc3\"}"), None);
    }

    fn document() -> impl Strategy<Value = String> {
        let odd = "[\\\\\"nrtbfu/:#{},<' \u{80}-\u{a1}\u{2028}\u{feff}é]{0,6}";
        let text = prop_oneof!["[ -~]{0,6}", "[a-z<:# ]{0,24}", "[a-z]{6,9}\\PC{0,4}", odd];
        let text = text.prop_map(|text| format!("\"{text}\""));
        let number = "-?[0-9]{1,3}(\\.[0-9]{1,2})?|[0-9]{14,20}|-0|1e3|0x1f|1_0|[0-9]{1,2}:[0-9]{2}";
        let scalar = prop_oneof![text.clone(), number.prop_map(String::from), Just("null".into()), Just("true".into())];
        let blank = || prop_oneof![8 => Just(""), 1 => Just(" "), 1 => Just("\n"), 1 => Just("\t")];
        let value = scalar.boxed().prop_recursive(4, 24, 4, move |inner| {
            let field = (text.clone(), blank(), blank(), inner.clone());
            let fields =
                prop::collection::vec(field.prop_map(|(key, a, b, value)| format!("{key}{a}:{b}{value}")), 0..4);
            let items = prop::collection::vec(inner, 0..4);
            prop_oneof![
                3 => (fields, blank()).prop_map(|(fields, blank)| format!("{{{blank}{}}}", fields.join(","))),
                1 => (items, blank()).prop_map(|(items, blank)| format!("[{}{blank}]", items.join(","))),
            ]
        });
        value.prop_map(|value| format!("{{\"a\":{value}}}"))
    }

    proptest! {
        #[test]
        fn plain_json_is_the_same_in_both_languages(text in document()) {
            if let Some(value) = decode(text.as_bytes()) {
                prop_assert_eq!(Some(value), as_yaml(&text));
            }
        }
    }
}
