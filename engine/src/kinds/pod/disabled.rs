//! The fields of pods that belong to features.
//!
//! Source: `dropDisabledFields` in `pkg/api/pod`, release 1.36, and the feature gates named in the types of 1.37.

use std::collections::HashSet;

use super::container_lists::CONTAINER_LISTS;
use crate::kinds::defaults;
use crate::kinds::features::{self, Feature};
use crate::meta::gate::Gate;
use crate::meta::minor::Minor;
use crate::value::Value;
use crate::work;

/// Within a spec.
const FEATURES: [Feature; 24] = [
    Feature::new(Gate::UserNamespacesSupport, &["hostUsers"]),
    Feature::new(Gate::SupplementalGroupsPolicy, &["securityContext.supplementalGroupsPolicy"]),
    Feature::new(Gate::PodLevelResources, &["resources"]),
    Feature::new(
        Gate::NodeInclusionPolicyInPodTopologySpread,
        &["topologySpreadConstraints.*.nodeAffinityPolicy", "topologySpreadConstraints.*.nodeTaintsPolicy"],
    ),
    Feature::new(Gate::MatchLabelKeysInPodTopologySpread, &["topologySpreadConstraints.*.matchLabelKeys"]),
    Feature::new(Gate::SidecarContainers, &["initContainers.*.restartPolicy"]),
    Feature::new(
        Gate::MatchLabelKeysInPodAffinity,
        &[
            "affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution.*.matchLabelKeys",
            "affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution.*.mismatchLabelKeys",
            "affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution.*.podAffinityTerm.matchLabelKeys",
            "affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution.*.podAffinityTerm.mismatchLabelKeys",
            "affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution.*.matchLabelKeys",
            "affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution.*.mismatchLabelKeys",
            "affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution.*.podAffinityTerm.matchLabelKeys",
            "affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution.*.podAffinityTerm.mismatchLabelKeys",
        ],
    ),
    Feature::new(Gate::DynamicResourceAllocation, &["resourceClaims", "CONTAINERS.*.resources.claims"]),
    Feature::new(Gate::ClusterTrustBundleProjection, &["volumes.*.projected.sources.*.clusterTrustBundle"]),
    Feature::new(Gate::PodCertificateRequest, &["volumes.*.projected.sources.*.podCertificate"]),
    Feature::new(Gate::GenericWorkload, &["schedulingGroup"]),
    Feature::new(Gate::InPlacePodVerticalScaling, &["CONTAINERS.*.resizePolicy"]),
    Feature::new(Gate::RecursiveReadOnlyMounts, &["CONTAINERS.*.volumeMounts.*.recursiveReadOnly"]),
    Feature::new(Gate::HostnameOverride, &["hostnameOverride"]),
    Feature::new(Gate::EnvFiles, &["CONTAINERS.*.env.*.valueFrom.fileKeyRef"]),
    Feature::new(
        Gate::PodLifecycleSleepAction,
        &["CONTAINERS.*.lifecycle?.preStop?.sleep", "CONTAINERS.*.lifecycle?.postStart?.sleep"],
    ),
    Feature::new(Gate::SELinuxChangePolicy, &["securityContext.seLinuxChangePolicy"]),
    Feature::new(Gate::ContainerStopSignals, &["CONTAINERS.*.lifecycle?.stopSignal"]),
    Feature::new(Gate::EvictionRequestApi, &["evictionResponders"]),
    Feature::new(Gate::EmptyDirVolumeMode, &["volumes.*.emptyDir.mode"]),
    Feature::new(
        Gate::AtomicWriteVolumeUserFields,
        &[
            "volumes.*.secret.defaultUser",
            "volumes.*.secret.items.*.user",
            "volumes.*.configMap.defaultUser",
            "volumes.*.configMap.items.*.user",
            "volumes.*.downwardAPI.defaultUser",
            "volumes.*.downwardAPI.items.*.user",
            "volumes.*.projected.defaultUser",
            "volumes.*.projected.sources.*.secret.items.*.user",
            "volumes.*.projected.sources.*.configMap.items.*.user",
            "volumes.*.projected.sources.*.downwardAPI.items.*.user",
            "volumes.*.projected.sources.*.serviceAccountToken.user",
            "volumes.*.projected.sources.*.clusterTrustBundle.user",
            "volumes.*.projected.sources.*.podCertificate.user",
        ],
    ),
    Feature::new(Gate::VolumeBindMountOptions, &["CONTAINERS.*.volumeMounts.*.bindMountOptions"]),
    Feature::new(
        Gate::H2cContainerProbe,
        &[
            "CONTAINERS.*.livenessProbe.httpGet.protocol",
            "CONTAINERS.*.readinessProbe.httpGet.protocol",
            "CONTAINERS.*.startupProbe.httpGet.protocol",
            "CONTAINERS.*.lifecycle.postStart.httpGet.protocol",
            "CONTAINERS.*.lifecycle.preStop.httpGet.protocol",
        ],
    ),
    Feature::new(
        Gate::GrpcContainerProbeTls,
        &[
            "CONTAINERS.*.livenessProbe.grpc.mode",
            "CONTAINERS.*.readinessProbe.grpc.mode",
            "CONTAINERS.*.startupProbe.grpc.mode",
        ],
    ),
];

/// Takes the fields of features that are off out of `spec`, unless `old` uses them.
pub fn drop_fields(minor: Minor, spec: &mut Value, old: Option<&Value>) {
    features::drop_fields(&FEATURES, minor, spec, old);
    if !minor.opens(Gate::ImageVolume) && !old.is_some_and(has_image_volumes) {
        drop_image_volumes(spec);
    }
    if !minor.opens(Gate::ContainerRestartRules) && !old.is_some_and(has_restart_rules) {
        drop_restart_rules(spec);
    }
    if !minor.opens(Gate::ProcMountType) && !old.is_some_and(has_proc_mount) {
        reset_proc_mounts(spec);
    }
}

/// Within a status.
const STATUS_FEATURES: [Feature; 8] = [
    Feature::new(Gate::InPlacePodLevelResourcesVerticalScaling, &["resources", "allocatedResources"]),
    Feature::new(Gate::DraExtendedResource, &["extendedResourceClaimStatus"]),
    Feature::new(Gate::DraNodeAllocatableResources, &["nodeAllocatableResourceClaimStatuses"]),
    Feature::new(Gate::CsiVolumeHealth, &["volumeHealth"]),
    Feature::new(Gate::ImageVolumeWithDigest, &["CONTAINERS.*.volumeMounts.*.volumeStatus"]),
    Feature::new(Gate::ResourceHealthStatus, &["CONTAINERS.*.allocatedResourcesStatus"]),
    Feature::new(Gate::ResourceHealthStatusMessage, &["CONTAINERS.*.allocatedResourcesStatus.*.resources.*.message"]),
    Feature::new(Gate::PodObservedGenerationTracking, &["observedGeneration", "conditions.*.observedGeneration"]),
];

/// Within a status, where the spec tells whether a feature is in use: the fields of the status, and those of the spec.
const STATUS_FEATURES_OF_SPECS: [(Feature, &[&str]); 4] = [
    (
        Feature::new(Gate::InPlacePodVerticalScaling, &["CONTAINERS.*.resources", "CONTAINERS.*.allocatedResources"]),
        &["containers.*.resizePolicy", "initContainers.*.resizePolicy"],
    ),
    (Feature::new(Gate::DynamicResourceAllocation, &["resourceClaimStatuses"]), &["resourceClaims"]),
    (
        Feature::new(Gate::RecursiveReadOnlyMounts, &["CONTAINERS.*.volumeMounts"]),
        &["CONTAINERS.*.volumeMounts.*.recursiveReadOnly"],
    ),
    (
        Feature::new(Gate::SupplementalGroupsPolicy, &["CONTAINERS.*.user"]),
        &["securityContext.supplementalGroupsPolicy"],
    ),
];

/// Takes the fields of features that are off out of `status`, unless the old pod uses them.
pub fn drop_status_fields(minor: Minor, status: &mut Value, old: Option<&Value>) {
    let of_old = |name: &str| old.and_then(|old| old.get(name));
    features::drop_fields(&STATUS_FEATURES, minor, status, of_old("status"));
    let shut = STATUS_FEATURES_OF_SPECS.iter().filter(|(feature, _)| !minor.opens(feature.gate));
    for (feature, uses) in shut {
        let in_spec = Feature::new(feature.gate, uses);
        if !of_old("spec").is_some_and(|spec| in_spec.is_used(spec)) {
            feature.drop_from(status);
        }
    }
}

/// Whether a volume has the files of an image.
fn is_of_image(volume: &Value) -> bool {
    work::step();
    volume.get("image").is_some_and(|image| !image.is_null())
}

fn has_image_volumes(spec: &Value) -> bool {
    spec.items_at(&["volumes"]).iter().any(is_of_image)
}

/// Drops the volumes with the files of images, and where they are mounted.
fn drop_image_volumes(spec: &mut Value) {
    let of_images = spec.items_at(&["volumes"]).iter().filter(|volume| is_of_image(volume));
    let names: HashSet<String> = of_images.map(|volume| volume.str_at(&["name"]).to_owned()).collect();
    if names.is_empty() {
        return;
    }
    retain(spec, "volumes", |volume| !is_of_image(volume));
    for list in CONTAINER_LISTS {
        for container in defaults::items(spec, list) {
            retain(container, "volumeMounts", |mount| !names.contains(mount.str_at(&["name"])));
        }
    }
}

/// Keeps the items of a list that pass the test; a list that loses all of them goes.
fn retain(holder: &mut Value, list: &str, test: impl Fn(&Value) -> bool) {
    let Some(Value::Array(items)) = holder.get_mut(list) else { return };
    work::steps(items.len());
    items.retain(test);
    if items.is_empty() {
        holder.make_object().remove(list);
    }
}

/// Whether a container says itself when it is started again; init containers that always restart are older than that.
pub(super) fn has_restart_rules(spec: &Value) -> bool {
    let has_policy = |container: &Value| container.get("restartPolicy").is_some_and(|policy| !policy.is_null());
    let of_init = |container: &&Value| {
        let is_for_runs = has_policy(container) && container.str_at(&["restartPolicy"]) != "Always";
        is_for_runs || !container.items_at(&["restartPolicyRules"]).is_empty()
    };
    spec.items_at(&["initContainers"]).iter().inspect(|_| work::step()).any(|container| of_init(&container))
        || spec.items_at(&["containers"]).iter().inspect(|_| work::step()).any(has_policy)
}

/// Drops what containers say of when they are started again, except that init containers always are.
fn drop_restart_rules(spec: &mut Value) {
    for list in CONTAINER_LISTS {
        for container in defaults::items(spec, list) {
            work::step();
            let is_sidecar = list == "initContainers" && container.str_at(&["restartPolicy"]) == "Always";
            let fields = container.make_object();
            fields.remove("restartPolicyRules");
            if !is_sidecar {
                fields.remove("restartPolicy");
            }
        }
    }
}

/// The default of how a container mounts `/proc`.
const DEFAULT_PROC_MOUNT: &str = "Default";

/// Whether a container mounts `/proc` in a way that the feature added.
fn has_proc_mount(spec: &Value) -> bool {
    let containers = CONTAINER_LISTS.iter().flat_map(|list| spec.items_at(&[list]));
    let mounts = containers.filter_map(|container| container.at(&["securityContext", "procMount"]));
    mounts.inspect(|_| work::step()).any(|mount| mount.as_str().is_some_and(|mount| mount != DEFAULT_PROC_MOUNT))
}

/// Resets the `/proc` mounts of a pod to the default: the field stays, as it was stored that way before the feature
/// existed.
fn reset_proc_mounts(spec: &mut Value) {
    for list in CONTAINER_LISTS {
        for container in defaults::items(spec, list) {
            work::step();
            if let Some(mount) = container.at_mut(&["securityContext", "procMount"]).filter(|mount| !mount.is_null()) {
                *mount = Value::from(DEFAULT_PROC_MOUNT);
            }
        }
    }
}
