//! Why an apply is refused.
//!
//! Source: apimachinery 1.37, `util/managedfields/internal`; texts recorded from apiextensions-apiserver 1.37.

use std::fmt;

use super::field_set::FieldSet;
use super::managed_fields::ManagerId;
use crate::meta::field::ERRORS_BYTES_MAX;
use crate::work;

/// Why an apply is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// 409 `Conflict`: others own fields that the applier would change.
    #[error("{0}")]
    Conflicts(Conflicts),
    /// 400 `BadRequest`, with this message.
    #[error("{0}")]
    BadRequest(String),
    /// 500 without a reason, with this message: the object does not fit its types, or can't be converted.
    #[error("{0}")]
    Failed(String),
}

/// Fields that others own, sorted by manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflicts(Vec<(ManagerId, FieldSet)>);

/// A field that an apply would take from its manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The manager that owns the field.
    pub manager: ManagerId,
    /// `details.causes[].field`: `.spec.ports[port=80].name`, in the version of the owner.
    pub field: String,
}

impl Conflict {
    /// `details.causes[].message`. The reason of the cause is `FieldManagerConflict`.
    pub fn message(&self) -> String {
        format!("conflict with {}", self.manager)
    }
}

impl Conflicts {
    /// Collects the conflicting fields, by owner.
    pub(super) fn of(mut sets: Vec<(ManagerId, FieldSet)>) -> Conflicts {
        sets.sort_by_cached_key(|(manager, _)| manager.sort_key());
        Conflicts(sets)
    }

    /// The conflicts that an answer reports, as many as its size allows, and how many there are.
    pub fn told(&self) -> (Vec<Conflict>, usize) {
        let (mut told, mut bytes, mut count) = (Vec::new(), 0, 0);
        for (manager, set) in &self.0 {
            set.for_each(&mut |path| {
                count += 1;
                if bytes >= ERRORS_BYTES_MAX {
                    return;
                }
                let field: String = path.iter().map(ToString::to_string).collect();
                let conflict = Conflict { manager: manager.clone(), field };
                let length = conflict.field.len() + conflict.message().len();
                work::bytes(length);
                if told.is_empty() || bytes + length <= ERRORS_BYTES_MAX {
                    bytes += length;
                    told.push(conflict);
                } else {
                    bytes = ERRORS_BYTES_MAX;
                }
            });
        }
        (told, count)
    }

    /// The conflicts over fields that are not in `allowed`.
    pub(super) fn outside(&self, allowed: &FieldSet) -> Conflicts {
        let rest = self.0.iter().map(|(manager, set)| (manager.clone(), set.difference(allowed)));
        Conflicts(rest.filter(|(_, set)| !set.is_empty()).collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The message of the answer.
impl fmt::Display for Conflicts {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (told, count) = self.told();
        if let ([conflict], 1) = (told.as_slice(), count) {
            return write!(out, "Apply failed with 1 conflict: {}: {}", conflict.message(), conflict.field);
        }
        write!(out, "Apply failed with {count} conflicts: ")?;
        let mut last: Option<&ManagerId> = None;
        for conflict in &told {
            if last != Some(&conflict.manager) {
                if last.is_some() {
                    out.write_str("\n")?;
                }
                write!(out, "conflicts with {}:", conflict.manager)?;
                last = Some(&conflict.manager);
            }
            write!(out, "\n- {}", conflict.field)?;
        }
        match count - told.len() {
            0 => Ok(()),
            rest => write!(out, "\nand {rest} more conflicts"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apply::managed_fields::Operation;
    use crate::apply::path::PathElement;

    #[test]
    fn conflicts_behind_a_long_path_are_told_up_to_a_length() {
        let mut set = FieldSet::new();
        for at in 0..100 {
            set.insert(&[PathElement::field(&"k".repeat(100_000)), PathElement::field(&format!("f{at}"))]);
        }
        let (name, text) = ("a".to_owned(), String::new());
        let manager = ManagerId { name, operation: Operation::Apply, api_version: text.clone(), subresource: text };
        let conflicts = Conflicts::of(vec![(manager, set)]);
        let (told, count) = conflicts.told();
        assert_eq!((told.len(), count), (10, 100));
        let message = conflicts.to_string();
        assert!(message.starts_with("Apply failed with 100 conflicts: conflicts with \"a\":\n- .kkk"));
        assert!(message.len() < ERRORS_BYTES_MAX && message.ends_with("\nand 90 more conflicts"));
    }
}
