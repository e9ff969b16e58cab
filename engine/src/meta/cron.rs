//! Cron schedules and their validation: `*/5 1-3 * JAN,FEB MON`, `@daily`, `@every 1h30m`.
//!
//! Input: a text. Output: its error. The times at which a schedule is due are not computed here.
//!
//! Source: `ParseStandard` of robfig/cron 3.0, whose errors clients see.

use thiserror::Error;

use super::duration::{self, DurationError};
use super::time_zone::{self, TimeZoneError};
use super::{NumberError, atoi};
use crate::work;

/// The range of a field: the least and the largest number, and names from the least on.
#[derive(Clone, Copy)]
struct CronBounds {
    min: u64,
    max: u64,
    names: &'static [&'static str],
}

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// Minutes, hours, days of the month, months, days of the week.
const FIELDS: [CronBounds; 5] = [
    CronBounds { min: 0, max: 59, names: &[] },
    CronBounds { min: 0, max: 23, names: &[] },
    CronBounds { min: 1, max: 31, names: &[] },
    CronBounds { min: 1, max: 12, names: &MONTHS },
    CronBounds { min: 0, max: 6, names: &DAYS },
];

const DESCRIPTORS: [&str; 7] = ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];

/// The error of a schedule, in the words of the library; where the library panics, in those of the panic.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CronError {
    /// There is nothing.
    #[error("empty spec string")]
    Empty,
    /// There is only a time zone.
    #[error("invalid schedule format: runtime error: slice bounds out of range [:-1]")]
    ZoneAlone,
    /// There is no such time zone.
    #[error("provided bad location {zone}: {error}")]
    Zone {
        /// The name of the zone.
        zone: String,
        /// Why it can't be loaded.
        error: TimeZoneError,
    },
    /// An unknown word after `@`.
    #[error("unrecognized descriptor: {0}")]
    Descriptor(String),
    /// An interval that can't be read.
    #[error("failed to parse duration {descriptor}: {error}")]
    Interval {
        /// `@every` and the interval.
        descriptor: String,
        /// The error of the interval.
        error: DurationError,
    },
    /// Other than five fields.
    #[error("expected exactly 5 fields, found {}: [{}]", .0.len(), .0.join(" "))]
    FieldCount(Vec<String>),
    /// `1-2-3`
    #[error("too many hyphens: {0}")]
    Hyphens(String),
    /// `*/2/3`
    #[error("too many slashes: {0}")]
    Slashes(String),
    /// A range that begins too early.
    #[error("beginning of range ({start}) below minimum ({min}): {range}")]
    BelowMinimum {
        /// Where it begins.
        start: u64,
        /// Where it may begin.
        min: u64,
        /// As it is written.
        range: String,
    },
    /// A range that ends too late.
    #[error("end of range ({end}) above maximum ({max}): {range}")]
    AboveMaximum {
        /// Where it ends.
        end: u64,
        /// Where it may end.
        max: u64,
        /// As it is written.
        range: String,
    },
    /// A range that ends before it begins.
    #[error("beginning of range ({start}) beyond end of range ({end}): {range}")]
    Backwards {
        /// Where it begins.
        start: u64,
        /// Where it ends.
        end: u64,
        /// As it is written.
        range: String,
    },
    /// `*/0`
    #[error("step of range should be a positive number: {0}")]
    Step(String),
    /// Not a number.
    #[error("failed to parse int from {text}: {error}")]
    Number {
        /// As it is written.
        text: String,
        /// What is wrong with it.
        error: NumberError,
    },
    /// A number below zero.
    #[error("negative number ({number}) not allowed: {text}")]
    Negative {
        /// The number.
        number: i64,
        /// As it is written.
        text: String,
    },
}

/// Checks a schedule.
///
/// # Errors
///
/// The first error.
pub fn check(schedule: &str) -> Result<(), CronError> {
    if schedule.is_empty() {
        return Err(CronError::Empty);
    }
    work::bytes(schedule.len());
    let schedule = without_zone(schedule)?;
    if schedule.starts_with('@') {
        return check_descriptor(schedule);
    }
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        return Err(CronError::FieldCount(fields.into_iter().map(str::to_owned).collect()));
    }
    fields.iter().zip(&FIELDS).try_for_each(|(field, bounds)| check_field(field, bounds))
}

/// The schedule without the time zone before it.
fn without_zone(schedule: &str) -> Result<&str, CronError> {
    let Some(rest) = schedule.strip_prefix("TZ=").or_else(|| schedule.strip_prefix("CRON_TZ=")) else {
        return Ok(schedule);
    };
    let Some((zone, rest)) = rest.split_once(' ') else {
        return Err(CronError::ZoneAlone);
    };
    time_zone::check(zone).map_err(|error| CronError::Zone { zone: zone.to_owned(), error })?;
    Ok(rest.trim())
}

fn check_descriptor(descriptor: &str) -> Result<(), CronError> {
    if DESCRIPTORS.contains(&descriptor) {
        return Ok(());
    }
    let Some(every) = descriptor.strip_prefix("@every ") else {
        return Err(CronError::Descriptor(descriptor.to_owned()));
    };
    let failed = |error| CronError::Interval { descriptor: descriptor.to_owned(), error };
    duration::parse_go(every).map(drop).map_err(failed)
}

fn check_field(field: &str, bounds: &CronBounds) -> Result<(), CronError> {
    let mut ranges = field.split(',').filter(|range| !range.is_empty());
    ranges.try_for_each(|range| check_range(range, bounds))
}

/// `*`, `3`, `3-5`, and each with a step: `*/2`.
fn check_range(range: &str, bounds: &CronBounds) -> Result<(), CronError> {
    let (low_and_high, steps) = range.split_once('/').map_or((range, None), |(range, steps)| (range, Some(steps)));
    let (low, high) = low_and_high.split_once('-').map_or((low_and_high, None), |(low, high)| (low, Some(high)));
    let (start, mut end) = match low {
        "*" | "?" => (bounds.min, bounds.max),
        _ => {
            let start = number_or_name(low, bounds)?;
            match high {
                None => (start, start),
                Some(high) if high.contains('-') => return Err(CronError::Hyphens(range.to_owned())),
                Some(high) => (start, number_or_name(high, bounds)?),
            }
        }
    };
    let mut step = 1;
    if let Some(steps) = steps {
        if steps.contains('/') {
            return Err(CronError::Slashes(range.to_owned()));
        }
        step = number(steps)?;
        if high.is_none() {
            end = bounds.max;
        }
    }
    check_limits(start, end, bounds, range)?;
    if step == 0 {
        return Err(CronError::Step(range.to_owned()));
    }
    Ok(())
}

fn check_limits(start: u64, end: u64, bounds: &CronBounds, range: &str) -> Result<(), CronError> {
    let (CronBounds { min, max, .. }, range) = (*bounds, || range.to_owned());
    if start < min {
        return Err(CronError::BelowMinimum { start, min, range: range() });
    }
    if end > max {
        return Err(CronError::AboveMaximum { end, max, range: range() });
    }
    if start > end {
        return Err(CronError::Backwards { start, end, range: range() });
    }
    Ok(())
}

fn number_or_name(text: &str, bounds: &CronBounds) -> Result<u64, CronError> {
    let lower = text.to_lowercase();
    match (bounds.min..).zip(bounds.names).find(|(_, name)| **name == lower) {
        Some((number, _)) => Ok(number),
        None => number(text),
    }
}

fn number(text: &str) -> Result<u64, CronError> {
    let number = atoi(text).map_err(|error| CronError::Number { text: text.to_owned(), error })?;
    u64::try_from(number).map_err(|_| CronError::Negative { number, text: text.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_that_are_in_order() {
        for schedule in [
            "* * * * *",
            "*/5 1-3,7 ? JAN-mar 0/2",
            "@midnight",
            "@every 1h30m",
            "TZ=UTC 0 0 1 1 SUN",
            "CRON_TZ=Europe/Berlin   @daily",
            ", , , , ,",
        ] {
            assert_eq!(check(schedule), Ok(()), "{schedule}");
        }
    }

    #[test]
    fn errors_are_those_of_the_library() {
        for (schedule, error) in [
            ("", "empty spec string"),
            ("* *", "expected exactly 5 fields, found 2: [* *]"),
            ("60 * * * *", "end of range (60) above maximum (59): 60"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            ("5-3 * * * *", "beginning of range (5) beyond end of range (3): 5-3"),
            ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
            ("*/2/3 * * * *", "too many slashes: */2/3"),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
            ("*/-1 * * * *", "negative number (-1) not allowed: -1"),
            ("x * * * *", "failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax"),
            ("-1 * * * *", "failed to parse int from : strconv.Atoi: parsing \"\": invalid syntax"),
            ("@often", "unrecognized descriptor: @often"),
            ("@every x", "failed to parse duration @every x: time: invalid duration \"x\""),
            ("@every 1", "failed to parse duration @every 1: time: missing unit in duration \"1\""),
            ("@every 1y", "failed to parse duration @every 1y: time: unknown unit \"y\" in duration \"1y\""),
            ("TZ=0", "invalid schedule format: runtime error: slice bounds out of range [:-1]"),
            ("TZ=Nowhere * * * * *", "provided bad location Nowhere: unknown time zone Nowhere"),
        ] {
            assert_eq!(check(schedule).map_err(|error| error.to_string()), Err(error.to_owned()), "{schedule}");
        }
    }
}
