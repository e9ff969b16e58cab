//! The feature gates that affect this server, and the settings of those that were set.
//!
//! Input: a gate. Output: its name and its setting. Its specs in the minors of Kubernetes are in
//! [`super::feature_gates`].

/// The gates that affect this server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// Large answers are compressed for clients that accept it.
    ApiResponseCompression,
    /// Objects that can't be read may be deleted.
    AllowUnsafeMalformedObjectDeletion,
    /// Owners of files in volumes.
    AtomicWriteVolumeUserFields,
    /// The status of a definition records the generation that it is about.
    CrdObservedGenerationTracking,
    /// Updates of custom resources are forgiven errors in unchanged values.
    CrdValidationRatcheting,
    /// Names of environment variables may be of any printable characters.
    RelaxedEnvironmentVariableValidation,
    /// Search paths of pods may have underscores, or be a dot.
    RelaxedDnsSearchValidation,
    /// Names of Services may begin with a digit.
    RelaxedServiceNameValidation,
    /// Services may prefer their own zone or node.
    PreferSameTrafficDistribution,
    /// The kind ClusterTrustBundle.
    ClusterTrustBundle,
    /// Trust bundles in projected volumes.
    ClusterTrustBundleProjection,
    /// Permission to impersonate for certain requests only.
    ConstrainedImpersonation,
    /// `restartPolicyRules` of containers.
    ContainerRestartRules,
    /// `stopSignal` in lifecycles.
    ContainerStopSignals,
    /// `strategy` and `preferredHolder` of leases.
    CoordinatedLeaderElection,
    /// `selectableFields` of definitions.
    CustomResourceFieldSelectors,
    /// `adminAccess` in requests for devices.
    DraAdminAccess,
    /// Devices that several claims share.
    DraConsumableCapacity,
    /// Conditions that bind devices.
    DraDeviceBindingConditions,
    /// Taints of devices, and tolerations.
    DraDeviceTaints,
    /// Devices that are parts of others.
    DraPartitionableDevices,
    /// Alternative requests, of which the first that can be satisfied counts.
    DraPrioritizedList,
    /// Attributes of devices that are derived from others.
    DraDerivedAttributes,
    /// Groups of devices that go together.
    DraDeviceCompatibilityGroups,
    /// Attributes of devices that are lists.
    DraListTypeAttributes,
    /// The node resources that devices use.
    DraNodeAllocatableResources,
    /// Operations that a node skips for devices.
    DraOptionalNodeOperations,
    /// The type of devices that are parts of others.
    DraPartitionableDevicesType,
    /// The kind DeviceTaintRule.
    DraDeviceTaintRules,
    /// `resourceClaims` of pods.
    DynamicResourceAllocation,
    /// `mode` of volumes that begin empty.
    EmptyDirVolumeMode,
    /// Variables out of files.
    EnvFiles,
    /// `evictionResponders` of pods.
    EvictionRequestApi,
    /// `schedulingGroup` of pods.
    GenericWorkload,
    /// `mode` of probes by gRPC.
    GrpcContainerProbeTls,
    /// `protocol` of probes by HTTP.
    H2cContainerProbe,
    /// `tolerance` of autoscalers.
    HpaConfigurableTolerance,
    /// `hostnameOverride` of pods.
    HostnameOverride,
    /// Images as volumes.
    ImageVolume,
    /// Which image a volume was made of.
    ImageVolumeWithDigest,
    /// `resizePolicy` of containers.
    InPlacePodVerticalScaling,
    /// `managedBy` of jobs.
    JobManagedBy,
    /// `successPolicy` of jobs.
    JobSuccessPolicy,
    /// `staticManifestsDir` in the configuration of admission plugins.
    ManifestBasedAdmissionControlConfig,
    /// `matchLabelKeys` of affinities.
    MatchLabelKeysInPodAffinity,
    /// `maxUnavailable` of StatefulSets.
    MaxUnavailableStatefulSet,
    /// The kinds IPAddress and ServiceCIDR.
    MultiCidrServiceAllocator,
    /// MutatingAdmissionPolicies are asked.
    MutatingAdmissionPolicy,
    /// The kind PodCertificateRequest, and certificates in projected volumes.
    PodCertificateRequest,
    /// `resources` of whole pods.
    PodLevelResources,
    /// `sleep` in lifecycles.
    PodLifecycleSleepAction,
    /// `recursiveReadOnly` of mounts.
    RecursiveReadOnlyMounts,
    /// `seLinuxChangePolicy` of pods.
    SELinuxChangePolicy,
    /// The policy `MountOption`.
    SELinuxMount,
    /// Reviews of what a client is or may do pass by all webhooks.
    ExcludeAdmissionWebhookVirtualResources,
    /// The kind StorageVersionMigration.
    StorageVersionMigrator,
    /// `supplementalGroupsPolicy` of pods.
    SupplementalGroupsPolicy,
    /// `hostUsers` of pods.
    UserNamespacesSupport,
    /// ValidatingAdmissionPolicies are asked.
    ValidatingAdmissionPolicy,
    /// The kind VolumeAttributesClass, and its names in volumes and claims.
    VolumeAttributesClass,
    /// `bindMountOptions` of mounts.
    VolumeBindMountOptions,
    /// `preventPodSchedulingIfMissing` of CSIDrivers.
    VolumeLimitScaling,
    /// Watches may begin with the current objects.
    WatchList,
    /// `scheduling` of jobs.
    WorkloadWithJob,
    /// Groups of groups of pods.
    CompositePodGroup,
    /// `resourceClaims` of groups of pods.
    DraWorkloadResourceClaims,
    /// `preemptionPolicy` of groups of pods.
    PodGroupPreemptionPolicy,
    /// `schedulingConstraints` of groups of pods.
    TopologyAwareWorkloadScheduling,
    /// Pods that have a node lose their nomination for another.
    ClearingNominatedNodeNameAfterBinding,
    /// `serviceAccountTokenInSecrets` of CSIDrivers.
    CsiServiceAccountTokenSecrets,
    /// `terminatingReplicas` of Deployments and ReplicaSets.
    DeploymentReplicaSetTerminatingReplicas,
    /// `extendedResourceName` of DeviceClasses.
    DraExtendedResource,
    /// `devices` in the status of claims.
    DraResourceClaimDeviceStatus,
    /// The resources that whole pods may use, in their status.
    InPlacePodLevelResourcesVerticalScaling,
    /// Init containers may be resized.
    InPlacePodVerticalScalingInitContainers,
    /// `backoffLimitPerIndex` of jobs.
    JobBackoffLimitPerIndex,
    /// `podReplacementPolicy` of jobs.
    JobPodReplacementPolicy,
    /// `ipMode` of load balancers.
    LoadBalancerIpMode,
    /// `matchLabelKeys` of topology spreads.
    MatchLabelKeysInPodTopologySpread,
    /// These keys become part of the selector.
    MatchLabelKeysInPodTopologySpreadSelectorMerge,
    /// A CSINode may change how many volumes a driver allows.
    MutableCsiNodeAllocatableCount,
    /// A volume may move to other nodes.
    MutablePvNodeAffinity,
    /// A suspended job may change the resources of its pods.
    MutablePodResourcesForSuspendedJobs,
    /// A suspended job may change the scheduling of its pods after it has run.
    MutableSchedulingDirectivesForSuspendedJobs,
    /// `declaredFeatures` of nodes.
    NodeDeclaredFeatures,
    /// Which nodes count in topology spreads.
    NodeInclusionPolicyInPodTopologySpread,
    /// The annotation with the cost of a pod's deletion is checked.
    PodDeletionCost,
    /// Sleep actions of lifecycle hooks may have a duration of zero.
    PodLifecycleSleepActionAllowZero,
    /// `observedGeneration` of pods.
    PodObservedGenerationTracking,
    /// `procMount` of containers.
    ProcMountType,
    /// Claims may reduce their request again.
    RecoverVolumeExpansionFailure,
    /// `allocatedResourcesStatus` of containers.
    ResourceHealthStatus,
    /// `message` in it.
    ResourceHealthStatusMessage,
    /// Rules of a container may restart all containers.
    RestartAllContainersOnContainerExits,
    /// `seLinuxMount` of CSIDrivers.
    SELinuxMountReadWriteOncePod,
    /// Tokens may be bound to nodes.
    ServiceAccountTokenNodeBinding,
    /// `trafficDistribution` of Services.
    ServiceTrafficDistribution,
    /// `restartPolicy` of init containers.
    SidecarContainers,
    /// Addresses are read strictly in old fields, too.
    StrictIpCidrValidation,
    /// Tolerations may compare numbers.
    TaintTolerationComparisonOperators,
    /// The health of volumes, in the status of claims and pods.
    CsiVolumeHealth,
    /// `podPreemptionPolicy` of nodes.
    InPlacePodVerticalScalingSchedulerPreemption,
    /// Rights of their own for parts of the status of claims.
    DraResourceClaimGranularStatusAuthorization,
}

/// The gates that were set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Gates {
    set: u128,
    on: u128,
}

/// The gates, as `--feature-gates` names them, in the order of their declaration.
pub(super) const NAMES: [(Gate, &str); 103] = [
    (Gate::ApiResponseCompression, "APIResponseCompression"),
    (Gate::AllowUnsafeMalformedObjectDeletion, "AllowUnsafeMalformedObjectDeletion"),
    (Gate::AtomicWriteVolumeUserFields, "AtomicWriteVolumeUserFields"),
    (Gate::CrdObservedGenerationTracking, "CRDObservedGenerationTracking"),
    (Gate::CrdValidationRatcheting, "CRDValidationRatcheting"),
    (Gate::RelaxedEnvironmentVariableValidation, "RelaxedEnvironmentVariableValidation"),
    (Gate::RelaxedDnsSearchValidation, "RelaxedDNSSearchValidation"),
    (Gate::RelaxedServiceNameValidation, "RelaxedServiceNameValidation"),
    (Gate::PreferSameTrafficDistribution, "PreferSameTrafficDistribution"),
    (Gate::ClusterTrustBundle, "ClusterTrustBundle"),
    (Gate::ClusterTrustBundleProjection, "ClusterTrustBundleProjection"),
    (Gate::ConstrainedImpersonation, "ConstrainedImpersonation"),
    (Gate::ContainerRestartRules, "ContainerRestartRules"),
    (Gate::ContainerStopSignals, "ContainerStopSignals"),
    (Gate::CoordinatedLeaderElection, "CoordinatedLeaderElection"),
    (Gate::CustomResourceFieldSelectors, "CustomResourceFieldSelectors"),
    (Gate::DraAdminAccess, "DRAAdminAccess"),
    (Gate::DraConsumableCapacity, "DRAConsumableCapacity"),
    (Gate::DraDeviceBindingConditions, "DRADeviceBindingConditions"),
    (Gate::DraDeviceTaints, "DRADeviceTaints"),
    (Gate::DraPartitionableDevices, "DRAPartitionableDevices"),
    (Gate::DraPrioritizedList, "DRAPrioritizedList"),
    (Gate::DraDerivedAttributes, "DRADerivedAttributes"),
    (Gate::DraDeviceCompatibilityGroups, "DRADeviceCompatibilityGroups"),
    (Gate::DraListTypeAttributes, "DRAListTypeAttributes"),
    (Gate::DraNodeAllocatableResources, "DRANodeAllocatableResources"),
    (Gate::DraOptionalNodeOperations, "DRAOptionalNodeOperations"),
    (Gate::DraPartitionableDevicesType, "DRAPartitionableDevicesType"),
    (Gate::DraDeviceTaintRules, "DRADeviceTaintRules"),
    (Gate::DynamicResourceAllocation, "DynamicResourceAllocation"),
    (Gate::EmptyDirVolumeMode, "EmptyDirVolumeMode"),
    (Gate::EnvFiles, "EnvFiles"),
    (Gate::EvictionRequestApi, "EvictionRequestAPI"),
    (Gate::GenericWorkload, "GenericWorkload"),
    (Gate::GrpcContainerProbeTls, "GRPCContainerProbeTLS"),
    (Gate::H2cContainerProbe, "H2CContainerProbe"),
    (Gate::HpaConfigurableTolerance, "HPAConfigurableTolerance"),
    (Gate::HostnameOverride, "HostnameOverride"),
    (Gate::ImageVolume, "ImageVolume"),
    (Gate::ImageVolumeWithDigest, "ImageVolumeWithDigest"),
    (Gate::InPlacePodVerticalScaling, "InPlacePodVerticalScaling"),
    (Gate::JobManagedBy, "JobManagedBy"),
    (Gate::JobSuccessPolicy, "JobSuccessPolicy"),
    (Gate::ManifestBasedAdmissionControlConfig, "ManifestBasedAdmissionControlConfig"),
    (Gate::MatchLabelKeysInPodAffinity, "MatchLabelKeysInPodAffinity"),
    (Gate::MaxUnavailableStatefulSet, "MaxUnavailableStatefulSet"),
    (Gate::MultiCidrServiceAllocator, "MultiCIDRServiceAllocator"),
    (Gate::MutatingAdmissionPolicy, "MutatingAdmissionPolicy"),
    (Gate::PodCertificateRequest, "PodCertificateRequest"),
    (Gate::PodLevelResources, "PodLevelResources"),
    (Gate::PodLifecycleSleepAction, "PodLifecycleSleepAction"),
    (Gate::RecursiveReadOnlyMounts, "RecursiveReadOnlyMounts"),
    (Gate::SELinuxChangePolicy, "SELinuxChangePolicy"),
    (Gate::SELinuxMount, "SELinuxMount"),
    (Gate::ExcludeAdmissionWebhookVirtualResources, "ExcludeAdmissionWebhookVirtualResources"),
    (Gate::StorageVersionMigrator, "StorageVersionMigrator"),
    (Gate::SupplementalGroupsPolicy, "SupplementalGroupsPolicy"),
    (Gate::UserNamespacesSupport, "UserNamespacesSupport"),
    (Gate::ValidatingAdmissionPolicy, "ValidatingAdmissionPolicy"),
    (Gate::VolumeAttributesClass, "VolumeAttributesClass"),
    (Gate::VolumeBindMountOptions, "VolumeBindMountOptions"),
    (Gate::VolumeLimitScaling, "VolumeLimitScaling"),
    (Gate::WatchList, "WatchList"),
    (Gate::WorkloadWithJob, "WorkloadWithJob"),
    (Gate::CompositePodGroup, "CompositePodGroup"),
    (Gate::DraWorkloadResourceClaims, "DRAWorkloadResourceClaims"),
    (Gate::PodGroupPreemptionPolicy, "PodGroupPreemptionPolicy"),
    (Gate::TopologyAwareWorkloadScheduling, "TopologyAwareWorkloadScheduling"),
    (Gate::ClearingNominatedNodeNameAfterBinding, "ClearingNominatedNodeNameAfterBinding"),
    (Gate::CsiServiceAccountTokenSecrets, "CSIServiceAccountTokenSecrets"),
    (Gate::DeploymentReplicaSetTerminatingReplicas, "DeploymentReplicaSetTerminatingReplicas"),
    (Gate::DraExtendedResource, "DRAExtendedResource"),
    (Gate::DraResourceClaimDeviceStatus, "DRAResourceClaimDeviceStatus"),
    (Gate::InPlacePodLevelResourcesVerticalScaling, "InPlacePodLevelResourcesVerticalScaling"),
    (Gate::InPlacePodVerticalScalingInitContainers, "InPlacePodVerticalScalingInitContainers"),
    (Gate::JobBackoffLimitPerIndex, "JobBackoffLimitPerIndex"),
    (Gate::JobPodReplacementPolicy, "JobPodReplacementPolicy"),
    (Gate::LoadBalancerIpMode, "LoadBalancerIPMode"),
    (Gate::MatchLabelKeysInPodTopologySpread, "MatchLabelKeysInPodTopologySpread"),
    (Gate::MatchLabelKeysInPodTopologySpreadSelectorMerge, "MatchLabelKeysInPodTopologySpreadSelectorMerge"),
    (Gate::MutableCsiNodeAllocatableCount, "MutableCSINodeAllocatableCount"),
    (Gate::MutablePvNodeAffinity, "MutablePVNodeAffinity"),
    (Gate::MutablePodResourcesForSuspendedJobs, "MutablePodResourcesForSuspendedJobs"),
    (Gate::MutableSchedulingDirectivesForSuspendedJobs, "MutableSchedulingDirectivesForSuspendedJobs"),
    (Gate::NodeDeclaredFeatures, "NodeDeclaredFeatures"),
    (Gate::NodeInclusionPolicyInPodTopologySpread, "NodeInclusionPolicyInPodTopologySpread"),
    (Gate::PodDeletionCost, "PodDeletionCost"),
    (Gate::PodLifecycleSleepActionAllowZero, "PodLifecycleSleepActionAllowZero"),
    (Gate::PodObservedGenerationTracking, "PodObservedGenerationTracking"),
    (Gate::ProcMountType, "ProcMountType"),
    (Gate::RecoverVolumeExpansionFailure, "RecoverVolumeExpansionFailure"),
    (Gate::ResourceHealthStatus, "ResourceHealthStatus"),
    (Gate::ResourceHealthStatusMessage, "ResourceHealthStatusMessage"),
    (Gate::RestartAllContainersOnContainerExits, "RestartAllContainersOnContainerExits"),
    (Gate::SELinuxMountReadWriteOncePod, "SELinuxMountReadWriteOncePod"),
    (Gate::ServiceAccountTokenNodeBinding, "ServiceAccountTokenNodeBinding"),
    (Gate::ServiceTrafficDistribution, "ServiceTrafficDistribution"),
    (Gate::SidecarContainers, "SidecarContainers"),
    (Gate::StrictIpCidrValidation, "StrictIPCIDRValidation"),
    (Gate::TaintTolerationComparisonOperators, "TaintTolerationComparisonOperators"),
    (Gate::CsiVolumeHealth, "CSIVolumeHealth"),
    (Gate::InPlacePodVerticalScalingSchedulerPreemption, "InPlacePodVerticalScalingSchedulerPreemption"),
    (Gate::DraResourceClaimGranularStatusAuthorization, "DRAResourceClaimGranularStatusAuthorization"),
];

impl Gate {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Gate> {
        NAMES.iter().map(|(gate, _)| *gate)
    }

    /// As `--feature-gates` has it.
    pub const fn name(self) -> &'static str {
        NAMES[self as usize].1
    }

    const fn bit(self) -> u128 {
        1 << self as u8
    }
}

impl Gates {
    /// None.
    pub const UNSET: Gates = Gates { set: 0, on: 0 };

    /// The setting of a gate; `None` if it was not set.
    pub fn get(self, gate: Gate) -> Option<bool> {
        (self.set & gate.bit() != 0).then_some(self.on & gate.bit() != 0)
    }

    pub(super) fn set(&mut self, gate: Gate, is_on: bool) {
        self.set |= gate.bit();
        self.on = if is_on { self.on | gate.bit() } else { self.on & !gate.bit() };
    }
}
