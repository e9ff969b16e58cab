//! A server under test: the real binary, on ports of its own.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How long the server may take to be ready, also on a busy machine.
const READY_MAX: Duration = Duration::from_secs(60);

/// A running `skiff serve`, killed when it goes out of scope.
pub struct Server {
    child: Child,
    pub url: String,
    /// Plain HTTP, for the small client below.
    pub plain: SocketAddr,
    pub kubeconfig: PathBuf,
    pub stderr: String,
}

impl Server {
    /// Starts the server with its data in `data_dir` and further arguments.
    pub fn start(data_dir: &Path, arguments: &[&str]) -> Server {
        let mut child = Command::new(env!("CARGO_BIN_EXE_skiff"))
            .args(["serve", "--listen", "127.0.0.1:0", "--insecure-listen", "127.0.0.1:0", "--data-dir"])
            .arg(data_dir)
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary was built with the tests");
        let mut stderr = BufReader::new(child.stderr.take().expect("stderr is a pipe"));
        let mut log = String::new();
        let plain = loop {
            let mut line = String::new();
            let read = stderr.read_line(&mut line).expect("stderr is readable");
            assert!(read > 0, "the server ended before it was ready: {log}");
            log.push_str(&line);
            if let Some(rest) = line.split("plain HTTP on http://").nth(1) {
                let address = rest.split(' ').next().unwrap_or_default();
                break address.parse().expect("an address follows");
            }
        };
        // Whatever else the server says must not fill the pipe.
        std::thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::stderr()));
        let mut stdout = BufReader::new(child.stdout.take().expect("stdout is a pipe"));
        let mut ready = String::new();
        stdout.read_line(&mut ready).expect("stdout is readable");
        let url = ready.strip_prefix("ready ").expect("the server says that it is ready").trim().to_owned();
        Server { child, url, plain, kubeconfig: data_dir.join("kubeconfig"), stderr: log }
    }

    /// Ends the server as `kill -9` does.
    pub fn kill(&mut self) {
        self.child.kill().expect("the server is running");
        self.child.wait().expect("the server is our child");
    }

    /// Asks the server to end, and waits until it has; returns its exit code.
    pub fn terminate(&mut self) -> Option<i32> {
        let id = self.child.id().to_string();
        let status = Command::new("kill").args(["-TERM", &id]).status().expect("there is a kill command");
        assert!(status.success());
        self.child.wait().expect("the server is our child").code()
    }

    /// Sends a request and reads the whole answer.
    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: Option<&[u8]>) -> Answer {
        let mut stream = self.open(method, path, headers, body, READY_MAX);
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).expect("the server closes the connection");
        Answer::parse(&bytes)
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
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if body.is_some() || matches!(method, "POST" | "PUT" | "PATCH") {
            head.push_str(&format!("Content-Length: {}\r\n", body.map_or(0, <[u8]>::len)));
        }
        head.push_str("\r\n");
        // A server that refuses a large body may close before it has read it all.
        _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.unwrap_or_default()));
        stream
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// An answer, taken apart.
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn parse(bytes: &[u8]) -> Answer {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").unwrap_or(bytes.len());
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let mut lines = head.split("\r\n");
        let status = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|code| code.parse().ok());
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let raw = bytes.get(end + 4..).unwrap_or_default();
        let chunked = headers.iter().any(|(name, value)| name == "transfer-encoding" && value == "chunked");
        let body = if chunked { unchunk(raw) } else { raw.to_vec() };
        Answer { status: status.unwrap_or_default(), headers, body }
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// What a chunked body holds, as far as it has come.
pub fn unchunk(mut raw: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = raw.windows(2).position(|window| window == b"\r\n") {
        let size = usize::from_str_radix(&String::from_utf8_lossy(&raw[..end]), 16).unwrap_or_default();
        let Some(chunk) = raw.get(end + 2..end + 2 + size).filter(|_| size > 0) else { break };
        body.extend_from_slice(chunk);
        raw = raw.get(end + 4 + size..).unwrap_or_default();
    }
    body
}

/// A folder of its own for a test, removed with it.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("skiff-test-{name}-{}", std::process::id()));
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
