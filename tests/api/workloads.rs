//! Workloads that become ready without machines, by kubectl: rollouts, jobs, sets, budgets, nodes that come and go.

use super::identity;
use super::overrides::until;
use crate::kubectl::Kubectl;
use crate::server::{Folder, Server};

/// How long kubectl waits, also on a busy machine.
pub const PATIENCE: &str = "--timeout=120s";

/// The uid of the second pod of a set; empty while there is none.
const OF_SECOND: &str = ".items[?(@.metadata.name==\"db-1\")].metadata.uid";

pub struct Cluster {
    pub kubectl: Kubectl,
    server: Server,
    _folder: Folder,
}

/// A server with all controllers; `None` without a kubectl.
pub fn cluster(arguments: &[&str]) -> Option<Cluster> {
    begin(Folder::for_test(), arguments)
}

fn begin(folder: Folder, arguments: &[&str]) -> Option<Cluster> {
    let server = Server::start(&folder.0.join("data"), &[&["--store", "memory"], arguments].concat());
    let kubectl = Kubectl::of(&server)?;
    Some(Cluster { kubectl, server, _folder: folder })
}

/// One with all controllers, whose pods go through the stages of a file.
pub fn staged(stages: &str) -> Option<Cluster> {
    let folder = Folder::for_test();
    let file = folder.0.join("stages.yaml");
    std::fs::write(&file, stages).expect("the folder is writable");
    let file = file.to_str().expect("the path is text").to_owned();
    begin(folder, &["--profile", "cluster", "--stages", &file])
}

impl Cluster {
    pub fn ok(&self, arguments: &str) -> String {
        self.kubectl.ok(arguments)
    }

    pub fn apply(&self, yaml: &str) {
        self.kubectl.pipe_ok(yaml, "apply -f -");
    }

    /// Waits until a path of an object has a value.
    pub fn wait(&self, object: &str, path: &str, value: &str) {
        self.ok(&format!("wait {object} --for=jsonpath={{{path}}}={value} {PATIENCE}"));
    }

    /// A path of an object.
    pub fn get(&self, object: &str, path: &str) -> String {
        self.ok(&format!("get {object} -o jsonpath={{{path}}}"))
    }

    /// The authority of the kubeconfig.
    fn ca(&self) -> String {
        let path = "{.clusters[0].cluster.certificate-authority-data}";
        let encoded = self.ok(&format!("config view --raw -o jsonpath={path}"));
        let decoded = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, encoded);
        let text = String::from_utf8(decoded.expect("it is base64")).expect("it is PEM");
        format!("{}\n", text.trim())
    }

    /// Moves the clock.
    pub fn clock(&self, change: &str) {
        self.kubectl.pipe_ok(change, "replace --raw /skiff/v1/clock -f -");
    }

    /// Moves the clock on, by a step at a time, until what kubectl waits for has come.
    pub fn pass(&self, step: &str, condition: &str) {
        const STEPS_MAX: usize = 60;
        let has_come = (0..STEPS_MAX).any(|_| {
            self.clock(&format!("{{\"advance\": \"{step}\"}}"));
            self.kubectl.run(&format!("wait {condition} --timeout=2s")).code == Some(0)
        });
        assert!(has_come, "{condition} has not come: {}", self.ok("get all --output=yaml"));
    }

    pub fn rolled_out(&self, object: &str) {
        self.ok(&format!("rollout status {object} {PATIENCE}"));
    }
}

pub const PROFILE: [&str; 2] = ["--profile", "cluster"];

#[test]
fn nothing_of_it_runs_unless_it_is_asked_for() {
    let Some(cluster) = cluster(&[]) else { return };
    cluster.ok("create deployment web --image=web:1");
    cluster.ok("create namespace seen");
    assert_eq!(cluster.ok("get nodes,replicasets,pods"), "");
    assert_eq!(cluster.get("deployment/web", ".status.replicas"), "");
}

#[test]
fn controllers_are_named_one_by_one() {
    let Some(cluster) = cluster(&["--controllers", "*,deployment-controller,replicaset"]) else { return };
    cluster.ok("create deployment web --image=web:1 --replicas=2");
    cluster.wait("deployment/web", ".status.replicas", "2");
    assert_eq!(cluster.get("pods", ".items[*].status.phase"), "Pending Pending");
}

#[test]
fn a_deployment_is_rolled_out_scaled_and_rolled_back() {
    let Some(cluster) = cluster(&PROFILE) else { return };
    cluster.ok("create deployment web --image=web:1 --replicas=3");
    cluster.rolled_out("deployment/web");
    cluster.ok(&format!("wait --for=condition=Available deployment/web {PATIENCE}"));
    assert_eq!(cluster.get("pods -l app=web", ".items[*].status.phase"), "Running Running Running");
    assert_eq!(
        cluster.get("pods -l app=web", ".items[*].metadata.ownerReferences[*].kind"),
        "ReplicaSet ReplicaSet ReplicaSet"
    );

    cluster.ok("set image deployment/web web=web:2");
    cluster.rolled_out("deployment/web");
    assert_eq!(cluster.get("replicasets", ".items[*].spec.replicas").split(' ').filter(|size| *size == "3").count(), 1);
    let history = cluster.ok("rollout history deployment/web");
    assert!(history.contains("\n1 ") && history.contains("\n2 "), "{history}");

    cluster.ok("rollout undo deployment/web");
    cluster.rolled_out("deployment/web");
    assert_eq!(cluster.get("deployment/web", ".spec.template.spec.containers[0].image"), "web:1");
    assert_eq!(cluster.get("deployment/web", ".metadata.annotations.deployment\\.kubernetes\\.io/revision"), "3");

    cluster.ok("scale deployment/web --replicas=5");
    cluster.wait("deployment/web", ".status.availableReplicas", "5");
    cluster.rolled_out("deployment/web");
    let conditions = cluster.get("deployment/web", ".status.conditions[*].reason");
    assert_eq!(conditions, "MinimumReplicasAvailable NewReplicaSetAvailable");
    let told = cluster.ok("get events --field-selector involvedObject.kind=Deployment,reason=ScalingReplicaSet");
    assert!(told.contains("Scaled up replica set web-") && told.contains(" from 0 to 3"), "{told}");

    cluster.ok("rollout pause deployment/web");
    cluster.ok("set image deployment/web web=web:4");
    cluster.wait("deployment/web", ".status.conditions[?(@.type==\"Progressing\")].reason", "DeploymentPaused");
    assert_eq!(cluster.get("replicasets", ".items[*].metadata.name").split(' ').count(), 2);
    cluster.ok("rollout resume deployment/web");
    cluster.rolled_out("deployment/web");
}

#[test]
fn a_deployment_follows_what_its_pods_use() {
    let Some(cluster) = cluster(&PROFILE) else { return };
    cluster.ok("create deployment web --image=web:1");
    cluster.ok("set resources deployment/web --requests=cpu=1");
    cluster.rolled_out("deployment/web");
    cluster.ok("autoscale deployment/web --min=1 --max=5 --cpu-percent=50");
    let active = ".status.conditions[?(@.type==\"ScalingActive\")].reason";
    cluster.wait("hpa/web", active, "FailedGetResourceMetric");
    cluster.wait("deployment/web", ".status.replicas", "1");
    cluster.ok("annotate pods -l app=web kwok.x-k8s.io/usage-cpu=1");
    cluster.wait("hpa/web", ".status.desiredReplicas", "2");
    cluster.wait("deployment/web", ".status.availableReplicas", "2");
    assert_eq!(cluster.get("hpa/web", active), "ValidMetricFound");
    let current = cluster.get("hpa/web", ".status.currentMetrics[0].resource.current");
    assert_eq!(current, r#"{"averageUtilization":100,"averageValue":"1"}"#);
    let told = cluster.ok("get events --field-selector involvedObject.kind=HorizontalPodAutoscaler");
    let why = "New size: 2; reason: cpu resource utilization (percentage of request) above target";
    assert!(told.contains("SuccessfulRescale") && told.contains(why), "{told}");
    // What is written by hand beyond its bounds is put back.
    cluster.ok("patch hpa web --type=merge -p {\"spec\":{\"minReplicas\":3}}");
    cluster.wait("deployment/web", ".status.availableReplicas", "3");
}

#[test]
fn autoscalers_of_the_same_pods_all_say_so() {
    let Some(cluster) = cluster(&PROFILE) else { return };
    cluster.ok("create deployment web --image=web:1");
    cluster.rolled_out("deployment/web");
    let autoscaler = |name: &str| {
        format!(
            "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {{name: {name}}}\nspec: {{scaleTargetRef: \
             {{apiVersion: apps/v1, kind: Deployment, name: web}}, maxReplicas: 3}}"
        )
    };
    let reason = ".status.conditions[?(@.type==\"ScalingActive\")].reason";
    cluster.apply(&autoscaler("web"));
    cluster.wait("hpa/web", reason, "FailedGetResourceMetric");
    cluster.apply(&autoscaler("again"));
    cluster.wait("hpa/again", reason, "AmbiguousSelector");
    cluster.wait("hpa/web", reason, "AmbiguousSelector");
    let message = cluster.get("hpa/web", ".status.conditions[?(@.type==\"ScalingActive\")].message");
    let both = "[default/again default/web]";
    assert_eq!(message, format!("pods by selector app=web are controlled by multiple HPAs: {both}"));
    cluster.ok("delete hpa again");
    cluster.wait("hpa/web", reason, "FailedGetResourceMetric");
}

/// A request for a certificate.
fn request(name: &str, signer: &str, usages: &str, subject: &[(rcgen::DnType, &str)]) -> String {
    let mut params = rcgen::CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    subject.iter().for_each(|(attribute, text)| params.distinguished_name.push(attribute.clone(), *text));
    let key = rcgen::KeyPair::generate().expect("ring makes P-256 keys");
    let pem = params.serialize_request(&key).and_then(|request| request.pem()).expect("it is a request");
    let encoded = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, pem);
    format!(
        "apiVersion: certificates.k8s.io/v1\nkind: CertificateSigningRequest\nmetadata: {{name: {name}}}\n\
         spec: {{signerName: kubernetes.io/{signer}, usages: [{usages}], request: {encoded}}}"
    )
}

#[test]
fn a_node_that_joins_gets_its_certificate_by_roles() {
    let Some(cluster) = cluster(&["--profile", "cluster", "--authorization-mode", "RBAC"]) else { return };
    let subject = [(rcgen::DnType::OrganizationName, "system:nodes"), (rcgen::DnType::CommonName, "system:node:a")];
    let usages = "digital signature, key encipherment, client auth";
    let asks = "create -f - --as=joe --as-group=joining --as-group=system:authenticated";
    cluster.ok("create clusterrolebinding ask --clusterrole=system:node-bootstrapper --group=joining");
    let ask =
        |name: &str| cluster.kubectl.pipe_ok(&request(name, "kube-apiserver-client-kubelet", usages, &subject), asks);
    ask("early");
    let role = "system:certificates.k8s.io:certificatesigningrequests:nodeclient";
    cluster.ok(&format!("create clusterrolebinding join --clusterrole={role} --group=joining"));
    ask("node");
    cluster.ok(&format!("wait --for=jsonpath={{.status.certificate}} csr/node {PATIENCE}"));
    // Without the role nobody has approved it.
    assert_eq!(cluster.get("csr/early", ".status.conditions[*].type"), "");
    cluster.ok("certificate approve early");
    cluster.ok(&format!("wait --for=jsonpath={{.status.certificate}} csr/early {PATIENCE}"));
}

#[test]
fn controllers_may_do_what_they_do_where_roles_count() {
    let plugin = ["--enable-admission-plugins", "OwnerReferencesPermissionEnforcement", "--authorization-mode", "RBAC"];
    let Some(cluster) = cluster(&[&PROFILE[..], &plugin[..]].concat()) else { return };
    cluster.ok("create deployment web --image=web:1");
    cluster.ok("expose deployment web --port=80");
    cluster.apply(
        "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: agent}\nspec:\n  selector: {matchLabels: {a: b}}\n  template:\n    \
         metadata: {labels: {a: b}}\n    spec: {containers: [{name: c, image: i}]}",
    );
    cluster.rolled_out("deployment/web");
    cluster.rolled_out("daemonset/agent");
    cluster.wait("endpointslices -l kubernetes.io/service-name=web", ".endpoints[0].conditions.ready", "true");
}

#[test]
fn a_certificate_is_issued_once_its_request_is_approved() {
    let Some(cluster) = cluster(&["--controllers", "*,csrsigning,csrapproving"]) else { return };
    let (organization, name) = (rcgen::DnType::OrganizationName, rcgen::DnType::CommonName);
    cluster.apply(&request("jane", "kube-apiserver-client", "client auth", &[(name.clone(), "jane")]));
    cluster.ok("certificate approve jane");
    cluster.ok(&format!("wait --for=jsonpath={{.status.certificate}} csr/jane {PATIENCE}"));
    // The administrator may do everything, so also ask for nodes.
    let subject = [(organization, "system:nodes"), (name, "system:node:a")];
    cluster.apply(&request("node", "kube-apiserver-client-kubelet", "digital signature, client auth", &subject));
    cluster.ok(&format!("wait --for=jsonpath={{.status.certificate}} csr/node {PATIENCE}"));
    assert_eq!(cluster.get("csr/node", ".status.conditions[0].reason"), "AutoApproved");
    cluster.apply(&request("wrong", "kube-apiserver-client", "server auth", &subject));
    cluster.ok("certificate approve wrong");
    cluster.wait("csr/wrong", ".status.conditions[?(@.type==\"Failed\")].reason", "SignerValidationFailure");
}

#[test]
fn a_deployment_that_does_not_get_on_says_so() {
    let Some(cluster) = cluster(&PROFILE) else { return };
    cluster.apply(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replicas: 1\n  progressDeadlineSeconds: 1\n  \
         selector: {matchLabels: {a: b}}\n  template:\n    metadata:\n      labels: {a: b}\n      annotations: \
         {pod-ready.stage.kwok.x-k8s.io/weight: '0'}\n    spec: {containers: [{name: c, image: i}]}",
    );
    cluster.wait("deployment/web", ".status.conditions[?(@.type==\"Progressing\")].reason", "ProgressDeadlineExceeded");
    assert!(cluster.kubectl.fails(&format!("rollout status deployment/web {PATIENCE}")).contains("progress deadline"));
}

#[test]
fn all_old_pods_go_before_new_ones_come_where_they_are_recreated() {
    let Some(cluster) = cluster(&PROFILE) else { return };
    cluster.apply(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replicas: 2\n  strategy: {type: Recreate}\n  \
         selector: {matchLabels: {a: b}}\n  template:\n    metadata: {labels: {a: b}}\n    \
         spec: {containers: [{name: c, image: 'i:1'}]}",
    );
    cluster.rolled_out("deployment/web");
    cluster.ok("set image deployment/web c=i:2");
    cluster.rolled_out("deployment/web");
    assert_eq!(cluster.get("pods", ".items[*].spec.containers[0].image"), "i:2 i:2");
}

#[test]
fn a_pod_that_fits_nowhere_is_told_why() {
    let Some(cluster) =
        cluster(&["--simulate-nodes", "2,cpu=1,label=zone=a", "--controllers", "*,deployment,replicaset"])
    else {
        return;
    };
    cluster.ok(&format!("wait --for=condition=Ready node/node-0 node/node-1 {PATIENCE}"));
    let pod = |name: &str, spec: &str| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec: {{containers: [{{name: c, image: i, {spec}}}]}}"
        )
    };
    cluster.apply(&pod("large", "resources: {requests: {cpu: '2'}}"));
    let said = ".status.conditions[?(@.type==\"PodScheduled\")].reason";
    cluster.wait("pod/large", said, "Unschedulable");
    let why = cluster.get("pod/large", ".status.conditions[*].message");
    let expected = "0/2 nodes are available: 2 Insufficient cpu. no new claims to deallocate, preemption: 0/2 nodes are available: \
                    2 Preemption is not helpful for scheduling.";
    assert_eq!(why, expected);
    cluster.ok("cordon node-0");
    cluster.apply(&pod("small", "resources: {requests: {cpu: 500m}}"));
    cluster.ok(&format!("wait --for=condition=Ready pod/small {PATIENCE}"));
    assert_eq!(cluster.get("pod/small", ".spec.nodeName"), "node-1");
    // A node that is new has room.
    cluster.apply(
        "apiVersion: v1\nkind: Node\nmetadata: {name: big, annotations: {kwok.x-k8s.io/node: fake}}\n\
         status: {allocatable: {cpu: '8', memory: 8Gi, pods: '10'}, capacity: {cpu: '8', memory: 8Gi, pods: '10'}}",
    );
    cluster.ok(&format!("wait --for=condition=Ready pod/large {PATIENCE}"));
    assert_eq!(cluster.get("pod/large", ".spec.nodeName"), "big");
}

#[test]
fn a_node_is_drained_as_far_as_a_budget_allows() {
    let Some(cluster) = cluster(&PROFILE) else { return };
    cluster.ok("create deployment web --image=web:1 --replicas=3");
    cluster.ok("create pdb web --selector=app=web --min-available=2");
    cluster.rolled_out("deployment/web");
    cluster.wait("pdb/web", ".status.disruptionsAllowed", "1");
    let node = cluster.get("pods -l app=web", ".items[0].spec.nodeName");
    cluster.ok(&format!("drain {node} --ignore-daemonsets {PATIENCE}"));
    cluster.wait("deployment/web", ".status.availableReplicas", "3");
    assert!(!cluster.get("pods -l app=web", ".items[*].spec.nodeName").contains(&node));
    cluster.ok("patch pdb web --type=merge -p {\"spec\":{\"minAvailable\":3}}");
    cluster.wait("pdb/web", ".status.disruptionsAllowed", "0");
    let node = cluster.get("pods -l app=web", ".items[0].spec.nodeName");
    let run = cluster.kubectl.run(&format!("drain {node} --ignore-daemonsets --timeout=3s"));
    assert!(run.code == Some(1) && run.stderr.contains("violate the pod's disruption budget"), "{}", run.stderr);
}

#[test]
fn a_pod_that_several_budgets_cover_is_told_so_once() {
    let Some(cluster) = cluster(&PROFILE) else { return };
    cluster.ok("create pdb second --selector=app=web --min-available=1");
    cluster.ok("create pdb first --selector=app=web --min-available=1");
    cluster.ok("create deployment web --image=web:1");
    cluster.rolled_out("deployment/web");
    let events = "events --field-selector=reason=MultiplePodDisruptionBudgets";
    until("the pod is told", || !cluster.get(events, ".items[*].message").is_empty());
    cluster.ok("label pods -l app=web changed=yes");
    cluster.wait("pdb/first", ".status.currentHealthy", "1");
    let pod = cluster.get("pods -l app=web", ".items[0].metadata.name");
    let why = format!("Pod \"default\"/\"{pod}\" matches multiple PodDisruptionBudgets.  Chose \"first\" arbitrarily.");
    assert_eq!(cluster.get(events, ".items[*].message"), why);
}

#[test]
fn jobs_run_to_their_end() {
    let Some(cluster) = cluster(&PROFILE) else { return };
    let job = |name: &str, spec: &str, annotations: &str| {
        format!(
            "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: {name}}}\nspec:\n  {spec}\n  template:\n    \
             metadata: {{annotations: {{{annotations}}}}}\n    spec: {{restartPolicy: Never, containers: [{{name: c, image: i}}]}}"
        )
    };
    cluster.apply(&job("many", "parallelism: 2\n  completions: 5", ""));
    cluster.ok(&format!("wait --for=condition=Complete job/many {PATIENCE}"));
    assert_eq!(cluster.get("job/many", ".status.succeeded"), "5");
    assert_eq!(cluster.ok("get pods -l job-name=many --no-headers").matches("Completed").count(), 5);

    cluster.apply(&job("indexed", "parallelism: 3\n  completions: 3\n  completionMode: Indexed", ""));
    cluster.ok(&format!("wait --for=condition=Complete job/indexed {PATIENCE}"));
    assert_eq!(cluster.get("job/indexed", ".status.completedIndexes"), "0-2");

    let fails = "pod-container-running-failed.stage.kwok.x-k8s.io: 'true', \
                 pod-container-running-failed.stage.kwok.x-k8s.io/delay: 0s, \
                 pod-container-running-failed.stage.kwok.x-k8s.io/exit-code: '42'";
    cluster.apply(&job("failing", "backoffLimit: 0", fails));
    cluster.ok(&format!("wait --for=condition=Failed job/failing {PATIENCE}"));
    let pods = "pods -l job-name=failing";
    assert_eq!(cluster.get(pods, ".items[*].status.containerStatuses[*].state.terminated.exitCode"), "42");
    assert_eq!(cluster.get("job/failing", ".status.conditions[?(@.type==\"Failed\")].reason"), "BackoffLimitExceeded");

    cluster.apply(&job("suspended", "suspend: true", ""));
    cluster.ok(&format!("wait --for=condition=Suspended job/suspended {PATIENCE}"));
    cluster.ok("patch job suspended --type=merge -p {\"spec\":{\"suspend\":false}}");
    cluster.ok(&format!("wait --for=condition=Complete job/suspended {PATIENCE}"));

    cluster.apply(&job("fleeting", "ttlSecondsAfterFinished: 0", ""));
    cluster.ok(&format!("wait --for=delete job/fleeting {PATIENCE}"));
    // Its pods are let go of with it.
    cluster.ok(&format!("delete job many {PATIENCE}"));
    cluster.ok(&format!("wait --for=delete pod -l job-name=many {PATIENCE}"));
}

#[test]
fn a_cron_job_starts_jobs() {
    let Some(cluster) = cluster(&PROFILE) else { return };
    cluster.ok("create cronjob tick --image=i --schedule=@yearly");
    cluster.ok("create job --from=cronjob/tick now");
    cluster.ok(&format!("wait --for=condition=Complete job/now {PATIENCE}"));
    cluster.apply(
        "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: often}\nspec:\n  schedule: '@every 1s'\n  jobTemplate: {spec: {template: \
         {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}",
    );
    cluster.ok(&format!("wait --for=jsonpath={{.status.lastSuccessfulTime}} cronjob/often {PATIENCE}"));
    // Jobs that are not kept go without being told of.
    cluster.apply(
        "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: brief}\nspec:\n  schedule: '@every 1s'\n  \
         successfulJobsHistoryLimit: 0\n  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: \
         i}]}}}}",
    );
    let events = |reason: &str| format!("--field-selector involvedObject.name=brief,reason={reason}");
    until("one has gone", || !cluster.ok(&format!("get events {} -o name", events("SuccessfulDelete"))).is_empty());
    cluster.ok(&format!("wait --for=jsonpath={{.status.lastSuccessfulTime}} cronjob/brief {PATIENCE}"));
    assert_eq!(cluster.ok(&format!("get events {} -o name", events("SawCompletedJob"))), "");
}

#[test]
fn a_job_that_people_start_is_not_one_of_the_schedule() {
    let Some(cluster) = cluster(&PROFILE) else { return };
    cluster.apply(
        "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: tick}\nspec:\n  schedule: '@yearly'\n  jobTemplate: {spec: {template: \
         {metadata: {annotations: {pod-complete.stage.kwok.x-k8s.io/weight: '0'}}, spec: {restartPolicy: Never, containers: [{name: c, \
         image: i}]}}}}",
    );
    cluster.ok("create job --from=cronjob/tick now");
    let told = || cluster.ok("get events --field-selector involvedObject.kind=CronJob");
    let message = "Saw a job that the controller did not create or forgot: now";
    until("it is told of", || told().contains(message));
    assert_eq!(cluster.get("cronjob/tick", ".status.active"), "");
}

#[test]
fn a_stateful_set_keeps_its_pods_and_their_claims() {
    let Some(cluster) = cluster(&PROFILE) else { return };
    cluster.apply(
        "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db}\nspec:\n  replicas: 3\n  serviceName: db\n  \
         selector: {matchLabels: {a: b}}\n  template:\n    metadata: {labels: {a: b}}\n    spec: {containers: [{name: c, \
         image: 'i:1', volumeMounts: [{name: data, mountPath: /data}]}]}\n  volumeClaimTemplates:\n  - metadata: {name: data}\n    \
         spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}",
    );
    cluster.rolled_out("statefulset/db");
    assert_eq!(cluster.get("pods", ".items[*].metadata.name"), "db-0 db-1 db-2");
    assert_eq!(cluster.get("pvc", ".items[*].status.phase"), "Bound Bound Bound");
    let uid = cluster.get("pod/db-1", ".metadata.uid");
    // kubectl itself would wait for longer: where the next pod of that name comes between its GET and its watch, it takes
    // that one for the first.
    cluster.ok("delete pod db-1 --wait=false");
    let remade = || ![String::new(), uid.clone()].contains(&cluster.get("pods", OF_SECOND));
    until("another pod comes in its place", remade);
    cluster.wait("statefulset/db", ".status.readyReplicas", "3");
    cluster.ok("set image statefulset/db c=i:2");
    cluster.rolled_out("statefulset/db");
    assert_eq!(cluster.get("pods", ".items[*].spec.containers[0].image"), "i:2 i:2 i:2");
    cluster.ok("rollout undo statefulset/db");
    cluster.rolled_out("statefulset/db");
    assert_eq!(cluster.get("pod/db-0", ".spec.containers[0].image"), "i:1");
    cluster.ok("scale statefulset/db --replicas=2");
    cluster.ok(&format!("wait --for=delete pod/db-2 {PATIENCE}"));
    assert_eq!(cluster.get("pvc", ".items[*].metadata.name"), "data-db-0 data-db-1 data-db-2");
    cluster.ok(&format!("delete pvc data-db-2 {PATIENCE}"));
    let retention =
        "{\"spec\":{\"persistentVolumeClaimRetentionPolicy\":{\"whenDeleted\":\"Delete\",\"whenScaled\":\"Delete\"}}}";
    cluster.ok(&format!("patch statefulset db --type=merge -p {retention}"));
    let owner = ".metadata.ownerReferences[*].kind";
    cluster.wait("pvc/data-db-1", owner, "StatefulSet");
    cluster.ok("scale statefulset/db --replicas=1");
    cluster.ok(&format!("wait --for=delete pvc/data-db-1 {PATIENCE}"));
    // The next pod of that number has a claim of its own.
    cluster.ok("scale statefulset/db --replicas=2");
    cluster.wait("statefulset/db", ".status.readyReplicas", "2");
    assert_eq!(cluster.get("pvc/data-db-1", ".status.phase"), "Bound");
    let told = cluster.ok("get events --field-selector involvedObject.kind=StatefulSet");
    assert!(told.contains("Create Pod db-0 in StatefulSet db successful"), "{told}");
    assert!(told.contains("Create Claim data-db-0 Pod db-0 in StatefulSet db success"), "{told}");
    // A pod has the label with its name again, where somebody took it.
    cluster.ok("label pod db-0 statefulset.kubernetes.io/pod-name-");
    cluster.wait("pod/db-0", ".metadata.labels.statefulset\\.kubernetes\\.io/pod-name", "db-0");
    let retention = "{\"spec\":{\"persistentVolumeClaimRetentionPolicy\":{\"whenScaled\":\"Retain\"}}}";
    cluster.ok(&format!("patch statefulset db --type=merge -p {retention}"));
    cluster.ok("delete statefulset db");
    cluster.ok(&format!("wait --for=delete pvc/data-db-0 {PATIENCE}"));
}

#[test]
fn several_pods_of_a_stateful_set_are_updated_at_once() {
    let Some(cluster) = cluster(&PROFILE) else { return };
    let set = |version: &str, weight: &str| {
        format!(
            "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {{name: db}}\nspec:\n  replicas: 4\n  serviceName: db\n  \
             podManagementPolicy: Parallel\n  updateStrategy: {{rollingUpdate: {{maxUnavailable: 50%}}}}\n  selector: {{matchLabels: \
             {{a: b}}}}\n  template:\n    metadata: {{labels: {{a: b, v: {version}}}, annotations: \
             {{pod-ready.stage.kwok.x-k8s.io/weight: '{weight}'}}}}\n    spec: {{containers: [{{name: c, image: i}}]}}"
        )
    };
    cluster.apply(&set("one", "1"));
    cluster.rolled_out("statefulset/db");
    // New pods that are never ready: half of all are replaced, and no more.
    cluster.apply(&set("two", "0"));
    cluster.wait("statefulset/db", ".status.updatedReplicas", "2");
    cluster.wait("statefulset/db", ".status.readyReplicas", "2");
    assert_eq!(cluster.get("pods", ".items[*].metadata.labels.v"), "one one two two");
}

#[test]
fn a_daemon_set_is_on_every_node_that_comes() {
    let Some(cluster) = cluster(&PROFILE) else { return };
    cluster.apply(
        "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: agent}\nspec:\n  selector: {matchLabels: {a: b}}\n  \
         template:\n    metadata: {labels: {a: b}}\n    spec: {containers: [{name: c, image: 'i:1'}]}",
    );
    cluster.wait("daemonset/agent", ".status.numberAvailable", "3");
    cluster.rolled_out("daemonset/agent");
    cluster.apply("apiVersion: v1\nkind: Node\nmetadata: {name: extra, annotations: {kwok.x-k8s.io/node: fake}}");
    cluster.wait("daemonset/agent", ".status.numberAvailable", "4");
    // What may only stay is misplaced, and what may not goes.
    cluster.ok("taint node extra k=v:NoSchedule");
    cluster.wait("daemonset/agent", ".status.numberMisscheduled", "1");
    assert_eq!(cluster.get("daemonset/agent", ".status.desiredNumberScheduled"), "3");
    cluster.ok("taint node extra k=v:NoExecute");
    cluster.wait("daemonset/agent", ".status.numberMisscheduled", "0");
    assert_eq!(cluster.get("daemonset/agent", ".status.desiredNumberScheduled"), "3");
    cluster.ok("set image daemonset/agent c=i:2");
    cluster.rolled_out("daemonset/agent");
    assert_eq!(cluster.get("pods", ".items[*].spec.containers[0].image"), "i:2 i:2 i:2");
}

#[test]
fn services_have_the_addresses_of_ready_pods() {
    let Some(cluster) = cluster(&PROFILE) else { return };
    cluster.ok("create deployment web --image=web:1 --replicas=2");
    cluster.ok("expose deployment web --port=80 --target-port=8080");
    cluster.rolled_out("deployment/web");
    cluster.wait("endpoints/web", ".subsets[0].addresses[1].targetRef.kind", "Pod");
    assert_eq!(cluster.get("endpoints/web", ".subsets[0].ports[0].port"), "8080");
    let slices = "endpointslices -l kubernetes.io/service-name=web";
    let mut pods: Vec<String> = cluster.get("pods", ".items[*].status.podIP").split(' ').map(str::to_owned).collect();
    let mut told: Vec<String> =
        cluster.get(slices, ".items[*].endpoints[*].addresses[0]").split(' ').map(str::to_owned).collect();
    pods.sort();
    told.sort();
    assert_eq!(told, pods);
    cluster.ok("scale deployment/web --replicas=0");
    cluster.ok(&format!("wait --for=delete pod -l app=web {PATIENCE}"));
    cluster.ok("delete service web");
    cluster.ok(&format!("wait --for=delete endpoints/web {PATIENCE}"));
}

#[test]
fn endpoints_that_people_write_are_mirrored() {
    let Some(cluster) = cluster(&PROFILE) else { return };
    cluster.apply("apiVersion: v1\nkind: Service\nmetadata: {name: db}\nspec: {ports: [{port: 5432}]}");
    let endpoints = |addresses: &str| {
        format!(
            "apiVersion: v1\nkind: Endpoints\nmetadata: {{name: db, labels: {{team: a}}}}\nsubsets: [{{addresses: [{addresses}], \
             ports: [{{port: 5432}}]}}]"
        )
    };
    cluster.apply(&endpoints("{ip: 192.0.2.1}, {ip: 192.0.2.2}"));
    let slices = "endpointslices -l kubernetes.io/service-name=db,team=a";
    let addresses = || cluster.get(slices, ".items[*].endpoints[*].addresses[0]");
    until("they are mirrored", || addresses() == "192.0.2.1 192.0.2.2");
    let manager = ".items[*].metadata.labels.endpointslice\\.kubernetes\\.io/managed-by";
    assert_eq!(cluster.get(slices, manager), "endpointslicemirroring-controller.k8s.io");
    assert_eq!(cluster.get(slices, ".items[*].metadata.ownerReferences[*].kind"), "Endpoints");
    cluster.apply(&endpoints("{ip: 192.0.2.2}"));
    until("they follow", || addresses() == "192.0.2.2");
    // A service that selects pods has no use for them.
    cluster.ok("patch service db --type=merge -p {\"spec\":{\"selector\":{\"app\":\"db\"}}}");
    until("no mirror is left", || addresses().is_empty());
}

#[test]
fn endpoints_say_for_whom_they_are() {
    let Some(cluster) = cluster(&PROFILE) else { return };
    cluster.ok(&format!("wait --for=create node/node-2 {PATIENCE}"));
    for (node, zone) in [("node-0", "a"), ("node-1", "a"), ("node-2", "b")] {
        cluster.ok(&format!("label node {node} topology.kubernetes.io/zone={zone}"));
    }
    cluster.ok("create deployment web --image=web:1 --replicas=3");
    cluster.rolled_out("deployment/web");
    let service = |annotations: &str, spec: &str| {
        format!(
            "apiVersion: v1\nkind: Service\nmetadata: {{name: web, annotations: {{{annotations}}}}}\nspec: {{selector: {{app: web}}, ports: \
             [{{port: 80}}]{spec}}}"
        )
    };
    let slices = "endpointslices -l kubernetes.io/service-name=web";
    let sorted = |path: &str| {
        let mut found: Vec<String> = cluster.get(slices, path).split(' ').map(str::to_owned).collect();
        found.sort();
        found.join(" ")
    };
    let (zones, nodes) =
        (".items[*].endpoints[*].hints.forZones[*].name", ".items[*].endpoints[*].hints.forNodes[*].name");
    cluster.apply(&service("", ", trafficDistribution: PreferSameZone"));
    until("each is for its zone", || sorted(zones) == "a a b");
    assert_eq!(sorted(nodes), "");
    cluster.apply(&service("", ", trafficDistribution: PreferSameNode"));
    until("each is for its node first", || sorted(nodes) == "node-0 node-1 node-2");
    cluster.apply(&service("", ""));
    until("each is for all", || sorted(zones).is_empty() && sorted(nodes).is_empty());
    cluster.apply(&service("service.kubernetes.io/topology-mode: Auto", ""));
    until("zones share them out by their processors", || sorted(zones) == "a a b");
    // One can't be shared out among two zones.
    cluster.ok("scale deployment/web --replicas=1");
    until("each is for all again", || sorted(zones).is_empty());
    let told = cluster.ok("get events --field-selector involvedObject.kind=Service");
    assert!(told.contains("Topology Aware Hints has been enabled, addressType: IPv4"), "{told}");
    let why = "Insufficient number of endpoints (1 endpoints, 2 zones), addressType: IPv4";
    until("it is said why", || cluster.ok("get events --field-selector involvedObject.kind=Service").contains(why));
}

#[test]
fn what_matters_more_goes_first() {
    let Some(cluster) = cluster(&["--simulate-nodes", "1,cpu=1"]) else { return };
    cluster.ok("create priorityclass high --value=1000");
    let pod = |name: &str, more: &str| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec: {{{more}containers: [{{name: c, image: i, \
             resources: {{requests: {{cpu: '1'}}}}}}]}}"
        )
    };
    cluster.apply(&pod("low", ""));
    cluster.ok(&format!("wait --for=condition=Ready pod/low {PATIENCE}"));
    cluster.apply(&pod("high", "priorityClassName: high, "));
    cluster.ok(&format!("wait --for=condition=Ready pod/high {PATIENCE}"));
    assert!(cluster.kubectl.fails("get pod low").contains("NotFound"));
}

#[test]
fn what_quotas_limit_is_free_again_when_it_goes() {
    let Some(cluster) = cluster(&PROFILE) else { return };
    cluster.ok("create quota few --hard=pods=2,configmaps=5");
    cluster.wait("quota/few", ".status.hard.pods", "2");
    cluster.ok("create deployment web --image=web:1 --replicas=3");
    cluster.wait("deployment/web", ".status.availableReplicas", "2");
    cluster.wait("quota/few", ".status.used.pods", "2");
    let reason = "deployment/web -o jsonpath={.status.conditions[?(@.type==\"ReplicaFailure\")].reason}";
    assert_eq!(cluster.ok(&format!("get {reason}")), "FailedCreate");
    cluster.ok("scale deployment/web --replicas=1");
    cluster.wait("quota/few", ".status.used.pods", "1");
}

#[test]
fn a_surge_of_a_daemon_set_brings_new_pods_before_old_ones_go() {
    let Some(cluster) = cluster(&PROFILE) else { return };
    let set = |version: &str, weight: &str| {
        format!(
            "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {{name: agent}}\nspec:\n  selector: {{matchLabels: {{a: b}}}}\n  \
             updateStrategy: {{rollingUpdate: {{maxSurge: 1, maxUnavailable: 0}}}}\n  template:\n    metadata: {{labels: {{a: b, v: {version}}}, \
             annotations: {{pod-ready.stage.kwok.x-k8s.io/weight: '{weight}'}}}}\n    spec: {{containers: [{{name: c, image: i}}]}}"
        )
    };
    cluster.apply(&set("one", "1"));
    cluster.wait("daemonset/agent", ".status.numberAvailable", "3");
    // New pods that are never ready: one comes, and none goes for it.
    cluster.apply(&set("two", "0"));
    cluster.ok(&format!("wait --for=create pod -l v=two {PATIENCE}"));
    cluster.ok(&format!("wait --for=jsonpath={{.status.phase}}=Running pod -l v=two {PATIENCE}"));
    // Of two pods of a node the older counts in the set's status, and times are in seconds: so the pods are asked.
    assert_eq!(cluster.get("pods -l v=one", ".items[*].status.containerStatuses[*].ready"), "true true true");
    cluster.apply(&set("three", "1"));
    cluster.rolled_out("daemonset/agent");
    assert_eq!(cluster.get("pods", ".items[*].metadata.labels.v"), "three three three");
}

/// A stage for pods of one index of a Job: they end in that phase.
fn ending(index: u32, phase: &str, exit: u32) -> String {
    format!(
        "apiVersion: kwok.x-k8s.io/v1alpha1\nkind: Stage\nmetadata: {{name: ends-{index}}}\nspec:\n  \
         resourceRef: {{apiGroup: v1, kind: Pod}}\n  selector:\n    matchLabels: {{batch.kubernetes.io/job-completion-index: '{index}'}}\n    \
         matchExpressions: [{{key: .status.phase, operator: In, values: [Running]}}]\n  next:\n    statusTemplate: |\n      \
         {{{{ $now := Now }}}}\n      phase: {phase}\n      containerStatuses:\n      {{{{ range .spec.containers }}}}\n      \
         - name: {{{{ .name | Quote }}}}\n        image: {{{{ .image | Quote }}}}\n        imageID: ''\n        ready: false\n        restartCount: 0\n        \
         state: {{terminated: {{exitCode: {exit}, reason: Staged, finishedAt: {{{{ $now | Quote }}}}}}}}\n      {{{{ end }}}}\n---\n"
    )
}

fn indexed(name: &str, spec: &str, annotations: &str) -> String {
    format!(
        "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: {name}}}\nspec:\n  completions: 3\n  parallelism: 3\n  completionMode: Indexed\n  \
         {spec}\n  template:\n    metadata: {{annotations: {{{annotations}}}}}\n    spec: {{restartPolicy: Never, containers: [{{name: c, image: i}}]}}"
    )
}

#[test]
fn an_index_that_fails_too_often_fails_alone() {
    let Some(cluster) = staged(&ending(1, "Failed", 7)) else { return };
    cluster.apply(&indexed("each", "backoffLimitPerIndex: 0", ""));
    cluster.ok(&format!("wait --for=condition=Failed job/each {PATIENCE}"));
    assert_eq!(cluster.get("job/each", ".status.failedIndexes"), "1");
    assert_eq!(cluster.get("job/each", ".status.completedIndexes"), "0,2");
    assert_eq!(cluster.get("job/each", ".status.conditions[?(@.type==\"Failed\")].reason"), "FailedIndexes");
    let pod = "pods -l batch.kubernetes.io/job-completion-index=1";
    let ended = ".items[0].status.containerStatuses[0].state.terminated";
    assert_eq!(cluster.get(pod, &format!("{ended}.reason")), "Staged");
    assert_eq!(cluster.get(pod, &format!("{ended}.exitCode")), "7");
}

#[test]
fn a_job_succeeds_by_the_index_that_it_names() {
    let Some(cluster) = staged(&ending(0, "Succeeded", 0)) else { return };
    // The others never end by themselves.
    let endless = "pod-complete.stage.kwok.x-k8s.io/weight: '0'";
    cluster.apply(&indexed("first", "successPolicy: {rules: [{succeededIndexes: '0'}]}", endless));
    cluster.ok(&format!("wait --for=condition=Complete job/first {PATIENCE}"));
    assert_eq!(cluster.get("job/first", ".status.completedIndexes"), "0");
    assert_eq!(
        cluster.get("job/first", ".status.conditions[?(@.type==\"SuccessCriteriaMet\")].reason"),
        "SuccessPolicy"
    );
}

#[test]
fn a_cron_job_follows_the_clock_of_its_control_plane() {
    let Some(cluster) = cluster(&PROFILE) else { return };
    let clock = |change: &str| cluster.clock(change);
    clock(r#"{"time": "2031-05-05T01:00:00Z"}"#);
    cluster.apply(
        "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: nightly}\nspec:\n  schedule: '0 3 * * *'\n  jobTemplate: {spec: {template: \
         {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}",
    );
    clock(r#"{"advance": "1h59m"}"#);
    assert_eq!(cluster.ok("get jobs -o name"), "");
    clock(r#"{"advance": "2m"}"#);
    cluster.wait("cronjob/nightly", ".status.lastScheduleTime", "2031-05-05T03:00:00Z");
    cluster.ok(&format!("wait --for=jsonpath={{.status.lastSuccessfulTime}} cronjob/nightly {PATIENCE}"));
    clock(r#"{"advance": "24h"}"#);
    cluster.wait("cronjob/nightly", ".status.lastScheduleTime", "2031-05-06T03:00:00Z");
}

#[test]
fn a_simulated_pod_says_what_it_is_said_to_say() {
    let Some(cluster) = cluster(&PROFILE) else { return };
    cluster.apply(
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\n  annotations: {logs.skiff.kubeskiff.dev/c: \"one\\ntwo\\n\"}\n\
         spec: {containers: [{name: c, image: i}, {name: quiet, image: i}]}",
    );
    cluster.ok(&format!("wait --for=condition=Ready pod/web {PATIENCE}"));
    assert_eq!(cluster.ok("logs web -c c"), "one\ntwo\n");
    assert_eq!(cluster.ok("logs web -c c --tail=1"), "two\n");
    assert_eq!(cluster.ok("logs web -c quiet"), "");
    let previous = cluster.kubectl.fails("logs web -c c --previous");
    assert!(previous.contains("previous terminated container \"c\" in pod \"web\" not found"), "{previous}");
    // One to debug with is there at once, so that kubectl does not wait for it.
    cluster.ok("debug web --image=i --container=debugger --profile=general");
    cluster.wait("pod/web", ".status.ephemeralContainerStatuses[0].name", "debugger");
    for (command, why) in [
        ("exec web -c c -- true", "no command can be run in it"),
        ("attach web -c c", "there is no process to attach to"),
        ("port-forward web 18080:80", "no port of it can be reached"),
    ] {
        let told = cluster.kubectl.fails(command);
        assert!(told.contains("pod web is on the simulated node") && told.contains(why), "{command}: {told}");
    }
}

#[test]
fn stages_of_kwok_are_followed() {
    let stages = "apiVersion: kwok.x-k8s.io/v1alpha1\nkind: Stage\nmetadata: {name: says}\nspec:\n  resourceRef: {apiGroup: v1, kind: Pod}\n  \
                  selector:\n    matchExpressions:\n    - {key: '.metadata.annotations[\"said\"]', operator: DoesNotExist}\n    \
                  - {key: '.status.conditions.[] | select( .type == \"Ready\" ) | .status', operator: In, values: ['True']}\n  next:\n    \
                  event: {type: Normal, reason: Said, message: it says something}\n    patches:\n    - type: merge\n      template: |\n        \
                  metadata: {annotations: {said: 'yes', logs.skiff.kubeskiff.dev/c: {{ .metadata.name | Quote }}}}\n";
    let Some(cluster) = staged(stages) else { return };
    cluster.ok("run web --image=i");
    cluster.apply("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i}]}");
    cluster.wait("pod/p", ".metadata.annotations.said", "yes");
    assert_eq!(cluster.ok("logs p"), "p\n");
    let told = cluster.ok("get events --field-selector reason=Said");
    assert!(told.contains("it says something"), "{told}");
}

#[test]
fn stages_are_for_nodes_and_for_any_other_kind() {
    let stages = "
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: node-fails}
spec:
  resourceRef: {kind: Node}
  selector:
    matchLabels: {fails: 'yes'}
    matchExpressions:
    - {key: '.status.conditions.[] | select( .type == \"Ready\" ) | .status', operator: In, values: ['True']}
    - {key: .status.phase, operator: In, values: [Running]}
  next:
    statusTemplate: |
      conditions:
      {{ range NodeConditions }}
      {{ if eq .type \"Ready\" }}
      - {type: Ready, status: \"False\", reason: Fails, message: {{ NodeName | Quote }}}
      {{ end }}
      {{ end }}
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: map-is-kept}
spec:
  resourceRef: {apiGroup: v1, kind: ConfigMap}
  selector: {matchLabels: {kept: 'yes'}}
  steps:
  - patch: {type: merge, template: 'data: {seen: \"yes\"}'}
  - finalizers: {add: [{value: example.com/a}]}
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: boat-floats}
spec:
  resourceRef: {apiGroup: example.com/v1, kind: Boat}
  selector:
    matchExpressions:
    - {key: .status.phase, operator: DoesNotExist}
  next:
    event: {type: Normal, reason: Floats, message: it floats}
    statusTemplate: 'phase: Afloat'
";
    let Some(cluster) = staged(stages) else { return };
    cluster.ok("label node node-1 fails=yes");
    cluster.wait("node/node-1", ".status.conditions[?(@.type==\"Ready\")].message", "node-1");
    cluster.ok(&format!(
        "wait --for=jsonpath={{.spec.taints[0].key}}=node.kubernetes.io/not-ready node/node-1 {PATIENCE}"
    ));
    cluster.apply(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m, labels: {kept: 'yes'}, finalizers: [example.com/a, example.com/b]}",
    );
    cluster.wait("configmap/m", ".data.seen", "yes");
    cluster.ok("patch configmap m --type=merge -p {\"metadata\":{\"finalizers\":[\"example.com/b\"]}}");
    let finalizers = |last: &str| cluster.wait("configmap/m", ".metadata.finalizers[1]", last);
    finalizers("example.com/a");
    assert_eq!(cluster.get("configmap/m", ".metadata.finalizers"), "[\"example.com/b\",\"example.com/a\"]");
    // The definition comes after the stages.
    cluster.apply(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: boats.example.com}\nspec:\n  \
         group: example.com\n  scope: Namespaced\n  names: {plural: boats, kind: Boat}\n  versions:\n  - name: v1\n    \
         served: true\n    storage: true\n    subresources: {status: {}}\n    schema: {openAPIV3Schema: {type: object, \
         x-kubernetes-preserve-unknown-fields: true}}",
    );
    cluster.ok(&format!("wait --for=condition=Established crd/boats.example.com {PATIENCE}"));
    cluster.apply("apiVersion: example.com/v1\nkind: Boat\nmetadata: {name: b}");
    cluster.wait("boat/b", ".status.phase", "Afloat");
    assert!(cluster.ok("get events --field-selector reason=Floats").contains("it floats"));
}

#[test]
fn stages_that_are_not_understood_are_refused_at_the_start() {
    let folder = Folder::for_test();
    let file = folder.0.join("stages.yaml");
    let stage = "apiVersion: kwok.x-k8s.io/v1alpha1\nkind: Stage\nmetadata: {name: s}\nspec:\n  resourceRef: {kind: Pod}\n  \
                 next: {statusTemplate: '{{ env }}'}\n";
    std::fs::write(&file, stage).expect("the folder is writable");
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_skiff"));
    command.args(["serve", "--temporary", "--listen", "127.0.0.1:0", "--stages"]).arg(&file).arg("--data-dir");
    let done = command.arg(folder.0.join("data")).output().expect("it runs");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.code() == Some(2) && said.contains("the stage `s`: a template has the functions"), "{said}");
}

#[test]
fn a_secret_for_a_token_is_filled_and_goes_with_its_account() {
    let Some(cluster) = cluster(&["--controllers", "*,serviceaccount-token"]) else { return };
    let secret = |name: &str| {
        format!(
            "apiVersion: v1\nkind: Secret\nmetadata: {{name: {name}, annotations: {{kubernetes.io/service-account.name: ci}}}}\n\
             type: kubernetes.io/service-account-token"
        )
    };
    // Without its account there is none.
    cluster.apply(&secret("early"));
    cluster.ok(&format!("wait --for=delete secret/early {PATIENCE}"));
    cluster.ok("create serviceaccount ci");
    cluster.apply(&secret("ci-token"));
    cluster.ok(&format!("wait --for=jsonpath={{.data.token}} secret/ci-token {PATIENCE}"));
    let data = |field: &str| {
        let encoded = cluster.get("secret/ci-token", &format!(".data.{field}"));
        let decoded = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, encoded);
        String::from_utf8(decoded.expect("it is base64")).expect("it is text")
    };
    assert_eq!(data("namespace"), "default");
    assert_eq!(format!("{}\n", data("ca\\.crt").trim()), cluster.ca());
    let uid = cluster.get("secret/ci-token", ".metadata.annotations.kubernetes\\.io/service-account\\.uid");
    assert_eq!(uid, cluster.get("serviceaccount/ci", ".metadata.uid"));
    let header = format!("Authorization: Bearer {}\r\n", data("token"));
    let pods = |header: &str| identity::get(&cluster.server, "/api/v1/namespaces/default/pods", None, header).status;
    assert_eq!(pods(&header), 200);
    let used = cluster.get("secret/ci-token", ".metadata.labels.kubernetes\\.io/legacy-token-last-used");
    assert_eq!(used.len(), "2026-01-01".len(), "{used}");
    // One that its account lists was made by the server, as far as anybody can tell.
    let warning = |header: &str| {
        let answer = identity::get(&cluster.server, "/api/v1/namespaces/default/pods", None, header);
        answer.header("warning").to_owned()
    };
    assert_eq!(warning(&header), "");
    cluster.ok("patch serviceaccount ci --type=merge -p {\"secrets\":[{\"name\":\"ci-token\"}]}");
    assert!(warning(&header).contains("instead of auto-generated secret-based tokens."), "{}", warning(&header));
    let spaced = header.replace("Bearer ", "Bearer  ");
    assert!(warning(&spaced).contains("extra space before the bearer token"), "{}", warning(&spaced));
    // Whoever administers the accounts may take it out of use.
    cluster.ok("label secret ci-token kubernetes.io/legacy-token-invalid-since=2026-01-01");
    assert_eq!(pods(&header), 401);
    cluster.ok("label secret ci-token kubernetes.io/legacy-token-invalid-since-");
    assert_eq!(pods(&header), 200);

    // What an account names goes from it with the Secret.
    cluster.apply(&secret("other"));
    cluster.ok(&format!("wait --for=jsonpath={{.data.token}} secret/other {PATIENCE}"));
    cluster.ok("patch serviceaccount ci --type=merge -p {\"secrets\":[{\"name\":\"other\"},{\"name\":\"kept\"}]}");
    cluster.ok("delete secret other");
    cluster.wait("serviceaccount/ci", ".secrets[*].name", "kept");

    cluster.ok("delete serviceaccount ci");
    cluster.ok(&format!("wait --for=delete secret/ci-token {PATIENCE}"));
    assert_eq!(pods(&header), 401);
}
