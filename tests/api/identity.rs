//! Who gets in: those with an identity that this server issued, and to the health checks anybody.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kubeskiff::server::{Authority, Identity};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, ServerName};
use serde_json::json;

use crate::kubectl::Kubectl;
use crate::server::{Answer, Folder, Server};

const UNAUTHORIZED: &str = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}
"#;

fn start() -> (Server, Folder) {
    let folder = Folder::for_test();
    (Server::start(&folder.0, &["--store", "memory"]), folder)
}

/// The answer to a GET over TLS, by a client that trusts the server's CA and shows `identity`, if any.
pub fn get(server: &Server, path: &str, identity: Option<&Identity>, header: &str) -> Answer {
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{header}\r\n");
    exchange(server, request.as_bytes(), identity).expect("it is answered")
}

/// The answer to a request as it stands, over TLS; `None` where there is none.
pub fn exchange(server: &Server, request: &[u8], identity: Option<&Identity>) -> Option<Answer> {
    let kubeconfig = std::fs::read_to_string(&server.kubeconfig).expect("it is written before the server is ready");
    let authority = kubeconfig.lines().find_map(|line| line.trim().strip_prefix("certificate-authority-data: "));
    let authority = STANDARD.decode(authority.expect("the CA is embedded")).expect("it is base64");
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(&authority).expect("it is PEM")).expect("it is a certificate");
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring speaks TLS 1.3")
        .with_root_certificates(roots);
    let config = match identity.map(|identity| identity.to_der().expect("it is well formed")) {
        Some((chain, key)) => config.with_client_auth_cert(chain, key).expect("the key fits"),
        None => config.with_no_client_auth(),
    };
    let name = ServerName::try_from("localhost").expect("it is a host name");
    let connection = ClientConnection::new(Arc::new(config), name).expect("the settings are sound");
    let socket = TcpStream::connect(server.url.trim_start_matches("https://")).expect("the server listens");
    let mut stream = StreamOwned::new(connection, socket);
    stream.write_all(request).expect("the handshake succeeds");
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("the server closes the connection");
    Answer::parse(&bytes)
}

pub fn is_unauthorized(answer: &Answer) {
    assert_eq!(answer.status, 401);
    assert_eq!(answer.header("content-type"), "application/json");
    assert_eq!(String::from_utf8_lossy(&answer.body), UNAUTHORIZED);
}

#[test]
fn a_request_without_an_identity_is_unauthorized() {
    let (server, _folder) = start();
    for path in ["/", "/version", "/api/v1/namespaces", "/apis", "/openapi/v3", "/nonsense"] {
        is_unauthorized(&get(&server, path, None, ""));
    }
}

#[test]
fn a_certificate_of_another_authority_is_unauthorized() {
    let (server, _folder) = start();
    let authority = Authority::generate().expect("a CA can be made");
    let foreign = authority.issue_client("skiff-admin", &["system:masters"]).expect("a certificate can be issued");

    is_unauthorized(&get(&server, "/api/v1/namespaces", Some(&foreign), ""));
}

#[test]
fn a_token_that_nobody_issued_is_unauthorized() {
    let (server, _folder) = start();
    for header in ["Authorization: Bearer s3cret\r\n", "Authorization: Basic YTpi\r\n", "Authorization:\r\n"] {
        is_unauthorized(&get(&server, "/api/v1/namespaces", None, header));
    }
}

#[test]
fn a_refused_request_has_a_line_in_the_audit_log() {
    let folder = Folder::for_test();
    let path = folder.0.join("audit.log");
    let arguments = ["--store", "memory", "--audit-log-path", path.to_str().expect("it is text")];
    let server = Server::start(&folder.0, &arguments);
    let answer = get(&server, "/api/v1/namespaces/n/pods", None, "Authorization: Bearer s3cret\r\n");
    assert_eq!(answer.status, 401);
    let log = std::fs::read_to_string(&path).expect("it is written before the answer is");
    let id = answer.header("audit-id");
    let events: Vec<serde_json::Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).expect("each line is an event"))
        .filter(|event: &serde_json::Value| event["auditID"] == id)
        .collect();
    let [event] = &events[..] else { panic!("it has one line: {log}") };
    assert_eq!((&event["stage"], &event["verb"]), (&json!("ResponseStarted"), &json!("list")));
    assert_eq!((&event["user"], &event["objectRef"]["resource"]), (&json!({}), &json!("pods")));
    let refusal =
        json!({"metadata": {}, "status": "Failure", "message": "Unauthorized", "reason": "Unauthorized", "code": 401});
    assert_eq!(event["responseStatus"], refusal);
    assert!(!log.contains("s3cret"));
}

#[test]
fn an_unauthorized_request_is_answered_in_the_form_that_it_asks_for() {
    let (server, _folder) = start();
    let answer = |path: &str, headers: &str| {
        let answer = get(&server, path, None, headers);
        (answer.status, answer.header("content-type").to_owned(), String::from_utf8_lossy(&answer.body).into_owned())
    };
    let indented = "{\n  \"kind\": \"Status\",\n";
    for (path, headers) in
        [("/api/v1/pods", "User-Agent: curl/8\r\n"), ("/apis?pretty=true", ""), ("/api", "Accept: text/html\r\n")]
    {
        let (code, content_type, body) = answer(path, headers);
        assert_eq!((code, content_type.as_str()), (401, "application/json"), "{path}");
        assert!(body.starts_with(indented), "{body}");
    }
    let (code, content_type, body) = answer("/api/v1/pods", "Accept: application/yaml\r\n");
    assert_eq!((code, content_type.as_str()), (401, "application/yaml"));
    assert!(body.contains("reason: Unauthorized\n"), "{body}");
    let (code, content_type, body) = answer("/api/v1/pods", "Accept: application/vnd.kubernetes.protobuf\r\n");
    assert_eq!((code, content_type.as_str()), (401, "application/vnd.kubernetes.protobuf"));
    assert!(body.starts_with("k8s\0"), "{body}");
}

#[test]
fn a_wrong_timeout_is_told_to_anyone_and_has_one_line_without_a_user() {
    let folder = Folder::for_test();
    let path = folder.0.join("audit.log");
    let arguments = ["--store", "memory", "--audit-log-path", path.to_str().expect("it is text")];
    let server = Server::start(&folder.0, &arguments);
    let message = "invalid timeout specified in the request URL - time: invalid duration \"soon\"";
    let known = server.send("GET", "/api/v1/namespaces?timeout=soon", &[], None);
    for answer in [get(&server, "/api/v1/namespaces?timeout=soon", None, ""), known] {
        assert_eq!((answer.status, &answer.json()["message"]), (400, &json!(message)));
        let log = std::fs::read_to_string(&path).expect("it is written before the answer is");
        let events = log.lines().map(|line| serde_json::from_str(line).expect("each line is an event"));
        let events: Vec<serde_json::Value> =
            events.filter(|event: &serde_json::Value| event["auditID"] == answer.header("audit-id")).collect();
        let [event] = &events[..] else { panic!("it has one line: {log}") };
        assert_eq!((&event["stage"], &event["user"]), (&json!("ResponseStarted"), &json!({})));
        assert_eq!(event["responseStatus"]["message"], message);
    }
    assert_eq!(get(&server, "/api/v1/namespaces?watch=1&timeout=soon", None, "").status, 401);
    assert_eq!(server.send("GET", "/api/v1/watch?timeout=soon", &[], None).status, 500);
}

#[test]
fn headers_that_name_a_user_are_not_believed() {
    let (server, _folder) = start();
    let header = "X-Remote-User: skiff-admin\r\nX-Remote-Group: system:masters\r\nImpersonate-User: skiff-admin\r\n";

    is_unauthorized(&get(&server, "/api/v1/namespaces", None, header));
}

#[test]
fn health_checks_answer_whoever_asks() {
    let (server, _folder) = start();
    for path in ["/healthz", "/livez", "/readyz"] {
        let answer = get(&server, path, None, "");
        assert_eq!((answer.status, answer.body.as_slice()), (200, b"ok".as_slice()), "{path}");
    }
}

#[test]
fn the_kubeconfig_lets_kubectl_in_and_without_its_user_nobody() {
    let (server, _folder) = start();
    let Some(kubectl) = Kubectl::of(&server) else { return };
    let allowed = kubectl.ok("get namespace default -o name");
    let kubeconfig = std::fs::read_to_string(&server.kubeconfig).expect("it is written before the server is ready");
    let is_identity = |line: &&str| line.contains("client-certificate-data") || line.contains("client-key-data");
    let stripped: Vec<&str> = kubeconfig.lines().filter(|line| !is_identity(line)).collect();
    std::fs::write(&server.kubeconfig, stripped.join("\n")).expect("the folder is ours");

    let refused = kubectl.fails("get namespaces --token=s3cret");

    assert_eq!(allowed, "namespace/default\n");
    assert!(refused.contains("You must be logged in to the server"), "{refused}");
}
