//! What a kubelet may write, case by case.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::server::{Answer, Folder, Server};

const JSON: (&str, &str) = ("Content-Type", "application/json");
const MERGE: (&str, &str) = ("Content-Type", "application/merge-patch+json");
const NODE: [(&str, &str); 2] = [("Impersonate-User", "system:node:a"), ("Impersonate-Group", "system:nodes")];
const NAMELESS: [(&str, &str); 2] = [("Impersonate-User", "system:node:"), ("Impersonate-Group", "system:nodes")];
const PODS: &str = "/api/v1/namespaces/default/pods";
const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";
const TOKEN: &str = "/api/v1/namespaces/default/serviceaccounts/builder/token";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces";
const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

/// A server with two nodes, a pod on each of them, a pod on none, and a claim.
struct Cluster {
    server: Server,
    _folder: Folder,
    node_uid: String,
    pod_uids: [String; 3],
}

impl Cluster {
    fn start() -> Self {
        let folder = Folder::for_test();
        let arguments =
            ["--store", "memory", "--enable-admission-plugins", "NodeRestriction", "--authorization-mode=RBAC"];
        let server = Server::start(&folder.0, &arguments);
        let make = |path: &str, object: Value| {
            let made = server.send("POST", path, &[JSON], Some(object.to_string().as_bytes()));
            assert_eq!(made.status, 201, "{}", made.json());
            made.json()["metadata"]["uid"].as_str().unwrap_or_default().to_owned()
        };
        // A kubelet is asked by this plugin alone; all but its audiences is allowed to it.
        let verbs = ["get", "create", "update", "patch", "delete"];
        let rule = json!({"apiGroups": ["*"], "resources": ["*"], "verbs": verbs});
        let roles = "/apis/rbac.authorization.k8s.io/v1";
        make(&format!("{roles}/clusterroles"), json!({"metadata": {"name": "kubelet"}, "rules": [rule]}));
        let binding = json!({
            "metadata": {"name": "kubelet"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "kubelet"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:nodes"}],
        });
        make(&format!("{roles}/clusterrolebindings"), binding);
        let taint = json!({"key": "k", "effect": "NoSchedule"});
        let node = json!({"metadata": {"name": "a"}, "spec": {"taints": [taint]}});
        let node_uid = make("/api/v1/nodes", node);
        make("/api/v1/nodes", json!({"metadata": {"name": "b"}}));
        make("/api/v1/namespaces/default/serviceaccounts", json!({"metadata": {"name": "builder"}}));
        let pod_uids = [("mine", "a"), ("other", "b"), ("waiting", "")].map(|(name, node)| {
            let sources = json!([{"serviceAccountToken": {"path": "t", "audience": "vault"}}]);
            let spec = json!({
                "nodeName": node, "serviceAccountName": "builder", "containers": [{"name": "c", "image": "i"}],
                "volumes": [{"name": "v", "projected": {"sources": sources}}, {"name": "w", "csi": {"driver": "d"}}],
            });
            make(PODS, json!({"metadata": {"name": name}, "spec": spec}))
        });
        let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
        make(CLAIMS, json!({"metadata": {"name": "claim"}, "spec": spec}));
        let driver = json!({"metadata": {"name": "d"}, "spec": {"tokenRequests": [{"audience": "disks"}]}});
        make("/apis/storage.k8s.io/v1/csidrivers", driver);
        make("/apis/storage.k8s.io/v1/csinodes", json!({"metadata": {"name": "b"}, "spec": {"drivers": []}}));
        let slice = |name: &str, node: &str| {
            let pool = json!({"name": "p", "resourceSliceCount": 1});
            json!({"metadata": {"name": name}, "spec": {"driver": "d.io", "nodeName": node, "pool": pool}})
        };
        make("/apis/resource.k8s.io/v1/resourceslices", slice("theirs", "b"));
        Cluster { server, _folder: folder, node_uid, pod_uids }
    }

    fn as_node(&self, method: &str, path: &str, object: &Value) -> Answer {
        let content = if method == "PATCH" { MERGE } else { JSON };
        self.server.send(method, path, &[&NODE[..], &[content]].concat(), Some(object.to_string().as_bytes()))
    }

    #[track_caller]
    fn check_refused(&self, (method, path, object): (&str, &str, Value), expected: &str) {
        let answer = self.as_node(method, path, &object);
        assert_eq!(answer.json()["message"].as_str(), Some(expected), "{method} {path} {object}");
    }

    #[track_caller]
    fn check_allowed(&self, (method, path, object): (&str, &str, Value)) {
        let answer = self.as_node(method, path, &object);
        assert!(matches!(answer.status, 200 | 201), "{method} {path} {object}: {}", answer.json());
    }

    /// A pod by which the node shows what it runs by itself, with some fields of its metadata and spec changed.
    fn mirror(&self, metadata: Value, spec: Value) -> Value {
        let owner = json!({"apiVersion": "v1", "kind": "Node", "name": "a", "uid": self.node_uid, "controller": true});
        let mut pod = json!({
            "metadata": {
                "name": "m", "annotations": {"kubernetes.io/config.mirror": "x"}, "ownerReferences": [owner],
            },
            "spec": {"nodeName": "a", "containers": [{"name": "c", "image": "i"}]},
        });
        for (part, changes) in [("metadata", metadata), ("spec", spec)] {
            for (name, value) in changes.as_object().into_iter().flatten() {
                pod[part][name] = value.clone();
            }
        }
        pod
    }
}

#[test]
fn a_node_shows_what_it_runs_by_itself_and_no_other_pods() {
    let cluster = Cluster::start();
    let owner = |changes: Value| {
        let mut owner =
            json!({"apiVersion": "v1", "kind": "Node", "name": "a", "uid": cluster.node_uid, "controller": true});
        for (name, value) in changes.as_object().into_iter().flatten() {
            owner[name] = value.clone();
        }
        owner
    };
    let none = || json!({});
    let volume = |source: Value| {
        let mut volume = source;
        volume["name"] = json!("v");
        json!({"volumes": [volume]})
    };
    let env = json!({"containers": [{"name": "c", "image": "i", "envFrom": [{"configMapRef": {"name": "x"}}]}]});
    let cases = [
        (
            json!({"annotations": {}}),
            none(),
            "pod does not have \"kubernetes.io/config.mirror\" annotation, node \"a\" can only create mirror pods",
        ),
        (none(), json!({"nodeName": "b"}), "node \"a\" can only create pods with spec.nodeName set to itself"),
        (
            json!({"ownerReferences": []}),
            none(),
            "node \"a\" can only create pods with an owner reference set to itself",
        ),
        (
            json!({"ownerReferences": [owner(none()), owner(json!({"uid": "u", "controller": false}))]}),
            none(),
            "node \"a\" can only create pods with a single owner reference set to itself",
        ),
        (
            json!({"ownerReferences": [owner(json!({"name": "b"}))]}),
            none(),
            "node \"a\" can only create pods with an owner reference set to itself",
        ),
        (
            json!({"ownerReferences": [owner(json!({"controller": false}))]}),
            none(),
            "node \"a\" can only create pods with a controller owner reference set to itself",
        ),
        (
            json!({"ownerReferences": [owner(json!({"blockOwnerDeletion": true}))]}),
            none(),
            "node \"a\" must not set blockOwnerDeletion on an owner reference",
        ),
        (
            none(),
            json!({"serviceAccountName": "builder"}),
            "node \"a\" can not create pods that reference serviceaccounts",
        ),
        (none(), json!({"imagePullSecrets": [{"name": "s"}]}), "node \"a\" can not create pods that reference secrets"),
        (none(), env, "node \"a\" can not create pods that reference configmaps"),
        (
            none(),
            volume(json!({"persistentVolumeClaim": {"claimName": "claim"}})),
            "node \"a\" can not create pods that reference persistentvolumeclaims",
        ),
        (
            none(),
            volume(json!({"csi": {"driver": "d"}})),
            "node \"a\" can not create pods that reference csidrivers (via CSI volumes)",
        ),
        (
            none(),
            volume(json!({"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}})),
            "node \"a\" can not create pods that reference serviceaccounts (via projected volumes)",
        ),
        (
            none(),
            json!({"resourceClaims": [{"name": "r", "resourceClaimName": "x"}]}),
            "node \"a\" can not create pods that reference resourceclaims",
        ),
    ];
    for (metadata, spec, why) in cases {
        let pod = cluster.mirror(metadata, spec);
        cluster.check_refused(("POST", PODS, pod), &format!("pods \"m\" is forbidden: {why}"));
    }
    let other = cluster.mirror(json!({"ownerReferences": [owner(json!({"uid": "u"}))]}), none());
    let why = format!("pods \"m\" is forbidden: node a UID mismatch: expected u got {}", cluster.node_uid);
    cluster.check_refused(("POST", PODS, other), &why);
    cluster.check_allowed(("POST", PODS, cluster.mirror(none(), volume(json!({"hostPath": {"path": "/"}})))));
    let nameless = [&NAMELESS[..], &[JSON]].concat();
    let refused =
        cluster.server.send("POST", PODS, &nameless, Some(cluster.mirror(none(), none()).to_string().as_bytes()));
    let why = "pods \"m\" is forbidden: could not determine node from user \"system:node:\"";
    assert_eq!(refused.json()["message"], why);
}

#[test]
fn a_node_changes_its_own_pods_alone() {
    let cluster = Cluster::start();
    let pod = |name: &str, part: &str| format!("{PODS}/{name}{part}");
    let eviction = |name: &str| json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}});
    let labels = json!({"metadata": {"labels": {"a": "b"}}});
    let claims = json!({"status": {"resourceClaimStatuses": [{"name": "r", "resourceClaimName": "x"}]}});
    for ((method, path, object), why) in [
        (
            ("PATCH", pod("mine", ""), labels.clone()),
            "pods \"mine\" is forbidden: unexpected operation \"UPDATE\", node \"a\" can only create and delete mirror pods",
        ),
        (
            ("PATCH", pod("other", "/status"), json!({"status": {"message": "m"}})),
            "pods \"other\" is forbidden: node \"a\" can only update pod status for pods with spec.nodeName set to itself",
        ),
        (
            ("PATCH", pod("mine", "/status"), labels),
            "pods \"mine\" is forbidden: node \"a\" cannot update labels through pod status",
        ),
        (
            ("PATCH", pod("mine", "/status"), claims),
            "pods \"mine\" is forbidden: node \"a\" cannot update resource claim statues",
        ),
        (
            ("POST", pod("other", "/eviction"), eviction("other")),
            "pods \"other\" is forbidden: node a can only evict pods with spec.nodeName set to itself",
        ),
        (("POST", pod("gone", "/eviction"), eviction("gone")), "pod \"gone\" not found"),
        (
            ("DELETE", pod("other", ""), json!({})),
            "pods \"other\" is forbidden: node \"a\" can only delete pods with spec.nodeName set to itself",
        ),
        (
            ("PATCH", pod("mine", "/ephemeralcontainers"), json!({"spec": {}})),
            "pods \"mine\" is forbidden: unexpected pod subresource \"ephemeralcontainers\", only 'status' and 'eviction' \
             are allowed",
        ),
    ] {
        cluster.check_refused((method, &path, object), why);
    }
    cluster.check_allowed(("PATCH", &pod("mine", "/status"), json!({"status": {"message": "m"}})));
    cluster.check_allowed(("DELETE", &pod("mine", ""), json!({"gracePeriodSeconds": 0})));
}

#[test]
fn a_node_gets_tokens_for_its_own_pods_and_their_audiences_alone() {
    let cluster = Cluster::start();
    let [mine, other, waiting] = cluster.pod_uids.each_ref();
    let token = |name: &str, uid: &str, audiences: Value| {
        let bound = json!({"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid});
        json!({"spec": {"boundObjectRef": bound, "audiences": audiences}})
    };
    let refused = |why: &str| format!("serviceaccounts \"builder\" is forbidden: {why}");
    let elsewhere = "node requested token bound to a pod scheduled on a different node";
    let api = "audience \"api\" not found in pod spec volume, system:node:a is not authorized to request tokens for this \
               audience";
    for (object, why) in [
        (json!({"spec": {}}), refused("node requested token not bound to a pod")),
        (token("mine", "", json!(["vault"])), refused("node requested token with a pod binding without a uid")),
        (
            token("mine", "u", json!(["vault"])),
            refused(
                "the UID in the bound object reference (u) does not match the UID in record. The object might have been \
                 deleted and then recreated",
            ),
        ),
        (token("other", other, json!(["vault"])), refused(elsewhere)),
        (token("waiting", waiting, json!(["vault"])), refused(elsewhere)),
        (token("gone", "u", json!(["vault"])), "pod \"gone\" not found".to_owned()),
        (token("mine", mine, json!(["vault", "disks"])), refused("node may only request 0 or 1 audiences")),
        (token("mine", mine, json!(["api"])), refused(api)),
    ] {
        cluster.check_refused(("POST", TOKEN, object), &why);
    }
    for audience in ["vault", "disks"] {
        cluster.check_allowed(("POST", TOKEN, token("mine", mine, json!([audience]))));
    }
}

/// What a token says, without a look at its signature.
fn claims_of(answer: &Answer) -> Value {
    let token = answer.json()["status"]["token"].as_str().unwrap_or_default().to_owned();
    let payload = token.split('.').nth(1).unwrap_or_default();
    let bytes = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(payload).expect("it is base64");
    serde_json::from_slice(&bytes).expect("it is JSON")
}

#[test]
fn a_token_that_is_bound_to_a_pod_says_where_that_runs_and_ends_with_it() {
    let cluster = Cluster::start();
    let server = &cluster.server;
    let bound = json!({"apiVersion": "v1", "kind": "Pod", "name": "mine"});
    let request = json!({"spec": {"boundObjectRef": bound}}).to_string();
    let issued = server.send("POST", TOKEN, &[JSON], Some(request.as_bytes()));
    assert_eq!(issued.status, 201, "{}", issued.json());
    let about = claims_of(&issued)["kubernetes.io"].clone();
    assert_eq!(about["pod"], json!({"name": "mine", "uid": cluster.pod_uids[0]}));
    assert_eq!(about["node"], json!({"name": "a", "uid": cluster.node_uid}));
    let review = json!({"spec": {"token": issued.json()["status"]["token"]}}).to_string();
    let ask = || {
        let answer =
            server.send("POST", "/apis/authentication.k8s.io/v1/tokenreviews", &[JSON], Some(review.as_bytes()));
        answer.json()["status"].clone()
    };
    let known = ask();
    assert_eq!(known["user"]["extra"]["authentication.kubernetes.io/pod-name"], json!(["mine"]), "{known}");
    assert_eq!(known["user"]["extra"]["authentication.kubernetes.io/node-name"], json!(["a"]));
    let now = json!({"gracePeriodSeconds": 0}).to_string();
    assert_eq!(server.send("DELETE", &format!("{PODS}/mine"), &[JSON], Some(now.as_bytes())).status, 200);
    assert_ne!(ask()["authenticated"], json!(true));
    let others = "/api/v1/namespaces/default/serviceaccounts";
    assert_eq!(
        server.send("POST", others, &[JSON], Some(json!({"metadata": {"name": "x"}}).to_string().as_bytes())).status,
        201
    );
    let bound = json!({"apiVersion": "v1", "kind": "Pod", "name": "other"});
    let request = json!({"spec": {"boundObjectRef": bound}}).to_string();
    let refused = server.send("POST", &format!("{others}/x/token"), &[JSON], Some(request.as_bytes()));
    let why = "cannot bind token for serviceaccount \"x\" to pod running with different serviceaccount name.";
    assert_eq!((refused.status, &refused.json()["message"]), (400, &json!(why)));
}

#[test]
fn a_node_writes_about_itself_alone() {
    let cluster = Cluster::start();
    let node = |name: &str, metadata: Value, spec: Value| {
        let mut metadata = metadata;
        metadata["name"] = json!(name);
        json!({"metadata": metadata, "spec": spec})
    };
    let none = || json!({});
    let source = json!({"configSource": {"configMap": {
        "name": "c", "namespace": "n", "kubeletConfigKey": "k",
    }}});
    let lease = |name: &str| json!({"metadata": {"name": name}, "spec": {}});
    let csi_node = |name: &str| json!({"metadata": {"name": name}, "spec": {"drivers": []}});
    let slice = |name: &str, node: &str| {
        let pool = json!({"name": "p", "resourceSliceCount": 1});
        json!({"metadata": {"name": name}, "spec": {"driver": "d.io", "nodeName": node, "pool": pool}})
    };
    let (slices, csi_nodes) = ("/apis/resource.k8s.io/v1/resourceslices", "/apis/storage.k8s.io/v1/csinodes");
    let (own_leases, others) = (format!("{LEASES}/kube-node-lease/leases"), format!("{LEASES}/default/leases"));
    let role = json!({"labels": {"node-role.kubernetes.io/master": "", "team.node-restriction.kubernetes.io/a": "b"}});
    let owner = json!({"apiVersion": "v1", "kind": "Node", "name": "b", "uid": "u"});
    let claim_status = format!("{CLAIMS}/claim/status");
    let slice_refused = |verb: &str, name: &str| {
        format!(
            "resourceslices.resource.k8s.io \"{name}\" is forbidden: can only {verb} ResourceSlice with the same NodeName as \
             the requesting node"
        )
    };
    let claim_refused = "persistentvolumeclaims \"claim\" is forbidden: node \"a\" is not allowed to update fields other than \
                         status.quantity and status.conditions";
    for ((method, path, object), why) in [
        (
            ("POST", "/api/v1/nodes", node("c", none(), none())),
            "nodes \"c\" is forbidden: node \"a\" is not allowed to modify node \"c\"".to_owned(),
        ),
        (
            ("PATCH", "/api/v1/nodes/b", json!({"metadata": {"labels": {"a": "b"}}})),
            "nodes \"b\" is forbidden: node \"a\" is not allowed to modify node \"b\"".to_owned(),
        ),
        (
            ("POST", "/api/v1/nodes", node("a", none(), source.clone())),
            "nodes \"a\" is forbidden: node \"a\" is not allowed to create pods with a non-nil configSource".to_owned(),
        ),
        (
            ("POST", "/api/v1/nodes", node("a", role.clone(), none())),
            "nodes \"a\" is forbidden: node \"a\" is not allowed to set the following labels: \
             node-role.kubernetes.io/master, team.node-restriction.kubernetes.io/a"
                .to_owned(),
        ),
        (
            ("PATCH", "/api/v1/nodes/a", json!({"spec": source})),
            "nodes \"a\" is forbidden: node \"a\" is not allowed to update configSource to a new non-nil configSource"
                .to_owned(),
        ),
        (
            ("PATCH", "/api/v1/nodes/a", json!({"spec": {"taints": null}})),
            "nodes \"a\" is forbidden: node \"a\" is not allowed to modify taints".to_owned(),
        ),
        (
            ("PATCH", "/api/v1/nodes/a", json!({"metadata": {"ownerReferences": [owner]}})),
            "nodes \"a\" is forbidden: node \"a\" is not allowed to modify ownerReferences".to_owned(),
        ),
        (
            ("PATCH", "/api/v1/nodes/a", json!({"metadata": role})),
            "nodes \"a\" is forbidden: is not allowed to modify labels: node-role.kubernetes.io/master, \
             team.node-restriction.kubernetes.io/a"
                .to_owned(),
        ),
        (
            ("POST", &others, lease("a")),
            "leases.coordination.k8s.io \"a\" is forbidden: can only access leases in the \"kube-node-lease\" system \
             namespace"
                .to_owned(),
        ),
        (
            ("POST", &own_leases, lease("b")),
            "leases.coordination.k8s.io \"b\" is forbidden: can only access node lease with the same name as the requesting \
             node"
                .to_owned(),
        ),
        (
            ("POST", csi_nodes, csi_node("c")),
            "csinodes.storage.k8s.io \"c\" is forbidden: can only access CSINode with the same name as the requesting node"
                .to_owned(),
        ),
        (
            ("DELETE", &format!("{csi_nodes}/b"), none()),
            "csinodes.storage.k8s.io \"b\" is forbidden: can only access CSINode with the same name as the requesting node"
                .to_owned(),
        ),
        (("POST", slices, slice("s", "b")), slice_refused("create", "s")),
        (("DELETE", &format!("{slices}/theirs"), none()), slice_refused("delete", "theirs")),
        (
            ("PATCH", &format!("{CLAIMS}/claim"), json!({"metadata": {"labels": {"a": "b"}}})),
            "persistentvolumeclaims \"claim\" is forbidden: may only update PVC status".to_owned(),
        ),
        (("PATCH", &claim_status, json!({"metadata": {"labels": {"a": "b"}}})), claim_refused.to_owned()),
        (("PATCH", &claim_status, json!({"status": {"phase": "Bound"}})), claim_refused.to_owned()),
    ] {
        cluster.check_refused((method, path, object), &why);
    }
    for (method, path, object) in [
        ("PATCH", "/api/v1/nodes/a", json!({"metadata": {"labels": {"kubernetes.io/os": "linux", "mine": "a"}}})),
        ("POST", &own_leases, lease("a")),
        ("POST", csi_nodes, csi_node("a")),
        ("POST", slices, slice("s", "a")),
        ("DELETE", &format!("{slices}/s"), none()),
        ("PATCH", &claim_status, json!({"status": {"capacity": {"storage": "1Gi"}}})),
    ] {
        cluster.check_allowed((method, path, object));
    }
}

/// A request for a certificate for a user, and what the signer wants to know beside.
fn certificate_request(name: &str, user: &str, signer: &str) -> Value {
    let key = rcgen::KeyPair::generate().expect("a key is made");
    let mut parameters = rcgen::CertificateParams::default();
    parameters.distinguished_name = rcgen::DistinguishedName::new();
    parameters.distinguished_name.push(rcgen::DnType::CommonName, user);
    parameters.distinguished_name.push(rcgen::DnType::OrganizationName, "system:nodes");
    let request = parameters.serialize_request(&key).expect("it is signed").pem().expect("it is text");
    let usages = if signer == "kubernetes.io/kubelet-serving" { "server auth" } else { "client auth" };
    let spec = json!({
        "request": STANDARD.encode(request), "signerName": signer,
        "usages": ["digital signature", "key encipherment", usages],
    });
    json!({"metadata": {"name": name}, "spec": spec})
}

#[test]
fn a_node_asks_for_its_own_certificates_alone() {
    let cluster = Cluster::start();
    for signer in ["kubernetes.io/kubelet-serving", "kubernetes.io/kube-apiserver-client-kubelet"] {
        let request = certificate_request("r", "system:node:b", signer);
        let why = "certificatesigningrequests.certificates.k8s.io \"r\" is forbidden: can only create a node CSR with \
                   CN=system:node:a";
        cluster.check_refused(("POST", REQUESTS, request), why);
    }
    let own = certificate_request("own", "system:node:a", "kubernetes.io/kube-apiserver-client-kubelet");
    cluster.check_allowed(("POST", REQUESTS, own));
    cluster.check_allowed(("POST", REQUESTS, certificate_request("else", "anybody", "example.com/any")));
}
