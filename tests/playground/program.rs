//! A running program that serves a page, and raw requests to it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

/// How long an answer may take, also on a busy machine.
const READ_MAX: Duration = Duration::from_secs(60);

/// A program that is ended with its value.
pub struct Program {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Program {
    pub fn start(arguments: &[&str]) -> Program {
        Program::start_in(Path::new(env!("CARGO_MANIFEST_DIR")), arguments)
    }

    /// The same in a folder.
    pub fn start_in(folder: &Path, arguments: &[&str]) -> Program {
        let mut command = Command::new(env!("CARGO_BIN_EXE_skiff"));
        command.args(arguments).current_dir(folder).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the binary was built with the tests");
        let stdout = BufReader::new(child.stdout.take().expect("stdout is a pipe"));
        Program { child, stdout }
    }

    /// What stands behind `word` on the next line of its output.
    pub fn line(&mut self, word: &str) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("stdout is readable");
        assert!(line.starts_with(word), "`{line}` does not begin with {word}");
        line[word.len()..].trim().to_owned()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended by itself.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// A playground, and its address.
pub fn playground() -> (Program, SocketAddr) {
    let mut program = Program::start(&["playground"]);
    let url = program.line("ready");
    let address = url.trim_start_matches("http://").trim_end_matches('/').parse().expect("the URL has an address");
    (program, address)
}

/// An answer: its status, its head and its body.
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("the answer is JSON")
    }
}

/// Sends a head, whose lines are given, and a body; reads until the server closes.
pub fn send(address: SocketAddr, lines: &[&str], body: &[u8]) -> Answer {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(READ_MAX)).expect("a socket takes a timeout");
    let head = format!("{}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", lines.join("\r\n"), body.len());
    // A server that refuses a body may close before it has all of it.
    _ = stream.write_all(&[head.as_bytes(), body].concat());
    let mut answer = Vec::new();
    _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
    Answer { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
}

/// A question of the page.
pub fn ask(address: SocketAddr, path: &str, body: &[u8]) -> Answer {
    let (first, host) = (format!("POST {path} HTTP/1.1"), format!("host: {address}"));
    send(address, &[&first, &host, "content-type: application/json"], body)
}

/// The folder of the page's source.
pub fn ui() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("ui")
}

/// Node.js: the one that tests/setup installs, or the machine's own.
pub fn node() -> Command {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/node/node_modules/.bin/node");
    Command::new(if own.is_file() { own } else { PathBuf::from("node") })
}

/// Whether what `tests/setup` installs for the page is there; says so where it is not. Under CI that is a failure.
pub fn has_tools(tool: &Path, name: &str) -> bool {
    if tool.exists() {
        return true;
    }
    let thread = std::thread::current();
    let text =
        format!("{} is left out: it needs {name}, which tests/setup installs", thread.name().unwrap_or("a test"));
    assert!(std::env::var_os("CI").is_none(), "{text}");
    _ = writeln!(std::io::stderr(), "{text}");
    false
}
