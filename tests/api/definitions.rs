//! Definitions and what becomes of their objects, by bare requests.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::wait_for;
use crate::server::{Answer, Folder, Server};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const DEFINITION: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/boats.harbour.example.com";
const OLD: &str = "/apis/harbour.example.com/v1/namespaces/default/boats";
const NEW: &str = "/apis/harbour.example.com/v2/namespaces/default/boats";

fn start() -> (Server, Folder) {
    let folder = Folder::for_test();
    (Server::start(&folder.0, &["--store", "memory"]), folder)
}

pub(super) fn send(server: &Server, method: &str, path: &str, body: &Value) -> Answer {
    let media = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    server.send(method, path, &[("Content-Type", media)], Some(body.to_string().as_bytes()))
}

pub(super) fn version(name: &str, is_stored: bool) -> Value {
    let length = json!({"type": "object", "properties": {"length": {"type": "integer"}}});
    let schema = json!({"type": "object", "properties": {"spec": length}});
    json!({"name": name, "served": true, "storage": is_stored, "schema": {"openAPIV3Schema": schema}})
}

pub(super) fn definition(versions: &[Value]) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "boats.harbour.example.com"},
        "spec": {
            "group": "harbour.example.com", "scope": "Namespaced",
            "names": {"plural": "boats", "singular": "boat", "kind": "Boat"}, "versions": versions,
        },
    })
}

/// Makes the definition and waits until its condition `type_` is there.
fn create_definition(server: &Server, definition: &Value, type_: &str) -> Value {
    assert_eq!(send(server, "POST", DEFINITIONS, definition).status, 201);
    wait_for_reason(server, type_, |reason| !matches!(reason, "" | "Installing"))
}

/// Waits for a reason of the condition `type_`.
fn wait_for_reason(server: &Server, type_: &str, wanted: impl Fn(&str) -> bool) -> Value {
    let find = |answer: &Answer| {
        let conditions = answer.json()["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.into_iter().find(|condition| condition["type"] == type_).unwrap_or_default()
    };
    let answer = wait_for(server, DEFINITION, |answer| wanted(find(answer)["reason"].as_str().unwrap_or_default()));
    find(&answer)
}

fn boat(finalizers: &[&str]) -> Value {
    json!({
        "apiVersion": "harbour.example.com/v1", "kind": "Boat",
        "metadata": {"name": "dinghy", "finalizers": finalizers}, "spec": {"length": 3},
    })
}

/// A conversion by a webhook with this bundle.
fn conversion(bundle: &str) -> Value {
    let client = json!({"url": "https://127.0.0.1:1/", "caBundle": STANDARD.encode(bundle)});
    json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": client}})
}

#[test]
fn the_objects_of_a_deleted_definition_go_without_admission() {
    let (server, _folder) = start();
    create_definition(&server, &definition(&[version("v1", true)]), "Established");
    assert_eq!(send(&server, "POST", OLD, &boat(&[])).status, 201);
    let webhook = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "gone"},
        "webhooks": [{
            "name": "gone.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"url": "https://127.0.0.1:1/"},
            "rules": [{"apiGroups": ["harbour.example.com"], "apiVersions": ["*"], "operations": ["DELETE"],
                "resources": ["boats"]}],
        }],
    });
    let webhooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
    assert_eq!(send(&server, "POST", webhooks, &webhook).status, 201);
    assert_eq!(server.send("DELETE", OLD, &[], None).status, 500);

    assert_eq!(server.send("DELETE", DEFINITION, &[], None).status, 200);

    wait_for(&server, DEFINITION, |answer| answer.status == 404);
}

#[test]
fn objects_in_a_version_that_is_gone_are_not_served_emptied() {
    let (server, _folder) = start();
    create_definition(&server, &definition(&[version("v1", true), version("v2", false)]), "Established");
    assert_eq!(send(&server, "POST", OLD, &boat(&[])).status, 201);
    let versions = |versions: &[Value]| json!({"spec": {"versions": versions}});
    let both = versions(&[version("v1", false), version("v2", true)]);
    assert_eq!(send(&server, "PATCH", DEFINITION, &both).status, 200);
    let stored = json!({"status": {"storedVersions": ["v2"]}});
    assert_eq!(send(&server, "PATCH", &format!("{DEFINITION}/status"), &stored).status, 200);
    assert_eq!(send(&server, "PATCH", DEFINITION, &versions(&[version("v2", true)])).status, 200);

    let dinghy = format!("{NEW}/dinghy");
    let labelled = json!({"metadata": {"labels": {"a": "b"}}});
    let answers = [
        server.send("GET", &dinghy, &[], None),
        server.send("GET", NEW, &[], None),
        send(&server, "PATCH", &dinghy, &labelled),
        server.send("DELETE", &dinghy, &[], None),
    ];
    for answer in answers {
        let told = answer.json()["message"].as_str().unwrap_or_default().to_owned();
        let why = "request to convert CR from an invalid group/version: harbour.example.com/v1";
        assert!(answer.status == 500 && told.ends_with(why), "{} {told}", answer.status);
    }
    assert_eq!(send(&server, "PATCH", DEFINITION, &both).status, 200);
    assert_eq!(server.send("GET", &dinghy, &[], None).json()["spec"]["length"], 3);
}

#[test]
fn a_definition_that_is_not_established_is_served_but_not_discovered() {
    let (server, _folder) = start();
    let mut unusable = definition(&[version("v1", true)]);
    unusable["spec"]["conversion"] = conversion("\n");
    let told = create_definition(&server, &unusable, "Established");
    assert_eq!((&told["status"], &told["reason"]), (&json!("False"), &json!("InvalidCABundle")));

    assert_eq!(server.send("GET", OLD, &[], None).status, 200);
    for path in ["/apis/harbour.example.com/v1", "/openapi/v3/apis/harbour.example.com/v1"] {
        assert_eq!(server.send("GET", path, &[], None).status, 404, "{path}");
    }
}

#[test]
fn a_definition_with_an_unusable_bundle_serves_no_object() {
    let (server, _folder) = start();
    let mut unusable = definition(&[version("v1", true)]);
    unusable["spec"]["conversion"] = conversion("not a certificate");
    create_definition(&server, &unusable, "Established");

    for answer in [server.send("GET", OLD, &[], None), send(&server, "POST", OLD, &boat(&[]))] {
        let told = &answer.json()["message"];
        assert_eq!((answer.status, told), (500, &json!("Internal error occurred: error resolving resource")));
    }
    assert_eq!(server.send("GET", &OLD.replace("v1", "v3"), &[], None).status, 404);
}

#[test]
fn objects_that_stay_for_a_minute_are_told_of() {
    let (server, _folder) = start();
    create_definition(&server, &definition(&[version("v1", true)]), "Established");
    assert_eq!(send(&server, "POST", OLD, &boat(&["example.com/hold"])).status, 201);
    assert_eq!(server.send("DELETE", DEFINITION, &[], None).status, 200);
    wait_for_reason(&server, "Terminating", |reason| reason == "InstanceDeletionInProgress");

    assert_eq!(send(&server, "PUT", "/skiff/v1/clock", &json!({"advance": "70s"})).status, 200);

    let told = wait_for_reason(&server, "Terminating", |reason| reason == "InstanceDeletionCheck");
    let message = "could not confirm zero CustomResources remaining: context deadline exceeded";
    assert_eq!((&told["status"], &told["message"]), (&json!("True"), &json!(message)));
    let released = json!({"metadata": {"finalizers": null}});
    assert_eq!(send(&server, "PATCH", &format!("{OLD}/dinghy"), &released).status, 200);
    wait_for(&server, DEFINITION, |answer| answer.status == 404);
}

#[test]
fn an_unknown_subresource_of_a_deprecated_version_has_its_warning() {
    let (server, _folder) = start();
    let mut deprecated = version("v1", true);
    deprecated["deprecated"] = json!(true);
    create_definition(&server, &definition(&[deprecated]), "Established");

    let answer = server.send("GET", &format!("{OLD}/dinghy/scale"), &[], None);

    let warning = "299 - \"harbour.example.com/v1 Boat is deprecated\"";
    assert_eq!((answer.status, answer.header("warning")), (404, warning));
}

#[test]
fn objects_of_definitions_that_were_deleted_together_come_back() {
    let (server, _folder) = start();
    let boats = definition(&[version("v1", true)]);
    create_definition(&server, &boats, "Established");
    assert_eq!(send(&server, "POST", OLD, &boat(&[])).status, 201);

    assert_eq!(server.send("DELETE", DEFINITIONS, &[], None).status, 200);
    assert_eq!(server.send("GET", DEFINITION, &[], None).status, 404);
    assert_eq!(server.send("GET", OLD, &[], None).status, 404);
    create_definition(&server, &boats, "Established");

    let dinghy = format!("{OLD}/dinghy");
    let list = server.send("GET", OLD, &[], None).json();
    assert_eq!((&list["items"][0]["spec"]["length"], list["items"].as_array().map(Vec::len)), (&json!(3), Some(1)));
    assert_eq!(send(&server, "POST", OLD, &boat(&[])).status, 409);
    assert_eq!(send(&server, "PATCH", &dinghy, &json!({"spec": {"length": 4}})).status, 200);
    assert_eq!(server.send("DELETE", &dinghy, &[], None).status, 200);
    assert_eq!(server.send("GET", &dinghy, &[], None).status, 404);
}

#[test]
fn a_definition_over_a_built_in_kind_goes_without_its_objects() {
    let (server, _folder) = start();
    let name = "apiservices.apiregistration.k8s.io";
    let mut overlapping = definition(&[version("v1", true)]);
    overlapping["metadata"] = json!({
        "name": name, "finalizers": ["example.com/hold"],
        "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"},
    });
    overlapping["spec"]["group"] = json!("apiregistration.k8s.io");
    overlapping["spec"]["names"] = json!({"plural": "apiservices", "kind": "APIService"});
    let path = format!("{DEFINITIONS}/{name}");
    assert_eq!(send(&server, "POST", DEFINITIONS, &overlapping).status, 201);

    assert_eq!(server.send("DELETE", &path, &[], None).status, 200);

    wait_for(&server, &path, |answer| {
        let conditions = answer.json()["status"]["conditions"].to_string();
        conditions.contains("\"OverlappingBuiltInResource\"")
    });
}

#[test]
fn a_changed_api_service_is_reset_and_goes_with_the_last_definition_of_its_version() {
    let (server, _folder) = start();
    create_definition(&server, &definition(&[version("v1", true)]), "Established");
    let path = "/apis/apiregistration.k8s.io/v1/apiservices/v1.harbour.example.com";
    let change = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"versionPriority": 7}});

    assert_eq!(send(&server, "PATCH", path, &change).status, 200);

    let service = server.send("GET", path, &[], None).json();
    assert_eq!((&service["spec"]["versionPriority"], &service["metadata"]["labels"]["a"]), (&json!(100), &json!("b")));
    assert_eq!(server.send("DELETE", DEFINITION, &[], None).status, 200);
    wait_for(&server, path, |answer| answer.status == 404);
}

#[test]
fn tables_have_null_where_go_leaves_a_value_out() {
    let (server, _folder) = start();
    let table = |path: &str| {
        let accept = ("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1");
        server.send("GET", path, &[accept], None).json()
    };
    let none = table(DEFINITIONS);
    assert_eq!((&none["kind"], &none["rows"]), (&json!("Table"), &Value::Null));
    let mut scaled = version("v1", true);
    scaled["subresources"] =
        json!({"scale": {"specReplicasPath": ".spec.length", "statusReplicasPath": ".status.length"}});
    create_definition(&server, &definition(&[scaled]), "Established");
    let mut empty = boat(&[]);
    empty["spec"]["length"] = json!(0);
    assert_eq!(send(&server, "POST", OLD, &empty).status, 201);

    let scale = table(&format!("{OLD}/dinghy/scale"));

    let cells = &scale["rows"][0]["cells"];
    assert_eq!((&cells[0], &cells[1], &cells[2]), (&json!("dinghy"), &Value::Null, &json!(0)));
}
