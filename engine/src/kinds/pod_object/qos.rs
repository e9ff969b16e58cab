//! The quality of service that a pod gets: what its requests and limits say.
//!
//! Source: `pkg/apis/core/helper/qos`.

use std::collections::BTreeMap;

use crate::meta::quantity::Quantity;
use crate::value::Value;
use crate::work;

const COUNTED: [&str; 2] = ["cpu", "memory"];

type Sums = BTreeMap<&'static str, Quantity>;

/// The class in the status, or the one that follows from the spec.
pub fn class(pod: &Value) -> &str {
    match pod.str_at(&["status", "qosClass"]) {
        "" => computed_class(pod),
        class => class,
    }
}

/// The class that follows from the spec: `BestEffort`, `Burstable` or `Guaranteed`.
pub fn computed_class(pod: &Value) -> &'static str {
    let (mut requests, mut limits) = (Sums::new(), Sums::new());
    let mut has_all_limits = true;
    match pod.at(&["spec", "resources"]).filter(|resources| !resources.is_null()) {
        Some(resources) => {
            add(&mut requests, resources.get("requests"));
            let own_limits = resources.get("limits");
            add(&mut limits, own_limits);
            let is_empty = own_limits.and_then(Value::as_object).is_none_or(|limits| limits.is_empty());
            has_all_limits = is_empty || limits.len() == COUNTED.len();
        }
        None => {
            for container in ["containers", "initContainers"].iter().flat_map(|name| pod.items_at(&["spec", name])) {
                add(&mut requests, container.at(&["resources", "requests"]));
                let mut own_limits = Sums::new();
                add(&mut own_limits, container.at(&["resources", "limits"]));
                has_all_limits &= own_limits.len() == COUNTED.len();
                add(&mut limits, container.at(&["resources", "limits"]));
            }
        }
    }
    if requests.is_empty() && limits.is_empty() {
        "BestEffort"
    } else if has_all_limits && requests == limits {
        "Guaranteed"
    } else {
        "Burstable"
    }
}

/// Adds the quantities above zero that count.
fn add(sums: &mut Sums, list: Option<&Value>) {
    for name in COUNTED {
        work::step();
        let text = list.map(|list| list.str_at(&[name])).unwrap_or_default();
        let Some(quantity) = Quantity::parse(text).ok().filter(|quantity| quantity.signum() > 0) else { continue };
        let sum = match sums.get(name) {
            Some(sum) => quantity.add(sum).unwrap_or(quantity),
            None => quantity,
        };
        sums.insert(name, sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    #[test]
    fn the_class_follows_from_requests_and_limits() {
        let check = |spec: &str| {
            let pod = format!("spec: {spec}");
            computed_class(&yaml::decode(pod.as_bytes()).expect("YAML"))
        };
        let both = "{cpu: '1', memory: 1Gi}";
        assert_eq!(check("{containers: [{resources: {}}]}"), "BestEffort");
        assert_eq!(check("{containers: [{resources: {requests: {'x/y': 1}}}]}"), "BestEffort");
        assert_eq!(check("{containers: [{resources: {requests: {cpu: 1m}}}]}"), "Burstable");
        assert_eq!(
            check(&format!("{{containers: [{{resources: {{requests: {both}, limits: {both}}}}}]}}")),
            "Guaranteed"
        );
        assert_eq!(
            check(&format!(
                "{{containers: [{{resources: {{requests: {both}, limits: {both}}}}}, {{resources: {{}}}}]}}"
            )),
            "Burstable"
        );
        assert_eq!(
            check(&format!("{{containers: [{{resources: {{}}}}], resources: {{requests: {both}, limits: {both}}}}}")),
            "Guaranteed"
        );
    }
}
