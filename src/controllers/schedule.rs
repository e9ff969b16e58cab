//! When a cron schedule is due.
//!
//! Input: a schedule that was checked, and a moment. Output: the next moment of the schedule, or the last. If both the
//! day of the month and the day of the week are restricted, a day matches if one of them does.
//!
//! Source: robfig/cron 3.0, which Kubernetes uses.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Span, Timestamp};

use crate::meta::{duration, time_zone};

/// How many years ahead are searched: every day of the calendar occurs within them.
const YEARS_MAX: i16 = 5;
const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// A schedule in a time zone.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    times: Times,
    zone: TimeZone,
}

#[derive(Clone, Debug)]
enum Times {
    Every(SignedDuration),
    /// A bit for each number that counts.
    Fields {
        minutes: u64,
        hours: u64,
        days: u64,
        months: u64,
        week_days: u64,
        /// Whether any day of the month, and of the week, counts.
        any: [bool; 2],
    },
}

impl Schedule {
    /// Reads a schedule, in `zone` unless it contains one itself; `None` for a text that is not a schedule.
    pub fn read(text: &str, zone: Option<&str>) -> Option<Self> {
        let prefixed = text.strip_prefix("TZ=").or_else(|| text.strip_prefix("CRON_TZ="));
        let (zone, text) = match prefixed.and_then(|rest| rest.split_once(' ')) {
            Some((own, rest)) => (Some(own), rest.trim()),
            None => (zone, text),
        };
        let zone = time_zone::find(zone.unwrap_or_default())?;
        if let Some(every) = text.strip_prefix("@every ") {
            let seconds = (duration::parse_go(every).ok()? / 1_000_000_000).max(1);
            return Some(Schedule { times: Times::Every(SignedDuration::from_secs(seconds)), zone });
        }
        let text = match text {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            text => text,
        };
        let fields: Vec<&str> = text.split_whitespace().collect();
        let &[minutes, hours, days, months, week_days] = fields.as_slice() else { return None };
        let is_any = |field: &str| field.split(',').any(|range| matches!(range.split('/').next(), Some("*" | "?")));
        let times = Times::Fields {
            minutes: bits(minutes, 0, 59, &[])?,
            hours: bits(hours, 0, 23, &[])?,
            days: bits(days, 1, 31, &[])?,
            months: bits(months, 1, 12, &MONTHS)?,
            week_days: bits(week_days, 0, 6, &DAYS)?,
            any: [is_any(days), is_any(week_days)],
        };
        Some(Schedule { times, zone })
    }

    /// The first moment of the schedule after `time`.
    pub fn next(&self, time: Timestamp) -> Option<Timestamp> {
        let Times::Fields { minutes, hours, months, .. } = self.times else {
            let Times::Every(every) = self.times else { return None };
            return Timestamp::from_second(time.as_second()).ok()?.checked_add(every).ok();
        };
        let start = self.zone.to_datetime(time);
        let mut at = floor(start)?.checked_add(Span::new().minutes(1)).ok()?;
        let has = |bits: u64, number: i8| bits & (1_u64 << number) != 0;
        while at.year() <= start.year() + YEARS_MAX {
            let later = if !has(months, at.month()) {
                at.date().last_of_month().tomorrow().ok()?.at(0, 0, 0, 0)
            } else if !self.has_day(at) {
                at.date().tomorrow().ok()?.at(0, 0, 0, 0)
            } else if !has(hours, at.hour()) {
                at.date().at(at.hour(), 0, 0, 0).checked_add(Span::new().hours(1)).ok()?
            } else if !has(minutes, at.minute()) {
                at.checked_add(Span::new().minutes(1)).ok()?
            } else {
                let found = self.zone.to_timestamp(at).ok()?;
                // An hour that occurs twice is used once.
                if found > time {
                    return Some(found);
                }
                at.checked_add(Span::new().minutes(1)).ok()?
            };
            at = later;
        }
        None
    }

    /// The last moment of the schedule after `since` and until `now`.
    ///
    /// It uses a binary search: since a time that a client chose, there may be a billion moments.
    pub fn last(&self, since: Timestamp, now: Timestamp) -> Option<Timestamp> {
        if let Times::Every(every) = self.times {
            let since = Timestamp::from_second(since.as_second()).ok()?;
            let count = now.duration_since(since).as_secs() / every.as_secs();
            let passed = SignedDuration::from_secs(every.as_secs().checked_mul(count)?);
            return since.checked_add(passed).ok().filter(|_| count > 0);
        }
        let next = |second: i64| self.next(Timestamp::from_second(second).ok()?).filter(|time| *time <= now);
        let mut last = self.next(since).filter(|time| *time <= now)?;
        // After `first` there is one, after `end` there is none.
        let (mut first, mut end) = (since.as_second(), now.as_second());
        while first + 1 < end {
            let middle = first + (end - first) / 2;
            match next(middle) {
                Some(time) => (first, last) = (middle, time),
                None => end = middle,
            }
        }
        Some(last)
    }

    fn has_day(&self, at: DateTime) -> bool {
        let Times::Fields { days, week_days, any, .. } = self.times else { return false };
        let of_month = days & (1_u64 << at.day()) != 0;
        let of_week = week_days & (1_u64 << at.weekday().to_sunday_zero_offset()) != 0;
        if any.contains(&true) { of_month && of_week } else { of_month || of_week }
    }
}

/// The minute of a time.
fn floor(time: DateTime) -> Option<DateTime> {
    DateTime::new(time.year(), time.month(), time.day(), time.hour(), time.minute(), 0, 0).ok()
}

/// A bit for each number in a field.
fn bits(field: &str, min: u32, max: u32, names: &[&str]) -> Option<u64> {
    let number = |text: &str| {
        let named = names.iter().position(|name| *name == text.to_lowercase());
        named.map(|at| at as u32 + min).or_else(|| text.parse().ok())
    };
    let mut bits = 0;
    for range in field.split(',').filter(|range| !range.is_empty()) {
        let (range, step) = range.split_once('/').map_or((range, None), |(range, step)| (range, Some(step)));
        let (first, last) = match range.split_once('-') {
            _ if matches!(range, "*" | "?") => (min, max),
            Some((first, last)) => (number(first)?, number(last)?),
            None if step.is_some() => (number(range)?, max),
            None => (number(range)?, number(range)?),
        };
        let step: usize = step.map_or(Some(1), |step| step.parse().ok()).filter(|step| *step > 0)?;
        if first > last || last > max {
            return None;
        }
        (first..=last).step_by(step).for_each(|number| bits |= 1_u64 << number);
    }
    Some(bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(schedule: &str, after: &str, expected: &str) {
        let schedule = Schedule::read(schedule, None).expect("a schedule");
        let next = schedule.next(after.parse().expect("a time")).map(|time| time.to_string());
        assert_eq!(next.as_deref(), Some(expected));
    }

    #[test]
    fn a_schedule_names_moments() {
        let start = "2026-01-01T10:10:30Z";
        check("* * * * *", start, "2026-01-01T10:11:00Z");
        check("*/15 * * * *", start, "2026-01-01T10:15:00Z");
        check("0 9-17/4 * * *", start, "2026-01-01T13:00:00Z");
        check("30 9 * * *", start, "2026-01-02T09:30:00Z");
        check("0 0 29 2 *", start, "2028-02-29T00:00:00Z");
        check("0 0 * * MON-FRI", "2026-01-02T10:00:00Z", "2026-01-05T00:00:00Z");
        // The thirteenth, and every Friday.
        check("0 0 13 * 5", start, "2026-01-02T00:00:00Z");
        check("@monthly", start, "2026-02-01T00:00:00Z");
        check("@every 1h30m", start, "2026-01-01T11:40:30Z");
        check("CRON_TZ=Asia/Tokyo 0 6 * * *", start, "2026-01-01T21:00:00Z");
    }

    #[test]
    fn the_last_moment_is_found_however_many_there_were() {
        let last = |schedule: &str, since: &str| {
            let schedule = Schedule::read(schedule, None).expect("a schedule");
            let now = "2026-11-25T10:10:30Z".parse().expect("a time");
            schedule.last(since.parse().expect("a time"), now).map(|time| time.to_string())
        };
        let long_ago = "0001-01-01T00:00:00Z";
        for (schedule, since, expected) in [
            ("* * * * *", long_ago, Some("2026-11-25T10:10:00Z")),
            ("30 9 * * *", long_ago, Some("2026-11-25T09:30:00Z")),
            ("* * 29 2 *", long_ago, Some("2024-02-29T23:59:00Z")),
            ("@every 7s", long_ago, Some("2026-11-25T10:10:26Z")),
            ("@every 7s", "2026-11-25T10:00:01Z", Some("2026-11-25T10:10:24Z")),
            ("0 0 31 2 *", long_ago, None),
            ("*/10 * * * *", "2026-11-25T10:00:00Z", Some("2026-11-25T10:10:00Z")),
            ("*/10 * * * *", "2026-11-25T10:10:00Z", None),
            ("@every 1h", "2026-11-25T10:00:00Z", None),
        ] {
            assert_eq!(last(schedule, since).as_deref(), expected, "{schedule}");
        }
    }

    #[test]
    fn what_never_comes_has_no_next() {
        let schedule = Schedule::read("0 0 31 2 *", None).expect("a schedule");
        assert_eq!(schedule.next("2026-01-01T00:00:00Z".parse().expect("a time")), None);
        assert!(Schedule::read("* * *", None).is_none() && Schedule::read("99 * * * *", None).is_none());
    }
}
