//! The contents of a database in memory, in persistent maps: a copy is another handle on them, and shares what neither
//! of the two changes.

use std::sync::{Arc, OnceLock};

use imbl::{OrdMap, Vector};

use crate::memory::{Portion, Room};
use crate::meta::Revision;

use super::super::backend::{LogPart, WholeLog};
use super::super::batch::WriteOutcome;
use super::super::batch::{Keys, NewChange, decide, keys_of};
use super::super::changes::ChangeEvent;
use super::super::objects::Objects;
use super::super::page_max::PageMax;
use super::super::rows::Scanned;
use super::super::{Change, Collection, Stored, Write};

/// The revision of a database without changes: 0 is "any" to clients, and 1 too old on a kube-apiserver.
const FIRST: Revision = Revision::new(2);

/// How many expired objects are looked for at a time.
const EXPIRED_MAX: usize = 500;

/// The memory of a state besides its bytes: its key and uid, its entries in the maps and in the log.
const STATE_BYTES: usize = 1 << 10;

/// How many bytes a state takes if its object has `object_bytes`.
pub(super) fn held_by(object_bytes: usize) -> usize {
    object_bytes + STATE_BYTES
}

/// A state that is live.
#[derive(Clone)]
struct LiveState {
    collection: Collection,
    stored: Arc<Stored>,
    portion: Arc<Portion>,
}

/// A change, and the memory of the state that it has replaced or deleted.
#[derive(Clone)]
struct Logged {
    change: Arc<Change>,
    _former: Option<Arc<Portion>>,
}

/// Everything that is stored, at one revision.
#[derive(Clone)]
pub(super) struct MemoryState {
    pub current: Revision,
    pub compacted: Revision,
    collections: OrdMap<Collection, Kept>,
    /// The live states by their revisions, the order in which they are scanned.
    live: OrdMap<Revision, LiveState>,
    /// The live states that expire, by their time and revision.
    expiring: OrdMap<(i64, Revision), Collection>,
    room: Arc<Room>,
    pub secrets: OrdMap<Arc<str>, Arc<[u8]>>,
}

/// A collection, with its changes since the compacted revision.
#[derive(Clone, Default)]
struct Kept {
    objects: Objects,
    log: Vector<Logged>,
}

impl Kept {
    /// The index at which the changes after a revision begin.
    fn after(&self, revision: Revision) -> usize {
        match self.log.binary_search_by_key(&revision, |logged| logged.change.revision) {
            Ok(at) => at + 1,
            Err(at) => at,
        }
    }

    /// The changes after a revision.
    fn logged_after(&self, revision: Revision) -> impl Iterator<Item = &Change> {
        (self.after(revision)..self.log.len()).filter_map(|at| self.log.get(at)).map(|logged| &*logged.change)
    }
}

impl MemoryState {
    /// An empty state; what is added takes its share of `room`.
    pub fn within(room: Arc<Room>) -> Self {
        MemoryState {
            current: FIRST,
            compacted: FIRST,
            collections: OrdMap::new(),
            live: OrdMap::new(),
            expiring: OrdMap::new(),
            room,
            secrets: OrdMap::new(),
        }
    }

    /// The same contents; what is added takes its share of `room`.
    pub fn copy(&self, room: Arc<Room>) -> Self {
        MemoryState { room, ..self.clone() }
    }

    pub fn room(&self) -> &Arc<Room> {
        &self.room
    }

    /// Decides on a batch and applies its writes. Also returns how many writes were made.
    pub fn commit(&mut self, batch: &[Write]) -> (Vec<WriteOutcome>, usize) {
        let mut keys = self.keys(batch);
        let (outcomes, changes) = decide(batch, &mut keys, self.current);
        changes.iter().for_each(|change| self.make(change));
        (outcomes, changes.len())
    }

    /// The present state of every key that a batch writes or is guarded by.
    fn keys(&self, batch: &[Write]) -> Keys {
        let mut keys = keys_of(batch);
        for ((collection, key), live) in &mut keys {
            *live = self.get(collection, key).map(|stored| (&**stored).into());
        }
        keys
    }

    fn make(&mut self, change: &NewChange<'_>) {
        let write = change.write;
        let stored = change.put().map(|put| {
            Arc::new(Stored {
                key: Arc::clone(&write.key),
                revision: change.revision,
                created: change.created,
                uid: Arc::clone(&put.uid),
                stored_version: Arc::clone(&put.stored_version),
                schema_generation: put.schema_generation,
                bytes: put.object.bytes().clone(),
                expires_at_ms: put.expires_at_ms,
                served_under: put.served_under.into(),
                splice: OnceLock::from(put.object.splice()),
                labels: OnceLock::new(),
                derived: Default::default(),
            })
        });
        self.put(&write.collection, &write.key, change.revision, stored);
    }

    /// Makes a change: `stored` is the new state of the key, none for a deletion.
    pub fn put(&mut self, collection: &Collection, key: &Arc<str>, revision: Revision, stored: Option<Arc<Stored>>) {
        let kept = self.collections.entry(collection.clone()).or_default();
        let previous = match &stored {
            Some(stored) => kept.objects.insert(Arc::clone(key), Arc::clone(stored).into()),
            None => kept.objects.remove(key),
        };
        let previous = previous.map(Arc::<Stored>::from);
        let former = previous.as_ref().and_then(|previous| self.live.remove(&previous.revision));
        let object = stored.as_ref().or(previous.as_ref());
        if let Some(object) = object.map(Arc::clone) {
            let deleted = stored.is_none();
            let change = Arc::new(Change::new(revision, object, previous.clone(), deleted));
            kept.log.push_back(Logged { change, _former: former.map(|former| former.portion) });
        }
        if let Some(previous) = previous {
            previous.expires_at_ms.map(|at| self.expiring.remove(&(at, previous.revision)));
        }
        if let Some(stored) = stored {
            stored.expires_at_ms.map(|at| self.expiring.insert((at, revision), collection.clone()));
            let portion = Arc::new(self.room.take(held_by(stored.bytes.len())));
            self.live.insert(revision, LiveState { collection: collection.clone(), stored, portion });
        }
        self.current = self.current.max(revision);
    }

    pub fn get(&self, collection: &Collection, key: &str) -> Option<&Arc<Stored>> {
        self.collections.get(collection)?.objects.get(key).map(|held| &**held)
    }

    pub fn objects(&self, collection: &Collection) -> Objects {
        self.collections.get(collection).map(|kept| kept.objects.clone()).unwrap_or_default()
    }

    /// Every live object, in the order of revisions.
    pub fn all(&self) -> impl Iterator<Item = (Collection, Arc<Stored>)> {
        self.live.values().map(LiveState::named)
    }

    /// The first changes of a collection after a revision.
    pub fn changes_after(&self, collection: &Collection, after: Revision, max: PageMax) -> LogPart {
        let changes = self.collections.get(collection).map(|kept| {
            let first = max.first_of(kept.logged_after(after), |change| change.size_bytes());
            first.into_iter().map(copy).collect()
        });
        LogPart { changes: changes.unwrap_or_default(), compacted: self.compacted }
    }

    /// The first changes of all collections after a revision.
    pub fn log_after(&self, after: Revision, max: PageMax) -> WholeLog {
        let mut changes = Vec::new();
        for (collection, kept) in &self.collections {
            let first = kept.logged_after(after).take(max.changes);
            changes.extend(first.map(|change| ChangeEvent::of(collection, change)));
        }
        changes.sort_by_key(|change| change.revision);
        let changes = max.first_of(changes.into_iter(), ChangeEvent::size_bytes);
        WholeLog { changes, newest: self.current, compacted: self.compacted }
    }

    /// The first live objects after a revision and up to `until`, and whether the bytes of each contain one of `texts`.
    pub fn scan(&self, texts: &[&str; 3], after: Revision, until: Revision, max: PageMax) -> Vec<Scanned> {
        if after >= until {
            return Vec::new();
        }
        let rows = max.first_of(self.live.range(after.next()..=until), |(_, live)| live.stored.bytes.len());
        rows.into_iter()
            .map(|(revision, live)| {
                // Stored objects are JSON, and so UTF-8.
                let object = str::from_utf8(&live.stored.bytes).unwrap_or_default();
                let found = texts.iter().any(|text| object.contains(text)).then(|| live.named());
                Scanned { revision: *revision, found }
            })
            .collect()
    }

    /// Some of the objects that expire at or before `now_ms`.
    pub fn expired(&self, now_ms: i64) -> Vec<(Collection, Arc<str>, Revision)> {
        let due = self.expiring.iter().take_while(|((at, _), _)| *at <= now_ms).take(EXPIRED_MAX);
        let live = due.filter_map(|((_, revision), _)| self.live.get(revision));
        live.map(|live| (live.collection.clone(), Arc::clone(&live.stored.key), live.stored.revision)).collect()
    }

    pub fn may_expire(&self) -> bool {
        !self.expiring.is_empty()
    }

    /// Forgets the changes up to `to`. Live states are not touched: copies continue to share them.
    pub fn compact(&mut self, to: Revision) {
        let to = to.min(self.current);
        if to <= self.compacted {
            return;
        }
        self.compacted = to;
        let is_due = |kept: &Kept| kept.log.front().is_some_and(|first| first.change.revision <= to);
        let due = self.collections.iter().filter(|(_, kept)| is_due(kept)).map(|(collection, _)| collection.clone());
        for collection in due.collect::<Vec<_>>() {
            let Some(kept) = self.collections.get_mut(&collection) else { continue };
            // The memory of the states that these changes have replaced or deleted is freed, unless a copy keeps them.
            kept.log = kept.log.split_off(kept.after(to));
            if kept.log.is_empty() && kept.objects.is_empty() {
                self.collections.remove(&collection);
            }
        }
    }

    /// Adds the live objects of another database as of its revision `current`; earlier changes are not known.
    pub fn fill(&mut self, objects: impl IntoIterator<Item = (Collection, Arc<Stored>)>, current: Revision) {
        for (collection, stored) in objects {
            let key = Arc::clone(&stored.key);
            self.put(&collection, &key, stored.revision, Some(stored));
        }
        self.current = self.current.max(current);
        self.compact(self.current);
    }
}

impl LiveState {
    /// The object, and its collection.
    fn named(&self) -> (Collection, Arc<Stored>) {
        (self.collection.clone(), Arc::clone(&self.stored))
    }
}

/// Another handle on the states of a change.
fn copy(change: &Change) -> Change {
    let Change { revision, object, previous, deleted, .. } = change;
    let (object, previous) = (Arc::clone(object), previous.clone());
    Change::new(*revision, object, previous, *deleted)
}
