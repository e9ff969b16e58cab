//! What stands around a request: descriptors, hosts, standard error, the clock, addresses.

use std::fs::File;
use std::io::{Read as _, Write as _, pipe};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::identity;
use serde_json::json;

use crate::server::{Answer, Folder, Server};

const MEMORY: [&str; 2] = ["--store", "memory"];
const WAIT_MAX: Duration = Duration::from_secs(60);

/// The whole answer to this text.
fn exchange(server: &Server, text: &str) -> String {
    let mut stream = TcpStream::connect(server.plain).expect("the server listens");
    stream.set_read_timeout(Some(WAIT_MAX)).expect("a time-out is not zero");
    stream.write_all(text.as_bytes()).expect("the server reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the server closes the connection");
    answer
}

#[test]
fn a_missing_doubled_or_malformed_host_is_refused_as_by_go() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &MEMORY);
    let check = |request: &str, reason: &str| {
        let answer = exchange(&server, &format!("GET /version {request}\r\n\r\n"));
        let (head, body) = answer.split_once("\r\n\r\n").expect("there is a head");
        assert!(head.starts_with(&format!("HTTP/1.1 {reason}\r\n")), "{head}");
        assert!(head.to_ascii_lowercase().contains("content-type: text/plain; charset=utf-8"), "{head}");
        assert_eq!(body, reason);
    };
    check("HTTP/1.1", "400 Bad Request: missing required Host header");
    check("HTTP/1.1\r\nHost: a\r\nHost: a", "400 Bad Request");
    check("HTTP/1.1\r\nHost: localhost\r\nhost: evil.example.com", "400 Bad Request");
    check("HTTP/1.1\r\nHost: a b", "400 Bad Request: malformed Host header");
}

#[test]
fn with_few_descriptors_connections_that_do_nothing_make_room() {
    let folder = Folder::for_test();
    let server = Server::start_under(&folder.0, "ulimit -n 64", &MEMORY);
    let address = server.url.trim_start_matches("https://");
    let silent: Vec<_> = (0..200).map(|_| TcpStream::connect(address).expect("there is room to wait")).collect();
    let health = || identity::get(&server, "/livez", None, "");
    assert!((0..20).all(|_| health().status == 200));
    drop(silent);
    let (code, stderr) = server.terminate();
    assert_eq!(code, Some(0));
    assert!(stderr.matches("cannot accept").count() <= 2, "{stderr}");
}

#[test]
fn a_watch_makes_no_room_for_others() {
    let folder = Folder::for_test();
    let server = Server::start_under(&folder.0, "ulimit -n 64", &MEMORY);
    let mut watch = server.open("GET", "/api/v1/namespaces?watch=1", &[], None, WAIT_MAX);
    let mut bytes = [0; 4096];
    assert!(watch.read(&mut bytes).is_ok_and(|count| count > 0), "the watch opens");
    let silent: Vec<_> = (0..200).map(|_| TcpStream::connect(server.plain).expect("there is room to wait")).collect();
    let namespace = r#"{"metadata":{"name":"team"}}"#;
    let json = [("Content-Type", "application/json")];
    assert_eq!(server.send("POST", "/api/v1/namespaces", &json, Some(namespace.as_bytes())).status, 201);
    let mut seen = String::new();
    while !seen.contains(r#""name":"team""#) {
        let count = watch.read(&mut bytes).expect("the watch goes on");
        assert!(count > 0, "the watch ended: {seen}");
        seen.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
    drop(silent);
}

#[test]
fn a_standard_error_that_cannot_be_written_costs_nothing() {
    let (reader, writer) = pipe().expect("the system has pipes");
    drop(reader);
    let full = File::options().write(true).open("/dev/full").expect("the system has one");
    for (at, stderr) in [Stdio::from(writer), Stdio::from(full)].into_iter().enumerate() {
        let folder = Folder::new(&at.to_string());
        let server = Server::start_unheard(&folder.0, &MEMORY, stderr);
        for _ in 0..3 {
            assert_eq!(identity::get(&server, "/livez", None, "").status, 200);
            identity::is_unauthorized(&identity::get(&server, "/version", None, "Authorization: Bearer x\r\n"));
        }
        assert_eq!(server.terminate().0, Some(0));
    }
}

#[test]
fn a_reader_that_has_seen_enough_ends_a_command_quietly() {
    let folder = Folder::for_test();
    let data = folder.0.join("data");
    let data = data.to_str().expect("the path is text");
    assert_eq!(Server::start(&folder.0.join("data"), &[]).terminate().0, Some(0));
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/crd-examples/cron-table");
    let crd = concat!(env!("CARGO_MANIFEST_DIR"), "/crd-examples/cron-table/crd.yaml");
    let commands: [&[&str]; 10] = [
        &["validate", "-f", crd, examples],
        &["test", examples],
        &["cost", crd],
        &["diff", crd, crd],
        &["lint", crd],
        &["lint", "--list"],
        &["explain", crd, "spec"],
        &["export", "--data-dir", data],
        &["completion", "bash"],
        &["man"],
    ];
    for arguments in commands {
        let (reader, writer) = pipe().expect("the system has pipes");
        drop(reader);
        let mut command = Command::new(env!("CARGO_BIN_EXE_skiff"));
        let done = command.args(arguments).stdout(writer).stderr(Stdio::piped()).output().expect("it runs");
        let stderr = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.code().is_some_and(|code| code <= 1), "{arguments:?}: {:?} {stderr}", done.status);
        assert!(!stderr.contains("panicked") && !stderr.contains("roken pipe"), "{arguments:?}: {stderr}");
    }
}

#[test]
fn with_few_addresses_it_serves_with_fewer_threads_or_says_why_not() {
    let folder = Folder::for_test();
    for megabytes in [200, 400, 600] {
        let limit = format!("ulimit -v {}", megabytes << 10);
        let (code, stderr) = Server::fail_to_start_under(&folder.0.join("few"), &limit, &MEMORY);
        assert_eq!(code, Some(1), "{stderr}");
        assert!(stderr.contains("the address space (ulimit -v)"), "{stderr}");
    }
    for megabytes in [800, 1200, 3000] {
        let limit = format!("ulimit -v {}", megabytes << 10);
        let server = Server::start_under(&folder.0.join(megabytes.to_string()), &limit, &[]);
        let answer: Answer = server.send("GET", "/api/v1/namespaces", &[], None);
        assert_eq!(answer.status, 200);
        assert_eq!(server.terminate().0, Some(0));
    }
}

#[test]
fn long_requests_stop_nobody_where_threads_are_few() {
    const LONG_REQUESTS: usize = 40;
    let folder = Folder::for_test();
    let server = Server::start_under(&folder.0, "ulimit -v 1500000", &MEMORY);
    let json = [("Content-Type", "application/json")];
    let rule = "self.all(a, self.all(b, a + b >= 0))";
    let list = json!({"type": "array", "maxItems": 500, "items": {"type": "integer"},
        "x-kubernetes-validations": [{"rule": rule}]});
    let spec = json!({"type": "object", "properties": {"list": list}});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "rules.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Cluster",
            "names": {"plural": "rules", "kind": "Rule"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
                "openAPIV3Schema": {"type": "object", "properties": {"spec": spec}},
            }}],
        },
    });
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(server.send("POST", path, &json, Some(definition.to_string().as_bytes())).status, 201);
    let numbers: Vec<usize> = (0..300).collect();
    std::thread::scope(|scope| {
        let (server, numbers) = (&server, &numbers);
        let long = (0..LONG_REQUESTS).map(|at| {
            scope.spawn(move || {
                let body = json!({"apiVersion": "example.com/v1", "kind": "Rule",
                    "metadata": {"name": format!("rule-{at}")}, "spec": {"list": numbers}});
                let path = "/apis/example.com/v1/rules";
                server.send("POST", path, &json, Some(body.to_string().as_bytes())).status
            })
        });
        let long: Vec<_> = long.collect();
        // Each is answered, which `send` checks: where all threads wait for turns, none ever is.
        for at in 0..20 {
            assert_eq!(server.send("GET", "/livez", &[], None).status, 200);
            let small = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("small-{at}")}});
            let path = "/api/v1/namespaces/default/configmaps";
            let status = server.send("POST", path, &json, Some(small.to_string().as_bytes())).status;
            assert!([201, 429].contains(&status), "{status}");
        }
        let statuses: Vec<u16> = long.into_iter().map(|long| long.join().expect("it does not panic")).collect();
        assert!(statuses.iter().all(|status| [201, 429, 504].contains(status)), "{statuses:?}");
    });
    assert_eq!(server.terminate().0, Some(0));
}
