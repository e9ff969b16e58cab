//! What must not be told: tokens, keys, passwords and the data of Secrets are in no log, audit log, error or figure.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::identity;
use crate::server::{Folder, Server};

const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const JSON: (&str, &str) = ("Content-Type", "application/json");
const MERGE: (&str, &str) = ("Content-Type", "application/merge-patch+json");

#[test]
fn nothing_secret_is_in_logs_figures_or_errors() {
    let folder = Folder::for_test();
    let (users, audit, data) = (folder.0.join("users.csv"), folder.0.join("audit.log"), folder.0.join("data"));
    std::fs::write(&users, "file-token-7391,jane,1\n").expect("the folder is writable");
    let text = |path: &std::path::Path| path.to_str().expect("the path is text").to_owned();
    let (users, audit_path) = (text(&users), text(&audit));
    let arguments = ["--token-auth-file", &users, "--audit-log-path", &audit_path, "--authorization-mode=RBAC"];
    let server = Server::start_in(&data, &arguments, &[("SKIFF_LOG", std::path::Path::new("trace"))]);
    let mut hidden =
        vec!["file-token-7391".to_owned(), "wrong-token-5102".to_owned(), "data-of-secret-8264".to_owned()];
    hidden.push(STANDARD.encode("data-of-secret-8264"));
    let mut told = Vec::new();
    let mut send = |method: &str, path: &str, header, body: serde_json::Value, status: u16| {
        let answer = server.send(method, path, &[header], Some(body.to_string().as_bytes()));
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.json());
        if status >= 400 {
            told.push(String::from_utf8_lossy(&answer.body).into_owned());
        }
        answer
    };
    // Secrets that are written, and refused.
    let secret = json!({"metadata": {"name": "s"}, "stringData": {"key": "data-of-secret-8264"}, "immutable": true});
    send("POST", SECRETS, JSON, secret.clone(), 201);
    send("POST", SECRETS, JSON, secret, 409);
    send("PATCH", &format!("{SECRETS}/s"), MERGE, json!({"stringData": {"key": "x"}}), 422);
    send("PATCH", &format!("{SECRETS}/s"), MERGE, json!({"type": "other"}), 422);
    let bad_key = json!({"metadata": {"name": "t"}, "stringData": {"a key": "data-of-secret-8264"}});
    send("POST", SECRETS, JSON, bad_key, 422);
    // Tokens that are issued, used and reviewed; good ones and others.
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    send("POST", accounts, JSON, json!({"metadata": {"name": "ci"}}), 201);
    let issued = send("POST", &format!("{accounts}/ci/token"), JSON, json!({"spec": {}}), 201);
    let token = issued.json()["status"]["token"].as_str().expect("there is one").to_owned();
    for token in ["file-token-7391", "wrong-token-5102", &token, &format!("{token}x")] {
        let authorization = format!("Authorization: Bearer {token}\r\n");
        let answer = identity::get(&server, SECRETS, None, &authorization);
        told.push(String::from_utf8_lossy(&answer.body).into_owned());
        let review = json!({"spec": {"token": token}}).to_string();
        let path = "/apis/authentication.k8s.io/v1/tokenreviews";
        let answer = server.send("POST", path, &[JSON], Some(review.as_bytes()));
        told.push(answer.json()["status"].to_string());
    }
    hidden.push(token.rsplit('.').next().expect("it has a signature").to_owned());
    let kubeconfig = std::fs::read_to_string(&server.kubeconfig).expect("it is there");
    let key = kubeconfig.lines().find_map(|line| line.trim().strip_prefix("client-key-data: ")).expect("it has a key");
    let pem = String::from_utf8(STANDARD.decode(key).expect("it is base64")).expect("it is PEM");
    hidden.extend([key.to_owned(), pem.lines().nth(1).expect("the key follows").to_owned()]);
    told.push(String::from_utf8_lossy(&server.send("GET", "/metrics", &[], None).body).into_owned());
    let (code, stderr) = server.terminate();
    assert_eq!(code, Some(0));
    assert!(stderr.contains("INFO"), "it tells what there is: {stderr}");
    told.extend([stderr, std::fs::read_to_string(&audit).expect("it is there")]);
    for hidden in &hidden {
        for told in &told {
            assert!(!told.contains(hidden.as_str()), "{hidden} is told: {told}");
        }
    }
}

#[test]
fn tokens_are_not_traced_however_they_come() {
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    let folder = Folder::for_test();
    let users = folder.0.join("users.csv");
    std::fs::write(&users, "traced-token-4417,jane,1\n").expect("the folder is writable");
    let users = users.to_str().expect("the path is text").to_owned();
    let variables = [("SKIFF_TRACE", std::path::Path::new("requests")), ("SKIFF_LOG", std::path::Path::new("trace"))];
    let arguments = ["--store", "memory", "--token-auth-file", &users];
    let server = Server::start_in(&folder.0.join("data"), &arguments, &variables);
    let encoded = URL_SAFE_NO_PAD.encode("traced-token-4417");
    let path = "/api/v1/namespaces/default/configmaps";
    let upgrade = format!(
        "GET {path}?watch=1&timeoutSeconds=1 HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
         Sec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.{encoded}, base64.binary.k8s.io\r\n\r\n"
    );
    let bearer = "Authorization: Bearer traced-token-4417\r\n";
    assert_eq!(identity::get(&server, path, None, bearer).status, 200);
    let mut stream = TcpStream::connect(server.plain).expect("the server listens");
    let mut opened = Vec::new();
    stream.write_all(upgrade.as_bytes()).expect("the server reads");
    stream.read_to_end(&mut opened).expect("the watch ends after its second");
    let opened = String::from_utf8_lossy(&opened).into_owned();
    assert!(opened.starts_with("HTTP/1.1 101 ") && !opened.contains(&encoded), "{opened}");
    let (code, stderr) = server.terminate();
    assert_eq!(code, Some(0));
    assert!(stderr.contains(path), "requests are traced: {stderr}");
    for hidden in ["traced-token-4417", &encoded] {
        assert!(!stderr.contains(hidden), "{hidden} is told: {stderr}");
    }
}

#[test]
fn the_password_of_a_database_is_not_told() {
    let folder = Folder::for_test();
    for url in [
        "postgres://skiff:password-6093@127.0.0.1:1/skiff",
        "postgres://skiff:password-6093@127.0.0.1:1/skiff?sslmode=nonsense",
        "postgres://skiff:password-6093@127.0.0.1:x/skiff",
        "postgres://skiff:password-6093@127.0.0.1:1/skiff?connect_timeout=x",
        "postgre://skiff:password-6093@127.0.0.1:1/skiff",
    ] {
        for option in [["--store", url].as_slice(), &["--store-override", &format!("example.com/widgets={url}")]] {
            let (code, stderr) = Server::fail_to_start(&folder.0, option);
            assert_ne!(code, Some(0));
            assert!(!stderr.contains("password-6093"), "{url}: {stderr}");
        }
    }
}
