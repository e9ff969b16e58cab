//! Policies and webhooks that stand in files of the server.

use serde_json::{Value, json};

use super::webhooks::{Hook, respond};
use crate::server::{Answer, Folder, Server};

const JSON: (&str, &str) = ("Content-Type", "application/json");
const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";

/// A folder with a configuration of plugins, each of which has a folder of these files.
fn configure(folder: &Folder, plugins: &[(&str, &str, &[Value])]) -> String {
    let mut told = Vec::new();
    for (plugin, kind, objects) in plugins {
        let manifests = folder.0.join(plugin);
        std::fs::create_dir_all(&manifests).expect("it is made");
        for (number, object) in objects.iter().enumerate() {
            std::fs::write(manifests.join(format!("{number}.json")), object.to_string()).expect("it is written");
        }
        let configuration =
            json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": kind, "staticManifestsDir": manifests});
        told.push(json!({"name": plugin, "configuration": configuration}));
    }
    let root = json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": told});
    let file = folder.0.join("admission.json");
    std::fs::write(&file, root.to_string()).expect("it is written");
    file.to_str().expect("it is text").to_owned()
}

/// A policy of a kind that is about these resources, and its binding.
fn policy(kind: &str, (group, resource): (&str, &str), spec: Value, binding: Value) -> [Value; 2] {
    let api_version = "admissionregistration.k8s.io/v1";
    let (mut spec, mut bound) = (spec, binding);
    spec["matchConstraints"] = json!({"resourceRules": [
        {"apiGroups": [group], "apiVersions": ["*"], "operations": ["CREATE"], "resources": [resource]},
    ]});
    bound["policyName"] = json!("guard.static.k8s.io");
    [
        json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "guard.static.k8s.io"}, "spec": spec}),
        json!({
            "apiVersion": api_version, "kind": format!("{kind}Binding"), "metadata": {"name": "bound.static.k8s.io"},
            "spec": bound,
        }),
    ]
}

fn create(server: &Server, path: &str, object: &Value) -> Answer {
    server.send("POST", path, &[JSON], Some(object.to_string().as_bytes()))
}

#[test]
fn policies_and_webhooks_of_files_act_from_the_start_on_policies_too() {
    let folder = Folder::for_test();
    let refuse = respond(|request| {
        let labelled = request["object"]["metadata"]["labels"]["case"] == "webhook";
        json!({"allowed": !labelled, "status": {"message": "not so"}})
    });
    let hook = Hook::new([("/", refuse)]);
    let denies = json!({"validations": [
        {"expression": "!has(object.metadata.labels) || !('case' in object.metadata.labels) || \
                        object.metadata.labels['case'] != 'policy'", "message": "never"},
    ]});
    let labels = "Object{metadata: Object.metadata{labels: {'made': 'so'}}}";
    let mutation = json!({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": labels}});
    let mutates = json!({"reinvocationPolicy": "Never", "mutations": [mutation]});
    let mut webhook = hook.webhook("guard.example.com", "/");
    webhook["rules"] = json!([{
        "operations": ["CREATE"], "apiGroups": ["", "admissionregistration.k8s.io"], "apiVersions": ["*"], "resources": ["*"],
    }]);
    let webhooks = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "guard.static.k8s.io"}, "webhooks": [webhook],
    });
    let validating = policy("ValidatingAdmissionPolicy", ("*", "*"), denies, json!({"validationActions": ["Deny"]}));
    let mutating = policy("MutatingAdmissionPolicy", ("", "configmaps"), mutates, json!({}));
    let file = configure(
        &folder,
        &[
            ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyConfiguration", &validating),
            ("MutatingAdmissionPolicy", "MutatingAdmissionPolicyConfiguration", &mutating),
            ("ValidatingAdmissionWebhook", "WebhookAdmissionConfiguration", &[webhooks]),
        ],
    );
    let server = Server::start(&folder.0, &["--store", "memory", "--admission-control-config-file", &file]);
    let maps = "/api/v1/namespaces/default/configmaps";
    let made = create(&server, maps, &json!({"metadata": {"name": "a"}})).json();
    assert_eq!(made["metadata"]["labels"], json!({"made": "so"}), "{made}");
    let policies = format!("{GROUP}/validatingadmissionpolicies");
    for (case, why) in [("policy", "never"), ("webhook", "not so")] {
        let labels = json!({"case": case});
        let spec = json!({
            "matchConstraints": {"resourceRules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["secrets"]},
            ]},
            "validations": [{"expression": "true"}],
        });
        let policy = json!({"metadata": {"name": "p", "labels": labels}, "spec": spec});
        let refused = create(&server, &policies, &policy);
        let message = refused.json()["message"].as_str().unwrap_or_default().to_owned();
        assert!(refused.status >= 400 && message.ends_with(why), "{message}");
    }
    // Those of files are not stored.
    assert_eq!(server.send("GET", &policies, &[], None).json()["items"], json!([]));
}

/// Objects with names of files, by their resources.
fn named_as_of_files() -> [(&'static str, Value); 4] {
    let [policy, binding] = policy(
        "ValidatingAdmissionPolicy",
        ("", "configmaps"),
        json!({"validations": [{"expression": "true"}]}),
        json!({"validationActions": ["Deny"]}),
    );
    let webhooks = json!({"metadata": {"name": "w.static.k8s.io"}, "webhooks": []});
    [
        ("validatingadmissionpolicies", policy),
        ("validatingadmissionpolicybindings", binding),
        ("validatingwebhookconfigurations", webhooks.clone()),
        ("mutatingwebhookconfigurations", webhooks),
    ]
}

#[test]
fn names_of_files_are_not_for_what_clients_make() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory"]);
    let why = "names ending with \".static.k8s.io\" are reserved for static manifest-based configurations and cannot be \
               managed via the API";
    for (resource, object) in named_as_of_files() {
        let refused = create(&server, &format!("{GROUP}/{resource}"), &object);
        let cause = &refused.json()["details"]["causes"][0];
        assert_eq!((refused.status, &cause["field"]), (422, &json!("metadata.name")), "{cause}");
        assert!(cause["message"].as_str().is_some_and(|text| text.ends_with(why)), "{cause}");
    }
}

#[test]
fn names_of_files_are_warned_of_where_they_are_not_refused() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory", "--emulated-version=1.36"]);
    let warning = "299 - \"metadata.name: names ending with \\\".static.k8s.io\\\" are reserved for static manifest-based \
                   configurations and cannot be managed via the API\"";
    for (resource, object) in named_as_of_files() {
        let made = create(&server, &format!("{GROUP}/{resource}"), &object);
        assert_eq!((made.status, made.header("warning")), (201, warning), "{resource}");
        let path = format!("{GROUP}/{resource}/{}", object["metadata"]["name"].as_str().unwrap_or_default());
        let label = json!({"metadata": {"labels": {"a": "b"}}}).to_string();
        let merge = [("Content-Type", "application/merge-patch+json")];
        let changed = server.send("PATCH", &path, &merge, Some(label.as_bytes()));
        assert_eq!((changed.status, changed.header("warning")), (200, warning), "{resource}");
    }
}

#[test]
fn a_server_does_not_start_with_a_policy_that_it_could_not_enforce() {
    let folder = Folder::for_test();
    let [policy, mut binding] = policy(
        "ValidatingAdmissionPolicy",
        ("", "configmaps"),
        json!({"validations": [{"expression": "true"}]}),
        json!({"validationActions": ["Deny"]}),
    );
    binding["spec"]["policyName"] = json!("other.static.k8s.io");
    let file = configure(
        &folder,
        &[("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyConfiguration", &[policy, binding])],
    );
    let (code, said) = Server::fail_to_start(&folder.0, &["--admission-control-config-file", &file]);
    let why = "binding \"bound.static.k8s.io\" references policy \"other.static.k8s.io\" which does not exist in the manifest \
               directory";
    assert!(code == Some(2) && said.contains(why), "{code:?} {said}");
    let (code, said) =
        Server::fail_to_start(&folder.0, &["--emulated-version", "1.36", "--admission-control-config-file", &file]);
    let why = "staticManifestsDir requires the ManifestBasedAdmissionControlConfig feature gate to be enabled";
    assert!(code == Some(2) && said.contains(why), "{code:?} {said}");
}
