//! Checks that cluster IPs, their families and the family policy agree, and what may change in them.
//!
//! Source: `ValidateServiceClusterIPsRelatedFields` and the functions beside it in `pkg/apis/core/validation`, release 1.37.

use std::collections::BTreeSet;

use crate::kinds::checks::one_of;
use crate::kinds::network::addresses::{check_address, parse_lenient};
use crate::meta::field::{Error, ErrorList, Path};
use crate::meta::field_ref::FieldRef;
use crate::meta::minor::Minor;
use crate::value::Value;

use super::family::{Family, POLICIES};
use super::{NONE, field, is_external_name, is_headless, text, texts};

const SPEC: Path<'static> = Path::new("spec");
/// One per family.
const CLUSTER_IPS_MAX: usize = 2;

/// A list as errors show it: null if it is absent.
fn shown(service: &Value, name: &str) -> Value {
    field(service, name).cloned().unwrap_or_default()
}

/// Validates the fields together. Addresses that `old` has are not checked.
pub fn check_cluster_ips(minor: Minor, service: &Value, old: Option<&Value>) -> ErrorList {
    if is_external_name(service) {
        return ErrorList::new();
    }
    let mut errors: ErrorList = check_first(service).into_iter().collect();
    errors.extend(check_families(service));
    let all = texts(service, "clusterIPs");
    let path = SPEC.child("clusterIPs");
    let invalid = |why: &str| Error::invalid(&path, shown(service, "clusterIPs"), why);
    let known = old.map(|old| texts(old, "clusterIPs")).unwrap_or_default();
    let mut has_invalid = false;
    for (index, ip) in all.iter().enumerate() {
        if index == 0 && *ip == NONE {
            if all.len() > 1 {
                has_invalid = true;
                errors.push(invalid("'None' must be the first and only value"));
            }
            continue;
        }
        let faults = check_address(minor, &path.index(index), ip, known.iter().copied());
        has_invalid |= !faults.is_empty();
        errors.extend(faults);
    }
    if all.len() > CLUSTER_IPS_MAX {
        errors.push(invalid("may only hold up to 2 values"));
    }
    if has_invalid {
        return errors;
    }
    if all.len() > 1 && !is_dual_stack(&all) {
        errors.push(invalid("may specify no more than one IP for each IP family"));
    }
    errors.extend(check_agreement(service, &all));
    errors
}

/// Checks that the single address is the first of the list.
fn check_first(service: &Value) -> Option<Error> {
    let path = SPEC.child("clusterIPs");
    let invalid = |why: &str| Error::invalid(&path, shown(service, "clusterIPs"), why);
    match (text(service, "clusterIP"), texts(service, "clusterIPs").first()) {
        ("", None) => None,
        ("", Some(_)) => Some(invalid("must be empty when `clusterIP` is not specified")),
        (_, None) => Some(Error::required(&path, "")),
        (single, Some(first)) => (*first != single).then(|| invalid("first value must match `clusterIP`")),
    }
}

fn check_families(service: &Value) -> ErrorList {
    let root = FieldRef::root(service);
    let spec = root.field("spec");
    let families = spec.field("ipFamilies");
    let mut errors = ErrorList::new();
    let mut seen = BTreeSet::new();
    for family in families.items() {
        errors.extend(one_of(&family, &["IPv4", "IPv6"]));
        if !seen.insert(family.text()) {
            errors.push(family.duplicate_as_json());
        }
    }
    let policy = spec.field("ipFamilyPolicy");
    if policy.is_set() {
        errors.extend(one_of(&policy, &POLICIES));
    }
    errors
}

/// Whether there are addresses of both families.
fn is_dual_stack(all: &[&str]) -> bool {
    let families: BTreeSet<_> = all.iter().filter_map(|ip| parse_lenient(ip)).map(|ip| ip.is_ipv4()).collect();
    families.len() == 2
}

/// Checks that each address has the family that the service specifies for it.
fn check_agreement(service: &Value, all: &[&str]) -> ErrorList {
    if is_headless(service) {
        return ErrorList::new();
    }
    let path = SPEC.child("clusterIPs");
    let pairs = all.iter().zip(texts(service, "ipFamilies")).enumerate();
    let wrong = pairs.filter(|(_, (ip, family))| {
        Family::named(family).is_some_and(|family| (family == Family::V6) != (Family::of(ip) == Some(Family::V6)))
    });
    let error = |(index, (ip, family)): (usize, (&&str, &str))| {
        let why = format!("expected an {family} value as indicated by `ipFamilies[{index}]`");
        Error::invalid(&path.index(index), *ip, why)
    };
    wrong.map(error).collect()
}

const UNCHANGED: &str = "may not change once set";

/// Checks changes of cluster IPs: a second one may be added, and removed if the policy says so.
pub(super) fn check_changed_ips(new: &Value, old: &Value) -> ErrorList {
    let path = SPEC.child("clusterIPs");
    let (now, before) = (texts(new, "clusterIPs"), texts(old, "clusterIPs"));
    if is_external_name(new) || is_external_name(old) || (is_headless(old) && is_headless(new)) {
        return ErrorList::new();
    }
    let invalid = |index: usize, why: &str| Error::invalid(&path.index(index), shown(new, "clusterIPs"), why);
    let mut errors = ErrorList::new();
    if now.len() == before.len() {
        let changed = now.iter().zip(&before).enumerate().filter(|(_, (now, before))| now != before);
        errors.extend(changed.map(|(index, _)| invalid(index, UNCHANGED)));
        return errors;
    }
    if now.is_empty() {
        errors.push(invalid(0, "primary clusterIP can not be unset"));
    }
    if let (Some(now), Some(before)) = (now.first(), before.first())
        && now != before
    {
        errors.push(invalid(0, UNCHANGED));
    }
    if now.len() == 1 && before.len() > 1 {
        errors.extend(check_release(new, "must be set to 'SingleStack' when releasing the secondary clusterIP"));
    }
    errors
}

/// Checks changes of families.
pub(super) fn check_changed_families(new: &Value, old: &Value) -> ErrorList {
    let path = SPEC.child("ipFamilies");
    let (now, before) = (texts(new, "ipFamilies"), texts(old, "ipFamilies"));
    if is_external_name(new) || is_external_name(old) || is_headless(old) || is_headless(new) {
        return ErrorList::new();
    }
    // Whatever the index, the first one is reported.
    let invalid = |field: &str, why: &str| Error::invalid(&path.index(0), shown(new, field), why);
    let mut errors = ErrorList::new();
    if now.len() == before.len() {
        let changed = now.iter().zip(&before).filter(|(now, before)| now != before);
        errors.extend(changed.map(|_| invalid("ipFamilies", UNCHANGED)));
        return errors;
    }
    if now.len() < before.len() && texts(new, "clusterIPs").is_empty() {
        errors.push(invalid("ipFamilies", "primary ipFamily can not be unset"));
    }
    if let (Some(now), Some(before)) = (now.first(), before.first())
        && now != before
    {
        errors.push(invalid("clusterIPs", UNCHANGED));
    }
    if now.len() == 1 && before.len() > 1 {
        errors.extend(check_release(new, "must be set to 'SingleStack' when releasing the secondary ipFamily"));
    }
    errors
}

fn check_release(new: &Value, why: &str) -> Option<Error> {
    let is_single = text(new, "ipFamilyPolicy") == "SingleStack";
    (!is_single).then(|| Error::invalid(&SPEC.child("ipFamilyPolicy"), shown(new, "ipFamilyPolicy"), why))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object;
    use crate::value::yaml;

    fn service(text: &str) -> Value {
        object! { "spec" => yaml::decode(text.as_bytes()).expect("it is YAML") }
    }

    #[test]
    fn addresses_families_and_policy_agree() {
        for (spec, told) in [
            ("{clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], ipFamilies: [IPv4], ipFamilyPolicy: SingleStack}", ""),
            ("{clusterIP: None, clusterIPs: [None], ipFamilies: [IPv4, IPv6]}", ""),
            ("{clusterIP: a}", "spec.clusterIPs: Required value"),
            (
                "{clusterIPs: [10.0.0.1]}",
                "spec.clusterIPs: Invalid value: [\"10.0.0.1\"]: must be empty when `clusterIP` is not specified",
            ),
            (
                "{clusterIP: 10.0.0.2, clusterIPs: [10.0.0.1]}",
                "spec.clusterIPs: Invalid value: [\"10.0.0.1\"]: first value must match `clusterIP`",
            ),
            (
                "{clusterIP: None, clusterIPs: [None, 10.0.0.1]}",
                "spec.clusterIPs: Invalid value: [\"None\",\"10.0.0.1\"]: 'None' must be the first and only value",
            ),
            (
                "{clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1, 10.0.0.2]}",
                "spec.clusterIPs: Invalid value: [\"10.0.0.1\",\"10.0.0.2\"]: may specify no more than one IP for each IP \
                 family",
            ),
            (
                "{clusterIP: 10.0.0.1, clusterIPs: [10.0.0.1], ipFamilies: [IPv6]}",
                "spec.clusterIPs[0]: Invalid value: \"10.0.0.1\": expected an IPv6 value as indicated by `ipFamilies[0]`",
            ),
            (
                "{ipFamilies: [IPv5, IPv4, IPv4], ipFamilyPolicy: Any}",
                "[spec.ipFamilies[0]: Unsupported value: \"IPv5\": supported values: \"IPv4\", \"IPv6\", \
                 spec.ipFamilies[2]: Duplicate value: \"IPv4\", spec.ipFamilyPolicy: Unsupported value: \"Any\": \
                 supported values: \"PreferDualStack\", \"RequireDualStack\", \"SingleStack\"]",
            ),
        ] {
            assert_eq!(check_cluster_ips(Minor::NEWEST, &service(spec), None).aggregate(), told, "{spec}");
        }
    }

    #[test]
    fn the_first_address_stays_and_the_second_goes_with_the_policy() {
        let dual = "{type: ClusterIP, clusterIPs: [10.0.0.1, '::1'], ipFamilies: [IPv4, IPv6]}";
        for (new, told) in [
            ("{clusterIPs: [10.0.0.1], ipFamilies: [IPv4], ipFamilyPolicy: SingleStack}", ""),
            (
                "{clusterIPs: [10.0.0.1], ipFamilies: [IPv4]}",
                "[spec.ipFamilyPolicy: Invalid value: null: must be set to 'SingleStack' when releasing the secondary \
                 clusterIP, spec.ipFamilyPolicy: Invalid value: null: must be set to 'SingleStack' when releasing the \
                 secondary ipFamily]",
            ),
            (
                "{clusterIPs: [10.0.0.2, '::1'], ipFamilies: [IPv4, IPv6]}",
                "spec.clusterIPs[0]: Invalid value: [\"10.0.0.2\",\"::1\"]: may not change once set",
            ),
            (
                "{}",
                "[spec.clusterIPs[0]: Invalid value: null: primary clusterIP can not be unset, \
                 spec.ipFamilies[0]: Invalid value: null: primary ipFamily can not be unset]",
            ),
            ("{type: ExternalName}", ""),
        ] {
            let (new, old) = (service(new), service(dual));
            let mut errors = check_changed_ips(&new, &old);
            errors.extend(check_changed_families(&new, &old));
            assert_eq!(errors.aggregate(), told, "{new:?}");
        }
    }
}
