//! Every reason that the API conventions list: its code, what its details say, and when to come back.
//!
//! Not reachable here: `Gone` (what is gone from the log is `Expired`), `ServerTimeout` (the store is in this process) and
//! `ServiceUnavailable` (no other server is asked). `Expired` takes five minutes, so it is tested beside lists and watches
//! in `registry`, where the log can be cut at will.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::{Value, json};

use super::{CRONTABS, crontab, serve_crontabs};
use crate::server::{Answer, Folder, Server};

const JSON: (&str, &str) = ("Content-Type", "application/json");

/// A method, a path and a body.
type Asked<'a> = (&'a str, &'a str, &'a str);

fn send(server: &Server, (method, path, body): Asked<'_>) -> Answer {
    let body = Some(body.as_bytes()).filter(|body| !body.is_empty());
    server.send(method, path, &[JSON], body)
}

/// That `asked` is refused with `code`, `reason` and details that have what `details` has; and that a wait stands in the
/// header as in the details.
#[track_caller]
fn check(server: &Server, asked: Asked<'_>, code: u16, reason: &str, details: Value) {
    let answer = send(server, asked);
    let status = answer.json();
    assert_eq!((answer.status, &status["reason"]), (code, &json!(reason)), "{asked:?}: {status}");
    assert_eq!(
        (&status["kind"], &status["apiVersion"], &status["metadata"], &status["status"], &status["code"]),
        (&json!("Status"), &json!("v1"), &json!({}), &json!("Failure"), &json!(code)),
        "{asked:?}"
    );
    match details {
        Value::Null => assert_eq!(status.get("details"), None, "{asked:?}"),
        details => {
            for (name, value) in details.as_object().expect("details are a map") {
                assert_eq!(&status["details"][name], value, "{asked:?}: {status}");
            }
        }
    }
    let wait = status["details"]["retryAfterSeconds"].as_u64().map(|seconds| seconds.to_string()).unwrap_or_default();
    assert_eq!(answer.header("retry-after"), wait, "{asked:?}");
}

#[test]
fn each_reason_has_its_code_and_details() {
    let folder = Folder::for_test();
    let server = serve_crontabs(&folder, &["--store", "memory"]);
    let nightly = crontab("nightly").to_string();
    assert_eq!(send(&server, ("POST", CRONTABS, &nightly)).status, 201);
    let path = format!("{CRONTABS}/nightly");
    let about = |name: &str| json!({"group": "stable.example.com", "kind": "crontabs", "name": name});

    check(&server, ("GET", &format!("{CRONTABS}/none"), ""), 404, "NotFound", about("none"));
    check(&server, ("POST", CRONTABS, &nightly), 409, "AlreadyExists", about("nightly"));
    let mut generated = crontab("nightly");
    generated["metadata"]["generateName"] = json!("night");
    let mut taken = about("nightly");
    taken["retryAfterSeconds"] = json!(1);
    check(&server, ("POST", CRONTABS, &generated.to_string()), 409, "AlreadyExists", taken);
    let mut stale = crontab("nightly");
    stale["metadata"]["resourceVersion"] = json!("1");
    check(&server, ("PUT", &path, &stale.to_string()), 409, "Conflict", about("nightly"));
    check(
        &server,
        ("DELETE", "/api/v1/namespaces/kube-system", ""),
        403,
        "Forbidden",
        json!({"kind": "namespaces", "name": "kube-system"}),
    );
    let empty =
        json!({"apiVersion": "stable.example.com/v1", "kind": "CronTab", "metadata": {"name": "a"}, "spec": {}});
    let required = json!({"reason": "FieldValueRequired", "message": "Required value", "field": "spec.cronSpec"});
    check(
        &server,
        ("POST", CRONTABS, &empty.to_string()),
        422,
        "Invalid",
        json!({"group": "stable.example.com", "kind": "CronTab", "name": "a", "causes": [required]}),
    );
    let early = json!({"reason": "ResourceVersionTooLarge", "message": "Too large resource version"});
    check(
        &server,
        ("GET", &format!("{CRONTABS}?resourceVersion=999999999"), ""),
        504,
        "Timeout",
        json!({"causes": [early], "retryAfterSeconds": 1}),
    );
    check(&server, ("GET", &format!("{CRONTABS}?limit=many"), ""), 400, "BadRequest", Value::Null);
    check(&server, ("DELETE", &format!("{path}/status"), ""), 405, "MethodNotAllowed", json!({"kind": "crontabs"}));
    let large = " ".repeat((3 << 20) + 1);
    check(&server, ("POST", CRONTABS, &large), 413, "RequestEntityTooLarge", Value::Null);
    // JSON is not a kind of patch.
    check(&server, ("PATCH", &path, "{}"), 415, "UnsupportedMediaType", Value::Null);
    let unacceptable = server.send("GET", CRONTABS, &[("Accept", "image/png")], None);
    let status = unacceptable.json();
    assert_eq!((unacceptable.status, &status["reason"], &status["code"]), (406, &json!("NotAcceptable"), &json!(406)));
}

#[test]
fn a_request_without_an_identity_is_unauthorized() {
    let folder = Folder::for_test();
    let server = serve_crontabs(&folder, &["--store", "memory"]);
    let answer = get_without_identity(&server, CRONTABS);
    let status = answer.json();
    assert_eq!((answer.status, &status["reason"], &status["code"]), (401, &json!("Unauthorized"), &json!(401)));
    assert_eq!(status["message"], "Unauthorized");
    assert!(!answer.header("audit-id").is_empty());
    assert_eq!(get_without_identity(&server, "/readyz").status, 200);
}

/// Over TLS, without a client certificate.
fn get_without_identity(server: &Server, path: &str) -> Answer {
    let kubeconfig = std::fs::read_to_string(&server.kubeconfig).expect("the server has written it");
    let authority = kubeconfig.lines().find_map(|line| line.split_once("certificate-authority-data:"));
    let (_, authority) = authority.expect("it names the authority");
    let authority = STANDARD.decode(authority.trim().trim_matches('"')).expect("it is base64");
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(&authority).expect("it is PEM")).expect("it is a certificate");
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring knows them")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let address = server.url.trim_start_matches("https://");
    let stream = TcpStream::connect(address).expect("the server listens");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a time-out is not zero");
    let name = ServerName::try_from("localhost").expect("it is a name");
    let connection = ClientConnection::new(Arc::new(config), name).expect("the configuration fits");
    let mut stream = StreamOwned::new(connection, stream);
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("the server reads");
    let mut bytes = Vec::new();
    // The server may end the connection without a word.
    _ = stream.read_to_end(&mut bytes);
    Answer::parse(&bytes).expect("it is an answer")
}

/// A definition with two versions whose webhook nobody answers for.
fn unconvertible() -> Value {
    let version = |name: &str, storage: bool| {
        json!({"name": name, "served": true, "storage": storage,
               "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}})
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "foos.stable.example.com"},
        "spec": {
            "group": "stable.example.com", "scope": "Namespaced", "names": {"plural": "foos", "kind": "Foo"},
            "versions": [version("v1", true), version("v2", false)],
            "conversion": {"strategy": "Webhook", "webhook": {
                "conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://127.0.0.1:1/convert"}}}}
    })
}

/// A server with a Foo that can't be read as v2; the paths of its collection in both versions.
fn serve_unreadable(folder: &Folder) -> (Server, String, String) {
    let server = serve_crontabs(folder, &["--store", "memory"]);
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(send(&server, ("POST", definitions, &unconvertible().to_string())).status, 201);
    let of = |version: &str| format!("/apis/stable.example.com/{version}/namespaces/default/foos");
    let object = json!({"apiVersion": "stable.example.com/v1", "kind": "Foo", "metadata": {"name": "a"}}).to_string();
    let mut created = 0;
    for _ in 0..200 {
        created = send(&server, ("POST", &of("v1"), &object)).status;
        if created == 201 {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(created, 201, "the definition is not served");
    (server, of("v1"), of("v2"))
}

#[test]
fn what_can_not_be_read_is_an_error_of_the_server() {
    let folder = Folder::for_test();
    let (server, _, v2) = serve_unreadable(&folder);
    let one = send(&server, ("GET", &format!("{v2}/a"), "")).json();
    assert_eq!((&one["reason"], &one["code"]), (&json!("InternalError"), &json!(500)));
    let cause = one["details"]["causes"][0]["message"].as_str().expect("it says why");
    assert_eq!(one["message"], format!("Internal error occurred: {cause}"));
    let all = send(&server, ("GET", &v2, "")).json();
    assert_eq!((&all["reason"], &all["code"]), (&json!("StorageReadError"), &json!(500)));
    assert_eq!(all["details"]["causes"][0]["reason"], "UnexpectedServerResponse");
    assert_eq!(all["details"]["causes"][0]["field"], "/stable.example.com/foos/default/a");
}

#[test]
fn of_many_objects_that_can_not_be_read_a_hundred_are_told() {
    let folder = Folder::for_test();
    let (server, v1, v2) = serve_unreadable(&folder);
    for at in 0..100 {
        let metadata = json!({"name": format!("b-{at}")});
        let object = json!({"apiVersion": "stable.example.com/v1", "kind": "Foo", "metadata": metadata});
        assert_eq!(send(&server, ("POST", &v1, &object.to_string())).status, 201);
    }
    let all = send(&server, ("GET", &v2, "")).json();
    let causes = all["details"]["causes"].as_array().expect("there are causes");
    assert_eq!(causes.len(), 101);
    let last = json!({"reason": "FieldValueTooMany", "message": "too many errors, the list is truncated"});
    assert_eq!(causes[100], last);
    let message = all["message"].as_str().expect("it says why");
    assert!(message.ends_with(" (and 99 more)"), "{message}");
}

#[test]
fn where_the_reference_stores_an_object_is_told_with_a_uid_that_is_not_its_own() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory"]);
    for (collection, object, key) in [
        (
            "/api/v1/namespaces/default/services",
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]}}),
            "/services/specs/default/a",
        ),
        (
            "/api/v1/namespaces/default/endpoints",
            json!({"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "a"}}),
            "/services/endpoints/default/a",
        ),
        ("/api/v1/nodes", json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}), "/minions/a"),
        (
            "/apis/networking.k8s.io/v1/namespaces/default/ingresses",
            json!({
                "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "a"},
                "spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}},
            }),
            "/ingress/default/a",
        ),
    ] {
        let made = send(&server, ("POST", collection, &object.to_string()));
        assert_eq!(made.status, 201, "{}", made.json());
        let mut other = object;
        other["metadata"]["uid"] = json!("x");
        for (query, prefix) in [("", "/registry"), ("?dryRun=All", "")] {
            let answer = send(&server, ("PUT", &format!("{collection}/a{query}"), &other.to_string()));
            let message = answer.json()["message"].as_str().unwrap_or_default().to_owned();
            assert_eq!(answer.status, 409, "{message}");
            assert!(message.contains(&format!("Code: 4, Key: {prefix}{key}, ResourceVersion: 0")), "{message}");
        }
    }
}

#[test]
fn the_aggregator_has_a_scheme_of_its_own() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory"]);
    let other = json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "X", "metadata": {"name": "v1.a.b"}});
    let answer = send(&server, ("POST", "/apis/apiregistration.k8s.io/v1/apiservices", &other.to_string()));
    let expected = "X in version \"v1\" cannot be handled as a APIService: no kind \"X\" is registered for version \
                    \"apiregistration.k8s.io/v1\" in scheme \"k8s.io/kube-aggregator/pkg/apiserver/scheme/scheme.go:28\"";
    assert_eq!((answer.status, &answer.json()["message"]), (400, &json!(expected)));
}

#[test]
fn what_can_not_be_read_may_be_deleted_all_the_same() {
    const UNSAFE: &str = "ignoreStoreReadErrorWithClusterBreakingPotential";
    let folder = Folder::for_test();
    let (server, v1, v2) = serve_unreadable(&folder);
    let delete = |path: &str, options: Value| send(&server, ("DELETE", path, &options.to_string()));

    assert_eq!(delete(&format!("{v2}/a"), json!({})).status, 500);
    let readable = delete(&format!("{v1}/a"), json!({UNSAFE: true}));
    let expected = "Operation cannot be fulfilled on foos.stable.example.com \"a\": StorageError: invalid object, Code: 4, \
                    Key: /stable.example.com/foos/default/a, ResourceVersion: 0, AdditionalErrorMsg: unsafe deletion is \
                    not allowed because the object is decodable from storage";
    assert_eq!((readable.status, &readable.json()["message"]), (409, &json!(expected)));
    let collection = delete(&v2, json!({UNSAFE: true}));
    let expected = format!(
        "DeleteOptions.meta.k8s.io \"\" is invalid: {UNSAFE}: Invalid value: true: is not allowed with DELETECOLLECTION, \
         try again after removing the option"
    );
    assert_eq!((collection.status, &collection.json()["message"]), (422, &json!(expected)));
    for (other, detail) in [
        (json!({"gracePeriodSeconds": 0}), ".gracePeriodSeconds"),
        (json!({"propagationPolicy": "Orphan"}), ".propagationPolicy"),
        (json!({"orphanDependents": false}), ".orphanDependents"),
        (json!({"preconditions": {}}), ".preconditions"),
    ] {
        let mut options = other;
        options[UNSAFE] = json!(true);
        let refused = delete(&format!("{v2}/a"), options);
        let expected = format!("{UNSAFE}: Invalid value: true: cannot be set together with {detail}");
        let message = refused.json()["message"].as_str().unwrap_or_default().to_owned();
        assert!(refused.status == 422 && message.ends_with(&expected), "{message}");
    }

    let gone = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
                      "details": {"name": "a", "kind": "Foo"}, "code": 200});
    assert_eq!(delete(&format!("{v2}/a"), json!({UNSAFE: true, "dryRun": ["All"]})).json(), gone);
    assert_eq!(send(&server, ("GET", &format!("{v1}/a"), "")).status, 200);
    let query = format!("{v2}/a?{UNSAFE}=true");
    assert_eq!(send(&server, ("DELETE", &query, "")).json(), gone);
    assert_eq!(send(&server, ("DELETE", &query, "")).status, 404);
}
