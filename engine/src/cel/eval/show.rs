//! Formats values in error messages, as Go's `%v` prints them.

use super::map::Map;
use super::value::{Timestamp, Value, type_name};
use crate::cel::calendar::timestamp_text;
use crate::cel::types::Type;
use crate::value::number::format_float_v;
use crate::value::{go_display, go_print, go_quote};

/// Formats `value` as Go prints it.
pub fn show(value: &Value<'_>) -> String {
    match value {
        Value::Null => "0".to_owned(),
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
        Value::List(list) => {
            let items: Vec<String> =
                list.iter().map(|item| item.map_or_else(|e| e.to_string(), |v| show(&v))).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Map(map) => {
            let entries: Vec<String> = map
                .entries()
                .into_iter()
                .map(|(key, value)| format!("{}: {}", show(&key), show(&value.unwrap_or_default())))
                .collect();
            format!("{{{}}}", entries.join(", "))
        }
        Value::Type(ty) => match type_name(ty) {
            list if list == "list" => "list(dyn)".to_owned(),
            map if map == "map" => "map(dyn, dyn)".to_owned(),
            optional if optional == Type::OPTIONAL => "optional_type(dyn)".to_owned(),
            name => name,
        },
        Value::Optional(None) => "optional.none()".to_owned(),
        Value::Optional(Some(value)) => format!("optional({})", show(value)),
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
    let shown = |value: Result<Value<'_>, _>| {
        value.map_or_else(|error: super::EvalError| error.to_string(), |value| literal(&value))
    };
    match value {
        Value::Null => "null".to_owned(),
        Value::String(text) => go_quote(text.as_str()),
        Value::List(list) => {
            let items: Vec<String> = list.iter().map(shown).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Map(map) => {
            let entries: Vec<String> = map
                .entries()
                .into_iter()
                .map(|(key, value)| format!("{}: {}", literal(&key), literal(&value.unwrap_or_default())))
                .collect();
            format!("{{{}}}", entries.join(", "))
        }
        Value::Optional(Some(value)) => format!("optional.of({})", literal(value)),
        Value::Preserved(json) => go_display(json),
        other => show(other),
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
