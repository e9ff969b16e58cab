//! A server under test: the real binary, on ports of its own.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long an answer may take, also on a busy machine.
const READ_MAX: Duration = Duration::from_secs(60);

/// A running `skiff serve`. When it goes out of scope it is killed, and must not have panicked until then.
pub struct Server {
    child: Child,
    pub url: String,
    /// Plain HTTP, for the small client below.
    pub plain: SocketAddr,
    pub kubeconfig: PathBuf,
    stderr: Arc<Mutex<String>>,
    stderr_reader: Option<JoinHandle<()>>,
}

/// The command that serves with its data in `data_dir`, on free ports unless the arguments say which.
fn serve(data_dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_skiff"));
    command
        .args(["serve", "--insecure-listen", "127.0.0.1:0", "--data-dir"])
        .arg(data_dir)
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if !arguments.contains(&"--listen") {
        command.args(["--listen", "127.0.0.1:0"]);
    }
    command
}

/// The command, run by a shell that has set `limits`.
fn under(limits: &str, command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{limits} && exec \"$0\" \"$@\"")]).arg(command.get_program()).args(command.get_args());
    shell.stdout(Stdio::piped()).stderr(Stdio::piped());
    shell
}

/// The URL that a server tells once it is ready; empty where it ends before.
fn ready(child: &mut Child) -> String {
    let mut line = String::new();
    let stdout = child.stdout.take().expect("stdout is a pipe");
    BufReader::new(stdout).read_line(&mut line).expect("stdout is readable");
    line.trim().trim_start_matches("ready ").to_owned()
}

impl Server {
    /// Starts the server with its data in `data_dir` and further arguments.
    pub fn start(data_dir: &Path, arguments: &[&str]) -> Server {
        Server::start_in(data_dir, arguments, &[])
    }

    /// As [`Server::start`], with variables in its environment.
    pub fn start_in(data_dir: &Path, arguments: &[&str], variables: &[(&str, &Path)]) -> Server {
        let mut command = serve(data_dir, arguments);
        command.envs(variables.iter().copied());
        Server::run(command, data_dir)
    }

    /// As [`Server::start`], after the shell has set `limits` (`ulimit -n 64`).
    pub fn start_under(data_dir: &Path, limits: &str, arguments: &[&str]) -> Server {
        Server::run(under(limits, &serve(data_dir, arguments)), data_dir)
    }

    /// As [`Server::start`], with a standard error that nobody can read: the address of plain HTTP stays unknown.
    pub fn start_unheard(data_dir: &Path, arguments: &[&str], stderr: Stdio) -> Server {
        let mut command = serve(data_dir, arguments);
        let mut child = command.env("SKIFF_LOG", "trace").stderr(stderr).spawn().expect("the binary was built");
        let url = ready(&mut child);
        assert!(!url.is_empty(), "the server ended before it was ready");
        let (plain, stderr) = (([0, 0, 0, 0], 0).into(), Arc::default());
        Server { child, url, plain, kubeconfig: data_dir.join("kubeconfig"), stderr, stderr_reader: None }
    }

    fn run(mut command: Command, data_dir: &Path) -> Server {
        let mut child = command.spawn().expect("the binary was built with the tests");
        let mut log = BufReader::new(child.stderr.take().expect("stderr is a pipe"));
        let stderr = Arc::new(Mutex::new(String::new()));
        let read = Arc::clone(&stderr);
        let stderr_reader = std::thread::spawn(move || {
            let mut line = String::new();
            while log.read_line(&mut line).is_ok_and(|count| count > 0) {
                read.lock().expect("no thread panics").push_str(&line);
                line.clear();
            }
        });
        let url = ready(&mut child);
        let mut server = Server {
            child,
            url,
            plain: ([0, 0, 0, 0], 0).into(),
            kubeconfig: data_dir.join("kubeconfig"),
            stderr,
            stderr_reader: Some(stderr_reader),
        };
        assert!(!server.url.is_empty(), "the server ended before it was ready: {}", server.wait().1);
        server.plain = server.plain_address();
        server
    }

    /// Runs a server that is expected not to start; returns its exit code and what it said.
    pub fn fail_to_start(data_dir: &Path, arguments: &[&str]) -> (Option<i32>, String) {
        Server::fail(serve(data_dir, arguments))
    }

    /// As [`Server::fail_to_start`], with variables in its environment.
    pub fn fail_to_start_in(data_dir: &Path, arguments: &[&str], variables: &[(&str, &Path)]) -> (Option<i32>, String) {
        let mut command = serve(data_dir, arguments);
        command.envs(variables.iter().copied());
        Server::fail(command)
    }

    /// As [`Server::fail_to_start`], after the shell has set `limits`.
    pub fn fail_to_start_under(data_dir: &Path, limits: &str, arguments: &[&str]) -> (Option<i32>, String) {
        Server::fail(under(limits, &serve(data_dir, arguments)))
    }

    fn fail(mut command: Command) -> (Option<i32>, String) {
        let mut child = command.spawn().expect("the binary was built with the tests");
        let url = ready(&mut child);
        if !url.is_empty() {
            child.kill().expect("the server is running");
        }
        let Output { status, stderr, .. } = child.wait_with_output().expect("the server is our child");
        assert_eq!(url, "", "it started");
        (status.code(), String::from_utf8_lossy(&stderr).into_owned())
    }

    /// The address that the server told on stderr before it was ready.
    fn plain_address(&self) -> SocketAddr {
        loop {
            let stderr = self.stderr();
            let told = stderr.split("plain HTTP on http://").nth(1).and_then(|rest| rest.split_once(' '));
            match told {
                Some((address, _)) => return address.parse().expect("an address follows"),
                // It was written, but not yet read.
                None => {
                    let ended = self.stderr_reader.as_ref().is_none_or(JoinHandle::is_finished);
                    assert!(!ended, "the server does not tell its address: {stderr}");
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
        }
    }

    /// What the server said on stderr so far.
    pub fn stderr(&self) -> String {
        self.stderr.lock().expect("no thread panics").clone()
    }

    /// The process, for signals.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Ends the server as `kill -9` does.
    pub fn kill(mut self) {
        self.child.kill().expect("the server is running");
    }

    /// Asks the server to end, and waits until it has; returns its exit code and all that it said on stderr.
    pub fn terminate(self) -> (Option<i32>, String) {
        self.signal("TERM");
        self.end()
    }

    /// Waits until the server has ended.
    pub fn end(mut self) -> (Option<i32>, String) {
        self.wait()
    }

    pub fn signal(&self, name: &str) {
        let signal = format!("-{name}");
        let status = Command::new("kill").args([signal, self.id().to_string()]).status();
        assert!(status.expect("there is a kill command").success());
    }

    fn wait(&mut self) -> (Option<i32>, String) {
        let status = self.child.wait().expect("the server is our child");
        if let Some(reader) = self.stderr_reader.take() {
            reader.join().expect("the reader does not panic");
        }
        (status.code(), self.stderr())
    }

    /// Sends a request and reads the whole answer.
    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: Option<&[u8]>) -> Answer {
        let mut stream = self.open(method, path, headers, body, READ_MAX);
        let mut bytes = Vec::new();
        // A connection that breaks shows in the answer that is not complete.
        _ = stream.read_to_end(&mut bytes);
        let answer = Answer::parse(&bytes);
        let whole = answer.as_ref().is_some_and(|answer| answer.complete || method == "HEAD");
        assert!(whole, "{method} {path} has no whole answer: {}", String::from_utf8_lossy(&bytes));
        answer.expect("it was just looked at")
    }

    /// Sends a request; what is answered is read from the stream.
    pub fn open(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&[u8]>,
        read_max: Duration,
    ) -> TcpStream {
        let mut stream = TcpStream::connect(self.plain).expect("the server listens");
        stream.set_read_timeout(Some(read_max)).expect("a time-out is not zero");
        // A server that refuses a large body may close before it has read it all.
        _ = stream.write_all(&request(method, path, headers, body));
        stream
    }
}

/// A request as it is sent.
pub fn request(method: &str, path: &str, headers: &[(&str, &str)], body: Option<&[u8]>) -> Vec<u8> {
    let mut head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if body.is_some() || matches!(method, "POST" | "PUT" | "PATCH") {
        head.push_str(&format!("Content-Length: {}\r\n", body.map_or(0, <[u8]>::len)));
    }
    head.push_str("\r\n");
    [head.as_bytes(), body.unwrap_or_default()].concat()
}

impl Drop for Server {
    fn drop(&mut self) {
        _ = self.child.kill();
        let (_, stderr) = self.wait();
        if std::thread::panicking() {
            eprintln!("the server said: {stderr}");
        } else {
            assert!(!stderr.contains("panicked"), "the server panicked: {stderr}");
        }
    }
}

/// An answer, taken apart.
pub struct Answer {
    pub status: u16,
    /// Names are in lower case.
    pub headers: Vec<(String, String)>,
    /// As far as it has come.
    pub body: Vec<u8>,
    /// Whether the body has come to its end.
    pub complete: bool,
}

impl Answer {
    /// The answer that begins in `bytes`, once its head is there.
    pub fn parse(bytes: &[u8]) -> Option<Answer> {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let mut lines = head.split("\r\n");
        let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
        let headers = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let mut answer = Answer { status, headers, body: Vec::new(), complete: true };
        let rest = &bytes[end + 4..];
        if answer.header("transfer-encoding") == "chunked" {
            (answer.body, answer.complete) = unchunk(rest);
        } else {
            answer.body = rest.to_vec();
            let is_whole = |length: usize| rest.len() == length;
            // What a client has already has no length.
            answer.complete = status == 304 || answer.header("content-length").parse().is_ok_and(is_whole);
        }
        Some(answer)
    }

    /// The first header of that name, given in lower case; empty when there is none.
    pub fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(header, _)| header == name).map_or("", |(_, value)| value)
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// What a chunked body holds as far as it has come, and whether its last chunk is there.
fn unchunk(mut raw: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    while let Some(end) = raw.windows(2).position(|window| window == b"\r\n") {
        let size = usize::from_str_radix(&String::from_utf8_lossy(&raw[..end]), 16).unwrap_or_default();
        if size == 0 {
            return (body, true);
        }
        let Some(chunk) = raw.get(end + 2..end + 2 + size) else { break };
        body.extend_from_slice(chunk);
        raw = raw.get(end + 4 + size..).unwrap_or_default();
    }
    (body, false)
}

/// A folder of its own for a test, removed with it.
pub struct Folder(pub PathBuf);

impl Folder {
    /// Named after the running test.
    pub fn for_test() -> Folder {
        Folder::new("")
    }

    /// Named after the running test and `what`.
    pub fn new(what: &str) -> Folder {
        let name = std::thread::current().name().unwrap_or("main").replace("::", "-") + what;
        let path = std::env::temp_dir().join(format!("skiff-{}-{name}", std::process::id()));
        _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("the temporary folder is writable");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.0);
    }
}
