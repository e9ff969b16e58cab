//! Functions of strings, as in version 2 of cel-go's extension.

use super::arguments::{int, list, part_of, range_in, text, value};
use super::{formatting, since};
use crate::cel::cost::formula::{EACH_ELEMENT, TRAVERSE};
use crate::cel::cost::{Cost, Estimate, Range, Sizes, actual, model};
use crate::cel::eval::error::TEXT_BYTES_MAX;
use crate::cel::eval::show::show;
use crate::cel::eval::value::TextValue;
use crate::cel::eval::{EvalError, Value};
use crate::cel::function::{Calling, Function, Overload};
use crate::cel::types::Type::{self, Dyn, Int};
use crate::work;

/// The template is traversed, and nothing is known about the size of the result.
const FORMAT: Cost = Cost::of_overload(
    |sizes| Estimate::of(sizes.size(0).scale(model::TRAVERSAL)),
    |called| actual::scale(called.size(0), model::TRAVERSAL),
);

/// The text is traversed, and each character of the result may be escaped.
const QUOTE: Cost = Cost::of_overload(
    |sizes| {
        let size = sizes.size(0);
        // The products wrap around, as they do in the reference.
        let quoted = Range::new(size.min.wrapping_add(2), size.max.wrapping_mul(2).wrapping_add(2));
        Estimate::of(size.scale(model::TRAVERSAL)).with_result(quoted)
    },
    |called| actual::scale(called.size(0), model::TRAVERSAL),
);

/// The text is read and copied.
const REPLACE: Cost = Cost::of_name(
    |sizes| {
        let text = sizes.size(0);
        let result = replaced(text, sizes.size(1), sizes.size(2));
        Estimate::of(text.scale(model::TRAVERSAL_AND_COPY)).with_result(result)
    },
    |called| actual::scale(called.size(0), model::TRAVERSAL_AND_COPY),
);

/// The text is read and copied.
const SPLIT: Cost = Cost::of_name(
    |sizes| {
        let text = sizes.size(0);
        let parts = Range::new(0, sizes.int(2).map_or(text.max, |limit| limit as u64));
        Estimate::of(text.scale(model::TRAVERSAL_AND_COPY)).with_result(parts)
    },
    |called| actual::scale(called.size(0), model::TRAVERSAL_AND_COPY),
);

/// The result is written.
const JOIN: Cost = Cost::of_name(
    |sizes| {
        let joined = joined(sizes);
        Estimate::of(joined.scale(model::TRAVERSAL)).with_result(joined)
    },
    |called| actual::scale(called.result.size(), model::TRAVERSAL_AND_COPY),
);

pub(super) fn functions() -> Vec<Function> {
    let functions = vec![
        Function::new(
            "charAt",
            [Overload::member("string_char_at_int", [Type::String, Int], Type::String, Cost::One, |_, arguments| {
                char_at(text(arguments, 0)?, int(arguments, 1)?)
            })],
        ),
        Function::new(
            "format",
            [Overload::member(
                "string_format",
                [Type::String, Type::list(Dyn)],
                Type::String,
                FORMAT,
                |_, arguments| formatting::format(text(arguments, 0)?, list(arguments, 1)?, "×"),
            )
            .formerly(33, |_, arguments| {
                formatting::format(text(arguments, 0)?, list(arguments, 1)?, "\u{202f}×\u{202f}")
            })],
        )
        .calling(Calling { stops_at_failure: true, ..Calling::USUAL }),
        Function::new(
            "indexOf",
            [
                Overload::member(
                    "string_index_of_string",
                    [Type::String, Type::String],
                    Int,
                    EACH_ELEMENT,
                    |_, arguments| index_of(text(arguments, 0)?, text(arguments, 1)?, 0),
                ),
                Overload::member(
                    "string_index_of_string_int",
                    [Type::String, Type::String, Int],
                    Int,
                    EACH_ELEMENT,
                    |_, arguments| index_of(text(arguments, 0)?, text(arguments, 1)?, int(arguments, 2)?),
                )
                .formerly(32, |_, arguments| search_within(arguments, index_of))
                .formerly(37, |_, arguments| search_formerly(arguments, index_of)),
            ],
        ),
        Function::new(
            "join",
            [
                Overload::member("list_join", [Type::list(Type::String)], Type::String, JOIN, |_, arguments| {
                    join(arguments, "")
                }),
                Overload::member(
                    "list_join_string",
                    [Type::list(Type::String), Type::String],
                    Type::String,
                    JOIN,
                    |_, arguments| join(arguments, text(arguments, 1)?),
                ),
            ],
        ),
        Function::new(
            "lastIndexOf",
            [
                Overload::member(
                    "string_last_index_of_string",
                    [Type::String, Type::String],
                    Int,
                    EACH_ELEMENT,
                    |_, arguments| {
                        let (text, wanted) = (text(arguments, 0)?, text(arguments, 1)?);
                        if wanted.is_empty() {
                            return Ok(Value::Int(text.chars().count() as i64));
                        }
                        Ok(Value::Int(text.rfind(wanted.as_str()).map_or(-1, |at| place_of(text, at))))
                    },
                )
                .formerly(34, |_, arguments| {
                    // The search began at the last character, which an empty text does not have.
                    let (text, wanted) = (text(arguments, 0)?, text(arguments, 1)?);
                    match (text.is_empty(), wanted.is_empty()) {
                        (true, false) => Err(out_of_range(-1)),
                        (_, true) => Ok(Value::Int(text.chars().count() as i64)),
                        _ => Ok(Value::Int(text.rfind(wanted.as_str()).map_or(-1, |at| place_of(text, at)))),
                    }
                }),
                Overload::member(
                    "string_last_index_of_string_int",
                    [Type::String, Type::String, Int],
                    Int,
                    EACH_ELEMENT,
                    |_, arguments| last_index_of(text(arguments, 0)?, text(arguments, 1)?, int(arguments, 2)?),
                )
                .formerly(32, |_, arguments| search_within(arguments, last_index_of))
                .formerly(37, |_, arguments| search_formerly(arguments, last_index_of)),
            ],
        ),
        Function::new(
            "lowerAscii",
            [Overload::member("string_lower_ascii", [Type::String], Type::String, TRAVERSE, |_, arguments| {
                changed(value(arguments, 0)?, |char| char.is_ascii_uppercase(), str::to_ascii_lowercase)
            })],
        ),
        Function::new(
            "replace",
            [
                Overload::member(
                    "string_replace_string_string",
                    [Type::String, Type::String, Type::String],
                    Type::String,
                    REPLACE,
                    |_, arguments| replace(text(arguments, 0)?, text(arguments, 1)?, text(arguments, 2)?, -1),
                ),
                Overload::member(
                    "string_replace_string_string_int",
                    [Type::String, Type::String, Type::String, Int],
                    Type::String,
                    REPLACE,
                    |_, arguments| {
                        replace(text(arguments, 0)?, text(arguments, 1)?, text(arguments, 2)?, int(arguments, 3)?)
                    },
                ),
            ],
        ),
        Function::new(
            "split",
            [
                Overload::member(
                    "string_split_string",
                    [Type::String, Type::String],
                    Type::list(Type::String),
                    SPLIT,
                    |_, arguments| Ok(split(text(arguments, 0)?, text(arguments, 1)?, -1)),
                ),
                Overload::member(
                    "string_split_string_int",
                    [Type::String, Type::String, Int],
                    Type::list(Type::String),
                    SPLIT,
                    |_, arguments| Ok(split(text(arguments, 0)?, text(arguments, 1)?, int(arguments, 2)?)),
                ),
            ],
        ),
        Function::new(
            "strings.quote",
            [Overload::global("strings_quote", [Type::String], Type::String, QUOTE, |_, arguments| {
                Ok(Value::string(quote(text(arguments, 0)?)))
            })],
        ),
        Function::new(
            "substring",
            [
                Overload::member(
                    "string_substring_int",
                    [Type::String, Int],
                    Type::String,
                    TRAVERSE,
                    |_, arguments| {
                        let text = text(arguments, 0)?;
                        let start = byte_at(text, int(arguments, 1)?)?;
                        Ok(part_of(text, start..text.len()))
                    },
                ),
                Overload::member(
                    "string_substring_int_int",
                    [Type::String, Int, Int],
                    Type::String,
                    TRAVERSE,
                    |_, arguments| substring(text(arguments, 0)?, int(arguments, 1)?, int(arguments, 2)?),
                ),
            ],
        ),
        Function::new(
            "trim",
            [Overload::member("string_trim", [Type::String], Type::String, TRAVERSE, |_, arguments| {
                let text = text(arguments, 0)?;
                Ok(part_of(text, range_in(text, text.trim())))
            })],
        ),
        Function::new(
            "upperAscii",
            [Overload::member("string_upper_ascii", [Type::String], Type::String, TRAVERSE, |_, arguments| {
                changed(value(arguments, 0)?, |char| char.is_ascii_lowercase(), str::to_ascii_uppercase)
            })],
        ),
    ];
    functions.into_iter().flat_map(dated).collect()
}

/// Marks the functions that version 0 of the extension, to which new expressions of 1.29 are restricted, does not have.
fn dated(function: Function) -> Vec<Function> {
    let is_newer = matches!(function.name, "format" | "strings.quote");
    if is_newer { since(29, vec![function]) } else { vec![function] }
}

/// The size of the texts of a list joined, with the separator between them.
fn joined(sizes: &Sizes<'_, '_>) -> Range {
    let count = sizes.size(0);
    let elements = sizes.element_size(0).map_or_else(Range::default, |size| count.times(size));
    if sizes.count() < 2 {
        return elements;
    }
    let separators = Range::new(count.min.saturating_sub(1), count.max.saturating_sub(1));
    elements.plus(sizes.size(1).times(separators))
}

/// The size of `text` with `what` replaced by `with`.
fn replaced(text: Range, what: Range, with: Range) -> Range {
    // The number of replacements, and how much of the text remains.
    let (count_max, kept_max) = if what.min == 0 {
        // The empty text occurs before each character and at the end.
        (text.max.saturating_add(1), text.max)
    } else if with.max <= what.min {
        (0, text.max)
    } else {
        (divide(text.max, what.min), 0)
    };
    let (count_min, kept_min) = if what.max == 0 {
        (text.min.saturating_add(1), text.min)
    } else if what.max <= with.min {
        (0, text.min)
    } else {
        (divide(text.min, what.max), 0)
    };
    Range::new(count_min, count_max).times(with).plus(Range::new(kept_min, kept_max))
}

/// Divides, rounding up. A quotient that does not fit becomes 2^63, as Go converts it.
fn divide(size: u64, by: u64) -> u64 {
    let quotient = (size as f64 / by as f64).ceil();
    if quotient >= u64::MAX as f64 { 1 << 63 } else { quotient as u64 }
}

fn out_of_range(index: i64) -> EvalError {
    EvalError::new(format!("index out of range: {index}"))
}

/// The number of characters before the byte `at`.
fn place_of(text: &str, at: usize) -> i64 {
    text[..at].chars().count() as i64
}

/// The byte at which the character `index` starts; the end of the text for the index after the last character.
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

fn char_at<'a>(text: &TextValue<'a>, index: i64) -> Result<Value<'a>, EvalError> {
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

/// The last occurrence that starts at or before the character `offset`. With an offset beyond the text it finds
/// nothing.
fn last_index_of<'a>(text: &str, wanted: &str, offset: i64) -> Result<Value<'a>, EvalError> {
    if offset < 0 {
        return Err(out_of_range(offset));
    }
    if wanted.is_empty() {
        return Ok(Value::Int(offset.min(text.chars().count() as i64)));
    }
    let found = find_byte(text, offset).filter(|start| *start < text.len()).and_then(|start| {
        // An occurrence that starts at `start` or before ends no later than this.
        let end = text.floor_char_boundary(start.saturating_add(wanted.len()));
        text[..end].rfind(wanted)
    });
    Ok(Value::Int(found.map_or(-1, |at| place_of(text, at))))
}

/// `text.indexOf(wanted, offset)` or `text.lastIndexOf(wanted, offset)`.
type TextSearch<'a> = fn(&str, &str, i64) -> Result<Value<'a>, EvalError>;

/// Searches as before 1.37: an empty text is found at any offset.
fn search_formerly<'a>(arguments: &[Value<'_>], search: TextSearch<'a>) -> Result<Value<'a>, EvalError> {
    let (text, wanted, offset) = (text(arguments, 0)?, text(arguments, 1)?, int(arguments, 2)?);
    if wanted.is_empty() { Ok(Value::Int(offset)) } else { search(text, wanted, offset) }
}

/// Searches as before 1.32: also, an offset beyond the text is out of range.
fn search_within<'a>(arguments: &[Value<'_>], search: TextSearch<'a>) -> Result<Value<'a>, EvalError> {
    let (whole, wanted, offset) = (text(arguments, 0)?, text(arguments, 1)?, int(arguments, 2)?);
    let is_behind = usize::try_from(offset).is_ok_and(|offset| has_no_more_than(whole, offset));
    if !wanted.is_empty() && is_behind { Err(out_of_range(offset)) } else { search_formerly(arguments, search) }
}

/// Whether a text has at most `offset` characters.
fn has_no_more_than(text: &str, offset: usize) -> bool {
    text.chars().nth(offset).is_none()
}

/// Applies `change` to the text; returns it unchanged if none of its characters is `affected`.
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

/// Replaces the first `count` occurrences of `old` by `new`; all if the count is negative.
fn replace<'a>(text: &TextValue<'a>, old: &str, new: &str, count: i64) -> Result<Value<'a>, EvalError> {
    if old == new || count == 0 {
        return Ok(Value::String(text.clone()));
    }
    let occurrences = text.matches(old).count();
    let occurrences = usize::try_from(count).map_or(occurrences, |count| count.min(occurrences));
    let length = text.len() - occurrences * old.len();
    let mut replaced = with_room(length.saturating_add(occurrences.saturating_mul(new.len())))?;
    let mut kept_from = 0;
    for (at, old) in text.match_indices(old).take(occurrences) {
        replaced.push_str(&text[kept_from..at]);
        replaced.push_str(new);
        kept_from = at + old.len();
    }
    replaced.push_str(&text[kept_from..]);
    Ok(Value::string(replaced))
}

/// Makes room for a result of so many bytes: a long one is not to be copied while it grows.
fn with_room(length: usize) -> Result<String, EvalError> {
    if length > TEXT_BYTES_MAX {
        return Err(EvalError::text_too_long());
    }
    work::bytes(length);
    Ok(String::with_capacity(length))
}

/// Splits into at most `count` parts, the last of which has the rest; without a limit if the count is negative.
fn split<'a>(text: &TextValue<'a>, separator: &str, count: i64) -> Value<'a> {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let part = |part: &str| part_of(text, range_in(text, part));
    if count == 0 {
        return Value::texts(Vec::new());
    }
    if !separator.is_empty() {
        return Value::texts(text.splitn(count, separator).map(part).collect());
    }
    let mut parts = Vec::new();
    let mut rest = text.as_str();
    while let Some(first) = rest.chars().next() {
        let length = if parts.len() + 1 == count { rest.len() } else { first.len_utf8() };
        let (one, after) = rest.split_at(length);
        parts.push(part(one));
        rest = after;
    }
    Value::texts(parts)
}

fn substring<'a>(text: &TextValue<'a>, start: i64, end: i64) -> Result<Value<'a>, EvalError> {
    if start > end {
        return Err(EvalError::new(format!("invalid substring range. start: {start}, end: {end}")));
    }
    let first = byte_at(text, start)?;
    let last = byte_at(text, end)?;
    Ok(part_of(text, first..last))
}

/// Puts a text in double quotes, and escapes control characters, backslashes and quotes as CEL does.
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
    let items = list(arguments, 0)?;
    let mut length = items.len().saturating_sub(1).saturating_mul(separator.len());
    for item in items.values() {
        let Value::String(text) = &item else {
            return Err(EvalError::new(format!("join: invalid input: {}", show(&item))));
        };
        length = length.saturating_add(text.len());
    }
    let mut joined = with_room(length)?;
    for (place, item) in items.values().enumerate() {
        if place > 0 {
            joined.push_str(separator);
        }
        if let Value::String(text) = &item {
            joined.push_str(text);
        }
    }
    Ok(Value::string(joined))
}
