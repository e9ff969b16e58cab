//! Who owns which fields of built-in kinds, whose objects are structs in the reference. Expected values are those of
//! apimachinery 1.37 with the types of client-go.

use serde_json::{Value, json};

use crate::server::{Answer, Folder, Server};

const NODES: &str = "/api/v1/nodes";

fn serve() -> (Server, Folder) {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory"]);
    (server, folder)
}

fn send(server: &Server, method: &str, path: &str, content_type: &str, body: &Value) -> Answer {
    server.send(method, path, &[("Content-Type", content_type)], Some(body.to_string().as_bytes()))
}

fn apply(server: &Server, path: &str, body: &Value) -> Answer {
    let path = format!("{path}?fieldManager=a&force=true");
    send(server, "PATCH", &path, "application/apply-patch+yaml", body)
}

fn node(rest: Value) -> Value {
    let mut node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}});
    if let (Value::Object(node), Value::Object(rest)) = (&mut node, rest) {
        node.extend(rest);
    }
    node
}

/// What the manager of this name owns.
fn owned(object: &Value, manager: &str) -> Value {
    let entries = object["metadata"]["managedFields"].as_array().expect("it has managers");
    let entry = entries.iter().find(|entry| entry["manager"] == manager);
    entry.expect("the manager is one of them")["fieldsV1"].clone()
}

#[test]
fn a_condition_without_its_key_has_an_empty_one() {
    let (server, _folder) = serve();
    assert_eq!(apply(&server, &format!("{NODES}/n"), &node(json!({}))).status, 201);
    let status = node(json!({"status": {"conditions": [{"status": "True"}]}}));
    let answer = apply(&server, &format!("{NODES}/n/status"), &status);
    let expected = json!({"f:status": {"f:conditions": {"k:{\"type\":\"\"}": {".": {}, "f:status": {}}}}});
    let mine = answer.json()["metadata"]["managedFields"]
        .as_array()
        .and_then(|entries| entries.iter().find(|entry| entry["subresource"] == "status").cloned());
    assert_eq!(mine.map(|entry| entry["fieldsV1"].clone()), Some(expected), "{}", answer.json());
}

#[test]
fn a_quantity_may_be_applied_as_a_number() {
    let (server, _folder) = serve();
    apply(&server, &format!("{NODES}/n"), &node(json!({})));
    let answer = apply(
        &server,
        &format!("{NODES}/n/status"),
        &node(json!({"status": {"capacity": {"cpu": 4, "memory": "1Gi"}}})),
    );
    assert_eq!(answer.json()["status"]["capacity"], json!({"cpu": "4", "memory": "1Gi"}), "{}", answer.json());
}

#[test]
fn zero_values_are_nobodys_before_the_first_apply() {
    let (server, _folder) = serve();
    send(&server, "POST", NODES, "application/json", &node(json!({"spec": {"unschedulable": true}})));
    let reset = json!({"metadata": {"managedFields": [{}]}});
    send(&server, "PATCH", &format!("{NODES}/n"), "application/merge-patch+json", &reset);
    let answer = apply(&server, &format!("{NODES}/n"), &node(json!({"metadata": {"name": "n", "labels": {"a": "b"}}})));
    // A new node is not ready.
    let expected = json!({"f:spec": {"f:taints": {}, "f:unschedulable": {}}});
    assert_eq!(owned(&answer.json(), "before-first-apply"), expected, "{}", answer.json());
}

#[test]
fn the_finalizers_of_a_namespace_have_an_owner() {
    let (server, _folder) = serve();
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}, "spec": {"finalizers": ["kubernetes"]},
    });
    let answer = apply(&server, "/api/v1/namespaces/n", &namespace);
    assert_eq!(owned(&answer.json(), "a"), json!({"f:spec": {"f:finalizers": {}}}), "{}", answer.json());
}
