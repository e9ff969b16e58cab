//! Lints of rules: what they cost, what they read, and their possible results.

use std::collections::{HashMap, HashSet};

use super::decide::{RuleDecision, decide};
use super::lints::{NEVER_FAILS, NEVER_HOLDS, RULE_COST, SCHEMA_COST, UNBOUNDED, WITHOUT_HAS};
use super::{NodeLocation, VersionFindings, one_line, path_of, place_of};
use crate::cel::ast::{Expr, ExprKind, operators};
use crate::cel::cost::model::{CALL_LIMIT, EXPRESSION_ESTIMATE_MAX, SCHEMA_ESTIMATE_MAX};
use crate::cel::eval::Value as Cel;
use crate::crd::bounds::{Bound, advise, descend, unbounded_among};
use crate::crd::validate::expressions::{RuleCosts, SchemaCosts, SchemaStep};
use crate::schema::rules::compile::CompiledExpression;
use crate::schema::structural::Structural;

/// Checks all rules of a schema, which is at `own` in its definition.
pub fn look(found: &mut VersionFindings<'_>, root: &Structural, costs: &SchemaCosts, own: &str) {
    if costs.total >= SCHEMA_ESTIMATE_MAX / 2 {
        let share = percent(costs.total, SCHEMA_ESTIMATE_MAX);
        let message = format!("its rules take {share:.0}% of what they may cost together");
        found.tell(&NodeLocation { path: "", at: own }, &SCHEMA_COST, message, SCHEMA_COST.remedy);
    }
    let demanded = demanded(costs);
    for rule in &costs.rules {
        let path = path_of(&rule.steps);
        let at = format!("{own}{}", rule.path.strip_prefix(&costs.path).unwrap_or_default());
        let node = NodeLocation { path: &path, at: &at };
        cost(found, &node, root, rule);
        let (Some(expression), Some(decision)) = (&rule.compiled.expression, decision(root, rule)) else { continue };
        let is_demanded = |field: &String| demanded.get(rule.steps.as_slice()).is_some_and(|all| all.contains(field));
        let absent: Vec<String> = decision.absent.iter().filter(|field| !is_demanded(field)).cloned().collect();
        verdict(found, &node, rule, expression, (&decision, &absent));
        if !found.is_told(&UNBOUNDED) {
            continue;
        }
        for place in unbounded_among(root, rule, &decision.read) {
            let (path, at) = (path_of(&place.steps), place_of(own, &place.steps));
            let message = format!("the price of a rule depends on it, and it has no {}", place.keyword);
            found.tell(&NodeLocation { path: &path, at: &at }, &UNBOUNDED, message, format!("set {}", place.keyword));
        }
    }
}

/// The possible results of each rule of a schema, with the path of its node and its text.
pub fn decisions<'c>(
    root: &'c Structural,
    costs: &'c SchemaCosts,
) -> impl Iterator<Item = (String, String, RuleDecision)> + 'c {
    costs.rules.iter().filter_map(|rule| {
        let decision = decision(root, rule)?;
        Some((path_of(&rule.steps), rule.rule.rule.clone(), decision))
    })
}

fn decision(root: &Structural, rule: &RuleCosts) -> Option<RuleDecision> {
    let (expression, schema) = (rule.compiled.expression.as_ref()?, descend(root, &rule.steps)?);
    let is_resource = rule.steps.is_empty() || schema.extensions.embedded_resource;
    Some(decide(&expression.checked.ast.expr, schema, is_resource, &rule.steps))
}

fn percent(cost: u64, limit: u64) -> f64 {
    cost as f64 * 100.0 / limit as f64
}

/// Reports a rule that takes at least half of the cost limit.
fn cost(found: &mut VersionFindings<'_>, node: &NodeLocation<'_>, root: &Structural, rule: &RuleCosts) {
    if rule.cost < EXPRESSION_ESTIMATE_MAX / 2 || !found.is_told(&RULE_COST) {
        return;
    }
    let advice = advise(root, rule);
    let fix = match (advice.remedies.first(), advice.unbounded.as_slice()) {
        (Some(bounds), _) => format!("set {}", bounds.iter().map(Bound::to_string).collect::<Vec<_>>().join(", ")),
        (None, []) => "make the rule simpler".to_owned(),
        (None, unbounded) => {
            let places: Vec<String> = unbounded.iter().map(|place| format!("{place} ({})", place.keyword)).collect();
            format!("bound {}", places.join(", "))
        }
    };
    let share = percent(rule.cost, EXPRESSION_ESTIMATE_MAX);
    let message = format!("`{}` takes {share:.0}% of what a rule may cost", one_line(&rule.rule.rule));
    found.tell(node, &RULE_COST, message, fix);
}

/// The fields that rules require, by the paths of their nodes: if one is absent, those rules report it.
fn demanded(costs: &SchemaCosts) -> HashMap<&[SchemaStep], HashSet<String>> {
    let mut demanded: HashMap<&[SchemaStep], HashSet<String>> = HashMap::new();
    for rule in &costs.rules {
        let Some(expression) = &rule.compiled.expression else { continue };
        asked_for(&expression.checked.ast.expr, demanded.entry(&rule.steps).or_default());
    }
    demanded
}

/// Collects the fields of `self` that must be present for an expression to be true: `has(self.a) && has(self.b)`.
fn asked_for(expr: &Expr, found: &mut HashSet<String>) {
    match &expr.kind {
        ExprKind::Call(call) if call.function == operators::LOGICAL_AND => {
            call.args.iter().for_each(|operand| asked_for(operand, found));
        }
        ExprKind::Select(select) if select.test_only => {
            if matches!(&select.operand.kind, ExprKind::Ident(name) if name == "self") {
                found.insert(format!("self.{}", select.field));
            }
        }
        _ => {}
    }
}

/// Reports rules that are always or never true, and those that end in an error if an optional field is absent.
fn verdict(
    found: &mut VersionFindings<'_>,
    node: &NodeLocation<'_>,
    rule: &RuleCosts,
    expression: &CompiledExpression,
    (decision, absent): (&RuleDecision, &[String]),
) {
    let text = one_line(&rule.rule.rule);
    // A rule that reads no variable has the same result for all objects, whatever functions it calls.
    let constant = match expression.program.evaluate(&[None, None], CALL_LIMIT).result {
        Ok(Cel::Bool(truth)) => Some(truth),
        _ => None,
    };
    let never_fails = constant == Some(true) || !(decision.may_fail || decision.may_break);
    if never_fails {
        found.tell(node, &NEVER_FAILS, format!("`{text}` holds for all values"), NEVER_FAILS.remedy);
    } else if constant == Some(false) || !decision.may_hold {
        found.tell(node, &NEVER_HOLDS, format!("`{text}` holds for no value"), NEVER_HOLDS.remedy);
    }
    let absent: Vec<String> = absent.iter().map(|field| format!("`{field}`")).collect();
    match absent.as_slice() {
        [] => {}
        [field] => {
            let bare = field.trim_matches('`');
            let fix = format!("ask `!has({bare}) || …` first, require the field, or give it a default");
            found.tell(node, &WITHOUT_HAS, format!("`{text}` reads the optional {field}"), fix);
        }
        fields => {
            let message = format!("`{text}` reads the optional {}", fields.join(" and "));
            found.tell(node, &WITHOUT_HAS, message, WITHOUT_HAS.remedy);
        }
    }
}
