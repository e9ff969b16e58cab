//! A range of node ports, and in which order they are tried.
//!
//! Source: `pkg/registry/core/service/portallocator` and `k8s.io/apimachinery/pkg/util/net`, release 1.37.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use super::Refusal;

/// How many ports the lower part has at least, if there are more, and at most; else one of so many.
const LOWER_MIN: i64 = 16;
const LOWER_MAX: i64 = 128;
const LOWER_PART: i64 = 32;
const PORT_MAX: i64 = 65_535;

/// Ports from the first to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortRange {
    first: i64,
    last: i64,
}

impl Default for PortRange {
    fn default() -> Self {
        PortRange { first: 30_000, last: 32_767 }
    }
}

/// A text that is not a range of ports.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PortRangeError {
    /// It is not written as one.
    #[error("`{0}` is not a range of ports, as 30000-32767 is")]
    Syntax(String),
    /// It ends before it begins, or beyond the last port.
    #[error("`{0}` is not a range of ports between 0 and {PORT_MAX}")]
    Bounds(String),
}

impl FromStr for PortRange {
    type Err = PortRangeError;

    /// Reads `30000-32767`, `30000+2767` or one port.
    fn from_str(text: &str) -> Result<Self, PortRangeError> {
        let number = |text: &str| text.trim().parse::<i64>().ok();
        let ends = match (text.split_once('-'), text.split_once('+')) {
            (Some((first, last)), _) => number(first).zip(number(last)),
            (None, Some((first, more))) => {
                number(first).zip(number(more)).map(|(first, more)| (first, first.saturating_add(more).min(PORT_MAX)))
            }
            (None, None) => number(text).map(|port| (port, port)),
        };
        let (first, last) = ends.ok_or_else(|| PortRangeError::Syntax(text.to_owned()))?;
        if (0..=last).contains(&first) && last <= PORT_MAX {
            Ok(PortRange { first, last })
        } else {
            Err(PortRangeError::Bounds(text.to_owned()))
        }
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}-{}", self.first, self.last)
    }
}

impl PortRange {
    /// Why a port is not in the range.
    pub fn refuse(&self, port: i64) -> Option<Refusal> {
        (!(self.first..=self.last).contains(&port)).then(|| {
            Refusal::OutOfRange(format!("provided port is not in the valid range. The range of valid ports is {self}"))
        })
    }

    /// All ports in the order in which they are tried: from a random one of the upper part on, then of the lower part.
    pub fn candidates(&self, random: u64) -> impl Iterator<Item = i64> + use<> {
        let first = self.first;
        let size = self.last - first + 1;
        let lower = if size <= LOWER_MIN { 0 } else { (size / LOWER_PART).clamp(LOWER_MIN, LOWER_MAX) };
        let rotated = move |from: i64, count: i64| {
            let start = if count == 0 { 0 } else { (random >> 1) as i64 % count };
            (0..count).map(move |step| first + from + (start + step) % count)
        };
        rotated(lower, size - lower).chain(rotated(0, lower))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ranges_are_read() {
        for (text, shown) in [("30000-32767", "30000-32767"), ("30000+10", "30000-30010"), ("30000", "30000-30000")] {
            assert_eq!(text.parse::<PortRange>().map(|range| range.to_string()), Ok(shown.to_owned()));
        }
        for text in ["", "a-b", "2-1", "1-65536", "-1"] {
            assert!(text.parse::<PortRange>().is_err(), "{text}");
        }
    }

    #[test]
    fn each_port_is_tried_once_the_upper_ones_first() {
        let range = PortRange::default();
        let tried: Vec<_> = range.candidates(u64::MAX).collect();
        assert_eq!(tried.iter().collect::<BTreeSet<_>>().len(), 2768);
        assert!(tried[..2768 - 86].iter().all(|port| *port >= 30_086));
        assert!(tried.iter().all(|port| range.refuse(*port).is_none()));
        assert_eq!(
            range.refuse(80).map(|refusal| refusal.to_string()).as_deref(),
            Some("provided port is not in the valid range. The range of valid ports is 30000-32767")
        );
    }
}
