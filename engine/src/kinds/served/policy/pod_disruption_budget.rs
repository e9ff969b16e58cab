//! PodDisruptionBudget, policy/v1.
//!
//! Source: conversion, validation, strategy and columns of Kubernetes 1.37.

use crate::crd::write::ReadError;
use crate::crd::{Column, ServedVersion};
use crate::kinds::strategy::{Cell, Strategy, Subresource, Table};
use crate::kinds::workloads::{self, cells, percent, selector, status};
use crate::kinds::{Kind, checks, conditions, prepare};
use crate::meta::field::ErrorList;
use crate::meta::field_ref::FieldRef;
use crate::value::Value;

/// The label key by which v1beta1 distinguishes a selector that selects nothing from one that selects everything.
const BETA_LABEL: &str = "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match";
const EVICTION_POLICIES: [&str; 2] = ["AlwaysAllow", "IfHealthyBudget"];

pub static KINDS: [&Kind; 1] = [&Kind {
    plural: "poddisruptionbudgets",
    singular: "poddisruptionbudget",
    short_names: &["pdb"],
    status: true,
    example: "metadata: {name: example}\nspec: {minAvailable: 50%, selector: {matchLabels: {app: web}}}",
    ..Kind::new("policy", "v1", "PodDisruptionBudget", &PodDisruptionBudget)
}];

struct PodDisruptionBudget;

impl Strategy for PodDisruptionBudget {
    fn internalize(&self, object: &mut Value) -> Result<(), ReadError> {
        if let Some(selector) = object.at_mut(&["spec", "selector"]) {
            strip_beta_label(selector);
        }
        Ok(())
    }

    fn prepare_create(&self, version: &ServedVersion, object: &mut Value) {
        prepare::for_create(object, &self.zero(version));
    }

    fn validate_create(&self, _: &ServedVersion, object: &Value) -> ErrorList {
        validate_spec(object, true)
    }

    fn prepare_update(&self, _: &ServedVersion, subresource: Subresource, new: &mut Value, old: &Value) {
        if subresource == Subresource::Status {
            prepare::keep(new, old, &["spec"]);
        } else {
            workloads::prepare_update(new, old);
        }
    }

    fn validate_update(&self, _: &ServedVersion, subresource: Subresource, new: &Value, old: &Value) -> ErrorList {
        if subresource == Subresource::Status {
            return validate_status(new);
        }
        let old_root = FieldRef::root(old);
        let old_spec = old_root.field("spec");
        let was_valid = selector::validate(&old_spec.field("selector"), true).is_empty();
        validate_spec(new, was_valid)
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn table(&self) -> Option<Table> {
        Some(table())
    }

    fn reset_fields(&self, _: &ServedVersion, subresource: Subresource) -> &'static [&'static [&'static str]] {
        workloads::reset_fields(subresource)
    }
}

/// Removes the requirements for that label, except from a selector that selects nothing.
fn strip_beta_label(selector: &mut Value) {
    let Value::Object(fields) = selector else { return };
    let expressions = fields.get("matchExpressions").and_then(Value::as_array).unwrap_or_default();
    let is_beta = |expression: &Value| expression.str_at(&["key"]) == BETA_LABEL;
    let is_of_nothing = !fields.contains_key("matchLabels")
        && matches!(expressions, [only] if is_beta(only) && only.str_at(&["operator"]) == "Exists" && only.get("values").is_none());
    if is_of_nothing || !expressions.iter().any(is_beta) {
        return;
    }
    let kept: Vec<Value> = expressions.iter().filter(|expression| !is_beta(expression)).cloned().collect();
    if kept.is_empty() {
        _ = fields.remove("matchExpressions");
    } else {
        _ = fields.insert("matchExpressions", Value::Array(kept));
    }
}

/// Validates the spec; `checks_values` tells whether the selector's values are checked.
fn validate_spec(budget: &Value, checks_values: bool) -> ErrorList {
    let mut errors = ErrorList::new();
    let root = FieldRef::root(budget);
    let spec = root.field("spec");
    let amounts = [spec.field("minAvailable"), spec.field("maxUnavailable")];
    if amounts.iter().all(FieldRef::is_set) {
        let why = "minAvailable and maxUnavailable cannot be both set";
        errors.push(workloads::invalid_struct(&spec, "policy.v1.PodDisruptionBudgetSpec", why));
    }
    for amount in amounts.iter().filter(|amount| amount.is_set()) {
        errors.extend(percent::validate(amount));
        errors.extend(percent::not_above_all(amount));
    }
    errors.extend(selector::validate(&spec.field("selector"), checks_values));
    let policy = spec.field("unhealthyPodEvictionPolicy");
    if policy.is_set() {
        errors.extend(checks::one_of(&policy, &EVICTION_POLICIES));
    }
    errors
}

fn validate_status(budget: &Value) -> ErrorList {
    const COUNTERS: [&str; 4] = ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"];
    let root = FieldRef::root(budget);
    let field = root.field("status");
    let mut errors = conditions::validate(&field.field("conditions"));
    errors.extend(status::not_negative(&field, &COUNTERS));
    errors
}

fn table() -> Table {
    let columns = vec![
        Column::string("Min Available", "The minimum number of pods that must be available."),
        Column::string("Max Unavailable", "The maximum number of pods that may be unavailable."),
        cells::integer("Allowed Disruptions", "Calculated number of pods that may be disrupted at this time."),
    ];
    Table::named(columns, |budget| {
        let amount = |name: &str| match budget.at(&["spec", name]) {
            Some(Value::String(text)) => Cell::text(text),
            Some(Value::Int(number)) => Cell::text(&number.to_string()),
            _ => Cell::text("N/A"),
        };
        let allowed = cells::of_int(budget, &["status", "disruptionsAllowed"]);
        Cell::named(budget, vec![amount("minAvailable"), amount("maxUnavailable"), allowed])
    })
}
