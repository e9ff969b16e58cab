//! The objects that a pod or a volume refers to.
//!
//! Source: `VisitPVSecretNames` of `pkg/api/v1/persistentvolume`, release 1.36.

use std::collections::HashMap;

pub use crate::kinds::pod_object::references::{config_maps, secrets};
use crate::value::Value;
use crate::work;

/// The paths of references to secrets in a PersistentVolume, except that of `azureFile`.
const SECRETS_OF_VOLUMES: [&[&str]; 10] = [
    &["cephfs", "secretRef"],
    &["cinder", "secretRef"],
    &["flexVolume", "secretRef"],
    &["rbd", "secretRef"],
    &["scaleIO", "secretRef"],
    &["iscsi", "secretRef"],
    &["storageos", "secretRef"],
    &["csi", "nodePublishSecretRef"],
    &["csi", "nodeStageSecretRef"],
    &["csi", "nodeExpandSecretRef"],
];

/// The names of the volume claims that a pod uses, including those of ephemeral volumes.
pub(super) fn volume_claims(pod: &Value) -> impl Iterator<Item = String> {
    let pod_name = pod.str_at(&["metadata", "name"]);
    volumes(pod).iter().filter_map(move |volume| match volume.str_at(&["persistentVolumeClaim", "claimName"]) {
        "" => volume.get("ephemeral").map(|_| format!("{pod_name}-{}", volume.str_at(&["name"]))),
        name => Some(name.to_owned()),
    })
}

/// The names of the resource claims that a pod uses; those created from a template are included
/// once the status names them.
pub(super) fn resource_claims(pod: &Value) -> impl Iterator<Item = &str> {
    let mut made = HashMap::new();
    for status in pod.items_at(&["status", "resourceClaimStatuses"]) {
        work::step();
        made.entry(status.str_at(&["name"])).or_insert_with(|| status.str_at(&["resourceClaimName"]));
    }
    let of = move |claim: &Value| made.get(claim.str_at(&["name"])).copied().unwrap_or_default();
    let named =
        pod.items_at(&["spec", "resourceClaims"]).iter().map(move |claim| match claim.str_at(&["resourceClaimName"]) {
            "" => of(claim),
            name => name,
        });
    let extended = pod.str_at(&["status", "extendedResourceClaimStatus", "resourceClaimName"]);
    named.chain([extended]).filter(|name| !name.is_empty())
}

/// The namespaces and names of the secrets that a PersistentVolume refers to for nodes.
pub(super) fn secrets_of_volume(volume: &Value) -> impl Iterator<Item = (&str, &str)> {
    let claimed_in = volume.str_at(&["spec", "claimRef", "namespace"]);
    let spec = volume.get("spec");
    let referred = SECRETS_OF_VOLUMES.iter().filter_map(move |path| spec.and_then(|spec| spec.at(path)));
    let referred = referred.map(|secret| (secret.str_at(&["namespace"]), secret.str_at(&["name"])));
    let azure = spec.and_then(|spec| spec.get("azureFile"));
    let azure = azure.map(|file| (file.str_at(&["secretNamespace"]), file.str_at(&["secretName"])));
    let named = referred.chain(azure).filter(|(_, name)| !name.is_empty());
    named.map(move |(namespace, name)| (if namespace.is_empty() { claimed_in } else { namespace }, name))
}

fn volumes(pod: &Value) -> &[Value] {
    pod.items_at(&["spec", "volumes"])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object;

    fn named(key: &str, at: usize) -> Value {
        object! { "name" => format!("c{at:06}"), key => format!("made-{at:06}") }
    }

    #[test]
    fn claims_from_templates_are_found_in_linear_time() {
        let counted = |count: usize| {
            let list = |key: &str| (0..count).map(|at| named(key, at)).collect::<Vec<_>>();
            let pod = object! {
                "spec" => object! { "resourceClaims" => list("resourceClaimTemplateName") },
                "status" => object! { "resourceClaimStatuses" => list("resourceClaimName") },
            };
            work::counted(|| resource_claims(&pod).map(str::to_owned).collect::<Vec<_>>())
        };
        let ((few, before), (many, steps)) = (counted(100), counted(1_000));
        assert_eq!((few.len(), many.len(), many[999].as_str()), (100, 1_000, "made-000999"));
        assert!(steps <= 11 * before, "{before}, then {steps}");
    }
}
