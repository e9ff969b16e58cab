//! Collections in databases of their own.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use kubeskiff::meta::Revision;
use kubeskiff::store::{Collection, Config, Guard, Location, Op, PostgresUrl, Storage, Write, WriteError};

use super::{Folder, crontabs, delete, newest, next, postgres, put, write};

fn definitions() -> Collection {
    Collection::new("apiextensions.k8s.io", "customresourcedefinitions")
}

fn in_definitions(write: Write) -> Write {
    Write { collection: definitions(), ..write }
}

/// CronTabs and widgets are in a file, everything else is in memory.
async fn open(folder: &Folder) -> Storage {
    let other = Location::File(folder.path().join("other.db"));
    let overrides = [crontabs(), Collection::new("", "widgets")].map(|collection| (collection, other.clone()));
    Storage::open(&Config { overrides: overrides.into(), ..Config::memory() }).await.expect("the databases open")
}

#[tokio::test]
async fn a_collection_elsewhere_has_revisions_of_its_own_and_is_kept_there() {
    let folder = Folder::new("override-kept");
    let storage = open(&folder).await;
    let (before, apart) = (storage.revision(&definitions()), storage.revision(&crontabs()));
    let mut watch = storage.watch(&crontabs(), apart).await.expect("the revision is there");
    for round in 0..3 {
        write(&storage, in_definitions(put("a", &round.to_string(), &[]))).await;
    }
    let written = write(&storage, put("ns/a", "1", &[Guard::Absent])).await;
    assert_eq!(written, apart.next());
    assert_eq!(next(&mut watch).await.revision, written);
    assert_eq!(storage.revision(&definitions()).get(), before.get() + 3);
    assert_eq!(storage.revision(&Collection::new("", "widgets")), written, "one database for both");
    let state = newest(&storage).await;
    storage.close().await;

    let storage = open(&folder).await;
    assert_eq!(newest(&storage).await, state);
    assert_eq!(storage.get(&definitions(), "a").await.expect("it reads").map(|_| ()), None, "that was in memory");
}

#[tokio::test]
async fn compaction_and_expiry_reach_every_database() {
    let folder = Folder::new("override-compact");
    let storage = open(&folder).await;
    for collection in [crontabs(), definitions()] {
        let mut expiring = Write { collection: collection.clone(), ..put("ns/a", "1", &[]) };
        if let Op::Put(put) = &mut expiring.op {
            put.expires_at_ms = Some(1);
        }
        write(&storage, expiring).await;
        storage.expire(1).await.expect("it expires");
        assert!(storage.get(&collection, "ns/a").await.expect("it reads").is_none());
        let newest = storage.revision(&collection);
        storage.compact(&collection, newest).await.expect("it compacts");
        assert_eq!(storage.compacted(&collection), newest);
    }
}

#[tokio::test]
async fn a_write_is_guarded_by_an_object_of_another_database() {
    let folder = Folder::new("override-guard");
    let storage = open(&folder).await;
    let revision = write(&storage, in_definitions(put("crontabs", "1", &[]))).await;
    let guard = Guard::Other { collection: definitions(), key: "crontabs".into(), revision };
    write(&storage, put("ns/a", "1", &[guard.clone(), Guard::Absent])).await;
    write(&storage, in_definitions(put("crontabs", "2", &[]))).await;
    let refused = storage.write(put("ns/b", "1", &[guard, Guard::Absent])).await;
    assert!(matches!(refused, Err(WriteError::GuardFailed)), "{refused:?}");
    assert_eq!(newest(&storage).await.len(), 1);
}

/// What a controller finds that empties a namespace is all there will ever be in it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_is_created_behind_the_deletion_of_its_guard() {
    const ROUNDS: usize = 40;
    const CREATORS: usize = 8;
    let folder = Folder::new("override-race");
    let storage = open(&folder).await;
    for round in 0..ROUNDS {
        let name = format!("ns-{round}");
        let revision = write(&storage, in_definitions(put(&name, "1", &[]))).await;
        let guard = Guard::Other { collection: definitions(), key: name.as_str().into(), revision };
        let creators = (0..CREATORS).map(|creator| {
            let (storage, guard, name) = (storage.clone(), guard.clone(), name.clone());
            tokio::spawn(async move {
                for at in 0.. {
                    let creation = put(&format!("{name}/{creator}-{at}"), "1", &[guard.clone(), Guard::Absent]);
                    if storage.write(creation).await.is_err() {
                        return;
                    }
                }
            })
        });
        let creators: Vec<_> = creators.collect();
        tokio::time::sleep(Duration::from_micros(300 * (round as u64 % 7))).await;
        write(&storage, in_definitions(delete(&name, &[]))).await;
        let found: Vec<_> = newest(&storage).await.into_keys().collect();
        join_all(creators).await.into_iter().for_each(|ended| ended.expect("a creator ends"));
        for key in newest(&storage).await.into_keys() {
            assert!(found.contains(&key), "{key} was made behind the deletion");
            write(&storage, delete(&key, &[])).await;
        }
    }
}

#[tokio::test]
async fn one_database_that_can_not_be_opened_stops_the_start() {
    let folder = Folder::new("override-missing");
    let missing = Location::File(folder.path().join("missing/other.db"));
    let config = Config { overrides: vec![(crontabs(), missing)], ..Config::memory() };
    assert!(Storage::open(&config).await.is_err());
}

#[tokio::test]
async fn an_update_under_a_guard_elsewhere_is_acknowledged_once() {
    let folder = Folder::new("override-update");
    let storage = Arc::new(open(&folder).await);
    let revision = write(&storage, in_definitions(put("crontabs", "1", &[]))).await;
    let guard = Guard::Other { collection: definitions(), key: "crontabs".into(), revision };
    let mut at = write(&storage, put("ns/a", "0", &[guard.clone(), Guard::Absent])).await;
    for round in 1..20 {
        let stale = Guard::At { revision: Revision::new(at.get() - 1) };
        let refused = storage.write(put("ns/a", "stale", &[guard.clone(), stale])).await;
        assert!(matches!(refused, Err(WriteError::GuardFailed)), "{refused:?}");
        at = write(&storage, put("ns/a", &round.to_string(), &[guard.clone(), Guard::At { revision: at }])).await;
    }
}

#[tokio::test]
async fn a_change_in_a_feed_comes_with_all_that_was_visible_elsewhere() {
    let folder = Folder::new("override-feed");
    let storage = open(&folder).await;
    for round in 0..20 {
        let mut feed = storage.feed(&storage.now());
        // Whichever database is asked first, the dependent that is older than its owner's end is there with it.
        write(&storage, put("ns/dependent", &round.to_string(), &[])).await;
        write(&storage, in_definitions(put("owner", &round.to_string(), &[]))).await;
        let mut seen = Vec::new();
        while !seen.contains(&"owner".to_owned()) {
            let page = tokio::time::timeout(Duration::from_secs(30), feed.next()).await;
            let page = page.expect("changes come in time").expect("the feed goes on");
            seen.extend(page.into_iter().map(|entry| entry.key.to_string()));
        }
        assert!(seen.contains(&"ns/dependent".to_owned()), "{round}: {seen:?}");
    }
}

#[tokio::test]
async fn a_change_in_a_feed_comes_with_all_that_another_process_acknowledged_elsewhere_before_it() {
    let (Some(main), Some(other)) = (postgres::new_database().await, postgres::new_database().await) else { return };
    let location = |url: &str| Location::Postgres(PostgresUrl::new(url));
    let config = Config { overrides: vec![(crontabs(), location(&other))], ..Config::new(location(&main)) };
    let writer = Storage::open(&config).await.expect("the databases open");
    let reader = Storage::open(&config).await.expect("the databases open");
    for round in 0..50 {
        let mut feed = reader.feed(&reader.now());
        let (owner, dependent) = (format!("owner-{round}"), format!("ns/dependent-{round}"));
        write(&writer, in_definitions(put(&owner, "1", &[]))).await;
        write(&writer, put(&dependent, "1", &[])).await;
        let mut seen = Vec::new();
        while !seen.contains(&dependent) {
            let page = tokio::time::timeout(Duration::from_secs(30), feed.next()).await;
            let page = page.expect("changes come in time").expect("the feed goes on");
            seen.extend(page.into_iter().map(|entry| entry.key.to_string()));
        }
        assert!(seen.contains(&owner), "{round}: {seen:?}");
    }
}
