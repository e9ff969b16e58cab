//! Requests at the edge of what is documented: what a server of apiextensions-apiserver 1.37.2 answered to the same.

use std::io::Read as _;
use std::time::Duration;

use serde_json::{Value, json};

use super::{CRONTABS, crontab, serve_crontabs, serve_nightly, wait_for};
use crate::server::{Answer, Folder, Server};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const JSON: (&str, &str) = ("Content-Type", "application/json");
const MERGE: (&str, &str) = ("Content-Type", "application/merge-patch+json");
const METADATA: (&str, &str) = ("Accept", "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io");
const METADATA_LIST: (&str, &str) = ("Accept", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io");
const TABLE: (&str, &str) = ("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io");

fn get(server: &Server, path: &str, header: (&str, &str)) -> Answer {
    server.send("GET", path, &[header], None)
}

/// That the answer is a Status with `code`, the message ending as said.
#[track_caller]
fn check(answer: &Answer, code: u16, message: &str) {
    let status = answer.json();
    let found = status["message"].as_str().unwrap_or_default();
    assert_eq!((answer.status, &status["code"]), (code, &json!(code)), "{status}");
    assert!(found.ends_with(message), "{found}");
}

#[test]
fn a_name_that_no_path_can_hold_is_told() {
    let (server, _folder) = serve_nightly();
    for (name, fault) in [
        ("..", r#"Name parameter invalid: "..": may not be '..'"#),
        ("%2e", r#"Name parameter invalid: ".": may not be '.'"#),
        ("a%25b", r#"Name parameter invalid: "a%b": may not contain '%'"#),
    ] {
        for method in ["GET", "DELETE"] {
            check(&server.send(method, &format!("{CRONTABS}/{name}"), &[], None), 400, fault);
        }
        check(&server.send("PATCH", &format!("{CRONTABS}/{name}"), &[MERGE], Some(b"{}")), 400, fault);
    }
}

#[test]
fn a_malformed_token_is_told_before_a_revision_beside_it() {
    let (server, _folder) = serve_nightly();
    let page = |token: &str| get(&server, &format!("{CRONTABS}?resourceVersion=5&continue={token}"), JSON);
    check(&page("x"), 400, "invalid continue token: continue key is not valid: illegal base64 data at input byte 0");
    check(
        &page("eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhIn0"),
        400,
        "specifying resource version is not allowed when using continue",
    );
}

#[test]
fn what_is_not_a_list_and_what_is_one_is_told_in_types_of_go() {
    let (server, _folder) = serve_nightly();
    let no_list = "the requested object is not a list (*v1.Scale)";
    check(&get(&server, &format!("{CRONTABS}/nightly/scale"), METADATA_LIST), 406, no_list);
    check(&get(&server, &format!("{CRONTABS}/nightly"), METADATA_LIST), 500, "content is not a list");
    let definition = format!("{DEFINITIONS}/crontabs.stable.example.com");
    let no_list = "the requested object is not a list (*apiextensions.CustomResourceDefinition)";
    check(&get(&server, &definition, METADATA_LIST), 406, no_list);
    for (path, list) in [
        (CRONTABS, "*unstructured.UnstructuredList"),
        (DEFINITIONS, "*apiextensions.CustomResourceDefinitionList"),
        ("/api/v1/namespaces/default/configmaps", "*core.ConfigMapList"),
    ] {
        check(&get(&server, path, METADATA), 406, &format!("the requested object is a list ({list})"));
    }
}

#[test]
fn the_metadata_of_no_objects_is_null() {
    let (server, _folder) = serve_nightly();
    // As kube-apiserver 1.36.2 answers.
    for path in ["/api/v1/namespaces/default/pods", &format!("{CRONTABS}?fieldSelector=metadata.name%3Dnone")] {
        let list = get(&server, path, METADATA_LIST).json();
        assert_eq!(
            (&list["kind"], list.get("items")),
            (&json!("PartialObjectMetadataList"), Some(&Value::Null)),
            "{path}"
        );
    }
}

#[test]
fn an_empty_list_of_managers_forgets_who_owned_what_of_a_built_in_kind() {
    let (server, _folder) = serve_nightly();
    let has_managers = |path: &str| {
        let patched = server.send("PATCH", path, &[MERGE], Some(br#"{"metadata":{"managedFields":[]}}"#));
        assert_eq!(patched.status, 200, "{path}");
        patched.json()["metadata"].get("managedFields").is_some()
    };
    assert!(has_managers(&format!("{CRONTABS}/nightly")));
    assert!(!has_managers("/api/v1/namespaces/default"));
}

#[test]
fn a_scale_has_columns_of_its_own() {
    let (server, _folder) = serve_nightly();
    let table = get(&server, &format!("{CRONTABS}/nightly/scale"), TABLE).json();
    let columns = table["columnDefinitions"].as_array().expect("a Table has columns");
    let columns: Vec<_> = columns.iter().map(|column| [&column["name"], &column["type"]]).collect();
    assert_eq!(
        json!(columns),
        json!([["Name", "string"], ["Desired", "integer"], ["Available", "integer"], ["Age", "date"]])
    );
    assert_eq!(json!(table["rows"][0]["cells"].as_array().map(|cells| &cells[..3])), json!(["nightly", 1, 0]));
}

#[test]
fn routes_of_built_in_kinds_know_get_and_no_head() {
    let (server, _folder) = serve_nightly();
    let watch = "/apis/apiextensions.k8s.io/v1/watch/customresourcedefinitions";
    let not_allowed = "the server does not allow this method on the requested resource";
    for method in ["POST", "DELETE", "OPTIONS"] {
        check(&server.send(method, watch, &[], None), 405, not_allowed);
    }
    for path in [watch, DEFINITIONS, "/api/v1/namespaces/default", "/api/v1/configmaps"] {
        assert_eq!(server.send("HEAD", path, &[], None).status, 405, "{path}");
    }
    assert_eq!(server.send("HEAD", CRONTABS, &[], None).status, 200);
}

#[test]
fn the_lists_of_all_namespaces_take_nothing_but_reads() {
    let (server, _folder) = serve_nightly();
    let not_allowed = "the server does not allow this method on the requested resource";
    let not_found = "the server could not find the requested resource";
    for path in ["/api/v1/configmaps", "/apis/apps/v1/deployments"] {
        for method in ["POST", "PUT", "PATCH", "DELETE"] {
            check(&server.send(method, path, &[], Some(b"{}")), 405, not_allowed);
        }
        check(&server.send("PUT", &format!("{path}/a"), &[], Some(b"{}")), 404, not_found);
    }
    // What can't be listed has no such path at all.
    for path in ["/api/v1/bindings", "/apis/authorization.k8s.io/v1/localsubjectaccessreviews"] {
        check(&server.send("POST", path, &[], Some(b"{}")), 404, not_found);
    }
}

#[test]
fn a_version_that_a_built_in_group_lacks_is_not_found_by_any_method() {
    let (server, _folder) = serve_nightly();
    for path in ["/apis/apiextensions.k8s.io/v1beta1", "/api/v2"] {
        for method in ["GET", "POST", "OPTIONS"] {
            let answer = server.send(method, path, &[], None);
            check(&answer, 404, "the server could not find the requested resource");
        }
    }
    for path in ["/apis/stable.example.com/v2", "/apis//stable.example.com/v1"] {
        let answer = server.send("GET", path, &[], None);
        assert_eq!((answer.status, answer.body.as_slice()), (404, b"404 page not found\n".as_slice()), "{path}");
    }
}

#[test]
fn cluster_wide_definitions_are_selected_by_an_empty_namespace() {
    let (server, _folder) = serve_nightly();
    for (selector, count) in [("metadata.namespace%3Ddefault", 0), ("metadata.namespace!%3Ddefault", 1)] {
        let list = get(&server, &format!("{DEFINITIONS}?fieldSelector={selector}"), JSON).json();
        assert_eq!(list["items"].as_array().map(Vec::len), Some(count), "{selector}");
    }
    let namespaces = get(&server, "/api/v1/namespaces?fieldSelector=metadata.namespace%3Da", JSON);
    check(&namespaces, 400, "field label not supported: metadata.namespace");
}

#[test]
fn a_patch_does_not_make_another_kind() {
    let (server, _folder) = serve_nightly();
    let path = format!("{DEFINITIONS}/crontabs.stable.example.com");
    for (patch, fault) in [
        (r#"{"kind":"X"}"#, r#"no kind "X" is registered for version "apiextensions.k8s.io/v1" in scheme"#),
        (r#"{"apiVersion":"v2"}"#, r#"no kind "CustomResourceDefinition" is registered for version "v2" in scheme"#),
        (r#"{"apiVersion":"a/b/c"}"#, "unexpected GroupVersion string: a/b/c"),
    ] {
        let status = server.send("PATCH", &path, &[MERGE], Some(patch.as_bytes())).json();
        let message = status["message"].as_str().unwrap_or_default();
        assert!(status["code"] == 422 && message.contains(fault), "{patch}: {status}");
    }
    assert_eq!(server.send("PATCH", &path, &[MERGE], Some(br#"{"kind":null}"#)).status, 200);
}

#[test]
fn bodies_that_are_no_scale_and_no_options_are_told() {
    let (server, _folder) = serve_nightly();
    let scale = format!("{CRONTABS}/nightly/scale");
    for body in ["", "{", "[]"] {
        let answer = server.send("PUT", &scale, &[JSON], Some(body.as_bytes()));
        assert_eq!(answer.status, 400, "{body}");
    }
    let no_scale = "no kind is registered for the type v1.Scale in scheme \"pkg/runtime/scheme.go:111\"";
    check(&server.send("PUT", &scale, &[JSON], Some(b"")), 400, no_scale);
    for (options, fault) in [
        (r#"{"kind":"DeleteOptions","apiVersion":"a/b/c"}"#, "unexpected GroupVersion string: a/b/c"),
        (
            r#"{"gracePeriodSeconds":1.5}"#,
            "json: cannot unmarshal number 1.5 into Go struct field DeleteOptions.gracePeriodSeconds of type int64",
        ),
    ] {
        let path = format!("{CRONTABS}/nightly");
        check(&server.send("DELETE", &path, &[JSON], Some(options.as_bytes())), 400, fault);
    }
}

#[test]
fn a_revision_in_a_new_object_is_minded_by_the_store_alone() {
    let (server, _folder) = serve_nightly();
    let create = |name: &str, revision: &str, query: &str| {
        let mut object = crontab(name);
        object["metadata"]["resourceVersion"] = json!(revision);
        server.send("POST", &format!("{CRONTABS}{query}"), &[JSON], Some(object.to_string().as_bytes()))
    };
    check(&create("a", "5", ""), 500, "resourceVersion should not be set on objects to be created");
    let dry = create("a", "5", "?dryRun=All");
    assert_eq!((dry.status, &dry.json()["metadata"]["resourceVersion"]), (201, &json!("5")));
    assert_eq!((create("a", "0", "").status, create("b", "soon", "").status), (201, 201));
}

#[test]
fn a_dry_run_of_an_apply_that_creates_keeps_the_revision_that_was_sent() {
    let (server, _folder) = serve_nightly();
    let mut object = crontab("a");
    object["metadata"]["resourceVersion"] = json!("5");
    let apply = |query: &str| {
        let path = format!("{CRONTABS}/a?fieldManager=m{query}");
        let header = ("Content-Type", "application/apply-patch+yaml");
        server.send("PATCH", &path, &[header], Some(object.to_string().as_bytes())).json()
    };
    assert_eq!(apply("&dryRun=All")["metadata"]["resourceVersion"], "5");
    assert_ne!(apply("")["metadata"]["resourceVersion"], "5");
}

#[test]
fn a_scale_without_version_leaves_the_replicas_to_their_owner() {
    let (server, _folder) = serve_nightly();
    let becomes_owner = |manager: &str, version: &str| {
        let scale =
            json!({"apiVersion": version, "kind": "Scale", "metadata": {"name": "nightly"}, "spec": {"replicas": 7}});
        let path = format!("{CRONTABS}/nightly/scale?fieldManager={manager}");
        assert_eq!(server.send("PUT", &path, &[JSON], Some(scale.to_string().as_bytes())).status, 200);
        let object = server.send("GET", &format!("{CRONTABS}/nightly"), &[], None).json();
        let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
        entries.iter().any(|entry| entry["manager"] == manager)
    };
    assert!(becomes_owner("one", "autoscaling/v1"));
    assert!(!becomes_owner("other", ""));
}

/// All that a watch of a second sends.
fn watched(server: &Server, query: &str, header: (&str, &str)) -> (u16, Vec<Value>) {
    let path = format!("{CRONTABS}?watch=1&timeoutSeconds=1&{query}");
    let mut stream = server.open("GET", &path, &[header], None, Duration::from_secs(60));
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("the server ends it");
    let answer = Answer::parse(&bytes).expect("it has a head");
    let events = String::from_utf8_lossy(&answer.body);
    (answer.status, events.lines().map(|line| serde_json::from_str(line).expect("an event is JSON")).collect())
}

#[test]
fn a_streamed_list_at_a_revision_to_come_ends_with_an_error() {
    let (server, _folder) = serve_nightly();
    let query = "resourceVersion=99999999&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
    let (status, events) = watched(&server, query, JSON);
    assert_eq!((status, events.len()), (200, 1), "{events:?}");
    let (kind, error) = (&events[0]["type"], &events[0]["object"]);
    assert_eq!((kind, &error["code"], &error["reason"]), (&json!("ERROR"), &json!(504), &json!("Timeout")));
    assert_eq!(error["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
}

#[test]
fn a_watch_may_have_a_timeout_of_any_size() {
    let (server, _folder) = serve_nightly();
    let watch = |seconds: i64| {
        let path = format!("{CRONTABS}?watch=1&timeoutSeconds={seconds}");
        server.open("GET", &path, &[JSON], None, Duration::from_secs(60))
    };
    let mut bytes = Vec::new();
    watch(-1).read_to_end(&mut bytes).expect("the server ends it");
    assert_eq!(Answer::parse(&bytes).expect("it has a head").status, 200);
    let mut head = [0; 15];
    watch(i64::MAX).read_exact(&mut head).expect("the watch begins");
    assert_eq!(String::from_utf8_lossy(&head), "HTTP/1.1 200 OK");
}

#[test]
fn the_first_deletion_of_a_definition_only_marks_it() {
    let (server, _folder) = serve_nightly();
    let path = format!("{DEFINITIONS}/crontabs.stable.example.com");
    let options = json!({"propagationPolicy": "Foreground", "kind": "DeleteOptions", "apiVersion": "v1"});
    let answer = server.send("DELETE", &path, &[JSON], Some(options.to_string().as_bytes()));
    let finalizers = &answer.json()["metadata"]["finalizers"];
    assert_eq!((answer.status, finalizers), (200, &json!(["customresourcecleanup.apiextensions.k8s.io"])));
}

#[test]
fn definitions_that_are_deleted_as_a_collection_are_gone_at_once_and_their_objects_stay_in_the_store() {
    let (server, _folder) = serve_nightly();
    let path = format!("{DEFINITIONS}/crontabs.stable.example.com");
    let mut definition = get(&server, &path, JSON).json();
    let selected = format!("{DEFINITIONS}?fieldSelector=metadata.name%3Dcrontabs.stable.example.com");
    assert_eq!(server.send("DELETE", &selected, &[], None).status, 200);
    check(&get(&server, &path, JSON), 404, "\"crontabs.stable.example.com\" not found");
    definition["metadata"] = json!({"name": "crontabs.stable.example.com"});
    let made = server.send("POST", DEFINITIONS, &[JSON], Some(definition.to_string().as_bytes()));
    assert_eq!(made.status, 201, "{}", made.json());
    wait_for(&server, &format!("{CRONTABS}/nightly"), |answer| answer.status == 200);
}

#[test]
fn a_definition_that_is_deleted_with_its_collection_waits_for_its_finalizers() {
    let (server, _folder) = serve_nightly();
    let path = format!("{DEFINITIONS}/crontabs.stable.example.com");
    let hold = br#"{"metadata":{"finalizers":["example.com/hold"]}}"#;
    assert_eq!(server.send("PATCH", &path, &[MERGE], Some(hold)).status, 200);
    assert_eq!(server.send("DELETE", DEFINITIONS, &[], None).status, 200);
    let marked = get(&server, &path, JSON).json();
    let metadata = &marked["metadata"];
    assert_eq!(metadata["finalizers"], json!(["example.com/hold"]));
    assert!(metadata["deletionTimestamp"].is_string() && metadata["deletionGracePeriodSeconds"] == 0, "{metadata}");
    let conditions = marked["status"]["conditions"].to_string();
    assert!(!conditions.contains("Terminating"), "{conditions}");
    assert_eq!(get(&server, &format!("{CRONTABS}/nightly"), JSON).status, 200);
}

#[test]
fn a_namespace_that_is_removed_at_once_is_answered() {
    let folder = Folder::for_test();
    let server = serve_crontabs(&folder, &["--store", "memory", "--controllers", "*,-garbage-collector-controller"]);
    let namespaces = "/api/v1/namespaces";
    let team = json!({"metadata": {"name": "team", "finalizers": ["foregroundDeletion"]}}).to_string();
    assert_eq!(server.send("POST", namespaces, &[JSON], Some(team.as_bytes())).status, 201);
    let path = format!("{namespaces}/team");
    assert_eq!(server.send("DELETE", &path, &[], None).status, 200);
    wait_for(&server, &path, |answer| answer.json()["spec"].get("finalizers").is_none());
    let gone = server.send("DELETE", &format!("{path}?propagationPolicy=Background"), &[], None);
    assert_eq!((gone.status, &gone.json()["kind"]), (200, &json!("Namespace")), "{}", gone.json());
    assert_eq!(get(&server, &path, JSON).status, 404);
}

#[test]
fn a_list_that_names_one_object_is_of_the_newest_state_or_of_exactly_one() {
    let (server, _folder) = serve_nightly();
    let path = format!("{CRONTABS}/nightly");
    let before = get(&server, &path, JSON).json()["metadata"]["resourceVersion"].clone();
    let patch = br#"{"metadata":{"labels":{"a":"b"}}}"#;
    assert_eq!(server.send("PATCH", &path, &[MERGE], Some(patch)).status, 200);
    let label = |query: &str| {
        let old = before.as_str().expect("it is text");
        let answer = get(&server, &format!("{CRONTABS}?limit=1&resourceVersion={old}{query}"), JSON);
        assert_eq!(answer.status, 200, "{}", answer.json());
        answer.json()["items"][0]["metadata"]["labels"]["a"].clone()
    };
    let named = "&fieldSelector=metadata.name%3Dnightly";
    assert_eq!(label(""), Value::Null);
    assert_eq!(label(named), "b");
    assert_eq!(label(&format!("{named}&resourceVersionMatch=Exact")), Value::Null);
}

#[test]
fn a_page_of_one_namespace_or_one_node_knows_that_it_is_the_last() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory"]);
    let pods = |namespace: &str| format!("/api/v1/namespaces/{namespace}/pods");
    let make = |namespace: &str, name: &str, node: &str| {
        let spec = json!({"nodeName": node, "containers": [{"name": "c", "image": "i"}]});
        let pod = json!({"metadata": {"name": name}, "spec": spec}).to_string();
        let answer = server.send("POST", &pods(namespace), &[JSON], Some(pod.as_bytes()));
        assert_eq!(answer.status, 201, "{}", answer.json());
    };
    make("default", "a", "n1");
    make("default", "b", "n2");
    make("default", "c", "n1");
    make("kube-node-lease", "a", "n2");
    make("kube-public", "a", "n1");
    let page = |path: &str, query: &str| {
        let page = get(&server, &format!("{path}?limit=1&fieldSelector={query}"), JSON).json();
        let names: Vec<&str> =
            page["items"].as_array().into_iter().flatten().filter_map(|it| it["metadata"]["name"].as_str()).collect();
        (names.join(" "), page["metadata"]["continue"].as_str().unwrap_or_default().to_owned())
    };
    let (all, in_default) = ("/api/v1/pods", pods("default"));
    assert_eq!(page(all, "metadata.namespace%3Dkube-node-lease"), ("a".to_owned(), String::new()));
    assert_eq!(page(&in_default, "spec.nodeName%3Dn2"), ("b".to_owned(), String::new()));
    for (query, expected) in [("metadata.namespace%3Ddefault", "a b c"), ("spec.nodeName%3Dn2", "b a")] {
        let (mut names, mut token) = page(all, query);
        while !token.is_empty() {
            let (name, next) = page(all, &format!("{query}&continue={token}"));
            names.push_str(&format!(" {name}"));
            token = next;
        }
        // A page that goes on at a token can be empty.
        assert_eq!(names.trim_end(), expected, "{query}");
    }
}

#[test]
fn a_name_in_all_namespaces_comes_in_pages() {
    let (server, _folder) = serve_nightly();
    let maps = |namespace: &str| format!("/api/v1/namespaces/{namespace}/configmaps");
    for (namespace, name) in [("default", "a"), ("default", "b"), ("kube-public", "a")] {
        let map = json!({"metadata": {"name": name}}).to_string();
        assert_eq!(server.send("POST", &maps(namespace), &[JSON], Some(map.as_bytes())).status, 201);
    }
    let page = |path: &str, token: &str| {
        let page = get(&server, &format!("{path}?fieldSelector=metadata.name%3Da&limit=1&continue={token}"), JSON);
        let page = page.json();
        let namespace = page["items"][0]["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
        (namespace, page["metadata"]["continue"].as_str().unwrap_or_default().to_owned())
    };
    let (first, token) = page("/api/v1/configmaps", "");
    assert_eq!((first.as_str(), token.is_empty()), ("default", false));
    assert_eq!(page("/api/v1/configmaps", &token).0, "kube-public");
    assert_eq!(page(&maps("default"), ""), ("default".to_owned(), String::new()));
}

#[test]
fn what_is_wrong_with_a_request_is_told_in_the_order_of_the_reference() {
    let (server, _folder) = serve_nightly();
    let text = ("Content-Type", "text/plain");
    let path = format!("{CRONTABS}/nightly?dryRun=x");
    assert_eq!(server.send("PUT", &path, &[text], Some(b"{}")).status, 422);
    assert_eq!(server.send("POST", &format!("{CRONTABS}?dryRun=x"), &[text], Some(b"{}")).status, 415);
    assert_eq!(server.send("PUT", &format!("{CRONTABS}/nightly"), &[text], Some(b"{}")).status, 415);
    let yaml = ("Accept", "application/yaml");
    assert_eq!(get(&server, &format!("{CRONTABS}?watch=1&resourceVersion=x"), yaml).status, 500);
    assert_eq!(get(&server, &format!("{CRONTABS}?watch=1"), yaml).status, 406);
}

#[test]
fn an_object_in_a_namespace_that_is_gone_can_lose_its_finalizers() {
    let (server, _folder) = serve_nightly();
    let send = |method: &str, path: &str, body: &Value| {
        let header = if method == "PATCH" { MERGE } else { JSON };
        server.send(method, path, &[header], Some(body.to_string().as_bytes())).status
    };
    let namespace = |finalizers: Value| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "gone"}, "spec": {"finalizers": finalizers}});
    assert_eq!(send("POST", "/api/v1/namespaces", &namespace(json!(["kubernetes"]))), 201);
    let map =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "finalizers": ["example.com/a"]}});
    let maps = "/api/v1/namespaces/gone/configmaps";
    assert_eq!(send("POST", maps, &map), 201);
    assert_eq!(server.send("DELETE", "/api/v1/namespaces/gone", &[], None).status, 200);
    assert_eq!(send("PUT", "/api/v1/namespaces/gone/finalize", &namespace(json!([]))), 200);
    assert_eq!(server.send("GET", "/api/v1/namespaces/gone", &[], None).status, 404);
    assert_eq!(send("PATCH", &format!("{maps}/a"), &json!({"metadata": {"finalizers": null}})), 200);
}

#[test]
fn a_watch_of_lists_of_metadata_ends_at_its_first_event() {
    let (server, _folder) = serve_nightly();
    assert_eq!(watched(&server, "resourceVersion=0", METADATA_LIST), (200, vec![]));
}
