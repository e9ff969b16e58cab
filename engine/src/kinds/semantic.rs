//! Whether two values mean the same: an empty list or map is none at all, and quantities are numbers.
//!
//! In: objects in the form that their types give them. Source: `apimachinery/pkg/api/equality`.

use crate::meta::quantity::Quantity;
use crate::value::{Map, Value};
use crate::work;

/// Maps of texts: an empty one is the same as none, which does not hold of structs.
const MAPS: [&str; 7] =
    ["annotations", "labels", "matchLabels", "nodeSelector", "options", "parameters", "volumeAttributes"];
/// Maps of quantities.
const QUANTITIES: [&str; 6] = ["allocatable", "allocatedResources", "capacity", "limits", "overhead", "requests"];
/// Quantities themselves.
const QUANTITY: [&str; 2] = ["divisor", "sizeLimit"];

/// Whether two values of the field `name` mean the same.
pub fn equal(name: &str, left: Option<&Value>, right: Option<&Value>) -> bool {
    work::step();
    match (present(name, left), present(name, right)) {
        (None, None) => true,
        (Some(left), Some(right)) => equal_values(name, left, right),
        _ => false,
    }
}

/// The value, unless it is the same as nothing.
fn present<'v>(name: &str, value: Option<&'v Value>) -> Option<&'v Value> {
    let is_map = || MAPS.contains(&name) || QUANTITIES.contains(&name);
    value.filter(|value| match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty() || !is_map(),
        _ => true,
    })
}

fn equal_values(name: &str, left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| equal_values("", left, right))
        }
        (Value::Object(left), Value::Object(right)) if QUANTITIES.contains(&name) => equal_quantities(left, right),
        (Value::Object(left), Value::Object(right)) => equal_fields(left, right),
        (Value::String(left), Value::String(right)) if QUANTITY.contains(&name) => equal_numbers(left, right),
        _ => left == right,
    }
}

fn equal_fields(left: &Map, right: &Map) -> bool {
    left.iter().all(|(name, value)| equal(name, Some(value), right.get(name)))
        && right.iter().all(|(name, value)| left.contains_key(name) || equal(name, None, Some(value)))
}

fn equal_quantities(left: &Map, right: &Map) -> bool {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    left.len() == right.len()
        && left.iter().all(|(name, value)| {
            work::step();
            right.get(name).is_some_and(|other| equal_numbers(&text(value), &text(other)))
        })
}

fn equal_numbers(left: &str, right: &str) -> bool {
    left == right || matches!((Quantity::parse(left), Quantity::parse(right)), (Ok(left), Ok(right)) if left == right)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    #[test]
    fn nothing_is_an_empty_list_and_an_empty_map_but_not_a_struct() {
        let check = |left: &str, right: &str| {
            let read = |text: &str| yaml::decode(text.as_bytes()).expect("YAML");
            equal("spec", Some(&read(left)), Some(&read(right)))
        };
        assert!(check("{args: [], nodeSelector: {}}", "{}"));
        assert!(check(
            "{limits: {memory: 1Gi}, emptyDir: {sizeLimit: '1'}}",
            "{limits: {memory: '1073741824'}, emptyDir: {sizeLimit: 1000m}}"
        ));
        assert!(!check("{securityContext: {}}", "{}"));
        assert!(!check("{limits: {memory: 1Gi}}", "{limits: {memory: 1Gi, cpu: '1'}}"));
        assert!(!check("{labels: {a: b}}", "{labels: {a: c}}"));
    }
}
