//! Questions about who is who and who may do what, in JSON, in protobuf, and by kubectl.

use k8s_pb::api::authorization::v1::SelfSubjectAccessReview;
use prost::Message as _;
use serde_json::{Value, json};

use crate::kubectl::Kubectl;
use crate::server::{Answer, Folder, Server};

const ACCESS: &str = "/apis/authorization.k8s.io/v1";
const IDENTITY: &str = "/apis/authentication.k8s.io/v1";

fn memory(folder: &Folder) -> Server {
    Server::start(&folder.0, &["--store", "memory"])
}

fn ask(server: &Server, path: &str, question: &Value) -> Answer {
    server.send("POST", path, &[("Content-Type", "application/json")], Some(question.to_string().as_bytes()))
}

#[track_caller]
fn check_status(answer: &Answer, expected: &Value) {
    assert_eq!((answer.status, &answer.json()["status"]), (201, expected), "{}", answer.json());
}

#[track_caller]
fn check_refused(answer: &Answer, status: u16, message: &str) {
    assert_eq!((answer.status, answer.json()["message"].as_str()), (status, Some(message)));
}

#[test]
fn a_user_is_told_who_they_are() {
    let folder = Folder::for_test();
    let server = memory(&folder);
    let answer = ask(&server, &format!("{IDENTITY}/selfsubjectreviews"), &json!({}));
    let user = &answer.json()["status"]["userInfo"];
    assert!(user["groups"].as_array().is_some_and(|groups| groups.contains(&json!("system:masters"))), "{user}");
    assert!(answer.json()["metadata"]["creationTimestamp"].is_string());
}

#[test]
fn an_administrator_may_do_everything_and_a_stranger_nothing() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory", "--authorization-mode=RBAC"]);
    let wish = json!({"verb": "delete", "group": "example.com", "resource": "widgets", "namespace": "default"});
    let own =
        ask(&server, &format!("{ACCESS}/selfsubjectaccessreviews"), &json!({"spec": {"resourceAttributes": wish}}));
    check_status(&own, &json!({"allowed": true}));
    let path = ask(
        &server,
        &format!("{ACCESS}/selfsubjectaccessreviews"),
        &json!({"spec": {"nonResourceAttributes": {"verb": "get", "path": "/metrics"}}}),
    );
    check_status(&path, &json!({"allowed": true}));
    let other = json!({"spec": {"user": "jane", "resourceAttributes": wish}});
    check_status(&ask(&server, &format!("{ACCESS}/subjectaccessreviews"), &other), &json!({"allowed": false}));
    let masters = json!({"spec": {"groups": ["system:masters"], "resourceAttributes": wish}});
    check_status(&ask(&server, &format!("{ACCESS}/subjectaccessreviews"), &masters), &json!({"allowed": true}));
    let local = format!("{ACCESS}/namespaces/default/localsubjectaccessreviews");
    check_status(&ask(&server, &local, &masters), &json!({"allowed": true}));
    let rules = ask(&server, &format!("{ACCESS}/selfsubjectrulesreviews"), &json!({"spec": {"namespace": "default"}}));
    let status = &rules.json()["status"];
    assert_eq!(status["resourceRules"][0], json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}));
    assert_eq!(status["nonResourceRules"][0], json!({"verbs": ["*"], "nonResourceURLs": ["*"]}));
    // Where nobody asks for roles, that is all.
    let everything = json!({
        "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
        "incomplete": false,
    });
    drop(server);
    let server = memory(&folder);
    let rules = ask(&server, &format!("{ACCESS}/selfsubjectrulesreviews"), &json!({"spec": {"namespace": "default"}}));
    check_status(&rules, &everything);
}

#[test]
fn questions_that_contradict_themselves_are_refused() {
    let folder = Folder::for_test();
    let server = memory(&folder);
    let reviews = |name: &str| format!("{ACCESS}/{name}");
    let neither = r#".authorization.k8s.io "" is invalid: spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified"#;
    check_refused(&ask(&server, &reviews("selfsubjectaccessreviews"), &json!({"spec": {}})), 422, neither);
    let nobody = r#".authorization.k8s.io "" is invalid: spec.user: Invalid value: "": at least one of user or group must be specified"#;
    let question = json!({"spec": {"resourceAttributes": {"verb": "get"}}});
    check_refused(&ask(&server, &reviews("subjectaccessreviews"), &question), 422, nobody);
    let both = r#".authorization.k8s.io "" is invalid: spec.nonResourceAttributes: Invalid value: {"Path":"/x","Verb":"get"}: cannot be specified in combination with resourceAttributes"#;
    let question = json!({"spec": {
        "resourceAttributes": {"verb": "get"}, "nonResourceAttributes": {"path": "/x", "verb": "get"},
    }});
    check_refused(&ask(&server, &reviews("selfsubjectaccessreviews"), &question), 422, both);
    let named = json!({"metadata": {"name": "x"}, "spec": {"user": "jane", "resourceAttributes": {"verb": "get"}}});
    let answer = ask(&server, &reviews("subjectaccessreviews"), &named);
    assert_eq!(answer.status, 422);
    assert!(answer.json()["message"].as_str().is_some_and(|message| message.ends_with(": must be empty")));
    let question = json!({"spec": {"user": "jane", "resourceAttributes": {"namespace": "other"}}});
    let elsewhere = r#".authorization.k8s.io "" is invalid: spec.resourceAttributes.namespace: Invalid value: "other": must match metadata.namespace"#;
    check_refused(&ask(&server, &reviews("namespaces/default/localsubjectaccessreviews"), &question), 422, elsewhere);
    check_refused(&ask(&server, &reviews("selfsubjectrulesreviews"), &json!({})), 400, "no namespace on request");
    let tokens = format!("{IDENTITY}/tokenreviews");
    check_refused(&ask(&server, &tokens, &json!({})), 400, "token is required for TokenReview in authentication");
}

#[test]
fn questions_are_asked_and_not_read() {
    let folder = Folder::for_test();
    let server = memory(&folder);
    for path in [format!("{ACCESS}/selfsubjectaccessreviews"), format!("{IDENTITY}/tokenreviews")] {
        let message = "the server does not allow this method on the requested resource";
        check_refused(&server.send("GET", &path, &[], None), 405, message);
    }
    let unknown = ask(&server, &format!("{IDENTITY}/tokenreviews"), &json!({"spec": {"token": "nobody's"}}));
    check_status(&unknown, &json!({"user": {}, "error": "invalid bearer token"}));
}

#[test]
fn the_user_of_a_token_is_told_with_its_audiences() {
    let folder = Folder::for_test();
    let file = folder.0.join("tokens.csv");
    std::fs::write(&file, "s3cret,jane,u-1,dev\n").expect("the folder is ours");
    let arguments = ["--store", "memory", "--token-auth-file", file.to_str().expect("the path is text")];
    let server = Server::start(&folder.0, &[&arguments[..], &["--service-account-issuer=https://api"]].concat());
    let review = |spec: Value| ask(&server, &format!("{IDENTITY}/tokenreviews"), &json!({"spec": spec})).json();
    let user = json!({"username": "jane", "uid": "u-1", "groups": ["dev", "system:authenticated"]});
    let known = json!({"authenticated": true, "user": user, "audiences": ["https://api"]});
    assert_eq!(review(json!({"token": "s3cret"}))["status"], known);
    assert_eq!(review(json!({"token": "s3cret", "audiences": ["x", "https://api"]}))["status"], known);
    let other = review(json!({"token": "s3cret", "audiences": ["x"]}));
    assert_eq!(other["status"], json!({"user": {}, "error": "invalid bearer token"}));
}

/// No policy is told what is asked. Nor is a webhook since 1.37; before it, webhooks were told as of what is stored.
#[test]
fn questions_are_told_to_no_policy_and_to_the_webhooks_of_older_minors() {
    let folder = Folder::for_test();
    check_who_is_told(&memory(&folder), false);
    let folder = Folder::for_test();
    check_who_is_told(&Server::start(&folder.0, &["--store", "memory", "--emulated-version=1.36"]), true);
}

#[track_caller]
fn check_who_is_told(server: &Server, webhooks_are: bool) {
    let ask = |path: &str, body: &Value| ask(server, path, body);
    let configurations = "/apis/admissionregistration.k8s.io/v1";
    let rule = json!({"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]});
    let policy = json!({
        "metadata": {"name": "nothing"},
        "spec": {
            "matchConstraints": {"resourceRules": [rule.clone()]}, "validations": [{"expression": "false"}],
            "matchConditions": [{"name": "questions", "expression": "request.resource.resource.endsWith('reviews')"}],
        },
    });
    let binding =
        json!({"metadata": {"name": "nothing"}, "spec": {"policyName": "nothing", "validationActions": ["Deny"]}});
    assert_eq!(ask(&format!("{configurations}/validatingadmissionpolicies"), &policy).status, 201);
    assert_eq!(ask(&format!("{configurations}/validatingadmissionpolicybindings"), &binding).status, 201);
    let question = json!({"spec": {"user": "jane", "resourceAttributes": {"verb": "get", "namespace": "gone"}}});
    // Nor is told whether a namespace is there.
    let local = format!("{ACCESS}/namespaces/gone/localsubjectaccessreviews");
    assert_eq!(ask(&local, &question).status, 201);
    let mut rule = rule;
    rule["apiGroups"] = json!(["authorization.k8s.io"]);
    let webhook = json!({
        "metadata": {"name": "nobody"},
        "webhooks": [{
            "name": "nobody.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"], "rules": [rule],
            "clientConfig": {"url": "https://127.0.0.1:1/"},
        }],
    });
    assert_eq!(ask(&format!("{configurations}/validatingwebhookconfigurations"), &webhook).status, 201);
    let answer = ask(&local, &question);
    if webhooks_are {
        let message = answer.json()["message"].as_str().unwrap_or_default().to_owned();
        assert!(answer.status == 500 && message.contains("failed calling webhook \"nobody.example.com\""), "{message}");
    } else {
        assert_eq!(answer.status, 201);
    }
    assert_eq!(ask(&format!("{IDENTITY}/selfsubjectreviews"), &json!({})).status, 201);
}

#[test]
fn typed_clients_ask_in_protobuf() {
    let folder = Folder::for_test();
    let server = memory(&folder);
    let question = json!({"spec": {"resourceAttributes": {"verb": "get", "resource": "secrets"}}});
    let headers = [("Content-Type", "application/json"), ("Accept", "application/vnd.kubernetes.protobuf")];
    let path = format!("{ACCESS}/selfsubjectaccessreviews");
    let body = server.send("POST", &path, &headers, Some(question.to_string().as_bytes())).body;
    let envelope = kubeskiff::protobuf::open(&body).expect("it is an envelope");
    let review = SelfSubjectAccessReview::decode(envelope.raw).expect("it is a message");
    assert_eq!(review.status.and_then(|status| status.allowed), Some(true));
}

#[test]
fn kubectl_knows_who_it_is_and_what_it_may() {
    let folder = Folder::for_test();
    let server = memory(&folder);
    let Some(kubectl) = Kubectl::of(&server) else { return };
    let whoami = kubectl.ok("auth whoami");
    assert!(whoami.contains("Username") && whoami.contains("system:masters"), "{whoami}");
    assert_eq!(kubectl.ok("auth can-i create configmaps"), "yes\n");
    assert_eq!(kubectl.ok("auth can-i get /metrics"), "yes\n");
    let list = kubectl.ok("auth can-i --list");
    assert!(list.contains("*.*"), "{list}");
}
