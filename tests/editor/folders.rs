//! The folders of a workspace, the project's file as it is typed, and definitions of a live server.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::json;

use crate::client::{Client, Folder};
use crate::session::BOATS;

const BOAT: &str = "apiVersion: harbour.example.com/v1\nkind: Boat\nmetadata: {name: a}\nspec: {length: 7}\n";

/// A server with several folders.
fn client(folders: &[&Folder]) -> Client {
    let mut client = Client::unstarted();
    let folders: Vec<_> =
        folders.iter().map(|folder| json!({"uri": format!("file://{}", folder.0.display()), "name": "x"})).collect();
    let params = json!({"processId": null, "rootUri": null, "capabilities": {}, "workspaceFolders": folders});
    let answer = client.request("initialize", params);
    assert_eq!(answer["capabilities"]["workspace"]["workspaceFolders"]["changeNotifications"], true);
    client.notify("initialized", json!({}));
    client
}

#[test]
fn each_folder_is_a_project() {
    let strict = Folder::new("strict", &[("crds/boats.yaml", &BOATS.replace("minimum: 2", "minimum: 8"))]);
    let plain = Folder::new("plain", &[("boats.yaml", BOATS), ("skiff.toml", "[lint]\non = [\"enum-camel-case\"]\n")]);
    let mut client = client(&[&strict, &plain]);
    let in_strict = strict.uri("a.yaml");
    client.open(&in_strict, BOAT);
    assert!(client.faults(&in_strict)[0].contains("greater than or equal to 8"));
    let in_plain = plain.uri("a.yaml");
    client.open(&in_plain, BOAT);
    assert_eq!(client.faults(&in_plain), Vec::<String>::new());
    // Each has its own lints, and leads to its own definition.
    let crd = plain.uri("boats.yaml");
    client.open(&crd, BOATS);
    assert!(client.faults(&crd)[0].contains("enum-camel-case"));
    let target = client.at("textDocument/definition", &in_plain, (3, 8));
    assert_eq!(target["uri"], crd.as_str(), "{target}");
    // A folder that comes later, and one that goes.
    let later = Folder::new("later", &[("boats.yaml", &BOATS.replace("minimum: 2", "minimum: 9"))]);
    let folder = |folder: &Folder| json!({"uri": format!("file://{}", folder.0.display()), "name": "x"});
    let event = json!({"added": [folder(&later)], "removed": [folder(&strict)]});
    client.notify("workspace/didChangeWorkspaceFolders", json!({"event": event}));
    let in_later = later.uri("a.yaml");
    client.open(&in_later, BOAT);
    assert!(client.faults(&in_later)[0].contains("greater than or equal to 9"));
    assert_eq!(client.stop(), Some(0));
}

#[test]
fn the_project_is_checked_as_it_is_typed() {
    let folder = Folder::new("settings", &[("crds/boats.yaml", BOATS), ("skiff.toml", "definitions = [\"crds\"]\n")]);
    let mut client = client(&[&folder]);
    let uri = folder.uri("skiff.toml");
    client.open(&uri, "definitions = [\"crds\"]\n");
    assert_eq!(client.faults(&uri), Vec::<String>::new());
    client.edit(&uri, ((1, 0), (1, 0)), "[lint]\nof = []\non = [\"enum-camel-cas\"]\nseverity = \"all\"\n");
    let faults = client.faults(&uri);
    assert_eq!(faults.len(), 3, "{faults:?}");
    assert!(faults[0].starts_with("2:0 settings unknown key `lint.of`"), "{faults:?}");
    assert!(faults[1].starts_with("3:6 settings no lint is called `enum-camel-cas` (did you mean"), "{faults:?}");
    assert!(faults[2].starts_with("4:11 settings `lint.severity` is"), "{faults:?}");
    client.edit(&uri, ((2, 0), (5, 0)), "on = [\"enum-camel-case\"]\n");
    assert_eq!(client.faults(&uri), Vec::<String>::new());
    let told = client.at("textDocument/hover", &uri, (0, 2));
    let meaning = "`definitions`: Files, folders or patterns with definitions, as seen from this file.";
    assert_eq!(told["contents"]["value"], meaning);
    assert!(client.completions(&uri, (2, 7)).contains(&"enum-camel-case".to_owned()));
    assert_eq!(client.completions(&uri, (3, 0)), ["severity", "on", "off"]);
    // What it says counts from when it is saved.
    let crd = folder.uri("crds/boats.yaml");
    client.open(&crd, BOATS);
    assert_eq!(client.faults(&crd), Vec::<String>::new());
    let text = "definitions = [\"crds\"]\n[lint]\non = [\"enum-camel-case\"]\n";
    std::fs::write(folder.0.join("skiff.toml"), text).expect("the folder is ours");
    client.notify("textDocument/didSave", json!({"textDocument": {"uri": uri}}));
    assert!(client.faults(&crd)[0].contains("enum-camel-case"));
    assert_eq!(client.stop(), Some(0));
}

/// An API server of its own, which goes with the test.
struct Server(Child);

impl Server {
    /// A server with definitions; its kubeconfig is in the folder.
    fn start(folder: &Folder) -> Server {
        let data = folder.0.join("data");
        let mut child = Command::new(env!("CARGO_BIN_EXE_skiff"))
            .args(["serve", "--store", "memory", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(&data)
            .arg("--crds")
            .arg(folder.0.join("crds"))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program runs");
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines().map_while(Result::ok);
        assert!(lines.any(|line| line.starts_with("ready") || line.contains("serves the Kubernetes API")));
        // What it prints later is read, so that it is not held up.
        std::thread::spawn(move || lines.for_each(drop));
        Server(child)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

#[test]
fn definitions_come_from_a_kubeconfig() {
    let cluster = Folder::new("cluster", &[("crds/boats.yaml", BOATS)]);
    let _server = Server::start(&cluster);
    let empty = Folder::new("empty", &[("x.yaml", "a: 1\n")]);
    let mut client = Client::unstarted();
    let options = json!({"kubeconfig": cluster.0.join("data/kubeconfig")});
    let folders = json!([{"uri": format!("file://{}", empty.0.display()), "name": "x"}]);
    let params =
        json!({"processId": null, "capabilities": {}, "workspaceFolders": folders, "initializationOptions": options});
    client.request("initialize", params);
    client.notify("initialized", json!({}));
    let uri = empty.uri("a.yaml");
    client.open(&uri, &BOAT.replace('7', "1"));
    // They may come after the text.
    let version = client.diagnostics_version();
    let mut faults = client.faults(&uri);
    while faults.iter().any(|fault| fault.contains("unknown-kind")) {
        faults = client.diagnostics_of(&uri, version);
    }
    assert!(faults[0].contains("greater than or equal to 2"), "{faults:?}");
    assert_eq!(client.completions(&uri, (1, 6)).iter().filter(|kind| *kind == "Boat").count(), 1);
    assert_eq!(client.stop(), Some(0));
}
