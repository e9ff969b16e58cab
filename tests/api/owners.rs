//! `OwnerReferencesPermissionEnforcement`, and addresses that webhooks are never called at.

use serde_json::{Value, json};

use super::webhooks::{Hook, allow, register};
use super::{CRONTABS, crontab, serve_crontabs};
use crate::server::{Answer, Folder, Server};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
const PLUGIN: &str = "OwnerReferencesPermissionEnforcement";

/// Sends JSON in the name of jane.
fn send(server: &Server, method: &str, path: &str, body: &Value) -> Answer {
    let content_type = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let headers = [("Content-Type", content_type), ("Impersonate-User", "jane")];
    server.send(method, path, &headers, Some(body.to_string().as_bytes()))
}

fn make(server: &Server, path: &str, object: &Value) -> Value {
    let answer =
        server.send("POST", path, &[("Content-Type", "application/json")], Some(object.to_string().as_bytes()));
    assert_eq!(answer.status, 201, "{}", answer.json());
    answer.json()
}

/// A server on which jane may create and change ConfigMaps, and the reference to an owner.
fn start(arguments: &[&str]) -> (Server, Value, Folder) {
    let folder = Folder::for_test();
    let server = serve_crontabs(&folder, &[&["--store", "memory", "--authorization-mode=RBAC"], arguments].concat());
    grant(&server, "maps", &json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "patch"]}]));
    let owner = make(&server, CRONTABS, &crontab("owner"));
    let reference = json!({
        "apiVersion": "stable.example.com/v1", "kind": "CronTab", "name": "owner", "uid": owner["metadata"]["uid"],
    });
    (server, reference, folder)
}

fn grant(server: &Server, name: &str, rules: &Value) {
    make(server, &format!("{RBAC}/roles"), &json!({"metadata": {"name": name}, "rules": rules}));
    let binding = json!({
        "metadata": {"name": name}, "subjects": [{"kind": "User", "name": "jane"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
    });
    make(server, &format!("{RBAC}/rolebindings"), &binding);
}

fn owned(name: &str, reference: &Value, blocks: bool) -> Value {
    let mut reference = reference.clone();
    reference["blockOwnerDeletion"] = json!(blocks);
    json!({"metadata": {"name": name, "ownerReferences": [reference]}})
}

#[test]
fn blocking_an_owner_needs_the_right_to_update_its_finalizers() {
    let (server, reference, _folder) = start(&["--enable-admission-plugins", PLUGIN]);
    let create = |name: &str, reference: &Value, blocks| {
        let answer = send(&server, "POST", CONFIG_MAPS, &owned(name, reference, blocks));
        (answer.status, answer.json()["message"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(create("a", &reference, false).0, 201);
    let refusal = r#"configmaps "b" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>"#;
    assert_eq!(create("b", &reference, true), (403, refusal.to_owned()));
    let mut unknown = reference.clone();
    unknown["kind"] = json!("Nothing");
    let refusal = r#"configmaps "b" is forbidden: cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion stable.example.com/v1 Kind Nothing: no matches for kind "Nothing" in version "stable.example.com/v1""#;
    assert_eq!(create("b", &unknown, true), (403, refusal.to_owned()));
    // The superuser may finalize whatever there is, so nothing is looked for.
    make(&server, CONFIG_MAPS, &owned("c", &unknown, true));
    let a = format!("{CONFIG_MAPS}/a");
    let refusal = r#"configmaps "a" is forbidden: cannot set an ownerRef on a resource you can't delete: , <nil>"#;
    let patched = send(&server, "PATCH", &a, &owned("a", &reference, true));
    assert_eq!((patched.status, patched.json()["message"].as_str()), (403, Some(refusal)));
    assert_eq!(send(&server, "PATCH", &a, &json!({"data": {"x": "y"}})).status, 200, "references stay as they are");
    let rule =
        json!([{"apiGroups": ["stable.example.com"], "resources": ["crontabs/finalizers"], "verbs": ["update"]}]);
    grant(&server, "finalizers", &rule);
    assert_eq!(create("b", &reference, true).0, 201);
}

#[test]
fn by_default_owners_are_anybodys_to_name() {
    let (server, reference, _folder) = start(&[]);
    assert_eq!(send(&server, "POST", CONFIG_MAPS, &owned("a", &reference, true)).status, 201);
}

#[test]
fn a_plugin_is_on_or_off() {
    let folder = Folder::for_test();
    let both = ["--enable-admission-plugins", PLUGIN, "--disable-admission-plugins", PLUGIN];
    let (code, stderr) = Server::fail_to_start(&folder.0, &both);
    assert_eq!(code, Some(2), "{stderr}");
    assert_eq!(Server::fail_to_start(&folder.0, &["--enable-admission-plugins", "Nonsense"]).0, Some(2));
}

#[test]
fn a_webhook_is_not_called_at_a_denied_address() {
    let hook = Hook::new([("/allow", allow())]);
    for (denied, status) in [("127.0.0.0/8", 500), ("169.254.0.0/16", 201)] {
        let folder = Folder::new(&status.to_string());
        let server = serve_crontabs(&folder, &["--store", "memory", "--webhook-deny-cidr", denied]);
        register(&server, "Validating", "a", vec![hook.webhook("w.example.com", "/allow")]);
        let body = crontab("a").to_string();
        let answer = server.send("POST", CRONTABS, &[("Content-Type", "application/json")], Some(body.as_bytes()));
        assert_eq!(answer.status, status, "{}", answer.json());
        let called = !hook.take_seen().is_empty();
        assert_eq!(called, status == 201);
    }
}
