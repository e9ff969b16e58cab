//! The log in memory, gone with the process.
//!
//! Everything lies in persistent maps ([`state`]), so that a copy of the whole database is another handle on them: what
//! neither the one nor the other changes they share, and who changes something copies the nodes that lead to it. The view
//! of a collection is such a handle, too: its objects lie in memory once.
//!
//! Nothing here waits: each call takes the one lock, and none holds it for longer than a batch or a page takes.

mod state;

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use async_trait::async_trait;

use crate::meta::Revision;

use super::batch::Foreseen;
use super::leases::Leases;
use super::sql::{Log, Outcome, Scanned, Stats, Store, WholeLog};
use super::stored::Objects;
use super::{Collection, StoreError, Stored, Write};
use state::{State, held_by};

/// How many rows of another database are read at a time.
const PAGE: usize = 512;

/// A database in memory.
pub struct InMemory {
    state: RwLock<State>,
    /// How many bytes of objects it may hold.
    room_bytes: usize,
    leases: Leases,
    stats: Stats,
}

impl Default for InMemory {
    fn default() -> Self {
        InMemory {
            state: RwLock::default(),
            room_bytes: usize::MAX,
            leases: Leases::default(),
            stats: Stats::default(),
        }
    }
}

/// What is live in a database, at one revision.
pub struct Contents {
    /// In the order of their revisions.
    pub objects: Vec<(Collection, Arc<Stored>)>,
    pub secrets: Vec<(Arc<str>, Vec<u8>)>,
    pub current: Revision,
}

impl InMemory {
    /// What another database holds now. Its changes up to now can't be followed in the copy.
    pub async fn copy_of(other: &dyn Store) -> Result<Self, StoreError> {
        let (until, _) = other.revisions().await?;
        // Every object has a brace.
        const ALL: [&str; 3] = ["{", "{", "{"];
        let mut state = State::default();
        let mut after = Revision::default();
        loop {
            let rows = other.scan(&ALL, after, until, PAGE).await?;
            let Some(last) = rows.last().map(|row| row.revision) else { break };
            after = last;
            state.fill(rows.into_iter().filter_map(|row| row.found), last);
        }
        state.fill([], until);
        // What has changed while it was read: those objects were passed over, or are not as they are now.
        loop {
            let log = other.log_after(state.current, PAGE).await?;
            if state.current < log.compacted {
                return Err(StoreError::Unreachable(Arc::new(StoreError::Closed)));
            }
            if log.changes.is_empty() {
                break;
            }
            for (collection, change) in log.changes {
                let key = Arc::clone(&change.object.key);
                let stored = (!change.deleted).then_some(change.object);
                state.put(&collection, &key, change.revision, stored);
            }
        }
        state.compact(state.current);
        for (name, value) in other.secrets().await? {
            state.secrets.insert(name, value.into());
        }
        Ok(InMemory { state: RwLock::new(state), ..InMemory::default() })
    }

    /// The same, that holds so many bytes of objects at most, former states with the present ones.
    pub fn with_room(self, room_bytes: usize) -> Self {
        InMemory { room_bytes, ..self }
    }

    /// A copy that shares everything that neither changes.
    pub fn copy(&self) -> Self {
        InMemory { state: RwLock::new(self.read().clone()), ..InMemory::default() }
    }

    /// What is live in it.
    pub fn contents(&self) -> Contents {
        let state = self.read();
        let secrets = state.secrets.iter().map(|(name, value)| (Arc::clone(name), value.to_vec()));
        Contents { objects: state.all().cloned().collect(), secrets: secrets.collect(), current: state.current }
    }

    /// Forgets a secret, so that another is made in its place.
    pub fn forget_secret(&self, name: &str) {
        self.write().secrets.remove(name);
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Store for InMemory {
    async fn commit(&self, batch: &[Write], _: Option<Foreseen>) -> Result<Vec<Outcome>, StoreError> {
        let mut state = self.write();
        let added: usize = batch.iter().filter_map(Write::put).map(|put| held_by(put.bytes.len())).sum();
        if added > 0 && state.held_bytes() + added > self.room_bytes {
            // What is live is worth more than what was.
            let current = state.current;
            state.compact(current);
            if state.held_bytes() + added > self.room_bytes {
                return Err(StoreError::NoSpace);
            }
        }
        let (outcomes, writes) = state.commit(batch);
        drop(state);
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

    async fn load(&self, collection: &Collection) -> Result<(Objects, Revision), StoreError> {
        let state = self.read();
        Ok((state.objects(collection), state.current))
    }

    async fn changes_after(&self, collection: &Collection, after: Revision, max: usize) -> Result<Log, StoreError> {
        Ok(self.read().changes_after(collection, after, max))
    }

    async fn log_after(&self, after: Revision, max: usize) -> Result<WholeLog, StoreError> {
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
        max: usize,
    ) -> Result<Vec<Scanned>, StoreError> {
        Ok(InMemory::read(self).scan(texts, after, until, max))
    }

    fn polled_every(&self) -> Option<Duration> {
        None
    }

    async fn written_elsewhere(&self) {
        std::future::pending().await
    }

    async fn expired(&self, now_ms: i64) -> Result<Vec<(Collection, Arc<Stored>)>, StoreError> {
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

    fn copied(&self) -> Option<InMemory> {
        Some(self.copy())
    }

    fn stats(&self) -> &Stats {
        &self.stats
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Guard, Op, Put};
    use super::*;

    const UNIT: usize = 4 << 10;

    fn write(key: &str, op: Op, guards: Vec<Guard>) -> Write {
        Write { collection: Collection::new("", "things"), key: key.into(), op, guards }
    }

    /// Stores what takes so many units.
    async fn put(store: &InMemory, key: &str, units: usize) -> Result<(), StoreError> {
        let put = Put {
            bytes: vec![b'x'; units * UNIT - held_by(0)].into(),
            uid: key.into(),
            stored_version: "v1".into(),
            schema_generation: 0,
            expires_at_ms: None,
            served_under: None,
        };
        store.commit(&[write(key, Op::Put(put), Vec::new())], None).await.map(drop)
    }

    #[tokio::test]
    async fn no_more_is_held_than_there_is_room_for() {
        let store = InMemory::default().with_room(10 * UNIT);
        let held = || InMemory::read(&store).held_bytes() / UNIT;
        put(&store, "a", 4).await.expect("there is room");
        put(&store, "b", 4).await.expect("there is room");
        assert!(matches!(put(&store, "c", 4).await, Err(StoreError::NoSpace)));
        // Former states make room for new ones.
        put(&store, "a", 2).await.expect("there is room");
        assert_eq!(held(), 10);
        put(&store, "a", 2).await.expect("there is room once the history is gone");
        assert_eq!(held(), 8);
        let deleted = write("b", Op::Delete, Vec::new());
        store.commit(&[deleted], None).await.expect("a deletion adds nothing");
        put(&store, "c", 4).await.expect("there is room");
        assert_eq!(held(), 6);
        let copy = store.copy().with_room(7 * UNIT);
        assert!(matches!(put(&copy, "d", 2).await, Err(StoreError::NoSpace)));
    }
}
