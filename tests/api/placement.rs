//! Where pods go and where they do not stay, by kubectl: company that they wait for, taints, nodes that go or fall silent.

use super::overrides::until;
use super::workloads::{Cluster, PATIENCE, PROFILE, cluster};

/// A cluster of three nodes that are ready.
fn settled() -> Option<Cluster> {
    let cluster = cluster(&PROFILE)?;
    cluster.ok(&format!("wait --for=create node/node-2 {PATIENCE}"));
    cluster.ok(&format!("wait --for=condition=Ready node/node-0 node/node-1 node/node-2 {PATIENCE}"));
    Some(cluster)
}

fn pod(name: &str, spec: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec: {{{spec}containers: [{{name: c, image: i}}]}}"
    )
}

const SCHEDULED: &str = ".status.conditions[?(@.type==\"PodScheduled\")]";

#[test]
fn a_pod_that_must_be_beside_another_waits_for_it() {
    let Some(cluster) = settled() else { return };
    let beside = "affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, \
                  labelSelector: {matchLabels: {app: db}}}]}}, ";
    cluster.apply(&pod("web", beside));
    cluster.wait("pod/web", &format!("{SCHEDULED}.reason"), "Unschedulable");
    let why = "0/3 nodes are available: 3 node(s) didn't match pod affinity rules. no new claims to deallocate, preemption: 0/3 nodes \
               are available: 3 Preemption is not helpful for scheduling.";
    assert_eq!(cluster.get("pod/web", &format!("{SCHEDULED}.message")), why);
    // A pod becomes company by its labels, too.
    cluster.ok("run db --image=i");
    cluster.ok(&format!("wait --for=condition=Ready pod/db {PATIENCE}"));
    cluster.ok("label pod db app=db");
    cluster.ok(&format!("wait --for=condition=Ready pod/web {PATIENCE}"));
    assert_eq!(cluster.get("pod/web", ".spec.nodeName"), cluster.get("pod/db", ".spec.nodeName"));
}

/// A cluster of one node that has just been tainted: `patient` tolerates it for 600 s, and a pod that does not has gone.
fn tainted() -> Option<Cluster> {
    let cluster = cluster(&["--simulate-nodes", "1"])?;
    let patient = "tolerations: [{key: k, operator: Exists, effect: NoExecute, tolerationSeconds: 600}], ";
    cluster.apply(&pod("patient", patient));
    cluster.apply(&pod("hasty", ""));
    cluster.ok(&format!("wait --for=condition=Ready pod/patient pod/hasty {PATIENCE}"));
    cluster.ok("taint node node-0 k=v:NoExecute");
    cluster.ok(&format!("wait --for=delete pod/hasty {PATIENCE}"));
    Some(cluster)
}

#[test]
fn pods_stay_on_a_tainted_node_as_long_as_they_tolerate_it() {
    let Some(cluster) = tainted() else { return };
    assert_eq!(cluster.get("pod/patient", ".status.phase"), "Running");
    cluster.apply(&pod("late", ""));
    cluster.wait("pod/late", &format!("{SCHEDULED}.reason"), "Unschedulable");
    let why = cluster.get("pod/late", &format!("{SCHEDULED}.message"));
    assert!(why.starts_with("0/1 nodes are available: 1 node(s) had untolerated taint(s). "), "{why}");
    cluster.pass("5m", "--for=delete pod/patient");
    cluster.ok("taint node node-0 k-");
    cluster.ok(&format!("wait --for=condition=Ready pod/late {PATIENCE}"));
}

#[test]
fn the_time_for_which_a_taint_is_tolerated_counts_from_the_taint() {
    let Some(cluster) = tainted() else { return };
    cluster.clock(r#"{"advance": "400s"}"#);
    // What else changes has nothing begin anew.
    cluster.ok("label node node-0 a=b");
    assert_eq!(cluster.get("pod/patient", ".status.phase"), "Running");
    cluster.clock(r#"{"advance": "250s"}"#);
    cluster.ok(&format!("wait --for=delete pod/patient {PATIENCE}"));
}

#[test]
fn a_pod_that_need_not_go_any_more_is_told_so() {
    let Some(cluster) = tainted() else { return };
    cluster.ok("taint node node-0 k-");
    let told = "--field-selector involvedObject.name=patient,reason=TaintManagerEviction";
    cluster.ok(&format!("wait --for=create event {told} {PATIENCE}"));
    assert_eq!(
        cluster.get(&format!("events {told}"), ".items[*].message"),
        "Cancelling deletion of Pod default/patient"
    );
}

#[test]
fn nodes_that_come_and_go_are_told() {
    let Some(cluster) = cluster(&["--controllers", "*,nodelifecycle"]) else { return };
    cluster.apply("apiVersion: v1\nkind: Node\nmetadata: {name: mine, labels: {kubernetes.io/arch: arm64}}");
    cluster.wait("node/mine", ".metadata.labels.beta\\.kubernetes\\.io/arch", "arm64");
    cluster.ok("delete node mine");
    for (reason, message) in [
        ("RegisteredNode", "Node mine event: Registered Node mine in Controller"),
        ("RemovingNode", "Node mine event: Removing Node mine from Controller"),
    ] {
        let told = format!("--field-selector involvedObject.name=mine,reason={reason}");
        until("it is told", || !cluster.ok(&format!("get events {told} -o name")).is_empty());
        assert_eq!(cluster.get(&format!("events {told}"), ".items[*].message"), message);
    }
}

#[test]
fn a_node_that_comes_back_keeps_its_pods() {
    let Some(cluster) = cluster(&["--simulate-nodes", "1", "--controllers", "*,podgc"]) else { return };
    cluster.apply(&pod("web", ""));
    cluster.ok(&format!("wait --for=condition=Ready pod/web {PATIENCE}"));
    cluster.ok("delete node node-0");
    cluster.clock(r#"{"advance": "30s"}"#);
    cluster.apply("apiVersion: v1\nkind: Node\nmetadata: {name: node-0, annotations: {kwok.x-k8s.io/node: fake}}");
    cluster.ok(&format!("wait --for=condition=Ready node/node-0 {PATIENCE}"));
    cluster.ok("delete node node-0");
    // The next time counts from its own beginning.
    cluster.clock(r#"{"advance": "30s"}"#);
    let waited = cluster.kubectl.run("wait --for=delete pod/web --timeout=2s");
    assert_eq!((waited.code, cluster.get("pod/web", ".status.phase").as_str()), (Some(1), "Running"));
    cluster.clock(r#"{"advance": "15s"}"#);
    cluster.ok(&format!("wait --for=delete pod/web {PATIENCE}"));
}

#[test]
fn pods_of_a_node_that_is_gone_go_and_come_elsewhere() {
    let Some(cluster) = settled() else { return };
    cluster.ok("create deployment web --image=web:1 --replicas=3");
    cluster.rolled_out("deployment/web");
    let [name, node] = ["name", "nodeName"].map(|field| {
        let part = if field == "name" { "metadata" } else { "spec" };
        cluster.get("pods -l app=web", &format!(".items[0].{part}.{field}"))
    });
    cluster.ok(&format!("delete node {node}"));
    cluster.pass("30s", &format!("--for=delete pod/{name}"));
    cluster.wait("deployment/web", ".status.availableReplicas", "3");
    assert!(!cluster.get("pods -l app=web", ".items[*].spec.nodeName").contains(&node));
}

#[test]
fn a_node_that_falls_silent_is_unknown() {
    let Some(cluster) = settled() else { return };
    cluster.apply(
        "apiVersion: v1\nkind: Node\nmetadata: {name: real}\nstatus: {conditions: [{type: Ready, status: 'True', reason: KubeletReady, \
         lastHeartbeatTime: '2026-01-01T00:00:00Z', lastTransitionTime: '2026-01-01T00:00:00Z'}]}",
    );
    let ready = ".status.conditions[?(@.type==\"Ready\")]";
    assert_eq!(cluster.get("node/real", &format!("{ready}.status")), "True");
    // No kubelet is there, so the test says of the pod what one would.
    cluster.apply(&pod("there", "nodeName: real, "));
    let status = r#"{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}"#;
    cluster.ok(&format!("patch pod there --subresource=status --type=merge -p {status}"));
    cluster.pass("30s", &format!("--for=jsonpath={{{ready}.status}}=Unknown node/real"));
    assert_eq!(cluster.get("node/real", &format!("{ready}.message")), "Kubelet stopped posting node status.");
    // Its pods were told first.
    assert_eq!(cluster.get("pod/there", &format!("{ready}.status")), "False");
    let told = || cluster.ok("get events --field-selector involvedObject.name=there");
    until("it is told why", || told().contains("Node is not ready"));
    let taint = ".spec.taints[?(@.effect==\"NoExecute\")].key";
    cluster.wait("node/real", taint, "node.kubernetes.io/unreachable");
    // Simulated nodes say nothing, and are not waited for.
    assert_eq!(cluster.get("node/node-0", &format!("{ready}.status")), "True");
}
