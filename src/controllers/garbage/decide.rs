//! Decides on an object, based on how it is being deleted and on the state of its owners.
//!
//! Pure: the collector reads the states and carries out the action.

use crate::controllers::metadata::Going;

/// The state of a referenced owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// It exists.
    Solid,
    /// It exists until its dependents are deleted.
    Waiting,
    /// It does not exist: there is no such object in the dependent's namespace, or it has another uid.
    Absent,
    /// Unknown, as its kind is not served.
    Unknown,
    /// It is in a namespace and the dependent is not, which is invalid.
    OutOfReach,
}

/// The state of an object's dependents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Dependents {
    pub any: bool,
    /// Some have `blockOwnerDeletion`.
    pub blocking: bool,
    /// Some wait for their own dependents: so there may be a cycle.
    pub waiting: bool,
}

/// What is done with an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Leave,
    /// Check again when other kinds are served.
    LookAgain,
    /// Remove it from its dependents' references, then remove the finalizer.
    OrphanDependents,
    /// Remove the finalizer that waits for dependents.
    EndForeground,
    /// Remove the references to owners that are gone or going.
    RemoveReferences,
    /// Delete it, its dependents first. `unblock`: it must not keep its owners meanwhile.
    DeleteForeground {
        unblock: bool,
    },
    /// Delete it as its finalizers say.
    Delete,
}

/// The action for an object. Source: `attemptToDeleteItem` of the garbage collector of Kubernetes 1.37.
pub(super) fn decide(going: Going, owners: &[Owner], dependents: Dependents) -> Action {
    match going {
        Going::Orphan => return Action::OrphanDependents,
        Going::Foreground if !dependents.blocking => return Action::EndForeground,
        Going::Foreground | Going::Otherwise => return Action::Leave,
        Going::No => {}
    }
    let any = |wanted: Owner| owners.contains(&wanted);
    if owners.is_empty() || any(Owner::OutOfReach) {
        return Action::Leave;
    }
    if any(Owner::Unknown) {
        return Action::LookAgain;
    }
    match (any(Owner::Solid), any(Owner::Waiting)) {
        (true, false) if !any(Owner::Absent) => Action::Leave,
        (true, _) => Action::RemoveReferences,
        (false, true) if dependents.any => Action::DeleteForeground { unblock: dependents.waiting },
        (false, _) => Action::Delete,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Dependents = Dependents { any: false, blocking: false, waiting: false };
    const FREE: Dependents = Dependents { any: true, ..NONE };
    const BLOCKING: Dependents = Dependents { blocking: true, ..FREE };
    const WAITING: Dependents = Dependents { waiting: true, ..BLOCKING };

    #[test]
    fn owners_decide_on_an_object_that_stays() {
        use Owner::{Absent, OutOfReach, Solid, Unknown, Waiting};
        let foreground = |unblock| Action::DeleteForeground { unblock };
        let cases: [(&[Owner], Dependents, Action); 16] = [
            (&[], BLOCKING, Action::Leave),
            (&[Solid], BLOCKING, Action::Leave),
            (&[Solid, Solid], NONE, Action::Leave),
            (&[Solid, Absent], NONE, Action::RemoveReferences),
            (&[Waiting, Solid], NONE, Action::RemoveReferences),
            (&[Waiting, Solid, Absent], FREE, Action::RemoveReferences),
            (&[Absent], NONE, Action::Delete),
            (&[Absent, Absent], BLOCKING, Action::Delete),
            (&[Waiting], NONE, Action::Delete),
            (&[Waiting], FREE, foreground(false)),
            (&[Waiting, Absent], BLOCKING, foreground(false)),
            (&[Waiting], WAITING, foreground(true)),
            (&[Unknown], NONE, Action::LookAgain),
            (&[Unknown, Absent], NONE, Action::LookAgain),
            (&[Solid, Unknown], NONE, Action::LookAgain),
            (&[OutOfReach, Absent], NONE, Action::Leave),
        ];
        for (owners, dependents, wanted) in cases {
            assert_eq!(decide(Going::No, owners, dependents), wanted, "{owners:?} {dependents:?}");
        }
    }

    #[test]
    fn an_object_that_goes_is_held_by_its_own_dependents_only() {
        for owners in [&[][..], &[Owner::Solid], &[Owner::Absent], &[Owner::Waiting], &[Owner::Unknown]] {
            for dependents in [NONE, FREE, BLOCKING, WAITING] {
                let foreground = if dependents.blocking { Action::Leave } else { Action::EndForeground };
                assert_eq!(decide(Going::Foreground, owners, dependents), foreground);
                assert_eq!(decide(Going::Orphan, owners, dependents), Action::OrphanDependents);
                assert_eq!(decide(Going::Otherwise, owners, dependents), Action::Leave);
            }
        }
    }
}
