//! Validating policies at work: the real server, from the write of a policy to the requests that it refuses.

use serde_json::{Value, json};

use super::{CRONTABS, crontab, serve_crontabs};
use crate::server::{Answer, Folder, Server};

const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1";
const JSON: (&str, &str) = ("Content-Type", "application/json");
const MERGE: (&str, &str) = ("Content-Type", "application/merge-patch+json");

fn start() -> (Server, Folder) {
    let folder = Folder::for_test();
    let server = serve_crontabs(&folder, &["--store", "memory"]);
    (server, folder)
}

#[track_caller]
fn make(server: &Server, path: &str, object: &Value) {
    let answer = server.send("POST", path, &[JSON], Some(object.to_string().as_bytes()));
    assert_eq!(answer.status, 201, "{}", answer.json());
}

fn rules(group: &str, resources: &[&str], operations: &[&str]) -> Value {
    json!({"resourceRules": [{
        "apiGroups": [group], "apiVersions": ["*"], "operations": operations, "resources": resources,
    }]})
}

/// Makes a policy with these fields of its spec, and binds it with those of the binding's.
#[track_caller]
fn enforce(server: &Server, name: &str, spec: Value, binding: Value) {
    let policy = json!({"metadata": {"name": name}, "spec": spec});
    make(server, &format!("{POLICIES}/validatingadmissionpolicies"), &policy);
    bind(server, name, name, binding);
}

#[track_caller]
fn bind(server: &Server, name: &str, policy: &str, mut spec: Value) {
    spec["policyName"] = json!(policy);
    if spec.get("validationActions").is_none() {
        spec["validationActions"] = json!(["Deny"]);
    }
    let binding = json!({"metadata": {"name": name}, "spec": spec});
    make(server, &format!("{POLICIES}/validatingadmissionpolicybindings"), &binding);
}

fn create(server: &Server, path: &str, object: &Value) -> Answer {
    server.send("POST", path, &[JSON], Some(object.to_string().as_bytes()))
}

/// That a policy refuses with this message.
#[track_caller]
fn check_denied(answer: &Answer, policy: &str, why: &str) {
    let status = answer.json();
    let message = status["details"]["causes"][0]["message"].as_str().unwrap_or_default();
    let bound = format!("ValidatingAdmissionPolicy '{policy}' with binding '{policy}' denied request: {why}");
    let whole = format!("ValidatingAdmissionPolicy '{policy}' denied request: {why}");
    assert!(message == bound || message == whole, "{status}");
    assert_eq!((answer.status, status["reason"].as_str()), (422, Some("Invalid")));
    assert!(status["message"].as_str().is_some_and(|text| text.ends_with(message)), "{status}");
}

#[test]
fn a_policy_acts_from_the_answer_to_the_write_that_bound_it_until_it_is_gone() {
    let (server, _folder) = start();
    let constraints = rules("stable.example.com", &["crontabs"], &["CREATE"]);
    let spec = json!({"matchConstraints": constraints, "validations": [{"expression": "false", "message": "never"}]});
    enforce(&server, "p", spec, json!({}));
    check_denied(&create(&server, CRONTABS, &crontab("a")), "p", "never");
    let path = format!("{POLICIES}/validatingadmissionpolicies/p");
    let patch = json!({"spec": {"validations": [{"expression": "object.metadata.name != 'a'"}]}});
    assert_eq!(server.send("PATCH", &path, &[MERGE], Some(patch.to_string().as_bytes())).status, 200);
    check_denied(&create(&server, CRONTABS, &crontab("a")), "p", "failed expression: object.metadata.name != 'a'");
    assert_eq!(create(&server, CRONTABS, &crontab("b")).status, 201);
    let binding = format!("{POLICIES}/validatingadmissionpolicybindings/p");
    assert_eq!(server.send("DELETE", &binding, &[], None).status, 200);
    assert_eq!(create(&server, CRONTABS, &crontab("a")).status, 201);
}

#[test]
fn a_check_of_access_is_limited_by_its_selectors() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory", "--authorization-mode=Node,RBAC"]);
    // What an event gives as its reason is the selector.
    let expression = "authorizer.group('').resource('pods').fieldSelector(object.reason).check('list').allowed()";
    let spec = json!({
        "matchConstraints": rules("", &["events"], &["CREATE"]), "validations": [{"expression": expression}],
    });
    enforce(&server, "p", spec, json!({}));
    let node = [JSON, ("Impersonate-User", "system:node:a"), ("Impersonate-Group", "system:nodes")];
    for (name, selector, status) in [
        ("own", "spec.nodeName=a", 201),
        ("others", "spec.nodeName=b", 422),
        ("all", "", 422),
        ("unreadable", "spec.nodeName", 422),
    ] {
        let event = json!({
            "metadata": {"name": name}, "reason": selector, "involvedObject": {"kind": "Node", "name": "a"},
        });
        let path = "/api/v1/namespaces/default/events";
        let answer = server.send("POST", path, &node, Some(event.to_string().as_bytes()));
        assert_eq!(answer.status, status, "{name}: {}", answer.json());
    }
}

#[test]
fn subresources_connections_and_collections_are_asked_about() {
    let (server, _folder) = start();
    let policy = |name: &str, group: &str, resources: &[&str], operations: &[&str], expression: &str| {
        let constraints = rules(group, resources, operations);
        let spec = json!({"matchConstraints": constraints, "validations": [{"expression": expression}]});
        enforce(&server, name, spec, json!({}));
    };
    policy("scale", "stable.example.com", &["crontabs/scale"], &["UPDATE"], "object.spec.replicas < 3");
    policy(
        "delete",
        "stable.example.com",
        &["crontabs"],
        &["DELETE"],
        "object == null && oldObject.metadata.name != 'a'",
    );
    let exec = "object.kind == 'PodExecOptions' && object.command != ['rm'] && request.operation == 'CONNECT'";
    policy("exec", "", &["pods/exec"], &["CONNECT"], exec);
    // The status that a client sends is not its.
    let lasts = "object.spec.expirationSeconds > 700 && object.status.token == ''";
    policy("token", "", &["serviceaccounts/token"], &["CREATE"], lasts);
    assert_eq!(create(&server, CRONTABS, &crontab("a")).status, 201);
    let scale = json!({"spec": {"replicas": 3}}).to_string();
    let answer = server.send("PATCH", &format!("{CRONTABS}/a/scale"), &[MERGE], Some(scale.as_bytes()));
    check_denied(&answer, "scale", "failed expression: object.spec.replicas < 3");
    let why = "failed expression: object == null && oldObject.metadata.name != 'a'";
    check_denied(&server.send("DELETE", CRONTABS, &[], None), "delete", why);
    check_denied(&server.send("DELETE", &format!("{CRONTABS}/a"), &[], None), "delete", why);
    let pods = "/api/v1/namespaces/default/pods";
    check_denied(
        &server.send("POST", &format!("{pods}/x/exec?command=rm"), &[], None),
        "exec",
        &format!("failed expression: {exec}"),
    );
    assert_eq!(server.send("POST", &format!("{pods}/x/exec?command=ls"), &[], None).status, 404);
    // Options have no labels, and no selector but an empty one selects them.
    let mut constraints = rules("", &["pods/attach"], &["CONNECT"]);
    constraints["objectSelector"] = json!({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]});
    enforce(
        &server,
        "labels",
        json!({"matchConstraints": constraints, "validations": [{"expression": "false"}]}),
        json!({}),
    );
    assert_eq!(server.send("POST", &format!("{pods}/x/attach"), &[], None).status, 404);
    assert_eq!(server.send("POST", &format!("{pods}/x/attach?dryRun=All"), &[], None).status, 400);
    // What is asked for behind the pod is the path of the options, whatever the query says.
    policy("proxy", "", &["pods/proxy"], &["CONNECT"], "!has(object.path)");
    check_denied(
        &server.send("GET", &format!("{pods}/x/proxy/a/b/?path=c"), &[], None),
        "proxy",
        "failed expression: !has(object.path)",
    );
    assert_ne!(server.send("GET", &format!("{pods}/x/proxy?path=c"), &[], None).status, 422);
    for method in ["PATCH", "OPTIONS"] {
        let answer = server.send(method, &format!("{pods}/x/proxy/a"), &[], None);
        check_denied(&answer, "proxy", "failed expression: !has(object.path)");
    }
    let account = "/api/v1/namespaces/default/serviceaccounts";
    make(&server, account, &json!({"metadata": {"name": "x"}}));
    let token = |seconds: u32| {
        let status = json!({"token": "mine", "expirationTimestamp": "2030-01-01T00:00:00Z"});
        let request = json!({"spec": {"expirationSeconds": seconds}, "status": status});
        create(&server, &format!("{account}/x/token"), &request)
    };
    check_denied(&token(600), "token", &format!("failed expression: {lasts}"));
    assert_eq!(token(800).status, 201);
}

#[test]
fn nobody_is_asked_about_the_endpoints_of_a_service_that_goes() {
    let (server, _folder) = start();
    let constraints = rules("", &["endpoints"], &["DELETE"]);
    let spec = json!({"matchConstraints": constraints, "validations": [{"expression": "false"}]});
    enforce(&server, "p", spec, json!({}));
    let [services, endpoints] = ["services", "endpoints"].map(|plural| format!("/api/v1/namespaces/default/{plural}"));
    make(&server, &services, &json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}));
    make(&server, &endpoints, &json!({"metadata": {"name": "s"}}));
    let own = format!("{endpoints}/s");
    check_denied(&server.send("DELETE", &own, &[], None), "p", "failed expression: false");
    assert_eq!(server.send("DELETE", &format!("{services}/s"), &[], None).status, 200);
    assert_eq!(server.send("GET", &own, &[], None).status, 404);
}

#[test]
fn a_deletion_is_asked_about_with_the_options_that_it_comes_to_and_once() {
    let (server, _folder) = start();
    let pods = "/api/v1/namespaces/default/pods";
    let spec =
        json!({"nodeName": "n", "terminationGracePeriodSeconds": 7, "containers": [{"name": "c", "image": "i"}]});
    make(&server, pods, &json!({"metadata": {"name": "a"}, "spec": spec}));
    let deletes = |name: &str, expression: &str| {
        let constraints = rules("", &["pods"], &["DELETE"]);
        enforce(
            &server,
            name,
            json!({"matchConstraints": constraints, "validations": [{"expression": expression}]}),
            json!({}),
        );
    };
    deletes("seven", "request.options.gracePeriodSeconds != 7");
    let why = "failed expression: request.options.gracePeriodSeconds != 7";
    let path = format!("{pods}/a");
    check_denied(&server.send("DELETE", &path, &[], None), "seven", why);
    assert_eq!(server.send("DELETE", &format!("{path}?gracePeriodSeconds=5"), &[], None).status, 200);
    // It has five seconds left: nothing is decided any more, unless it is to go sooner.
    deletes("never", "false");
    assert_eq!(server.send("DELETE", &path, &[], None).status, 200);
    // Kinds that check preconditions themselves have the uid there.
    make(&server, "/api/v1/namespaces", &json!({"metadata": {"name": "gone"}}));
    let spec = json!({
        "matchConstraints": rules("", &["namespaces"], &["DELETE"]),
        "validations": [{"expression": "request.options.preconditions.uid != oldObject.metadata.uid", "message": "its uid"}]
    });
    enforce(&server, "uid", spec, json!({}));
    check_denied(&server.send("DELETE", "/api/v1/namespaces/gone", &[], None), "uid", "its uid");
    let sooner = server.send("DELETE", &format!("{path}?gracePeriodSeconds=1"), &[], None);
    check_denied(&sooner, "never", "failed expression: false");
}

#[test]
fn the_deletion_of_a_namespace_is_asked_about_once() {
    let (server, _folder) = start();
    let team = json!({"metadata": {"name": "team"}, "spec": {"finalizers": ["example.com/mine"]}});
    make(&server, "/api/v1/namespaces", &team);
    let marked = server.send("DELETE", "/api/v1/namespaces/team?orphanDependents=false", &[], None);
    assert_eq!((marked.status, &marked.json()["metadata"]["finalizers"]), (202, &json!(["foregroundDeletion"])));
    let spec = json!({
        "matchConstraints": rules("", &["namespaces"], &["DELETE"]), "validations": [{"expression": "false"}]
    });
    enforce(&server, "never", spec, json!({}));
    let again = server.send("DELETE", "/api/v1/namespaces/team", &[], None);
    assert_eq!((again.status, &again.json()["status"]["phase"]), (200, &json!("Terminating")));
    make(&server, "/api/v1/namespaces", &json!({"metadata": {"name": "other"}}));
    check_denied(&server.send("DELETE", "/api/v1/namespaces/other", &[], None), "never", "failed expression: false");
}

#[test]
fn parameters_of_a_kind_are_looked_up_as_they_are_now() {
    let (server, _folder) = start();
    let constraints = rules("", &["configmaps"], &["CREATE"]);
    let spec = json!({
        "paramKind": {"apiVersion": "stable.example.com/v1", "kind": "CronTab"},
        "matchConstraints": constraints,
        "validations": [{"expression": "object.metadata.name != params.metadata.name",
                         "messageExpression": "params.apiVersion + ' ' + params.kind + ' ' + params.metadata.name"}],
    });
    let selected = json!({"paramRef": {"selector": {}, "parameterNotFoundAction": "Deny"}});
    enforce(&server, "p", spec, selected);
    let maps = "/api/v1/namespaces/default/configmaps";
    let map = |name: &str| create(&server, maps, &json!({"metadata": {"name": name}}));
    let none = "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction";
    check_denied(&map("x"), "p", none);
    for name in ["a", "b"] {
        make(&server, CRONTABS, &crontab(name));
    }
    check_denied(&map("b"), "p", "stable.example.com/v1 CronTab b");
    assert_eq!(map("x").status, 201);
    let cluster = json!({"metadata": {"name": "n"}});
    assert_eq!(create(&server, "/api/v1/namespaces", &cluster).status, 201);
}

#[test]
fn a_parameter_kind_may_become_known_later() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory"]);
    let spec = json!({
        "paramKind": {"apiVersion": "stable.example.com/v1", "kind": "CronTab"},
        "matchConstraints": rules("", &["configmaps"], &["CREATE"]),
        "validations": [{"expression": "params == null"}],
    });
    enforce(&server, "p", spec, json!({}));
    let map =
        |name: &str| create(&server, "/api/v1/namespaces/default/configmaps", &json!({"metadata": {"name": name}}));
    let unknown = "failed to configure policy: failed to find resource referenced by paramKind: 'stable.example.com/v1, \
                   Kind=CronTab'";
    check_denied(&map("x"), "p", unknown);
    let definition = std::fs::read(super::crontabs_file()).expect("the definition is there");
    let yaml = ("Content-Type", "application/yaml");
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(server.send("POST", definitions, &[yaml], Some(&definition)).status, 201);
    super::wait_for(&server, CRONTABS, |answer| answer.status == 200);
    assert_eq!(map("x").status, 201);
}

#[test]
fn nothing_is_asked_about_policies_themselves() {
    let (server, _folder) = start();
    let spec = json!({
        "matchConstraints": rules("*", &["*"], &["*"]), "validations": [{"expression": "false", "message": "never"}],
    });
    enforce(&server, "p", spec, json!({}));
    check_denied(&create(&server, "/api/v1/namespaces", &json!({"metadata": {"name": "n"}})), "p", "never");
    let review = json!({"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}});
    assert_eq!(create(&server, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", &review).status, 201);
    let path = format!("{POLICIES}/validatingadmissionpolicybindings/p");
    assert_eq!(server.send("DELETE", &path, &[], None).status, 200);
    assert_eq!(create(&server, "/api/v1/namespaces", &json!({"metadata": {"name": "n"}})).status, 201);
}

/// The status of the policy `name`, once it has been looked at.
fn status_of(server: &Server, name: &str) -> Value {
    let path = format!("{POLICIES}/validatingadmissionpolicies/{name}");
    super::wait_for(server, &path, |answer| {
        let policy = answer.json();
        policy["status"]["observedGeneration"] == policy["metadata"]["generation"]
    });
    server.send("GET", &path, &[], None).json()["status"].clone()
}

#[test]
fn the_types_of_a_policy_are_checked_once_for_each_generation() {
    let (server, _folder) = start();
    let spec = |expression: &str| {
        let constraints = json!({"resourceRules": [
            {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["deployments"]},
            {"apiGroups": ["stable.example.com"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["crontabs"]},
        ]});
        json!({"matchConstraints": constraints, "validations": [{"expression": expression}]})
    };
    enforce(&server, "p", spec("object.spec.replicas > 1"), json!({}));
    assert_eq!(status_of(&server, "p"), json!({"observedGeneration": 1, "typeChecking": {}}));
    let path = format!("{POLICIES}/validatingadmissionpolicies/p");
    let patch = json!({"spec": spec("object.spec.cronSpec != '' && object.metadata.name != object.metadata.nam")});
    assert_eq!(server.send("PATCH", &path, &[MERGE], Some(patch.to_string().as_bytes())).status, 200);
    let status = status_of(&server, "p");
    let warning = &status["typeChecking"]["expressionWarnings"][0];
    assert_eq!(
        (&status["observedGeneration"], &warning["fieldRef"]),
        (&json!(2), &json!("spec.validations[0].expression"))
    );
    let text = warning["warning"].as_str().unwrap_or_default();
    let deployment = "apps/v1, Kind=Deployment: ERROR: <input>:1:12: undefined field 'cronSpec'\n";
    assert!(text.starts_with(deployment), "{text}");
    assert!(
        text.contains("\n\nstable.example.com/v1, Kind=CronTab: ERROR: <input>:1:70: undefined field 'nam'\n"),
        "{text}"
    );
    let managers = server.send("GET", &path, &[], None).json()["metadata"]["managedFields"].to_string();
    assert!(managers.contains(r#""manager":"validatingadmissionpolicy-status""#), "{managers}");
}

#[test]
fn nobody_checks_types_where_the_controller_is_off() {
    let folder = Folder::for_test();
    let server = serve_crontabs(&folder, &["--store", "memory", "--controllers=*,-validatingadmissionpolicy-status"]);
    let spec = json!({
        "matchConstraints": rules("apps", &["deployments"], &["CREATE"]), "validations": [{"expression": "object.x == 1"}],
    });
    enforce(&server, "p", spec, json!({}));
    let policy = server.send("GET", &format!("{POLICIES}/validatingadmissionpolicies/p"), &[], None).json();
    assert_eq!(policy["status"], json!({}));
}

#[test]
fn conditions_in_the_status_of_a_policy_are_checked() {
    let (server, _folder) = start();
    let spec = json!({"matchConstraints": rules("apps", &["deployments"], &["CREATE"]), "validations": [{"expression": "true"}]});
    make(
        &server,
        &format!("{POLICIES}/validatingadmissionpolicies"),
        &json!({"metadata": {"name": "p"}, "spec": spec}),
    );
    let path = format!("{POLICIES}/validatingadmissionpolicies/p/status");
    let patch = json!({"status": {"conditions": [{"type": "a", "status": "x", "reason": "r", "message": "",
                                                  "lastTransitionTime": "2026-01-01T00:00:00Z"}]}});
    let answer = server.send("PATCH", &path, &[MERGE], Some(patch.to_string().as_bytes())).json();
    let cause = &answer["details"]["causes"][0];
    assert_eq!(
        (&cause["field"], &cause["reason"]),
        (&json!("status.conditions[0].status"), &json!("FieldValueNotSupported"))
    );
}

#[test]
fn a_policy_that_costs_too_much_fails_in_the_words_of_kubernetes_and_keeps_nobody_waiting() {
    let (server, _folder) = start();
    let list = format!("[{}]", vec!["1"; 200].join(","));
    let dear = format!("{list}.all(a, {list}.all(b, {list}.all(c, a + b + c > 0)))");
    let spec = json!({
        "matchConstraints": rules("stable.example.com", &["crontabs"], &["CREATE"]), "validations": [{"expression": dear}],
    });
    enforce(&server, "p", spec, json!({}));
    let why = format!("expression '{dear}' resulted in error: operation cancelled: actual cost limit exceeded");
    check_denied(&create(&server, CRONTABS, &crontab("a")), "p", &why);
    let maps = "/api/v1/namespaces/default/configmaps";
    std::thread::scope(|scope| {
        let refused: Vec<_> = (0..4).map(|_| scope.spawn(|| create(&server, CRONTABS, &crontab("a")).status)).collect();
        for number in 0..20 {
            assert_eq!(create(&server, maps, &json!({"metadata": {"name": format!("m{number}")}})).status, 201);
        }
        for refused in refused {
            assert_eq!(refused.join().expect("it ends"), 422);
        }
    });
}

#[test]
fn a_parameter_that_goes_is_missed_from_then_on() {
    let (server, _folder) = start();
    let maps = "/api/v1/namespaces/default/configmaps";
    make(&server, maps, &json!({"metadata": {"name": "limits"}, "data": {"max": "3"}}));
    let spec = json!({
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "matchConstraints": rules("stable.example.com", &["crontabs"], &["CREATE"]),
        "validations": [{"expression": "int(params.data.max) > 2"}],
    });
    let reference = |action: &str| json!({"paramRef": {"name": "limits", "parameterNotFoundAction": action}});
    enforce(&server, "p", spec, reference("Deny"));
    assert_eq!(create(&server, CRONTABS, &crontab("a")).status, 201);
    assert_eq!(server.send("DELETE", &format!("{maps}/limits"), &[], None).status, 200);
    let none = "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction";
    check_denied(&create(&server, CRONTABS, &crontab("b")), "p", none);
    let path = format!("{POLICIES}/validatingadmissionpolicybindings/p");
    let patch = json!({"spec": reference("Allow")}).to_string();
    assert_eq!(server.send("PATCH", &path, &[MERGE], Some(patch.as_bytes())).status, 200);
    assert_eq!(create(&server, CRONTABS, &crontab("b")).status, 201);
}

#[test]
fn a_binding_to_nothing_waits_for_its_policy() {
    let (server, _folder) = start();
    bind(&server, "b", "p", json!({}));
    assert_eq!(create(&server, CRONTABS, &crontab("a")).status, 201);
    let spec = json!({
        "matchConstraints": rules("stable.example.com", &["crontabs"], &["CREATE"]), "validations": [{"expression": "false"}],
    });
    make(
        &server,
        &format!("{POLICIES}/validatingadmissionpolicies"),
        &json!({"metadata": {"name": "p"}, "spec": spec}),
    );
    let message = create(&server, CRONTABS, &crontab("b")).json()["message"].to_string();
    assert!(message.contains("'p' with binding 'b' denied request: failed expression: false"), "{message}");
}

/// Makes a mutating policy of one mutation about crontabs, and binds it.
#[track_caller]
fn mutate(server: &Server, name: &str, reinvocation: &str, mutation: Value) {
    let spec = json!({
        "matchConstraints": rules("stable.example.com", &["crontabs"], &["CREATE"]),
        "failurePolicy": "Fail", "reinvocationPolicy": reinvocation, "mutations": [mutation],
    });
    make(server, &format!("{POLICIES}/mutatingadmissionpolicies"), &json!({"metadata": {"name": name}, "spec": spec}));
    let binding = json!({"metadata": {"name": name}, "spec": {"policyName": name}});
    make(server, &format!("{POLICIES}/mutatingadmissionpolicybindings"), &binding);
}

/// Read from the source of kube-apiserver: informers of built-in kinds leave the type of an object out.
#[test]
fn a_parameter_of_a_mutation_does_not_say_its_kind_if_that_is_built_in() {
    let (server, _folder) = start();
    make(&server, "/api/v1/namespaces/default/configmaps", &json!({"metadata": {"name": "m"}, "data": {"a": "b"}}));
    let expression =
        "[JSONPatch{op: 'add', path: '/metadata/labels', value: {'is': has(params.kind) ? 'told' : params.data.a}}]";
    let spec = json!({
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "matchConstraints": rules("stable.example.com", &["crontabs"], &["CREATE"]),
        "failurePolicy": "Fail", "reinvocationPolicy": "Never",
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}],
    });
    make(&server, &format!("{POLICIES}/mutatingadmissionpolicies"), &json!({"metadata": {"name": "p"}, "spec": spec}));
    let reference = json!({"name": "m", "parameterNotFoundAction": "Deny"});
    let binding = json!({"metadata": {"name": "p"}, "spec": {"policyName": "p", "paramRef": reference}});
    make(&server, &format!("{POLICIES}/mutatingadmissionpolicybindings"), &binding);
    let made = create(&server, CRONTABS, &crontab("a"));
    assert_eq!((made.status, &made.json()["metadata"]["labels"]), (201, &json!({"is": "b"})), "{}", made.json());
}

#[test]
fn an_object_that_a_mutation_makes_invalid_is_refused_as_if_it_was_sent_so() {
    let (server, _folder) = start();
    let expression = "[JSONPatch{op: 'add', path: '/spec/replicas', value: 'many'}]";
    mutate(&server, "p", "Never", json!({"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}));
    let answer = create(&server, CRONTABS, &crontab("a"));
    let status = answer.json();
    assert_eq!((answer.status, &status["details"]["causes"][0]["field"]), (422, &json!("spec.replicas")), "{status}");
}

/// Read from the source of kube-apiserver: what a mutation makes is decoded from JSON, which has no empty map of a ConfigMap.
#[test]
fn a_mutation_takes_empty_maps_out_of_what_was_sent() {
    const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
    let (server, _folder) = start();
    let frozen = json!({"metadata": {"name": "a"}, "immutable": true, "data": {"a": "b"}});
    make(&server, CONFIG_MAPS, &frozen);
    let emptied = json!({"metadata": {"name": "a"}, "immutable": true, "data": {"a": "b"}, "binaryData": {}});
    let put = || server.send("PUT", &format!("{CONFIG_MAPS}/a"), &[JSON], Some(emptied.to_string().as_bytes())).status;
    assert_eq!(put(), 422);
    let expression = "[JSONPatch{op: 'add', path: '/metadata/labels', value: {'a': 'b'}}]";
    let spec = json!({
        "matchConstraints": rules("", &["configmaps"], &["UPDATE"]), "failurePolicy": "Fail", "reinvocationPolicy": "Never",
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}],
    });
    make(&server, &format!("{POLICIES}/mutatingadmissionpolicies"), &json!({"metadata": {"name": "p"}, "spec": spec}));
    let binding = json!({"metadata": {"name": "p"}, "spec": {"policyName": "p"}});
    make(&server, &format!("{POLICIES}/mutatingadmissionpolicybindings"), &binding);
    assert_eq!(put(), 200);
}

#[test]
fn a_number_that_json_does_not_have_ends_the_request_and_nothing_else() {
    let (server, _folder) = start();
    let expression = "Object{spec: Object.spec{weight: 1.0 / (object.metadata.name == 'a' ? 0.0 : 2.0)}}";
    let mutation = json!({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}});
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/crontabs.stable.example.com";
    let weight = json!([{
        "op": "add", "value": {"type": "number"},
        "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/weight",
    }]);
    let json_patch = [("Content-Type", "application/json-patch+json")];
    let patched = server.send("PATCH", path, &json_patch, Some(weight.to_string().as_bytes()));
    assert_eq!(patched.status, 200, "{}", patched.json());
    mutate(&server, "p", "Never", mutation);
    let answer = create(&server, CRONTABS, &crontab("a"));
    let message = "json: unsupported value: +Inf";
    assert_eq!((answer.status, answer.json()["message"].as_str()), (500, Some(message)), "{}", answer.json());
    let made = create(&server, CRONTABS, &crontab("b")).json();
    assert_eq!(made["spec"]["weight"], 0.5, "{made}");
}

#[test]
fn policies_that_undo_each_other_are_asked_twice_and_no_more() {
    let (server, _folder) = start();
    for (name, image) in [("p", "'one'"), ("q", "object.spec.image + 'x'")] {
        let expression = format!("Object{{spec: Object.spec{{image: {image}}}}}");
        let mutation = json!({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}});
        mutate(&server, name, "IfNeeded", mutation);
    }
    let answer = create(&server, CRONTABS, &crontab("a"));
    assert_eq!((answer.status, &answer.json()["spec"]["image"]), (201, &json!("onex")), "{}", answer.json());
}

#[test]
fn the_audit_log_has_what_policies_say_of_a_request() {
    let failure = |at: usize, message: &str| {
        json!({
            "message": message, "policy": "p", "binding": "p", "expressionIndex": at, "validationActions": ["Audit"],
        })
    };
    let (first, second) = (failure(0, "not this one"), failure(1, "nor another"));
    check_audit_log("1.37", &json!([first, second]));
    check_audit_log("1.36", &json!([first]));
}

#[track_caller]
fn check_audit_log(minor: &str, expected: &Value) {
    let folder = Folder::for_test();
    let log = folder.0.join("audit.log");
    let path = log.to_str().expect("it is text");
    let server = serve_crontabs(&folder, &["--store", "memory", "--audit-log-path", path, "--emulated-version", minor]);
    let spec = json!({
        "matchConstraints": rules("stable.example.com", &["crontabs"], &["CREATE"]),
        "validations": [
            {"expression": "object.metadata.name != 'a'", "message": "not this one"},
            {"expression": "false", "message": "nor another"},
        ],
        "auditAnnotations": [
            {"key": "name", "valueExpression": "'it is ' + object.metadata.name"},
            {"key": "none", "valueExpression": "null"},
        ],
    });
    enforce(&server, "p", spec, json!({"validationActions": ["Audit"]}));
    let made = create(&server, CRONTABS, &crontab("a"));
    assert_eq!(made.status, 201, "{}", made.json());
    assert_eq!(server.terminate().0, Some(0));
    let log = std::fs::read_to_string(&log).expect("it is written");
    let events = log.lines().map(|line| serde_json::from_str::<Value>(line).expect("each line is an event"));
    let complete = |event: &Value| event["stage"] == "ResponseComplete" && event["auditID"] == made.header("audit-id");
    let event = events.into_iter().find(complete).expect("it is told");
    let annotations = &event["annotations"];
    assert_eq!((&annotations["p/name"], &annotations["p/none"]), (&json!("it is a"), &Value::Null), "{annotations}");
    let failures = annotations["validation.policy.admission.k8s.io/validation_failure"].as_str();
    let failures: Value = serde_json::from_str(failures.unwrap_or_default()).expect("it is JSON");
    assert_eq!(&failures, expected);
}

#[test]
fn a_definition_that_comes_later_is_seen_when_the_policy_is_written_again() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory"]);
    let spec = |expression: &str| {
        // What is matched by `*` is not looked at.
        let mut constraints = rules("stable.example.com", &["crontabs"], &["CREATE"]);
        constraints["resourceRules"][0]["apiVersions"] = json!(["v1"]);
        json!({"matchConstraints": constraints, "validations": [{"expression": expression}]})
    };
    enforce(&server, "p", spec("object.metadata.nam != ''"), json!({}));
    assert_eq!(status_of(&server, "p"), json!({"observedGeneration": 1, "typeChecking": {}}));
    let definition = std::fs::read_to_string(super::crontabs_file()).expect("it reads");
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let yaml = [("Content-Type", "application/yaml")];
    assert_eq!(server.send("POST", definitions, &yaml, Some(definition.as_bytes())).status, 201);
    super::wait_for(&server, CRONTABS, |answer| answer.status == 200);
    assert_eq!(status_of(&server, "p"), json!({"observedGeneration": 1, "typeChecking": {}}));
    let path = format!("{POLICIES}/validatingadmissionpolicies/p");
    let patch = json!({"spec": spec("object.metadata.nam != '-'")}).to_string();
    assert_eq!(server.send("PATCH", &path, &[MERGE], Some(patch.as_bytes())).status, 200);
    let status = status_of(&server, "p");
    let warning = status["typeChecking"]["expressionWarnings"][0]["warning"].as_str().unwrap_or_default();
    assert!(warning.contains("undefined field 'nam'"), "{status}");
}
