//! A Postgres for the tests: a cluster of its own, started at the first need, gone with the process.

use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use kubeskiff::server::Identity;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

/// The oldest that skiff takes.
const VERSION_MIN: u32 = 15;
const STARTED_WITHIN: Duration = Duration::from_secs(120);

/// A cluster: its data, and the server on it.
pub struct Cluster {
    bin: PathBuf,
    data: PathBuf,
    port: u16,
    server: Option<Child>,
}

/// The URL of a new database in the cluster that all tests share; `None`, saying so, where there is no Postgres.
pub async fn new_database() -> Option<String> {
    static SHARED: OnceLock<Option<u16>> = OnceLock::new();
    let started = tokio::task::spawn_blocking(|| *SHARED.get_or_init(start_shared));
    let port = started.await.expect("starting does not panic")?;
    Some(create_database(port).await)
}

/// A cluster for one test, which may stop it.
pub fn own_cluster() -> Option<Cluster> {
    Some(Cluster::make(&find()?))
}

pub async fn create_database(port: u16) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let name = format!("test_{}", COUNT.fetch_add(1, Ordering::Relaxed));
    let mut connection = PgConnection::connect(&url(port, "postgres")).await.expect("the server accepts connections");
    let create = format!("CREATE DATABASE {name}");
    sqlx::raw_sql(AssertSqlSafe(create)).execute(&mut connection).await.expect("the database is made");
    url(port, &name)
}

fn url(port: u16, database: &str) -> String {
    format!("postgres://postgres@127.0.0.1:{port}/{database}")
}

/// Starts the cluster on a thread that lives as long as the process: the server ends with the thread that started it.
fn start_shared() -> Option<u16> {
    let bin = find()?;
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut cluster = Cluster::make(&bin);
        cluster.start();
        tell.send(cluster.port).expect("a test waits for it");
        loop {
            std::thread::park();
        }
    });
    Some(told.recv().expect("the server starts"))
}

/// The programs of the newest Postgres here. Missing, it fails under CI, and elsewhere says what is left out.
fn find() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let versions = versions.filter_map(|entry| {
        let version: u32 = entry.file_name().to_str()?.parse().ok()?;
        let bin = entry.path().join("bin");
        (version >= VERSION_MIN && bin.join("initdb").exists()).then_some((version, bin))
    });
    if let Some((_, bin)) = versions.max() {
        return Some(bin);
    }
    let why = "there is no Postgres of 15 or later in /usr/lib/postgresql (tests/setup installs one)";
    assert!(std::env::var_os("CI").is_none(), "{why}");
    // Past the test runner, which keeps what is printed by tests that pass.
    drop(std::io::stderr().write_all(format!("left out: {why}\n").as_bytes()));
    None
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
}

/// A command that runs as a user whom Postgres takes (it refuses root), and ends with the thread that starts it.
fn command(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "QUIT"]);
    if is_root() {
        command.args(["--reuid=postgres", "--regid=postgres", "--init-groups"]);
    }
    command.arg(program).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Gives a file to the user that the server runs as.
fn own(path: &Path) {
    if is_root() {
        let owned = Command::new("chown").arg("postgres:").arg(path).status();
        assert!(owned.expect("there is a chown").success());
    }
}

impl Cluster {
    /// Makes the data of a cluster whose default order of text is not that of bytes.
    fn make(bin: &Path) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        remove_left_behind();
        let name = format!("{PREFIX}{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let data = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&data).expect("the folder can be made");
        std::fs::set_permissions(&data, std::fs::Permissions::from_mode(0o700)).expect("it is ours");
        own(&data);
        let made = command(&bin.join("initdb"))
            .args(["--no-sync", "--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C"])
            .args(["--locale-provider=icu", "--icu-locale=en", "--pgdata"])
            .arg(&data)
            .stderr(Stdio::inherit())
            .status();
        assert!(made.expect("initdb runs").success(), "initdb makes the data");
        let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port is free").port();
        Cluster { bin: bin.to_owned(), data, port, server: None }
    }

    /// Makes the server take encrypted connections with this certificate.
    pub fn serve_tls(&self, identity: &Identity) {
        let chain = [("server.crt", &identity.certificate_pem), ("server.key", &identity.key_pem)];
        for (name, pem) in chain {
            let path = self.data.join(name);
            std::fs::write(&path, pem).expect("it writes");
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("it is ours");
            own(&path);
        }
        let mut settings = std::fs::read_to_string(self.data.join("postgresql.conf")).expect("initdb has made it");
        settings.push_str("\nssl = on\n");
        std::fs::write(self.data.join("postgresql.conf"), settings).expect("it writes");
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The folder of its data, which belongs to the user that the server runs as.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// Starts the server, and waits until it takes connections.
    pub fn start(&mut self) {
        self.start_with(&[]);
    }

    /// The same, with variables in its environment.
    pub fn start_with(&mut self, variables: &[(&str, &Path)]) {
        let mut server = command(&self.bin.join("postgres"));
        server.envs(variables.iter().copied());
        server.arg("-D").arg(&self.data).args(["-h", "127.0.0.1", "-p", &self.port.to_string()]);
        // The tests kill the server, never the machine: the system keeps what was not synced.
        server.args(["-k", "", "-c", "fsync=off", "-c", "max_connections=300", "-c", "shared_buffers=16MB"]);
        self.server = Some(server.spawn().expect("the server starts"));
        let started = Instant::now();
        let mut ready = Command::new(self.bin.join("pg_isready"));
        ready.args(["-q", "-h", "127.0.0.1", "-p", &self.port.to_string()]);
        while !ready.status().expect("pg_isready runs").success() {
            assert!(started.elapsed() < STARTED_WITHIN, "Postgres does not start");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Stops the server as a crash does: it cuts all connections and writes nothing back.
    pub fn crash(&mut self) {
        if let Some(mut server) = self.server.take() {
            let quit = Command::new("kill").args(["-QUIT", &server.id().to_string()]).status();
            assert!(quit.expect("there is a kill command").success());
            server.wait().expect("the server is our child");
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.crash();
        _ = std::fs::remove_dir_all(&self.data);
    }
}

const PREFIX: &str = "skiff-postgres-";

/// Removes the data of processes that have ended.
fn remove_left_behind() {
    for entry in std::fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(PREFIX)).and_then(|rest| rest.split('-').next());
        if process.is_some_and(|process| !Path::new("/proc").join(process).exists()) {
            _ = std::fs::remove_dir_all(entry.path());
        }
    }
}
