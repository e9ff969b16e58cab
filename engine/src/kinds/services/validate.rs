//! The validation of services.
//!
//! Source: `pkg/apis/core/validation`, release 1.37.

use std::collections::HashSet;

use crate::kinds::checks::{named, one_of, port_number};
use crate::kinds::metadata;
use crate::kinds::network::addresses::{check_address, check_endpoint, check_prefix};
use crate::kinds::network::{
    check_app_protocol, check_balancer, check_optional_label, check_port_or_name, check_protocol,
};
use crate::meta::field::{Error, ErrorList, Path};
use crate::meta::field_ref::FieldRef;
use crate::meta::gate::Gate;
use crate::meta::minor::Minor;
use crate::meta::{names, object_meta};
use crate::value::{Value, json};

use super::cluster_ips::{check_changed_families, check_changed_ips, check_cluster_ips};
use super::{is_balancer, is_externally_accessible, is_headless, needs_health_check, texts};

const TOPOLOGY_MODE: &str = "service.kubernetes.io/topology-mode";
/// The older name of that annotation.
pub(super) const TOPOLOGY_HINTS: &str = "service.kubernetes.io/topology-aware-hints";
const SOURCE_RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";
/// One day.
const AFFINITY_SECONDS_MAX: i64 = 86_400;
const FOR_BALANCERS: &str = "may only be used when `type` is 'LoadBalancer'";

/// Validates a new service.
pub fn validate_create(minor: Minor, service: &Value) -> ErrorList {
    let is_relaxed = minor.opens(Gate::RelaxedServiceNameValidation);
    let name = if is_relaxed { names::name_is_dns1123_label } else { names::name_is_dns1035_label };
    let mut errors = metadata::validate(service, true, name);
    errors.extend(validate(minor, service, None));
    errors
}

/// Validates an update of a service.
pub fn validate_update(minor: Minor, new: &Value, old: &Value) -> ErrorList {
    let mut errors = metadata::validate_update(new, old);
    errors.extend(check_changed_ips(new, old));
    errors.extend(check_changed_families(new, old));
    errors.extend(check_class(new, Some(old)));
    let (now, before) = (FieldRef::root(new), FieldRef::root(old));
    let (now, before) = (now.field("spec"), before.field("spec"));
    let (now, before) = (now.field("healthCheckNodePort"), before.field("healthCheckNodePort"));
    if needs_health_check(old) && needs_health_check(new) && now.int() != before.int() {
        errors.push(now.forbidden("field is immutable"));
    }
    errors.extend(validate(minor, new, Some(old)));
    errors
}

/// Validates an update of a service's status.
pub fn validate_status_update(minor: Minor, new: &Value, old: &Value) -> ErrorList {
    let mut errors = metadata::validate_update(new, old);
    let root = FieldRef::root(new);
    let status = root.field("status");
    let balancer = status.field("loadBalancer");
    let ingress = balancer.field("ingress");
    if !is_balancer(new) && !ingress.is_empty() {
        errors.push(ingress.forbidden("may only be used when `spec.type` is 'LoadBalancer'"));
        return errors;
    }
    errors.extend(check_balancer(minor, &ingress, old.items_at(&["status", "loadBalancer", "ingress"]), |item| {
        check_mode(minor, item)
    }));
    errors
}

/// Checks the `ipMode` of a balancer's ingress point: required with an address, and forbidden without one.
fn check_mode(minor: Minor, item: &FieldRef<'_>) -> ErrorList {
    let (ip, mode) = (item.field("ip"), item.field("ipMode"));
    let error = match (mode.is_set(), ip.text().is_empty()) {
        (false, true) => None,
        (false, false) if !minor.opens(Gate::LoadBalancerIpMode) => None,
        (false, false) => Some(mode.required("must be specified when `ip` is set")),
        (true, true) => Some(mode.forbidden("may not be specified when `ip` is not set")),
        (true, false) => one_of(&mode, &["Proxy", "VIP"]),
    };
    error.into_iter().collect()
}

fn validate(minor: Minor, service: &Value, old: Option<&Value>) -> ErrorList {
    let root = FieldRef::root(service);
    let spec = root.field("spec");
    let mut errors: ErrorList = check_topology(service).into_iter().collect();
    errors.extend(check_type(service, &spec));
    errors.extend(check_ports(service, &spec));
    let selector = spec.field("selector");
    if let Some(labels) = selector.value() {
        errors.extend(object_meta::validate_labels(labels, selector.path()));
    }
    errors.extend(check_affinity(&spec));
    errors.extend(check_cluster_ips(minor, service, old));
    errors.extend(check_external_ips(minor, &spec, old));
    let kind = spec.field("type");
    errors.extend(match kind.text() {
        "" => Some(kind.required("")),
        _ => one_of(&kind, &["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"]),
    });
    errors.extend(check_node_ports(&spec));
    errors.extend(check_source_ranges(minor, service, old));
    errors.extend(check_allocation(service, &spec));
    errors.extend(check_class(service, None));
    errors.extend(check_traffic(service, &spec));
    errors.extend(check_distribution(minor, &spec.field("trafficDistribution")));
    errors
}

/// Checks that the old and the new annotation do not contradict each other.
fn check_topology(service: &Value) -> Option<Error> {
    let annotation = |name: &str| service.at(&["metadata", "annotations", name]).and_then(Value::as_str);
    let (mode, hints) = (annotation(TOPOLOGY_MODE)?, annotation(TOPOLOGY_HINTS)?);
    let annotations = metadata::METADATA.child("annotations");
    let why = format!("must match annotations[{TOPOLOGY_HINTS}] when both are specified");
    (mode != hints).then(|| Error::invalid(&annotations.key(TOPOLOGY_MODE), mode, why))
}

/// Checks the requirements of the service's type.
fn check_type(service: &Value, spec: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let (ports, ips) = (spec.field("ports"), spec.field("clusterIPs"));
    let kind = spec.field("type");
    if ports.is_empty() && !is_headless(service) && kind.text() != "ExternalName" {
        errors.push(ports.required(""));
    }
    match kind.text() {
        kind @ ("LoadBalancer" | "NodePort") if is_headless(service) => {
            let why = format!("may not be set to 'None' for {kind} services");
            errors.push(Error::invalid(&ips.path().index(0), super::NONE, why));
        }
        "ExternalName" => {
            let (families, policy) = (spec.field("ipFamilies"), spec.field("ipFamilyPolicy"));
            let given = [(!ips.is_empty(), ips), (!families.is_empty(), families), (policy.is_set(), policy)];
            let given = given.into_iter().filter(|(is_given, _)| *is_given);
            errors.extend(given.map(|(_, field)| field.forbidden("may not be set for ExternalName services")));
            errors.extend(check_external_name(&spec.field("externalName")));
        }
        _ => {}
    }
    errors
}

/// Validates the external name, which may end in a dot.
fn check_external_name(name: &FieldRef<'_>) -> ErrorList {
    match name.text().strip_suffix('.').unwrap_or(name.text()) {
        "" => name.required("").into(),
        text => {
            let faults = names::is_dns1123_subdomain(text).into_iter();
            faults.map(|fault| Error::invalid(name.path(), text, fault)).collect()
        }
    }
}

fn check_ports(service: &Value, spec: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen = HashSet::new();
    let ports = spec.field("ports");
    let needs_names = super::ports(service).len() > 1;
    for port in ports.items() {
        let name = port.field("name");
        errors.extend(check_optional_label(&name, needs_names));
        if !name.text().is_empty() && !seen.insert(member(&port, "name")) {
            errors.push(name.duplicate());
        }
        let number = port.field("port");
        errors.extend(port_number(&number).map(|error| Error { bad_value: Some(number.int().into()), ..error }));
        errors.extend(check_protocol(&port.field("protocol")));
        errors.extend(check_port_or_name(&port.field("targetPort")));
        errors.extend(check_app_protocol(&port.field("appProtocol")));
    }
    errors
}

/// A string field of an item, with the lifetime of the object.
fn member<'v>(item: &FieldRef<'v>, name: &str) -> &'v str {
    item.value().map_or("", |value| value.str_at(&[name]))
}

fn check_affinity(spec: &FieldRef<'_>) -> ErrorList {
    let (affinity, config) = (spec.field("sessionAffinity"), spec.field("sessionAffinityConfig"));
    let client = config.field("clientIP");
    let timeout = client.field("timeoutSeconds");
    let needed = "when session affinity type is ClientIP";
    let error = match affinity.text() {
        "" => Some(affinity.required("")),
        "ClientIP" if !config.is_set() => Some(config.required(needed)),
        "ClientIP" if !client.is_set() => Some(client.required(needed)),
        "ClientIP" if !timeout.is_set() => Some(timeout.required(needed)),
        "ClientIP" => {
            let why = format!("must be greater than 0 and less than {AFFINITY_SECONDS_MAX}");
            (!(1..=AFFINITY_SECONDS_MAX).contains(&timeout.int())).then(|| timeout.invalid(why))
        }
        "None" => config.is_set().then(|| config.forbidden("must not be set when session affinity is None")),
        _ => one_of(&affinity, &["ClientIP", "None"]),
    };
    error.into_iter().collect()
}

fn check_external_ips(minor: Minor, spec: &FieldRef<'_>, old: Option<&Value>) -> ErrorList {
    let known: HashSet<&str> = old.map(|old| texts(old, "externalIPs")).unwrap_or_default().into_iter().collect();
    let mut errors = ErrorList::new();
    for ip in spec.field("externalIPs").items() {
        let faults = check_address(minor, ip.path(), ip.text(), known.get(ip.text()).copied());
        if faults.is_empty() { errors.extend(check_endpoint(ip.path(), ip.text())) } else { errors.extend(faults) }
    }
    errors
}

/// Checks that node ports are allowed for the type, and that neither they nor the ports occur twice with one protocol.
fn check_node_ports(spec: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let ports = spec.field("ports");
    if spec.field("type").text() == "ClusterIP" {
        for port in ports.items().filter(|port| port.field("nodePort").int() != 0) {
            errors.push(port.field("nodePort").forbidden("may not be used when `type` is 'ClusterIP'"));
        }
    }
    let mut seen = HashSet::new();
    for port in ports.items().filter(|port| port.field("nodePort").int() != 0) {
        let node_port = port.field("nodePort");
        if !seen.insert((member(&port, "protocol"), node_port.int())) {
            errors.push(node_port.duplicate());
        }
    }
    let mut seen = HashSet::new();
    for port in ports.items() {
        let (protocol, number) = (member(&port, "protocol"), port.field("port").int());
        if !seen.insert((protocol, number)) {
            let shown = format!(
                "{{\"Name\":\"\",\"Protocol\":{},\"AppProtocol\":null,\"Port\":{number},\"TargetPort\":0,\"NodePort\":0}}",
                json::encode_to_string(&Value::from(protocol))
            );
            errors.push(Error::duplicate(port.path(), Value::Null).shown_as(shown));
        }
    }
    errors
}

/// Validates the ranges of a balancer's clients: a list, or an annotation with commas.
fn check_source_ranges(minor: Minor, service: &Value, old: Option<&Value>) -> ErrorList {
    let given = texts(service, "loadBalancerSourceRanges");
    let mut errors = ErrorList::new();
    if !given.is_empty() {
        // The reference spells the field with a capital letter.
        let path = Path::new("spec");
        let path = path.child("LoadBalancerSourceRanges");
        if !is_balancer(service) {
            errors.push(Error::forbidden(&path, FOR_BALANCERS));
        }
        let known = old.map(|old| texts(old, "loadBalancerSourceRanges")).unwrap_or_default();
        let known: HashSet<&str> = known.into_iter().map(str::trim).collect();
        for (index, range) in given.into_iter().map(str::trim).enumerate() {
            errors.extend(check_prefix(minor, &path.index(index), range, known.get(range).copied()));
        }
        return errors;
    }
    let annotation = |service: &Value| {
        service.at(&["metadata", "annotations", SOURCE_RANGES]).and_then(Value::as_str).map(str::to_owned)
    };
    let Some(ranges) = annotation(service) else { return errors };
    let annotations = metadata::METADATA.child("annotations");
    let path = annotations.key(SOURCE_RANGES);
    if !is_balancer(service) {
        errors.push(Error::forbidden(&path, FOR_BALANCERS));
    }
    let is_new = old.and_then(annotation).is_none_or(|known| known != ranges);
    if is_new && !ranges.trim().is_empty() {
        for range in ranges.trim().split(',') {
            errors.extend(check_prefix(minor, &path, range.trim(), []));
        }
    }
    errors
}

fn check_allocation(service: &Value, spec: &FieldRef<'_>) -> Option<Error> {
    let allocates = spec.field("allocateLoadBalancerNodePorts");
    match (allocates.is_set(), is_balancer(service)) {
        (true, false) => Some(allocates.forbidden(FOR_BALANCERS)),
        // The reference leaves the spec out of the path.
        (false, true) => Some(Error::required(&Path::new("allocateLoadBalancerNodePorts"), "")),
        _ => None,
    }
}

/// Checks that the load balancer class does not change while the service is a load balancer.
fn check_class(service: &Value, old: Option<&Value>) -> ErrorList {
    let root = FieldRef::root(service);
    let spec = root.field("spec");
    let class = spec.field("loadBalancerClass");
    let mut errors = ErrorList::new();
    let is_changed = |old: &Value| is_balancer(old) && !super::is_same(service, old, "loadBalancerClass");
    if is_balancer(service) && old.is_some_and(is_changed) {
        errors.push(class.invalid_or_null("may not change once set"));
    }
    if class.is_set() {
        if is_balancer(service) {
            errors.extend(named(&class, names::is_qualified_name))
        } else {
            errors.push(class.forbidden(FOR_BALANCERS))
        }
    }
    errors
}

/// Validates the policies of external and internal traffic.
fn check_traffic(service: &Value, spec: &FieldRef<'_>) -> ErrorList {
    let (external, internal) = (spec.field("externalTrafficPolicy"), spec.field("internalTrafficPolicy"));
    let mut errors = ErrorList::new();
    errors.extend(match (is_externally_accessible(service), external.text()) {
        (false, "") => None,
        (false, _) => Some(external.invalid_as_json("may only be set for externally-accessible services")),
        (true, "") => Some(external.required("")),
        (true, _) => one_of(&external, &["Cluster", "Local"]),
    });
    errors.extend(check_health_port(service, &spec.field("healthCheckNodePort")));
    let is_known = matches!(spec.field("type").text(), "ClusterIP" | "LoadBalancer" | "NodePort");
    errors.extend(if internal.is_set() {
        one_of(&internal, &["Cluster", "Local"])
    } else {
        is_known.then(|| internal.required(""))
    });
    errors
}

fn check_distribution(minor: Minor, distribution: &FieldRef<'_>) -> Option<Error> {
    let supported = ["PreferClose", "PreferSameZone", "PreferSameNode"];
    let count = if minor.opens(Gate::PreferSameTrafficDistribution) { supported.len() } else { 1 };
    distribution.is_set().then(|| one_of(distribution, &supported[..count])).flatten()
}

fn check_health_port(service: &Value, port: &FieldRef<'_>) -> Option<Error> {
    match (needs_health_check(service), port.int()) {
        (false, 0) => None,
        (false, _) => {
            Some(port.invalid("may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"))
        }
        (true, 0) => Some(port.required("")),
        (true, _) => port_number(port),
    }
}
