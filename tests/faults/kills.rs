//! A process that is killed while it writes, again and again.
//!
//! This program runs itself as that process: it writes through the store and says what is acknowledged, until it is killed.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use kubeskiff::store::{
    At, Collection, Config, Encoded, Guard, Location, Op, PostgresUrl, Put, Storage, Write, WriteError, copy,
};

use crate::server::Folder;
use crate::store::postgres;

const ROUNDS: usize = 200;
const WRITERS: usize = 4;
/// Set for the process that is killed: where the database is, and the number of the round.
const PLACE: &str = "SKIFF_TEST_KILLED_PLACE";
const ROUND: &str = "SKIFF_TEST_KILLED_ROUND";

fn objects() -> Collection {
    Collection::new("stable.example.com", "crontabs")
}

async fn open(place: &str) -> Storage {
    Storage::open(&Config::new(location(place))).await.expect("the database opens")
}

fn location(place: &str) -> Location {
    if PostgresUrl::is_one(place) {
        Location::Postgres(PostgresUrl::new(place))
    } else {
        Location::File(Path::new(place).join("state.db"))
    }
}

fn put(key: &str, text: usize, guard: Guard) -> Write {
    let op = Op::Put(Put {
        object: Encoded::new(format!(r#"{{"metadata":{{"name":"{key}"}},"spec":{text}}}"#)),
        uid: key.into(),
        stored_version: "v1".into(),
        schema_generation: 1,
        expires_at_ms: None,
        served_under: None,
    });
    Write { collection: objects(), key: key.into(), op, guards: vec![guard] }
}

/// The process that is killed. As a test of its own it does nothing.
#[test]
fn writes_until_it_is_killed() {
    let (Ok(place), Ok(round)) = (std::env::var(PLACE), std::env::var(ROUND)) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime starts").block_on(async {
        let storage = open(&place).await;
        if round.ends_with(['0', '2', '4', '6', '8']) {
            // Who knows the collection writes in one message, others in several.
            storage.snapshot(&objects(), At::Newest).await.expect("it loads");
        }
        let writers = (0..WRITERS).map(|writer| {
            let (storage, round) = (storage.clone(), round.clone());
            tokio::spawn(async move {
                for at in 0.. {
                    let key = format!("{round}/{writer}-{at}");
                    let mut guard = Guard::Absent;
                    for text in 0..3 {
                        let committed = storage.write(put(&key, text, guard)).await.expect("its guard holds");
                        // In one call, so that no line is cut.
                        let line = format!("acknowledged {key} {} {text}\n", committed.revision);
                        std::io::stdout().write_all(line.as_bytes()).expect("somebody reads");
                        guard = Guard::At { revision: committed.revision };
                    }
                }
            })
        });
        futures_util::future::join_all(writers).await;
    });
}

/// Runs the process and kills it; what it said was acknowledged.
fn killed(place: &str, round: usize) -> Vec<(String, i64, usize)> {
    let program = std::env::current_exe().expect("this program has a file");
    let mut child = Command::new(program)
        .args(["--exact", "faults::kills::writes_until_it_is_killed", "--nocapture"])
        .env(PLACE, place)
        .env(ROUND, round.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it runs");
    let mut lines = BufReader::new(child.stdout.take().expect("it is a pipe")).lines().map_while(Result::ok);
    let read = |line: String| {
        let mut words = line.strip_prefix("acknowledged ")?.split(' ').map(str::to_owned);
        Some((words.next()?, words.next()?.parse().ok()?, words.next()?.parse().ok()?))
    };
    let mut acknowledged: Vec<_> = lines.by_ref().find_map(read).into_iter().collect();
    // The kill meets another moment in every round.
    std::thread::sleep(Duration::from_micros(700 * (round as u64 % 17)));
    child.kill().expect("it is running");
    acknowledged.extend(lines.filter_map(read));
    child.wait().expect("it is our child");
    assert!(!acknowledged.is_empty(), "it ended by itself");
    acknowledged
}

/// That everything acknowledged is there, at its revision, and made once.
async fn holds(place: &str, acknowledged: &[(String, i64, usize)]) {
    let storage = open(place).await;
    let snapshot = storage.snapshot(&objects(), At::Newest).await.expect("there is a newest state");
    let newest = acknowledged.iter().map(|(key, revision, text)| (key.as_str(), (*revision, *text)));
    for (key, (revision, text)) in newest.collect::<BTreeMap<_, _>>() {
        let stored = storage.get(&objects(), key).await.expect("it reads");
        assert!(stored.is_some(), "{key} is lost");
        let Some(stored) = stored else { continue };
        // One more may have been made whose acknowledgement did not come out.
        let text_there = String::from_utf8_lossy(&stored.bytes);
        let as_acknowledged = stored.revision.get() == revision && text_there.ends_with(&format!("{text}}}"));
        let one_more = stored.revision.get() > revision && text_there.ends_with(&format!("{}}}", text + 1));
        assert!(as_acknowledged || one_more, "{key} at {revision} is {text_there} at {}", stored.revision);
        let again = storage.write(put(key, 0, Guard::Absent)).await;
        assert!(matches!(again, Err(WriteError::GuardFailed)), "{again:?}");
    }
    assert!(!snapshot.is_empty());
    storage.close().await;
}

/// Kills the process [`ROUNDS`] times.
async fn check(place: &str) {
    let mut acknowledged = Vec::new();
    for round in 0..ROUNDS {
        acknowledged.extend(killed(place, round));
        if round % 20 == 19 {
            holds(place, &acknowledged).await;
        }
    }
    let mut revisions: Vec<_> = acknowledged.iter().map(|(_, revision, _)| *revision).collect();
    revisions.sort_unstable();
    assert!(revisions.is_sorted_by(|one, next| one < next), "two acknowledgements of one revision");
    assert_eq!(copy::check(&location(place)).await.expect("it is there"), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_sqlite_nothing_is_lost_nor_acknowledged_twice() {
    let folder = Folder::for_test();
    check(folder.0.to_str().expect("the path is text")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_postgres_nothing_is_lost_nor_acknowledged_twice() {
    let Some(url) = postgres::new_database().await else { return };
    check(&url).await;
}
