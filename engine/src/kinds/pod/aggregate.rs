//! The total resources that the containers of a pod ask for.
//!
//! Containers run side by side, and so do init containers that restart always; other init containers run one by one
//! before them. The pod needs the maximum over time.
//!
//! Source: `k8s.io/component-helpers/resource`, release 1.36.

use std::collections::BTreeMap;

use super::super::resources;
use crate::meta::quantity::Quantity;
use crate::value::{Map, Value};

/// Quantities by the names of their resources.
pub type Totals = BTreeMap<String, Quantity>;

/// The resources of a container that count, if it has any.
pub type Asked<'a, 'p> = &'a dyn Fn(&'p Value) -> Option<&'p Map>;

/// The sum over the containers of `spec` of their `list`: `requests` or `limits`.
pub fn of_containers(spec: &Value, list: &str) -> Totals {
    total(spec, &|container| container.at(&["resources", list]).and_then(Value::as_object))
}

/// The sum over the containers of `spec` of what `asked` says of each.
pub fn total<'p>(spec: &'p Value, asked: Asked<'_, 'p>) -> Totals {
    let mut totals = Totals::new();
    for container in spec.items_at(&["containers"]) {
        add(&mut totals, asked(container));
    }
    let mut restartable = Totals::new();
    let mut most = Totals::new();
    for container in spec.items_at(&["initContainers"]) {
        let list = asked(container);
        if container.str_at(&["restartPolicy"]) == "Always" {
            add(&mut totals, list);
            add(&mut restartable, list);
            raise_for(&mut most, list, &restartable);
        } else {
            let mut with_this = Totals::new();
            add(&mut with_this, list);
            for (name, own) in &mut with_this {
                if let Some(before) = restartable.get(name) {
                    *own = own.add(before).unwrap_or_else(|_| own.clone());
                }
            }
            raise(&mut most, &with_this);
        }
    }
    // Resources that only earlier containers ask for were raised when those were visited.
    raise(&mut totals, &most);
    totals
}

/// The list of a container, read.
fn entries(list: Option<&Map>) -> impl Iterator<Item = (&str, Quantity)> {
    list.into_iter().flat_map(|list| list.iter()).map(|(name, quantity)| {
        crate::work::step();
        (name, resources::parse(Some(quantity)))
    })
}

fn add(totals: &mut Totals, list: Option<&Map>) {
    for (name, quantity) in entries(list) {
        match totals.get_mut(name) {
            // A sum that can't be written stays as it was.
            Some(total) => *total = total.add(&quantity).unwrap_or_else(|_| total.clone()),
            None => _ = totals.insert(name.to_owned(), quantity),
        }
    }
}

/// Raises the totals to those of `other` where these are larger.
pub fn raise(totals: &mut Totals, other: &Totals) {
    for (name, quantity) in other {
        raise_one(totals, name, quantity);
    }
}

/// Raises the totals of the resources that are in the list of a container, as only these can have grown.
fn raise_for(totals: &mut Totals, list: Option<&Map>, other: &Totals) {
    for (name, _) in entries(list) {
        if let Some(quantity) = other.get(name) {
            raise_one(totals, name, quantity);
        }
    }
}

fn raise_one(totals: &mut Totals, name: &str, quantity: &Quantity) {
    crate::work::step();
    if totals.get(name).is_none_or(|total| quantity > total) {
        totals.insert(name.to_owned(), quantity.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::json;

    #[test]
    fn a_pod_needs_the_most_that_is_needed_at_any_time() {
        let spec = r#"{
            "containers": [{"resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}, {"resources": {"requests": {"cpu": "500m"}}}],
            "initContainers": [
                {"restartPolicy": "Always", "resources": {"requests": {"cpu": "100m"}}},
                {"resources": {"requests": {"cpu": "2", "x.example/y": "1"}}}
            ]
        }"#;
        let spec = json::decode(spec.as_bytes()).expect("the test is JSON");
        let totals: Vec<_> =
            of_containers(&spec, "requests").into_iter().map(|(name, total)| format!("{name}={total}")).collect();
        assert_eq!(totals, ["cpu=2100m", "memory=1Gi", "x.example/y=1"]);
        assert!(of_containers(&spec, "limits").is_empty());
    }
}
