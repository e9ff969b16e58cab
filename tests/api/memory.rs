//! How much memory a server takes that has a limit, under more than fits into it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::Body;
use hyper::Request;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::json;

use super::limits::{SHIPS, send, serve_ships, ship};
use crate::server::{Folder, Server};

pub const LIMIT_BYTES: usize = 96 << 20;
/// Of one connection, as client-go opens them.
const STREAMS: usize = 1000;
const CLIENTS: usize = 200;
const BODY_BYTES: usize = 3 << 20;
/// What the server may answer to a body: it was taken, or it was too much at once.
const ANSWERS: [u16; 2] = [201, 429];

/// What the process has for itself, in bytes, at the most; looked at all the time.
pub struct Peak {
    bytes: Arc<AtomicUsize>,
    ended: Arc<AtomicBool>,
}

impl Peak {
    pub fn of(server: &Server) -> Peak {
        let peak = Peak { bytes: Arc::default(), ended: Arc::default() };
        let (bytes, ended, path) =
            (Arc::clone(&peak.bytes), Arc::clone(&peak.ended), format!("/proc/{}/status", server.id()));
        std::thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                let status = std::fs::read_to_string(&path).unwrap_or_default();
                let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap_or_default();
                let kib: usize = line.trim().trim_end_matches(" kB").parse().unwrap_or_default();
                bytes.fetch_max(kib << 10, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        peak
    }

    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}

impl Drop for Peak {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
    }
}

/// How much the process has for itself now, in bytes.
fn own_bytes(server: &Server) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap_or_default();
    let kib: usize = line.trim().trim_end_matches(" kB").parse().unwrap_or_default();
    kib << 10
}

fn eventually(holds: impl Fn() -> bool) {
    let begun = std::time::Instant::now();
    while !holds() {
        assert!(begun.elapsed() < super::PATIENCE, "it does not come to that");
        std::thread::sleep(Duration::from_millis(20));
    }
}

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const TEXT_BYTES: usize = 900_000;

fn config_map(name: &str) -> serde_json::Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"text": "x".repeat(TEXT_BYTES)}})
}

#[test]
fn a_database_in_memory_refuses_what_exceeds_its_part_of_the_limit() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory", "--memory-limit", "96Mi"]);
    let peak = Peak::of(&server);
    let made = |at: usize| send(&server, "POST", CONFIG_MAPS, &config_map(&format!("map-{at}")));
    let mut stored = 0;
    let refused = loop {
        let answer = made(stored);
        if answer.status != 201 {
            break answer;
        }
        stored += 1;
        assert!(stored < 300, "all of them are stored");
    };
    let told = refused.json();
    let expected = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "etcdserver: mvcc: database space exceeded", "code": 500});
    assert_eq!(told, expected);
    assert!(stored * TEXT_BYTES > LIMIT_BYTES / 4, "{stored} are stored");
    // Reads and deletions go on, and make room.
    assert_eq!(server.send("GET", &format!("{CONFIG_MAPS}/map-0"), &[], None).status, 200);
    for at in 0..2 {
        assert_eq!(server.send("DELETE", &format!("{CONFIG_MAPS}/map-{at}"), &[], None).status, 200);
    }
    assert_eq!(made(0).status, 201);
    assert_eq!(server.send("GET", "/readyz", &[], None).status, 200);
    assert!(peak.bytes() < LIMIT_BYTES, "{} MiB", peak.bytes() >> 20);
}

#[test]
fn a_list_of_a_built_in_kind_is_never_in_memory_as_a_whole() {
    const COUNT: usize = 60;
    const LIST_LIMIT_BYTES: usize = 160 << 20;
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--durability", "relaxed", "--memory-limit", "160Mi"]);
    for at in 0..COUNT {
        assert_eq!(send(&server, "POST", CONFIG_MAPS, &config_map(&format!("map-{at:03}"))).status, 201);
    }
    let peak = Peak::of(&server);
    let answer = server.send("GET", CONFIG_MAPS, &[], None);
    assert_eq!(answer.status, 200);
    assert!(answer.body.starts_with(br#"{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":""#));
    let list = answer.json();
    let items = list["items"].as_array().expect("it has items");
    // The first is kube-root-ca.crt.
    assert_eq!((items.len(), items[8]["metadata"]["name"].as_str()), (COUNT + 1, Some("map-007")));
    assert_eq!((items[8].get("kind"), items[8]["data"]["text"].as_str().map(str::len)), (None, Some(TEXT_BYTES)));
    assert!(peak.bytes() < LIST_LIMIT_BYTES, "{} MiB", peak.bytes() >> 20);
    // What has to be made as a whole, and could not be held, is refused at once.
    let yaml = server.send("GET", CONFIG_MAPS, &[("Accept", "application/yaml")], None);
    assert_eq!(yaml.status, 429);
    assert!(peak.bytes() < LIST_LIMIT_BYTES, "{} MiB", peak.bytes() >> 20);
}

/// A template with so many values that it takes ten times as much decoded as stored.
fn large_template() -> serde_json::Value {
    let container = json!({"name": "c", "image": "i", "args": vec![""; 100_000]});
    json!({"metadata": {"labels": {"a": "b"}}, "spec": {"restartPolicy": "Never", "containers": [container]}})
}

/// Sends a creation until it is taken.
fn create(server: &Server, path: &str, object: &serde_json::Value) {
    eventually(|| {
        let answer = send(server, "POST", path, object);
        assert!(ANSWERS.contains(&answer.status), "{} {}", answer.status, String::from_utf8_lossy(&answer.body));
        answer.status == 201
    });
}

#[test]
fn what_controllers_decode_is_within_the_limit() {
    const OWNED: usize = 40;
    const SCHEDULES: usize = 40;
    const SMALL: usize = 40;
    let folder = Folder::for_test();
    let arguments = ["--profile", "cluster", "--durability", "relaxed", "--memory-limit", "96Mi"];
    let server = Server::start(&folder.0, &arguments);
    let peak = Peak::of(&server);
    let template = large_template();
    let spec = json!({"suspend": true, "template": template});
    for at in 0..OWNED {
        let job =
            json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": format!("j{at}")}, "spec": spec});
        create(&server, "/apis/batch/v1/namespaces/default/jobs", &job);
    }
    let pod = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}});
    for at in 0..SCHEDULES {
        let spec = json!({"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": pod}}});
        let name = json!({"name": format!("c{at}")});
        let cron = json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": name, "spec": spec});
        create(&server, "/apis/batch/v1/namespaces/default/cronjobs", &cron);
    }
    let spec = json!({"replicas": OWNED, "selector": {"matchLabels": {"a": "b"}}, "template": {
        "metadata": template["metadata"], "spec": {"containers": template["spec"]["containers"]}}});
    let set = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "r"}, "spec": spec});
    create(&server, "/apis/apps/v1/namespaces/default/replicasets", &set);
    let made = || {
        let set = server.send("GET", "/apis/apps/v1/namespaces/default/replicasets/r", &[], None).json();
        set["status"]["replicas"].as_u64().unwrap_or_default()
    };
    eventually(|| made() > 4);
    // Beside them, small ones of another namespace are seen to.
    let space = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}});
    create(&server, "/api/v1/namespaces", &space);
    let spec = json!({"replicas": SMALL, "selector": {"matchLabels": {"a": "b"}}, "template": {
        "metadata": template["metadata"], "spec": {"containers": [{"name": "c", "image": "i"}]}}});
    // Its pods together take more than what is not counted.
    let small = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "r"}, "spec": spec});
    create(&server, "/apis/apps/v1/namespaces/other/replicasets", &small);
    eventually(|| {
        let set = server.send("GET", "/apis/apps/v1/namespaces/other/replicasets/r", &[], None).json();
        set["status"]["readyReplicas"] == SMALL
    });
    assert!(peak.bytes() < LIMIT_BYTES * 3 / 2, "{} MiB", peak.bytes() >> 20);
}

#[test]
fn aggregated_roles_are_gathered_within_the_limit() {
    const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    const RULES: usize = 10_000;
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--durability", "relaxed", "--memory-limit", "96Mi"]);
    let peak = Peak::of(&server);
    let part = |name: &str, label: &str, rules: usize| {
        let rule = |at: usize| json!({"apiGroups": [""], "resources": [format!("{name}-{at}")], "verbs": ["get"]});
        let rules: Vec<_> = (0..rules).map(rule).collect();
        let metadata = json!({"name": name, "labels": {"of": label}});
        let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": metadata, "rules": rules});
        create(&server, ROLES, &role);
    };
    let whole = |name: &str, label: &str| {
        let rule = json!({"clusterRoleSelectors": [{"matchLabels": {"of": label}}]});
        let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": name}, "rules": [], "aggregationRule": rule});
        create(&server, ROLES, &role);
    };
    let gathered = |name: &str| {
        let role = server.send("GET", &format!("{ROLES}/{name}"), &[], None).json();
        role["rules"].as_array().map_or(0, Vec::len)
    };
    // Not more: all roles together may have an eighth of the limit.
    let wholes: Vec<_> = (0..2).map(|at| format!("whole-{at}")).collect();
    wholes.iter().for_each(|name| whole(name, "many"));
    for at in 0..3 {
        part(&format!("part-{at}"), "many", RULES);
    }
    eventually(|| wholes.iter().all(|name| gathered(name) == 3 * RULES));
    // More than a role can have, which stops no other.
    for at in 3..8 {
        part(&format!("part-{at}"), "many", RULES);
    }
    whole("other", "few");
    part("few", "few", 2);
    eventually(|| gathered("other") == 2);
    assert!(gathered("whole-0") < 8 * RULES);
    assert!(peak.bytes() < LIMIT_BYTES * 3 / 2, "{} MiB", peak.bytes() >> 20);
}

#[test]
fn a_list_that_is_being_read_is_not_cut_off_by_reads_of_other_kinds() {
    /// More than a quarter of the limit, so the collection doesn't stay in memory beside others once nobody reads it.
    const COUNT: usize = 30;
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--durability", "relaxed", "--memory-limit", "96Mi"]);
    for at in 0..COUNT {
        assert_eq!(send(&server, "POST", CONFIG_MAPS, &config_map(&format!("map-{at:03}"))).status, 201);
    }
    let mut list = ask_slowly(&server, CONFIG_MAPS);
    list.peek(&mut [0]).expect("it is answered");
    for other in ["limitranges", "podtemplates", "replicationcontrollers"] {
        assert_eq!(server.send("GET", &format!("/api/v1/{other}"), &[], None).status, 200);
    }
    let (mut bytes, mut end) = (0, Vec::new());
    let mut buffer = vec![0; 1 << 20];
    while !end.ends_with(b"\r\n0\r\n\r\n") {
        let read = list.read(&mut buffer).expect("it can be read");
        assert!(read > 0, "it ends after {bytes} bytes");
        bytes += read;
        end.extend_from_slice(&buffer[..read]);
        end.drain(..end.len().saturating_sub(10));
    }
    assert!(bytes > COUNT * TEXT_BYTES);
}

const FULL: &str = "/api/v1/namespaces/full/configmaps";

/// A server at 96Mi whose namespace `full` has 108 MB of ConfigMaps.
fn with_a_large_collection(folder: &Folder) -> (Server, Peak) {
    let server = Server::start(&folder.0, &["--durability", "relaxed", "--memory-limit", "96Mi"]);
    let peak = Peak::of(&server);
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "full"}});
    assert_eq!(send(&server, "POST", "/api/v1/namespaces", &namespace).status, 201);
    for at in 0..LARGE_COUNT {
        assert_eq!(send(&server, "POST", FULL, &config_map(&format!("map-{at:03}"))).status, 201);
    }
    (server, peak)
}

const LARGE_COUNT: usize = 120;

fn names(list: &serde_json::Value) -> Vec<&str> {
    let items = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    items.iter().filter_map(|item| item["metadata"]["name"].as_str()).collect()
}

#[test]
fn a_collection_that_memory_can_not_hold_is_read_in_pages_and_by_namespace() {
    let folder = Folder::for_test();
    let (server, peak) = with_a_large_collection(&folder);
    let get = |path: &str| server.send("GET", path, &[], None);
    for path in ["/api/v1/configmaps", FULL, &format!("{FULL}?watch=1")] {
        let answer = get(path);
        assert_eq!(answer.status, 429, "{path}");
        let told = answer.json()["message"].as_str().unwrap_or_default().to_owned();
        assert!(told.contains("the collection is too large for the memory"), "{told}");
    }
    // After this, client-go lists in pages.
    let initial = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    assert_eq!(get(&format!("/api/v1/configmaps?{initial}")).status, 422);
    let one = get(&format!("{FULL}/map-007"));
    assert_eq!((one.status, one.json()["data"]["text"].as_str().map(str::len)), (200, Some(TEXT_BYTES)));
    let named = get(&format!("{FULL}?fieldSelector=metadata.name=map-007")).json();
    assert_eq!(names(&named), ["map-007"]);
    // The other namespaces are listed and watched as ever.
    assert_eq!(
        send(&server, "POST", CONFIG_MAPS, &json!({"metadata": {"name": "mine", "labels": {"a": "b"}}})).status,
        201
    );
    let list = get(CONFIG_MAPS).json();
    assert_eq!(names(&list), ["kube-root-ca.crt", "mine"]);
    assert_eq!(names(&get(&format!("{CONFIG_MAPS}?labelSelector=a=b")).json()), ["mine"]);
    // A page has what is selected, also where that is far behind.
    let last = json!({"metadata": {"name": "zzz", "labels": {"a": "z"}}});
    assert_eq!(send(&server, "POST", CONFIG_MAPS, &last).status, 201);
    assert_eq!(names(&get("/api/v1/configmaps?limit=1&labelSelector=a=z").json()), ["zzz"]);
    // All of it in pages, of the state that the first one shows. client-go begins at any state.
    let first = get("/api/v1/configmaps?limit=50&resourceVersion=0").json();
    assert_eq!(server.send("DELETE", &format!("{FULL}/map-119"), &[], None).status, 200);
    let (mut seen, mut page) = (Vec::new(), first.clone());
    loop {
        seen.extend(names(&page).into_iter().map(str::to_owned));
        assert_eq!(page["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
        let Some(token) = page["metadata"]["continue"].as_str() else { break };
        page = get(&format!("/api/v1/configmaps?limit=50&continue={token}")).json();
    }
    let maps = seen.iter().filter(|name| name.starts_with("map-"));
    assert_eq!(maps.count(), LARGE_COUNT);
    assert!(peak.bytes() < LIMIT_BYTES, "{} MiB", peak.bytes() >> 20);
    drop(server);

    // With more of it, they are all listed.
    let server = Server::start(&folder.0, &["--memory-limit", "512Mi"]);
    let list = server.send("GET", FULL, &[], None).json();
    assert_eq!(list["items"].as_array().map(Vec::len), Some(LARGE_COUNT), "one is gone, and there is kube-root-ca.crt");
}

#[test]
fn a_collection_that_memory_can_not_hold_is_watched_and_its_namespace_deleted() {
    let folder = Folder::for_test();
    let (server, peak) = with_a_large_collection(&folder);
    let newest = server.send("GET", CONFIG_MAPS, &[], None).json()["metadata"]["resourceVersion"].clone();
    let since = newest.as_str().expect("it is text").to_owned();
    let watch = |path: &str| {
        // In this form every event is one chunk.
        let metadata = [("Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")];
        let stream = server.open("GET", path, &metadata, None, super::PATIENCE);
        BufReader::new(stream).lines().map_while(Result::ok).filter(|line| line.starts_with('{'))
    };
    let mut all = watch(&format!("/api/v1/configmaps?watch=1&resourceVersion={since}"));
    let mut mine = watch(&format!("{CONFIG_MAPS}?watch=1"));
    let event = |line: Option<String>| -> (String, String) {
        let event: serde_json::Value = serde_json::from_str(&line.expect("it goes on")).expect("it is JSON");
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        (text(&event["type"]), text(&event["object"]["metadata"]["name"]))
    };
    assert_eq!(event(mine.next()), ("ADDED".to_owned(), "kube-root-ca.crt".to_owned()));
    assert_eq!(send(&server, "POST", FULL, &json!({"metadata": {"name": "other"}})).status, 201);
    assert_eq!(send(&server, "POST", CONFIG_MAPS, &json!({"metadata": {"name": "mine"}})).status, 201);
    assert_eq!(event(mine.next()), ("ADDED".to_owned(), "mine".to_owned()));
    for expected in ["other", "mine"] {
        assert_eq!(event(all.next()), ("ADDED".to_owned(), expected.to_owned()));
    }
    assert!(peak.bytes() < LIMIT_BYTES, "{} MiB", peak.bytes() >> 20);
    assert_eq!(server.send("DELETE", "/api/v1/namespaces/full", &[], None).status, 200);
    eventually(|| server.send("GET", "/api/v1/namespaces/full", &[], None).status == 404);
    eventually(|| server.send("GET", "/api/v1/configmaps", &[], None).status == 200);
    let deleted = all.by_ref().take(LARGE_COUNT).map(|line| event(Some(line))).filter(|(what, _)| what == "DELETED");
    assert_eq!(deleted.count(), LARGE_COUNT);
}

#[test]
fn watches_of_a_collection_that_memory_can_not_hold_are_told_of_all_that_goes_with_its_definition() {
    const PATH: &str = "/apis/example.com/v1/heavies";
    const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--durability", "relaxed", "--memory-limit", "96Mi"]);
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "heavies.example.com"},
        "spec": {
            "group": "example.com", "scope": "Cluster", "names": {"plural": "heavies", "kind": "Heavy"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    });
    assert_eq!(send(&server, "POST", DEFINITIONS, &definition).status, 201);
    eventually(|| server.send("GET", PATH, &[], None).status == 200);
    for at in 0..LARGE_COUNT {
        let object = json!({"apiVersion": "example.com/v1", "kind": "Heavy",
            "metadata": {"name": format!("heavy-{at:03}")}, "text": "x".repeat(TEXT_BYTES)});
        assert_eq!(send(&server, "POST", PATH, &object).status, 201);
    }
    let newest = server.send("GET", &format!("{PATH}?limit=1"), &[], None).json();
    let since = newest["metadata"]["resourceVersion"].as_str().expect("it is text").to_owned();
    let metadata = [("Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")];
    let stream =
        server.open("GET", &format!("{PATH}?watch=1&resourceVersion={since}"), &metadata, None, super::PATIENCE);
    assert_eq!(server.send("DELETE", &format!("{DEFINITIONS}/heavies.example.com"), &[], None).status, 200);
    let lines = BufReader::new(stream).lines().map_while(Result::ok);
    let deleted = lines.filter(|line| line.starts_with('{') && line.contains(r#""type":"DELETED""#));
    assert_eq!(deleted.count(), LARGE_COUNT);
}

#[test]
fn a_collection_that_memory_can_not_hold_is_deleted_at_once() {
    let folder = Folder::for_test();
    let (server, peak) = with_a_large_collection(&folder);
    let kept = json!({"metadata": {"name": "kept", "finalizers": ["example.com/wait"]}});
    assert_eq!(send(&server, "POST", FULL, &kept).status, 201);
    assert_eq!(send(&server, "POST", CONFIG_MAPS, &json!({"metadata": {"name": "mine"}})).status, 201);
    let tried = server.send("DELETE", &format!("{FULL}?dryRun=All"), &[], None);
    assert_eq!(tried.status, 200, "{}", tried.json());
    let selected = format!("{FULL}?fieldSelector=metadata.name!%3Dmap-007");
    let deleted = server.send("DELETE", &selected, &[], None);
    let expected = json!({
        "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Success",
        "details": {"kind": "ConfigMap"}, "code": 200,
    });
    assert_eq!((deleted.status, deleted.json()), (200, expected));
    // A debug build keeps more of what was written than a release build.
    assert!(peak.bytes() < LIMIT_BYTES / 4 * 5, "{} MiB", peak.bytes() >> 20);
    let list = server.send("GET", FULL, &[], None).json();
    let left: Vec<&str> = names(&list).into_iter().filter(|name| *name != "kube-root-ca.crt").collect();
    assert_eq!(left, ["kept", "map-007"]);
    let list = server.send("GET", CONFIG_MAPS, &[], None).json();
    assert_eq!(names(&list), ["kube-root-ca.crt", "mine"], "other namespaces keep theirs");
}

#[test]
fn admission_policies_that_memory_can_not_hold_are_refused() {
    const PATH: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
    const BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";
    const COUNT_MAX: usize = 60;
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--durability", "relaxed", "--memory-limit", "96Mi"]);
    let peak = Peak::of(&server);
    let policy = |at: usize| {
        let validation = |at: usize| json!({"expression": format!("object.metadata.name != 'a{at}'")});
        let rules =
            json!([{"apiGroups": [""], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["secrets"]}]);
        json!({"metadata": {"name": format!("p{at}")}, "spec": {
            "matchConstraints": {"resourceRules": rules}, "validations": (0..300).map(validation).collect::<Vec<_>>(),
        }})
    };
    let binding = |at: usize| {
        let name = format!("p{at}");
        json!({"metadata": {"name": name}, "spec": {"policyName": name, "validationActions": ["Deny"]}})
    };
    let make = |at: usize| match send(&server, "POST", PATH, &policy(at)).status {
        201 => send(&server, "POST", BINDINGS, &binding(at)).status,
        status => status,
    };
    let made = (0..COUNT_MAX).position(|at| make(at) == 429).expect("there are too many in the end");
    assert!(made > 10, "{made}");
    // Everybody else goes on, and so do these once others are gone.
    assert_eq!(send(&server, "POST", CONFIG_MAPS, &json!({"metadata": {"name": "mine"}})).status, 201);
    for at in 0..3 {
        assert_eq!(server.send("DELETE", &format!("{PATH}/p{at}"), &[], None).status, 200);
    }
    assert_eq!(make(made), 201);
    assert!(peak.bytes() < LIMIT_BYTES, "{} MiB", peak.bytes() >> 20);
}

#[test]
fn faults_that_memory_can_not_hold_are_refused() {
    const PATH: &str = "/skiff/v1/faults";
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--memory-limit", "96Mi"]);
    let fault = json!({"delay": "1ns", "match": {"verbs": vec!["put"; 2_000], "name": "x".repeat(1_000)}});
    let made = (0..1_000).position(|_| send(&server, "POST", PATH, &fault).status == 429).expect("they are too many");
    assert!(made > 100, "{made}");
    let first = &server.send("GET", PATH, &[], None).json()["items"][0];
    assert_eq!(first["match"]["verbs"], json!(["put"]), "each verb counts once");
    assert_eq!(server.send("DELETE", PATH, &[], None).status, 200);
    assert_eq!(send(&server, "POST", PATH, &fault).status, 201);
}

#[test]
fn a_watch_does_not_keep_more_in_memory_than_there_is_for_it() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--durability", "relaxed", "--memory-limit", "96Mi"]);
    let peak = Peak::of(&server);
    let watch = server.open("GET", &format!("{CONFIG_MAPS}?watch=1"), &[], None, super::PATIENCE);
    let mut lines = BufReader::new(watch).lines().map_while(Result::ok).filter(|line| line.starts_with('{'));
    assert!(lines.next().is_some_and(|line| line.contains("kube-root-ca.crt")));
    for at in 0..LARGE_COUNT {
        let name = format!("map-{at:03}");
        assert_eq!(send(&server, "POST", CONFIG_MAPS, &config_map(&name)).status, 201, "{name}");
        assert!(lines.next().is_some_and(|line| line.contains(&name)), "{name}");
    }
    assert!(peak.bytes() < LIMIT_BYTES, "{} MiB", peak.bytes() >> 20);
}

#[test]
fn what_deleted_definitions_took_is_given_back() {
    const COUNT: usize = 60;
    /// Were what they compile to kept, each would leave half a megabyte.
    const LEFT_BYTES_MAX: usize = COUNT * (250 << 10);
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--memory-limit", "512Mi"]);
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let definition = |at: usize| {
        let property = |at: usize| (format!("field-{at}"), json!({"type": "string", "description": "x".repeat(30)}));
        let properties: serde_json::Map<_, _> = (0..1_000).map(property).collect();
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("things{at}.example.com")},
            "spec": {
                "group": "example.com", "scope": "Cluster",
                "names": {"plural": format!("things{at}"), "kind": format!("Thing{at}")},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                    "type": "object", "properties": {"spec": {"type": "object", "properties": properties}},
                }}}],
            },
        })
    };
    let round = |from: usize| {
        for at in from..from + COUNT {
            assert_eq!(send(&server, "POST", definitions, &definition(at)).status, 201);
            eventually(|| server.send("GET", &format!("/apis/example.com/v1/things{at}"), &[], None).status == 200);
        }
        for at in from..from + COUNT {
            assert_eq!(server.send("DELETE", &format!("{definitions}/things{at}.example.com"), &[], None).status, 200);
        }
        eventually(|| {
            let left = server.send("GET", definitions, &[], None).json();
            left["items"].as_array().is_some_and(Vec::is_empty)
        });
    };
    // The first round finds what the process takes for such work in any case.
    round(0);
    let before = own_bytes(&server);
    round(COUNT);
    // What was answered may still be at work: the deletion of its objects, and the documents of discovery.
    eventually(|| own_bytes(&server).saturating_sub(before) < LEFT_BYTES_MAX);
}

/// Watches whose events nobody reads, on two connections.
async fn watch_slowly(server: &Server) -> Vec<hyper::Response<hyper::body::Incoming>> {
    let mut watches = Vec::new();
    for _ in 0..2 {
        let stream = tokio::net::TcpStream::connect(server.plain).await.expect("the server listens");
        let mut builder = http2::Builder::new(TokioExecutor::new());
        // As client-go has it: the connection is not a bound to its streams.
        builder.initial_stream_window_size(4 << 20).initial_connection_window_size(1 << 30);
        let (mut client, connection) = builder.handshake(TokioIo::new(stream)).await.expect("it is HTTP/2");
        tokio::spawn(connection);
        for _ in 0..STREAMS {
            let request = Request::get(format!("http://localhost{SHIPS}?watch=1")).body(Body::empty());
            let answer = client.send_request(request.expect("it is a request")).await.expect("it is answered");
            assert_eq!(answer.status(), 200);
            watches.push(answer);
        }
    }
    watches
}

/// Asks for one object on so many streams of a connection, and reads nothing of the answers but their heads; returns how
/// many have come.
async fn get_slowly(server: &Server, path: &str, streams: usize) -> Vec<u16> {
    let stream = tokio::net::TcpStream::connect(server.plain).await.expect("the server listens");
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder.initial_stream_window_size(1 << 10);
    let (client, connection) = builder.handshake(TokioIo::new(stream)).await.expect("it is HTTP/2");
    tokio::spawn(connection);
    let answers = (0..streams).map(|_| {
        let (mut client, request) =
            (client.clone(), Request::get(format!("http://localhost{path}")).body(Body::empty()));
        async move { client.send_request(request.expect("it is a request")).await.expect("it is answered") }
    });
    let answers = futures_util::future::join_all(answers).await;
    answers.iter().map(|answer| answer.status().as_u16()).collect()
}

#[test]
fn objects_are_answered_as_far_as_there_is_memory_for_those_that_nobody_reads() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--durability", "relaxed", "--memory-limit", "96Mi"]);
    assert_eq!(send(&server, "POST", CONFIG_MAPS, &config_map("map")).status, 201);
    let peak = Peak::of(&server);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("there is a runtime");
    let codes = runtime.block_on(get_slowly(&server, &format!("{CONFIG_MAPS}/map"), 300));
    let count = |code: u16| codes.iter().filter(|told| **told == code).count();
    assert!(count(200) > 5 && count(429) > 200 && count(200) + count(429) == codes.len(), "{codes:?}");
    assert!(peak.bytes() < LIMIT_BYTES, "{} MiB", peak.bytes() >> 20);
}

/// A watch over a WebSocket that nobody reads.
fn watch_slowly_over_a_websocket(server: &Server) -> TcpStream {
    let mut stream = TcpStream::connect(server.plain).expect("the server listens");
    let key = "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let request = format!(
        "GET {CONFIG_MAPS}?watch=1 HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n{key}\r\n"
    );
    stream.write_all(request.as_bytes()).expect("the server reads");
    let mut head = [0; 12];
    stream.read_exact(&mut head).expect("it is answered");
    assert_eq!(&head, b"HTTP/1.1 101");
    stream
}

#[test]
fn an_event_is_in_memory_once_for_all_websockets_that_are_read_slowly() {
    const SOCKETS: usize = 200;
    const OBJECTS: usize = 5;
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory", "--memory-limit", "512Mi"]);
    let sockets: Vec<_> = (0..SOCKETS).map(|_| watch_slowly_over_a_websocket(&server)).collect();
    let before = own_bytes(&server);
    for at in 0..OBJECTS {
        assert_eq!(send(&server, "POST", CONFIG_MAPS, &config_map(&format!("map-{at}"))).status, 201);
    }
    for socket in &sockets {
        socket.peek(&mut [0]).expect("the first event is on its way");
    }
    let taken = own_bytes(&server).saturating_sub(before);
    // With a copy for each it is 180 MB.
    assert!(taken < 60 << 20, "{} MiB for {SOCKETS} watches", taken >> 20);
    drop(sockets);
}

#[test]
fn what_is_there_already_is_told_to_as_many_slow_watches_as_there_is_memory_for() {
    const WATCHES: usize = 150;
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--memory-limit", "96Mi"]);
    for at in 0..4 {
        assert_eq!(send(&server, "POST", CONFIG_MAPS, &config_map(&format!("map-{at}"))).status, 201);
    }
    let peak = Peak::of(&server);
    let watches: Vec<_> = (0..WATCHES).map(|_| ask_slowly(&server, &format!("{CONFIG_MAPS}?watch=1"))).collect();
    for watch in &watches {
        watch.peek(&mut [0]).expect("it is answered");
    }
    assert_eq!(server.send("GET", "/readyz", &[], None).status, 200);
    assert!(peak.bytes() < LIMIT_BYTES, "{} MiB", peak.bytes() >> 20);
}

/// A request whose answer nobody reads.
fn ask_slowly(server: &Server, path: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.plain).expect("the server listens");
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("the server reads");
    stream
}

#[test]
fn watches_far_behind_have_few_of_the_changes_in_memory() {
    const CHANGES: usize = 40;
    const WATCHES: usize = 60;
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--durability", "relaxed", "--memory-limit", "96Mi"]);
    let created = send(&server, "POST", CONFIG_MAPS, &config_map("map")).json();
    for _ in 0..CHANGES {
        let mut changed = config_map("map");
        changed["metadata"]["labels"] = json!({"at": uuid::Uuid::new_v4().to_string()});
        assert_eq!(send(&server, "PUT", &format!("{CONFIG_MAPS}/map"), &changed).status, 200);
    }
    let peak = Peak::of(&server);
    let revision = created["metadata"]["resourceVersion"].as_str().expect("it has a revision");
    let path = format!("{CONFIG_MAPS}?watch=1&resourceVersion={revision}");
    // All changes with their former states are 72 MB for each.
    let watches: Vec<_> = (0..WATCHES).map(|_| ask_slowly(&server, &path)).collect();
    for watch in &watches {
        watch.peek(&mut [0]).expect("it is answered");
    }
    let another = send(&server, "PUT", &format!("{CONFIG_MAPS}/map"), &config_map("map"));
    assert_eq!(another.status, 200);
    assert!(peak.bytes() < LIMIT_BYTES, "{} MiB", peak.bytes() >> 20);
    // One that is read gets them all.
    drop(watches);
    let (mut read, mut left) = (BufReader::new(ask_slowly(&server, &path)), CHANGES + 1);
    while left > 0 {
        let mut line = Vec::new();
        assert!(read.read_until(b'\n', &mut line).expect("it is sent") > 0, "{left} are left");
        left -= usize::from(line.ends_with(b"}\n"));
    }
}

#[test]
fn slow_readers_do_not_keep_what_has_changed_since() {
    const COUNT: usize = 12;
    const ROUNDS: usize = 20;
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--durability", "relaxed", "--memory-limit", "96Mi"]);
    for at in 0..COUNT {
        assert_eq!(send(&server, "POST", CONFIG_MAPS, &config_map(&format!("map-{at}"))).status, 201);
    }
    let peak = Peak::of(&server);
    let mut readers = Vec::new();
    for round in 0..ROUNDS {
        let queries = ["", "?watch=1"];
        readers.extend(queries.map(|query| ask_slowly(&server, &format!("{CONFIG_MAPS}{query}"))));
        for at in 0..COUNT {
            let mut changed = config_map(&format!("map-{at}"));
            changed["metadata"]["labels"] = json!({"round": round.to_string()});
            assert_eq!(send(&server, "PUT", &format!("{CONFIG_MAPS}/map-{at}"), &changed).status, 200);
        }
    }
    // Each round replaced 11 MB.
    assert!(peak.bytes() < LIMIT_BYTES, "{} MiB", peak.bytes() >> 20);
    let mut first = Vec::new();
    // The oldest list is cut off, and not ended as if it were whole.
    _ = readers[0].read_to_end(&mut first);
    assert!(first.starts_with(b"HTTP/1.1 200") && !first.ends_with(b"0\r\n\r\n"), "{} bytes", first.len());
}

#[test]
fn what_all_requests_depend_on_has_a_bound_and_is_read_however_large_it_is() {
    const NOTE_BYTES: usize = 250_000;
    const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
    const PODS: &str = "/api/v1/namespaces/default/pods";
    let metadata = |name: &str| json!({ "name": name, "annotations": { "note": "x".repeat(NOTE_BYTES) } });
    let folder = Folder::for_test();
    let arguments = ["--durability", "relaxed", "--authorization-mode", "Node,RBAC", "--memory-limit"];
    let server = Server::start(&folder.0, &[&arguments[..], &["96Mi"]].concat());
    let role = |server: &Server, at: usize| {
        send(server, "POST", ROLES, &json!({ "metadata": metadata(&format!("r{at}")), "rules": [] }))
    };
    let stored = (0..).find(|at| role(&server, *at).status != 201).expect("it ends");
    assert!((LIMIT_BYTES / 12..LIMIT_BYTES / 7).contains(&(stored * NOTE_BYTES)), "{stored} roles");
    let refused = role(&server, stored).json();
    let told = refused["message"].as_str().unwrap_or_default();
    assert!(refused["code"] == 500 && told.starts_with("etcdserver: mvcc: database space exceeded: "), "{refused}");
    let small = json!({ "metadata": { "name": "small" }, "rules": [] });
    let remove = |server: &Server| server.send("DELETE", &format!("{ROLES}/r0"), &[], None).status;
    assert_eq!((remove(&server), send(&server, "POST", ROLES, &small).status), (200, 201));
    // Nothing but requests of nodes depends on pods.
    let pod = |at: usize| {
        let spec = json!({ "containers": [{ "name": "c", "image": "i" }] });
        let pod = json!({ "metadata": metadata(&format!("p{at}")), "spec": spec });
        let answer = send(&server, "POST", PODS, &pod);
        assert_eq!(answer.status, 201, "{at}: {}", answer.json());
    };
    let read = |server: &Server, path: &str| server.send("GET", path, &[], None).status;
    eventually(|| read(&server, "/api/v1/namespaces/default/serviceaccounts/default") == 200);
    (0..LIMIT_BYTES / 2 / NOTE_BYTES + 10).for_each(pod);
    assert_eq!((read(&server, PODS), read(&server, CONFIG_MAPS), read(&server, "/apis")), (429, 200, 200));
    assert_eq!(server.terminate().0, Some(0));
    // Less memory than the roles have.
    let server = Server::start(&folder.0, &[&arguments[..], &["32Mi"]].concat());
    assert_eq!((read(&server, CONFIG_MAPS), read(&server, &format!("{ROLES}/small"))), (200, 200));
    let larger = json!({ "metadata": { "annotations": { "note": "x" } } });
    assert_eq!(send(&server, "PATCH", &format!("{ROLES}/small"), &larger).status, 500);
    let smaller = json!({ "metadata": { "annotations": null } });
    assert_eq!(send(&server, "PATCH", &format!("{ROLES}/r1"), &smaller).status, 200);
}

#[test]
fn watches_with_long_selectors_are_as_many_as_there_is_memory_for() {
    const WATCHES: usize = 120;
    const TERMS: usize = 10_000;
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--memory-limit", "96Mi"]);
    let selector: Vec<String> = (0..TERMS).map(|at| format!("!{at:x}")).collect();
    let request =
        format!("GET {CONFIG_MAPS}?watch=1&labelSelector={} HTTP/1.1\r\nHost: localhost\r\n\r\n", selector.join(","));
    let mut answers = Vec::new();
    let watches: Vec<_> = (0..WATCHES)
        .map(|_| {
            let mut stream = TcpStream::connect(server.plain).expect("the server listens");
            stream.write_all(request.as_bytes()).expect("the server reads");
            let mut head = [0; 12];
            stream.read_exact(&mut head).expect("it is answered");
            answers.push(String::from_utf8_lossy(&head).into_owned());
            stream
        })
        .collect();
    // Half of the memory is for watches, and each of these takes nearly half a MiB.
    let begun = answers.iter().filter(|answer| answer.ends_with("200")).count();
    assert!((40..100).contains(&begun), "{begun} watches");
    assert!(answers[begun..].iter().all(|answer| answer.ends_with("429")), "{answers:?}");
    drop(watches);
}

#[test]
fn the_limit_holds_under_large_bodies_lists_and_slow_watches() {
    let folder = Folder::for_test();
    let server = serve_ships(&folder, &["--memory-limit", "96Mi"]);
    for at in 0..10 {
        let mut ship = ship(&format!("ship-{at}"));
        ship["hold"]["cargo"] = json!("x".repeat(1 << 20));
        assert_eq!(send(&server, "POST", SHIPS, &ship).status, 201);
    }
    let peak = Peak::of(&server);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("there is a runtime");
    // Nothing drives their connections from here on: nobody reads.
    let watches = runtime.block_on(watch_slowly(&server));
    let after_watches = peak.bytes();
    let body = |at: usize| {
        let mut ship = ship(&format!("barge-{at}"));
        ship["hold"] =
            json!((0..1000).map(|at| (at.to_string(), json!("x".repeat(2900)))).collect::<serde_json::Map<_, _>>());
        ship.to_string()
    };
    assert!(body(0).len() < BODY_BYTES);
    std::thread::scope(|scope| {
        for at in 0..CLIENTS {
            let (server, body) = (&server, body(at));
            scope.spawn(move || {
                let json = [("Content-Type", "application/json")];
                // What is watched stays in memory, so it is not stored.
                let path = format!("{SHIPS}?dryRun=All");
                let status = server.send("POST", &path, &json, Some(body.as_bytes())).status;
                assert!(ANSWERS.contains(&status), "{status}");
                if at % 20 == 0 {
                    _ = server.send("GET", SHIPS, &[], None);
                }
            });
        }
    });
    drop(watches);
    let mib = |bytes: usize| bytes >> 20;
    println!("{} MiB with the watches, {} MiB at the most", mib(after_watches), mib(peak.bytes()));
    assert!(peak.bytes() < LIMIT_BYTES, "{} MiB", mib(peak.bytes()));
}

#[test]
fn what_grows_out_of_little_is_refused_before_it_is_made() {
    pub const LIMIT_BYTES: usize = 512 << 20;
    const ADMISSION: &str = "/apis/admissionregistration.k8s.io/v1";
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory", "--memory-limit", "512Mi"]);
    let peak = Peak::of(&server);
    let make =
        |path: &str, body: &serde_json::Value| assert_eq!(send(&server, "POST", path, body).status, 201, "{path}");
    let constraints = json!({"resourceRules": [{"apiGroups": [""], "apiVersions": ["*"], "operations": ["*"],
        "resources": ["configmaps"]}]});
    let policy = |kind: &str, spec: serde_json::Value| {
        let plural = format!("{ADMISSION}/{}", kind.to_lowercase().replace("policy", "policies"));
        make(&plural, &json!({"metadata": {"name": "grows"}, "spec": spec}));
        let bindings = format!("{ADMISSION}/{}bindings", kind.to_lowercase());
        let mut binding = json!({"metadata": {"name": "grows"}, "spec": {"policyName": "grows"}});
        if kind.starts_with("Validating") {
            binding["spec"]["validationActions"] = json!(["Deny"]);
        }
        make(&bindings, &binding);
        let answer = send(&server, "POST", CONFIG_MAPS, &config_map("grown"));
        assert_eq!(server.send("DELETE", &format!("{bindings}/grows"), &[], None).status, 200);
        (answer.status, answer.json()["message"].as_str().unwrap_or_default().to_owned())
    };
    let too_large = || (500, "etcdserver: request is too large".to_owned());

    // Forty mutations, each of which doubles a text.
    let doubled = r#"[JSONPatch{op: "add", path: "/data/text", value: object.data.text + object.data.text}]"#;
    let mutation = json!({"patchType": "JSONPatch", "jsonPatch": {"expression": doubled}});
    let mutations =
        json!({"matchConstraints": constraints, "reinvocationPolicy": "Never", "mutations": vec![mutation; 40]});
    assert_eq!(policy("MutatingAdmissionPolicy", mutations), too_large());

    // A value that holds itself twice, forty levels deep.
    let twice = |at: usize| {
        let before = format!("variables.v{}", at.wrapping_sub(1));
        let expression = if at == 0 { "dyn('a')".to_owned() } else { format!("dyn([{before}, {before}])") };
        json!({"name": format!("v{at}"), "expression": expression})
    };
    let variables = (0..40).map(twice).collect::<Vec<_>>();
    let added = r#"[JSONPatch{op: "add", path: "/data/text", value: variables.v39}]"#;
    assert_eq!(server.send("DELETE", &format!("{ADMISSION}/mutatingadmissionpolicies/grows"), &[], None).status, 200);
    let mutations = json!({"matchConstraints": constraints, "reinvocationPolicy": "Never", "variables": variables,
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": added}}]});
    assert_eq!(policy("MutatingAdmissionPolicy", mutations), too_large());

    // Defaults of a thousand amounts for a thousand containers.
    let amounts: serde_json::Map<_, _> = (0..1_000).map(|at| (format!("example.com/x{at}"), json!("1"))).collect();
    let range = json!({"metadata": {"name": "grows"}, "spec": {"limits": [{"type": "Container", "default": amounts}]}});
    make("/api/v1/namespaces/default/limitranges", &range);
    let containers: Vec<_> = (0..1_000).map(|at| json!({"name": format!("c{at}"), "image": "b"})).collect();
    let pod = json!({"metadata": {"name": "grown"}, "spec": {"containers": containers}});
    let answer = send(&server, "POST", "/api/v1/namespaces/default/pods", &pod);
    assert_eq!((answer.status, answer.json()["message"].as_str()), (500, Some("etcdserver: request is too large")));

    // Quotas of a megabyte each, which every pod of their namespace is held against.
    make("/api/v1/namespaces", &json!({"metadata": {"name": "team"}}));
    let hard: serde_json::Map<_, _> =
        (0..20_000).map(|at| (format!("count/things{at}.example.com"), json!("1"))).collect();
    for at in 0..8 {
        let quota = json!({"metadata": {"name": format!("q{at}")}, "spec": {"hard": hard}});
        make("/api/v1/namespaces/team/resourcequotas", &quota);
    }
    let pod = json!({"metadata": {"name": "small"}, "spec": {"containers": [{"name": "c", "image": "b"}]}});
    let answers = std::thread::scope(|scope| {
        let send_pod = || send(&server, "POST", "/api/v1/namespaces/team/pods?dryRun=All", &pod).status;
        let sent: Vec<_> = (0..8).map(|_| scope.spawn(send_pod)).collect();
        sent.into_iter().map(|sent| sent.join().expect("it does not panic")).collect::<Vec<_>>()
    });
    assert!(answers.iter().all(|status| ANSWERS.contains(status)), "{answers:?}");
    assert_eq!(server.send("GET", "/readyz", &[], None).status, 200);
    assert!(peak.bytes() < LIMIT_BYTES, "{} MiB", peak.bytes() >> 20);
}
