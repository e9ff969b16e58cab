//! The fields of pods that belong to features.
//!
//! Source: `dropDisabledFields` in `pkg/api/pod`, release 1.36, and the feature gates named in the types of 1.37.

use crate::kinds::features::{self, Feature};
use crate::meta::gates::Gate;
use crate::meta::minor::Minor;
use crate::value::Value;

/// Within a spec.
const FEATURES: [Feature; 23] = [
    Feature::new(Gate::UserNamespacesSupport, &["hostUsers"]),
    Feature::new(Gate::SupplementalGroupsPolicy, &["securityContext.supplementalGroupsPolicy"]),
    Feature::new(Gate::PodLevelResources, &["resources"]),
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
}
