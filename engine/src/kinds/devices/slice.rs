//! The spec of a ResourceSlice: a pool's devices on a node.

use std::collections::HashMap;

use crate::kinds::{checks, declared, node_selector, semantic, show_internal};
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::minor::Minor;
use crate::meta::names;
use crate::types;
use crate::value::Value;

use super::taint::taint;
use super::{by_name, capacity, driver_name, labels, list, pool_name, qualified_name, set};

const DEVICES_MAX: usize = 128;
/// Of devices with taints, shared counters or attributes that are lists.
const SPECIAL_DEVICES_MAX: usize = 64;
const COUNTER_SETS_MAX: usize = 8;
const COUNTERS_MAX: usize = 32;
const CONSUMED_MAX: usize = 2;
const ATTRIBUTES_MAX: usize = 32;
/// Of the values of all attributes of a device, each item of a list counted.
const ATTRIBUTE_VALUES_MAX: usize = 48;
/// The first minor that knows of lists of values.
const ATTRIBUTE_LISTS_SINCE: Minor = Minor::of(36);
const TAINTS_MAX: usize = 16;
const CONDITIONS_MAX: usize = 4;
const VALUE_BYTES_MAX: usize = 64;
/// The fields of an attribute that hold one value, and those that hold a list.
const SINGLE_VALUES: [&str; 4] = ["bool", "int", "string", "version"];
const LISTS_OF_VALUES: [&str; 4] = ["bools", "ints", "strings", "versions"];

/// The terms of a selector as Go shows them.
fn shown_terms(terms: &FieldRef<'_>) -> String {
    if !terms.is_set() {
        return "null".to_owned();
    }
    let show = |term: FieldRef<'_>| show_internal("core.v1.NodeSelectorTerm", term.value().unwrap_or(&Value::Null));
    format!("[{}]", terms.items().map(show).collect::<Vec<_>>().join(","))
}

/// The errors of a spec that replaces `old`.
pub fn validate(minor: Minor, spec: &FieldRef<'_>, old: Option<&FieldRef<'_>>) -> ErrorList {
    let mut errors = driver_name(&spec.field("driver"));
    errors.extend(validate_pool(&spec.field("pool")));
    if let Some(old) = old {
        errors.extend(validate_kept(spec, old));
    }
    errors.extend(validate_place(spec));
    let (counters, devices) = (spec.field("sharedCounters"), spec.field("devices"));
    if counters.is_set() && devices.is_set() {
        let why = "only one of `sharedCounters` or `devices` is allowed";
        errors.push(Error::invalid(spec.path(), "", why));
    }
    let is_special = |device: FieldRef<'_>| device.value().is_some_and(is_special);
    let max = if devices.items().any(is_special) { SPECIAL_DEVICES_MAX } else { DEVICES_MAX };
    let known = old.and_then(|old| old.value()).map(|old| old.items_at(&["devices"])).unwrap_or_default();
    let known: HashMap<String, &Value> = known.iter().map(|device| (by_name(device), device)).collect();
    let is_each_placed = spec.field("perDeviceNodeSelection").is_true();
    errors.extend(set(&devices, max, by_name, |device| {
        let old = known.get(device.field("name").text()).copied();
        validate_device(minor, device, (old, is_each_placed))
    }));
    errors.extend(set(&counters, COUNTER_SETS_MAX, by_name, |counters| validate_counters(counters, "name")));
    let message = types::message_named("resource.v1", "ResourceSliceSpec");
    for name in ["partitionTypeAttribute", "skipNodeOperations"] {
        errors.extend(declared::validate_field(message, name, spec, old, minor));
    }
    errors
}

/// Whether a device has what makes slices larger, so that fewer of them fit.
fn is_special(device: &Value) -> bool {
    let has = |name: &str| !device.items_at(&[name]).is_empty();
    let mut attributes = device.get("attributes").and_then(Value::as_object).into_iter().flat_map(|all| all.iter());
    let is_list = |attribute: &Value| LISTS_OF_VALUES.iter().any(|name| attribute.get(name).is_some());
    has("taints") || has("consumesCounters") || attributes.any(|(_, attribute)| is_list(attribute))
}

fn validate_pool(pool: &FieldRef<'_>) -> ErrorList {
    let mut errors = pool_name(&pool.field("name"));
    let (count, generation) = (pool.field("resourceSliceCount"), pool.field("generation"));
    if count.int() <= 0 {
        errors.push(Error::invalid(count.path(), count.int(), "must be greater than zero"));
    }
    if generation.int() < 0 {
        errors.push(generation.invalid("must be greater than or equal to zero"));
    }
    errors
}

/// A slice stays in its pool and on its node.
fn validate_kept(spec: &FieldRef<'_>, old: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let (pool, old_pool) = (spec.field("pool"), old.field("pool"));
    errors.extend(checks::unchanged(&pool.field("name"), &old_pool.field("name")));
    errors.extend(checks::unchanged(&spec.field("driver"), &old.field("driver")));
    errors.extend(checks::unchanged_or_null(&spec.field("nodeName"), &old.field("nodeName")));
    errors
}

/// A boolean that must be true if it is set.
fn only_true(field: &FieldRef<'_>) -> Option<Error> {
    (field.is_set() && !field.is_true()).then(|| field.invalid("must be either unset or set to true"))
}

fn node_name(field: &FieldRef<'_>) -> ErrorList {
    names::is_dns1123_subdomain(field.text()).into_iter().map(|fault| field.invalid(fault)).collect()
}

/// Exactly one field must state where the devices are.
fn validate_place(spec: &FieldRef<'_>) -> ErrorList {
    const WHY: &str = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";
    let mut errors = ErrorList::new();
    let mut ways = Vec::new();
    let (name, selector) = (spec.field("nodeName"), spec.field("nodeSelector"));
    if name.is_set() && name.text().is_empty() {
        errors.push(name.invalid("must be either unset or set to a non-empty string"));
    } else if name.is_set() {
        ways.push("`nodeName`");
        errors.extend(node_name(&name));
    }
    if selector.is_set() {
        ways.push("`nodeSelector`");
        errors.extend(node_selector::validate(&selector, true));
        let terms = selector.field("nodeSelectorTerms");
        if terms.len() != 1 {
            errors.push(terms.invalid("must have exactly one node selector term").shown_as(shown_terms(&terms)));
        }
    }
    for (way, shown) in [("allNodes", "`allNodes`"), ("perDeviceNodeSelection", "`perDeviceNodeSelection`")] {
        let field = spec.field(way);
        errors.extend(only_true(&field));
        if field.is_true() {
            ways.push(shown);
        }
    }
    match ways.len() {
        0 => errors.push(spec.required(WHY)),
        1 => {}
        _ => {
            let why = format!("{WHY}, but multiple fields are set");
            errors.push(Error::invalid(spec.path(), format!("{{{}}}", ways.join(", ")), why));
        }
    }
    errors
}

/// Where a single device is: for slices that leave it to their devices.
fn validate_device_place(device: &FieldRef<'_>, is_each_placed: bool) -> ErrorList {
    const WHY: &str = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when \
                       `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
    let mut errors = ErrorList::new();
    let (name, selector, all) = (device.field("nodeName"), device.field("nodeSelector"), device.field("allNodes"));
    if !is_each_placed {
        if name.is_set() || selector.is_set() || all.is_set() {
            let why = "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to \
                       true in the ResourceSlice spec";
            errors.push(Error::invalid(device.path(), Value::Null, why));
        }
        return errors;
    }
    let mut ways = Vec::new();
    if name.is_set() && name.text().is_empty() {
        errors.push(name.invalid("must not be empty"));
    } else if name.is_set() {
        ways.push("`nodeName`");
        errors.extend(node_name(&name));
    }
    if selector.is_set() {
        ways.push("`nodeSelector`");
        errors.extend(node_selector::validate(&selector, true));
    }
    errors.extend(only_true(&all));
    if all.is_true() {
        ways.push("`allNodes`");
    }
    match ways.len() {
        0 => errors.push(device.required(WHY)),
        1 => {}
        _ => errors.push(Error::invalid(device.path(), format!("{{{}}}", ways.join(", ")), WHY)),
    }
    errors
}

fn validate_device(minor: Minor, device: &FieldRef<'_>, (old, is_each_placed): (Option<&Value>, bool)) -> ErrorList {
    let name = device.field("name");
    let mut errors: ErrorList =
        names::is_dns1123_label(name.text()).into_iter().map(|fault| name.invalid(fault)).collect();
    let (attributes, capacities) = (device.field("attributes"), device.field("capacity"));
    let count = attributes.len() + capacities.len();
    if count > ATTRIBUTES_MAX {
        let why = format!("the total number of attributes and capacities must not exceed {ATTRIBUTES_MAX}");
        errors.push(Error::invalid(device.path(), Value::Int(count as i64), why));
    }
    let values: usize = attributes.entries().map(|(_, attribute)| count_values(&attribute)).sum();
    // Before, an attribute had one value.
    if values > ATTRIBUTE_VALUES_MAX && minor >= ATTRIBUTE_LISTS_SINCE {
        let why = format!("the total number of attribute values must not exceed {ATTRIBUTE_VALUES_MAX}");
        errors.push(Error::invalid(device.path(), Value::Int(values as i64), why));
    }
    for (key, attribute) in attributes.entries() {
        errors.extend(qualified_name(&attributes, key, false));
        errors.extend(validate_attribute(&attribute));
    }
    let is_shared = device.field("allowMultipleAllocations").is_true();
    for (key, own) in capacities.entries() {
        errors.extend(qualified_name(&capacities, key, false));
        errors.extend(capacity::validate(&own, is_shared));
    }
    let taints = device.field("taints");
    if old.is_none_or(|old| !semantic::equal_untyped(old.get("taints"), taints.value())) {
        errors.extend(list(&taints, TAINTS_MAX, |field| taint(field, None)));
    }
    let consumed = device.field("consumesCounters");
    let by_set = |counters: &Value| counters.str_at(&["counterSet"]).to_owned();
    errors.extend(set(&consumed, CONSUMED_MAX, by_set, |counters| {
        let mut errors = validate_counters(counters, "counterSet");
        let message = types::message_named("resource.v1", "DeviceCounterConsumption");
        errors.extend(declared::validate_field(message, "compatibilityGroups", counters, None, minor));
        errors
    }));
    errors.extend(validate_device_place(device, is_each_placed));
    errors.extend(validate_binding(device));
    let message = types::message_named("resource.v1", "Device");
    let old = old.map(FieldRef::root);
    errors.extend(declared::validate_field(message, "nodeAllocatableResources", device, old.as_ref(), minor));
    errors
}

/// A set of counters, or a part of one, by name.
fn validate_counters(counters: &FieldRef<'_>, name: &str) -> ErrorList {
    let mut errors = ErrorList::new();
    let (name, counts) = (counters.field(name), counters.field("counters"));
    match name.text() {
        "" => errors.push(name.required("")),
        text => errors.extend(names::is_dns1123_label(text).into_iter().map(|fault| name.invalid(fault))),
    }
    if counts.is_empty() {
        errors.push(counts.required(""));
    } else if counts.len() > COUNTERS_MAX {
        errors.push(counts.too_many(COUNTERS_MAX as i64));
    } else {
        for (key, _) in counts.entries() {
            let faults = names::is_dns1123_label(key).into_iter();
            errors.extend(faults.map(|fault| Error::invalid(counts.path(), key, fault)));
        }
    }
    errors
}

/// How many values an attribute has: the items of its lists; without items, one.
fn count_values(attribute: &FieldRef<'_>) -> usize {
    LISTS_OF_VALUES.iter().map(|name| attribute.field(name).len()).sum::<usize>().max(1)
}

/// One value of one type, or one list of such values.
fn validate_attribute(attribute: &FieldRef<'_>) -> ErrorList {
    const WHY: &str = "exactly one value must be specified";
    let mut errors = ErrorList::new();
    let (text, version) = (attribute.field("string"), attribute.field("version"));
    errors.extend(validate_text(&text));
    if version.is_set() {
        errors.extend(validate_version(&version));
    }
    for name in LISTS_OF_VALUES {
        errors.extend(validate_values(name, &attribute.field(name)));
    }
    let names = SINGLE_VALUES.iter().chain(&LISTS_OF_VALUES);
    match names.filter(|name| attribute.field(name).is_set()).count() {
        0 => errors.push(Error::invalid(attribute.path(), "", WHY)),
        1 => {}
        _ => {
            let shown =
                attribute.value().map(|value| crate::kinds::show_internal("resource.v1.DeviceAttribute", value));
            errors.push(attribute.invalid(WHY).shown_as(shown.unwrap_or_default()));
        }
    }
    errors
}

/// The errors of the list `name` of an attribute, if it is set.
fn validate_values(name: &str, values: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    if values.is_set() && values.is_empty() {
        errors.push(values.invalid("must not be empty if specified"));
    }
    for item in values.items() {
        match name {
            "strings" => errors.extend(validate_text(&item)),
            "versions" => errors.extend(validate_version(&item)),
            _ => {}
        }
    }
    errors
}

fn validate_text(text: &FieldRef<'_>) -> Option<Error> {
    (text.text().len() > VALUE_BYTES_MAX).then(|| text.too_long(VALUE_BYTES_MAX as i64))
}

fn validate_version(version: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    if !is_version(version.text()) {
        errors.push(version.invalid("must be a string compatible with semver.org spec 2.0.0"));
    }
    errors.extend(validate_text(version));
    errors
}

/// Three numbers, then perhaps a pre-release and a build, as semver.org has them.
fn is_version(text: &str) -> bool {
    let is_word =
        |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let is_number = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()) && (part == "0" || !part.starts_with('0'))
    };
    let is_pre = |part: &str| is_word(part) && (is_number(part) || !part.bytes().all(|byte| byte.is_ascii_digit()));
    let (text, build) = text.split_once('+').map_or((text, None), |(text, build)| (text, Some(build)));
    let (core, pre) = text.split_once('-').map_or((text, None), |(core, pre)| (core, Some(pre)));
    core.split('.').count() == 3
        && core.split('.').all(is_number)
        && pre.is_none_or(|pre| pre.split('.').all(is_pre))
        && build.is_none_or(|build| build.split('.').all(is_word))
}

/// Conditions that a device must meet, and those that it must not, before a pod is bound.
pub fn validate_binding(device: &FieldRef<'_>) -> ErrorList {
    let (wanted, failed) = (device.field("bindingConditions"), device.field("bindingFailureConditions"));
    let mut errors = list(&wanted, CONDITIONS_MAX, labels);
    errors.extend(list(&failed, CONDITIONS_MAX, labels));
    let mut seen = std::collections::BTreeSet::new();
    for condition in wanted.items() {
        if !seen.insert(condition.text().to_owned()) {
            errors.push(condition.duplicate());
        }
    }
    let mut seen_failed = std::collections::BTreeSet::new();
    for condition in failed.items() {
        if !seen_failed.insert(condition.text().to_owned()) {
            errors.push(condition.duplicate());
        }
        if seen.contains(condition.text()) {
            errors.push(condition.invalid("bindingFailureConditions must not overlap with bindingConditions"));
        }
    }
    let null = |field: &FieldRef<'_>, why: &str| {
        Error::invalid(field.path(), field.value().cloned().unwrap_or(Value::Null), why)
    };
    if wanted.is_empty() && !failed.is_empty() {
        errors.push(null(&wanted, "bindingConditions are required to use bindingFailureConditions"));
    }
    if failed.is_empty() && !wanted.is_empty() {
        errors.push(null(&failed, "bindingFailureConditions are required to use bindingConditions"));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meta::gate::Gates;
    use crate::value::yaml;

    /// The errors of a slice with the gates enabled that it needs.
    #[track_caller]
    fn check(rest: &str, expect: &[&str]) {
        let gates = "DRAPartitionableDevicesType=true,DRAOptionalNodeOperations=true,DRANodeAllocatableResources=true,\
                     DRAListTypeAttributes=true";
        let gates = Gates::parse(gates, Minor::NEWEST).expect("they are known");
        let text = format!(
            "{{driver: a.b, nodeName: worker, pool: {{name: p, generation: 1, resourceSliceCount: 1}}, {rest}}}"
        );
        let spec = yaml::decode(text.as_bytes()).expect("the test is YAML");
        let errors = validate(Minor::NEWEST.with_gates(gates), &FieldRef::root(&spec), None);
        assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), expect);
    }

    #[test]
    fn the_fields_that_came_with_markers_are_checked_by_them() {
        check("partitionTypeAttribute: a.b/c, skipNodeOperations: ['*']", &[]);
        check(
            "partitionTypeAttribute: c, skipNodeOperations: [Other, Other]",
            &[
                r#"partitionTypeAttribute: Invalid value: "c": a fully qualified name must be a domain and a name separated by a slash"#,
                r#"skipNodeOperations[1]: Duplicate value: "Other""#,
                r#"skipNodeOperations[0]: Unsupported value: "Other": supported values: "*", "NodePrepareResources", "NodeUnprepareResources""#,
                r#"skipNodeOperations[1]: Unsupported value: "Other": supported values: "*", "NodePrepareResources", "NodeUnprepareResources""#,
            ],
        );
        check(
            "devices: [{name: d, nodeAllocatableResources: {cpu: {mapping: {}}, memory: {mapping: {deviceMultiplier: '1'}}}}]",
            &[
                r#"devices[0].nodeAllocatableResources[cpu].mapping: Invalid value: "": must specify one of: `capacityKey`, `deviceMultiplier`"#,
            ],
        );
        check(
            "devices: [{name: d, consumesCounters: [{counterSet: s, counters: {a: {value: '1'}}, compatibilityGroups: [a, B, c]}]}]",
            &["devices[0].consumesCounters[0].compatibilityGroups: Too many: 3: must have at most 2 items"],
        );
    }

    #[test]
    fn an_attribute_has_one_value_or_one_list_of_values() {
        check("devices: [{name: d, attributes: {a: {ints: [1, 1]}, b: {versions: [1.0.0]}, c: {bools: [true]}}}]", &[]);
        let long = "x".repeat(VALUE_BYTES_MAX + 1);
        check(
            &format!(
                "devices: [{{name: d, attributes: {{a: {{ints: []}}, b: {{strings: [a, {long}]}}, c: {{versions: [b]}}, \
                 d: {{int: 1, bools: [true]}}}}}}]"
            ),
            &[
                r#"devices[0].attributes[a].ints: Invalid value: []: must not be empty if specified"#,
                r#"devices[0].attributes[b].strings[1]: Too long: may not be more than 64 bytes"#,
                r#"devices[0].attributes[c].versions[0]: Invalid value: "b": must be a string compatible with semver.org spec 2.0.0"#,
                r#"devices[0].attributes[d]: Invalid value: {"IntValue":1,"BoolValue":null,"StringValue":null,"VersionValue":null,"IntValues":null,"BoolValues":[true],"StringValues":null,"VersionValues":null}: exactly one value must be specified"#,
            ],
        );
    }

    #[test]
    fn each_item_of_a_list_is_a_value_of_the_device() {
        let values = |count: usize| vec!["1"; count].join(", ");
        let device = |name: &str, count: usize| {
            format!("{{name: {name}, attributes: {{a: {{int: 1}}, b: {{ints: [{}]}}}}}}", values(count))
        };
        check(&format!("devices: [{}]", device("d", ATTRIBUTE_VALUES_MAX - 1)), &[]);
        check(
            &format!("devices: [{}]", device("d", ATTRIBUTE_VALUES_MAX)),
            &["devices[0]: Invalid value: 49: the total number of attribute values must not exceed 48"],
        );
        let devices: Vec<_> = (0..=SPECIAL_DEVICES_MAX).map(|at| device(&format!("d{at}"), 1)).collect();
        check(&format!("devices: [{}]", devices.join(", ")), &["devices: Too many: 65: must have at most 64 items"]);
    }
}
