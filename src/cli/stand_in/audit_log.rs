//! The audit log as configured by the flags of kube-apiserver.

use std::path::Path;
use std::{fs, io};

use super::flags::Flags;
use crate::audit::{Log, Policy, PolicyFileError, RotatedFile, Rotation};

/// Stands for standard output.
const STANDARD_OUTPUT: &str = "-";
/// The unit of `--audit-log-maxsize`.
const MEBIBYTE: u64 = 1 << 20;
/// The defaults of the flags. Source: the help of kube-apiserver 1.36.
const SIZE_MIB_MAX: i64 = 100;
const OLDER_FILES_MAX: i64 = 100;
const AGE_DAYS_MAX: i64 = 366;

/// Why the log can't be opened, in kube-apiserver's words.
#[derive(Debug, thiserror::Error)]
pub enum AuditLogError {
    #[error("ensureLogFile: open {path}: {source}")]
    Open { path: String, source: io::Error },
    #[error(transparent)]
    Policy(#[from] PolicyFileError),
    #[error("invalid audit log format {0}, allowed formats are \"legacy,json\"")]
    Format(String),
    #[error("--{name} {number} can't be a negative number")]
    Negative { name: &'static str, number: i64 },
}

/// Opens the log; without a policy nothing is logged, as in kube-apiserver.
///
/// # Errors
///
/// A file can't be read or written, or a flag has an invalid value.
pub fn audit_log(flags: &Flags) -> Result<Option<Log>, AuditLogError> {
    let Some(path) = flags.text("audit-log-path") else { return Ok(None) };
    let is_legacy = is_legacy(flags)?;
    let rotation = rotation(flags)?;
    let log = open(path, rotation).map_err(|source| AuditLogError::Open { path: path.to_owned(), source })?;
    let log = if is_legacy { log.in_legacy_form() } else { log };
    let Some(policy) = flags.text("audit-policy-file") else { return Ok(None) };
    Ok(Some(log.of(Policy::read(Path::new(policy))?)))
}

fn open(path: &str, rotation: Option<Rotation>) -> std::io::Result<Log> {
    if path != STANDARD_OUTPUT
        && let Some(folder) = Path::new(path).parent()
    {
        fs::create_dir_all(folder)?;
    }
    match rotation {
        Some(rotation) if path != STANDARD_OUTPUT => Ok(Log::to(RotatedFile::open(Path::new(path), rotation)?)),
        _ => Log::open(Path::new(path)),
    }
}

fn is_legacy(flags: &Flags) -> Result<bool, AuditLogError> {
    match flags.text("audit-log-format") {
        None | Some("json") => Ok(false),
        Some("legacy") => Ok(true),
        Some(other) => Err(AuditLogError::Format(other.to_owned())),
    }
}

/// When the file is rotated; never if its size has no limit.
fn rotation(flags: &Flags) -> Result<Option<Rotation>, AuditLogError> {
    let number = |name: &'static str, default: i64| match flags.number(name).unwrap_or(default) {
        number if number < 0 => Err(AuditLogError::Negative { name, number }),
        number => Ok(number.unsigned_abs()),
    };
    let age_days = number("audit-log-maxage", AGE_DAYS_MAX)?;
    let older_files = number("audit-log-maxbackup", OLDER_FILES_MAX)?;
    let size_mib = number("audit-log-maxsize", SIZE_MIB_MAX)?;
    Ok((size_mib > 0).then(|| Rotation {
        size_bytes_max: size_mib.saturating_mul(MEBIBYTE),
        older_files_max: usize::try_from(older_files).unwrap_or(usize::MAX),
        age_days_max: u32::try_from(age_days).unwrap_or(u32::MAX),
        compresses: flags.truth("audit-log-compress").unwrap_or(false),
    }))
}

#[cfg(test)]
mod tests {
    use super::super::flags::{Manner, Table};
    use super::*;

    fn flags(arguments: &[&str]) -> Flags {
        let table = Table::new(Manner::Pflag, include_str!("../../../schemas/kube-apiserver-flags.txt"));
        table.parse(arguments.iter().map(|text| (*text).to_owned())).expect("they are taken")
    }

    #[test]
    fn files_are_put_aside_as_the_flags_say() {
        let of = |arguments: &[&str]| rotation(&flags(arguments)).map_err(|error| error.to_string());
        let default =
            Rotation { size_bytes_max: 100 << 20, older_files_max: 100, age_days_max: 366, compresses: false };
        assert_eq!(of(&[]), Ok(Some(default)));
        let given =
            ["--audit-log-maxsize=2", "--audit-log-maxbackup=0", "--audit-log-maxage", "7", "--audit-log-compress"];
        let expected = Rotation { size_bytes_max: 2 << 20, older_files_max: 0, age_days_max: 7, compresses: true };
        assert_eq!(of(&given), Ok(Some(expected)));
        assert_eq!(of(&["--audit-log-maxsize=0"]), Ok(None));
        let negative = "--audit-log-maxage -1 can't be a negative number";
        assert_eq!(of(&["--audit-log-maxage=-1"]), Err(negative.to_owned()));
    }

    #[test]
    fn two_forms_are_known() {
        let of = |form: &str| is_legacy(&flags(&["--audit-log-format", form])).map_err(|error| error.to_string());
        assert_eq!([of("json"), of("legacy")], [Ok(false), Ok(true)]);
        let unknown = "invalid audit log format xml, allowed formats are \"legacy,json\"";
        assert_eq!(of("xml"), Err(unknown.to_owned()));
    }
}
