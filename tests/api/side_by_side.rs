//! Answers that once differed from kube-apiserver's, where both were asked the same.

use serde_json::{Value, json};

use crate::server::{Answer, Folder, Server};

const EVENTS: &str = "/api/v1/namespaces/default/events";
const NEW_EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/default/events";
const POLICIES: &str = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies";

fn memory(folder: &Folder, options: &[&str]) -> Server {
    Server::start(&folder.0, &[&["--store", "memory"], options].concat())
}

fn send(server: &Server, method: &str, path: &str, body: &Value) -> Answer {
    let media = match method {
        "PATCH" => "application/merge-patch+json",
        _ => "application/json",
    };
    server.send(method, path, &[("Content-Type", media)], Some(body.to_string().as_bytes()))
}

/// Who owns fields of an object, with the version that they are named in.
fn owners(object: &Value) -> Vec<(String, String)> {
    let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let text = |entry: &Value, name: &str| entry[name].as_str().unwrap_or_default().to_owned();
    entries.iter().map(|entry| (text(entry, "manager"), text(entry, "apiVersion"))).collect()
}

#[test]
fn an_update_that_would_make_an_object_names_no_uid() {
    let folder = Folder::for_test();
    let server = memory(&folder, &[]);
    let path = "/api/v1/namespaces/default/endpoints/a";
    let answer = send(&server, "PUT", path, &json!({"metadata": {"name": "a", "uid": "u"}}));
    let why = "Operation cannot be fulfilled on endpoints \"a\": StorageError: invalid object, Code: 4, Key: \
               /registry/services/endpoints/default/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in \
               precondition: u, UID in object meta: ";
    assert_eq!((answer.status, answer.json()["message"].as_str()), (409, Some(why)));
    assert_eq!(send(&server, "PUT", path, &json!({"metadata": {"name": "a"}})).status, 201);
}

#[test]
fn owners_of_an_event_are_forgotten_by_a_write_in_its_other_group() {
    let folder = Folder::for_test();
    let server = memory(&folder, &[]);
    let event = json!({"metadata": {"name": "e"}, "involvedObject": {"namespace": "default"}, "reason": "r"});
    send(&server, "POST", &format!("{EVENTS}?fieldManager=m"), &event);
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    let same = send(&server, "PATCH", &format!("{EVENTS}/e?fieldManager=n&dryRun=All"), &label).json();
    let owner = |name: &str, version: &str| (name.to_owned(), version.to_owned());
    assert_eq!(owners(&same), [owner("m", "v1"), owner("n", "v1")]);
    let other = send(&server, "PATCH", &format!("{NEW_EVENTS}/e?fieldManager=n&dryRun=All"), &label).json();
    assert_eq!(owners(&other), [owner("n", "events.k8s.io/v1")]);
    let read = server.send("GET", &format!("{NEW_EVENTS}/e"), &[], None).json();
    assert_eq!(owners(&read), [owner("m", "v1")], "reading forgets nobody");
}

#[test]
fn a_changed_reason_of_an_event_is_told_twice() {
    let folder = Folder::for_test();
    let server = memory(&folder, &[]);
    let event = |reason: &str| {
        json!({
            "metadata": {"name": "e"}, "eventTime": "2020-01-01T00:00:00.123456Z", "reportingController": "example.com/c",
            "reportingInstance": "i", "action": "a", "reason": reason, "type": "Normal",
            "regarding": {"kind": "Pod", "namespace": "default"},
        })
    };
    assert_eq!(send(&server, "POST", NEW_EVENTS, &event("r")).status, 201);
    let answer = send(&server, "PUT", &format!("{NEW_EVENTS}/e"), &event("s")).json();
    let message = "Event \"e\" is invalid: reason: Invalid value: \"s\": field is immutable";
    assert_eq!(answer["message"], message);
    assert_eq!(answer["details"]["causes"].as_array().map(Vec::len), Some(2));
}

#[test]
fn what_is_empty_in_a_list_that_is_owned_whole_changes_its_owner() {
    let folder = Folder::for_test();
    let server = memory(&folder, &[]);
    let write = |method: &str, name: &str, manager: &str, spec: &Value| {
        let path = if method == "POST" { POLICIES.to_owned() } else { format!("{POLICIES}/{name}") };
        let policy = json!({"metadata": {"name": name}, "spec": spec});
        send(&server, method, &format!("{path}?fieldManager={manager}"), &policy).json()
    };
    let specs = [
        ("a", json!({"podSelector": {}, "ingress": [{"ports": []}]}), 2),
        ("b", json!({"podSelector": {}, "ingress": [{"from": [{"podSelector": {"matchLabels": {}}}]}]}), 2),
        // Nobody owns an empty map of a selector that is in no list.
        ("c", json!({"podSelector": {"matchLabels": {}}, "ingress": [{}]}), 1),
    ];
    for (name, spec, owning) in specs {
        write("POST", name, "m", &spec);
        let put = write("PUT", name, "n", &spec);
        assert_eq!(owners(&put).len(), owning, "{put}");
        assert_eq!(put["metadata"]["generation"], 2, "{put}");
        let patched = write("PATCH", name, "p", &spec);
        assert_eq!((owners(&patched).len(), &patched["metadata"]["generation"]), (owning, &json!(3)), "{patched}");
    }
}

#[test]
fn options_without_a_version_are_of_that_of_the_options() {
    let folder = Folder::for_test();
    let server = memory(&folder, &[]);
    let told = |body: Value| {
        let answer = send(&server, "DELETE", "/api/v1/namespaces/default/configmaps/a", &body).json();
        answer["message"].as_str().unwrap_or_default().to_owned()
    };
    let unknown = "no kind \"Foo\" is registered for version \"meta.k8s.io/v1\" in scheme \
                   \"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme/register.go:27\"";
    assert_eq!(told(json!({"kind": "Foo"})), unknown);
    assert_eq!(told(json!({"kind": "Table"})), "converting (v1.Table) to (v1.DeleteOptions): unknown conversion");
}

#[test]
fn parameters_of_a_read_are_looked_at_for_what_is_made_anew_and_for_events() {
    let folder = Folder::for_test();
    let server = memory(&folder, &[]);
    let ask = |path: &str| {
        let answer = server.send("GET", path, &[], None);
        (answer.status, answer.json()["message"].as_str().unwrap_or_default().to_owned())
    };
    let services = "/apis/apiregistration.k8s.io/v1/apiservices/v1.apps";
    let export = "the export parameter, deprecated since v1.14, is no longer supported";
    assert_eq!(ask(&format!("{services}?export=1")), (400, export.to_owned()));
    let why = "resourceVersion: Invalid value: \"x\": strconv.ParseUint: parsing \"x\": invalid syntax";
    assert_eq!(ask(&format!("{services}?resourceVersion=x")), (500, why.to_owned()));
    assert_eq!(ask(&format!("{EVENTS}/e?resourceVersion=x")), (400, format!("invalid resource version: {why}")));
}

#[test]
fn jobs_that_are_not_deleted_for_their_revision_are_warned_of_all_the_same() {
    let folder = Folder::for_test();
    let server = memory(&folder, &[]);
    let jobs = "/apis/batch/v1/namespaces/default/jobs?resourceVersion=x";
    let answer = server.send("DELETE", jobs, &[], None);
    assert_eq!(answer.status, 400);
    assert!(answer.header("warning").contains("child pods are preserved by default"), "{}", answer.header("warning"));
    let unreadable =
        send(&server, "DELETE", "/apis/batch/v1/namespaces/default/jobs", &json!({"gracePeriodSeconds": "x"}));
    assert_eq!((unreadable.status, unreadable.header("warning")), (400, ""));
}

#[test]
fn the_manager_that_makes_a_taint_rule_owns_its_time() {
    let folder = Folder::for_test();
    let server = memory(&folder, &[]);
    let rules = "/apis/resource.k8s.io/v1/devicetaintrules";
    let rule = json!({"metadata": {"name": "r"}, "spec": {"taint": {"key": "example.com/a", "effect": "NoExecute"}}});
    let made = send(&server, "POST", rules, &rule).json();
    let owned = &made["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]["f:taint"];
    assert!(owned["f:timeAdded"].is_object(), "{made}");
}

#[test]
fn aggregated_discovery_leaves_the_group_out_that_it_is_in() {
    let folder = Folder::for_test();
    let server = memory(&folder, &[]);
    let accept = |version: &str| format!("application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList");
    let groups = server.send("GET", "/apis", &[("Accept", &accept("v2"))], None).json();
    let apps = groups["items"].as_array().and_then(|all| all.iter().find(|item| item["metadata"]["name"] == "apps"));
    let resources = apps.and_then(|apps| apps["versions"][0]["resources"].as_array()).expect("apps is served");
    let deployments = resources.iter().find(|resource| resource["resource"] == "deployments").expect("it is served");
    assert_eq!(deployments["responseKind"], json!({"group": "", "version": "", "kind": "Deployment"}));
    let scale =
        deployments["subresources"].as_array().and_then(|all| all.iter().find(|it| it["subresource"] == "scale"));
    let scale = &scale.expect("deployments scale")["responseKind"];
    assert_eq!(*scale, json!({"group": "autoscaling", "version": "v1", "kind": "Scale"}));
    let older = server.send("GET", "/apis", &[("Accept", &accept("v2beta1"))], None);
    assert_eq!(older.status, 406, "it is gone since 1.33");
    let definitions = server.send("GET", "/apis/apiextensions.k8s.io/v1", &[], None).json();
    assert_eq!(definitions["resources"][0]["storageVersionHash"], "jfWCUB31mvA=");
}

#[test]
fn a_storage_version_without_servers_says_so() {
    let folder = Folder::for_test();
    let server = memory(&folder, &["--runtime-config", "internal.apiserver.k8s.io/v1alpha1=true"]);
    let path = "/apis/internal.apiserver.k8s.io/v1alpha1/storageversions";
    let table = [("Content-Type", "application/json"), ("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1")];
    let body = br#"{"metadata":{"name":"apps.deployments"},"spec":{}}"#;
    let row = server.send("POST", path, &table, Some(body)).json()["rows"][0]["cells"].clone();
    assert_eq!((&row[1], &row[2]), (&json!("<unset>"), &json!("<unset>")), "{row}");
}

#[test]
fn a_new_pod_keeps_the_class_that_it_comes_with() {
    let folder = Folder::for_test();
    let server = memory(&folder, &[]);
    let pod = json!({
        "metadata": {"name": "p"}, "spec": {"containers": [{"name": "a", "image": "b"}]},
        "status": {"qosClass": "Burstable", "phase": "Running"},
    });
    let status = send(&server, "POST", "/api/v1/namespaces/default/pods", &pod).json()["status"].clone();
    assert_eq!((&status["qosClass"], &status["phase"]), (&json!("Burstable"), &json!("Pending")));
}

#[test]
fn administrative_access_in_a_status_is_looked_at_where_the_status_is_written() {
    let folder = Folder::for_test();
    let server = memory(&folder, &[]);
    let claims = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";
    let request = json!({"name": "r", "exactly": {"deviceClassName": "c"}});
    let claim = json!({"metadata": {"name": "c"}, "spec": {"devices": {"requests": [request]}}});
    assert_eq!(send(&server, "POST", claims, &claim).status, 201);
    let result = json!({"request": "r", "driver": "d.example.com", "pool": "p", "device": "x", "adminAccess": true});
    let granted = json!({"status": {"allocation": {"devices": {"results": [result]}}}});
    let path = format!("{claims}/c");
    let left = send(&server, "PATCH", &path, &granted);
    assert_eq!((left.status, &left.json()["status"]["allocation"]), (200, &Value::Null), "the status stays as it was");
    let refused = send(&server, "PATCH", &format!("{path}/status"), &granted);
    let why = refused.json()["message"].as_str().unwrap_or_default().to_owned();
    assert!(refused.status == 422 && why.contains("adminAccess"), "{why}");
}

#[test]
fn parts_of_kinds_have_no_tables() {
    let folder = Folder::for_test();
    let server = memory(&folder, &[]);
    let table = [("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1")];
    let asked = [
        ("/api/v1/namespaces/default/pods/p/resize", 406),
        ("/api/v1/namespaces/default/pods/p/status", 404),
        ("/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/c/status", 406),
        ("/apis/apps/v1/namespaces/default/deployments/d/status", 404),
    ];
    for (path, status) in asked {
        assert_eq!(server.send("GET", path, &table, None).status, status, "{path}");
    }
}

#[test]
fn a_runtime_class_keeps_amounts_as_they_were_sent() {
    let folder = Folder::for_test();
    let server = memory(&folder, &[]);
    let class = json!({"metadata": {"name": "r"}, "handler": "h", "overhead": {"podFixed": {"cpu": "1n"}}});
    let made = send(&server, "POST", "/apis/node.k8s.io/v1/runtimeclasses", &class).json();
    assert_eq!(made["overhead"]["podFixed"]["cpu"], "1n");
}

#[test]
fn published_enumerations_are_sorted() {
    let folder = Folder::for_test();
    let server = memory(&folder, &[]);
    let document = server.send("GET", "/openapi/v3/api/v1", &[], None).json();
    let policy = &document["components"]["schemas"]["io.k8s.api.core.v1.Container"]["properties"]["imagePullPolicy"];
    assert_eq!(policy["enum"], json!(["Always", "IfNotPresent", "Never"]));
    let protocol = &document["components"]["schemas"]["io.k8s.api.core.v1.ServicePort"]["properties"]["protocol"];
    assert_eq!(protocol["enum"], json!(["SCTP", "TCP", "UDP"]));
}
