//! The changes allowed in a pod with scheduling gates: to its node selection.
//!
//! Source: `ValidatePodUpdate`, `validateNodeSelectorMutation` and `validateNodeAffinityMutation`.

use crate::kinds::{semantic, show_internal};
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::value::Value;

use super::keep;

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";

/// The errors of the node selection of a gated pod. In `munged`, the selection is reset to the old one.
pub fn validate(spec: &FieldRef<'_>, old: &Value, munged: &mut Value) -> ErrorList {
    let mut errors = ErrorList::new();
    if !semantic::equal("nodeSelector", munged.get("nodeSelector"), old.get("nodeSelector")) {
        errors.extend(validate_selector(&spec.field("nodeSelector"), old));
        keep(munged, old, "nodeSelector");
    }
    let affinity = spec.field("affinity");
    let (new_affinity, old_affinity) = (affinity.field("nodeAffinity"), old.at(&["affinity", "nodeAffinity"]));
    if !semantic::equal("nodeAffinity", new_affinity.value(), old_affinity) {
        errors.extend(validate_affinity(&new_affinity, old_affinity));
        restore_affinity(munged, old);
    }
    errors
}

/// Labels may be added to a selector.
fn validate_selector(selector: &FieldRef<'_>, old: &Value) -> Option<Error> {
    let before = old.get("nodeSelector").and_then(Value::as_object)?;
    let stays = |key: &str, value: &Value| selector.value().and_then(|selector| selector.get(key)) == Some(value);
    let all_stay = before.iter().all(|(key, value)| stays(key, value));
    let shown = selector.value().cloned().unwrap_or(Value::Null);
    let why = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
    (!all_stay).then(|| Error::invalid(selector.path(), shown, why))
}

/// Requirements may be added to the terms that there are.
fn validate_affinity(new: &FieldRef<'_>, old: Option<&Value>) -> ErrorList {
    let old_terms = old.map(|old| old.items_at(&[REQUIRED, "nodeSelectorTerms"])).unwrap_or_default();
    let required = new.field(REQUIRED);
    let terms = required.field("nodeSelectorTerms");
    let show = |term: Option<&Value>| show_internal("core.v1.NodeSelectorTerm", term.unwrap_or(&Value::Null));
    if !old_terms.is_empty() && old_terms.len() != terms.len() {
        let why = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        let shown: Vec<String> = terms.items().map(|term| show(term.value())).collect();
        let shown = if terms.is_set() { format!("[{}]", shown.join(",")) } else { "null".to_owned() };
        return terms.invalid(why).shown_as(shown).into();
    }
    let mut errors = ErrorList::new();
    for (term, old_term) in terms.items().zip(old_terms) {
        if !only_adds(&term, old_term) {
            let why = "only additions are allowed (no mutations or deletions)";
            errors.push(term.invalid(why).shown_as(show(term.value())));
        }
    }
    errors
}

/// Whether a term contains everything that the old one had; if that selected nothing, it must be empty.
fn only_adds(term: &FieldRef<'_>, old: &Value) -> bool {
    let new = |name: &str| term.value().map(|term| term.items_at(&[name])).unwrap_or_default();
    let names = ["matchExpressions", "matchFields"];
    if names.iter().all(|name| old.items_at(&[name]).is_empty()) {
        return names.iter().all(|name| new(name).is_empty());
    }
    names.iter().all(|name| {
        let (new, old) = (new(name), old.items_at(&[name]));
        let equal = |(new, old): (&Value, &Value)| semantic::equal("", Some(new), Some(old));
        new.len() >= old.len() && new.iter().zip(old).all(equal)
    })
}

/// Restores the old node affinity; removes the whole affinity if there was none and no other kind is set.
fn restore_affinity(munged: &mut Value, old: &Value) {
    let before = old.at(&["affinity", "nodeAffinity"]);
    let has_affinity = |spec: &Value| spec.get("affinity").is_some_and(|affinity| !affinity.is_null());
    let has = |name: &str| munged.at(&["affinity", name]).is_some_and(|affinity| !affinity.is_null());
    if has_affinity(munged) && !has_affinity(old) && !has("podAffinity") && !has("podAntiAffinity") {
        munged.make_object().remove("affinity");
        return;
    }
    let affinity = munged.make_object().entry("affinity").make_object();
    match before {
        Some(before) => _ = affinity.insert("nodeAffinity", before.clone()),
        None => _ = affinity.remove("nodeAffinity"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    fn check(old: &str, new: &str) -> (String, bool) {
        let read = |text: &str| yaml::decode(format!("spec: {text}").as_bytes()).expect("YAML");
        let (old, new) = (read(old), read(new));
        let (root, old) = (FieldRef::root(&new), old.get("spec").expect("it is there"));
        let spec = root.field("spec");
        let mut munged = spec.value().cloned().unwrap_or_default();
        let errors = validate(&spec, old, &mut munged);
        (errors.aggregate(), semantic::equal("spec", Some(&munged), Some(old)))
    }

    #[test]
    fn nodes_may_be_selected_more_narrowly() {
        assert_eq!(check("{nodeSelector: {a: b}}", "{nodeSelector: {a: b, c: d}}"), (String::new(), true));
        assert_eq!(
            check("{nodeSelector: {a: b}}", "{nodeSelector: {c: d}}").0,
            r#"spec.nodeSelector: Invalid value: {"c":"d"}: only additions to spec.nodeSelector are allowed (no mutations or deletions)"#
        );
        let affinity =
            |terms: &str| format!("{{affinity: {{nodeAffinity: {{{REQUIRED}: {{nodeSelectorTerms: {terms}}}}}}}}}");
        let a = "{key: a, operator: Exists}";
        let one = affinity(&format!("[{{matchExpressions: [{a}]}}]"));
        assert_eq!(check("{}", &one), (String::new(), true));
        assert_eq!(check(&one, &affinity(&format!("[{{matchExpressions: [{a}, {a}]}}]"))), (String::new(), true));
        let told = check(&one, &affinity(&format!("[{{matchFields: [{a}]}}]"))).0;
        assert!(told.ends_with("only additions are allowed (no mutations or deletions)"), "{told}");
        let told = check(&one, "{affinity: {}}");
        assert!(told.0.ends_with("nodeSelectorTerms: Invalid value: null: no additions/deletions to non-empty NodeSelectorTerms list are allowed"), "{}", told.0);
        assert!(told.1);
    }
}
