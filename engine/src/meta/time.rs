//! Times as the API reads and writes them.
//!
//! Source: Go's `time.Parse` with `time.RFC3339`, which accepts slightly more than the standard; clients see its
//! errors.

use jiff::civil::{self, DateTime};
use jiff::{SignedDuration, Timestamp};
use thiserror::Error;

use crate::work;

/// Go's layouts of times.
const RFC_3339: &str = "2006-01-02T15:04:05Z07:00";
const MICRO: &str = "2006-01-02T15:04:05.000000Z07:00";
const LOCAL: &str = "2006-01-02T15:04:05";
const DATE: &str = "2006-01-02";

/// RFC 3339 in whole seconds and UTC: `2026-01-02T03:04:05Z`.
pub fn format_seconds(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second()).unwrap_or(time).to_string()
}

/// A moment, with the offset that it was written with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Whole seconds since 1970, rounded down.
    pub unix_seconds: i64,
    /// 0 to 999,999,999.
    pub nanos: u32,
    /// Seconds to the east of UTC.
    pub offset_seconds: i32,
}

/// Why a text is not a time, in Go's words.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TimeError {
    /// The text does not match the layout.
    #[error(
        "parsing time {} as {}: cannot parse {} as {}",
        quote(.text.as_bytes()),
        quote(.layout.as_bytes()),
        quote(.rest),
        quote(.element.as_bytes())
    )]
    Form {
        /// The whole text.
        text: String,
        /// The layout, as Go writes it.
        layout: &'static str,
        /// The part that could not be read; it may begin within a character.
        rest: Vec<u8>,
        /// The element of the layout that was expected there.
        element: &'static str,
    },
    /// A part of the time is too large.
    #[error("parsing time {}: {part} out of range", quote(.text.as_bytes()))]
    Range {
        /// The whole text.
        text: String,
        /// `day`, `time zone offset hour`.
        part: &'static str,
    },
    /// There is text after the time.
    #[error("parsing time {}: extra text: {}", quote(.text.as_bytes()), quote(.rest))]
    Extra {
        /// The whole text.
        text: String,
        /// What is behind it.
        rest: Vec<u8>,
    },
}

/// Reads RFC 3339 and returns the same time in UTC, in whole seconds and with a `Z` at the end; `None` for the first
/// second of the year 1, which is Go's zero time.
///
/// # Errors
///
/// The text is not a time: `parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"`.
pub fn normalize(text: &str) -> Result<Option<String>, TimeError> {
    Ok(in_utc(text, parse(text)?)?.map(|utc| format!("{utc}Z")))
}

/// Whether [`normalize`] returns `text` unchanged. False for years before 100.
pub fn is_normal(text: &str) -> bool {
    let bytes = text.as_bytes();
    let number = |at: usize| two_digits_at(bytes, at);
    bytes.len() == "2006-01-02T15:04:05Z".len()
        && [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':'), (19, b'Z')]
            .iter()
            .all(|(at, byte)| bytes[*at] == *byte)
        && (1..=99).contains(&number(0))
        && number(2) <= 99
        && (1..=12).contains(&number(5))
        && (1..=days_of_month(number(0), number(2), number(5))).contains(&number(8))
        && number(11) < 24
        && number(14) < 60
        && number(17) < 60
}

/// How many days a month has, 1 to 12, in the year with these first and last two digits.
fn days_of_month(century: u8, year: u8, month: u8) -> u8 {
    let is_leap = if year == 0 { century.is_multiple_of(4) } else { year.is_multiple_of(4) };
    match month {
        2 => 28 + u8::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The seconds since 1970 of a time that [`is_normal`]; `None` for others.
pub fn normal_seconds(text: &str) -> Option<i64> {
    const DAYS_TO_1970: i64 = 719_468;
    if !is_normal(text) {
        return None;
    }
    let number = |at: usize| i64::from(two_digits_at(text.as_bytes(), at));
    let (year, month, day) = (number(0) * 100 + number(2), number(5), number(8));
    // Years that begin in March have the leap day at their end.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days_before_year = 365 * year + year / 4 - year / 100 + year / 400;
    let days = days_before_year + (153 * month + 2) / 5 + day - 1 - DAYS_TO_1970;
    Some(((days * 24 + number(11)) * 60 + number(14)) * 60 + number(17))
}

/// The number of two digits at a position; larger than any if they are none.
fn two_digits_at(bytes: &[u8], at: usize) -> u8 {
    match bytes[at..at + 2] {
        [tens @ b'0'..=b'9', ones @ b'0'..=b'9'] => (tens - b'0') * 10 + (ones - b'0'),
        _ => u8::MAX,
    }
}

/// [`normalize`] for times with exactly six fractional digits, Go's `MicroTime`.
///
/// # Errors
///
/// The text is not a time: `parsing time "x" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "x" as "2006"`.
pub fn normalize_micro(text: &str) -> Result<Option<String>, TimeError> {
    let moment = parse_as(text, MICRO)?;
    let microseconds = moment.nanos / 1_000;
    Ok(in_utc(text, moment)?.map(|utc| format!("{utc}.{microseconds:06}Z")))
}

/// The whole seconds of a moment, in UTC; `None` for Go's zero time.
fn in_utc(text: &str, moment: Moment) -> Result<Option<DateTime>, TimeError> {
    // Go exceeds a year of four digits here, and then can't read what it wrote.
    let utc = utc(moment.unix_seconds).ok_or_else(|| TimeError::Range { text: text.to_owned(), part: "day" })?;
    let is_zero = utc == NO_TIME && moment.nanos == 0;
    Ok((!is_zero).then_some(utc))
}

/// Go's zero time, the start of the year 1.
pub const NO_TIME: DateTime = DateTime::constant(1, 1, 1, 0, 0, 0, 0);

/// The time in UTC so many seconds after 1970 began; `None` outside of the years 0 to 9999. jiff's `Timestamp` ends a day
/// before that.
pub fn utc(unix_seconds: i64) -> Option<DateTime> {
    let begun = civil::Date::constant(1970, 1, 1).at(0, 0, 0, 0);
    begun.checked_add(SignedDuration::from_secs(unix_seconds)).ok().filter(|utc| utc.year() >= 0)
}

/// Reads RFC 3339.
///
/// # Errors
///
/// As [`normalize`].
pub fn parse(text: &str) -> Result<Moment, TimeError> {
    parse_as(text, RFC_3339)
}

fn parse_as(text: &str, layout: &'static str) -> Result<Moment, TimeError> {
    let mut reader = LayoutReader::new(text, layout);
    let (date, second_of_day, nanos) = reader.date_and_clock()?;
    let offset_seconds = reader.offset()?;
    let day = reader.end(date)?;
    Ok(Moment { unix_seconds: day + second_of_day - i64::from(offset_seconds), nanos, offset_seconds })
}

/// Reads RFC 3339 without an offset, as the time in UTC.
///
/// # Errors
///
/// As [`normalize`], with the layout expected here.
pub fn parse_local(text: &str) -> Result<Moment, TimeError> {
    let mut reader = LayoutReader::new(text, LOCAL);
    let (date, second_of_day, nanos) = reader.date_and_clock()?;
    Ok(Moment { unix_seconds: reader.end(date)? + second_of_day, nanos, offset_seconds: 0 })
}

/// Reads `2006-01-02`, as the start of the day in UTC.
///
/// # Errors
///
/// As [`normalize`], with the layout expected here.
pub fn parse_date(text: &str) -> Result<Moment, TimeError> {
    let mut reader = LayoutReader::new(text, DATE);
    let date = reader.date()?;
    Ok(Moment { unix_seconds: reader.end(date)?, nanos: 0, offset_seconds: 0 })
}

struct LayoutReader<'t> {
    text: &'t str,
    rest: &'t [u8],
    layout: &'static str,
}

impl<'t> LayoutReader<'t> {
    fn new(text: &'t str, layout: &'static str) -> Self {
        work::bytes(text.len());
        LayoutReader { text, rest: text.as_bytes(), layout }
    }

    fn out_of_range(&self, part: &'static str) -> TimeError {
        TimeError::Range { text: self.text.to_owned(), part }
    }

    /// The error that the rest of the text does not begin with `element` of the layout.
    fn mismatch(&self, element: &'static str) -> TimeError {
        TimeError::Form { text: self.text.to_owned(), layout: self.layout, rest: self.rest.to_vec(), element }
    }

    /// A day; `None` if the month does not have it, which is reported at the end.
    fn date(&mut self) -> Result<Option<civil::Date>, TimeError> {
        let year = self.year()?;
        self.literal("-")?;
        let month = self.number("01", 1..=12, "month")?;
        self.literal("-")?;
        let day = self.number("02", 0..=99, "day")?;
        Ok(civil::Date::new(year, month, day).ok())
    }

    /// A day as in [`LayoutReader::date`], the second of the day, and nanoseconds.
    fn date_and_clock(&mut self) -> Result<(Option<civil::Date>, i64, u32), TimeError> {
        let date = self.date()?;
        self.literal("T")?;
        let hour = self.hour()?;
        self.literal(":")?;
        let minute = self.number("04", 0..=59, "minute")?;
        self.literal(":")?;
        let second = self.number("05", 0..=59, "second")?;
        let nanos = if self.layout == MICRO { self.microseconds()? * 1_000 } else { self.fraction() };
        Ok((date, i64::from(hour) * 3600 + i64::from(minute) * 60 + i64::from(second), nanos))
    }

    /// The start of `date` in seconds since the start of 1970, if all text has been read.
    fn end(&self, date: Option<civil::Date>) -> Result<i64, TimeError> {
        if !self.rest.is_empty() {
            return Err(TimeError::Extra { text: self.text.to_owned(), rest: self.rest.to_vec() });
        }
        let date = date.ok_or_else(|| self.out_of_range("day"))?;
        Ok(date.duration_since(civil::Date::constant(1970, 1, 1)).as_secs())
    }

    fn literal(&mut self, element: &'static str) -> Result<(), TimeError> {
        self.rest = self.rest.strip_prefix(element.as_bytes()).ok_or_else(|| self.mismatch(element))?;
        Ok(())
    }

    fn year(&mut self) -> Result<i16, TimeError> {
        match self.rest.split_at_checked(4) {
            Some((digits, rest)) if digits.iter().all(u8::is_ascii_digit) => {
                self.rest = rest;
                Ok(digits.iter().fold(0, |year, digit| year * 10 + i16::from(digit - b'0')))
            }
            _ => Err(self.mismatch("2006")),
        }
    }

    /// Two digits.
    fn number(
        &mut self,
        element: &'static str,
        range: std::ops::RangeInclusive<i8>,
        part: &'static str,
    ) -> Result<i8, TimeError> {
        let Some((number, rest)) = two_digits(self.rest) else { return Err(self.mismatch(element)) };
        self.rest = rest;
        if range.contains(&number) { Ok(number) } else { Err(self.out_of_range(part)) }
    }

    /// One or two digits.
    fn hour(&mut self) -> Result<i8, TimeError> {
        match self.rest {
            [digit @ b'0'..=b'9', rest @ ..] if !rest.first().is_some_and(u8::is_ascii_digit) => {
                self.rest = rest;
                Ok((digit - b'0') as i8)
            }
            _ => self.number("15", 0..=23, "hour"),
        }
    }

    /// A point and six digits.
    fn microseconds(&mut self) -> Result<u32, TimeError> {
        match self.rest.split_at_checked(7) {
            Some(([b'.' | b',', digits @ ..], rest)) if digits.iter().all(u8::is_ascii_digit) => {
                self.rest = rest;
                Ok(digits.iter().fold(0, |number, digit| number * 10 + u32::from(digit - b'0')))
            }
            _ => Err(self.mismatch(".000000")),
        }
    }

    /// The nanoseconds of `.5`; further digits are lost.
    fn fraction(&mut self) -> u32 {
        let [b'.' | b',', digits @ ..] = self.rest else { return 0 };
        let count = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (fraction, rest) = digits.split_at(count);
        if count > 0 {
            self.rest = rest;
        }
        let digits = fraction.iter().map(|digit| u32::from(digit - b'0')).chain(std::iter::repeat(0));
        digits.take(9).fold(0, |nanos, digit| nanos * 10 + digit)
    }

    /// `Z` or `+01:00`, in seconds east of UTC.
    fn offset(&mut self) -> Result<i32, TimeError> {
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
        // Offsets of 24 hours or 60 minutes are in use. The range is checked before the format.
        let before = std::mem::replace(&mut self.rest, rest);
        if hours.is_some_and(|hours| hours > 24) {
            return Err(self.out_of_range("time zone offset hour"));
        }
        if minutes.is_some_and(|minutes| minutes > 60) {
            return Err(self.out_of_range("time zone offset minute"));
        }
        match (sign, hours, minutes) {
            (b'+', Some(hours), Some(minutes)) => Ok(i32::from(hours) * 3600 + i32::from(minutes) * 60),
            (b'-', Some(hours), Some(minutes)) => Ok(-(i32::from(hours) * 3600 + i32::from(minutes) * 60)),
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
        let found = normalize(text).map_err(|error| error.to_string());
        assert_eq!(found, expect.map(|time| time.map(str::to_owned)).map_err(str::to_owned));
    }

    #[test]
    fn times_come_out_in_utc_and_whole_seconds() {
        check("2026-01-02T03:04:05.678+01:00", Ok(Some("2026-01-02T02:04:05Z")));
        check("2026-01-02T3:04:05,5Z", Ok(Some("2026-01-02T03:04:05Z")));
        check("9999-12-31T23:59:59Z", Ok(Some("9999-12-31T23:59:59Z")));
        check("0001-01-01T00:00:00Z", Ok(None));
    }

    #[test]
    fn a_time_is_normal_on_each_day_of_the_calendar() {
        for year in [1900, 2000, 2023, 2024, 2100] {
            for (month, day) in (1..=12).flat_map(|month| (1..=31).map(move |day| (month, day))) {
                let text = format!("{year}-{month:02}-{day:02}T23:59:59Z");
                let expected = normalize(&text).is_ok_and(|normal| normal.as_ref() == Some(&text));
                assert_eq!(is_normal(&text), expected, "{text}");
            }
        }
    }

    #[test]
    fn normal_times_have_the_seconds_of_the_calendar() {
        let mut normal = 0;
        for seconds in (-60_000_000_000..253_402_300_800).step_by(12_345_677) {
            let text = Timestamp::from_second(seconds).expect("it is within the calendar").to_string();
            let found = normal_seconds(&text);
            assert!(found.is_none_or(|found| found == seconds), "{text}: {found:?}");
            normal += usize::from(found.is_some());
        }
        assert!(normal > 20_000, "{normal}");
        for text in ["", "2026-01-02T03:04:05", "2026-01-02T03:04:60Z", "2026-02-29T03:04:05Z", "é026-01-02T03:04:05Z"]
        {
            assert_eq!(normal_seconds(text), None, "{text}");
        }
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
        let date = |text: &str| parse_date(text).map_or_else(|error| error.to_string(), |_| String::new());
        assert_eq!(date("2026-1"), r#"parsing time "2026-1" as "2006-01-02": cannot parse "1" as "01""#);
        assert_eq!(date("2026-01-02T"), r#"parsing time "2026-01-02T": extra text: "T""#);
        check("2026-01-02T03:04:05Z!", Err("parsing time \"2026-01-02T03:04:05Z!\": extra text: \"!\""));
    }
}
