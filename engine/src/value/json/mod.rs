//! JSON: bytes to [`Value`](super::Value) and back, as Kubernetes' servers read and write it.
//!
//! Decoding never refuses a text for its encoding: bytes that are not UTF-8, and unpaired surrogates, become U+FFFD.
//! The last value of a repeated field wins. Nesting is limited to [`DEPTH_MAX`] levels, without recursion.
//!
//! # Why not serde_json
//!
//! Error texts are Go's, to the byte and with its quirks, and clients see them; invalid UTF-8 and lone surrogates
//! become U+FFFD instead of errors; duplicates are reported by path; 10,000 levels are read without recursion. A
//! `Visitor` over serde_json would have needed all of this around it. Tests use serde_json as an independent reader.
//!
//! Source: `sigs.k8s.io/json` and Go's `encoding/json`; the errors are theirs, byte for byte.

mod decode;
mod encode;
mod repeated;
mod tape;
mod arrange;
mod word;

pub use arrange::arrange_into;
pub use decode::{DEPTH_MAX, JsonError, decode, decode_leaving, decode_within_range, tally, text_of};
pub use encode::{
    FieldOrder, Layout, encode, encode_as, encode_fields, encode_into, encode_string, encode_to_string, indent,
    indent_within,
};
pub(crate) use encode::{encode_as_into, encode_text};
pub use repeated::{RepeatedField, decode_strict};
pub use tape::{Tape, TextNode, TextTree};
pub(crate) use word::{next_quote_or_backslash, plain_start};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{Value, with_a_deep_stack};
    use crate::work;

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
    fn what_is_left_unread_is_what_it_would_be() {
        const PATHS: &[&[&str]] = &[&["m", "l", "*", "f"], &["s"]];
        let leave = |text: &str| decode_leaving(text.as_bytes(), PATHS);
        let unread = |value: &Value| value.items_at(&["m", "l"])[0].get("f").and_then(Value::as_object).cloned();
        let text =
            r#"{"f":{"f":{}},"m":{"f":{},"l":[{"e":[{}],"f":{"\\\"}":["}{\\",{"a":1}],"b":{}}},{"f":{}},{"f":[]}]}}"#;
        let left = leave(text).expect("it is JSON");
        assert_eq!(unread(&left).expect("it is there").json_text(), Some(r#"{"\\\"}":["}{\\",{"a":1}],"b":{}}"#));
        assert_eq!(Ok(&left), decode(text.as_bytes()).as_ref());
        assert_eq!(encode_to_string(&left), text);
        for elsewhere in [r#"{"m":{"l":[[{"f":{}}]]}}"#, r#"{"m":{"x":[{"f":{}}]}}"#, r#"{"x":{"l":[{"f":{}}]}}"#] {
            let read = leave(elsewhere).expect("it is JSON");
            assert!(!format!("{read:?}").contains("Unread"), "{elsewhere}");
        }
        let whole = leave(r#"{"m":{"s":{}},"s":{"a":[1]}}"#).expect("it is JSON");
        let texts = [&["s"][..], &["m", "s"]].map(|path| whole.at(path).and_then(Value::as_object)?.json_text());
        assert_eq!(texts, [Some(r#"{"a":[1]}"#), None]);
        for cut in 1..text.len() {
            assert!(leave(&text[..cut]).is_err(), "{}", &text[..cut]);
        }
        let deep = format!(r#"{{"m":{{"l":[{{"f":{}{}}}]}}}}"#, r#"{"a":"#.repeat(DEPTH_MAX), "}".repeat(DEPTH_MAX));
        assert!(leave(&deep).is_err_and(|error| error.to_string().contains("exceeded max depth")));
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
    fn characters_are_escaped_wherever_they_stand() {
        let characters = (0..=0x7f).map(char::from).chain("éâ\u{2027}\u{2028}\u{2029}\u{202a}\u{ffff}😀".chars());
        for character in characters {
            let alone = encode_to_string(&Value::String(character.into()));
            let escaped = alone.trim_start_matches('"');
            let escaped = if character == '"' { "\\\"" } else { escaped.trim_end_matches('"') };
            for before in 0..18 {
                for after in [0, 1, 7, 8, 9] {
                    let (before, after) = ("a".repeat(before), "z~".repeat(after));
                    let text = encode_to_string(&Value::String(format!("{before}{character}{character}{after}")));
                    assert_eq!(text, format!("\"{before}{escaped}{escaped}{after}\""));
                    assert_eq!(
                        decode(text.as_bytes()),
                        Ok(Value::String(format!("{before}{character}{character}{after}")))
                    );
                }
            }
        }
        assert_eq!(encode_to_string(&Value::String("<\u{1f}\u{2028}\t\\".into())), r#""\u003c\u001f\u2028\t\\""#);
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
