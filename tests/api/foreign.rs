//! Bodies of another kind or version than the one that is written: Go reads what its scheme knows, and then can't convert it.

use serde_json::{Value, json};

use crate::server::{Answer, Folder, Server};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const SCALERS: &str = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";

fn post(server: &Server, path: &str, body: &Value) -> Answer {
    server.send("POST", path, &[("Content-Type", "application/json")], Some(body.to_string().as_bytes()))
}

#[track_caller]
fn check_refused(answer: &Answer, status: u16, message: &str) {
    assert_eq!((answer.status, answer.json()["message"].as_str()), (status, Some(message)));
}

#[test]
fn another_kind_is_read_and_not_converted() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory"]);
    let unfit = |kind: &str, version: &str, error: &str| {
        format!(r#"{kind} in version "{version}" cannot be handled as a ConfigMap: {error}"#)
    };
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}});
    let unknown = "converting (v1.Secret) to (core.ConfigMap): unknown conversion";
    check_refused(&post(&server, CONFIG_MAPS, &secret), 400, &unfit("Secret", "v1", unknown));
    let deployment = json!({"apiVersion": "apps/v1beta2", "kind": "Deployment", "spec": {"bogus": 1}});
    let unknown = "converting (v1beta2.Deployment) to (core.ConfigMap): unknown conversion";
    let strict = format!("{CONFIG_MAPS}?fieldValidation=Strict");
    check_refused(&post(&server, &strict, &deployment), 400, &unfit("Deployment", "v1beta2", unknown));
    // What does not fit its own type is told first.
    let broken = json!({"apiVersion": "v1", "kind": "Secret", "data": {"a": 1}});
    let error = "json: cannot unmarshal number into Go struct field Secret.data of type []uint8";
    check_refused(&post(&server, CONFIG_MAPS, &broken), 400, &unfit("Secret", "v1", error));
    let nonsense = json!({"apiVersion": "v1", "kind": "Nonsense"});
    let error = r#"no kind "Nonsense" is registered for version "v1" in scheme "pkg/api/legacyscheme/scheme.go:30""#;
    check_refused(&post(&server, CONFIG_MAPS, &nonsense), 400, &unfit("Nonsense", "v1", error));
}

#[test]
fn another_version_is_read_and_does_not_match() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory"]);
    let older = json!({
        "apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "a"},
        "spec": {"maxReplicas": 2, "scaleTargetRef": {"kind": "Deployment", "name": "d"}, "bogus": 1},
    });
    let message =
        "the API version in the data (autoscaling/v1) does not match the expected API version (autoscaling/v2)";
    check_refused(&post(&server, SCALERS, &older), 400, message);
    let strict = r#"HorizontalPodAutoscaler in version "v1" cannot be handled as a HorizontalPodAutoscaler: strict decoding error: unknown field "spec.bogus""#;
    check_refused(&post(&server, &format!("{SCALERS}?fieldValidation=Strict"), &older), 400, strict);
}

#[test]
fn a_patch_may_not_change_the_kind() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory"]);
    assert_eq!(post(&server, CONFIG_MAPS, &json!({"metadata": {"name": "a"}})).status, 201);
    let patch = |text: &str| {
        let headers = [("Content-Type", "application/merge-patch+json")];
        let answer = server.send("PATCH", &format!("{CONFIG_MAPS}/a"), &headers, Some(text.as_bytes()));
        (answer.status, answer.json()["message"].as_str().unwrap_or_default().to_owned())
    };
    let (status, message) = patch(r#"{"kind":"Secret"}"#);
    assert!(
        status == 422 && message.ends_with(": converting (v1.Secret) to (core.ConfigMap): unknown conversion"),
        "{message}"
    );
    let (status, message) = patch(r#"{"kind":"Nonsense"}"#);
    let error = r#": no kind "Nonsense" is registered for version "v1" in scheme "pkg/api/legacyscheme/scheme.go:30""#;
    assert!(status == 422 && message.ends_with(error), "{message}");
}

/// Services are made by who writes them where they are missing; their status is a way to it.
#[test]
fn the_status_of_a_missing_service_asks_for_a_service() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory"]);
    let apply = |path: &str, body: &Value| {
        let headers = [("Content-Type", "application/apply-patch+yaml")];
        server.send("PATCH", &format!("{path}/a/status?fieldManager=m"), &headers, Some(body.to_string().as_bytes()))
    };
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}});
    let refused = apply("/api/v1/namespaces/default/services", &service);
    check_refused(&refused, 422, r#"Service "a" is invalid: spec.ports: Required value"#);
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}});
    check_refused(&apply("/api/v1/namespaces/default/pods", &pod), 404, r#"pods "a" not found"#);
}

#[test]
fn a_job_without_labels_shares_those_of_its_template() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory"]);
    let labels_of = |name: &str, own: Value, apply: bool| {
        let mut job = json!({
            "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
            "spec": {"template": {
                "metadata": {"labels": {"app": "x"}},
                "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]},
            }},
        });
        if !own.is_null() {
            job["metadata"]["labels"] = own;
        }
        let jobs = "/apis/batch/v1/namespaces/default/jobs";
        let made = if apply {
            let headers = [("Content-Type", "application/apply-patch+yaml")];
            let path = format!("{jobs}/{name}?fieldManager=m");
            server.send("PATCH", &path, &headers, Some(job.to_string().as_bytes()))
        } else {
            post(&server, jobs, &job)
        };
        assert_eq!(made.status, 201, "{}", made.json());
        let labels = made.json()["metadata"]["labels"].as_object().cloned().unwrap_or_default();
        labels.keys().map(String::as_str).collect::<Vec<_>>().join(" ")
    };
    let shared = "app batch.kubernetes.io/controller-uid batch.kubernetes.io/job-name controller-uid job-name";
    assert_eq!(labels_of("a", Value::Null, false), shared);
    assert_eq!(labels_of("b", Value::Null, true), shared);
    assert_eq!(labels_of("c", json!({"app": "x"}), false), "app");
}
