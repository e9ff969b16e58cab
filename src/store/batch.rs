//! Decides on the writes of a batch, based on what their transaction has read. Pure: the same for every database.

use std::collections::HashMap;
use std::sync::Arc;

use crate::meta::Revision;

use super::rows::{CREATE, DELETE, UPDATE, checksum};
use super::{Collection, Guard, Op, Put, Stored, Write};

/// The index entry of a key while a batch runs.
#[derive(Clone)]
pub(super) struct LiveKey {
    pub revision: Revision,
    pub created: Revision,
    pub uid: Arc<str>,
}

impl From<&Stored> for LiveKey {
    fn from(stored: &Stored) -> Self {
        LiveKey { revision: stored.revision, created: stored.created, uid: Arc::clone(&stored.uid) }
    }
}

/// Every key that a batch writes or is guarded by, and its current state.
pub(super) type Keys = HashMap<(Collection, Arc<str>), Option<LiveKey>>;

/// The state that a batch is decided on, as far as this process knows: correct unless another process has written
/// since.
pub struct Foreseen {
    /// The newest revision that is known.
    pub before: Revision,
    /// At that revision.
    pub(super) keys: Keys,
}

/// The outcome of one write of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteOutcome {
    /// `created` is the revision of the write that made the object, `uid` that of the object.
    Committed {
        revision: Revision,
        created: Revision,
        uid: Arc<str>,
    },
    GuardFailed,
    /// It would exceed the limit of the database.
    NoSpace,
}

impl WriteOutcome {
    /// The revision of the change, if there was one.
    pub fn revision(&self) -> Option<Revision> {
        match self {
            WriteOutcome::Committed { revision, .. } => Some(*revision),
            WriteOutcome::GuardFailed | WriteOutcome::NoSpace => None,
        }
    }
}

/// A row of `changes` to be inserted.
pub(super) struct NewChange<'w> {
    pub revision: Revision,
    pub write: &'w Write,
    pub created: Revision,
    pub uid: Arc<str>,
    pub previous: Option<Revision>,
}

impl NewChange<'_> {
    /// The new state; `None` for a deletion.
    pub fn put(&self) -> Option<&Put> {
        self.write.put()
    }

    /// The checksum that detects a disk that returns different bytes.
    pub fn checksum(&self) -> i64 {
        checksum(self.revision, &self.write.key, self.put().map_or(&[], |put| put.object.bytes()))
    }

    pub fn operation(&self) -> i64 {
        match (&self.write.op, self.previous) {
            (Op::Put(_), None) => CREATE,
            (Op::Put(_), Some(_)) => UPDATE,
            (Op::Delete, _) => DELETE,
        }
    }
}

/// The keys whose state a batch depends on; none of them has been read yet.
pub(super) fn keys_of(batch: &[Write]) -> Keys {
    let mut keys = Keys::new();
    for write in batch {
        keys.insert((write.collection.clone(), Arc::clone(&write.key)), None);
        for guard in &write.guards {
            if let Guard::Other { collection, key, .. } = guard {
                keys.insert((collection.clone(), Arc::clone(key)), None);
            }
        }
    }
    keys
}

/// The outcome of each write of a batch, and the resulting changes. Each write sees those before it; joined writes are
/// made all or not at all.
pub(super) fn decide<'w>(
    batch: &'w [Write],
    keys: &mut Keys,
    before: Revision,
) -> (Vec<WriteOutcome>, Vec<NewChange<'w>>) {
    let mut outcomes = Vec::with_capacity(batch.len());
    let mut changes = Vec::with_capacity(batch.len());
    let mut revision = before;
    for together in batch.chunk_by(|_, next| next.is_joined()) {
        if !together.iter().all(|write| is_possible(write, keys)) {
            outcomes.extend(together.iter().map(|_| WriteOutcome::GuardFailed));
            continue;
        }
        for write in together {
            revision = revision.next();
            let change = make(write, keys, revision);
            let uid = Arc::clone(&change.uid);
            outcomes.push(WriteOutcome::Committed { revision, created: change.created, uid });
            changes.push(change);
        }
    }
    (outcomes, changes)
}

/// Whether the guards of a write hold, and whether the object of a deletion exists.
fn is_possible(write: &Write, keys: &Keys) -> bool {
    let live = keys.get(&key_of(write)).and_then(Option::as_ref);
    let has_object = matches!(write.op, Op::Put(_)) || live.is_some();
    has_object && write.guards.iter().all(|guard| guard_holds(guard, live, keys))
}

/// The change of a write that is made.
fn make<'w>(write: &'w Write, keys: &mut Keys, revision: Revision) -> NewChange<'w> {
    let at = key_of(write);
    let live = keys.get(&at).cloned().flatten();
    let created = live.as_ref().map_or(revision, |live| live.created);
    let (uid, now) = match (&write.op, &live) {
        (Op::Put(put), _) => {
            let uid = Arc::clone(&put.uid);
            (Arc::clone(&uid), Some(LiveKey { revision, created, uid }))
        }
        (Op::Delete, live) => (live.as_ref().map_or_else(|| "".into(), |live| Arc::clone(&live.uid)), None),
    };
    keys.insert(at, now);
    NewChange { revision, write, created, uid, previous: live.map(|live| live.revision) }
}

fn key_of(write: &Write) -> (Collection, Arc<str>) {
    (write.collection.clone(), Arc::clone(&write.key))
}

/// Whether a guard of a write to a key in the state `live` holds.
fn guard_holds(guard: &Guard, live: Option<&LiveKey>, keys: &Keys) -> bool {
    match guard {
        Guard::Absent => live.is_none(),
        Guard::At { revision } => live.is_some_and(|live| live.revision == *revision),
        Guard::Other { collection, key, revision } => {
            let other = keys.get(&(collection.clone(), Arc::clone(key))).and_then(Option::as_ref);
            other.is_some_and(|live| live.revision == *revision)
        }
        // Ensured by deciding on all joined writes at once.
        Guard::Joined => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(key: &str, guards: &[Guard]) -> Write {
        let put = Put {
            object: crate::store::Encoded::new("{}"),
            uid: key.into(),
            stored_version: "v1".into(),
            schema_generation: 1,
            expires_at_ms: None,
            served_under: None,
        };
        Write { collection: Collection::new("", "things"), key: key.into(), op: Op::Put(put), guards: guards.to_vec() }
    }

    #[test]
    fn writes_that_are_joined_are_made_together_or_not_at_all() {
        let batch = [
            write("a", &[Guard::Absent]),
            write("b", &[Guard::Absent, Guard::Joined]),
            write("c", &[Guard::Absent]),
            write("b", &[Guard::Absent, Guard::Joined]),
            write("d", &[Guard::Absent]),
            Write { op: Op::Delete, ..write("e", &[Guard::Joined]) },
            write("f", &[Guard::Absent]),
        ];
        let (outcomes, changes) = decide(&batch, &mut keys_of(&batch), Revision::new(7));
        let made: Vec<bool> = outcomes.iter().map(|outcome| outcome.revision().is_some()).collect();
        assert_eq!(made, [true, true, false, false, false, false, true]);
        let written: Vec<_> = changes.iter().map(|change| (&*change.write.key, change.revision.get())).collect();
        assert_eq!(written, [("a", 8), ("b", 9), ("f", 10)]);
    }
}
