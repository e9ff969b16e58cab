//! A made-up kind in every verb and representation: shows that a file in `kinds` and its types are enough to serve a
//! kind.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::Router;
use axum::body::Body;
use http_body_util::BodyExt as _;
use tower::ServiceExt as _;

use super::app::App;
use super::router::router;
use crate::auth::{AlwaysAllow, UserInfo};
use crate::clock::Clock;
use crate::kinds::runtime_config::RuntimeConfig;
use crate::kinds::{self, Kind};
use crate::protobuf;
use crate::registry::fixture;
use crate::value::{Value, json, yaml};

const ROOT: &str = "/apis/gadgets.example.com/v1";
const ENGINES: &str = "/apis/gadgets.example.com/v1/namespaces/default/engines";
const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// A router that serves the made-up kind.
struct ServedRouter(Router);

impl ServedRouter {
    async fn start() -> Self {
        kinds::SHOWS_MADE_UP.store(true, Ordering::Relaxed);
        let config = RuntimeConfig::parse("gadgets.example.com/v1=true").expect("the test is valid");
        let registry = fixture::registry_of(Clock::default(), &config).await;
        ServedRouter(router(App::new(registry, Arc::new(AlwaysAllow))))
    }

    /// Sends a body of type `types.0` and accepts `types.1`.
    async fn send(&self, method: &str, uri: &str, types: (&str, &str), body: &[u8]) -> (u16, Vec<u8>) {
        let request = axum::http::Request::builder().method(method).uri(uri);
        let request = request.header("content-type", types.0).header("accept", types.1);
        let mut request = request.body(Body::from(body.to_vec())).expect("it is a request");
        request.extensions_mut().insert(UserInfo::unsecured());
        let Ok(answer) = self.0.clone().oneshot(request).await;
        let code = answer.status().as_u16();
        (code, answer.into_body().collect().await.expect("it is in memory").to_bytes().to_vec())
    }

    /// An exchange in JSON that must have the status `code`.
    async fn json(&self, method: &str, uri: &str, content_type: &str, body: &str, code: u16) -> Value {
        let (found, answer) = self.send(method, uri, (content_type, JSON), body.as_bytes()).await;
        assert_eq!(found, code, "{method} {uri}: {}", String::from_utf8_lossy(&answer));
        json::decode(&answer).expect("it is JSON")
    }

    async fn get(&self, uri: &str) -> Value {
        self.json("GET", uri, JSON, "", 200).await
    }
}

fn engine() -> &'static Kind {
    kinds::find("gadgets.example.com", "engines").expect("unit tests have it")
}

fn example(name: &str) -> Value {
    let mut object = yaml::decode(engine().example.as_bytes()).expect("it is YAML");
    let fields = object.make_object();
    fields.insert("apiVersion", engine().api_version().into());
    fields.insert("kind", engine().kind.into());
    fields.entry("metadata").make_object().insert("name", name.into());
    object
}

#[tokio::test]
async fn it_is_discovered_and_published() {
    let served = ServedRouter::start().await;
    let list = served.get(ROOT).await;
    let names = |list: &Value| {
        let resources = list.items_at(&["resources"]).iter();
        resources.map(|resource| resource.str_at(&["name"]).to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&list), ["engines", "engines/ignition", "engines/scale", "engines/status"]);
    let groups = served.get("/apis").await;
    assert!(groups.items_at(&["groups"]).iter().any(|group| group.str_at(&["name"]) == engine().group));
    let v3 = served.get("/openapi/v3/apis/gadgets.example.com/v1").await;
    assert!(v3.at(&["components", "schemas", "io.k8s.api.gadgets.v1.EngineSpec"]).is_some());
    let v2 = served.get("/openapi/v2").await;
    assert!(v2.at(&["definitions", "io.k8s.api.gadgets.v1.Engine"]).is_some());
    assert!(v2.at(&["paths", "/apis/gadgets.example.com/v1/namespaces/{namespace}/engines/{name}/ignition"]).is_some());
}

#[tokio::test]
async fn it_comes_and_goes_in_every_form() {
    let served = ServedRouter::start().await;
    let (in_json, in_yaml) = (json::encode(&example("a")), yaml::encode(&example("b")).into_bytes());
    let in_protobuf = kinds::seal(&example("c")).expect("it has a message");
    for (content_type, body) in [(JSON, in_json), (YAML, in_yaml), (PROTOBUF, in_protobuf)] {
        let (code, answer) = served.send("POST", ENGINES, (content_type, content_type), &body).await;
        assert_eq!(code, 201, "{}", String::from_utf8_lossy(&answer));
    }
    for name in ["a", "b", "c"] {
        let found = served.get(&format!("{ENGINES}/{name}")).await;
        assert_eq!(found.at(&["spec", "replicas"]), Some(&Value::Int(2)), "{name}");
        assert_eq!(found.at(&["metadata", "generation"]), Some(&Value::Int(1)), "{name}");
    }
    let (_, bytes) = served.send("GET", &format!("{ENGINES}/a"), (JSON, PROTOBUF), b"").await;
    let envelope = protobuf::open(&bytes).expect("it is an envelope");
    let read = protobuf::decode(engine().message(), envelope.raw).expect("it is a message");
    assert_eq!(read.items_at(&["spec", "parts"]).len(), 1);
    let (_, text) = served.send("GET", &format!("{ENGINES}/a"), (JSON, YAML), b"").await;
    assert_eq!(yaml::decode(&text).expect("it is YAML").str_at(&["kind"]), "Engine");

    let listed = async |accept: &str| {
        let (code, body) = served.send("GET", ENGINES, (JSON, accept), b"").await;
        assert_eq!(code, 200, "{}", String::from_utf8_lossy(&body));
        json::decode(&body).expect("it is JSON")
    };
    assert_eq!(listed(JSON).await.str_at(&["kind"]), "EngineList");
    let table = listed("application/json;as=Table;v=v1;g=meta.k8s.io").await;
    let columns: Vec<&str> =
        table.items_at(&["columnDefinitions"]).iter().map(|column| column.str_at(&["name"])).collect();
    assert_eq!((columns, table.items_at(&["rows"]).len()), (vec!["Name", "Ignition", "Age"], 3));
    let partial = listed("application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io").await;
    assert!(partial.items_at(&["items"]).iter().all(|item| item.get("spec").is_none()));

    let events = served.send("GET", &format!("{ENGINES}?watch=1&timeoutSeconds=1"), (JSON, JSON), b"").await.1;
    assert_eq!(events.split(|byte| *byte == b'\n').filter(|line| line.starts_with(b"{\"type\":\"ADDED\"")).count(), 3);
    served.json("DELETE", &format!("{ENGINES}/a"), JSON, "", 200).await;
    served.json("DELETE", ENGINES, JSON, "", 200).await;
    assert_eq!(served.get(ENGINES).await.items_at(&["items"]).len(), 0);
}

#[tokio::test]
async fn it_is_changed_in_every_way() {
    let served = ServedRouter::start().await;
    let path = format!("{ENGINES}/a");
    let created = json::encode_to_string(&example("a"));
    let mut object = served.json("POST", ENGINES, JSON, &created, 201).await;
    object.make_object().entry("spec").make_object().insert("replicas", Value::Int(3));
    let updated = served.json("PUT", &path, JSON, &json::encode_to_string(&object), 200).await;
    assert_eq!(updated.at(&["metadata", "generation"]), Some(&Value::Int(2)));
    for (content_type, patch, parts) in [
        ("application/json-patch+json", r#"[{"op":"add","path":"/spec/parts/-","value":{"name":"belt"}}]"#, 2),
        ("application/strategic-merge-patch+json", r#"{"spec":{"parts":[{"name":"lamp"}]}}"#, 3),
        ("application/merge-patch+json", r#"{"spec":{"parts":[{"name":"valve"}]}}"#, 1),
    ] {
        let patched = served.json("PATCH", &path, content_type, patch, 200).await;
        assert_eq!(patched.items_at(&["spec", "parts"]).len(), parts, "{content_type}");
    }
    let applied = "{apiVersion: gadgets.example.com/v1, kind: Engine, spec: {parts: [{name: fan, size: 1}]}}";
    let apply = format!("{path}?fieldManager=tests");
    let applied = served.json("PATCH", &apply, "application/apply-patch+yaml", applied, 200).await;
    assert_eq!(applied.items_at(&["spec", "parts"]).len(), 2, "lists are merged by their key");
    let invalid = served.json("PATCH", &path, "application/merge-patch+json", r#"{"spec":{"replicas":-1}}"#, 422).await;
    assert_eq!(invalid.str_at(&["details", "group"]), engine().group);
}

#[tokio::test]
async fn it_has_its_subresources() {
    let served = ServedRouter::start().await;
    served.json("POST", ENGINES, JSON, &json::encode_to_string(&example("a")), 201).await;
    let patch = async |part: &str, body: &str| {
        let path = format!("{ENGINES}/a/{part}");
        served.json("PATCH", &path, "application/merge-patch+json", body, 200).await
    };
    let both = r#"{"spec":{"replicas":9,"ignition":"key"},"status":{"replicas":1,"running":true}}"#;
    let status = patch("status", both).await;
    assert_eq!(status.at(&["status", "running"]), Some(&Value::Bool(true)));
    assert_eq!(status.at(&["spec", "ignition"]), None, "the spec is not the status'");
    let ignition = patch("ignition", both).await;
    assert_eq!(
        (ignition.str_at(&["spec", "ignition"]), ignition.at(&["spec", "replicas"])),
        ("key", Some(&Value::Int(2)))
    );
    let scaled = patch("scale", r#"{"spec":{"replicas":5}}"#).await;
    assert_eq!((scaled.str_at(&["kind"]), scaled.at(&["spec", "replicas"])), ("Scale", Some(&Value::Int(5))));
    let selected = served.get(&format!("{ENGINES}?fieldSelector=spec.ignition%3Dkey")).await;
    assert_eq!(selected.items_at(&["items"]).len(), 1);
    for part in ["status", "ignition", "scale"] {
        let found = served.get(&format!("{ENGINES}/a/{part}")).await;
        served.json("PUT", &format!("{ENGINES}/a/{part}"), JSON, &json::encode_to_string(&found), 200).await;
    }
}
