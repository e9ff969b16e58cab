//! Webhooks that fail, each in its own way, and requests that go on.

use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{
    CONFIGURATIONS, CRONTABS, Hook, allow, check_internal, create, crontab, raw, register, respond, start, with,
};
use crate::server::Server;

const NAME: &str = "w.example.com";

fn forget(server: &Server, kind: &str) {
    let path = format!("{CONFIGURATIONS}/{kind}webhookconfigurations/a");
    assert_eq!(server.send("DELETE", &path, &[], None).status, 200);
}

#[test]
fn each_failure_is_told_in_the_words_of_kubernetes_and_passed_over_where_that_is_asked_for() {
    let (server, _folder) = start(&[]);
    let other_uid = respond(|_| json!({"allowed": true, "uid": "other"}));
    let beta = r#"{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview","response":{"allowed":true}}"#;
    let v1 = |response: &str| {
        format!(r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{response}}}"#)
    };
    let slow = respond(|_| {
        std::thread::sleep(Duration::from_secs(3));
        json!({"allowed": true})
    });
    let hook = Hook::new([
        ("/uid", other_uid),
        ("/beta", raw(200, "application/json", beta)),
        ("/none", raw(200, "application/json", v1("null"))),
        ("/empty", raw(200, "application/json", "")),
        ("/garbage", raw(200, "application/json", "garbage")),
        ("/500", raw(500, "text/plain", "out of order")),
        ("/404", raw(404, "text/plain", "what?")),
        ("/close", Box::new(|_| None)),
        ("/slow", slow),
    ]);
    let host = hook.https.address;
    let post = |path: &str, why: &str| format!("Post \"https://{host}{path}?timeout=1s\": {why}");
    let check = |path: &str, expected: &str| {
        let webhook = with(hook.webhook(NAME, path), json!({"timeoutSeconds": 1}));
        register(&server, "Validating", "a", vec![webhook.clone()]);
        check_internal(&create(&server, &crontab("a")), &format!("failed calling webhook \"{NAME}\": {expected}"));
        forget(&server, "validating");
        for kind in ["Mutating", "Validating"] {
            register(&server, kind, "a", vec![with(webhook.clone(), json!({"failurePolicy": "Ignore"}))]);
            assert_eq!(create(&server, &crontab("a")).status, 201, "{path} is passed over");
            server.send("DELETE", &format!("{CRONTABS}/a"), &[], None);
            forget(&server, &kind.to_lowercase());
        }
    };
    hook.take_seen();
    check("/slow", &format!("failed to call webhook: {}", post("/slow", "context deadline exceeded")));
    check("/close", &format!("failed to call webhook: {}", post("/close", "EOF")));
    check(
        "/beta",
        "failed to call webhook: converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion",
    );
    check("/none", "received invalid webhook response: webhook response was absent");
    check(
        "/empty",
        "failed to call webhook: 0-length response with status code: 200 and content type: application/json",
    );
    check(
        "/garbage",
        "failed to call webhook: couldn't get version/kind; json parse error: json: cannot unmarshal string into Go value of \
         type struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \
         \"json:\\\"kind,omitempty\\\"\" }",
    );
    check(
        "/500",
        "failed to call webhook: an error on the server (\"out of order\") has prevented the request from succeeding",
    );
    check("/404", "failed to call webhook: the server could not find the requested resource");
    hook.take_seen();
    register(&server, "Validating", "a", vec![hook.webhook(NAME, "/uid")]);
    let answer = create(&server, &crontab("a"));
    let uid = hook.take_seen()[0]["review"]["request"]["uid"].clone();
    check_internal(
        &answer,
        &format!(
            "failed calling webhook \"{NAME}\": received invalid webhook response: expected response.uid={uid}, got \"other\""
        ),
    );
}

#[test]
fn a_review_that_was_sent_is_not_sent_again() {
    let (server, _folder) = start(&[]);
    let calls = AtomicUsize::new(0);
    let respond = allow();
    let once = move |review: &Value| if calls.fetch_add(1, Ordering::SeqCst) == 0 { respond(review) } else { None };
    let hook = Hook::keeping([("/once", Box::new(once))]);
    register(&server, "Validating", "a", vec![hook.webhook(NAME, "/once")]);
    assert_eq!(create(&server, &crontab("a")).status, 201);
    // The second review is read from the connection of the first, which is closed then.
    let why = format!("Post \"https://{}/once?timeout=10s\": EOF", hook.https.address);
    let why = format!("failed calling webhook \"{NAME}\": failed to call webhook: {why}");
    check_internal(&create(&server, &crontab("b")), &why);
    assert_eq!(hook.take_seen().len(), 2);
}

#[test]
fn a_webhook_that_is_not_there_or_not_who_it_should_be_is_told() {
    let (server, _folder) = start(&[]);
    let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port is free");
    let (hook, named) = (Hook::new([("/see", allow())]), Hook::named("elsewhere.example.com", [("/see", allow())]));
    let check = |config: serde_json::Value, url: &str, why: &str| {
        let webhook = with(hook.webhook(NAME, "/see"), json!({"clientConfig": config}));
        register(&server, "Mutating", "a", vec![webhook]);
        let expected =
            format!("failed calling webhook \"{NAME}\": failed to call webhook: Post \"{url}?timeout=10s\": {why}");
        check_internal(&create(&server, &crontab("a")), &expected);
        forget(&server, "mutating");
    };
    let url = format!("https://{port}/see");
    check(json!({"url": url}), &url, &format!("dial tcp {port}: connect: connection refused"));
    let url = named.url("/see");
    check(
        json!({"url": url, "caBundle": named.authority}),
        &url,
        "tls: failed to verify certificate: x509: cannot validate certificate for 127.0.0.1 because it doesn't contain any IP \
         SANs",
    );
    let url = hook.url("/see");
    check(
        json!({"url": url, "caBundle": named.authority}),
        &url,
        "tls: failed to verify certificate: x509: certificate signed by unknown authority",
    );
    let service = json!({"namespace": "n", "name": "s", "path": "/x"});
    check(json!({"service": service}), "https://s.n.svc:443/x", "service \"s\" not found");
}

#[test]
fn an_answer_of_megabytes_is_read_up_to_a_limit() {
    let (server, _folder) = start(&[]);
    let long = |bytes: usize| respond(move |_| json!({"allowed": false, "status": {"message": "x".repeat(bytes)}}));
    let hook = Hook::new([("/long", long(3 << 20)), ("/endless", long(33 << 20))]);
    register(&server, "Validating", "a", vec![hook.webhook(NAME, "/long")]);
    let answer = create(&server, &crontab("a"));
    assert_eq!(answer.status, 400);
    assert_eq!(answer.json()["message"].as_str().map_or(0, str::len), (3 << 20) + 54);
    register(&server, "Validating", "b", vec![hook.webhook(NAME, "/endless")]);
    forget(&server, "validating");
    let message = create(&server, &crontab("a")).json()["message"].as_str().unwrap_or_default().to_owned();
    assert!(message.contains("unexpected error when reading response body. Please retry."), "{message}");
}

#[test]
fn nobody_else_waits_for_a_webhook_that_hangs() {
    // As many wait for the webhook as there are places for requests that change something.
    let (server, _folder) = start(&["--max-mutating-requests-inflight", "3"]);
    let hook = Hook::new([(
        "/hang",
        respond(|_| {
            std::thread::sleep(Duration::from_secs(8));
            json!({"allowed": true})
        }),
    )]);
    let selector = json!({"timeoutSeconds": 10, "objectSelector": {"matchLabels": {"hangs": "yes"}}});
    register(&server, "Mutating", "a", vec![with(hook.webhook(NAME, "/hang"), selector)]);
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let waiting: Vec<_> = (0..3)
            .map(|at| {
                let mut object = crontab(&format!("waits-{at}"));
                object["metadata"]["labels"] = json!({"hangs": "yes"});
                let server = &server;
                scope.spawn(move || create(server, &object).status)
            })
            .collect();
        while hook.seen.lock().expect("no thread panics").len() < 3 {
            assert!(begun.elapsed() < Duration::from_secs(6), "all of them reach the webhook at once");
            std::thread::sleep(Duration::from_millis(10));
        }
        for at in 0..20 {
            assert_eq!(create(&server, &crontab(&format!("goes-{at}"))).status, 201);
        }
        assert!(waiting.iter().all(|thread| !thread.is_finished()), "the others are done before the webhook answers");
        assert!(waiting.into_iter().all(|thread| thread.join().expect("no thread panics") == 201));
    });
}
