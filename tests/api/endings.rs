//! Workloads that fail, and as many as are wanted of those that do not, by kubectl.

use super::workloads::{PATIENCE, PROFILE, cluster};

/// The annotations of a pod whose container fails at once with an exit code.
fn failing(exit_code: u32) -> String {
    let stage = "pod-container-running-failed.stage.kwok.x-k8s.io";
    format!("{stage}: 'true', {stage}/delay: 0s, {stage}/exit-code: '{exit_code}'")
}

fn job(name: &str, spec: &str, exit_code: u32) -> String {
    let annotations = failing(exit_code);
    format!(
        "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: {name}}}\nspec:\n  {spec}\n  template:\n    \
         metadata: {{annotations: {{{annotations}}}}}\n    spec: {{restartPolicy: Never, containers: [{{name: c, image: i}}]}}"
    )
}

const REASON: &str = ".status.conditions[?(@.type==\"Failed\")].reason";

#[test]
fn a_container_that_fails_again_and_again_is_in_a_crash_loop() {
    let Some(cluster) = cluster(&PROFILE) else { return };
    let annotations = failing(3);
    cluster.apply(&format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: p, annotations: {{{annotations}}}}}\nspec: {{containers: [{{name: c, image: i}}]}}"
    ));
    let container = ".status.containerStatuses[0]";
    cluster.pass("1m", &format!("--for=jsonpath={{{container}.state.waiting.reason}}=CrashLoopBackOff pod/p"));
    assert_eq!(cluster.get("pod/p", &format!("{container}.lastState.terminated.exitCode")), "3");
    assert_eq!(cluster.get("pod/p", ".status.phase"), "Running");
    let count = || cluster.get("pod/p", &format!("{container}.restartCount")).parse::<u32>().expect("it is a number");
    let before = count();
    cluster.pass("10m", &format!("--for=jsonpath={{{container}.restartCount}}={} pod/p", before + 1));
}

#[test]
fn a_job_fails_by_the_exit_code_that_its_policy_names() {
    let Some(cluster) = cluster(&PROFILE) else { return };
    let policy =
        "backoffLimit: 6\n  podFailurePolicy: {rules: [{action: FailJob, onExitCodes: {operator: In, values: [42]}}]}";
    cluster.apply(&job("strict", policy, 42));
    cluster.ok(&format!("wait --for=condition=Failed job/strict {PATIENCE}"));
    assert_eq!(cluster.get("job/strict", REASON), "PodFailurePolicy");
    assert_eq!(cluster.get("job/strict", ".status.failed"), "1");
}

#[test]
fn a_job_tries_as_often_as_it_may_with_pauses_between() {
    let Some(cluster) = cluster(&PROFILE) else { return };
    cluster.apply(&job("stubborn", "backoffLimit: 2", 1));
    cluster.wait("job/stubborn", ".status.failed", "1");
    cluster.pass("10m", "--for=condition=Failed job/stubborn");
    assert_eq!(cluster.get("job/stubborn", REASON), "BackoffLimitExceeded");
    assert_eq!(cluster.get("job/stubborn", ".status.failed"), "3");
}

#[test]
fn a_replication_controller_keeps_as_many_pods_as_are_wanted() {
    let Some(cluster) = cluster(&PROFILE) else { return };
    cluster.apply(
        "apiVersion: v1\nkind: ReplicationController\nmetadata: {name: old}\nspec: {replicas: 2, selector: {a: b}, \
         template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}",
    );
    cluster.wait("rc/old", ".status.readyReplicas", "2");
    cluster.ok("scale rc/old --replicas=3");
    cluster.wait("rc/old", ".status.readyReplicas", "3");
    let pod = cluster.get("pods -l a=b", ".items[0].metadata.name");
    cluster.ok(&format!("delete pod {pod} {PATIENCE}"));
    cluster.wait("rc/old", ".status.readyReplicas", "3");
    cluster.ok("scale rc/old --replicas=0");
    cluster.ok(&format!("wait --for=delete pod -l a=b {PATIENCE}"));
}

#[test]
fn pods_have_the_account_and_the_token_of_their_namespace() {
    let Some(cluster) = cluster(&PROFILE) else { return };
    cluster.ok("create namespace fresh");
    cluster.ok("run web --image=i --namespace=fresh");
    let path = ".spec.volumes[0].projected.sources[0].serviceAccountToken.path";
    let said =
        cluster.ok(&format!("get pod web --namespace=fresh -o jsonpath={{.spec.serviceAccountName}}/{{{path}}}"));
    assert_eq!(said, "default/token");
    cluster.ok(&format!("wait --for=condition=Ready pod/web --namespace=fresh {PATIENCE}"));
}

const FLEETS: &str = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: fleets.example.com}\nspec:\n  \
                      group: example.com\n  scope: Namespaced\n  names: {plural: fleets, singular: fleet, kind: Fleet}\n  versions:\n  \
                      - name: v1\n    served: true\n    storage: true\n    subresources: {scale: {specReplicasPath: .spec.replicas, \
                      statusReplicasPath: .status.replicas}}\n    schema: {openAPIV3Schema: {type: object, \
                      x-kubernetes-preserve-unknown-fields: true}}";

#[test]
fn a_budget_counts_on_what_the_scale_of_any_kind_says() {
    let Some(cluster) = cluster(&PROFILE) else { return };
    cluster.apply(FLEETS);
    cluster.apply("apiVersion: example.com/v1\nkind: Fleet\nmetadata: {name: f}\nspec: {replicas: 4}");
    let uid = cluster.get("fleet/f", ".metadata.uid");
    for name in ["a", "b"] {
        cluster.apply(&format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, labels: {{app: fleet}}, ownerReferences: [{{apiVersion: example.com/v1, \
             kind: Fleet, name: f, uid: {uid}, controller: true}}]}}\nspec: {{containers: [{{name: c, image: i}}]}}"
        ));
    }
    cluster.ok("create pdb fleet --selector=app=fleet --max-unavailable=50%");
    cluster.wait("pdb/fleet", ".status.expectedPods", "4");
    cluster.wait("pdb/fleet", ".status.currentHealthy", "2");
    assert_eq!(cluster.get("pdb/fleet", ".status.desiredHealthy"), "2");
    // A change of the Scale counts at once.
    cluster.ok("scale fleet/f --replicas=2");
    cluster.wait("pdb/fleet", ".status.disruptionsAllowed", "1");
}
