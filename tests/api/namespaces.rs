//! The life of a namespace: what it has from the start, and how it goes.

use serde_json::{Value, json};

use super::wait_for;
use crate::server::{Answer, Folder, Server};

fn send(server: &Server, method: &str, path: &str, content_type: &str, body: &Value) -> Answer {
    server.send(method, path, &[("Content-Type", content_type)], Some(body.to_string().as_bytes()))
}

fn post(server: &Server, path: &str, body: Value) -> Answer {
    send(server, "POST", path, "application/json", &body)
}

fn make_team(server: &Server) {
    assert_eq!(post(server, "/api/v1/namespaces", json!({"metadata": {"name": "team"}})).status, 201);
}

/// The reason and message of a condition.
fn condition<'c>(namespace: &'c Value, type_: &str) -> Option<(&'c str, &'c str)> {
    let conditions = namespace["status"]["conditions"].as_array()?;
    let found = conditions.iter().find(|condition| condition["type"] == type_)?;
    Some((found["reason"].as_str()?, found["message"].as_str()?))
}

#[test]
fn a_new_namespace_is_active_and_has_its_name_among_its_labels() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory"]);
    make_team(&server);
    let namespace = server.send("GET", "/api/v1/namespaces/team", &[], None).json();
    assert_eq!(namespace["status"], json!({"phase": "Active"}));
    assert_eq!(namespace["spec"], json!({"finalizers": ["kubernetes"]}));
    assert_eq!(namespace["metadata"]["labels"], json!({"kubernetes.io/metadata.name": "team"}));
}

#[test]
fn every_namespace_has_an_account_and_the_authority() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory"]);
    make_team(&server);
    for namespace in ["default", "kube-system", "team"] {
        let base = format!("/api/v1/namespaces/{namespace}");
        let is_there = |answer: &Answer| answer.status == 200;
        wait_for(&server, &format!("{base}/serviceaccounts/default"), is_there);
        let authority = wait_for(&server, &format!("{base}/configmaps/kube-root-ca.crt"), is_there).json();
        assert!(authority["data"]["ca.crt"].as_str().is_some_and(|pem| pem.starts_with("-----BEGIN CERTIFICATE")));
    }
}

#[test]
fn what_a_namespace_must_have_comes_back() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory"]);
    let path = "/api/v1/namespaces/default/serviceaccounts/default";
    let account = wait_for(&server, path, |answer| answer.status == 200).json();
    assert_eq!(server.send("DELETE", path, &[], None).status, 200);
    wait_for(&server, path, |answer| {
        answer.status == 200 && answer.json()["metadata"]["uid"] != account["metadata"]["uid"]
    });

    let path = "/api/v1/namespaces/default/configmaps/kube-root-ca.crt";
    let wanted = wait_for(&server, path, |answer| answer.status == 200).json();
    let patch = json!({"data": {"ca.crt": "mine", "other": "x"}});
    assert_eq!(send(&server, "PATCH", path, "application/merge-patch+json", &patch).status, 200);
    wait_for(&server, path, |answer| answer.json()["data"] == wanted["data"]);
}

#[test]
fn an_empty_namespace_goes() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory"]);
    make_team(&server);
    let answer = server.send("DELETE", "/api/v1/namespaces/team", &[], None);
    assert_eq!((answer.status, &answer.json()["status"]["phase"]), (200, &json!("Terminating")));
    wait_for(&server, "/api/v1/namespaces/team", |answer| answer.status == 404);
}

#[test]
fn a_namespace_waits_for_the_finalizers_of_its_content() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory"]);
    make_team(&server);
    let maps = "/api/v1/namespaces/team/configmaps";
    let held = json!({"metadata": {"name": "held", "finalizers": ["example.com/wait"]}});
    assert_eq!(post(&server, maps, held).status, 201);
    assert_eq!(post(&server, maps, json!({"metadata": {"name": "free"}})).status, 201);

    assert_eq!(server.send("DELETE", "/api/v1/namespaces/team", &[], None).status, 200);

    let remains = |answer: &Answer| {
        condition(&answer.json(), "NamespaceContentRemaining")
            .is_some_and(|(reason, _)| reason == "SomeResourcesRemain")
    };
    let namespace = wait_for(&server, "/api/v1/namespaces/team", remains).json();
    assert_eq!(
        condition(&namespace, "NamespaceContentRemaining"),
        Some(("SomeResourcesRemain", "Some resources are remaining: configmaps. has 1 resource instances")),
    );
    assert_eq!(
        condition(&namespace, "NamespaceFinalizersRemaining"),
        Some(("SomeFinalizersRemain", "Some finalizers are remaining: example.com/wait in 1 resource instances")),
    );
    assert_eq!(
        condition(&namespace, "NamespaceDeletionContentFailure"),
        Some(("ContentDeleted", "All content successfully deleted, may be waiting on finalization")),
    );
    let left = server.send("GET", maps, &[], None).json();
    assert_eq!(left["items"].as_array().map(Vec::len), Some(1));

    let patch = json!({"metadata": {"finalizers": null}});
    let path = format!("{maps}/held");
    assert_eq!(send(&server, "PATCH", &path, "application/merge-patch+json", &patch).status, 200);
    wait_for(&server, "/api/v1/namespaces/team", |answer| answer.status == 404);
}

#[test]
fn nothing_is_created_in_a_namespace_that_ends() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory"]);
    let team = json!({"metadata": {"name": "team"}, "spec": {"finalizers": ["example.com/mine"]}});
    assert_eq!(post(&server, "/api/v1/namespaces", team).status, 201);
    assert_eq!(server.send("DELETE", "/api/v1/namespaces/team", &[], None).status, 200);

    let answer = post(&server, "/api/v1/namespaces/team/configmaps", json!({"metadata": {"name": "a"}}));
    let status = answer.json();
    let message = "configmaps \"a\" is forbidden: unable to create new content in namespace team because it is being \
                   terminated";
    assert_eq!((answer.status, status["message"].as_str()), (403, Some(message)));
    let cause = json!({
        "reason": "NamespaceTerminating", "message": "namespace team is being terminated", "field": "metadata.namespace",
    });
    assert_eq!(status["details"]["causes"], json!([cause]));

    let finalized = json!({"metadata": {"name": "team"}, "spec": {"finalizers": []}});
    let path = "/api/v1/namespaces/team/finalize";
    wait_for(&server, "/api/v1/namespaces/team", |answer| {
        answer.json()["spec"]["finalizers"] == json!(["example.com/mine"])
    });
    assert_eq!(send(&server, "PUT", path, "application/json", &finalized).status, 200);
    wait_for(&server, "/api/v1/namespaces/team", |answer| answer.status == 404);
}
