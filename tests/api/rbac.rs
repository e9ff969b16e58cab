//! Who may do what, when roles and bindings say so: the real server, with requests in the names of others.

use serde_json::{Value, json};

use super::rbac_model::{Random, World, is_allowed, rbac_object, request};
use super::replicas::new_database;
use super::wait_for;
use crate::kubectl::Kubectl;
use crate::server::{Answer, Folder, Server};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const JSON: (&str, &str) = ("Content-Type", "application/json");
const MERGE: (&str, &str) = ("Content-Type", "application/merge-patch+json");

fn start() -> (Server, Folder) {
    let folder = Folder::for_test();
    (Server::start(&folder.0, &["--store", "memory", "--authorization-mode=RBAC"]), folder)
}

/// Sends a request in the name of a user.
fn send_as(server: &Server, user: &str, method: &str, path: &str, body: Option<&Value>) -> Answer {
    let body = body.map(Value::to_string);
    server.send(method, path, &[JSON, ("Impersonate-User", user)], body.as_deref().map(str::as_bytes))
}

/// As the administrator.
#[track_caller]
fn make(server: &Server, path: &str, object: &Value) {
    let answer = server.send("POST", path, &[JSON], Some(object.to_string().as_bytes()));
    assert_eq!(answer.status, 201, "{}", answer.json());
}

#[track_caller]
fn check_forbidden(answer: &Answer, message: &str) {
    let status = answer.json();
    assert_eq!((answer.status, status["message"].as_str()), (403, Some(message)));
    assert_eq!(status["reason"], "Forbidden");
}

#[test]
fn who_names_parameters_of_a_policy_may_read_them() {
    const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1";
    let (server, _folder) = start();
    let rules = json!([{"apiGroups": ["admissionregistration.k8s.io"], "resources": ["*"], "verbs": ["*"]}]);
    make(&server, &format!("{RBAC}/clusterroles"), &role("policies", &rules));
    make(&server, &format!("{RBAC}/clusterrolebindings"), &binding("policies", "ClusterRole", "policies", "jane"));
    let policy = json!({
        "metadata": {"name": "p"}, "spec": {
            "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}, "validations": [{"expression": "true"}],
            "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]},
        },
    });
    let bound = json!({
        "metadata": {"name": "b"}, "spec": {
            "policyName": "p", "validationActions": ["Deny"], "paramRef": {"name": "a", "parameterNotFoundAction": "Allow"},
        },
    });
    let send = |resource: &str, object: &Value| {
        let answer = send_as(&server, "jane", "POST", &format!("{POLICIES}/{resource}"), Some(object));
        (answer.status, answer.json()["message"].as_str().unwrap_or_default().to_owned())
    };
    let user = "&{jane  [system:authenticated] map[]}";
    let refused = |kind: &str, field: &str, why: &str| {
        let name = if kind.ends_with("Binding") { "b" } else { "p" };
        (
            422,
            format!(
                "{kind}.admissionregistration.k8s.io \"{name}\" is invalid: spec.{field}: Forbidden: user {user} {why}"
            ),
        )
    };
    let why = "must have \"get\" permission on all objects of the referenced paramKind (kind=ConfigMap, apiVersion=v1)";
    assert_eq!(send("validatingadmissionpolicies", &policy), refused("ValidatingAdmissionPolicy", "paramKind", why));
    make(&server, &format!("{POLICIES}/validatingadmissionpolicies"), &policy);
    let why = "does not have \"get\" permission on the object referenced by paramRef";
    let bindings = "validatingadmissionpolicybindings";
    assert_eq!(send(bindings, &bound), refused("ValidatingAdmissionPolicyBinding", "paramRef", why));
    let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]);
    make(&server, &format!("{RBAC}/clusterroles"), &role("maps", &rules));
    make(&server, &format!("{RBAC}/clusterrolebindings"), &binding("maps", "ClusterRole", "maps", "jane"));
    assert_eq!(send(bindings, &bound).0, 201);
    // At each update anew, whatever it changes.
    let label = |resource: &str, name: &str, value: &str| {
        let (path, headers) = (format!("{POLICIES}/{resource}/{name}"), [MERGE, ("Impersonate-User", "jane")]);
        let label = json!({"metadata": {"labels": {"a": value}}}).to_string();
        server.send("PATCH", &path, &headers, Some(label.as_bytes())).status
    };
    assert_eq!(label(bindings, "b", "b"), 200);
    assert_eq!(server.send("DELETE", &format!("{RBAC}/clusterrolebindings/maps"), &[], None).status, 200);
    assert_eq!((label("validatingadmissionpolicies", "p", "c"), label(bindings, "b", "c")), (200, 422));
}

#[test]
fn parts_of_a_claims_status_take_rights_of_their_own() {
    const CLAIMS: &str = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";
    let (server, _folder) = start();
    let grant = |name: &str, part: &str, verb: &str| {
        let rules = json!([{"apiGroups": ["resource.k8s.io"], "resources": [part], "verbs": [verb]}]);
        make(&server, &format!("{RBAC}/clusterroles"), &role(name, &rules));
        make(&server, &format!("{RBAC}/clusterrolebindings"), &binding(name, "ClusterRole", name, "jane"));
    };
    grant("status", "resourceclaims/status", "patch");
    let request = json!({"name": "r", "exactly": {"deviceClassName": "c"}});
    make(&server, CLAIMS, &json!({"metadata": {"name": "c"}, "spec": {"devices": {"requests": [request]}}}));
    let patch = |status: Value| {
        let (path, headers) = (format!("{CLAIMS}/c/status"), [MERGE, ("Impersonate-User", "jane")]);
        let answer = server.send("PATCH", &path, &headers, Some(json!({"status": status}).to_string().as_bytes()));
        (answer.status, answer.json()["message"].as_str().unwrap_or_default().to_owned())
    };
    let invalid = |why: &str| (422, format!("ResourceClaim.resource.k8s.io \"c\" is invalid: {why}"));
    let result = json!({"request": "r", "driver": "d.example.com", "pool": "p", "device": "x"});
    let allocation = json!({"allocation": {"devices": {"results": [result]}}});
    let why = "status.allocation: Forbidden: changing status.allocation or status.reservedFor requires \
               resource=\"resourceclaims/binding\", verb=\"patch\" permission: resourceclaims.resource.k8s.io is forbidden: \
               User \"jane\" cannot patch resource \"resourceclaims/binding\" in API group \"resource.k8s.io\" at the cluster \
               scope";
    assert_eq!(patch(allocation.clone()), invalid(why));
    grant("binding", "resourceclaims/binding", "patch");
    assert_eq!(patch(allocation), (200, String::new()));
    let report = json!({"devices": [{"driver": "d.example.com", "pool": "p", "device": "x", "data": {"a": 1}}]});
    let why = "status.devices: Forbidden: changing status.devices requires resource=\"resourceclaims/driver\", \
               verb=\"[arbitrary-node:patch]\" permission: resourceclaims.resource.k8s.io \"d.example.com\" is forbidden: User \
               \"jane\" cannot arbitrary-node:patch resource \"resourceclaims/driver\" in API group \"resource.k8s.io\" in the \
               namespace \"default\"";
    assert_eq!(patch(report.clone()), invalid(why));
    grant("driver", "resourceclaims/driver", "arbitrary-node:patch");
    assert_eq!(patch(report), (200, String::new()));
}

#[test]
fn a_denial_is_not_to_be_sniffed_at() {
    let (server, _folder) = start();
    for path in [CONFIG_MAPS, "/metrics"] {
        let answer = send_as(&server, "jane", "GET", path, None);
        assert_eq!((answer.status, answer.header("x-content-type-options")), (403, "nosniff"), "{path}");
    }
}

#[test]
fn decisions_are_counted() {
    let (server, _folder) = start();
    assert_eq!(send_as(&server, "jane", "GET", CONFIG_MAPS, None).status, 403);
    assert_eq!(send_as(&server, "jane", "GET", "/version", None).status, 200);
    let text = String::from_utf8(server.send("GET", "/metrics", &[], None).body).expect("it is text");
    for line in [
        r#"authorization_attempts_total{result="no-opinion"} 1"#,
        r#"authorization_duration_seconds_count{result="no-opinion"} 1"#,
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
    // The server itself asks, too.
    let decisions = r#"apiserver_authorization_decisions_total{type="RBAC",name="rbac",decision="allowed"} "#;
    assert!(text.contains(decisions), "{decisions} is not in\n{text}");
}

fn role(name: &str, rules: &Value) -> Value {
    json!({"metadata": {"name": name}, "rules": rules})
}

fn binding(name: &str, role_kind: &str, role: &str, user: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "subjects": [{"kind": "User", "name": user}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role_kind, "name": role},
    })
}

fn bindings() -> String {
    format!("{RBAC}/namespaces/default/rolebindings")
}

fn roles() -> String {
    format!("{RBAC}/namespaces/default/roles")
}

#[test]
fn that_everybody_may_do_everything_is_told_at_the_start() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory"]);
    assert_eq!(server.stderr().matches("Authorization is off").count(), 1, "{}", server.stderr());
    assert_eq!(send_as(&server, "jane", "GET", CONFIG_MAPS, None).status, 200);
    let (server, _folder) = start();
    assert!(!server.stderr().contains("Authorization is off"), "{}", server.stderr());
}

#[test]
fn a_role_counts_from_the_answer_to_the_write_that_made_it() {
    let (server, _folder) = start();
    let list = || send_as(&server, "jane", "GET", CONFIG_MAPS, None);
    let refusal = r#"configmaps is forbidden: User "jane" cannot list resource "configmaps" in API group "" in the namespace "default""#;
    check_forbidden(&list(), refusal);
    for round in 0..10 {
        let name = format!("reader-{round}");
        make(&server, &bindings(), &binding(&name, "Role", &name, "jane"));
        let missing = format!(r#"{refusal}: RBAC: role.rbac.authorization.k8s.io "{name}" not found"#);
        check_forbidden(&list(), &missing);
        make(
            &server,
            &roles(),
            &role(&name, &json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}])),
        );
        assert_eq!(list().status, 200, "{round}");
        assert_eq!(server.send("DELETE", &format!("{}/{name}", bindings()), &[], None).status, 200);
        check_forbidden(&list(), refusal);
    }
}

#[test]
fn every_verb_is_refused_with_its_name() {
    let (server, _folder) = start();
    let check = |method: &str, path: &str, message: &str| {
        check_forbidden(&send_as(&server, "jane", method, path, Some(&json!({}))), message);
    };
    let about = r#"resource "configmaps" in API group "" in the namespace "default""#;
    check(
        "GET",
        &format!("{CONFIG_MAPS}/a"),
        &format!(r#"configmaps "a" is forbidden: User "jane" cannot get {about}"#),
    );
    check(
        "GET",
        &format!("{CONFIG_MAPS}?watch=1"),
        &format!(r#"configmaps is forbidden: User "jane" cannot watch {about}"#),
    );
    check("POST", CONFIG_MAPS, &format!(r#"configmaps is forbidden: User "jane" cannot create {about}"#));
    check(
        "PUT",
        &format!("{CONFIG_MAPS}/a"),
        &format!(r#"configmaps "a" is forbidden: User "jane" cannot update {about}"#),
    );
    check(
        "PATCH",
        &format!("{CONFIG_MAPS}/a"),
        &format!(r#"configmaps "a" is forbidden: User "jane" cannot patch {about}"#),
    );
    check(
        "DELETE",
        &format!("{CONFIG_MAPS}/a"),
        &format!(r#"configmaps "a" is forbidden: User "jane" cannot delete {about}"#),
    );
    check("DELETE", CONFIG_MAPS, &format!(r#"configmaps is forbidden: User "jane" cannot deletecollection {about}"#));
    check(
        "GET",
        "/api/v1/configmaps",
        r#"configmaps is forbidden: User "jane" cannot list resource "configmaps" in API group "" at the cluster scope"#,
    );
    check(
        "GET",
        "/api/v1/namespaces/default",
        r#"namespaces "default" is forbidden: User "jane" cannot get resource "namespaces" in API group "" in the namespace "default""#,
    );
    check(
        "PUT",
        "/apis/example.com/v1/widgets/a/status",
        r#"widgets.example.com "a" is forbidden: User "jane" cannot update resource "widgets/status" in API group "example.com" at the cluster scope"#,
    );
    check("GET", "/metrics", r#"forbidden: User "jane" cannot get path "/metrics""#);
    check("POST", "/nowhere", r#"forbidden: User "jane" cannot post path "/nowhere""#);
    // Everybody may look around.
    for path in ["/version", "/api", "/apis", "/apis/apps/v1", "/openapi/v3"] {
        assert_ne!(send_as(&server, "jane", "GET", path, None).status, 403, "{path}");
    }
}

#[test]
fn a_rule_for_a_name_lets_that_one_be_listed_and_watched() {
    let (server, _folder) = start();
    make(&server, CONFIG_MAPS, &json!({"metadata": {"name": "a"}}));
    let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["a"], "verbs": ["get", "list", "watch"]}]);
    make(&server, &roles(), &role("one", &rules));
    make(&server, &bindings(), &binding("one", "Role", "one", "jane"));
    let code = |query: &str| send_as(&server, "jane", "GET", &format!("{CONFIG_MAPS}{query}"), None).status;
    assert_eq!([code("/a"), code("/b"), code("")], [200, 403, 403]);
    assert_eq!([code("?fieldSelector=metadata.name%3Da"), code("?fieldSelector=metadata.name%3Db")], [200, 403]);
    assert_eq!(code("?fieldSelector=metadata.name%3Da&watch=1&timeoutSeconds=1"), 200);
    assert_eq!(code("?fieldSelector=metadata.name%21%3Da"), 403);
}

#[test]
fn nobody_grants_what_they_do_not_have() {
    let (server, _folder) = start();
    let manage = json!([
        {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["*"], "verbs": ["*"], "resourceNames": []},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]},
    ]);
    // Everything with roles but `bind` and `escalate`.
    let verbs = json!(["create", "delete", "get", "list", "patch", "update", "watch"]);
    let mut own = manage;
    own[0]["verbs"] = verbs;
    make(&server, &roles(), &role("manager", &own));
    make(&server, &bindings(), &binding("manager", "Role", "manager", "jane"));
    let post = |path: &str, object: &Value| send_as(&server, "jane", "POST", path, Some(object));
    let reads = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}]);
    assert_eq!(post(&roles(), &role("fine", &reads)).status, 201);
    let more = json!([{"apiGroups": [""], "resources": ["configmaps", "secrets"], "verbs": ["list", "delete"]}]);
    let missing = concat!(
        "user \"jane\" (groups=[\"system:authenticated\"]) is attempting to grant RBAC permissions not currently held:\n",
        "{APIGroups:[\"\"], Resources:[\"configmaps\"], Verbs:[\"delete\"]}\n",
        "{APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"list\" \"delete\"]}"
    );
    let forbidden = |what: &str, why: &str| format!(r#"{what} is forbidden: {why}"#);
    check_forbidden(
        &post(&roles(), &role("more", &more)),
        &forbidden(r#"roles.rbac.authorization.k8s.io "more""#, missing),
    );
    let put = send_as(&server, "jane", "PUT", &format!("{}/fine", roles()), Some(&role("fine", &more)));
    check_forbidden(&put, &forbidden(r#"roles.rbac.authorization.k8s.io "fine""#, missing));
    // A binding grants what its role does.
    make(&server, &roles(), &role("more", &more));
    check_forbidden(
        &post(&bindings(), &binding("more", "Role", "more", "joe")),
        &forbidden(r#"rolebindings.rbac.authorization.k8s.io "more""#, missing),
    );
    let absent = post(&bindings(), &binding("absent", "ClusterRole", "absent", "joe"));
    assert_eq!(absent.status, 404);
    assert_eq!(absent.json()["message"], r#"rolebindings.rbac.authorization.k8s.io "absent" not found"#);
    // Owners and finalizers grant nothing: what the garbage collector writes passes.
    let patch = |body: &Value| {
        let headers = [("Content-Type", "application/merge-patch+json"), ("Impersonate-User", "jane")];
        server.send("PATCH", &format!("{}/more", roles()), &headers, Some(body.to_string().as_bytes()))
    };
    assert_eq!(patch(&json!({"metadata": {"finalizers": ["example.com/x"]}})).status, 200);
    assert_eq!(patch(&json!({"metadata": {"labels": {"a": "b"}}})).status, 403);
    // The rights to grant anything, or one role.
    let rights = json!([
        {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": ["bind"], "resourceNames": ["more"]},
        {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": ["escalate"]},
    ]);
    make(&server, &roles(), &role("rights", &rights));
    make(&server, &bindings(), &binding("rights", "Role", "rights", "jane"));
    assert_eq!(post(&bindings(), &binding("more", "Role", "more", "joe")).status, 201);
    assert_eq!(post(&roles(), &role("most", &more)).status, 201);
    assert_eq!(post(&bindings(), &binding("most", "Role", "most", "joe")).status, 403);
}

#[test]
fn an_aggregation_rule_takes_everything() {
    let (server, _folder) = start();
    let rules =
        json!([{"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"], "verbs": ["create"]}]);
    make(&server, &format!("{RBAC}/clusterroles"), &role("maker", &rules));
    make(&server, &format!("{RBAC}/clusterrolebindings"), &binding("maker", "ClusterRole", "maker", "jane"));
    let mut gathers = role("gathers", &json!([]));
    gathers["aggregationRule"] = json!({});
    let nothing = server.send("POST", &format!("{RBAC}/clusterroles"), &[JSON], Some(gathers.to_string().as_bytes()));
    let message = r#"ClusterRole.rbac.authorization.k8s.io "gathers" is invalid: aggregationRule.clusterRoleSelectors: Required value: at least one clusterRoleSelector required if aggregationRule is non-nil"#;
    assert_eq!((nothing.status, nothing.json()["message"].as_str()), (422, Some(message)));
    gathers["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]});
    check_forbidden(
        &send_as(&server, "jane", "POST", &format!("{RBAC}/clusterroles"), Some(&gathers)),
        r#"clusterroles.rbac.authorization.k8s.io "gathers" is forbidden: must have cluster-admin privileges to use the aggregationRule"#,
    );
}

#[test]
fn roles_gather_the_rules_of_others() {
    let (server, _folder) = start();
    let view = format!("{RBAC}/clusterroles/view");
    let rules = |answer: &Answer| answer.json()["rules"].as_array().map_or(0, Vec::len);
    let before = rules(&server.send("GET", &view, &[], None));
    assert_ne!(before, 0, "the default roles are whole from the first request");
    let mut part =
        role("widgets", &json!([{"apiGroups": ["example.com"], "resources": ["widgets"], "verbs": ["get"]}]));
    part["metadata"]["labels"] = json!({"rbac.authorization.k8s.io/aggregate-to-view": "true"});
    make(&server, &format!("{RBAC}/clusterroles"), &part);
    // From view into edit, and on into admin.
    wait_for(&server, &view, |answer| rules(answer) == before + 1);
    let has_widgets = |answer: &Answer| answer.json()["rules"].to_string().contains("widgets");
    wait_for(&server, &format!("{RBAC}/clusterroles/admin"), has_widgets);
    assert_eq!(server.send("DELETE", &format!("{RBAC}/clusterroles/widgets"), &[], None).status, 200);
    wait_for(&server, &format!("{RBAC}/clusterroles/admin"), |answer| !has_widgets(answer));
    // What a hand adds is taken out again.
    let patch = json!({"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]});
    let headers = [("Content-Type", "application/merge-patch+json")];
    assert_eq!(server.send("PATCH", &view, &headers, Some(patch.to_string().as_bytes())).status, 200);
    wait_for(&server, &view, |answer| rules(answer) == before);
}

#[test]
fn a_put_or_patch_that_creates_takes_the_right_to_create() {
    let (server, _folder) = start();
    let rules =
        |verbs: &[&str]| json!([{"apiGroups": ["", "coordination.k8s.io"], "resources": ["*"], "verbs": verbs}]);
    make(&server, &roles(), &role("changes", &rules(&["update", "patch"])));
    make(&server, &bindings(), &binding("changes", "Role", "changes", "jane"));
    let lease = "/apis/coordination.k8s.io/v1/namespaces/default/leases/a";
    let object =
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "a"}, "spec": {}});
    let refusal = r#"leases.coordination.k8s.io "a" is forbidden: "#;
    check_forbidden(&send_as(&server, "jane", "PUT", lease, Some(&object)), refusal);
    let apply = || {
        let headers = [("Content-Type", "application/apply-patch+yaml"), ("Impersonate-User", "jane")];
        server.send("PATCH", &format!("{lease}?fieldManager=t"), &headers, Some(object.to_string().as_bytes()))
    };
    check_forbidden(&apply(), refusal);
    let role = role("changes", &rules(&["update", "patch", "create"]));
    let changed = server.send("PUT", &format!("{}/changes", roles()), &[JSON], Some(role.to_string().as_bytes()));
    assert_eq!(changed.status, 200);
    assert_eq!(apply().status, 201);
}

#[test]
fn rights_to_be_somebody_are_checked() {
    let (server, _folder) = start();
    let rules = json!([
        {"apiGroups": [""], "resources": ["users"], "verbs": ["impersonate"], "resourceNames": ["joe"]},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]},
    ]);
    make(&server, &format!("{RBAC}/clusterroles"), &role("joes", &rules));
    make(&server, &format!("{RBAC}/clusterrolebindings"), &binding("joes", "ClusterRole", "joes", "jane"));
    let question = |user: &str| {
        let asks = json!({"spec": {"user": "jane", "resourceAttributes": {
            "verb": "impersonate", "resource": "users", "name": user, "version": "v1"}}});
        let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        let answer = server.send("POST", path, &[JSON], Some(asks.to_string().as_bytes()));
        answer.json()["status"].clone()
    };
    let reason = r#"RBAC: allowed by ClusterRoleBinding "joes" of ClusterRole "joes" to User "jane""#;
    assert_eq!(question("joe"), json!({"allowed": true, "reason": reason}));
    assert_eq!(question("ann"), json!({"allowed": false}));
    let bare = server.send("GET", CONFIG_MAPS, &[("Impersonate-Group", "dev")], None);
    assert_eq!(bare.status, 400);
    let message = bare.json()["message"].to_string();
    assert!(message.contains("without impersonating a user name"), "{message}");
}

#[test]
fn the_audit_log_tells_in_whose_name() {
    let folder = Folder::for_test();
    let path = folder.0.join("audit.log");
    let log = path.to_str().expect("it is text");
    let arguments = ["--store", "memory", "--authorization-mode=RBAC", "--audit-log-path", log];
    let server = Server::start(&folder.0, &arguments);
    let headers = [("Impersonate-User", "jane"), ("Impersonate-Extra-Acme.com%2fTeam", "x"), ("Audit-Id", "mine")];
    assert_eq!(server.send("GET", CONFIG_MAPS, &headers, None).status, 403);
    let figures = server.send("GET", "/metrics", &[], None);
    let figures = String::from_utf8_lossy(&figures.body).into_owned();
    let line = r#"apiserver_impersonation_attempts_total{mode="user-info",decision="allowed"} 1"#;
    assert!(figures.lines().any(|found| found == line), "{figures}");
    server.terminate();
    let text = std::fs::read_to_string(&path).expect("it is there");
    let mut events = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("each line is JSON"));
    let last = events.rfind(|event| event["auditID"] == "mine").expect("it is told");
    let impersonated =
        json!({"username": "jane", "groups": ["system:authenticated"], "extra": {"acme.com/team": ["x"]}});
    assert_eq!(last["impersonatedUser"], impersonated);
    assert_eq!(last["authenticationMetadata"], json!({"impersonationConstraint": "impersonate:user-info"}));
    assert_eq!(last["user"]["username"], "system:unsecured");
    assert_eq!(last["annotations"]["authorization.k8s.io/decision"], "forbid");
}

/// The model of `rbac_model`, asked through the server.
#[test]
fn the_server_answers_reviews_as_the_documentation_says() {
    const REQUESTS: usize = 300;
    let folder = Folder::for_test();
    let arguments =
        ["--store", "memory", "--authorization-mode=RBAC", "--disable-admission-plugins=NamespaceLifecycle"];
    let server = Server::start(&folder.0, &arguments);
    let mut random = Random(7);
    let mut world = World::new();
    for _ in 0..60 {
        let (key, object) = rbac_object(&mut random);
        let kind = object["kind"].as_str().expect("it is made so").to_lowercase();
        let metadata = &object["metadata"];
        let path = match metadata["namespace"].as_str() {
            None | Some("") => format!("{RBAC}/{kind}s"),
            Some(namespace) => format!("{RBAC}/namespaces/{namespace}/{kind}s"),
        };
        let name = metadata["name"].as_str().expect("it is made so");
        server.send("DELETE", &format!("{path}/{name}"), &[], None);
        world.remove(&key);
        // Some are invalid.
        if server.send("POST", &path, &[JSON], Some(object.to_string().as_bytes())).status == 201 {
            world.insert(key, object);
        }
    }
    assert!(world.len() > 15, "{} objects are there", world.len());
    let mut allowed = 0;
    for _ in 0..REQUESTS {
        let asked = request(&mut random);
        let mut spec = json!({"user": asked.user, "groups": asked.groups});
        match asked.path.as_str() {
            "" => {
                spec["resourceAttributes"] = json!({
                    "verb": asked.verb, "group": asked.group, "resource": asked.resource,
                    "subresource": asked.subresource, "namespace": asked.namespace, "name": asked.name,
                });
            }
            path => spec["nonResourceAttributes"] = json!({"verb": asked.verb, "path": path}),
        }
        let review = json!({"spec": spec}).to_string();
        let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        let answer = server.send("POST", path, &[JSON], Some(review.as_bytes())).json();
        let expected = is_allowed(&world, &asked);
        allowed += usize::from(expected);
        assert_eq!(answer["status"]["allowed"], expected, "{asked:?} in {world:#?}: {answer}");
    }
    assert!((REQUESTS / 50..REQUESTS).contains(&allowed), "{allowed} are allowed");
}

#[test]
fn what_one_server_grants_or_takes_counts_for_the_other_at_once() {
    let Some(url) = new_database() else { return };
    let folder = Folder::for_test();
    let start = |name: &str| Server::start(&folder.0.join(name), &["--store", &url, "--authorization-mode=RBAC"]);
    let (one, other) = (start("one"), start("other"));
    let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}]);
    make(&one, &roles(), &role("reader", &rules));
    for round in 0..10 {
        let (from, to) = if round % 2 == 0 { (&one, &other) } else { (&other, &one) };
        make(from, &bindings(), &binding("reader", "Role", "reader", "jane"));
        assert_eq!(send_as(to, "jane", "GET", CONFIG_MAPS, None).status, 200, "{round}");
        assert_eq!(from.send("DELETE", &format!("{}/reader", bindings()), &[], None).status, 200);
        assert_eq!(send_as(to, "jane", "GET", CONFIG_MAPS, None).status, 403, "{round}");
    }
}

#[test]
fn kubectl_grants_asks_and_acts_for_others() {
    let (server, folder) = start();
    let Some(kubectl) = Kubectl::of(&server) else { return };
    assert_eq!(kubectl.run("auth can-i list configmaps --as jane").stdout, "no\n");
    kubectl
        .ok("create rolebinding viewers --clusterrole=view --user=jane --group=dev --serviceaccount=default:default");
    assert_eq!(kubectl.ok("auth can-i list configmaps --as jane"), "yes\n");
    assert_eq!(kubectl.run("auth can-i list secrets --as jane").stdout, "no\n");
    assert_eq!(kubectl.run("auth can-i list configmaps --as jane -n kube-system").stdout, "no\n");
    assert_eq!(kubectl.ok("auth can-i list configmaps --as joe --as-group dev"), "yes\n");
    assert_eq!(kubectl.ok("auth can-i list configmaps --as system:serviceaccount:default:default"), "yes\n");
    let all = kubectl.ok("auth can-i --list --as jane");
    assert!(all.contains("configmaps") && all.contains("selfsubjectreviews.authentication.k8s.io"), "{all}");
    let whoami = kubectl.ok("auth whoami --as jane --as-group dev --as-uid u-1");
    assert!(
        whoami.contains("jane") && whoami.contains("[dev system:authenticated]") && whoami.contains("u-1"),
        "{whoami}"
    );
    let refused = kubectl.fails("get secrets --as jane");
    assert!(refused.contains(r#"secrets is forbidden: User "jane" cannot list resource "secrets""#), "{refused}");
    kubectl.ok("get configmaps --as jane");
    kubectl.ok("create clusterrole widgets --verb=get --resource=configmaps");
    kubectl.ok("create clusterrolebinding widgets --clusterrole=widgets --group=ops");
    assert_eq!(kubectl.ok("auth can-i get configmaps --as joe --as-group ops -A"), "yes\n");
    let file = folder.0.join("role.yaml");
    let wanted = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: widgets}\n\
                  rules: [{apiGroups: [''], resources: [configmaps], verbs: [get, list]}]\n";
    std::fs::write(&file, wanted).expect("the folder is ours");
    let reconciled = kubectl.ok(&format!("auth reconcile -f {}", file.display()));
    assert!(reconciled.contains("clusterrole.rbac.authorization.k8s.io/widgets reconciled"), "{reconciled}");
    assert_eq!(kubectl.ok("auth can-i list configmaps --as joe --as-group ops -A"), "yes\n");
}
