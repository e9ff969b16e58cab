//! The store under load, on each database, beside the same work by bare statements and the disk's own pace.
//!
//!     cargo bench --bench store
//!     SKIFF_BENCH_POSTGRES=postgres://… cargo bench --bench store      Postgres, too: a database of its own, empty

use std::fmt::Display;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::join_all;
use kubeskiff::store::{At, Collection, Config, Durability, Encoded, Location, Op, PostgresUrl, Put, Storage, Write};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection, SqliteConnection};

const CLIENTS: [usize; 3] = [1, 16, 64];
const TURNS: u32 = 10;
const TURN: Duration = Duration::from_millis(300);
const OBJECT_BYTES: usize = 2_048;
const WATCHERS: usize = 50;
const WATCHED_WRITES: usize = 300;
const MEMORY_OBJECTS: usize = 10_000;
const STORED_OBJECTS: usize = 100_000;

/// As the first argument, with a location after it: this process says what objects take in memory, and ends.
const MEMORY: &str = "memory-of";

#[tokio::main]
async fn main() {
    let arguments: Vec<_> = std::env::args().collect();
    if let [_, first, location] = &arguments[..]
        && first == MEMORY
    {
        return println!("{}", memory(&location_of(location)).await);
    }
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("store");
    _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("the folder can be made");
    say("fdatasync p50", percentile(&mut syncs(&folder.join("sync")), 50));
    for (name, durability, synchronous) in
        [("sqlite full", Durability::Full, "FULL"), ("sqlite relaxed", Durability::Relaxed, "NORMAL")]
    {
        let path = folder.join(name.replace(' ', "-")).with_extension("db");
        let mut raw = Raw::sqlite(&path.with_extension("raw"), synchronous).await;
        measure(name, Config { durability, ..Config::new(Location::File(path)) }, &mut raw).await;
    }
    let data_dir = folder.join("many");
    std::fs::create_dir_all(&data_dir).expect("the folder can be made");
    memory_and_start("sqlite", &data_dir.join("state.db").display().to_string(), &data_dir, &[]).await;
    if let Ok(url) = std::env::var("SKIFF_BENCH_POSTGRES") {
        let config = Config::new(Location::Postgres(PostgresUrl::new(&url)));
        measure("postgres full", config.clone(), &mut Raw::postgres(&url).await).await;
        let (one, other) = (open(&config).await, open(&config).await);
        watch_latency("postgres across replicas", &one, &other).await;
        one.close().await;
        other.close().await;
        memory_and_start("postgres", &url, &folder.join("postgres"), &["--store", &url]).await;
    }
    _ = std::fs::remove_dir_all(&folder);
}

fn say(what: impl Display, figure: impl std::fmt::Debug) {
    println!("{what:<52} {figure:?}");
}

fn percentile(times: &mut [Duration], percent: usize) -> Duration {
    times.sort_unstable();
    times[(times.len() - 1) * percent / 100]
}

/// How long the disk takes for a write of a page.
fn syncs(path: &Path) -> Vec<Duration> {
    let mut file = std::fs::File::create(path).expect("the file can be made");
    let time = |_| {
        file.write_all(&[0; 4_096]).expect("it writes");
        let begun = Instant::now();
        file.sync_data().expect("it syncs");
        begun.elapsed()
    };
    (0..200).map(time).collect()
}

async fn open(config: &Config) -> Storage {
    Storage::open(config).await.expect("the database opens")
}

fn object() -> Bytes {
    let frame = r#"{"metadata":{"name":"a"},"spec":""}"#.len();
    format!(r#"{{"metadata":{{"name":"a"}},"spec":"{}"}}"#, "x".repeat(OBJECT_BYTES - frame)).into()
}

fn collection() -> Collection {
    Collection::new("stable.example.com", "crontabs")
}

fn many() -> Collection {
    Collection::new("stable.example.com", "many")
}

fn put(key: String, bytes: &Bytes) -> Write {
    let op = Op::Put(Put {
        object: Encoded::new(bytes.clone()),
        uid: "2b0a6cc5-9a3d-4b3c-8f39-0d3f0a9d8a11".into(),
        stored_version: "v1".into(),
        schema_generation: 1,
        expires_at_ms: None,
        served_under: None,
    });
    Write { collection: collection(), key: key.into(), op, guards: Vec::new() }
}

/// The writes of clients that wait for each other, in turns with the same by bare statements: both see the same disk.
async fn measure(name: &str, config: Config, raw: &mut Raw) {
    let storage = open(&config).await;
    let bytes = object();
    // A server reads what it writes to.
    storage.snapshot(&collection(), At::Newest).await.expect("it loads");
    for clients in CLIENTS {
        let before = storage.counts();
        let (mut times, mut took) = (Vec::new(), Duration::ZERO);
        let (mut rows, mut raw_took) = (0, Duration::ZERO);
        for _ in 0..TURNS {
            let begun = Instant::now();
            times.extend(write_for_a_turn(&storage, &bytes, clients).await);
            took += begun.elapsed();
            let begun = Instant::now();
            while begun.elapsed() < TURN {
                raw.commit(&bytes, clients).await;
                rows += clients;
            }
            raw_took += begun.elapsed();
        }
        let (own, raw) = (times.len() as f64 / took.as_secs_f64(), rows as f64 / raw_took.as_secs_f64());
        say(format!("{name}: writes/s, {clients} clients"), own.round());
        say(format!("{name}: raw, {clients} rows a commit"), raw.round());
        say(format!("{name}: percent of raw, {clients} clients"), (own / raw * 100.0).round());
        say(format!("{name}: p99, {clients} clients"), percentile(&mut times, 99));
        let after = storage.counts();
        let batches = (after.batches - before.batches).max(1) as f64;
        say(format!("{name}: writes a batch"), (after.writes - before.writes) as f64 / batches);
        say(format!("{name}: commits a batch"), (after.commits - before.commits) as f64 / batches);
        say(format!("{name}: statements a batch"), (after.statements - before.statements) as f64 / batches);
    }
    watch_latency(&format!("{name} in process"), &storage, &storage).await;
    storage.close().await;
}

/// How long each write took.
async fn write_for_a_turn(storage: &Storage, bytes: &Bytes, clients: usize) -> Vec<Duration> {
    let begun = Instant::now();
    let work = (0..clients).map(|client| {
        let (storage, bytes) = (storage.clone(), bytes.clone());
        tokio::spawn(async move {
            let mut times = Vec::new();
            while begun.elapsed() < TURN {
                let each = Instant::now();
                let key = format!("ns/{clients}-{client}-{}", times.len() % 100);
                storage.write(put(key, &bytes)).await.expect("it writes");
                times.push(each.elapsed());
            }
            times
        })
    });
    join_all(work).await.into_iter().flat_map(|times| times.expect("a client ends")).collect()
}

/// From the acknowledgement of a write by `from` to its change at the watchers of `to`.
async fn watch_latency(name: &str, from: &Storage, to: &Storage) {
    let bytes = object();
    to.snapshot(&collection(), At::Newest).await.expect("it loads");
    to.catch_up().await.expect("the database answers");
    let mut watchers = Vec::new();
    for _ in 0..WATCHERS {
        let mut watch = to.watch(&collection(), from.revision(&collection())).await.expect("the revision is there");
        watchers.push(tokio::spawn(async move {
            let mut seen = Vec::with_capacity(WATCHED_WRITES);
            for _ in 0..WATCHED_WRITES {
                watch.next().await.expect("the watch goes on");
                seen.push(Instant::now());
            }
            seen
        }));
    }
    let mut acknowledged = Vec::with_capacity(WATCHED_WRITES);
    for at in 0..WATCHED_WRITES {
        from.write(put(format!("ns/watched-{}", at % 100), &bytes)).await.expect("it writes");
        acknowledged.push(Instant::now());
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let mut latencies = Vec::new();
    for seen in join_all(watchers).await {
        let seen = seen.expect("a watcher ends");
        latencies
            .extend(seen.iter().zip(&acknowledged).map(|(seen, written)| seen.saturating_duration_since(*written)));
    }
    say(format!("{name}: watch p99, {WATCHERS} watchers"), percentile(&mut latencies, 99));
}

/// One table, the same bytes, and transactions of exactly as many rows as there are clients.
enum Raw {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
}

impl Raw {
    async fn sqlite(path: &Path, synchronous: &str) -> Self {
        let url = format!("sqlite:{}?mode=rwc", path.display());
        let mut connection = SqliteConnection::connect(&url).await.expect("it opens");
        let set_up = format!(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = {synchronous}; PRAGMA wal_autocheckpoint = 2000; \
             CREATE TABLE raw (id INTEGER PRIMARY KEY, bytes BLOB)"
        );
        sqlx::raw_sql(AssertSqlSafe(set_up)).execute(&mut connection).await.expect("it is set up");
        Raw::Sqlite(connection)
    }

    async fn postgres(url: &str) -> Self {
        let mut connection = PgConnection::connect(url).await.expect("it connects");
        let set_up = "CREATE TABLE IF NOT EXISTS raw (id BIGSERIAL PRIMARY KEY, bytes BYTEA)";
        sqlx::raw_sql(set_up).execute(&mut connection).await.expect("it is set up");
        Raw::Postgres(connection)
    }

    async fn commit(&mut self, bytes: &Bytes, rows: usize) {
        match self {
            Raw::Sqlite(connection) => {
                connection.execute("BEGIN IMMEDIATE").await.expect("it begins");
                for _ in 0..rows {
                    let insert = sqlx::query("INSERT INTO raw (bytes) VALUES (?)").bind(&bytes[..]);
                    insert.execute(&mut *connection).await.expect("it inserts");
                }
                connection.execute("COMMIT").await.expect("it commits");
            }
            Raw::Postgres(connection) => {
                connection.execute("BEGIN").await.expect("it begins");
                let insert = sqlx::query("INSERT INTO raw (bytes) SELECT * FROM unnest($1::bytea[])");
                insert.bind(vec![&bytes[..]; rows]).execute(&mut *connection).await.expect("it inserts");
                connection.execute("COMMIT").await.expect("it commits");
            }
        }
    }
}

/// Of objects in a collection of their own.
async fn memory_and_start(name: &str, location: &str, data_dir: &Path, arguments: &[&str]) {
    let config = location_of(location);
    let storage = open(&config).await;
    let bytes = object();
    fill(&storage, &bytes, 0..MEMORY_OBJECTS).await;
    storage.close().await;
    let own = std::env::current_exe().expect("it runs");
    let told = Command::new(own).args([MEMORY, location]).output().expect("it runs again");
    say(
        format!("{name}: memory of {MEMORY_OBJECTS} objects of {OBJECT_BYTES} bytes, MiB"),
        String::from_utf8_lossy(&told.stdout).trim().parse::<f64>().expect("it is a number"),
    );
    let storage = open(&config).await;
    fill(&storage, &bytes, MEMORY_OBJECTS..STORED_OBJECTS).await;
    storage.close().await;
    let begun = Instant::now();
    let storage = open(&config).await;
    say(format!("{name}: open with {STORED_OBJECTS} objects"), begun.elapsed());
    let begun = Instant::now();
    storage.snapshot(&many(), At::Newest).await.expect("it loads");
    say(format!("{name}: load {STORED_OBJECTS} objects"), begun.elapsed());
    storage.close().await;
    // The first start makes what every server has.
    start_server(data_dir, arguments);
    let took = start_server(data_dir, arguments);
    say(format!("{name}: start to ready with {STORED_OBJECTS} objects stored"), took);
}

/// Where many objects are, and not for their durability.
fn location_of(text: &str) -> Config {
    let location = if text.starts_with("postgres:") {
        Location::Postgres(PostgresUrl::new(text))
    } else {
        Location::File(text.into())
    };
    Config { durability: Durability::Relaxed, ..Config::new(location) }
}

/// By how many MiB the process grows when it loads [`many`].
async fn memory(config: &Config) -> f64 {
    let storage = open(config).await;
    let before = resident_bytes();
    storage.snapshot(&many(), At::Newest).await.expect("it loads");
    (resident_bytes().saturating_sub(before)) as f64 / f64::from(1 << 20)
}

/// How long a server takes until it says that it is ready.
fn start_server(data_dir: &Path, arguments: &[&str]) -> Duration {
    let begun = Instant::now();
    let mut server = Command::new(env!("CARGO_BIN_EXE_skiff"))
        .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(data_dir)
        .args(arguments)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary was built with the benches");
    let mut ready = String::new();
    let stdout = server.stdout.take().expect("it is a pipe");
    BufReader::new(stdout).read_line(&mut ready).expect("it can be read");
    let took = begun.elapsed();
    assert!(ready.starts_with("ready "), "{ready}");
    server.kill().expect("it is running");
    server.wait().expect("it is our child");
    took
}

async fn fill(storage: &Storage, bytes: &Bytes, range: std::ops::Range<usize>) {
    let all: Vec<_> = range.collect();
    for chunk in all.chunks(256) {
        let storage = Arc::new(storage.clone());
        let writes = chunk.iter().map(|at| {
            let write = put(format!("ns/{at:06}"), bytes);
            storage.write(Write { collection: many(), ..write })
        });
        assert!(join_all(writes).await.iter().all(Result::is_ok), "it writes");
    }
}

fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or_default() * 4_096
}
