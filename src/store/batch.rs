//! What becomes of the writes of a batch, decided against what their transaction has read. Pure: the same for every
//! database.

use std::collections::HashMap;
use std::sync::Arc;

use crate::meta::Revision;

use super::rows::checksum;
use super::sql::Outcome;
use super::{Collection, Guard, Op, Put, Stored, Write};

/// The values of the column `operation`.
pub(super) const CREATE: i64 = 0;
pub(super) const UPDATE: i64 = 1;
pub(super) const DELETE: i64 = 2;

/// What the index knows of a key while a batch runs.
#[derive(Clone)]
pub(super) struct Live {
    pub revision: Revision,
    pub created: Revision,
    pub uid: Arc<str>,
}

impl From<&Stored> for Live {
    fn from(stored: &Stored) -> Self {
        Live { revision: stored.revision, created: stored.created, uid: Arc::clone(&stored.uid) }
    }
}

/// Every key that a batch writes or is guarded by, and its present state.
pub(super) type Keys = HashMap<(Collection, Arc<str>), Option<Live>>;

/// What a batch is decided against, as far as this process knows: right as long as nobody else has written since.
pub struct Foreseen {
    /// The newest revision that is known.
    pub before: Revision,
    /// At that revision.
    pub(super) keys: Keys,
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
        match &self.write.op {
            Op::Put(put) => Some(put),
            Op::Delete => None,
        }
    }

    /// What guards the row against a disk that gives back other bytes.
    pub fn checksum(&self) -> i64 {
        checksum(self.revision, &self.write.key, self.put().map_or(&[], |put| &put.bytes))
    }

    pub fn operation(&self) -> i64 {
        match (&self.write.op, self.previous) {
            (Op::Put(_), None) => CREATE,
            (Op::Put(_), Some(_)) => UPDATE,
            (Op::Delete, _) => DELETE,
        }
    }
}

/// The keys whose state a batch is to be decided against, none of them read yet.
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

/// What becomes of each write of a batch, and the changes that are made. Each write sees those before it.
pub(super) fn decide<'w>(batch: &'w [Write], keys: &mut Keys, before: Revision) -> (Vec<Outcome>, Vec<NewChange<'w>>) {
    let mut revision = before;
    let mut outcomes = Vec::with_capacity(batch.len());
    let mut changes = Vec::with_capacity(batch.len());
    for write in batch {
        let at = (write.collection.clone(), Arc::clone(&write.key));
        let live = keys.get(&at).cloned().flatten();
        let holds = write.guards.iter().all(|guard| guard_holds(guard, live.as_ref(), keys));
        let next = revision.next();
        let (created, uid, now) = match (&write.op, &live) {
            _ if !holds => {
                outcomes.push(Outcome::GuardFailed);
                continue;
            }
            (Op::Put(put), live) => {
                let created = live.as_ref().map_or(next, |live| live.created);
                let uid = Arc::clone(&put.uid);
                (created, Arc::clone(&uid), Some(Live { revision: next, created, uid }))
            }
            (Op::Delete, Some(live)) => (live.created, Arc::clone(&live.uid), None),
            // There is nothing to be deleted.
            (Op::Delete, None) => {
                outcomes.push(Outcome::GuardFailed);
                continue;
            }
        };
        revision = next;
        outcomes.push(Outcome::Committed { revision, created, uid: Arc::clone(&uid) });
        changes.push(NewChange { revision, write, created, uid, previous: live.map(|live| live.revision) });
        keys.insert(at, now);
    }
    (outcomes, changes)
}

/// Whether a guard of a write to a key in the state `live` holds.
fn guard_holds(guard: &Guard, live: Option<&Live>, keys: &Keys) -> bool {
    match guard {
        Guard::Absent => live.is_none(),
        Guard::At { revision } => live.is_some_and(|live| live.revision == *revision),
        Guard::Other { collection, key, revision } => {
            let other = keys.get(&(collection.clone(), Arc::clone(key))).and_then(Option::as_ref);
            other.is_some_and(|live| live.revision == *revision)
        }
    }
}
