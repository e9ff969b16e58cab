//! What is said to those who want to speak with pods, services and nodes that nobody runs. Answers are kube-apiserver 1.36.2's.

use serde_json::json;

use crate::server::{Answer, Folder, Server};

const PODS: &str = "/api/v1/namespaces/default/pods";
const SERVICES: &str = "/api/v1/namespaces/default/services";
const NODES: &str = "/api/v1/nodes";
const JSON: (&str, &str) = ("Content-Type", "application/json");

fn make(server: &Server, path: &str, object: &serde_json::Value) {
    let answer = server.send("POST", path, &[JSON], Some(object.to_string().as_bytes()));
    assert_eq!(answer.status, 201, "{}", answer.json());
}

/// A server with a pod without a node, one on a node that is gone, a service and a node without addresses.
fn start() -> (Server, Folder) {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory"]);
    let containers = json!([{"name": "c", "image": "i"}]);
    make(&server, PODS, &json!({"metadata": {"name": "waiting"}, "spec": {"containers": containers}}));
    let placed = json!({"metadata": {"name": "placed"}, "spec": {"nodeName": "gone", "containers": containers}});
    make(&server, PODS, &placed);
    make(&server, SERVICES, &json!({"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}}));
    make(&server, NODES, &json!({"metadata": {"name": "bare"}}));
    (server, folder)
}

#[track_caller]
fn check(answer: &Answer, code: u16, message: &str) {
    let status = answer.json();
    assert_eq!((answer.status, status["message"].as_str()), (code, Some(message)), "{status}");
}

#[test]
fn speaking_with_a_container_needs_the_node_of_its_pod() {
    let (server, _folder) = start();
    for part in ["exec?command=ls", "exec", "attach", "portforward"] {
        for method in ["GET", "POST"] {
            let ask = |pod: &str| server.send(method, &format!("{PODS}/{pod}/{part}"), &[], None);
            check(&ask("waiting"), 400, "pod waiting does not have a host assigned");
            check(&ask("placed"), 404, "pods \"gone\" not found");
            check(&ask("none"), 404, "pods \"none\" not found");
        }
    }
}

#[test]
fn a_pod_without_an_address_is_no_place_to_send_requests_to() {
    let (server, _folder) = start();
    for pod in ["waiting", "placed", "http:placed:80"] {
        for rest in ["", "/", "/x?a=b"] {
            check(&server.send("GET", &format!("{PODS}/{pod}/proxy{rest}"), &[], None), 400, "address not allowed");
        }
    }
}

#[test]
fn a_service_without_endpoints_is_not_found() {
    let (server, _folder) = start();
    for (service, name) in [("web", "web"), ("http:web:80", "web"), ("none", "none")] {
        let answer = server.send("GET", &format!("{SERVICES}/{service}/proxy/x"), &[], None);
        check(&answer, 404, &format!("services \"{name}\" not found"));
    }
}

#[test]
fn a_node_without_addresses_can_not_be_reached() {
    let (server, _folder) = start();
    let why = "no preferred addresses found; known addresses: []";
    for node in ["bare", "bare:10250"] {
        check(&server.send("GET", &format!("{NODES}/{node}/proxy/pods"), &[], None), 500, why);
    }
    check(&server.send("GET", &format!("{NODES}/none/proxy"), &[], None), 404, "nodes \"none\" not found");
}

#[test]
fn nobody_is_spoken_with_in_a_dry_run() {
    let (server, _folder) = start();
    let pod = format!("{PODS}/waiting");
    for path in
        [format!("{pod}/exec"), format!("{pod}/proxy"), format!("{NODES}/bare/proxy"), format!("{SERVICES}/web/proxy")]
    {
        let answer = server.send("POST", &format!("{path}?dryRun=All"), &[], None);
        check(&answer, 400, "dryRun is not supported");
    }
}

#[test]
fn a_path_that_begins_with_two_slashes_is_another_one() {
    let (server, _folder) = start();
    assert_eq!(server.send("GET", "/healthz", &[], None).status, 200);
    assert_eq!(server.send("GET", "//healthz", &[], None).status, 404);
}
