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
    let deleted = &whole["paths"]["/api/v1/namespaces/{name}"]["delete"]["responses"]["200"]["schema"];
    assert_eq!(deleted["$ref"], "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.Status");
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

/// Recorded from kube-apiserver 1.36.
#[test]
fn headers_of_documents_say_what_a_client_has_already() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory"]);
    let aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let ask = |method: &str, path: &str, accept: &str, known: &str| {
        let answer = server.send(method, path, &[("Accept", accept), ("If-None-Match", known)], None);
        let all = |name: &str| {
            let values = answer.headers.iter().filter(|(found, _)| found == name).map(|(_, value)| value.as_str());
            values.collect::<Vec<_>>().join("|")
        };
        let told = ["content-type", "cache-control", "vary"].map(all);
        (answer.status, told, answer.header("etag").to_owned())
    };
    let check = |asked: (&str, &str, &str, &str), status: u16, told: [&str; 3]| {
        let (found, headers, _) = ask(asked.0, asked.1, asked.2, asked.3);
        assert_eq!((found, headers), (status, told.map(str::to_owned)), "{asked:?}");
    };
    let private = "no-cache, private";
    let json = "application/json";
    for path in ["/api", "/apis"] {
        let (_, _, tag) = ask("GET", path, aggregated, "");
        check(("GET", path, aggregated, &tag), 304, ["", "public", "Accept"]);
        for other in [format!("\"x\", {tag}"), "*".to_owned(), format!("W/{tag}")] {
            check(("GET", path, aggregated, &other), 200, [aggregated, "public", "Accept"]);
        }
    }
    check(("GET", "/apis/", &format!("{aggregated},{json}"), ""), 200, [json, private, ""]);
    check(("GET", "/apis/", aggregated, ""), 406, [json, private, ""]);
    for (path, vary) in [("/openapi/v2", "Accept-Encoding|Accept"), ("/openapi/v3/apis/apps/v1", "Accept")] {
        let (_, _, tag) = ask("GET", path, json, "");
        check(("GET", path, json, &tag[1..tag.len() - 1]), 200, [json, private, vary]);
        for known in [tag.clone(), format!("\"x\", {tag}"), "*".to_owned(), format!("W/{tag}")] {
            check(("GET", path, json, &known), 304, ["", private, vary]);
            check(("POST", path, json, &known), 412, [json, private, vary]);
        }
        check(("GET", path, "text/html", ""), 406, ["", private, vary]);
    }
    check(("GET", "/openapi/v3", json, ""), 200, ["text/plain; charset=utf-8", private, ""]);
    check(("GET", "/openapi/v3/nope", json, ""), 404, ["", private, ""]);
    check(("GET", "/openapi/v3/apis/apps/v1?hash=x", json, ""), 301, [json, private, "Accept"]);
}

#[test]
fn the_versions_of_the_core_group_come_with_the_address_of_the_server() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory"]);
    let versions = server.send("GET", "/api", &[], None).json();
    let [address] = &versions["serverAddressByClientCIDRs"].as_array().expect("it is a list")[..] else {
        panic!("there is one: {versions}")
    };
    assert_eq!(address["clientCIDR"], "0.0.0.0/0");
    let told: std::net::SocketAddr =
        address["serverAddress"].as_str().and_then(|told| told.parse().ok()).expect("it is one");
    assert!(server.url.ends_with(&format!(":{}", told.port())), "{told}");
}

#[test]
fn aggregated_discovery_that_is_compressed_varies_by_both_headers() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory"]);
    // One with many categories makes the document long enough.
    let categories: Vec<String> = (0..3_000).map(|at| format!("{}-{at}", "c".repeat(50))).collect();
    let names = json!({"plural": "widgets", "kind": "Widget", "categories": categories});
    let schema = json!({"openAPIV3Schema": {"type": "object"}});
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": schema});
    let spec = json!({"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]});
    let definition = json!({"metadata": {"name": "widgets.example.com"}, "spec": spec}).to_string();
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let json = [("Content-Type", "application/json")];
    assert_eq!(server.send("POST", definitions, &json, Some(definition.as_bytes())).status, 201);
    super::wait_for(&server, "/apis/example.com/v1", |answer| answer.status == 200);
    let accept = ("Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");
    let vary = |encoding: &str| {
        let answer = server.send("GET", "/apis", &[accept, ("Accept-Encoding", encoding)], None);
        let values = answer.headers.iter().filter(|(name, _)| name == "vary").map(|(_, value)| value.as_str());
        (answer.header("content-encoding").to_owned(), values.collect::<Vec<_>>().join("|"))
    };
    assert_eq!(vary("gzip"), ("gzip".to_owned(), "Accept|Accept-Encoding".to_owned()));
    assert_eq!(vary("identity"), (String::new(), "Accept".to_owned()));
}

#[test]
fn the_groups_are_told_whatever_the_method_and_versions_to_those_who_read() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory"]);
    for method in ["POST", "PUT", "DELETE", "HEAD", "OPTIONS"] {
        for (path, status) in [("/apis", 200), ("/apis/apps", 200), ("/api", 405), ("/apis/apps/v1", 405)] {
            assert_eq!(server.send(method, path, &[], None).status, status, "{method} {path}");
        }
    }
}

#[test]
fn a_timeout_that_is_none_is_refused_by_health_checks_too() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory"]);
    let refused = server.send("GET", "/livez/ping?timeout=x", &[], None);
    let why = "invalid timeout specified in the request URL - time: invalid duration \"x\"";
    assert_eq!((refused.status, &refused.json()["message"]), (400, &json!(why)));
}

#[test]
fn what_a_table_may_not_include_is_told_once_there_is_something_to_show() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory"]);
    let table = "application/json;as=Table;g=meta.k8s.io;v=v1";
    let told = |path: &str| {
        let answer = server.send("GET", path, &[("Accept", table)], None);
        (answer.status, answer.json()["message"].as_str().unwrap_or_default().to_owned())
    };
    let namespaces = "/api/v1/namespaces";
    let fault = "Unable to convert to Table as requested: includeObject: Invalid value: \"x\": must be 'Metadata', 'Object', 'None', or empty";
    for path in ["", "/default"] {
        assert_eq!(told(&format!("{namespaces}{path}?includeObject=x")), (400, fault.to_owned()));
    }
    let (status, message) = told(&format!("{namespaces}/nope?includeObject=x"));
    assert_eq!((status, message.as_str()), (404, "namespaces \"nope\" not found"));
    let (status, message) = told(&format!("{namespaces}?includeObject=x&limit=1.5"));
    assert_eq!((status, message.as_str()), (400, "strconv.ParseInt: parsing \"1.5\": invalid syntax"));
}

#[test]
fn a_revision_to_come_is_not_waited_for_where_events_are_read() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory"]);
    for (plural, expected) in [("events", None), ("configmaps", Some("1"))] {
        let path = format!("/api/v1/namespaces/default/{plural}?resourceVersion=99999999");
        let answer = server.send("GET", &path, &[], None);
        let told = answer.headers.iter().find(|(name, _)| name == "retry-after").map(|(_, value)| value.as_str());
        assert_eq!((answer.status, told), (504, expected), "{plural}");
    }
}

#[test]
fn a_place_in_the_list_of_api_services_that_is_none_is_refused() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory"]);
    let told = |path: &str| server.send("GET", path, &[], None);
    let services = "/apis/apiregistration.k8s.io/v1/apiservices";
    let invalid = "invalid resource version: resourceVersion: Invalid value: \"x\": strconv.ParseUint: parsing \"x\": invalid syntax";
    let no_token = "invalid continue token: continue key is not valid: illegal base64 data at input byte 0";
    for (query, message) in [("resourceVersion=x", invalid), ("continue=x", no_token)] {
        let refused = told(&format!("{services}?{query}"));
        assert_eq!((refused.status, &refused.json()["message"]), (400, &json!(message)));
    }
    for path in [&format!("{services}?resourceVersion=0"), "/api/v1/componentstatuses?continue=x"] {
        assert_eq!(told(path).status, 200, "{path}");
    }
}
