//! The fields of pods that belong to features.
//!
//! Source: `dropDisabledFields` in `pkg/api/pod`, release 1.36, and the feature gates named in the types of 1.37.

use super::container_lists::CONTAINER_LISTS;
use crate::kinds::defaults;
use crate::kinds::features::{self, Feature};
use crate::meta::gate::Gate;
use crate::meta::minor::Minor;
use crate::value::Value;
use crate::work;

/// Within a spec.
const FEATURES: [Feature; 26] = [
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
    Feature::new(Gate::ContainerRestartRules, &["CONTAINERS.*.restartPolicyRules"]),
    Feature::new(Gate::RecursiveReadOnlyMounts, &["CONTAINERS.*.volumeMounts.*.recursiveReadOnly"]),
    Feature::new(Gate::HostnameOverride, &["hostnameOverride"]),
    Feature::new(Gate::EnvFiles, &["CONTAINERS.*.env.*.valueFrom.fileKeyRef"]),
    Feature::new(
        Gate::PodLifecycleSleepAction,
        &["CONTAINERS.*.lifecycle?.preStop?.sleep", "CONTAINERS.*.lifecycle?.postStart?.sleep"],
    ),
    Feature::new(Gate::ImageVolume, &["volumes.*.image"]),
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
    if !minor.opens(Gate::ProcMountType) && !old.is_some_and(has_proc_mount) {
        reset_proc_mounts(spec);
    }
}

/// Within a status.
const STATUS_FEATURES: [Feature; 8] = [
    Feature::new(Gate::InPlacePodLevelResourcesVerticalScaling, &["resources", "allocatedResources"]),
    Feature::new(Gate::DynamicResourceAllocation, &["resourceClaimStatuses"]),
    Feature::new(Gate::DraExtendedResource, &["extendedResourceClaimStatus"]),
    Feature::new(Gate::DraNodeAllocatableResources, &["nodeAllocatableResourceClaimStatuses"]),
    Feature::new(Gate::CsiVolumeHealth, &["volumeHealth"]),
    Feature::new(Gate::ResourceHealthStatus, &["CONTAINERS.*.allocatedResourcesStatus"]),
    Feature::new(Gate::ResourceHealthStatusMessage, &["CONTAINERS.*.allocatedResourcesStatus.*.resources.*.message"]),
    Feature::new(Gate::PodObservedGenerationTracking, &["observedGeneration", "conditions.*.observedGeneration"]),
];

/// Takes the fields of features that are off out of `status`, unless `old` uses them.
pub fn drop_status_fields(minor: Minor, status: &mut Value, old: Option<&Value>) {
    features::drop_fields(&STATUS_FEATURES, minor, status, old);
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
