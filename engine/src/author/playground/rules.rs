//! The rules of definitions: the estimated cost of each, what would make it cheaper, and its result for the object.

use super::inputs::{Inputs, Pane};
use super::shown::{SHOWN_MAX, line, number, texts};
use super::verdict::parts;
use crate::author::check::RuleRun;
use crate::author::suite::fits;
use crate::author::{Catalog, DefinedKind, written_field};
use crate::cel::cost::model::{EXPRESSION_ESTIMATE_MAX, SCHEMA_ESTIMATE_MAX};
use crate::crd::bounds::{Advice, Bound, advise};
use crate::crd::validate;
use crate::crd::validate::expressions::{RuleCosts, SchemaCosts, SchemaStep, in_objects};
use crate::object;
use crate::schema::convert::to_structural;
use crate::schema::structural::Structural;
use crate::value::Value;
use crate::value::yaml::Located;

/// The path at which errors report a schema that all versions share.
const SHARED: &str = "spec.validation.openAPIV3Schema";
/// The maximum number of evaluations of a rule that are shown.
const RUNS_MAX: usize = 20;

/// The rules of each definition, in the object's version, or else in the storage version.
pub fn show(inputs: &Inputs, catalog: &Catalog, runs: &[RuleRun]) -> Value {
    let mut shown = Vec::new();
    for document in inputs.definitions() {
        let spec = |field: &str| document.value.str_at(&["spec", field]);
        let kind = catalog.named(spec("group"), document.value.str_at(&["spec", "names", "kind"]));
        let object = inputs.first(Pane::Object).map(|object| &object.value);
        shown.extend(kind.and_then(|kind| of_kind(document, kind, object, runs)));
    }
    Value::Array(shown)
}

fn of_kind(document: &Located, kind: &DefinedKind, object: Option<&Value>, runs: &[RuleRun]) -> Option<Value> {
    let is_own = object.is_some_and(|object| {
        object.str_at(&["kind"]) == kind.definition.spec.names.kind && kind.served(object).is_some()
    });
    let named = object.filter(|_| is_own).and_then(|object| kind.served(object));
    let versions = &kind.definition.spec.versions;
    let is_shown = |name: &str, is_stored| named.map_or(is_stored, |served| served.version == name);
    let index = versions.iter().position(|version| is_shown(&version.name, version.storage))?;
    let (_, costs) = validate::create_with_costs(&kind.definition);
    let own = format!("spec.versions[{index}].schema.openAPIV3Schema");
    let costs = costs.into_iter().find(|costs: &SchemaCosts| costs.path == own || costs.path == SHARED)?;
    let schema = to_structural(versions[index].schema.as_ref()?.as_deref()?).ok()?;
    let runs = if is_own { runs } else { &[] };
    let rules: Vec<Value> =
        costs.rules.iter().take(SHOWN_MAX).map(|rule| of_rule(document, index, &schema, rule, runs)).collect();
    Some(object! {
        "definition" => kind.definition.name(),
        "version" => versions[index].name.as_str(),
        "total" => number(costs.total),
        "limit" => number(SCHEMA_ESTIMATE_MAX),
        "rules" => rules,
        "rulesInAll" => number(costs.rules.len() as u64),
    })
}

fn of_rule(document: &Located, version: usize, schema: &Structural, rule: &RuleCosts, runs: &[RuleRun]) -> Value {
    let node = in_objects(&rule.steps);
    let pattern = if node.is_empty() { "<nil>" } else { &node };
    let mine = runs.iter().filter(|run| run.rule == rule.rule.rule && fits(pattern, &run.path));
    let (mut shown, mut count, mut failed) = (Vec::new(), 0, 0);
    for run in mine.filter(|run| !run.is_message) {
        count += 1;
        failed += u64::from(run.truth != Some(true));
        if shown.len() < RUNS_MAX {
            shown.push(of_run(run));
        }
    }
    // As in `skiff cost`, there is no advice for rules that take less than a tenth of the limit.
    let is_dear = rule.cost >= EXPRESSION_ESTIMATE_MAX / 10;
    let advice = if is_dear { advise(schema, rule) } else { Advice::default() };
    let remedies = advice.remedies.iter().map(|bounds| Value::Array(bounds.iter().map(of_bound).collect()));
    let unbounded: Vec<String> = advice.unbounded.iter().map(|place| format!("{place} ({})", place.keyword)).collect();
    let place = document.place(&format!("{}.rule", written_field(&rule.path, version)));
    object! {
        "rule" => rule.rule.rule.as_str(),
        "message" => rule.rule.message.as_str(),
        "field" => node,
        "line" => line(Some(place)),
        "isPriced" => rule.compiled.expression.is_some(),
        "each" => number(rule.compiled.expression.as_ref().map_or(0, |expression| expression.cost_max)),
        "times" => number(rule.cardinality()),
        "cost" => number(rule.cost),
        "limit" => number(EXPRESSION_ESTIMATE_MAX),
        "unbounded" => texts(&unbounded),
        "remedies" => remedies.collect::<Vec<_>>(),
        "runs" => shown,
        "runsInAll" => number(count),
        "runsFailed" => number(failed),
    }
}

fn of_run(run: &RuleRun) -> Value {
    object! {
        "field" => if run.path == "<nil>" { "" } else { run.path.as_str() },
        "truth" => run.truth.map_or(Value::Null, Value::Bool),
        "cost" => number(run.cost),
        "parts" => parts(&run.parts),
    }
}

/// A bound, in the form that [`super::add_bound`] takes.
fn of_bound(bound: &Bound) -> Value {
    object! {
        "field" => bound.place.to_string(),
        "steps" => bound.place.steps.iter().map(|step| Value::from(step_name(step))).collect::<Vec<_>>(),
        "keyword" => bound.place.keyword.to_string(),
        "limit" => Value::Int(bound.limit),
    }
}

fn step_name(step: &SchemaStep) -> String {
    match step {
        SchemaStep::Property(name) => format!(".{name}"),
        SchemaStep::Items => "items".to_owned(),
        SchemaStep::Values => "values".to_owned(),
    }
}
