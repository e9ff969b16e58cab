//! The log in memory, gone with the process.
//!
//! Everything is in persistent maps ([`state`]), so that a copy of the whole database is another handle on them: the
//! copies share what neither of them changes, and a change copies the nodes that lead to it. The view of a collection
//! is such a handle, too: its objects are in memory only once.
//!
//! All databases of the process share one limit ([`Room`]): what copies share counts once, and only a put that does not
//! fit is refused.
//!
//! Nothing here waits: each call takes the one lock, and holds it no longer than a batch or a page takes.

mod state;

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use async_trait::async_trait;

use crate::memory::Room;
use crate::meta::Revision;

use super::backend::{LogPart, Stats, Store, WholeLog};
use super::batch::Foreseen;
use super::batch::WriteOutcome;
use super::key_range::KeyRange;
use super::leases::Leases;
use super::objects::Objects;
use super::page_max::PageMax;
use super::part::{PartRows, ReadPart};
use super::rows::Scanned;
use super::snapshot::Snapshot;
use super::{Collection, StoreError, Stored, Write};
use state::{MemoryState, held_by};

/// A database in memory.
pub struct InMemory {
    state: RwLock<MemoryState>,
    leases: Leases,
    stats: Stats,
}

impl Default for InMemory {
    fn default() -> Self {
        InMemory::within(Room::endless())
    }
}

/// The live objects of a database, at one revision.
pub struct Contents {
    /// In the order of their revisions.
    pub objects: Vec<(Collection, Arc<Stored>)>,
    pub secrets: Vec<(Arc<str>, Vec<u8>)>,
    pub current: Revision,
}

impl InMemory {
    /// An empty database; its states, former and current ones, take their share of `room`.
    pub fn within(room: Arc<Room>) -> Self {
        InMemory::of(MemoryState::within(room))
    }

    fn of(state: MemoryState) -> Self {
        InMemory { state: RwLock::new(state), leases: Leases::default(), stats: Stats::default() }
    }

    /// A copy of the current contents of another database. Changes before the copy can't be followed in it.
    ///
    /// Errors: the other can't be read, or its contents do not fit into `room`.
    pub async fn copy_of(other: &dyn Store, room: Arc<Room>) -> Result<Self, StoreError> {
        let (until, _) = other.revisions().await?;
        // Every object contains a brace.
        const ALL: [&str; 3] = ["{", "{", "{"];
        let mut state = MemoryState::within(room);
        let mut after = Revision::default();
        loop {
            let rows = other.scan(&ALL, after, until, PageMax::USUAL).await?;
            let Some(last) = rows.last().map(|row| row.revision) else { break };
            after = last;
            if let Some((_, damaged)) =
                rows.iter().filter_map(|row| row.found.as_ref()).find(|(_, stored)| stored.is_damaged())
            {
                return Err(damaged.garbled());
            }
            state.fill(rows.into_iter().filter_map(|row| row.found), last);
            if !state.room().has(0) {
                return Err(StoreError::NoSpace);
            }
        }
        state.fill([], until);
        // Objects that have changed while this was reading: they were skipped, or were read in an older state.
        loop {
            let log = other.log_after(state.current, PageMax::USUAL).await?;
            if state.current < log.compacted {
                return Err(StoreError::Unreachable(Arc::new(StoreError::Closed)));
            }
            if log.changes.is_empty() {
                break;
            }
            for change in log.changes {
                state.put(&change.collection, &change.key, change.revision, change.stored);
            }
        }
        state.compact(state.current);
        for (name, value) in other.secrets().await? {
            state.secrets.insert(name, value.into());
        }
        Ok(InMemory::of(state))
    }

    /// A copy that shares everything that neither changes; what it changes takes its share of `room`.
    pub fn copy(&self, room: Arc<Room>) -> Self {
        InMemory::of(self.read().copy(room))
    }

    /// What is live in it.
    pub fn contents(&self) -> Contents {
        let state = self.read();
        let secrets = state.secrets.iter().map(|(name, value)| (Arc::clone(name), value.to_vec()));
        Contents { objects: state.all().collect(), secrets: secrets.collect(), current: state.current }
    }

    /// Forgets a secret, so that a new one is created in its place.
    pub fn forget_secret(&self, name: &str) {
        self.write().secrets.remove(name);
    }

    fn read(&self) -> RwLockReadGuard<'_, MemoryState> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, MemoryState> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Store for InMemory {
    async fn commit(&self, batch: &[Write], _: Option<Foreseen>) -> Result<Vec<WriteOutcome>, StoreError> {
        let (outcomes, writes) = commit(&mut self.write(), batch);
        if writes > 0 {
            self.stats.count_commit();
            self.stats.count_batch(writes);
        }
        Ok(outcomes)
    }

    async fn revisions(&self) -> Result<(Revision, Revision), StoreError> {
        let state = self.read();
        Ok((state.current, state.compacted))
    }

    async fn load_within(&self, collection: &Collection, _: usize) -> Result<Option<(Objects, Revision)>, StoreError> {
        let state = self.read();
        Ok(Some((state.objects(collection), state.current)))
    }

    async fn read_part(&self, collection: &Collection, range: &KeyRange, max: PageMax) -> Result<ReadPart, StoreError> {
        let state = self.read();
        let (objects, revision) = (state.objects(collection), state.current);
        let mut part = PartRows::new(max);
        let whole = Snapshot { collection: collection.clone(), objects, revision, own_bytes: 0 };
        let is_cut = whole.within(range).any(|stored| part.take(Arc::clone(stored)).is_none());
        Ok(ReadPart { objects: part.objects, revision, is_cut })
    }

    async fn changes_after(
        &self,
        collection: &Collection,
        after: Revision,
        max: PageMax,
    ) -> Result<LogPart, StoreError> {
        Ok(self.read().changes_after(collection, after, max))
    }

    async fn log_after(&self, after: Revision, max: PageMax) -> Result<WholeLog, StoreError> {
        Ok(self.read().log_after(after, max))
    }

    async fn read(&self, collection: &Collection, key: &str) -> Result<Option<Arc<Stored>>, StoreError> {
        Ok(InMemory::read(self).get(collection, key).cloned())
    }

    async fn scan(
        &self,
        texts: &[&str; 3],
        after: Revision,
        until: Revision,
        max: PageMax,
    ) -> Result<Vec<Scanned>, StoreError> {
        Ok(InMemory::read(self).scan(texts, after, until, max))
    }

    fn polled_every(&self) -> Option<Duration> {
        None
    }

    async fn written_elsewhere(&self) {
        std::future::pending().await
    }

    async fn expired(&self, now_ms: i64) -> Result<Vec<(Collection, Arc<str>, Revision)>, StoreError> {
        Ok(InMemory::read(self).expired(now_ms))
    }

    fn may_expire(&self) -> bool {
        InMemory::read(self).may_expire()
    }

    async fn compact(&self, to: Revision) -> Result<bool, StoreError> {
        self.write().compact(to);
        Ok(false)
    }

    async fn secret(&self, name: &str, made: &[u8]) -> Result<Vec<u8>, StoreError> {
        Ok(self.write().secrets.entry(name.into()).or_insert_with(|| made.into()).to_vec())
    }

    async fn read_secret(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(InMemory::read(self).secrets.get(name).map(|value| value.to_vec()))
    }

    async fn secrets(&self) -> Result<Vec<(Arc<str>, Vec<u8>)>, StoreError> {
        let state = InMemory::read(self);
        Ok(state.secrets.iter().map(|(name, value)| (Arc::clone(name), value.to_vec())).collect())
    }

    async fn lease(&self, name: &str, holder: &str, now_ms: i64, expires_at_ms: i64) -> Result<bool, StoreError> {
        Ok(self.leases.take(name, holder, now_ms, expires_at_ms))
    }

    async fn make_room(&self) -> bool {
        // Deletions add nothing.
        true
    }

    async fn try_writing(&self) -> Result<(), StoreError> {
        Ok(())
    }

    async fn close(&self) {}

    fn stats(&self) -> &Stats {
        &self.stats
    }
}

/// Decides on a batch and applies its writes, except the puts that there is no room for. Also returns how many writes
/// were made.
fn commit(state: &mut MemoryState, batch: &[Write]) -> (Vec<WriteOutcome>, usize) {
    if has_room(state, batch) {
        return state.commit(batch);
    }
    // Live states are worth more than former ones.
    state.compact(state.current);
    let (mut outcomes, mut made) = (Vec::with_capacity(batch.len()), 0);
    for together in batch.chunk_by(|_, next| next.is_joined()) {
        if !has_room(state, together) {
            outcomes.extend(together.iter().map(|_| WriteOutcome::NoSpace));
            continue;
        }
        let (decided, writes) = state.commit(together);
        outcomes.extend(decided);
        made += writes;
    }
    (outcomes, made)
}

/// Whether there is room for what some writes add: deletions add nothing.
fn has_room(state: &MemoryState, writes: &[Write]) -> bool {
    let added: usize = writes.iter().filter_map(Write::put).map(|put| held_by(put.object.bytes().len())).sum();
    added == 0 || state.room().has(added)
}

#[cfg(test)]
mod tests {
    use super::super::{Guard, Op, Put};
    use super::*;

    const UNIT: usize = 4 << 10;

    fn write(key: &str, op: Op, guards: Vec<Guard>) -> Write {
        Write { collection: Collection::new("", "things"), key: key.into(), op, guards }
    }

    /// A put that takes this many units.
    fn put(key: &str, units: usize) -> Write {
        let put = Put {
            object: crate::store::Encoded::new(vec![b'x'; units * UNIT - held_by(0)]),
            uid: key.into(),
            stored_version: "v1".into(),
            schema_generation: 0,
            expires_at_ms: None,
            served_under: None,
        };
        write(key, Op::Put(put), Vec::new())
    }

    fn delete(key: &str) -> Write {
        write(key, Op::Delete, Vec::new())
    }

    /// Which writes of a batch are made.
    async fn made<const N: usize>(store: &InMemory, batch: [Write; N]) -> [bool; N] {
        let outcomes = store.commit(&batch, None).await.expect("nothing fails in memory");
        let refused = |outcome: &WriteOutcome| outcome.revision().is_none();
        assert!(outcomes.iter().filter(|outcome| refused(outcome)).all(|outcome| *outcome == WriteOutcome::NoSpace));
        std::array::from_fn(|at| outcomes[at].revision().is_some())
    }

    #[tokio::test]
    async fn no_more_is_held_than_there_is_room_for() {
        let room = Room::of(10 * UNIT);
        let store = InMemory::within(Arc::clone(&room));
        let held = || room.taken() / UNIT;
        assert_eq!(made(&store, [put("a", 4), put("b", 4)]).await, [true, true]);
        assert_eq!(made(&store, [put("c", 4)]).await, [false]);
        // Former states are dropped to make room for new ones.
        assert_eq!(made(&store, [put("a", 2)]).await, [true]);
        assert_eq!(held(), 10);
        assert_eq!(made(&store, [put("a", 2)]).await, [true], "there is room once the history is gone");
        assert_eq!(held(), 8);
        assert_eq!(made(&store, [delete("b")]).await, [true], "a deletion adds nothing");
        assert_eq!(made(&store, [put("c", 4)]).await, [true]);
        assert_eq!(held(), 6);
        drop(store);
        assert_eq!(held(), 0);
    }

    #[tokio::test]
    async fn only_what_does_not_fit_is_refused_of_a_batch() {
        let store = InMemory::within(Room::of(10 * UNIT));
        let joined = Write { guards: vec![Guard::Joined], ..put("d", 4) };
        let batch = [put("a", 4), put("b", 8), put("c", 3), joined, put("e", 2), delete("a")];
        assert_eq!(made(&store, batch).await, [true, false, false, false, true, true]);
    }

    #[tokio::test]
    async fn databases_share_their_room_and_what_copies_share_counts_once() {
        let room = Room::of(10 * UNIT);
        let store = InMemory::within(Arc::clone(&room));
        assert_eq!(made(&store, [put("a", 6)]).await, [true]);
        let copy = store.copy(Arc::clone(&room));
        assert_eq!(room.taken() / UNIT, 6);
        assert_eq!(made(&copy, [put("b", 3)]).await, [true]);
        assert_eq!(made(&store, [put("c", 3)]).await, [false]);
        // What one copy forgets, the other still has.
        assert_eq!(made(&store, [delete("a")]).await, [true]);
        store.compact(Revision::new(i64::MAX)).await.expect("nothing fails in memory");
        assert_eq!(room.taken() / UNIT, 9);
        drop(copy);
        assert_eq!(room.taken(), 0);
        assert_eq!(made(&store, [put("c", 10)]).await, [true]);
    }
}
