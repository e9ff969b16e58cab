//! What is to be known of a place.
//!
//! In: a text and a position. Out: Markdown, in which everything that comes from a definition is quoted: a type, what it is
//! for, constraints, rules with their costs; of a name in an expression its type.

use std::fmt::Write as _;

use super::complete::{Around, node_of};
use super::documents::Sort;
use super::expression::{Expression, expression_at};
use super::names::signature;
use super::outline::{Step, shown};
use super::text::{Position, Range, Text};
use super::types::type_at;
use super::workspace::Workspace;
use crate::author::explain::{Explained, Rule, explain_node, say};
use crate::author::markup::{code, escaped};
use crate::cel::cost::model::EXPRESSION_ESTIMATE_MAX;
use crate::cel::types::Type;
use crate::crd::bounds::{Advice, Bound, advise};
use crate::crd::validate;
use crate::crd::validate::expressions::RuleCosts;

/// What is told of a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hover {
    /// Markdown.
    pub text: String,
    /// What it is about.
    pub range: Range,
}

impl Workspace {
    /// What is to be known of a position of the text of a file.
    pub fn hover(&self, name: &str, text: &Text, position: Position) -> Option<Hover> {
        let around = Around::new(name, text, position);
        if let Some(expression) = expression_at(around.text, &around.outline, around.sort, around.offset) {
            return self.hover_expression(&around, text, &expression);
        }
        let node = around.outline.at(around.offset)?;
        let path = around.outline.path(node);
        let mut told = String::new();
        let mut told_at = |title: &str, explained: &Explained| told = self.told(&around, title, explained, &path);
        let title = shown(&path);
        match self.specified(&around, &path) {
            Some((field, explained)) => told_at(&field, &explained),
            None => _ = self.shape_at(&around, &path, &mut |shape| told_at(&title, &shape.explained())),
        }
        let key = &around.outline.nodes[node].key;
        let range = text.range(&(around.start + key.start..around.start + key.end));
        (!told.is_empty()).then_some(Hover { text: told, range })
    }

    /// The field that a property of a definition's schema specifies.
    fn specified(&self, around: &Around<'_>, path: &[Step]) -> Option<(String, Explained)> {
        let [Step::Key(_), Step::Key(_), Step::Item(version), Step::Key(_), Step::Key(_), below @ ..] = path else {
            return None;
        };
        let [.., Step::Key(word), Step::Key(name)] = below else { return None };
        if around.sort != Sort::Definition || word != "properties" {
            return None;
        }
        let (group, kind) = (["spec", "group"], ["spec", "names", "kind"]);
        let at = |names: &[&str]| around.outline.scalar_at(around.text, names).to_owned();
        let kind = self.catalog.named(&at(&group), &at(&kind))?;
        let node = node_of(&kind.versions.get(*version)?.structural, below)?;
        Some((name.clone(), explain_node(node)))
    }

    fn told(&self, around: &Around<'_>, title: &str, explained: &Explained, path: &[Step]) -> String {
        let mut out = String::new();
        // Writing to a String can't fail.
        let required = if self.is_required(around, path) { ", required" } else { "" };
        let _ = write!(out, "**{}** {}{required}", escaped(title), code(&explained.type_));
        if !explained.description.is_empty() {
            let _ = write!(out, "\n\n{}", escaped(explained.description.trim()));
        }
        for constraint in &explained.constraints {
            let _ = write!(out, "\n- {}", escaped(constraint));
        }
        let costs = if around.sort == Sort::Object { self.costs(around) } else { Vec::new() };
        for Rule { rule, words, message } in &explained.rules {
            let said = words.as_deref().map_or_else(|| code(rule), escaped);
            let _ = write!(out, "\n- {said}");
            if let Some(message) = message {
                let _ = write!(out, " (else: {})", escaped(message.trim()));
            }
            if let Some(cost) = costs.iter().find(|cost| cost.rule.rule.trim() == rule) {
                let _ = write!(out, ", cost {} of {EXPRESSION_ESTIMATE_MAX}", cost.cost);
            }
        }
        out
    }

    fn is_required(&self, around: &Around<'_>, path: &[Step]) -> bool {
        let Some((Step::Key(name), before)) = path.split_last() else { return false };
        let mut found = false;
        self.shape_at(around, before, &mut |shape| {
            found = shape.fields().iter().any(|field| field.name == *name && field.is_required);
        });
        found
    }

    /// What the rules of an object's kind cost.
    fn costs(&self, around: &Around<'_>) -> Vec<RuleCosts> {
        let kind = self.catalog.named(around.head.group(), &around.head.kind);
        let costs = kind.map(|kind| validate::create_with_costs(&kind.definition).1).unwrap_or_default();
        costs.into_iter().flat_map(|costs| costs.rules).collect()
    }

    fn hover_expression(&self, around: &Around<'_>, text: &Text, expression: &Expression) -> Option<Hover> {
        let env = self.environment(around, expression)?;
        let mut out = String::new();
        let at = expression.index(around.offset);
        if let Some((name, ty)) = type_at(&expression.text, at, &env) {
            let called = env.library.function(&name).filter(|_| ty == Type::Dyn);
            let signature =
                called.and_then(|function| signature(function, Some(&Type::Dyn)).or_else(|| signature(function, None)));
            let _ = match signature {
                Some(signature) => write!(out, "{}", code(&format!("{name}{signature}"))),
                None => write!(out, "{}", code(&format!("{name}: {ty}"))),
            };
        }
        let written = expression.written();
        if let Some(words) = say(&written) {
            let _ = write!(out, "\n\n{}", escaped(&words));
        }
        if let Some(priced) = self.price(around, expression, &written) {
            let _ = write!(out, "\n\n{priced}");
        }
        let range = &around.outline.nodes[expression.node].value;
        let range = text.range(&(around.start + range.start..around.start + range.end));
        Some(Hover { text: out.trim().to_owned(), range }).filter(|hover| !hover.text.is_empty())
    }

    /// What a rule costs, and which bounds would lower that.
    fn price(&self, around: &Around<'_>, expression: &Expression, written: &str) -> Option<String> {
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

    /// The rule that an expression of a definition is, priced.
    pub(super) fn priced_rule(
        &self,
        around: &Around<'_>,
        expression: &Expression,
        written: &str,
    ) -> Option<(RuleCosts, Advice)> {
        let group = around.outline.scalar_at(around.text, &["spec", "group"]);
        let kind = self.catalog.named(group, around.outline.scalar_at(around.text, &["spec", "names", "kind"]))?;
        let path = around.outline.path(expression.node);
        let Some(Step::Item(version)) = path.get(2) else { return None };
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
