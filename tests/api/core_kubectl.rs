//! The core kinds by kubectl: create, get, describe, apply, edit, delete.

use crate::kubectl::Kubectl;
use crate::server::{Folder, Server};

/// One object of each kind, what it is to kubectl, and a change: what is replaced by what.
const OBJECTS: [(&str, &str, [&str; 2]); 5] = [
    ("configmap/a", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: old}", ["k: old", "k: new"]),
    ("secret/a", "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {k: b2xk}", ["k: b2xk", "k: bmV3"]),
    (
        "serviceaccount/a",
        "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: a}\nsecrets: [{name: first}, {name: old}]",
        ["name: old", "name: new"],
    ),
    (
        "event/a",
        "apiVersion: v1\nkind: Event\nmetadata: {name: a}\ninvolvedObject: {namespace: default}\nmessage: old",
        ["message: old", "message: new"],
    ),
    (
        "lease.coordination.k8s.io/a",
        "apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: a}\nspec: {holderIdentity: old}",
        ["holderIdentity: old", "holderIdentity: new"],
    ),
];
const TEAM: &str = "apiVersion: v1\nkind: Namespace\nmetadata: {name: team}";

fn memory(folder: &Folder) -> Server {
    Server::start(&folder.0, &["--store", "memory"])
}

#[test]
fn kubectl_creates_shows_and_deletes_each_kind() {
    let folder = Folder::for_test();
    let server = memory(&folder);
    let Some(kubectl) = Kubectl::of(&server) else { return };
    for (name, yaml, _) in OBJECTS {
        assert_eq!(kubectl.pipe_ok(yaml, "create -f -"), format!("{name} created\n"));
        assert!(kubectl.ok(&format!("get {name}")).lines().count() == 2, "{name}");
        assert!(kubectl.ok(&format!("describe {name}")).contains("Name:"), "{name}");
        let (kind, object) = name.split_once('/').expect("the test names a kind");
        assert!(kubectl.ok(&format!("delete {name}")).starts_with(&format!("{kind} \"{object}\" deleted")));
    }
}

#[test]
fn kubectl_applies_each_kind_again_and_again() {
    let folder = Folder::for_test();
    let server = memory(&folder);
    let Some(kubectl) = Kubectl::of(&server) else { return };
    for (name, yaml, [old, new]) in OBJECTS {
        let apply = |yaml: &str| kubectl.pipe_ok(yaml, "apply -f -");
        assert_eq!(apply(yaml), format!("{name} created\n"));
        assert_eq!(apply(yaml), format!("{name} unchanged\n"));
        assert_eq!(apply(&yaml.replace(old, new)), format!("{name} configured\n"));
        let live = kubectl.ok(&format!("get {name} -o yaml"));
        assert!(live.contains(new) && !live.contains(&format!("\n- {old}")), "{live}");
    }
}

#[test]
fn kubectl_edits_each_kind_twice() {
    let folder = Folder::for_test();
    let server = memory(&folder);
    let Some(kubectl) = Kubectl::of(&server) else { return };
    for (name, yaml, [old, new]) in OBJECTS {
        kubectl.pipe_ok(yaml, "create -f -");
        for (from, to) in [(old, new), (new, old)] {
            let edited = kubectl.edit(name, from, to);
            assert_eq!(edited, format!("{name} edited\n"));
            assert!(kubectl.ok(&format!("get {name} -o yaml")).contains(to));
        }
    }
}

#[test]
fn kubectl_merges_lists_of_an_account() {
    let folder = Folder::for_test();
    let server = memory(&folder);
    let Some(kubectl) = Kubectl::of(&server) else { return };
    let (name, yaml, _) = OBJECTS[2];
    kubectl.pipe_ok(yaml, "apply -f -");
    kubectl.ok(&format!(r#"patch {name} -p {{"secrets":[{{"name":"mine"}}]}}"#));
    kubectl.pipe_ok(&yaml.replace("old", "new"), "apply -f -");
    let secrets = kubectl.ok(&format!("get {name} -o jsonpath={{.secrets[*].name}}"));
    assert_eq!(secrets, "mine first new");
}

#[test]
fn kubectl_waits_until_a_namespace_is_gone() {
    let folder = Folder::for_test();
    let server = memory(&folder);
    let Some(kubectl) = Kubectl::of(&server) else { return };
    kubectl.pipe_ok(TEAM, "apply -f -");
    for (_, yaml, _) in OBJECTS {
        kubectl.pipe_ok(&yaml.replace("namespace: default", "namespace: team"), "apply -n team -f -");
    }
    kubectl.ok("delete namespace team");
    assert!(kubectl.fails("get namespace team").contains("NotFound"));
    kubectl.pipe_ok(TEAM, "apply -f -");
    assert_eq!(kubectl.ok("get events,leases,secrets -n team"), "");
}
