//! Times as the API reads and writes them.
//!
//! Source: Go's `time.Parse` with `time.RFC3339`, which is a little wider than the standard; its errors are what clients see.

use jiff::civil::{self, DateTime};
use jiff::{SignedDuration, Timestamp};

const LAYOUT: &str = "2006-01-02T15:04:05Z07:00";

/// RFC 3339 in whole seconds and UTC: `2026-01-02T03:04:05Z`.
pub fn format_seconds(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second()).unwrap_or(time).to_string()
}

/// Reads RFC 3339 and gives the same time in UTC, in whole seconds and with a `Z` behind it; `None` for the first second
/// of the year 1, which is Go's "no time".
///
/// # Errors
///
/// Go's text: `parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"`.
pub fn normalize(text: &str) -> Result<Option<String>, String> {
    let mut reader = Reader { text, rest: text.as_bytes() };
    let year = reader.year()?;
    reader.literal(b'-')?;
    let month = reader.number("01", 1..=12, "month")?;
    reader.literal(b'-')?;
    let day = reader.number("02", 0..=99, "day")?;
    reader.literal(b'T')?;
    let hour = reader.hour()?;
    reader.literal(b':')?;
    let minute = reader.number("04", 0..=59, "minute")?;
    reader.literal(b':')?;
    let second = reader.number("05", 0..=59, "second")?;
    let has_fraction = reader.fraction();
    let offset_seconds = reader.offset()?;
    if !reader.rest.is_empty() {
        return Err(reader.fail(&format!(": extra text: {}", quote(reader.rest))));
    }
    let out_of_range = || reader.fail(": day out of range");
    let date = civil::Date::new(year, month, day).map_err(|_| out_of_range())?;
    let local = date.at(hour, minute, second, 0);
    // Go goes past four digits of a year here, and then can't read what it wrote.
    let utc = local.checked_sub(SignedDuration::from_secs(offset_seconds)).ok().filter(|utc| utc.year() >= 0);
    let utc = utc.ok_or_else(out_of_range)?;
    let is_zero = utc == DateTime::constant(1, 1, 1, 0, 0, 0, 0) && !has_fraction;
    Ok((!is_zero).then(|| format!("{utc}Z")))
}

struct Reader<'t> {
    text: &'t str,
    rest: &'t [u8],
}

impl Reader<'_> {
    fn fail(&self, message: &str) -> String {
        format!("parsing time {}{message}", quote(self.text.as_bytes()))
    }

    /// What is left does not begin with `element` of the layout.
    fn mismatch(&self, element: &str) -> String {
        let (layout, rest) = (quote(LAYOUT.as_bytes()), quote(self.rest));
        self.fail(&format!(" as {layout}: cannot parse {rest} as {}", quote(element.as_bytes())))
    }

    fn literal(&mut self, byte: u8) -> Result<(), String> {
        match self.rest.split_first() {
            Some((first, rest)) if *first == byte => {
                self.rest = rest;
                Ok(())
            }
            _ => Err(self.mismatch(char::from(byte).encode_utf8(&mut [0; 4]))),
        }
    }

    fn year(&mut self) -> Result<i16, String> {
        match self.rest.split_at_checked(4) {
            Some((digits, rest)) if digits.iter().all(u8::is_ascii_digit) => {
                self.rest = rest;
                Ok(digits.iter().fold(0, |year, digit| year * 10 + i16::from(digit - b'0')))
            }
            _ => Err(self.mismatch("2006")),
        }
    }

    /// Two digits.
    fn number(&mut self, element: &str, range: std::ops::RangeInclusive<i8>, what: &str) -> Result<i8, String> {
        let Some((number, rest)) = two_digits(self.rest) else { return Err(self.mismatch(element)) };
        self.rest = rest;
        match range.contains(&number) {
            true => Ok(number),
            false => Err(self.fail(&format!(": {what} out of range"))),
        }
    }

    /// One or two digits.
    fn hour(&mut self) -> Result<i8, String> {
        match self.rest {
            [digit @ b'0'..=b'9', rest @ ..] if !rest.first().is_some_and(u8::is_ascii_digit) => {
                self.rest = rest;
                Ok((digit - b'0') as i8)
            }
            _ => self.number("15", 0..=23, "hour"),
        }
    }

    /// Skips `.5` and tells whether it is more than nothing.
    fn fraction(&mut self) -> bool {
        let [b'.' | b',', digits @ ..] = self.rest else { return false };
        let count = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (fraction, rest) = digits.split_at(count);
        if count > 0 {
            self.rest = rest;
        }
        // Nanoseconds are as fine as Go's times are.
        fraction.iter().take(9).any(|digit| *digit != b'0')
    }

    /// `Z` or `+01:00`, in seconds to the east.
    fn offset(&mut self) -> Result<i64, String> {
        if let [b'Z', rest @ ..] = self.rest {
            self.rest = rest;
            return Ok(0);
        }
        let element = "Z07:00";
        let Some(([sign, hour @ .., b':', minute_tens, minute_ones], rest)) = self.rest.split_at_checked(6) else {
            return Err(self.mismatch(element));
        };
        let hours = two_digits(hour).map(|(hours, _)| hours);
        let minutes = hours.and_then(|_| two_digits(&[*minute_tens, *minute_ones]).map(|(minutes, _)| minutes));
        // Some people write offsets of 24 hours or 60 minutes. A range is looked at before the form.
        let before = std::mem::replace(&mut self.rest, rest);
        if hours.is_some_and(|hours| hours > 24) {
            return Err(self.fail(": time zone offset hour out of range"));
        }
        if minutes.is_some_and(|minutes| minutes > 60) {
            return Err(self.fail(": time zone offset minute out of range"));
        }
        match (sign, hours, minutes) {
            (b'+', Some(hours), Some(minutes)) => Ok(i64::from(hours) * 3600 + i64::from(minutes) * 60),
            (b'-', Some(hours), Some(minutes)) => Ok(-(i64::from(hours) * 3600 + i64::from(minutes) * 60)),
            _ => {
                self.rest = before;
                Err(self.mismatch(element))
            }
        }
    }
}

fn two_digits(bytes: &[u8]) -> Option<(i8, &[u8])> {
    match bytes {
        [tens @ b'0'..=b'9', ones @ b'0'..=b'9', rest @ ..] => Some((((tens - b'0') * 10 + (ones - b'0')) as i8, rest)),
        _ => None,
    }
}

/// As Go's `time` package quotes: bytes outside printable ASCII in hexadecimal.
fn quote(bytes: &[u8]) -> String {
    let mut quoted = String::with_capacity(bytes.len() + 2);
    quoted.push('"');
    for byte in bytes {
        match byte {
            b'"' | b'\\' => quoted.extend(['\\', char::from(*byte)]),
            b' '..=0x7f => quoted.push(char::from(*byte)),
            _ => quoted.push_str(&format!("\\x{byte:02x}")),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: Result<Option<&str>, &str>) {
        assert_eq!(normalize(text), expect.map(|time| time.map(str::to_owned)).map_err(str::to_owned));
    }

    #[test]
    fn times_come_out_in_utc_and_whole_seconds() {
        check("2026-01-02T03:04:05.678+01:00", Ok(Some("2026-01-02T02:04:05Z")));
        check("2026-01-02T3:04:05,5Z", Ok(Some("2026-01-02T03:04:05Z")));
        check("9999-12-31T23:59:59Z", Ok(Some("9999-12-31T23:59:59Z")));
        check("0001-01-01T00:00:00Z", Ok(None));
    }

    #[test]
    fn what_does_not_parse_is_told_in_gos_words() {
        let fail = |text, rest, element| {
            let layout = "2006-01-02T15:04:05Z07:00";
            format!("parsing time \"{text}\" as \"{layout}\": cannot parse \"{rest}\" as \"{element}\"")
        };
        check("2026-1-02", Err(&fail("2026-1-02", "1-02", "01")));
        check("2026-01-02T03:04:05", Err(&fail("2026-01-02T03:04:05", "", "Z07:00")));
        check("2026-13-02T03:04:05Z", Err("parsing time \"2026-13-02T03:04:05Z\": month out of range"));
        check("2026-02-30T03:04:05Z", Err("parsing time \"2026-02-30T03:04:05Z\": day out of range"));
        check("2026-01-02T03:04:05Z!", Err("parsing time \"2026-01-02T03:04:05Z!\": extra text: \"!\""));
    }
}
