//! The storage against a model: random operations by several clients and processes, each outcome what the log's fold says.
//!
//! A failing case is shrunk, and its seed printed; `PROPTEST_CASES` asks for more cases.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use kubeskiff::meta::Revision;
use kubeskiff::store::{At, Collection, Guard, Storage, Write, WriteError};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

use super::{Database, contents, crontabs, delete, next, put};

/// Keys whose order by bytes differs from that of words.
const KEYS: [&str; 6] = ["a/x", "a-b/x", "a.b/x", "a/y", "ab/x", "b/x"];
const REPLICAS: usize = 3;
const CASES: u32 = 24;

/// What clients do at the same time.
type Round = Vec<Step>;

#[derive(Clone, Debug)]
struct Step {
    replica: usize,
    key: &'static str,
    operation: Operation,
}

#[derive(Clone, Debug)]
enum Operation {
    Create,
    /// Under the guard of the state that this client reads first.
    Update,
    Delete,
    /// At the newest revision.
    Read,
    /// A write to another collection, which takes a revision of the same database.
    Elsewhere,
}

fn rounds() -> impl Strategy<Value = Vec<Round>> {
    let operation = prop_oneof![
        Just(Operation::Create),
        Just(Operation::Update),
        Just(Operation::Delete),
        Just(Operation::Read),
        Just(Operation::Elsewhere),
    ];
    let step = (0..REPLICAS, proptest::sample::select(&KEYS[..]), operation)
        .prop_map(|(replica, key, operation)| Step { replica, key, operation });
    proptest::collection::vec(proptest::collection::vec(step, 1..5), 1..12)
}

/// What a client saw, and when: between the newest revision acknowledged before it began and that when it ended.
struct Seen {
    key: &'static str,
    revision: Option<Revision>,
    from: Revision,
}

/// The state at a revision, by key: text and revision.
type State = BTreeMap<String, (String, i64)>;

fn others() -> Collection {
    Collection::new("stable.example.com", "others")
}

async fn act(
    replicas: &[Storage],
    step: Step,
    text: String,
    acknowledged: Revision,
) -> (Option<Revision>, Option<Seen>) {
    let storage = &replicas[step.replica % replicas.len()];
    storage.catch_up().await.expect("the database answers");
    let read = storage.get(&crontabs(), step.key).await.expect("it reads").map(|stored| stored.revision);
    let seen = Seen { key: step.key, revision: read, from: acknowledged };
    let write = match (step.operation, read) {
        (Operation::Create, _) => put(step.key, &text, &[Guard::Absent]),
        (Operation::Update, Some(revision)) => put(step.key, &text, &[Guard::At { revision }]),
        (Operation::Delete, Some(revision)) => delete(step.key, &[Guard::At { revision }]),
        (Operation::Elsewhere, _) => Write { collection: others(), ..put(step.key, &text, &[]) },
        (Operation::Read | Operation::Update | Operation::Delete, _) => return (None, Some(seen)),
    };
    match storage.write(write).await {
        Err(WriteError::GuardFailed) => (None, Some(seen)),
        done => (Some(done.expect("the database answers").revision), Some(seen)),
    }
}

/// Everything that was seen of a run.
struct Recorded {
    start: Revision,
    /// The newest revision that was acknowledged.
    newest: Revision,
    /// Revision, key and text of each acknowledged write, in order; no text for a deletion is looked at.
    acknowledged: Vec<(Revision, &'static str, String)>,
    /// The revisions that writes to another collection took.
    elsewhere: Vec<Revision>,
    reads: Vec<Seen>,
    /// What a watch from the start saw, in each process.
    watched: Vec<Vec<Watched>>,
    /// The revisions that a watch from each revision saw, in each process.
    watched_from: Vec<BTreeMap<Revision, Vec<Revision>>>,
    /// The state listed at each revision, and its keys in the order of pages of one, in each process.
    listed: Vec<BTreeMap<Revision, (State, Vec<String>)>>,
}

struct Watched {
    revision: Revision,
    key: String,
    previous: Option<i64>,
    /// `None` for a deletion.
    bytes: Option<String>,
}

async fn record(database: &Database, rounds: Vec<Round>) -> Recorded {
    let replicas = match database {
        Database::Postgres(_) => join_all((0..REPLICAS).map(|_| database.open())).await,
        _ => vec![database.open().await],
    };
    let start = replicas[0].revision(&crontabs());
    let (mut acknowledged, mut elsewhere) = (Vec::new(), Vec::new());
    let mut reads = Vec::new();
    let mut newest = start;
    for (number, round) in rounds.into_iter().enumerate() {
        let steps = round.into_iter().enumerate().map(|(at, step)| {
            let text = format!("{number}.{at}");
            let (replicas, newest) = (&replicas, newest);
            async move { (step.clone(), text.clone(), act(replicas, step, text, newest).await) }
        });
        for (step, text, (written, seen)) in join_all(steps).await {
            if let Some(revision) = written {
                match step.operation {
                    Operation::Elsewhere => elsewhere.push(revision),
                    _ => acknowledged.push((revision, step.key, text)),
                }
                newest = newest.max(revision);
            }
            reads.extend(seen);
        }
    }
    acknowledged.sort();
    let (mut watched, mut watched_from, mut listed) = (Vec::new(), Vec::new(), Vec::new());
    for storage in &replicas {
        storage.catch_up().await.expect("the database answers");
        assert_eq!(storage.revision(&crontabs()), newest, "no write is made that was not acknowledged");
        let mut watch = storage.watch(&crontabs(), start).await.expect("the revision is there");
        let mut changes = Vec::new();
        for _ in &acknowledged {
            let change = next(&mut watch).await;
            let bytes = (!change.deleted).then(|| String::from_utf8_lossy(&change.object.bytes).into_owned());
            changes.push(Watched {
                revision: change.revision,
                key: change.object.key.to_string(),
                previous: change.previous.as_ref().map(|previous| previous.revision.get()),
                bytes,
            });
        }
        watched.push(changes);
        let mut from = BTreeMap::new();
        for after in (start.get()..newest.get()).map(Revision::new) {
            let mut watch = storage.watch(&crontabs(), after).await.expect("the revision is there");
            let mut seen = Vec::new();
            for _ in acknowledged.iter().filter(|(revision, ..)| *revision > after) {
                seen.push(next(&mut watch).await.revision);
            }
            from.insert(after, seen);
        }
        watched_from.push(from);
        let mut lists = BTreeMap::new();
        for revision in (start.get()..=newest.get()).map(Revision::new) {
            let snapshot = storage.snapshot(&crontabs(), At::Exact(revision)).await.expect("the revision is there");
            let mut paged = Vec::new();
            let mut start = String::new();
            loop {
                let page = snapshot.range("", Some(&start)).next().cloned();
                let Some(stored) = page else { break };
                paged.push(stored.key.to_string());
                start = format!("{}\0", stored.key);
            }
            lists.insert(revision, (contents(&snapshot), paged));
        }
        listed.push(lists);
    }
    for storage in replicas {
        storage.close().await;
    }
    Recorded { start, newest, acknowledged, elsewhere, reads, watched, watched_from, listed }
}

/// Holds what was recorded against the fold of the acknowledged writes.
fn verify(recorded: &Recorded) -> Result<(), String> {
    let mut states: BTreeMap<Revision, State> = BTreeMap::from([(recorded.start, State::new())]);
    for watched in &recorded.watched {
        let mut state = State::new();
        if watched.len() != recorded.acknowledged.len() {
            return Err(format!("{} changes for {} writes", watched.len(), recorded.acknowledged.len()));
        }
        // Nothing is missing, doubled or out of order.
        for (change, (revision, key, text)) in watched.iter().zip(&recorded.acknowledged) {
            if (change.revision, change.key.as_str()) != (*revision, *key) {
                return Err(format!("{key} at {revision} is told as {} at {}", change.key, change.revision));
            }
            if change.previous != state.get(*key).map(|(_, revision)| *revision) {
                return Err(format!("{key} at {revision} follows from {:?}", change.previous));
            }
            match &change.bytes {
                None => _ = state.remove(*key),
                Some(bytes) if bytes.contains(&format!(r#""spec":"{text}""#)) => {
                    state.insert((*key).to_owned(), (bytes.clone(), revision.get()));
                }
                Some(bytes) => return Err(format!("{key} at {revision} is not {text}: {bytes}")),
            }
            if *states.entry(*revision).or_insert_with(|| state.clone()) != state {
                return Err(format!("processes differ at {revision}"));
            }
        }
    }
    // Each watch is the end of the log behind where it begins.
    for from in &recorded.watched_from {
        for (after, seen) in from {
            let expect =
                recorded.acknowledged.iter().map(|(revision, ..)| *revision).filter(|revision| revision > after);
            if !expect.eq(seen.iter().copied()) {
                return Err(format!("a watch after {after} saw {seen:?}"));
            }
        }
    }
    // A write elsewhere changes nothing here.
    for revision in &recorded.elsewhere {
        let Some(before) = states.range(..*revision).next_back().map(|(_, state)| state.clone()) else { continue };
        if states.insert(*revision, before).is_some() {
            return Err(format!("{revision} is acknowledged twice"));
        }
    }
    // Each list at a revision is the fold of the log to it, in the order of bytes, pages included.
    for lists in &recorded.listed {
        for (revision, (listed, paged)) in lists {
            let state = &states[revision];
            if listed != state || !paged.iter().eq(state.keys()) {
                return Err(format!("the list at {revision} is {listed:?}, its pages {paged:?}"));
            }
        }
    }
    // Each read saw a state of its key that was current at some time after all that was acknowledged before it.
    for seen in &recorded.reads {
        let mut could = states.range(seen.from..).map(|(_, state)| state.get(seen.key).map(|(_, revision)| *revision));
        let read = seen.revision.map(Revision::get);
        if !could.any(|state| state == read) {
            return Err(format!("{} at {read:?} after {} is stale", seen.key, seen.from));
        }
    }
    if states.keys().next_back() != Some(&recorded.newest) {
        return Err(format!("the newest revision is not {}", recorded.newest));
    }
    Ok(())
}

/// Runs the cases, each on a database of its own.
fn run(database: impl AsyncFn() -> Option<Database>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(CASES);
    // The failing case is printed with its seed; it becomes a test here, not a file beside it.
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let result = runner.run(&rounds(), |rounds| {
        runtime.block_on(async {
            if let Some(database) = database().await {
                let recorded = record(&database, rounds).await;
                verify(&recorded).map_err(TestCaseError::fail)?;
            }
            Ok(())
        })
    });
    assert!(result.is_ok(), "{result:?}\n{runner}");
}

#[test]
fn memory_is_what_the_log_says() {
    run(async || Some(Database::Memory));
}

#[test]
fn sqlite_is_what_the_log_says() {
    run(async || Some(Database::sqlite("model")));
}

#[test]
fn postgres_is_what_the_log_says_in_every_process() {
    run(async || Database::postgres().await);
}

/// Some rounds on one database in memory, recorded without a fault.
async fn recorded() -> Recorded {
    let step = |key, operation| Step { replica: 0, key, operation };
    let rounds = vec![
        vec![step(KEYS[0], Operation::Create), step(KEYS[1], Operation::Create)],
        vec![step(KEYS[0], Operation::Update), step(KEYS[1], Operation::Read)],
        vec![step(KEYS[1], Operation::Delete), step(KEYS[2], Operation::Elsewhere)],
        vec![step(KEYS[0], Operation::Read)],
    ];
    let recorded = record(&Database::Memory, rounds).await;
    assert_eq!(verify(&recorded), Ok(()));
    recorded
}

#[tokio::test]
async fn a_planted_stale_read_is_caught() {
    let mut recorded = recorded().await;
    let first = recorded.acknowledged[0].0;
    let last = recorded.reads.last_mut().expect("there are reads");
    last.revision = Some(first);
    assert!(verify(&recorded).is_err_and(|why| why.contains("stale")));
}

#[tokio::test]
async fn a_planted_duplicate_is_caught() {
    let mut recorded = recorded().await;
    let first = &recorded.watched[0][0];
    let again = Watched { key: first.key.clone(), bytes: first.bytes.clone(), ..*first };
    recorded.watched[0].insert(1, again);
    assert!(verify(&recorded).is_err());
    recorded.watched[0].pop();
    assert!(verify(&recorded).is_err());
}

#[tokio::test]
async fn a_planted_gap_is_caught() {
    let mut recorded = recorded().await;
    recorded.watched[0].remove(1);
    assert!(verify(&recorded).is_err());
}

#[tokio::test]
async fn a_planted_change_of_another_collection_is_caught() {
    let mut recorded = recorded().await;
    let foreign = recorded.elsewhere[0];
    let seen = recorded.watched_from[0].values_mut().next().expect("there are watches");
    seen.push(foreign);
    assert!(verify(&recorded).is_err());
}
