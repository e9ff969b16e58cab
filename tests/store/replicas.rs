//! Several processes on one database: what one writes the others read, and what stops one does not stop the others.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use kubeskiff::server::Authority;
use kubeskiff::store::{At, Config, Feed, Guard, Location, PostgresUrl, Storage, StoreError, WriteError, copy};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, Row as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::{Database, Folder, crontabs, delete, newest, next, postgres, put, write};

/// Runs a test on each database that processes may share.
async fn on_each(name: &str, test: impl AsyncFn(&Database)) {
    test(&Database::shared(name)).await;
    if let Some(database) = Database::postgres().await {
        test(&database).await;
    }
}

#[tokio::test]
async fn what_one_acknowledges_another_reads_at_the_newest() {
    on_each("newest", async |database| {
        let (one, other) = (database.open().await, database.open().await);
        newest(&other).await;
        for round in 0..50 {
            let revision = write(&one, put("ns/a", &round.to_string(), &[])).await;
            other.catch_up().await.expect("the database answers");
            let read = other.get(&crontabs(), "ns/a").await.expect("it reads").expect("it is there");
            assert_eq!(read.revision, revision);
        }
    })
    .await;
}

#[tokio::test]
async fn a_watch_in_another_process_sees_every_change_in_order() {
    on_each("watch", async |database| {
        let replicas = [database.open().await, database.open().await, database.open().await];
        let mut watch =
            replicas[0].watch(&crontabs(), replicas[0].revision(&crontabs())).await.expect("the revision is there");
        let writers = replicas.iter().enumerate().map(|(at, storage)| async move {
            for round in 0..40 {
                write(storage, put(&format!("ns/{at}"), &round.to_string(), &[])).await;
            }
        });
        join_all(writers).await;
        let mut revisions = Vec::new();
        for _ in 0..120 {
            revisions.push(next(&mut watch).await.revision.get());
        }
        let first = revisions[0];
        assert_eq!(revisions, (first..first + 120).collect::<Vec<_>>());
    })
    .await;
}

#[tokio::test]
async fn of_processes_that_create_one_object_one_succeeds() {
    on_each("create", async |database| {
        let replicas = join_all((0..4).map(|_| database.open())).await;
        let made = join_all(replicas.iter().map(|storage| storage.write(put("a", "1", &[Guard::Absent])))).await;
        assert_eq!(made.iter().filter(|result| result.is_ok()).count(), 1);
        for (storage, result) in replicas.iter().zip(made) {
            // Who lost sees by what.
            if matches!(result, Err(WriteError::GuardFailed)) {
                assert!(storage.get(&crontabs(), "a").await.expect("it reads").is_some());
            }
        }
    })
    .await;
}

#[tokio::test]
async fn processes_that_start_on_an_empty_database_at_once_share_it() {
    on_each("start", async |database| {
        let replicas = join_all((0..6).map(|_| database.open())).await;
        let secrets = join_all(replicas.iter().enumerate().map(async |(at, storage)| {
            storage.insert_secret("ca", at.to_string().as_bytes()).await.expect("it answers")
        }));
        let secrets = secrets.await;
        assert!(secrets.iter().all(|secret| *secret == secrets[0]), "{secrets:?}");
    })
    .await;
}

#[tokio::test]
async fn one_process_has_the_lease_and_gives_it_back_at_its_end() {
    on_each("lease", async |database| {
        let (one, other) = (database.open().await, database.open().await);
        let ttl = Duration::from_secs(60);
        assert!(one.lease("controllers", "one", ttl).await.expect("it answers"));
        assert!(!other.lease("controllers", "other", ttl).await.expect("it answers"));
        one.close().await;
        assert!(other.lease("controllers", "other", ttl).await.expect("it answers"));
    })
    .await;
}

/// A runtime of its own: what is on it is frozen while nobody waits for it.
fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts")
}

/// A batch of 64 writes; how many statements it took, and at most one more: the timer may have polled meanwhile.
async fn statements_of_a_batch(storage: &Storage, prefix: &str) -> u64 {
    let before = storage.counts();
    let results =
        join_all((0..64).map(|at| storage.write(put(&format!("{prefix}/{at}"), "1", &[Guard::Absent])))).await;
    assert!(results.iter().all(Result::is_ok));
    let after = storage.counts();
    assert_eq!((after.batches - before.batches, after.writes - before.writes), (1, 64));
    assert_eq!(after.commits - before.commits, 1);
    after.statements - before.statements
}

#[test]
fn a_batch_costs_one_statement_or_four_and_one_commit() {
    let (here, elsewhere) = (runtime(), runtime());
    let Some(url) = here.block_on(postgres::new_database()) else { return };
    let database = Database::Postgres(PostgresUrl::new(&url));
    let (storage, other) = (here.block_on(database.open()), elsewhere.block_on(database.open()));
    let statements = |prefix: &str| here.block_on(statements_of_a_batch(&storage, prefix));
    // Nothing of the collection is known: BEGIN with the counter, the keys, all that changes, COMMIT.
    assert!((4..=5).contains(&statements("unknown")));
    assert_eq!(here.block_on(newest(&storage)).len(), 64);
    assert!((1..=2).contains(&statements("known")));
    // Another process has written in between: one that misses, then the four. The log brings what it wrote. Where the
    // notification is faster, nothing is missed, and one does.
    let mut tries = (0..50).map(|at: i32| {
        elsewhere.block_on(write(&other, put("other", &at.to_string(), &[])));
        statements(&format!("missed-{at}"))
    });
    let missed = tries.find(|count| *count >= 4).expect("a write is faster than a notification");
    assert!((5..=7).contains(&missed), "{missed} statements");
    // It may write again, so the next is not tried; nor the one after, as it does, although that is known.
    elsewhere.block_on(write(&other, put("other", "last", &[])));
    here.block_on(storage.catch_up()).expect("the database answers");
    assert!((4..=5).contains(&statements("careful")));
    assert!((4..=5).contains(&statements("still careful")));
    assert!((1..=2).contains(&statements("alone")));
    assert_eq!(here.block_on(newest(&storage)), elsewhere.block_on(newest(&other)));
}

async fn ends(feed: &mut Feed) -> bool {
    matches!(tokio::time::timeout(Duration::from_secs(30), feed.next()).await, Ok(None))
}

#[test]
fn a_process_that_was_frozen_while_the_log_was_compacted_starts_over() {
    let (awake, frozen) = (runtime(), runtime());
    let Some(url) = awake.block_on(postgres::new_database()) else { return };
    let database = Database::Postgres(PostgresUrl::new(&url));
    let (one, gone, mut watch, mut feed) = frozen.block_on(async {
        let one = database.open().await;
        newest(&one).await;
        // The second is in one message, so the next would be.
        write(&one, put("kept", "1", &[Guard::Absent])).await;
        let gone = write(&one, put("gone", "1", &[Guard::Absent])).await;
        let watch = one.watch(&crontabs(), gone).await.expect("the revision is there");
        let feed = one.feed(&one.now());
        (one, gone, watch, feed)
    });
    let other = awake.block_on(async {
        let other = database.open().await;
        write(&other, delete("gone", &[])).await;
        let deleted = write(&other, put("kept", "2", &[])).await;
        other.compact(&crontabs(), deleted).await.expect("it compacts");
        write(&other, put("new", "1", &[])).await;
        other
    });
    frozen.block_on(async {
        one.catch_up().await.expect("the database answers");
        let again = one.write(put("gone", "2", &[Guard::At { revision: gone }])).await;
        assert!(matches!(again, Err(WriteError::GuardFailed)), "{again:?}");
        assert_eq!(newest(&one).await.into_keys().collect::<Vec<_>>(), ["kept", "new"]);
        assert!(watch.next().await.is_none(), "it can't tell what was missed");
        assert!(ends(&mut feed).await, "nor can it");
    });
    awake.block_on(async {
        assert_eq!(newest(&other).await.into_keys().collect::<Vec<_>>(), ["kept", "new"]);
        let faults = copy::check(&Location::Postgres(PostgresUrl::new(&url))).await.expect("it is there");
        assert_eq!(faults, Vec::<String>::new());
    });
}

#[tokio::test]
async fn what_a_database_loses_by_a_crash_its_processes_forget() {
    let Some(url) = postgres::new_database().await else { return };
    let storage = Database::Postgres(PostgresUrl::new(&url)).open().await;
    newest(&storage).await;
    let kept = write(&storage, put("kept", "1", &[Guard::Absent])).await;
    let lost = write(&storage, put("lost", "1", &[Guard::Absent])).await;
    let mut feed = storage.feed(&storage.now());
    // As under relaxed durability.
    let mut crashed = PgConnection::connect(&url).await.expect("it connects");
    let lose = format!(
        "DELETE FROM objects WHERE resource_version = {lost}; DELETE FROM changes WHERE resource_version = {lost}; \
         UPDATE counter SET current_revision = {kept}"
    );
    sqlx::raw_sql(AssertSqlSafe(lose)).execute(&mut crashed).await.expect("it is lost");
    storage.catch_up().await.expect("the database answers");
    assert_eq!(newest(&storage).await.into_keys().collect::<Vec<_>>(), ["kept"]);
    assert!(ends(&mut feed).await, "it was told what is not so");
    assert_eq!(write(&storage, put("lost", "2", &[Guard::Absent])).await, lost, "its revision is free again");
    assert_eq!(newest(&storage).await.len(), 2);
}

#[tokio::test]
async fn a_replica_that_stops_with_the_counter_does_not_stop_the_others() {
    let Some(url) = postgres::new_database().await else { return };
    let storage = Database::Postgres(PostgresUrl::new(&url)).open().await;
    // What a frozen process leaves on the server: a session in a transaction that has the counter, with its limits.
    let mut frozen = PgConnection::connect(&url).await.expect("it connects");
    let begin = "SET idle_in_transaction_session_timeout = '5s'; BEGIN; \
                 SELECT current_revision FROM counter WHERE id = 1 FOR UPDATE";
    sqlx::raw_sql(begin).execute(&mut frozen).await.expect("it has the counter");
    write(&storage, put("a", "1", &[Guard::Absent])).await;
    assert!(sqlx::raw_sql("COMMIT").execute(&mut frozen).await.is_err(), "its session was ended");
}

/// Of one process that writes, which foresees each batch, or of several, whose batches take the lock first.
async fn nothing_is_lost_or_made_twice(processes: usize) {
    const CRASHES: usize = 4;
    let Some(mut cluster) = postgres::own_cluster() else { return };
    cluster.start();
    // Under full durability: under the relaxed one, a crash loses the newest writes, and this test finds it.
    let url = postgres::create_database(cluster.port()).await;
    let open = async || Storage::open(&config(&url)).await.expect("the database opens");
    let mut replicas = Vec::new();
    for _ in 0..processes {
        replicas.push(open().await);
    }
    let mut watch =
        replicas[0].watch(&crontabs(), replicas[0].revision(&crontabs())).await.expect("the revision is there");
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..8)
        .map(|writer| {
            let (storage, stop) = (replicas[writer % processes].clone(), Arc::clone(&stop));
            tokio::spawn(async move {
                let mut acknowledged = Vec::new();
                let mut at = 0;
                while !stop.load(Ordering::Relaxed) {
                    let key = format!("{writer}/{at}");
                    match storage.write(put(&key, "1", &[Guard::Absent])).await {
                        Ok(committed) => acknowledged.push((key, committed.revision)),
                        // It was not made, or nobody knows.
                        Err(error) => assert!(matches!(error, WriteError::Store(_)), "{key} is made twice: {error:?}"),
                    }
                    at += 1;
                }
                acknowledged
            })
        })
        .collect();
    for _ in 0..CRASHES {
        tokio::time::sleep(Duration::from_millis(500)).await;
        cluster.crash();
        // Reading goes on from the view.
        assert!(replicas[0].snapshot(&crontabs(), At::Newest).await.is_ok());
        cluster.start();
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    stop.store(true, Ordering::Relaxed);
    let acknowledged: Vec<_> = join_all(writers).await.into_iter().flat_map(|made| made.expect("it ends")).collect();
    assert!(!acknowledged.is_empty());
    let fresh = open().await;
    for (key, revision) in &acknowledged {
        let stored = fresh.get(&crontabs(), key).await.expect("it reads");
        assert_eq!(stored.map(|stored| stored.revision), Some(*revision), "{key}");
    }
    // The watch was told each change once and in order, over all crashes.
    let all = newest(&fresh).await;
    let mut last = 0;
    for _ in 0..all.len() {
        let revision = next(&mut watch).await.revision.get();
        assert!(last == 0 || revision == last + 1, "{revision} after {last}");
        last = revision;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_is_lost_or_made_twice_while_the_database_crashes_under_load() {
    nothing_is_lost_or_made_twice(1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_is_lost_or_made_twice_while_the_database_of_several_processes_crashes_under_load() {
    nothing_is_lost_or_made_twice(2).await;
}

fn config(url: &str) -> Config {
    let location = Location::Postgres(PostgresUrl::new(url));
    Config::new(location)
}

async fn refused(url: &str) -> StoreError {
    Storage::open(&config(url)).await.map(|_| ()).expect_err("it does not open")
}

#[tokio::test]
async fn a_database_that_nobody_serves_is_named_as_out_of_reach() {
    let error = refused("postgres://someone:secret@127.0.0.1:9/nothing").await;
    assert!(matches!(error, StoreError::Connect(_)), "{error}");
    assert!(!format!("{error} {error:?}").contains("secret"), "{error:?}");
}

#[tokio::test]
async fn a_url_with_a_wrong_number_is_refused() {
    let error = refused("postgres://127.0.0.1/x?pool_max_conns=many").await;
    assert!(matches!(&error, StoreError::Url(_)), "{error}");
    assert!(error.to_string().contains("pool_max_conns"), "{error}");
}

#[tokio::test]
async fn a_newer_schema_is_left_alone() {
    let Some(url) = postgres::new_database().await else { return };
    Storage::open(&config(&url)).await.expect("it opens").close().await;
    let mut connection = PgConnection::connect(&url).await.expect("it connects");
    sqlx::raw_sql("UPDATE schema_version SET version = 99").execute(&mut connection).await.expect("it updates");
    let error = refused(&url).await;
    assert!(matches!(error, StoreError::NewerSchema { found: 99, .. }), "{error}");
}

#[tokio::test]
async fn a_database_that_is_read_only_for_a_while_keeps_what_was_there() {
    let Some(url) = postgres::new_database().await else { return };
    let storage = Storage::open(&config(&url)).await.expect("it opens");
    write(&storage, put("before", "1", &[Guard::Absent])).await;
    let mut connection = PgConnection::connect(&url).await.expect("it connects");
    let mut set_read_only = async |value: &str| {
        let database = url.rsplit('/').next().expect("the URL names it");
        let alter = format!("ALTER DATABASE {database} SET default_transaction_read_only = {value}");
        sqlx::raw_sql(AssertSqlSafe(alter)).execute(&mut connection).await.expect("it is set");
        // Sessions that are open would go on as they are.
        let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                   WHERE datname = current_database() AND pid <> pg_backend_pid()";
        sqlx::raw_sql(end).execute(&mut connection).await.expect("they end");
    };
    set_read_only("on").await;
    let refused = storage.write(put("meanwhile", "1", &[Guard::Absent])).await;
    assert!(matches!(refused, Err(WriteError::Store(StoreError::ReadOnly))), "{refused:?}");
    assert_eq!(newest(&storage).await.len(), 1);
    set_read_only("off").await;
    write(&storage, put("after", "1", &[Guard::Absent])).await;
    let keys: Vec<_> = newest(&storage).await.into_keys().collect();
    assert_eq!(keys, ["after", "before"]);
}

#[tokio::test]
async fn a_lease_from_before_the_clock_was_set_back_is_over() {
    let Some(url) = postgres::new_database().await else { return };
    let storage = Storage::open(&config(&url)).await.expect("it opens");
    let ttl = Duration::from_secs(15);
    assert!(storage.lease("controllers", "one", ttl).await.expect("it answers"));
    let mut connection = PgConnection::connect(&url).await.expect("it connects");
    let later = "UPDATE leases SET expires_at = expires_at + interval '1 hour'";
    sqlx::raw_sql(later).execute(&mut connection).await.expect("it updates");
    assert!(storage.lease("controllers", "other", ttl).await.expect("it answers"));
    assert!(!storage.lease("controllers", "one", ttl).await.expect("it answers"));
}

/// Answers as a Postgres of another version does, until the client is in.
async fn older_postgres() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let port = listener.local_addr().expect("it is bound").port();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let mut start = [0; 1024];
            _ = client.read(&mut start).await;
            // AuthenticationOk, ParameterStatus, BackendKeyData, ReadyForQuery.
            let mut answer = b"R\0\0\0\x08\0\0\0\0".to_vec();
            answer.extend(b"S\0\0\0\x18server_version\x0014.9\0");
            answer.extend(b"K\0\0\0\x0c\0\0\0\x01\0\0\0\x02Z\0\0\0\x05I");
            _ = client.write_all(&answer).await;
            _ = client.read(&mut start).await;
        }
    });
    port
}

#[tokio::test]
async fn a_postgres_that_is_too_old_is_told_with_its_version() {
    let port = older_postgres().await;
    let error = refused(&format!("postgres://someone@127.0.0.1:{port}/x?sslmode=disable")).await;
    assert!(matches!(error, StoreError::TooOld { found: 14, least: 15 }), "{error}");
}

#[tokio::test]
async fn the_server_is_verified_as_the_url_says() {
    let Some(mut cluster) = postgres::own_cluster() else { return };
    let folder = Folder::new("verify-full");
    let authority = Authority::generate().expect("a CA can be made");
    cluster.serve_tls(&authority.issue_server(&["127.0.0.1".to_owned()]).expect("a certificate can be issued"));
    cluster.start();
    let url = postgres::create_database(cluster.port()).await;
    let trusted = |name: &str, pem: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, pem).expect("it writes");
        format!("{url}?sslmode=verify-full&sslrootcert={}", path.display())
    };
    let storage = Storage::open(&config(&trusted("ca.pem", authority.certificate_pem()))).await.expect("it is trusted");
    write(&storage, put("a", "1", &[Guard::Absent])).await;
    let mut connection = PgConnection::connect(&url).await.expect("it connects");
    let encrypted = sqlx::query("SELECT count(*) FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid) WHERE s.ssl");
    let count: i64 = encrypted.fetch_one(&mut connection).await.expect("it counts").get(0);
    assert!(count >= 1, "the connections are encrypted");

    let other = Authority::generate().expect("a CA can be made");
    let error = refused(&trusted("other.pem", other.certificate_pem())).await;
    assert!(matches!(error, StoreError::Connect(_)), "{error}");
    // The certificate is for the address, not for this name of it.
    let error = refused(&trusted("ca.pem", authority.certificate_pem()).replace("127.0.0.1", "localhost")).await;
    assert!(matches!(error, StoreError::Connect(_)), "{error}");
}
