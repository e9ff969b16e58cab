//! The secrets and the ConfigMaps that a pod refers to.
//!
//! Source: `VisitPodSecretNames` and `VisitPodConfigmapNames` of `pkg/api/v1/pod`, release 1.36.

use crate::kinds::pod::CONTAINER_LISTS;
use crate::value::Value;

/// The paths of secret names in a pod's volume.
const SECRETS: [&[&str]; 10] = [
    &["azureFile", "secretName"],
    &["cephfs", "secretRef", "name"],
    &["cinder", "secretRef", "name"],
    &["flexVolume", "secretRef", "name"],
    &["rbd", "secretRef", "name"],
    &["secret", "secretName"],
    &["scaleIO", "secretRef", "name"],
    &["iscsi", "secretRef", "name"],
    &["storageos", "secretRef", "name"],
    &["csi", "nodePublishSecretRef", "name"],
];

/// The names of the secrets that a pod refers to.
pub fn secrets(pod: &Value) -> impl Iterator<Item = &str> {
    let pulled = pod.items_at(&["spec", "imagePullSecrets"]).iter().map(|secret| secret.str_at(&["name"]));
    let mounted = volumes(pod).iter().flat_map(|volume| SECRETS.iter().map(|path| volume.str_at(path)));
    let projected = projected(pod).map(|source| source.str_at(&["secret", "name"]));
    let all = pulled.chain(of_containers(pod, "secretRef", "secretKeyRef")).chain(mounted).chain(projected);
    all.filter(|name| !name.is_empty())
}

/// The names of the ConfigMaps that a pod refers to.
pub fn config_maps(pod: &Value) -> impl Iterator<Item = &str> {
    let mounted = volumes(pod).iter().map(|volume| volume.str_at(&["configMap", "name"]));
    let projected = projected(pod).map(|source| source.str_at(&["configMap", "name"]));
    let all = of_containers(pod, "configMapRef", "configMapKeyRef").chain(mounted).chain(projected);
    all.filter(|name| !name.is_empty())
}

/// The objects that the environment of containers refers to, as a whole (`envFrom`) or for one key (`env`).
fn of_containers<'p>(pod: &'p Value, whole: &'static str, key: &'static str) -> impl Iterator<Item = &'p str> {
    let containers = CONTAINER_LISTS.iter().flat_map(move |list| pod.items_at(&["spec", list]));
    containers.flat_map(move |container| {
        let wholes = container.items_at(&["envFrom"]).iter().map(move |env| env.str_at(&[whole, "name"]));
        wholes.chain(container.items_at(&["env"]).iter().map(move |env| env.str_at(&["valueFrom", key, "name"])))
    })
}

fn volumes(pod: &Value) -> &[Value] {
    pod.items_at(&["spec", "volumes"])
}

fn projected(pod: &Value) -> impl Iterator<Item = &Value> {
    volumes(pod).iter().flat_map(|volume| volume.items_at(&["projected", "sources"]))
}
