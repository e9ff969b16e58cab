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
    write(value, Form::Printed, &mut out);
    out
}

/// Formats `value` as a literal if it is or contains strings.
pub fn literal(value: &Value<'_>) -> String {
    let mut out = String::new();
    write(value, Form::Literal, &mut out);
    out
}

/// How a value and its parts are written.
#[derive(Clone, Copy)]
enum Form {
    Printed,
    Literal,
}

fn write(value: &Value<'_>, form: Form, out: &mut String) {
    let text = match (value, form) {
        (Value::List(list), _) => {
            return write_items(list.iter(), ['[', ']'], out, |item, out| match item {
                Ok(item) => write(&item, form, out),
                Err(error) => out.push_str(&error.to_string()),
            });
        }
        (Value::Map(map), _) => {
            return write_items(map.entries().into_iter(), ['{', '}'], out, |(key, value), out| {
                write(&key, form, out);
                out.push_str(": ");
                write(&value.unwrap_or_default(), form, out);
            });
        }
        (Value::Optional(Some(value)), _) => {
            out.push_str(if matches!(form, Form::Printed) { "optional(" } else { "optional.of(" });
            write(value, form, out);
            ")".to_owned()
        }
        (Value::Null, Form::Literal) => "null".to_owned(),
        (Value::String(text), Form::Literal) => go_quote(text.as_str()),
        (Value::Preserved(json), Form::Literal) => go_display(json),
        (Value::Null, Form::Printed) => "0".to_owned(),
        (Value::Bool(truth), _) => truth.to_string(),
        (Value::Int(number), _) => number.to_string(),
        (Value::Uint(number), _) => number.to_string(),
        (Value::Double(number), _) => show_double(*number),
        (Value::String(text), Form::Printed) => text.as_str().to_owned(),
        (Value::Bytes(bytes), _) => format!("[{}]", bytes.iter().map(u8::to_string).collect::<Vec<_>>().join(" ")),
        (Value::Duration(duration), _) => show_duration(duration.0),
        (Value::Type(ty), _) => match type_name(ty) {
            list if list == "list" => "list(dyn)".to_owned(),
            map if map == "map" => "map(dyn, dyn)".to_owned(),
            optional if optional == Type::OPTIONAL => "optional_type(dyn)".to_owned(),
            name => name,
        },
        (Value::Optional(None), _) => "optional.none()".to_owned(),
        (Value::Timestamp(timestamp), _) => show_timestamp(*timestamp),
        (Value::Struct(value), _) => value.name().to_owned(),
        (Value::Opaque(value), _) => value.shown(),
        (Value::Preserved(json), Form::Printed) => go_print(json),
        (Value::Unfit(error), _) => error.to_string(),
    };
    out.push_str(&text);
}

fn show_double(number: f64) -> String {
    match number {
        _ if number.is_nan() => "NaN".to_owned(),
        f64::INFINITY => "+Inf".to_owned(),
        f64::NEG_INFINITY => "-Inf".to_owned(),
        _ => format_float_v(number),
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
