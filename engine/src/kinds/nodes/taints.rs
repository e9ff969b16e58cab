//! Validation of a node's taints.
//!
//! Input: the taints, from the spec or from an annotation. Output: field errors.
//!
//! Source: `validateNodeTaints` of `pkg/apis/core/validation`, release 1.36.

use std::collections::BTreeSet;

use crate::meta::field::{Error, ErrorList, Path};
use crate::meta::names;
use crate::value::{Value, json};

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// The errors of `taints` at `path`.
pub fn validate(taints: &[Value], path: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen = BTreeSet::new();
    for (index, taint) in taints.iter().enumerate() {
        let path = path.index(index);
        let text = |name: &str| taint.str_at(&[name]);
        let (key, value, effect) = (text("key"), text("value"), text("effect"));
        let faults = names::is_qualified_name(key).into_iter();
        errors.extend(faults.map(|fault| Error::invalid(&path.child("key"), key, fault)));
        let faults = names::is_valid_label_value(value);
        if !faults.is_empty() {
            errors.push(Error::invalid(&path.child("value"), value, faults.join(";")));
        }
        match effect {
            "" => errors.push(Error::required(&path.child("effect"), "")),
            _ if !EFFECTS.contains(&effect) => {
                errors.push(Error::not_supported(&path.child("effect"), effect, &EFFECTS));
            }
            _ => {}
        }
        if !seen.insert((effect, key)) {
            let added = taint.get("timeAdded").unwrap_or(&Value::Null);
            let shown = show(&[
                ("Key", Value::from(key)),
                ("Value", Value::from(value)),
                ("Effect", Value::from(effect)),
                ("TimeAdded", added.clone()),
            ]);
            let mut error = Error::duplicate(&path, Value::Null).shown_as(shown);
            error.detail = "taints must be unique by key and effect pair".to_owned();
            errors.push(error);
        }
    }
    errors
}

/// Formats a struct as field errors show it, with the names of Go's internal types.
pub fn show(fields: &[(&str, Value)]) -> String {
    let fields = fields.iter().map(|(name, value)| format!("\"{name}\":{}", json::encode_to_string(value)));
    format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
}
