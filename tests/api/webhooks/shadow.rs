//! Definitions with the names of built-in kinds: they are stored, and that is all.

use serde_json::{Value, json};

use super::{CONFIGURATIONS, Hook, JSON, create, crontab, register, respond, start};
use crate::api::wait_for;
use crate::server::{Folder, Server};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// Without it, definitions in the groups of Kubernetes are refused.
const APPROVAL: &str = "unapproved, a test";

/// Stores a definition of `plural` in `group`, in `version`, and waits until it is established.
fn define(server: &Server, group: &str, plural: &str, version: &str) -> String {
    let name = format!("{plural}.{group}");
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": name, "annotations": {"api-approved.kubernetes.io": APPROVAL}},
        "spec": {
            "group": group, "scope": "Cluster",
            "names": {"plural": plural, "singular": "shadow", "kind": "Shadow", "listKind": "ShadowList"},
            "versions": [{"name": version, "served": true, "storage": true,
                          "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    });
    let made = server.send("POST", DEFINITIONS, &[JSON], Some(definition.to_string().as_bytes()));
    assert_eq!(made.status, 201, "{}", made.json());
    let path = format!("{DEFINITIONS}/{name}");
    wait_for(server, &path, |answer| answer.json()["status"]["conditions"].to_string().contains("Established"));
    path
}

/// Deletes the definition at `path`, and waits until it is gone.
fn undefine(server: &Server, path: &str) {
    assert_eq!(server.send("DELETE", path, &[], None).status, 200);
    wait_for(server, path, |answer| answer.status == 404);
}

#[test]
fn a_right_to_write_definitions_takes_no_webhook_away() {
    let refusing = respond(|_| json!({"allowed": false}));
    let hook = Hook::new([("/refuse", refusing)]);
    let (server, _folder) = start(&[]);
    for (kind, resource) in
        [("Validating", "validatingwebhookconfigurations"), ("Mutating", "mutatingwebhookconfigurations")]
    {
        register(&server, kind, "guard", vec![hook.webhook("w.example.com", "/refuse")]);
        let path = format!("{CONFIGURATIONS}/{resource}/guard");
        let stored = server.send("GET", &path, &[], None).json();
        for version in ["v1", "v9"] {
            let definition = define(&server, "admissionregistration.k8s.io", resource, version);
            assert_eq!(create(&server, &crontab("a")).status, 400, "{kind} webhooks are asked");
            assert_eq!(server.send("GET", &path, &[], None).json(), stored);
            undefine(&server, &definition);
        }
        assert_eq!(server.send("GET", &path, &[], None).json(), stored);
        assert_eq!(create(&server, &crontab("a")).status, 400, "{kind} webhooks are asked");
        assert_eq!(server.send("DELETE", &path, &[], None).status, 200);
    }
    assert_eq!(create(&server, &crontab("a")).status, 201);
}

#[test]
fn deleting_the_definition_of_a_built_in_name_deletes_no_object_of_that_kind() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory"]);
    let kinds = [
        ("rbac.authorization.k8s.io", "clusterroles"),
        ("events.k8s.io", "events"),
        ("coordination.k8s.io", "leases"),
        ("apiextensions.k8s.io", "customresourcedefinitions"),
    ];
    let role = json!({"metadata": {"name": "kept"}, "rules": []});
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    assert_eq!(server.send("POST", roles, &[JSON], Some(role.to_string().as_bytes())).status, 201);
    for (group, plural) in kinds {
        let definition = define(&server, group, plural, "v9");
        assert_eq!(server.send("GET", &format!("/apis/{group}/v9/{plural}"), &[], None).status, 404, "{plural}");
        let documents = server.send("GET", &format!("/apis/{group}"), &[], None).json();
        let versions = documents["versions"].as_array().map_or(&[][..], Vec::as_slice);
        assert!(versions.iter().all(|version: &Value| version["version"] != "v9"), "{documents}");
        undefine(&server, &definition);
    }
    assert_eq!(server.send("GET", &format!("{roles}/kept"), &[], None).status, 200);
}
