//! The core kinds by kubectl: create, get, describe, apply, edit, delete.

use crate::kubectl::Kubectl;
use crate::server::{Folder, Server};

/// One object of each kind, what it is to kubectl, and a change: what is replaced by what.
const OBJECTS: [(&str, &str, [&str; 2]); 12] = [
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
    (
        "event.events.k8s.io/b",
        "apiVersion: events.k8s.io/v1\nkind: Event\nmetadata: {name: b, labels: {of: old}}\n\
         eventTime: 2026-01-02T03:04:05.000006Z\nregarding: {namespace: default}\ntype: Normal\nreason: R\naction: A\n\
         reportingController: example.com/c\nreportingInstance: i",
        ["of: old", "of: new"],
    ),
    (
        "role.rbac.authorization.k8s.io/a",
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: a}\n\
         rules: [{apiGroups: [''], resources: [old], verbs: [get]}]",
        ["old", "new"],
    ),
    (
        "clusterrole.rbac.authorization.k8s.io/a",
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: a}\n\
         rules: [{nonResourceURLs: [/old], verbs: [get]}]",
        ["old", "new"],
    ),
    (
        "rolebinding.rbac.authorization.k8s.io/a",
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: a}\n\
         subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: old}]\nroleRef: {kind: Role, name: a}",
        ["name: old", "name: new"],
    ),
    (
        "clusterrolebinding.rbac.authorization.k8s.io/a",
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: a}\n\
         subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: old}]\nroleRef: {kind: ClusterRole, name: a}",
        ["name: old", "name: new"],
    ),
    (
        "validatingwebhookconfiguration.admissionregistration.k8s.io/a",
        "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: a}\n\
         webhooks: [{name: a.example.com, clientConfig: {url: 'https://old.example.com'}, sideEffects: None, \
         admissionReviewVersions: [v1], failurePolicy: Ignore}]",
        ["old.example", "new.example"],
    ),
    (
        "mutatingwebhookconfiguration.admissionregistration.k8s.io/a",
        "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingWebhookConfiguration\nmetadata: {name: a}\n\
         webhooks: [{name: a.example.com, clientConfig: {url: 'https://old.example.com'}, sideEffects: None, \
         admissionReviewVersions: [v1], failurePolicy: Ignore}]",
        ["old.example", "new.example"],
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
        let is_namespaced = !yaml.contains("kind: Cluster") && !yaml.contains("WebhookConfiguration");
        if is_namespaced {
            kubectl.pipe_ok(&yaml.replace("namespace: default", "namespace: team"), "apply -n team -f -");
        }
    }
    kubectl.ok("delete namespace team");
    assert!(kubectl.fails("get namespace team").contains("NotFound"));
    kubectl.pipe_ok(TEAM, "apply -f -");
    assert_eq!(kubectl.ok("get events,leases,secrets,roles,rolebindings -n team"), "");
}

#[test]
fn kubectl_makes_the_core_kinds_by_their_generators() {
    let folder = Folder::for_test();
    let server = memory(&folder);
    let Some(kubectl) = Kubectl::of(&server) else { return };
    let write = |name: &str, text: &str| std::fs::write(folder.0.join(name), text).expect("the folder is ours");
    let pair = rcgen::generate_simple_self_signed(["example.com".to_owned()]).expect("the name is one");
    write("tls.crt", &pair.cert.pem());
    write("tls.key", &pair.signing_key.serialize_pem());
    write("app.properties", "colour=blue");
    assert_eq!(kubectl.ok("create namespace team"), "namespace/team created\n");
    for (command, created) in [
        ("configmap a --from-literal=k=v --from-file=app.properties", "configmap/a"),
        ("secret generic a --from-literal=k=v", "secret/a"),
        ("secret docker-registry b --docker-server=r.example.com --docker-username=u --docker-password=p", "secret/b"),
        ("secret tls c --cert=tls.crt --key=tls.key", "secret/c"),
        ("serviceaccount builder", "serviceaccount/builder"),
        ("role reader --verb=get,list --resource=configmaps", "role.rbac.authorization.k8s.io/reader"),
        (
            "rolebinding reader --role=reader --serviceaccount=team:builder",
            "rolebinding.rbac.authorization.k8s.io/reader",
        ),
    ] {
        assert_eq!(kubectl.ok(&format!("create -n team {command}")), format!("{created} created\n"));
    }
    let types = kubectl.ok("get secrets -n team -o jsonpath={.items[*].type}");
    assert_eq!(types, "Opaque kubernetes.io/dockerconfigjson kubernetes.io/tls");
    assert!(kubectl.ok("describe configmap a -n team").contains("colour=blue"));
    assert!(kubectl.ok("describe secret c -n team").contains("kubernetes.io/tls"));
    assert!(kubectl.ok("describe serviceaccount builder -n team").contains("builder"));
    let wide = kubectl.ok("get rolebindings -n team -o wide");
    assert!(wide.contains("Role/reader") && wide.contains("team/builder"), "{wide}");
    kubectl.ok("create clusterrole admin --verb=* --resource=*.*");
    kubectl.ok("create clusterrolebinding admin --clusterrole=admin --user=jane --group=ops");
    let wide = kubectl.ok("get clusterrolebindings admin -o wide");
    assert!(wide.contains("ClusterRole/admin") && wide.contains("jane") && wide.contains("ops"), "{wide}");
}

#[test]
fn kubectl_creates_a_list_of_kinds() {
    let folder = Folder::for_test();
    let server = memory(&folder);
    let Some(kubectl) = Kubectl::of(&server) else { return };
    let list = "apiVersion: v1\nkind: List\nitems:\n\
        - {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: v}}\n\
        - {apiVersion: v1, kind: ServiceAccount, metadata: {name: b}}\n\
        - {apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: c}, spec: {holderIdentity: me}}\n";
    let created = "configmap/a created\nserviceaccount/b created\nlease.coordination.k8s.io/c created\n";
    assert_eq!(kubectl.pipe_ok(list, "create -f -"), created);
    assert_eq!(kubectl.pipe_ok(list, "delete -f -").lines().count(), 3);
}

#[test]
fn kubectl_shows_nodes_and_api_services() {
    let folder = Folder::for_test();
    let server = memory(&folder);
    let Some(kubectl) = Kubectl::of(&server) else { return };
    let node = "apiVersion: v1\nkind: Node\nmetadata: {name: n1, labels: {node-role.kubernetes.io/worker: ''}}\n\
        status: {capacity: {cpu: 2000m}, nodeInfo: {kubeletVersion: v1.37.2}, conditions: [{type: Ready, status: 'True'}], \
        addresses: [{type: InternalIP, address: 10.0.0.1}]}";
    assert_eq!(kubectl.pipe_ok(node, "create -f -"), "node/n1 created\n");
    let columns = |text: &str| -> Vec<String> {
        let line = text.lines().nth(1).unwrap_or_default();
        line.split_whitespace().map(str::to_owned).collect()
    };
    let shown = columns(&kubectl.ok("get nodes"));
    assert_eq!((&*shown[1], &*shown[2], &*shown[4]), ("Ready", "worker", "v1.37.2"));
    assert_eq!(columns(&kubectl.ok("get nodes -o wide"))[5..7], ["10.0.0.1", "<none>"]);
    kubectl.ok("cordon n1");
    assert_eq!(columns(&kubectl.ok("get nodes"))[1], "Ready,SchedulingDisabled");
    kubectl.ok("taint nodes n1 dedicated=tests:NoSchedule");
    assert_eq!(kubectl.ok("get node n1 -o jsonpath={.status.allocatable.cpu}"), "2");
    let services = kubectl.ok("get apiservices");
    for name in ["v1.", "v1.apiextensions.k8s.io", "v1.rbac.authorization.k8s.io"] {
        let line = services.lines().find(|line| line.split_whitespace().next() == Some(name)).expect("it is served");
        assert_eq!(columns(&format!("\n{line}"))[1..3], ["Local", "True"]);
    }
    assert!(kubectl.ok("wait --for=condition=Available apiservice/v1.").contains("condition met"));
}
