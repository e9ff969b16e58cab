//! Requests for devices: the spec of claims and of their templates.

use crate::kinds::features::{self, Feature};
use crate::kinds::{declared, defaults};
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::gate::Gate;
use crate::meta::minor::Minor;
use crate::meta::names;
use crate::types;
use crate::value::Value;

use super::names::Requests;
use super::{CONFIGS_MAX, REQUESTS_MAX, by_name, by_text, configuration, list, qualified_name, request_reference};
use super::{selectors, set, taint};

const CONSTRAINTS_MAX: usize = 32;
const ALTERNATIVES_MAX: usize = 8;
const ALL: &str = "All";
const EXACT_COUNT: &str = "ExactCount";

/// In the shape of v1.
const FEATURES: [Feature; 5] = [
    Feature::new(Gate::DraPrioritizedList, &["requests.*.firstAvailable"]),
    Feature::new(Gate::DraAdminAccess, &["requests.*.exactly.adminAccess"]),
    Feature::new(Gate::DraDeviceTaints, &["requests.*.exactly.tolerations", "requests.*.firstAvailable.*.tolerations"]),
    Feature::new(
        Gate::DraConsumableCapacity,
        &["requests.*.exactly.capacity", "requests.*.firstAvailable.*.capacity", "constraints.*.distinctAttribute"],
    ),
    Feature::new(
        Gate::DraDerivedAttributes,
        &["requests.*.exactly.derivedAttributes", "requests.*.firstAvailable.*.derivedAttributes"],
    ),
];

/// Takes the fields of features whose gates are shut out of a `DeviceClaim` in the shape of v1.
pub fn drop_disabled(minor: Minor, devices: Option<&mut Value>, old: Option<&Value>) {
    if let Some(devices) = devices {
        features::drop_fields(&FEATURES, minor, devices, old);
    }
}

/// Whether a `DeviceClaim` in the shape of v1 has fields of a feature.
pub fn uses(gate: Gate, devices: Option<&Value>) -> bool {
    let mut of_gate = FEATURES.iter().filter(|feature| feature.gate == gate);
    of_gate.any(|feature| devices.is_some_and(|devices| feature.is_used(devices)))
}

/// Sets what Go sets in a `DeviceClaim`; in the oldest shape, a request with a class is what `exactly` is in others.
pub fn set_defaults(claim: &mut Value, is_oldest: bool) {
    for request in defaults::items(claim, "requests") {
        if is_oldest {
            set_tolerations(request);
            if !request.str_at(&["deviceClassName"]).is_empty() {
                set_count(request);
            }
        } else if let Some(exactly) = defaults::field(request, "exactly") {
            set_tolerations(exactly);
            set_count(exactly);
        }
        for alternative in defaults::items(request, "firstAvailable") {
            set_tolerations(alternative);
            set_count(alternative);
        }
    }
}

fn set_tolerations(request: &mut Value) {
    defaults::items(request, "tolerations").for_each(|toleration| defaults::set(toleration, "operator", "Equal"));
}

fn set_count(request: &mut Value) {
    defaults::set(request, "allocationMode", EXACT_COUNT);
    let is_exact = request.str_at(&["allocationMode"]) == EXACT_COUNT;
    let count = request.make_object().entry("count");
    if is_exact && matches!(count, Value::Null | Value::Int(0)) {
        *count = Value::Int(1);
    } else if count.is_null() {
        request.make_object().remove("count");
    }
}

/// The errors of a `DeviceClaim`.
pub fn validate(minor: Minor, claim: &FieldRef<'_>) -> ErrorList {
    let known = Requests::of(claim.value().unwrap_or(&Value::Null));
    let mut errors = set(&claim.field("requests"), REQUESTS_MAX, by_name, |request| validate_request(minor, request));
    let constraint = |field: &FieldRef<'_>| validate_constraint(field, &known);
    errors.extend(list(&claim.field("constraints"), CONSTRAINTS_MAX, constraint));
    errors.extend(list(&claim.field("config"), CONFIGS_MAX, |config| validate_config(config, &known)));
    errors
}

/// The setup of some requests.
pub fn validate_config(config: &FieldRef<'_>, known: &Requests) -> ErrorList {
    let reference = |field: &FieldRef<'_>| request_reference(field, known);
    let mut errors = set(&config.field("requests"), REQUESTS_MAX, by_text, reference);
    errors.extend(configuration(config, false));
    errors
}

fn validate_name(request: &FieldRef<'_>) -> ErrorList {
    let name = request.field("name");
    names::is_dns1123_label(name.text()).into_iter().map(|fault| name.invalid(fault)).collect()
}

fn validate_request(minor: Minor, request: &FieldRef<'_>) -> ErrorList {
    let mut errors = validate_name(request);
    let (alternatives, exactly) = (request.field("firstAvailable"), request.field("exactly"));
    match (!alternatives.is_empty(), exactly.is_set()) {
        (false, false) => {
            errors.push(request.required("exactly one of `exactly` or `firstAvailable` is required"));
        }
        (true, true) => {
            let why = "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set";
            errors.push(Error::invalid(request.path(), Value::Null, why));
        }
        (true, false) => errors.extend(set(&alternatives, ALTERNATIVES_MAX, by_name, |alternative| {
            let mut errors = validate_name(alternative);
            errors.extend(validate_devices(minor, alternative));
            errors
        })),
        (false, true) => errors.extend(validate_devices(minor, &exactly)),
    }
    errors
}

/// Which devices, and how many.
fn validate_devices(minor: Minor, request: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let class = request.field("deviceClassName");
    match class.text() {
        "" => errors.push(class.required("")),
        name => errors.extend(names::is_dns1123_subdomain(name).into_iter().map(|fault| class.invalid(fault))),
    }
    errors.extend(selectors(minor, &request.field("selectors"), false));
    let (mode, count) = (request.field("allocationMode"), request.field("count"));
    let invalid = |why: &str| Error::invalid(count.path(), count.int(), why);
    match mode.text() {
        ALL if count.int() != 0 => errors.push(invalid("must not be specified when allocationMode is 'All'")),
        ALL => {}
        EXACT_COUNT if count.int() <= 0 => errors.push(invalid("must be greater than zero")),
        EXACT_COUNT => {}
        _ => errors.push(mode.not_supported(&[ALL, EXACT_COUNT])),
    }
    for toleration in request.field("tolerations").items() {
        errors.extend(taint::toleration(&toleration));
    }
    let message = types::message_named("resource.v1", "ExactDeviceRequest");
    errors.extend(declared::validate_field(message, "derivedAttributes", request, None, minor));
    errors
}

fn validate_constraint(constraint: &FieldRef<'_>, known: &Requests) -> ErrorList {
    let reference = |field: &FieldRef<'_>| request_reference(field, known);
    let mut errors = set(&constraint.field("requests"), REQUESTS_MAX, by_text, reference);
    let (matched, distinct) = (constraint.field("matchAttribute"), constraint.field("distinctAttribute"));
    if matched.is_set() {
        errors.extend(qualified_name(&matched, matched.text(), true));
    } else if distinct.is_set() {
        errors.extend(qualified_name(&distinct, distinct.text(), true));
    } else {
        let why = "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, but multiple fields are set";
        errors.push(constraint.required(why));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    #[test]
    fn derived_attributes_are_checked_by_their_markers() {
        let claim = "requests:\n- name: r\n  exactly:\n    deviceClassName: c\n    allocationMode: All\n    \
                     derivedAttributes: [{name: a.b/c, expression: '1'}, {name: c}]";
        let claim = yaml::decode(claim.as_bytes()).expect("the test is YAML");
        let errors = validate(Minor::NEWEST, &FieldRef::root(&claim));
        assert_eq!(
            errors.iter().map(ToString::to_string).collect::<Vec<_>>(),
            [
                "requests[0].exactly.derivedAttributes[1].name: Invalid value: \"c\": a fully qualified name must be a domain and a name separated by a slash",
                "requests[0].exactly.derivedAttributes[1].expression: Required value",
            ]
        );
    }
}
