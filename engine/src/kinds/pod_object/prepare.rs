//! What the server sets in a pod before it is validated: status, generation, and what follows from labels and gates.
//!
//! Source: `PrepareForCreate` and `PrepareForUpdate` of the strategies in `pkg/registry/core/pod`.

use std::collections::{HashMap, VecDeque};

use crate::kinds::{pod as template, semantic};
use crate::meta::minor::Minor;
use crate::object;
use crate::value::Value;
use crate::work;

use super::conditions::{self, Condition};
use super::{app_armor, keep, qos};

/// Pods count their changes since then.
const FIRST_WITH_GENERATIONS: Minor = Minor::of(33);

/// A new pod. `now` is RFC 3339.
pub fn create(minor: Minor, pod: &mut Value, now: &str) {
    // First, as the class does not follow from fields of features that are off.
    template::drop_disabled_pod_fields(minor, pod, None);
    // A class that is sent stays.
    let class = qos::class(pod).to_owned();
    pod.make_object().remove("status");
    let fields = pod.make_object();
    if minor >= FIRST_WITH_GENERATIONS {
        fields.entry("metadata").make_object().insert("generation", Value::Int(1));
    }
    fields.insert("status", object! { "phase" => "Pending", "qosClass" => class });
    set_gated(pod, now);
    apply_label_keys(minor, pod);
    app_armor::apply_annotations(pod);
}

/// A changed pod: its status stays.
pub fn update(minor: Minor, new: &mut Value, old: &Value) {
    keep(new, old, "status");
    template::drop_disabled_pod_fields(minor, new, Some(old));
    raise_generation(minor, new, old);
}

/// A changed status: everything else stays, except for labels, annotations and finalizers.
pub fn update_status(minor: Minor, new: &mut Value, old: &Value) {
    keep(new, old, "spec");
    let null = Value::Null;
    let metadata = new.make_object().entry("metadata");
    keep(metadata, old.get("metadata").unwrap_or(&null), "ownerReferences");
    metadata.make_object().remove("deletionTimestamp");
    let status = new.make_object().entry("status");
    if status.str_at(&["qosClass"]).is_empty() {
        keep(status, old.get("status").unwrap_or(&null), "qosClass");
    }
    keep_observed_generations(new, old);
    template::drop_disabled_pod_fields(minor, new, Some(old));
}

/// Raises the generation if the spec has changed.
pub fn raise_generation(minor: Minor, new: &mut Value, old: &Value) {
    if minor >= FIRST_WITH_GENERATIONS && !semantic::equal("spec", new.get("spec"), old.get("spec")) {
        let metadata = new.make_object().entry("metadata").make_object();
        let generation = metadata.get("generation").and_then(Value::as_i64).unwrap_or_default();
        metadata.insert("generation", Value::Int(generation.saturating_add(1)));
    }
}

/// Sets the condition of a gated pod.
fn set_gated(pod: &mut Value, now: &str) {
    if pod.items_at(&["spec", "schedulingGates"]).is_empty() {
        return;
    }
    let condition = Condition {
        kind: conditions::SCHEDULED,
        status: "False",
        reason: "SchedulingGated",
        message: "Scheduling is blocked due to non-empty scheduling gates",
    };
    conditions::set(pod, &condition, now);
}

/// Adds the values of the pod's labels to the selectors that name their keys.
fn apply_label_keys(minor: Minor, pod: &mut Value) {
    let labels = pod.at(&["metadata", "labels"]).cloned().unwrap_or_default();
    let Some(spec) = pod.get_mut("spec") else { return };
    for affinity in ["podAffinity", "podAntiAffinity"] {
        let Some(affinity) = spec.at_mut(&["affinity", affinity]) else { continue };
        for term in items_mut(affinity, "preferredDuringSchedulingIgnoredDuringExecution") {
            if let Some(term) = term.get_mut("podAffinityTerm") {
                apply_to(term, &labels);
            }
        }
        items_mut(affinity, "requiredDuringSchedulingIgnoredDuringExecution").for_each(|term| apply_to(term, &labels));
    }
    if !template::merges_label_keys(minor) {
        return;
    }
    items_mut(spec, "topologySpreadConstraints").for_each(|constraint| apply_to(constraint, &labels));
}

fn items_mut<'v>(object: &'v mut Value, name: &str) -> impl Iterator<Item = &'v mut Value> {
    let items = match object.get_mut(name) {
        Some(Value::Array(items)) => items.as_mut_slice(),
        _ => &mut [],
    };
    items.iter_mut()
}

fn apply_to(term: &mut Value, labels: &Value) {
    if term.get("labelSelector").is_none_or(Value::is_null) {
        return;
    }
    let mut added = Vec::new();
    for (keys, operator) in [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")] {
        for key in term.items_at(&[keys]).iter().filter_map(Value::as_str) {
            work::step();
            if let Some(value) = labels.get(key) {
                let values = Value::Array(vec![value.clone()]);
                added.push(object! { "key" => key, "operator" => operator, "values" => values });
            }
        }
    }
    if added.is_empty() {
        return;
    }
    let selector = term.make_object().entry("labelSelector").make_object();
    match selector.entry("matchExpressions") {
        Value::Array(expressions) => expressions.extend(added),
        none => *none = Value::Array(added),
    }
}

/// Keeps observed generations that a client leaves out.
fn keep_observed_generations(new: &mut Value, old: &Value) {
    let generation = |value: &Value| value.get("observedGeneration").and_then(Value::as_i64).unwrap_or_default();
    let null = Value::Null;
    let (status, old_status) = (new.make_object().entry("status"), old.get("status").unwrap_or(&null));
    if generation(status) == 0 {
        keep(status, old_status, "observedGeneration");
    }
    let mut before: HashMap<&str, VecDeque<i64>> = HashMap::new();
    for condition in old_status.items_at(&["conditions"]) {
        before.entry(condition.str_at(&["type"])).or_default().push_back(generation(condition));
    }
    for condition in items_mut(status, "conditions") {
        work::step();
        let known = before.get_mut(condition.str_at(&["type"])).and_then(VecDeque::pop_front);
        if let Some(known) = known.filter(|known| *known != 0 && generation(condition) == 0) {
            condition.make_object().insert("observedGeneration", Value::Int(known));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{json, yaml};

    fn read(text: &str) -> Value {
        yaml::decode(text.as_bytes()).expect("YAML")
    }

    #[test]
    fn selectors_get_the_values_of_labels() {
        let mut pod = read(
            "metadata: {labels: {a: b}}\nspec: {schedulingGates: [{name: g}], affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: \
             [{labelSelector: {}, matchLabelKeys: [a, x], mismatchLabelKeys: [a]}]}}, topologySpreadConstraints: [{matchLabelKeys: [a]}]}",
        );
        create(Minor::NEWEST, &mut pod, "2026-01-01T00:00:00Z");
        let affinity = pod.at(&["spec", "affinity", "podAffinity"]).expect("it is there");
        let term = &affinity.items_at(&["requiredDuringSchedulingIgnoredDuringExecution"])[0];
        assert_eq!(
            json::encode_to_string(&term.get("labelSelector").cloned().unwrap_or_default()),
            r#"{"matchExpressions":[{"key":"a","operator":"In","values":["b"]},{"key":"a","operator":"NotIn","values":["b"]}]}"#
        );
        assert!(pod.items_at(&["spec", "topologySpreadConstraints"])[0].get("labelSelector").is_none());
        assert_eq!(pod.str_at(&["status", "phase"]), "Pending");
        assert_eq!(
            conditions::find(&pod, "PodScheduled").map(|found| found.str_at(&["reason"])),
            Some("SchedulingGated")
        );
    }

    #[test]
    fn the_class_follows_from_resources_of_the_pod_since_1_34() {
        let class = |number| {
            let both = "{cpu: '1', memory: 1Gi}";
            let text = format!("spec: {{resources: {{requests: {both}, limits: {both}}}, containers: [{{name: c}}]}}");
            let mut pod = read(&text);
            create(Minor::of(number), &mut pod, "2026-01-01T00:00:00Z");
            pod.str_at(&["status", "qosClass"]).to_owned()
        };
        assert_eq!((class(33).as_str(), class(34).as_str()), ("BestEffort", "Guaranteed"));
    }

    #[test]
    fn what_was_observed_stays_known() {
        let old = read(
            "status: {qosClass: Burstable, observedGeneration: 3, conditions: [{type: A, observedGeneration: 2}, {type: A}]}",
        );
        let mut new = read("status: {conditions: [{type: A}, {type: A}, {type: B}]}");
        update_status(Minor::NEWEST, &mut new, &old);
        assert_eq!(
            json::encode_to_string(new.get("status").expect("it is there")),
            r#"{"conditions":[{"observedGeneration":2,"type":"A"},{"type":"A"},{"type":"B"}],"observedGeneration":3,"qosClass":"Burstable"}"#
        );
    }
}
