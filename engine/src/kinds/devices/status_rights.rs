//! What a change of a ResourceClaim's status touches, as other rights go with some of it.
//!
//! Input: the claim before and after. Output: whether it is bound otherwise, the drivers whose reports differ, the node.
//!
//! Source: `pkg/registry/resource/utils.go`, release 1.36.

use std::collections::{BTreeMap, BTreeSet};

use crate::kinds::semantic;
use crate::meta::field_ref::FieldRef;
use crate::types;
use crate::value::Value;

/// Whether the allocation or its consumers change.
pub fn changes_binding(new: &Value, old: &Value) -> bool {
    let message = types::message_named("resource.v1", "ResourceClaimStatus");
    let (new, old) = (FieldRef::root(new), FieldRef::root(old));
    let (new, old) = (new.field("status"), old.field("status"));
    let mut fields = ["allocation", "reservedFor"].iter().filter_map(|name| message.member(name));
    fields.any(|field| !semantic::is_same_field(field, &new.field(field.json), &old.field(field.json)))
}

/// The drivers whose reports are added, changed or removed. While nothing is allocated, nobody is asked for them.
pub fn changed_drivers<'v>(new: &'v Value, old: &'v Value) -> BTreeSet<&'v str> {
    const DEVICES: &[&str] = &["status", "devices"];
    if new.at(&["status", "allocation"]).is_none_or(Value::is_null) {
        return BTreeSet::new();
    }
    let key = |device: &'v Value| ["driver", "pool", "device", "shareID"].map(|name| device.str_at(&[name]));
    let mut before: BTreeMap<_, _> = old.items_at(DEVICES).iter().map(|device| (key(device), device)).collect();
    let message = types::message_named("resource.v1", "AllocatedDeviceStatus");
    let is_same =
        |new: &Value, old: &Value| semantic::is_same_struct(message, &FieldRef::root(new), &FieldRef::root(old));
    let mut drivers = BTreeSet::new();
    for device in new.items_at(DEVICES) {
        if before.remove(&key(device)).is_none_or(|old| !is_same(device, old)) {
            drivers.insert(device.str_at(&["driver"]));
        }
    }
    drivers.extend(before.values().map(|device| device.str_at(&["driver"])));
    drivers
}

/// The node of the allocation, if that selects one by its name alone.
pub fn allocated_node(claim: &Value) -> Option<&str> {
    let [term] = claim.items_at(&["status", "allocation", "nodeSelector", "nodeSelectorTerms"]) else { return None };
    let [field] = term.items_at(&["matchFields"]) else { return None };
    let [name] = field.items_at(&["values"]) else { return None };
    let is_name = field.str_at(&["key"]) == "metadata.name" && field.str_at(&["operator"]) == "In";
    name.as_str().filter(|_| is_name && term.items_at(&["matchExpressions"]).is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    fn claim(status: &str) -> Value {
        yaml::decode(format!("status: {{{status}}}").as_bytes()).expect("the test is YAML")
    }

    #[test]
    fn a_binding_is_its_allocation_and_its_consumers() {
        let changes = |new: &str, old: &str| changes_binding(&claim(new), &claim(old));
        assert!(!changes("", "reservedFor: []"));
        assert!(changes("allocation: {}", ""));
        assert!(changes("reservedFor: [{resource: pods, name: p, uid: u}]", ""));
        let allocated =
            |size: &str| format!("allocation: {{devices: {{results: [{{consumedCapacity: {{m: {size}}}}}]}}}}");
        assert!(!changes(&allocated("1Gi"), &allocated("1024Mi")));
        assert!(changes(&allocated("1Gi"), &allocated("2Gi")));
        assert!(!changes("devices: [{driver: d, pool: p, device: x}]", ""));
    }

    #[test]
    fn drivers_count_whose_reports_differ_while_something_is_allocated() {
        let changed = |new: &str, old: &str| {
            let (new, old) = (claim(&format!("{new}, allocation: {{}}")), claim(old));
            changed_drivers(&new, &old).into_iter().map(str::to_owned).collect::<Vec<_>>().join(" ")
        };
        let two = "devices: [{driver: b, pool: p, device: x}, {driver: a, pool: p, device: x, data: {k: 1}}]";
        assert_eq!(changed(two, two), "");
        assert_eq!(changed(two, "devices: []"), "a b");
        assert_eq!(changed("devices: []", two), "a b");
        assert_eq!(changed("devices: [{driver: a, pool: p, device: x}]", two), "a b");
        assert_eq!(changed(two, &two.replace("k: 1", "k: 2")), "a");
        assert!(changed_drivers(&claim(two), &claim("")).is_empty());
    }

    #[test]
    fn a_node_is_selected_by_its_name_alone() {
        let node = |term: &str| {
            let selector = format!("allocation: {{nodeSelector: {{nodeSelectorTerms: [{{{term}}}]}}}}");
            allocated_node(&claim(&selector)).map(str::to_owned)
        };
        let named = "matchFields: [{key: metadata.name, operator: In, values: [a]}]";
        assert_eq!(node(named).as_deref(), Some("a"));
        assert_eq!(node(&named.replace("[a]", "[a, b]")), None);
        assert_eq!(node(&named.replace("In", "NotIn")), None);
        assert_eq!(node(&format!("{named}, matchExpressions: [{{key: k, operator: Exists}}]")), None);
    }
}
