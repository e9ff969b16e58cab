//! The kinds that surround a custom resource, in JSON. Texts are those of kube-apiserver 1.37.

use serde_json::{Value, json};

use super::serve_crontabs;
use crate::server::{Answer, Folder, Server};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const EVENTS: &str = "/api/v1/namespaces/default/events";
const NEW_EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/default/events";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";

fn send(server: &Server, method: &str, path: &str, body: &Value) -> Answer {
    let content_type = match method {
        "PATCH" => "application/strategic-merge-patch+json",
        _ => "application/json",
    };
    server.send(method, path, &[("Content-Type", content_type)], Some(body.to_string().as_bytes()))
}

fn get(server: &Server, path: &str) -> Value {
    server.send("GET", path, &[], None).json()
}

/// Creates an object, and gives its path.
fn create(server: &Server, path: &str, body: Value) -> String {
    let answer = send(server, "POST", path, &body);
    assert_eq!(answer.status, 201, "{}", answer.json());
    format!("{path}/{}", body["metadata"]["name"].as_str().expect("the test names it"))
}

#[track_caller]
fn check_refused(answer: &Answer, status: u16, message: &str) {
    assert_eq!((answer.status, answer.json()["message"].as_str()), (status, Some(message)));
}

fn memory(folder: &Folder) -> Server {
    Server::start(&folder.0, &["--store", "memory"])
}

#[test]
fn what_does_not_decode_is_told_in_the_words_of_go() {
    let folder = Folder::for_test();
    let server = memory(&folder);
    let unfit = |kind: &str, error: &str| format!(r#"{kind} in version "v1" cannot be handled as a {kind}: {error}"#);
    for (path, kind, body, error) in [
        (
            CONFIG_MAPS,
            "ConfigMap",
            json!({"data": {"a": 1}}),
            "json: cannot unmarshal number into Go struct field ConfigMap.data of type string",
        ),
        (
            ACCOUNTS,
            "ServiceAccount",
            json!({"secrets": ["a"]}),
            "json: cannot unmarshal string into Go struct field ServiceAccount.secrets of type v1.ObjectReference",
        ),
        (SECRETS, "Secret", json!({"data": {"a": "?"}}), "illegal base64 data at input byte 0"),
        (
            LEASES,
            "Lease",
            json!({"spec": {"renewTime": "now"}}),
            r#"parsing time "now" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "now" as "2006""#,
        ),
    ] {
        check_refused(&send(&server, "POST", path, &body), 400, &unfit(kind, error));
    }
}

#[test]
fn unknown_fields_are_warned_of_and_dropped() {
    let folder = Folder::for_test();
    let server = memory(&folder);
    let answer = send(&server, "POST", CONFIG_MAPS, &json!({"metadata": {"name": "a"}, "data": {}, "colour": "red"}));
    assert_eq!(answer.header("warning"), r#"299 - "unknown field \"colour\"""#);
    assert_eq!((answer.json().get("colour"), answer.json().get("data")), (None, None));
}

#[test]
fn items_of_a_list_say_no_kind() {
    let folder = Folder::for_test();
    let server = memory(&folder);
    create(&server, CONFIG_MAPS, json!({"metadata": {"name": "a"}}));
    let list = get(&server, &format!("{CONFIG_MAPS}?fieldSelector=metadata.name%3Da"));
    assert_eq!(list["kind"], "ConfigMapList");
    assert_eq!((list["items"][0].get("kind"), list["items"][0].get("apiVersion")), (None, None));
}

#[test]
fn a_config_map_that_is_immutable_stays_as_it_is() {
    let folder = Folder::for_test();
    let server = memory(&folder);
    let fixed = json!({"metadata": {"name": "a"}, "immutable": true, "data": {"k": "v"}});
    let path = create(&server, CONFIG_MAPS, fixed);
    let changed = json!({"metadata": {"name": "a"}, "immutable": true, "data": {"k": "w"}});
    let message = "ConfigMap \"a\" is invalid: data: Forbidden: field is immutable when `immutable` is set";
    check_refused(&send(&server, "PUT", &path, &changed), 422, message);
    let relabelled = json!({"metadata": {"labels": {"x": "y"}}});
    assert_eq!(send(&server, "PATCH", &path, &relabelled).status, 200);
}

#[test]
fn keys_of_data_are_checked() {
    let folder = Folder::for_test();
    let server = memory(&folder);
    let twice = json!({"metadata": {"name": "a"}, "data": {"k": "v"}, "binaryData": {"k": "aGk="}});
    let message = r#"ConfigMap "a" is invalid: data[k]: Invalid value: "k": duplicate of key present in binaryData"#;
    check_refused(&send(&server, "POST", CONFIG_MAPS, &twice), 422, message);
    let message = concat!(
        r#"ConfigMap "a" is invalid: data[a b]: Invalid value: "a b": a valid config key must consist of alphanumeric "#,
        r#"characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is "#,
        r#"'[-._a-zA-Z0-9]+')"#,
    );
    check_refused(
        &send(&server, "POST", CONFIG_MAPS, &json!({"metadata": {"name": "a"}, "data": {"a b": ""}})),
        422,
        message,
    );
}

#[test]
fn the_text_of_a_secret_goes_into_its_data() {
    let folder = Folder::for_test();
    let server = memory(&folder);
    let secret = json!({"metadata": {"name": "a"}, "data": {"k": "b2xk", "l": "aGk="}, "stringData": {"k": "new"}});
    let stored = get(&server, &create(&server, SECRETS, secret));
    assert_eq!(stored["data"], json!({"k": "bmV3", "l": "aGk="}));
    assert_eq!((&stored["type"], stored.get("stringData")), (&json!("Opaque"), None));
}

#[test]
fn a_secret_has_the_keys_of_its_type() {
    let folder = Folder::for_test();
    let server = memory(&folder);
    for (type_, message) in [
        ("kubernetes.io/tls", "[data[tls.crt]: Required value, data[tls.key]: Required value]"),
        ("kubernetes.io/basic-auth", "[data[username]: Required value, data[password]: Required value]"),
        ("kubernetes.io/ssh-auth", "data[ssh-privatekey]: Required value"),
        ("kubernetes.io/dockerconfigjson", "data[.dockerconfigjson]: Required value"),
        (
            "kubernetes.io/service-account-token",
            "metadata.annotations[kubernetes.io/service-account.name]: Required value",
        ),
    ] {
        let answer = send(&server, "POST", SECRETS, &json!({"metadata": {"name": "a"}, "type": type_}));
        check_refused(&answer, 422, &format!(r#"Secret "a" is invalid: {message}"#));
    }
    let path = create(&server, SECRETS, json!({"metadata": {"name": "a"}}));
    let message = r#"Secret "a" is invalid: type: Invalid value: "x": field is immutable"#;
    check_refused(&send(&server, "PATCH", &path, &json!({"type": "x"})), 422, message);
}

#[test]
fn lists_of_an_account_are_merged_by_name() {
    let folder = Folder::for_test();
    let server = memory(&folder);
    let account = json!({"metadata": {"name": "a"}, "secrets": [{"name": "x", "namespace": "gone"}, {"name": "y"}]});
    let path = create(&server, ACCOUNTS, account);
    let patched =
        send(&server, "PATCH", &path, &json!({"secrets": [{"name": "z"}], "imagePullSecrets": [{"name": "i"}]}));
    assert_eq!(patched.json()["secrets"], json!([{"name": "z"}, {"name": "x"}, {"name": "y"}]));
    let deletion = json!({
        "$setElementOrder/secrets": [{"name": "y"}, {"name": "z"}], "secrets": [{"$patch": "delete", "name": "x"}],
    });
    let patched = send(&server, "PATCH", &path, &deletion);
    assert_eq!(patched.json()["secrets"], json!([{"name": "y"}, {"name": "z"}]));
}

#[test]
fn a_strategic_patch_may_replace_the_whole_object_and_says_nothing_of_its_type() {
    let folder = Folder::for_test();
    let server = memory(&folder);
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let spec = json!({"replicas": 3, "selector": {"matchLabels": {"a": "b"}}, "template": template});
    let path = create(
        &server,
        "/apis/apps/v1/namespaces/default/deployments",
        json!({"metadata": {"name": "a"}, "spec": spec}),
    );
    let mut whole = json!({"$patch": "replace", "metadata": {"name": "a"}, "spec": spec});
    whole["spec"].as_object_mut().expect("it is one").remove("replicas");
    let patched = send(&server, "PATCH", &path, &whole).json();
    assert_eq!((&patched["kind"], &patched["apiVersion"]), (&json!("Deployment"), &json!("apps/v1")));
    assert_eq!((&patched["spec"]["replicas"], &patched["spec"]["revisionHistoryLimit"]), (&json!(1), &json!(10)));
    let other = json!({"kind": "Foo", "apiVersion": "x/v1", "spec": {"replicas": 2}});
    let patched = send(&server, "PATCH", &path, &other).json();
    assert_eq!((&patched["kind"], &patched["spec"]["replicas"]), (&json!("Deployment"), &json!(2)));
    let nameless = json!({"$patch": "replace", "spec": {"replicas": 2}});
    let answer = send(&server, "PATCH", &path, &nameless);
    check_refused(&answer, 400, "the name of the object (a based on URL) was undeterminable: name must be provided");
}

#[test]
fn a_strategic_patch_that_does_not_fit_is_refused() {
    let folder = Folder::for_test();
    let server = memory(&folder);
    let path = create(&server, ACCOUNTS, json!({"metadata": {"name": "a"}, "secrets": [{"name": "x"}]}));
    let answer = send(&server, "PATCH", &path, &json!({"secrets": [{"uid": "x"}]}));
    check_refused(&answer, 500, "map: map[uid:x] does not contain declared merge key: name");
    let answer = send(&server, "PATCH", &path, &json!({"secrets": "x"}));
    let message = r#" "" is invalid: patch: Invalid value: "map[secrets:x]": cannot restore slice from string"#;
    check_refused(&answer, 422, message);
    let answer = send(&server, "PATCH", &path, &json!(["x"]));
    let message = "json: cannot unmarshal array into Go value of type map[string]interface {}";
    check_refused(&answer, 400, message);
}

#[test]
fn custom_objects_know_no_strategic_patch() {
    let folder = Folder::for_test();
    let server = serve_crontabs(&folder, &["--store", "memory"]);
    let answer = send(&server, "PATCH", &format!("{}/x", super::CRONTABS), &json!({}));
    let message = "the body of the request was in an unknown format - accepted media types include: \
                   application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml";
    check_refused(&answer, 415, message);
}

fn happening() -> Value {
    json!({
        "metadata": {"name": "e"}, "involvedObject": {"kind": "Pod", "namespace": "default", "name": "p"},
        "reason": "Started", "message": "m", "type": "Normal", "count": 3, "source": {"component": "kubelet", "host": "n"},
        "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z",
    })
}

#[test]
fn an_event_is_served_by_two_groups() {
    let folder = Folder::for_test();
    let server = memory(&folder);
    create(&server, EVENTS, happening());
    let event = get(&server, &format!("{NEW_EVENTS}/e"));
    assert_eq!(event["apiVersion"], "events.k8s.io/v1");
    assert_eq!((&event["note"], &event["deprecatedCount"]), (&json!("m"), &json!(3)));
    assert_eq!(event["regarding"], json!({"kind": "Pod", "namespace": "default", "name": "p"}));
    assert_eq!((event.get("message"), event.get("count")), (None, None));

    let new = json!({
        "metadata": {"name": "f"}, "regarding": {"namespace": "default"}, "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "example.com/c", "reportingInstance": "i", "action": "A", "reason": "R", "type": "Normal",
    });
    create(&server, NEW_EVENTS, new);
    let old = get(&server, &format!("{EVENTS}/f"));
    assert_eq!((&old["reportingComponent"], &old["apiVersion"]), (&json!("example.com/c"), &json!("v1")));
}

#[test]
fn the_newer_form_of_an_event_is_checked_strictly() {
    let folder = Folder::for_test();
    let server = memory(&folder);
    let answer = send(&server, "POST", NEW_EVENTS, &json!({"metadata": {"name": "e"}, "type": "Odd"}));
    let message =
        r#"Event "e" is invalid: [eventTime: Required value, type: Invalid value: "": has invalid value: Odd]"#;
    check_refused(&answer, 422, message);
    create(&server, EVENTS, json!({"metadata": {"name": "e"}, "type": "Odd"}));
}

#[test]
fn events_are_selected_by_what_they_are_about() {
    let folder = Folder::for_test();
    let server = memory(&folder);
    create(&server, EVENTS, happening());
    let count = |selector: &str| {
        let list = get(&server, &format!("{EVENTS}?fieldSelector={selector}"));
        list["items"].as_array().map(Vec::len)
    };
    assert_eq!(count("involvedObject.name%3Dp,involvedObject.kind%3DPod,source%3Dkubelet"), Some(1));
    assert_eq!(count("involvedObject.name%3Dq"), Some(0));
    let answer = server.send("GET", &format!("{EVENTS}?fieldSelector=message%3Dm"), &[], None);
    check_refused(&answer, 400, "field label not supported: message");
}

#[test]
fn events_come_in_pages_whatever_state_will_do() {
    let folder = Folder::for_test();
    let server = memory(&folder);
    for name in ["e", "f"] {
        let mut event = happening();
        event["metadata"]["name"] = json!(name);
        create(&server, EVENTS, event);
    }
    for path in [EVENTS, NEW_EVENTS] {
        let page = get(&server, &format!("{path}?resourceVersion=0&limit=1"));
        assert_eq!(page["items"].as_array().map(Vec::len), Some(1));
        assert_eq!(page["metadata"]["remainingItemCount"], 1);
    }
    for name in ["a", "b"] {
        create(&server, CONFIG_MAPS, json!({"metadata": {"name": name}}));
    }
    let whole = get(&server, &format!("{CONFIG_MAPS}?resourceVersion=0&limit=1"));
    assert!(whole["items"].as_array().is_some_and(|items| items.len() > 1), "{whole}");
}

#[test]
fn rows_of_an_event_say_what_happened() {
    let folder = Folder::for_test();
    let server = memory(&folder);
    create(&server, EVENTS, happening());
    let accept = ("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io");
    for path in [EVENTS, NEW_EVENTS] {
        let table = server.send("GET", path, &[accept], None).json();
        let names: Vec<&str> =
            table["columnDefinitions"].as_array().into_iter().flatten().filter_map(|it| it["name"].as_str()).collect();
        let expected =
            ["Last Seen", "Type", "Reason", "Object", "Subobject", "Source", "Message", "First Seen", "Count", "Name"];
        assert_eq!(names, expected);
        let cells = table["rows"][0]["cells"].as_array().expect("there is a row");
        assert_eq!(
            cells[1..7],
            [json!("Normal"), "Started".into(), "pod/p".into(), "".into(), "kubelet, n".into(), "m".into()]
        );
        assert_eq!(cells[8..], [json!(3), "e".into()]);
    }
}

#[test]
fn a_lease_is_made_by_a_put() {
    let folder = Folder::for_test();
    let server = memory(&folder);
    let path = format!("{LEASES}/l");
    let lease = |seconds: i32| json!({"metadata": {"name": "l"}, "spec": {"leaseDurationSeconds": seconds}});
    let message = r#"Lease.coordination.k8s.io "l" is invalid: spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"#;
    check_refused(&send(&server, "PUT", &path, &lease(0)), 422, message);
    assert_eq!(send(&server, "PUT", &path, &lease(10)).status, 201);
    let message = r#"leases.coordination.k8s.io "l" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update"#;
    check_refused(&send(&server, "PUT", &path, &lease(20)), 422, message);
}

#[test]
fn discovery_lists_every_kind() {
    let folder = Folder::for_test();
    let server = memory(&folder);
    let names = |path: &str| -> Vec<String> {
        let list = get(&server, path);
        let resources = list["resources"].as_array().into_iter().flatten();
        resources.filter_map(|resource| resource["name"].as_str()).map(str::to_owned).collect()
    };
    let core = [
        "bindings",
        "componentstatuses",
        "configmaps",
        "endpoints",
        "events",
        "limitranges",
        "namespaces",
        "namespaces/finalize",
        "namespaces/status",
        "nodes",
        "nodes/proxy",
        "nodes/status",
        "persistentvolumeclaims",
        "persistentvolumeclaims/status",
        "persistentvolumes",
        "persistentvolumes/status",
        "pods",
        "pods/attach",
        "pods/binding",
        "pods/ephemeralcontainers",
        "pods/eviction",
        "pods/exec",
        "pods/log",
        "pods/portforward",
        "pods/proxy",
        "pods/resize",
        "pods/status",
        "podtemplates",
        "replicationcontrollers",
        "replicationcontrollers/scale",
        "replicationcontrollers/status",
        "resourcequotas",
        "resourcequotas/status",
        "secrets",
        "serviceaccounts",
        "serviceaccounts/token",
        "services",
        "services/proxy",
        "services/status",
    ];
    assert_eq!(names("/api/v1"), core);
    assert_eq!(names("/apis/events.k8s.io/v1"), ["events"]);
    assert_eq!(names("/apis/coordination.k8s.io/v1"), ["leases"]);
    let rbac = ["clusterrolebindings", "clusterroles", "rolebindings", "roles"];
    assert_eq!(names("/apis/rbac.authorization.k8s.io/v1"), rbac);
}

#[test]
fn discovery_tells_how_kinds_are_stored() {
    let folder = Folder::for_test();
    let server = memory(&folder);
    // As every kube-apiserver has told since 1.14.
    let hashes = [("configmaps", "qFsyl6wFWjQ="), ("namespaces", "Q3oi5N2YM8M="), ("nodes", "XwShjMxG9Fs=")];
    let list = get(&server, "/api/v1");
    let resources = list["resources"].as_array().expect("it lists resources");
    for (name, hash) in hashes {
        let resource = resources.iter().find(|resource| resource["name"] == name).expect("it is discovered");
        assert_eq!(resource["storageVersionHash"], hash, "{name}");
    }
    let reviews = get(&server, "/apis/authorization.k8s.io/v1");
    let reviews = reviews["resources"].as_array().expect("it lists resources");
    assert!(reviews.iter().all(|review| review.get("storageVersionHash").is_none()));
}

#[test]
fn published_schemas_say_how_lists_are_patched() {
    let folder = Folder::for_test();
    let server = memory(&folder);
    let document = get(&server, "/openapi/v3/api/v1");
    let secrets = &document["components"]["schemas"]["io.k8s.api.core.v1.ServiceAccount"]["properties"]["secrets"];
    assert_eq!(secrets["x-kubernetes-patch-merge-key"], "name");
    assert_eq!(secrets["x-kubernetes-patch-strategy"], "merge");
    let patch =
        &document["paths"]["/api/v1/namespaces/{namespace}/configmaps/{name}"]["patch"]["requestBody"]["content"];
    assert!(patch.get("application/strategic-merge-patch+json").is_some());
}

#[test]
fn a_watch_sees_that_a_pod_ends_before_it_is_gone() {
    let folder = Folder::for_test();
    let server = memory(&folder);
    let pods = "/api/v1/namespaces/default/pods";
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "a", "image": "b"}]}});
    let pod = create(&server, pods, pod);
    let before = get(&server, &pod)["metadata"]["resourceVersion"].as_str().expect("it has one").to_owned();

    let answer = server.send("DELETE", &pod, &[], None);
    assert_eq!((answer.status, &answer.json()["metadata"]["deletionGracePeriodSeconds"]), (200, &json!(0)));

    let watch = format!("{pods}?watch=1&resourceVersion={before}&timeoutSeconds=1");
    let events = server.send("GET", &watch, &[], None).body;
    let events: Vec<Value> = serde_json::Deserializer::from_slice(&events).into_iter().flatten().collect();
    let seen: Vec<_> = events.iter().map(|event| (&event["type"], &event["object"]["metadata"])).collect();
    let [(modified, ending), (deleted, last)] = seen.as_slice() else { panic!("{events:?}") };
    assert_eq!((*modified, *deleted), (&json!("MODIFIED"), &json!("DELETED")));
    assert!(ending["deletionTimestamp"].is_string() && ending["deletionTimestamp"] == last["deletionTimestamp"]);
}

#[test]
fn finalizers_of_the_newer_form_of_an_event_are_checked_as_those_of_the_core_group() {
    let folder = Folder::for_test();
    let server = memory(&folder);
    let event = json!({
        "metadata": {"name": "a", "finalizers": ["odd"]}, "regarding": {"namespace": "default"}, "action": "A",
        "eventTime": "2026-01-01T00:00:00.000000Z", "reason": "R", "type": "Normal",
        "reportingController": "example.com/c", "reportingInstance": "i",
    });
    let told = "Event \"a\" is invalid: metadata.finalizers[0]: Invalid value: \"odd\": name is neither a standard finalizer name \
                nor is it fully qualified";
    check_refused(&send(&server, "POST", NEW_EVENTS, &event), 422, told);
}

#[test]
fn a_name_that_no_path_can_hold_is_told_of_new_api_services_as_of_others() {
    let folder = Folder::for_test();
    let server = memory(&folder);
    let spec = json!({"group": "a.b", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1});
    let service = json!({"metadata": {"name": "x/y"}, "spec": spec});
    let answer = send(&server, "POST", "/apis/apiregistration.k8s.io/v1/apiservices", &service);
    let told = "APIService.apiregistration.k8s.io \"x/y\" is invalid: metadata.name: Invalid value: \"x/y\": may not contain '/'";
    check_refused(&answer, 422, told);
}

#[test]
fn the_labels_of_a_job_are_told_of_where_they_are_those_of_its_template() {
    let folder = Folder::for_test();
    let server = memory(&folder);
    let fields = |metadata: Value| {
        let pod = json!({"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]});
        let template = json!({"metadata": metadata, "spec": pod});
        let job = json!({"metadata": {"name": "a b"}, "spec": {"template": template}});
        let answer = send(&server, "POST", "/apis/batch/v1/namespaces/default/jobs", &job).json();
        let causes = answer["details"]["causes"].as_array().expect("the name is wrong").clone();
        causes.iter().map(|cause| cause["field"].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    let (name, own, of_pods) = ("metadata.name", "metadata.labels", "spec.template.labels");
    assert_eq!(fields(json!({})), [name, of_pods, of_pods]);
    assert_eq!(fields(json!({"labels": {"a": "b"}})), [name, own, own, of_pods, of_pods]);
}

#[test]
fn the_class_of_a_pod_has_a_name() {
    let folder = Folder::for_test();
    let server = memory(&folder);
    let spec = json!({"runtimeClassName": "", "containers": [{"name": "c", "image": "i"}]});
    let answer =
        send(&server, "POST", "/api/v1/namespaces/default/pods", &json!({"metadata": {"name": "a"}, "spec": spec}));
    check_refused(&answer, 500, "resource name may not be empty");
}

#[test]
fn names_are_generated_but_for_addresses() {
    let folder = Folder::for_test();
    let server = memory(&folder);
    let name = |answer: Answer| answer.json()["metadata"]["name"].as_str().map(str::to_owned).unwrap_or_default();
    let limits = "/api/v1/namespaces/default/limitranges";
    let asked =
        name(send(&server, "POST", limits, &json!({"metadata": {"generateName": "small-"}, "spec": {"limits": []}})));
    assert!(asked.starts_with("small-") && asked.len() == 11, "{asked}");
    let made = name(send(&server, "POST", limits, &json!({"metadata": {}, "spec": {"limits": []}})));
    assert_eq!(made.len(), 36, "{made}");
    let parent = json!({"resource": "services", "namespace": "default", "name": "a"});
    let address = json!({"metadata": {"generateName": "10.9.8.7"}, "spec": {"parentRef": parent}});
    assert_eq!(name(send(&server, "POST", "/apis/networking.k8s.io/v1/ipaddresses", &address)), "10.9.8.7");
}

#[test]
fn the_data_of_a_revision_is_unchanged_where_its_bytes_are() {
    const COLLECTION: &str = "/apis/apps/v1/namespaces/default/controllerrevisions";
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory"]);
    let path = format!("{COLLECTION}/rev");
    let sent = |revision: u8, data: &str| {
        format!(
            r#"{{"apiVersion":"apps/v1","kind":"ControllerRevision","metadata":{{"name":"rev","finalizers":["a.b/c"]}},"revision":{revision},"data":{data}}}"#
        )
    };
    let ask = |method: &str, path: &str, media: &str, body: &str| {
        let answer = server.send(method, path, &[("Content-Type", media)], Some(body.as_bytes())).json();
        match answer["message"].as_str() {
            Some(message) => message.to_owned(),
            None => answer["revision"].to_string(),
        }
    };
    let (json, apply) = ("application/json", "application/apply-patch+yaml");
    let (merge, strategic) = ("application/merge-patch+json", "application/strategic-merge-patch+json");
    let refused = |data: &str| {
        format!("ControllerRevision.apps \"rev\" is invalid: data: Invalid value: {data}: field is immutable")
    };
    let spaced = r#"{"b": 1, "a": [ "x  y" ]}"#;
    let (as_sent, sorted) = (r#"{"b":1,"a":["x  y"]}"#, r#"{"a":["x  y"],"b":1}"#);

    assert_eq!(ask("POST", COLLECTION, json, &sent(1, spaced)), "1");
    assert_eq!(ask("PUT", &path, json, &sent(2, spaced)), "2");
    assert_eq!(ask("PUT", &path, json, &sent(3, as_sent)), refused(as_sent));
    assert_eq!(ask("PUT", &path, json, &sent(3, r#"{"b": 2, "a": 1}"#)), refused(r#"{"b":2,"a":1}"#));
    assert_eq!(ask("PUT", &path, "application/yaml", &sent(3, spaced)), refused(sorted));
    assert_eq!(ask("PATCH", &path, merge, r#"{"revision": 3}"#), refused(as_sent));
    assert_eq!(ask("PATCH", &path, strategic, r#"{"revision": 3}"#), refused(sorted));
    let applied = format!("{path}?fieldManager=a&force=true");
    let unchanged = sent(2, spaced).replace(r#","finalizers":["a.b/c"]"#, "");
    assert_eq!(ask("PATCH", &applied, apply, &unchanged), "2");
    assert_eq!(ask("PATCH", &applied, apply, &sent(3, spaced)), refused(sorted));

    let deleted = || server.send("DELETE", &path, &[], None).json()["metadata"]["resourceVersion"].clone();
    assert_eq!(deleted(), deleted(), "a second deletion changes nothing");
    for query in ["", "?pretty=true"] {
        let text = |method: &str| server.send(method, &format!("{path}{query}"), &[], None).body;
        assert_eq!(text("DELETE"), text("GET"), "the data is sorted, whoever asks{query}");
    }
    assert_eq!(ask("PUT", &path, json, &sent(4, spaced)), "4", "the first has kept the text");
    assert_eq!(get(&server, &path)["data"], json!({"a": ["x  y"], "b": 1}));
}

#[test]
fn parameters_of_drivers_are_unchanged_only_when_their_bytes_are() {
    const COLLECTION: &str = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory"]);
    let path = format!("{COLLECTION}/a");
    let claim = |label: &str, parameters: &str| {
        format!(
            r#"{{"metadata":{{"name":"a","labels":{{"l":"{label}"}}}},"spec":{{"devices":{{"requests":[{{"name":"r","exactly":{{"deviceClassName":"c"}}}}],
            "config":[{{"opaque":{{"driver":"d","parameters":{{"a":1}}}}}},{{"opaque":{{"driver":"d","parameters":{parameters}}}}}]}}}}}}"#
        )
    };
    let ask = |method: &str, path: &str, media: &str, body: &str| {
        let answer = server.send(method, path, &[("Content-Type", media)], Some(body.as_bytes())).json();
        match answer["message"].as_str() {
            Some(message) => message.rsplit(": ").next().unwrap_or_default().to_owned(),
            None => answer["metadata"]["labels"]["l"].as_str().unwrap_or_default().to_owned(),
        }
    };
    let (json, merge) = ("application/json", "application/merge-patch+json");
    let (spaced, compact, fixed) = (r#"{"b": 1}"#, r#"{"b":1}"#, "field is immutable");
    let change = r#"{"spec":{"devices":{"config":[]}}}"#;
    assert_eq!(ask("POST", COLLECTION, json, &claim("1", spaced)), "1");
    assert_eq!(ask("PUT", &path, json, &claim("2", spaced)), "2");
    assert_eq!(ask("PUT", &path, json, &claim("3", compact)), fixed);
    assert_eq!(ask("PATCH", &path, merge, r#"{"metadata":{"labels":{"l":"3"}}}"#), fixed);
    let changed = server.send("PATCH", &path, &[("Content-Type", merge)], Some(change.as_bytes())).json();
    assert_eq!(changed["details"]["causes"].as_array().map(Vec::len), Some(1), "it is told once: {changed}");
    let status = format!("{path}/status");
    assert_eq!(ask("PUT", &status, json, &claim("4", compact)), "2", "a status leaves the rest alone");
    assert_eq!(ask("PUT", &path, json, &claim("5", spaced)), "5", "and its text");
    assert_eq!(get(&server, &path)["spec"]["devices"]["config"][1]["opaque"]["parameters"], json!({"b": 1}));
}

#[test]
fn an_update_in_another_version_leaves_the_status_to_its_owner() {
    let [older, newer] =
        ["v1", "v2"].map(|version| format!("/apis/autoscaling/{version}/namespaces/default/horizontalpodautoscalers"));
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory"]);
    let scaler = |most: u8| {
        format!(
            r#"{{"metadata":{{"name":"a"}},"spec":{{"maxReplicas":{most},"scaleTargetRef":{{"apiVersion":"a/v1","kind":"D","name":"d"}}}}}}"#
        )
    };
    server.send("POST", &older, &[], Some(scaler(2).as_bytes()));
    let merge = [("Content-Type", "application/merge-patch+json")];
    let status = format!("{older}/a/status?fieldManager=counter");
    server.send("PATCH", &status, &merge, Some(br#"{"status":{"currentReplicas":1,"desiredReplicas":2}}"#));
    let updated = server.send("PUT", &format!("{newer}/a"), &[], Some(scaler(3).as_bytes())).json();
    let entries = updated["metadata"]["managedFields"].as_array().expect("there are managers");
    let of_status = entries.iter().find(|entry| entry["subresource"] == "status").expect("the counter is one of them");
    assert_eq!((&of_status["manager"], &of_status["apiVersion"]), (&json!("counter"), &json!("autoscaling/v1")));
}

#[test]
fn an_update_in_the_older_version_of_an_autoscaler_leaves_alone_what_it_cannot_say() {
    let [older, newer] =
        ["v1", "v2"].map(|version| format!("/apis/autoscaling/{version}/namespaces/default/horizontalpodautoscalers"));
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory"]);
    let body = json!({
        "metadata": {"name": "a"},
        "spec": {
            "maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
            "metrics": [
                {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}},
                {"type": "Pods", "pods": {"metric": {"name": "m"}, "target": {"type": "AverageValue", "averageValue": "1"}}},
            ],
        },
    });
    assert_eq!(send(&server, "POST", &newer, &body).status, 201);
    let merge = |path: String, body: &[u8]| {
        let answer = server.send("PATCH", &path, &[("Content-Type", "application/merge-patch+json")], Some(body));
        assert_eq!(answer.status, 200, "{path}");
        answer.json()
    };
    let metric = br#"{"status":{"currentMetrics":[{"type":"Resource","resource":{"name":"cpu","current":{"averageUtilization":7}}}]}}"#;
    let status = merge(format!("{newer}/a/status"), metric)["status"].clone();
    assert_eq!(status["currentMetrics"][0]["resource"]["current"], json!({"averageUtilization": 7}));

    merge(format!("{older}/a/status"), br#"{"status":{"currentReplicas":1}}"#);
    let metrics = get(&server, &format!("{newer}/a"))["spec"]["metrics"].clone();
    assert_eq!(metrics, body["spec"]["metrics"], "a status leaves the order of the metrics");
    merge(format!("{newer}/a/status"), metric);
    merge(format!("{older}/a"), br#"{"spec":{"maxReplicas":4}}"#);
    let changed = get(&server, &format!("{newer}/a"));
    assert_eq!(changed["status"]["currentMetrics"], status["currentMetrics"], "the spec leaves the status");
    assert_eq!(changed["spec"]["metrics"][0]["type"], "Pods", "v1 knows the processors as the last");
}

#[test]
fn an_empty_list_counts_the_generation_of_a_network_policy_up() {
    const COLLECTION: &str = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies";
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory"]);
    let policy = |rest: &str| format!(r#"{{"metadata":{{"name":"a"}},"spec":{{"podSelector":{{}}{rest}}}}}"#);
    let generation = |method: &str, path: &str, body: &str| {
        server.send(method, path, &[], Some(body.as_bytes())).json()["metadata"]["generation"].as_i64()
    };
    let path = format!("{COLLECTION}/a");
    assert_eq!(generation("POST", COLLECTION, &policy(r#","egress":[]"#)), Some(1));
    assert_eq!(generation("PUT", &path, &policy("")), Some(1));
    assert_eq!(generation("PUT", &path, &policy(r#","egress":[]"#)), Some(2));
    assert_eq!(generation("PUT", &path, &policy(r#","egress":[]"#)), Some(3), "what is stored has no empty list");
    assert_eq!(generation("PUT", &path, &policy(r#","policyTypes":[]"#)), Some(3), "it gets its default");
}

#[test]
fn an_attribute_of_a_device_has_no_empty_list_of_values() {
    let folder = Folder::for_test();
    let gate = ["--feature-gates", "DRAListTypeAttributes=true"];
    let older = ["--runtime-config", "resource.k8s.io/v1beta1=true"];
    let server = Server::start(&folder.0, &[["--store", "memory"], gate, older].concat());
    let slice = |version: &str, attribute: Value| {
        let attributes = json!({"a": attribute});
        let device = match version {
            "v1beta1" => json!({"name": "d", "basic": {"attributes": attributes}}),
            _ => json!({"name": "d", "attributes": attributes}),
        };
        let pool = json!({"name": "p", "generation": 1, "resourceSliceCount": 1});
        let spec = json!({"driver": "d.example.com", "nodeName": "n", "pool": pool, "devices": [device]});
        let body = json!({"metadata": {"name": "a"}, "spec": spec});
        let path = format!("/apis/resource.k8s.io/{version}/resourceslices?dryRun=All");
        send(&server, "POST", &path, &body)
    };
    for version in ["v1", "v1beta1"] {
        assert_eq!(slice(version, json!({"ints": [1, 2]})).status, 201);
        let answer = slice(version, json!({"ints": []}));
        assert_eq!(
            answer.json()["message"],
            "ResourceSlice.resource.k8s.io \"a\" is invalid: spec.devices[0].attributes[a].ints: Invalid value: []: must \
             not be empty if specified",
        );
    }
}

/// Recorded from kube-apiserver 1.36.
#[test]
fn some_lists_and_maps_are_told_from_none_where_they_are_empty() {
    const DRIVES: &str = "/apis/resource.k8s.io/v1/resourceslices?dryRun=All";
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory"]);
    let frozen = json!({"metadata": {"name": "a"}, "immutable": true, "data": {"a": "b"}});
    assert_eq!(send(&server, "POST", CONFIG_MAPS, &frozen).status, 201);
    let refused = |method: &str, path: &str, body: &Value| {
        let answer = send(&server, method, path, body);
        match answer.status {
            200 | 201 => String::new(),
            _ => answer.json()["message"]
                .as_str()
                .expect("it is a Status")
                .rsplit(": ")
                .next()
                .unwrap_or_default()
                .to_owned(),
        }
    };
    let path = format!("{CONFIG_MAPS}/a");
    let mut sent = frozen.clone();
    sent["binaryData"] = json!({});
    assert_eq!(refused("PUT", &path, &sent), "field is immutable when `immutable` is set");
    assert_eq!(refused("PUT", &path, &frozen), "");
    let bare = json!({"metadata": {"name": "b"}, "immutable": true});
    for collection in [CONFIG_MAPS, SECRETS] {
        assert_eq!(send(&server, "POST", collection, &bare).status, 201);
    }
    let emptied = json!({"metadata": {"name": "b"}, "immutable": true, "data": {}});
    assert_eq!(refused("PUT", &format!("{CONFIG_MAPS}/b"), &emptied), "", "data is an empty map by default");
    assert_eq!(refused("PUT", &format!("{SECRETS}/b"), &emptied), "field is immutable when `immutable` is set");
    let slice = json!({
        "metadata": {"name": "a"},
        "spec": {
            "driver": "d.example.com", "nodeName": "n", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "d"}], "sharedCounters": [],
        },
    });
    assert_eq!(refused("POST", DRIVES, &slice), "only one of `sharedCounters` or `devices` is allowed");
    let mut many = slice.clone();
    many["spec"]["devices"] = (0..100).map(|at| json!({"name": format!("d{at}"), "attributes": {}})).collect();
    assert_eq!(refused("POST", DRIVES, &many), "only one of `sharedCounters` or `devices` is allowed");
    let pod = |metadata: Value| {
        let claim = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
        let volume = json!({"name": "v", "ephemeral": {"volumeClaimTemplate": {"metadata": metadata, "spec": claim}}});
        let spec = json!({"containers": [{"name": "c", "image": "i"}], "volumes": [volume]});
        refused("POST", "/api/v1/namespaces/default/pods?dryRun=All", &json!({"metadata": {"name": "a"}, "spec": spec}))
    };
    assert_eq!(pod(json!({"deletionTimestamp": "0001-01-01T00:00:00Z"})), "cannot be set", "it is there");
    assert_eq!(pod(json!({"deletionTimestamp": null})), "");
}

/// Recorded from kube-apiserver 1.36.
#[test]
fn parts_of_pods_reset_nothing_that_is_applied() {
    const PODS: &str = "/api/v1/namespaces/default/pods";
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory"]);
    let spec = json!({"containers": [{"name": "c", "image": "i"}]});
    assert_eq!(send(&server, "POST", PODS, &json!({"metadata": {"name": "a"}, "spec": spec})).status, 201);
    let applied = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec,
        "status": {"phase": "Pending", "qosClass": "BestEffort"},
    });
    let apply = [("Content-Type", "application/apply-patch+yaml")];
    let owned = |path: &str| {
        let path = format!("{PODS}/a{path}?dryRun=All&fieldManager=z&force=true");
        let answer = server.send("PATCH", &path, &apply, Some(applied.to_string().as_bytes()));
        assert_eq!(answer.status, 200, "{path}");
        let entries = answer.json()["metadata"]["managedFields"].clone();
        let mut entries = entries.as_array().expect("there are managers").iter();
        let own = entries.find(|entry| entry["manager"] == "z").expect("it is one of them");
        own["fieldsV1"]["f:status"].clone()
    };
    let status = json!({"f:phase": {}, "f:qosClass": {}});
    assert_eq!([owned(""), owned("/ephemeralcontainers"), owned("/resize")], [Value::Null, status.clone(), status]);
}

#[test]
fn objects_are_not_selected_by_a_bare_name() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory"]);
    for plural in ["namespaces", "persistentvolumes", "persistentvolumeclaims", "nodes"] {
        assert_eq!(server.send("GET", &format!("/api/v1/{plural}?fieldSelector=name%3Dx"), &[], None).status, 400);
    }
}

#[test]
fn a_patch_that_takes_the_kind_leaves_it_and_one_that_takes_the_version_takes_all() {
    const COLLECTION: &str = "/api/v1/namespaces/default/configmaps";
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory"]);
    let path = format!("{COLLECTION}/a");
    server.send("POST", COLLECTION, &[], Some(br#"{"metadata":{"name":"a"},"data":{"x":"y"}}"#));
    let ask = |media: &str, query: &str, patch: &str| {
        let headers = [("Content-Type", media)];
        server.send("PATCH", &format!("{path}?dryRun=All{query}"), &headers, Some(patch.as_bytes()))
    };
    let (merge, json_patch) = ("application/merge-patch+json", "application/json-patch+json");
    for (media, patch) in [(merge, r#"{"kind":""}"#), (json_patch, r#"[{"op":"remove","path":"/kind"}]"#)] {
        assert_eq!(ask(media, "", patch).json()["kind"], "ConfigMap", "{patch}");
    }
    for (media, patch) in [(merge, r#"{"apiVersion":null}"#), (json_patch, r#"[{"op":"remove","path":"/apiVersion"}]"#)]
    {
        let answer = ask(media, "", patch);
        assert_eq!(answer.header("warning"), r#"299 - "unknown field \"data\"""#, "{patch}");
        let why = "the name of the object (a based on URL) was undeterminable: name must be provided";
        assert_eq!(answer.json()["message"], why, "{patch}");
    }
    let answer = ask(merge, "&fieldValidation=Strict", r#"{"apiVersion":null}"#).json();
    let message = answer["message"].as_str().expect("it is refused").to_owned();
    assert!(
        message.ends_with(r#": strict decoding error: unknown field "data", unknown field "metadata""#),
        "{message}"
    );
}

#[test]
fn what_the_server_makes_has_the_managers_of_the_reference() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory"]);
    let managers = |path: &str| -> Vec<String> {
        let entries = get(&server, path)["metadata"]["managedFields"].clone();
        let entries = entries.as_array().expect("there are managers").iter();
        entries.map(|entry| entry["manager"].as_str().unwrap_or_default().to_owned()).collect()
    };
    let flow = "/apis/flowcontrol.apiserver.k8s.io/v1";
    let [consumer, producer] = ["consumer", "producer"].map(|end| format!("api-priority-and-fairness-config-{end}-v1"));
    assert_eq!(managers(&format!("{flow}/flowschemas/exempt")), [consumer, producer.clone()]);
    assert_eq!(managers(&format!("{flow}/prioritylevelconfigurations/system")), [producer]);

    let services = "/apis/apiregistration.k8s.io/v1/apiservices";
    let core = get(&server, &format!("{services}/v1."));
    let owned = json!({
        "f:metadata": {"f:labels": {".": {}, "f:kube-aggregator.kubernetes.io/automanaged": {}}},
        "f:spec": {"f:groupPriorityMinimum": {}, "f:version": {}, "f:versionPriority": {}},
    });
    let entry = &core["metadata"]["managedFields"][0];
    assert_eq!((&entry["manager"], &entry["fieldsV1"]), (&json!("kube-apiserver"), &owned));
    let of_their_own = server.send("GET", &format!("{services}/v1.apiregistration.k8s.io"), &[], None);
    assert_eq!(of_their_own.status, 404);

    let range = get(&server, "/apis/networking.k8s.io/v1/servicecidrs/kubernetes");
    let ready =
        &range["metadata"]["managedFields"][0]["fieldsV1"]["f:status"]["f:conditions"]["k:{\"type\":\"Ready\"}"];
    assert_eq!((ready["f:reason"].is_null(), ready["f:message"].is_object()), (true, true));
    assert_eq!(range["status"]["conditions"][0]["reason"], "");
}
