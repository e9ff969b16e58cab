//! What is on disk when a write is acknowledged.
//!
//! The writes and syncs of a server's database files are traced. At every acknowledgement the files are made anew as a power
//! cut could leave them: without what was not synced, or with parts of it, garbled. Each acknowledged object is there.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use kubeskiff::store::{At, Collection, Config, Location, Storage, StoreError, copy};
use serde_json::{Value, json};

use super::{TRACE, start};
use crate::api::{CRONTABS, crontab, crontabs_file};
use crate::server::{Folder, Server};

const CLIENTS: usize = 4;
const WRITES: usize = 24;
/// So large that the log is written back into the database on the way.
const OBJECT_BYTES: usize = 100_000;

/// What the shim tells, in the order that it happened in.
enum Event {
    Write { file: char, at: usize, bytes: Vec<u8> },
    Truncate { file: char, length: usize },
    Sync { file: char },
    Acknowledge { name: String },
}

fn read_trace(path: &Path) -> Vec<Event> {
    const HEAD: usize = 24;
    let trace = std::fs::read(path).expect("the shim has written it");
    let mut rest = &trace[..];
    let mut events = Vec::new();
    while rest.len() >= HEAD {
        let number = |at: usize| u64::from_ne_bytes(rest[at..at + 8].try_into().expect("they are eight")) as usize;
        let (at, count, file) = (number(0), number(8), char::from(rest[17]));
        // The server may be killed in the middle of the last record.
        let Some(bytes) = rest.get(HEAD..HEAD + count).map(<[u8]>::to_vec) else { break };
        events.extend(match rest[16] {
            b'W' => Some(Event::Write { file, at, bytes }),
            b'T' => Some(Event::Truncate { file, length: at }),
            b'S' => Some(Event::Sync { file }),
            _ => created_name(&bytes).map(|name| Event::Acknowledge { name }),
        });
        rest = &rest[HEAD + count..];
    }
    events
}

/// The name of the CronTab in the first piece of an answer, where its note begins with it.
fn created_name(answer: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(answer);
    let (_, note) = text.split_once(r#""note":""#)?;
    note.split_once(' ').map(|(name, _)| name.to_owned())
}

/// A file on a disk that keeps only what was synced.
#[derive(Clone, Default)]
struct OnDisk {
    content: Vec<u8>,
    synced: Vec<u8>,
    /// Writes since the last sync.
    unsynced: Vec<(usize, Vec<u8>)>,
    /// The folder knows of it.
    named: bool,
}

impl OnDisk {
    fn write(&mut self, at: usize, bytes: &[u8]) {
        put(&mut self.content, at, bytes);
        self.unsynced.push((at, bytes.to_vec()));
    }

    fn truncate(&mut self, length: usize) {
        self.content.resize(length, 0);
    }

    fn sync(&mut self) {
        self.synced.clone_from(&self.content);
        self.unsynced.clear();
    }
}

fn put(content: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    content.resize(content.len().max(at + bytes.len()), 0);
    content[at..at + bytes.len()].copy_from_slice(bytes);
}

/// The database and its log.
#[derive(Clone, Default)]
struct Disk {
    database: OnDisk,
    log: OnDisk,
}

/// What a fault leaves of writes that were not synced.
#[derive(Clone, Copy)]
enum Leaves {
    /// All: the process was killed, not the machine.
    All,
    Nothing,
    /// Every second one, with wrong bytes in it.
    Garbage,
}

impl Disk {
    fn apply(&mut self, event: &Event) {
        match event {
            Event::Write { file, at, bytes } => self.file(*file).write(*at, bytes),
            Event::Truncate { file, length } => self.file(*file).truncate(*length),
            Event::Sync { file: 'F' } => (self.database.named, self.log.named) = (true, true),
            Event::Sync { file } => self.file(*file).sync(),
            Event::Acknowledge { .. } => {}
        }
    }

    fn file(&mut self, file: char) -> &mut OnDisk {
        match file {
            'D' => &mut self.database,
            _ => &mut self.log,
        }
    }

    /// Makes the files as they are found after a fault.
    fn leave(&self, folder: &Path, leaves: Leaves) {
        for (name, file) in [("state.db", &self.database), ("state.db-wal", &self.log)] {
            let path = folder.join(name);
            let found = match leaves {
                Leaves::All => Some(file.content.clone()),
                Leaves::Nothing => file.named.then(|| file.synced.clone()),
                Leaves::Garbage => file.named.then(|| garbled(file)),
            };
            _ = std::fs::remove_file(folder.join("state.db-shm"));
            match found {
                Some(bytes) => std::fs::write(path, bytes).expect("it writes"),
                None => _ = std::fs::remove_file(path),
            }
        }
    }
}

fn garbled(file: &OnDisk) -> Vec<u8> {
    let mut content = file.synced.clone();
    for (number, (at, bytes)) in file.unsynced.iter().enumerate() {
        let mut bytes = bytes.clone();
        match number % 2 {
            0 => bytes.iter_mut().skip(number % 7).step_by(11).for_each(|byte| *byte ^= 0x55),
            _ => continue,
        }
        put(&mut content, *at, &bytes);
    }
    content
}

/// The trace of a server that is killed after some clients have written to it; its files are in `folder`.
fn traced(folder: &Folder, durability: &str) -> Vec<Event> {
    traced_clients(folder, durability, CLIENTS)
}

fn traced_clients(folder: &Folder, durability: &str, clients: usize) -> Vec<Event> {
    let (file, trace) = (crontabs_file(), folder.0.join("trace"));
    let arguments = ["--durability", durability, "--crds", file.to_str().expect("the path is text")];
    let server = start(&folder.0.join("data"), &arguments, &[(TRACE, &trace)]);
    std::thread::scope(|scope| {
        for client in 0..clients {
            let server = &server;
            scope.spawn(move || (0..WRITES).for_each(|at| create(server, &format!("{client}-{at}"))));
        }
    });
    server.kill();
    read_trace(&trace)
}

fn create(server: &Server, name: &str) {
    let mut object = crontab(name);
    object["metadata"]["annotations"] = json!({ "note": format!("{name} {}", "x".repeat(OBJECT_BYTES)) });
    let body = object.to_string();
    let answer = server.send("POST", CRONTABS, &[("Content-Type", "application/json")], Some(body.as_bytes()));
    assert_eq!(answer.status, 201);
}

/// Opens a database that was closed just now. A process that another test starts at that moment has the lock, too, until it
/// runs its own program.
async fn open(config: &Config) -> Result<Storage, StoreError> {
    const TRIES: usize = 200;
    for _ in 0..TRIES {
        match Storage::open(config).await {
            Err(StoreError::InUse(_)) => tokio::time::sleep(Duration::from_millis(50)).await,
            opened => return opened,
        }
    }
    Storage::open(config).await
}

/// Name and revision of each CronTab in the database of a folder, and the revision of the database.
async fn stored(folder: &Path) -> Result<(BTreeMap<String, i64>, i64), StoreError> {
    let tabs = Collection::new("stable.example.com", "crontabs");
    let storage = open(&Config::new(Location::File(folder.join("state.db")))).await?;
    let snapshot = storage.snapshot(&tabs, At::Newest).await;
    let revision = storage.revision(&tabs).get();
    storage.close().await;
    let snapshot = snapshot.map_err(|_| StoreError::Closed)?;
    if snapshot.range("default/", None).any(|stored| stored.is_damaged()) {
        return Err(StoreError::Closed);
    }
    let named = snapshot.range("default/", None).map(|stored| {
        let object: Value = serde_json::from_slice(&stored.bytes).expect("it is whole");
        (object["metadata"]["name"].as_str().unwrap_or_default().to_owned(), stored.revision.get())
    });
    Ok((named.collect(), revision))
}

/// The acknowledged objects that are lost when the power is cut at some acknowledgement; why all are where nothing is read.
async fn lost(events: &[Event], leaves: Leaves) -> Vec<String> {
    let folder = Folder::new("power-cut");
    let (mut disk, mut acknowledged, mut lost) = (Disk::default(), Vec::new(), Vec::new());
    for event in events {
        disk.apply(event);
        let Event::Acknowledge { name } = event else { continue };
        acknowledged.push(name);
        disk.leave(&folder.0, leaves);
        let found = match stored(&folder.0).await {
            Ok((found, _)) => found,
            Err(error) => {
                lost.push(format!("all at {name}: {error}"));
                continue;
            }
        };
        lost.extend(acknowledged.iter().filter(|name| !found.contains_key(**name)).map(|name| (*name).clone()));
    }
    assert_eq!(acknowledged.len(), CLIENTS * WRITES, "every acknowledgement is in the trace");
    lost
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_acknowledged_is_on_disk() {
    let folder = Folder::for_test();
    let events = traced(&folder, "full");
    let wrote_back = events.iter().any(|event| matches!(event, Event::Sync { file: 'D' }));
    assert!(wrote_back, "the log is written back while the server runs");
    for leaves in [Leaves::Nothing, Leaves::Garbage] {
        assert_eq!(lost(&events, leaves).await, Vec::<String>::new());
    }
}

#[test]
fn a_batch_costs_one_sync() {
    let folder = Folder::for_test();
    let events = traced_clients(&folder, "full", 1);
    let is_acknowledged = |event: &Event| matches!(event, Event::Acknowledge { .. });
    let syncs = |events: &[Event], of: char| {
        events.iter().filter(|event| matches!(event, Event::Sync { file } if *file == of)).count()
    };
    // The first write is behind what a new database costs, and controllers write at the same time; then each of a single
    // client is a batch of its own. Writing back costs one more of the log.
    let batches: Vec<_> = events.split_inclusive(is_acknowledged).skip(WRITES / 2).take(WRITES / 2).collect();
    for batch in batches {
        assert_eq!(syncs(batch, 'L'), 1 + syncs(batch, 'D'));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_power_cut_loses_what_relaxed_durability_acknowledged() {
    let folder = Folder::for_test();
    let events = traced(&folder, "relaxed");
    assert_ne!(lost(&events, Leaves::Nothing).await, Vec::<String>::new(), "the test sees what is not synced");
}

/// A start on an empty folder, interrupted after each of its writes: the next one goes on from there, also with the tables
/// half made.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_migration_that_was_interrupted_is_made_again() {
    let folder = Folder::for_test();
    let events = traced(&folder, "full");
    let begun = events.iter().take_while(|event| !matches!(event, Event::Acknowledge { .. }));
    let mut disk = Disk::default();
    let mut interrupted = 0;
    for event in begun {
        disk.apply(event);
        for leaves in [Leaves::All, Leaves::Nothing] {
            let found = Folder::new("interrupted");
            disk.leave(&found.0, leaves);
            stored(&found.0).await.expect("it opens");
            let faults = copy::check(&Location::File(found.0.join("state.db"))).await.expect("it is there");
            assert_eq!(faults, Vec::<String>::new());
        }
        interrupted += 1;
    }
    assert!(interrupted > 10, "{interrupted} moments");
}

/// Damage to what was synced long ago: the server starts at a state that once was the newest, and says at which revision; or
/// it does not start.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deeper_damage_leaves_a_state_that_once_was() {
    let folder = Folder::for_test();
    let events = traced(&folder, "full");
    let (mut disk, damaged) = (Disk::default(), Folder::new("damaged"));
    events.iter().for_each(|event| disk.apply(event));
    disk.leave(&damaged.0, Leaves::All);
    let (intact, _) = stored(&damaged.0).await.expect("it opens");
    assert_eq!(intact.len(), CLIENTS * WRITES);
    let (mut prefixes, length) = (0, disk.log.content.len());
    for tenth in 1..10 {
        let mut less = disk.clone();
        less.log.content[length * tenth / 10] ^= 0xff;
        less.leave(&damaged.0, Leaves::All);
        let Ok((found, revision)) = stored(&damaged.0).await else { continue };
        let expect: BTreeMap<_, _> = intact.clone().into_iter().filter(|(_, at)| *at <= revision).collect();
        assert_eq!(found, expect, "at {revision}");
        let faults = copy::check(&Location::File(damaged.0.join("state.db"))).await.expect("it is there");
        assert_eq!(faults, Vec::<String>::new());
        prefixes += usize::from(found.len() < intact.len());
    }
    assert!(prefixes > 0, "damage in the log shows");

    let mut less = disk.clone();
    less.log.content[length / 2] ^= 0xff;
    less.leave(&damaged.0, Leaves::All);
    let server = Server::start(&damaged.0, &[]);
    assert!(server.stderr().contains("goes on at revision"), "{}", server.stderr());
    let mut headless = disk;
    headless.database.content[..64].fill(0x55);
    headless.log.content.clear();
    drop(server);
    headless.leave(&damaged.0, Leaves::All);
    let (code, said) = Server::fail_to_start(&damaged.0, &[]);
    assert_eq!(code, Some(1), "{said}");
}

/// Damage to the database itself, anywhere in it: what is read is what was written, or an error.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damage_to_the_database_is_never_read_as_data() {
    let folder = Folder::for_test();
    let events = traced(&folder, "full");
    let (mut disk, damaged) = (Disk::default(), Folder::new("damaged"));
    events.iter().for_each(|event| disk.apply(event));
    disk.leave(&damaged.0, Leaves::All);
    let (intact, _) = stored(&damaged.0).await.expect("it opens");
    // Opening and closing has written the log back.
    let bytes = std::fs::read(damaged.0.join("state.db")).expect("it is there");
    let mut refused = 0;
    for part in 0..40 {
        let mut less = bytes.clone();
        less[4096 + (bytes.len() - 4096) * part / 40 + part] ^= 0x20;
        std::fs::write(damaged.0.join("state.db"), less).expect("it writes");
        match stored(&damaged.0).await {
            Ok((found, _)) => assert_eq!(found, intact),
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 20, "{refused} of 40 places of damage are seen");
}
