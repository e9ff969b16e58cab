//! The next step of a pod, and when it is due.

use std::time::Duration;

use jiff::Timestamp;

use crate::value::Value;

/// The next step of a pod.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    Nothing,
    After(Duration),
    /// It has this status now.
    Status(Value),
    /// It has ended, and must be deleted.
    Delete,
}

/// When something is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    Now,
    In(Duration),
}

pub(super) fn due(since: Option<Timestamp>, pause: Duration, now: Timestamp) -> Due {
    let pause = i128::try_from(pause.as_nanos()).unwrap_or(i128::MAX);
    let since = since.unwrap_or(now).as_nanosecond();
    let left = since.saturating_add(pause).saturating_sub(now.as_nanosecond());
    if left <= 0 { Due::Now } else { Due::In(Duration::from_nanos(u64::try_from(left).unwrap_or(u64::MAX))) }
}
