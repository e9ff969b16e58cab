//! Parses formatted strings as Go's `strfmt` does: durations, days, times and base64.

use super::error::EvalError;
use super::value::{Duration, Timestamp};
use crate::meta::duration::{self, DurationError};
use crate::meta::time::{self, TimeError};
use crate::value::base64;

/// Parses a duration: `1h30m`, or words as in `in 2 days`.
pub(super) fn duration(text: &str) -> Result<Duration, EvalError> {
    let invalid = |why: DurationError| EvalError::new(format!("Invalid duration {text}: {why}"));
    duration::parse_lenient(text).map(Duration).map_err(invalid)
}

/// Parses a day: `2006-01-02`.
pub(super) fn date(text: &str) -> Result<Timestamp, EvalError> {
    let invalid = |why: TimeError| EvalError::new(format!("Invalid date formatted string {text}: {why}"));
    time::parse_date(text).map(Timestamp::from).map_err(invalid)
}

/// Parses a time: RFC 3339, or the same without a zone; an empty text is the start of 1970.
pub(super) fn date_time(text: &str) -> Result<Timestamp, EvalError> {
    if text.is_empty() {
        return Ok(Timestamp::default());
    }
    let invalid = |why: TimeError| EvalError::new(format!("Invalid date-time formatted string {text}: {why}"));
    time::parse(text).or_else(|_| time::parse_local(text)).map(Timestamp::from).map_err(invalid)
}

/// Parses base64 with the URL alphabet.
pub(super) fn bytes(text: &str) -> Result<Vec<u8>, EvalError> {
    let standard: String = text
        .chars()
        .map(|symbol| match symbol {
            '-' => '+',
            '_' => '/',
            '+' | '/' => '!',
            other => other,
        })
        .collect();
    base64::decode(&standard).map_err(|why| EvalError::new(format!("Invalid byte formatted string {text}: {why}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text<T>(result: Result<T, EvalError>) -> String {
        result.err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn durations_are_gos_or_words() {
        for (text, nanos) in
            [("1h30m", 5_400_000_000_000), ("-1.5s", -1_500_000_000), ("in 2 days", 172_800_000_000_000)]
        {
            assert_eq!(duration(text), Ok(Duration(nanos)), "{text}");
        }
        assert_eq!(text(duration("soon")), "Invalid duration soon: unable to parse soon as duration");
    }

    #[test]
    fn times_are_read_with_their_zones() {
        assert_eq!(date("2024-02-29").map(|date| date.seconds), Ok(1_709_164_800));
        assert_eq!(date_time("1969-12-31T23:59:59Z").map(|time| time.seconds), Ok(-1));
        let time = date_time("2024-01-01T00:00:00.5+02:00").map(|time| (time.seconds, time.nanos, time.offset_seconds));
        assert_eq!(time, Ok((1_704_060_000, 500_000_000, 7200)));
        assert_eq!(date_time("2024-01-01T00:00:00").map(|time| time.seconds), Ok(1_704_067_200));
    }

    #[test]
    fn faults_are_told_in_gos_words() {
        for (given, why) in [
            ("x", r#"parsing time "x" as "2006-01-02": cannot parse "x" as "2006""#),
            ("2024-13-01", r#"parsing time "2024-13-01": month out of range"#),
            ("2023-02-29", r#"parsing time "2023-02-29": day out of range"#),
            ("2023-02-2", r#"parsing time "2023-02-2" as "2006-01-02": cannot parse "2" as "02""#),
            ("2023-02-20Z", r#"parsing time "2023-02-20Z": extra text: "Z""#),
        ] {
            assert_eq!(text(date(given)), format!("Invalid date formatted string {given}: {why}"));
        }
        assert_eq!(text(bytes("a+b=")), "Invalid byte formatted string a+b=: illegal base64 data at input byte 1");
    }
}
