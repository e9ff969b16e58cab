//! Checks of a value from above: rules, junctors and bounds of the objects that contain it.
//!
//! Input: the nodes of a schema on the path down. Output: whether their checks may depend on a value of the current
//! node. A default that fills in a field, or a value of another type, can then be refused although the value's own
//! constraints have not changed.

use crate::cel::ast::{Expr, ExprKind, SourceInfo};
use crate::cel::env::{Env, Expressions};
use crate::cel::escape::escape;
use crate::cel::parser::parse;
use crate::crd::validate::expressions::SchemaStep;
use crate::schema::json_schema::ValidationRule;
use crate::schema::structural::Structural;

/// The checks that a node makes on everything below it.
pub struct Watcher {
    /// Whether it looks at all fields: by a junctor, or by counting them.
    at_all: bool,
    rules: Vec<ValidationRule>,
}

impl Watcher {
    pub fn of(schema: &Structural) -> Self {
        let values = schema.value_validation.as_deref();
        let at_all = values.is_some_and(|values| !values.junctors.is_blank() || values.bounds.max_properties.is_some());
        Watcher { at_all, rules: schema.validations.clone() }
    }

    /// Whether its checks may depend on the values below the node's `step`.
    fn sees(&self, step: &SchemaStep) -> bool {
        self.at_all || self.rules.iter().any(|rule| mentions(rule, step))
    }
}

/// Whether one of `watchers`, of the nodes from the root down, may look at the value that `steps` lead to.
pub fn are_watching(watchers: &[Watcher], steps: &[SchemaStep]) -> bool {
    watchers.iter().zip(steps).any(|(watcher, step)| watcher.sees(step))
}

fn mentions(rule: &ValidationRule, step: &SchemaStep) -> bool {
    let SchemaStep::Property(name) = step else { return true };
    let Some(name) = escape(name) else { return true };
    let env = Env::kubernetes(Expressions::Stored);
    match parse(SourceInfo::new(&rule.rule), &env.library) {
        Ok(ast) => looks_at(&ast.expr, &name),
        Err(_) => false,
    }
}

/// Whether `expr` selects a field of this name, or takes `self` as a whole.
fn looks_at(expr: &Expr, name: &str) -> bool {
    match &expr.kind {
        ExprKind::Select(select) if select.field == name => true,
        ExprKind::Select(select) if matches!(&select.operand.kind, ExprKind::Ident(_)) => false,
        ExprKind::Ident(ident) => ident == "self" || ident == "oldSelf",
        _ => expr.children().into_iter().any(|part| looks_at(part, name)),
    }
}
