//! The changes of the object: what was defaulted, pruned, and mutated by policies.

use super::diff::{Line, lines};
use super::shown::{SHOWN_MAX, shortened};
use crate::author::policies::admit::Admitted;
use crate::author::suite::Case;
use crate::object;
use crate::value::{Value, json, yaml};
use crate::work;

/// The object as written and as the server would store it, as lines of a diff; null without a verdict.
pub fn show(case: Option<&Case>, admitted: Option<&Admitted>) -> Value {
    let (Some(case), Some(admitted)) = (case, admitted) else { return Value::Null };
    let (before, after) = (&case.object, &admitted.checked.object);
    let mut changes = Vec::new();
    compare("", Some(before), Some(after), &mut changes);
    let shown = |Line { mark, text }: Line<'_>| object! { "mark" => mark, "text" => shortened(text) };
    object! {
        "isMutated" => admitted.is_mutated,
        "changes" => changes,
        "lines" => lines(&yaml::encode(before), &yaml::encode(after)).into_iter().map(shown).collect::<Vec<_>>(),
    }
}

/// Collects the paths at which two values differ, up to the number that is shown.
fn compare(path: &str, before: Option<&Value>, after: Option<&Value>, changes: &mut Vec<Value>) {
    work::step();
    if changes.len() >= SHOWN_MAX {
        return;
    }
    match (before, after) {
        (Some(Value::Object(one)), Some(Value::Object(other))) => {
            let added = other.keys().filter(|name| one.get(name).is_none());
            for name in one.keys().chain(added) {
                let path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
                compare(&path, one.get(name), other.get(name), changes);
            }
        }
        (Some(Value::Array(one)), Some(Value::Array(other))) if one.len() == other.len() => {
            for (index, (one, other)) in one.iter().zip(other).enumerate() {
                compare(&format!("{path}[{index}]"), Some(one), Some(other), changes);
            }
        }
        (before, after) if before == after => {}
        (before, after) => {
            let (change, value) = match (before, after) {
                (None, Some(value)) => ("added", value),
                (Some(value), None) => ("removed", value),
                (_, value) => ("changed", value.unwrap_or(&Value::Null)),
            };
            let value = shortened(&json::encode_to_string(value));
            changes.push(object! { "change" => change, "field" => path, "value" => value });
        }
    }
}
