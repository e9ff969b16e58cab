//! The admission plugin RuntimeClass: the overhead and the scheduling of a pod's runtime class.
//!
//! Source: `plugin/pkg/admission/runtimeclass`.

use thiserror::Error;

use crate::kinds::semantic;
use crate::value::Value;
use crate::work;

/// Why a pod is forbidden.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RuntimeClassError {
    /// Its overhead is another than that of its class.
    #[error("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")]
    Mismatch,
    /// It has an overhead, and its class has none.
    #[error("pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")]
    WithoutClass,
    /// It selects other nodes than its class.
    #[error("conflict: runtimeClass.scheduling.nodeSelector[{key}] = {of_class}; pod.spec.nodeSelector[{key}] = {own}")]
    NodeSelector {
        /// The label.
        key: String,
        /// Its value in the class.
        of_class: String,
        /// Its value in the pod.
        own: String,
    },
}

/// The name of the class that a new pod names.
pub fn name(pod: &Value) -> Option<&str> {
    pod.at(&["spec", "runtimeClassName"]).and_then(Value::as_str)
}

/// Why a pod is forbidden whose class is not there.
pub fn not_found(name: &str) -> String {
    format!("pod rejected: RuntimeClass {} not found", crate::value::go_quote(name))
}

/// Applies the class to a new pod.
///
/// # Errors
///
/// Why it is forbidden.
pub fn admit(pod: &mut Value, class: Option<&Value>) -> Result<(), RuntimeClassError> {
    let Some(class) = class else { return Ok(()) };
    let spec = pod.make_object().entry("spec");
    if let Some(overhead) = class.get("overhead").filter(|overhead| !overhead.is_null()) {
        let fixed = overhead.get("podFixed");
        let own = spec.get("overhead");
        let has_own = own.and_then(Value::as_object).is_some_and(|own| !own.is_empty());
        if has_own && !semantic::equal("overhead", own, fixed) {
            return Err(RuntimeClassError::Mismatch);
        }
        match fixed {
            Some(fixed) => _ = spec.make_object().insert("overhead", fixed.clone()),
            None => _ = spec.make_object().remove("overhead"),
        }
    }
    if let Some(scheduling) = class.get("scheduling").filter(|scheduling| !scheduling.is_null()) {
        select_nodes(spec, scheduling)?;
        merge_tolerations(spec, scheduling.items_at(&["tolerations"]));
    }
    Ok(())
}

fn select_nodes(spec: &mut Value, scheduling: &Value) -> Result<(), RuntimeClassError> {
    let Some(wanted) = scheduling.get("nodeSelector").and_then(Value::as_object) else { return Ok(()) };
    let selector = spec.make_object().entry("nodeSelector").make_object();
    for (key, value) in wanted.iter() {
        work::step();
        let (text, own) = (value.as_str().unwrap_or_default(), selector.get(key).and_then(Value::as_str));
        if let Some(own) = own.filter(|own| *own != text) {
            let (key, of_class, own) = (key.to_owned(), text.to_owned(), own.to_owned());
            return Err(RuntimeClassError::NodeSelector { key, of_class, own });
        }
        selector.insert(key, value.clone());
    }
    Ok(())
}

/// Adds tolerations to those of the spec of a pod, and leaves out what others tolerate as well.
pub(super) fn merge_tolerations(spec: &mut Value, more: &[Value]) {
    let all = [spec.items_at(&["tolerations"]), more].concat();
    let mut merged: Vec<Value> = Vec::new();
    for (index, toleration) in all.iter().enumerate() {
        let is_covered = |other: &Value| {
            work::step();
            covers(other, toleration)
        };
        let mut later = all.iter().skip(index + 1).filter(|later| *later != toleration);
        if !merged.iter().any(is_covered) && !later.any(is_covered) {
            merged.push(toleration.clone());
        }
    }
    if !merged.is_empty() {
        spec.make_object().insert("tolerations", Value::Array(merged));
    }
}

/// Whether all that `one` tolerates, `other` tolerates as well, and for as long.
pub(super) fn covers(other: &Value, one: &Value) -> bool {
    if other == one {
        return true;
    }
    let (text, other_text) = (|name: &str| one.str_at(&[name]), |name: &str| other.str_at(&[name]));
    let seconds = |toleration: &Value| toleration.get("tolerationSeconds").and_then(Value::as_i64);
    let operator = other_text("operator");
    let any_key = other_text("key").is_empty() && operator == "Exists";
    let lasts = match (other_text("effect"), seconds(other)) {
        ("NoExecute", Some(other)) => seconds(one).is_some_and(|one| one <= other),
        _ => true,
    };
    let fits = match operator {
        "Equal" | "" => text("operator") == "Equal" && text("value") == other_text("value"),
        "Exists" => true,
        _ => false,
    };
    let has_effect = other_text("effect").is_empty() || text("effect") == other_text("effect");
    (any_key || text("key") == other_text("key")) && has_effect && lasts && fits
}

/// Checks a new pod once others have changed it.
///
/// # Errors
///
/// Why it is forbidden.
pub fn validate(pod: &Value, class: Option<&Value>) -> Result<(), RuntimeClassError> {
    let own = pod.at(&["spec", "overhead"]).filter(|own| !own.is_null());
    match class.and_then(|class| class.get("overhead")).filter(|overhead| !overhead.is_null()) {
        Some(overhead) if !semantic::equal("overhead", overhead.get("podFixed"), own) => {
            Err(RuntimeClassError::Mismatch)
        }
        None if own.is_some() => Err(RuntimeClassError::WithoutClass),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    #[test]
    fn a_pod_takes_what_its_class_says() {
        let read = |text: &str| yaml::decode(text.as_bytes()).expect("YAML");
        let class =
            read("{overhead: {podFixed: {cpu: 100m}}, scheduling: {nodeSelector: {a: b}, tolerations: [{key: k}]}}");
        let mut pod = read("spec: {tolerations: [{key: k}]}");
        assert_eq!(admit(&mut pod, Some(&class)), Ok(()));
        assert_eq!(
            (pod.str_at(&["spec", "overhead", "cpu"]), pod.str_at(&["spec", "nodeSelector", "a"])),
            ("100m", "b")
        );
        assert_eq!(pod.items_at(&["spec", "tolerations"]).len(), 1);
        assert_eq!(validate(&pod, Some(&class)), Ok(()));
        assert!(validate(&pod, None).is_err());
        let told = admit(&mut read("spec: {nodeSelector: {a: c}}"), Some(&class));
        let conflict = "conflict: runtimeClass.scheduling.nodeSelector[a] = b; pod.spec.nodeSelector[a] = c";
        assert_eq!(told.map_err(|error| error.to_string()), Err(conflict.to_owned()));
        assert_eq!(admit(&mut read("spec: {overhead: {cpu: 200m}}"), Some(&class)), Err(RuntimeClassError::Mismatch));
    }
}
