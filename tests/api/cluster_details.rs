//! What controllers leave behind in objects and events, as kube-controller-manager and kube-scheduler 1.36 were seen to.

use super::overrides::until;
use super::workloads::{Cluster, PATIENCE, PROFILE, cluster};

/// What selects the events of an object with a reason.
fn events_of(name: &str, reason: &str) -> String {
    format!("--field-selector involvedObject.name={name},reason={reason}")
}

/// Waits for an event of an object with a reason.
fn wait_for_event(cluster: &Cluster, name: &str, reason: &str) {
    // kubectl's own wait ends at once where a selector finds nothing yet.
    until(reason, || !cluster.ok(&format!("get events {} -o name", events_of(name, reason))).is_empty());
}

/// A path of the first event of an object with a reason.
fn event(cluster: &Cluster, name: &str, reason: &str, path: &str) -> String {
    cluster.ok(&format!("get events {} -o jsonpath={{.items[0]{path}}}", events_of(name, reason)))
}

#[test]
fn the_revision_of_a_deployment_does_not_raise_its_generation() {
    let Some(cluster) = cluster(&PROFILE) else { return };
    cluster.ok("create deployment web --image=web:1");
    cluster.rolled_out("deployment/web");
    assert_eq!(cluster.get("deployment/web", ".metadata.annotations"), "{\"deployment.kubernetes.io/revision\":\"1\"}");
    assert_eq!(cluster.get("deployment/web", ".metadata.generation"), "1");
    cluster.ok("set image deployment/web web=web:2");
    cluster.rolled_out("deployment/web");
    assert_eq!(cluster.get("deployment/web", ".status.observedGeneration"), "2");
}

#[test]
fn pods_that_a_job_no_longer_needs_have_not_failed() {
    let Some(cluster) = cluster(&PROFILE) else { return };
    let stays = "pod-complete.stage.kwok.x-k8s.io/weight: '0'";
    cluster.apply(&format!(
        "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: j}}\nspec:\n  parallelism: 2\n  completions: 4\n  template:\n    \
         metadata: {{annotations: {{{stays}}}}}\n    spec: {{restartPolicy: Never, containers: [{{name: c, image: i}}]}}"
    ));
    cluster.wait("job/j", ".status.ready", "2");
    cluster.ok("patch job j --type=merge -p {\"spec\":{\"parallelism\":1}}");
    cluster.wait("job/j", ".status.ready", "1");
    cluster.ok("patch job j --type=merge -p {\"spec\":{\"suspend\":true}}");
    cluster.ok(&format!("wait --for=condition=Suspended job/j {PATIENCE}"));
    cluster.ok(&format!("wait --for=delete pod -l job-name=j {PATIENCE}"));
    assert_eq!(cluster.get("job/j", ".status.failed"), "");
    let condition = ".status.conditions[?(@.type==\"Suspended\")]";
    let changed = cluster.get("job/j", &format!("{condition}.lastTransitionTime"));
    assert_eq!(cluster.get("job/j", &format!("{condition}.lastProbeTime")), changed);
}

#[test]
fn sets_mark_their_revisions_and_pods() {
    let Some(cluster) = cluster(&PROFILE) else { return };
    for kind in ["DaemonSet", "StatefulSet"] {
        let name = kind.to_lowercase();
        cluster.apply(&format!(
            "apiVersion: apps/v1\nkind: {kind}\nmetadata: {{name: {name}}}\nspec:\n  selector: {{matchLabels: {{a: {name}}}}}\n  \
             template:\n    metadata: {{labels: {{a: {name}}}}}\n    spec: {{containers: [{{name: c, image: i}}]}}"
        ));
        cluster.rolled_out(&format!("{name}/{name}"));
        assert!(cluster.get(&format!("pods -l a={name}"), ".items[0].metadata.generateName").starts_with(&name));
    }
    let revision = |label: &str, path: &str| cluster.get(&format!("controllerrevisions -l {label}"), path);
    assert_eq!(revision("controller-revision-hash", ".items[*].metadata.ownerReferences[0].kind"), "DaemonSet");
    assert_eq!(revision("controller.kubernetes.io/hash", ".items[*].metadata.ownerReferences[0].kind"), "StatefulSet");
    let generation = ".items[*].metadata.annotations.deprecated\\.daemonset\\.template\\.generation";
    assert_eq!(revision("controller-revision-hash", generation), "1");
}

#[test]
fn the_scheduler_tells_what_it_was_doing() {
    let Some(cluster) = cluster(&PROFILE) else { return };
    let pod = |name: &str, rest: &str| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec: {{containers: [{{name: c, image: i}}]{rest}}}"
        )
    };
    cluster.apply(&pod("fits", ""));
    cluster.ok(&format!("wait --for=condition=Ready pod/fits {PATIENCE}"));
    cluster.apply(&pod("large", ", nodeSelector: {no: where}"));
    cluster.wait("pod/large", ".status.conditions[0].observedGeneration", "1");
    for (name, reason, action) in [("fits", "Scheduled", "Binding"), ("large", "FailedScheduling", "Scheduling")] {
        wait_for_event(&cluster, name, reason);
        assert_eq!(event(&cluster, name, reason, ".action"), action);
        assert_eq!(event(&cluster, name, reason, ".reportingComponent"), "default-scheduler");
        assert_eq!(event(&cluster, name, reason, ".source.component"), "");
    }
}

#[test]
fn a_claim_is_told_why_nothing_is_made_for_it() {
    let Some(cluster) = cluster(&PROFILE) else { return };
    for (name, class) in [("none", ""), ("lost", "nowhere")] {
        cluster.apply(&format!(
            "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: {name}}}\nspec: {{accessModes: [ReadWriteOnce], \
             storageClassName: '{class}', resources: {{requests: {{storage: 1Gi}}}}}}"
        ));
    }
    for (name, reason, message) in [
        ("none", "FailedBinding", "no persistent volumes available for this claim and no storage class is set"),
        ("lost", "ProvisioningFailed", "storageclass.storage.k8s.io \"nowhere\" not found"),
    ] {
        wait_for_event(&cluster, name, reason);
        assert_eq!(event(&cluster, name, reason, ".message"), message);
    }
}

#[test]
fn no_two_services_have_the_same_address_of_a_load_balancer() {
    let Some(cluster) = cluster(&PROFILE) else { return };
    let service = |name: &str| {
        format!(
            "apiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\nspec: {{type: LoadBalancer, loadBalancerIP: 172.30.0.1, \
             ports: [{{port: 80}}]}}"
        )
    };
    let address = ".status.loadBalancer.ingress[0].ip";
    cluster.apply(&service("first"));
    cluster.wait("service/first", address, "172.30.0.1");
    cluster.apply(&service("second"));
    wait_for_event(&cluster, "second", "SyncLoadBalancerFailed");
    let message = event(&cluster, "second", "SyncLoadBalancerFailed", ".message");
    assert_eq!(message, "Error syncing load balancer: another service has the address 172.30.0.1");
    cluster.ok("create service loadbalancer third --tcp=80");
    cluster.wait("service/third", address, "172.30.0.2");
    cluster.ok("delete service first");
    cluster.wait("service/second", address, "172.30.0.1");
}

#[test]
fn a_service_gets_an_address_as_of_a_cloud() {
    let Some(cluster) = cluster(&PROFILE) else { return };
    cluster.ok("create service loadbalancer web --tcp=80");
    cluster.ok("create service loadbalancer other --tcp=80");
    let address = ".status.loadBalancer.ingress[0].ip";
    for name in ["web", "other"] {
        cluster.ok(&format!("wait service/{name} --for=jsonpath={{{address}}} {PATIENCE}"));
    }
    let (web, other) = (cluster.get("service/web", address), cluster.get("service/other", address));
    assert!(web.starts_with("172.30.") && other.starts_with("172.30.") && web != other, "{web} {other}");
    assert_eq!(cluster.get("service/web", ".metadata.finalizers[*]"), "service.kubernetes.io/load-balancer-cleanup");
    wait_for_event(&cluster, "web", "EnsuredLoadBalancer");
    assert_eq!(event(&cluster, "web", "EnsuredLoadBalancer", ".source.component"), "service-controller");
    // One of another type has none, one that goes is let go of.
    cluster.ok("patch service web --type=merge -p {\"spec\":{\"type\":\"ClusterIP\"}}");
    wait_for_event(&cluster, "web", "DeletedLoadBalancer");
    assert_eq!(cluster.get("service/web", ".status.loadBalancer"), "{}");
    assert_eq!(cluster.get("service/web", ".metadata.finalizers"), "");
    cluster.ok(&format!("delete service other {PATIENCE}"));
    assert_eq!(cluster.ok("get service other --ignore-not-found"), "");
}

#[test]
fn a_pod_that_is_a_hook_of_helm_ends_well() {
    let Some(cluster) = cluster(&PROFILE) else { return };
    cluster.apply(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: t, annotations: {helm.sh/hook: test}}\n\
         spec: {restartPolicy: Never, containers: [{name: c, image: i}]}",
    );
    cluster.wait("pod/t", ".status.phase", "Succeeded");
}

#[test]
fn endpoints_have_the_time_of_the_change_that_they_were_last_written_for() {
    let Some(cluster) = cluster(&PROFILE) else { return };
    cluster.ok("create service clusterip web --tcp=80");
    let annotation = ".metadata.annotations.endpoints\\.kubernetes\\.io/last-change-trigger-time";
    cluster.ok(&format!("wait --for=create endpoints/web {PATIENCE}"));
    let made = cluster.get("service/web", ".metadata.creationTimestamp");
    assert_eq!(cluster.get("endpoints/web", annotation), made);
    let slices = "endpointslices -l kubernetes.io/service-name=web";
    cluster.ok(&format!("wait --for=create {slices} {PATIENCE}"));
    assert_eq!(cluster.get(slices, &format!(".items[0]{annotation}")), made);
    // A label of the service is not a change of its pods.
    cluster.ok("label service web a=b");
    cluster.wait("endpoints/web", ".metadata.labels.a", "b");
    assert_eq!(cluster.get("endpoints/web", annotation), "");
}

#[test]
fn a_deployment_waits_for_the_probes_of_its_pods() {
    let Some(cluster) = cluster(&PROFILE) else { return };
    cluster.apply(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replicas: 2\n  minReadySeconds: 100\n  selector: {matchLabels: \
         {app: web}}\n  template:\n    metadata: {labels: {app: web}}\n    spec:\n      containers:\n      - name: c\n        image: i\n        \
         startupProbe: {periodSeconds: 90, httpGet: {port: 80}}\n        readinessProbe: {initialDelaySeconds: 200, httpGet: {port: 80}}",
    );
    let started = "get pods -o jsonpath={.items[*].status.containerStatuses[0].started}";
    until("both pods run", || cluster.ok(started) == "false false");
    cluster.clock(r#"{"advance": "95s"}"#);
    until("both are started", || cluster.ok(started) == "true true");
    assert_eq!(cluster.get("deployment/web", ".status.readyReplicas"), "");
    cluster.clock(r#"{"advance": "110s"}"#);
    cluster.wait("deployment/web", ".status.readyReplicas", "2");
    assert_eq!(cluster.get("deployment/web", ".status.availableReplicas"), "");
    cluster.clock(r#"{"advance": "100s"}"#);
    cluster.rolled_out("deployment/web");
}
