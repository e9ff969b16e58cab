//! `string.format(list)`, in the version that formats numbers for the locale en-US.
//!
//! Source: cel-go 0.29, strings extension version 2, which formats numbers with golang.org/x/text.

use super::arguments::double;
use super::conversion::to_text;
use crate::cel::calendar::{duration_text, timestamp_text};
use crate::cel::eval::error::TEXT_BYTES_MAX;
use crate::cel::eval::list::{List, SUM_ITEMS_MAX, too_many_items};
use crate::cel::eval::map::Map;
use crate::cel::eval::show::show;
use crate::cel::eval::{EvalError, Value};
use crate::value::{go_quote, number};
use crate::work;

const PRECISION: usize = 6;

/// Replaces the clauses of `template` by `arguments` in turn. `times` separates a number from its power of ten.
///
/// # Errors
/// There are fewer arguments than clauses, a clause is unknown, or an argument does not fit its clause.
pub fn format<'a>(template: &str, arguments: &List<'a>, times: &str) -> Result<Value<'a>, EvalError> {
    let mut out = Formatted { text: String::with_capacity(template.len()), room: SUM_ITEMS_MAX };
    let mut rest = template;
    let mut used = 0;
    while let Some((before, after)) = rest.split_once('%') {
        out.push(before).map_err(FormatError::into_eval)?;
        if let Some(after) = after.strip_prefix('%') {
            out.push("%").map_err(FormatError::into_eval)?;
            rest = after;
            continue;
        }
        let argument = arguments.get(used).ok_or_else(|| EvalError::new(format!("index {used} out of range")))?;
        if after.is_empty() {
            return Err(EvalError::new("unexpected end of string"));
        }
        let (clause, after) = Clause::read(after)
            .map_err(|error| EvalError::new(format!("could not parse formatting clause: {error}")))?;
        let filled = clause.fill(&Value::kept(argument), times, &mut out);
        filled.map_err(FormatError::into_eval)?;
        rest = after;
        used += 1;
    }
    out.push(rest).map_err(FormatError::into_eval)?;
    Ok(Value::string(out.text))
}

/// A result as far as it is made. It may be much longer than its arguments are large: the items of a list may share
/// their parts.
struct Formatted {
    text: String,
    /// How many more values may be within lists and maps.
    room: usize,
}

impl Formatted {
    fn push(&mut self, text: &str) -> Result<(), FormatError> {
        work::bytes(text.len());
        if self.text.len() + text.len() > TEXT_BYTES_MAX {
            return Err(EvalError::text_too_long().into());
        }
        self.text.push_str(text);
        Ok(())
    }
}

/// What Go says of a nil pointer.
const NIL_POINTER: &str = "runtime error: invalid memory address or nil pointer dereference";

/// An invalid clause, with cel-go's messages.
#[derive(Debug, thiserror::Error)]
enum ClauseError {
    #[error("unrecognized formatting clause \"{0}\"")]
    Unknown(char),
    #[error("error while parsing precision: could not find end of precision specifier")]
    OpenPrecision,
    #[error(
        "error while parsing precision: error while converting precision to integer: strconv.Atoi: parsing {quoted}: \
         {fault}",
        quoted = go_quote(digits)
    )]
    Precision { digits: String, fault: &'static str },
}

/// An argument that its clause does not accept, with cel-go's messages.
#[derive(Debug, thiserror::Error)]
enum FormatError {
    #[error("{what}, was given {given}")]
    Refused { what: &'static str, given: String },
    #[error("could not convert argument {} to string", go_quote(&.0.to_string()))]
    Argument(#[source] EvalError),
    #[error("no formatting function for {0}")]
    NoFunction(String),
    #[error("no formatting function for map key of type {0}")]
    NoKeyFunction(String),
    #[error("could not find key: {}", go_quote(.0))]
    NoKey(String),
    #[error(transparent)]
    Eval(#[from] EvalError),
}

impl FormatError {
    fn into_eval(self) -> EvalError {
        match self {
            FormatError::Eval(error) if error.is_final() => error,
            other => EvalError::new(format!("error during formatting: {other}")),
        }
    }
}

/// One clause: what follows a percent sign.
enum Clause {
    Text,
    Decimal,
    /// With this number of fraction digits; `None` for a precision that the reference's number formatter refuses.
    Fixed(Option<usize>),
    /// As in the reference, the precision is a width that is padded with spaces.
    Scientific {
        width: Option<usize>,
    },
    Binary,
    Hexadecimal {
        upper: bool,
    },
    Octal,
}

impl Clause {
    fn read(text: &str) -> Result<(Clause, &str), ClauseError> {
        let (precision, text) = read_precision(text)?;
        let mut chars = text.chars();
        let clause = match chars.next() {
            Some('s') => Clause::Text,
            Some('d') => Clause::Decimal,
            Some('f') => Clause::Fixed(precision.map_or(Some(PRECISION), printable)),
            Some('e') => Clause::Scientific { width: precision.map_or(Some(PRECISION), printable) },
            Some('b') => Clause::Binary,
            Some(char @ ('x' | 'X')) => Clause::Hexadecimal { upper: char == 'X' },
            Some('o') => Clause::Octal,
            _ => {
                // The reference treats a byte as a character.
                let byte = text.bytes().next().map_or(' ', char::from);
                return Err(ClauseError::Unknown(byte));
            }
        };
        Ok((clause, chars.as_str()))
    }

    /// Appends the argument to `out`.
    fn fill(&self, argument: &Value<'_>, times: &str, out: &mut Formatted) -> Result<(), FormatError> {
        let refused = |what| Err(FormatError::Refused { what, given: argument.type_name() });
        let text = match (self, argument) {
            (Clause::Text, _) => return push_text(argument, out),
            (Clause::Decimal, Value::Int(number)) => number.to_string(),
            (Clause::Decimal, Value::Uint(number)) => number.to_string(),
            (Clause::Decimal, _) => return refused("decimal clause can only be used on integers"),
            (Clause::Fixed(precision), _) => match as_double(argument) {
                Some(number) => fixed(number, *precision),
                None => return refused("fixed-point clause can only be used on doubles"),
            },
            (Clause::Scientific { width }, _) => match as_double(argument) {
                Some(number) => scientific(number, *width, times),
                None => return refused("scientific clause can only be used on doubles"),
            },
            (Clause::Binary, Value::Int(number)) => signed(*number, |size| format!("{size:b}")),
            (Clause::Binary, Value::Uint(number)) => format!("{number:b}"),
            (Clause::Binary, Value::Bool(truth)) => if *truth { "1" } else { "0" }.to_owned(),
            (Clause::Binary, _) => return refused("only integers and bools can be formatted as binary"),
            (Clause::Hexadecimal { upper }, _) => {
                let lower = match argument {
                    Value::Int(number) => signed(*number, |size| format!("{size:x}")),
                    Value::Uint(number) => format!("{number:x}"),
                    Value::String(text) => hexadecimal(text.as_bytes()),
                    Value::Bytes(bytes) => hexadecimal(bytes),
                    _ => return refused("only integers, byte buffers, and strings can be formatted as hex"),
                };
                if *upper { lower.to_ascii_uppercase() } else { lower }
            }
            (Clause::Octal, Value::Int(number)) => signed(*number, |size| format!("{size:o}")),
            (Clause::Octal, Value::Uint(number)) => format!("{number:o}"),
            (Clause::Octal, _) => return refused("octal clause can only be used on integers"),
        };
        out.push(&text)
    }
}

/// Reads the precision, a number after a `.`, if there is one. Returns it and the rest of the text.
fn read_precision(text: &str) -> Result<(Option<u64>, &str), ClauseError> {
    let Some(rest) = text.strip_prefix('.') else { return Ok((None, text)) };
    let count = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, rest) = rest.split_at(count);
    if rest.is_empty() {
        return Err(ClauseError::OpenPrecision);
    }
    let number: Option<i64> = digits.parse().ok();
    match number.map(i64::unsigned_abs) {
        Some(number) => Ok((Some(number), rest)),
        None => {
            let fault = if digits.is_empty() { "invalid syntax" } else { "value out of range" };
            Err(ClauseError::Precision { digits: digits.to_owned(), fault })
        }
    }
}

/// The reference's number formatter accepts a number in its patterns if the digits before the last one make at most a
/// million.
fn printable(number: u64) -> Option<usize> {
    usize::try_from(number).ok().filter(|number| number / 10 <= 1_000_000)
}

fn as_double(value: &Value<'_>) -> Option<f64> {
    match value {
        Value::Double(number) => Some(*number),
        Value::String(text) if matches!(text.as_str(), "NaN" | "Infinity" | "-Infinity") => number::parse_float(text),
        _ => None,
    }
}

fn signed(number: i64, print: fn(u64) -> String) -> String {
    let sign = if number < 0 { "-" } else { "" };
    format!("{sign}{}", print(number.unsigned_abs()))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

const NO_VERB: &str = "%!(NOVERB)";

/// The text of NaN and the infinities.
fn special(number: f64) -> Option<&'static str> {
    match number {
        _ if number.is_nan() => Some("NaN"),
        f64::INFINITY => Some("∞"),
        f64::NEG_INFINITY => Some("-∞"),
        _ => None,
    }
}

/// Formats a number like `1,234.500`.
fn fixed(number: f64, precision: Option<usize>) -> String {
    let Some(precision) = precision else { return NO_VERB.to_owned() };
    if let Some(special) = special(number) {
        return special.to_owned();
    }
    // The reference's formatter keeps the maximum number of digits in a signed 16-bit integer, and the minimum number
    // in 8 bits.
    let text = match usize::try_from(precision as i16) {
        Ok(most) => format!("{:.most$}", number.abs()),
        Err(_) => number::format_float_f(number.abs()),
    };
    let fewest = usize::from(precision as u8);
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let fraction = fraction.trim_end_matches('0');
    let mut out = String::from(if number < 0.0 { "-" } else { "" });
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if fewest > 0 || !fraction.is_empty() {
        out.push('.');
        out.push_str(fraction);
        out.extend(std::iter::repeat_n('0', fewest.saturating_sub(fraction.len())));
    }
    out
}

/// Formats a number like `1.234500×10⁰³`.
fn scientific(number: f64, width: Option<usize>, times: &str) -> String {
    let Some(width) = width else { return NO_VERB.to_owned() };
    let text = special(number).map_or_else(|| mantissa_and_power(number, times), str::to_owned);
    // The reference's formatter keeps the width in 16 bits.
    let missing = usize::from(width as u16).saturating_sub(text.chars().count());
    format!("{}{text}", " ".repeat(missing))
}

fn mantissa_and_power(number: f64, times: &str) -> String {
    const RAISED: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let text = format!("{:.PRECISION$e}", number.abs());
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (minus, exponent) = exponent.strip_prefix('-').map_or(("", exponent), |size| ("⁻", size));
    let raised: String =
        format!("{exponent:0>2}").bytes().filter_map(|digit| RAISED.get(usize::from(digit - b'0'))).collect();
    format!("{}{mantissa}{times}10{minus}{raised}", if number < 0.0 { "-" } else { "" })
}

/// Formats a value for `%s`.
fn push_text(value: &Value<'_>, out: &mut Formatted) -> Result<(), FormatError> {
    match value {
        Value::Null => out.push("null"),
        Value::List(list) => push_list(list, out),
        Value::Map(map) => push_map(map, out),
        Value::Bool(_)
        | Value::Int(_)
        | Value::Uint(_)
        | Value::Double(_)
        | Value::String(_)
        | Value::Bytes(_)
        | Value::Duration(_)
        | Value::Timestamp(_)
        | Value::Type(_) => out.push(&to_text(value).map_err(FormatError::Argument)?),
        other => Err(FormatError::Refused {
            what: "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, \
                   durations, and timestamps",
            given: other.type_name(),
        }),
    }
}

/// Formats a value inside a list or a map: as one would write it in an expression.
fn push_literal(value: &Value<'_>, out: &mut Formatted) -> Result<(), FormatError> {
    out.room = out.room.checked_sub(1).ok_or_else(too_many_items)?;
    match value {
        Value::String(text) => out.push(&go_quote(text)),
        Value::Bytes(_) => out.push(&format!("b{}", go_quote(&to_text(value).map_err(FormatError::Argument)?))),
        Value::Double(number) if number.is_finite() => out.push(&format!("{number:.PRECISION$}")),
        Value::Double(number) => out.push(&go_quote(&double(*number))),
        Value::Duration(length) => out.push(&format!("duration({})", go_quote(&duration_text(*length)))),
        Value::Timestamp(timestamp) => out.push(&format!("timestamp({})", go_quote(&timestamp_text(*timestamp)))),
        Value::Optional(_) | Value::Struct(_) | Value::Opaque(_) | Value::Preserved(_) | Value::Unfit(_) => {
            Err(FormatError::NoFunction(value.type_name()))
        }
        other => push_text(other, out),
    }
}

fn push_list(list: &List<'_>, out: &mut Formatted) -> Result<(), FormatError> {
    out.push("[")?;
    for (at, item) in list.values().enumerate() {
        if at > 0 {
            out.text.push_str(", ");
        }
        push_literal(&item, out)?;
    }
    out.push("]")
}

/// Formats the entries in the order of the map, so that the first one that can't be gives the error, and sorts them
/// then.
fn push_map(map: &Map<'_>, out: &mut Formatted) -> Result<(), FormatError> {
    let begin = out.text.len();
    let mut entries = Vec::with_capacity(map.len());
    for key in map.keys() {
        let from = out.text.len();
        match &key {
            Value::String(_) | Value::Bool(_) | Value::Int(_) | Value::Uint(_) => push_literal(&key, out)?,
            // The key of a field that the schema does not declare is a nil pointer in the reference.
            Value::Null if matches!(map, Map::Host { .. }) => {
                return Err(EvalError::Internal(NIL_POINTER.into()).into());
            }
            other => return Err(FormatError::NoKeyFunction(other.type_name())),
        }
        let key_end = out.text.len();
        let value = map.find(&key).transpose().ok_or_else(|| FormatError::NoKey(show(&key)))?;
        out.push(":")?;
        push_literal(&Value::kept(value), out)?;
        entries.push((from..key_end, from..out.text.len()));
    }
    let text = &out.text;
    entries.sort_by(|(left, _), (right, _)| text[left.clone()].cmp(&text[right.clone()]));
    let sorted: Vec<&str> = entries.into_iter().map(|(_, entry)| &text[entry]).collect();
    let sorted = format!("{{{}}}", sorted.join(", "));
    out.text.truncate(begin);
    out.push(&sorted)
}
