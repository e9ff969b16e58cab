//! Values in messages, as Go prints them.

use super::{Value, json, number};
use crate::work;

/// `text` as Go's `%q` (`strconv.Quote`) prints it.
pub fn go_quote(text: &str) -> String {
    work::bytes(text.len());
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for char in text.chars() {
        match char {
            '"' | '\\' => quoted.extend(['\\', char]),
            ' '..='~' => quoted.push(char),
            '\x07' => quoted.push_str("\\a"),
            '\x08' => quoted.push_str("\\b"),
            '\x0c' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\x0b' => quoted.push_str("\\v"),
            '\0'..='\x1f' | '\x7f' => quoted.push_str(&format!("\\x{:02x}", u32::from(char))),
            _ if is_printable(char) => quoted.push(char),
            '\u{80}'..='\u{ffff}' => quoted.push_str(&format!("\\u{:04x}", u32::from(char))),
            _ => quoted.push_str(&format!("\\U{:08x}", u32::from(char))),
        }
    }
    quoted.push('"');
    quoted
}

/// A byte of the input as Go's decoders quote it in `invalid character 'x'`.
pub fn go_quote_byte(byte: u8) -> String {
    match byte {
        b'\'' => r"'\''".to_owned(),
        b'"' => r#"'"'"#.to_owned(),
        _ => {
            let quoted = go_quote(char::from(byte).encode_utf8(&mut [0; 4]));
            format!("'{}'", &quoted[1..quoted.len() - 1])
        }
    }
}

/// Whether Go prints `char` as it is: a letter, mark, number, punctuation, symbol or the ASCII space.
pub fn is_printable(char: char) -> bool {
    if char.is_ascii() {
        matches!(char, ' '..='~')
    } else {
        // The standard library escapes exactly the characters that are not printable, except that it also escapes a
        // mark at the start of a text.
        ['a', char].iter().collect::<String>().escape_debug().nth(1) == Some(char)
    }
}

/// The name of a value's type in the errors of Go's JSON decoder.
pub const fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Int(_) | Value::Float(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The type of unstructured content as Go's `%T` prints it.
pub const fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int64",
        Value::Float(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// A bad value as Go's `field.Error` prints it: texts quoted, numbers and booleans plain, the rest as JSON.
pub fn go_display(value: &Value) -> String {
    match value {
        Value::String(text) => go_quote(text),
        Value::Int(number) => number.to_string(),
        Value::Float(number) => number::format_float_v(*number),
        Value::Bool(truth) => truth.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => json::encode_to_string(value),
    }
}

/// A value as Go's `%v` prints unstructured content: texts bare, `map[a:1 b:2]`, `[1 2]`, `<nil>`.
pub fn go_print(value: &Value) -> String {
    let mut text = String::new();
    push_printed(&mut text, value);
    text
}

fn push_printed(text: &mut String, value: &Value) {
    work::step();
    match value {
        Value::Null => text.push_str("<nil>"),
        Value::Bool(truth) => text.push_str(if *truth { "true" } else { "false" }),
        Value::Int(number) => text.push_str(&number.to_string()),
        Value::Float(number) => text.push_str(&number::format_float_v(*number)),
        Value::String(string) => text.push_str(string),
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(' ');
                }
                push_printed(text, item);
            }
            text.push(']');
        }
        Value::Object(fields) => {
            text.push_str("map[");
            for (index, (name, field)) in fields.iter().enumerate() {
                if index > 0 {
                    text.push(' ');
                }
                text.push_str(name);
                text.push(':');
                push_printed(text, field);
            }
            text.push(']');
        }
    }
}

/// A number as Go's `%v` prints a double.
pub(crate) fn go_float(number: f64) -> String {
    match number {
        f64::INFINITY => "+Inf".to_owned(),
        f64::NEG_INFINITY => "-Inf".to_owned(),
        number if number.is_nan() => "NaN".to_owned(),
        number => number::format_float_v(number),
    }
}

/// A value as Go's `%#v` prints it, with objects of Go's type `map_type`.
pub(crate) fn go_syntax(value: &Value, map_type: &str) -> String {
    let mut text = String::new();
    push_syntax(&mut text, value, map_type);
    text
}

fn push_syntax(text: &mut String, value: &Value, map_type: &str) {
    work::step();
    match value {
        Value::Null => text.push_str("interface {}(nil)"),
        Value::Bool(truth) => text.push_str(if *truth { "true" } else { "false" }),
        Value::Int(number) => text.push_str(&number.to_string()),
        Value::Float(number) => text.push_str(&go_float(*number)),
        Value::String(string) => text.push_str(&go_quote(string)),
        Value::Array(items) => {
            text.push_str("[]interface {}{");
            for (index, item) in items.iter().enumerate() {
                text.push_str(if index > 0 { ", " } else { "" });
                push_syntax(text, item, map_type);
            }
            text.push('}');
        }
        Value::Object(fields) => {
            text.push_str(map_type);
            text.push('{');
            for (index, (name, field)) in fields.iter().enumerate() {
                text.push_str(if index > 0 { ", " } else { "" });
                text.push_str(&go_quote(name));
                text.push(':');
                push_syntax(text, field, map_type);
            }
            text.push('}');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoting_escapes_what_go_does_not_print() {
        let text = "a\0\x07\x08\x0c\n\r\t\x0b\x7f\u{301}é\u{ad}\u{2028}😀\u{e0001}\u{200b}\u{fffd} '\"\\";
        let quoted = r#""a\x00\a\b\f\n\r\t\v\x7f"#.to_owned()
            + "\u{301}é"
            + r"\u00ad\u2028😀\U000e0001\u200b"
            + "\u{fffd} '\\\"\\\\\"";
        assert_eq!(go_quote(text), quoted);
    }

    #[test]
    fn bytes_are_quoted_as_characters() {
        for (byte, quoted) in
            [(b'x', "'x'"), (b'\'', r"'\''"), (b'"', "'\"'"), (0xe9, "'é'"), (0x80, r"'\u0080'"), (0, r"'\x00'")]
        {
            assert_eq!(go_quote_byte(byte), quoted);
        }
    }

    #[test]
    fn bad_values_are_shown_as_go_shows_them() {
        assert_eq!(go_display(&Value::from("a\"b")), r#""a\"b""#);
        assert_eq!(go_display(&Value::Float(1e6)), "1e+06");
        assert_eq!(go_display(&crate::object! { "a" => Value::Null, "b" => "<" }), r#"{"a":null,"b":"\u003c"}"#);
    }
}
