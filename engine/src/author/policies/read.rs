//! The expressions of a policy as they are written, and which variables they read.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::author::Catalog;
use crate::cel::ast::{Expr, ExprKind};
use crate::crd::ServedVersion;
use crate::kinds::runtime_config::RuntimeConfig;
use crate::policy::mutation::MutationType;
use crate::policy::type_check::Purpose;
use crate::value::Value;

/// An expression of a policy.
pub(super) struct WrittenExpression<'p> {
    /// `spec.validations[0].expression`.
    pub field: String,
    pub text: &'p str,
    pub group: ExpressionGroup,
}

impl WrittenExpression<'_> {
    /// What its types are checked for.
    pub fn purpose(&self) -> Purpose {
        match self.group {
            ExpressionGroup::Mutation(_) if self.field.ends_with("].jsonPatch.expression") => {
                Purpose::Mutation(MutationType::JsonPatch)
            }
            ExpressionGroup::Mutation(_) => Purpose::Mutation(MutationType::ApplyConfiguration),
            ExpressionGroup::Validations if self.field.ends_with("].messageExpression") => Purpose::Message,
            ExpressionGroup::Conditions | ExpressionGroup::Validations | ExpressionGroup::Annotations => {
                Purpose::Decision
            }
        }
    }
}

/// What is evaluated together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExpressionGroup {
    /// Match conditions.
    Conditions,
    /// Validations with their messages.
    Validations,
    /// Annotations of the audit log.
    Annotations,
    /// Each by itself.
    Mutation(usize),
}

/// All expressions of a policy but its variables.
pub(super) fn expressions(policy: &Value) -> Vec<WrittenExpression<'_>> {
    const PLACES: [(&str, &[&[&str]], ExpressionGroup); 3] = [
        ("matchConditions", &[&["expression"]], ExpressionGroup::Conditions),
        ("validations", &[&["expression"], &["messageExpression"]], ExpressionGroup::Validations),
        ("auditAnnotations", &[&["valueExpression"]], ExpressionGroup::Annotations),
    ];
    const MUTATION: [&[&str]; 2] = [&["applyConfiguration", "expression"], &["jsonPatch", "expression"]];
    let mut found = Vec::new();
    for (list, paths, group) in PLACES {
        for (at, item) in policy.items_at(&["spec", list]).iter().enumerate() {
            found.extend(paths.iter().filter_map(|path| written(list, at, item, path, group)));
        }
    }
    for (at, item) in policy.items_at(&["spec", "mutations"]).iter().enumerate() {
        found.extend(
            MUTATION.iter().filter_map(|path| written("mutations", at, item, path, ExpressionGroup::Mutation(at))),
        );
    }
    found
}

/// The texts of all expressions of a policy, those of its variables, too.
pub fn expressions_of(policy: &Value) -> impl Iterator<Item = &str> {
    let variables = policy.items_at(&["spec", "variables"]).iter().map(|variable| variable.str_at(&["expression"]));
    variables.chain(expressions(policy).into_iter().map(|written| written.text))
}

/// The expression at `path` of an item, if there is one.
fn written<'p>(
    list: &str,
    at: usize,
    item: &'p Value,
    path: &[&str],
    group: ExpressionGroup,
) -> Option<WrittenExpression<'p>> {
    let text = item.at(path)?.as_str().filter(|text| !text.trim().is_empty())?;
    Some(WrittenExpression { field: format!("spec.{list}[{at}].{}", path.join(".")), text, group })
}

/// The variables that an expression reads.
pub(super) fn variables_in(expr: &Expr) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    note_variables(expr, &mut found);
    found
}

fn note_variables(expr: &Expr, found: &mut BTreeSet<String>) {
    if let ExprKind::Select(select) = &expr.kind
        && matches!(&select.operand.kind, ExprKind::Ident(name) if name.trim_start_matches('.') == "variables")
    {
        found.insert(select.field.clone());
    }
    expr.children().into_iter().for_each(|child| note_variables(child, found));
}

/// Every version that is served: of the built-in kinds, and of those of definitions.
pub fn served(catalog: &Catalog) -> Vec<Arc<ServedVersion>> {
    let minor = catalog.minor();
    let config = RuntimeConfig::of(minor);
    let built_in = config.kinds().map(|kind| Arc::new(kind.served_version_in(minor)));
    built_in.chain(catalog.kinds().flat_map(|kind| kind.versions.iter().cloned())).collect()
}
