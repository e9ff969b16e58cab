//! What somebody with few rights tries to get more: each is decided as the slow model of RBAC decides what it asks for.

use serde_json::{Value, json};

use super::identity;
use super::rbac_model::{Request, World, is_allowed};
use super::{CRONTABS, crontab, serve_crontabs};
use crate::server::{Answer, Folder, Server};

const JSON: (&str, &str) = ("Content-Type", "application/json");
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
/// What stands in the objects that mallory may not see.
const HIDDEN: &str = "hidden-content";
const MALLORY: &str = "Authorization: Bearer mallorys\r\n";
const ADMIN: &str = "Authorization: Bearer admins\r\n";

/// A server with RBAC on which mallory has a few rights, and the same for the model.
fn start() -> (Server, World, Folder) {
    let folder = Folder::for_test();
    let users = folder.0.join("users.csv");
    std::fs::write(&users, "mallorys,mallory,1\nadmins,root,2,\"system:masters\"\n").expect("the folder is writable");
    let users = users.to_str().expect("the path is text");
    let server =
        serve_crontabs(&folder, &["--store", "memory", "--authorization-mode=RBAC", "--token-auth-file", users]);
    let rules = json!([
        {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["seen"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": ["stable.example.com"], "resources": ["crontabs"], "verbs": ["get", "update", "patch"]},
        {"apiGroups": ["stable.example.com"], "resources": ["crontabs/status"], "verbs": ["get"]},
        {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles", "rolebindings"], "verbs": ["create"]},
    ]);
    let role = json!({"kind": "Role", "metadata": {"name": "few", "namespace": "default"}, "rules": rules});
    let binding = json!({
        "kind": "RoleBinding", "metadata": {"name": "few", "namespace": "default"},
        "subjects": [{"kind": "User", "name": "mallory", "apiGroup": "rbac.authorization.k8s.io"}],
        "roleRef": {"kind": "Role", "name": "few", "apiGroup": "rbac.authorization.k8s.io"},
    });
    make(&server, &format!("{RBAC}/roles"), &role);
    make(&server, &format!("{RBAC}/rolebindings"), &binding);
    for name in ["seen", "other"] {
        make(&server, CONFIG_MAPS, &json!({"metadata": {"name": name}, "data": {"text": format!("{HIDDEN} {name}")}}));
    }
    make(&server, CRONTABS, &crontab("nightly"));
    let world = World::from([("Role default/few".to_owned(), role), ("RoleBinding default/few".to_owned(), binding)]);
    (server, world, folder)
}

#[track_caller]
fn make(server: &Server, path: &str, object: &Value) {
    let answer = server.send("POST", path, &[JSON], Some(object.to_string().as_bytes()));
    assert_eq!(answer.status, 201, "{}", answer.json());
}

/// What is answered to a request over TLS with these headers.
fn send(server: &Server, method: &str, path: &str, headers: &str, body: Option<&Value>) -> Option<Answer> {
    let body = body.map(Value::to_string).unwrap_or_default();
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
    );
    identity::exchange(server, request.as_bytes(), None)
}

#[test]
fn no_spelling_of_a_path_leads_around_a_rule() {
    let (server, _, _folder) = start();
    let get = |path: &str| {
        send(&server, "GET", path, MALLORY, None).map_or(0, |answer| {
            assert!(answer.status == 200 || !String::from_utf8_lossy(&answer.body).contains(HIDDEN), "{path}");
            answer.status
        })
    };
    // The same object, however it is written.
    for path in ["configmaps/seen", "configmaps/see%6e", "configmaps/seen?", "configmaps/seen?watch=0"] {
        assert_eq!(get(&format!("/api/v1/namespaces/default/{path}")), 200, "{path}");
    }
    for path in [
        "/api/v1/namespaces/default/configmaps/other",
        "//api/v1/namespaces/default/configmaps/other",
        "/api//v1/namespaces/default/configmaps/other",
        "/api/v1/namespaces/default//configmaps/other",
        "/api/v1/namespaces/default/configmaps//other",
        "/api/v1/namespaces/default/configmaps/other/",
        "/api/v1/namespaces/default/configmaps/othe%72",
        "/api/v1/namespaces/default/configmaps%2Fother",
        "/api/v1/namespaces/default%2Fconfigmaps/other",
        "/api/v1/namespaces/default/configmaps/seen/../other",
        "/api/v1/namespaces/default/configmaps/seen%2F..%2Fother",
        "/api/v1/namespaces/default/configmaps/%2e%2e/configmaps/other",
        "/api/v1/namespaces/default/configmaps/./other",
        "/version/../api/v1/namespaces/default/configmaps/other",
        "/healthz/../api/v1/namespaces/default/configmaps/other",
        "/healthz%2F..%2Fapi/v1/namespaces/default/configmaps/other",
        "/API/V1/namespaces/default/configmaps/other",
        "/api/v1/Namespaces/default/configmaps/other",
        "/api/v1/namespaces/default/ConfigMaps/other",
        "/api/v1/namespaces/default/configmaps/other;seen",
        "/api/v1/namespaces/default/configmaps/other%00seen",
        "/api/v1/namespaces/default/configmaps/other?name=seen",
        "/api/v1/namespaces/default/configmaps/other?fieldSelector=metadata.name%3Dseen",
        "/api/v1/namespaces/default/configmaps?name=seen",
        "/api/v1/configmaps",
        "/api/v1/watch/namespaces/default/configmaps/other",
        "/api/v1/watch/namespaces/default/configmaps",
        "/api/v1/proxy/namespaces/default/configmaps/other",
        "/apis//v1/namespaces/default/configmaps/other",
        "http://localhost/api/v1/namespaces/default/configmaps/other",
        "http://other.example.com/api/v1/namespaces/default/configmaps/other",
        "/metrics",
    ] {
        let status = get(path);
        assert!(!(200..400).contains(&status), "{path}: {status}");
    }
}

#[test]
fn no_header_makes_somebody_else_of_the_sender() {
    let (server, _, _folder) = start();
    let other = format!("{CONFIG_MAPS}/other");
    for headers in [
        "Impersonate-User: root\r\n",
        "impersonate-user: root\r\n",
        "IMPERSONATE-USER: root\r\n",
        "Impersonate-User: mallory\r\nImpersonate-User: root\r\n",
        "Impersonate-User: root\r\nImpersonate-User: mallory\r\n",
        "Impersonate-User: mallory\r\nImpersonate-Group: system:masters\r\n",
        "Impersonate-Group: system:masters\r\n",
        "Impersonate-Group: system:masters\r\nImpersonate-Group: x\r\n",
        "Impersonate-Uid: 2\r\n",
        "Impersonate-Extra-Scopes: all\r\n",
        "Impersonate-User:\r\n root\r\n",
        "Impersonate-User : root\r\n",
        "Impersonate_User: root\r\n",
        "Impersonate-User: system:serviceaccount:kube-system:default\r\n",
        "X-Remote-User: root\r\nX-Remote-Group: system:masters\r\n",
        "X-Forwarded-User: root\r\nX-Forwarded-Groups: system:masters\r\n",
        "X-Forwarded-For: 127.0.0.1\r\nX-Real-IP: 127.0.0.1\r\nForwarded: for=127.0.0.1\r\n",
        "X-Forwarded-Host: localhost\r\nX-Forwarded-Proto: http\r\n",
        "X-Original-URL: /version\r\nX-Rewrite-URL: /version\r\nX-Forwarded-Uri: /version\r\n",
        "X-HTTP-Method-Override: OPTIONS\r\nX-Method-Override: HEAD\r\n",
        "X-Kubernetes-User: root\r\n",
        "Cookie: Authorization=Bearer admins\r\n",
        "Proxy-Authorization: Bearer admins\r\n",
    ] {
        let answer = send(&server, "GET", &other, &format!("{MALLORY}{headers}"), None);
        let status = answer.as_ref().map_or(0, |answer| answer.status);
        assert!([0, 400, 403].contains(&status), "{headers}: {status}");
        assert!(answer.is_none_or(|answer| !String::from_utf8_lossy(&answer.body).contains(HIDDEN)), "{headers}");
    }
    // The first of two counts, as in Go; no second one is looked for.
    let both = |first: &str, second: &str| {
        send(&server, "GET", &other, &format!("{first}{second}"), None).map(|answer| answer.status)
    };
    assert_eq!(both(MALLORY, ADMIN), Some(403));
    assert_eq!(both("Authorization: Bearer wrong\r\n", ADMIN), Some(401));
    assert_eq!(both("Authorization: Basic wrong\r\n", ADMIN), Some(401));
    assert_eq!(both("", ""), Some(401));
    assert_eq!(both(ADMIN, ""), Some(200));
    // A method in a header is not a method.
    let created = json!({"metadata": {"name": "made"}});
    let overridden = format!("{MALLORY}Content-Type: application/json\r\nX-HTTP-Method-Override: GET\r\n");
    let answer = send(&server, "POST", CONFIG_MAPS, &overridden, Some(&created)).expect("it is answered");
    assert_eq!(answer.status, 403);
}

/// A request, and what it asks for: verb, group, resource, subresource, name.
type Try<'a> = (&'a str, String, &'a str, Option<Value>, [&'a str; 5]);

#[test]
fn every_way_to_ask_is_decided_as_by_the_model() {
    const APPLY: &str = "application/apply-patch+yaml";
    const MERGE: &str = "application/merge-patch+json";
    let (server, world, _folder) = start();
    let map = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
    let selected = |selector: &str| format!("{CONFIG_MAPS}?timeoutSeconds=1&fieldSelector={selector}");
    let object = |path: &str| format!("{CRONTABS}/{path}");
    let maps = |verb, name| [verb, "", "configmaps", "", name];
    let tabs = |verb, part, name| [verb, "stable.example.com", "crontabs", part, name];
    let status = || Some(json!({"status": {"replicas": 3}}));
    let tries: Vec<Try<'_>> = vec![
        ("GET", format!("{CONFIG_MAPS}/seen"), "", None, maps("get", "seen")),
        ("GET", format!("{CONFIG_MAPS}/other"), "", None, maps("get", "other")),
        ("HEAD", format!("{CONFIG_MAPS}/other"), "", None, maps("get", "other")),
        ("GET", CONFIG_MAPS.to_owned(), "", None, maps("list", "")),
        ("GET", selected("metadata.name%3Dseen"), "", None, maps("list", "seen")),
        ("GET", selected("metadata.name%3D%3Dseen"), "", None, maps("list", "seen")),
        ("GET", selected("metadata.name%3Dother"), "", None, maps("list", "other")),
        ("GET", selected("metadata.name!%3Dseen"), "", None, maps("list", "")),
        ("GET", selected("metadata.name%3Dseen") + "&watch=1", "", None, maps("watch", "seen")),
        ("GET", selected("metadata.name%3Dother") + "&watch=1", "", None, maps("watch", "other")),
        ("GET", selected("") + "&watch=true", "", None, maps("watch", "")),
        ("DELETE", CONFIG_MAPS.to_owned(), "", None, maps("deletecollection", "")),
        ("DELETE", selected("metadata.name%3Dseen"), "", None, maps("deletecollection", "seen")),
        ("DELETE", format!("{CONFIG_MAPS}/seen?dryRun=All"), "", None, maps("delete", "seen")),
        ("POST", CONFIG_MAPS.to_owned(), "application/json", Some(map("new")), maps("create", "")),
        ("POST", format!("{CONFIG_MAPS}?dryRun=All"), "application/json", Some(map("new")), maps("create", "")),
        ("PUT", format!("{CONFIG_MAPS}/seen"), "application/json", Some(map("seen")), maps("update", "seen")),
        ("PATCH", object("nightly"), MERGE, Some(json!({})), tabs("patch", "", "nightly")),
        ("PATCH", object("nightly?dryRun=All"), MERGE, Some(json!({})), tabs("patch", "", "nightly")),
        ("GET", object("nightly/status"), "", None, tabs("get", "status", "nightly")),
        ("PATCH", object("nightly/status"), MERGE, status(), tabs("patch", "status", "nightly")),
        ("PATCH", object("nightly/status?dryRun=All"), MERGE, status(), tabs("patch", "status", "nightly")),
        ("GET", object("nightly/scale"), "", None, tabs("get", "scale", "nightly")),
        ("PATCH", object("nightly/scale"), MERGE, Some(json!({})), tabs("patch", "scale", "nightly")),
        // What is not there is created by these, which takes that right, too.
        ("PATCH", object("new?fieldManager=m"), APPLY, Some(crontab("new")), tabs("create", "", "new")),
        ("PATCH", object("new?fieldManager=m&dryRun=All"), APPLY, Some(crontab("new")), tabs("create", "", "new")),
        ("DELETE", object("nightly"), "", None, tabs("delete", "", "nightly")),
        ("GET", "/api/v1/namespaces/default/secrets".to_owned(), "", None, ["list", "", "secrets", "", ""]),
        (
            "POST",
            "/api/v1/namespaces/default/serviceaccounts/default/token".to_owned(),
            "application/json",
            Some(json!({"spec": {}})),
            ["create", "", "serviceaccounts", "token", "default"],
        ),
    ];
    let part = |part: &str| format!("/api/v1/namespaces/default/pods/p/{part}");
    let pods = |verb, part, name| [verb, "", "pods", part, name];
    let json = "application/json";
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}});
    let binding = json!({"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}});
    let parts: Vec<Try<'_>> = vec![
        ("POST", part("eviction"), json, Some(eviction), pods("create", "eviction", "p")),
        ("POST", part("binding"), json, Some(binding.clone()), pods("create", "binding", "p")),
        (
            "POST",
            "/api/v1/namespaces/default/bindings".to_owned(),
            json,
            Some(binding),
            ["create", "", "bindings", "", ""],
        ),
        ("GET", part("ephemeralcontainers"), "", None, pods("get", "ephemeralcontainers", "p")),
        ("PATCH", part("ephemeralcontainers"), MERGE, Some(json!({})), pods("patch", "ephemeralcontainers", "p")),
        ("PUT", part("ephemeralcontainers"), json, Some(json!({})), pods("update", "ephemeralcontainers", "p")),
        ("GET", part("log"), "", None, pods("get", "log", "p")),
        ("POST", part("exec?command=id"), "", None, pods("create", "exec", "p")),
        ("PATCH", part("resize"), MERGE, Some(json!({})), pods("patch", "resize", "p")),
    ];
    for (method, path, content_type, body, [verb, group, resource, subresource, name]) in tries.into_iter().chain(parts)
    {
        let asked = Request {
            user: "mallory".to_owned(),
            groups: vec!["system:authenticated".to_owned()],
            verb: verb.to_owned(),
            group: group.to_owned(),
            resource: resource.to_owned(),
            subresource: subresource.to_owned(),
            namespace: "default".to_owned(),
            name: name.to_owned(),
            path: String::new(),
        };
        let headers = match content_type {
            "" => MALLORY.to_owned(),
            content_type => format!("{MALLORY}Content-Type: {content_type}\r\n"),
        };
        let answer = send(&server, method, &path, &headers, body.as_ref()).expect("it is answered");
        let (status, allowed) = (answer.status, is_allowed(&world, &asked));
        assert_eq!(status != 403, allowed, "{method} {path}: {status} {}", answer.json());
    }
    assert_eq!(server.send("GET", &object("new"), &[], None).status, 404);
}

#[test]
fn what_is_beside_kubernetes_takes_the_right_to_its_path() {
    let (server, _, _folder) = start();
    let json = "Content-Type: application/json\r\n";
    for (method, path, body) in [
        ("GET", "clock", None),
        ("PUT", "clock", Some(json!({"now": "2030-01-01T00:00:00Z"}))),
        ("GET", "faults", None),
        ("POST", "faults", Some(json!({"match": {}, "error": {"status": 500}}))),
        ("DELETE", "faults", None),
        ("DELETE", "faults/1", None),
        ("GET", "planes", None),
        ("POST", "planes", Some(json!({"name": "other"}))),
        ("GET", "planes/other", None),
        ("DELETE", "planes/other", None),
    ] {
        for path in [format!("/skiff/v1/{path}"), format!("//skiff//v1/{path}"), format!("/skiff/v1/./{path}")] {
            let answer = send(&server, method, &path, &format!("{MALLORY}{json}"), body.as_ref());
            let status = answer.map_or(0, |answer| answer.status);
            assert!([0, 301, 400, 403, 404].contains(&status), "{method} {path}: {status}");
        }
    }
    let exact = |method| {
        ["clock", "faults", "planes"].map(|path| {
            let path = format!("/skiff/v1/{path}");
            send(&server, method, &path, MALLORY, None).map(|answer| answer.status)
        })
    };
    assert_eq!((exact("GET"), exact("DELETE")), ([Some(403); 3], [Some(403); 3]));
    // Nothing came of it.
    let faults = send(&server, "GET", "/skiff/v1/faults", ADMIN, None).expect("it is answered");
    assert!(faults.status == 200 && !String::from_utf8_lossy(&faults.body).contains("500"));
    let planes = send(&server, "GET", "/skiff/v1/planes", ADMIN, None).expect("it is answered");
    assert!(!String::from_utf8_lossy(&planes.body).contains("other"));
}

#[test]
fn nobody_raises_themselves() {
    let (server, _, _folder) = start();
    let headers = format!("{MALLORY}Content-Type: application/json\r\n");
    let post = |path: &str, body: &Value| {
        let answer = send(&server, "POST", &format!("{RBAC}/{path}"), &headers, Some(body)).expect("it is answered");
        answer.status
    };
    let role = |rules: Value| json!({"metadata": {"generateName": "r"}, "rules": [rules]});
    let all = json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]});
    let held = json!({"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["seen"], "verbs": ["get"]});
    let more = json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]});
    let right = |verb| json!({"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": [verb]});
    for rules in [all, more, right("escalate"), right("bind"), right("*")] {
        for query in ["roles", "roles?dryRun=All", "roles?fieldValidation=Ignore"] {
            assert_eq!(post(query, &role(rules.clone())), 403, "{query} {rules}");
        }
    }
    assert_eq!(post("roles", &role(held)), 201);
    let bind = |kind: &str, name: &str| {
        json!({
            "metadata": {"generateName": "b"},
            "subjects": [{"kind": "User", "name": "mallory", "apiGroup": "rbac.authorization.k8s.io"}],
            "roleRef": {"kind": kind, "name": name, "apiGroup": "rbac.authorization.k8s.io"},
        })
    };
    assert_eq!(post("rolebindings", &bind("ClusterRole", "cluster-admin")), 403);
    assert_eq!(post("rolebindings?dryRun=All", &bind("ClusterRole", "admin")), 403);
    assert_eq!(post("rolebindings", &bind("Role", "few")), 201);
}

#[test]
fn plain_http_answers_no_page_behind_a_name_of_its_own() {
    let (server, _, _folder) = start();
    let status = |headers: &str| {
        let mut stream = std::net::TcpStream::connect(server.plain).expect("the server listens");
        let request = format!("GET {CONFIG_MAPS} HTTP/1.1\r\nConnection: close\r\n{headers}\r\n");
        let mut bytes = Vec::new();
        std::io::Write::write_all(&mut stream, request.as_bytes()).expect("the server reads");
        std::io::Read::read_to_end(&mut stream, &mut bytes).expect("the server closes the connection");
        assert!(bytes.starts_with(b"HTTP/1.1 200") || !String::from_utf8_lossy(&bytes).contains(HIDDEN));
        Answer::parse(&bytes).map_or(0, |answer| answer.status)
    };
    assert_eq!(status("Host: localhost\r\n"), 200);
    for headers in [
        "Host: rebound.example.com\r\n",
        "Host: rebound.example.com:8080\r\nX-Forwarded-Host: localhost\r\n",
        "Host: localhost.rebound.example.com\r\n",
        "Host: 127.0.0.1.rebound.example.com\r\n",
        "Host: localhost\r\nOrigin: https://rebound.example.com\r\n",
        "Host: localhost\r\nOrigin: null\r\n",
        "Host: rebound.example.com\r\nHost: localhost\r\n",
        "Host: localhost@rebound.example.com\r\n",
        "Host:\r\n",
        "",
    ] {
        assert!([400, 403].contains(&status(headers)), "{headers}");
    }
}
