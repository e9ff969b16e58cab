//! Why a rule evaluated to its result: the values of its parts.
//!
//! Input: a rule and the node that it stands at. Output: the parts of the rule outside of its comprehensions, each
//! ready to be evaluated with the variables of the rule. Nothing here accepts or refuses objects.

use super::compile::{OLD_SELF, SELF, SELF_TYPE};
use crate::cel::ast::{Ast, Expr, ExprKind, SourceInfo};
use crate::cel::checker::{self, CheckedExpr};
use crate::cel::cost::model::CALL_LIMIT;
use crate::cel::env::{Env, Expressions};
use crate::cel::eval::show::literal;
use crate::cel::eval::{BoundValue, Compose, Program, Value};
use crate::cel::types::Type;
use crate::cel::{parser, print};
use crate::schema::declare::declare;
use crate::schema::json_schema::ValidationRule;
use crate::schema::structural::Structural;

/// How many characters of a value are shown.
const SHOWN_MAX: usize = 120;

/// The parts of a rule.
pub struct Trace {
    parts: Vec<RulePart>,
}

struct RulePart {
    text: String,
    program: Program,
    is_bool: bool,
}

/// A part and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartValue {
    /// The part, as an expression.
    pub text: String,
    /// Its value as an expression, or the reason why it has none.
    pub value: String,
    /// The result, if the part is a condition.
    pub truth: Option<bool>,
}

impl Trace {
    /// The parts of `rule` at a node of a schema, in the order of the text; `None` for a faulty rule. `is_resource` is
    /// for the root of a custom resource and for embedded ones.
    pub fn new(rule: &ValidationRule, schema: &Structural, is_resource: bool) -> Option<Trace> {
        let (checked, env) = check(rule, schema, is_resource)?;
        Some(Trace::of(&checked, &env))
    }

    /// The parts of an expression in `env`, in the order of its text; `None` for a faulty one.
    pub fn of_text(text: &str, env: &Env) -> Option<Trace> {
        Some(Trace::of(&checked(text, env)?, env))
    }

    /// The parts of an expression over the variables of `env`, in the order of its text; the first is the whole
    /// expression.
    pub fn of(checked: &CheckedExpr, env: &Env) -> Trace {
        let mut found = Vec::new();
        let is_variable = |name: &str| env.variables.iter().any(|variable| *variable.name == *name);
        collect(&checked.ast.expr, &is_variable, &mut found);
        let parts = found.into_iter().filter_map(|expr| {
            let text = print::print(&Ast { expr: expr.clone(), source: checked.ast.source.clone() })?;
            let program = Program::part(checked, env, expr).ok()?;
            Some(RulePart { text, program, is_bool: *checked.ty(expr.id) == Type::Bool })
        });
        let mut parts: Vec<RulePart> = parts.collect();
        let mut seen = Vec::new();
        parts.retain(|part| {
            !seen.contains(&part.text) && {
                seen.push(part.text.clone());
                true
            }
        });
        Trace { parts }
    }

    /// The values of the parts with the variables of the rule.
    pub fn values(&self, variables: &[BoundValue<'_>]) -> Vec<PartValue> {
        self.values_composed(variables, None)
    }

    /// [`Trace::values`] if one of the variables is an object of others, `composed`.
    pub fn values_composed<'a>(
        &'a self,
        variables: &[BoundValue<'a>],
        composed: Option<&dyn Compose<'a>>,
    ) -> Vec<PartValue> {
        let value = |part: &'a RulePart| {
            let result = part.program.evaluate_composed(variables, composed, CALL_LIMIT).result;
            let truth = match result {
                Ok(Value::Bool(truth)) if part.is_bool => Some(truth),
                _ => None,
            };
            let value = match result {
                Ok(value) => shortened(literal(&value)),
                Err(error) => format!("an error: {error}"),
            };
            PartValue { text: part.text.clone(), value, truth }
        };
        self.parts.iter().map(value).collect()
    }
}

/// The expression of a rule with its types, macros kept for printing.
pub fn check(rule: &ValidationRule, schema: &Structural, is_resource: bool) -> Option<(CheckedExpr, Env)> {
    let decl = declare(schema, is_resource)?.named(SELF_TYPE);
    let is_old_optional = rule.optional_old_self == Some(true);
    let old = if is_old_optional { Type::optional(decl.ty.clone()) } else { decl.ty.clone() };
    let env = Env::kubernetes(Expressions::Stored).with_variable(SELF, decl.ty.clone()).with_variable(OLD_SELF, old);
    Some((checked(&rule.rule, &env)?, env))
}

fn checked(text: &str, env: &Env) -> Option<CheckedExpr> {
    let ast = parser::parse_keeping_macros(SourceInfo::new(text), &env.library).ok()?;
    checker::check(ast, env).ok()
}

/// The parts whose values are worth showing: no literals, and nothing within comprehensions.
fn collect<'e>(expr: &'e Expr, is_variable: &dyn Fn(&str) -> bool, found: &mut Vec<&'e Expr>) {
    match &expr.kind {
        ExprKind::Constant(_) => return,
        ExprKind::Ident(name) if !is_variable(name) => return,
        ExprKind::List(list) if list.elements.iter().all(|item| matches!(item.kind, ExprKind::Constant(_))) => return,
        _ => found.push(expr),
    }
    match &expr.kind {
        ExprKind::Comprehension(fold) => collect(&fold.iter_range, is_variable, found),
        // The operand of a field selection is less informative than the field.
        ExprKind::Select(select) => collect_below(&select.operand, is_variable, found),
        _ => expr.children().into_iter().for_each(|child| collect(child, is_variable, found)),
    }
}

fn collect_below<'e>(expr: &'e Expr, is_variable: &dyn Fn(&str) -> bool, found: &mut Vec<&'e Expr>) {
    match &expr.kind {
        ExprKind::Select(select) => collect_below(&select.operand, is_variable, found),
        ExprKind::Ident(_) => {}
        _ => collect(expr, is_variable, found),
    }
}

fn shortened(text: String) -> String {
    match text.char_indices().nth(SHOWN_MAX) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meta::field::Path;
    use crate::schema::convert::to_structural;
    use crate::schema::json_schema;
    use crate::schema::rules::{CostLimits, Rules};
    use crate::value::yaml;

    #[test]
    fn parts_have_their_values() {
        let schema = yaml::decode(
            b"
type: object
properties:
  min: {type: integer}
  names: {type: array, items: {type: string}}
x-kubernetes-validations:
- rule: self.min <= 3 && self.names.all(n, n.size() > 1) && has(self.names)
",
        );
        let schema = json_schema::decode(&schema.expect("the test is YAML")).expect("and a schema").0;
        let schema = to_structural(&schema).expect("a structural one");
        let object = yaml::decode(b"{min: 2, names: [ab, c]}").expect("the test is YAML");
        let mut found = Vec::new();
        let rules = Rules::compile(&schema, false);
        rules.evaluate(&Path::ROOT, &object, None, None, CostLimits::default(), &mut |run| {
            let trace = Trace::new(run.rule, &schema, false).expect("the rule compiles");
            found.extend(trace.values(run.variables).into_iter().map(|part| format!("{} = {}", part.text, part.value)));
        });
        let expected = [
            "self.min <= 3 && self.names.all(n, n.size() > 1) && has(self.names) = false",
            "self.min <= 3 && self.names.all(n, n.size() > 1) = false",
            "self.min <= 3 = true",
            "self.min = 2",
            "self.names.all(n, n.size() > 1) = false",
            "self.names = [\"ab\", \"c\"]",
            "has(self.names) = true",
        ];
        assert_eq!(found, expected);
    }
}
