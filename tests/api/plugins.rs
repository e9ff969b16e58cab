//! Admission plugins that kube-apiserver has off by default, all on at once.

use serde_json::{Value, json};

use crate::server::{Answer, Folder, Server};

const PLUGINS: &str = "AlwaysPullImages,DenyServiceExternalIPs,ExtendedResourceToleration,LimitPodHardAntiAffinityTopology,\
                       NamespaceExists,PodNodeSelector,PodTolerationRestriction";

fn start(folder: &Folder) -> Server {
    // Otherwise it is NamespaceLifecycle that finds a namespace missing.
    let others = ["--disable-admission-plugins", "NamespaceLifecycle"];
    let server = Server::start(
        &folder.0,
        &[&["--store", "memory", "--enable-admission-plugins", PLUGINS][..], &others].concat(),
    );
    let annotations = json!({
        "scheduler.alpha.kubernetes.io/node-selector": "zone=a",
        "scheduler.alpha.kubernetes.io/defaultTolerations": r#"[{"key":"team","operator":"Exists"}]"#,
        "scheduler.alpha.kubernetes.io/tolerationsWhitelist":
            r#"[{"key":"team","operator":"Exists"},{"key":"node.kubernetes.io/not-ready","operator":"Exists"},
                {"key":"node.kubernetes.io/unreachable","operator":"Exists"},{"key":"example.com/gpu","operator":"Exists"},
                {"key":"node.kubernetes.io/memory-pressure","operator":"Exists"}]"#,
    });
    let made = post(&server, "/api/v1/namespaces", &json!({"metadata": {"name": "team", "annotations": annotations}}));
    assert_eq!(made.status, 201, "{}", made.json());
    server
}

fn post(server: &Server, path: &str, object: &Value) -> Answer {
    server.send("POST", path, &[("Content-Type", "application/json")], Some(object.to_string().as_bytes()))
}

fn pod(name: &str, spec: Value) -> Value {
    let mut spec = spec;
    let container = json!({
        "name": "c", "image": "i", "imagePullPolicy": "Never",
        "resources": {"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "1"}},
    });
    spec["containers"] = json!([container]);
    json!({"metadata": {"name": name}, "spec": spec})
}

#[test]
fn a_pod_gets_what_its_namespace_and_the_plugins_say() {
    let folder = Folder::for_test();
    let server = start(&folder);
    let made = post(&server, "/api/v1/namespaces/team/pods", &pod("a", json!({}))).json();
    assert_eq!(made["spec"]["nodeSelector"], json!({"zone": "a"}), "{made}");
    assert_eq!(made["spec"]["containers"][0]["imagePullPolicy"], "Always");
    let keys: Vec<&str> = made["spec"]["tolerations"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|toleration| toleration["key"].as_str())
        .collect();
    let (not_ready, unreachable) = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable");
    assert_eq!(keys, [not_ready, unreachable, "team", "example.com/gpu"]);
}

#[test]
fn what_the_plugins_refuse_is_told_in_their_words() {
    let folder = Folder::for_test();
    let server = start(&folder);
    let refused = |path: &str, object: &Value| {
        let answer = post(&server, path, object);
        (answer.status, answer.json()["message"].as_str().unwrap_or_default().to_owned())
    };
    let pods = "/api/v1/namespaces/team/pods";
    assert_eq!(
        refused(pods, &pod("a", json!({"nodeSelector": {"zone": "b"}}))),
        (
            403,
            "pods \"a\" is forbidden: pod node label selector conflicts with its namespace node label selector"
                .to_owned()
        )
    );
    let toleration = json!({"key": "other", "operator": "Exists"});
    assert_eq!(
        refused(pods, &pod("a", json!({"tolerations": [toleration]}))),
        (
            500,
            "pod tolerations (possibly merged with namespace default tolerations) conflict with its namespace whitelist"
                .to_owned()
        )
    );
    let term = json!({"labelSelector": {"matchLabels": {"a": "b"}}, "topologyKey": "zone"});
    let affinity = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}});
    let why = "affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey zone but only key kubernetes.io/hostname is \
               allowed";
    assert_eq!(
        refused(pods, &pod("a", json!({"affinity": affinity}))),
        (403, format!("pods \"a\" is forbidden: {why}"))
    );
    let service = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}], "externalIPs": ["10.1.2.3"]}});
    assert_eq!(
        refused("/api/v1/namespaces/team/services", &service),
        (403, "services \"s\" is forbidden: Use of external IPs is denied by admission control".to_owned())
    );
    assert_eq!(
        refused("/api/v1/namespaces/nowhere/configmaps", &json!({"metadata": {"name": "m"}})),
        (404, "namespaces \"nowhere\" not found".to_owned())
    );
}
