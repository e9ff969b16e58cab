//! What keeps other pages out, on the wire.

use std::net::{SocketAddr, TcpListener};

use super::program::{Program, ask, playground, send};

#[test]
fn every_answer_forbids_what_pages_do_to_others() {
    let (_program, address) = playground();
    let host = format!("host: {address}");
    for path in ["/", "/page.js", "/page.css", "/icon.svg", "/third-party.txt", "/examples", "/about", "/none"] {
        let answer = send(address, &[&format!("GET {path} HTTP/1.1"), &host], b"");
        assert!(answer.head.contains("x-content-type-options: nosniff"), "{path}: {}", answer.head);
        assert!(answer.head.contains("content-security-policy: default-src 'none'"), "{path}");
        assert!(answer.head.contains("cross-origin-resource-policy: same-origin"), "{path}");
        assert!(!answer.head.contains("access-control-"), "{path}: {}", answer.head);
        assert!(!answer.head.contains("unsafe-"), "{path}: {}", answer.head);
    }
    let nonce = || {
        let page = send(address, &["GET / HTTP/1.1", &host], b"");
        let nonce = page.head.split_once("'nonce-").and_then(|(_, rest)| rest.split_once('\'')).map(|(nonce, _)| nonce);
        let nonce = nonce.expect("the policy has one").to_owned();
        assert!(page.body.contains(&format!("nonce=\"{nonce}\"")));
        nonce
    };
    assert_ne!(nonce(), nonce());
}

#[test]
fn other_hosts_and_origins_are_refused() {
    let (_program, address) = playground();
    let own = format!("host: {address}");
    let elsewhere = format!("host: rebound.example.com:{}", address.port());
    let check = |host: &str, line: &str, status: u16| {
        for first in ["GET /examples HTTP/1.1", "POST /evaluate HTTP/1.1"] {
            let answer = send(address, &[first, host, "content-type: application/json", line], b"{}");
            assert_eq!(answer.status, status, "{first} {host} {line}");
        }
    };
    check(&own, "x-a: b", 200);
    check(&own, &format!("origin: http://{address}"), 200);
    check(&elsewhere, "x-a: b", 403);
    check("host: 127.0.0.1", "x-a: b", 403);
    check(&own, "origin: http://127.0.0.1:1", 403);
    check(&own, "origin: null", 403);
    check(&own, "sec-fetch-site: cross-site", 403);
    check(&own, "sec-fetch-site: same-site", 403);
    // A link may lead to the page itself.
    let lines = ["GET / HTTP/1.1", own.as_str(), "sec-fetch-site: cross-site"];
    assert_eq!(send(address, &lines, b"").status, 200);
    assert_eq!(send(address, &["GET / HTTP/1.1", &elsewhere], b"").status, 403);
}

#[test]
fn only_loopback_addresses_are_taken() {
    for arguments in [&["playground", "--listen", "0.0.0.0:0"][..], &["serve", "--ui", "--ui-listen", "0.0.0.0:0"]] {
        let told = std::process::Command::new(env!("CARGO_BIN_EXE_skiff")).args(arguments).output();
        let told = told.expect("the binary was built with the tests");
        assert_eq!(told.status.code(), Some(2), "{}", String::from_utf8_lossy(&told.stderr));
    }
}

/// A server that forgets, with a page beside it: the page's address, and its secret.
fn live(name: &str, mode: &str) -> (Program, SocketAddr, String) {
    let folder = std::env::temp_dir().join(format!("skiff-page-{}-{name}", std::process::id()));
    let folder = folder.to_str().expect("the folder is text").to_owned();
    let mut program = Program::start(&[
        "serve",
        "--temporary",
        "--data-dir",
        &folder,
        "--listen",
        "127.0.0.1:0",
        &format!("--ui={mode}"),
    ]);
    program.line("ready");
    let link = program.line("ui");
    let (url, token) = link.split_once("/#token=").expect("the link has a secret");
    let address = url.trim_start_matches("http://").parse().expect("it has an address");
    (program, address, token.to_owned())
}

#[test]
fn the_api_behind_the_page_takes_its_secret_and_reads() {
    let (_program, address, token) = live("reads", "read");
    let host = format!("host: {address}");
    let status = |first: &str, line: &str| send(address, &[first, &host, line], b"").status;
    let secret = format!("authorization: Bearer {token}");
    assert_eq!(status("GET /live/api/v1/namespaces HTTP/1.1", &secret), 200);
    for line in ["x-a: b", "authorization: Bearer", "authorization: Bearer x", "authorization: Basic eDp4"] {
        assert_eq!(status("GET /live/api/v1/namespaces HTTP/1.1", line), 401, "{line}");
    }
    for method in ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT"] {
        let answer = status(&format!("{method} /live/api/v1/namespaces/default HTTP/1.1"), &secret);
        assert!([403, 400, 404].contains(&answer), "{method}: {answer}");
    }
    let lines = ["GET /live/api/v1/namespaces HTTP/1.1", &host, &secret, "origin: http://example.com"];
    assert_eq!(send(address, &lines, b"").status, 403);
    let lines = ["GET /live/api/v1/namespaces HTTP/1.1", &host, &secret];
    let answer = send(address, &lines, b"");
    assert!(answer.head.contains("nosniff") && !answer.head.contains("access-control-"), "{}", answer.head);
    assert_eq!(ask(address, "/evaluate", b"{}").status, 200);
}

#[test]
fn it_writes_where_that_was_asked_for() {
    let (_program, address, token) = live("writes", "write");
    let (host, secret) = (format!("host: {address}"), format!("authorization: Bearer {token}"));
    let object = br#"{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"mine"}}"#;
    let lines = ["POST /live/api/v1/namespaces HTTP/1.1", &host, &secret, "content-type: application/json"];
    assert_eq!(send(address, &lines, object).status, 201);
    assert_eq!(send(address, &[lines[0], lines[1], lines[3]], object).status, 401);
}

#[test]
fn another_port_is_told_of_where_the_usual_one_is_taken() {
    // Some other playground may have it just now.
    let held = TcpListener::bind(("127.0.0.1", 6480));
    let (_program, address) = playground();
    assert!(address.ip().is_loopback() && (held.is_err() || address.port() != 6480), "{address}");
    // The page beside a server has a port of its own.
    let held = TcpListener::bind(("127.0.0.1", 6481));
    let (_program, address, _) = live("port", "read");
    assert!(address.ip().is_loopback() && (held.is_err() || address.port() != 6481), "{address}");
    drop(held);
}
