//! Bearer tokens: those of a file, and those of service accounts.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use serde_json::{Value, json};

use super::identity::{get, is_unauthorized};
use super::wait_for;
use crate::kubectl::Kubectl;
use crate::server::{Answer, Folder, Server};

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

fn start() -> (Server, Folder) {
    let folder = Folder::for_test();
    (Server::start(&folder.0, &["--store", "memory"]), folder)
}

fn post(server: &Server, path: &str, object: &Value) -> Answer {
    server.send("POST", path, &[("Content-Type", "application/json")], Some(object.to_string().as_bytes()))
}

fn make_account(server: &Server, name: &str) -> String {
    let made = post(server, ACCOUNTS, &json!({"metadata": {"name": name}}));
    assert_eq!(made.status, 201);
    made.json()["metadata"]["uid"].as_str().expect("it has one").to_owned()
}

#[track_caller]
fn issue(server: &Server, account: &str, spec: &Value) -> String {
    let issued = post(server, &format!("{ACCOUNTS}/{account}/token"), &json!({"spec": spec}));
    assert_eq!(issued.status, 201, "{}", issued.json());
    issued.json()["status"]["token"].as_str().expect("there is a token").to_owned()
}

/// The answer to a GET with a token.
fn get_with(server: &Server, token: &str) -> Answer {
    get(server, "/api/v1/namespaces/default/configmaps", None, &format!("Authorization: Bearer {token}\r\n"))
}

fn part(token: &str, at: usize) -> Value {
    let part = token.split('.').nth(at).expect("there are three parts");
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).expect("it is base64")).expect("it is JSON")
}

fn review(server: &Server, token: &str, audiences: &[&str]) -> Value {
    let answer = post(server, REVIEWS, &json!({"spec": {"token": token, "audiences": audiences}}));
    answer.json()["status"].clone()
}

#[track_caller]
fn check_refused(answer: &Answer, status: u16, message: &str) {
    assert_eq!((answer.status, answer.json()["message"].as_str()), (status, Some(message)));
}

#[test]
fn a_file_says_whose_tokens_are() {
    let folder = Folder::for_test();
    let file = folder.0.join("tokens.csv");
    std::fs::write(&file, "s3cret,jane,u-1,\"dev,ops\"\n").expect("the folder is ours");
    let file = file.to_str().expect("it is text");
    let server = Server::start(&folder.0, &["--store", "memory", "--token-auth-file", file]);
    assert_eq!(get_with(&server, "s3cret").status, 200);
    is_unauthorized(&get_with(&server, "s3cre"));
    let user = json!({"username": "jane", "uid": "u-1", "groups": ["dev", "ops", "system:authenticated"]});
    assert_eq!(review(&server, "s3cret", &[]), json!({"authenticated": true, "user": user, "audiences": [ISSUER]}));
    assert_eq!(review(&server, "s3cret", &["other"]), json!({"user": {}, "error": "invalid bearer token"}));
}

#[test]
fn a_file_that_is_none_is_told() {
    let folder = Folder::for_test();
    let file = folder.0.join("tokens.csv");
    let shown = file.to_str().expect("it is text");
    let fails = |text: &str| {
        std::fs::write(&file, text).expect("the folder is ours");
        Server::fail_to_start(&folder.0, &["--store", "memory", "--token-auth-file", shown])
    };
    let (code, said) = fails("a,b\n");
    assert_eq!(code, Some(1));
    let columns = format!("token file '{shown}' must have at least 3 columns (token, user name, user uid), found 2");
    assert!(said.contains(&columns), "{said}");
    let (_, said) = fails("a,b\",c\n");
    assert!(said.contains("parse error on line 1, column 4: bare \" in non-quoted-field"), "{said}");
    let (code, said) = Server::fail_to_start(&folder.0, &["--store", "memory", "--token-auth-file", "/nowhere"]);
    assert!(code == Some(1) && said.contains("/nowhere"), "{said}");
}

#[test]
fn a_token_of_an_account_is_its_user() {
    let (server, _folder) = start();
    let uid = make_account(&server, "ci");
    let request = json!({"spec": {"expirationSeconds": 900}});
    let issued = post(&server, &format!("{ACCOUNTS}/ci/token?fieldManager=t"), &request);
    assert_eq!(issued.status, 201);
    let answer = issued.json();
    assert_eq!((&answer["kind"], &answer["apiVersion"]), (&json!("TokenRequest"), &json!("authentication.k8s.io/v1")));
    assert_eq!(answer["spec"], json!({"audiences": [ISSUER], "expirationSeconds": 900, "boundObjectRef": null}));
    let metadata = &answer["metadata"];
    assert_eq!(
        [&metadata["name"], &metadata["namespace"], &metadata["uid"]],
        [&json!("ci"), &json!("default"), &json!(uid)]
    );
    let managed = &metadata["managedFields"][0];
    assert_eq!((&managed["manager"], &managed["subresource"]), (&json!("t"), &json!("token")));
    assert_eq!(managed["fieldsV1"], json!({"f:spec": {"f:expirationSeconds": {}}}));
    let token = answer["status"]["token"].as_str().expect("there is a token");
    let claims = part(token, 1);
    assert_eq!(claims["exp"].as_i64().zip(claims["iat"].as_i64()).map(|(end, begin)| end - begin), Some(900));
    assert_eq!(claims["sub"], "system:serviceaccount:default:ci");
    assert_eq!(claims["kubernetes.io"], json!({"namespace": "default", "serviceaccount": {"name": "ci", "uid": uid}}));
    assert_eq!(get_with(&server, token).status, 200);
    let found = review(&server, token, &[]);
    let extra = json!({"authentication.kubernetes.io/credential-id": [format!("JTI={}", claims["jti"].as_str().expect("it has one"))]});
    let groups = ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"];
    let user = json!({"username": "system:serviceaccount:default:ci", "uid": uid, "groups": groups, "extra": extra});
    assert_eq!(found, json!({"authenticated": true, "user": user, "audiences": [ISSUER]}));
}

#[test]
fn what_a_token_is_asked_for_is_checked() {
    let (server, _folder) = start();
    let uid = make_account(&server, "ci");
    let ask = |account: &str, body: &Value| post(&server, &format!("{ACCOUNTS}/{account}/token"), body);
    let short = r#"TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes"#;
    check_refused(&ask("ci", &json!({"spec": {"expirationSeconds": 599}})), 422, short);
    let long = r#"TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 4294967297: may not specify a duration larger than 2^32 seconds"#;
    check_refused(&ask("ci", &json!({"spec": {"expirationSeconds": 4_294_967_297_i64}})), 422, long);
    check_refused(&ask("nobody", &json!({})), 404, r#"serviceaccounts "nobody" not found"#);
    let other = r#"TokenRequest.authentication.k8s.io "ci" is invalid: metadata.name: Invalid value: "x": must match the service account name if specified"#;
    check_refused(&ask("ci", &json!({"metadata": {"name": "x"}})), 422, other);
    let elsewhere = "the namespace of the provided object does not match the namespace sent on the request";
    check_refused(&ask("ci", &json!({"metadata": {"namespace": "x"}})), 400, elsewhere);
    let again = format!(
        r#"Operation cannot be fulfilled on TokenRequest.authentication.k8s.io "ci": the UID in the token request (x) does not match the UID of the service account ({uid})"#
    );
    check_refused(&ask("ci", &json!({"metadata": {"uid": "x"}})), 409, &again);
    let bound = |reference: Value| ask("ci", &json!({"spec": {"boundObjectRef": reference}}));
    check_refused(&bound(json!({"kind": "Secret", "apiVersion": "v1", "name": "s"})), 404, r#"secrets "s" not found"#);
    check_refused(&bound(json!({"kind": "Pod", "apiVersion": "v1", "name": "p"})), 404, r#"pods "p" not found"#);
    check_refused(&bound(json!({"kind": "Node", "apiVersion": "v1", "name": "n"})), 404, r#"nodes "n" not found"#);
    let odd = "cannot bind token to object of type /v1, Kind=ConfigMap";
    check_refused(&bound(json!({"kind": "ConfigMap", "apiVersion": "v1", "name": "c"})), 400, odd);
    assert_eq!(server.send("GET", &format!("{ACCOUNTS}/ci/token"), &[], None).status, 405);
}

#[test]
fn a_token_ends_with_its_account() {
    let (server, _folder) = start();
    let first = make_account(&server, "ci");
    let token = issue(&server, "ci", &json!({}));
    assert_eq!(get_with(&server, &token).status, 200);
    assert_eq!(server.send("DELETE", &format!("{ACCOUNTS}/ci"), &[], None).status, 200);
    is_unauthorized(&get_with(&server, &token));
    let error = |error: &str| json!({"user": {}, "error": format!("[invalid bearer token, {error}]")});
    assert_eq!(review(&server, &token, &[]), error(r#"serviceaccounts "ci" not found"#));
    let second = make_account(&server, "ci");
    is_unauthorized(&get_with(&server, &token));
    let other = format!("service account UID ({second}) does not match claim ({first})");
    assert_eq!(review(&server, &token, &[]), error(&other));
}

#[test]
fn a_token_ends_with_what_it_is_bound_to() {
    let (server, _folder) = start();
    make_account(&server, "ci");
    let nodes = "/api/v1/nodes";
    for (kind, path) in [("Secret", SECRETS), ("Node", nodes)] {
        assert_eq!(post(&server, path, &json!({"metadata": {"name": "b"}})).status, 201);
        let reference = json!({"kind": kind, "apiVersion": "v1", "name": "b"});
        let token = issue(&server, "ci", &json!({"boundObjectRef": reference}));
        assert_eq!(get_with(&server, &token).status, 200, "{kind}");
        if kind == "Node" {
            let found = review(&server, &token, &[]);
            assert_eq!(found["user"]["extra"]["authentication.kubernetes.io/node-name"], json!(["b"]));
        }
        assert_eq!(server.send("DELETE", &format!("{path}/b"), &[], None).status, 200);
        is_unauthorized(&get_with(&server, &token));
        let invalidated =
            json!({"user": {}, "error": "[invalid bearer token, service account token has been invalidated]"});
        assert_eq!(review(&server, &token, &[]), invalidated);
    }
}

#[test]
fn a_token_is_for_its_audiences() {
    let (server, _folder) = start();
    make_account(&server, "ci");
    let token = issue(&server, "ci", &json!({"audiences": ["vault"]}));
    is_unauthorized(&get_with(&server, &token));
    let error = format!(
        r#"[invalid bearer token, token audiences ["vault"] is invalid for the target audiences ["{ISSUER}"]]"#
    );
    assert_eq!(review(&server, &token, &[]), json!({"user": {}, "error": error}));
    let found = review(&server, &token, &["x", "vault"]);
    assert_eq!((&found["authenticated"], &found["audiences"]), (&json!(true), &json!(["vault"])));
}

#[test]
fn tokens_that_were_not_issued_here_are_refused() {
    let (server, _folder) = start();
    make_account(&server, "ci");
    let token = issue(&server, "ci", &json!({}));
    let parts: Vec<&str> = token.split('.').collect();
    let encode = |part: &Value| URL_SAFE_NO_PAD.encode(part.to_string());
    let unsigned = format!("{}.{}.", encode(&json!({"alg": "none"})), parts[1]);
    let mut claims = part(&token, 1);
    claims["kubernetes.io"]["serviceaccount"]["name"] = json!("admin");
    let tampered = [parts[0], &encode(&claims), parts[2]].join(".");
    let mut claims = part(&token, 1);
    claims["iss"] = json!("https://elsewhere.example.com");
    let elsewhere = [parts[0], &encode(&claims), parts[2]].join(".");
    let huge = format!("{}.{}.{}", parts[0], "a".repeat(500_000), parts[2]);
    let not_signed = "[invalid bearer token, go-jose/go-jose: error in cryptographic primitive]";
    let unknown = "invalid bearer token";
    for (token, error) in [(unsigned, not_signed), (tampered, not_signed), (elsewhere, unknown), (huge, unknown)] {
        is_unauthorized(&get_with(&server, &token));
        assert_eq!(review(&server, &token, &[]), json!({"user": {}, "error": error}));
    }
    // Those of another server, by its key.
    let folder = Folder::new("-other");
    let other = Server::start(&folder.0, &["--store", "memory"]);
    make_account(&other, "ci");
    let foreign = issue(&other, "ci", &json!({}));
    is_unauthorized(&get_with(&server, &foreign));
    let error = "[invalid bearer token, invalid signature, no keys found]";
    assert_eq!(review(&server, &foreign, &[]), json!({"user": {}, "error": error}));
}

#[test]
fn what_a_token_says_of_its_own_key_is_not_believed() {
    let (server, _folder) = start();
    make_account(&server, "ci");
    let token = issue(&server, "ci", &json!({}));
    let parts: Vec<&str> = token.split('.').collect();
    let keys = server.send("GET", "/openid/v1/jwks", &[], None);
    let (header, key) = (part(&token, 0), keys.json()["keys"][0].clone());
    let with = |name: &str, value: Value| {
        let mut header = header.clone();
        header[name] = value;
        URL_SAFE_NO_PAD.encode(header.to_string())
    };
    let headers = [
        with("alg", json!("none")),
        with("alg", json!("None")),
        with("alg", json!("HS256")),
        with("alg", json!("ES384")),
        with("kid", json!("../../key")),
        with("kid", json!("")),
        with("kid", Value::Null),
        with("kid", json!(["x"])),
        with("jwk", key),
        with("jku", json!(format!("{}/openid/v1/jwks", server.url))),
        with("crit", json!(["exp"])),
    ];
    for header in &headers {
        for signature in [parts[2], "", "AA"] {
            is_unauthorized(&get_with(&server, &[header, parts[1], signature].join(".")));
        }
        // By a secret that is public: what the server itself tells of its key.
        let text = [header, parts[1]].join(".");
        let secret = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &keys.body);
        let signature = URL_SAFE_NO_PAD.encode(ring::hmac::sign(&secret, text.as_bytes()));
        is_unauthorized(&get_with(&server, &format!("{text}.{signature}")));
    }
    for token in [format!("{token}."), format!(".{token}"), format!("{token}.x"), parts[..2].join("."), "..".to_owned()]
    {
        is_unauthorized(&get_with(&server, &token));
    }
    let answer = get_with(&server, &token);
    assert_eq!(answer.status, 200, "the token itself is good: {}", answer.json());
}

#[test]
fn others_can_verify_tokens_by_the_issuers_documents() {
    let (server, _folder) = start();
    make_account(&server, "ci");
    let token = issue(&server, "ci", &json!({}));
    let authorization = format!("Authorization: Bearer {token}\r\n");
    let configuration = get(&server, "/.well-known/openid-configuration", None, &authorization);
    assert_eq!((configuration.status, configuration.header("content-type")), (200, "application/json"));
    assert_eq!(configuration.header("cache-control"), "public, max-age=3600");
    let configuration = configuration.json();
    assert_eq!((configuration["issuer"].as_str(), &part(&token, 1)["iss"]), (Some(ISSUER), &configuration["issuer"]));
    assert_eq!(configuration["jwks_uri"], format!("{}/openid/v1/jwks", server.url));
    let keys = get(&server, "/openid/v1/jwks", None, &authorization);
    assert_eq!(keys.header("content-type"), "application/jwk-set+json");
    let key = &keys.json()["keys"][0];
    assert_eq!(key["kid"], part(&token, 0)["kid"]);
    let coordinate =
        |name: &str| URL_SAFE_NO_PAD.decode(key[name].as_str().expect("it has one")).expect("it is base64");
    let point = [vec![4], coordinate("x"), coordinate("y")].concat();
    let (message, signature) = token.rsplit_once('.').expect("there are three parts");
    let signature = URL_SAFE_NO_PAD.decode(signature).expect("it is base64");
    let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point);
    key.verify(message.as_bytes(), &signature).expect("it was signed with that key");
    is_unauthorized(&get(&server, "/openid/v1/jwks", None, ""));
}

#[test]
fn tokens_outlive_a_restart() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &[]);
    make_account(&server, "ci");
    let token = issue(&server, "ci", &json!({}));
    server.terminate();
    let server = Server::start(&folder.0, &[]);
    assert_eq!(get_with(&server, &token).status, 200);
}

#[test]
fn kubectl_creates_a_token_and_uses_it() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory", "--authorization-mode=RBAC"]);
    let Some(kubectl) = Kubectl::of(&server) else { return };
    wait_for(&server, &format!("{ACCOUNTS}/default"), |answer| answer.status == 200);
    let token = kubectl.ok("create token default --duration 20m");
    assert_eq!(token.trim().split('.').count(), 3);
    kubectl.ok("create secret generic bound");
    let bound = kubectl.ok("create token default --bound-object-kind Secret --bound-object-name bound --audience x");
    assert_eq!(part(bound.trim(), 1)["aud"], json!(["x"]));
    let refused = kubectl.fails("create token default --duration 1m");
    assert!(refused.contains("may not specify a duration less than 10 minutes"), "{refused}");
    is_unauthorized(&get_with(&server, bound.trim()));
    assert_eq!(get_with(&server, token.trim()).status, 403);
    kubectl.ok("create rolebinding viewers --clusterrole=view --serviceaccount=default:default");
    assert_eq!(get_with(&server, token.trim()).status, 200);
}
