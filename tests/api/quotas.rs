//! Quotas while many write at once.

use serde_json::{Value, json};

use super::replicas::new_database;
use crate::server::{Folder, Server};

const JSON: (&str, &str) = ("Content-Type", "application/json");
const MERGE: (&str, &str) = ("Content-Type", "application/merge-patch+json");
const QUOTAS: &str = "/api/v1/namespaces/default/resourcequotas";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
/// How many objects are made at once.
const AT_ONCE: usize = 200;

/// A server whose controllers do nothing: what is counted is counted by admission alone.
fn start(folder: &Folder, name: &str, store: &str) -> Server {
    Server::start(&folder.0.join(name), &["--store", store, "--controllers=-*"])
}

/// Makes a quota of so many objects, none of which are used yet.
fn limit(server: &Server, name: &str, resource: &str, hard: usize) {
    let quota = json!({"metadata": {"name": name}, "spec": {"hard": {resource: hard.to_string()}}});
    let made = server.send("POST", QUOTAS, &[JSON], Some(quota.to_string().as_bytes()));
    assert_eq!(made.status, 201, "{}", made.json());
    let status = json!({"status": {"hard": {resource: hard.to_string()}, "used": {resource: "0"}}}).to_string();
    let path = format!("{QUOTAS}/{name}/status");
    assert_eq!(server.send("PATCH", &path, &[MERGE], Some(status.as_bytes())).status, 200);
}

/// Makes objects at once, on the servers in turn; the statuses that are answered, sorted.
fn make_at_once(servers: &[&Server]) -> Vec<u16> {
    let make = |number: usize| {
        let object = json!({"metadata": {"name": format!("m{number}")}}).to_string();
        servers[number % servers.len()].send("POST", MAPS, &[JSON], Some(object.as_bytes())).status
    };
    let mut statuses: Vec<u16> = std::thread::scope(|scope| {
        let made: Vec<_> = (0..AT_ONCE).map(|number| scope.spawn(move || make(number))).collect();
        made.into_iter().map(|made| made.join().expect("it is answered")).collect()
    });
    statuses.sort_unstable();
    statuses
}

fn used(server: &Server, name: &str) -> Value {
    server.send("GET", &format!("{QUOTAS}/{name}"), &[], None).json()["status"]["used"].clone()
}

#[test]
fn objects_that_are_made_at_once_are_all_counted_once() {
    let folder = Folder::for_test();
    let server = start(&folder, "one", "memory");
    limit(&server, "q", "count/configmaps", 1_000);
    limit(&server, "r", "configmaps", 1_000);
    assert_eq!(make_at_once(&[&server]), [201; AT_ONCE]);
    assert_eq!(used(&server, "q"), json!({"count/configmaps": AT_ONCE.to_string()}));
    assert_eq!(used(&server, "r"), json!({"configmaps": AT_ONCE.to_string()}));
}

#[test]
fn claims_are_limited_by_the_classes_of_their_devices() {
    let folder = Folder::for_test();
    let server = start(&folder, "one", "memory");
    let devices = "gpu.deviceclass.resource.k8s.io/devices";
    limit(&server, "q", devices, 3);
    let make = |name: &str, count: usize| {
        let request = json!({"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": count}});
        let claim = json!({"metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}}).to_string();
        let claims = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";
        server.send("POST", claims, &[JSON], Some(claim.as_bytes()))
    };
    assert_eq!(make("a", 2).status, 201);
    let refused = make("b", 2);
    let why = format!("exceeded quota: q, requested: {devices}=2, used: {devices}=2, limited: {devices}=3");
    assert_eq!(refused.status, 403);
    assert!(refused.json()["message"].as_str().unwrap_or_default().ends_with(&why), "{}", refused.json());
    assert_eq!(used(&server, "q"), json!({devices: "2"}));
}

#[test]
fn no_more_objects_are_made_at_once_than_a_quota_allows() {
    let folder = Folder::for_test();
    let server = start(&folder, "one", "memory");
    limit(&server, "q", "count/configmaps", 50);
    let expected: Vec<u16> = [vec![201; 50], vec![403; AT_ONCE - 50]].concat();
    assert_eq!(make_at_once(&[&server]), expected);
    assert_eq!(used(&server, "q"), json!({"count/configmaps": "50"}));
}

#[test]
fn objects_that_are_made_at_once_on_two_servers_of_a_database_are_all_counted_once() {
    let Some(url) = new_database() else { return };
    let folder = Folder::for_test();
    let (one, other) = (start(&folder, "one", &url), start(&folder, "other", &url));
    limit(&one, "q", "count/configmaps", 1_000);
    assert_eq!(make_at_once(&[&one, &other]), [201; AT_ONCE]);
    assert_eq!(used(&one, "q"), json!({"count/configmaps": AT_ONCE.to_string()}));
}
