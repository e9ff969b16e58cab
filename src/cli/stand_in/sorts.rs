//! The sorts of flag values, and Go's errors for invalid ones.
//!
//! Input: a sort and a text. Output: nothing, or the error of the Go function that parses it, without the
//! flag's name.
//! Source: Go's `strconv` and `time`, `github.com/spf13/pflag`, and the sorts that
//! `k8s.io/component-base` and `k8s.io/apimachinery` add, release 1.36.

use std::net::IpAddr;
use std::num::IntErrorKind;
use std::time::Duration;

use thiserror::Error;

use crate::kinds::services::allocate::PortRange;
use crate::meta::quantity::Quantity;
use crate::value::go_quote;

/// The highest log level.
const LEVEL_MAX: u64 = (1 << 31) - 1;

/// The sort of a flag's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    Text,
    /// Texts, separated by commas.
    List,
    /// An integer in decimal, or with a prefix: `0x`, `0o`, `0b` or `0`.
    Int,
    /// An integer that is not negative.
    Uint,
    /// Integers, separated by commas.
    Ints,
    Float,
    /// The verbosity of the log: not negative; may directly follow a single dash and the name, as
    /// in `-v2`.
    Level,
    /// `FILE=LEVEL`, separated by commas.
    FileLevels,
    Duration,
    /// The value may only follow `=`.
    Bool,
    /// An IP address.
    Address,
    Ports,
    Quantity,
    /// `KEY=VALUE`, separated by commas.
    Pairs,
}

/// Why a text is not a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NumberError {
    #[error("invalid syntax")]
    Syntax,
    #[error("value out of range")]
    Range,
}

impl Sort {
    /// Parses a sort in the tables of flags.
    pub fn parse(text: &str) -> Self {
        match text {
            "list" => Sort::List,
            "int" => Sort::Int,
            "uint" => Sort::Uint,
            "ints" => Sort::Ints,
            "float" => Sort::Float,
            "level" => Sort::Level,
            "file-levels" => Sort::FileLevels,
            "duration" => Sort::Duration,
            "bool" | "version" => Sort::Bool,
            "address" => Sort::Address,
            "ports" => Sort::Ports,
            "quantity" => Sort::Quantity,
            "pairs" => Sort::Pairs,
            _ => Sort::Text,
        }
    }

    /// The error for a text that is not of this sort.
    pub fn fault(self, text: &str) -> Option<String> {
        match self {
            Sort::Text | Sort::List => None,
            Sort::Int => integer(text).err().map(|why| told("ParseInt", text, why)),
            Sort::Uint => natural(text).err().map(|why| told("ParseUint", text, why)),
            Sort::Ints => text.split(',').find_map(|one| Sort::Int.fault(one)),
            Sort::Float => text.parse::<f64>().err().map(|_| told("ParseFloat", text, NumberError::Syntax)),
            Sort::Level => level(text).err().map(|why| told("ParseUint", text, why)),
            Sort::FileLevels => parts(text).find_map(file_level_fault),
            Sort::Duration => duration(text.strip_prefix(['-', '+']).unwrap_or(text))
                .is_none()
                .then(|| format!("time: {} {}", duration_fault(text), go_quote(text))),
            Sort::Bool => truth(text).is_none().then(|| told("ParseBool", text, NumberError::Syntax)),
            Sort::Address => (!text.trim().is_empty() && address(text).is_none())
                .then(|| format!("failed to parse IP: {}", go_quote(text))),
            Sort::Ports if text.trim().is_empty() => None,
            Sort::Ports => text.parse::<PortRange>().err().map(|fault| fault.to_string()),
            Sort::Quantity => Quantity::parse(text).err().map(|fault| fault.to_string()),
            Sort::Pairs => {
                parts(text).any(|pair| !pair.contains('=')).then(|| "malformed pair, expect string=string".to_owned())
            }
        }
    }
}

fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').filter(|part| !part.is_empty())
}

fn told(function: &str, text: &str, why: NumberError) -> String {
    format!("strconv.{function}: parsing {}: {why}", go_quote(text))
}

fn file_level_fault(text: &str) -> Option<String> {
    let level_of = text.split_once('=').filter(|(file, level)| !file.is_empty() && !level.is_empty());
    match level_of.map(|(_, level)| level).filter(|level| !level.contains('=')) {
        None => Some(format!("{} does not have the pattern=N format", go_quote(text))),
        Some(level) => Sort::Level.fault(level).map(|why| format!("parsing verbosity in {}: {why}", go_quote(text))),
    }
}

/// Parses an integer; a prefix determines the base. Source: Go's `strconv.ParseInt`.
pub fn integer(text: &str) -> Result<i64, NumberError> {
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let magnitude = i128::from(natural(digits)?);
    i64::try_from(if is_negative { -magnitude } else { magnitude }).map_err(|_| NumberError::Range)
}

/// Parses an unsigned integer; a prefix determines the base, and digits may be separated by `_`.
/// Source: Go's `strconv.ParseUint`.
fn natural(text: &str) -> Result<u64, NumberError> {
    let lower = text.to_ascii_lowercase();
    let prefixed = [("0x", 16), ("0o", 8), ("0b", 2)].into_iter().find_map(|(prefix, base)| {
        let digits = lower.strip_prefix(prefix)?;
        Some((base, digits.strip_prefix('_').unwrap_or(digits)))
    });
    let (base, digits) = prefixed.unwrap_or((if lower.starts_with('0') { 8 } else { 10 }, &lower));
    if digits.split('_').any(str::is_empty) || !digits.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    {
        return Err(NumberError::Syntax);
    }
    of_base(&digits.replace('_', ""), base)
}

/// Parses a log level. Source: Go's `strconv.ParseUint` of 31 bits in decimal.
pub fn level(text: &str) -> Result<u64, NumberError> {
    let is_decimal = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = if is_decimal { of_base(text, 10) } else { Err(NumberError::Syntax) };
    number.and_then(|number| if number <= LEVEL_MAX { Ok(number) } else { Err(NumberError::Range) })
}

fn of_base(digits: &str, base: u32) -> Result<u64, NumberError> {
    u64::from_str_radix(digits, base).map_err(|error| match error.kind() {
        IntErrorKind::PosOverflow => NumberError::Range,
        _ => NumberError::Syntax,
    })
}

pub fn address(text: &str) -> Option<IpAddr> {
    text.trim().parse().ok()
}

/// Parses a bool; `raw` is a value of `--version`. Source: Go's `strconv.ParseBool`.
pub fn truth(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" | "raw" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}

/// The part of Go's error for an invalid duration before its text.
fn duration_fault(text: &str) -> String {
    let is_number = |one: char| one.is_ascii_digit() || one == '.';
    let mut rest = text.trim_start_matches(['+', '-']);
    while let Some(digits) = rest.find(|one| !is_number(one)).filter(|digits| *digits > 0) {
        let after = &rest[digits..];
        let end = after.find(is_number).unwrap_or(after.len());
        let unit = &after[..end];
        if unit_nanoseconds(unit).is_none() {
            return format!("unknown unit {unit:?} in duration");
        }
        rest = &after[end..];
    }
    if !rest.is_empty() && rest.chars().all(is_number) && rest.contains(|one: char| one.is_ascii_digit()) {
        "missing unit in duration".to_owned()
    } else {
        "invalid duration".to_owned()
    }
}

fn unit_nanoseconds(unit: &str) -> Option<u128> {
    Some(match unit {
        "ns" => 1,
        "us" | "µs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

/// How many digits after the decimal point count.
const FRACTION_DIGITS: usize = 18;

/// Converts an amount of a unit to nanoseconds, rounded down.
fn nanoseconds(number: &str, unit: u128) -> Option<u128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let fraction = &fraction[..fraction.len().min(FRACTION_DIGITS)];
    let digits = |text: &str| if text.is_empty() { Some(0) } else { text.parse::<u64>().ok().map(u128::from) };
    let scale = (0..fraction.len()).fold(1, |scale: u128, _| scale * 10);
    Some(digits(whole)? * unit + digits(fraction)? * unit / scale)
}

/// Parses a duration of at most `i64::MAX` nanoseconds. Source: Go's `time.ParseDuration`.
pub fn duration(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let (mut sum, mut rest) = (0_u64, text);
    while !rest.is_empty() {
        let digits = rest.find(|one: char| !one.is_ascii_digit() && one != '.')?;
        let number = &rest[..digits];
        let after = &rest[digits..];
        let unit = after.find(|one: char| one.is_ascii_digit() || one == '.').unwrap_or(after.len());
        let more = nanoseconds(number, unit_nanoseconds(&after[..unit])?)?;
        sum = sum.checked_add(u64::try_from(more).ok()?).filter(|sum| i64::try_from(*sum).is_ok())?;
        rest = &after[unit..];
    }
    (!text.is_empty()).then_some(Duration::from_nanos(sum))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(sort: Sort, text: &str, expected: &str) {
        assert_eq!(sort.fault(text).unwrap_or_default(), expected, "{text:?} as {sort:?}");
    }

    /// The texts were recorded from kube-apiserver 1.36.
    #[test]
    fn what_is_not_of_a_sort_is_told_as_there() {
        check(Sort::Int, "x", "strconv.ParseInt: parsing \"x\": invalid syntax");
        check(
            Sort::Int,
            "9999999999999999999",
            "strconv.ParseInt: parsing \"9999999999999999999\": value out of range",
        );
        check(Sort::Uint, "x", "strconv.ParseUint: parsing \"x\": invalid syntax");
        check(Sort::Ints, "29,x", "strconv.ParseInt: parsing \"x\": invalid syntax");
        check(Sort::Float, "x", "strconv.ParseFloat: parsing \"x\": invalid syntax");
        check(Sort::Level, "-1", "strconv.ParseUint: parsing \"-1\": invalid syntax");
        check(Sort::Level, "3000000000", "strconv.ParseUint: parsing \"3000000000\": value out of range");
        for text in ["x", "=2", "a=2=3"] {
            check(Sort::FileLevels, text, &format!("{text:?} does not have the pattern=N format"));
        }
        check(Sort::FileLevels, "a=2,b", "\"b\" does not have the pattern=N format");
        let parsing = "parsing verbosity in \"a=x\": strconv.ParseUint: parsing \"x\": invalid syntax";
        check(Sort::FileLevels, "a=x", parsing);
        check(Sort::Bool, "maybe", "strconv.ParseBool: parsing \"maybe\": invalid syntax");
        check(Sort::Address, "x", "failed to parse IP: \"x\"");
        check(Sort::Ports, "2-1", "end port cannot be less than start port: 2-1");
        let quantity = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
        check(Sort::Quantity, "x", quantity);
        check(Sort::Pairs, "a=b,x", "malformed pair, expect string=string");
    }

    #[test]
    fn what_is_not_a_duration_is_told_as_there() {
        for (given, why) in [
            ("5", "missing unit in duration"),
            ("1m5", "missing unit in duration"),
            ("5x", "unknown unit \"x\" in duration"),
            ("1m5x2s", "unknown unit \"x\" in duration"),
            ("x", "invalid duration"),
            ("1m.", "invalid duration"),
            ("2562047h47m16.854775808s", "invalid duration"),
            ("9223372036854775808ns", "invalid duration"),
            ("99999999999999999999h", "invalid duration"),
        ] {
            check(Sort::Duration, given, &format!("time: {why} {given:?}"));
        }
    }

    #[test]
    fn what_is_of_a_sort_is_taken() {
        for (sort, text) in [
            (Sort::Int, "-5"),
            (Sort::Int, "0x10"),
            (Sort::Int, "1_000"),
            (Sort::Ints, "29,0x17"),
            (Sort::Float, "0.5"),
            (Sort::FileLevels, "a=2,b*=3,"),
            (Sort::Duration, "-1m"),
            (Sort::Bool, "T"),
            (Sort::Address, ""),
            (Sort::Address, " ::1"),
            (Sort::Ports, ""),
            (Sort::Ports, "30000+10"),
            (Sort::Quantity, "1Mi"),
            (Sort::Pairs, "a=b,c="),
        ] {
            check(sort, text, "");
        }
    }

    #[test]
    fn a_prefix_names_the_base() {
        for (text, expected) in [
            ("0x1F", Ok(31)),
            ("0o17", Ok(15)),
            ("017", Ok(15)),
            ("-0b11", Ok(-3)),
            ("0x_1f", Ok(31)),
            ("0", Ok(0)),
            ("08", Err(NumberError::Syntax)),
            ("1__0", Err(NumberError::Syntax)),
            ("_1", Err(NumberError::Syntax)),
            ("0x", Err(NumberError::Syntax)),
            ("0x-5", Err(NumberError::Syntax)),
            ("--5", Err(NumberError::Syntax)),
            ("", Err(NumberError::Syntax)),
            ("-9223372036854775808", Ok(i64::MIN)),
            ("9223372036854775808", Err(NumberError::Range)),
        ] {
            assert_eq!(integer(text), expected, "{text}");
        }
    }

    #[test]
    fn durations_are_gos() {
        assert_eq!(duration("1h1m1.5s"), Some(Duration::from_millis(3_661_500)));
        assert_eq!(duration("0"), Some(Duration::ZERO));
        let greatest = Some(Duration::from_nanos(i64::MAX.unsigned_abs()));
        for text in ["2562047h47m16.854775807s", "9223372036854775807ns"] {
            assert_eq!(duration(text), greatest, "{text}");
        }
        assert_eq!((duration(".5s"), duration("1.2.3s")), (Some(Duration::from_millis(500)), None));
        assert_eq!([duration(""), duration("5"), duration("5x"), duration("m")], [None; 4]);
    }
}
