//! How fast an autoscaler follows its metrics: the defaults of v2, and the annotation of v1.
//!
//! Source: `pkg/apis/autoscaling/v2/defaults.go` of Kubernetes 1.37. The annotation is the JSON of Go's internal type.

use crate::kinds::{defaults, show_internal};
use crate::object;
use crate::value::{Value, json};

const TYPE: &str = "autoscaling.v2.HorizontalPodAutoscalerBehavior";

/// The fields of the behavior, of its rules, and of their policies.
const BEHAVIOR: [&str; 2] = ["scaleUp", "scaleDown"];
const RULES: [&str; 4] = ["stabilizationWindowSeconds", "selectPolicy", "policies", "tolerance"];
const POLICY: [&str; 3] = ["type", "value", "periodSeconds"];

/// Sets what the rules in both directions leave out.
pub fn set_defaults(behavior: &mut Value) {
    let up = defaults::structure(behavior, "scaleUp");
    defaults::set_pointer(up, "stabilizationWindowSeconds", 0);
    set_rules(up, vec![policy("Pods", 4), policy("Percent", 100)]);
    set_rules(defaults::structure(behavior, "scaleDown"), vec![policy("Percent", 100)]);
}

/// Policies that were sent as an empty list are not policies, and not those by default.
pub fn keep_empty_policies(sent: &Value, decoded: &mut Value) {
    for name in BEHAVIOR {
        let path = ["spec", "behavior", name, "policies"];
        let is_empty = sent.at(&path).and_then(Value::as_array).is_some_and(<[Value]>::is_empty);
        if is_empty && let Some(policies) = decoded.at_mut(&path) {
            *policies = Value::Array(Vec::new());
        }
    }
}

fn set_rules(rules: &mut Value, policies: Vec<Value>) {
    defaults::set_pointer(rules, "selectPolicy", "Max");
    defaults::set_pointer(rules, "policies", Value::Array(policies));
}

fn policy(type_: &str, value: i64) -> Value {
    object! { "type" => type_, "value" => value, "periodSeconds" => 15 }
}

/// The behavior, as the annotation's text.
pub fn to_annotation(behavior: &Value) -> String {
    show_internal(TYPE, behavior)
}

/// The behavior of an annotation; `None` if it is malformed or empty.
pub fn from_annotation(text: &str) -> Option<Value> {
    let mut behavior = renamed(&json::decode(text.as_bytes()).ok()?, &BEHAVIOR)?;
    for name in BEHAVIOR {
        let Some(rules) = defaults::field(&mut behavior, name) else { continue };
        *rules = renamed(rules, &RULES)?;
        for policy in defaults::items(rules, "policies") {
            *policy = renamed(policy, &POLICY)?;
        }
    }
    let (package, name) = TYPE.rsplit_once('.')?;
    let (behavior, _) = crate::types::message_named(package, name).decode(&behavior).ok()?;
    behavior.as_object().is_some_and(|fields| !fields.is_empty()).then_some(behavior)
}

/// The known fields of a struct, which Go finds in any case of letters.
fn renamed(value: &Value, names: &[&str]) -> Option<Value> {
    let mut fields = object! {};
    for (name, value) in value.as_object()?.iter() {
        if let Some(known) = names.iter().find(|known| known.eq_ignore_ascii_case(name)).filter(|_| !value.is_null()) {
            fields.make_object().insert(*known, value.clone());
        }
    }
    Some(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_annotation_is_that_of_the_internal_type() {
        let mut behavior = object! { "scaleDown" => object! { "stabilizationWindowSeconds" => 300 } };
        set_defaults(&mut behavior);
        let text = to_annotation(&behavior);
        let expected = concat!(
            r#"{"ScaleUp":{"StabilizationWindowSeconds":0,"SelectPolicy":"Max","Policies":[{"Type":"Pods","Value":4,"#,
            r#""PeriodSeconds":15},{"Type":"Percent","Value":100,"PeriodSeconds":15}],"Tolerance":null},"#,
            r#""ScaleDown":{"StabilizationWindowSeconds":300,"SelectPolicy":"Max","Policies":[{"Type":"Percent","Value":100,"#,
            r#""PeriodSeconds":15}],"Tolerance":null}}"#,
        );
        assert_eq!(text, expected);
        assert_eq!(from_annotation(&text), Some(behavior));
        assert_eq!(from_annotation("{}"), None);
        assert_eq!(from_annotation("x"), None);
    }
}
