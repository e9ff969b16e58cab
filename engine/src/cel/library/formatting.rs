//! `string.format(list)`, in the version that formats numbers for the locale en-US.
//!
//! Source: cel-go 0.29, strings extension version 2, which formats numbers with golang.org/x/text.

use super::arguments::double;
use super::conversion::to_text;
use crate::cel::calendar::{duration_text, timestamp_text};
use crate::cel::eval::list::List;
use crate::cel::eval::map::Map;
use crate::cel::eval::show::show;
use crate::cel::eval::{EvalError, Value};
use crate::value::{go_quote, number};

const PRECISION: usize = 6;

/// Replaces the clauses of `template` by `arguments` in turn. `times` separates a number from its power of ten.
///
/// # Errors
/// There are fewer arguments than clauses, a clause is unknown, or an argument does not fit its clause.
pub fn format<'a>(template: &str, arguments: &List<'a>, times: &str) -> Result<Value<'a>, EvalError> {
    let mut out = String::with_capacity(template.len());
    let mut rest = template;
    let mut used = 0;
    while let Some((before, after)) = rest.split_once('%') {
        out.push_str(before);
        if let Some(after) = after.strip_prefix('%') {
            out.push('%');
            rest = after;
            continue;
        }
        let argument = arguments.get(used).ok_or_else(|| EvalError::new(format!("index {used} out of range")))?;
        if after.is_empty() {
            return Err(EvalError::new("unexpected end of string"));
        }
        let (clause, after) = Clause::read(after)
            .map_err(|error| EvalError::new(format!("could not parse formatting clause: {error}")))?;
        let filled = clause.fill(&Value::kept(argument), times);
        out.push_str(&filled.map_err(FormatError::into_eval)?);
        rest = after;
        used += 1;
    }
    out.push_str(rest);
    Ok(Value::string(out))
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

    fn fill(&self, argument: &Value<'_>, times: &str) -> Result<String, FormatError> {
        let refused = |what| Err(FormatError::Refused { what, given: argument.type_name() });
        match (self, argument) {
            (Clause::Text, _) => to_string(argument),
            (Clause::Decimal, Value::Int(number)) => Ok(number.to_string()),
            (Clause::Decimal, Value::Uint(number)) => Ok(number.to_string()),
            (Clause::Decimal, _) => refused("decimal clause can only be used on integers"),
            (Clause::Fixed(precision), _) => match as_double(argument) {
                Some(number) => Ok(fixed(number, *precision)),
                None => refused("fixed-point clause can only be used on doubles"),
            },
            (Clause::Scientific { width }, _) => match as_double(argument) {
                Some(number) => Ok(scientific(number, *width, times)),
                None => refused("scientific clause can only be used on doubles"),
            },
            (Clause::Binary, Value::Int(number)) => Ok(signed(*number, |size| format!("{size:b}"))),
            (Clause::Binary, Value::Uint(number)) => Ok(format!("{number:b}")),
            (Clause::Binary, Value::Bool(truth)) => Ok(if *truth { "1" } else { "0" }.to_owned()),
            (Clause::Binary, _) => refused("only integers and bools can be formatted as binary"),
            (Clause::Hexadecimal { upper }, _) => {
                let lower = match argument {
                    Value::Int(number) => signed(*number, |size| format!("{size:x}")),
                    Value::Uint(number) => format!("{number:x}"),
                    Value::String(text) => hexadecimal(text.as_bytes()),
                    Value::Bytes(bytes) => hexadecimal(bytes),
                    _ => return refused("only integers, byte buffers, and strings can be formatted as hex"),
                };
                Ok(if *upper { lower.to_ascii_uppercase() } else { lower })
            }
            (Clause::Octal, Value::Int(number)) => Ok(signed(*number, |size| format!("{size:o}"))),
            (Clause::Octal, Value::Uint(number)) => Ok(format!("{number:o}")),
            (Clause::Octal, _) => refused("octal clause can only be used on integers"),
        }
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
fn to_string(value: &Value<'_>) -> Result<String, FormatError> {
    match value {
        Value::Null => Ok("null".to_owned()),
        Value::List(list) => list_text(list),
        Value::Map(map) => map_text(map),
        Value::Bool(_)
        | Value::Int(_)
        | Value::Uint(_)
        | Value::Double(_)
        | Value::String(_)
        | Value::Bytes(_)
        | Value::Duration(_)
        | Value::Timestamp(_)
        | Value::Type(_) => to_text(value).map_err(FormatError::Argument),
        other => Err(FormatError::Refused {
            what: "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, \
                   durations, and timestamps",
            given: other.type_name(),
        }),
    }
}

/// Formats a value inside a list or a map: as one would write it in an expression.
fn literal(value: &Value<'_>) -> Result<String, FormatError> {
    Ok(match value {
        Value::String(text) => go_quote(text),
        Value::Bytes(_) => format!("b{}", go_quote(&to_string(value)?)),
        Value::Double(number) if number.is_finite() => format!("{number:.PRECISION$}"),
        Value::Double(number) => go_quote(&double(*number)),
        Value::Duration(length) => format!("duration({})", go_quote(&duration_text(*length))),
        Value::Timestamp(timestamp) => format!("timestamp({})", go_quote(&timestamp_text(*timestamp))),
        Value::Optional(_) | Value::Struct(_) | Value::Opaque(_) | Value::Preserved(_) | Value::Unfit(_) => {
            return Err(FormatError::NoFunction(value.type_name()));
        }
        other => to_string(other)?,
    })
}

fn list_text(list: &List<'_>) -> Result<String, FormatError> {
    let items: Result<Vec<String>, FormatError> = list.values().map(|item| literal(&item)).collect();
    Ok(format!("[{}]", items?.join(", ")))
}

fn map_text(map: &Map<'_>) -> Result<String, FormatError> {
    let mut entries = Vec::with_capacity(map.len());
    for key in map.keys() {
        let text = match &key {
            Value::String(_) | Value::Bool(_) | Value::Int(_) | Value::Uint(_) => literal(&key)?,
            // The key of a field that the schema does not declare is a nil pointer in the reference.
            Value::Null if matches!(map, Map::Host { .. }) => {
                return Err(EvalError::Internal(NIL_POINTER.into()).into());
            }
            other => return Err(FormatError::NoKeyFunction(other.type_name())),
        };
        let value = map.find(&key).transpose().ok_or_else(|| FormatError::NoKey(show(&key)))?;
        entries.push((text, literal(&Value::kept(value))?));
    }
    entries.sort_by(|(left, _), (right, _)| left.cmp(right));
    let entries: Vec<String> = entries.into_iter().map(|(key, value)| format!("{key}:{value}")).collect();
    Ok(format!("{{{}}}", entries.join(", ")))
}
