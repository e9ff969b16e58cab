//! Health, figures, the audit log, and what a server does not take on.

use std::io::Read as _;
use std::time::Duration;

use serde_json::{Value, json};

use super::{CRONTABS, crontab, serve_crontabs};
use crate::server::{Answer, Folder, Server};

const JSON: (&str, &str) = ("Content-Type", "application/json");
/// A revision that is not there: the request waits for it for three seconds.
const WAITS: &str = "resourceVersion=999999999";

fn get(server: &Server, path: &str) -> Answer {
    server.send("GET", path, &[], None)
}

fn text(answer: &Answer) -> String {
    String::from_utf8_lossy(&answer.body).into_owned()
}

#[test]
fn health_is_told_in_a_word_in_lines_and_by_check() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &[]);
    for path in ["/healthz", "/livez", "/readyz", "/readyz/ping", "/readyz/etcd", "/livez/log", "/readyz/shutdown"] {
        let answer = get(&server, path);
        assert_eq!((answer.status, text(&answer).as_str()), (200, "ok"), "{path}");
        assert_eq!(answer.header("content-type"), "text/plain; charset=utf-8", "{path}");
    }
    let verbose = get(&server, "/readyz?verbose&exclude=etcd&exclude=nonsense");
    let expected = "[+]ping ok\n[+]log ok\n[+]etcd excluded: ok\n[+]etcd-readiness ok\n[+]informer-sync ok\n\
                    [+]poststarthook/start-apiextensions-informers ok\n\
                    [+]poststarthook/start-apiextensions-controllers ok\n[+]poststarthook/crd-informer-synced ok\n\
                    [+]shutdown ok\nwarn: some health checks cannot be excluded: no matches for \"nonsense\"\n\
                    readyz check passed\n";
    assert_eq!((verbose.status, text(&verbose).as_str()), (200, expected));
    assert_eq!(get(&server, "/livez/etcd").status, 404);
    assert_eq!(get(&server, "/readyz/nonsense").status, 404);
}

#[test]
fn figures_have_kubernetes_names() {
    let folder = Folder::for_test();
    let server = serve_crontabs(&folder, &["--store", "memory"]);
    let body = crontab("nightly").to_string();
    assert_eq!(server.send("POST", CRONTABS, &[JSON], Some(body.as_bytes())).status, 201);
    assert_eq!(get(&server, CRONTABS).status, 200);
    assert_eq!(get(&server, "/apis/no.such.group/v1/things").status, 404);
    let wait_max = Duration::from_secs(60);
    let mut watch = server.open("GET", &format!("{CRONTABS}?watch=1"), &[], None, wait_max);
    let mut byte = [0];
    watch.read_exact(&mut byte).expect("the watch opens");

    let answer = get(&server, "/metrics");
    assert!(
        answer.header("content-type").starts_with("text/plain; version=0.0.4"),
        "{}",
        answer.header("content-type")
    );
    let figures = text(&answer);
    let crontabs = r#"group="stable.example.com",version="v1",resource="crontabs""#;
    let rest = r#"subresource="",scope="#;
    for line in [
        format!(
            r#"apiserver_request_total{{dry_run="",verb="POST",{crontabs},{rest}"resource",component="apiserver",code="201"}} 1"#
        ),
        format!(
            r#"apiserver_request_total{{dry_run="",verb="LIST",{crontabs},{rest}"namespace",component="apiserver",code="200"}} 1"#
        ),
        format!(
            r#"apiserver_request_duration_seconds_count{{dry_run="",verb="LIST",{crontabs},{rest}"namespace",component="apiserver"}} 1"#
        ),
        format!(
            r#"apiserver_longrunning_requests{{verb="WATCH",{crontabs},{rest}"namespace",component="apiserver"}} 1"#
        ),
        format!("apiserver_watch_events_total{{{crontabs}}} 1"),
        r#"apiserver_current_inflight_requests{request_kind="readOnly"} 1"#.to_owned(),
        r#"apiserver_resource_objects{group="stable.example.com",resource="crontabs"} 1"#.to_owned(),
        "# TYPE apiserver_request_total counter".to_owned(),
    ] {
        assert!(figures.lines().any(|found| found == line), "{line} is not in\n{figures}");
    }
    assert!(!figures.contains("no.such.group"), "what is not served has no figures of its own");
}

/// The events of an audit log.
fn events(log: &str) -> Vec<Value> {
    log.lines().map(|line| serde_json::from_str(line).expect("each line is an event")).collect()
}

#[test]
fn the_audit_log_has_a_line_for_each_stage() {
    let folder = Folder::for_test();
    let path = folder.0.join("audit.log");
    let server =
        serve_crontabs(&folder, &["--store", "memory", "--audit-log-path", path.to_str().expect("it is text")]);
    let named = server.send("GET", &format!("{CRONTABS}/none"), &[("Audit-Id", "mine"), ("User-Agent", "t/1")], None);
    assert_eq!(named.header("audit-id"), "mine");
    let anonymous = get(&server, CRONTABS);
    assert_eq!(anonymous.header("audit-id").len(), 36);
    let watch = server.send("GET", &format!("{CRONTABS}?watch=1&timeoutSeconds=1"), &[("Audit-Id", "watch")], None);
    assert_eq!(watch.status, 200);
    assert_eq!(server.terminate().0, Some(0));

    let events = events(&std::fs::read_to_string(&path).expect("it is written"));
    let of = |id: &str| events.iter().filter(|event| event["auditID"] == id).collect::<Vec<_>>();
    let [received, complete] = of("mine")[..] else { panic!("there are two stages: {events:?}") };
    assert_eq!((&received["stage"], &complete["stage"]), (&json!("RequestReceived"), &json!("ResponseComplete")));
    assert_eq!(
        (&complete["kind"], &complete["apiVersion"], &complete["level"], &complete["verb"], &complete["userAgent"]),
        (&json!("Event"), &json!("audit.k8s.io/v1"), &json!("Metadata"), &json!("get"), &json!("t/1"))
    );
    assert_eq!(complete["requestURI"], format!("{CRONTABS}/none"));
    assert_eq!(complete["sourceIPs"], json!(["127.0.0.1"]));
    assert_eq!(complete["user"]["username"], "system:unsecured");
    assert_eq!(
        complete["objectRef"],
        json!({"resource": "crontabs", "namespace": "default", "name": "none", "apiGroup": "stable.example.com",
               "apiVersion": "v1"})
    );
    assert_eq!(
        (&complete["responseStatus"]["code"], &complete["responseStatus"]["reason"]),
        (&json!(404), &json!("NotFound"))
    );
    assert_eq!(complete["annotations"]["authorization.k8s.io/decision"], "allow");
    let stages: Vec<_> = of("watch").iter().map(|event| event["stage"].as_str().unwrap_or_default()).collect();
    assert_eq!(stages, ["RequestReceived", "ResponseStarted", "ResponseComplete"]);
}

#[test]
fn a_deprecated_version_is_told_with_the_release_that_lacks_it() {
    let folder = Folder::for_test();
    let path = folder.0.join("audit.log");
    let path_text = path.to_str().expect("it is text");
    let runtime = "resource.k8s.io/v1beta1=true";
    let server = Server::start(
        &folder.0.join("data"),
        &["--store", "memory", "--audit-log-path", path_text, "--runtime-config", runtime],
    );
    let asked = ["/apis/resource.k8s.io/v1beta1/deviceclasses", "/api/v1/componentstatuses"];
    for (at, uri) in asked.iter().enumerate() {
        let answer = server.send("GET", uri, &[("Audit-Id", &at.to_string())], None);
        assert_eq!(answer.status, 200, "{}", answer.json());
    }
    let figures = text(&get(&server, "/metrics"));
    let line = r#"apiserver_requested_deprecated_apis{group="resource.k8s.io",version="v1beta1",resource="deviceclasses",subresource="",removed_release="1.38"} 1"#;
    assert!(figures.lines().any(|found| found == line), "{figures}");
    assert_eq!(server.terminate().0, Some(0));
    let events = events(&std::fs::read_to_string(&path).expect("it is written"));
    let told = |id: &str, name: &str| {
        let event = events.iter().find(|event| event["auditID"] == id && event["stage"] == "ResponseComplete");
        event.expect("it is logged")["annotations"][name].clone()
    };
    for (id, removed) in [("0", json!("1.38")), ("1", Value::Null)] {
        assert_eq!(told(id, "k8s.io/deprecated"), "true");
        assert_eq!(told(id, "k8s.io/removed-release"), removed);
    }
}

#[test]
fn connections_are_among_what_goes_on_for_long() {
    let folder = Folder::for_test();
    let path = folder.0.join("audit.log");
    let path_text = path.to_str().expect("it is text");
    let server = serve_crontabs(&folder, &["--store", "memory", "--audit-log-path", path_text]);
    for (at, subresource) in ["attach", "exec", "log", "portforward", "proxy"].into_iter().enumerate() {
        let uri = format!("/api/v1/namespaces/default/pods/none/{subresource}?timeout=soon");
        let answer = server.send("GET", &uri, &[("Audit-Id", &at.to_string())], None);
        assert_eq!(answer.status, 404, "{subresource}: {}", answer.json());
    }
    let figures = text(&get(&server, "/metrics"));
    let open =
        r#"apiserver_longrunning_requests{verb="CONNECT",group="",version="v1",resource="pods",subresource="log""#;
    assert!(figures.contains(open), "{figures}");
    assert_eq!(server.terminate().0, Some(0));
    let events = events(&std::fs::read_to_string(&path).expect("it is written"));
    for id in ["0", "1", "2", "3", "4"] {
        let of = events.iter().filter(|event| event["auditID"] == id);
        let stages: Vec<_> = of.map(|event| event["stage"].as_str().unwrap_or_default()).collect();
        assert_eq!(stages, ["RequestReceived", "ResponseStarted", "ResponseComplete"]);
    }
}

#[test]
fn a_policy_says_what_the_audit_log_has() {
    let folder = Folder::for_test();
    let (log, policy) = (folder.0.join("audit.log"), folder.0.join("policy.yaml"));
    let rules = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n\
                 - {level: RequestResponse, resources: [{group: stable.example.com}]}\n";
    std::fs::write(&policy, rules).expect("the folder is there");
    let [log_path, policy_path] = [&log, &policy].map(|path| path.to_str().expect("it is text"));
    let arguments = ["--store", "memory", "--audit-log-path", log_path, "--audit-policy-file"];
    let server = serve_crontabs(&folder, &[&arguments[..], &[policy_path]].concat());
    assert_eq!(get(&server, &format!("{CRONTABS}/none")).status, 404);
    assert_eq!(get(&server, "/api/v1/pods").status, 200);
    assert_eq!(server.terminate().0, Some(0));
    let events = events(&std::fs::read_to_string(&log).expect("it is written"));
    let [event] = &events[..] else { panic!("one request is logged: {events:?}") };
    assert_eq!((&event["level"], &event["stage"]), (&json!("RequestResponse"), &json!("ResponseComplete")));
    assert_eq!(event["responseObject"]["reason"], "NotFound");

    std::fs::write(&policy, "kind: Pod").expect("the folder is there");
    let (code, told) = Server::fail_to_start(&folder.0.join("other"), &[&arguments[..], &[policy_path]].concat());
    assert_eq!(code, Some(1));
    assert!(told.contains("loading audit policy file: unknown group version field"), "{told}");
}

#[test]
fn a_request_that_waits_for_a_revision_stops_nobody_however_few_places_there_are() {
    let folder = Folder::for_test();
    let limits = ["--store", "memory", "--max-requests-inflight", "1", "--max-mutating-requests-inflight", "1"];
    let server = serve_crontabs(&folder, &limits);
    let wait_max = Duration::from_secs(60);
    // It waits for three seconds.
    let mut first = server.open("GET", &format!("{CRONTABS}?{WAITS}"), &[], None, wait_max);
    assert_eq!(get(&server, CRONTABS).status, 200);
    assert_eq!(get(&server, &format!("{CRONTABS}?watch=1&timeoutSeconds=1")).status, 200);
    let body = crontab("nightly").to_string();
    assert_eq!(server.send("POST", CRONTABS, &[JSON], Some(body.as_bytes())).status, 201);
    assert_eq!(get(&server, "/readyz").status, 200);
    let mut bytes = Vec::new();
    first.read_to_end(&mut bytes).expect("it is answered");
    assert_eq!(Answer::parse(&bytes).map(|answer| answer.status), Some(504));
}

#[test]
fn a_request_takes_no_longer_than_it_may() {
    let folder = Folder::for_test();
    let server = serve_crontabs(&folder, &["--store", "memory", "--request-timeout", "1"]);
    let message = "Timeout: request did not complete within the allotted timeout";
    let check = |path: &str| {
        let answer = get(&server, path);
        let status = answer.json();
        assert_eq!((answer.status, answer.header("content-type")), (504, "text/plain; charset=utf-8"));
        let expected = json!({"metadata": {}, "status": "Failure", "message": message, "reason": "Timeout", "details": {},
                              "code": 504});
        assert_eq!(status, expected);
    };
    check(&format!("{CRONTABS}?{WAITS}"));
    check(&format!("{CRONTABS}?{WAITS}&timeout=10ms"));
    let refused = get(&server, &format!("{CRONTABS}?timeout=soon"));
    let expected = r#"invalid timeout specified in the request URL - time: invalid duration "soon""#;
    assert_eq!((refused.status, &refused.json()["message"]), (400, &json!(expected)));
    assert_eq!(get(&server, &format!("{CRONTABS}?watch=1&timeoutSeconds=2")).status, 200, "watches go on");
}

#[test]
fn what_is_too_long_is_refused_without_a_word_of_a_library() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory"]);
    let long_path = server.send("GET", &format!("/{}", "a".repeat(70_000)), &[], None);
    assert_eq!((long_path.status, text(&long_path).as_str()), (414, ""));
    let long_header = server.send("GET", "/version", &[("X-Long", &"a".repeat(2 << 20))], None);
    assert_eq!((long_header.status, text(&long_header).as_str()), (431, ""));
    let selector = format!("/api/v1/namespaces?labelSelector={}a", "a,".repeat(20_000));
    assert_eq!(get(&server, &selector).status, 200, "what fits is read");
}

pub const SHIPS: &str = "/apis/harbour.example.com/v1/ships";

/// A server of objects with any fields.
pub fn serve_ships(folder: &Folder, arguments: &[&str]) -> Server {
    let file = folder.0.join("ships.yaml");
    let definition = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ships.harbour.example.com}
spec:
  group: harbour.example.com
  scope: Cluster
  names: {plural: ships, singular: ship, kind: Ship}
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            hold: {type: object, x-kubernetes-preserve-unknown-fields: true}
            decks:
              type: array
              items: {type: object, properties: {name: {type: string, default: DEFAULT}}}
";
    std::fs::write(&file, definition.replace("DEFAULT", &"x".repeat(1000))).expect("the folder is ours");
    let crds = ["--crds", file.to_str().expect("the path is text")];
    Server::start(&folder.0.join("data"), &[&crds, arguments].concat())
}

pub fn send(server: &Server, method: &str, path: &str, body: &Value) -> Answer {
    let content_type = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    server.send(method, path, &[("Content-Type", content_type)], Some(body.to_string().as_bytes()))
}

pub fn ship(name: &str) -> Value {
    json!({"apiVersion": "harbour.example.com/v1", "kind": "Ship", "metadata": {"name": name}})
}

#[test]
fn an_object_does_not_grow_beyond_what_is_stored() {
    let folder = Folder::for_test();
    let server = serve_ships(&folder, &["--store", "memory"]);
    let too_large = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": "etcdserver: request is too large", "code": 500,
    });
    let mut object = ship("hulk");
    object["metadata"]["finalizers"] = json!(["example.com/stays"]);
    assert_eq!(send(&server, "POST", SHIPS, &object).status, 201);
    let hulk = format!("{SHIPS}/hulk");
    let load = |at: usize, bytes: usize| {
        let patch = json!({"hold": {at.to_string(): "x".repeat(bytes)}});
        send(&server, "PATCH", &hulk, &patch)
    };
    assert_eq!(load(0, 2_900_000).status, 200);
    let refused = load(1, 2_900_000);
    assert_eq!((refused.status, refused.json()), (500, too_large.clone()));
    // As much as fits: to be deleted takes some bytes more.
    assert_eq!(load(2, (4 << 20) - 2_900_000 - 700).status, 200);
    assert_eq!(load(3, 700).json(), too_large);
    assert_eq!(server.send("DELETE", &hulk, &[], None).status, 200);
    assert_eq!(send(&server, "PATCH", &hulk, &json!({"metadata": {"finalizers": null}})).status, 200);
    assert_eq!(get(&server, &hulk).status, 404);

    let mut defaulted = ship("raft");
    defaulted["decks"] = json!(vec![json!({}); 5_000]);
    assert_eq!(send(&server, "POST", SHIPS, &defaulted).json(), too_large);
}
