//! A control plane for a test: a server in memory, from its start to its end.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs;
use std::io::{self, BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use http::Request;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use serde_json::Value;

use crate::fork::Fork;
use crate::program;

/// How many lines of what the server says are kept: the newest.
const LINES_MAX: usize = 10_000;

/// Why there is no control plane, or no client of it.
#[derive(Debug)]
pub enum Error {
    /// There is no program of this name.
    NoProgram(String),
    /// The program can't be run.
    Run(io::Error),
    /// The server ended before it was ready; this is what it said.
    Start(String),
    /// The kubeconfig can't be used.
    Kubeconfig(KubeconfigError),
    /// The client can't be made, or the server refuses what it asks for.
    Client(kube::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NoProgram(name) => write!(out, "there is no program {name}; SKIFF may name one"),
            Error::Run(error) => write!(out, "skiff can't be run: {error}"),
            Error::Start(said) => write!(out, "skiff did not start: {said}"),
            Error::Kubeconfig(error) => error.fmt(out),
            Error::Client(error) => error.fmt(out),
        }
    }
}

impl std::error::Error for Error {}

/// What a control plane is to have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Options {
    program: Option<PathBuf>,
    arguments: Vec<OsString>,
    pub(crate) own_process: bool,
}

impl Options {
    /// Nothing but what every control plane has.
    pub fn new() -> Self {
        Options::default()
    }

    /// The program, where it is not the one that `SKIFF` names or that is on the `PATH`.
    #[must_use]
    pub fn program(mut self, program: impl Into<PathBuf>) -> Self {
        self.program = Some(program.into());
        self
    }

    /// Files or folders with definitions, which are served before the control plane is ready.
    #[must_use]
    pub fn crds(mut self, paths: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        for path in paths {
            self.arguments.extend(["--crds".into(), path.as_ref().to_owned()]);
        }
        self
    }

    /// Further arguments of `skiff serve`.
    #[must_use]
    pub fn arguments(mut self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.arguments.extend(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
        self
    }

    /// Whether a test starts a server of its own, where it would get a control plane in one that tests with the same options
    /// share. [`ControlPlane::start`] always starts one.
    #[must_use]
    pub fn own_process(mut self, own_process: bool) -> Self {
        self.own_process = own_process;
        self
    }
}

/// A running server, or a copy in one. Nobody else uses it; whoever has its kubeconfig may do everything in it. It ends with its last clone, or
/// with this process, however that ends.
#[derive(Clone, Debug)]
pub struct ControlPlane(Arc<Place>);

/// What a control plane has.
#[derive(Debug)]
enum Place {
    Server(Server),
    Fork(Fork),
}

#[derive(Debug)]
struct Server {
    child: Child,
    folder: PathBuf,
    kubeconfig: PathBuf,
    url: String,
    said: Lines,
}

impl ControlPlane {
    /// Starts a control plane of its own, with its objects in memory, and waits until it is ready.
    ///
    /// # Errors
    ///
    /// There is no program, or it does not start.
    pub fn start(options: Options) -> Result<Self, Error> {
        let folder = std::env::temp_dir().join(format!("skiff-{}", uuid::Uuid::new_v4()));
        let mut command = Command::new(options.program.map_or_else(program, Ok)?);
        command.arg("serve").arg(format!("--temporary={}", std::process::id()));
        command.args(["--listen", "127.0.0.1:0", "--store", "memory", "--data-dir"]);
        command.arg(&folder).args(options.arguments).env("SKIFF_TRACE", "requests");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(Error::Run)?;
        let said = Lines::read(child.stderr.take());
        let mut line = String::new();
        let stdout = child.stdout.take().map(BufReader::new);
        stdout.map(|mut stdout| stdout.read_line(&mut line)).transpose().map_err(Error::Run)?;
        let kubeconfig = folder.join("kubeconfig");
        let url = line.strip_prefix("ready ").map(|url| url.trim().to_owned());
        let server = Server { child, folder, kubeconfig, url: url.clone().unwrap_or_default(), said };
        match url {
            Some(_) => Ok(ControlPlane(Arc::new(Place::Server(server)))),
            None => Err(Error::Start(server.end())),
        }
    }

    /// Where it serves, as in `https://127.0.0.1:34567`.
    pub fn url(&self) -> &str {
        match &*self.0 {
            Place::Server(server) => &server.url,
            Place::Fork(fork) => &fork.url,
        }
    }

    /// The kubeconfig of its administrator, a file that is there until the control plane ends.
    pub fn kubeconfig(&self) -> &Path {
        match &*self.0 {
            Place::Server(server) => &server.kubeconfig,
            Place::Fork(fork) => &fork.kubeconfig,
        }
    }

    /// A client of its administrator.
    ///
    /// # Errors
    ///
    /// The kubeconfig can't be read or used.
    pub async fn client(&self) -> Result<Client, Error> {
        let kubeconfig = Kubeconfig::read_from(self.kubeconfig()).map_err(Error::Kubeconfig)?;
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
        Client::try_from(config.map_err(Error::Kubeconfig)?).map_err(Error::Client)
    }

    /// The JSON that a request to what it has beside the API of Kubernetes is answered with.
    ///
    /// # Errors
    ///
    /// The server refuses it, or does not answer.
    pub(crate) async fn send(&self, method: &str, path: &str, body: Option<Value>) -> Result<Value, Error> {
        let request = Request::builder().method(method).uri(path).header("Content-Type", "application/json");
        let body = body.map_or_else(Vec::new, |body| body.to_string().into_bytes());
        let request = request.body(body).map_err(|error| Error::Client(kube::Error::HttpError(error)))?;
        self.client().await?.request(request).await.map_err(Error::Client)
    }

    /// What the server has said so far: a line a request, with verb, path, code, time, user, client and what was wrong. Of very
    /// much, the newest lines.
    pub fn log(&self) -> Vec<String> {
        match &*self.0 {
            Place::Server(server) => server.said.all(),
            Place::Fork(fork) => fork.log(),
        }
    }

    pub(crate) fn of_fork(fork: Fork) -> Self {
        ControlPlane(Arc::new(Place::Fork(fork)))
    }

    pub(crate) fn as_fork(&self) -> Option<&Fork> {
        match &*self.0 {
            Place::Server(_) => None,
            Place::Fork(fork) => Some(fork),
        }
    }
}

impl Server {
    /// Ends the server; returns all that it said.
    fn end(mut self) -> String {
        self.kill();
        self.said.finish();
        self.said.all().join("\n")
    }

    /// Its objects are in memory and its folder is removed here: there is nothing that it could do in an orderly end.
    fn kill(&mut self) {
        // One that has ended already is what is wanted.
        _ = self.child.kill();
        _ = self.child.wait();
        _ = fs::remove_dir_all(&self.folder);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Takes what a server says as it comes, so that it never waits.
#[derive(Debug)]
struct Lines {
    newest: Arc<Mutex<VecDeque<String>>>,
    reader: Option<JoinHandle<()>>,
}

impl Lines {
    fn read(stream: Option<impl Read + Send + 'static>) -> Self {
        let newest = Arc::new(Mutex::new(VecDeque::<String>::new()));
        let kept = Arc::clone(&newest);
        let keep = move |line: String| {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.push_back(line);
            if kept.len() > LINES_MAX {
                kept.pop_front();
            }
        };
        let reader = stream
            .map(|stream| thread::spawn(move || BufReader::new(stream).lines().map_while(Result::ok).for_each(keep)));
        Lines { newest, reader }
    }

    fn all(&self) -> Vec<String> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// Waits until there will be no more.
    fn finish(&mut self) {
        if let Some(reader) = self.reader.take() {
            _ = reader.join();
        }
    }
}
