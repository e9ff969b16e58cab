//! What SQLite does beyond that: files, their owner, and what they cost.

use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::future::join_all;
use kubeskiff::memory::Memory;
use kubeskiff::store::{Config, Durability, Guard, Location, Storage, StoreError, copy};

use super::{Database, Folder, crontabs, delete, newest, put, write};

async fn in_memory() -> Storage {
    Database::Memory.open().await
}

async fn in_file(folder: &Folder) -> Storage {
    let location = Location::File(folder.path().join("state.db"));
    let config = Config { durability: Durability::Relaxed, ..Config::new(location) };
    Storage::open(&config).await.expect("the database opens")
}

#[tokio::test]
async fn what_was_acknowledged_is_there_without_a_clean_end() {
    let folder = Folder::new("unclean");
    let storage = in_file(&folder).await;
    let revision = write(&storage, put("a", "1", &[])).await;
    // The files as a killed process leaves them.
    let copy = Folder::new("unclean-copy");
    for name in ["state.db", "state.db-wal"] {
        std::fs::copy(folder.path().join(name), copy.path().join(name)).expect("the file is there");
    }
    let reopened = in_file(&copy).await;
    assert_eq!(reopened.revision(&crontabs()), revision);
    assert_eq!(newest(&reopened).await, newest(&storage).await);
}

#[tokio::test]
async fn an_object_of_a_collection_that_does_not_fit_in_memory_is_read_by_itself() {
    let folder = Folder::new("too-large");
    // A quarter of it is for objects that are kept to be read.
    let memory = Arc::new(Memory::new(32 << 20));
    let config =
        Config { durability: Durability::Relaxed, ..Config::new(Location::File(folder.path().join("state.db"))) };
    let storage = Storage::open(&Config { memory, ..config }).await.expect("the database opens");
    let text = "x".repeat(100_000);
    join_all((0..100).map(|at| storage.write(put(&format!("ns/{at}"), &text, &[])))).await;
    let loaded = |storage: &Storage| storage.object_counts().iter().any(|(collection, _)| *collection == crontabs());
    for key in ["ns/0", "ns/99"] {
        let found = storage.get(&crontabs(), key).await.expect("it reads").expect("it is there");
        assert_eq!((&*found.key, found.bytes.len() > text.len()), (key, true));
        assert!(!loaded(&storage));
    }
    let changed = write(&storage, put("ns/0", "changed", &[])).await;
    let found = storage.get(&crontabs(), "ns/0").await.expect("it reads").expect("it is there");
    assert_eq!((found.revision, loaded(&storage)), (changed, false));
    assert!(storage.get(&crontabs(), "ns/none").await.expect("it reads").is_none());
    // A list takes all of them.
    assert_eq!(newest(&storage).await.len(), 100);
}

#[tokio::test]
async fn compaction_leaves_one_row_an_object() {
    let folder = Folder::new("compact-rows");
    let storage = in_file(&folder).await;
    for round in 0..30 {
        join_all((0..40).map(|at| storage.write(put(&format!("ns/{at}"), &round.to_string(), &[])))).await;
    }
    join_all((0..10).map(|at| storage.write(delete(&format!("ns/{at}"), &[])))).await;
    storage.compact(&crontabs(), storage.revision(&crontabs())).await.expect("it compacts");
    assert_eq!(newest(&storage).await.len(), 30);
    storage.close().await;

    use sqlx::{ConnectOptions as _, Row as _};
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(folder.path().join("state.db"));
    let mut connection = options.connect().await.expect("it opens");
    let counts = "SELECT (SELECT count(*) FROM changes), (SELECT count(*) FROM objects)";
    let row = sqlx::query(counts).fetch_one(&mut connection).await.expect("it counts");
    assert_eq!((row.get::<i64, _>(0), row.get::<i64, _>(1)), (30, 30));
}

#[tokio::test]
async fn what_was_there_before_a_start_is_as_old_as_its_file() {
    let folder = Folder::new("compact-old");
    let storage = in_file(&folder).await;
    let first = write(&storage, put("a", "1", &[])).await;
    let newest = write(&storage, put("a", "2", &[])).await;
    storage.close().await;

    let storage = in_file(&folder).await;
    // It has looked for what may go once.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert!(storage.watch(&crontabs(), first).await.is_ok(), "the file is new");
    storage.close().await;

    let an_hour_ago = SystemTime::now() - Duration::from_secs(3_600);
    let file = File::options().write(true).open(folder.path().join("state.db")).expect("it is there");
    file.set_modified(an_hour_ago).expect("its time may be set");
    let storage = in_file(&folder).await;
    let compacted = async {
        while storage.compacted(&crontabs()) < newest {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), compacted).await.expect("it is compacted");
}

#[tokio::test]
async fn a_file_of_the_first_schema_is_migrated_and_restored() {
    let folder = Folder::new("first-schema");
    let storage = in_file(&folder).await;
    let revision = write(&storage, put("a", "1", &[])).await;
    storage.close().await;

    use sqlx::ConnectOptions as _;
    let path = folder.path().join("state.db");
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&path);
    let mut connection = options.connect().await.expect("it opens");
    for statement in ["DROP TABLE revision_times", "PRAGMA user_version = 1"] {
        sqlx::query(statement).execute(&mut connection).await.expect("it is done");
    }
    sqlx::Connection::close(connection).await.expect("it closes");

    let restored = Folder::new("first-schema-restored");
    let location = Location::File(restored.path().join("state.db"));
    copy::restore(&location, &path, 0).await.expect("it is restored");
    for folder in [&folder, &restored] {
        let storage = in_file(folder).await;
        assert_eq!(storage.revision(&crontabs()), revision);
        write(&storage, put("a", "2", &[])).await;
        assert_eq!(newest(&storage).await.len(), 1);
        storage.close().await;
        let location = Location::File(folder.path().join("state.db"));
        assert_eq!(copy::check(&location).await.expect("it is there"), Vec::<String>::new());
    }
}

/// A batch of 64 writes, and the statements that it took.
async fn statements_of_a_batch(storage: &Storage, prefix: &str) -> u64 {
    let before = storage.counts();
    // On one thread, all wait before the writer runs.
    let results =
        join_all((0..64).map(|at| storage.write(put(&format!("{prefix}/{at}"), "1", &[Guard::Absent])))).await;
    assert!(results.iter().all(Result::is_ok));
    let after = storage.counts();
    assert_eq!((after.batches - before.batches, after.writes - before.writes), (1, 64));
    assert_eq!(after.commits - before.commits, 1);
    after.statements - before.statements
}

#[tokio::test]
async fn a_batch_costs_one_commit_and_a_fixed_number_of_statements() {
    let folder = Folder::new("statements");
    let storage = in_file(&folder).await;
    write(&storage, put("warm", "1", &[])).await;
    // Nothing of the collection is known: BEGIN, the revision, the keys; the revision, the changes, the index, COMMIT.
    assert_eq!(statements_of_a_batch(&storage, "unknown").await, 7);
    assert_eq!(newest(&storage).await.len(), 65);
    // BEGIN, the revision, the changes, the index, COMMIT.
    assert_eq!(statements_of_a_batch(&storage, "known").await, 5);
}

#[tokio::test]
async fn reading_what_is_loaded_costs_no_statement() {
    let storage = in_memory().await;
    write(&storage, put("a", "1", &[])).await;
    newest(&storage).await;
    let before = storage.counts();
    newest(&storage).await;
    storage.get(&crontabs(), "a").await.expect("it reads");
    storage.watch(&crontabs(), storage.revision(&crontabs())).await.expect("the revision is there");
    assert_eq!(storage.counts(), before);
}

#[tokio::test]
async fn one_process_owns_a_file() {
    let folder = Folder::new("owner");
    let storage = in_file(&folder).await;
    let config = Config::new(Location::File(folder.path().join("state.db")));
    let second = Storage::open(&config).await.map(|_| ()).expect_err("the file is in use");
    assert!(matches!(second, StoreError::InUse(_)), "{second}");
    storage.close().await;
    Storage::open(&config).await.expect("the file is free");
}

#[tokio::test]
async fn a_file_that_is_no_database_is_left_alone() {
    let folder = Folder::new("foreign");
    let path = folder.path().join("state.db");
    let text = "not a database, but longer than the header of one, which has a hundred bytes at least. ".repeat(50);
    std::fs::write(&path, &text).expect("it writes");
    let config = Config::new(Location::File(path.clone()));
    let error = Storage::open(&config).await.map(|_| ()).expect_err("it is not a database");
    assert!(matches!(error, StoreError::Open { .. }), "{error}");
    assert_eq!(std::fs::read_to_string(&path).expect("it reads"), text);
    assert_eq!(std::fs::read_dir(folder.path()).expect("it is there").count(), 1, "nothing is made beside it");
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_reads_the_files() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new("mode");
    let storage = in_file(&folder).await;
    write(&storage, put("a", "1", &[])).await;
    for name in ["state.db", "state.db-wal"] {
        let mode = std::fs::metadata(folder.path().join(name)).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

#[tokio::test]
async fn a_database_in_memory_outlives_every_idle_and_life_time() {
    let storage = in_memory().await;
    let before = write(&storage, put("a", "1", &[])).await;
    // Pools close connections after 10 minutes without use, and after 30 minutes at all.
    tokio::time::pause();
    for _ in 0..50 {
        tokio::time::advance(Duration::from_secs(120)).await;
        tokio::task::yield_now().await;
    }
    tokio::time::resume();
    assert_eq!(newest(&storage).await.len(), 1);
    assert_eq!(write(&storage, put("a", "2", &[])).await, before.next());
}

#[tokio::test]
async fn the_log_of_the_file_is_written_back_before_it_is_large() {
    const LOG_BYTES_MAX: u64 = 12 << 20;
    let folder = Folder::new("wal");
    let storage = in_file(&folder).await;
    let text = "x".repeat(20_000);
    for round in 0..20 {
        join_all((0..50).map(|at| storage.write(put(&format!("ns/{round}-{at}"), &text, &[])))).await;
    }
    let log = std::fs::metadata(folder.path().join("state.db-wal")).expect("it is there").len();
    assert!(log < LOG_BYTES_MAX, "{log} bytes after 20 MB of writes");
}

#[tokio::test]
async fn compaction_gives_space_back() {
    let folder = Folder::new("space");
    let storage = in_file(&folder).await;
    let text = "x".repeat(20_000);
    for round in 0..10 {
        join_all((0..100).map(|at| storage.write(put(&format!("ns/{round}-{at}"), &text, &[])))).await;
    }
    for round in 0..10 {
        join_all((0..100).map(|at| storage.write(delete(&format!("ns/{round}-{at}"), &[])))).await;
    }
    storage.compact(&crontabs(), storage.revision(&crontabs())).await.expect("it compacts");
    storage.close().await;
    let bytes = std::fs::metadata(folder.path().join("state.db")).expect("it is there").len();
    assert!(bytes < 6 << 20, "{bytes} bytes are left of 20 MB");
}

/// Runs a statement on the file of a database that is closed.
async fn alter(folder: &Folder, statement: &'static str) {
    use sqlx::{ConnectOptions as _, Connection as _};
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(folder.path().join("state.db"));
    let mut connection = options.connect().await.expect("it opens");
    sqlx::query(statement).execute(&mut connection).await.expect("it runs");
    connection.close().await.expect("it closes");
}

#[tokio::test]
async fn a_damaged_row_takes_no_other_with_it() {
    let folder = Folder::new("damaged-row");
    let storage = in_file(&folder).await;
    for key in ["a", "b"] {
        write(&storage, put(key, "1", &[])).await;
    }
    storage.close().await;
    alter(&folder, "UPDATE changes SET bytes = x'7b7d' WHERE key = 'a'").await;
    let storage = in_file(&folder).await;
    let unloaded = storage.peek(&crontabs(), "a").await.expect("it is read").expect("it is there");
    assert!(unloaded.is_damaged());
    let mut scanned = Vec::new();
    let scan = storage.scan(&["{", "{", "{"], |_, stored| scanned.push((stored.key.to_string(), stored.is_damaged())));
    scan.await.expect("the others are scanned");
    assert_eq!(scanned, [("a".to_owned(), true), ("b".to_owned(), false)]);
    let is_damaged = async |key: &str| {
        let stored = storage.get(&crontabs(), key).await.expect("the collection is read");
        stored.expect("it is there").is_damaged()
    };
    assert_eq!((is_damaged("a").await, is_damaged("b").await), (true, false));
    write(&storage, put("c", "1", &[Guard::Absent])).await;
    write(&storage, put("a", "2", &[])).await;
    assert!(!is_damaged("a").await);
}

#[tokio::test]
async fn a_damaged_file_is_not_opened() {
    let folder = Folder::new("damaged-file");
    let storage = in_file(&folder).await;
    for at in 0..200 {
        write(&storage, put(&format!("key-{at}"), "1", &[])).await;
    }
    storage.close().await;
    let path = folder.path().join("state.db");
    let mut bytes = std::fs::read(&path).expect("it reads");
    let (from, to) = (bytes.len() / 2, bytes.len() / 2 + 8192);
    bytes[from..to].fill(0xa5);
    std::fs::write(&path, bytes).expect("it writes");
    let error = Storage::open(&Config::new(Location::File(path))).await.map(|_| ()).expect_err("it is damaged");
    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
}
