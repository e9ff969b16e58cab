//! What every database must do for the storage.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use kubeskiff::memory::Memory;
use kubeskiff::meta::Revision;
use kubeskiff::store::{
    At, Collection, Committed, Config, Feed, Guard, KeyRange, Moment, Op, PartReader, PartRequest, PartSize,
    SnapshotError, Storage, StoreError, Stored, WatchError, Write, WriteError,
};

use super::{Database, State, contents, crontabs, delete, expired, newest, next, put, write};

/// Each test on each database: those of `any` open it once, those of `kept` again, and find what was there.
macro_rules! conformance {
    (any: [$($any:ident,)*], kept: [$($kept:ident,)*],) => {
        mod memory {
            use crate::store::Database;

            $(#[tokio::test]
            async fn $any() {
                super::$any(Database::Memory).await;
            })*
        }

        mod sqlite {
            use crate::store::Database;

            $(#[tokio::test]
            async fn $any() {
                super::$any(Database::sqlite(stringify!($any))).await;
            })*

            $(#[tokio::test]
            async fn $kept() {
                super::$kept(Database::sqlite(stringify!($kept))).await;
            })*
        }

        mod shared {
            use crate::store::Database;

            $(#[tokio::test]
            async fn $any() {
                super::$any(Database::shared(stringify!($any))).await;
            })*

            $(#[tokio::test]
            async fn $kept() {
                super::$kept(Database::shared(stringify!($kept))).await;
            })*
        }

        mod postgres {
            use crate::store::Database;

            $(#[tokio::test]
            async fn $any() {
                let Some(database) = Database::postgres().await else { return };
                super::$any(database).await;
            })*

            $(#[tokio::test]
            async fn $kept() {
                let Some(database) = Database::postgres().await else { return };
                super::$kept(database).await;
            })*
        }
    };
}

conformance! {
    any: [
        a_write_is_visible_when_it_is_acknowledged,
        an_update_keeps_the_revision_of_the_creation,
        an_empty_database_has_a_revision_that_clients_can_name,
        a_guard_that_does_not_hold_stops_its_write_alone,
        a_write_is_guarded_by_another_object,
        of_many_who_create_one_object_one_succeeds,
        a_deletion_carries_the_last_state_and_a_revision_of_its_own,
        a_slow_watch_reads_on_from_the_log,
        a_watch_from_the_future_waits_for_it,
        history_is_compacted_by_itself_after_a_while,
        a_state_that_is_kept_for_pages_goes_with_its_revision,
        what_expires_is_deleted_at_its_time,
        keys_are_listed_in_the_order_of_their_bytes,
        writes_beyond_the_queue_are_refused_at_once,
        large_writes_fill_the_queue_by_their_bytes,
        a_write_is_made_though_its_caller_stops_waiting,
        a_lease_has_one_holder_until_it_runs_out,
        waiting_for_a_revision_ends_when_it_is_there_or_in_time,
        updates_that_are_decided_anew_lose_nothing,
        a_watch_sees_every_change_once_and_in_order,
        objects_are_found_by_a_text_in_them_and_nothing_is_loaded,
        a_feed_ends_where_changes_are_compacted,
    ],
    kept: [
        a_watch_goes_on_after_a_restart,
        large_changes_are_read_in_parts,
        a_feed_has_the_changes_of_all_collections_in_order,
        an_earlier_state_is_rebuilt_from_memory_and_from_the_log,
        a_restart_keeps_everything,
        compaction_keeps_what_is_live_and_what_can_still_be_read,
        history_is_compacted_though_no_process_runs_for_that_long,
        the_first_value_under_a_name_stays,
        a_collection_that_is_loaded_amid_writes_misses_none,
        a_collection_that_memory_can_not_hold_is_not_loaded,
        parts_of_a_collection_that_memory_can_not_hold_are_read,
    ],
}

async fn a_collection_that_memory_can_not_hold_is_not_loaded(database: Database) {
    const OBJECTS: usize = 40;
    const LEFT: usize = 5;
    let text = "x".repeat(512 << 10);
    let storage = database.open().await;
    for at in 0..OBJECTS {
        write(&storage, put(&format!("{at}"), &text, &[Guard::Absent])).await;
    }
    storage.close().await;
    // A collection may have half of it.
    let memory = Arc::new(Memory::new(32 << 20));
    let storage = database.open_as(Config { memory, ..Config::memory() }).await;
    // The second time it is known to be large, and not even begun.
    for _ in 0..2 {
        let refused = storage.snapshot(&crontabs(), At::Newest).await;
        assert!(matches!(refused, Err(SnapshotError::Store(StoreError::NoMemory))));
    }
    assert!(storage.get(&crontabs(), "0").await.expect("it reads").is_some());
    for at in LEFT..OBJECTS {
        write(&storage, delete(&format!("{at}"), &[])).await;
    }
    // It is measured again after a second.
    let snapshot = loop {
        match storage.snapshot(&crontabs(), At::Newest).await {
            Err(SnapshotError::Store(StoreError::NoMemory)) => tokio::time::sleep(Duration::from_millis(100)).await,
            snapshot => break snapshot.expect("it is small now"),
        }
    };
    assert_eq!(snapshot.len(), LEFT);
}

async fn parts_of_a_collection_that_memory_can_not_hold_are_read(database: Database) {
    let text = "x".repeat(3 << 20);
    let storage = database.open().await;
    for at in 0..7 {
        write(&storage, put(&format!("large/{at}"), &text, &[Guard::Absent])).await;
    }
    for name in ["b", "a", "ab", "a-b", "c"] {
        write(&storage, put(&format!("ns/{name}"), "1", &[Guard::Absent])).await;
    }
    write(&storage, put("ns0/a", "1", &[Guard::Absent])).await;
    storage.close().await;
    let memory = Arc::new(Memory::new(32 << 20));
    let storage = database.open_as(Config { memory, ..Config::memory() }).await;
    let read = async |at: At, range: KeyRange, size: PartSize| {
        let request = PartRequest { at, range, size, reader: PartReader::Client(None) };
        let part = storage.part(&crontabs(), request).await.expect("it reads");
        let keys: Vec<String> = part.objects().map(|stored| stored.key.to_string()).collect();
        (keys, part.next_key().map(str::to_owned))
    };
    let keys = |names: &[&str]| -> Vec<String> { names.iter().map(|name| format!("ns/{name}")).collect() };
    let of_ns = || KeyRange::of("ns/");
    let all = (keys(&["a", "a-b", "ab", "b", "c"]), None);
    assert_eq!(read(At::Newest, of_ns(), PartSize::All).await, all);
    let first = (keys(&["a", "a-b"]), Some("ns/a-b\0".to_owned()));
    assert_eq!(read(At::Newest, of_ns(), PartSize::First(2)).await, first);
    let rest = (keys(&["ab", "b", "c"]), None);
    assert_eq!(read(At::Newest, of_ns().starting("ns/a-b\0"), PartSize::First(3)).await, rest);
    assert_eq!(read(At::Newest, of_ns().starting("ns/ab"), PartSize::First(3)).await, rest);
    assert_eq!(read(At::Newest, KeyRange::one("ns/a"), PartSize::All).await, (keys(&["a"]), None));
    assert_eq!(read(At::Newest, KeyRange::of("none/"), PartSize::All).await, (Vec::new(), None));
    // In the database, the range after the last namespace has no end.
    let (large, next) = read(At::Newest, KeyRange::of("").starting("ns/c"), PartSize::First(9)).await;
    assert_eq!((large, next), (vec!["ns/c".to_owned(), "ns0/a".to_owned()], None));
    let (large, next) = read(At::Newest, KeyRange::of(""), PartSize::First(9)).await;
    assert_eq!((large, next), (vec!["large/0".to_owned()], Some("large/0\0".to_owned())));

    let before = storage.revision(&crontabs());
    write(&storage, delete("ns/a", &[])).await;
    write(&storage, put("ns/bb", "1", &[Guard::Absent])).await;
    assert_eq!(read(At::Exact(before), of_ns(), PartSize::All).await, all);
    assert_eq!(read(At::Newest, of_ns(), PartSize::All).await.0, keys(&["a-b", "ab", "b", "bb", "c"]));
    let mut watch = storage.watch(&crontabs(), before).await.expect("the log is there");
    let changes =
        [watch.next().await, watch.next().await].map(|change| change.expect("it goes on").object.key.to_string());
    assert_eq!(changes, ["ns/a", "ns/bb"]);
}

async fn a_write_is_visible_when_it_is_acknowledged(database: Database) {
    let storage = database.open().await;
    let revision = write(&storage, put("ns/a", "1", &[Guard::Absent])).await;
    assert_eq!(storage.revision(&crontabs()), revision);
    let stored = storage.get(&crontabs(), "ns/a").await.expect("it reads").expect("it is there");
    assert_eq!((stored.revision, stored.created, &*stored.uid), (revision, revision, "u-ns/a"));
    assert_eq!((&*stored.stored_version, stored.schema_generation), ("v1", 3));
}

async fn an_update_keeps_the_revision_of_the_creation(database: Database) {
    let storage = database.open().await;
    let created = write(&storage, put("a", "1", &[Guard::Absent])).await;
    let updated = write(&storage, put("a", "2", &[Guard::At { revision: created }])).await;
    let stored = storage.get(&crontabs(), "a").await.expect("it reads").expect("it is there");
    assert_eq!((stored.revision, stored.created), (updated, created));
}

async fn an_empty_database_has_a_revision_that_clients_can_name(database: Database) {
    let storage = database.open().await;
    let snapshot = storage.snapshot(&crontabs(), At::Newest).await.expect("there is a newest state");
    assert!(snapshot.is_empty());
    assert!(snapshot.revision() > Revision::new(0));
    let older = storage.watch(&crontabs(), Revision::new(1)).await;
    assert!(matches!(older, Err(WatchError::Expired { .. })), "1 is too old, as on a kube-apiserver");
}

async fn a_guard_that_does_not_hold_stops_its_write_alone(database: Database) {
    let storage = database.open().await;
    let first = write(&storage, put("a", "1", &[Guard::Absent])).await;
    let stale = Guard::At { revision: Revision::new(first.get() - 1) };
    let writes = [
        put("a", "2", &[Guard::Absent]),
        put("a", "2", std::slice::from_ref(&stale)),
        delete("a", &[stale]),
        delete("b", &[]),
        put("c", "1", &[Guard::Absent]),
    ];
    let results = join_all(writes.map(|write| storage.write(write))).await;
    let failed: Vec<_> = results.iter().map(|result| matches!(result, Err(WriteError::GuardFailed))).collect();
    assert_eq!(failed, [true, true, true, true, false]);
    assert_eq!(storage.revision(&crontabs()), first.next(), "a write that is not made takes no revision");
}

async fn a_write_is_guarded_by_another_object(database: Database) {
    let storage = database.open().await;
    let definitions = Collection::new("apiextensions.k8s.io", "customresourcedefinitions");
    let definition = |guards| Write { collection: definitions.clone(), ..put("crontabs", "1", guards) };
    let revision = write(&storage, definition(&[Guard::Absent])).await;
    let guard = Guard::Other { collection: definitions.clone(), key: "crontabs".into(), revision };
    write(&storage, put("a", "1", std::slice::from_ref(&guard))).await;
    // Both wait in one batch: the second sees what the first did to the definition.
    let (changed, refused) =
        tokio::join!(storage.write(definition(&[])), storage.write(put("b", "1", std::slice::from_ref(&guard))));
    assert!(changed.is_ok());
    assert!(matches!(refused, Err(WriteError::GuardFailed)));
}

async fn of_many_who_create_one_object_one_succeeds(database: Database) {
    let storage = database.open().await;
    let creations = (0..50).map(|at| storage.write(put("a", &at.to_string(), &[Guard::Absent])));
    let made = join_all(creations).await.into_iter().filter(Result::is_ok).count();
    assert_eq!(made, 1);
}

async fn updates_that_are_decided_anew_lose_nothing(database: Database) {
    const WRITERS: usize = 8;
    const UPDATES: usize = 25;
    let storage = database.open().await;
    let before = write(&storage, put("a", "0", &[Guard::Absent])).await;
    let writers = (0..WRITERS).map(|_| {
        let storage = storage.clone();
        tokio::spawn(async move {
            for _ in 0..UPDATES {
                loop {
                    let stored = storage.get(&crontabs(), "a").await.expect("it reads").expect("it is there");
                    let text = String::from_utf8_lossy(&stored.bytes).into_owned();
                    let count: usize = text.rsplit('"').nth(1).and_then(|count| count.parse().ok()).expect("a number");
                    let guard = Guard::At { revision: stored.revision };
                    match storage.write(put("a", &(count + 1).to_string(), &[guard])).await {
                        Err(WriteError::GuardFailed) => {}
                        done => {
                            done.expect("the database answers");
                            break;
                        }
                    }
                }
            }
        })
    });
    for writer in join_all(writers).await {
        writer.expect("the writer ends");
    }
    let stored = storage.get(&crontabs(), "a").await.expect("it reads").expect("it is there");
    assert!(String::from_utf8_lossy(&stored.bytes).contains(&format!(r#""spec":"{}""#, WRITERS * UPDATES)));
    assert_eq!(stored.revision.get() - before.get(), (WRITERS * UPDATES) as i64, "revisions have no gaps");
}

async fn a_watch_sees_every_change_once_and_in_order(database: Database) {
    const WRITERS: usize = 4;
    const ROUNDS: usize = 100;
    let storage = database.open().await;
    let others = Collection::new("", "others");
    let mut watch = storage.watch(&crontabs(), storage.revision(&crontabs())).await.expect("the revision is there");
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let (storage, others) = (storage.clone(), others.clone());
            tokio::spawn(async move {
                let key = format!("ns/{writer}");
                for _ in 0..ROUNDS {
                    write(&storage, put(&key, "1", &[Guard::Absent])).await;
                    write(&storage, Write { collection: others.clone(), ..put(&key, "1", &[]) }).await;
                    write(&storage, put(&key, "2", &[])).await;
                    write(&storage, delete(&key, &[])).await;
                }
            })
        })
        .collect();
    let mut newest = Revision::default();
    let mut states: BTreeMap<Arc<str>, Revision> = BTreeMap::new();
    for _ in 0..WRITERS * ROUNDS * 3 {
        let change = next(&mut watch).await;
        assert!(change.revision > newest, "{} after {newest}", change.revision);
        newest = change.revision;
        let previous = change.previous.as_ref().map(|previous| previous.revision);
        let known = if change.deleted {
            states.remove(&change.object.key)
        } else {
            states.insert(Arc::clone(&change.object.key), change.revision)
        };
        assert_eq!(previous, known, "each change follows from the one before");
    }
    for writer in writers {
        writer.await.expect("the writer ends");
    }
    assert!(states.is_empty());
}

async fn a_deletion_carries_the_last_state_and_a_revision_of_its_own(database: Database) {
    let storage = database.open().await;
    let after = storage.revision(&crontabs());
    let created = write(&storage, put("a", "1", &[])).await;
    let deleted = write(&storage, delete("a", &[])).await;
    let mut watch = storage.watch(&crontabs(), after).await.expect("the revision is there");
    next(&mut watch).await;
    let change = next(&mut watch).await;
    assert!(change.deleted);
    assert_eq!((change.revision, change.object.revision), (deleted, created));
    assert_eq!(watch.seen(), deleted);
}

async fn a_slow_watch_reads_on_from_the_log(database: Database) {
    const CHANGES: usize = 2_600;
    let storage = database.open().await;
    let mut watch = storage.watch(&crontabs(), storage.revision(&crontabs())).await.expect("the revision is there");
    for round in 0..CHANGES / 100 {
        join_all((0..100).map(|at| storage.write(put(&format!("ns/{at}"), &round.to_string(), &[])))).await;
    }
    let mut seen = Vec::new();
    for _ in 0..CHANGES {
        seen.push(next(&mut watch).await.revision.get());
    }
    let first = seen[0];
    assert_eq!(seen, (first..first + CHANGES as i64).collect::<Vec<_>>());
}

async fn a_watch_goes_on_after_a_restart(database: Database) {
    let storage = database.open().await;
    let first = write(&storage, put("a", "1", &[])).await;
    let second = write(&storage, put("a", "2", &[])).await;
    write(&storage, delete("a", &[])).await;
    storage.close().await;

    let storage = database.open().await;
    let mut watch = storage.watch(&crontabs(), first).await.expect("the revision is there");
    let update = next(&mut watch).await;
    assert_eq!((update.revision, update.previous.as_ref().map(|previous| previous.revision)), (second, Some(first)));
    let deletion = next(&mut watch).await;
    assert!(deletion.deleted);
    assert_eq!(deletion.object.revision, second);
    let later = write(&storage, put("b", "1", &[])).await;
    assert_eq!(next(&mut watch).await.revision, later);
}

/// The next changes of a feed, as collection, key, uid and whether there is a new state.
async fn entries(feed: &mut Feed, count: usize) -> Vec<(String, String, String, bool)> {
    let mut found = Vec::new();
    while found.len() < count {
        let page = tokio::time::timeout(Duration::from_secs(30), feed.next()).await;
        let page = page.expect("changes come in time").expect("the feed goes on");
        found.extend(page.into_iter().map(|entry| {
            let collection = entry.collection.as_str().to_owned();
            (collection, entry.key.to_string(), entry.uid.to_string(), entry.stored.is_some())
        }));
    }
    found
}

async fn a_feed_has_the_changes_of_all_collections_in_order(database: Database) {
    let storage = database.open().await;
    let before = storage.now();
    let mut feed = storage.feed(&before);
    let other = Write { collection: Collection::new("", "things"), ..put("b", "1", &[]) };
    for one in [put("a", "1", &[]), other, put("a", "2", &[]), delete("a", &[])] {
        write(&storage, one).await;
    }
    let (crontabs, things) = ("stable.example.com/crontabs", "/things");
    let wanted = [(crontabs, "a", true), (things, "b", true), (crontabs, "a", true), (crontabs, "a", false)];
    let wanted =
        wanted.map(|(collection, key, is_there)| (collection.to_owned(), key.to_owned(), format!("u-{key}"), is_there));
    assert_eq!(entries(&mut feed, 4).await, wanted);
    assert_eq!(storage.object_counts(), []);
    storage.close().await;

    let storage = database.open().await;
    let mut feed = storage.feed(&before);
    assert_eq!(entries(&mut feed, 4).await, wanted);
    write(&storage, put("c", "1", &[])).await;
    assert_eq!(entries(&mut feed, 1).await[0].1, "c");
    storage.close().await;
}

async fn large_changes_are_read_in_parts(database: Database) {
    const CHANGES: usize = 45;
    /// Few such texts stay in memory, and one is more than a part of the log.
    const TEXT_BYTES: usize = 100_000;
    let storage = database.open().await;
    let (begun, mut made) = (storage.now(), Vec::new());
    let revision = storage.revision(&crontabs());
    for at in 0..CHANGES {
        let (key, text) = (format!("ns/{}", at % 4), format!("{at}-{}", "x".repeat(TEXT_BYTES)));
        let is_deletion = at % 9 == 8;
        let change = if is_deletion { delete(&key, &[]) } else { put(&key, &text, &[]) };
        made.push((write(&storage, change).await, key, is_deletion));
    }
    check_parts(&storage, revision, &begun, &made).await;
    storage.close().await;
    check_parts(&database.open().await, revision, &begun, &made).await;
}

/// Whether a watch, a feed and a scan find what was made.
async fn check_parts(storage: &Storage, revision: Revision, begun: &Moment, made: &[(Revision, String, bool)]) {
    let mut watch = storage.watch(&crontabs(), revision).await.expect("it is in the log");
    let mut watched = Vec::new();
    while watched.len() < made.len() {
        let change = next(&mut watch).await;
        watched.push((change.revision, change.object.key.to_string(), change.deleted));
    }
    assert!(watched == made && watch.next_visible().await.is_none());
    let (mut feed, mut fed) = (storage.feed(begun), Vec::new());
    while fed.len() < made.len() {
        let changes = feed.next().await.expect("the feed goes on");
        fed.extend(changes.iter().map(|change| (change.revision, change.key.to_string(), change.stored.is_none())));
    }
    assert!(fed == made);
    let mut found = Vec::new();
    let each = |_: Collection, stored: Arc<Stored>| found.push(stored.key.to_string());
    storage.scan(&["xxx", "yyy", "zzz"], each).await.expect("it reads");
    found.sort();
    assert_eq!(found, newest(storage).await.into_keys().collect::<Vec<_>>());
}

async fn a_feed_ends_where_changes_are_compacted(database: Database) {
    /// One more than stay in memory.
    const CHANGES: usize = 2_001;
    let storage = database.open().await;
    let mut feed = storage.feed(&storage.now());
    for chunk in (0..CHANGES).collect::<Vec<_>>().chunks(500) {
        join_all(chunk.iter().map(|_| write(&storage, put("a", "1", &[])))).await;
    }
    storage.compact(&crontabs(), storage.revision(&crontabs())).await.expect("it compacts");
    assert!(feed.next().await.is_none());
}

async fn objects_are_found_by_a_text_in_them_and_nothing_is_loaded(database: Database) {
    let storage = database.open().await;
    for one in [
        put("found", "needle", &[]),
        put("other", "hay", &[]),
        put("no-longer", "needle", &[]),
        put("no-longer", "hay", &[]),
        put("gone", "needle", &[]),
        delete("gone", &[]),
    ] {
        write(&storage, one).await;
    }
    let (mut found, mut moment) = (Vec::new(), Moment::default());
    for texts in [["needle", "x-1", "x-2"], ["x-1", "x-2", "needle"]] {
        let each = |collection: Collection, stored: Arc<Stored>| found.push((collection, stored.key.to_string()));
        moment = storage.scan(&texts, each).await.expect("it reads");
    }
    assert_eq!(found, [(crontabs(), "found".to_owned()), (crontabs(), "found".to_owned())]);
    assert_eq!(moment, storage.now());

    let read = storage.peek(&crontabs(), "no-longer").await.expect("it reads").expect("it is there");
    assert!(String::from_utf8_lossy(&read.bytes).contains("hay"));
    assert!(storage.peek(&crontabs(), "gone").await.expect("it reads").is_none());
    assert_eq!(storage.object_counts(), []);
}

async fn a_watch_from_the_future_waits_for_it(database: Database) {
    let storage = database.open().await;
    let future = Revision::new(storage.revision(&crontabs()).get() + 2);
    let mut watch = storage.watch(&crontabs(), future).await.expect("the future is allowed");
    for _ in 0..3 {
        write(&storage, put("a", "1", &[])).await;
    }
    assert_eq!(next(&mut watch).await.revision, future.next());
}

/// The state at every revision of a small history, as it was seen when it was the newest.
async fn history(storage: &Storage) -> Vec<(Revision, State)> {
    let mut states = vec![(storage.revision(&crontabs()), newest(storage).await)];
    for step in 0..60 {
        let key = format!("ns/{}", step * 7 % 11);
        let change = match step % 4 {
            3 if storage.get(&crontabs(), &key).await.expect("it reads").is_some() => delete(&key, &[]),
            _ => put(&key, &step.to_string(), &[]),
        };
        let revision = write(storage, change).await;
        states.push((revision, newest(storage).await));
    }
    states
}

async fn check_history(storage: &Storage, states: &[(Revision, State)]) {
    for (revision, state) in states {
        let snapshot = storage.snapshot(&crontabs(), At::Exact(*revision)).await.expect("the revision is there");
        assert_eq!(snapshot.revision(), *revision);
        assert_eq!(contents(&snapshot), *state, "at {revision}");
    }
}

async fn an_earlier_state_is_rebuilt_from_memory_and_from_the_log(database: Database) {
    let storage = database.open().await;
    let states = history(&storage).await;
    check_history(&storage, &states).await;
    storage.close().await;
    check_history(&database.open().await, &states).await;
}

async fn a_restart_keeps_everything(database: Database) {
    let storage = database.open().await;
    history(&storage).await;
    let (revision, state) = (storage.revision(&crontabs()), newest(&storage).await);
    storage.close().await;
    assert!(matches!(storage.write(put("x", "1", &[])).await, Err(WriteError::Store(StoreError::Closed))));

    let storage = database.open().await;
    assert_eq!(storage.revision(&crontabs()), revision);
    assert_eq!(newest(&storage).await, state);
    assert_eq!(write(&storage, put("x", "1", &[])).await, revision.next());
}

async fn compaction_keeps_what_is_live_and_what_can_still_be_read(database: Database) {
    let storage = database.open().await;
    let states = history(&storage).await;
    let middle = states.len() / 2;
    let (compacted, _) = states[middle];
    storage.compact(&crontabs(), compacted).await.expect("it compacts");
    assert_eq!(storage.compacted(&crontabs()), compacted);

    assert_eq!(expired(storage.snapshot(&crontabs(), At::Exact(states[middle - 1].0)).await), compacted);
    let older = storage.watch(&crontabs(), states[middle - 1].0).await;
    assert!(matches!(older, Err(WatchError::Expired { .. })));
    check_history(&storage, &states[middle..]).await;
    storage.close().await;

    // Again from the log alone, which has lost nothing that it needs.
    let storage = database.open().await;
    assert_eq!(storage.compacted(&crontabs()), compacted);
    check_history(&storage, &states[middle..]).await;
    let mut watch = storage.watch(&crontabs(), compacted).await.expect("the revision is there");
    for (revision, _) in &states[middle + 1..] {
        assert_eq!(next(&mut watch).await.revision, *revision);
    }
}

async fn history_is_compacted_by_itself_after_a_while(database: Database) {
    let storage = database.open_with_history(Duration::from_millis(50)).await;
    let first = write(&storage, put("a", "1", &[])).await;
    let second = write(&storage, put("a", "2", &[])).await;
    let compacted = async {
        while storage.compacted(&crontabs()) < second {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), compacted).await.expect("it is compacted");
    assert_eq!(expired(storage.snapshot(&crontabs(), At::Exact(first)).await), second);
    assert_eq!(newest(&storage).await.len(), 1);
}

async fn history_is_compacted_though_no_process_runs_for_that_long(database: Database) {
    const HISTORY: Duration = Duration::from_millis(1_500);
    let storage = database.open_with_history(HISTORY).await;
    let first = write(&storage, put("a", "1", &[])).await;
    let second = write(&storage, put("a", "2", &[])).await;
    tokio::time::sleep(HISTORY / 3).await;
    storage.close().await;

    let begun = Instant::now();
    let compacted = async {
        loop {
            // Each writes, so the database is never older than this process.
            let storage = database.open_with_history(HISTORY).await;
            write(&storage, put("b", "1", &[])).await;
            tokio::time::sleep(HISTORY / 5).await;
            if storage.compacted(&crontabs()) >= second {
                return expired(storage.snapshot(&crontabs(), At::Exact(first)).await);
            }
            storage.close().await;
        }
    };
    let compacted = tokio::time::timeout(Duration::from_secs(60), compacted).await.expect("it is compacted");
    assert!(compacted >= second && begun.elapsed() >= HISTORY / 2);
}

async fn a_state_that_is_kept_for_pages_goes_with_its_revision(database: Database) {
    let storage = database.open().await;
    write(&storage, put("a", "1", &[])).await;
    let page = storage.snapshot(&crontabs(), At::Newest).await.expect("there is a newest state");
    storage.pin(&page, None);
    let later = write(&storage, put("a", "2", &[])).await;
    let again = storage.snapshot(&crontabs(), At::Exact(page.revision())).await.expect("it is kept");
    assert_eq!(contents(&again), contents(&page));
    storage.compact(&crontabs(), later).await.expect("it compacts");
    assert_eq!(expired(storage.snapshot(&crontabs(), At::Exact(page.revision())).await), later);
}

async fn what_expires_is_deleted_at_its_time(database: Database) {
    let storage = database.open().await;
    const FAR_MS: i64 = 4_000_000_000_000;
    let expiring = |key: &str, at_ms| {
        let mut write = put(key, "1", &[]);
        if let Op::Put(put) = &mut write.op {
            put.expires_at_ms = Some(at_ms);
        }
        write
    };
    for write in
        [expiring("early", FAR_MS), expiring("late", FAR_MS + 1), expiring("kept", FAR_MS), put("ever", "1", &[])]
    {
        storage.write(write).await.expect("the guards hold");
    }
    // Without the time it would have gone at.
    write(&storage, put("kept", "2", &[])).await;
    let mut watch = storage.watch(&crontabs(), storage.revision(&crontabs())).await.expect("the revision is there");
    storage.expire(FAR_MS).await.expect("it expires");
    assert_eq!(newest(&storage).await.into_keys().collect::<Vec<_>>(), ["ever", "kept", "late"]);
    let change = next(&mut watch).await;
    assert!(change.deleted);
    assert_eq!(&*change.object.key, "early");
}

async fn keys_are_listed_in_the_order_of_their_bytes(database: Database) {
    let storage = database.open().await;
    for key in ["a/x", "a.b/x", "a-b/x", "a/y", "b/x"] {
        write(&storage, put(key, "1", &[])).await;
    }
    let snapshot = storage.snapshot(&crontabs(), At::Newest).await.expect("there is a newest state");
    let keys = |prefix: &'static str, start: Option<&str>| {
        snapshot.range(prefix, start).map(|stored| stored.key.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(keys("", None), ["a-b/x", "a.b/x", "a/x", "a/y", "b/x"]);
    assert_eq!(keys("a/", None), ["a/x", "a/y"]);
    assert_eq!(keys("a/", Some("a/x\0")), ["a/y"]);
}

async fn writes_beyond_the_queue_are_refused_at_once(database: Database) {
    let storage = database.open().await;
    let results = join_all((0..1_100).map(|at| storage.write(put(&at.to_string(), "1", &[])))).await;
    let (made, refused): (Vec<_>, Vec<_>) = results.into_iter().partition(Result::is_ok);
    assert_eq!(made.len(), 1_024);
    assert!(refused.iter().all(|result| matches!(result, Err(WriteError::Busy))));
    write(&storage, put("later", "1", &[])).await;
}

async fn large_writes_fill_the_queue_by_their_bytes(database: Database) {
    let storage = database.open().await;
    let large = "x".repeat(3 << 20);
    let results = join_all((0..30).map(|at| storage.write(put(&at.to_string(), &large, &[])))).await;
    let refused = results.iter().filter(|result| matches!(result, Err(WriteError::Busy))).count();
    assert!((1..30).contains(&refused), "{refused} refused");
}

async fn a_write_is_made_though_its_caller_stops_waiting(database: Database) {
    let storage = database.open().await;
    let mut watch = storage.watch(&crontabs(), storage.revision(&crontabs())).await.expect("the revision is there");
    let abandoned = tokio::time::timeout(Duration::ZERO, storage.write(put("a", "1", &[])));
    _ = abandoned.await;
    assert_eq!(&*next(&mut watch).await.object.key, "a");
}

async fn the_first_value_under_a_name_stays(database: Database) {
    let storage = database.open().await;
    assert_eq!(storage.read_secret("ca").await.expect("it reads"), None);
    assert_eq!(storage.insert_secret("ca", b"one").await.expect("it writes"), b"one");
    assert_eq!(storage.insert_secret("ca", b"two").await.expect("it writes"), b"one");
    storage.close().await;
    let storage = database.open().await;
    assert_eq!(storage.read_secret("ca").await.expect("it reads").as_deref(), Some(&b"one"[..]));
}

async fn a_lease_has_one_holder_until_it_runs_out(database: Database) {
    let storage = database.open().await;
    let take = async |holder: &str, ttl_ms| {
        storage.lease("controllers", holder, Duration::from_millis(ttl_ms)).await.expect("it answers")
    };
    assert!(take("one", 60_000).await);
    assert!(!take("two", 60_000).await);
    assert!(take("one", 0).await);
    assert!(take("two", 60_000).await);
}

async fn waiting_for_a_revision_ends_when_it_is_there_or_in_time(database: Database) {
    let storage = database.open().await;
    let coming = storage.revision(&crontabs()).next();
    assert!(!storage.wait_for(&crontabs(), coming, Duration::ZERO).await);
    let tabs = crontabs();
    let (reached, written) =
        tokio::join!(storage.wait_for(&tabs, coming, Duration::from_secs(30)), storage.write(put("a", "1", &[])));
    assert!(reached);
    assert!(matches!(written, Ok(Committed { revision }) if revision == coming));
}

async fn a_collection_that_is_loaded_amid_writes_misses_none(database: Database) {
    let storage = database.open().await;
    join_all((0..500).map(|at| storage.write(put(&format!("old/{at}"), "1", &[])))).await;
    storage.close().await;

    let storage = database.open().await;
    let writer = {
        let storage = storage.clone();
        tokio::spawn(async move {
            for at in 0..200 {
                write(&storage, put(&format!("new/{at}"), "1", &[])).await;
            }
        })
    };
    let snapshot = storage.snapshot(&crontabs(), At::Newest).await.expect("there is a newest state");
    assert!(snapshot.range("", None).all(|stored| stored.revision <= snapshot.revision()));
    let mut watch = storage.watch(&crontabs(), snapshot.revision()).await.expect("the revision is there");
    let mut seen = snapshot.len();
    while seen < 700 {
        let change = next(&mut watch).await;
        assert!(change.previous.is_none(), "it was in the snapshot already");
        seen += 1;
    }
    writer.await.expect("the writer ends");
}
