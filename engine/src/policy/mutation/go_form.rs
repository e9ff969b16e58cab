//! Formats values that JSON cannot represent as Go prints them.
//!
//! `%#v` prints the addresses of pointers, which differ between servers: each is `0x0` here.

use crate::cel::eval::Value as Cel;
use crate::cel::eval::show::show;
use crate::cel::eval::value::{Opaque, pointer_syntax};
use crate::cel::library::timestamp_syntax;
use crate::value::go_quote;

/// The Go type of a value that JSON cannot represent, and its text by `%v` and by `%#v`.
pub(super) fn go_form(value: &Cel<'_>) -> (&'static str, String, String) {
    match value {
        Cel::Null => ("structpb.NullValue", "NULL_VALUE".to_owned(), "0".to_owned()),
        Cel::Uint(number) => ("uint64", number.to_string(), format!("{number:#x}")),
        Cel::Bytes(bytes) => ("[]uint8", show(value), format!("[]uint8{{{}}}", byte_syntax(bytes))),
        Cel::Duration(length) => ("time.Duration", show(value), length.0.to_string()),
        Cel::Timestamp(time) => ("time.Time", show(value), timestamp_syntax(*time)),
        Cel::List(list) if list.is_texts() => {
            let items: Vec<Cel<'_>> = list.values().collect();
            let form = |form: fn(&Cel<'_>) -> String, separator: &str| {
                items.iter().map(form).collect::<Vec<_>>().join(separator)
            };
            ("[]string", format!("[{}]", form(show, " ")), format!("[]string{{{}}}", form(syntax, ", ")))
        }
        Cel::List(list) => {
            let items = |form: fn(&Cel<'_>) -> String, separator: &str| {
                let items: Vec<String> = list.iter().map(|item| form(&item.unwrap_or_default())).collect();
                items.join(separator)
            };
            let (printed, syntax) = (items(show, " "), items(syntax, ", "));
            ("[]ref.Val", format!("[{printed}]"), format!("[]ref.Val{{{syntax}}}"))
        }
        Cel::Map(map) => {
            let entries = |form: fn(&Cel<'_>) -> String, separator: &str| {
                let mut entries: Vec<String> = map
                    .entries()
                    .into_iter()
                    .map(|(key, value)| format!("{}:{}", form(&key), form(&value.unwrap_or_default())))
                    .collect();
                entries.sort_unstable();
                entries.join(separator)
            };
            let (printed, syntax) = (entries(show, " "), entries(syntax, ", "));
            ("map[ref.Val]ref.Val", format!("map[{printed}]"), format!("map[ref.Val]ref.Val{{{syntax}}}"))
        }
        Cel::Opaque(opaque) => {
            let (go_type, syntax) = opaque.native();
            (go_type, show(value), syntax)
        }
        other => ("ref.Val", show(other), show(other)),
    }
}

/// Formats a value within another one by `%#v`; it still has the evaluator's own type.
fn syntax(value: &Cel<'_>) -> String {
    match value {
        Cel::String(text) => go_quote(text),
        Cel::Uint(number) => format!("{number:#x}"),
        Cel::Bytes(bytes) => format!("types.Bytes{{{}}}", byte_syntax(bytes)),
        Cel::Duration(length) => format!("types.Duration{{Duration:{}}}", length.0),
        Cel::Timestamp(time) => timestamp_syntax(*time),
        Cel::List(_) => pointer_syntax("*types.baseList"),
        Cel::Map(_) => pointer_syntax("*types.baseMap"),
        Cel::Type(_) => pointer_syntax("*types.Type"),
        Cel::Optional(_) => pointer_syntax("*types.Optional"),
        Cel::Opaque(opaque) => wrapped_syntax(&**opaque),
        other => show(other),
    }
}

/// Formats the wrapper of a library's value by `%#v`: a struct with the value as its only field, which is named like
/// its type.
fn wrapped_syntax(value: &dyn Opaque) -> String {
    let wrapper = value.go_type();
    if wrapper.starts_with('*') {
        return pointer_syntax(wrapper);
    }
    match value.native() {
        (same, syntax) if same == wrapper => syntax,
        (native, syntax) => {
            let field = native.rsplit('.').next().unwrap_or(native);
            format!("{wrapper}{{{field}:{syntax}}}")
        }
    }
}

fn byte_syntax(bytes: &[u8]) -> String {
    let bytes: Vec<String> = bytes.iter().map(|byte| format!("{byte:#x}")).collect();
    bytes.join(", ")
}
