//! The address families that a service gets, given its spec and the cluster's ranges.
//!
//! Source: `initIPFamilyFields` in `pkg/registry/core/service/storage/alloc.go`, release 1.37.

use crate::meta::field::{Error, ErrorList, Path};
use crate::meta::minor::Minor;
use crate::value::Value;

use super::cluster_ips::check_cluster_ips;
use super::family::{Family, PREFER_DUAL, REQUIRE_DUAL, SINGLE};
use super::{NONE, field, has_selector, is_external_name, is_same, put, text, texts};

const SPEC: Path<'static> = Path::new("spec");

/// The families in which a cluster has addresses, with the default one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Families {
    /// The family of the first range, which services get by default.
    pub primary: Family,
    /// Whether there are ranges of both families.
    pub is_dual: bool,
}

impl Families {
    fn has(self, family: Option<Family>) -> bool {
        family.is_some_and(|family| self.is_dual || family == self.primary)
    }
}

/// Sets the families and the family policy of a service if they are not specified.
///
/// # Errors
///
/// Field errors, such as for families that the cluster has no ranges of.
pub fn settle_families(minor: Minor, new: &mut Value, old: Option<&Value>, cluster: Families) -> Result<(), ErrorList> {
    if is_external_name(new) || old.is_some_and(|old| keeps_preference(new, old)) {
        return Ok(());
    }
    if field(new, "ipFamilyPolicy").is_none() {
        let kept = old.and_then(|old| field(old, "ipFamilyPolicy")).cloned();
        let policy = kept.unwrap_or_else(|| Value::from(if is_open(new) { REQUIRE_DUAL } else { SINGLE }));
        put(new, "ipFamilyPolicy", Some(policy));
    }
    refuse_any(check_cluster_ips(minor, new, old))?;
    let mut errors = match old {
        Some(old) => reduce(new, old),
        None => ErrorList::new(),
    };
    errors.extend(check_single(new));
    errors.extend(infer(new, cluster));
    refuse_any(errors)?;
    if is_open(new) {
        let first = texts(new, "ipFamilies").first().and_then(|name| Family::named(name)).unwrap_or(cluster.primary);
        set(new, first, text(new, "ipFamilyPolicy") != SINGLE);
        return Ok(());
    }
    refuse_any(check_cluster(new, cluster))?;
    if texts(new, "ipFamilies").len() < 2 {
        let first = texts(new, "ipFamilies").first().and_then(|name| Family::named(name)).unwrap_or(cluster.primary);
        set(new, first, text(new, "ipFamilyPolicy") != SINGLE && cluster.is_dual);
    }
    Ok(())
}

fn refuse_any(errors: ErrorList) -> Result<(), ErrorList> {
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// Whether the service is headless and has no selector, so that nothing is known about its endpoints.
fn is_open(service: &Value) -> bool {
    text(service, "clusterIP") == NONE && !has_selector(service)
}

/// Whether a service that prefers both families is unchanged, even if the cluster may have other families now.
pub(super) fn keeps_preference(new: &Value, old: &Value) -> bool {
    let prefers = |service: &Value| text(service, "ipFamilyPolicy") == PREFER_DUAL;
    let has_addresses = matches!(text(new, "type"), "ClusterIP" | "NodePort" | "LoadBalancer");
    prefers(new)
        && (prefers(old) || field(old, "ipFamilyPolicy").is_none())
        && text(new, "type") == text(old, "type")
        && has_addresses
        && texts(new, "clusterIPs") == texts(old, "clusterIPs")
        && texts(new, "ipFamilies") == texts(old, "ipFamilies")
}

/// Removes the second address and family if the policy has become single-stack; otherwise their number must not
/// decrease.
fn reduce(new: &mut Value, old: &Value) -> ErrorList {
    let is_single = text(new, "ipFamilyPolicy") == SINGLE;
    let mut errors = ErrorList::new();
    for (name, what) in [("clusterIPs", "cluster IP"), ("ipFamilies", "IP family")] {
        let (now, before) = (texts(new, name).len(), texts(old, name).len());
        if is_single {
            if now > 1 && is_same(new, old, name) {
                let first = texts(new, name).first().map(|first| Value::from(*first));
                put(new, name, Some(Value::Array(first.into_iter().collect())));
            }
        } else if now > 0 && now < before {
            errors.push(policy_error(new, &format!("must be 'SingleStack' to release the secondary {what}")));
        }
    }
    errors
}

fn policy_error(service: &Value, why: &str) -> Error {
    Error::invalid(&SPEC.child("ipFamilyPolicy"), text(service, "ipFamilyPolicy"), why)
}

/// Checks that a single-stack service has only one address and family.
fn check_single(service: &Value) -> ErrorList {
    let lists = [("clusterIPs", "cluster IPs"), ("ipFamilies", "IP families")];
    let several = lists.into_iter().filter(|(name, _)| texts(service, name).len() == 2);
    let several = several.filter(|_| text(service, "ipFamilyPolicy") == SINGLE);
    let why = |what| format!("must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified");
    several.map(|(_, what)| policy_error(service, &why(what))).collect()
}

/// Adds the families of the addresses that are specified.
fn infer(service: &mut Value, cluster: Families) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut families: Vec<Value> = texts(service, "ipFamilies").into_iter().map(Value::from).collect();
    let known = families.len();
    let ips = texts(service, "clusterIPs");
    for (index, ip) in ips.iter().enumerate().take_while(|(_, ip)| **ip != NONE) {
        if index < families.len() {
            continue;
        }
        let family = Family::of(ip);
        match family.filter(|_| cluster.has(family)) {
            Some(family) => families.push(Value::from(family.name())),
            None => {
                let shown = ips.iter().map(|ip| Value::from(*ip)).collect::<Vec<_>>();
                let why = format!("{} is not configured on this cluster", family.map_or("unknown", Family::name));
                let path = SPEC.child("clusterIPs");
                errors.push(Error::invalid(&path.index(index), shown, why));
            }
        }
    }
    if families.len() > known {
        put(service, "ipFamilies", Some(families.into()));
    }
    errors
}

/// Checks that the cluster has the families that the service requires.
fn check_cluster(service: &Value, cluster: Families) -> ErrorList {
    let mut errors = ErrorList::new();
    if text(service, "ipFamilyPolicy") == REQUIRE_DUAL && !cluster.is_dual {
        errors.push(policy_error(service, "this cluster is not configured for dual-stack services"));
    }
    let path = SPEC.child("ipFamilies");
    for (index, family) in texts(service, "ipFamilies").into_iter().enumerate() {
        if !cluster.has(Family::named(family)) {
            errors.push(Error::invalid(&path.index(index), family, "not configured on this cluster"));
        }
    }
    errors
}

/// Sets the first family, and the other one after it if `both`; two families are kept.
fn set(service: &mut Value, first: Family, both: bool) {
    if texts(service, "ipFamilies").len() < 2 {
        let families = [Some(first), both.then_some(first.other())];
        let names: Vec<Value> = families.into_iter().flatten().map(|family| Value::from(family.name())).collect();
        put(service, "ipFamilies", Some(names.into()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object;
    use crate::value::yaml;

    const V4: Families = Families { primary: Family::V4, is_dual: false };
    const DUAL: Families = Families { primary: Family::V4, is_dual: true };

    /// Checks the families and the policy of a service, or its errors.
    #[track_caller]
    fn check(cluster: Families, new: &str, old: Option<&str>, expected: &str) {
        let service = |text: &str| object! { "spec" => yaml::decode(text.as_bytes()).expect("it is YAML") };
        let (mut new, old) = (service(new), old.map(service));
        let told = match settle_families(Minor::NEWEST, &mut new, old.as_ref(), cluster) {
            Ok(()) => format!("{} {}", texts(&new, "ipFamilies").join(","), text(&new, "ipFamilyPolicy")),
            Err(errors) => errors.aggregate(),
        };
        assert_eq!(told, expected);
    }

    #[test]
    fn a_new_service_gets_what_the_cluster_has() {
        check(V4, "{}", None, "IPv4 SingleStack");
        check(V4, "{ipFamilyPolicy: PreferDualStack}", None, "IPv4 PreferDualStack");
        check(DUAL, "{ipFamilyPolicy: PreferDualStack}", None, "IPv4,IPv6 PreferDualStack");
        check(DUAL, "{ipFamilies: [IPv6], ipFamilyPolicy: RequireDualStack}", None, "IPv6,IPv4 RequireDualStack");
        check(DUAL, "{clusterIP: '::1', clusterIPs: ['::1']}", None, "IPv6 SingleStack");
        check(V4, "{clusterIP: None, clusterIPs: [None]}", None, "IPv4,IPv6 RequireDualStack");
        check(V4, "{clusterIP: None, clusterIPs: [None], selector: {a: b}}", None, "IPv4 SingleStack");
    }

    #[test]
    fn what_the_cluster_lacks_is_refused() {
        check(
            V4,
            "{ipFamilies: [IPv4, IPv6], ipFamilyPolicy: RequireDualStack}",
            None,
            "[spec.ipFamilyPolicy: Invalid value: \"RequireDualStack\": this cluster is not configured for dual-stack \
             services, spec.ipFamilies[1]: Invalid value: \"IPv6\": not configured on this cluster]",
        );
        check(
            V4,
            "{clusterIP: '::1', clusterIPs: ['::1']}",
            None,
            "spec.clusterIPs[0]: Invalid value: [\"::1\"]: IPv6 is not configured on this cluster",
        );
        check(
            DUAL,
            "{ipFamilies: [IPv4, IPv6]}",
            None,
            "spec.ipFamilyPolicy: Invalid value: \"SingleStack\": must be 'RequireDualStack' or 'PreferDualStack' when \
             multiple IP families are specified",
        );
    }

    #[test]
    fn a_second_family_goes_with_the_policy_alone() {
        let dual = "{type: ClusterIP, clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1, '::1'], ipFamilies: [IPv4, IPv6], \
                    ipFamilyPolicy: RequireDualStack}";
        let single = dual.replace("RequireDualStack", SINGLE);
        check(DUAL, &single, Some(dual), "IPv4 SingleStack");
        check(
            DUAL,
            "{type: ClusterIP, clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], ipFamilies: [IPv4, IPv6]}",
            Some(dual),
            "spec.ipFamilyPolicy: Invalid value: \"RequireDualStack\": must be 'SingleStack' to release the secondary \
             cluster IP",
        );
    }
}
