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
use state::State;

/// How many rows of another database are read at a time.
const PAGE: usize = 512;

/// A database in memory.
#[derive(Default)]
pub struct InMemory {
    state: RwLock<State>,
    leases: Leases,
    stats: Stats,
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
        let (outcomes, writes) = self.write().commit(batch);
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
