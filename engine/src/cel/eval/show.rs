//! Formats values in error messages, as Go's `%v` prints them, up to [`SHOWN_BYTES_MAX`].

use super::map::Map;
use super::value::{Timestamp, Value, type_name};
use crate::cel::calendar::timestamp_text;
use crate::cel::types::Type;
use crate::meta::OBJECT_BYTES_MAX;
use crate::value::number::format_float_v;
use crate::value::{go_display, go_print, go_quote};
use crate::work;

/// How long a text becomes before the rest of its lists and maps is left out. It would be longer only of values that
/// share their parts: an object has no more bytes.
const SHOWN_BYTES_MAX: usize = OBJECT_BYTES_MAX;

/// Formats `value` as Go prints it.
pub fn show(value: &Value<'_>) -> String {
    let mut out = String::new();
    write_shown(value, &mut out);
    out
}

fn write_shown(value: &Value<'_>, out: &mut String) {
    match value {
        Value::List(list) => write_items(list.iter(), ['[', ']'], out, |item, out| match item {
            Ok(item) => write_shown(&item, out),
            Err(error) => out.push_str(&error.to_string()),
        }),
        Value::Map(map) => write_items(map.entries().into_iter(), ['{', '}'], out, |(key, value), out| {
            write_shown(&key, out);
            out.push_str(": ");
            write_shown(&value.unwrap_or_default(), out);
        }),
        Value::Optional(Some(value)) => {
            out.push_str("optional(");
            write_shown(value, out);
            out.push(')');
        }
        other => out.push_str(&shown_alone(other)),
    }
}

/// Writes items between brackets, until the text is long enough.
fn write_items<T>(
    items: impl Iterator<Item = T>,
    [open, close]: [char; 2],
    out: &mut String,
    write: impl Fn(T, &mut String),
) {
    out.push(open);
    for (at, item) in items.enumerate() {
        work::step();
        if at > 0 {
            out.push_str(", ");
        }
        if out.len() > SHOWN_BYTES_MAX {
            out.push_str("...");
            break;
        }
        write(item, out);
    }
    out.push(close);
}

/// [`show`] for what has no parts.
fn shown_alone(value: &Value<'_>) -> String {
    match value {
        Value::Null | Value::List(_) | Value::Map(_) | Value::Optional(Some(_)) => "0".to_owned(),
        Value::Bool(truth) => truth.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Uint(number) => number.to_string(),
        Value::Double(number) if number.is_nan() => "NaN".to_owned(),
        Value::Double(number) if number.is_infinite() => if *number > 0.0 { "+Inf" } else { "-Inf" }.to_owned(),
        Value::Double(number) => format_float_v(*number),
        Value::String(text) => text.as_str().to_owned(),
        Value::Bytes(bytes) => {
            let bytes: Vec<String> = bytes.iter().map(u8::to_string).collect();
            format!("[{}]", bytes.join(" "))
        }
        Value::Duration(duration) => show_duration(duration.0),
        Value::Type(ty) => match type_name(ty) {
            list if list == "list" => "list(dyn)".to_owned(),
            map if map == "map" => "map(dyn, dyn)".to_owned(),
            optional if optional == Type::OPTIONAL => "optional_type(dyn)".to_owned(),
            name => name,
        },
        Value::Optional(None) => "optional.none()".to_owned(),
        Value::Timestamp(timestamp) => show_timestamp(*timestamp),
        Value::Struct(value) => value.name().to_owned(),
        Value::Opaque(value) => value.shown(),
        Value::Preserved(json) => go_print(json),
        Value::Unfit(error) => error.to_string(),
    }
}

/// Formats a time like `2026-01-02 03:04:05.5 +0100 +0100`.
fn show_timestamp(timestamp: Timestamp) -> String {
    let seconds = timestamp.seconds + i64::from(timestamp.offset_seconds);
    let written = timestamp_text(Timestamp { seconds, offset_seconds: 0, ..timestamp });
    let local = written.trim_end_matches('Z').replacen('T', " ", 1);
    let minutes = timestamp.offset_seconds / 60;
    let sign = if minutes < 0 { '-' } else { '+' };
    let offset = format!("{sign}{:02}{:02}", minutes.abs() / 60, minutes.abs() % 60);
    let name = if timestamp.offset_seconds == 0 { "UTC" } else { &offset };
    format!("{local} {offset} {name}")
}

/// Formats `value` as a literal if it is or contains strings.
pub fn literal(value: &Value<'_>) -> String {
    let mut out = String::new();
    write_literal(value, &mut out);
    out
}

fn write_literal(value: &Value<'_>, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::String(text) => out.push_str(&go_quote(text.as_str())),
        Value::List(list) => write_items(list.iter(), ['[', ']'], out, |item, out| match item {
            Ok(item) => write_literal(&item, out),
            Err(error) => out.push_str(&error.to_string()),
        }),
        Value::Map(map) => write_items(map.entries().into_iter(), ['{', '}'], out, |(key, value), out| {
            write_literal(&key, out);
            out.push_str(": ");
            write_literal(&value.unwrap_or_default(), out);
        }),
        Value::Optional(Some(value)) => {
            out.push_str("optional.of(");
            write_literal(value, out);
            out.push(')');
        }
        Value::Preserved(json) => out.push_str(&go_display(json)),
        other => write_shown(other, out),
    }
}

/// Formats a duration like `1h30m0.5s`.
fn show_duration(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let nanos = nanos.unsigned_abs();
    let decimal = |unit: u64, name: &str| {
        let (whole, rest) = (nanos / unit, nanos % unit);
        let digits = format!("{:0width$}", rest, width = unit.ilog10() as usize);
        match digits.trim_end_matches('0') {
            "" => format!("{sign}{whole}{name}"),
            fraction => format!("{sign}{whole}.{fraction}{name}"),
        }
    };
    match nanos {
        0 => "0s".to_owned(),
        1..1_000 => format!("{sign}{nanos}ns"),
        1_000..1_000_000 => decimal(1_000, "\u{b5}s"),
        1_000_000..1_000_000_000 => decimal(1_000_000, "ms"),
        _ => {
            let minutes = nanos / 60_000_000_000;
            let seconds = nanos % 60_000_000_000;
            let fraction = format!("{:09}", seconds % 1_000_000_000);
            let point = if fraction == "000000000" { "" } else { "." };
            let clock = format!("{}{point}{}s", seconds / 1_000_000_000, fraction.trim_end_matches('0'));
            match (minutes / 60, minutes % 60) {
                (0, 0) => format!("{sign}{clock}"),
                (0, minutes) => format!("{sign}{minutes}m{clock}"),
                (hours, minutes) => format!("{sign}{hours}h{minutes}m{clock}"),
            }
        }
    }
}

/// The Go type of a value, which a few errors show.
pub(super) fn go_type(value: &Value<'_>) -> &'static str {
    match value {
        Value::Null => "types.Null",
        Value::Bool(_) => "types.Bool",
        Value::Int(_) => "types.Int",
        Value::Uint(_) => "types.Uint",
        Value::Double(_) => "types.Double",
        Value::String(_) => "types.String",
        Value::Bytes(_) => "types.Bytes",
        Value::Duration(_) => "types.Duration",
        Value::Timestamp(_) => "types.Timestamp",
        Value::List(list) => list.go_type(),
        Value::Map(Map::Host { .. }) => "*common.unstructuredMap",
        Value::Map(_) => "*types.baseMap",
        Value::Type(_) => "*types.Type",
        Value::Optional(_) => "*types.Optional",
        Value::Struct(value) if value.is_json_patch() => "*mutation.JSONPatchVal",
        Value::Struct(_) => "*dynamic.ObjectVal",
        Value::Opaque(value) => value.go_type(),
        Value::Preserved(_) => "*common.unknownPreserved",
        Value::Unfit(_) => "*types.Err",
    }
}
