//! Connections that are cut in the middle of a COMMIT, before the server has it or before its answer is back.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use futures_util::future::join_all;
use kubeskiff::store::{Config, Guard, Location, PostgresUrl, Storage, StoreError, WriteError, copy};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;
use uuid::Uuid;

use super::{Database, crontabs, newest, postgres, put, write};

/// What becomes of the next message that commits.
const PASSES: u8 = 0;
const CUT_BEFORE: u8 = 1;
const CUT_AFTER: u8 = 2;
/// Its connection is cut, and it arrives once its outcome was looked up.
const ARRIVES_LATE: u8 = 3;
/// It and all later ones of its connection are lost, and nobody is told.
const LOST: u8 = 4;

/// How a message is told that commits: COMMIT itself, or one with an object in it.
const COMMIT: &[u8] = b"COMMIT\0";
const OBJECT: &[u8] = br#"{"metadata":"#;
/// A transaction begins by itself: to look up, or since nothing was foreseen.
const BEGIN: &[u8] = b"BEGIN ISOLATION";

/// What stands between a client and a server.
struct Between {
    commits: &'static [u8],
    next_commit: AtomicU8,
    late: Mutex<Late>,
}

/// A message that is held back, and how many transactions have begun since.
#[derive(Default)]
struct Late {
    held: Option<(Vec<u8>, OwnedWriteHalf, OwnedReadHalf)>,
    begun: usize,
}

impl Between {
    fn new(commits: &'static [u8], next_commit: u8) -> Arc<Self> {
        Arc::new(Between { commits, next_commit: AtomicU8::new(next_commit), late: Mutex::default() })
    }

    /// Listens for clients of the server at `port`; returns its own port.
    async fn listen(self: Arc<Self>, port: u16) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let own = listener.local_addr().expect("it is bound").port();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = TcpStream::connect(("127.0.0.1", port)).await else { continue };
                tokio::spawn(Arc::clone(&self).connect(client, server));
            }
        });
        own
    }

    /// Passes on what both send, until it is to be cut: then both connections close.
    async fn connect(self: Arc<Self>, client: TcpStream, server: TcpStream) {
        let (mut from_client, mut to_client) = client.into_split();
        let (mut from_server, mut to_server) = server.into_split();
        let mut bytes = [0; 64 << 10];
        let mut answers = [0; 64 << 10];
        loop {
            let count = tokio::select! {
                count = from_client.read(&mut bytes) => count.unwrap_or_default(),
                count = from_server.read(&mut answers) => {
                    let count = count.unwrap_or_default();
                    if count == 0 || to_client.write_all(&answers[..count]).await.is_err() {
                        return;
                    }
                    continue;
                }
            };
            let sent = &bytes[..count];
            let has = |part: &[u8]| sent.windows(part.len()).any(|window| window == part);
            if has(BEGIN) {
                self.deliver_late().await;
            }
            let cut = if has(self.commits) { self.next_commit.swap(PASSES, Ordering::SeqCst) } else { PASSES };
            if cut == LOST {
                return std::future::pending().await;
            }
            if cut == ARRIVES_LATE {
                *self.late.lock().await = Late { held: Some((sent.to_vec(), to_server, from_server)), begun: 0 };
                return;
            }
            if count == 0 || cut == CUT_BEFORE || to_server.write_all(sent).await.is_err() || cut == CUT_AFTER {
                return;
            }
        }
    }

    /// Sends the message that is held back once the second transaction is about to begin, and waits for its answer: the
    /// first has looked it up.
    async fn deliver_late(&self) {
        let mut late = self.late.lock().await;
        late.begun += 1;
        if late.begun == 2
            && let Some((message, mut to_server, mut from_server)) = late.held.take()
        {
            to_server.write_all(&message).await.expect("the server is there");
            let count = from_server.read(&mut [0; 64 << 10]).await.expect("it answers");
            assert!(count > 0, "it answers");
        }
    }
}

/// The URL of a new database, and one that leads through `between` to it.
async fn new_database(between: &Arc<Between>) -> Option<(String, String)> {
    let url = postgres::new_database().await?;
    let port = url.rsplit_once(':').and_then(|(_, rest)| rest.split('/').next()).and_then(|port| port.parse().ok());
    let port: u16 = port.expect("the URL has a port");
    let own = Arc::clone(between).listen(port).await;
    let cut_url = url.replace(&format!(":{port}/"), &format!(":{own}/")) + "?sslmode=disable";
    Some((url, cut_url))
}

/// Writes with every third message cut that commits; each write is made once, and acknowledged.
async fn check(commits: &'static [u8], cut: u8) {
    const WRITES: usize = 30;
    let between = Between::new(commits, PASSES);
    let Some((url, cut_url)) = new_database(&between).await else { return };
    let storage = Database::Postgres(PostgresUrl::new(&cut_url)).open().await;
    if commits == OBJECT {
        // What is loaded is foreseen, and then a batch is one message.
        assert!(newest(&storage).await.is_empty());
    }
    let mut before = storage.revision(&crontabs());
    for at in 0..WRITES {
        // The first two find out that nobody else writes.
        between.next_commit.store(if at % 3 == 2 { cut } else { PASSES }, Ordering::SeqCst);
        let key = format!("ns/{at}");
        let revision = write(&storage, put(&key, "1", &[Guard::Absent])).await;
        assert_eq!(revision, before.next(), "it takes one revision");
        assert_eq!(between.next_commit.load(Ordering::SeqCst), PASSES, "it was cut");
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
    check(COMMIT, CUT_BEFORE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_whose_answer_was_lost_is_looked_up() {
    check(COMMIT, CUT_AFTER).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_in_one_message_that_never_arrived_is_made_again() {
    check(OBJECT, CUT_BEFORE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_in_one_message_whose_answer_was_lost_is_looked_up() {
    check(OBJECT, CUT_AFTER).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_was_looked_up_and_not_found_is_not_made_later() {
    check(OBJECT, ARRIVES_LATE).await;
}

/// Makes three writes while the connection is lost at one of them.
async fn check_lost(message: &'static [u8], lost_at: usize) {
    let between = Between::new(message, PASSES);
    let Some((_, cut_url)) = new_database(&between).await else { return };
    let storage = Database::Postgres(PostgresUrl::new(&cut_url)).open().await;
    assert!(newest(&storage).await.is_empty());
    for at in 0..3 {
        between.next_commit.store(if at == lost_at { LOST } else { PASSES }, Ordering::SeqCst);
        write(&storage, put(&format!("ns/{at}"), "1", &[Guard::Absent])).await;
    }
    assert_eq!(between.next_commit.load(Ordering::SeqCst), PASSES, "one was lost");
    assert_eq!(newest(&storage).await.len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_is_lost_without_a_sign_during_a_batch_is_given_up() {
    check_lost(OBJECT, 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_was_lost_without_a_sign_before_a_batch_is_given_up() {
    check_lost(BEGIN, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_that_postgres_can_t_keep_is_refused_alone() {
    let Some(url) = postgres::new_database().await else { return };
    let storage = Database::Postgres(PostgresUrl::new(&url)).open().await;
    // Random, as what can be compressed takes less of an index.
    let random = |parts: usize| -> String { (0..parts).map(|_| Uuid::new_v4().to_string()).collect() };
    let (long, too_long) = (random(67), random(100));
    let keys = ["ns/a", "ns/a\0b", &too_long, "ns/b", &long];
    let written = join_all(keys.iter().map(|key| storage.write(put(key, "1", &[Guard::Absent])))).await;
    let is_refused = |result: &Result<_, WriteError>| matches!(result, Err(WriteError::Store(StoreError::Name(_))));
    assert_eq!(written.iter().map(is_refused).collect::<Vec<_>>(), [false, true, true, false, false]);
    assert_eq!(newest(&storage).await.len(), 3);
    assert!(storage.get(&crontabs(), "ns/a\0b").await.expect("it reads").is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_migration_that_was_interrupted_is_made_once() {
    for cut in [CUT_BEFORE, CUT_AFTER] {
        let between = Between::new(COMMIT, cut);
        let Some((url, cut_url)) = new_database(&between).await else { return };
        let interrupted = Storage::open(&Config::new(Location::Postgres(PostgresUrl::new(&cut_url)))).await;
        assert!(interrupted.is_err());
        let storage = Database::Postgres(PostgresUrl::new(&url)).open().await;
        write(&storage, put("ns/a", "1", &[Guard::Absent])).await;
        let faults = copy::check(&Location::Postgres(PostgresUrl::new(&url))).await.expect("it is there");
        assert_eq!(faults, Vec::<String>::new());
    }
}
