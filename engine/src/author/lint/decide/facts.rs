//! What is known about fields where an expression is evaluated: whether those that an earlier condition tests are
//! present.

use super::known::{FieldPath, KnownValue};
use crate::cel::ast::{Constant, Expr, ExprKind, operators};

/// A fact about fields, known where an expression is evaluated.
#[derive(Clone, Debug)]
pub(super) enum Fact {
    /// Whether a field is present.
    Presence { path: FieldPath, is_present: bool },
    /// Both fields are present, or neither is.
    Together([FieldPath; 2]),
}

impl Fact {
    fn is_about(&self, variable: &str) -> bool {
        let begins = |path: &FieldPath| path.first().is_some_and(|first| first == variable);
        match self {
            Fact::Presence { path, .. } => begins(path),
            Fact::Together(paths) => paths.iter().any(begins),
        }
    }
}

/// What is known where an expression is evaluated.
#[derive(Clone, Default)]
pub(super) struct DecisionScope<'s> {
    /// The variables in scope, the innermost last.
    pub(super) variables: Vec<(String, KnownValue<'s>)>,
    pub(super) facts: Vec<Fact>,
}

impl<'s> DecisionScope<'s> {
    pub(super) fn with_variable(&self, name: &str, known: KnownValue<'s>) -> Self {
        let mut scope = self.clone();
        scope.facts.retain(|fact| !fact.is_about(name));
        scope.variables.push((name.to_owned(), known));
        scope
    }

    pub(super) fn with(&self, facts: Vec<Fact>) -> Self {
        let mut scope = self.clone();
        scope.facts.extend(facts);
        scope
    }

    pub(super) fn variable(&self, name: &str) -> Option<&KnownValue<'s>> {
        let name = name.trim_start_matches('.');
        self.variables.iter().rev().find(|(variable, _)| variable == name).map(|(_, known)| known)
    }

    pub(super) fn is_present(&self, path: &[String]) -> Option<bool> {
        self.presence(path).or_else(|| {
            self.facts.iter().find_map(|fact| match fact {
                Fact::Together([one, other]) if one == path => self.presence(other),
                Fact::Together([other, one]) if one == path => self.presence(other),
                _ => None,
            })
        })
    }

    fn presence(&self, of: &[String]) -> Option<bool> {
        self.facts.iter().rev().find_map(|fact| match fact {
            Fact::Presence { path, is_present } if path == of => Some(*is_present),
            _ => None,
        })
    }
}

/// The facts that follow if `condition` evaluates to `holds`.
pub(super) fn facts(condition: &Expr, holds: bool, scope: &DecisionScope<'_>) -> Vec<Fact> {
    match &condition.kind {
        ExprKind::Select(select) if select.test_only => {
            let Some(holder) = path_of(&select.operand, scope) else { return Vec::new() };
            let path = [&holder[..], std::slice::from_ref(&select.field)].concat();
            let mut found = reached(&holder);
            found.push(Fact::Presence { path, is_present: holds });
            found
        }
        ExprKind::Call(call) => match (call.function.as_str(), call.args.as_slice(), holds) {
            (operators::LOGICAL_NOT, [operand], _) => facts(operand, !holds, scope),
            (operators::LOGICAL_AND, [left, right], true) | (operators::LOGICAL_OR, [left, right], false) => {
                [facts(left, holds, scope), facts(right, holds, scope)].concat()
            }
            (operators::EQUALS, [left, right], _) => match (truth_of(left), truth_of(right)) {
                (None, Some(truth)) => facts(left, truth == holds, scope),
                (Some(truth), None) => facts(right, truth == holds, scope),
                (None, None) if holds => together(left, right, scope).into_iter().collect(),
                _ => Vec::new(),
            },
            ("hasValue", [], true) => {
                let path = call.target.as_ref().and_then(|target| optional_path(target, scope));
                path.map_or(Vec::new(), |path| reached(&path))
            }
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// The fact that `has(a) == has(b)` states.
pub(super) fn together(left: &Expr, right: &Expr, scope: &DecisionScope<'_>) -> Option<Fact> {
    let tested = |expr: &Expr| match &expr.kind {
        ExprKind::Select(select) if select.test_only => {
            let mut path = path_of(&select.operand, scope)?;
            path.push(select.field.clone());
            Some(path)
        }
        _ => None,
    };
    Some(Fact::Together([tested(left)?, tested(right)?]))
}

/// The value of a boolean literal.
fn truth_of(expr: &Expr) -> Option<bool> {
    match expr.kind {
        ExprKind::Constant(Constant::Bool(truth)) => Some(truth),
        _ => None,
    }
}

/// The facts that follow from reading a field: it and all its parents are present.
pub(super) fn reached(path: &[String]) -> Vec<Fact> {
    (2..=path.len()).map(|length| Fact::Presence { path: path[..length].to_vec(), is_present: true }).collect()
}

/// The path of an expression such as `self.a[0].b`.
pub(super) fn path_of(expr: &Expr, scope: &DecisionScope<'_>) -> Option<FieldPath> {
    let (holder, below) = match &expr.kind {
        ExprKind::Ident(name) => {
            return match scope.variable(name) {
                Some(KnownValue::Node(node)) => Some(node.access.path.clone()),
                Some(_) => None,
                // `oldSelf`, whose fields have facts of their own.
                None => Some(vec![name.clone()]),
            };
        }
        ExprKind::Select(select) if !select.test_only => (&select.operand, select.field.clone()),
        ExprKind::Call(call) => match (call.function.as_str(), call.args.as_slice()) {
            (operators::INDEX, [holder, index]) => (holder, index_of(index)?),
            _ => return None,
        },
        _ => return None,
    };
    let mut path = path_of(holder, scope)?;
    path.push(below);
    Some(path)
}

/// The path of an expression such as `self.a.?b`.
fn optional_path(expr: &Expr, scope: &DecisionScope<'_>) -> Option<FieldPath> {
    let ExprKind::Call(call) = &expr.kind else { return None };
    match (call.function.as_str(), call.args.as_slice()) {
        (operators::OPTIONAL_SELECT, [holder, field]) => {
            let ExprKind::Constant(Constant::String(field)) = &field.kind else { return None };
            let mut path = path_of(holder, scope).or_else(|| optional_path(holder, scope))?;
            path.push(field.clone());
            Some(path)
        }
        _ => None,
    }
}

/// A literal index, as a step of a path.
pub(super) fn index_of(index: &Expr) -> Option<String> {
    match &index.kind {
        ExprKind::Constant(Constant::Int(index)) => Some(format!("[{index}]")),
        ExprKind::Constant(Constant::String(key)) => Some(format!("[{key:?}]")),
        _ => None,
    }
}
