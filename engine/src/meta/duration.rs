//! Durations as Go reads them, in nanoseconds.

use thiserror::Error;

use super::number::{NumberError, atoi};
use crate::value::go_quote;
use crate::work;

/// Reads `1h30m`, `-1.5s`, `.5ms`, `0` as Go's `time.ParseDuration` does; the limit is some 292 years either way.
pub fn parse(text: &str) -> Option<i64> {
    const LIMIT: u64 = 1 << 63;
    work::bytes(text.len());
    let negative = text.starts_with('-');
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let (whole, after) = rest.split_at(count_digits(rest));
        let (fraction, after) = match after.strip_prefix('.') {
            Some(after) => after.split_at(count_digits(after)),
            None => ("", after),
        };
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let end = after.bytes().position(|byte| byte == b'.' || byte.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        rest = after;
        let unit = nanos_of(unit)?;
        let whole: u64 = match whole.trim_start_matches('0') {
            "" => 0,
            digits => digits.parse().ok().filter(|number| *number <= LIMIT / unit)?,
        };
        let value = whole * unit + fraction_of(fraction, unit);
        if value > LIMIT {
            return None;
        }
        // Both are at most 2^63; twice that wraps to zero, in Go too.
        total = total.wrapping_add(value);
        if total > LIMIT {
            return None;
        }
    }
    if negative { Some((total as i64).wrapping_neg()) } else { i64::try_from(total).ok() }
}

/// Why a text is not a duration, in Go's words.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DurationError {
    /// A number without a unit.
    #[error("time: missing unit in duration {}", go_quote(.0))]
    MissingUnit(String),
    /// A unit that does not exist.
    #[error("time: unknown unit {} in duration {}", go_quote(.unit), go_quote(.text))]
    UnknownUnit {
        /// The unit.
        unit: String,
        /// The whole text.
        text: String,
    },
    /// Anything else.
    #[error("time: invalid duration {}", go_quote(.0))]
    Invalid(String),
    /// A text without a number and unit, where units may be words.
    #[error("unable to parse {0} as duration")]
    Wordless(String),
    /// A number that is too large, where units may be words.
    #[error(transparent)]
    Number(#[from] NumberError),
}

/// As [`parse`].
///
/// # Errors
///
/// The text is not a duration: `time: missing unit in duration "1"`.
pub fn parse_go(text: &str) -> Result<i64, DurationError> {
    parse(text).ok_or_else(|| match first_odd_unit(text) {
        Some("") => DurationError::MissingUnit(text.to_owned()),
        Some(unit) => DurationError::UnknownUnit { unit: unit.to_owned(), text: text.to_owned() },
        None => DurationError::Invalid(text.to_owned()),
    })
}

/// The first invalid unit, if there is no other error before it.
fn first_odd_unit(text: &str) -> Option<&str> {
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    while !rest.is_empty() {
        let (whole, after) = rest.split_at(count_digits(rest));
        let after_point = after.strip_prefix('.').unwrap_or(after);
        let digits = if after_point.len() < after.len() { count_digits(after_point) } else { 0 };
        let is_number = whole.len() + digits > 0;
        let is_large = whole.parse::<u64>().map_or(!whole.is_empty(), |number| number > 1 << 63);
        if !is_number || is_large {
            return None;
        }
        let after = &after_point[digits..];
        let end = after.bytes().position(|byte| byte == b'.' || byte.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        if nanos_of(unit).is_none() {
            return Some(unit);
        }
        rest = after;
    }
    None
}

/// A duration as Go prints it: `1h30m0s`, `1.5ms`, `0s`.
pub fn print_go(nanoseconds: i64) -> String {
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let all = nanoseconds.unsigned_abs();
    let with_unit = |unit: u64, name: &str| format!("{sign}{}{name}", with_fraction(all, unit));
    match all {
        0 => return "0s".to_owned(),
        1..1_000 => return with_unit(1, "ns"),
        1_000..1_000_000 => return with_unit(1_000, "\u{b5}s"),
        1_000_000..1_000_000_000 => return with_unit(1_000_000, "ms"),
        _ => {}
    }
    let (minutes, rest) = (all / 60_000_000_000, all % 60_000_000_000);
    let (hours, minutes) = (minutes / 60, minutes % 60);
    let seconds = with_fraction(rest, 1_000_000_000);
    match (hours, minutes) {
        (0, 0) => format!("{sign}{seconds}s"),
        (0, minutes) => format!("{sign}{minutes}m{seconds}s"),
        (hours, minutes) => format!("{sign}{hours}h{minutes}m{seconds}s"),
    }
}

/// A number of units, with as many digits after the point as necessary.
fn with_fraction(nanoseconds: u64, unit: u64) -> String {
    let (whole, rest) = (nanoseconds / unit, nanoseconds % unit);
    if rest == 0 {
        return whole.to_string();
    }
    let width = unit.ilog10() as usize;
    let digits = format!("{rest:0width$}");
    format!("{whole}.{}", digits.trim_end_matches('0'))
}

fn nanos_of(unit: &str) -> Option<u64> {
    Some(match unit {
        "ns" => 1,
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

/// `digits` after a point, of a unit of `unit` nanoseconds. Only as many digits count as fit 63 bits.
fn fraction_of(digits: &str, unit: u64) -> u64 {
    const LIMIT: u64 = 1 << 63;
    let (mut numerator, mut scale) = (0_u64, 1.0_f64);
    for digit in digits.bytes() {
        if numerator > (LIMIT - 1) / 10 {
            break;
        }
        let next = numerator * 10 + u64::from(digit - b'0');
        if next > LIMIT {
            break;
        }
        numerator = next;
        scale *= 10.0;
    }
    (numerator as f64 * (unit as f64 / scale)) as u64
}

fn count_digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

/// Reads the value of a field whose format is `duration`: as [`parse`], or numbers with units as words anywhere in the
/// text, `in 2 days`. A sum that is too large wraps.
///
/// # Errors
///
/// There is no number with a unit, or one is too large for 64 bits.
pub fn parse_lenient(text: &str) -> Result<i64, DurationError> {
    parse(text).map_or_else(|| parse_worded(text), Ok)
}

/// The words for units: the last of each may be the start of a longer word.
const WORDS: [(&[&str], &str, i64); 8] = [
    (&["ns"], "nano", 1),
    (&["us", "\u{b5}s"], "micro", 1_000),
    (&["ms"], "milli", 1_000_000),
    (&["s"], "sec", 1_000_000_000),
    (&["m"], "min", 60_000_000_000),
    (&["h", "hr"], "hour", 3_600_000_000_000),
    (&["d"], "day", 86_400_000_000_000),
    (&["w", "wk"], "week", 604_800_000_000_000),
];

fn parse_worded(text: &str) -> Result<i64, DurationError> {
    let is_space = |char: char| matches!(char, '\t' | '\n' | '\x0c' | '\r' | ' ');
    let mut total = None;
    let mut rest = text;
    while let Some(start) = rest.find(|char: char| char.is_ascii_digit()) {
        let number = &rest[start..];
        let (number, after_number) = number.split_at(count_digits(number));
        let word = after_number.trim_start_matches(is_space);
        let after = word.trim_start_matches(|char: char| char.is_ascii_alphabetic() || char == '\u{b5}');
        let unit = word[..word.len() - after.len()].to_ascii_lowercase();
        rest = after_number;
        if unit.is_empty() {
            continue;
        }
        rest = after;
        let number = atoi(number)?;
        for (words, start_of_word, nanos) in WORDS {
            if words.contains(&unit.as_str()) || unit.starts_with(start_of_word) {
                total = Some(total.unwrap_or(0_i64).wrapping_add(number.wrapping_mul(nanos)));
            }
        }
    }
    total.ok_or_else(|| DurationError::Wordless(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_reads_them() {
        for (text, nanos) in [
            ("0", 0),
            ("-1.5s", -1_500_000_000),
            ("1h30m", 5_400_000_000_000),
            (".5ms1us", 501_000),
            ("0.3333333333333333333h", 1_200_000_000_000),
            ("-9223372036854775808ns", i64::MIN),
        ] {
            assert_eq!(parse(text), Some(nanos), "{text}");
        }
        for text in ["", "-", "1", "1x", "s", ".s", "1d", "9223372036854775808ns", "99999999999999999999h"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn fields_may_use_words() {
        assert_eq!(parse_lenient("in 2 days, 3 sec"), Ok(172_803_000_000_000));
        assert_eq!(parse_lenient("1h"), Ok(3_600_000_000_000));
        assert_eq!(parse_lenient("3 y"), Err(DurationError::Wordless("3 y".to_owned())));
        let large = r#"strconv.Atoi: parsing "99999999999999999999": value out of range"#;
        let error = parse_lenient("1 day 99999999999999999999 s").expect_err("it is too large");
        assert_eq!(error.to_string(), large);
    }
}
