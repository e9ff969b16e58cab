//! `skiff plane`.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::server::{MAPS, Plane, Server};

/// The code of a command, its standard output and its standard error.
fn plane(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_skiff"));
    let done = command.arg("plane").args(arguments).arg("--data-dir").arg(folder).output().expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it is UTF-8");
    (done.status.code(), text(done.stdout), text(done.stderr))
}

#[tokio::test(flavor = "multi_thread")]
async fn planes_are_made_copied_listed_and_deleted() {
    let server = Server::start(&[]).await;
    server.main.put_map("a", "1").await;
    let kubeconfig = server.folder.join("one.kubeconfig");
    let file = kubeconfig.to_str().expect("it is UTF-8");
    let (code, made, _) = plane(&server.folder, &["fork", "--name", "one", "--write", file]);
    assert_eq!((code, made.starts_with("one  https://127.0.0.1:")), (Some(0), true), "{made}");
    let one = Plane::new("one", std::fs::read_to_string(&kubeconfig).expect("it is written")).await;
    assert_eq!(one.map("a").await.as_deref(), Some("1"));
    let (_, made, _) = plane(&server.folder, &["create", "-o", "json"]);
    let made: Value = serde_json::from_str(&made).expect("it is JSON");
    let other = Plane::new("other", made["kubeconfig"].as_str().expect("it has one").to_owned()).await;
    assert_eq!(other.map("a").await, None);
    let (_, listed, _) = plane(&server.folder, &["list"]);
    assert_eq!(listed.lines().count(), 2, "{listed}");
    let (code, _, said) = plane(&server.folder, &["fork", "--name", "one"]);
    assert_eq!((code, said.contains("planes \"one\" already exists")), (Some(1), true), "{said}");
    let name = made["name"].as_str().expect("one was made up");
    assert_eq!(plane(&server.folder, &["delete", "one", name]).0, Some(0));
    assert_eq!(plane(&server.folder, &["list"]).1, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plane_has_controllers_and_nodes_of_its_own() {
    let server = Server::start(&[]).await;
    let made = |arguments: &[&str]| {
        let (code, made, said) = plane(&server.folder, &[arguments, &["-o", "json"]].concat());
        assert_eq!(code, Some(0), "{said}");
        let made: Value = serde_json::from_str(&made).expect("it is JSON");
        (
            made["name"].as_str().expect("it has one").to_owned(),
            made["kubeconfig"].as_str().expect("it has one").to_owned(),
        )
    };
    let (name, kubeconfig) = made(&["create", "large", "--simulate-nodes", "2,cpu=4"]);
    assert_eq!(name, "large");
    let large = Plane::new("large", kubeconfig).await;
    large.until("/api/v1/nodes/node-1", 200).await;
    assert_eq!(large.get("/api/v1/nodes/node-1").await["status"]["capacity"]["cpu"], "4");
    let (_, kubeconfig) =
        made(&["fork", "--name", "one", "--profile", "cluster", "--controllers", "*,-kube-scheduler"]);
    let one = Plane::new("one", kubeconfig).await;
    one.until("/api/v1/nodes/node-2", 200).await;
    // The others are as the process has them, and a plane may have less than that.
    let (_, kubeconfig) = made(&["create", "least", "--controllers", "-*"]);
    let least = Plane::new("least", kubeconfig).await;
    assert!(!least.has("/api/v1/nodes/node-0").await && !server.main.has("/api/v1/nodes/node-0").await);
    for (arguments, why) in [
        (["--profile", "huge"], "the profile `huge`"),
        (["--controllers", "nonsense"], "not in the list of known controllers"),
        (["--simulate-nodes", "many"], "the nodes to simulate"),
    ] {
        let (code, _, said) = plane(&server.folder, &[&["create"], &arguments[..]].concat());
        assert!(code == Some(1) && said.contains(why), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clocks_are_moved() {
    let server = Server::start(&[]).await;
    plane(&server.folder, &["fork", "--name", "one"]);
    let (code, shown, _) = plane(&server.folder, &["clock", "one", "--set", "2031-01-01T00:00:00Z", "--freeze"]);
    assert_eq!((code, shown.starts_with("2031-01-01T00:00:00Z  "), shown.contains("frozen")), (Some(0), true, true));
    let (_, moved, _) = plane(&server.folder, &["clock", "one", "--advance", "-1h", "-o", "json"]);
    let moved: Value = serde_json::from_str(&moved).expect("it is JSON");
    assert_eq!(moved["time"], "2030-12-31T23:00:00Z");
    assert!(plane(&server.folder, &["clock"]).1.ends_with("  0s\n"));
    assert!(plane(&server.folder, &["clock", "one", "--reset"]).1.ends_with("  0s\n"));
    let (code, _, said) = plane(&server.folder, &["clock", "nobody"]);
    assert_eq!((code, said.contains("not found")), (Some(1), true), "{said}");
    assert!(server.main.has(MAPS).await);
}
