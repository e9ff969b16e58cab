//! The API through the real binary, by kubectl where that is what users do, and by bare requests where it is not.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::kubectl::Kubectl;
use crate::server::{Answer, Folder, Server};

mod process;
mod stopping;
mod connections;
mod replicas;
mod overrides;
mod side_by_side;
mod snapshot;
pub mod identity;
pub mod webhooks;
mod rbac_model;
mod rbac;
mod tries;
mod secrets;
mod owners;
mod plugins;
mod tokens;
mod register;
mod create;
mod read;
mod apply;
mod change;
mod delete;
mod definitions;
mod watch;
mod discover;
mod bad_input;
mod verbs;
mod statuses;
mod corners;
mod limits;
mod busy;
mod memory;
mod streams;
mod floods;
mod core_apply;
mod core_kinds;
mod connect;
mod every_kind;
mod kind_updates;
mod kinds_kubectl;
mod reviews;
mod foreign;
mod policies;
mod quotas;
mod static_manifests;
mod node_restriction;
mod core_kubectl;
mod namespaces;
mod garbage;
mod protobuf;
mod versions;
mod documents;
mod placement;
mod endings;
mod volumes;
mod cluster_details;
mod workloads;

/// How long a controller may take, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
pub const CRONTABS: &str = "/apis/stable.example.com/v1/namespaces/default/crontabs";

/// Where the tests' definition of CronTab stands: namespaced, with status, scale, columns and a default.
pub fn crontabs_file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/api/crontabs.yaml")
}

/// A server that stores in `folder` and serves CronTabs.
fn serve_crontabs(folder: &Folder, arguments: &[&str]) -> Server {
    let file = crontabs_file();
    let crds = ["--crds", file.to_str().expect("the path is text")];
    Server::start(&folder.0, &[&crds, arguments].concat())
}

/// A server in memory with the CronTab `nightly`.
fn serve_nightly() -> (Server, Folder) {
    let folder = Folder::for_test();
    let server = serve_crontabs(&folder, &["--store", "memory"]);
    let body = crontab("nightly").to_string();
    let json = [("Content-Type", "application/json")];
    assert_eq!(server.send("POST", CRONTABS, &json, Some(body.as_bytes())).status, 201);
    (server, folder)
}

/// Waits until `path` answers what `wanted` accepts, which a controller sees to.
#[track_caller]
fn wait_for(server: &Server, path: &str, wanted: impl Fn(&Answer) -> bool) -> Answer {
    let started = Instant::now();
    loop {
        let answer = server.send("GET", path, &[], None);
        if wanted(&answer) {
            return answer;
        }
        assert!(started.elapsed() < PATIENCE, "{path}: {} {}", answer.status, answer.json());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The smallest valid CronTab.
pub fn crontab(name: &str) -> Value {
    json!({
        "apiVersion": "stable.example.com/v1", "kind": "CronTab", "metadata": {"name": name},
        "spec": {"cronSpec": "* * * * *"},
    })
}

/// A server that serves CronTabs, and kubectl for it.
struct Cluster {
    kubectl: Kubectl,
    server: Server,
    /// Goes last, when nobody writes to it any more.
    _folder: Folder,
}

impl Cluster {
    /// `None` where there is no kubectl, which it says.
    fn start() -> Option<Cluster> {
        let folder = Folder::for_test();
        let server = serve_crontabs(&folder, &["--store", "memory"]);
        Some(Cluster { kubectl: Kubectl::of(&server)?, server, _folder: folder })
    }

    /// As [`Cluster::start`], with one CronTab.
    fn with(object: &Value) -> Option<Cluster> {
        let cluster = Cluster::start()?;
        cluster.kubectl.pipe_ok(&object.to_string(), "create -f -");
        Some(cluster)
    }

    /// Makes a namespace.
    fn create_namespace(&self, name: &str) {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        self.kubectl.pipe_ok(&namespace.to_string(), "apply --server-side -f -");
    }

    /// The value that a JSONPath picks of the CronTab `name`.
    fn field(&self, name: &str, path: &str) -> String {
        self.kubectl.ok(&format!("get crontab {name} -o jsonpath={path}"))
    }
}
