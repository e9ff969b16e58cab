//! What the options of the verbs promise: a dry run does nothing, a precondition holds or nothing is done.

use serde_json::{Value, json};

use super::{CRONTABS, crontab, serve_crontabs};
use crate::server::{Answer, Folder, Server};

const JSON: (&str, &str) = ("Content-Type", "application/json");

fn send(server: &Server, method: &str, path: &str, content_type: &str, body: &Value) -> Answer {
    server.send(method, path, &[("Content-Type", content_type)], Some(body.to_string().as_bytes()))
}

fn create(server: &Server, object: &Value) -> Value {
    let created = server.send("POST", CRONTABS, &[JSON], Some(object.to_string().as_bytes()));
    assert_eq!(created.status, 201, "{}", String::from_utf8_lossy(&created.body));
    created.json()
}

/// All objects, and the revision of the database.
/// The objects with their revisions. That of the list moves by itself while the server still writes what it begins with.
fn state(server: &Server) -> Value {
    let answer = server.send("GET", CRONTABS, &[], None);
    assert_eq!(answer.status, 200);
    answer.json()["items"].take()
}

fn with_finalizer(name: &str) -> Value {
    let mut object = crontab(name);
    object["metadata"]["finalizers"] = json!(["example.com/hold"]);
    object
}

#[test]
fn a_dry_run_of_any_verb_changes_nothing() {
    let folder = Folder::for_test();
    let server = serve_crontabs(&folder, &["--store", "memory"]);
    let nightly = create(&server, &crontab("nightly"));
    create(&server, &with_finalizer("held"));
    create(&server, &with_finalizer("leaving"));
    let path = |name: &str| format!("{CRONTABS}/{name}");
    assert_eq!(server.send("DELETE", &path("leaving"), &[], None).status, 200);
    let before = state(&server);

    let mut changed = nightly.clone();
    changed["spec"]["replicas"] = json!(7);
    let mut status = nightly.clone();
    status["status"] = json!({"phase": "Active"});
    let mut generated = crontab("");
    generated["metadata"] = json!({"generateName": "gen-"});
    let scale = json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "nightly"}, "spec": {"replicas": 3}});
    let replicas = json!({"spec": {"replicas": 5}});
    let free = json!({"metadata": {"finalizers": null}});
    let (json_type, merge) = ("application/json", "application/merge-patch+json");
    let apply = "application/apply-patch+yaml";
    let q = "dryRun=All";
    let options = |fields: Value| {
        let mut options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "dryRun": ["All"]});
        options.as_object_mut().expect("it is a map").extend(fields.as_object().expect("it is a map").clone());
        options
    };
    let requests: [(&str, String, &str, Value, u16); 17] = [
        ("POST", format!("{CRONTABS}?{q}"), json_type, crontab("new"), 201),
        ("POST", format!("{CRONTABS}?{q}"), json_type, generated, 201),
        ("POST", format!("{CRONTABS}?{q}"), json_type, crontab("nightly"), 409),
        ("PUT", format!("{}?{q}", path("nightly")), json_type, changed, 200),
        ("PUT", format!("{}/status?{q}", path("nightly")), json_type, status, 200),
        ("PUT", format!("{}/scale?{q}", path("nightly")), json_type, scale, 200),
        ("PATCH", format!("{}?{q}", path("nightly")), merge, replicas.clone(), 200),
        ("PATCH", format!("{}/scale?{q}", path("nightly")), merge, replicas, 200),
        ("PATCH", format!("{}?{q}&fieldManager=t", path("nightly")), apply, crontab("nightly"), 200),
        ("PATCH", format!("{}?{q}&fieldManager=t", path("new")), apply, crontab("new"), 201),
        ("PATCH", format!("{}?{q}", path("leaving")), merge, free, 200),
        ("DELETE", path("nightly"), json_type, options(json!({})), 200),
        ("DELETE", path("held"), json_type, options(json!({})), 200),
        ("DELETE", path("nightly"), json_type, options(json!({"propagationPolicy": "Foreground"})), 200),
        ("DELETE", path("nightly"), json_type, options(json!({"propagationPolicy": "Orphan"})), 200),
        ("DELETE", path("held"), json_type, options(json!({"orphanDependents": false})), 202),
        ("DELETE", CRONTABS.to_owned(), json_type, options(json!({"propagationPolicy": "Foreground"})), 200),
    ];
    for (method, path, content_type, body, code) in requests {
        let answer = send(&server, method, &path, content_type, &body);
        assert_eq!(answer.status, code, "{method} {path}: {}", String::from_utf8_lossy(&answer.body));
        assert_eq!(state(&server), before, "{method} {path}");
    }
    let query = server.send("DELETE", &format!("{}?{q}", path("nightly")), &[], None);
    assert_eq!((query.status, state(&server)), (200, before));
}

#[test]
fn a_dry_run_answers_what_would_be() {
    let folder = Folder::for_test();
    let server = serve_crontabs(&folder, &["--store", "memory"]);
    let nightly = create(&server, &crontab("nightly"));
    let path = format!("{CRONTABS}/nightly");
    let options = json!({"dryRun": ["All"], "propagationPolicy": "Foreground"});
    let marked = send(&server, "DELETE", &path, "application/json", &options).json();
    assert_eq!(marked["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    assert!(marked["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(marked["metadata"]["generation"], 2);
    let patch = json!({"spec": {"replicas": 4}});
    let patched = send(&server, "PATCH", &format!("{path}?dryRun=All"), "application/merge-patch+json", &patch).json();
    assert_eq!((&patched["spec"]["replicas"], &patched["metadata"]["generation"]), (&json!(4), &json!(2)));
    assert_eq!(patched["metadata"]["resourceVersion"], nightly["metadata"]["resourceVersion"]);
    let invalid = json!({"spec": {"replicas": -1}});
    let refused = send(&server, "PATCH", &format!("{path}?dryRun=All"), "application/merge-patch+json", &invalid);
    assert_eq!(refused.status, 422, "it is validated as ever");
}

#[test]
fn a_precondition_of_a_delete_stands_in_the_body_or_in_the_query() {
    let folder = Folder::for_test();
    let server = serve_crontabs(&folder, &["--store", "memory"]);
    let nightly = create(&server, &crontab("nightly"));
    let path = format!("{CRONTABS}/nightly");
    let (uid, revision) = (&nightly["metadata"]["uid"], &nightly["metadata"]["resourceVersion"]);
    let body = |preconditions: Value| {
        send(&server, "DELETE", &path, "application/json", &json!({"dryRun": ["All"], "preconditions": preconditions}))
    };
    let query = |query: &str| server.send("DELETE", &format!("{path}?dryRun=All&{query}"), &[], None);

    let refused = body(json!({"uid": "other"}));
    let expected = format!(
        "Operation cannot be fulfilled on CronTab.stable.example.com \"nightly\": the UID in the precondition (other) does \
         not match the UID in record ({}). The object might have been deleted and then recreated",
        uid.as_str().unwrap_or_default()
    );
    assert_eq!((refused.status, &refused.json()["message"]), (409, &json!(expected)));
    assert_eq!(body(json!({"resourceVersion": "1"})).status, 409);
    assert_eq!(body(json!({"uid": uid, "resourceVersion": "1"})).status, 409);
    assert_eq!(body(json!({"uid": uid, "resourceVersion": revision})).status, 200);
    assert_eq!(query("uid=other").status, 409);
    assert_eq!(query("resourceVersion=1").status, 409);
    assert_eq!(query(&format!("uid={}", uid.as_str().unwrap_or_default())).status, 200);
    // A body is all that counts where there is one.
    let both = server.send("DELETE", &format!("{path}?uid=other"), &[JSON], Some(b"{\"dryRun\":[\"All\"]}"));
    assert_eq!(both.status, 200);
}
