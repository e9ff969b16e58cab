//! What updates of built-in kinds are told, in the words of kube-apiserver 1.36 and 1.37.

use serde_json::{Value, json};

use crate::server::{Answer, Folder, Server};

const PODS: &str = "/api/v1/namespaces/default/pods";
const EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/default/events";
const AUTOSCALERS: &str = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";
const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";
const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const DAEMON_SETS: &str = "/apis/apps/v1/namespaces/default/daemonsets";
const POOL_REQUESTS: &str = "/apis/resource.k8s.io/v1alpha3/resourcepoolstatusrequests";
const API_SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
const FLOW_CONTROL: &str = "/apis/flowcontrol.apiserver.k8s.io/v1";
const MERGE: &str = "application/merge-patch+json";

fn start(folder: &Folder) -> Server {
    Server::start(&folder.0, &["--store", "memory", "--runtime-config=resource.k8s.io/v1alpha3=true"])
}

fn send(server: &Server, method: &str, path: &str, content_type: &str, body: &str) -> Answer {
    server.send(method, path, &[("Content-Type", content_type)], Some(body.as_bytes()))
}

#[track_caller]
fn create(server: &Server, collection: &str, body: &Value) -> Value {
    let answer = send(server, "POST", collection, "application/json", &body.to_string());
    assert_eq!(answer.status, 201, "{}", answer.json());
    answer.json()
}

/// Merges `patch` into the object.
#[track_caller]
fn merge(server: &Server, path: &str, patch: &Value) -> Value {
    let answer = send(server, "PATCH", path, MERGE, &patch.to_string());
    assert_eq!(answer.status, 200, "{}", answer.json());
    answer.json()
}

/// The causes of the refusal of a merge patch, as `field: message`.
#[track_caller]
fn refused(server: &Server, path: &str, patch: &Value) -> Vec<String> {
    let status = send(server, "PATCH", path, MERGE, &patch.to_string()).json();
    let causes = status["details"]["causes"].as_array().expect("it is refused");
    let text = |cause: &Value, name: &str| cause[name].as_str().unwrap_or_default().to_owned();
    causes.iter().map(|cause| format!("{}: {}", text(cause, "field"), text(cause, "message"))).collect()
}

#[test]
fn a_bound_claim_that_asks_for_nothing_has_the_same_spec() {
    let folder = Folder::for_test();
    let server = start(&folder);
    let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "10Gi"}}});
    create(&server, CLAIMS, &json!({"metadata": {"name": "a"}, "spec": spec}));
    let path = format!("{CLAIMS}/a");
    merge(&server, &format!("{path}/status"), &json!({"status": {"phase": "Bound", "capacity": {"storage": "10Gi"}}}));
    let told = [
        "spec.resources[storage]: Required value",
        "spec.resources.requests.storage: Forbidden: field can not be less than status.capacity",
    ];
    assert_eq!(refused(&server, &path, &json!({"spec": {"resources": {"requests": {"storage": null}}}})), told);
    let none = refused(&server, &path, &json!({"spec": {"resources": {"requests": null}}}));
    assert!(none[1].starts_with("spec: Forbidden: spec is immutable after creation"), "{none:?}");
}

#[test]
fn what_is_declared_of_an_answer_about_pools_holds_once_it_is_given_too() {
    let folder = Folder::for_test();
    let server = start(&folder);
    create(&server, POOL_REQUESTS, &json!({"metadata": {"name": "a"}, "spec": {"driver": "d.example.com"}}));
    let path = format!("{POOL_REQUESTS}/a");
    let status = format!("{path}/status");
    let pool = |driver: &str, name: &str| json!({"driver": driver, "poolName": name, "generation": 1});
    let condition = |type_: &str| json!({"type": type_, "status": "True", "lastTransitionTime": "2020-01-01T00:00:00Z", "reason": "R", "message": "m"});
    let first = json!({"status": {"pools": [pool("D.example.com", "a//b")], "conditions": [condition("Complete")]}});
    assert_eq!(
        refused(&server, &status, &first),
        [
            "status.poolCount: Required value",
            "status.pools[0].poolName: Invalid value: \"a//b\": segment 1: must not be empty",
        ]
    );
    let valid = json!({"poolCount": 1, "pools": [pool("d", "p")], "conditions": [condition("Complete")]});
    merge(&server, &status, &json!({"status": valid}));
    assert_eq!(
        refused(&server, &status, &json!({"status": null})),
        ["status: Invalid value: null: field is immutable"]
    );
    let conditions: Vec<Value> = (0..11).map(|at| condition(&format!("t{at}"))).collect();
    let told = refused(&server, &status, &json!({"status": {"poolCount": -1, "conditions": conditions}}));
    assert!(told[0].ends_with(": field is immutable"), "{told:?}");
    assert_eq!(
        told[1..],
        [
            "status.poolCount: Invalid value: -1: must be greater than or equal to 0",
            "status.conditions: Too many: 11: must have at most 10 items",
        ]
    );
    assert_eq!(
        refused(&server, &path, &json!({"spec": {"driver": "_"}})),
        ["spec: Invalid value: null: field is immutable"]
    );
}

#[test]
fn the_status_of_flow_control_takes_no_metadata() {
    let folder = Folder::for_test();
    let server = start(&folder);
    let level = json!({"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}});
    let schema = json!({"priorityLevelConfiguration": {"name": "a"}});
    for (plural, spec) in [("prioritylevelconfigurations", level), ("flowschemas", schema)] {
        let collection = format!("{FLOW_CONTROL}/{plural}");
        create(&server, &collection, &json!({"metadata": {"name": "a"}, "spec": spec}));
        let metadata = json!({
            "deletionGracePeriodSeconds": 5, "deletionTimestamp": "2020-01-01T00:00:00Z", "generateName": "X_", "labels": {"a": "b"},
        });
        let patch = json!({"metadata": metadata, "status": {"conditions": [{"type": "A", "status": "True"}]}});
        let written = merge(&server, &format!("{collection}/a/status"), &patch);
        for name in ["deletionGracePeriodSeconds", "deletionTimestamp", "generateName", "labels"] {
            assert_eq!(written["metadata"].get(name), None, "{plural}: {name}");
        }
        assert_eq!(written["metadata"]["managedFields"].as_array().map(Vec::len), Some(2), "{written}");
        assert_eq!(
            refused(&server, &format!("{collection}/a"), &json!({"metadata": {"deletionGracePeriodSeconds": 5}})),
            ["metadata.deletionGracePeriodSeconds: Invalid value: 5: field is immutable"]
        );
    }
}

#[test]
fn what_the_name_of_an_api_service_is_made_of_is_held_to_its_version_and_group() {
    let folder = Folder::for_test();
    let server = start(&folder);
    let spec = json!({
        "group": "ext.example.com", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1,
        "service": {"namespace": "a", "name": "b"}, "insecureSkipTLSVerify": true,
    });
    create(&server, API_SERVICES, &json!({"metadata": {"name": "v1.ext.example.com"}, "spec": spec}));
    let path = format!("{API_SERVICES}/v1.ext.example.com");
    let told = |name: &str| refused(&server, &path, &json!({"metadata": {"generateName": name}}));
    let why = r#"must be `spec.version+"."+spec.group`: "v1.ext.example.com""#;
    assert_eq!(told("X_"), [format!("metadata.generateName: Invalid value: \"X_\": {why}")]);
    assert_eq!(told("."), [r#"metadata.generateName: Invalid value: ".": may not be '.'"#]);
    merge(&server, &path, &json!({"metadata": {"generateName": "v1.ext.example.com"}}));
}

#[test]
fn amounts_of_a_daemon_set_that_waits_for_deletions_are_zero() {
    let folder = Folder::for_test();
    let server = start(&folder);
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    for (name, sent, stored) in [
        ("a", json!({}), json!({"maxUnavailable": 0, "maxSurge": 0})),
        ("b", json!({"maxUnavailable": 2}), json!({"maxUnavailable": 2, "maxSurge": 0})),
    ] {
        let strategy = json!({"type": "OnDelete", "rollingUpdate": sent});
        let spec = json!({"selector": {"matchLabels": {"a": "b"}}, "template": template, "updateStrategy": strategy});
        let made = create(&server, DAEMON_SETS, &json!({"metadata": {"name": name}, "spec": spec}));
        assert_eq!(made["spec"]["updateStrategy"]["rollingUpdate"], stored);
    }
}

#[test]
fn labels_that_a_job_has_lost_are_shown_as_an_empty_map() {
    let folder = Folder::for_test();
    let server = start(&folder);
    let pod = json!({"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]});
    let job = create(&server, JOBS, &json!({"metadata": {"name": "a"}, "spec": {"template": {"spec": pod}}}));
    let labels = job["spec"]["template"]["metadata"]["labels"].as_object().expect("it has labels");
    let none: Value = labels.keys().map(|name| (name.clone(), Value::Null)).collect::<serde_json::Map<_, _>>().into();
    let told = |labels: &Value| {
        refused(&server, &format!("{JOBS}/a"), &json!({"spec": {"template": {"metadata": {"labels": labels}}}}))
    };
    let shown = |labels: &str| {
        format!("spec.template.metadata.labels: Invalid value: {labels}: `selector` does not match template `labels`")
    };
    assert_eq!(told(&none)[4], shown("{}"));
    assert_eq!(told(&Value::Null)[4], shown("null"));
}

#[test]
fn numbers_that_do_not_fit_are_told_as_they_are_sent() {
    let folder = Folder::for_test();
    let server = start(&folder);
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let spec = json!({"selector": {"matchLabels": {"a": "b"}}, "template": template});
    create(&server, DEPLOYMENTS, &json!({"metadata": {"name": "a"}, "spec": spec}));
    let check = |answer: &Answer, number: &str| {
        let expected = format!(
            "json: cannot unmarshal number {number} into Go struct field DeploymentSpec.spec.replicas of type int32"
        );
        let message = answer.json()["message"].as_str().unwrap_or_default().to_owned();
        assert!(message.ends_with(&expected), "{message}");
    };
    let path = format!("{DEPLOYMENTS}/a");
    for number in ["9223372036854775808", "100000000000000000000", "1e3", "1.5"] {
        check(&send(&server, "PATCH", &path, MERGE, &format!(r#"{{"spec":{{"replicas":{number}}}}}"#)), number);
        let operation = format!(r#"[{{"op":"replace","path":"/spec/replicas","value":{number}}}]"#);
        check(&send(&server, "PATCH", &path, "application/json-patch+json", &operation), number);
        let sent = format!(r#"{{"metadata":{{"name":"b"}},"spec":{{"replicas":{number}}}}}"#);
        check(&send(&server, "POST", DEPLOYMENTS, "application/json", &sent), number);
        if !["9223372036854775808", "1e3"].contains(&number) {
            check(&send(&server, "POST", DEPLOYMENTS, "application/yaml", &sent), number);
        }
    }
}

#[test]
fn what_zero_times_and_equal_amounts_mean_is_asked_of_the_kind() {
    let folder = Folder::for_test();
    let server = start(&folder);
    let pod = json!({"restartPolicy": "Never", "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]});
    create(&server, PODS, &json!({"metadata": {"name": "a"}, "spec": pod}));
    let zero = json!({"metadata": {"deletionTimestamp": "0001-01-01T00:00:00Z"}});
    merge(&server, &format!("{PODS}/a/status"), &zero);
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"});
    create(
        &server,
        AUTOSCALERS,
        &json!({"metadata": {"name": "a"}, "spec": {"scaleTargetRef": target, "maxReplicas": 2}}),
    );
    for path in [format!("{PODS}/a"), format!("{AUTOSCALERS}/a"), format!("{AUTOSCALERS}/a/status")] {
        let told = refused(&server, &path, &zero);
        assert_eq!(told[0], "metadata.deletionTimestamp: Invalid value: null: field is immutable", "{path}");
    }
    create(&server, JOBS, &json!({"metadata": {"name": "a"}, "spec": {"template": {"spec": pod}}}));
    let amount = json!([{"name": "c", "image": "i", "resources": {"requests": {"cpu": "+1"}}}]);
    let written =
        merge(&server, &format!("{JOBS}/a"), &json!({"spec": {"template": {"spec": {"containers": amount}}}}));
    assert_eq!(written["metadata"]["generation"], 1);
}

#[test]
fn an_event_names_who_reports_as_its_newer_group_does() {
    let folder = Folder::for_test();
    let server = start(&folder);
    let event = json!({
        "metadata": {"name": "a"}, "eventTime": "2020-01-01T00:00:00.000000Z", "reportingController": "a.b/c", "reportingInstance": "i",
        "action": "a", "reason": "r", "type": "Normal", "regarding": {"namespace": "default", "kind": "Pod", "name": "x"},
    });
    create(&server, EVENTS, &event);
    assert_eq!(
        refused(&server, &format!("{EVENTS}/a"), &json!({"reportingController": "x.y/z"})),
        [r#"reportingController: Invalid value: "x.y/z": field is immutable"#]
    );
}

#[test]
fn a_scale_of_a_built_in_kind_need_not_name_its_version() {
    let folder = Folder::for_test();
    let server = start(&folder);
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let spec = json!({"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": template});
    create(&server, DEPLOYMENTS, &json!({"metadata": {"name": "w"}, "spec": spec}));
    let path = format!("{DEPLOYMENTS}/w/scale");
    let scale = json!({"kind": "Scale", "metadata": {"name": "w", "namespace": "default"}, "spec": {"replicas": 3}});
    let answer = send(&server, "PUT", &format!("{path}?fieldManager=m"), "application/json", &scale.to_string());
    assert_eq!(answer.status, 200, "{}", answer.json());
    let entries = server.send("GET", &format!("{DEPLOYMENTS}/w"), &[], None).json()["metadata"]["managedFields"].take();
    let owners: Vec<_> = entries.as_array().expect("it has owners").iter().collect();
    let owns = |at: usize| owners[at]["fieldsV1"]["f:spec"].get("f:replicas").is_some();
    assert_eq!((owners[0]["manager"].as_str(), owners[0]["subresource"].as_str()), (Some("m"), Some("scale")));
    assert_eq!((owners.len(), owns(0), owns(1)), (2, true, false), "{entries}");

    let told = refused(&server, &path, &json!({"kind": "scale", "apiVersion": null}));
    assert!(
        told[0].contains("no kind \"scale\" is registered for the internal version of group \"autoscaling\""),
        "{told:?}"
    );
}

#[test]
fn options_of_an_eviction_are_looked_at_once_the_pod_is_marked() {
    let folder = Folder::for_test();
    let server = start(&folder);
    create(&server, PODS, &json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}));
    let evict = |options: Value, query: &str| {
        let body =
            json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}, "deleteOptions": options});
        send(&server, "POST", &format!("{PODS}/a/eviction{query}"), "application/json", &body.to_string())
    };
    let condition = || merge(&server, &format!("{PODS}/a"), &json!({}))["status"]["conditions"][0]["type"].clone();
    let why =
        r#"propagationPolicy: Invalid value: "Orphan": orphanDependents and deletionPropagation cannot be both set"#;
    let unknown = r#"dryRun: Unsupported value: ["x"]: supported values: "All""#;
    let policies = json!({"orphanDependents": true, "propagationPolicy": "Orphan"});
    for (options, query, why, marked) in [
        (json!({"dryRun": ["x"]}), "", unknown, Value::Null),
        (policies.clone(), "?dryRun=All", why, Value::Null),
        (policies, "", why, json!("DisruptionTarget")),
    ] {
        let answer = evict(options, query);
        assert_eq!(answer.status, 422);
        assert_eq!(answer.json()["message"], format!("DeleteOptions.meta.k8s.io \"\" is invalid: {why}"));
        assert_eq!(condition(), marked);
    }
}

/// The managers that own fields of an object, each with what it owns.
fn owners(object: &Value) -> Vec<(String, String)> {
    let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let text =
        |entry: &Value| (entry["manager"].as_str().unwrap_or_default().to_owned(), entry["fieldsV1"].to_string());
    entries.iter().map(text).collect()
}

#[test]
fn a_node_that_says_that_nothing_can_be_allocated_keeps_that_and_amounts_are_rounded_up() {
    let folder = Folder::for_test();
    let server = start(&folder);
    let capacity = json!({"cpu": "1n", "memory": "0.1m"});
    let node = create(&server, "/api/v1/nodes", &json!({"metadata": {"name": "a"}, "status": {"capacity": capacity}}));
    let rounded = json!({"cpu": "1m", "memory": "1m"});
    assert_eq!((&node["status"]["capacity"], &node["status"]["allocatable"]), (&rounded, &rounded));
    let mut none = node;
    none["status"]["allocatable"] = json!({});
    let path = "/api/v1/nodes/a/status?dryRun=All&fieldManager=m";
    let answer = send(&server, "PUT", path, "application/json", &none.to_string());
    assert_eq!(answer.status, 200, "{}", answer.json());
    let changed = answer.json();
    assert_eq!(changed["status"].get("allocatable"), None, "{changed}");
    assert!(owners(&changed).iter().all(|(_, fields)| !fields.contains("f:allocatable")), "{changed}");
}

#[test]
fn an_overhead_that_comes_empty_has_no_owner() {
    let folder = Folder::for_test();
    let server = start(&folder);
    let pod = json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let made = create(&server, PODS, &pod);
    let path = format!("{PODS}/a?fieldManager=m");
    let merged = merge(&server, &path, &json!({"spec": {"overhead": {}}}));
    assert_eq!(owners(&merged), owners(&made));
    assert_eq!(merged["metadata"]["resourceVersion"], made["metadata"]["resourceVersion"]);
    let shown = refused(&server, &path, &json!({"spec": {"overhead": {}, "nodeName": "n"}}));
    assert!(shown[0].contains("+ \"Overhead\": {},"), "{shown:?}");
}

#[test]
fn requests_are_empty_where_limits_are() {
    let folder = Folder::for_test();
    let server = start(&folder);
    let pod = json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    create(&server, PODS, &pod);
    let container = json!({"name": "c", "image": "i", "stdin": true, "resources": {"limits": {}}});
    let shown = refused(&server, &format!("{PODS}/a"), &json!({"spec": {"containers": [container]}}));
    let both = "-    \"Limits\": null,\n-    \"Requests\": null,\n+    \"Limits\": {},\n+    \"Requests\": {},\n";
    assert!(shown[0].contains(both), "{}", shown[0]);
}

#[test]
fn lists_that_come_empty_are_set_where_nothing_may_be() {
    let folder = Folder::for_test();
    let server = start(&folder);
    let told = |collection: &str, body: &Value| -> Vec<String> {
        let status = send(&server, "POST", collection, "application/json", &body.to_string()).json();
        let causes = status["details"]["causes"].as_array().cloned().unwrap_or_default();
        causes.iter().map(|cause| format!("{}: {}", cause["field"], cause["message"]).replace('"', "")).collect()
    };
    let lists = json!({"ownerReferences": [], "finalizers": [], "managedFields": [], "labels": {}});
    let cannot_be_set = |path: &str| -> Vec<String> {
        let names = ["ownerReferences", "finalizers", "managedFields"];
        names.iter().map(|name| format!("{path}.{name}: Forbidden: cannot be set")).collect()
    };
    let template = json!({"metadata": {"name": "a"}, "spec": {"metadata": lists, "spec": {}}});
    let templates = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates";
    assert_eq!(told(templates, &template), cannot_be_set("spec.metadata"));
    let claim = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    let volume = json!({"name": "v", "ephemeral": {"volumeClaimTemplate": {"metadata": lists, "spec": claim}}});
    let containers = json!([{"name": "c", "image": "i"}]);
    let pod = json!({"metadata": {"name": "a"}, "spec": {"containers": containers, "volumes": [volume]}});
    assert_eq!(told(PODS, &pod), cannot_be_set("spec.volumes[0].ephemeral.volumeClaimTemplate.metadata"));
    let resources = json!({"claims": []});
    let pod = json!({"metadata": {"name": "a"}, "spec": {"containers": containers, "resources": resources}});
    assert_eq!(
        told(PODS, &pod),
        ["spec.resources.claims: Forbidden: claims may not be set for Resources at pod-level"]
    );
    let context = json!({"supplementalGroups": []});
    let spec = json!({"containers": containers, "os": {"name": "windows"}, "securityContext": context});
    let pod = json!({"metadata": {"name": "a"}, "spec": spec});
    assert_eq!(
        told(PODS, &pod),
        ["spec.securityContext.supplementalGroups: Forbidden: cannot be set for a windows pod"]
    );
    let pod = json!({"metadata": {"name": "a"}, "spec": {"containers": containers, "securityContext": context}});
    assert_eq!(told(PODS, &pod), [""; 0]);
}

#[test]
fn the_beginning_of_the_name_of_a_role_is_held_to_what_a_name_is() {
    let folder = Folder::for_test();
    let server = start(&folder);
    let roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
    for (beginning, why) in [(".", "may not be '.'"), ("..", "may not be '..'")] {
        let role = json!({"metadata": {"generateName": beginning}}).to_string();
        let refused = send(&server, "POST", roles, "application/json", &role).json();
        let cause = &refused["details"]["causes"][0];
        let message = format!("Invalid value: \"{beginning}\": {why}");
        assert_eq!((&cause["field"], &cause["message"]), (&json!("metadata.generateName"), &json!(message)));
    }
    create(&server, roles, &json!({"metadata": {"generateName": ".x"}}));
}

#[test]
fn what_the_internal_type_of_a_daemon_set_can_not_hold_is_told_by_how_it_came() {
    let folder = Folder::for_test();
    let server = start(&folder);
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let spec = json!({"selector": {"matchLabels": {"a": "b"}}, "template": template});
    create(&server, DAEMON_SETS, &json!({"metadata": {"name": "a"}, "spec": spec}));
    let annotations = json!({"deprecated.daemonset.template.generation": "x"});
    let told = |content_type: &str| {
        let mut patch = json!({"metadata": {"annotations": annotations}});
        if content_type.contains("apply") {
            patch["apiVersion"] = json!("apps/v1");
            patch["kind"] = json!("DaemonSet");
        }
        let force = if content_type.contains("apply") { "&force=true" } else { "" };
        let path = format!("{DAEMON_SETS}/a?fieldManager=m{force}");
        let answer = send(&server, "PATCH", &path, content_type, &patch.to_string());
        (answer.status, answer.json()["message"].as_str().unwrap_or_default().to_owned())
    };
    let why = "strconv.ParseInt: parsing \"x\": invalid syntax";
    assert_eq!(told("application/strategic-merge-patch+json"), (500, why.to_owned()));
    let applied = format!("failed to convert to unversioned (/; apps/v1, Kind=DaemonSet): {why}");
    assert_eq!(told("application/apply-patch+yaml"), (500, applied));
    let (status, message) = told(MERGE);
    assert!(status == 422 && message.ends_with(why), "{status} {message}");
}

#[test]
fn an_event_is_called_by_its_first_group_where_a_precondition_fails() {
    let folder = Folder::for_test();
    let server = start(&folder);
    let events = "/api/v1/namespaces/default/events";
    create(&server, events, &json!({"metadata": {"name": "a"}, "involvedObject": {"namespace": "default"}}));
    let options = json!({"preconditions": {"uid": "x"}}).to_string();
    for path in [events, EVENTS] {
        let refused = send(&server, "DELETE", &format!("{path}/a"), "application/json", &options).json();
        let message = refused["message"].as_str().unwrap_or_default();
        assert!(message.starts_with("Operation cannot be fulfilled on Event \"a\": the UID"), "{refused}");
        assert_eq!(refused["details"].get("group"), None, "{refused}");
    }
}
