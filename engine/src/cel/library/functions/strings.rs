//! Functions of texts.

use super::arguments::{int, list, part_of, range_in, text, value};
use super::formatting;
use crate::cel::eval::show::show;
use crate::cel::eval::value::Text;
use crate::cel::eval::{EvalError, Function, Value};
use crate::work;

/// DIFFERS: the longest text that a replacement or a join may make, in bytes. In Kubernetes the memory is the limit.
const RESULT_BYTES_MAX: usize = 64 << 20;

pub fn implementation(id: &str) -> Option<Function> {
    Some(match id {
        "contains_string" => |_, arguments| Ok(Value::Bool(text(arguments, 0)?.contains(text(arguments, 1)?.as_str()))),
        "starts_with_string" => {
            |_, arguments| Ok(Value::Bool(text(arguments, 0)?.starts_with(text(arguments, 1)?.as_str())))
        }
        "ends_with_string" => {
            |_, arguments| Ok(Value::Bool(text(arguments, 0)?.ends_with(text(arguments, 1)?.as_str())))
        }
        "string_char_at_int" => |_, arguments| char_at(text(arguments, 0)?, int(arguments, 1)?),
        "string_index_of_string" => |_, arguments| index_of(text(arguments, 0)?, text(arguments, 1)?, 0),
        "string_index_of_string_int" => {
            |_, arguments| index_of(text(arguments, 0)?, text(arguments, 1)?, int(arguments, 2)?)
        }
        "string_last_index_of_string" => |_, arguments| {
            let (text, wanted) = (text(arguments, 0)?, text(arguments, 1)?);
            match wanted.is_empty() {
                true => Ok(Value::Int(text.chars().count() as i64)),
                false => Ok(Value::Int(text.rfind(wanted.as_str()).map_or(-1, |at| place_of(text, at)))),
            }
        },
        "string_last_index_of_string_int" => {
            |_, arguments| last_index_of(text(arguments, 0)?, text(arguments, 1)?, int(arguments, 2)?)
        }
        "string_lower_ascii" => |_, arguments| {
            let text = value(arguments, 0)?;
            changed(text, |char| char.is_ascii_uppercase(), str::to_ascii_lowercase)
        },
        "string_upper_ascii" => |_, arguments| {
            let text = value(arguments, 0)?;
            changed(text, |char| char.is_ascii_lowercase(), str::to_ascii_uppercase)
        },
        "string_replace_string_string" => {
            |_, arguments| replace(text(arguments, 0)?, text(arguments, 1)?, text(arguments, 2)?, -1)
        }
        "string_replace_string_string_int" => {
            |_, arguments| replace(text(arguments, 0)?, text(arguments, 1)?, text(arguments, 2)?, int(arguments, 3)?)
        }
        "string_split_string" => |_, arguments| Ok(split(text(arguments, 0)?, text(arguments, 1)?, -1)),
        "string_split_string_int" => {
            |_, arguments| Ok(split(text(arguments, 0)?, text(arguments, 1)?, int(arguments, 2)?))
        }
        "string_substring_int" => |_, arguments| {
            let text = text(arguments, 0)?;
            let start = byte_at(text, int(arguments, 1)?)?;
            Ok(part_of(text, start..text.len()))
        },
        "string_substring_int_int" => {
            |_, arguments| substring(text(arguments, 0)?, int(arguments, 1)?, int(arguments, 2)?)
        }
        "string_trim" => |_, arguments| {
            let text = text(arguments, 0)?;
            Ok(part_of(text, range_in(text, text.trim())))
        },
        "strings_quote" => |_, arguments| Ok(Value::string(quote(text(arguments, 0)?))),
        "string_format" => |_, arguments| formatting::format(text(arguments, 0)?, list(arguments, 1)?),
        "list_join" => |_, arguments| join(arguments, ""),
        "list_join_string" => |_, arguments| join(arguments, text(arguments, 1)?),
        _ => return None,
    })
}

fn out_of_range(index: i64) -> EvalError {
    EvalError::new(format!("index out of range: {index}"))
}

/// How many characters stand before the byte `at`.
fn place_of(text: &str, at: usize) -> i64 {
    text[..at].chars().count() as i64
}

/// The byte at which the character `index` starts; the end of the text for the index behind the last one.
fn find_byte(text: &str, index: i64) -> Option<usize> {
    let index = usize::try_from(index).ok()?;
    if text.is_ascii() {
        return (index <= text.len()).then_some(index);
    }
    text.char_indices().map(|(at, _)| at).chain([text.len()]).nth(index)
}

fn byte_at(text: &str, index: i64) -> Result<usize, EvalError> {
    find_byte(text, index).ok_or_else(|| out_of_range(index))
}

fn char_at<'a>(text: &Text<'a>, index: i64) -> Result<Value<'a>, EvalError> {
    let start = byte_at(text, index)?;
    let length = text[start..].chars().next().map_or(0, char::len_utf8);
    Ok(part_of(text, start..start + length))
}

fn index_of<'a>(text: &str, wanted: &str, offset: i64) -> Result<Value<'a>, EvalError> {
    if offset < 0 {
        return Err(out_of_range(offset));
    }
    if wanted.is_empty() {
        return Ok(Value::Int(offset.min(text.chars().count() as i64)));
    }
    let found = find_byte(text, offset).and_then(|start| Some(start + text[start..].find(wanted)?));
    Ok(Value::Int(found.map_or(-1, |at| place_of(text, at))))
}

/// The last place at or before the character `offset`. An offset behind the text finds nothing.
fn last_index_of<'a>(text: &str, wanted: &str, offset: i64) -> Result<Value<'a>, EvalError> {
    if offset < 0 {
        return Err(out_of_range(offset));
    }
    if wanted.is_empty() {
        return Ok(Value::Int(offset.min(text.chars().count() as i64)));
    }
    let found = find_byte(text, offset).filter(|start| *start < text.len()).and_then(|start| {
        // What starts no later ends no later than this.
        let end = text.floor_char_boundary(start.saturating_add(wanted.len()));
        text[..end].rfind(wanted)
    });
    Ok(Value::Int(found.map_or(-1, |at| place_of(text, at))))
}

/// The text after `change`, or as it is if none of its characters is `affected`.
fn changed<'a>(
    value: &Value<'a>,
    affected: fn(char) -> bool,
    change: fn(&str) -> String,
) -> Result<Value<'a>, EvalError> {
    match value {
        Value::String(text) if text.contains(affected) => Ok(Value::string(change(text))),
        Value::String(_) => Ok(value.clone()),
        _ => Err(EvalError::no_such_overload()),
    }
}

/// The first `count` occurrences of `old` become `new`; all if the count is negative.
fn replace<'a>(text: &Text<'a>, old: &str, new: &str, count: i64) -> Result<Value<'a>, EvalError> {
    if old == new || count == 0 {
        return Ok(Value::String(text.clone()));
    }
    let occurrences = text.matches(old).count();
    let occurrences = usize::try_from(count).map_or(occurrences, |count| count.min(occurrences));
    let added = occurrences.saturating_mul(new.len());
    if text.len().saturating_add(added) > RESULT_BYTES_MAX {
        return Err(too_long());
    }
    work::bytes(text.len() + added);
    Ok(Value::string(text.replacen(old, new, occurrences)))
}

fn too_long() -> EvalError {
    EvalError::new(format!("string of more than {RESULT_BYTES_MAX} bytes"))
}

/// At most `count` parts, the last of which has the rest; all if the count is negative.
fn split<'a>(text: &Text<'a>, separator: &str, count: i64) -> Value<'a> {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let part = |part: &str| part_of(text, range_in(text, part));
    if count == 0 {
        return Value::list(Vec::new());
    }
    if !separator.is_empty() {
        return Value::list(text.splitn(count, separator).map(part).collect());
    }
    let mut parts = Vec::new();
    let mut rest = text.as_str();
    while let Some(first) = rest.chars().next() {
        let length = if parts.len() + 1 == count { rest.len() } else { first.len_utf8() };
        let (one, after) = rest.split_at(length);
        parts.push(part(one));
        rest = after;
    }
    Value::list(parts)
}

fn substring<'a>(text: &Text<'a>, start: i64, end: i64) -> Result<Value<'a>, EvalError> {
    if start > end {
        return Err(EvalError::new(format!("invalid substring range. start: {start}, end: {end}")));
    }
    let first = byte_at(text, start)?;
    let last = byte_at(text, end)?;
    Ok(part_of(text, first..last))
}

/// In double quotes, with the escapes of the language for what is no letter.
fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for char in text.chars() {
        match char {
            '\x07' => quoted.push_str("\\a"),
            '\x08' => quoted.push_str("\\b"),
            '\x0c' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\x0b' => quoted.push_str("\\v"),
            '\\' => quoted.push_str("\\\\"),
            '"' => quoted.push_str("\\\""),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

fn join<'a>(arguments: &[Value<'a>], separator: &str) -> Result<Value<'a>, EvalError> {
    let mut joined = String::new();
    for (place, item) in list(arguments, 0)?.iter().enumerate() {
        let item = item?;
        let Value::String(text) = &item else {
            return Err(EvalError::new(format!("join: invalid input: {}", show(&item))));
        };
        if place > 0 {
            joined.push_str(separator);
        }
        work::bytes(text.len() + separator.len());
        joined.push_str(text);
        if joined.len() > RESULT_BYTES_MAX {
            return Err(too_long());
        }
    }
    Ok(Value::string(joined))
}
