//! Tests of a database with collections that memory holds, and others.

use std::path::PathBuf;
use std::sync::Arc;

use crate::memory::Memory;
use crate::meta::Revision;
use crate::store::key_range::KeyRange;
use crate::store::part::{PartRequest, PartSize};
use crate::store::sqlite::fixture;
use crate::store::{At, Collection, Config, Location, Op, PartReader, Put, SnapshotError, StoreError, Write};

use super::Database;
use super::answers::PING_AGE_MAX;
use super::refusals::REFUSED_FOR;

#[tokio::test]
async fn many_who_ask_whether_the_database_is_well_share_an_answer() {
    let store = Arc::new(fixture::sqlite("ping").await);
    let location = Location::File(PathBuf::new());
    let database = Database::of(store, None, &location, &Config::memory()).await.expect("it opens");
    let before = database.stats().counts().statements;
    let pings = futures_util::future::join_all((0..1_000).map(|_| database.ping())).await;
    assert!(pings.iter().all(Result::is_ok));
    let asked = database.stats().counts().statements - before;
    assert!((1..100).contains(&asked), "{asked} statements");
    tokio::time::sleep(PING_AGE_MAX).await;
    database.ping().await.expect("it is well");
    assert!(database.stats().counts().statements - before > asked, "it is asked anew");
}

/// The least limit: half of it is for one collection.
const LIMIT_BYTES: usize = 32 << 20;
const LARGE_BYTES: usize = 2 << 20;

fn put_of(bytes: usize) -> Op {
    Op::Put(Put {
        object: crate::store::Encoded::new(vec![b' '; bytes]),
        uid: "uid".into(),
        stored_version: "v1".into(),
        schema_generation: 0,
        expires_at_ms: None,
        served_under: None,
    })
}

async fn write(database: &Database, key: &str, op: Op) -> Revision {
    let write = Write { collection: things(), key: key.into(), op, guards: Vec::new() };
    database.write(write).await.expect("it is written").revision
}

fn things() -> Collection {
    Collection::new("", "things")
}

/// A database with ten large objects in the namespace `large` and ten small ones each in `a` and `z`.
async fn with_a_large_collection(name: &str) -> Database {
    let config = Config { memory: Arc::new(Memory::new(LIMIT_BYTES)), ..Config::memory() };
    let store = Arc::new(fixture::sqlite(name).await);
    let database = Database::of(store, None, &Location::File(PathBuf::new()), &config).await.expect("it opens");
    for at in 0..10 {
        write(&database, &format!("large/{at}"), put_of(LARGE_BYTES)).await;
        write(&database, &format!("a/{at}"), put_of(100)).await;
        write(&database, &format!("z/{at}"), put_of(100)).await;
    }
    database
}

/// Keys, how many bytes their objects have, and the next key if others follow. The memory is given back.
type Read = (Vec<String>, usize, Option<String>);

async fn read(database: &Database, at: At, range: KeyRange, size: PartSize) -> Result<Read, SnapshotError> {
    let request = PartRequest { at, range, size, reader: PartReader::Client(None) };
    let part = database.part(&things(), request).await?;
    assert!(!part.is_whole());
    let keys = part.objects().map(|stored| stored.key.to_string()).collect();
    Ok((keys, part.size_bytes(), part.next_key().map(str::to_owned)))
}

fn names(keys: &[&str]) -> Vec<String> {
    keys.iter().copied().map(str::to_owned).collect()
}

#[tokio::test]
async fn parts_of_a_collection_are_read_that_is_too_large() {
    let database = with_a_large_collection("parts-of-large").await;
    let whole = database.snapshot(&things(), At::Newest).await;
    assert!(matches!(whole, Err(SnapshotError::Store(StoreError::NoMemory))));
    let newest = async |range: KeyRange, wanted| read(&database, At::Newest, range, wanted).await;
    let (keys, bytes, cut) = newest(KeyRange::of("z/"), PartSize::All).await.expect("it fits");
    assert_eq!((keys.len(), bytes, cut), (10, 1_000, None));
    let all_large = newest(KeyRange::of("large/"), PartSize::All).await;
    assert!(matches!(all_large, Err(SnapshotError::Store(StoreError::NoMemory))));
    let first = newest(KeyRange::of(""), PartSize::First(4)).await.expect("it fits");
    assert_eq!(first, (names(&["a/0", "a/1", "a/2", "a/3"]), 400, Some("a/3\0".to_owned())));
    let large = newest(KeyRange::of("large/"), PartSize::First(4)).await.expect("there is room for one");
    assert_eq!(large, (names(&["large/0"]), LARGE_BYTES, Some("large/0\0".to_owned())));

    let last = newest(KeyRange::of("z/").starting("z/8\0"), PartSize::All).await.expect("it fits");
    assert_eq!(last, (names(&["z/9"]), 100, None));
    let one = newest(KeyRange::one("z/7"), PartSize::All).await.expect("it fits");
    assert_eq!(one, (names(&["z/7"]), 100, None));
    database.close().await;
}

#[tokio::test]
async fn a_part_shows_the_state_at_an_exact_revision() {
    let database = with_a_large_collection("exact-parts").await;
    let before = database.revision();
    write(&database, "z/0", Op::Delete).await;
    write(&database, "z/1", put_of(7)).await;
    write(&database, "z/10", put_of(7)).await;
    write(&database, "large/0", Op::Delete).await;
    let of_z = async |at, wanted| read(&database, at, KeyRange::of("z/"), wanted).await;
    let (keys, bytes, _) = of_z(At::Newest, PartSize::All).await.expect("it fits");
    assert_eq!((keys.len(), bytes), (10, 8 * 100 + 2 * 7));
    let (keys, bytes, _) = of_z(At::Exact(before), PartSize::All).await.expect("it fits");
    assert_eq!((keys.len(), bytes), (10, 1_000));
    let first = of_z(At::Exact(before), PartSize::First(2)).await.expect("it fits");
    assert_eq!(first, (names(&["z/0", "z/1"]), 200, Some("z/10\0".to_owned())), "up to what was read, which is newer");

    database.compact(database.revision()).await.expect("it compacts");
    let gone = of_z(At::Exact(before), PartSize::All).await;
    assert!(matches!(gone, Err(SnapshotError::Expired { .. })));
    database.close().await;
}

#[tokio::test]
async fn a_state_that_was_too_large_is_read_in_parts_though_what_is_left_fits() {
    let database = with_a_large_collection("large-before").await;
    let before = database.revision();
    for at in 0..10 {
        write(&database, &format!("large/{at}"), Op::Delete).await;
    }
    let newest = database.snapshot(&things(), At::Newest).await.expect("what is left fits");
    assert_eq!(newest.len(), 20);
    let exact = At::Exact(before);
    let whole = database.snapshot(&things(), exact).await;
    assert!(matches!(whole, Err(SnapshotError::Store(StoreError::NoMemory))));
    let page = async |range: KeyRange| read(&database, exact, range, PartSize::First(3)).await.expect("it fits");
    let (keys, bytes, _) = page(KeyRange::of("large/")).await;
    assert_eq!((keys, bytes), (names(&["large/0"]), LARGE_BYTES));
    assert_eq!(page(KeyRange::of("z/").starting("z/8")).await.0, names(&["z/8", "z/9"]));
    database.close().await;
}

#[tokio::test]
async fn exact_pages_are_short_where_much_has_changed_since() {
    let database = with_a_large_collection("changed-parts").await;
    for at in 0..10 {
        write(&database, &format!("other/{at}"), put_of(LARGE_BYTES)).await;
    }
    let before = database.revision();
    for at in 0..10 {
        write(&database, &format!("large/{at}"), put_of(1)).await;
    }
    let mut range = KeyRange::of("large/");
    let mut seen = Vec::new();
    loop {
        let page = read(&database, At::Exact(before), range.clone(), PartSize::First(20)).await;
        let (keys, bytes, next) = page.expect("it fits");
        assert_eq!(bytes, keys.len() * LARGE_BYTES);
        seen.extend(keys);
        let Some(next) = next else { break };
        range = range.starting(&next);
    }
    assert_eq!(seen, (0..10).map(|at| format!("large/{at}")).collect::<Vec<_>>());
    database.close().await;
}

#[tokio::test]
async fn a_collection_is_not_loaded_beside_those_that_are_watched_and_leave_no_room() {
    const COUNT: usize = 7;
    let config = Config { memory: Arc::new(Memory::new(LIMIT_BYTES)), ..Config::memory() };
    let store = Arc::new(fixture::sqlite("no-room").await);
    let database = Database::of(store, None, &Location::File(PathBuf::new()), &config).await.expect("it opens");
    let collections = ["as", "bs"].map(|plural| Collection::new("", plural));
    for collection in &collections {
        for at in 0..COUNT {
            let (key, op) = (at.to_string().into(), put_of(LARGE_BYTES));
            let write = Write { collection: collection.clone(), key, op, guards: Vec::new() };
            database.write(write).await.expect("it is written");
        }
    }
    let [watched, other] = &collections;
    database.snapshot(other, At::Newest).await.expect("it is loaded");
    let watch = database.watch(watched, database.revision()).await.expect("it is loaded");
    let refused = database.snapshot(other, At::Newest).await;
    assert!(matches!(refused, Err(SnapshotError::Store(StoreError::NoMemory))));
    // One that is smaller gets room: the watch of the larger one goes on from the log.
    tokio::time::sleep(REFUSED_FOR).await;
    let deletion = Write { collection: other.clone(), key: "0".into(), op: Op::Delete, guards: Vec::new() };
    database.write(deletion).await.expect("it is written");
    let loaded = futures_util::future::join_all([(); 9].map(|()| database.snapshot(other, At::Newest))).await;
    assert!(loaded.iter().all(Result::is_ok));
    assert!(!database.inner.view.is_loaded(watched));
    let _other = database.watch(other, database.revision()).await.expect("it is loaded");
    let refused = database.snapshot(watched, At::Newest).await;
    assert!(matches!(refused, Err(SnapshotError::Store(StoreError::NoMemory))), "nor do they take turns");
    assert!(database.get(watched, "0").await.expect("it reads").is_some());
    drop(watch);
    database.close().await;
}

#[tokio::test]
async fn watches_of_a_collection_that_is_or_becomes_too_large_go_on() {
    let database = with_a_large_collection("watched").await;
    let mut watches = Vec::new();
    for _ in 0..3 {
        watches.push(database.watch(&things(), database.revision()).await.expect("the log is there"));
    }
    for watch in &mut watches {
        assert!(watch.next_visible().await.is_none());
    }
    let before = database.stats().counts().statements;
    let changed = write(&database, "z/0", put_of(7)).await;
    let writing = database.stats().counts().statements - before;
    for watch in &mut watches {
        let change = watch.next().await.expect("it changed");
        assert_eq!((change.revision, change.previous.as_ref().map(|it| it.bytes.len())), (changed, Some(100)));
    }
    let read = database.stats().counts().statements - before - writing;
    assert!(read <= 2, "{read} statements for {} watches", watches.len());
    let other = Write { collection: Collection::new("", "others"), key: "a".into(), op: put_of(7), guards: Vec::new() };
    let other = database.write(other).await.expect("it is written").revision;
    assert!(watches[0].next_visible().await.is_none());
    assert_eq!(watches[0].progress(), other);

    // It fits again, and grows.
    for at in 0..9 {
        write(&database, &format!("large/{at}"), Op::Delete).await;
    }
    database.load(&things(), usize::MAX).await.expect("it loads");
    for _ in 0..10 {
        assert!(watches[1].next().await.is_some());
        watches[1].next_visible().await;
        if watches[1].seen() == database.revision() {
            break;
        }
    }
    for at in 0..9 {
        write(&database, &format!("large/{at}"), put_of(LARGE_BYTES)).await;
    }
    let last = write(&database, "z/last", put_of(7)).await;
    assert!(database.inner.view.get(&things(), "z/last").is_none(), "it is not in memory any more");
    for watch in &mut watches {
        while watch.seen() < last {
            assert!(watch.next().await.is_some());
        }
    }
    database.close().await;
}

#[tokio::test]
async fn an_object_is_read_while_collections_are_loaded() {
    let store = Arc::new(fixture::sqlite("get-while-loading").await);
    let location = Location::File(PathBuf::new());
    let things = Collection::new("", "things");
    let database = Database::of(store, None, &location, &Config::memory()).await.expect("it opens");
    let put = Put {
        object: crate::store::Encoded::new("{}"),
        uid: "uid".into(),
        stored_version: "v1".into(),
        schema_generation: 0,
        expires_at_ms: None,
        served_under: None,
    };
    let write = Write { collection: things.clone(), key: "a".into(), op: Op::Put(put), guards: Vec::new() };
    database.write(write).await.expect("it is written");

    let loading = database.inner.loading.lock().await;
    let found = database.get(&things, "a").await.expect("it reads").expect("it is there");
    assert!(database.get(&things, "b").await.expect("it reads").is_none());
    assert!(database.inner.view.get(&things, "a").is_none(), "it is not loaded");
    drop(loading);

    assert!(database.load(&things, usize::MAX).await.expect("it loads"));
    assert_eq!(database.inner.view.get(&things, "a"), Some(Some(found)));
    database.close().await;
}
