//! References of a pod to API objects: a mirror pod must not have any.
//!
//! Source: `HasAPIObjectReference` of `pkg/api/pod`, release 1.36.

use crate::auth::node::{config_maps, secrets};
use crate::value::Value;

/// Volume types that need no API object.
const ALONE: [&str; 22] = [
    "awsElasticBlockStore",
    "azureDisk",
    "cephfs",
    "cinder",
    "downwardAPI",
    "emptyDir",
    "fc",
    "flexVolume",
    "flocker",
    "gcePersistentDisk",
    "gitRepo",
    "hostPath",
    "image",
    "iscsi",
    "nfs",
    "photonPersistentDisk",
    "portworxVolume",
    "quobyte",
    "rbd",
    "scaleIO",
    "storageos",
    "vsphereVolume",
];
/// Volume types that refer to objects, and to which.
const NAMING: [(&str, &str); 7] = [
    ("configMap", "configmaps (via configmap volumes)"),
    ("secret", "secrets (via secret volumes)"),
    ("csi", "csidrivers (via CSI volumes)"),
    ("glusterfs", "endpoints (via glusterFS volumes)"),
    ("persistentVolumeClaim", "persistentvolumeclaims"),
    ("ephemeral", "persistentvolumeclaims (via ephemeral volumes)"),
    ("azureFile", "secrets (via azureFile volumes)"),
];
/// Sources of projected volumes that refer to objects, and to which.
const PROJECTED: [(&str, &str); 5] = [
    ("configMap", "configmaps (via projected volumes)"),
    ("secret", "secrets (via projected volumes)"),
    ("serviceAccountToken", "serviceaccounts (via projected volumes)"),
    ("clusterTrustBundle", "clustertrustbundles"),
    ("podCertificate", "podcertificates"),
];
/// A pod has a volume of an unknown type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    #[error("unknown volume type for volume  {}", super::quoted(.0))]
    Volume(String),
    #[error("unknown source for projected volume {}", super::quoted(.0))]
    Source(String),
}

/// The first resource that a pod refers to, in the words of the refusal.
pub fn reference(pod: &Value) -> Result<Option<&'static str>, ReferenceError> {
    if !pod.str_at(&["spec", "serviceAccountName"]).is_empty() {
        return Ok(Some("serviceaccounts"));
    }
    if secrets(pod).next().is_some() {
        return Ok(Some("secrets"));
    }
    if config_maps(pod).next().is_some() {
        return Ok(Some("configmaps"));
    }
    if !pod.items_at(&["spec", "resourceClaims"]).is_empty() {
        return Ok(Some("resourceclaims"));
    }
    for volume in volumes(pod) {
        if let Some(named) = in_volume(volume)? {
            return Ok(Some(named));
        }
    }
    Ok(None)
}

fn in_volume(volume: &Value) -> Result<Option<&'static str>, ReferenceError> {
    if ALONE.iter().any(|kind| is_set(volume, kind)) {
        return Ok(None);
    }
    if let Some((_, named)) = NAMING.iter().find(|(kind, _)| is_set(volume, kind)) {
        return Ok(Some(named));
    }
    let name = || volume.str_at(&["name"]).to_owned();
    if !is_set(volume, "projected") {
        return Err(ReferenceError::Volume(name()));
    }
    for source in sources(volume) {
        if let Some((_, named)) = PROJECTED.iter().find(|(kind, _)| is_set(source, kind)) {
            return Ok(Some(named));
        }
        if !is_set(source, "downwardAPI") {
            return Err(ReferenceError::Source(name()));
        }
    }
    Ok(None)
}

fn volumes(pod: &Value) -> &[Value] {
    pod.items_at(&["spec", "volumes"])
}

fn sources(volume: &Value) -> &[Value] {
    volume.items_at(&["projected", "sources"])
}

fn is_set(value: &Value, field: &str) -> bool {
    value.get(field).is_some_and(|value| !value.is_null())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    #[test]
    fn what_a_pod_names_is_found_wherever_it_stands() {
        for (spec, expected) in [
            ("{serviceAccountName: a}", Ok(Some("serviceaccounts"))),
            ("{imagePullSecrets: [{name: a}]}", Ok(Some("secrets"))),
            ("{containers: [{envFrom: [{secretRef: {name: a}}]}]}", Ok(Some("secrets"))),
            ("{initContainers: [{env: [{valueFrom: {secretKeyRef: {name: a}}}]}]}", Ok(Some("secrets"))),
            ("{containers: [{envFrom: [{configMapRef: {name: a}}]}]}", Ok(Some("configmaps"))),
            ("{containers: [{env: [{valueFrom: {configMapKeyRef: {name: a}}}]}]}", Ok(Some("configmaps"))),
            ("{resourceClaims: [{name: a}]}", Ok(Some("resourceclaims"))),
            ("{volumes: [{name: v, secret: {secretName: a}}]}", Ok(Some("secrets"))),
            ("{volumes: [{name: v, secret: {}}]}", Ok(Some("secrets (via secret volumes)"))),
            ("{volumes: [{name: v, configMap: {name: a}}]}", Ok(Some("configmaps"))),
            ("{volumes: [{name: v, configMap: {}}]}", Ok(Some("configmaps (via configmap volumes)"))),
            ("{volumes: [{name: v, csi: {driver: a}}]}", Ok(Some("csidrivers (via CSI volumes)"))),
            ("{volumes: [{name: v, glusterfs: {endpoints: a}}]}", Ok(Some("endpoints (via glusterFS volumes)"))),
            ("{volumes: [{name: v, persistentVolumeClaim: {claimName: a}}]}", Ok(Some("persistentvolumeclaims"))),
            ("{volumes: [{name: v, ephemeral: {}}]}", Ok(Some("persistentvolumeclaims (via ephemeral volumes)"))),
            ("{volumes: [{name: v, azureFile: {shareName: a}}]}", Ok(Some("secrets (via azureFile volumes)"))),
            ("{volumes: [{name: v, iscsi: {secretRef: {name: a}}}]}", Ok(Some("secrets"))),
            (
                "{volumes: [{name: v, projected: {sources: [{serviceAccountToken: {path: t}}]}}]}",
                Ok(Some("serviceaccounts (via projected volumes)")),
            ),
            (
                "{volumes: [{name: v, projected: {sources: [{clusterTrustBundle: {path: t}}]}}]}",
                Ok(Some("clustertrustbundles")),
            ),
            (
                "{volumes: [{name: v, projected: {sources: [{podCertificate: {keyType: t}}]}}]}",
                Ok(Some("podcertificates")),
            ),
            (
                "{volumes: [{name: v, projected: {sources: [{secret: {}}]}}]}",
                Ok(Some("secrets (via projected volumes)")),
            ),
            ("{volumes: [{name: v, projected: {sources: [{downwardAPI: {}}]}}]}", Ok(None)),
            (
                "{volumes: [{name: v, projected: {sources: [{}]}}]}",
                Err("unknown source for projected volume \"v\"".to_owned()),
            ),
            ("{volumes: [{name: v, hostPath: {path: /}}, {name: w, emptyDir: {}}]}", Ok(None)),
            ("{volumes: [{name: v}]}", Err("unknown volume type for volume  \"v\"".to_owned())),
        ] {
            let pod = yaml::decode(format!("spec: {spec}").as_bytes()).expect("the test is YAML");
            assert_eq!(reference(&pod).map_err(|error| error.to_string()), expected, "{spec}");
        }
    }
}
