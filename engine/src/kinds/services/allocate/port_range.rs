//! A range of node ports, and the order in which they are tried.
//!
//! Source: `pkg/registry/core/service/portallocator` and `k8s.io/apimachinery/pkg/util/net`, release 1.37.

use std::fmt;
use std::num::IntErrorKind;
use std::str::FromStr;

use thiserror::Error;

use super::Refusal;
use crate::value::go_quote;

/// The minimum size of the lower part; `LOWER_MAX` is the maximum, and in between it is one in `LOWER_PART` of the
/// range. A range of at most `LOWER_MIN` ports has no lower part.
const LOWER_MIN: i64 = 16;
const LOWER_MAX: i64 = 128;
const LOWER_PART: i64 = 32;
const PORT_MAX: i64 = 65_535;

/// The ports from `first` to `last`, inclusive.
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

/// Why a text is not a range of ports, with Go's messages.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PortRangeError {
    /// An end is not a number.
    #[error("strconv.Atoi: parsing {}: {why}", go_quote(.text))]
    Number {
        /// The text at that end.
        text: String,
        /// The reason.
        why: &'static str,
    },
    /// The text uses both `-` and `+`.
    #[error("unable to parse port range: {0}")]
    Syntax(String),
    /// The range exceeds the last port.
    #[error("the port range cannot be greater than {PORT_MAX}: {0}")]
    Bounds(String),
    /// The range ends before it begins.
    #[error("end port cannot be less than start port: {0}")]
    Backwards(String),
}

impl FromStr for PortRange {
    type Err = PortRangeError;

    /// Parses `30000-32767`, `30000+2767` or a single port.
    fn from_str(text: &str) -> Result<Self, PortRangeError> {
        let text = text.trim();
        let (first, last) = match (text.split_once('-'), text.split_once('+')) {
            (Some(_), Some(_)) => return Err(PortRangeError::Syntax(text.to_owned())),
            (Some((first, last)), None) => (number(first)?, number(last)?),
            (None, Some((first, more))) => {
                let first = number(first)?;
                (first, first.saturating_add(number(more)?))
            }
            (None, None) => (number(text)?, number(text)?),
        };
        if first.max(last) > PORT_MAX {
            Err(PortRangeError::Bounds(text.to_owned()))
        } else if last < first {
            Err(PortRangeError::Backwards(text.to_owned()))
        } else {
            Ok(PortRange { first, last })
        }
    }
}

/// One end of a range, or the number of ports after the first one.
fn number(text: &str) -> Result<i64, PortRangeError> {
    text.parse::<i64>().map_err(|error| {
        let is_beyond = matches!(error.kind(), IntErrorKind::PosOverflow | IntErrorKind::NegOverflow);
        let why = if is_beyond { "value out of range" } else { "invalid syntax" };
        PortRangeError::Number { text: text.to_owned(), why }
    })
}

impl fmt::Display for PortRange {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}-{}", self.first, self.last)
    }
}

impl PortRange {
    /// Why a port is not in the range, if it is not.
    pub fn refuse(&self, port: i64) -> Option<Refusal> {
        (!(self.first..=self.last).contains(&port)).then(|| {
            Refusal::OutOfRange(format!("provided port is not in the valid range. The range of valid ports is {self}"))
        })
    }

    /// All ports in the order in which they are tried: those of the upper part from a random one on, then those of the
    /// lower part.
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
    }

    /// The messages are those of kube-apiserver 1.36.
    #[test]
    fn what_is_not_a_range_is_told_as_there() {
        for (text, expected) in [
            ("x", "strconv.Atoi: parsing \"x\": invalid syntax"),
            ("1-", "strconv.Atoi: parsing \"\": invalid syntax"),
            ("-1", "strconv.Atoi: parsing \"\": invalid syntax"),
            ("1-2-3", "strconv.Atoi: parsing \"2-3\": invalid syntax"),
            ("30000+x", "strconv.Atoi: parsing \"x\": invalid syntax"),
            ("9999999999999999999", "strconv.Atoi: parsing \"9999999999999999999\": value out of range"),
            ("1-2+3", "unable to parse port range: 1-2+3"),
            ("2-1", "end port cannot be less than start port: 2-1"),
            ("1-70000", "the port range cannot be greater than 65535: 1-70000"),
            ("65000+1000", "the port range cannot be greater than 65535: 65000+1000"),
        ] {
            assert_eq!(
                text.parse::<PortRange>().map_err(|fault| fault.to_string()),
                Err(expected.to_owned()),
                "{text}"
            );
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
