//! Admission plugins that kube-apiserver has off by default, all on at once.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::https::{Https, Identity, Reply};
use crate::server::{Answer, Folder, Server};

const PLUGINS: &str = "AlwaysPullImages,DenyServiceExternalIPs,ExtendedResourceToleration,LimitPodHardAntiAffinityTopology,\
                       NamespaceExists,PodNodeSelector,PodTolerationRestriction";

fn start(folder: &Folder) -> Server {
    // Otherwise it is NamespaceLifecycle that finds a namespace missing.
    let others = ["--disable-admission-plugins", "NamespaceLifecycle"];
    let server = Server::start(
        &folder.0,
        &[&["--store", "memory", "--enable-admission-plugins", PLUGINS][..], &others].concat(),
    );
    let annotations = json!({
        "scheduler.alpha.kubernetes.io/node-selector": "zone=a",
        "scheduler.alpha.kubernetes.io/defaultTolerations": r#"[{"key":"team","operator":"Exists"}]"#,
        "scheduler.alpha.kubernetes.io/tolerationsWhitelist":
            r#"[{"key":"team","operator":"Exists"},{"key":"node.kubernetes.io/not-ready","operator":"Exists"},
                {"key":"node.kubernetes.io/unreachable","operator":"Exists"},{"key":"example.com/gpu","operator":"Exists"},
                {"key":"node.kubernetes.io/memory-pressure","operator":"Exists"}]"#,
    });
    let made = post(&server, "/api/v1/namespaces", &json!({"metadata": {"name": "team", "annotations": annotations}}));
    assert_eq!(made.status, 201, "{}", made.json());
    server
}

fn post(server: &Server, path: &str, object: &Value) -> Answer {
    server.send("POST", path, &[("Content-Type", "application/json")], Some(object.to_string().as_bytes()))
}

fn pod(name: &str, spec: Value) -> Value {
    let mut spec = spec;
    let container = json!({
        "name": "c", "image": "i", "imagePullPolicy": "Never",
        "resources": {"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "1"}},
    });
    spec["containers"] = json!([container]);
    json!({"metadata": {"name": name}, "spec": spec})
}

#[test]
fn a_pod_gets_what_its_namespace_and_the_plugins_say() {
    let folder = Folder::for_test();
    let server = start(&folder);
    let made = post(&server, "/api/v1/namespaces/team/pods", &pod("a", json!({}))).json();
    assert_eq!(made["spec"]["nodeSelector"], json!({"zone": "a"}), "{made}");
    assert_eq!(made["spec"]["containers"][0]["imagePullPolicy"], "Always");
    let keys: Vec<&str> = made["spec"]["tolerations"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|toleration| toleration["key"].as_str())
        .collect();
    let (not_ready, unreachable) = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable");
    assert_eq!(keys, [not_ready, unreachable, "team", "example.com/gpu"]);
}

#[test]
fn what_the_plugins_refuse_is_told_in_their_words() {
    let folder = Folder::for_test();
    let server = start(&folder);
    let refused = |path: &str, object: &Value| {
        let answer = post(&server, path, object);
        (answer.status, answer.json()["message"].as_str().unwrap_or_default().to_owned())
    };
    let pods = "/api/v1/namespaces/team/pods";
    assert_eq!(
        refused(pods, &pod("a", json!({"nodeSelector": {"zone": "b"}}))),
        (
            403,
            "pods \"a\" is forbidden: pod node label selector conflicts with its namespace node label selector"
                .to_owned()
        )
    );
    let toleration = json!({"key": "other", "operator": "Exists"});
    assert_eq!(
        refused(pods, &pod("a", json!({"tolerations": [toleration]}))),
        (
            500,
            "pod tolerations (possibly merged with namespace default tolerations) conflict with its namespace whitelist"
                .to_owned()
        )
    );
    let term = json!({"labelSelector": {"matchLabels": {"a": "b"}}, "topologyKey": "zone"});
    let affinity = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}});
    let why = "affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey zone but only key kubernetes.io/hostname is \
               allowed";
    assert_eq!(
        refused(pods, &pod("a", json!({"affinity": affinity}))),
        (403, format!("pods \"a\" is forbidden: {why}"))
    );
    let service = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}], "externalIPs": ["10.1.2.3"]}});
    assert_eq!(
        refused("/api/v1/namespaces/team/services", &service),
        (403, "services \"s\" is forbidden: Use of external IPs is denied by admission control".to_owned())
    );
    assert_eq!(
        refused("/api/v1/namespaces/nowhere/configmaps", &json!({"metadata": {"name": "m"}})),
        (404, "namespaces \"nowhere\" not found".to_owned())
    );
}

/// A server whose plugins are told by a file what holds for all namespaces.
fn start_configured(folder: &Folder) -> Server {
    let root = folder.0.join("admission.yaml");
    let text = "
        apiVersion: apiserver.config.k8s.io/v1
        kind: AdmissionConfiguration
        plugins:
        - name: PodSecurity
          configuration:
            apiVersion: pod-security.admission.config.k8s.io/v1
            kind: PodSecurityConfiguration
            defaults: {enforce: baseline, warn: restricted}
            exemptions: {namespaces: [exempt]}
        - name: EventRateLimit
          path: events.yaml
        - name: PodNodeSelector
          configuration: {podNodeSelectorPluginConfig: {clusterDefaultNodeSelector: zone=a, tight: zone=b}}
        - name: PodTolerationRestriction
          configuration:
            apiVersion: podtolerationrestriction.admission.k8s.io/v1alpha1
            kind: Configuration
            default: [{key: team, operator: Exists}]
            whitelist: [{key: team, operator: Exists}, {key: node.kubernetes.io/not-ready, operator: Exists},
              {key: node.kubernetes.io/unreachable, operator: Exists}]";
    std::fs::write(&root, text).expect("it is written");
    let limits = "{apiVersion: eventratelimit.admission.k8s.io/v1alpha1, kind: Configuration, limits: [\
                  {type: Namespace, qps: 1, burst: 1}, {type: User, qps: 1, burst: 100}]}";
    std::fs::write(folder.0.join("events.yaml"), limits).expect("it is written");
    let file = root.to_str().expect("it is text");
    let plugins = "EventRateLimit,PodNodeSelector,PodTolerationRestriction";
    let arguments = ["--enable-admission-plugins", plugins, "--admission-control-config-file", file];
    let server = Server::start(&folder.0.join("data"), &[&["--store", "memory"][..], &arguments].concat());
    let standards =
        json!({"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/audit": "baseline"});
    let selects_nothing = json!({"scheduler.alpha.kubernetes.io/node-selector": ""});
    for metadata in [
        json!({"name": "n"}),
        json!({"name": "exempt", "labels": standards}),
        json!({"name": "tight", "annotations": selects_nothing}),
    ] {
        let exempt = metadata["name"] == "exempt";
        let made = post(&server, "/api/v1/namespaces", &json!({"metadata": metadata}));
        assert_eq!(made.status, 201, "{}", made.json());
        let told = "299 - \"namespace \\\"exempt\\\" is exempt from Pod Security, and the policy \
                    (enforce=restricted:latest, audit=baseline:latest) will be ignored\"";
        assert_eq!(made.header("warning"), if exempt { told } else { "" });
    }
    server
}

#[test]
fn plugins_go_by_their_configuration() {
    let folder = Folder::for_test();
    let server = start_configured(&folder);
    let make = |namespace: &str, spec: Value| {
        let mut spec = spec;
        spec["containers"] = json!([{"name": "c", "image": "i"}]);
        post(
            &server,
            &format!("/api/v1/namespaces/{namespace}/pods"),
            &json!({"metadata": {"name": "p"}, "spec": spec}),
        )
    };
    let refused = make("n", json!({"hostNetwork": true}));
    let why = "pods \"p\" is forbidden: violates PodSecurity \"baseline:latest\": host namespaces (hostNetwork=true)";
    assert_eq!((refused.status, refused.json()["message"].as_str()), (403, Some(why)));
    let made = make("n", json!({}));
    assert!(
        made.header("warning").contains("would violate PodSecurity \\\"restricted:latest\\\""),
        "{}",
        made.header("warning")
    );
    let spec = &made.json()["spec"];
    assert_eq!(spec["nodeSelector"], json!({"zone": "a"}));
    assert!(spec["tolerations"].as_array().is_some_and(|all| all.iter().any(|one| one["key"] == "team")), "{spec}");
    let made = make("exempt", json!({"hostNetwork": true}));
    assert_eq!((made.status, made.header("warning")), (201, ""));
    let refused = make("tight", json!({"nodeSelector": {"zone": "c"}}));
    let why = "pods \"p\" is forbidden: pod node label selector labels conflict with its namespace whitelist";
    assert_eq!((refused.status, refused.json()["message"].as_str()), (403, Some(why)));
    // Refused before anything is validated, so that PodSecurity has not been asked.
    assert_eq!(refused.header("warning"), "");
    let refused = make("n", json!({"tolerations": [{"key": "x", "operator": "Exists"}]}));
    let message = refused.json()["message"].as_str().unwrap_or_default().to_owned();
    assert!(message.ends_with("conflict with its cluster whitelist"), "{message}");
    assert_eq!(refused.header("warning"), "");
}

#[test]
fn events_come_no_faster_than_the_configuration_says() {
    let folder = Folder::for_test();
    let server = start_configured(&folder);
    let send = |namespace: &str, name: &str| {
        let event = json!({"metadata": {"name": name}, "involvedObject": {"namespace": namespace}});
        post(&server, &format!("/api/v1/namespaces/{namespace}/events"), &event)
    };
    let answers: Vec<Answer> = (0..20).map(|at| send("n", &format!("e{at}"))).collect();
    assert_eq!(answers[0].status, 201, "{}", answers[0].json());
    let refused = answers.iter().find(|answer| answer.status != 201).expect("twenty come in less than twenty seconds");
    let status = refused.json();
    assert_eq!((refused.status, &status["reason"], status.get("details")), (429, &json!("TooManyRequests"), None));
    assert_eq!(status["message"], "Too many requests: limit reached on type Namespace for key n");
    assert_eq!(send("tight", "e").status, 201, "another namespace has a limit of its own");
    let newer = |at: i32| {
        json!({
            "metadata": {"name": format!("n{at}"), "namespace": "n"}, "eventTime": "2026-01-01T00:00:00.000000Z",
            "reportingController": "example.com/c", "reportingInstance": "i", "action": "a", "reason": "r", "type": "Normal",
            "regarding": {"namespace": "n"},
        })
    };
    for at in 0..5 {
        let answer = post(&server, "/apis/events.k8s.io/v1/namespaces/n/events", &newer(at));
        assert_eq!(answer.status, 201, "{}", answer.json());
    }
}

#[test]
fn a_pod_gets_labels_of_what_is_called_a_node_where_it_is_bound() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory"]);
    let zone = "topology.kubernetes.io/zone";
    let node = json!({"metadata": {"name": "n", "labels": {zone: "z"}}});
    assert_eq!(post(&server, "/api/v1/nodes", &node).status, 201);
    let pods = "/api/v1/namespaces/default/pods";
    for (name, target, expected) in
        [("a", json!({"kind": "Node", "name": "n"}), json!("z")), ("b", json!({"name": "n"}), Value::Null)]
    {
        let pod = json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
        assert_eq!(post(&server, pods, &pod).status, 201);
        let binding = json!({"metadata": {"name": name}, "target": target});
        let bound = post(&server, &format!("{pods}/{name}/binding"), &binding);
        assert_eq!(bound.status, 201, "{}", bound.json());
        let pod = server.send("GET", &format!("{pods}/{name}"), &[], None).json();
        assert_eq!((&pod["spec"]["nodeName"], &pod["metadata"]["labels"][zone]), (&json!("n"), &expected), "{pod}");
    }
}

#[test]
fn secrets_that_an_account_does_not_have_are_refused_before_other_plugins_are_asked() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory", "--enable-admission-plugins", "ServiceAccount"]);
    let annotations = json!({"kubernetes.io/enforce-mountable-secrets": "true"});
    let account = json!({"metadata": {"name": "strict", "annotations": annotations}});
    assert_eq!(post(&server, "/api/v1/namespaces/default/serviceaccounts", &account).status, 201);
    let spec = json!({"serviceAccountName": "strict", "containers": [{"name": "c", "image": "i"}]});
    let mut refused = spec.clone();
    refused["priorityClassName"] = json!("none");
    refused["volumes"] = json!([{"name": "v", "secret": {"secretName": "x"}}]);
    let pods = "/api/v1/namespaces/default/pods";
    let answer = post(&server, pods, &json!({"metadata": {"name": "p"}, "spec": refused}));
    let why = "is not allowed because service account strict does not reference that secret";
    let expected = format!("pods \"p\" is forbidden: volume with secret.secretName=\"x\" {why}");
    assert_eq!((answer.status, answer.json()["message"].as_str()), (403, Some(expected.as_str())));

    assert_eq!(post(&server, pods, &json!({"metadata": {"name": "p"}, "spec": spec})).status, 201);
    let env = json!([{"name": "E", "valueFrom": {"secretKeyRef": {"name": "x", "key": "k"}}}]);
    let patch = json!({"spec": {"ephemeralContainers": [{"name": "e", "image": "i", "env": env}]}}).to_string();
    let merge = ("Content-Type", "application/strategic-merge-patch+json");
    let answer = server.send("PATCH", &format!("{pods}/p/ephemeralcontainers"), &[merge], Some(patch.as_bytes()));
    // kube-apiserver gives this error no status.
    let expected = format!("ephemeral container e with envVar E referencing secret.secretName=\"x\" {why}");
    assert_eq!((answer.status, answer.json()["message"].as_str()), (500, Some(expected.as_str())));
}

#[test]
fn always_deny_denies_all_modifications() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory", "--enable-admission-plugins", "AlwaysDeny"]);
    let refused = post(&server, "/api/v1/namespaces/default/configmaps", &json!({"metadata": {"name": "a"}}));
    let why = "configmaps \"a\" is forbidden: admission control is denying all modifications";
    assert_eq!((refused.status, refused.json()["message"].as_str()), (403, Some(why)));
    assert_eq!(server.send("GET", "/api/v1/namespaces/default/configmaps", &[], None).status, 200);
}

#[test]
fn the_audit_log_has_what_the_audit_level_of_a_namespace_minds() {
    let folder = Folder::for_test();
    let log = folder.0.join("audit.log");
    let path = log.to_str().expect("it is text");
    let server = Server::start(&folder.0.join("data"), &["--store", "memory", "--audit-log-path", path]);
    let labels = json!({"pod-security.kubernetes.io/audit": "baseline"});
    let made = post(&server, "/api/v1/namespaces", &json!({"metadata": {"name": "n", "labels": labels}}));
    assert_eq!(made.status, 201, "{}", made.json());
    let spec = json!({"hostNetwork": true, "containers": [{"name": "c", "image": "i"}]});
    let pod = json!({"metadata": {"name": "p"}, "spec": spec});
    let made = post(&server, "/api/v1/namespaces/n/pods", &pod);
    assert_eq!(made.status, 201, "{}", made.json());
    assert_eq!(server.terminate().0, Some(0));
    let log = std::fs::read_to_string(&log).expect("it is written");
    let events = log.lines().map(|line| serde_json::from_str::<Value>(line).expect("each line is an event"));
    let complete = |event: &Value| event["stage"] == "ResponseComplete" && event["auditID"] == made.header("audit-id");
    let event = events.into_iter().find(complete).expect("it is told");
    let annotations = &event["annotations"];
    assert_eq!(annotations["pod-security.kubernetes.io/enforce-policy"], "privileged:latest");
    assert_eq!(
        annotations["pod-security.kubernetes.io/audit-violations"],
        "would violate PodSecurity \"baseline:latest\": host namespaces (hostNetwork=true)"
    );
}

#[test]
fn a_namespace_is_made_for_its_first_object() {
    let folder = Folder::for_test();
    let plugins = ["--store", "memory", "--enable-admission-plugins", "NamespaceAutoProvision"];
    let server = Server::start(&folder.0, &plugins);
    let (path, object) = ("/api/v1/namespaces/fresh/configmaps", json!({"metadata": {"name": "a"}}));
    let tried = post(&server, &format!("{path}?dryRun=All"), &object);
    assert_eq!((tried.status, &tried.json()["message"]), (404, &json!("namespaces \"fresh\" not found")));
    assert_eq!(server.send("GET", path, &[], None).json()["items"], json!([]));
    let made = post(&server, path, &object);
    assert_eq!(made.status, 201, "{}", made.json());
    let namespace = server.send("GET", "/api/v1/namespaces/fresh", &[], None).json();
    assert_eq!(namespace["status"]["phase"], "Active", "{namespace}");
    assert_eq!(namespace["metadata"]["labels"], json!({"kubernetes.io/metadata.name": "fresh"}));
    assert_eq!(namespace["metadata"]["managedFields"][0]["manager"], "kube-apiserver");
    let refused = post(&server, "/api/v1/namespaces/Not_Valid/configmaps", &object);
    let why = refused.json()["message"].as_str().unwrap_or_default().to_owned();
    assert!(
        refused.status == 403 && why.starts_with("configmaps \"a\" is forbidden: Namespace \"Not_Valid\""),
        "{why}"
    );
}

#[test]
fn what_is_limited_needs_a_quota() {
    let folder = Folder::for_test();
    let file = folder.0.join("admission.yaml");
    let text = "
        apiVersion: apiserver.config.k8s.io/v1
        kind: AdmissionConfiguration
        plugins:
        - name: ResourceQuota
          configuration:
            apiVersion: apiserver.config.k8s.io/v1
            kind: ResourceQuotaConfiguration
            limitedResources:
            - {resource: services, matchContains: [services.nodeports]}
            - {resource: pods, matchScopes: [{scopeName: PriorityClass, operator: In, values: [system-node-critical]}]}";
    std::fs::write(&file, text).expect("it is written");
    let arguments = ["--store", "memory", "--admission-control-config-file", file.to_str().expect("it is text")];
    let server = Server::start(&folder.0.join("data"), &arguments);
    let services = "/api/v1/namespaces/default/services";
    let service =
        |name: &str, of: &str| json!({"metadata": {"name": name}, "spec": {"type": of, "ports": [{"port": 80}]}});
    assert_eq!(post(&server, services, &service("a", "ClusterIP")).status, 201);
    let refused = post(&server, services, &service("b", "NodePort"));
    let why = "services \"b\" is forbidden: insufficient quota to consume: services.nodeports";
    assert_eq!((refused.status, &refused.json()["message"]), (403, &json!(why)));
    let spec = json!({"priorityClassName": "system-node-critical", "containers": [{"name": "c", "image": "i"}]});
    let refused = post(&server, "/api/v1/namespaces/default/pods", &json!({"metadata": {"name": "p"}, "spec": spec}));
    let why = "insufficient quota to match these scopes: [{PriorityClass In [system-node-critical]}]";
    assert_eq!((refused.status, &refused.json()["message"]), (500, &json!(why)));
    let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": {"services.nodeports": "1"}}});
    let quotas = "/api/v1/namespaces/default/resourcequotas";
    assert_eq!(post(&server, quotas, &quota).status, 201);
    let status = json!({"status": {"hard": {"services.nodeports": "1"}, "used": {"services.nodeports": "0"}}});
    let merge = [("Content-Type", "application/merge-patch+json")];
    let counted = server.send("PATCH", &format!("{quotas}/q/status"), &merge, Some(status.to_string().as_bytes()));
    assert_eq!(counted.status, 200, "{}", counted.json());
    assert_eq!(post(&server, services, &service("b", "NodePort")).status, 201);
}

/// A service that decides about images, and what it was asked.
struct Images {
    https: Https,
    identity: Identity,
    asked: Arc<Mutex<Vec<Value>>>,
}

impl Images {
    /// It allows all images but `bad`, and fails for others in the way that they are called by.
    fn start() -> Images {
        let identity = Identity::new("127.0.0.1");
        let asked = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&asked);
        let address: SocketAddr = (Ipv4Addr::LOCALHOST, 0).into();
        let https = Https::listen(address, &identity, move |mut request| {
            let mut review: Value = serde_json::from_str(request["review"].as_str()?).ok()?;
            request["review"] = review.clone();
            noted.lock().expect("no thread panics").push(request);
            let images = review["spec"]["containers"].as_array()?.clone();
            let has = |name: &str| images.iter().any(|container| container["image"] == name);
            let is_allowed = !has("bad");
            review["status"] = json!({"allowed": is_allowed, "auditAnnotations": {"seen": "yes"}});
            if !is_allowed && images.len() == 1 {
                review["status"]["reason"] = json!("it is bad");
            }
            let (status, content_type, body) = match images[0]["image"].as_str()? {
                "broken" => (500, "application/json", review.to_string()),
                "gateway" => (502, "text/plain", "no\n".to_owned()),
                "unavailable" => (503, "text/plain", "no".to_owned()),
                "forbidden" => (403, "text/html", " no way \n".to_owned()),
                "stated" => {
                    let status = json!({
                        "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden",
                        "message": "stated", "code": 418, "details": {"name": "n"},
                    });
                    (500, "application/json", status.to_string())
                }
                "html" => (200, "text/html", "<html>".to_owned()),
                _ => (200, "application/json", review.to_string()),
            };
            Some(Reply { status, content_type: content_type.to_owned(), body })
        });
        Images { https, identity, asked }
    }

    /// A server that asks it.
    fn server(&self, folder: &Folder, policy: Value) -> Server {
        self.identity.write_to(&folder.0);
        let kubeconfig = folder.0.join("images.kubeconfig");
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "images",
            "contexts": [{"name": "images", "context": {"cluster": "images", "user": "server"}}],
            "users": [{"name": "server", "user": {"token": "secret"}}],
            "clusters": [{"name": "images", "cluster": {
                "server": format!("https://{}/policy", self.https.address), "certificate-authority": "ca.pem",
            }}],
        });
        std::fs::write(&kubeconfig, config.to_string()).expect("it is written");
        let mut policy = policy;
        policy["kubeConfigFile"] = json!(kubeconfig);
        let configuration = json!({
            "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration",
            "plugins": [{"name": "ImagePolicyWebhook", "configuration": {"imagePolicy": policy}}],
        });
        let file = folder.0.join("admission.yaml");
        std::fs::write(&file, configuration.to_string()).expect("it is written");
        let file = file.to_str().expect("it is text");
        let log = folder.0.join("audit.log");
        let arguments = [
            ["--store", "memory"],
            ["--enable-admission-plugins", "ImagePolicyWebhook"],
            ["--admission-control-config-file", file],
            ["--audit-log-path", log.to_str().expect("it is text")],
        ];
        Server::start(&folder.0.join("data"), arguments.as_flattened())
    }

    fn take_asked(&self) -> Vec<Value> {
        std::mem::take(&mut *self.asked.lock().expect("no thread panics"))
    }
}

fn run(server: &Server, name: &str, images: &[&str]) -> (u16, String) {
    let containers = images.iter().enumerate();
    let containers: Vec<Value> =
        containers.map(|(at, image)| json!({"name": format!("c{at}"), "image": image})).collect();
    let annotations = json!({"a.image-policy.k8s.io/b": "c", "other": "d"});
    let pod = json!({"metadata": {"name": name, "annotations": annotations}, "spec": {"containers": containers}});
    let answer = post(server, "/api/v1/namespaces/default/pods", &pod);
    (answer.status, answer.json()["message"].as_str().unwrap_or_default().to_owned())
}

#[test]
fn a_service_decides_which_images_run() {
    let (folder, images) = (Folder::for_test(), Images::start());
    let server = images.server(&folder, json!({"retryBackoff": 1}));
    assert_eq!(run(&server, "a", &["good"]), (201, String::new()));
    let asked = images.take_asked();
    assert_eq!(asked[0]["path"], "/policy?timeout=30s");
    let annotations = json!({"a.image-policy.k8s.io/b": "c"});
    let review = json!({
        "apiVersion": "imagepolicy.k8s.io/v1alpha1", "kind": "ImageReview", "metadata": {},
        "spec": {"containers": [{"image": "good"}], "annotations": annotations, "namespace": "default"},
        "status": {"allowed": false},
    });
    assert_eq!((asked.len(), &asked[0]["review"]), (1, &review));
    assert_eq!(run(&server, "b", &["good"]), (201, String::new()));
    assert!(images.take_asked().is_empty(), "what was decided is remembered");
    let why = "pods \"c\" is forbidden: image policy webhook backend denied one or more images: it is bad";
    assert_eq!(run(&server, "c", &["bad"]), (403, why.to_owned()));
    let why = "pods \"c\" is forbidden: one or more images rejected by webhook backend";
    assert_eq!(run(&server, "c", &["bad", "good"]), (403, why.to_owned()));
    images.take_asked();
    let why = "pods \"d\" is forbidden: an error on the server (\"unknown\") has prevented the request from succeeding";
    assert_eq!(run(&server, "d", &["broken"]), (403, why.to_owned()));
    assert_eq!(images.take_asked().len(), 5, "a failure of the service is tried again");
    assert_eq!(server.terminate().0, Some(0));
    let log = std::fs::read_to_string(folder.0.join("audit.log")).expect("it is written");
    assert!(log.contains("\"imagepolicywebhook.image-policy.k8s.io/seen\":\"yes\""), "{log}");
}

#[test]
fn a_failure_of_the_service_is_told_in_the_words_of_client_go() {
    let (folder, images) = (Folder::for_test(), Images::start());
    let server = images.server(&folder, json!({"retryBackoff": 1}));
    let server_error = "pods \"p\" is forbidden: an error on the server (\"no\") has prevented the request from \
                        succeeding";
    let unavailable = "pods \"p\" is forbidden: the server is currently unable to handle the request";
    let html = "pods \"p\" is forbidden: couldn't get version/kind; json parse error: json: cannot unmarshal string into \
                Go value of type struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \
                \"json:\\\"kind,omitempty\\\"\" }";
    for (image, tries, code, message) in [
        ("gateway", 5, 403, server_error),
        ("unavailable", 1, 403, unavailable),
        ("html", 1, 403, html),
        ("forbidden", 1, 403, "no way"),
        ("stated", 1, 418, "stated"),
    ] {
        assert_eq!(run(&server, "p", &[image]), (code, message.to_owned()), "{image}");
        assert_eq!(images.take_asked().len(), tries, "{image}");
    }
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "forbidden"}]}});
    let status = post(&server, "/api/v1/namespaces/default/pods", &pod).json();
    let cause = json!({"reason": "UnexpectedServerResponse", "message": "no way"});
    assert_eq!((&status["reason"], &status["details"]), (&json!("Forbidden"), &json!({"causes": [cause]})));
}

#[test]
fn images_run_without_the_service_where_the_configuration_says_so() {
    let (folder, images) = (Folder::for_test(), Images::start());
    let server = images.server(&folder, json!({"retryBackoff": 1, "defaultAllow": true, "denyTTL": -1}));
    for (name, image) in [("a", "broken"), ("f", "forbidden"), ("h", "html")] {
        assert_eq!(run(&server, name, &[image]), (201, String::new()));
    }
    images.take_asked();
    let denied = || run(&server, "b", &["bad"]).0;
    assert_eq!([denied(), denied()], [403, 403]);
    assert_eq!(images.take_asked().len(), 2, "denials are not remembered");
    assert_eq!(server.terminate().0, Some(0));
    let log = std::fs::read_to_string(folder.0.join("audit.log")).expect("it is written");
    assert!(log.contains("\"imagepolicywebhook.image-policy.k8s.io/failed-open\":\"true\""), "{log}");
}

#[test]
fn a_plugin_that_needs_a_configuration_does_not_start_without_one() {
    let folder = Folder::for_test();
    let (code, said) = Server::fail_to_start(&folder.0, &["--enable-admission-plugins", "ImagePolicyWebhook"]);
    let why = "couldn't init admission plugin \"ImagePolicyWebhook\": no config specified";
    assert!(code == Some(2) && said.contains(why), "{code:?} {said}");
}

#[test]
fn pods_stay_on_a_node_that_is_lost_as_long_as_the_server_is_told() {
    let folder = Folder::for_test();
    let arguments = ["--default-not-ready-toleration-seconds=20", "--default-unreachable-toleration-seconds=40"];
    let server = Server::start(&folder.0, &[&["--store", "memory"][..], &arguments].concat());
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let made = post(&server, "/api/v1/namespaces/default/pods", &pod).json();
    let seconds: Vec<&Value> = made["spec"]["tolerations"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|toleration| &toleration["tolerationSeconds"])
        .collect();
    assert_eq!(seconds, [&json!(20), &json!(40)], "{made}");
}
