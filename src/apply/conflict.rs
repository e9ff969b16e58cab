//! Why an apply is refused.
//!
//! Source: apimachinery 1.37, `util/managedfields/internal`; texts recorded from apiextensions-apiserver 1.37.

use std::fmt;

use super::field_set::FieldSet;
use super::managed_fields::ManagerId;
use super::path::PathElement;

/// Why an apply is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApplyError {
    /// 409 `Conflict`: others own fields that the applier would change.
    Conflicts(Conflicts),
    /// 400 `BadRequest`, with this message.
    BadRequest(String),
    /// 500 without a reason, with this message: the object does not fit its types, or can't be converted.
    Failed(String),
}

impl fmt::Display for ApplyError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ApplyError::Conflicts(conflicts) => conflicts.fmt(out),
            ApplyError::BadRequest(message) | ApplyError::Failed(message) => out.write_str(message),
        }
    }
}

impl std::error::Error for ApplyError {}

/// Fields that others own, sorted by manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflicts(Vec<Conflict>);

/// A field that an apply would take from its manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    pub manager: ManagerId,
    path: Vec<PathElement>,
}

impl Conflict {
    /// `details.causes[].field`: `.spec.ports[port=80].name`, in the version of the owner.
    pub fn field(&self) -> String {
        self.path.iter().map(ToString::to_string).collect()
    }

    /// `details.causes[].message`. The reason of the cause is `FieldManagerConflict`.
    pub fn message(&self) -> String {
        format!("conflict with {}", self.manager)
    }
}

impl Conflicts {
    /// Collects the fields in question, by their owners.
    pub(super) fn of(sets: Vec<(ManagerId, FieldSet)>) -> Conflicts {
        let mut sets: Vec<(String, ManagerId, FieldSet)> =
            sets.into_iter().map(|(manager, set)| (manager.sort_key(), manager, set)).collect();
        sets.sort_by(|a, b| a.0.cmp(&b.0));
        let mut conflicts = Vec::new();
        for (_, manager, set) in sets {
            set.for_each(&mut |path| conflicts.push(Conflict { manager: manager.clone(), path: path.to_vec() }));
        }
        Conflicts(conflicts)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Conflict> {
        self.0.iter()
    }

    /// The conflicts over fields that are not in `allowed`.
    pub(super) fn outside(&self, allowed: &FieldSet) -> Conflicts {
        Conflicts(self.0.iter().filter(|conflict| !allowed.contains(&conflict.path)).cloned().collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The message of the answer.
impl fmt::Display for Conflicts {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [conflict] = self.0.as_slice() {
            return write!(out, "Apply failed with 1 conflict: {}: {}", conflict.message(), conflict.field());
        }
        write!(out, "Apply failed with {} conflicts: ", self.0.len())?;
        let mut last: Option<&ManagerId> = None;
        for conflict in &self.0 {
            if last != Some(&conflict.manager) {
                if last.is_some() {
                    out.write_str("\n")?;
                }
                write!(out, "conflicts with {}:", conflict.manager)?;
                last = Some(&conflict.manager);
            }
            write!(out, "\n- {}", conflict.field())?;
        }
        Ok(())
    }
}
