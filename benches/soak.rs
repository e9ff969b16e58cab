//! A soak, by hand: mixed work beside watchers, with kills, restarts, compaction and snapshots; a table in Markdown with a
//! line for each minute.
//!
//!     cargo bench --bench soak                  # 30 minutes
//!     cargo bench --bench soak -- 3 --watchers 100
//!
//! Writers create, change and delete objects, and check after each restart that nothing is lost that was acknowledged. In
//! every fifth minute the server is killed, in the third after that it is asked to end; each minute a snapshot is saved.
//! What grows from line to line, beside the figures of the first minutes, is worth a look.

#[path = "server/mod.rs"]
mod server;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use server::{Client, Failure, Server, millis, percentile};

const MINUTES: u64 = 30;
const WATCHERS: usize = 500;
const WRITERS: usize = 4;
const READERS: usize = 2;
/// How many objects each writer has at a time.
const OBJECTS: usize = 50;
/// Between two requests of one client.
const PAUSE: Duration = Duration::from_millis(10);
/// After a connection is refused.
const AGAIN_AFTER: Duration = Duration::from_millis(200);
const STACK_BYTES: usize = 256 << 10;
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const MERGE: &str = "Content-Type: application/merge-patch+json\r\n";

/// What all threads share.
struct Soak {
    /// `None` while it is being started again.
    server: RwLock<Option<Server>>,
    is_over: AtomicBool,
    latencies: Mutex<Vec<Duration>>,
    events: AtomicUsize,
    /// Answers that should not be.
    odd: Mutex<Vec<String>>,
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let minutes = arguments.first().and_then(|minutes| minutes.parse().ok()).unwrap_or(MINUTES);
    let watchers = match arguments.iter().position(|argument| argument == "--watchers") {
        Some(at) => arguments.get(at + 1).ok_or("how many?")?.parse()?,
        None => WATCHERS,
    };
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("soak");
    _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder)?;
    let data = folder.join("data");
    let soak = Soak {
        server: RwLock::new(Some(Server::start(&data, &[])?)),
        is_over: AtomicBool::new(false),
        latencies: Mutex::default(),
        events: AtomicUsize::new(0),
        odd: Mutex::default(),
    };
    let soak = &soak;
    thread::scope(|scope| {
        let small = || thread::Builder::new().stack_size(STACK_BYTES);
        for writer in 0..WRITERS {
            small().spawn_scoped(scope, move || soak.keep_at(|client| write(soak, client, writer)))?;
        }
        for _ in 0..READERS {
            small().spawn_scoped(scope, move || soak.keep_at(|client| read(soak, client)))?;
        }
        for _ in 0..watchers {
            small().spawn_scoped(scope, move || soak.keep_at(|client| watch(soak, client)))?;
        }
        let told = (1..=minutes).try_for_each(|minute| tell(soak, &folder, minute));
        soak.is_over.store(true, Ordering::Relaxed);
        // Watches end with the server.
        drop(soak.server.write().unwrap_or_else(PoisonError::into_inner).take());
        told
    })?;
    let odd = std::mem::take(&mut *soak.odd.lock().unwrap_or_else(PoisonError::into_inner));
    fs::remove_dir_all(&folder)?;
    match odd.as_slice() {
        [] => Ok(()),
        [first, ..] => Err(format!("{} answers should not be, the first: {first}", odd.len()).into()),
    }
}

/// Waits for a minute, does what is to be done in it, and prints its line.
fn tell(soak: &Soak, folder: &Path, minute: u64) -> Result<(), Failure> {
    if minute == 1 {
        println!(
            "| minute | resident MiB | descriptors | disk MiB | requests | median | p99 | longest | events | done |"
        );
        println!("|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|");
    }
    thread::sleep(Duration::from_secs(60));
    let data = folder.join("data");
    let mut times = std::mem::take(&mut *soak.latencies.lock().unwrap_or_else(PoisonError::into_inner));
    let (resident, descriptors) = {
        let server = soak.server.read().unwrap_or_else(PoisonError::into_inner);
        let server = server.as_ref().ok_or("it runs")?;
        (server.resident_bytes()?, fs::read_dir(format!("/proc/{}/fd", server.child.id()))?.count())
    };
    let (disk, requests) = (bytes_below(&data)?, times.len());
    let mut done = vec![save(folder, minute)?];
    match minute % 5 {
        0 => done.push(soak.start_again(&data, "KILL")?),
        3 => done.push(soak.start_again(&data, "TERM")?),
        _ => {}
    }
    times.push(Duration::ZERO);
    let (median, p99) = (percentile(&mut times, 50), percentile(&mut times, 99));
    println!(
        "| {minute} | {} | {descriptors} | {} | {requests} | {} | {} | {} | {} | {} |",
        resident >> 20,
        disk >> 20,
        millis(median),
        millis(p99),
        millis(times.last().copied().unwrap_or_default()),
        soak.events.swap(0, Ordering::Relaxed),
        done.join(", "),
    );
    Ok(())
}

/// Saves a snapshot over the one before, and says how long that took.
fn save(folder: &Path, minute: u64) -> Result<String, Failure> {
    let (begun, path) = (Instant::now(), folder.join(format!("snapshot-{minute}.db")));
    let mut command = Command::new(env!("CARGO_BIN_EXE_skiff"));
    command.args(["snapshot", "save"]).arg(&path).arg("--data-dir").arg(folder.join("data"));
    if !command.stdout(Stdio::null()).status()?.success() {
        return Err("the snapshot failed".into());
    }
    fs::remove_file(&path)?;
    Ok(format!("snapshot in {}", millis(begun.elapsed())))
}

fn bytes_below(folder: &Path) -> Result<u64, Failure> {
    let files = fs::read_dir(folder)?.filter_map(Result::ok);
    Ok(files.filter_map(|file| file.metadata().ok()).map(|metadata| metadata.len()).sum())
}

impl Soak {
    /// Does something on one connection after the other, until all is over.
    fn keep_at(&self, mut work: impl FnMut(&mut Client) -> Result<(), Failure>) {
        while !self.is_over.load(Ordering::Relaxed) {
            let server = self.server.read().unwrap_or_else(PoisonError::into_inner);
            let client = server.as_ref().and_then(|server| server.connect().ok());
            drop(server);
            // What breaks off is done again: the server may have been killed.
            if client.is_none_or(|mut client| work(&mut client).is_err()) {
                thread::sleep(AGAIN_AFTER);
            }
        }
    }

    fn timed(&self, client: &mut Client, headers: &str, request: (&str, &str), body: &str) -> Result<u16, Failure> {
        let begun = Instant::now();
        let (status, answer) = client.send_as(headers, request.0, request.1, body.as_bytes())?;
        self.latencies.lock().unwrap_or_else(PoisonError::into_inner).push(begun.elapsed());
        let answer = String::from_utf8_lossy(&answer);
        // What is asked to end says that it is not ready.
        let is_ending = (request.1, status) == ("/readyz", 500) && answer.contains("[-]shutdown failed");
        // After a kill, what was done and not acknowledged is there already, or gone already.
        if !matches!(status, 200 | 201 | 404 | 409 | 429) && !is_ending {
            let told = format!("{} {}: {status} {answer}", request.0, request.1);
            self.odd.lock().unwrap_or_else(PoisonError::into_inner).push(told);
        }
        thread::sleep(PAUSE);
        Ok(status)
    }

    /// Ends the server with a signal and starts it again; says how long it was away.
    fn start_again(&self, data: &Path, signal: &str) -> Result<String, Failure> {
        let begun = Instant::now();
        let mut server = self.server.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(mut running) = server.take() {
            Command::new("kill").arg(format!("-{signal}")).arg(running.child.id().to_string()).status()?;
            running.child.wait()?;
        }
        *server = Some(Server::start(data, &[])?);
        Ok(format!("SIG{signal}, away for {}", millis(begun.elapsed())))
    }
}

/// Makes, changes and deletes objects of its own; each holds how often it was changed.
fn write(soak: &Soak, client: &mut Client, writer: usize) -> Result<(), Failure> {
    let json = "Content-Type: application/json\r\n";
    for at in 0..OBJECTS {
        let path = format!("{CONFIG_MAPS}/soak-{writer}-{at}");
        let body = format!(
            r#"{{"metadata":{{"name":"soak-{writer}-{at}","labels":{{"writer":"{writer}"}}}},"data":{{"n":"0","text":"{}"}}}}"#,
            "x".repeat(1_000 * (at % 5 + 1))
        );
        soak.timed(client, json, ("POST", CONFIG_MAPS), &body)?;
        for count in 1..=3 {
            let patch = format!(r#"{{"data":{{"n":"{count}"}}}}"#);
            if soak.timed(client, MERGE, ("PATCH", &path), &patch)? == 200 {
                check(soak, client, &path, count)?;
            }
        }
    }
    for at in 0..OBJECTS {
        soak.timed(client, json, ("DELETE", &format!("{CONFIG_MAPS}/soak-{writer}-{at}")), "")?;
    }
    Ok(())
}

/// That what was acknowledged is there, also where the server was started again since.
fn check(soak: &Soak, client: &mut Client, path: &str, count: usize) -> Result<(), Failure> {
    let (status, body) = match client.send("GET", path, b"") {
        Ok(answer) => answer,
        Err(_) => {
            let again = loop {
                let server = soak.server.read().unwrap_or_else(PoisonError::into_inner);
                if soak.is_over.load(Ordering::Relaxed) {
                    return Ok(());
                }
                match server.as_ref().and_then(|server| server.connect().ok()) {
                    Some(client) => break client,
                    None => drop(server),
                }
                thread::sleep(AGAIN_AFTER);
            };
            *client = again;
            client.send("GET", path, b"")?
        }
    };
    let text = String::from_utf8_lossy(&body).into_owned();
    if status == 200 && !text.contains(&format!(r#""n":"{count}""#)) || status == 404 {
        soak.odd
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(format!("{path} is not at {count}: {status} {text}"));
    }
    Ok(())
}

/// Lists, with and without a selector, and reads documents.
fn read(soak: &Soak, client: &mut Client) -> Result<(), Failure> {
    let selected = format!("{CONFIG_MAPS}?labelSelector=writer%3D1");
    let page = format!("{CONFIG_MAPS}?limit=20");
    for path in [CONFIG_MAPS, &selected, &page, "/openapi/v2", "/apis", "/metrics", "/readyz"] {
        soak.timed(client, "", ("GET", path), "")?;
    }
    Ok(())
}

/// Watches from now on, for five minutes at most.
fn watch(soak: &Soak, client: &mut Client) -> Result<(), Failure> {
    client.request_as("", "GET", &format!("{CONFIG_MAPS}?watch=1&timeoutSeconds=300"), b"")?;
    client.head()?;
    while !client.chunk()?.is_empty() {
        soak.events.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}
