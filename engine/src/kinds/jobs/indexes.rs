//! Lists of indexes as a text: `0-2,4,7-9`.
//!
//! Source: `validateIndexesFormat` of Kubernetes 1.37.

use thiserror::Error;

use crate::value::go_quote;
use crate::work;

/// The errors of a list of indexes, in Kubernetes' words.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum IndexError {
    /// `0-1-2`
    #[error(
        "the fragment {} violates the requirement that an index interval can have at most two parts separated by '-'",
        go_quote(.0)
    )]
    Parts(String),
    /// Not a number.
    #[error("cannot convert string to integer for index: {}", go_quote(.0))]
    NotANumber(String),
    /// As many as the completions, or more.
    #[error("too large index: {}", go_quote(.0))]
    TooLarge(String),
    /// The second is not after the first.
    #[error("non-increasing order, previous: {0}, current: {1}")]
    Disordered(i64, i64),
}

/// How many indexes the text lists, of a job with `completions`.
///
/// # Errors
///
/// The text is not such a list.
pub fn count(text: &str, completions: i64) -> Result<i64, IndexError> {
    if text.is_empty() {
        return Ok(0);
    }
    let mut last: Option<i64> = None;
    let mut total: i64 = 0;
    for interval in text.split(',') {
        let (first, end) = parse_interval(interval, completions)?;
        if let Some(last) = last.filter(|last| *last >= first) {
            return Err(IndexError::Disordered(last, first));
        }
        total = total.saturating_add(end - first + 1);
        last = Some(end);
    }
    Ok(total)
}

/// The first index that both texts list; intervals that can't be read are passed over.
pub fn overlap(completed: &str, failed: &str, completions: i64) -> Option<i64> {
    let read = |text: &'_ str| -> Vec<(i64, i64)> {
        text.split(',').filter_map(|interval| parse_interval(interval, completions).ok()).collect()
    };
    let (completed, failed) = (read(completed), read(failed));
    let (mut completed, mut failed) = (completed.into_iter().peekable(), failed.into_iter().peekable());
    while let (Some(done), Some(lost)) = (completed.peek().copied(), failed.peek().copied()) {
        work::step();
        if done.0 <= lost.1 && lost.0 <= done.1 {
            return Some(done.0.max(lost.0));
        }
        if done.0 <= lost.0 {
            completed.next();
        } else {
            failed.next();
        }
    }
    None
}

/// `4`, or `0-2`.
fn parse_interval(interval: &str, completions: i64) -> Result<(i64, i64), IndexError> {
    work::bytes(interval.len());
    let mut parts = interval.split('-');
    let (first, end) = (parts.next().unwrap_or_default(), parts.next());
    if parts.next().is_some() {
        return Err(IndexError::Parts(interval.to_owned()));
    }
    let first = parse_index(first, completions)?;
    let Some(end) = end else { return Ok((first, first)) };
    let end = parse_index(end, completions)?;
    if first >= end {
        return Err(IndexError::Disordered(first, end));
    }
    Ok((first, end))
}

fn parse_index(text: &str, completions: i64) -> Result<i64, IndexError> {
    let digits = text.strip_prefix('+').unwrap_or(text);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let index: Option<i64> = digits.parse().ok().filter(|_| is_number);
    let index = index.ok_or_else(|| IndexError::NotANumber(text.to_owned()))?;
    if index >= completions {
        return Err(IndexError::TooLarge(text.to_owned()));
    }
    Ok(index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_listed_in_their_order() {
        for (text, expected) in [
            ("", Ok(0)),
            ("0-2,4,7-9", Ok(7)),
            ("2-1", Err("non-increasing order, previous: 2, current: 1")),
            ("1,1", Err("non-increasing order, previous: 1, current: 1")),
            ("1,", Err("cannot convert string to integer for index: \"\"")),
            ("10", Err("too large index: \"10\"")),
            (
                "1-2-3",
                Err(
                    "the fragment \"1-2-3\" violates the requirement that an index interval can have at most two parts \
                     separated by '-'",
                ),
            ),
        ] {
            assert_eq!(count(text, 10).map_err(|error| error.to_string()), expected.map_err(str::to_owned), "{text}");
        }
    }

    #[test]
    fn lists_overlap_at_their_first_common_index() {
        assert_eq!(overlap("0-2,5", "3-4,x,5-6", 10), Some(5));
        assert_eq!(overlap("0-2", "3", 10), None);
    }
}
