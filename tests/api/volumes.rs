//! Volumes of a cluster without machines, by kubectl: those that are there, those that grow, those that go with a pod.

use super::overrides::until;
use super::workloads::{PATIENCE, PROFILE, cluster};

fn claim(name: &str, class: &str, size: &str) -> String {
    format!(
        "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {{name: {name}}}\nspec: {{accessModes: [ReadWriteOnce], storageClassName: \
         {class}, resources: {{requests: {{storage: {size}}}}}}}"
    )
}

#[test]
fn a_claim_takes_a_volume_that_is_there() {
    let Some(cluster) = cluster(&PROFILE) else { return };
    for (name, size) in [("large", "10Gi"), ("small", "2Gi")] {
        cluster.apply(&format!(
            "apiVersion: v1\nkind: PersistentVolume\nmetadata: {{name: {name}}}\nspec: {{capacity: {{storage: {size}}}, accessModes: \
             [ReadWriteOnce], storageClassName: manual, hostPath: {{path: /data}}}}"
        ));
    }
    cluster.apply(&claim("data", "manual", "1Gi"));
    cluster.wait("pvc/data", ".status.phase", "Bound");
    assert_eq!(cluster.get("pvc/data", ".spec.volumeName"), "small");
    assert_eq!(cluster.get("pvc/data", ".status.capacity.storage"), "2Gi");
    assert_eq!(cluster.get("pv/small", ".spec.claimRef.name"), "data");
    cluster.ok("delete pvc data");
    // It is kept, with what is on it, unless it says otherwise.
    cluster.wait("pv/small", ".status.phase", "Released");
}

#[test]
fn a_volume_grows_with_its_claim() {
    let Some(cluster) = cluster(&PROFILE) else { return };
    cluster.apply(
        "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: elastic}\nprovisioner: example.com/elastic\n\
         allowVolumeExpansion: true",
    );
    cluster.apply(&claim("data", "elastic", "1Gi"));
    cluster.wait("pvc/data", ".status.phase", "Bound");
    cluster.apply(&claim("data", "elastic", "3Gi"));
    cluster.wait("pvc/data", ".status.capacity.storage", "3Gi");
    let volume = cluster.get("pvc/data", ".spec.volumeName");
    assert_eq!(cluster.get(&format!("pv/{volume}"), ".spec.capacity.storage"), "3Gi");
}

#[test]
fn an_ephemeral_volume_comes_and_goes_with_its_pod() {
    let Some(cluster) = cluster(&PROFILE) else { return };
    cluster.apply(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers: [{name: c, image: i}]\n  volumes:\n  - name: scratch\n    \
         ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}",
    );
    cluster.ok(&format!("wait --for=condition=Ready pod/p {PATIENCE}"));
    assert_eq!(cluster.get("pvc/p-scratch", ".status.phase"), "Bound");
    assert_eq!(cluster.get("pvc/p-scratch", ".metadata.ownerReferences[0].name"), "p");
    cluster.ok(&format!("delete pod p {PATIENCE}"));
    cluster.ok(&format!("wait --for=delete pvc/p-scratch {PATIENCE}"));
}

#[test]
fn a_pod_goes_where_its_volume_is() {
    let Some(cluster) = cluster(&PROFILE) else { return };
    cluster.apply(
        "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: disk}\nspec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], \
         storageClassName: manual, local: {path: /data}, nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: \
         kubernetes.io/hostname, operator: In, values: [node-2]}]}]}}}",
    );
    cluster.apply(&claim("data", "manual", "1Gi"));
    cluster.wait("pvc/data", ".status.phase", "Bound");
    cluster.apply(&user("p", "data"));
    cluster.ok(&format!("wait --for=condition=Ready pod/p {PATIENCE}"));
    assert_eq!(cluster.get("pod/p", ".spec.nodeName"), "node-2");
}

/// A pod with a volume of that claim.
fn user(name: &str, claim: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec: {{containers: [{{name: c, image: i}}], volumes: [{{name: v, \
         persistentVolumeClaim: {{claimName: {claim}}}}}]}}"
    )
}

#[test]
fn a_pod_waits_for_the_next_claim_where_the_first_is_going() {
    let Some(cluster) = cluster(&PROFILE) else { return };
    cluster.apply(&claim("data", "standard", "1Gi"));
    cluster.apply(&user("first", "data"));
    cluster.ok(&format!("wait --for=condition=Ready pod/first {PATIENCE}"));
    // It stays for as long as a pod uses it.
    cluster.ok("delete pvc data --wait=false");
    cluster.apply(&user("second", "data"));
    let why = ".status.conditions[?(@.type==\"PodScheduled\")].message";
    let going = "persistentvolumeclaim \"data\" is being deleted";
    until("it is told why it waits", || cluster.get("pod/second", why).contains(going));
    cluster.ok(&format!("delete pod first {PATIENCE}"));
    cluster.ok(&format!("wait --for=delete pvc/data {PATIENCE}"));
    cluster.apply(&claim("data", "standard", "1Gi"));
    cluster.ok(&format!("wait --for=condition=Ready pod/second {PATIENCE}"));
}
