//! Connections that are cut in the middle of a COMMIT, before the server has it or before its answer is back.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use kubeskiff::store::{Config, Guard, Location, PostgresUrl, Storage, WriteError, copy};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

use super::{Database, crontabs, newest, postgres, put, write};

/// What becomes of the next COMMIT.
const PASSES: u8 = 0;
const CUT_BEFORE: u8 = 1;
const CUT_AFTER: u8 = 2;

/// Stands between a client and the server at `port`; returns its own port.
async fn stand_between(port: u16, next_commit: Arc<AtomicU8>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let own = listener.local_addr().expect("it is bound").port();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let Ok(server) = TcpStream::connect(("127.0.0.1", port)).await else { continue };
            let (from_client, to_client) = client.into_split();
            let (from_server, to_server) = server.into_split();
            let next_commit = Arc::clone(&next_commit);
            tokio::spawn(async move {
                tokio::select! {
                    () = requests(from_client, to_server, &next_commit) => {}
                    () = answers(from_server, to_client) => {}
                }
            });
        }
    });
    own
}

/// Passes on what the client sends, until it is to be cut: then both connections close.
async fn requests(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, next_commit: &AtomicU8) {
    let mut bytes = [0; 64 << 10];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        let sent = &bytes[..count];
        let commits = sent.windows(7).any(|window| window == b"COMMIT\0");
        let cut = if commits { next_commit.swap(PASSES, Ordering::SeqCst) } else { PASSES };
        if cut == CUT_BEFORE || to.write_all(sent).await.is_err() || cut == CUT_AFTER {
            return;
        }
    }
}

async fn answers(mut from: OwnedReadHalf, mut to: OwnedWriteHalf) {
    _ = tokio::io::copy(&mut from, &mut to).await;
}

/// The URL of a new database, and one that leads through [`stand_between`] to it.
async fn new_database(next_commit: &Arc<AtomicU8>) -> Option<(String, String)> {
    let url = postgres::new_database().await?;
    let port = url.rsplit_once(':').and_then(|(_, rest)| rest.split('/').next()).and_then(|port| port.parse().ok());
    let port: u16 = port.expect("the URL has a port");
    let between = stand_between(port, Arc::clone(next_commit)).await;
    let cut_url = url.replace(&format!(":{port}/"), &format!(":{between}/")) + "?sslmode=disable";
    Some((url, cut_url))
}

/// Writes with every second COMMIT cut; each is made once, and acknowledged.
async fn check(cut: u8) {
    const WRITES: usize = 20;
    let next_commit = Arc::new(AtomicU8::new(PASSES));
    let Some((url, cut_url)) = new_database(&next_commit).await else { return };
    let storage = Database::Postgres(PostgresUrl::new(&cut_url)).open().await;
    let mut before = storage.revision(&crontabs());
    for at in 0..WRITES {
        next_commit.store(if at % 2 == 0 { cut } else { PASSES }, Ordering::SeqCst);
        let key = format!("ns/{at}");
        let revision = write(&storage, put(&key, "1", &[Guard::Absent])).await;
        assert_eq!(revision, before.next(), "it takes one revision");
        before = revision;
        let again = storage.write(put(&key, "1", &[Guard::Absent])).await;
        assert!(matches!(again, Err(WriteError::GuardFailed)), "it is there: {again:?}");
    }
    let other = Database::Postgres(PostgresUrl::new(&url)).open().await;
    assert_eq!(newest(&other).await.len(), WRITES);
    assert!(other.get(&crontabs(), "ns/0").await.expect("it reads").is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_never_arrived_is_made_again() {
    check(CUT_BEFORE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_whose_answer_was_lost_is_looked_up() {
    check(CUT_AFTER).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_migration_that_was_interrupted_is_made_once() {
    for cut in [CUT_BEFORE, CUT_AFTER] {
        let next_commit = Arc::new(AtomicU8::new(cut));
        let Some((url, cut_url)) = new_database(&next_commit).await else { return };
        let interrupted = Storage::open(&Config::new(Location::Postgres(PostgresUrl::new(&cut_url)))).await;
        assert!(interrupted.is_err());
        let storage = Database::Postgres(PostgresUrl::new(&url)).open().await;
        write(&storage, put("ns/a", "1", &[Guard::Absent])).await;
        let faults = copy::check(&Location::Postgres(PostgresUrl::new(&url))).await.expect("it is there");
        assert_eq!(faults, Vec::<String>::new());
    }
}
