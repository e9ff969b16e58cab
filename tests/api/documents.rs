//! The published documents, as libraries read them.

use openapiv3::OpenAPI;
use serde_json::{Value, json};

use crate::server::{Folder, Server};

#[test]
fn every_openapi_document_is_one_to_other_readers() {
    let folder = Folder::for_test();
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/crd-examples");
    let server = Server::start(&folder.0, &["--store", "memory", "--crds", examples]);
    let index = server.send("GET", "/openapi/v3", &[], None).json();
    let paths = index["paths"].as_object().expect("the index has paths");
    assert!(paths.contains_key("apis/rules.example.com/v1"), "{index}");
    for (path, entry) in paths {
        let url = entry["serverRelativeURL"].as_str().expect("each has an address");
        let document = server.send("GET", url, &[("Accept", "application/json")], None);
        if document.body.is_empty() {
            // As recorded: a version that is not served is listed, and has nothing to show.
            continue;
        }

        let read: Result<OpenAPI, _> = serde_json::from_slice(&document.body);

        let read = read.unwrap_or_else(|error| panic!("{path}: {error}"));
        let published = document.json();
        let count =
            |pointer: &str| published.pointer(pointer).and_then(|value| value.as_object()).map_or(0, |map| map.len());
        assert_eq!(read.paths.paths.len(), count("/paths"), "{path}");
        assert_eq!(
            read.components.map_or(0, |components| components.schemas.len()),
            count("/components/schemas"),
            "{path}"
        );
    }
}

/// Recorded from kube-apiserver 1.36.
#[test]
fn documents_of_built_in_kinds_have_the_paths_of_watches_connections_and_discovery() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory"]);
    let document = |path: &str| server.send("GET", path, &[("Accept", "application/json")], None).json();
    let core = document("/openapi/v3/api/v1");
    assert_eq!(core["info"], json!({"title": "Kubernetes", "version": "1.37"}));
    let pods = "/api/v1/namespaces/{namespace}/pods";
    let id = |document: &Value, path: &str, method: &str| document["paths"][path][method]["operationId"].clone();
    for (path, method, expected) in [
        ("/api/v1/", "get", "getCoreV1APIResources"),
        ("/api/v1/watch/pods", "get", "watchCoreV1PodListForAllNamespaces"),
        ("/api/v1/watch/namespaces/{namespace}/pods", "get", "watchCoreV1NamespacedPodList"),
        ("/api/v1/watch/namespaces/{namespace}/pods/{name}", "get", "watchCoreV1NamespacedPod"),
        (format!("{pods}/{{name}}/exec").as_str(), "post", "connectCoreV1PostNamespacedPodExec"),
        (format!("{pods}/{{name}}/proxy/{{path}}").as_str(), "head", "connectCoreV1HeadNamespacedPodProxyWithPath"),
        (format!("{pods}/{{name}}/log").as_str(), "get", "readCoreV1NamespacedPodLog"),
    ] {
        assert_eq!(id(&core, path, method), expected);
    }
    let names = |parameters: &Value| -> Vec<String> {
        let names = parameters.as_array().into_iter().flatten().map(|it| it["name"].as_str().unwrap_or_default());
        names.map(str::to_owned).collect()
    };
    let exec = names(&core["paths"][format!("{pods}/{{name}}/exec")]["parameters"]);
    assert_eq!(exec, ["command", "container", "name", "namespace", "stderr", "stdin", "stdout", "tty"]);
    let media_types =
        |value: &Value| value["content"].as_object().map(|content| content.keys().cloned().collect::<Vec<_>>());
    let list = media_types(&core["paths"][pods]["get"]["responses"]["200"]).expect("it has content");
    let mut expected = [
        "application/json",
        "application/json;stream=watch",
        "application/vnd.kubernetes.protobuf",
        "application/vnd.kubernetes.protobuf;stream=watch",
        "application/yaml",
    ];
    expected.sort_unstable();
    assert_eq!(list, expected);
    assert_eq!(media_types(&core["paths"][pods]["post"]["requestBody"]), Some(vec!["*/*".to_owned()]));
    let events = &document("/openapi/v3/apis/batch/v1")["components"]["schemas"];
    let versions = &events["io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent"]["x-kubernetes-group-version-kind"];
    assert_eq!(versions.as_array().map(Vec::len), Some(2), "{versions}");

    let apps = document("/openapi/v3/apis/apps");
    assert_eq!(id(&apps, "/apis/apps/", "get"), "getAppsAPIGroup");
    let whole = document("/openapi/v2");
    assert_eq!(id(&whole, "/version/", "get"), "getCodeVersion");
    assert_eq!(id(&whole, "/apis/rbac.authorization.k8s.io/v1/", "get"), "getRbacAuthorizationV1APIResources");
    let proxy = &whole["paths"]["/api/v1/nodes/{name}/proxy"]["options"];
    assert_eq!((&proxy["consumes"], &proxy["produces"]), (&json!(["*/*"]), &json!(["*/*"])));
    let deleted = &whole["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]["delete"]["responses"]["200"]["schema"];
    assert_eq!(deleted["$ref"], "#/definitions/io.k8s.api.core.v1.Pod");
}

#[test]
fn routes_of_documents_say_what_they_offer() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory"]);
    for (path, accept, offered) in [
        ("/api", "application/*", "application/json, application/yaml, application/vnd.kubernetes.protobuf"),
        ("/apis/apps/v1", "text/html", "application/json, application/yaml, application/vnd.kubernetes.protobuf"),
        ("/version", "application/yaml,text/html", "application/json"),
        ("/openid/v1/jwks", "text/html", "application/jwk-set+json"),
    ] {
        let refused = server.send("GET", path, &[("Accept", accept)], None);
        let message = format!("406: Not Acceptable\n\nAvailable representations: {offered}");
        assert!(
            refused.status == 406 && String::from_utf8_lossy(&refused.body).contains("406: Not Acceptable"),
            "{path}"
        );
        if !accept.contains("yaml") {
            assert_eq!(refused.json()["message"], message, "{path}");
        }
    }
    assert_eq!(server.send("GET", "/apis/apps", &[("Accept", "application/*")], None).status, 200);
}

#[test]
fn the_list_of_the_core_group_has_no_version_and_hashes_of_what_is_stored() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory"]);
    let list = server.send("GET", "/api/v1", &[], None).json();
    assert_eq!((&list["kind"], list.get("apiVersion")), (&json!("APIResourceList"), None));
    let resources = list["resources"].as_array().expect("it is a list");
    let has_hash = |name: &str| {
        let resource = resources.iter().find(|resource| resource["name"] == name).expect("it is listed");
        resource.get("storageVersionHash").is_some()
    };
    assert_eq!(["configmaps", "componentstatuses", "bindings"].map(has_hash), [true, false, false]);
}
