//! How many allocations each verb and each request makes, and how much memory a definition keeps: tests that bound the
//! counts, so that copies do not come back unnoticed.
//!
//! The definition and the objects are the ones that the figures of `docs/performance.md` are measured with: 2 KB as
//! sent, lists with keys, defaults and three rules.

use std::fmt::Write as _;
use std::sync::Arc;

use allocation_counter::{AllocationInfo, measure};
use axum::body::Body as HttpBody;
use axum::http::Request;
use http_body_util::BodyExt as _;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;
use tower::ServiceExt as _;

use super::app::App;
use super::router::router;
use crate::apply::TypeSchema;
use crate::auth::{AlwaysAllow, UserInfo};
use crate::controllers::{self, Authority, NodePlan, Switches};
use crate::crd::{self, definition};
use crate::meta::minor::Minor;
use crate::registry::{
    Body, CreateRequest, DeleteRequest, FieldValidation, Format, PatchRequest, PatchType, Registry, Target,
    UpdateRequest, Warnings, fixture,
};
use crate::value::{Value, json};

const DEFINITION: &str = r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
    "metadata":{"name":"widgets.bench.example.com"},
    "spec":{"group":"bench.example.com","scope":"Namespaced",
    "names":{"plural":"widgets","singular":"widget","kind":"Widget"},
    "versions":[{"name":"v1","served":true,"storage":true,"subresources":{"status":{}},"schema":{"openAPIV3Schema":{
    "type":"object","properties":{"spec":{"type":"object","required":["replicas"],
    "x-kubernetes-validations":[
        {"rule":"self.replicas <= self.maxReplicas","message":"replicas must not exceed maxReplicas"},
        {"rule":"self.ports.all(p, p.port > 0 && p.port < 65536)"},
        {"rule":"!has(oldSelf.engine) || self.engine == oldSelf.engine","message":"engine is immutable"}],
    "properties":{
        "replicas":{"type":"integer","minimum":0},"maxReplicas":{"type":"integer","default":100},
        "engine":{"type":"string","enum":["a","b","c"],"default":"a"},
        "note":{"type":"string","maxLength":4096},"stamp":{"type":"string","maxLength":64},
        "labels":{"type":"object","maxProperties":64,"additionalProperties":{"type":"string","maxLength":64}},
        "ports":{"type":"array","maxItems":64,"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],
            "items":{"type":"object","required":["name","port"],"properties":{
                "name":{"type":"string","maxLength":63},"port":{"type":"integer"},
                "protocol":{"type":"string","default":"TCP"}}}}}},
    "status":{"type":"object","properties":{"phase":{"type":"string"},"observed":{"type":"integer"}}}}}}}]}}"#;

fn widget(name: &str, stamp: &str) -> String {
    let (mut ports, mut labels) = (String::new(), String::new());
    for at in 0..16 {
        let comma = if at > 0 { "," } else { "" };
        _ = write!(ports, r#"{comma}{{"name":"port-{at:02}","port":{}}}"#, 8000 + at);
        _ = write!(labels, r#"{comma}"label-key-{at:02}":"some-label-value-{at:02}""#);
    }
    let note = "lorem ipsum ".repeat(50);
    format!(
        r#"{{"apiVersion":"bench.example.com/v1","kind":"Widget","metadata":{{"name":"{name}","namespace":"default",
        "labels":{{"app":"bench"}}}},"spec":{{"replicas":3,"stamp":"{stamp}","note":"{note}","ports":[{ports}],
        "labels":{{{labels}}}}}}}"#
    )
}

struct Bench {
    runtime: Runtime,
    registry: Arc<Registry>,
    user: UserInfo,
    widgets: Target,
}

impl Bench {
    fn new() -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime starts");
        let (registry, widgets) = runtime.block_on(async {
            let registry = fixture::registry().await;
            let begin = Arc::new(Notify::new());
            begin.notify_one();
            let controllers = controllers::start(
                Arc::clone(&registry),
                Switches::SERVER,
                NodePlan::default(),
                Authority::default(),
                begin,
            );
            registry.register(json::decode(DEFINITION.as_bytes()).expect("it is JSON")).await.expect("it is valid");
            let unserved = registry.wait_until_served("widgets.bench.example.com").await.expect("the store works");
            assert_eq!(unserved, None);
            // From here on nothing but the verbs allocates on this thread.
            controllers.abort();
            let widgets = fixture::target(&registry, "bench.example.com", "widgets").await;
            (registry, Target { namespace: "default".to_owned(), ..widgets })
        });
        Bench { runtime, registry, user: UserInfo::unsecured(), widgets }
    }

    fn named(&self, name: &str) -> Target {
        Target { name: name.to_owned(), ..self.widgets.clone() }
    }

    fn create(&self, name: &str) {
        let request = create(widget(name, "0"));
        let mut warnings = Warnings::default();
        let created = self.registry.create(&self.widgets, &self.user, &request, &mut warnings);
        self.runtime.block_on(created).expect("it is valid");
    }

    fn get(&self, name: &str) -> Vec<u8> {
        let (stored, encoded) = self.runtime.block_on(self.registry.get(&self.named(name), None)).expect("it is there");
        encoded.to_bytes(stored.revision)
    }

    fn update(&self, name: &str, body: String) {
        let request = UpdateRequest {
            body: Body { bytes: body.into(), format: Format::Json },
            field_validation: FieldValidation::Warn,
            manager: "bench".to_owned(),
            dry_run: false,
            options: Value::Null,
        };
        let mut warnings = Warnings::default();
        let target = self.named(name);
        let updated = self.registry.update(&target, &self.user, &request, &mut warnings);
        self.runtime.block_on(updated).expect("it is valid");
    }

    fn delete(&self, name: &str) {
        let mut warnings = Warnings::default();
        let target = self.named(name);
        let options = DeleteRequest::default();
        let deleted = self.registry.delete(&target, &self.user, &options, &mut warnings);
        self.runtime.block_on(deleted).expect("it is there");
    }

    fn patch(&self, name: &str, patch_type: PatchType, patch: String) {
        let request = PatchRequest {
            patch_type,
            bytes: patch.into(),
            field_validation: FieldValidation::Warn,
            manager: "bench".to_owned(),
            force: true,
            dry_run: false,
            options: Value::Null,
        };
        let mut warnings = Warnings::default();
        let target = self.named(name);
        let patched = self.registry.patch(&target, &self.user, &request, &mut warnings);
        self.runtime.block_on(patched).expect("it is valid");
    }
}

fn create(body: String) -> CreateRequest {
    CreateRequest {
        body: Body { bytes: body.into(), format: Format::Json },
        field_validation: FieldValidation::Warn,
        manager: "bench".to_owned(),
        dry_run: false,
        options: Value::Null,
    }
}

/// Fails with all counts that are above their bounds.
fn check(counts: &[(&str, u64, AllocationInfo)]) {
    let over = counts.iter().filter(|(_, bound, info)| info.count_total > *bound);
    let over: Vec<String> =
        over.map(|(what, bound, info)| format!("{what}: {}, not {bound}", info.count_total)).collect();
    assert!(over.is_empty(), "allocations beyond their bounds: {}", over.join("; "));
}

#[test]
fn verbs_allocate_no_more_than_they_did() {
    let bench = Bench::new();
    // What is allocated only once is allocated here.
    bench.create("first");
    bench.patch("first", PatchType::Merge, r#"{"spec":{"stamp":"1"}}"#.to_owned());
    bench.patch("first", PatchType::Apply, widget("first", "2"));
    bench.delete("first");
    bench.create("a");
    bench.create("b");
    let read = String::from_utf8(bench.get("b")).expect("JSON is UTF-8");
    let changed = read.replace(r#""replicas":3"#, r#""replicas":4"#);

    check(&[
        ("create", 300, measure(|| bench.create("new"))),
        ("get", 6, measure(|| drop(bench.get("a")))),
        ("update", 340, measure(|| bench.update("b", changed))),
        ("merge patch", 290, measure(|| bench.patch("a", PatchType::Merge, r#"{"spec":{"stamp":"1"}}"#.to_owned()))),
        ("apply", 485, measure(|| bench.patch("a", PatchType::Apply, widget("a", "2")))),
        ("delete", 75, measure(|| bench.delete("a"))),
    ]);
}

#[test]
fn requests_allocate_no_more_than_they_did() {
    const MERGE: &str = "application/merge-patch+json";
    const APPLY: &str = "application/apply-patch+yaml";
    let bench = Bench::new();
    let router = router(App::new(Arc::clone(&bench.registry), Arc::new(AlwaysAllow)));
    let send = |method: &str, name: &str, content_type: &str, body: String| {
        let uri = format!("/apis/bench.example.com/v1/namespaces/default/widgets{name}");
        let request = Request::builder().method(method).uri(uri).header("content-type", content_type);
        let mut request = request.body(HttpBody::from(body)).expect("it is a request");
        request.extensions_mut().insert(bench.user.clone());
        let answer = bench.runtime.block_on(async {
            let Ok(answer) = router.clone().oneshot(request).await;
            assert!(answer.status().is_success(), "{method} {name}: {}", answer.status());
            answer.into_body().collect().await.expect("it is in memory").to_bytes()
        });
        String::from_utf8(answer.to_vec()).expect("JSON is UTF-8")
    };
    let merge = || r#"{"spec":{"stamp":"1"}}"#.to_owned();
    let apply = |name: &str| format!("{name}?fieldManager=bench&force=true");
    // What is allocated only once is allocated here.
    send("POST", "", "application/json", widget("first", "0"));
    send("PATCH", "/first", MERGE, merge());
    send("PATCH", &apply("/first"), APPLY, widget("first", "2"));
    send("DELETE", "/first", "application/json", String::new());
    send("POST", "", "application/json", widget("a", "0"));
    send("POST", "", "application/json", widget("b", "0"));
    let changed = send("GET", "/b", "", String::new()).replace(r#""replicas":3"#, r#""replicas":4"#);

    check(&[
        ("POST", 362, measure(|| drop(send("POST", "", "application/json", widget("new", "0"))))),
        ("GET", 60, measure(|| drop(send("GET", "/a", "", String::new())))),
        ("PUT", 415, measure(|| drop(send("PUT", "/b", "application/json", changed)))),
        ("merge patch", 352, measure(|| drop(send("PATCH", "/a", MERGE, merge())))),
        ("apply", 562, measure(|| drop(send("PATCH", &apply("/a"), APPLY, widget("a", "2"))))),
        ("DELETE", 148, measure(|| drop(send("DELETE", "/a", "application/json", String::new())))),
    ]);
}

#[test]
fn a_definition_keeps_no_more_memory_than_it_did() {
    const BYTES_MAX: i64 = 20 << 10;
    let tree = json::decode(DEFINITION.as_bytes()).expect("it is JSON");
    let (definition, _) = definition::decode_in(Minor::NEWEST, &tree).expect("it is one");
    let keep = || {
        let (mut versions, mut types) = (Vec::new(), None);
        let compiled = measure(|| versions = crd::compile(&definition)).bytes_current;
        let version = &versions[0];
        let make_types = || types = Some(TypeSchema::of_custom_resource(&version.structural, false));
        let with_types = measure(make_types).bytes_current;
        let with_rules = measure(|| _ = version.rules.of(&version.structural, Minor::NEWEST)).bytes_current;
        assert!(types.is_some());
        [compiled, with_types, with_rules]
    };
    // The first call allocates what all definitions share.
    keep();
    let [compiled, with_types, with_rules] = keep();
    let kept = compiled + with_types + with_rules;
    let parts = format!("{compiled} for its versions, {with_types} for types, {with_rules} for rules");
    assert!(kept <= BYTES_MAX, "{kept} bytes for {}: {parts}", DEFINITION.len());
}
