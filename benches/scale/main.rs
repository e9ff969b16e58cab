//! What becomes of the figures with more objects, more definitions and more servers: the release binary on a real disk.
//!
//!     cargo bench --bench scale
//!     cargo bench --bench scale -- --max 1000000
//!     cargo bench --bench scale -- --plots docs/scale
//!     cargo bench --bench scale -- --compaction
//!     cargo bench --bench scale -- --definitions path/to/crds.jsonl.gz
//!     SKIFF_BENCH_POSTGRES=postgres://user@127.0.0.1:5432 cargo bench --bench scale
//!     SKIFF_BENCH_PROGRAM=path/to/an/earlier/skiff cargo bench --bench scale
//!
//! Objects have 2 KB as they are sent; their number goes up by tens, from 1,000 to `--max` (100,000 unless it is given). On
//! SQLite, and on a Postgres that the variable names: of that a database is made for each size, with `psql`, and dropped at the
//! end. Figures are rows of tables in Markdown; `--plots` writes them as SVG into a folder, too. With `--compaction`, which takes
//! seven minutes, it patches objects until superseded states have been deleted for two minutes, and measures nothing else; with
//! `--definitions` it registers those of a corpus, and measures nothing else.
//!
//! The clients share the machine with the server: the figures are bounds, to be compared with others of the same machine.

mod corpus;
mod plot;
#[path = "../server/mod.rs"]
mod server;
#[path = "../server/widgets.rs"]
mod widgets;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use plot::{Series, plot};
use server::{Client, Failure, Server, millis, percentile};
use widgets::{
    DEFINITIONS_PATH, OBJECT_BYTES, definition, head, mebibytes, micros, per_second, register_widgets, row,
    side_by_side, widget,
};

/// Names the server of the databases.
const POSTGRES: &str = "SKIFF_BENCH_POSTGRES";
const NAMESPACES: &str = "/api/v1/namespaces";
const OBJECTS_MIN: usize = 1_000;
const OBJECTS_MAX: usize = 100_000;
/// How many gets one client makes.
const GETS: usize = 1_000;
/// How many of the last changes a watch from the past has.
const PAST: usize = 1_000;
const PAGE: usize = 500;
const DEFINITIONS: usize = 1_000;
/// How many servers share one Postgres.
const SERVERS: [usize; 4] = [1, 2, 4, 8];
/// What the server may use where its memory has a bound.
const MEMORY_LIMIT: &str = "256Mi";
/// How many objects are patched under compaction, for how many minutes, and how long a client waits between two patches. States
/// stay for five minutes.
const PATCHED: usize = 10_000;
const MINUTES: usize = 7;
const PAUSE: Duration = Duration::from_millis(10);
/// How many writes are followed from one server to another.
const FOLLOWED: usize = 200;

fn main() -> Result<(), Failure> {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("scale");
    _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder)?;
    if std::env::args().any(|argument| argument == "--compaction") {
        compaction(&folder)?;
        return Ok(fs::remove_dir_all(&folder)?);
    }
    if let Some(corpus) = option("--definitions") {
        corpus::definitions(&folder, &corpus)?;
        return Ok(fs::remove_dir_all(&folder)?);
    }
    let objects_max = option("--max").map_or(Ok(OBJECTS_MAX), |text| text.parse())?;
    let postgres = std::env::var(POSTGRES).ok();
    let mut plots: Vec<Plot> = Vec::new();
    for url in [None, postgres.as_deref()].into_iter().take(if postgres.is_some() { 2 } else { 1 }) {
        let mut objects = OBJECTS_MIN;
        while objects <= objects_max {
            let database = Database::new(url, objects)?;
            println!("\n{objects} objects of {OBJECT_BYTES} bytes, {}\n", database.kind());
            for figure in of_objects(&folder, &database, objects)? {
                note(&mut plots, database.kind(), objects, figure);
            }
            objects *= 10;
        }
    }
    println!("\n{DEFINITIONS} definitions\n");
    definitions(&folder)?;
    if let Some(url) = &postgres {
        println!("\nServers that share a Postgres\n");
        servers(&folder, url)?;
    }
    if let Some(to) = option("--plots") {
        fs::create_dir_all(&to)?;
        for Plot { what, unit, series } in &plots {
            fs::write(Path::new(&to).join(format!("{}.svg", what.replace(' ', "-"))), plot(what, unit, series))?;
        }
    }
    fs::remove_dir_all(&folder)?;
    Ok(())
}

/// The value of an option of this program.
fn option(name: &str) -> Option<String> {
    std::env::args().skip_while(|argument| argument != name).nth(1)
}

/// What is measured at each number of objects.
struct Figure {
    what: &'static str,
    unit: &'static str,
    value: f64,
}

struct Plot {
    what: &'static str,
    unit: &'static str,
    series: Vec<Series>,
}

fn note(plots: &mut Vec<Plot>, kind: &str, objects: usize, Figure { what, unit, value }: Figure) {
    let at = plots.iter().position(|plot| plot.what == what).unwrap_or_else(|| {
        plots.push(Plot { what, unit, series: Vec::new() });
        plots.len() - 1
    });
    let series = &mut plots[at].series;
    let point = (objects as f64, value);
    match series.iter_mut().find(|series| series.name == kind) {
        Some(series) => series.points.push(point),
        None => series.push(Series { name: kind.to_owned(), points: vec![point] }),
    }
}

/// Where the objects are; a database of Postgres is dropped with its value.
struct Database {
    /// The URL of the server, and the name.
    postgres: Option<(String, String)>,
}

impl Database {
    fn new(url: Option<&str>, number: usize) -> Result<Self, Failure> {
        let Some(url) = url else { return Ok(Database { postgres: None }) };
        let name = format!("skiff_scale_{number}");
        psql(url, &format!("DROP DATABASE IF EXISTS {name}"))?;
        psql(url, &format!("CREATE DATABASE {name}"))?;
        Ok(Database { postgres: Some((url.to_owned(), name)) })
    }

    fn kind(&self) -> &'static str {
        if self.postgres.is_some() { "Postgres" } else { "SQLite" }
    }

    fn start(&self, data: &Path) -> Result<Server, Failure> {
        self.start_with(data, &[])
    }

    fn start_with(&self, data: &Path, arguments: &[&str]) -> Result<Server, Failure> {
        let store = self.postgres.as_ref().map(|(url, name)| format!("{url}/{name}"));
        let store = store.iter().flat_map(|store| ["--store", store.as_str()]);
        Server::start(data, &store.chain(arguments.iter().copied()).collect::<Vec<_>>())
    }

    /// How much disk it takes.
    fn bytes(&self, data: &Path) -> Result<u64, Failure> {
        match &self.postgres {
            Some((url, name)) => Ok(psql(url, &format!("SELECT pg_database_size('{name}')"))?.trim().parse()?),
            None => fs::read_dir(data)?.try_fold(0, |sum, file| Ok(sum + file?.metadata()?.len())),
        }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if let Some((url, name)) = &self.postgres {
            _ = psql(url, &format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"));
        }
    }
}

/// Runs a statement in the database `postgres`, and returns what it gives.
fn psql(url: &str, statement: &str) -> Result<String, Failure> {
    let output = Command::new("psql").arg(format!("{url}/postgres")).args(["-qAtc", statement]).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// All figures of so many objects.
fn of_objects(folder: &Path, database: &Database, objects: usize) -> Result<Vec<Figure>, Failure> {
    let data = folder.join(format!("{}-{objects}", database.kind()));
    let server = database.start(&data)?;
    head();
    let mut figures = Vec::new();
    let mut figure = |what, unit, value| figures.push(Figure { what, unit, value });
    let collection = register_widgets(&server)?.replace("/default/", "/team/");
    server.connect()?.expect(201, "POST", NAMESPACES, br#"{"metadata":{"name":"team"}}"#)?;
    let (before, cpu) = (server.resident_bytes()?, server.processor_time()?);
    let (created, took) = create(&server, &collection, objects)?;
    row("creates by 16 clients", per_second(created, took));
    figure("creates", "a second", created as f64 / took.as_secs_f64());
    row("processor time of the server, create", micros((server.processor_time()? - cpu) / objects as u32));
    let memory = server.resident_bytes()?;
    row("memory", mebibytes(memory));
    row("memory for each object", format!("{} bytes", memory.saturating_sub(before) / objects as u64));
    figure("memory", "MiB", memory as f64 / f64::from(1 << 20));

    let mut client = server.connect()?;
    let mut gets = gets(&mut client, &collection, objects)?;
    figure("get", "ms", percentile(&mut gets, 50).as_secs_f64() * 1e3);
    row("get by one client, p50", micros(percentile(&mut gets, 50)));
    row("get by one client, p99", micros(percentile(&mut gets, 99)));
    let mut pages = pages(&mut client, &collection)?;
    figure("page of 500", "ms", percentile(&mut pages, 50).as_secs_f64() * 1e3);
    row("page of 500, p50", millis(percentile(&mut pages, 50)));
    row("page of 500, p99", millis(percentile(&mut pages, 99)));
    row("watch of the last 1,000 changes", millis(past(&server, &collection)?));
    drop((client, server));

    let bytes = database.bytes(&data)?;
    row("size on disk", mebibytes(bytes));
    figure("size on disk", "MiB", bytes as f64 / f64::from(1 << 20));
    let server = database.start(&data)?;
    row("start to /readyz", millis(server.ready_after));
    figure("start", "ms", server.ready_after.as_secs_f64() * 1e3);
    let (mut client, begun) = (server.connect()?, Instant::now());
    client.expect(200, "GET", &format!("{collection}/w-0"), b"")?;
    row("first get after a start", millis(begun.elapsed()));
    client.expect(200, "GET", &format!("{collection}?limit=1"), b"")?;
    row("collection read after a start", millis(begun.elapsed()));
    drop((client, server));

    let server = database.start_with(&data, &["--memory-limit", MEMORY_LIMIT])?;
    let mut client = server.connect()?;
    let mut gets = self::gets(&mut client, &collection, objects)?;
    row(&format!("get with --memory-limit {MEMORY_LIMIT}, p50"), micros(percentile(&mut gets, 50)));
    let listed = client.send("GET", &format!("{collection}?limit={PAGE}"), b"")?.0;
    row(&format!("answer to a page with --memory-limit {MEMORY_LIMIT}"), listed.to_string());
    row(&format!("memory with --memory-limit {MEMORY_LIMIT}"), mebibytes(server.resident_bytes()?));
    drop((client, server));

    let server = database.start(&data)?;
    let mut client = server.connect()?;
    let deleted = delete_namespace(&mut client)?;
    row("namespace deleted with all of them", millis(deleted));
    figure("namespace deletion", "ms", deleted.as_secs_f64() * 1e3);
    Ok(figures)
}

/// Creates so many objects; returns how many, and how long it took.
fn create(server: &Server, collection: &str, objects: usize) -> Result<(usize, Duration), Failure> {
    let next = AtomicUsize::new(0);
    side_by_side(server, |client| {
        let mut done = 0;
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= objects {
                return Ok(done);
            }
            client.expect(201, "POST", collection, &widget(at))?;
            done += 1;
        }
    })
}

fn gets(client: &mut Client, collection: &str, objects: usize) -> Result<Vec<Duration>, Failure> {
    (0..GETS)
        .map(|at| {
            // Far apart, and each object as often as any other.
            let at = at.wrapping_mul(997) % objects;
            let begun = Instant::now();
            client.expect(200, "GET", &format!("{collection}/w-{at}"), b"")?;
            Ok(begun.elapsed())
        })
        .collect()
}

/// All objects page by page, how long each took.
fn pages(client: &mut Client, collection: &str) -> Result<Vec<Duration>, Failure> {
    let (mut took, mut token) = (Vec::new(), String::new());
    loop {
        let begun = Instant::now();
        let page = client.expect(200, "GET", &format!("{collection}?limit={PAGE}&continue={token}"), b"")?;
        took.push(begun.elapsed());
        let page = String::from_utf8(page)?;
        let end = page.rsplit_once(r#""continue":""#).ok_or("a page has a field for its token")?.1;
        token = end.split('"').next().unwrap_or_default().to_owned();
        if token.is_empty() {
            return Ok(took);
        }
    }
}

/// A watch from a revision that lies [`PAST`] changes back, until it has them.
fn past(server: &Server, collection: &str) -> Result<Duration, Failure> {
    let mut client = server.connect()?;
    let list = String::from_utf8(client.expect(200, "GET", &format!("{collection}?limit=1"), b"")?)?;
    let revision = list.rsplit_once(r#""resourceVersion":""#).and_then(|(_, rest)| rest.split('"').next());
    let newest: usize = revision.ok_or("a list has a revision")?.parse()?;
    let path = format!("{collection}?watch=1&resourceVersion={}", newest - PAST);
    let begun = Instant::now();
    client.request_as(&client.headers(), "GET", &path, b"")?;
    client.head()?;
    let mut seen = 0;
    // A few may be of other collections.
    while seen < PAST * 9 / 10 {
        seen += client.chunk()?.iter().filter(|byte| **byte == b'\n').count();
    }
    Ok(begun.elapsed())
}

/// From the deletion of the namespace until it and its objects are gone.
fn delete_namespace(client: &mut Client) -> Result<Duration, Failure> {
    let path = format!("{NAMESPACES}/team");
    let begun = Instant::now();
    client.expect(200, "DELETE", &path, b"")?;
    while client.send("GET", &path, b"")?.0 != 404 {
        thread::sleep(Duration::from_millis(20));
    }
    Ok(begun.elapsed())
}

/// Many definitions, each from its POST to the first list of its objects, and a start with all of them.
fn definitions(folder: &Path) -> Result<(), Failure> {
    let data = folder.join("definitions");
    let server = Server::start(&data, &[])?;
    head();
    let before = server.resident_bytes()?;
    let mut client = server.connect()?;
    let mut usable = Vec::with_capacity(DEFINITIONS);
    for at in 0..DEFINITIONS {
        let group = format!("g{at}.example.com");
        let begun = Instant::now();
        client.expect(201, "POST", DEFINITIONS_PATH, &definition(&group))?;
        while client.send("GET", &format!("/apis/{group}/v1/namespaces/default/widgets"), b"")?.0 != 200 {}
        usable.push(begun.elapsed());
    }
    for percent in [50, 99] {
        row(&format!("definition, POST to usable, p{percent}"), millis(percentile(&mut usable, percent)));
    }
    let each = server.resident_bytes()?.saturating_sub(before) / DEFINITIONS as u64;
    row("memory for each definition", format!("{} KiB", each >> 10));
    drop((client, server));
    row("start to /readyz, 1,000 definitions", millis(Server::start(&data, &[])?.ready_after));
    Ok(())
}

/// Patches by all clients, at a steady pace, before and while superseded states are deleted: a row for each minute.
fn compaction(folder: &Path) -> Result<(), Failure> {
    let data = folder.join("compaction");
    let server = Server::start(&data, &[])?;
    let collection = register_widgets(&server)?;
    create(&server, &collection, PATCHED)?;
    println!("\n{PATCHED} objects, patched by 16 clients\n\n| minute | patches | p50 | p99 | processor time | disk |");
    println!("|---:|---:|---:|---:|---:|---:|");
    let next = AtomicUsize::new(0);
    for minute in 1..=MINUTES {
        let (took, begun, cpu) = (Mutex::new(Vec::new()), Instant::now(), server.processor_time()?);
        side_by_side(&server, |client| {
            let mut mine = Vec::new();
            while begun.elapsed() < Duration::from_secs(60) {
                mine.push(patch(client, &collection, next.fetch_add(1, Ordering::Relaxed))?);
                thread::sleep(PAUSE);
            }
            let done = mine.len();
            took.lock().map_err(|_| "a client panicked")?.append(&mut mine);
            Ok(done)
        })?;
        let mut took = took.into_inner()?;
        let each = (server.processor_time()? - cpu) / took.len() as u32;
        let [p50, p99] = [50, 99].map(|percent| millis(percentile(&mut took, percent)));
        let disk = mebibytes(Database { postgres: None }.bytes(&data)?);
        println!("| {minute} | {} | {p50} | {p99} | {} | {disk} |", took.len(), micros(each));
    }
    Ok(())
}

/// Gives an object another number; returns how long that took.
fn patch(client: &mut Client, collection: &str, at: usize) -> Result<Duration, Failure> {
    let (path, body) = (format!("{collection}/w-{}", at % PATCHED), format!(r#"{{"spec":{{"replicas":{at}}}}}"#));
    let begun = Instant::now();
    let headers = "Content-Type: application/merge-patch+json\r\n";
    match client.send_as(headers, "PATCH", &path, body.as_bytes())? {
        (200, _) => Ok(begun.elapsed()),
        (status, answer) => Err(format!("PATCH {path}: {status} {}", String::from_utf8_lossy(&answer)).into()),
    }
}

/// Writes and reads through all servers at once, and how late the last one tells of what the first one wrote.
fn servers(folder: &Path, url: &str) -> Result<(), Failure> {
    head();
    for count in SERVERS {
        let database = Database::new(Some(url), count)?;
        let start = |at: usize| database.start(&folder.join(format!("server-{count}-{at}")));
        let servers: Vec<Server> = (0..count).map(start).collect::<Result<_, _>>()?;
        let collection = register_widgets(&servers[0])?;
        for server in &servers {
            let mut client = server.connect()?;
            while client.send("GET", &collection, b"")?.0 != 200 {}
        }
        let next = AtomicUsize::new(0);
        let begun = Instant::now();
        let through = |server: &Server| {
            side_by_side(server, |client| {
                let mut done = 0;
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= OBJECTS_MIN {
                        return Ok(done);
                    }
                    client.expect(201, "POST", &collection, &widget(at))?;
                    done += 1;
                }
            })
        };
        thread::scope(|scope| -> Result<(), Failure> {
            let running: Vec<_> = servers.iter().map(|server| scope.spawn(|| through(server))).collect();
            running.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a client panicked")?.map(drop))
        })?;
        row(&format!("creates through {count} servers, 16 clients each"), per_second(OBJECTS_MIN, begun.elapsed()));
        let mut late = followed(&servers, &collection)?;
        for percent in [50, 99] {
            let what = format!("write at the first to event at the last of {count}, p{percent}");
            row(&what, millis(percentile(&mut late, percent)));
        }
    }
    Ok(())
}

/// How late the last server tells of what the first one wrote.
fn followed(servers: &[Server], collection: &str) -> Result<Vec<Duration>, Failure> {
    let (Some(first), Some(last)) = (servers.first(), servers.last()) else { return Err("there is no server".into()) };
    let (mut writer, mut watch) = (first.connect()?, last.connect()?);
    let path = format!("{collection}?watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan");
    watch.request_as(&watch.headers(), "GET", &path, b"")?;
    watch.head()?;
    let mut late = Vec::with_capacity(FOLLOWED);
    for at in OBJECTS_MIN..OBJECTS_MIN + FOLLOWED {
        let begun = Instant::now();
        writer.expect(201, "POST", collection, &widget(at))?;
        while !watch.chunk()?.contains(&b'\n') {}
        late.push(begun.elapsed());
    }
    Ok(late)
}
