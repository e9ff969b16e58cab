//! How much an object uses of the resources that quotas limit.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use memchr::memmem;

use super::{devices, resized};
use crate::kinds::pod::aggregate::Totals;
use crate::kinds::resources;
use crate::kinds::storage::class;
use crate::meta::quantity::Quantity;
use crate::value::{Map, Value};
use crate::work;

const POD: [&str; 10] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
];
/// If a quota limits any of these, or a resource that begins with `requests.` or `hugepages-`, its JSON contains at
/// least one of these texts.
const POD_PARTS: [&str; 7] =
    ["\"cpu\"", "\"memory\"", "\"ephemeral-storage\"", "\"pods\"", "\"requests.", "\"limits.", "\"hugepages-"];
/// The resources that each container must specify if a quota limits them.
const MANDATORY: [&str; 6] = ["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];
const SERVICE: [&str; 3] = ["services", "services.nodeports", "services.loadbalancers"];
const CLAIM: [&str; 2] = ["persistentvolumeclaims", "requests.storage"];
/// The kinds that were counted under their own names before every kind could be counted.
const ALIASES: [&str; 4] = ["configmaps", "resourcequotas", "replicationcontrollers", "secrets"];
/// The resources that are not counted.
const IGNORED: [(&str, &str); 3] = [("", "bindings"), ("", "events"), ("events.k8s.io", "events")];
const BY_CLASS: &str = ".storageclass.storage.k8s.io/";
/// Begins the name of a device class where a pod requests devices of it like any other resource.
const DEVICE_CLASS: &str = "deviceclass.resource.kubernetes.io/";

/// The resource of a request.
#[derive(Clone, Copy, Debug)]
pub struct Counted<'c> {
    /// The API group; empty for the core group.
    pub group: &'c str,
    /// The plural name, as in paths.
    pub plural: &'c str,
    /// The subresource; empty for the object itself.
    pub subresource: &'c str,
}

impl Counted<'_> {
    fn core(&self) -> &str {
        if self.group.is_empty() { self.plural } else { "" }
    }

    fn is_claim_for_devices(&self) -> bool {
        (self.group, self.plural) == ("resource.k8s.io", "resourceclaims")
    }

    /// Whether a write may change how much is used.
    pub fn handles(&self, object: &Value, old: Option<&Value>) -> bool {
        match (self.core(), self.subresource, old) {
            _ if IGNORED.contains(&(self.group, self.plural)) => false,
            ("pods", "", Some(old)) => is_terminating(old) != is_terminating(object),
            ("pods", "resize", Some(_)) | ("services" | "persistentvolumeclaims", "", Some(_)) => true,
            ("persistentvolumeclaims", "status", Some(_)) => true,
            (_, "", Some(_)) if self.is_claim_for_devices() => true,
            (_, "", None) => true,
            _ => false,
        }
    }

    /// The name of the object count, such as `count/pods` or `count/deployments.apps`.
    fn count_name(&self) -> String {
        if self.group.is_empty() {
            format!("count/{}", self.plural)
        } else {
            format!("count/{}.{}", self.plural, self.group)
        }
    }

    /// Whether these objects use the quota resource `resource`.
    pub fn counts(&self, resource: &str) -> bool {
        if resource == self.count_name() {
            return true;
        }
        match self.core() {
            _ if self.is_claim_for_devices() => resource.ends_with(devices::BY_CLASS),
            "pods" => POD.contains(&resource) || is_prefixed(resource) || is_extended(resource),
            "services" => SERVICE.contains(&resource),
            "persistentvolumeclaims" => {
                let of_class = resource.split_once(BY_CLASS).map(|(_, resource)| resource);
                CLAIM.contains(&of_class.unwrap_or(resource))
            }
            plural => ALIASES.contains(&plural) && resource == plural,
        }
    }

    /// Whether a quota, given as JSON text, may limit what these objects use. If this is false, it does not.
    pub fn may_be_limited_by(&self, quota: &[u8]) -> bool {
        let has = |part: &str| {
            work::bytes(quota.len());
            memmem::find(quota, part.as_bytes()).is_some()
        };
        let has_name = |name: &str| has(&format!("\"{name}\""));
        if has_name(&self.count_name()) {
            return true;
        }
        match self.core() {
            _ if self.is_claim_for_devices() => has(devices::BY_CLASS),
            "pods" => POD_PARTS.into_iter().any(has),
            "services" => SERVICE.into_iter().any(has_name),
            // Also after the name of a class.
            "persistentvolumeclaims" => CLAIM.into_iter().any(has),
            plural => ALIASES.contains(&plural) && has_name(plural),
        }
    }

    /// The resources that the containers of a pod do not specify; none if the pod itself specifies any.
    pub fn unspecified<'o>(&self, object: &'o Value) -> Unspecified<'o> {
        let of_pod = |list: &str| read(object.at(&["spec", "resources", list]));
        let is_told =
            ["requests", "limits"].iter().any(|list| of_pod(list).keys().any(|name| resources::is_pod_level(name)));
        let mut unspecified = Unspecified::default();
        if self.core() != "pods" || is_told {
            return unspecified;
        }
        for container in ["containers", "initContainers"].iter().flat_map(|list| object.items_at(&["spec", list])) {
            let list = |list: &str| read(container.at(&["resources", list]));
            let usage = compute(&list("requests"), &list("limits"));
            for name in MANDATORY.into_iter().filter(|name| !usage.contains_key(*name)) {
                unspecified.0.entry(name).or_default().insert(container.str_at(&["name"]));
            }
        }
        unspecified
    }

    /// How much the object uses of each resource.
    pub fn usage(&self, object: &Value) -> Totals {
        let mut usage = match self.core() {
            _ if self.is_claim_for_devices() => devices::of_claim(object),
            "pods" => of_pod(object),
            "services" => of_service(object),
            "persistentvolumeclaims" => of_claim(object),
            plural if ALIASES.contains(&plural) => Totals::from([(plural.to_owned(), one())]),
            _ => Totals::new(),
        };
        usage.insert(self.count_name(), one());
        usage
    }

    /// [`Counted::usage`] at a time: pods that should be gone by then only count as objects.
    pub fn usage_at(&self, object: &Value, now: Timestamp) -> Totals {
        if self.core() == "pods" && counted_until(object).is_some_and(|until| now > until) {
            return Totals::from([(self.count_name(), one())]);
        }
        self.usage(object)
    }
}

/// By resource, the names of the containers that do not specify it although a quota may want that.
#[derive(Debug, Default)]
pub struct Unspecified<'o>(BTreeMap<&'static str, BTreeSet<&'o str>>);

impl Unspecified<'_> {
    /// The message about resources that a quota limits, if any of them is not specified.
    pub fn among(&self, limited: &BTreeSet<&str>) -> Option<String> {
        let missing = self.0.iter().filter(|(resource, _)| limited.contains(*resource));
        let told = missing.map(|(resource, containers)| {
            format!("{resource} for: {}", containers.iter().copied().collect::<Vec<_>>().join(","))
        });
        let told: Vec<String> = told.collect();
        (!told.is_empty()).then(|| format!("must specify {}", told.join("; ")))
    }
}

/// The time until which a pod that is being deleted is counted, whether it is gone or not; `None` for others.
pub fn counted_until(pod: &Value) -> Option<Timestamp> {
    let deleted: Timestamp = pod.str_at(&["metadata", "deletionTimestamp"]).parse().ok()?;
    let grace = pod.at(&["metadata", "deletionGracePeriodSeconds"]).and_then(Value::as_i64)?;
    deleted.checked_add(SignedDuration::from_secs(grace)).ok()
}

fn one() -> Quantity {
    number(1)
}

fn number(number: usize) -> Quantity {
    resources::parse(Some(&Value::String(number.to_string())))
}

fn is_prefixed(resource: &str) -> bool {
    resources::is_huge_page(resource.strip_prefix("requests.").unwrap_or(resource))
}

/// Whether the resource is extended, such as `requests.example.com/gpu`.
fn is_extended(resource: &str) -> bool {
    let is_meant = |requested: &str| requested.starts_with(DEVICE_CLASS) || !resources::is_native(resource);
    resource.strip_prefix("requests.").is_some_and(is_meant)
}

/// Whether a pod has a deadline.
pub fn is_terminating(pod: &Value) -> bool {
    pod.at(&["spec", "activeDeadlineSeconds"]).and_then(Value::as_i64).is_some_and(|seconds| seconds >= 0)
}

fn read(list: Option<&Value>) -> Totals {
    let entries = list.and_then(Value::as_object).into_iter().flat_map(Map::iter);
    entries.map(|(name, amount)| (name.to_owned(), resources::parse(Some(amount)))).collect()
}

/// The usage of a pod. A pod that has ended only counts as an object.
fn of_pod(pod: &Value) -> Totals {
    if matches!(pod.str_at(&["status", "phase"]), "Failed" | "Succeeded") {
        return Totals::new();
    }
    compute(&whole_pod(pod, "requests"), &whole_pod(pod, "limits"))
}

/// A pod's requests or limits: those of its containers or of the pod as a whole, plus its overhead.
fn whole_pod(pod: &Value, list: &str) -> Totals {
    let Some(spec) = pod.get("spec") else { return Totals::new() };
    let mut totals = resized::of_containers(pod, list);
    let own = read(spec.at(&["resources", list]));
    totals.extend(own.into_iter().filter(|(name, _)| resources::is_pod_level(name)));
    for (name, overhead) in read(spec.get("overhead")) {
        match totals.get_mut(&name) {
            Some(total) if list == "requests" || total.signum() != 0 => {
                *total = total.add(&overhead).unwrap_or_else(|_| total.clone());
            }
            None if list == "requests" => _ = totals.insert(name, overhead),
            _ => {}
        }
    }
    totals
}

/// The usage by requests and limits, under the names that quotas use.
fn compute(requests: &Totals, limits: &Totals) -> Totals {
    let mut usage = Totals::from([("pods".to_owned(), one())]);
    for name in ["cpu", "memory", "ephemeral-storage"] {
        if let Some(request) = requests.get(name) {
            usage.insert(name.to_owned(), request.clone());
            usage.insert(format!("requests.{name}"), request.clone());
        }
        if let Some(limit) = limits.get(name) {
            usage.insert(format!("limits.{name}"), limit.clone());
        }
    }
    for (name, request) in requests {
        if resources::is_huge_page(name) {
            usage.insert(name.clone(), request.clone());
        }
        if resources::is_huge_page(name) || resources::is_extended(name) || name.starts_with(DEVICE_CLASS) {
            usage.insert(format!("requests.{name}"), request.clone());
        }
    }
    usage
}

/// The usage of a service, including the node ports that will be allocated for it.
fn of_service(service: &Value) -> Totals {
    let ports = service.items_at(&["spec", "ports"]);
    let allocates = service.at(&["spec", "allocateLoadBalancerNodePorts"]).and_then(Value::as_bool) != Some(false);
    let named = ports.iter().filter(|port| port.get("nodePort").and_then(Value::as_i64).unwrap_or_default() != 0);
    let (node_ports, balancers) = match service.str_at(&["spec", "type"]) {
        "NodePort" => (ports.len(), 0),
        "LoadBalancer" if allocates => (ports.len(), 1),
        "LoadBalancer" => (named.count(), 1),
        _ => (0, 0),
    };
    Totals::from([
        ("services".to_owned(), one()),
        ("services.nodeports".to_owned(), number(node_ports)),
        ("services.loadbalancers".to_owned(), number(balancers)),
    ])
}

/// The usage of a claim: the larger of what it requests and what is allocated to it.
fn of_claim(claim: &Value) -> Totals {
    let mut usage = Totals::from([("persistentvolumeclaims".to_owned(), one())]);
    let requested =
        claim.at(&["spec", "resources", "requests", "storage"]).map(|amount| resources::parse(Some(amount)));
    if let Some(requested) = requested {
        let allocated = resources::parse(claim.at(&["status", "allocatedResources", "storage"]));
        let storage = requested.max(allocated);
        let whole = if storage.is_whole() {
            storage
        } else {
            resources::parse(Some(&Value::String(storage.value().to_string())))
        };
        usage.insert("requests.storage".to_owned(), whole);
    }
    let class = class::of_claim(claim).unwrap_or_default();
    if !class.is_empty() {
        let by_class: Vec<_> =
            usage.iter().map(|(name, amount)| (format!("{class}{BY_CLASS}{name}"), amount.clone())).collect();
        usage.extend(by_class);
    }
    usage
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::json;

    #[test]
    fn a_pod_says_what_it_requests_itself_or_in_its_containers() {
        let pods = Counted { group: "", plural: "pods", subresource: "" };
        let missing = |resources: &str| {
            let pod = format!(r#"{{"spec":{{"resources":{resources},"containers":[{{"name":"c"}}]}}}}"#);
            let pod = json::decode(pod.as_bytes()).expect("it is JSON");
            pods.unspecified(&pod).among(&["requests.cpu"].into())
        };
        assert!(missing("{}").is_some() && missing("null").is_some() && missing(r#"{"limits":{}}"#).is_some());
        assert_eq!(missing(r#"{"requests":{"cpu":"1"}}"#), None);
    }

    #[test]
    fn a_pod_counts_what_it_requests_of_device_classes() {
        let pods = Counted { group: "", plural: "pods", subresource: "" };
        let pod = r#"{"spec":{"containers":[{"name":"c","resources":
            {"requests":{"deviceclass.resource.kubernetes.io/gpu":"2"}}}]}}"#;
        let usage = pods.usage(&json::decode(pod.as_bytes()).expect("it is JSON"));
        let name = "requests.deviceclass.resource.kubernetes.io/gpu";
        assert_eq!(usage.get(name).map(ToString::to_string).as_deref(), Some("2"));
        assert!(pods.counts(name));
    }

    #[test]
    fn a_pod_that_should_be_gone_only_counts_as_an_object() {
        let pods = Counted { group: "", plural: "pods", subresource: "" };
        let pod = r#"{"metadata":{"deletionTimestamp":"2026-01-01T00:00:30Z","deletionGracePeriodSeconds":30},
            "spec":{}}"#;
        let pod = json::decode(pod.as_bytes()).expect("it is JSON");
        let counts = |time: &str| {
            let usage = pods.usage_at(&pod, time.parse().expect("it is a time"));
            usage.into_keys().collect::<Vec<_>>()
        };
        assert_eq!(counts("2026-01-01T00:01:00Z"), ["count/pods", "pods"]);
        assert_eq!(counts("2026-01-01T00:01:01Z"), ["count/pods"]);
    }

    #[test]
    fn a_claim_is_counted_by_the_classes_of_its_devices() {
        let claims = Counted { group: "resource.k8s.io", plural: "resourceclaims", subresource: "" };
        let claim = r#"{"spec":{"devices":{"requests":[{"name":"a","exactly":
            {"deviceClassName":"gpu","allocationMode":"ExactCount","count":2}}]}}}"#;
        let claim = json::decode(claim.as_bytes()).expect("it is JSON");
        let counted = ["count/resourceclaims.resource.k8s.io", "gpu.deviceclass.resource.k8s.io/devices"];
        assert_eq!(claims.usage(&claim).into_keys().collect::<Vec<_>>(), counted);
        assert!(counted.iter().all(|name| claims.counts(name)));
        assert!(claims.handles(&claim, Some(&claim)) && claims.handles(&claim, None));
    }

    #[test]
    fn whatever_is_counted_is_found_in_the_text_of_a_quota() {
        let names = POD.into_iter().chain(SERVICE).chain(CLAIM).chain(ALIASES).chain([
            "count/pods",
            "count/services",
            "count/things.example.com",
            "hugepages-2Mi",
            "requests.hugepages-2Mi",
            "requests.example.com/gpu",
            "requests.deviceclass.resource.kubernetes.io/gpu",
            "gold.storageclass.storage.k8s.io/requests.storage",
            "gold.storageclass.storage.k8s.io/persistentvolumeclaims",
            "gpu.deviceclass.resource.k8s.io/devices",
        ]);
        let resources = [
            ("", "pods"),
            ("", "services"),
            ("", "persistentvolumeclaims"),
            ("", "secrets"),
            ("example.com", "things"),
            ("resource.k8s.io", "resourceclaims"),
        ];
        for name in names {
            for (group, plural) in resources {
                let counted = Counted { group, plural, subresource: "" };
                let quota = format!(r#"{{"spec":{{"hard":{{"{name}":"1"}}}}}}"#);
                assert!(counted.may_be_limited_by(quota.as_bytes()) || !counted.counts(name), "{plural}: {name}");
            }
        }
        let things = Counted { group: "example.com", plural: "things", subresource: "" };
        assert!(!things.may_be_limited_by(br#"{"spec":{"hard":{"pods":"1","count/things.example.org":"1"}}}"#));
    }
}
