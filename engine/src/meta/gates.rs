//! Feature gates: which ones a minor version of Kubernetes knows, and which of them somebody has set.
//!
//! In: `--feature-gates` as kube-apiserver takes it. Out: what is set of the gates that change what this server does, or
//! kube-apiserver's error. Gates that it knows and that mean nothing here are taken. `schemas/feature-gates.txt` has all of
//! them, by minor; it is the only place.
//!
//! Source: `featuregate` of `k8s.io/component-base`, release 1.37.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use thiserror::Error;

use super::minor::Minor;

/// All gates, by their names.
static KNOWN: LazyLock<BTreeMap<&'static str, Vec<GateChange>>> = LazyLock::new(|| {
    let lines = include_str!(concat!(env!("SCHEMAS"), "/feature-gates.txt")).lines();
    lines.filter(|line| !line.starts_with('#')).filter_map(GateChange::all_of).collect()
});

/// The gates that change what this server does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// Large answers are compressed for those who take that.
    ApiResponseCompression,
    /// Objects that can't be read may be deleted.
    AllowUnsafeMalformedObjectDeletion,
    /// Owners of files in volumes.
    AtomicWriteVolumeUserFields,
    /// The generation that the status of a definition is about is told.
    CrdObservedGenerationTracking,
    /// Updates of custom resources are forgiven what they leave alone.
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
    /// Rights to act in another's name for some requests only.
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
    /// Requests of which the first that can be met counts.
    DraPrioritizedList,
    /// Attributes of devices that are made of others.
    DraDerivedAttributes,
    /// Groups of devices that go together.
    DraDeviceCompatibilityGroups,
    /// Attributes of devices that are lists.
    DraListTypeAttributes,
    /// What devices take of their node.
    DraNodeAllocatableResources,
    /// Operations that a node leaves out for devices.
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
    /// Watches may ask for what is there at their beginning.
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
    /// Pods that have a node are not nominated for another.
    ClearingNominatedNodeNameAfterBinding,
    /// `serviceAccountTokenInSecrets` of CSIDrivers.
    CsiServiceAccountTokenSecrets,
    /// `terminatingReplicas` of Deployments and ReplicaSets.
    DeploymentReplicaSetTerminatingReplicas,
    /// `extendedResourceName` of DeviceClasses.
    DraExtendedResource,
    /// `devices` in the status of claims.
    DraResourceClaimDeviceStatus,
    /// What whole pods may use, in their status.
    InPlacePodLevelResourcesVerticalScaling,
    /// Containers that run first may be resized.
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
    /// A CSINode may change how many volumes a driver takes.
    MutableCsiNodeAllocatableCount,
    /// A volume may move to other nodes.
    MutablePvNodeAffinity,
    /// A suspended job may change what its pods need.
    MutablePodResourcesForSuspendedJobs,
    /// A suspended job may change where its pods go once it has run.
    MutableSchedulingDirectivesForSuspendedJobs,
    /// `declaredFeatures` of nodes.
    NodeDeclaredFeatures,
    /// Which nodes count for topology spreads.
    NodeInclusionPolicyInPodTopologySpread,
    /// The annotation with the cost of a pod's deletion is checked.
    PodDeletionCost,
    /// Lifecycles may sleep for no time.
    PodLifecycleSleepActionAllowZero,
    /// `observedGeneration` of pods.
    PodObservedGenerationTracking,
    /// `procMount` of containers.
    ProcMountType,
    /// Claims may ask for less again.
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
    /// `restartPolicy` of containers that run first.
    SidecarContainers,
    /// Addresses are read strictly in old fields, too.
    StrictIpCidrValidation,
    /// Tolerations may compare numbers.
    TaintTolerationComparisonOperators,
    /// The health of volumes, in the status of claims and pods.
    CsiVolumeHealth,
    /// `podPreemptionPolicy` of nodes.
    InPlacePodVerticalScalingSchedulerPreemption,
}

/// Gates that somebody has set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Gates {
    set: u128,
    on: u128,
}

/// Why gates can't be set.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum GateError {
    /// No gate of the minor has this name.
    #[error("unrecognized feature gate: {0}")]
    Unknown(String),
    /// Another component than kube-apiserver is named.
    #[error("component not registered: {0}")]
    Component(String),
    /// There is no `=`.
    #[error("missing bool value for {0}")]
    Missing(String),
    /// What is behind the `=` is not a truth value.
    #[error("invalid value of {0}={1}, err: strconv.ParseBool: parsing {1:?}: invalid syntax")]
    Invalid(String, String),
    /// The gates have one value only.
    #[error("{}", locked(.0))]
    Locked(Vec<(String, bool)>),
}

fn locked(gates: &[(String, bool)]) -> String {
    let texts: Vec<String> = gates
        .iter()
        .map(|(name, value)| format!("cannot set feature gate {name} to {}, feature is locked to {value}", !value))
        .collect();
    if let [only] = texts.as_slice() { only.clone() } else { format!("[{}]", texts.join(", ")) }
}

/// What a gate is from a minor on; `None` from where on it is unknown.
type GateChange = (Minor, Option<Spec>);

/// A gate in a minor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Spec {
    stage: GateStage,
    is_on: bool,
    is_locked: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GateStage {
    Alpha,
    Beta,
    Stable,
    Deprecated,
}

/// Reads a line of the data.
trait ReadLine: Sized {
    fn all_of(line: &'static str) -> Option<(&'static str, Vec<Self>)>;
}

impl ReadLine for GateChange {
    fn all_of(line: &'static str) -> Option<(&'static str, Vec<GateChange>)> {
        let (name, changes) = line.split_once(' ')?;
        let change = |text: &str| {
            let mut words = text.split_whitespace();
            let minor = Minor::of(words.next()?.parse().ok()?);
            let stage = match words.next()? {
                "alpha" => GateStage::Alpha,
                "beta" => GateStage::Beta,
                "GA" => GateStage::Stable,
                "deprecated" => GateStage::Deprecated,
                _ => return Some((minor, None)),
            };
            let is_on = words.next() == Some("on");
            Some((minor, Some(Spec { stage, is_on, is_locked: words.next() == Some("locked") })))
        };
        Some((name, changes.split(", ").filter_map(change).collect()))
    }
}

/// What a gate is in a minor; `None` where it is not known.
fn spec(name: &str, minor: Minor) -> Option<Spec> {
    KNOWN.get(name)?.iter().rev().find(|(since, _)| *since <= minor)?.1
}

/// The gates, as `--feature-gates` names them, in the order of their declaration.
const NAMES: [(Gate, &str); 99] = [
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

    /// Whether there is the gate in a minor, or was before.
    pub fn is_known_in(self, minor: Minor) -> bool {
        KNOWN.get(self.name()).and_then(|changes| changes.first()).is_some_and(|(since, _)| *since <= minor)
    }

    /// Whether it is open in a minor unless somebody sets it. A gate that is gone was open for good.
    pub fn is_open_in(self, minor: Minor) -> bool {
        static OPEN: LazyLock<[[bool; Minor::COUNT]; NAMES.len()]> = LazyLock::new(|| {
            let is_open =
                |gate: Gate, minor| gate.is_known_in(minor) && spec(gate.name(), minor).is_none_or(|spec| spec.is_on);
            NAMES
                .map(|(gate, _)| std::array::from_fn(|at| is_open(gate, Minor::of(Minor::OLDEST.number() + at as u16))))
        });
        OPEN[self as usize][minor.index()]
    }

    const fn bit(self) -> u128 {
        1 << self as u8
    }
}

impl Gates {
    /// None.
    pub const UNSET: Gates = Gates { set: 0, on: 0 };

    /// What somebody says of a gate; `None` where nobody does.
    pub fn get(self, gate: Gate) -> Option<bool> {
        (self.set & gate.bit() != 0).then_some(self.on & gate.bit() != 0)
    }

    fn set(&mut self, gate: Gate, is_on: bool) {
        self.set |= gate.bit();
        self.on = if is_on { self.on | gate.bit() } else { self.on & !gate.bit() };
    }

    /// Reads `A=true,kube:B=false` for a minor. `AllAlpha` and `AllBeta` stand for those that are not named.
    ///
    /// # Errors
    /// kube-apiserver's, for a gate that the minor does not know or that is locked, and for a text of another form.
    pub fn parse(text: &str, minor: Minor) -> Result<Gates, GateError> {
        let mut named: Vec<(&str, bool)> = Vec::new();
        for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
            let entry = match entry.split_once(':') {
                None => entry,
                Some(("kube", entry)) => entry,
                Some((component, _)) => return Err(GateError::Component(component.to_owned())),
            };
            let (name, value) = entry.split_once('=').ok_or_else(|| GateError::Missing(entry.trim().to_owned()))?;
            let (name, value) = (name.trim(), value.trim());
            let invalid = || GateError::Invalid(name.to_owned(), value.to_owned());
            named.push((name, truth(value).ok_or_else(invalid)?));
        }
        let mut refused = Vec::new();
        for (name, value) in named.iter().filter(|(name, _)| stage_named(name).is_none()) {
            let spec = spec(name, minor).ok_or_else(|| GateError::Unknown((*name).to_owned()))?;
            if spec.is_locked && spec.is_on != *value {
                refused.push(((*name).to_owned(), spec.is_on));
            }
        }
        if !refused.is_empty() {
            return Err(GateError::Locked(refused));
        }
        let mut gates = Gates::default();
        for gate in Gate::all() {
            let said = |wanted: &str| named.iter().rev().find(|(name, _)| *name == wanted).map(|(_, value)| *value);
            let stage = spec(gate.name(), minor).map(|spec| spec.stage);
            let of_stage = || named.iter().rev().find(|(name, _)| stage.is_some() && stage_named(name) == stage);
            if let Some(is_on) = said(gate.name()).or_else(|| of_stage().map(|(_, value)| *value)) {
                gates.set(gate, is_on);
            }
        }
        Ok(gates)
    }
}

fn stage_named(name: &str) -> Option<GateStage> {
    match name {
        "AllAlpha" => Some(GateStage::Alpha),
        "AllBeta" => Some(GateStage::Beta),
        _ => None,
    }
}

/// As `strconv.ParseBool` of Go reads it.
fn truth(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(minor: u16, text: &str, expected: Result<&[(Gate, bool)], &str>) {
        let read = Gates::parse(text, Minor::of(minor)).map_err(|error| error.to_string());
        let set = |gates: Gates| Gate::all().filter_map(|gate| Some((gate, gates.get(gate)?))).collect::<Vec<_>>();
        assert_eq!(read.map(set), expected.map(<[_]>::to_vec).map_err(str::to_owned), "{text} in 1.{minor}");
    }

    #[test]
    fn gates_are_read_as_kube_apiserver_reads_them() {
        check(37, "", Ok(&[]));
        check(
            31,
            "CRDValidationRatcheting=false, WatchList=t",
            Ok(&[(Gate::CrdValidationRatcheting, false), (Gate::WatchList, true)]),
        );
        check(37, "kube:WatchList=false,kube:MemoryQoS=true", Ok(&[(Gate::WatchList, false)]));
        check(37, "NoSuchGate=true", Err("unrecognized feature gate: NoSuchGate"));
        // Known later, and no longer.
        check(29, "CustomResourceFieldSelectors=true", Err("unrecognized feature gate: CustomResourceFieldSelectors"));
        check(32, "ValidatingAdmissionPolicy=true", Err("unrecognized feature gate: ValidatingAdmissionPolicy"));
        check(
            34,
            "CRDValidationRatcheting=false",
            Err("cannot set feature gate CRDValidationRatcheting to false, feature is locked to true"),
        );
        check(34, "CRDValidationRatcheting=true", Ok(&[(Gate::CrdValidationRatcheting, true)]));
        let both = "[cannot set feature gate CRDValidationRatcheting to false, feature is locked to true, cannot set feature gate \
                    CustomResourceFieldSelectors to false, feature is locked to true]";
        check(34, "CRDValidationRatcheting=false,CustomResourceFieldSelectors=0", Err(both));
        check(37, "WatchList", Err("missing bool value for WatchList"));
        let invalid = "invalid value of WatchList=maybe, err: strconv.ParseBool: parsing \"maybe\": invalid syntax";
        check(37, "WatchList=maybe", Err(invalid));
        check(37, "scheduler:WatchList=true", Err("component not registered: scheduler"));
    }

    #[test]
    fn all_of_a_stage_stand_behind_those_that_are_named() {
        let gates = Gates::parse("AllAlpha=true,WatchList=false", Minor::of(29)).expect("the gates are known");
        assert_eq!(gates.get(Gate::CrdValidationRatcheting), Some(true));
        assert_eq!(gates.get(Gate::WatchList), Some(false));
        // Beta, and not known yet.
        assert_eq!(gates.get(Gate::ValidatingAdmissionPolicy), None);
        assert_eq!(gates.get(Gate::HostnameOverride), None);
    }

    #[test]
    fn a_gate_stands_at_its_place_among_the_names() {
        for (place, (gate, name)) in NAMES.into_iter().enumerate() {
            assert!(gate as usize == place && KNOWN.contains_key(name), "{name}");
        }
    }

    #[test]
    fn a_minor_has_its_defaults() {
        let open = |gate: Gate| -> Vec<u16> {
            Minor::all().filter(|minor| gate.is_open_in(*minor)).map(Minor::number).collect()
        };
        assert_eq!(open(Gate::CrdValidationRatcheting), (30..=37).collect::<Vec<_>>());
        assert_eq!(open(Gate::CustomResourceFieldSelectors), (31..=37).collect::<Vec<_>>());
        assert_eq!(open(Gate::ValidatingAdmissionPolicy), (30..=37).collect::<Vec<_>>());
        assert_eq!(open(Gate::MutatingAdmissionPolicy), [36, 37]);
        for gate in [Gate::MaxUnavailableStatefulSet, Gate::ClusterTrustBundle, Gate::StorageVersionMigrator] {
            assert_eq!(open(gate), [37], "{gate:?}");
        }
        assert_eq!(open(Gate::HostnameOverride), [35, 36, 37]);
        assert_eq!(open(Gate::ApiResponseCompression), (29..=37).collect::<Vec<_>>());
    }

    #[test]
    fn every_line_of_the_data_is_read() {
        let lines =
            include_str!(concat!(env!("SCHEMAS"), "/feature-gates.txt")).lines().filter(|line| !line.starts_with('#'));
        for line in lines {
            let (name, changes) = line.split_once(' ').expect("a name and changes");
            let written: Vec<String> = KNOWN[name]
                .iter()
                .map(|(minor, spec)| {
                    let Some(spec) = spec else { return format!("{} gone", minor.number()) };
                    let stage = match spec.stage {
                        GateStage::Alpha => "alpha",
                        GateStage::Beta => "beta",
                        GateStage::Stable => "GA",
                        GateStage::Deprecated => "deprecated",
                    };
                    let (on, locked) =
                        (if spec.is_on { "on" } else { "off" }, if spec.is_locked { " locked" } else { "" });
                    format!("{} {stage} {on}{locked}", minor.number())
                })
                .collect();
            assert_eq!(written.join(", "), changes, "{name}");
        }
    }
}
