//! Times on a calendar and a clock, and durations and times as texts.

use super::eval::value::{Duration, Timestamp};
use crate::value::number;

/// Nanoseconds in a second.
const NANOS: i64 = 1_000_000_000;

/// Formats a duration in seconds: `5400s`, `0.5s`.
pub fn duration_text(length: Duration) -> String {
    // The sum of the whole and the fraction, each rounded to a double.
    let seconds = (length.0 / NANOS) as f64 + (length.0 % NANOS) as f64 / 1e9;
    format!("{}s", number::format_float_f(seconds))
}

/// Formats a time as RFC 3339 in the timestamp's own zone, with as many fractional digits as necessary.
pub fn timestamp_text(timestamp: Timestamp) -> String {
    let clock = CalendarTime::of(timestamp, i64::from(timestamp.offset_seconds));
    let (hour, minute, second) = (clock.second_of_day / 3600, clock.second_of_day / 60 % 60, clock.second_of_day % 60);
    let fraction = match timestamp.nanos {
        0 => String::new(),
        nanos => format!(".{nanos:09}").trim_end_matches('0').to_owned(),
    };
    let offset = match timestamp.offset_seconds / 60 {
        _ if timestamp.offset_seconds == 0 => "Z".to_owned(),
        minutes => {
            let sign = if minutes < 0 { '-' } else { '+' };
            format!("{sign}{:02}:{:02}", minutes.abs() / 60, minutes.abs() % 60)
        }
    };
    let CalendarTime { year, month, day, .. } = clock;
    let year = if year < 0 { format!("-{:04}", -year) } else { format!("{year:04}") };
    format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}{offset}")
}

/// Formats the time as Go's `%#v` prints a `time.Time`.
pub fn timestamp_syntax(timestamp: Timestamp) -> String {
    let clock = CalendarTime::of(timestamp, i64::from(timestamp.offset_seconds));
    let (hour, minute, second) = (clock.second_of_day / 3600, clock.second_of_day / 60 % 60, clock.second_of_day % 60);
    let month = usize::try_from(clock.month - 1).ok().and_then(|at| MONTHS.get(at)).unwrap_or(&MONTHS[0]);
    let zone = if timestamp.offset_seconds == 0 { "time.UTC" } else { "time.Location(\"\")" };
    let (CalendarTime { year, day, .. }, nanos) = (clock, timestamp.nanos);
    format!("time.Date({year}, time.{month}, {day}, {hour}, {minute}, {second}, {nanos}, {zone})")
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// The parts of a time on a calendar and a clock.
pub(in crate::cel) struct CalendarTime {
    pub year: i64,
    /// From 1.
    pub month: i64,
    /// From 1.
    pub day: i64,
    pub second_of_day: i64,
    pub milliseconds: i64,
    /// Since the start of 1970.
    days: i64,
}

impl CalendarTime {
    pub fn of(timestamp: Timestamp, offset_seconds: i64) -> Self {
        let seconds = timestamp.seconds.saturating_add(offset_seconds);
        let days = seconds.div_euclid(86_400);
        let (year, month, day) = date_of(days);
        CalendarTime {
            year,
            month,
            day,
            second_of_day: seconds.rem_euclid(86_400),
            milliseconds: i64::from(timestamp.nanos / 1_000_000),
            days,
        }
    }

    /// From 0, which is Sunday.
    pub fn weekday(&self) -> i64 {
        // The first day was a Thursday.
        (self.days + 4).rem_euclid(7)
    }

    pub fn days_since_new_year(&self) -> i64 {
        self.days - days_until(self.year, 1, 1)
    }
}

/// Days from the start of 1970 until a day of the Gregorian calendar.
fn days_until(year: i64, month: i64, day: i64) -> i64 {
    // In years that begin in March, the leap day comes last.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Year, month and day, from the days since the start of 1970.
fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day)
}
