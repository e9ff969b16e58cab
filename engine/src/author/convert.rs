//! Round trips of an object through other versions and back.
//!
//! Input: a kind, an object, and what conversions made of it; whether a webhook or a server converts does not matter
//! here. Output: the conversions that a server would make, the object as it is read at each end, and the losses of a
//! round trip.

use std::fmt;

use thiserror::Error;

use crate::author::DefinedKind;
use crate::author::check::{CheckOptions, update};
use crate::crd::write::{self, Origin, ReadError};
use crate::value::{Value, go_display};

/// Where objects of a version go and come back from, as `group/version`: objects of the stored version are read in each other
/// one that is served, and those of another version are stored.
pub fn ways(kind: &DefinedKind, object: &Value) -> Vec<String> {
    let own = object.str_at(&["apiVersion"]);
    let others = kind.versions.iter().filter(|version| version.api_version() != own);
    let is_stored = kind.versions.iter().any(|version| version.storage && version.api_version() == own);
    let others = others.filter(|version| if is_stored { version.served } else { version.storage });
    others.map(|version| version.api_version()).collect()
}

/// Why an object is not read as one of a kind.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum VersionError {
    /// The kind does not have the version.
    #[error("no version {version}; use {known}")]
    Unknown {
        /// The `apiVersion` of the object.
        version: String,
        /// Those that there are.
        known: String,
    },
    /// The version can't represent the object.
    #[error(transparent)]
    Unreadable(#[from] ReadError),
}

/// `object` as it is read in its version: without what that does not specify, which is returned, and with its defaults.
///
/// # Errors
/// The kind does not have the version, or the object can't be read.
pub fn read(kind: &DefinedKind, object: &mut Value) -> Result<Vec<String>, VersionError> {
    let version = object.str_at(&["apiVersion"]);
    if !kind.versions.iter().any(|known| known.api_version() == version) {
        return Err(VersionError::Unknown { version: version.to_owned(), known: kind.api_versions() });
    }
    let counts = object.at(&["metadata", "generation"]).is_some();
    let unknown = write::decode(object, &kind.versions, Origin::Store)?;
    // Only a server counts generations.
    if let (false, Some(Value::Object(metadata))) = (counts, object.get_mut("metadata")) {
        metadata.remove("generation");
    }
    Ok(unknown)
}

/// The errors of `object`, which was converted, in its version: a client that writes it back unchanged gets these.
pub fn errors(kind: &DefinedKind, object: &Value) -> Vec<String> {
    let checked = update(kind, object, object, CheckOptions::default());
    let ratcheted = checked.ratcheted.iter().map(ToString::to_string);
    checked.errors.iter().map(|rejected| rejected.error.to_string()).chain(ratcheted).collect()
}

/// The change of a field by a round trip.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// `spec.ports[0].name`.
    pub path: String,
    /// The value before; `None` if it was absent.
    pub before: Option<Value>,
    /// The value after; `None` if it is absent.
    pub after: Option<Value>,
}

impl fmt::Display for Difference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = &self.path;
        match (&self.before, &self.after) {
            (Some(before), None) => write!(out, "loses {path}, which was {}", go_display(before)),
            (None, Some(after)) => write!(out, "gains {path}: {}", go_display(after)),
            (Some(before), Some(after)) => {
                write!(out, "changes {path} from {} to {}", go_display(before), go_display(after))
            }
            (None, None) => Ok(()),
        }
    }
}

/// In what two objects differ, at the smallest parts that do.
pub fn differences(before: &Value, after: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    compare(String::new(), Some(before), Some(after), &mut found);
    found
}

fn compare(path: String, before: Option<&Value>, after: Option<&Value>, found: &mut Vec<Difference>) {
    match (before, after) {
        (Some(Value::Object(old)), Some(Value::Object(new))) => {
            let added = new.keys().filter(|name| !old.contains_key(name));
            for name in old.keys().chain(added) {
                let path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
                compare(path, old.get(name), new.get(name), found);
            }
        }
        (Some(Value::Array(old)), Some(Value::Array(new))) => {
            for index in 0..old.len().max(new.len()) {
                compare(format!("{path}[{index}]"), old.get(index), new.get(index), found);
            }
        }
        _ if before == after => {}
        _ => found.push(Difference { path, before: before.cloned(), after: after.cloned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    #[test]
    fn differences_are_told_at_the_smallest_part() {
        let [before, after] = ["{a: {b: 1, c: [x, z]}, d: 1}", "{a: {b: 2, c: [x]}, d: 1, e: {f: 3}}"]
            .map(|text| yaml::decode(text.as_bytes()).expect("the test is YAML"));
        let found: Vec<String> = differences(&before, &after).iter().map(Difference::to_string).collect();
        assert_eq!(found, ["changes a.b from 1 to 2", "loses a.c[1], which was \"z\"", "gains e: {\"f\":3}"]);
    }
}
