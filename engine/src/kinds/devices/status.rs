//! The status of a ResourceClaim: the allocation, its consumers, and the reports of drivers.

use std::collections::BTreeSet;

use crate::kinds::features::{self, Feature};
use crate::kinds::{conditions, declared, node_selector};
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::gate::Gate;
use crate::meta::minor::Minor;
use crate::meta::names;
use crate::types;
use crate::value::Value;

use super::names::Requests;
use super::{
    CONFIGS_MAX, REQUESTS_MAX, driver_name, list, pool_name, raw, request, request_reference, set, slice, uid,
};

const RESERVED_MAX: usize = 256;
const RESULTS_MAX: usize = REQUESTS_MAX;
const CONDITIONS_MAX: usize = 8;
const DATA_BYTES_MAX: usize = 10 << 10;
const ADDRESSES_MAX: usize = 16;
const SOURCES: [&str; 2] = ["FromClaim", "FromClass"];

/// The key of a device: its driver, its pool, its name and its share.
fn device_key(device: &Value) -> String {
    let id = ["driver", "pool", "device"].map(|name| device.str_at(&[name])).join("/");
    match device.str_at(&["shareID"]) {
        "" => id,
        share => format!("{id}/{share}"),
    }
}

fn allocated(claim: &Value) -> BTreeSet<String> {
    claim.items_at(&["status", "allocation", "devices", "results"]).iter().map(device_key).collect()
}

/// Features that only have fields in the status.
const FEATURES: [Feature; 2] = [
    Feature::new(Gate::DraResourceClaimDeviceStatus, &["status.devices"]),
    Feature::new(
        Gate::DraDeviceBindingConditions,
        &[
            "status.allocation.devices.results.*.bindingConditions",
            "status.allocation.devices.results.*.bindingFailureConditions",
        ],
    ),
];
const ADMIN_ACCESS: Feature = Feature::new(Gate::DraAdminAccess, &["status.allocation.devices.results.*.adminAccess"]);
const CONSUMABLE_CAPACITY: Feature = Feature::new(
    Gate::DraConsumableCapacity,
    &[
        "status.allocation.devices.results.*.shareID",
        "status.allocation.devices.results.*.consumedCapacity",
        "status.devices.*.shareID",
    ],
);

/// Drops the fields of features whose gates are disabled from a status, except for those that the claim used, in its
/// spec or in its status.
pub fn drop_disabled(minor: Minor, new: &mut Value, old: &Value) {
    features::drop_fields(&FEATURES, minor, new, Some(old));
    for feature in [ADMIN_ACCESS, CONSUMABLE_CAPACITY] {
        if !request::uses(feature.gate, old.at(&["spec", "devices"])) {
            features::drop_fields(&[feature], minor, new, Some(old));
        }
    }
}

/// Drops the reports of drivers about devices that are no longer allocated.
pub fn drop_deallocated(new: &mut Value, old: &Value) {
    let kept = allocated(new);
    let gone: BTreeSet<String> = allocated(old).into_iter().filter(|device| !kept.contains(device)).collect();
    let Some(status) = new.get_mut("status").and_then(Value::as_object_mut) else { return };
    let Some(Value::Array(devices)) = status.get_mut("devices") else { return };
    devices.retain(|device| !gone.contains(&device_key(device)));
    if devices.is_empty() {
        status.remove("devices");
    }
}

/// The errors of the status of `new`, which replaces that of `old`.
pub fn validate(minor: Minor, new: &Value, old: &Value) -> ErrorList {
    let (root, old_root) = (FieldRef::root(new), FieldRef::root(old));
    let (status, old_status) = (root.field("status"), old_root.field("status"));
    let known = Requests::of(new.at(&["spec", "devices"]).unwrap_or(&Value::Null));
    let reserved = status.field("reservedFor");
    let by_uid = |consumer: &Value| consumer.str_at(&["uid"]).to_owned();
    let mut errors = set(&reserved, RESERVED_MAX, by_uid, validate_consumer);
    let allocated = allocated(new);
    let device = |device: &FieldRef<'_>| validate_device(device, &allocated);
    errors.extend(set(&status.field("devices"), usize::MAX, device_key, device));
    let (allocation, before) = (status.field("allocation"), old_status.field("allocation"));
    if !reserved.is_empty() && !allocation.is_set() {
        errors.push(reserved.forbidden("may not be specified when `allocated` is not set"));
    } else if !reserved.is_empty() && new.at(&["metadata", "deletionTimestamp"]).is_some() {
        let old_items = old.items_at(&["status", "reservedFor"]);
        if reserved.items().any(|item| item.value().is_some_and(|item| !old_items.contains(item))) {
            let why = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set";
            errors.push(reserved.forbidden(why));
        }
    }
    if allocation.is_set() && before.is_set() {
        if allocation.value() != before.value() {
            let shown =
                allocation.value().map(|value| crate::kinds::show_internal("resource.v1.AllocationResult", value));
            errors.push(allocation.invalid("field is immutable").shown_as(shown.unwrap_or_default()));
        }
    } else if allocation.is_set() {
        errors.extend(validate_allocation(minor, &allocation.field("devices"), &known));
        let selector = allocation.field("nodeSelector");
        if selector.is_set() {
            errors.extend(node_selector::validate(&selector, true));
        }
    }
    errors
}

fn validate_consumer(consumer: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    for name in ["resource", "name", "uid"] {
        let field = consumer.field(name);
        if field.text().is_empty() {
            errors.push(field.required(""));
        }
    }
    errors
}

fn validate_allocation(minor: Minor, devices: &FieldRef<'_>, known: &Requests) -> ErrorList {
    let mut errors = list(&devices.field("results"), RESULTS_MAX, |result| {
        let mut errors = request_reference(&result.field("request"), known);
        errors.extend(validate_device_names(result));
        errors.extend(slice::validate_binding(result));
        errors.extend(validate_share(result));
        let message = types::message_named("resource.v1", "DeviceRequestAllocationResult");
        errors.extend(declared::validate_field(message, "skipNodeOperations", result, None, minor));
        errors
    });
    errors.extend(list(&devices.field("config"), 2 * CONFIGS_MAX, |config| {
        let mut errors = ErrorList::new();
        let source = config.field("source");
        match source.text() {
            "" => errors.push(source.required("")),
            text if !SOURCES.contains(&text) => errors.push(source.not_supported(&SOURCES)),
            _ => {}
        }
        errors.extend(request::validate_config(config, known));
        errors
    }));
    errors
}

fn validate_device_names(device: &FieldRef<'_>) -> ErrorList {
    let mut errors = driver_name(&device.field("driver"));
    errors.extend(pool_name(&device.field("pool")));
    let name = device.field("device");
    errors.extend(names::is_dns1123_label(name.text()).into_iter().map(|fault| name.invalid(fault)));
    errors
}

fn validate_share(device: &FieldRef<'_>) -> Option<Error> {
    let share = device.field("shareID");
    if share.is_set() { uid(&share) } else { None }
}

fn validate_device(device: &FieldRef<'_>, allocated: &BTreeSet<String>) -> ErrorList {
    let mut errors = validate_device_names(device);
    errors.extend(validate_share(device));
    let value = device.value().unwrap_or(&Value::Null);
    if !allocated.contains(&device_key(value)) {
        let part = |name: &str| crate::value::go_quote(value.str_at(&[name]));
        let shown = format!(
            "{{\"Driver\":{},\"Pool\":{},\"Device\":{},\"ShareID\":{}}}",
            part("driver"),
            part("pool"),
            part("device"),
            part("shareID")
        );
        let why = "must be an allocated device in the claim";
        errors.push(Error::invalid(device.path(), Value::Null, why).shown_as(shown));
    }
    let conditions = device.field("conditions");
    if conditions.len() > CONDITIONS_MAX {
        errors.push(conditions.too_many(CONDITIONS_MAX as i64));
    }
    errors.extend(conditions::validate(&conditions));
    let data = device.field("data");
    if data.is_set() {
        errors.extend(raw(&data, false, DATA_BYTES_MAX));
    }
    errors.extend(validate_network(&device.field("networkData")));
    errors
}

fn validate_network(network: &FieldRef<'_>) -> ErrorList {
    const TEXTS: [(&str, usize); 2] = [("interfaceName", 256), ("hardwareAddress", 128)];
    let mut errors = ErrorList::new();
    for (name, bytes_max) in TEXTS {
        let field = network.field(name);
        if field.text().len() > bytes_max {
            errors.push(field.too_long(bytes_max as i64));
        }
    }
    errors.extend(set(&network.field("ips"), ADDRESSES_MAX, super::by_text, validate_address));
    errors
}

/// An address with the length of its network, in its canonical form.
fn validate_address(address: &FieldRef<'_>) -> ErrorList {
    let parsed = address.text().parse::<ipnet::IpNet>();
    match parsed {
        Err(_) => {
            let why = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)";
            [address.invalid(why)].into_iter().collect()
        }
        Ok(net) if net.to_string() != address.text() => {
            let why = format!("must be in canonical form (\"{net}\")");
            [address.invalid(why)].into_iter().collect()
        }
        Ok(_) => ErrorList::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    #[track_caller]
    fn check(status: &str, expect: &[&str]) {
        let claim = |status: &str| {
            let text = format!("spec: {{devices: {{requests: [{{name: r}}]}}}}\nstatus: {status}");
            yaml::decode(text.as_bytes()).expect("the test is YAML")
        };
        let errors = validate(Minor::NEWEST, &claim(status), &claim("{}"));
        assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), expect);
    }

    #[test]
    fn what_was_allocated_is_on_nodes_that_can_be_selected() {
        check(
            "{allocation: {nodeSelector: {}}}",
            &[
                "status.allocation.nodeSelector.nodeSelectorTerms: Required value: must have at least one node selector term",
            ],
        );
        check(
            "{allocation: {nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Like}]}]}}}",
            &[
                "status.allocation.nodeSelector.nodeSelectorTerms[0].matchExpressions[0].operator: Invalid value: \"Like\": not a valid selector operator",
            ],
        );
    }

    #[test]
    fn what_drivers_say_of_a_device_has_the_form_of_conditions() {
        let result = "allocation: {devices: {results: [{request: r, driver: d, pool: p, device: e}]}}";
        let condition = "{type: Ready, status: Perhaps, reason: A, lastTransitionTime: '2026-01-01T00:00:00Z'}";
        check(
            &format!("{{{result}, devices: [{{driver: d, pool: p, device: e, conditions: [{condition}]}}]}}"),
            &[
                "status.devices[0].conditions[0].status: Unsupported value: \"Perhaps\": supported values: \"False\", \"True\", \"Unknown\"",
            ],
        );
    }

    #[test]
    fn operations_that_a_device_does_without_are_known_ones() {
        check(
            "{allocation: {devices: {results: [{request: r, driver: d, pool: p, device: e, skipNodeOperations: [x]}]}}}",
            &[
                "status.allocation.devices.results[0].skipNodeOperations[0]: Unsupported value: \"x\": supported values: \"*\", \"NodePrepareResources\", \"NodeUnprepareResources\"",
            ],
        );
    }
}
