//! Requests that no client of good will sends: each gets the code and reason that Kubernetes gives, and the server goes on.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::json;

use super::{CRONTABS, crontab, serve_nightly};
use crate::server::{Answer, Server};

const JSON: (&str, &str) = ("Content-Type", "application/json");
const MERGE: (&str, &str) = ("Content-Type", "application/merge-patch+json");
const JSON_PATCH: (&str, &str) = ("Content-Type", "application/json-patch+json");
const APPLY: (&str, &str) = ("Content-Type", "application/apply-patch+yaml");
const YAML: (&str, &str) = ("Content-Type", "application/yaml");

/// That the answer is a Status with `code` and `reason`, and the object is what it was.
#[track_caller]
fn check(server: &Server, answer: &Answer, what: &str, code: u16, reason: &str) {
    let status = answer.json();
    let text = String::from_utf8_lossy(&answer.body);
    assert_eq!(answer.status, code, "{what}: {text}");
    assert_eq!((&status["kind"], &status["status"]), (&json!("Status"), &json!("Failure")), "{what}: {text}");
    assert_eq!((&status["code"], &status["reason"]), (&json!(code), &json!(reason)), "{what}: {text}");
    assert!(status["message"].as_str().is_some_and(|message| !message.is_empty()), "{what}: {text}");
    still_answers(server);
}

#[track_caller]
fn still_answers(server: &Server) {
    let answer = server.send("GET", &format!("{CRONTABS}/nightly"), &[], None);
    assert_eq!((answer.status, &answer.json()["metadata"]["generation"]), (200, &json!(1)));
}

/// What it is, the body, its content type.
type Case<'c> = (&'c str, &'c [u8], (&'c str, &'c str));

#[test]
fn malformed_bodies_of_a_create() {
    let (server, _folder) = serve_nightly();
    let deep = format!("{}{}", "[".repeat(20_000), "]".repeat(20_000));
    let bodies: [Case<'_>; 13] = [
        ("nothing", b"", JSON),
        ("half a document", b"{\"kind\": \"CronTab\"", JSON),
        ("two documents", b"{}{}", JSON),
        ("no map", b"[]", JSON),
        ("no kind", b"{}", JSON),
        ("not UTF-8", b"\xff\xfe\x00", JSON),
        ("a NUL", b"{\"kind\": \"\0\"}", JSON),
        ("20,000 levels", deep.as_bytes(), JSON),
        (
            "another version",
            br#"{"apiVersion":"stable.example.com/v2","kind":"CronTab","metadata":{"name":"a"}}"#,
            JSON,
        ),
        ("metadata of a wrong type", br#"{"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":5}"#, JSON),
        ("a tab in YAML", b"kind:\n\t- a", YAML),
        ("an unknown alias in YAML", b"kind: *nowhere", YAML),
        ("an open flow in YAML", b"{kind: [", YAML),
    ];
    for (what, body, content_type) in bodies {
        let answer = server.send("POST", CRONTABS, &[content_type], Some(body));
        check(&server, &answer, what, 400, "BadRequest");
    }
}

#[test]
fn yaml_that_grows_without_end() {
    let (server, _folder) = serve_nightly();
    let mut body = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        body.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
    }
    let answer = server.send("POST", CRONTABS, &[YAML], Some(body.as_bytes()));
    check(&server, &answer, "aliases of aliases", 400, "BadRequest");
}

#[test]
fn bodies_beyond_the_limit() {
    let (server, _folder) = serve_nightly();
    let body = vec![b' '; 3 * 1024 * 1024 + 1];
    let answer = server.send("POST", CRONTABS, &[JSON], Some(&body));
    check(&server, &answer, "3 MiB and one byte", 413, "RequestEntityTooLarge");
}

#[test]
fn content_types_that_are_not_spoken() {
    let (server, _folder) = serve_nightly();
    let body = crontab("other").to_string();
    for content_type in ["text/plain", "application/xml", "application/json, text/plain", "nonsense", "a/b/c"] {
        let answer = server.send("POST", CRONTABS, &[("Content-Type", content_type)], Some(body.as_bytes()));
        check(&server, &answer, content_type, 415, "UnsupportedMediaType");
    }
    for content_type in ["application/json", "application/strategic-merge-patch+json", "text/plain", ""] {
        let headers = [("Content-Type", content_type)];
        let answer = server.send("PATCH", &format!("{CRONTABS}/nightly"), &headers, Some(b"{}"));
        check(&server, &answer, content_type, 415, "UnsupportedMediaType");
    }
}

#[test]
fn answers_that_nobody_can_give() {
    let (server, _folder) = serve_nightly();
    for accept in ["text/plain", "image/png", "application/xml;q=0.9", "nonsense"] {
        let answer = server.send("GET", CRONTABS, &[("Accept", accept)], None);
        check(&server, &answer, accept, 406, "NotAcceptable");
    }
}

#[test]
fn malformed_patches() {
    let (server, _folder) = serve_nightly();
    let path = format!("{CRONTABS}/nightly");
    let patches = [
        ("a merge patch of nothing", "", MERGE, 400, "BadRequest"),
        ("half a merge patch", "{", MERGE, 400, "BadRequest"),
        ("a merge patch that is a list", "[]", MERGE, 400, "BadRequest"),
        ("a JSON patch that is a map", "{}", JSON_PATCH, 400, "BadRequest"),
        ("an unknown operation", r#"[{"op":"grow","path":"/spec"}]"#, JSON_PATCH, 422, "Invalid"),
        ("a path that leads nowhere", r#"[{"op":"remove","path":"/spec/a/b"}]"#, JSON_PATCH, 422, "Invalid"),
        ("a test that fails", r#"[{"op":"test","path":"/spec/replicas","value":7}]"#, JSON_PATCH, 422, "Invalid"),
        ("a patch to another name", r#"{"metadata":{"name":"other"}}"#, MERGE, 400, "BadRequest"),
        ("a value of a wrong type", r#"{"spec":"x"}"#, MERGE, 422, "Invalid"),
        ("an older state", r#"{"metadata":{"resourceVersion":"1"},"spec":{"replicas":2}}"#, MERGE, 409, "Conflict"),
    ];
    for (what, body, content_type, code, reason) in patches {
        let answer = server.send("PATCH", &path, &[content_type], Some(body.as_bytes()));
        check(&server, &answer, what, code, reason);
    }
}

#[test]
fn malformed_applies() {
    let (server, _folder) = serve_nightly();
    let path = format!("{CRONTABS}/nightly");
    let apply = "apiVersion: stable.example.com/v1\nkind: CronTab\n";
    let manager = "fieldManager=a";
    let long_manager = format!("fieldManager={}", "a".repeat(129));
    let applies: [(&str, &str, &str, u16, &str); 5] = [
        ("no manager", "", apply, 422, "Invalid"),
        ("a manager of 129 bytes", &long_manager, apply, 422, "Invalid"),
        ("no YAML", manager, "{a: [", 400, "BadRequest"),
        ("another kind", manager, "apiVersion: stable.example.com/v1\nkind: Other\n", 400, "BadRequest"),
        ("managed fields", manager, &format!("{apply}metadata: {{managedFields: []}}\n"), 400, "BadRequest"),
    ];
    for (what, query, body, code, reason) in applies {
        let answer = server.send("PATCH", &format!("{path}?{query}"), &[APPLY], Some(body.as_bytes()));
        check(&server, &answer, what, code, reason);
    }
}

#[test]
fn malformed_queries() {
    let (server, _folder) = serve_nightly();
    let queries: [(&str, u16, &str); 13] = [
        ("limit=many", 400, "BadRequest"),
        ("limit=99999999999999999999", 400, "BadRequest"),
        ("timeoutSeconds=soon", 400, "BadRequest"),
        ("labelSelector=a%3D%3D%3Db", 400, "BadRequest"),
        ("labelSelector=a+in+b", 400, "BadRequest"),
        ("fieldSelector=spec.image%3Da", 400, "BadRequest"),
        ("fieldSelector=nonsense", 400, "BadRequest"),
        ("continue=nonsense", 400, "BadRequest"),
        ("resourceVersion=old", 400, "BadRequest"),
        ("resourceVersion=-1", 400, "BadRequest"),
        ("resourceVersionMatch=Exact", 422, "Invalid"),
        ("resourceVersion=1&resourceVersionMatch=Sometimes", 422, "Invalid"),
        ("watch=1&resourceVersionMatch=Exact", 422, "Invalid"),
    ];
    for (query, code, reason) in queries {
        let answer = server.send("GET", &format!("{CRONTABS}?{query}"), &[], None);
        check(&server, &answer, query, code, reason);
    }
    for query in ["dryRun=some", "fieldValidation=Perhaps", "dryRun=All&dryRun=None"] {
        let body = crontab("other").to_string();
        let answer = server.send("POST", &format!("{CRONTABS}?{query}"), &[JSON], Some(body.as_bytes()));
        check(&server, &answer, query, 422, "Invalid");
    }
}

#[test]
fn malformed_options_of_a_delete() {
    let (server, _folder) = serve_nightly();
    let path = format!("{CRONTABS}/nightly");
    let options: [(&str, u16, &str); 5] = [
        ("{", 400, "BadRequest"),
        (r#"{"kind":"Other","apiVersion":"v1"}"#, 400, "BadRequest"),
        (r#"{"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Sideways"}"#, 422, "Invalid"),
        (r#"{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"other"}}"#, 409, "Conflict"),
        (r#"{"kind":"DeleteOptions","apiVersion":"v1","dryRun":["Some"]}"#, 422, "Invalid"),
    ];
    for (body, code, reason) in options {
        let answer = server.send("DELETE", &path, &[JSON], Some(body.as_bytes()));
        check(&server, &answer, body, code, reason);
    }
}

#[test]
fn methods_that_are_not_served() {
    let (server, _folder) = serve_nightly();
    // As kube-apiserver, `/apis` and the documents of groups answer all methods.
    let documents = ["/version", "/api", "/api/v1", "/apis/apiextensions.k8s.io/v1"].map(|path| ("POST", path));
    for (method, path) in [("OPTIONS", CRONTABS), ("TRACE", CRONTABS), ("BREW", CRONTABS)].into_iter().chain(documents)
    {
        let answer = server.send(method, path, &[], None);
        check(&server, &answer, method, 405, "MethodNotAllowed");
    }
}

#[test]
fn names_that_do_not_fit() {
    let (server, _folder) = serve_nightly();
    let put = |path: &str, name: &str| server.send("PUT", path, &[JSON], Some(crontab(name).to_string().as_bytes()));

    check(&server, &put(&format!("{CRONTABS}/nightly"), "hourly"), "another name", 400, "BadRequest");
    check(&server, &put(CRONTABS, "nightly"), "no name in the path", 400, "BadRequest");
    check(&server, &put(&format!("{CRONTABS}/hourly"), "hourly"), "a missing object", 404, "NotFound");
    for name in ["Upper", "a_b", "a/b", "-a", ".", &"a".repeat(254)] {
        let body = crontab(name).to_string();
        let answer = server.send("POST", CRONTABS, &[JSON], Some(body.as_bytes()));
        check(&server, &answer, name, 422, "Invalid");
    }
}

#[test]
fn paths_that_lead_nowhere() {
    let (server, _folder) = serve_nightly();
    let paths = [
        "/nonsense",
        "/apis/stable.example.com/v2/crontabs",
        "/apis/stable.example.com/v1/nonsense",
        "/apis/../x",
        "/%00",
    ];
    for path in paths {
        let answer = server.send("GET", path, &[], None);
        assert_eq!((answer.status, answer.body.as_slice()), (404, b"404 page not found\n".as_slice()), "{path}");
    }
    for path in ["missing", "nightly/nonsense", "nightly/nonsense/more", "a%00b", "%ff"] {
        let answer = server.send("GET", &format!("{CRONTABS}/{path}"), &[], None);
        check(&server, &answer, path, 404, "NotFound");
    }
}

#[test]
fn bytes_that_are_no_request() {
    let (server, _folder) = serve_nightly();
    let long = format!("GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n", "a".repeat(2 * 1024 * 1024));
    let many = format!("GET / HTTP/1.1\r\nHost: localhost\r\n{}\r\n", "X-A: b\r\n".repeat(5_000));
    let requests: [&[u8]; 10] = [
        b"\r\n\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01",
        b"nonsense\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nA b: c\r\n\r\n",
        b"POST /apis HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"POST /version HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        long.as_bytes(),
        many.as_bytes(),
    ];
    for request in requests {
        let mut stream = TcpStream::connect(server.plain).expect("the server listens");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a time-out is not zero");
        // It may be refused before it is read.
        _ = stream.write_all(request).and_then(|()| stream.shutdown(std::net::Shutdown::Write));
        let mut bytes = Vec::new();
        _ = stream.read_to_end(&mut bytes);
        assert!(!bytes.starts_with(b"HTTP/1.1 2"), "{}", String::from_utf8_lossy(&bytes));
        still_answers(&server);
    }
}

#[test]
fn a_body_that_breaks_off_stores_nothing() {
    let (server, _folder) = serve_nightly();
    let body = crontab("half").to_string();
    let mut stream = TcpStream::connect(server.plain).expect("the server listens");
    let length = body.len() + 10;
    let head = format!(
        "POST {CRONTABS} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(head.as_bytes()).expect("the server listens");
    drop(stream);

    still_answers(&server);

    assert_eq!(server.send("GET", &format!("{CRONTABS}/half"), &[], None).status, 404);
}
