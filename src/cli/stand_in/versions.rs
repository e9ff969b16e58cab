//! The versions in `--emulated-version` and `--min-compatibility-version`, each for a component:
//! `kube=1.36`, or `1.36`.
//!
//! Input: flags. Output: the minor version to emulate, or kube-apiserver's error for an invalid version.
//! Source: `k8s.io/component-base/compatibility` and `k8s.io/apimachinery/pkg/util/version`,
//! release 1.36.

use std::collections::BTreeMap;
use std::fmt;

use thiserror::Error;

use super::flags::Flags;
use crate::meta::minor::Minor;
use crate::value::go_quote;

/// The component that this program stands in for.
const KUBE: &str = "kube";

/// Why versions are rejected.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum VersionError {
    #[error("could not parse {} as version", go_quote(.0))]
    Text(String),
    #[error("illegal version string {}", go_quote(.0))]
    TooShort(String),
    #[error("patch version not allowed, got: {component}={version}")]
    Patch { component: String, version: ComponentVersion },
    #[error("duplicate version flag, {component}={first} and {component}={second}")]
    Twice { component: String, first: ComponentVersion, second: ComponentVersion },
    #[error("component not registered: {0}")]
    Component(String),
    #[error("emulation version {version} is not between [{}, {}.0]", Minor::OLDEST, Minor::NEWEST)]
    Emulation { version: ComponentVersion },
    #[error("minCompatibilityVersion version {version} is not between [{}, {emulated}]", Minor::OLDEST)]
    MinCompatibility { version: ComponentVersion, emulated: Minor },
}

/// Numbers separated by dots, at least two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComponentVersion(Vec<u64>);

impl fmt::Display for ComponentVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<_> = self.0.iter().map(u64::to_string).collect();
        formatter.write_str(&numbers.join("."))
    }
}

impl ComponentVersion {
    fn parse(text: &str) -> Result<Self, VersionError> {
        let rest = text.trim_start();
        let rest = rest.strip_prefix('v').unwrap_or(rest);
        let end = rest.find(|one: char| !one.is_ascii_digit() && one != '.').unwrap_or(rest.len());
        let numbers = rest[..end].split('.').map_while(|number| number.parse().ok());
        match numbers.collect::<Vec<_>>() {
            numbers if numbers.is_empty() => Err(VersionError::Text(text.to_owned())),
            numbers if numbers.len() == 1 => Err(VersionError::TooShort(text.to_owned())),
            numbers => Ok(ComponentVersion(numbers)),
        }
    }

    /// The minor version, if it is supported.
    fn minor(&self) -> Option<Minor> {
        Minor::parse(&format!("{}.{}", self.0[0], self.0[1])).ok()
    }
}

/// The minor version in `--emulated-version`.
///
/// # Errors
///
/// A version is invalid, or can't be emulated here.
pub fn emulated(flags: &Flags) -> Result<Option<Minor>, VersionError> {
    let Some(version) = of_kube(flags, "emulated-version")? else { return Ok(None) };
    version.minor().map(Some).ok_or(VersionError::Emulation { version })
}

/// Checks `--min-compatibility-version` of a server that emulates `minor`.
///
/// # Errors
///
/// It is invalid or a later version.
pub fn check_compatible(flags: &Flags, minor: Minor) -> Result<(), VersionError> {
    match of_kube(flags, "min-compatibility-version")? {
        Some(version) if version.minor().is_none_or(|found| found > minor) => {
            Err(VersionError::MinCompatibility { version, emulated: minor })
        }
        _ => Ok(()),
    }
}

/// The version of this component in a flag.
fn of_kube(flags: &Flags, name: &str) -> Result<Option<ComponentVersion>, VersionError> {
    let mut versions: BTreeMap<String, ComponentVersion> = BTreeMap::new();
    for text in flags.list(name) {
        let (component, version) = text.split_once('=').unwrap_or((KUBE, &text));
        let (component, version) = (component.trim().to_owned(), ComponentVersion::parse(version.trim())?);
        if version.0.get(2).is_some_and(|patch| *patch != 0) {
            return Err(VersionError::Patch { component, version });
        }
        if let Some(first) = versions.insert(component.clone(), version.clone()) {
            return Err(VersionError::Twice { component, first, second: version });
        }
    }
    let kube = versions.remove(KUBE);
    match versions.pop_first() {
        Some((component, _)) => Err(VersionError::Component(component)),
        None => Ok(kube),
    }
}

#[cfg(test)]
mod tests {
    use super::super::flags::{Manner, Table};
    use super::*;

    fn flags(arguments: &str) -> Flags {
        let table = Table::new(Manner::Pflag, include_str!("../../../schemas/kube-apiserver-flags.txt"));
        table.parse(arguments.split(' ').map(str::to_owned)).expect("they are of their sorts")
    }

    #[test]
    fn a_minor_is_named_for_kube() {
        for arguments in ["--emulated-version=1.34", "--emulated-version=kube=v1.34", "--emulated-version=kube=1.34.0"]
        {
            assert_eq!(emulated(&flags(arguments)), Ok(Some(Minor::of(34))), "{arguments}");
        }
        assert_eq!(emulated(&flags("--v=2")), Ok(None));
    }

    /// The texts were recorded from kube-apiserver 1.36, except that its range of versions is
    /// another.
    #[test]
    fn versions_that_can_not_be_are_told_as_there() {
        for (version, expected) in [
            ("x", "could not parse \"x\" as version"),
            ("kube=x", "could not parse \"x\" as version"),
            ("1", "illegal version string \"1\""),
            ("1.35.2", "patch version not allowed, got: kube=1.35.2"),
            ("1.35,kube=1.34", "duplicate version flag, kube=1.35 and kube=1.34"),
            ("other=1.36", "component not registered: other"),
            ("1.99", "emulation version 1.99 is not between [1.29, 1.37.0]"),
            ("2.0", "emulation version 2.0 is not between [1.29, 1.37.0]"),
        ] {
            let found = emulated(&flags(&format!("--emulated-version={version}")));
            assert_eq!(found.map_err(|fault| fault.to_string()), Err(expected.to_owned()), "{version}");
        }
    }

    #[test]
    fn what_is_compatible_is_no_later() {
        let check = |version: &str| {
            let found = check_compatible(&flags(&format!("--min-compatibility-version={version}")), Minor::of(35));
            found.map_err(|fault| fault.to_string())
        };
        assert_eq!([check("1.34"), check("kube=1.35")], [Ok(()), Ok(())]);
        assert_eq!(check("x"), Err("could not parse \"x\" as version".to_owned()));
        let told = |version| Err(format!("minCompatibilityVersion version {version} is not between [1.29, 1.35]"));
        assert_eq!([check("1.20"), check("1.36")], [told("1.20"), told("1.36")]);
    }
}
