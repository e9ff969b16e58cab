//! The contents of the markers of the types of 1.37.

use super::*;
use crate::types::structs;

/// The packages whose kinds are validated by their markers alone.
const CHECKED: [&str; 4] = ["scheduling.v1alpha3", "scheduling.v1beta1", "lifecycle.v1alpha1", "resource.v1alpha3"];

#[test]
fn every_marker_of_the_kinds_that_are_checked_so_is_known() {
    /// Markers about the merging and the keys of lists, and those that the reference does not enforce.
    const ELSEWHERE: [&str; 8] = [
        "+k8s:listType=map",
        "+k8s:unique=map",
        "+k8s:listType=atomic",
        "+k8s:listMapKey=",
        "+k8s:alpha(",
        "+k8s:beta(",
        "+k8s:opaqueType",
        "+k8s:supportsSubresource",
    ];
    let mut seen = 0;
    for field in CHECKED.into_iter().flat_map(structs).flat_map(|named| named.message().fields) {
        let words: Vec<&str> = field.markers.split(' ').filter(|word| !word.is_empty()).collect();
        let known = Marker::all(field.markers).len();
        let elsewhere = words.iter().filter(|word| ELSEWHERE.iter().any(|start| word.starts_with(start))).count();
        assert_eq!(known + elsewhere, words.len(), "{}: {}", field.json, field.markers);
        seen += known;
    }
    assert!(seen > 200, "{seen}");
}

#[test]
fn every_form_of_the_kinds_that_are_checked_so_is_known() {
    for field in CHECKED.into_iter().flat_map(structs).flat_map(|named| named.message().fields) {
        for marker in Marker::all(field.markers) {
            let Rule::Format(form) = marker.rule else { continue };
            assert!(!format::faults(form, &FieldRef::root(&Value::from("%"))).is_empty(), "{form}");
        }
    }
}

#[test]
fn every_rule_that_a_marker_only_names_is_written() {
    let mut seen = 0;
    for named in CHECKED.into_iter().flat_map(structs) {
        let message = named.message();
        for field in message.fields {
            if Marker::all(field.markers).iter().any(|marker| marker.rule == Rule::Custom) {
                assert!(custom::rule_of(message, field).is_some(), "{}.{}", message.name, field.json);
                seen += 1;
            }
        }
    }
    assert_eq!(seen, 1);
}

#[test]
fn one_field_of_a_struct_is_checked_alone() {
    let spec = crate::types::message_named("core.v1", "NodeSpec");
    let told = |object: &Value| {
        // As with the gate enabled, which the marker requires.
        let gates = "InPlacePodVerticalScalingSchedulerPreemption=true";
        let gates = crate::meta::gate::Gates::parse(gates, Minor::NEWEST).expect("it is known");
        let minor = Minor::NEWEST.with_gates(gates);
        let errors = validate_field(spec, "podPreemptionPolicy", &FieldRef::root(object), None, minor);
        errors.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let list = |keys: &[&str]| -> Value { Value::Array(keys.iter().map(|key| Value::from(*key)).collect()) };
    let policy = |keys: &[&str]| -> Value {
        crate::object! { "podPreemptionPolicy" => crate::object! { "disableResizePreemption" => list(keys) } }
    };
    assert_eq!(told(&policy(&["a.b/c", "d"])), [""; 0]);
    let errors = told(&policy(&["a", "a", "-"]));
    let malformed = "podPreemptionPolicy.disableResizePreemption[2]: Invalid value: \"-\": ";
    assert!(errors[0].starts_with(malformed), "{errors:?}");
    assert_eq!(
        errors.last().map(String::as_str),
        Some("podPreemptionPolicy.disableResizePreemption[1]: Duplicate value: \"a\"")
    );
    assert_eq!(told(&crate::object! {}), [""; 0]);
}
