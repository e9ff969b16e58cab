//! How many devices a ResourceClaim may be allocated, by the classes that it asks for.
//!
//! Input: a claim of any version. Output: the largest number for each class, under the name that quotas use.
//!
//! Source: `pkg/quota/v1/evaluator/core/resource_claims.go` of Kubernetes 1.36.

use std::collections::BTreeMap;

use crate::kinds::pod::aggregate::Totals;
use crate::kinds::resources;
use crate::meta::quantity::Quantity;
use crate::value::Value;
use crate::work;

/// Ends the name of a quota's resource that begins with the name of a class.
pub const BY_CLASS: &str = ".deviceclass.resource.k8s.io/devices";
/// How many devices a request for all of them can be allocated at most.
const ALLOCATED_MAX: i64 = 32;

/// The devices that a claim asks for.
pub fn of_claim(claim: &Value) -> Totals {
    let mut counts = BTreeMap::<&str, i64>::new();
    for request in claim.items_at(&["spec", "devices", "requests"]) {
        for (class, count) in of_request(request) {
            let sum = counts.entry(class).or_default();
            *sum = sum.saturating_add(count);
        }
    }
    counts.into_iter().map(|(class, count)| (format!("{class}{BY_CLASS}"), amount(count))).collect()
}

/// The devices of each class that a request may be allocated: with alternatives, the most that one of them asks for.
fn of_request(request: &Value) -> BTreeMap<&str, i64> {
    let mut counts = BTreeMap::new();
    let alternatives = request.items_at(&["firstAvailable"]);
    for one in alternatives {
        let (class, count) = of_class(one);
        let most = counts.entry(class).or_default();
        *most = count.max(*most);
    }
    // A claim of v1beta1 has the fields of `exactly` beside the name of the request.
    let exact = request.get("exactly").filter(|exact| !exact.is_null());
    let exact = exact.or_else(|| request.get("deviceClassName").map(|_| request));
    if let Some(exact) = exact.filter(|_| alternatives.is_empty()) {
        counts.extend([of_class(exact)]);
    }
    counts.retain(|_, count| alternatives.is_empty() || *count > 0);
    counts
}

fn of_class(request: &Value) -> (&str, i64) {
    work::step();
    let count = match request.str_at(&["allocationMode"]) {
        "ExactCount" => request.get("count").and_then(Value::as_i64).unwrap_or_default(),
        "All" => ALLOCATED_MAX,
        _ => 0,
    };
    (request.str_at(&["deviceClassName"]), count)
}

fn amount(count: i64) -> Quantity {
    resources::parse(Some(&Value::String(count.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    #[track_caller]
    fn check(requests: &str, expected: &[&str]) {
        let claim = format!("spec: {{devices: {{requests: {requests}}}}}");
        let claim = yaml::decode(claim.as_bytes()).expect("the test is YAML");
        let counted: Vec<String> =
            of_claim(&claim).into_iter().map(|(name, count)| format!("{name}={count}")).collect();
        assert_eq!(counted, expected, "{requests}");
    }

    #[test]
    fn requests_are_added_up_by_class() {
        check(
            "[{name: a, exactly: {deviceClassName: gpu, allocationMode: ExactCount, count: 2}}, \
             {name: b, exactly: {deviceClassName: gpu, allocationMode: All}}, \
             {name: c, exactly: {deviceClassName: nic, allocationMode: ExactCount, count: 1}}]",
            &["gpu.deviceclass.resource.k8s.io/devices=34", "nic.deviceclass.resource.k8s.io/devices=1"],
        );
    }

    #[test]
    fn of_alternatives_the_largest_of_each_class_counts() {
        check(
            "[{name: a, firstAvailable: [{name: x, deviceClassName: gpu, allocationMode: ExactCount, count: 2}, \
             {name: y, deviceClassName: gpu, allocationMode: ExactCount, count: 4}, \
             {name: z, deviceClassName: nic, allocationMode: ExactCount, count: 3}]}, \
             {name: b, exactly: {deviceClassName: gpu, allocationMode: ExactCount, count: 1}}]",
            &["gpu.deviceclass.resource.k8s.io/devices=5", "nic.deviceclass.resource.k8s.io/devices=3"],
        );
    }

    #[test]
    fn a_claim_of_the_first_beta_counts_and_an_unknown_mode_does_not() {
        check(
            "[{name: a, deviceClassName: gpu, allocationMode: ExactCount, count: 2}]",
            &["gpu.deviceclass.resource.k8s.io/devices=2"],
        );
        check(
            "[{name: a, exactly: {deviceClassName: gpu, allocationMode: Later}}]",
            &["gpu.deviceclass.resource.k8s.io/devices=0"],
        );
        check("[{name: a}, {name: b, firstAvailable: [{name: x, deviceClassName: gpu, allocationMode: Later}]}]", &[]);
    }
}
