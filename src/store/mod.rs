//! Objects and the log of their changes, on one rising revision.
//!
//! In: writes with the guards that they were decided under. Out: what is stored, at the newest or at an exact revision, and
//! every change in commit order without gaps. This module knows no kinds: bytes, keys and revisions are all it sees.
//!
//! [`Storage`] is what the registry talks to: one [`database`], or several that share the collections. In each, one task
//! commits what is waiting in batches ([`writer`]), each collection has its present state and its recent changes in memory
//! ([`view`]), older changes are read from the [`log`], and a [`backend::Store`] keeps everything on disk, or in memory alone
//! ([`memory`]).
//!
//! # How it is kept
//!
//! - `changes` holds every change with its bytes, `objects` points at the newest one of each live key, `meta` at the
//!   newest and the oldest readable revision. Keys are `namespace/name`, compared byte by byte, since Kubernetes
//!   lists in that order.
//! - The stored JSON is compact, sorted, and without resourceVersion: that is the row's. `store::encoded` splices it
//!   in while an answer is copied.
//! - The view keeps, per collection, a persistent map from key to bytes, and the recent changes. A snapshot is
//!   another handle on the map, so a list and its pages cost no copy of it. Collections load when they are first
//!   asked for, and the least read go beyond a quarter of the memory, if nobody watches them. Where a collection alone
//!   has more than that, or takes long to load, a single object is read by itself; a list or a watch loads it all the same.
//! - An exact revision is the pinned snapshot of a page, or the present minus the log after it, or 410.
//! - A watch reads from the recent changes, or from the log where it is behind. It is woken by commits and never
//!   depends on being woken.
//! - Derived bytes are kept with the row, by served version and schema generation; where deriving changes nothing,
//!   they are the stored bytes themselves.
//! - What watches are told of a change is made once for all that ask for the same form (`forms`), and kept while the
//!   change is among the newest.
//! - Compaction removes, in small steps between writes, rows superseded more than five minutes ago. Older watches and
//!   tokens get 410. What is free beyond a quarter of the file is given back (`auto_vacuum = INCREMENTAL`).
//! - A batch is decided against the view, where that has the collections it touches (`View::foresee`), and is then
//!   one message that begins, writes and commits. It holds a condition: nothing is made unless the newest revision of
//!   the database is the view's. Otherwise the batch is begun anew, and what it is decided against is read.
//! - A row that is not what was written is known without its bytes: it can't be read, others can. A start looks over
//!   the file as a whole, of a large one the ends; once SQLite calls it damaged nothing is written any more. A reserve of
//!   2 MiB beside the file is given up where a full disk refuses deletions. `/readyz` fails while the last write
//!   failed, and tries one itself.
//! - Each row has a CRC-32 of its revision, key and bytes. SQLite checks the frames of its log, but not the pages of
//!   the file: without it, a flipped bit would be served.
//! - A database that is out of reach is `ServerTimeout` with Retry-After, which client-go and others try again by
//!   themselves; the reference has that answer for a store that is unreachable, though etcd's client never says so.
//! - `leases` that end later than a lease can are from before a clock was set back, and are over.
//! - `store::copy` saves, restores and checks. The file is the SQLite database of `migrations/sqlite`, so that there
//!   is one format; a restore is made beside its place, or in one transaction.

mod backend;
mod batch;
mod changes;
mod compact;
pub mod continue_token;
pub mod copy;
mod database;
mod encoded;
mod feed;
mod forms;
mod health;
mod interned;
mod leases;
mod log;
mod memory;
mod objects;
mod open;
mod postgres;
mod rows;
mod signature;
mod snapshot;
mod sqlite;
mod storage;
mod stored;
mod view;
mod writer;

use std::error::Error;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::Clock;
use crate::memory::Memory;
use crate::meta::Revision;

pub use backend::StoreCounts;
pub use changes::ChangeEvent;
pub use encoded::Encoded;
#[cfg(test)]
pub(crate) use encoded::tally;
pub use feed::{Feed, Moment};
pub use forms::ClientForm;
pub use interned::interned;
pub use log::LogWatch;
pub use postgres::PostgresUrl;
pub use signature::Signature;
pub use snapshot::Snapshot;
pub use storage::Storage;
pub use stored::{Change, Stored};
pub use view::PageEnd;

/// The objects of one resource: `group/plural`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Collection(Arc<str>);

impl Collection {
    pub fn new(group: &str, plural: &str) -> Self {
        Collection(format!("{group}/{plural}").into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Its group and its plural name.
    pub fn names(&self) -> (&str, &str) {
        self.0.split_once('/').unwrap_or(("", &self.0))
    }
}

/// Where the database is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// In memory, gone with the process.
    Memory,
    /// In a file of this process.
    File(PathBuf),
    /// In a file that other processes of this machine may share.
    Shared(PathBuf),
    /// In a Postgres, which other processes may share.
    Postgres(PostgresUrl),
}

/// When a write counts as done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Once it is on disk.
    #[default]
    Full,
    /// Once the operating system has it: a power cut may lose the newest writes, never the order.
    Relaxed,
    /// Once the operating system has it, and nothing is ever waited for: after a power cut the database may be lost.
    Unsynced,
}

/// How a storage is opened.
#[derive(Clone, Debug)]
pub struct Config {
    pub location: Location,
    /// Collections that are kept elsewhere.
    pub overrides: Vec<(Collection, Location)>,
    pub durability: Durability,
    /// How long superseded states stay readable.
    pub history: Duration,
    /// What bounds the objects that are kept in memory.
    pub memory: Arc<Memory>,
    /// What objects expire by.
    pub clock: Clock,
}

impl Write {
    /// The new state; `None` for a deletion.
    fn put(&self) -> Option<&Put> {
        match &self.op {
            Op::Put(put) => Some(put),
            Op::Delete => None,
        }
    }

    /// Whether it stands or falls with the one before it.
    fn is_joined(&self) -> bool {
        self.guards.contains(&Guard::Joined)
    }
}

impl Config {
    /// Superseded states stay for five minutes, as kube-apiserver keeps them.
    pub const HISTORY: Duration = Duration::from_secs(5 * 60);

    /// Everything in one place, on disk when it is acknowledged.
    pub fn new(location: Location) -> Self {
        let memory = Arc::new(Memory::of_system());
        Config {
            location,
            overrides: Vec::new(),
            durability: Durability::Full,
            history: Self::HISTORY,
            memory,
            clock: Clock::default(),
        }
    }

    pub fn memory() -> Self {
        Config::new(Location::Memory)
    }

    /// Every place that outlives the process, the main one first; that one is told even if it does not.
    pub fn kept_locations(&self) -> impl Iterator<Item = &Location> {
        let others = self.other_locations().into_iter().filter(|location| **location != Location::Memory);
        std::iter::once(&self.location).chain(others)
    }

    /// Where objects are kept beside the main place, each once.
    fn other_locations(&self) -> Vec<&Location> {
        let mut others = Vec::new();
        for (_, location) in &self.overrides {
            if *location != self.location && !others.contains(&location) {
                others.push(location);
            }
        }
        others
    }
}

/// One change to be made, and what it was decided under.
#[derive(Clone, Debug)]
pub struct Write {
    pub collection: Collection,
    /// `namespace/name`, or the name alone in cluster scope.
    pub key: Arc<str>,
    pub op: Op,
    pub guards: Vec<Guard>,
}

#[derive(Clone, Debug)]
pub enum Op {
    Put(Put),
    Delete,
}

/// A new state.
#[derive(Clone, Debug)]
pub struct Put {
    /// Compact canonical JSON without `metadata.resourceVersion`, but for fields whose text Go keeps as it was sent.
    pub object: Encoded,
    pub uid: Arc<str>,
    /// The version that the bytes are in.
    pub stored_version: Arc<str>,
    pub schema_generation: i64,
    /// Milliseconds since 1970 at which the object goes by itself.
    pub expires_at_ms: Option<i64>,
    /// The generation of the schemas under which clients get the bytes as they are, in the version that they are in.
    pub served_under: Option<i64>,
}

/// What must hold in the transaction that makes a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Guard {
    /// There is no object under the key.
    Absent,
    /// The object under the key is at this revision.
    At { revision: Revision },
    /// Another object, which the write was decided by, is at this revision.
    Other { collection: Collection, key: Arc<str>, revision: Revision },
    /// The write before it is made: both are, or neither is. For [`Storage::write_together`].
    Joined,
}

/// How many writes stand or fall together at most.
pub const TOGETHER_MAX: usize = 64;

/// A write that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    pub revision: Revision,
}

/// Why a write was not made. Nothing of it is stored.
#[derive(Clone, Debug)]
pub enum WriteError {
    /// What it was decided under has changed; it may be decided anew.
    GuardFailed,
    /// Too many writes are waiting.
    Busy,
    Store(StoreError),
}

/// Which state is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    Newest,
    Exact(Revision),
}

/// Why a state can't be shown.
#[derive(Clone, Debug)]
pub enum SnapshotError {
    /// The log reaches back to this revision only.
    Expired {
        compacted: Revision,
    },
    Store(StoreError),
}

/// Why changes can't be followed.
#[derive(Clone, Debug)]
pub enum WatchError {
    /// The log reaches back to this revision only.
    Expired {
        compacted: Revision,
    },
    Store(StoreError),
}

/// A database that can't be used. What it held is untouched, and what failed is not in it.
#[derive(Clone, Debug)]
pub enum StoreError {
    /// The file is open, in another process or in this one.
    InUse(PathBuf),
    /// The file could not be opened or made.
    Open { path: PathBuf, source: Arc<dyn Error + Send + Sync> },
    /// What names the database is not understood.
    Url(String),
    /// No connection is made: nobody answers, or the database refuses.
    Connect(Arc<dyn Error + Send + Sync>),
    /// The connection is lost, or there is none to be had.
    Unreachable(Arc<dyn Error + Send + Sync>),
    /// The database is of an earlier major version than the least that will do.
    TooOld { found: u32, least: u32 },
    /// A newer program has written the database.
    NewerSchema { found: i64, known: i64 },
    /// What would be overwritten is there already.
    Exists(PathBuf),
    /// Memory alone keeps nothing that could be saved, restored or checked.
    NothingKept,
    /// A row is not what was written: the disk or the file is damaged.
    Garbled { key: Arc<str>, revision: Revision },
    /// A saved database is not whole.
    Damaged { path: PathBuf, faults: Vec<String> },
    /// There is no room for what was to be written. Reading goes on, and writing once there is room again.
    DiskFull,
    /// What is kept in memory has reached its limit. Reading and deleting go on.
    NoSpace,
    /// A collection is larger than what the process may hold of one. Its objects can be read one by one.
    NoMemory,
    /// The file is not a database any more: nothing is written to it.
    Malformed,
    /// The file may be read only.
    ReadOnly,
    /// A statement failed otherwise: the disk or the file is damaged.
    Statement(Arc<dyn Error + Send + Sync>),
    /// The objects are in several databases, and are to be copied as one.
    Several,
    /// The storage was closed.
    Closed,
}

impl fmt::Display for StoreError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::InUse(path) => write!(out, "the database `{}` is open already", path.display()),
            StoreError::Open { path, source } => {
                write!(out, "the database `{}` can't be opened: {source}", path.display())
            }
            StoreError::Url(why) => write!(out, "the URL of the database is not understood: {why}"),
            StoreError::Connect(source) => write!(out, "the database can't be reached: {source}"),
            StoreError::Unreachable(source) => write!(out, "the connection to the database is lost: {source}"),
            StoreError::TooOld { found, least } => {
                write!(out, "the database is Postgres {found}, this program needs {least} or later")
            }
            StoreError::NewerSchema { found, known } => {
                write!(out, "the database has schema {found}, this program knows schemas up to {known}")
            }
            StoreError::Exists(path) => write!(out, "`{}` holds something already", path.display()),
            StoreError::NothingKept => out.write_str("a database in memory is gone with its process"),
            StoreError::Damaged { path, faults } => {
                write!(out, "`{}` is damaged: {}", path.display(), faults.join("; "))
            }
            StoreError::Garbled { key, revision } => {
                write!(out, "the database is damaged: `{key}` at revision {revision} is not what was written")
            }
            StoreError::DiskFull => out.write_str("the database is full"),
            // As etcd says it beyond its quota: people look for these words.
            StoreError::NoSpace => out.write_str("etcdserver: mvcc: database space exceeded"),
            StoreError::NoMemory => out.write_str(
                "the collection is too large for the memory that the server may use (--memory-limit), only single objects can \
                 be read",
            ),
            StoreError::Malformed => out.write_str("the database is damaged: `skiff check` tells where"),
            StoreError::ReadOnly => out.write_str("the database is read-only"),
            StoreError::Statement(source) => write!(out, "the database failed: {source}"),
            StoreError::Several => out.write_str("objects that are kept in several databases can't be copied as one"),
            StoreError::Closed => out.write_str("the database is closed"),
        }
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            StoreError::Open { source, .. }
            | StoreError::Connect(source)
            | StoreError::Unreachable(source)
            | StoreError::Statement(source) => Some(&**source),
            StoreError::InUse(_)
            | StoreError::Url(_)
            | StoreError::Exists(_)
            | StoreError::NothingKept
            | StoreError::Damaged { .. }
            | StoreError::Garbled { .. }
            | StoreError::TooOld { .. }
            | StoreError::NewerSchema { .. }
            | StoreError::DiskFull
            | StoreError::NoSpace
            | StoreError::NoMemory
            | StoreError::Malformed
            | StoreError::ReadOnly
            | StoreError::Several
            | StoreError::Closed => None,
        }
    }
}

impl StoreError {
    /// Whether the same may succeed a little later: the database can't be reached now.
    pub fn may_pass(&self) -> bool {
        matches!(self, StoreError::Connect(_) | StoreError::Unreachable(_))
    }
}
