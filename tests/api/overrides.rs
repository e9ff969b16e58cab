//! Kinds in databases of their own (`--store-override`) are served like all others.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{CRONTABS, crontab, crontabs_file};
use crate::server::{Answer, Folder, Server};
use crate::store::postgres;

const JSON: &[(&str, &str)] = &[("Content-Type", "application/json")];

fn post(server: &Server, path: &str, object: &Value) -> Answer {
    server.send("POST", path, JSON, Some(object.to_string().as_bytes()))
}

/// A server whose CronTabs are in `tabs`, and its events in memory.
fn start(data_dir: &Path, tabs: &str, arguments: &[&str]) -> Server {
    let file = crontabs_file();
    let tabs = format!("stable.example.com/crontabs={tabs}");
    let common = ["--crds", file.to_str().expect("the path is text"), "--store-override", &tabs];
    Server::start(data_dir, &[&common[..], &["--store-override", "/events=memory"], arguments].concat())
}

/// Waits until something holds, a minute at most.
pub fn until(what: &str, holds: impl Fn() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_namespace_takes_along_what_is_kept_elsewhere() {
    let folder = Folder::for_test();
    let tabs = format!("sqlite:{}", folder.0.join("tabs.db").display());
    let server = start(&folder.0, &tabs, &[]);
    let team = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}});
    assert_eq!(post(&server, "/api/v1/namespaces", &team).status, 201);
    let in_team = CRONTABS.replace("/default/", "/team/");
    assert_eq!(post(&server, &in_team, &crontab("nightly")).status, 201);
    assert_eq!(post(&server, CRONTABS, &crontab("kept")).status, 201);
    let event = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "type": "Normal", "reason": "Made",
        "involvedObject": {"kind": "CronTab", "namespace": "team", "name": "nightly"},
    });
    let events = "/api/v1/namespaces/team/events";
    assert_eq!(post(&server, events, &event).status, 201);

    assert_eq!(server.send("DELETE", "/api/v1/namespaces/team", &[], None).status, 200);
    until("the namespace goes", || server.send("GET", "/api/v1/namespaces/team", &[], None).status == 404);
    for path in [&in_team, events] {
        assert_eq!(server.send("GET", path, &[], None).json()["items"], json!([]), "{path}");
    }
    assert_ne!(post(&server, &in_team, &crontab("late")).status, 201);
    assert_eq!(server.send("GET", &format!("{CRONTABS}/kept"), &[], None).status, 200);
}

#[test]
fn lists_pages_and_watches_go_by_the_revisions_of_their_database() {
    let folder = Folder::for_test();
    let tabs = format!("sqlite:{}", folder.0.join("tabs.db").display());
    let server = start(&folder.0, &tabs, &[]);
    for name in ["a", "b", "c"] {
        assert_eq!(post(&server, CRONTABS, &crontab(name)).status, 201);
    }
    let page = server.send("GET", &format!("{CRONTABS}?limit=2"), &[], None).json();
    let revision = page["metadata"]["resourceVersion"].as_str().expect("it has one").to_owned();
    assert_eq!(page["metadata"]["remainingItemCount"], json!(1));
    // The main database is far ahead, with namespaces and what is in them.
    let main = server.send("GET", "/api/v1/namespaces", &[], None).json();
    assert_ne!(main["metadata"]["resourceVersion"], page["metadata"]["resourceVersion"]);
    assert_eq!(post(&server, CRONTABS, &crontab("d")).status, 201);
    let token = page["metadata"]["continue"].as_str().expect("there is a second page");
    let rest = server.send("GET", &format!("{CRONTABS}?limit=2&continue={token}"), &[], None).json();
    assert_eq!(rest["items"].as_array().map(Vec::len), Some(1));
    let watch = format!("{CRONTABS}?watch=true&resourceVersion={revision}&timeoutSeconds=1");
    let seen = server.send("GET", &watch, &[], None);
    let lines: Vec<Value> =
        seen.body.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect();
    let names: Vec<_> = lines.iter().map(|line| (&line["type"], &line["object"]["metadata"]["name"])).collect();
    assert_eq!(names, [(&json!("ADDED"), &json!("d"))]);
}

#[test]
fn each_database_has_its_health_check() {
    let folder = Folder::for_test();
    let tabs = format!("sqlite:{}", folder.0.join("tabs.db").display());
    let server = start(&folder.0, &tabs, &[]);
    let ready = server.send("GET", "/readyz?verbose", &[], None);
    let text = String::from_utf8_lossy(&ready.body).into_owned();
    let checks: Vec<_> = text.lines().filter(|line| line.starts_with("[+]etcd")).collect();
    let expect = [
        "[+]etcd ok",
        "[+]etcd-readiness ok",
        "[+]etcd-override-0 ok",
        "[+]etcd-override-readiness-0 ok",
        "[+]etcd-override-1 ok",
        "[+]etcd-override-readiness-1 ok",
    ];
    assert_eq!(checks, expect);
    assert_eq!(server.send("GET", "/healthz/etcd-override-1", &[], None).status, 200);
}

#[test]
fn servers_that_share_both_databases_are_one() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
    let Some(main) = runtime.block_on(postgres::new_database()) else { return };
    let Some(tabs) = runtime.block_on(postgres::new_database()) else { return };
    let folder = Folder::for_test();
    let arguments = ["--store", &main];
    let one = start(&folder.0.join("one"), &tabs, &arguments);
    let other = start(&folder.0.join("other"), &tabs, &arguments);
    for round in 0..10 {
        let (from, to) = if round % 2 == 0 { (&one, &other) } else { (&other, &one) };
        let name = format!("tab-{round}");
        assert_eq!(post(from, CRONTABS, &crontab(&name)).status, 201);
        assert_eq!(to.send("GET", &format!("{CRONTABS}/{name}"), &[], None).status, 200, "{round}");
    }
}

#[test]
fn an_override_that_is_none_is_wrong_use() {
    let folder = Folder::for_test();
    let (code, said) = Server::fail_to_start(&folder.0, &["--store-override", "/namespaces=memory"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("stays in the main database"), "{said}");
}
