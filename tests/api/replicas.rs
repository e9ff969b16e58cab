//! Several servers on one Postgres are one server.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sqlx::{Connection as _, PgConnection, Row as _};

use super::{CRONTABS, crontab, crontabs_file};
use crate::server::{Answer, Folder, Server};
use crate::store::postgres;

const JSON: &[(&str, &str)] = &[("Content-Type", "application/json")];

/// The URL of a new database; `None` where there is no Postgres.
pub fn new_database() -> Option<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
    runtime.block_on(postgres::new_database())
}

fn post(server: &Server, path: &str, object: &Value) -> Answer {
    server.send("POST", path, JSON, Some(object.to_string().as_bytes()))
}

/// A server with a data folder of its own.
fn start(folder: &Folder, name: &str, url: &str) -> Server {
    Server::start(&folder.0.join(name), &["--store", url])
}

/// As [`start`]; it serves CronTabs.
fn start_crontabs(folder: &Folder, name: &str, url: &str) -> Server {
    let file = crontabs_file();
    let crds = file.to_str().expect("the path is text");
    Server::start(&folder.0.join(name), &["--store", url, "--crds", crds])
}

#[test]
fn what_one_server_stores_another_serves_at_once() {
    let Some(url) = new_database() else { return };
    let folder = Folder::for_test();
    let (one, other) = (start(&folder, "one", &url), start(&folder, "other", &url));
    let definition = std::fs::read_to_string(crontabs_file()).expect("it reads");
    let headers = [("Content-Type", "application/yaml")];
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(one.send("POST", definitions, &headers, Some(definition.as_bytes())).status, 201);
    // The controllers run in one of the two.
    let started = Instant::now();
    while other.send("GET", CRONTABS, &[], None).status != 200 {
        assert!(started.elapsed() < Duration::from_secs(60), "the definition is not served");
        std::thread::sleep(Duration::from_millis(20));
    }
    for round in 0..20 {
        let (from, to) = if round % 2 == 0 { (&one, &other) } else { (&other, &one) };
        let made = post(from, CRONTABS, &crontab(&format!("tab-{round}")));
        assert_eq!(made.status, 201);
        let read = to.send("GET", &format!("{CRONTABS}/tab-{round}"), &[], None);
        assert_eq!(read.status, 200, "{round}");
        assert_eq!(read.json(), made.json());
    }
    // A namespace is guarded wherever the write goes.
    let team = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}});
    assert_eq!(post(&one, "/api/v1/namespaces", &team).status, 201);
    let path = CRONTABS.replace("/default/", "/team/");
    assert_eq!(post(&other, &path, &crontab("nightly")).status, 201);
    assert_eq!(one.send("DELETE", "/api/v1/namespaces/team", &[], None).status, 200);
    assert_ne!(post(&other, &path, &crontab("hourly")).status, 201);
}

#[test]
fn servers_that_start_at_once_on_an_empty_database_have_one_authority() {
    let Some(url) = new_database() else { return };
    let folder = Folder::for_test();
    let servers = std::thread::scope(|scope| {
        let (folder, url) = (&folder, &url);
        let starts = ["one", "two", "three"].map(|name| scope.spawn(move || start(folder, name, url)));
        starts.map(|start| start.join().expect("it starts"))
    });
    let authorities = servers.each_ref().map(|server| {
        let kubeconfig = std::fs::read_to_string(&server.kubeconfig).expect("it is written before the server is ready");
        kubeconfig.lines().find(|line| line.contains("certificate-authority-data")).map(str::to_owned)
    });
    assert!(authorities[0].is_some());
    assert!(authorities.iter().all(|authority| *authority == authorities[0]));
}

#[test]
fn a_page_is_followed_on_another_server() {
    let Some(url) = new_database() else { return };
    let folder = Folder::for_test();
    let one = start_crontabs(&folder, "one", &url);
    let other = start(&folder, "other", &url);
    for name in ["a", "b", "c"] {
        assert_eq!(post(&one, CRONTABS, &crontab(name)).status, 201);
    }
    let first = one.send("GET", &format!("{CRONTABS}?limit=2"), &[], None).json();
    assert_eq!(post(&one, CRONTABS, &crontab("d")).status, 201);
    let token = first["metadata"]["continue"].as_str().expect("there is a second page");
    let second = other.send("GET", &format!("{CRONTABS}?limit=2&continue={token}"), &[], None).json();
    let names: Vec<_> =
        second["items"].as_array().into_iter().flatten().map(|item| &item["metadata"]["name"]).collect();
    assert_eq!(names, ["c"]);
    assert_eq!(second["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
}

/// Both give them at the same time, until there are none left.
#[test]
fn no_address_or_port_of_a_service_is_given_twice() {
    const PORTS: usize = 24;
    let Some(url) = new_database() else { return };
    let folder = Folder::for_test();
    let ports = format!("30100-{}", 30_100 + PORTS - 1);
    let servers = ["one", "other"].map(|name| {
        let flags = ["--service-cluster-ip-range", "10.7.0.0/26", "--service-node-port-range", &ports];
        let store = ["--store", &url];
        Server::start(&folder.0.join(name), &[&store[..], &flags[..]].concat())
    });
    let create = |server: &Server, name: &str| {
        let spec = json!({"type": "NodePort", "ports": [{"port": 80}]});
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec});
        post(server, "/api/v1/namespaces/default/services", &service)
    };
    let made: Vec<Value> = std::thread::scope(|scope| {
        let (servers, create) = (&servers, &create);
        let making: Vec<_> = (0..PORTS)
            .map(|number| scope.spawn(move || create(&servers[number % 2], &format!("service-{number}"))))
            .collect();
        making.into_iter().map(|one| one.join().expect("it is answered")).map(|answer| answer.json()).collect()
    });
    for field in ["/spec/clusterIP", "/spec/ports/0/nodePort"] {
        let given: BTreeSet<_> =
            made.iter().filter_map(|service| service.pointer(field)).map(Value::to_string).collect();
        assert_eq!(given.len(), PORTS, "{field}: {made:?}");
    }
    for server in &servers {
        assert_eq!(create(server, "one-too-many").status, 500, "no port is left");
    }
    let first = "/api/v1/namespaces/default/services/service-0";
    assert_eq!(servers[0].send("DELETE", first, &[], None).status, 200);
    assert_eq!(create(&servers[1], "next").status, 201, "what one gives back the other gives");
}

/// Stops a server that writes, in a moment when it has the counter: its session is in a transaction that has locked the row.
/// False where that moment does not come.
fn freeze_with_counter(server: &Server, url: &str) -> bool {
    const ATTEMPTS: usize = 2_000;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
    let mut connection = runtime.block_on(PgConnection::connect(url)).expect("it connects");
    let mut has_counter = || {
        let held = "SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE l.relation = 'counter'::regclass \
                    AND l.mode = 'RowShareLock' AND a.state = 'idle in transaction' AND a.datname = current_database()";
        let row = runtime.block_on(sqlx::query(held).fetch_one(&mut connection)).expect("it counts");
        row.get::<i64, _>(0) > 0
    };
    for attempt in 0..ATTEMPTS {
        std::thread::sleep(Duration::from_millis(attempt as u64 % 11));
        server.signal("STOP");
        // What it sent before that is done.
        std::thread::sleep(Duration::from_millis(10));
        if has_counter() {
            return true;
        }
        server.signal("CONT");
    }
    false
}

#[test]
fn a_server_that_is_frozen_with_the_counter_does_not_stop_the_other() {
    const FREEZES: usize = 2;
    let Some(url) = new_database() else { return };
    let folder = Folder::for_test();
    let frozen = start_crontabs(&folder, "one", &url);
    let other = start(&folder, "other", &url);
    let stop = AtomicBool::new(false);
    let (tried, acknowledged) = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut acknowledged = Vec::new();
            for at in 0.. {
                let answer = post(&frozen, CRONTABS, &crontab(&format!("frozen-{at}")));
                assert_ne!(answer.status, 409, "frozen-{at} is made twice");
                if answer.status == 201 {
                    acknowledged.push(answer.json());
                }
                if stop.load(Ordering::Relaxed) {
                    return (at + 1, acknowledged);
                }
            }
            (0, acknowledged)
        });
        // Only where others write does a server hold the counter over several messages.
        scope.spawn(|| {
            for at in 0.. {
                assert_eq!(post(&other, CRONTABS, &crontab(&format!("rival-{at}"))).status, 201);
                if stop.load(Ordering::Relaxed) {
                    return;
                }
            }
        });
        let mut freezes = 0;
        for freeze in 0..FREEZES {
            if !freeze_with_counter(&frozen, &url) {
                break;
            }
            freezes += 1;
            // Waits until the frozen session is ended.
            for at in 0..5 {
                assert_eq!(post(&other, CRONTABS, &crontab(&format!("other-{freeze}-{at}"))).status, 201);
            }
            frozen.signal("CONT");
            std::thread::sleep(Duration::from_millis(300));
        }
        stop.store(true, Ordering::Relaxed);
        assert_eq!(freezes, FREEZES, "the server never stops with the counter");
        writer.join().expect("the writer ends")
    });
    for object in &acknowledged {
        let name = object["metadata"]["name"].as_str().expect("it has a name");
        let stored = other.send("GET", &format!("{CRONTABS}/{name}"), &[], None).json();
        assert_eq!(stored["metadata"], object["metadata"]);
    }
    // A batch whose session was ended is made anew.
    assert_eq!(acknowledged.len(), tried);
}

#[test]
fn a_database_out_of_reach_is_told_at_the_start() {
    let folder = Folder::for_test();
    let (code, said) = Server::fail_to_start(&folder.0, &["--store", "postgres://someone:secret@127.0.0.1:9/nothing"]);
    assert_eq!(code, Some(1));
    assert!(said.contains("the database can't be reached"), "{said}");
    assert!(!said.contains("secret"), "{said}");
}

#[test]
fn while_the_database_is_away_reads_go_on_and_writes_are_to_be_tried_again() {
    let Some(mut cluster) = postgres::own_cluster() else { return };
    cluster.start();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
    let url = runtime.block_on(postgres::create_database(cluster.port())) + "?connect_timeout=1";
    let folder = Folder::for_test();
    let server = start_crontabs(&folder, "one", &url);
    assert_eq!(post(&server, CRONTABS, &crontab("kept")).status, 201);
    // What was listed is in memory.
    assert_eq!(server.send("GET", CRONTABS, &[], None).status, 200);
    cluster.crash();
    let kept = format!("{CRONTABS}/kept?resourceVersion=0");
    assert_eq!(server.send("GET", &kept, &[], None).status, 200);
    let watch = format!("{CRONTABS}?watch=true&resourceVersion=0&timeoutSeconds=1");
    assert!(String::from_utf8_lossy(&server.send("GET", &watch, &[], None).body).contains("ADDED"));

    let refused = post(&server, CRONTABS, &crontab("more"));
    assert_eq!((refused.status, refused.header("retry-after")), (500, "2"));
    let expect = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": "ServerTimeout", "code": 500,
        "message": "The create operation against crontabs.stable.example.com could not be completed at this time, please \
                    try again.",
        "details": {
            "name": "create", "group": "stable.example.com", "kind": "crontabs", "retryAfterSeconds": 2,
        },
    });
    assert_eq!(refused.json(), expect);
    assert_eq!(server.send("GET", "/readyz", &[], None).status, 500);
    assert_eq!(server.send("GET", "/livez", &[], None).status, 200);

    cluster.start();
    let started = Instant::now();
    while post(&server, CRONTABS, &crontab("more")).status != 201 {
        assert!(started.elapsed() < Duration::from_secs(60), "writes do not go on");
    }
    assert_eq!(server.send("GET", &format!("{CRONTABS}/kept"), &[], None).status, 200);
}

#[test]
fn a_policy_that_is_written_on_one_server_acts_on_another_at_once() {
    let Some(url) = new_database() else { return };
    let folder = Folder::for_test();
    let (one, other) = (start(&folder, "one", &url), start(&folder, "other", &url));
    let maps = "/api/v1/namespaces/default/configmaps";
    let group = "/apis/admissionregistration.k8s.io/v1";
    for round in 0..5 {
        let (from, to) = if round % 2 == 0 { (&one, &other) } else { (&other, &one) };
        let name = format!("p{round}");
        let constraints = json!({"resourceRules": [
            {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]},
        ]});
        let validation = json!({"expression": format!("object.metadata.name != '{name}'"), "message": name});
        let spec = json!({"matchConstraints": constraints, "validations": [validation]});
        let policy = json!({"metadata": {"name": name}, "spec": spec});
        assert_eq!(post(from, &format!("{group}/validatingadmissionpolicies"), &policy).status, 201);
        let binding = json!({"metadata": {"name": name}, "spec": {"policyName": name, "validationActions": ["Deny"]}});
        let bindings = format!("{group}/validatingadmissionpolicybindings");
        assert_eq!(post(from, &bindings, &binding).status, 201);
        let object = json!({"metadata": {"name": name}});
        assert_eq!(post(to, maps, &object).status, 422, "{round}");
        assert_eq!(from.send("DELETE", &format!("{bindings}/{name}"), &[], None).status, 200);
        assert_eq!(post(to, maps, &object).status, 201, "{round}");
    }
}
