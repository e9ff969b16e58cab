//! The storage: what is promised to who writes, reads, pages and watches, by every database.

mod conformance;
mod cut;
mod model;
mod overrides;
pub mod postgres;
mod replicas;
mod sqlite;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kubeskiff::meta::Revision;
use kubeskiff::store::{
    At, Change, Collection, Config, Durability, Encoded, Guard, Location, LogWatch, Op, PostgresUrl, Put, Snapshot,
    SnapshotError, Storage, Write,
};

/// A folder for one test, removed with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("skiff-store-{name}-{}", std::process::id()));
        // What an earlier run left behind.
        _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("the folder can be made");
        Folder(path)
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What is live: text and revision by key.
type State = BTreeMap<String, (String, i64)>;

/// A database for one test.
enum Database {
    Memory,
    Sqlite(Folder),
    /// A file that is shared by those who open it.
    Shared(Folder),
    /// Shared by those who open it.
    Postgres(PostgresUrl),
}

impl Database {
    fn sqlite(name: &str) -> Self {
        Database::Sqlite(Folder::new(name))
    }

    fn shared(name: &str) -> Self {
        Database::Shared(Folder::new(&format!("shared-{name}")))
    }

    /// `None` where there is no Postgres.
    async fn postgres() -> Option<Self> {
        Some(Database::Postgres(PostgresUrl::new(&postgres::new_database().await?)))
    }

    async fn open(&self) -> Storage {
        self.open_with_history(Config::HISTORY).await
    }

    async fn open_with_history(&self, history: Duration) -> Storage {
        self.open_as(Config { history, ..Config::memory() }).await
    }

    /// As this configuration says, but for the place.
    async fn open_as(&self, config: Config) -> Storage {
        let location = match self {
            Database::Memory => Location::Memory,
            Database::Sqlite(folder) => Location::File(folder.path().join("state.db")),
            Database::Shared(folder) => Location::Shared(folder.path().join("state.db")),
            Database::Postgres(url) => Location::Postgres(url.clone()),
        };
        let config = Config { durability: Durability::Relaxed, location, ..config };
        Storage::open(&config).await.expect("the database opens")
    }
}

fn crontabs() -> Collection {
    Collection::new("stable.example.com", "crontabs")
}

fn put(key: &str, text: &str, guards: &[Guard]) -> Write {
    let op = Op::Put(Put {
        object: Encoded::new(format!(r#"{{"metadata":{{"name":"{key}","uid":"u-{key}"}},"spec":"{text}"}}"#)),
        uid: format!("u-{key}").into(),
        stored_version: "v1".into(),
        schema_generation: 3,
        expires_at_ms: None,
        served_under: None,
    });
    Write { collection: crontabs(), key: key.into(), op, guards: guards.to_vec() }
}

fn delete(key: &str, guards: &[Guard]) -> Write {
    Write { collection: crontabs(), key: key.into(), op: Op::Delete, guards: guards.to_vec() }
}

async fn write(storage: &Storage, write: Write) -> Revision {
    storage.write(write).await.expect("the guards hold").revision
}

/// Key, text and revision of each object.
fn contents(snapshot: &Snapshot) -> State {
    let row = |stored: &Arc<kubeskiff::store::Stored>| {
        let text = String::from_utf8(stored.bytes.to_vec()).expect("objects are UTF-8");
        (stored.key.to_string(), (text, stored.revision.get()))
    };
    snapshot.range("", None).map(row).collect()
}

async fn newest(storage: &Storage) -> State {
    contents(&storage.snapshot(&crontabs(), At::Newest).await.expect("there is a newest state"))
}

async fn next(watch: &mut LogWatch) -> Arc<Change> {
    let change = tokio::time::timeout(Duration::from_secs(30), watch.next()).await;
    change.expect("a change comes in time").expect("the watch goes on")
}

fn expired<T>(result: Result<T, SnapshotError>) -> Revision {
    let compacted = match result {
        Err(SnapshotError::Expired { compacted }) => Some(compacted),
        _ => None,
    };
    compacted.expect("the revision is expired")
}
