//! Which webhooks are called.

use serde_json::{Value, json};

use super::{CONFIGURATIONS, Hook, JSON, allow, create, crontab, register, start, with};
use crate::server::Server;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn post(server: &Server, path: &str, body: &Value) -> u16 {
    server.send("POST", path, &[JSON], Some(body.to_string().as_bytes())).status
}

fn labelled(mut object: Value, labels: &Value) -> Value {
    object["metadata"]["labels"] = labels.clone();
    object
}

#[test]
fn objects_are_selected_by_their_labels_before_or_after() {
    let (server, _folder) = start(&[]);
    let hook = Hook::new([("/see", allow())]);
    let selector = json!({"objectSelector": {"matchLabels": {"watch": "yes"}}});
    register(&server, "Validating", "a", vec![with(hook.webhook("see.example.com", "/see"), selector)]);
    assert_eq!(create(&server, &crontab("a")).status, 201);
    assert_eq!(hook.take_seen().len(), 0);
    let path = format!("{}/a", super::CRONTABS);
    let patch = |labels: Value| {
        let body = json!({"metadata": {"labels": labels}}).to_string();
        assert_eq!(server.send("PATCH", &path, &[super::MERGE], Some(body.as_bytes())).status, 200);
        hook.take_seen().len()
    };
    assert_eq!(patch(json!({"watch": "yes"})), 1);
    assert_eq!(patch(json!({"watch": null})), 1, "it had the label");
    assert_eq!(patch(json!({"other": "x"})), 0);
}

#[test]
fn namespaces_are_selected_by_the_labels_that_they_are_to_have() {
    let (server, _folder) = start(&[]);
    let hook = Hook::new([("/see", allow())]);
    let rules = json!([{
        "operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["crontabs", "namespaces", "nodes"],
    }]);
    let selector = json!({"matchExpressions": [{"key": "team", "operator": "In", "values": ["blue"]}]});
    let webhook = with(hook.webhook("see.example.com", "/see"), json!({"rules": rules, "namespaceSelector": selector}));
    register(&server, "Validating", "a", vec![webhook]);
    let namespace = |name: &str, team: &str| {
        labelled(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}), &json!({"team": team}))
    };
    let check = |path: &str, body: &Value, expected: usize| {
        assert_eq!(post(&server, path, body), 201);
        assert_eq!(hook.take_seen().len(), expected, "{path}");
    };
    check("/api/v1/namespaces", &namespace("blue", "blue"), 1);
    check("/api/v1/namespaces", &namespace("red", "red"), 0);
    let crontabs = |namespace: &str| format!("/apis/stable.example.com/v1/namespaces/{namespace}/crontabs");
    check(&crontabs("blue"), &crontab("a"), 1);
    check(&crontabs("red"), &crontab("a"), 0);
    // What is in no namespace is not told apart by one.
    check("/api/v1/nodes", &json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}), 1);
}

/// A definition of boats in two versions that are one for the server.
fn boats() -> Value {
    let version = |name: &str, storage: bool| {
        let spec = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        json!({
            "name": name, "served": true, "storage": storage,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
        })
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "boats.example.com"},
        "spec": {
            "group": "example.com", "scope": "Cluster", "names": {"plural": "boats", "kind": "Boat"},
            "versions": [version("v1", true), version("v2", false)],
        },
    })
}

#[test]
fn other_versions_of_what_a_rule_names_are_sent_in_the_version_that_it_names() {
    let (server, _folder) = start(&[]);
    assert_eq!(post(&server, DEFINITIONS, &boats()), 201);
    super::super::wait_for(&server, "/apis/example.com/v2/boats", |answer| answer.status == 200);
    let hook = Hook::new([("/equivalent", allow()), ("/exact", allow()), ("/never", allow())]);
    let rules = json!([{"operations": ["CREATE"], "apiGroups": ["*"], "apiVersions": ["v1"], "resources": ["boats"]}]);
    let webhook = |path: &str, policy: &str| {
        let name = format!("{}.example.com", &path[1..]);
        with(hook.webhook(&name, path), json!({"rules": rules, "matchPolicy": policy}))
    };
    let conditioned = |path: &str, expression: &str| {
        let conditions = json!([{"name": "c", "expression": expression}]);
        with(webhook(path, "Equivalent"), json!({"matchConditions": conditions}))
    };
    // Match conditions see the resource of the request, also where the rule names another version.
    let webhooks = vec![
        conditioned("/equivalent", "request.kind.version == 'v1' && request.resource == request.requestResource"),
        conditioned("/never", "request.resource.version == 'v1' && request.requestResource.version == 'v2'"),
        webhook("/exact", "Exact"),
    ];
    register(&server, "Validating", "a", webhooks);
    let boat = |version: &str, name: &str| json!({"apiVersion": format!("example.com/{version}"), "kind": "Boat", "metadata": {"name": name}});
    assert_eq!(post(&server, "/apis/example.com/v2/boats", &boat("v2", "a")), 201);
    let seen = hook.take_seen();
    assert_eq!(seen.len(), 1);
    let request = &seen[0]["review"]["request"];
    assert_eq!(request["object"]["apiVersion"], "example.com/v1");
    assert_eq!((&request["resource"]["version"], &request["kind"]["version"]), (&json!("v1"), &json!("v1")));
    assert_eq!(
        (&request["requestResource"]["version"], &request["requestKind"]["version"]),
        (&json!("v2"), &json!("v2"))
    );
    assert_eq!(post(&server, "/apis/example.com/v1/boats", &boat("v1", "b")), 201);
    assert_eq!(hook.take_seen().len(), 2);
}

#[test]
fn configurations_take_effect_at_once_and_are_exempt_themselves() {
    let (server, _folder) = start(&[]);
    let hook = Hook::new([("/see", allow()), ("/refuse", super::respond(|_| json!({"allowed": false})))]);
    let rules = json!([{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}]);
    let webhook = with(hook.webhook("refuse.example.com", "/refuse"), json!({"rules": rules}));
    // What the server makes for itself when it is ready is made by then.
    server.send("GET", "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas", &[], None);
    register(&server, "Validating", "a", vec![webhook]);
    assert_eq!(create(&server, &crontab("a")).status, 400);
    hook.take_seen();
    register(&server, "Mutating", "b", vec![]);
    let path = format!("{CONFIGURATIONS}/validatingwebhookconfigurations/a");
    assert_eq!(server.send("DELETE", &path, &[], None).status, 200);
    assert_eq!(hook.take_seen().len(), 0);
    assert_eq!(create(&server, &crontab("a")).status, 201);
}

#[test]
fn anyone_may_ask_what_they_may_do_whatever_webhooks_say() {
    let hook = Hook::new([("/refuse", super::respond(|_| json!({"allowed": false})))]);
    let rules = json!([{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}]);
    let check = |arguments: &[&str], expected: u16| {
        let (server, _folder) = start(arguments);
        let webhook = with(hook.webhook("refuse.example.com", "/refuse"), json!({"rules": rules}));
        register(&server, "Validating", "a", vec![webhook]);
        let attributes = json!({"verb": "get", "resource": "pods"});
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": attributes},
        });
        let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        assert_eq!(post(&server, path, &review), expected, "{arguments:?}");
    };
    check(&[], 201);
    check(&["--emulated-version", "1.36"], 400);
}

#[test]
fn a_service_is_where_the_flag_says_and_is_known_by_its_name() {
    let hook = Hook::named("judge.court.svc", [("/see", allow())]);
    let flag = format!("court/judge:8443={}", hook.https.address);
    let (server, _folder) = start(&["--webhook-service", &flag]);
    let config = |port: u16| {
        json!({"clientConfig": {
            "service": {"namespace": "court", "name": "judge", "path": "/see", "port": port}, "caBundle": hook.authority,
        }})
    };
    register(&server, "Validating", "a", vec![with(hook.webhook("see.example.com", "/see"), config(8443))]);
    assert_eq!(create(&server, &crontab("a")).status, 201);
    assert_eq!(hook.take_seen().len(), 1);
    register(&server, "Validating", "b", vec![with(hook.webhook("see.example.com", "/see"), config(443))]);
    super::check_internal(
        &create(&server, &crontab("b")),
        "failed calling webhook \"see.example.com\": failed to call webhook: Post \
         \"https://judge.court.svc:443/see?timeout=10s\": service \"judge\" not found",
    );
}
