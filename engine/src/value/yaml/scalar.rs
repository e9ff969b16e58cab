//! The meaning of a plain scalar in YAML 1.1, as Go's library reads it.

use std::sync::LazyLock;

use jiff::civil::Date;
use regex_automata::meta::Regex;

/// A scalar with its meaning.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum YamlScalar {
    Null,
    Bool(bool),
    Int(i64),
    /// A whole number beyond `i64`.
    Uint(u64),
    /// May be infinite or NaN.
    Float(f64),
    /// Looks like a date or a time, but is text.
    Time,
    Text,
}

/// The meaning of `text` if neither quotes nor a tag determine it.
pub(super) fn resolve(text: &str) -> YamlScalar {
    if let Some(word) = resolve_word(text) {
        return word;
    }
    match text.bytes().next() {
        Some(b'.') => finite(text).map_or(YamlScalar::Text, YamlScalar::Float),
        Some(b'0'..=b'9' | b'+' | b'-') if is_time(text) => YamlScalar::Time,
        Some(b'0'..=b'9' | b'+' | b'-') => resolve_number(&text.replace('_', "")),
        _ => YamlScalar::Text,
    }
}

fn resolve_word(text: &str) -> Option<YamlScalar> {
    Some(match text {
        "" | "~" | "null" | "Null" | "NULL" => YamlScalar::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => YamlScalar::Bool(true),
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => YamlScalar::Bool(false),
        ".nan" | ".NaN" | ".NAN" => YamlScalar::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => YamlScalar::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => YamlScalar::Float(f64::NEG_INFINITY),
        _ => return None,
    })
}

fn resolve_number(text: &str) -> YamlScalar {
    let (sign, digits) = match text.as_bytes() {
        [b'+', ..] => (Some(1), &text[1..]),
        [b'-', ..] => (Some(-1), &text[1..]),
        _ => (None, text),
    };
    if let Some(size) = whole(digits) {
        let number = i128::from(sign.unwrap_or(1)) * i128::from(size);
        if let Ok(number) = i64::try_from(number) {
            return YamlScalar::Int(number);
        }
        if sign.is_none() {
            return YamlScalar::Uint(size);
        }
    }
    if is_float(digits) { finite(text).map_or(YamlScalar::Text, YamlScalar::Float) } else { YamlScalar::Text }
}

/// Digits with a base by their prefix: `0x`, `0o`, `0b`, and `0` for octal.
fn whole(digits: &str) -> Option<u64> {
    let (digits, base) = match digits.as_bytes() {
        [b'0', b'x' | b'X', _, ..] => (&digits[2..], 16),
        [b'0', b'o' | b'O', _, ..] => (&digits[2..], 8),
        [b'0', b'b' | b'B', _, ..] => (&digits[2..], 2),
        [b'0', _, ..] => (&digits[1..], 8),
        _ => (digits, 10),
    };
    let is_whole = digits.chars().all(|digit| digit.is_digit(base));
    if is_whole { u64::from_str_radix(digits, base).ok() } else { None }
}

/// `1`, `1.`, `1.5`, `.5`, with or without an exponent.
fn is_float(text: &str) -> bool {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['+', '-']).unwrap_or(exponent))),
        None => (text, None),
    };
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let has_digits = !whole.is_empty() || !fraction.is_empty();
    has_digits
        && is_digits(whole)
        && is_digits(fraction)
        && exponent.is_none_or(|exponent| !exponent.is_empty() && is_digits(exponent))
}

fn finite(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// `2026-01-02`, or with a time after `T`, `t` (then with a zone) or a space (then without).
fn is_time(text: &str) -> bool {
    let Some((year, rest)) = text.split_once('-') else { return false };
    if year.len() != 4 || !year.bytes().all(|byte| byte.is_ascii_digit()) {
        return false;
    }
    let mut reader = TimeReader(rest);
    let date = (|| {
        let month = reader.number()?;
        reader.sign(b"-")?;
        let day = reader.number()?;
        Date::new(year.parse().ok()?, month, day).ok()
    })();
    if date.is_none() {
        return false;
    }
    match reader.sign(b"Tt ") {
        None => reader.0.is_empty(),
        Some(separator) => {
            let clock = reader.clock();
            let zone = if separator == b' ' { Some(()) } else { reader.zone() };
            clock.is_some() && zone.is_some() && reader.0.is_empty()
        }
    }
}

/// Reads the parts of a time.
struct TimeReader<'t>(&'t str);

impl TimeReader<'_> {
    /// One or two digits.
    fn number(&mut self) -> Option<i8> {
        let digits = self.0.bytes().take(2).take_while(u8::is_ascii_digit).count();
        let (number, rest) = self.0.split_at(digits);
        self.0 = rest;
        number.parse().ok()
    }

    /// One of `signs`.
    fn sign(&mut self, signs: &[u8]) -> Option<u8> {
        let sign = self.0.bytes().next().filter(|sign| signs.contains(sign))?;
        self.0 = &self.0[1..];
        Some(sign)
    }

    /// `15:04:05`, and a fraction of any length after a point or a comma.
    fn clock(&mut self) -> Option<()> {
        let hour = self.number()?;
        self.sign(b":")?;
        let minute = self.number()?;
        self.sign(b":")?;
        let second = self.number()?;
        if let Some(fraction) =
            self.0.strip_prefix(['.', ',']).filter(|text| text.starts_with(|digit: char| digit.is_ascii_digit()))
        {
            self.0 = fraction.trim_start_matches(|digit: char| digit.is_ascii_digit());
        }
        (hour < 24 && minute < 60 && second < 60).then_some(())
    }

    /// `Z` or `+01:00`.
    fn zone(&mut self) -> Option<()> {
        if self.sign(b"Z").is_some() {
            return Some(());
        }
        self.sign(b"+-")?;
        let (offset, rest) = self.0.split_at_checked(5)?;
        self.0 = rest;
        let (hours, minutes) = offset.split_once(':')?;
        let two_digits = |text: &str, max: u8| {
            text.len() == 2
                && text.bytes().all(|byte| byte.is_ascii_digit())
                && text.parse().is_ok_and(|number: u8| number <= max)
        };
        // Go accepts 24 hours and 60 minutes as well.
        (two_digits(hours, 24) && two_digits(minutes, 60)).then_some(())
    }
}

/// A number of base 60, such as `190:20:30`: other YAML 1.1 readers read it as a number.
pub(super) fn is_sexagesimal(text: &str) -> bool {
    static SEXAGESIMAL: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"^[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?$").expect("the pattern is well-formed")
    });
    text.contains(':') && SEXAGESIMAL.is_match(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_scalars_mean_what_they_mean_to_go() {
        for (text, scalar) in [
            ("", YamlScalar::Null),
            ("oN", YamlScalar::Text),
            ("ON", YamlScalar::Bool(true)),
            ("n", YamlScalar::Bool(false)),
            ("1_000", YamlScalar::Int(1000)),
            ("017", YamlScalar::Int(15)),
            ("0o17", YamlScalar::Int(15)),
            ("08", YamlScalar::Float(8.0)),
            ("-0b101", YamlScalar::Int(-5)),
            ("0x", YamlScalar::Text),
            ("-", YamlScalar::Text),
            ("-9223372036854775808", YamlScalar::Int(i64::MIN)),
            ("18446744073709551615", YamlScalar::Uint(u64::MAX)),
            ("-18446744073709551615", YamlScalar::Float(-18446744073709551615.0)),
            ("+.5", YamlScalar::Float(0.5)),
            ("1.e2", YamlScalar::Float(100.0)),
            ("1e400", YamlScalar::Text),
            (".", YamlScalar::Text),
            ("1.2.3", YamlScalar::Text),
        ] {
            assert_eq!(resolve(text), scalar, "{text}");
        }
    }

    #[test]
    fn times_are_told_from_texts() {
        for text in ["2026-01-02", "2026-1-2T3:04:05Z", "2026-01-02t03:04:05.123-24:60", "2026-01-02 03:04:05,1"] {
            assert_eq!(resolve(text), YamlScalar::Time, "{text}");
        }
        for text in
            ["2026-13-02", "2026-02-30", "2026-01-02T03:04:05", "2026-01-02 03:04:05Z", "2026-01", "2026-01-02x"]
        {
            assert_eq!(resolve(text), YamlScalar::Text, "{text}");
        }
    }

    #[test]
    fn numbers_of_base_60_are_known() {
        assert!(is_sexagesimal("190:20:30.15"));
        assert!(is_sexagesimal("-1_0:59"));
        assert!(!is_sexagesimal("10:60"));
        assert!(!is_sexagesimal("a:20"));
    }
}
