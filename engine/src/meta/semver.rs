//! Semantic versions: `1.2.3-rc.1+build`.
//!
//! Source: Semantic Versioning 2.0.0; the errors are those of the Go library that Kubernetes parses versions with
//! (blang/semver 4).

use std::cmp::Ordering;
use std::fmt;

use thiserror::Error;

use super::number::{NumberError, parse_uint};
use crate::value::go_quote;
use crate::work;

/// A version. Versions that only differ in their build are equal.
#[derive(Clone, Debug)]
pub struct Semver {
    /// The first number.
    pub major: u64,
    /// The second number.
    pub minor: u64,
    /// The third number.
    pub patch: u64,
    prerelease: Vec<Identifier>,
    build: String,
}

/// A part of a pre-release. Numbers come before words.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Identifier {
    Number(u64),
    Word(String),
}

impl Identifier {
    fn go_syntax(&self) -> String {
        let (word, number, is_number) = match self {
            Identifier::Number(number) => ("", *number, true),
            Identifier::Word(word) => (word.as_str(), 0, false),
        };
        let word = go_quote(word);
        format!("semver.PRVersion{{VersionStr:{word}, VersionNum:{number:#x}, IsNum:{is_number}}}")
    }
}

/// A slice as Go's `%#v` prints it; an empty one is nil.
fn slice_syntax(go_type: &str, items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items.collect();
    if items.is_empty() { format!("{go_type}(nil)") } else { format!("{go_type}{{{}}}", items.join(", ")) }
}

/// Why a text is not a version, in the words of the library.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SemverError {
    /// There is nothing.
    #[error("Version string empty")]
    Empty,
    /// There are not three numbers.
    #[error("No Major.Minor.Patch elements found")]
    TooShort,
    /// A version of less than three numbers has a pre-release or a build.
    #[error("short version cannot contain PreRelease/Build meta data")]
    ShortWithMore,
    /// A part of the pre-release is empty.
    #[error("Prerelease is empty")]
    EmptyPrerelease,
    /// A part of the build is empty.
    #[error("Build meta data is empty")]
    EmptyBuild,
    /// A part contains invalid characters.
    #[error("Invalid character(s) found in {part} {}", go_quote(.text))]
    Characters {
        /// `major number`, `prerelease`.
        part: &'static str,
        /// What stands there.
        text: String,
    },
    /// A number begins with a zero.
    #[error("{part} must not contain leading zeroes {}", go_quote(.text))]
    LeadingZeros {
        /// `Major number`.
        part: &'static str,
        /// What stands there.
        text: String,
    },
    /// A number is too large.
    #[error(transparent)]
    Number(#[from] NumberError),
}

impl Semver {
    /// As Go's `%#v` prints it.
    pub fn go_syntax(&self) -> String {
        let Semver { major, minor, patch, .. } = self;
        let prerelease = slice_syntax("[]semver.PRVersion", self.prerelease.iter().map(Identifier::go_syntax));
        let build = self.build.split('.').filter(|part| !part.is_empty()).map(go_quote);
        let build = slice_syntax("[]string", build);
        format!(
            "semver.Version{{Major:{major:#x}, Minor:{minor:#x}, Patch:{patch:#x}, Pre:{prerelease}, Build:{build}}}"
        )
    }

    /// `0.0.0`
    pub const ZERO: Semver = Semver { major: 0, minor: 0, patch: 0, prerelease: Vec::new(), build: String::new() };

    /// Reads a version, all three numbers given.
    ///
    /// # Errors
    ///
    /// The text is not a version.
    pub fn parse(text: &str) -> Result<Self, SemverError> {
        work::bytes(text.len());
        if text.is_empty() {
            return Err(SemverError::Empty);
        }
        let mut parts = text.splitn(3, '.');
        let (Some(major), Some(minor), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(SemverError::TooShort);
        };
        let major = number(major, "major number", "Major number")?;
        let minor = number(minor, "minor number", "Minor number")?;
        let (rest, build) = match rest.split_once('+') {
            Some((rest, build)) => (rest, Some(build)),
            None => (rest, None),
        };
        let (patch, prerelease) = match rest.split_once('-') {
            Some((patch, prerelease)) => (patch, Some(prerelease)),
            None => (rest, None),
        };
        let patch = number(patch, "patch number", "Patch number")?;
        let prerelease: Result<Vec<_>, _> =
            prerelease.into_iter().flat_map(|parts| parts.split('.')).map(identifier).collect();
        let prerelease = prerelease?;
        for part in build.into_iter().flat_map(|parts| parts.split('.')) {
            if part.is_empty() {
                return Err(SemverError::EmptyBuild);
            }
            if !is_word(part) {
                return Err(SemverError::Characters { part: "build meta data", text: part.to_owned() });
            }
        }
        Ok(Semver { major, minor, patch, prerelease, build: build.unwrap_or_default().to_owned() })
    }

    /// Reads a version; the last numbers may be missing, and a `v` before it and leading zeros are allowed.
    ///
    /// # Errors
    ///
    /// As [`Semver::parse`], and a short version with a pre-release or a build.
    pub fn parse_tolerant(text: &str) -> Result<Self, SemverError> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let mut parts: Vec<String> = text.splitn(3, '.').map(without_leading_zeros).collect();
        if parts.len() < 3 {
            if parts.last().is_some_and(|last| last.contains(['+', '-'])) {
                return Err(SemverError::ShortWithMore);
            }
            parts.resize(3, "0".to_owned());
        }
        Semver::parse(&parts.join("."))
    }
}

fn without_leading_zeros(part: &str) -> String {
    if part.len() <= 1 {
        return part.to_owned();
    }
    let trimmed = part.trim_start_matches('0');
    if trimmed.starts_with(|char: char| char.is_ascii_digit()) { trimmed.to_owned() } else { format!("0{trimmed}") }
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_word(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn has_leading_zero(text: &str) -> bool {
    text.len() > 1 && text.starts_with('0')
}

/// A number, which errors call `part`, or `title` at the start of a sentence.
fn number(text: &str, part: &'static str, title: &'static str) -> Result<u64, SemverError> {
    if !is_digits(text) {
        return Err(SemverError::Characters { part, text: text.to_owned() });
    }
    if has_leading_zero(text) {
        return Err(SemverError::LeadingZeros { part: title, text: text.to_owned() });
    }
    Ok(parse_uint(text)?)
}

fn identifier(text: &str) -> Result<Identifier, SemverError> {
    if text.is_empty() {
        return Err(SemverError::EmptyPrerelease);
    }
    if !is_word(text) {
        return Err(SemverError::Characters { part: "prerelease", text: text.to_owned() });
    }
    if !is_digits(text) {
        return Ok(Identifier::Word(text.to_owned()));
    }
    if has_leading_zero(text) {
        return Err(SemverError::LeadingZeros { part: "Numeric PreRelease version", text: text.to_owned() });
    }
    Ok(Identifier::Number(parse_uint(text)?))
}

impl fmt::Display for Semver {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}.{}", self.major, self.minor, self.patch)?;
        for (place, identifier) in self.prerelease.iter().enumerate() {
            formatter.write_str(if place == 0 { "-" } else { "." })?;
            match identifier {
                Identifier::Number(number) => write!(formatter, "{number}")?,
                Identifier::Word(word) => formatter.write_str(word)?,
            }
        }
        match self.build.as_str() {
            "" => Ok(()),
            build => write!(formatter, "+{build}"),
        }
    }
}

impl Ord for Semver {
    fn cmp(&self, other: &Self) -> Ordering {
        let numbers = |version: &Semver| (version.major, version.minor, version.patch);
        // A version comes after all its pre-releases.
        let is_release = |version: &Semver| version.prerelease.is_empty();
        numbers(self)
            .cmp(&numbers(other))
            .then_with(|| is_release(self).cmp(&is_release(other)))
            .then_with(|| self.prerelease.cmp(&other.prerelease))
    }
}

impl PartialOrd for Semver {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Semver {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Semver {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered() {
        let order = ["1.0.0-1", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.b", "1.0.0", "1.0.1", "1.10.0", "2.0.0"];
        let versions: Vec<Semver> = order.iter().map(|text| Semver::parse(text).expect(text)).collect();
        assert!(versions.is_sorted());
        assert_eq!(Semver::parse("1.0.0+a"), Semver::parse("1.0.0+b"));
    }

    #[test]
    fn short_versions_are_filled_up() {
        for (text, full) in [("v1", "1.0.0"), ("01.2", "1.2.0"), ("1.2.003-rc", "1.2.3-rc"), ("1.00.0", "1.0.0")] {
            assert_eq!(Semver::parse_tolerant(text), Semver::parse(full), "{text}");
        }
    }

    #[test]
    fn errors_are_the_librarys() {
        for (text, error) in [
            ("", "Version string empty"),
            ("1.2", "No Major.Minor.Patch elements found"),
            ("v1.2.3", r#"Invalid character(s) found in major number "v1""#),
            ("1.02.3", r#"Minor number must not contain leading zeroes "02""#),
            ("1.2.", r#"strconv.ParseUint: parsing "": invalid syntax"#),
            ("1.2.3-", "Prerelease is empty"),
            ("1.2.3-01", r#"Numeric PreRelease version must not contain leading zeroes "01""#),
            ("1.2.3+é", r#"Invalid character(s) found in build meta data "é""#),
        ] {
            assert_eq!(Semver::parse(text).map_err(|error| error.to_string()), Err(error.to_owned()), "{text}");
        }
        let short = Semver::parse_tolerant("1.2-rc").expect_err("it is short");
        assert_eq!(short.to_string(), "short version cannot contain PreRelease/Build meta data");
    }
}
