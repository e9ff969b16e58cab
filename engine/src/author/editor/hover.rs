//! Hover texts: the documentation of a position.
//!
//! Input: a text and a position. Output: Markdown, in which everything that comes from a definition is escaped: the
//! type, the description, constraints, rules with their costs; for a name in an expression its type.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::complete::{Around, node_of};
use super::documents::Sort;
use super::expression::{EditedExpression, expression_at};
use super::names::{shown as shown_type, signatures};
use super::outline::{OutlineStep, below_version, shown};
use super::text::{Position, Text, TextRange};
use super::types::{ExpressionName, MACROS, named_at};
use super::workspace::Workspace;
use crate::author::explain::{Explained, ExplainedRule, explain_node, say};
use crate::author::markup::{code, description, escaped, sentence};
use crate::cel::cost::model::EXPRESSION_ESTIMATE_MAX;
use crate::cel::env::Env;
use crate::crd::bounds::{Advice, Bound, advise};
use crate::crd::validate;
use crate::crd::validate::expressions::RuleCosts;

/// The hover text of a position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hover {
    /// The text, as Markdown.
    pub text: String,
    /// The range that it is about.
    pub range: TextRange,
}

/// The title for the field at the end of a path. In a definition the last step is enough: the path through its schemas
/// says nothing.
fn title(around: &Around<'_>, path: &[OutlineStep]) -> String {
    match path.last() {
        Some(OutlineStep::Key(name)) if around.sort == Sort::Definition => name.clone(),
        _ => shown(path),
    }
}

/// The number of signatures of a function that are shown; conversions have many.
const SIGNATURES_MAX: usize = 4;

/// Describes a name in an expression: its type or its parameters.
fn told_name(ExpressionName { name, ty, call }: &ExpressionName, env: &Env) -> String {
    let Some(receiver) = call else { return code(&format!("{name}: {}", shown_type(ty))) };
    let mut macros = MACROS.iter().filter(|_| receiver.is_some());
    if let Some((_, parameters)) = macros.find(|(known, _)| known == name) {
        return code(&format!("{name}({parameters})"));
    }
    if name == "has" && receiver.is_none() {
        return format!("{}: whether it is set", code("has(x.field)"));
    }
    let function = env.library.function(name);
    let all: BTreeSet<String> =
        function.into_iter().flat_map(|function| signatures(function, receiver.as_ref())).collect();
    let shown: Vec<String> = all.iter().take(SIGNATURES_MAX).map(|told| code(&format!("{name}{told}"))).collect();
    match (shown.is_empty(), all.len().saturating_sub(SIGNATURES_MAX)) {
        (true, _) => code(&format!("{name}: {}", shown_type(ty))),
        (false, 0) => shown.join(", "),
        (false, more) => format!("{} and {more} more", shown.join(", ")),
    }
}

impl Workspace {
    /// The hover text at a position of the text of a file.
    pub fn hover(&self, name: &str, text: &Text, position: Position) -> Option<Hover> {
        let around = Around::new(name, text, position);
        if let Some(expression) = expression_at(around.text, &around.outline, around.sort, around.offset) {
            return self.hover_expression(&around, text, &expression);
        }
        let node = around.outline.at(around.offset)?;
        let path = around.outline.path(node);
        let mut told = String::new();
        let mut told_at = |title: &str, explained: &Explained| told = self.told(&around, title, explained, &path);
        let title = title(&around, &path);
        match self.specified(&around, &path) {
            Some((field, explained)) => told_at(&field, &explained),
            None => _ = self.shape_at(&around, &path, &mut |shape| told_at(&title, &shape.explained())),
        }
        let key = &around.outline.nodes[node].key;
        let range = text.range(&(around.start + key.start..around.start + key.end));
        (!told.is_empty()).then_some(Hover { text: told, range })
    }

    /// Explains the field that a property of a definition's schema specifies.
    fn specified(&self, around: &Around<'_>, path: &[OutlineStep]) -> Option<(String, Explained)> {
        let (version, below) = below_version(path)?;
        let [.., OutlineStep::Key(word), OutlineStep::Key(name)] = below else { return None };
        if around.sort != Sort::Definition || word != "properties" {
            return None;
        }
        let (group, kind) = (["spec", "group"], ["spec", "names", "kind"]);
        let at = |names: &[&str]| around.outline.scalar_at(around.text, names).to_owned();
        let kind = self.catalog.named(&at(&group), &at(&kind))?;
        let node = node_of(&kind.versions.get(version)?.structural, below)?;
        Some((name.clone(), explain_node(node)))
    }

    fn told(&self, around: &Around<'_>, title: &str, explained: &Explained, path: &[OutlineStep]) -> String {
        let mut out = String::new();
        // Writing to a String can't fail.
        let required = if self.is_required(around, path) { ", required" } else { "" };
        let _ = write!(out, "**{}** {}{required}", escaped(title), code(&explained.type_));
        if !explained.description.is_empty() {
            let _ = write!(out, "\n\n{}", description(&explained.description));
            // A list follows, which needs an empty line before it.
            out.push_str(if explained.constraints.is_empty() && explained.rules.is_empty() { "" } else { "\n" });
        }
        for constraint in &explained.constraints {
            let _ = write!(out, "\n- {}", sentence(constraint));
        }
        let costs = if around.sort == Sort::Object { self.costs(around) } else { Vec::new() };
        for ExplainedRule { rule, words, message } in &explained.rules {
            let said = words.as_deref().map_or_else(|| code(rule), sentence);
            let _ = write!(out, "\n- {said}");
            if let Some(message) = message {
                let _ = write!(out, " (else: {})", sentence(message));
            }
            if let Some(cost) = costs.iter().find(|cost| cost.rule.rule.trim() == rule) {
                let _ = write!(out, ", cost {} of {EXPRESSION_ESTIMATE_MAX}", cost.cost);
            }
        }
        out
    }

    fn is_required(&self, around: &Around<'_>, path: &[OutlineStep]) -> bool {
        let Some((OutlineStep::Key(name), before)) = path.split_last() else { return false };
        let mut found = false;
        self.shape_at(around, before, &mut |shape| {
            found = shape.fields().iter().any(|field| field.name == *name && field.is_required);
        });
        found
    }

    /// The costs of the rules of an object's kind.
    fn costs(&self, around: &Around<'_>) -> Vec<RuleCosts> {
        let kind = self.catalog.named(around.head.group(), &around.head.kind);
        let costs = kind.map(|kind| validate::create_with_costs(&kind.definition).1).unwrap_or_default();
        costs.into_iter().flat_map(|costs| costs.rules).collect()
    }

    fn hover_expression(&self, around: &Around<'_>, text: &Text, expression: &EditedExpression) -> Option<Hover> {
        let env = self.environment(around, expression)?;
        let mut out = String::new();
        let at = expression.index(around.offset);
        if let Some(named) = named_at(&expression.text, at, &env) {
            out.push_str(&told_name(&named, &env));
        }
        let written = expression.written();
        if let Some(words) = say(&written) {
            let _ = write!(out, "\n\n{}", sentence(&words));
        }
        if let Some(priced) = self.price(around, expression, &written) {
            let _ = write!(out, "\n\n{priced}");
        }
        let range = &around.outline.nodes[expression.node].value;
        let range = text.range(&(around.start + range.start..around.start + range.end));
        Some(Hover { text: out.trim().to_owned(), range }).filter(|hover| !hover.text.is_empty())
    }

    /// Describes the cost of a rule, and the bounds that would lower it.
    fn price(&self, around: &Around<'_>, expression: &EditedExpression, written: &str) -> Option<String> {
        let (costs, advice) = self.priced_rule(around, expression, written)?;
        let share = costs.cost as f64 * 100.0 / EXPRESSION_ESTIMATE_MAX as f64;
        let times = match costs.cardinality() {
            1 => "once".to_owned(),
            times => format!("up to {times} times"),
        };
        let mut out = format!("cost {} of {EXPRESSION_ESTIMATE_MAX} ({share:.1}%), evaluated {times}", costs.cost);
        if let Some(bounds) = advice.remedies.first() {
            let bounds: Vec<String> = bounds.iter().map(|bound: &Bound| code(&bound.to_string())).collect();
            let _ = write!(out, "; set {}", bounds.join(", "));
        }
        Some(out)
    }

    /// The costs of the rule at an expression of a definition, and advice about them.
    pub(super) fn priced_rule(
        &self,
        around: &Around<'_>,
        expression: &EditedExpression,
        written: &str,
    ) -> Option<(RuleCosts, Advice)> {
        let group = around.outline.scalar_at(around.text, &["spec", "group"]);
        let kind = self.catalog.named(group, around.outline.scalar_at(around.text, &["spec", "names", "kind"]))?;
        let path = around.outline.path(expression.node);
        let Some(OutlineStep::Item(version)) = path.get(2) else { return None };
        let root = &kind.versions.get(*version)?.structural;
        let own = format!("spec.versions[{version}].schema.openAPIV3Schema");
        let (_, costs) = validate::create_with_costs(&kind.definition);
        let of_version =
            costs.into_iter().find(|costs| costs.path == own || costs.path == "spec.validation.openAPIV3Schema")?;
        let rule = of_version.rules.into_iter().find(|rule| rule.rule.rule.trim() == written.trim())?;
        let advice = advise(root, &rule);
        Some((rule, advice))
    }
}
