//! A client of the language server, as small as it can be.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

/// An editor with its server.
pub struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    next: i64,
    version: i64,
    /// What was told that nobody has asked for yet.
    told: Vec<Value>,
}

/// A folder that goes with the test.
pub struct Folder(pub PathBuf);

impl Folder {
    /// A folder with files.
    pub fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("editor-{name}-{}", std::process::id()));
        _ = std::fs::remove_dir_all(&path);
        for (file, text) in files {
            let file = path.join(file);
            std::fs::create_dir_all(file.parent().expect("it is in the folder")).expect("the folder is ours");
            std::fs::write(file, text).expect("the folder is ours");
        }
        Folder(path)
    }

    pub fn uri(&self, file: &str) -> String {
        format!("file://{}", self.0.join(file).display())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Client {
    /// A server that knows a folder, or none.
    pub fn start(root: Option<&Path>) -> Self {
        let mut client = Client::unstarted();
        let root = root.map(|root| format!("file://{}", root.display()));
        let answer = client.request("initialize", json!({"processId": null, "rootUri": root, "capabilities": {}}));
        assert_eq!(answer["capabilities"]["textDocumentSync"]["change"], 2);
        client.notify("initialized", json!({}));
        client
    }

    /// A server that nothing was said to.
    pub fn unstarted() -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_skiff"))
            .arg("lsp")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program runs");
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        Client { child, input, output, next: 0, version: 0, told: Vec::new() }
    }

    pub fn send_bytes(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().expect("it is open");
        input.write_all(bytes).and_then(|()| input.flush()).expect("the server reads");
    }

    pub fn send(&mut self, message: &Value) {
        let body = message.to_string();
        self.send_bytes(format!("Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes());
    }

    pub fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Sends a request, and does not wait.
    pub fn ask(&mut self, method: &str, params: Value) -> i64 {
        self.next += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params}));
        self.next
    }

    /// The next message of the server.
    pub fn receive(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).expect("the server writes text") > 0, "the server has ended");
            match line.trim().split_once(": ") {
                Some(("Content-Length", value)) => length = value.parse().expect("it is a number"),
                _ if line.trim().is_empty() => break,
                _ => {}
            }
        }
        let mut body = vec![0; length];
        self.output.read_exact(&mut body).expect("the body is whole");
        serde_json::from_slice(&body).expect("it is JSON")
    }

    /// The answer to a request.
    pub fn answer(&mut self, id: i64) -> Value {
        loop {
            let message = self.receive();
            if message["id"] == json!(id) && message.get("method").is_none() {
                return message;
            }
            self.told.push(message);
        }
    }

    /// The result of a request.
    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        let answer = self.answer(id);
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// What is wrong with a text, in the version that was sent last.
    pub fn diagnostics(&mut self, uri: &str) -> Vec<Value> {
        let version = self.version;
        let is_it = |message: &Value| {
            message["method"] == "textDocument/publishDiagnostics"
                && message["params"]["uri"] == uri
                && message["params"]["version"] == version
        };
        loop {
            if let Some(at) = self.told.iter().rposition(is_it) {
                return self.told.remove(at)["params"]["diagnostics"].as_array().expect("it is a list").clone();
            }
            let message = self.receive();
            self.told.push(message);
        }
    }

    /// The version that was sent last.
    pub fn diagnostics_version(&self) -> i64 {
        self.version
    }

    /// What is wrong with a text in a version, told anew.
    pub fn diagnostics_of(&mut self, uri: &str, version: i64) -> Vec<String> {
        let last = std::mem::replace(&mut self.version, version);
        let faults = self.faults(uri);
        self.version = last;
        faults
    }

    /// `LINE:CHARACTER CODE MESSAGE` of each diagnostic.
    pub fn faults(&mut self, uri: &str) -> Vec<String> {
        self.diagnostics(uri).iter().map(shown).collect()
    }

    pub fn open(&mut self, uri: &str, text: &str) {
        self.version += 1;
        let document = json!({"uri": uri, "languageId": "yaml", "version": self.version, "text": text});
        self.notify("textDocument/didOpen", json!({"textDocument": document}));
    }

    /// Puts a text in the place of a range, given by two pairs of a line and a character.
    pub fn edit(&mut self, uri: &str, (start, end): ((u64, u64), (u64, u64)), text: &str) {
        self.version += 1;
        let position = |(line, character): (u64, u64)| json!({"line": line, "character": character});
        let change = json!({"range": {"start": position(start), "end": position(end)}, "text": text});
        let document = json!({"uri": uri, "version": self.version});
        self.notify("textDocument/didChange", json!({"textDocument": document, "contentChanges": [change]}));
    }

    /// Puts all of a text anew.
    pub fn replace(&mut self, uri: &str, text: &str) {
        self.version += 1;
        let document = json!({"uri": uri, "version": self.version});
        self.notify("textDocument/didChange", json!({"textDocument": document, "contentChanges": [{"text": text}]}));
    }

    /// Asks about a place.
    pub fn at(&mut self, method: &str, uri: &str, (line, character): (u64, u64)) -> Value {
        let position = json!({"line": line, "character": character});
        self.request(method, json!({"textDocument": {"uri": uri}, "position": position}))
    }

    /// The labels of what may be written at a place.
    pub fn completions(&mut self, uri: &str, at: (u64, u64)) -> Vec<String> {
        let offered = self.at("textDocument/completion", uri, at);
        offered
            .as_array()
            .expect("it is a list")
            .iter()
            .map(|item| item["label"].as_str().unwrap_or_default().to_owned())
            .collect()
    }

    /// What may be done at a place.
    pub fn actions(&mut self, uri: &str, (line, character): (u64, u64)) -> Vec<Value> {
        let position = json!({"line": line, "character": character});
        let params = json!({"textDocument": {"uri": uri}, "range": {"start": position, "end": position}, "context": {"diagnostics": []}});
        self.request("textDocument/codeAction", params).as_array().expect("it is a list").clone()
    }

    /// The most memory that the server had, in MiB.
    pub fn memory_mib(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        Some(line.trim().trim_end_matches(" kB").parse::<u64>().ok()? / 1024)
    }

    /// Shuts the server down; the code that it ends with.
    pub fn stop(mut self) -> Option<i32> {
        self.request("shutdown", Value::Null);
        self.notify("exit", Value::Null);
        self.child.wait().expect("it ends").code()
    }

    /// Ends what the server reads; the code that it ends with.
    pub fn hang_up(mut self) -> Option<i32> {
        self.input = None;
        self.child.wait().expect("it ends").code()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// `LINE:CHARACTER CODE MESSAGE` of a diagnostic.
pub fn shown(found: &Value) -> String {
    let start = &found["range"]["start"];
    format!(
        "{}:{} {} {}",
        start["line"],
        start["character"],
        found["code"].as_str().unwrap_or_default(),
        found["message"].as_str().unwrap_or_default()
    )
}

/// Says what is left out, past the test runner, which keeps what is printed by tests that pass.
pub fn left_out(what: &str) {
    use std::io::Write as _;
    drop(std::io::stderr().write_all(format!("left out: {what}\n").as_bytes()));
}
