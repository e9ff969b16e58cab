//! The minor version of Kubernetes to emulate.
//!
//! Differences between minors are data, kept where they belong: a CEL function has the version that added it and its
//! former costs ([`crate::cel::function::Overload`]), a format the version that began to check it ([`super::format`]),
//! a type of a built-in kind the version that introduced it (`schemas/types`). A [`Minor`] is always passed as an
//! argument and is stored nowhere else. It carries the feature gates that were set.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use thiserror::Error;

use super::gate::Gates;

/// A minor version of Kubernetes: 1.36.
///
/// ```
/// use kubeskiff_engine::meta::minor::Minor;
///
/// let minor = Minor::parse("1.36")?;
/// assert!(minor < Minor::NEWEST && minor == Minor::of(36));
/// assert_eq!(minor.to_string(), "1.36");
/// # Ok::<(), kubeskiff_engine::meta::minor::MinorError>(())
/// ```
///
/// Two that only differ in their feature gates are equal.
#[derive(Clone, Copy, Debug)]
pub struct Minor {
    number: u16,
    gates: Gates,
}

/// Why a text does not name minor versions.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MinorError {
    /// It is not a version, or not a supported one.
    #[error("`{text}` is not a minor version of Kubernetes from {} to {}", Minor::OLDEST, Minor::NEWEST)]
    Unknown {
        /// What stands there.
        text: String,
    },
    /// A range that ends before it begins.
    #[error("`{0}` ends before it begins")]
    Backwards(String),
}

impl Minor {
    /// The oldest supported minor.
    pub const OLDEST: Minor = Minor::of(29);
    /// The newest supported minor, which is the default.
    pub const NEWEST: Minor = Minor::of(37);
    /// How many there are.
    pub const COUNT: usize = (Minor::NEWEST.number - Minor::OLDEST.number + 1) as usize;

    /// 1.`minor`, supported or not: features may be older than the oldest supported minor.
    pub const fn of(minor: u16) -> Minor {
        Minor { number: minor, gates: Gates::UNSET }
    }

    /// The same with the feature gates that were set.
    #[must_use]
    pub const fn with_gates(self, gates: Gates) -> Minor {
        Minor { gates, ..self }
    }

    /// The feature gates that were set.
    pub const fn gates(self) -> Gates {
        self.gates
    }

    /// All supported minors, the oldest first.
    pub fn all() -> impl DoubleEndedIterator<Item = Minor> {
        (Minor::OLDEST.number..=Minor::NEWEST.number).map(Minor::of)
    }

    /// 36 of 1.36.
    pub const fn number(self) -> u16 {
        self.number
    }

    /// The minor before: a server that is rolled back to it must still understand what was stored.
    #[must_use]
    pub const fn previous(self) -> Minor {
        Minor { number: self.number.saturating_sub(1), ..self }
    }

    /// The one after it.
    #[must_use]
    pub const fn next(self) -> Minor {
        Minor { number: self.number + 1, ..self }
    }

    /// Its index among all supported minors; older ones count as the oldest, newer ones as the newest.
    pub fn index(self) -> usize {
        usize::from(self.clamp(Minor::OLDEST, Minor::NEWEST).number - Minor::OLDEST.number)
    }

    /// Reads `1.36`, `v1.36` or `1.36.2`.
    ///
    /// # Errors
    /// The text is not a version, or not a supported one.
    pub fn parse(text: &str) -> Result<Minor, MinorError> {
        let refused = || MinorError::Unknown { text: text.to_owned() };
        let version = text.strip_prefix('v').unwrap_or(text);
        let mut parts = version.split('.');
        let (major, minor) = (parts.next(), parts.next());
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let has_fine_rest = parts.clone().count() <= 1 && parts.all(is_number);
        let minor = minor.filter(|minor| major == Some("1") && has_fine_rest && is_number(minor));
        let minor = minor.and_then(|minor| minor.parse().ok()).map(Minor::of).ok_or_else(refused)?;
        if (Minor::OLDEST..=Minor::NEWEST).contains(&minor) { Ok(minor) } else { Err(refused()) }
    }

    /// Reads a list of minors and ranges of them (`1.30,1.34`, `1.29-1.37`, `1.29..1.37`): in rising order, each once.
    ///
    /// # Errors
    /// A part is not a version, or is a range that ends before it begins.
    pub fn parse_list(text: &str) -> Result<Vec<Minor>, MinorError> {
        let mut minors = Vec::new();
        for part in text.split(',').map(str::trim) {
            let Some((first, last)) = part.split_once("..").or_else(|| part.split_once('-')) else {
                minors.push(Minor::parse(part)?);
                continue;
            };
            let (first, last) = (Minor::parse(first.trim())?, Minor::parse(last.trim())?);
            if last < first {
                return Err(MinorError::Backwards(part.to_owned()));
            }
            minors.extend(Minor::all().filter(|minor| (first..=last).contains(minor)));
        }
        minors.sort_unstable();
        minors.dedup();
        Ok(minors)
    }
}

impl Default for Minor {
    fn default() -> Self {
        Minor::NEWEST
    }
}

impl PartialEq for Minor {
    fn eq(&self, other: &Minor) -> bool {
        self.number == other.number
    }
}

impl Eq for Minor {}

impl PartialOrd for Minor {
    fn partial_cmp(&self, other: &Minor) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Minor {
    fn cmp(&self, other: &Minor) -> Ordering {
        self.number.cmp(&other.number)
    }
}

impl Hash for Minor {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number.hash(state);
    }
}

impl fmt::Display for Minor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "1.{}", self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_ranges_are_minors_in_rising_order() {
        let show = |text| {
            let minors = Minor::parse_list(text)?;
            Ok::<_, MinorError>(minors.iter().map(Minor::to_string).collect::<Vec<_>>().join(" "))
        };
        let show = |text| show(text).map_err(|error| error.to_string());
        assert_eq!(show("1.30").as_deref(), Ok("1.30"));
        assert_eq!(show("v1.34, 1.30.4,1.34").as_deref(), Ok("1.30 1.34"));
        assert_eq!(show("1.29-1.31,1.36..1.37").as_deref(), Ok("1.29 1.30 1.31 1.36 1.37"));
        assert_eq!(show("1.31-1.30").unwrap_err(), "`1.31-1.30` ends before it begins");
        for wrong in ["", "1", "2.30", "1.28", "1.38", "1.x", "1.30.", "1.30.1.2", "1.+30"] {
            let refused = format!("`{wrong}` is not a minor version of Kubernetes from 1.29 to 1.37");
            assert_eq!(show(wrong).unwrap_err(), refused);
        }
    }
}
