//! What every built-in kind has, whoever adds it: the files in `src/kinds/served` are all that is named.

use kubeskiff::crd::Scope;
use kubeskiff::kinds::{self, Form, Kind};
use kubeskiff::protobuf;
use kubeskiff::value;
use serde_json::{Value, json};

use crate::kinds::example;
use crate::server::{Answer, Folder, Server};

/// The group and version of a kind as a path.
fn root(kind: &Kind) -> String {
    match kind.group {
        "" => format!("/api/{}", kind.version),
        group => format!("/apis/{group}/{}", kind.version),
    }
}

fn collection(kind: &Kind) -> String {
    let namespace = if kind.scope == Scope::Namespaced { "/namespaces/default" } else { "" };
    format!("{}{namespace}/{}", root(kind), kind.plural)
}

#[track_caller]
fn check(answer: Answer, status: u16) -> Answer {
    assert_eq!(answer.status, status, "{}", String::from_utf8_lossy(&answer.body));
    answer
}

#[test]
fn every_kind_is_listed_published_and_has_columns() {
    let folder = Folder::for_test();
    let server = Server::start(
        &folder.0,
        &[
            "--store",
            "memory",
            "--runtime-config=api/all=true",
            "--feature-gates=GenericWorkload=true,CompositePodGroup=true",
            "--disable-admission-plugins=StorageObjectInUseProtection",
        ],
    );
    let get = |path: &str, accept: &str| check(server.send("GET", path, &[("Accept", accept)], None), 200).json();
    for kind in kinds::all() {
        let list = get(&root(kind), "application/json");
        let mut resources = list["resources"].as_array().expect("it lists resources").iter();
        let resource = resources.find(|resource| resource["name"] == kind.plural).expect("the kind is discovered");
        assert_eq!(resource["verbs"], json!(kind.verbs));
        assert_eq!((&resource["kind"], &resource["singularName"]), (&json!(kind.kind), &json!(kind.singular)));
        let path = root(kind).trim_start_matches('/').to_owned();
        let document = get(&format!("/openapi/v3/{path}"), "application/json");
        let schemas = document["components"]["schemas"].as_object().expect("it has schemas");
        let named = json!([{ "group": kind.group, "version": kind.version, "kind": kind.kind }]);
        assert!(schemas.values().any(|schema| schema["x-kubernetes-group-version-kind"] == named), "{}", kind.kind);
        assert!(document["paths"].get(collection(kind).replace("default", "{namespace}")).is_some(), "{}", kind.kind);
        if kind.list().is_none() {
            continue;
        }
        let list = get(&collection(kind), "application/json");
        assert_eq!(list["kind"], format!("{}List", kind.kind));
        let table = get(&collection(kind), "application/json;as=Table;v=v1;g=meta.k8s.io");
        assert!(table["columnDefinitions"].as_array().is_some_and(|columns| columns.len() > 1), "{}", kind.kind);
    }
}

#[test]
fn every_kind_is_created_patched_and_read_in_both_forms() {
    const JSON: &str = "application/json";
    const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
    const STRATEGIC: &str = "application/strategic-merge-patch+json";
    let folder = Folder::for_test();
    let server = Server::start(
        &folder.0,
        &[
            "--store",
            "memory",
            "--runtime-config=api/all=true",
            "--feature-gates=GenericWorkload=true,CompositePodGroup=true",
            "--disable-admission-plugins=StorageObjectInUseProtection",
            // It would write the status of policies between a request and the next.
            "--controllers=*,-validatingadmissionpolicy-status-controller",
        ],
    );
    for kind in kinds::all().filter(|kind| kind.can("patch")) {
        let example = example(kind);
        let types = [("Content-Type", JSON), ("Accept", PROTOBUF)];
        check(server.send("POST", &collection(kind), &types, Some(example.to_string().as_bytes())), 201);
        let path = format!("{}/{}", collection(kind), example["metadata"]["name"].as_str().expect("it has a name"));
        let patch = br#"{"metadata":{"labels":{"patched":"yes"}}}"#;
        let patched = check(server.send("PATCH", &path, &[("Content-Type", STRATEGIC)], Some(patch)), 200).json();
        assert_eq!(patched["metadata"]["labels"]["patched"], "yes", "{}", kind.kind);
        let body = check(server.send("GET", &path, &[("Accept", PROTOBUF)], None), 200).body;
        let envelope = protobuf::open(&body).expect("it is an envelope");
        assert_eq!((envelope.api_version.as_str(), envelope.kind.as_str()), (&*kind.api_version(), kind.kind));
        let read = protobuf::decode(kind.message(), envelope.raw).expect("it is a message");
        let read: Value = serde_json::from_slice(&value::json::encode(&read)).expect("it is JSON");
        assert_eq!(read["metadata"]["labels"]["patched"], "yes", "{}", kind.kind);
        if kind.form == Form::Typed {
            check(server.send("PUT", &path, &types, Some(patched.to_string().as_bytes())), 200);
        }
        check(server.send("DELETE", &path, &[], None), 200);
    }
}
