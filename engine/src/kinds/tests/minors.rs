//! What differs between minors: fields that features have, and what is valid.

use std::sync::Arc;

use super::super::*;
use crate::crd::Scope;
use crate::kinds::strategy::Subresource;
use crate::meta::gate::Gates;
use crate::meta::minor::Minor;
use crate::value::yaml;

#[test]
fn fields_of_features_follow_the_gates_of_the_minor() {
    #[track_caller]
    fn check((api_version, name): (&str, &str), path: &[&str], object: &str, kept_from: u16, gate: &str) {
        let kind =
            all().find(|kind| (kind.api_version().as_str(), kind.kind) == (api_version, name)).expect("it is there");
        let keeps = |minor: Minor| {
            let sent = yaml::decode(object.as_bytes()).expect("the test is YAML");
            let (mut object, _) = kind.message().decode(&sent).expect("the test is valid");
            kind.strategy.prepare_create(&kind.served_version_in(minor), &mut object);
            object.at(path).is_some()
        };
        let kept: Vec<u16> = Minor::all().filter(|minor| keeps(*minor)).map(Minor::number).collect();
        assert_eq!(kept, (kept_from..=Minor::NEWEST.number()).collect::<Vec<_>>(), "{gate}");
        for value in [true, false] {
            let set = |minor| Gates::parse(&format!("{gate}={value}"), minor);
            let minor = Minor::all().find(|minor| set(*minor).is_ok()).expect("a minor has the gate");
            assert_eq!(keeps(minor.with_gates(set(minor).expect("it was there"))), value, "{gate}={value}");
        }
    }
    check(
        ("apps/v1", "StatefulSet"),
        &["spec", "updateStrategy", "rollingUpdate", "maxUnavailable"],
        "spec: {updateStrategy: {rollingUpdate: {maxUnavailable: 2}}}",
        37,
        "MaxUnavailableStatefulSet",
    );
    check(
        ("storage.k8s.io/v1", "CSIDriver"),
        &["spec", "preventPodSchedulingIfMissing"],
        "spec: {preventPodSchedulingIfMissing: true}",
        37,
        "VolumeLimitScaling",
    );
    check(
        ("autoscaling/v2", "HorizontalPodAutoscaler"),
        &["spec", "behavior", "scaleUp", "tolerance"],
        "apiVersion: autoscaling/v2\nspec: {behavior: {scaleUp: {tolerance: 500m}}}",
        35,
        "HPAConfigurableTolerance",
    );
    check(("batch/v1", "Job"), &["spec", "managedBy"], "spec: {managedBy: a.example.com/b}", 32, "JobManagedBy");
    check(
        ("batch/v1", "Job"),
        &["spec", "template", "spec", "hostnameOverride"],
        "spec: {template: {spec: {hostnameOverride: a}}}",
        35,
        "HostnameOverride",
    );
    check(
        ("resource.k8s.io/v1", "DeviceClass"),
        &["spec", "extendedResourceName"],
        "spec: {extendedResourceName: example.com/a}",
        36,
        "DRAExtendedResource",
    );
    check(
        ("storage.k8s.io/v1", "CSIDriver"),
        &["spec", "serviceAccountTokenInSecrets"],
        "spec: {serviceAccountTokenInSecrets: true}",
        35,
        "CSIServiceAccountTokenSecrets",
    );
    check(
        ("v1", "Service"),
        &["spec", "trafficDistribution"],
        "spec: {trafficDistribution: PreferClose}",
        31,
        "ServiceTrafficDistribution",
    );
    check(
        ("batch/v1", "Job"),
        &["spec", "backoffLimitPerIndex"],
        "spec: {backoffLimitPerIndex: 1}",
        29,
        "JobBackoffLimitPerIndex",
    );
    let pod = ("v1", "Pod");
    check(pod, &["spec", "hostUsers"], "spec: {hostUsers: false}", 33, "UserNamespacesSupport");
    check(
        ("resource.k8s.io/v1", "ResourceSlice"),
        &["spec", "skipNodeOperations"],
        "spec: {skipNodeOperations: ['*']}",
        38,
        "DRAOptionalNodeOperations",
    );
}

#[test]
fn sources_of_projected_volumes_follow_the_gates_of_the_minor() {
    let sources = "[{clusterTrustBundle: {name: a, path: b}}, {podCertificate: {signerName: a/b, keyType: ED25519}}]";
    let pod = format!("spec: {{containers: [], volumes: [{{name: v, projected: {{sources: {sources}}}}}]}}");
    let sent = yaml::decode(pod.as_bytes()).expect("the test is YAML");
    let kind = find("", "pods").expect("it is there");
    let kept = |minor: Minor| {
        let (mut object, _) = kind.message().decode(&sent).expect("the test is valid");
        kind.strategy.prepare_create(&kind.served_version_in(minor), &mut object);
        let sources = object.items_at(&["spec", "volumes"])[0].items_at(&["projected", "sources"]);
        sources.iter().map(|source| source.as_object().is_some_and(|it| !it.is_empty())).collect::<Vec<_>>()
    };
    assert_eq!(kept(Minor::NEWEST), [true, true]);
    assert_eq!(kept(Minor::of(36)), [false, false]);
    let gates = Gates::parse("ClusterTrustBundleProjection=true", Minor::of(36)).expect("the gate is known");
    assert_eq!(kept(Minor::of(36).with_gates(gates)), [true, false]);
}

/// The errors of objects of one kind, in each minor.
struct Held<'t> {
    kind: &'static Kind,
    subresource: Subresource,
    old: Option<&'t str>,
    new: &'t str,
}

impl<'t> Held<'t> {
    fn new(of: &str, old: Option<&'t str>, new: &'t str) -> Self {
        let (api_version, kind) = of.split_once(' ').expect("the test names a type");
        let found = all().find(|known| known.kind == kind && known.api_version() == api_version);
        Held { kind: found.expect("the kind is built in"), subresource: Subresource::Main, old, new }
    }

    fn of_status(self) -> Self {
        Held { subresource: Subresource::Status, ..self }
    }

    /// The text with what every object has, decoded.
    fn read(&self, minor: Minor, text: &str) -> Value {
        let mut object = yaml::decode(text.as_bytes()).expect("the test is YAML");
        let fields = object.make_object();
        fields.insert("apiVersion", Value::from(self.kind.api_version()));
        fields.insert("kind", Value::from(self.kind.kind));
        let metadata = fields.entry("metadata").make_object();
        metadata.insert("name", Value::from("a"));
        metadata.insert("resourceVersion", Value::from("1"));
        if self.kind.scope == Scope::Namespaced {
            metadata.insert("namespace", Value::from("default"));
        }
        let versions = [Arc::new(self.kind.served_version_in(minor))];
        self.kind.strategy.decode(object, &versions).expect("the test is of its type").object
    }

    /// What is wrong in that minor.
    fn faults(&self, minor: Minor) -> Vec<String> {
        let version = self.kind.served_version_in(minor);
        let mut new = self.read(minor, self.new);
        let strategy = self.kind.strategy;
        let errors = match self.old.map(|old| self.read(minor, old)) {
            None => strategy.validate_create(&version, &new),
            Some(old) => {
                strategy.prepare_update(&version, self.subresource, &mut new, &old);
                strategy.validate_update(&version, self.subresource, &new, &old)
            }
        };
        errors.iter().map(|error| error.to_string().lines().next().unwrap_or_default().to_owned()).collect()
    }

    /// The object is valid from that minor on, and in minors before as soon as the gate is open; otherwise `fault` is told.
    #[track_caller]
    fn is_valid_from(&self, from: u16, gate: &str, fault: &str) {
        for minor in Minor::all() {
            let expected = if minor.number() < from { vec![fault.to_owned()] } else { Vec::new() };
            assert_eq!(self.faults(minor), expected, "{minor}");
        }
        self.turns_with(gate, fault);
    }

    /// The object is refused from that minor on.
    #[track_caller]
    fn is_valid_before(&self, from: u16, fault: &str) {
        for minor in Minor::all() {
            let expected = if minor.number() < from { Vec::new() } else { vec![fault.to_owned()] };
            assert_eq!(self.faults(minor), expected, "{minor}");
        }
    }

    /// The object is refused since 1.36, and wherever the gate is open.
    #[track_caller]
    fn is_valid_before_36(&self, gate: &str, fault: &str) {
        self.is_valid_before(36, fault);
        let opened =
            |minor: Minor| minor.with_gates(Gates::parse(&format!("{gate}=true"), minor).expect("it is there"));
        let shut = |minor: Minor| minor.with_gates(Gates::parse(&format!("{gate}=false"), minor).expect("it is there"));
        assert_eq!(self.faults(opened(Minor::of(34))), [fault]);
        assert_eq!(self.faults(shut(Minor::of(37))), [""; 0]);
    }

    /// The object is refused with `fault` while the gate is shut, wherever it can be set.
    #[track_caller]
    fn turns_with(&self, gate: &str, fault: &str) {
        let set = |minor: Minor, is_open: bool| {
            let gates = Gates::parse(&format!("{gate}={is_open}"), minor).ok();
            gates.map(|gates| minor.with_gates(gates))
        };
        for minor in Minor::all() {
            if let Some(minor) = set(minor, true) {
                assert_eq!(self.faults(minor), [""; 0], "{gate} is open in {minor}");
            }
            if let Some(minor) = set(minor, false) {
                assert_eq!(self.faults(minor), [fault], "{gate} is shut in {minor}");
            }
        }
    }
}

const POD: &str = "v1 Pod";

#[test]
fn selectors_of_devices_use_the_functions_of_the_minor() {
    let class = "spec: {selectors: [{cel: {expression: 'device.attributes[\"a\"].v.flatten().size() == 0'}}]}";
    let held = Held::new("resource.k8s.io/v1beta2 DeviceClass", None, class);
    let faults = held.faults(Minor::of(33));
    assert!(faults.len() == 1 && faults[0].contains("undeclared reference to 'flatten'"), "{faults:?}");
    assert_eq!(held.faults(Minor::of(35)), [""; 0]);
}

#[test]
fn fields_of_a_status_follow_the_gates_of_the_minor() {
    #[track_caller]
    fn check(of: &str, status: &str, field: &str, kept_from: u16) {
        let new = format!("status: {status}");
        let held = Held::new(of, None, &new);
        let keeps = |minor: Minor| {
            let (mut new, old) = (held.read(minor, held.new), held.read(minor, "{}"));
            held.kind.strategy.prepare_update(&held.kind.served_version_in(minor), Subresource::Status, &mut new, &old);
            new.at(&["status", field]).is_some()
        };
        let kept: Vec<u16> = Minor::all().filter(|minor| keeps(*minor)).map(Minor::number).collect();
        assert_eq!(kept, (kept_from..=Minor::NEWEST.number()).collect::<Vec<_>>(), "{field}");
    }
    check("apps/v1 Deployment", "{terminatingReplicas: 1}", "terminatingReplicas", 35);
    check("apps/v1 ReplicaSet", "{terminatingReplicas: 1}", "terminatingReplicas", 35);
    check("v1 Node", "{declaredFeatures: [A]}", "declaredFeatures", 36);
    check("v1 Node", "{runtimeHandlers: [{name: a}]}", "runtimeHandlers", 31);
    check("v1 Pod", "{observedGeneration: 1}", "observedGeneration", 34);
    check(
        "v1 Pod",
        "{extendedResourceClaimStatus: {resourceClaimName: a, requestMappings: []}}",
        "extendedResourceClaimStatus",
        36,
    );
    check("v1 PersistentVolumeClaim", "{allocatedResources: {storage: 1Gi}}", "allocatedResources", 32);
    check("v1 Pod", "{resourceClaimStatuses: [{name: a}]}", "resourceClaimStatuses", 34);
    // Of alpha features.
    const NEVER: u16 = 38;
    check("v1 PersistentVolumeClaim", "{healthStatus: {healthConditions: []}}", "healthStatus", NEVER);
    check("v1 Pod", "{volumeHealth: [{name: a}]}", "volumeHealth", NEVER);
    let allocatable = "nodeAllocatableResourceClaimStatuses";
    check("v1 Pod", "{nodeAllocatableResourceClaimStatuses: [{resourceClaimName: a}]}", allocatable, NEVER);
    check("resource.k8s.io/v1 ResourceClaim", "{devices: [{driver: a, pool: b, device: c}]}", "devices", 33);
}

#[test]
fn containers_sleep_for_no_time_with_a_feature() {
    let pod = "spec: {containers: [{name: c, image: i, lifecycle: {preStop: {sleep: {seconds: 0}}}}]}";
    let fault = "spec.containers[0].lifecycle.preStop.sleep: Invalid value: 0: must be greater than 0 and less than \
                 terminationGracePeriodSeconds (30). Enable AllowPodLifecycleSleepActionZeroValue feature gate for zero sleep.";
    Held::new(POD, None, pod).is_valid_from(33, "PodLifecycleSleepActionAllowZero", fault);
    // What the old pod has may stay.
    let changed = format!("metadata: {{labels: {{a: b}}}}\n{pod}");
    assert_eq!(Held::new(POD, Some(pod), &changed).faults(Minor::of(32)), [""; 0]);
}

#[test]
fn one_container_restarts_all_with_a_feature() {
    let pod = "spec: {containers: [{name: c, image: i, restartPolicy: Never, restartPolicyRules: [{action: RestartAllContainers, \
               exitCodes: {operator: In, values: [1]}}]}]}";
    let fault = "spec.containers[0].restartPolicyRules[0].action: Unsupported value: \"RestartAllContainers\": supported \
                 values: \"Restart\"";
    let held = Held::new(POD, None, pod);
    assert_eq!(held.faults(Minor::of(35)), [fault]);
    assert_eq!(held.faults(Minor::of(36)), [""; 0]);
    held.turns_with("RestartAllContainersOnContainerExits", fault);
}

#[test]
fn tolerations_compare_numbers_with_a_feature() {
    let pod = "spec: {containers: [{name: c, image: i}], tolerations: [{key: a, operator: Gt, value: '1'}]}";
    let fault = "spec.tolerations[0].operator: Unsupported value: \"Gt\": supported values: \"Equal\", \"Exists\", \"Lt\", \"Gt\"";
    Held::new(POD, None, pod).is_valid_from(38, "TaintTolerationComparisonOperators", fault);
}

#[test]
fn a_key_is_in_the_selector_or_beside_it_before_both_are_merged() {
    let pod = "spec: {containers: [{name: c, image: i}], topologySpreadConstraints: [{maxSkew: 1, topologyKey: a, \
               whenUnsatisfiable: DoNotSchedule, matchLabelKeys: [b], labelSelector: {matchExpressions: [{key: b, operator: Exists}]}}]}";
    let fault = "spec.topologySpreadConstraints[0].matchLabelKeys[0]: Invalid value: \"b\": exists in both matchLabelKeys and \
                 labelSelector";
    Held::new(POD, None, pod).is_valid_from(34, "MatchLabelKeysInPodTopologySpreadSelectorMerge", fault);
}

#[test]
fn pods_count_their_changes_since_1_33() {
    let pod = find("", "pods").expect("it is there");
    let generation = |minor: Minor| {
        let mut object = yaml::decode(b"spec: {containers: [{name: c, image: i}]}").expect("the test is YAML");
        pod.strategy.prepare_create(&pod.served_version_in(minor), &mut object);
        object.at(&["metadata", "generation"]).cloned()
    };
    assert_eq!((generation(Minor::of(32)), generation(Minor::of(33))), (None, Some(Value::Int(1))));
}

#[test]
fn proc_is_mounted_by_default_without_the_feature() {
    let pod = find("", "pods").expect("it is there");
    let mount = |minor: Minor, mount: &str| {
        let text = format!("spec: {{containers: [{{name: c, securityContext: {{procMount: {mount}}}}}]}}");
        let mut object = yaml::decode(text.as_bytes()).expect("the test is YAML");
        pod.strategy.prepare_create(&pod.served_version_in(minor), &mut object);
        let container = &object.items_at(&["spec", "containers"])[0];
        container.str_at(&["securityContext", "procMount"]).to_owned()
    };
    assert_eq!(mount(Minor::of(32), "Unmasked"), "Default");
    assert_eq!(mount(Minor::of(33), "Unmasked"), "Unmasked");
}

#[test]
fn addresses_are_read_strictly_since_1_36() {
    const GATE: &str = "StrictIPCIDRValidation";
    let policy = "spec: {podSelector: {}, ingress: [{from: [{ipBlock: {cidr: 10.0.0.1/8}}]}]}";
    Held::new("networking.k8s.io/v1 NetworkPolicy", None, policy).is_valid_before_36(
        GATE,
        "spec.ingress[0].from[0].ipBlock.cidr: Invalid value: \"10.0.0.1/8\": must not have bits set beyond the prefix length",
    );
    let service = "spec: {ports: [{port: 80}], externalIPs: [192.168.000.001]}";
    Held::new("v1 Service", None, service)
        .is_valid_before_36(GATE, "spec.externalIPs[0]: Invalid value: \"192.168.000.001\": must not have leading 0s");
    let slice = "{addressType: IPv4, endpoints: [{addresses: [010.1.1.1]}], ports: []}";
    Held::new("discovery.k8s.io/v1 EndpointSlice", None, slice)
        .is_valid_before_36(GATE, "endpoints[0].addresses[0]: Invalid value: \"010.1.1.1\": must not have leading 0s");
    let endpoints = "subsets: [{addresses: [{ip: 010.1.1.1}], ports: [{port: 80}]}]";
    Held::new("v1 Endpoints", None, endpoints)
        .is_valid_before_36(GATE, "subsets[0].addresses[0].ip: Invalid value: \"010.1.1.1\": must not have leading 0s");
    let pod = "spec: {containers: [{name: c, image: i}], dnsConfig: {nameservers: [010.0.0.1]}}";
    Held::new(POD, None, pod).is_valid_before_36(
        GATE,
        "spec.dnsConfig.nameservers[0]: Invalid value: \"010.0.0.1\": must not have leading 0s",
    );
    let pod = "spec: {containers: [{name: c, image: i}], hostAliases: [{ip: '::ffff:1.2.3.4'}]}";
    Held::new(POD, None, pod).is_valid_before_36(
        GATE,
        "spec.hostAliases[0].ip: Invalid value: \"::ffff:1.2.3.4\": must not be an IPv4-mapped IPv6 address",
    );
}

#[test]
fn a_stateful_set_changes_its_history_since_1_33() {
    let set = |limit: u8| {
        format!(
            "spec: {{serviceName: a, revisionHistoryLimit: {limit}, selector: {{matchLabels: {{a: b}}}}, template: \
             {{metadata: {{labels: {{a: b}}}}, spec: {{containers: [{{name: c, image: i}}]}}}}}}"
        )
    };
    let (old, new) = (set(3), set(4));
    let held = Held::new("apps/v1 StatefulSet", Some(&old), &new);
    let fault = "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
                 'updateStrategy', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
    assert_eq!(held.faults(Minor::of(32)), [fault]);
    assert_eq!(held.faults(Minor::of(33)), [""; 0]);
}

#[test]
fn a_suspended_job_changes_what_its_pods_need_since_1_36() {
    let job = |cpu: u8, zone: &str, status: &str| {
        format!(
            "spec: {{suspend: true, manualSelector: true, selector: {{matchLabels: {{a: b}}}}, template: {{metadata: {{labels: \
             {{a: b}}}}, spec: {{restartPolicy: Never, nodeSelector: {{zone: {zone}}}, containers: [{{name: c, image: i, \
             resources: {{requests: {{cpu: {cpu}}}}}}}]}}}}}}\nstatus: {status}"
        )
    };
    let has_run = "{startTime: '2026-01-01T00:00:00Z', conditions: [{type: Suspended, status: 'True'}]}";
    let told = |minor: u16, old: &str, new: &str| {
        let faults = Held::new("batch/v1 Job", Some(old), new).faults(Minor::of(minor));
        let fields: Vec<String> =
            faults.iter().map(|fault| fault.split(": ").next().unwrap_or_default().to_owned()).collect();
        assert!(faults.iter().all(|fault| fault.ends_with("field is immutable")), "{faults:?}");
        fields
    };
    let (old, cheaper) = (job(1, "a", "{}"), job(2, "a", "{}"));
    assert_eq!((told(35, &old, &cheaper), told(36, &old, &cheaper)), (vec!["spec.template".to_owned()], Vec::new()));
    let elsewhere = job(1, "b", "{}");
    assert_eq!((told(35, &old, &elsewhere), told(36, &old, &elsewhere)), (Vec::new(), Vec::new()));
    let (old, elsewhere) = (job(1, "a", has_run), job(1, "b", has_run));
    assert_eq!(
        (told(35, &old, &elsewhere), told(36, &old, &elsewhere)),
        (vec!["spec.template".to_owned()], Vec::new())
    );
}

#[test]
fn claims_shrink_to_above_what_they_have_since_1_32() {
    let claim = |size: &str| {
        format!(
            "spec: {{accessModes: [ReadWriteOnce], resources: {{requests: {{storage: {size}}}}}}}\nstatus: {{phase: Bound, capacity: {{storage: 1Gi}}}}"
        )
    };
    let (old, new) = (claim("3Gi"), claim("2Gi"));
    Held::new("v1 PersistentVolumeClaim", Some(&old), &new).is_valid_from(
        32,
        "RecoverVolumeExpansionFailure",
        "spec.resources.requests.storage: Forbidden: field can not be less than previous value",
    );
    // Whichever resource it is that has been resized.
    let resized = old.replace("phase: Bound,", "phase: Bound, allocatedResources: {example.com/a: 1},");
    assert_eq!(Held::new("v1 PersistentVolumeClaim", Some(&resized), &new).faults(Minor::of(31)), [""; 0]);
}

#[test]
fn a_volume_moves_with_a_feature() {
    let volume = |zone: &str| {
        format!(
            "spec: {{capacity: {{storage: 1Gi}}, accessModes: [ReadWriteOnce], hostPath: {{path: /a}}, nodeAffinity: {{required: \
             {{nodeSelectorTerms: [{{matchExpressions: [{{key: zone, operator: In, values: [{zone}]}}]}}]}}}}}}"
        )
    };
    let (old, new) = (volume("a"), volume("b"));
    let held = Held::new("v1 PersistentVolume", Some(&old), &new);
    let faults = held.faults(Minor::NEWEST);
    assert!(faults.len() == 1 && faults[0].contains("field is immutable, except for updating from beta label to GA"));
    let gates = Gates::parse("MutablePVNodeAffinity=true", Minor::NEWEST).expect("it is there");
    assert_eq!(held.faults(Minor::NEWEST.with_gates(gates)), [""; 0]);
}

#[test]
fn a_node_tells_anew_how_many_volumes_a_driver_takes_since_1_35() {
    let node = |count: u8| {
        format!(
            "spec: {{drivers: [{{name: d.example.com, nodeID: a, topologyKeys: [], allocatable: {{count: {count}}}}}]}}"
        )
    };
    let (old, new) = (node(1), node(2));
    let held = Held::new("storage.k8s.io/v1 CSINode", Some(&old), &new);
    let faults = held.faults(Minor::of(34));
    assert!(faults.len() == 1 && faults[0].ends_with("field is immutable"), "{faults:?}");
    assert_eq!(held.faults(Minor::of(35)), [""; 0]);
}

#[test]
fn a_pod_with_a_node_is_not_nominated_for_another_since_1_35() {
    let pod = "spec: {nodeName: node-1, containers: [{name: c, image: i}]}";
    let nominated = format!("{pod}\nstatus: {{qosClass: BestEffort, nominatedNodeName: m}}");
    let old = format!("{pod}\nstatus: {{qosClass: BestEffort}}");
    Held::new(POD, Some(&old), &nominated).of_status().is_valid_before(
        35,
        "status.nominatedNodeName: Forbidden: may not be set on pods that are already bound to a node",
    );
}

#[test]
fn autoscalers_may_leave_out_the_group_of_what_they_scale_before_1_34() {
    const AUTOSCALER: &str = "autoscaling/v1 HorizontalPodAutoscaler";
    let fault = "spec.scaleTargetRef.apiVersion: Invalid value: \"\": apiVersion must specify API group";
    let of = |target: &str| format!("spec: {{maxReplicas: 2, scaleTargetRef: {target}}}");
    let (old, new) = (of("{apiVersion: apps/v1, kind: Deployment, name: a}"), of("{kind: Deployment, name: a}"));
    Held::new(AUTOSCALER, None, &new).is_valid_before(34, fault);
    Held::new(AUTOSCALER, Some(&old), &new).is_valid_before(34, fault);
    let metric = "{type: Object, object: {describedObject: {apiVersion: a/b/c, kind: K, name: a}, \
                  metric: {name: m}, target: {type: Value, value: 1}}}";
    let odd = format!(
        "spec: {{maxReplicas: 2, scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: a}}, metrics: [{metric}]}}"
    );
    Held::new("autoscaling/v2 HorizontalPodAutoscaler", None, &odd).is_valid_before(
        34,
        "spec.metrics[0].object.describedObject.apiVersion: Invalid value: \"a/b/c\": unexpected GroupVersion string: a/b/c",
    );
}

/// What is left of a new object's part in that version.
fn prepared(of: &str, object: &str, minor: u16, path: &[&str]) -> String {
    let (held, minor) = (Held::new(of, None, object), Minor::of(minor));
    let mut new = held.read(minor, held.new);
    held.kind.strategy.prepare_create(&held.kind.served_version_in(minor), &mut new);
    new.at(path).map(crate::value::json::encode_to_string).unwrap_or_default()
}

#[test]
fn a_pod_is_made_without_volumes_of_images_before_1_35() {
    let mounts = "volumeMounts: [{name: v, mountPath: /v}, {name: w, mountPath: /w}]";
    let pod = format!(
        "spec: {{volumes: [{{name: v, image: {{reference: r}}}}, {{name: w, emptyDir: {{}}}}], containers: [{{name: c, image: i, \
         {mounts}}}], initContainers: [{{name: d, image: i, volumeMounts: [{{name: v, mountPath: /v}}]}}]}}"
    );
    let shown = |minor: u16| prepared(POD, &pod, minor, &["spec"]);
    let old = shown(34);
    assert!(!old.contains("\"v\"") && !old.contains("reference") && old.contains("\"w\""), "{old}");
    assert_eq!(old.matches("volumeMounts").count(), 1, "{old}");
    assert_eq!(shown(35).matches("volumeMounts").count(), 2);
}

#[test]
fn containers_say_when_they_restart_since_1_35() {
    let pod = "spec: {containers: [{name: c, image: i, restartPolicy: Never}], initContainers: [{name: d, image: i, restartPolicy: \
               Always}, {name: e, image: i, restartPolicy: OnFailure}]}";
    let count = |minor: u16| {
        let spec = prepared(POD, pod, minor, &["spec"]);
        ["\"Never\"", "\"OnFailure\""].iter().map(|policy| spec.matches(policy).count()).sum::<usize>()
    };
    assert_eq!((count(34), count(35)), (0, 2));
    assert!(prepared(POD, pod, 34, &["spec", "initContainers"]).contains("\"restartPolicy\":\"Always\""));
}

#[test]
fn statuses_of_containers_follow_the_gates_of_the_minor() {
    #[track_caller]
    fn check(fields: &str, uses: &str, kept_from: u16) {
        let kept = |minor: Minor, spec: &str| {
            let new = format!("{spec}\nstatus: {{containerStatuses: [{{name: c, {fields}}}]}}");
            let held = Held::new(POD, None, &new);
            let (mut new, old) = (held.read(minor, held.new), held.read(minor, spec));
            held.kind.strategy.prepare_update(&held.kind.served_version_in(minor), Subresource::Status, &mut new, &old);
            let name = fields.split(':').next().unwrap_or_default();
            new.items_at(&["status", "containerStatuses"])[0].get(name).is_some()
        };
        let plain = "spec: {containers: [{name: c, image: i}]}";
        let from: Vec<u16> = Minor::all().filter(|minor| kept(*minor, plain)).map(Minor::number).collect();
        assert_eq!(from, (kept_from..=Minor::NEWEST.number()).collect::<Vec<_>>(), "{fields}");
        assert!(kept(Minor::of(kept_from - 1), uses), "{fields}");
    }
    let groups = "spec: {securityContext: {supplementalGroupsPolicy: Strict}, containers: [{name: c, image: i}]}";
    check("user: {linux: {uid: 1, gid: 1}}", groups, 33);
    let resizes =
        "spec: {containers: [{name: c, image: i, resizePolicy: [{resourceName: cpu, restartPolicy: NotRequired}]}]}";
    check("allocatedResources: {cpu: '1'}", resizes, 33);
}

#[test]
fn the_resources_of_a_pod_are_resized_since_1_36() {
    let (held, old) =
        (|cpu| format!("spec: {{resources: {{requests: {{cpu: {cpu}}}}}, containers: [{{name: c, image: i}}]}}"), 35);
    let (new, old_pod) = (held(2), held(1));
    let held = Held::new(POD, Some(&old_pod), &new);
    let told = |minor: u16| {
        let minor = Minor::of(minor);
        let (mut new, old) = (held.read(minor, &new), held.read(minor, &old_pod));
        let version = held.kind.served_version_in(minor);
        held.kind.strategy.prepare_update(&version, Subresource::Part("resize"), &mut new, &old);
        held.kind.strategy.validate_update(&version, Subresource::Part("resize"), &new, &old).aggregate()
    };
    assert_eq!(
        told(old),
        "[]: Forbidden: resize of pods with pod-level resources is forbidden when \
         InPlacePodLevelResourcesVerticalScalingEnabled feature gate is disabled"
    );
    assert!(!told(36).contains("feature gate is disabled"), "{}", told(36));
}

#[test]
fn new_jobs_have_no_rules_for_indexes_where_these_have_no_limit() {
    let job = "spec: {podFailurePolicy: {rules: [{action: FailIndex}, {action: Ignore}]}}";
    let held = Held::new("batch/v1 Job", None, job);
    let left = |gates: &str| {
        let minor = Minor::of(32);
        let minor = minor.with_gates(Gates::parse(gates, minor).expect("the minor has the gate"));
        let mut new = held.read(minor, held.new);
        held.kind.strategy.prepare_create(&held.kind.served_version_in(minor), &mut new);
        new.items_at(&["spec", "podFailurePolicy", "rules"]).len()
    };
    assert_eq!((left("JobBackoffLimitPerIndex=false"), left("JobBackoffLimitPerIndex=true")), (1, 2));
}

#[test]
fn a_job_does_not_change_hands_before_1_32() {
    let (managed, plain) = ("spec: {managedBy: a.example.com/b}", "spec: {}");
    let held = Held::new("batch/v1 Job", Some(plain), managed);
    let minor = Minor::of(31);
    let (mut new, old) = (held.read(minor, managed), held.read(minor, plain));
    let version = held.kind.served_version_in(minor);
    held.kind.strategy.prepare_update(&version, Subresource::Main, &mut new, &old);
    assert_eq!(new.str_at(&["spec", "managedBy"]), "a.example.com/b");
    let told = held.kind.strategy.validate_update(&version, Subresource::Main, &new, &old).aggregate();
    assert!(told.contains("spec.managedBy: Invalid value: \"a.example.com/b\": field is immutable"), "{told}");
}

#[test]
fn jobs_of_cron_jobs_are_scheduled_together_with_a_feature() {
    let job = "spec: {jobTemplate: {spec: {scheduling: {schedulingPolicy: {basic: {}}}}}}";
    let held = Held::new("batch/v1 CronJob", None, job);
    let keeps = |gates: &str| {
        let minor = Minor::NEWEST.with_gates(Gates::parse(gates, Minor::NEWEST).expect("the minor has the gate"));
        let mut new = held.read(minor, held.new);
        held.kind.strategy.prepare_create(&held.kind.served_version_in(minor), &mut new);
        new.at(&["spec", "jobTemplate", "spec", "scheduling"]).is_some()
    };
    assert!(!keeps("") && keeps("WorkloadWithJob=true"));
}
