//! A process that serves control planes, and their clients.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::Request;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};

/// How long something may take that is waited for, also on a busy machine.
pub const WAIT_MAX: Duration = Duration::from_secs(60);

/// The real binary. It is killed, and its folder removed, with this.
pub struct Server {
    child: Child,
    pub folder: PathBuf,
    pub main: Plane,
}

/// A control plane and its administrator.
#[derive(Clone)]
pub struct Plane {
    pub name: String,
    pub kubeconfig: String,
    client: kube::Client,
}

impl Server {
    pub async fn start(arguments: &[&str]) -> Server {
        Server::start_by(Command::new(env!("CARGO_BIN_EXE_skiff")), arguments).await
    }

    /// With so many file descriptors, and so few connections.
    #[cfg(unix)]
    pub async fn start_with_descriptors(descriptors_max: usize) -> Server {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("ulimit -n {descriptors_max} && exec \"$0\" \"$@\"")]);
        shell.arg(env!("CARGO_BIN_EXE_skiff"));
        Server::start_by(shell, &[]).await
    }

    async fn start_by(mut command: Command, arguments: &[&str]) -> Server {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("skiff-planes-{}-{number}", std::process::id()));
        // What an earlier run left behind.
        _ = std::fs::remove_dir_all(&folder);
        command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(&folder).args(arguments);
        if !arguments.contains(&"--store") {
            command.args(["--store", "memory"]);
        }
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the binary was built with the tests");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("stdout is a pipe");
        BufReader::new(stdout).read_line(&mut line).expect("stdout is readable");
        assert!(line.starts_with("ready "), "the server ended before it was ready");
        let kubeconfig = std::fs::read_to_string(folder.join("kubeconfig")).expect("it is written");
        let main = Plane::new("main", kubeconfig).await;
        Server { child, folder, main }
    }

    /// Makes a control plane; `wanted` are the fields of the request.
    pub async fn create(&self, wanted: Value) -> Plane {
        let (code, plane) = self.main.call("POST", "/skiff/v1/planes", Some(wanted)).await;
        assert_eq!(code, 201, "{plane}");
        let text = |name: &str| plane[name].as_str().unwrap_or_default().to_owned();
        Plane::new(&text("name"), text("kubeconfig")).await
    }

    pub async fn fork(&self, from: &Plane) -> Plane {
        self.create(json!({ "from": from.name })).await
    }

    pub async fn delete(&self, plane: &Plane) {
        let (code, answer) = self.main.call("DELETE", &format!("/skiff/v1/planes/{}", plane.name), None).await;
        assert_eq!(code, 200, "{answer}");
    }

    /// What the process has for itself, in KiB.
    pub fn memory_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("Linux tells");
        line.trim().trim_end_matches(" kB").trim().parse().expect("it is a number")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
        _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Plane {
    pub async fn new(name: &str, kubeconfig: String) -> Plane {
        let read = Kubeconfig::from_yaml(&kubeconfig).expect("it is a kubeconfig");
        let config = kube::Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await;
        let client = kube::Client::try_from(config.expect("it has a context")).expect("it has certificates");
        Plane { name: name.to_owned(), kubeconfig, client }
    }

    /// `https://host:port`
    pub fn url(&self) -> &str {
        self.kubeconfig.lines().find_map(|line| line.trim().strip_prefix("server: ")).expect("it has a server")
    }

    /// The same, asked on a connection that nobody else uses.
    pub async fn with_a_connection_of_its_own(&self) -> Plane {
        Plane::new(&self.name, self.kubeconfig.clone()).await
    }

    /// The same server, asked with the certificate of another, or with a token.
    pub async fn asked_with(&self, credentials: &str) -> Plane {
        let own = Kubeconfig::from_yaml(&self.kubeconfig).expect("it is a kubeconfig");
        let mut mixed = match Kubeconfig::from_yaml(credentials) {
            Ok(others) if !others.auth_infos.is_empty() => others,
            _ => {
                let mut with_token = own.clone();
                let user = json!({ "name": "skiff-admin", "user": { "token": credentials } });
                with_token.auth_infos = vec![serde_json::from_value(user).expect("it is a user")];
                with_token
            }
        };
        mixed.clusters = own.clusters;
        let config = kube::Config::from_custom_kubeconfig(mixed, &KubeConfigOptions::default()).await;
        let client = kube::Client::try_from(config.expect("it has a context")).expect("it has certificates");
        Plane { name: self.name.clone(), kubeconfig: self.kubeconfig.clone(), client }
    }

    async fn send(&self, method: &str, path: &str, body: Option<Value>) -> hyper::Response<Body> {
        self.try_send(method, path, body).await.expect("the server answers")
    }

    async fn try_send(&self, method: &str, path: &str, body: Option<Value>) -> kube::Result<hyper::Response<Body>> {
        let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        let media_type = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let request = Request::builder().method(method).uri(path).header("content-type", media_type);
        let request = request.body(Body::from(body)).expect("it is a request");
        self.client.send(request).await
    }

    /// The code of an answer; `None` where the connection ends without one.
    pub async fn try_call(&self, method: &str, path: &str) -> Option<u16> {
        self.try_send(method, path, None).await.ok().map(|answer| answer.status().as_u16())
    }

    /// Code and body of an answer.
    pub async fn call(&self, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        let answer = self.send(method, path, body).await;
        let code = answer.status().as_u16();
        let bytes = answer.into_body().collect().await.expect("the answer is whole").to_bytes();
        (code, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
    }

    pub async fn get(&self, path: &str) -> Value {
        let (code, found) = self.call("GET", path, None).await;
        assert_eq!(code, 200, "{path}: {found}");
        found
    }

    /// The column AGE of an object, as kubectl shows it.
    pub async fn age(&self, path: &str, name: &str) -> String {
        let request = Request::builder().uri(format!("{path}/{name}"));
        let request = request.header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io");
        let request = request.body(Body::empty()).expect("it is a request");
        let answer = self.client.send(request).await.expect("the server answers");
        let bytes = answer.into_body().collect().await.expect("the answer is whole").to_bytes();
        let table: Value = serde_json::from_slice(&bytes).expect("it is JSON");
        let columns = table["columnDefinitions"].as_array().expect("a table has columns");
        let at = columns.iter().position(|column| column["name"] == "Age").expect("one is the age");
        table["rows"][0]["cells"][at].as_str().expect("it is a text").to_owned()
    }

    pub async fn has(&self, path: &str) -> bool {
        self.call("GET", path, None).await.0 == 200
    }

    pub async fn post(&self, path: &str, body: Value) -> Value {
        let (code, made) = self.call("POST", path, Some(body)).await;
        assert_eq!(code, 201, "{path}: {made}");
        made
    }

    /// Makes or changes the ConfigMap `name` in the namespace `default`.
    pub async fn put_map(&self, name: &str, text: &str) -> Value {
        let map = json!({ "metadata": { "name": name }, "data": { "text": text } });
        match self.call("POST", MAPS, Some(map.clone())).await {
            (201, made) => made,
            _ => self.call("PUT", &format!("{MAPS}/{name}"), Some(map)).await.1,
        }
    }

    /// The text in a ConfigMap.
    pub async fn map(&self, name: &str) -> Option<String> {
        let (code, found) = self.call("GET", &format!("{MAPS}/{name}"), None).await;
        (code == 200).then(|| found["data"]["text"].as_str().unwrap_or_default().to_owned())
    }

    /// Follows a watch: its events come line by line.
    pub async fn watch(&self, path: &str) -> Events {
        let answer = self.send("GET", path, None).await;
        assert_eq!(answer.status().as_u16(), 200);
        Events { body: answer.into_body(), read: Vec::new() }
    }

    pub async fn set_clock(&self, fields: Value) -> Value {
        let (code, clock) = self.call("PUT", "/skiff/v1/clock", Some(fields)).await;
        assert_eq!(code, 200, "{clock}");
        clock
    }

    /// Waits until the fault of this number has met a request.
    pub async fn until_hit(&self, fault: u32) {
        let hit = async {
            while self.get(&format!("/skiff/v1/faults/{fault}")).await["hits"] == 0 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        assert!(tokio::time::timeout(WAIT_MAX, hit).await.is_ok(), "no request meets fault {fault}");
    }

    /// Waits until `path` is answered with this code.
    pub async fn until(&self, path: &str, code: u16) {
        let reached = async {
            while self.call("GET", path, None).await.0 != code {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let in_time = tokio::time::timeout(WAIT_MAX, reached).await;
        assert!(in_time.is_ok(), "{path} is not {code} in time");
    }
}

pub const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// The events of a watch.
pub struct Events {
    body: Body,
    read: Vec<u8>,
}

impl Events {
    /// Type and name of the next; `None` at the end.
    pub async fn next(&mut self) -> Option<(String, String)> {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=end).collect();
                let event: Value = serde_json::from_slice(&line).expect("it is an event");
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                return Some((text(&event["type"]), text(&event["object"]["metadata"]["name"])));
            }
            let frame = tokio::time::timeout(WAIT_MAX, self.body.frame()).await.expect("it goes on or ends");
            self.read.extend_from_slice(&frame?.ok()?.into_data().unwrap_or_default());
        }
    }
}
