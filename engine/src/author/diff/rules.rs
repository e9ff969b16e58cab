//! Which of two rules refuses more.
//!
//! Input: the rules of a node before and after. Output: the new, removed and changed ones. Rules are compared by
//! meaning, not by layout. A changed rule is the tighter one if it demands everything that the old one does and more,
//! or if only a bound in it became narrower; anything that its form does not show counts as breaking.

use std::cell::Cell;

use super::Degree;
use crate::cel::ast::SourceInfo;
use crate::cel::ast::{Ast, Constant, Expr, ExprKind, operators};
use crate::cel::env::{Env, Expressions};
use crate::cel::parser::parse_keeping_macros;
use crate::cel::print::print;
use crate::schema::json_schema::ValidationRule;
use crate::work;

/// Against all hand-written rules this is far away.
const OPERANDS_MAX: usize = 100;
/// How many pairs of rules of a node are compared part by part. Beyond this, a changed rule counts as a removed one and
/// a new one.
const COMPARED_MAX: usize = 10_000;

/// How a rule relates to the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    Same,
    Tighter,
    Looser,
}

/// A rule and its syntax tree.
struct Parsed<'r> {
    rule: &'r ValidationRule,
    /// `None` if it is not a valid expression.
    ast: Option<Ast>,
    text: String,
}

impl<'r> Parsed<'r> {
    fn new(rule: &'r ValidationRule, env: &Env) -> Self {
        let ast = parse_keeping_macros(SourceInfo::new(&rule.rule), &env.library).ok();
        let text = ast.as_ref().and_then(print).unwrap_or_else(|| rule.rule.trim().to_owned());
        Parsed { rule, ast, text }
    }

    /// Whether everything but the expression and the message is equal.
    fn is_alike(&self, other: &Parsed<'_>) -> bool {
        self.rule.optional_old_self == other.rule.optional_old_self
    }

    fn has_same_message(&self, other: &Parsed<'_>) -> bool {
        !self.rule.message.is_empty() && self.rule.message == other.rule.message
    }
}

/// The notes on rules that refuse what was accepted, and on those that don't.
const FORGIVEN: &str = "values that an update leaves alone are forgiven";
const HOLDS: &str = "it holds for all that passed before";

/// Changes of rules: an id, the degree, and the details. `always_holds` decides whether a new rule holds for everything
/// that passed before. Invalid expressions are left out: no server accepts them.
pub fn diff(
    old: &[ValidationRule],
    new: &[ValidationRule],
    always_holds: impl Fn(&ValidationRule) -> bool,
) -> Vec<(&'static str, Degree, String)> {
    if old == new {
        return Vec::new();
    }
    let env = Env::kubernetes(Expressions::Stored);
    let (mut before, mut after) = (parsed(old, &env), parsed(new, &env));
    let mut changes = Vec::new();
    let told = |rule: &ValidationRule, degree, detail: String| {
        if always_holds(rule) {
            (Degree::Safe, format!("{detail}; {HOLDS}"))
        } else {
            (degree, format!("{detail}; {FORGIVEN}"))
        }
    };
    pair(
        &mut before,
        &mut after,
        |old, new| old.text == new.text && old.is_alike(new),
        |old, new| {
            if tells_otherwise(old.rule, new.rule) {
                let detail = format!("`{}` tells its failures differently", new.text);
                changes.push(("rule-message-changed", Degree::Safe, detail));
            }
        },
    );
    let compared = Cell::new(0);
    let may_compare = || compared.replace(compared.get() + 1) < COMPARED_MAX;
    pair(
        &mut before,
        &mut after,
        |old, new| old.is_alike(new) && may_compare() && relation(old, new).is_some(),
        |old, new| {
            let became = format!("`{}` became `{}`", old.text, new.text);
            if relation(old, new) == Some(Relation::Looser) {
                changes.push(("rule-loosened", Degree::Safe, became));
            } else {
                let (degree, detail) = told(new.rule, Degree::Breaking, became);
                changes.push(("rule-tightened", degree, detail));
            }
        },
    );
    let has_same_message = |old: &Parsed<'_>, new: &Parsed<'_>| old.has_same_message(new);
    pair(&mut before, &mut after, has_same_message, |old, new| {
        let (degree, detail) = told(new.rule, Degree::MayBreak, format!("`{}` became `{}`", old.text, new.text));
        changes.push(("rule-changed", degree, detail));
    });
    for rule in after.iter().filter(|rule| rule.ast.is_some()) {
        let (degree, detail) = told(rule.rule, Degree::MayBreak, format!("`{}`", rule.text));
        changes.push(("rule-added", degree, detail));
    }
    changes.extend(before.iter().map(|rule| ("rule-removed", Degree::Safe, format!("`{}`", rule.text))));
    changes
}

fn parsed<'r>(rules: &'r [ValidationRule], env: &Env) -> Vec<Parsed<'r>> {
    rules.iter().map(|rule| Parsed::new(rule, env)).collect()
}

/// Whether a failure of one rule is reported differently from that of the other.
fn tells_otherwise(old: &ValidationRule, new: &ValidationRule) -> bool {
    old.message != new.message
        || old.message_expression != new.message_expression
        || old.reason != new.reason
        || old.field_path != new.field_path
}

/// Removes the pairs that belong together, and reports their changes.
fn pair<'r>(
    before: &mut Vec<Parsed<'r>>,
    after: &mut Vec<Parsed<'r>>,
    belong: impl Fn(&Parsed<'r>, &Parsed<'r>) -> bool,
    mut tell: impl FnMut(&Parsed<'r>, &Parsed<'r>),
) {
    let belong = |old: &Parsed<'r>, new: &Parsed<'r>| {
        work::step();
        belong(old, new)
    };
    before.retain(|old| match after.iter().position(|new| belong(old, new)) {
        Some(at) => {
            tell(old, &after.remove(at));
            false
        }
        None => true,
    });
}

fn relation(old: &Parsed<'_>, new: &Parsed<'_>) -> Option<Relation> {
    let (old, new) = (old.ast.as_ref()?, new.ast.as_ref()?);
    Compared { old, new }.relation(&old.expr, &new.expr)
}

/// Two rules whose parts are compared.
struct Compared<'c> {
    old: &'c Ast,
    new: &'c Ast,
}

impl Compared<'_> {
    fn relation(&self, old: &Expr, new: &Expr) -> Option<Relation> {
        if self.is_same(old, new) {
            return Some(Relation::Same);
        }
        self.joined(operators::LOGICAL_AND, Relation::Tighter, old, new)
            .or_else(|| self.joined(operators::LOGICAL_OR, Relation::Looser, old, new))
            .or_else(|| bounded(old, new).filter(|_| self.has_same_left(old, new)))
    }

    /// Of operands that `operator` joins: with more of them, the whole is `more`; where one differs, that decides.
    fn joined(&self, operator: &str, more: Relation, old: &Expr, new: &Expr) -> Option<Relation> {
        let (before, after) = (operands(operator, old), operands(operator, new));
        if before.len() + after.len() < 3 || before.len().max(after.len()) > OPERANDS_MAX {
            return None;
        }
        let gone: Vec<&&Expr> = before.iter().filter(|old| !after.iter().any(|new| self.is_same(old, new))).collect();
        let added: Vec<&&Expr> = after.iter().filter(|new| !before.iter().any(|old| self.is_same(old, new))).collect();
        let less = if more == Relation::Tighter { Relation::Looser } else { Relation::Tighter };
        match (gone.as_slice(), added.as_slice()) {
            ([], [_, ..]) => Some(more),
            ([_, ..], []) => Some(less),
            ([old], [new]) if before.len() == after.len() => self.relation(old, new),
            _ => None,
        }
    }

    fn is_same(&self, old: &Expr, new: &Expr) -> bool {
        let text = |expr: &Expr, of: &Ast| print(&Ast { expr: expr.clone(), source: of.source.clone() });
        let (old, new) = (text(old, self.old), text(new, self.new));
        old.is_some() && old == new
    }

    fn has_same_left(&self, old: &Expr, new: &Expr) -> bool {
        match (&old.kind, &new.kind) {
            (ExprKind::Call(old), ExprKind::Call(new)) => self.is_same(&old.args[0], &new.args[0]),
            _ => false,
        }
    }
}

/// The operands that `operator` joins.
fn operands<'e>(operator: &str, expr: &'e Expr) -> Vec<&'e Expr> {
    match &expr.kind {
        ExprKind::Call(call) if call.function == operator => {
            call.args.iter().flat_map(|operand| operands(operator, operand)).collect()
        }
        _ => vec![expr],
    }
}

/// Which of two comparisons with a number, or memberships in a literal list, is the tighter one. It does not check that
/// they compare the same value.
fn bounded(old: &Expr, new: &Expr) -> Option<Relation> {
    let (ExprKind::Call(old), ExprKind::Call(new)) = (&old.kind, &new.kind) else { return None };
    let ([_, old_bound], [_, new_bound], true) = (&old.args[..], &new.args[..], old.function == new.function) else {
        return None;
    };
    match old.function.as_str() {
        operators::LESS | operators::LESS_EQUALS | operators::GREATER | operators::GREATER_EQUALS => {
            let (old_bound, new_bound) = (number(old_bound)?, number(new_bound)?);
            let is_upper = [operators::LESS, operators::LESS_EQUALS].contains(&old.function.as_str());
            let is_tighter = if is_upper { new_bound < old_bound } else { new_bound > old_bound };
            Some(if is_tighter { Relation::Tighter } else { Relation::Looser })
        }
        operators::IN => {
            let (old, new) = (constants(old_bound)?, constants(new_bound)?);
            match (old.iter().all(|value| new.contains(value)), new.iter().all(|value| old.contains(value))) {
                (true, _) => Some(Relation::Looser),
                (false, true) => Some(Relation::Tighter),
                (false, false) => None,
            }
        }
        _ => None,
    }
}

fn number(expr: &Expr) -> Option<f64> {
    match &expr.kind {
        ExprKind::Constant(Constant::Int(number)) => Some(*number as f64),
        ExprKind::Constant(Constant::Double(number)) => Some(*number),
        _ => None,
    }
}

fn constants(expr: &Expr) -> Option<Vec<&Constant>> {
    let ExprKind::List(list) = &expr.kind else { return None };
    let constant = |item: &'_ Expr| matches!(item.kind, ExprKind::Constant(_));
    list.elements.iter().all(constant).then(|| {
        let constants = list.elements.iter().filter_map(|item| match &item.kind {
            ExprKind::Constant(constant) => Some(constant),
            _ => None,
        });
        constants.collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(old: &str, new: &str, expected: &[&str]) {
        let rule = |rule: &str| ValidationRule { rule: rule.to_owned(), ..ValidationRule::default() };
        let found: Vec<&str> = diff(&[rule(old)], &[rule(new)], |_| false).into_iter().map(|(id, _, _)| id).collect();
        assert_eq!(found, expected, "{old} and {new}");
    }

    #[test]
    fn of_many_rules_no_more_pairs_are_compared_than_the_limit() {
        let is_told = |count: usize| {
            let rules = |field: &str, last: &str| -> Vec<ValidationRule> {
                let texts = (0..count).map(|at| format!("self.{field}{at} > 1")).chain([last.to_owned()]);
                texts.map(|rule| ValidationRule { rule, ..ValidationRule::default() }).collect()
            };
            let changes = diff(&rules("a", "self.c > 1"), &rules("b", "self.c > 2"), |_| false);
            changes.iter().any(|(id, _, _)| *id == "rule-tightened")
        };
        assert!(is_told(50));
        assert!(!is_told(200));
    }

    #[test]
    fn layout_makes_no_other_rule() {
        check("self.a>1", "  (self.a > 1) ", &[]);
    }

    #[test]
    fn what_asks_for_more_is_tighter() {
        check("self.a > 1", "self.a > 1 && self.b > 1", &["rule-tightened"]);
        check("self.a > 1 || self.b > 1 || self.c", "self.c || self.b > 1", &["rule-tightened"]);
        check("!has(self.a) || self.a < 9", "!has(self.a) || self.a < 8", &["rule-tightened"]);
        check("self.a in ['x', 'y']", "self.a in ['x']", &["rule-tightened"]);
    }

    #[test]
    fn what_asks_for_less_is_looser() {
        check("self.a > 1 && self.b > 1", "self.a > 1", &["rule-loosened"]);
        check("self.a >= 2", "self.a >= 1", &["rule-loosened"]);
        check("self.a in ['x']", "self.a in ['y', 'x']", &["rule-loosened"]);
        check("self.a > 1", "self.a > 1 || self.b", &["rule-loosened"]);
    }

    #[test]
    fn others_are_gone_and_new() {
        check("self.a > 1", "self.b < 1", &["rule-added", "rule-removed"]);
        check("self.a > 1 && self.b", "self.a > 2 && self.c", &["rule-added", "rule-removed"]);
    }
}
