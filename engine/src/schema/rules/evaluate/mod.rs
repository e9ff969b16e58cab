//! Runs the rules of a schema over an object.
//!
//! Input: compiled rules, an object and, on updates, the old one. Output: the errors, in the reference's order: a
//! node's own rules, then its items or entries, then its properties. They all share one budget. Source:
//! apiextensions-apiserver 1.37, `pkg/apiserver/schema/cel`.

use super::tree::{RuleNode, Rules, RunnableRule};
use crate::cel::cost::model::{CALL_LIMIT, OBJECT_BUDGET};
use crate::cel::eval::{BoundValue, EvalError, Program, Value as Cel};
use crate::meta::field::{self, ErrorList, ErrorSubject, Path};
use crate::meta::gate::Gate;
use crate::meta::minor::Minor;
use crate::schema::correlate::{Correlated, OldItems};
use crate::schema::json_schema::ValidationRule;
use crate::value::{Map, Value, go_quote};
use crate::work;

/// The longest message that an expression may make, in bytes.
const MESSAGE_BYTES_MAX: usize = 5120;

/// How much the rules may cost.
#[derive(Clone, Copy, Debug)]
pub struct CostLimits {
    /// One evaluation of an expression.
    pub call: u64,
    /// All evaluations for an object; when this is spent, nothing more is evaluated.
    pub object: i64,
}

impl Default for CostLimits {
    fn default() -> Self {
        CostLimits { call: CALL_LIMIT, object: OBJECT_BUDGET as i64 }
    }
}

/// The result of running the rules over an object.
#[derive(Clone, Debug, Default)]
pub struct RuleFindings {
    /// Errors for rules that do not hold or that failed.
    pub errors: ErrorList,
    /// Errors of values that an update did not change.
    pub ratcheted: Vec<field::Error>,
    /// The rest of the budget; `None` if evaluation was aborted because it ran out.
    pub left: Option<i64>,
}

/// An evaluation of a rule or of its message.
#[derive(Debug)]
pub struct RuleEvaluation<'r, 'a> {
    /// Where the value is.
    pub path: &'r Path<'r>,
    /// The rule.
    pub rule: &'r ValidationRule,
    /// `self` and `oldSelf`.
    pub variables: &'r [BoundValue<'a>],
    /// The number of the evaluation of a rule, from 0; its message has the same. Errors name it: [`ErrorSubject::Rule`].
    pub number: usize,
    /// Which of the node's rules.
    pub index: usize,
    /// Whether this is the evaluation of the rule's message.
    pub is_message: bool,
    /// What it came to.
    pub result: &'r Result<Cel<'a>, EvalError>,
    /// What it cost.
    pub cost: u64,
}

impl Rules {
    /// Runs the rules over `object` at `path`; `old` is the object before the update. With `correlated`, failures of
    /// values that the update did not change are only warnings. `observe` is called with each evaluation.
    pub fn evaluate<'a>(
        &'a self,
        path: &Path<'_>,
        object: &'a Value,
        old: Option<&'a Value>,
        correlated: Option<&Correlated<'_>>,
        limits: CostLimits,
        observe: &mut dyn FnMut(RuleEvaluation<'_, 'a>),
    ) -> RuleFindings {
        let mut evaluation = Evaluation {
            errors: ErrorList::new(),
            ratcheted: Vec::new(),
            evaluated: 0,
            left: limits.object,
            limits,
            minor: self.minor,
            observe,
        };
        let flow = match &self.root {
            Some(root) => {
                let kept = KeptValue { here: correlated, above: None::<&Correlated<'_>> };
                evaluation.node(root, path, object, old.filter(|old| !old.is_null()), kept)
            }
            None => Ok(()),
        };
        let Evaluation { errors, ratcheted, left, .. } = evaluation;
        RuleFindings { errors, ratcheted, left: flow.is_ok().then_some(left) }
    }

    /// [`Rules::evaluate`] with the limits of the server, from the root of an object.
    pub fn check(&self, object: &Value, old: Option<&Value>, correlated: Option<&Correlated<'_>>) -> RuleFindings {
        self.evaluate(&Path::ROOT, object, old, correlated, CostLimits::default(), &mut |_| {})
    }
}

/// The budget ran out.
struct Exhausted;

struct Evaluation<'o, 'a> {
    errors: ErrorList,
    ratcheted: Vec<field::Error>,
    /// How many rules have been evaluated.
    evaluated: usize,
    left: i64,
    limits: CostLimits,
    minor: Minor,
    observe: &'o mut dyn FnMut(RuleEvaluation<'_, 'a>),
}

/// A value whose rules run, and the variables of these.
struct RuleScene<'a, 'p, 'k> {
    node: &'a RuleNode,
    path: &'p Path<'k>,
    value: &'a Value,
    /// The variables of rules and messages; then those of the rules that use `oldSelf` as an optional.
    variables: [[BoundValue<'a>; 2]; 2],
    has_old: bool,
}

impl RuleScene<'_, '_, '_> {
    fn fault(&self, detail: String) -> field::Error {
        field::Error::invalid(self.path, self.node.type_.as_str(), detail)
    }
}

/// Whether an update left a value, or its parents, unchanged.
#[derive(Clone, Copy)]
struct KeptValue<'k, 'h, 'n> {
    here: Option<&'k Correlated<'h>>,
    /// The nearest ancestor that has an old value.
    above: Option<&'k Correlated<'n>>,
}

impl<'k, 'n> KeptValue<'k, 'n, 'n> {
    fn above(above: Option<&'k Correlated<'n>>) -> Self {
        KeptValue { here: None, above }
    }
}

impl KeptValue<'_, '_, '_> {
    fn is_unchanged(self) -> bool {
        match self.here {
            Some(here) => here.is_unchanged(),
            None => self.above.is_some_and(Correlated::is_unchanged),
        }
    }
}

impl<'a> Evaluation<'_, 'a> {
    fn node(
        &mut self,
        node: &'a RuleNode,
        path: &Path<'_>,
        value: &'a Value,
        old: Option<&'a Value>,
        kept: KeptValue<'_, '_, '_>,
    ) -> Result<(), Exhausted> {
        work::step();
        if value.is_null() {
            return Ok(());
        }
        self.rules(node, path, value, old, kept)?;
        for nested in &node.all_of {
            self.node(nested, path, value, old, KeptValue::above(kept.above))?;
        }
        match value {
            Value::Array(items) => self.items(node, path, items, old.and_then(Value::as_array), kept),
            Value::Object(fields) => self.entries(node, path, fields, old.and_then(Value::as_object), kept),
            _ => Ok(()),
        }
    }

    fn items(
        &mut self,
        node: &'a RuleNode,
        path: &Path<'_>,
        items: &'a [Value],
        old: Option<&'a [Value]>,
        kept: KeptValue<'_, '_, '_>,
    ) -> Result<(), Exhausted> {
        let Some(below) = &node.items else { return Ok(()) };
        let old_items = OldItems::new(old.unwrap_or_default(), &node.item_keys);
        for (index, item) in items.iter().enumerate() {
            let old = old_items.get(item);
            let path = path.index(index);
            match kept.here {
                None => self.node(below, &path, item, old, kept)?,
                Some(here) => {
                    let item_kept = here.item(index);
                    let kept = KeptValue { here: item_kept.as_ref(), above: Some(here) };
                    self.node(below, &path, item, old, kept)?;
                }
            }
        }
        Ok(())
    }

    fn entries(
        &mut self,
        node: &'a RuleNode,
        path: &Path<'_>,
        fields: &'a Map,
        old: Option<&'a Map>,
        kept: KeptValue<'_, '_, '_>,
    ) -> Result<(), Exhausted> {
        if let Some(below) = &node.values {
            for (name, value) in fields.iter() {
                self.entry(node, below, &path.key(name), name, value, old, kept)?;
            }
        }
        // Both are sorted; the walk goes through whichever is shorter.
        if fields.len() < node.properties.len() {
            for (name, value) in fields.iter() {
                if let Some(below) = node.properties.get(name) {
                    self.entry(node, below, &path.child(name), name, value, old, kept)?;
                }
            }
            return Ok(());
        }
        for (name, below) in node.properties.iter() {
            if let Some(value) = fields.get(name) {
                self.entry(node, below, &path.child(name), name, value, old, kept)?;
            }
        }
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "a step down has both ends of the step")]
    fn entry(
        &mut self,
        node: &'a RuleNode,
        below: &'a RuleNode,
        path: &Path<'_>,
        name: &str,
        value: &'a Value,
        old: Option<&'a Map>,
        kept: KeptValue<'_, '_, '_>,
    ) -> Result<(), Exhausted> {
        let old = old.filter(|_| node.is_correlatable).and_then(|old| old.get(name)).filter(|old| !old.is_null());
        match kept.here {
            None => self.node(below, path, value, old, kept),
            // Both objects were converted to the same version, so a change does not show.
            Some(_) if kept.above.is_none() && matches!(name, "apiVersion" | "kind") => {
                self.node(below, path, value, old, KeptValue::above(None::<&Correlated<'_>>))
            }
            Some(here) => {
                let entry_kept = here.field(name);
                self.node(below, path, value, old, KeptValue { here: entry_kept.as_ref(), above: Some(here) })
            }
        }
    }

    fn rules(
        &mut self,
        node: &'a RuleNode,
        path: &Path<'_>,
        value: &'a Value,
        old: Option<&'a Value>,
        kept: KeptValue<'_, '_, '_>,
    ) -> Result<(), Exhausted> {
        let fault = |detail: String| field::Error::invalid(path, node.type_.as_str(), detail);
        if let Some(error) = node.error {
            self.errors.push(fault(format!("rule compiler initialization error: {error}")));
            return Ok(());
        }
        if node.rules.is_empty() {
            return Ok(());
        }
        if self.left <= 0 {
            self.errors.push(fault(OUT_OF_BUDGET.to_owned()));
            return Err(Exhausted);
        }
        let current = Some(Cel::host(value, &node.form));
        let uses_old = node.rules.iter().any(|rule| rule.uses_old_self);
        let before = old.filter(|_| uses_old).map(|old| Cel::host(old, &node.form));
        // The variables of messages: `oldSelf` as a plain value, even if the rule uses it as an optional.
        let plain = [current.clone(), before.clone()];
        let optional_variables = [current, uses_old.then(|| before.map_or(Ok(Cel::OPTIONAL_NONE), optional))];
        let scene = RuleScene { node, path, value, variables: [plain, optional_variables], has_old: old.is_some() };
        for (index, rule) in node.rules.iter().enumerate() {
            self.rule(&scene, (index, rule), kept)?;
        }
        Ok(())
    }

    fn rule(
        &mut self,
        scene: &RuleScene<'a, '_, '_>,
        (index, rule): (usize, &'a RunnableRule),
        kept: KeptValue<'_, '_, '_>,
    ) -> Result<(), Exhausted> {
        let program = match &rule.program {
            None => return Ok(()),
            Some(Err(error)) => {
                self.errors.push(scene.fault(format!("rule compile error: {error}")));
                return Ok(());
            }
            Some(Ok(program)) => program,
        };
        let takes_optional = rule.rule.optional_old_self == Some(true);
        let runs_without_old = takes_optional && self.minor.opens(Gate::CrdValidationRatcheting);
        if rule.uses_old_self && !scene.has_old && !runs_without_old {
            return Ok(());
        }
        let [plain, with_optional] = &scene.variables;
        let variables = if takes_optional { with_optional } else { plain };
        let number = self.evaluated;
        self.evaluated += 1;
        let evaluated = program.evaluate(variables, self.limits.call);
        let (result, cost) = (evaluated.result, evaluated.cost);
        (self.observe)(RuleEvaluation {
            path: scene.path,
            rule: &rule.rule,
            variables,
            number,
            index,
            is_message: false,
            result: &result,
            cost,
        });
        let failed = |detail: String| scene.fault(detail).about(ErrorSubject::Rule(number));
        if !self.spend(cost) {
            self.errors.push(failed(OUT_OF_BUDGET.to_owned()));
            return Err(Exhausted);
        }
        match result {
            Ok(Cel::Bool(true)) => Ok(()),
            Ok(_) => self.refused(scene, rule, (number, index), kept),
            Err(error) => {
                let (detail, is_final) = failure_detail(&error, rule);
                self.errors.push(failed(detail));
                if is_final { Err(Exhausted) } else { Ok(()) }
            }
        }
    }

    /// Records that a rule does not hold; fails if the cost of its message exhausts the budget.
    fn refused(
        &mut self,
        scene: &RuleScene<'a, '_, '_>,
        rule: &'a RunnableRule,
        (number, index): (usize, usize),
        kept: KeptValue<'_, '_, '_>,
    ) -> Result<(), Exhausted> {
        let RuleScene { node, path, value, .. } = *scene;
        let (error, flow) = match self.message(rule, path, (number, index), &scene.variables[0]) {
            Ok(detail) => {
                let shown = if self.minor < SHOWS_VALUES_SINCE { Shown::Type } else { Shown::Value(value) };
                (refusal(rule, path, node, shown, detail), Ok(()))
            }
            Err(error) => (fault_at(rule, path, node, error.to_string()), Err(Exhausted)),
        };
        let error = error.about(ErrorSubject::Rule(number));
        if !rule.uses_old_self && kept.is_unchanged() {
            self.ratcheted.push(error);
        } else {
            self.errors.push(error);
        }
        flow
    }

    /// Takes `cost` from the budget; false if that is more than is left.
    fn spend(&mut self, cost: u64) -> bool {
        match i64::try_from(cost) {
            Ok(cost) if cost <= self.left => self.left -= cost,
            _ => return false,
        }
        true
    }

    /// The message of a refusal by `rule`.
    ///
    /// # Errors
    /// Why no more rules are run: the message was too dear.
    fn message(
        &mut self,
        rule: &'a RunnableRule,
        path: &Path<'_>,
        at: (usize, usize),
        variables: &[BoundValue<'a>],
    ) -> Result<String, MessageTooDear<'a>> {
        if let Some(program) = &rule.message
            && let Some(message) = self.computed_message(program, rule, path, at, variables)?
        {
            return Ok(message);
        }
        Ok(if rule.rule.message.is_empty() {
            format!("failed rule: {}", named(rule))
        } else {
            rule.rule.message.trim().to_owned()
        })
    }

    /// The message that `messageExpression` gives; `None` if it is of no use.
    fn computed_message(
        &mut self,
        program: &'a Program,
        rule: &'a RunnableRule,
        path: &Path<'_>,
        (number, index): (usize, usize),
        variables: &[BoundValue<'a>],
    ) -> Result<Option<String>, MessageTooDear<'a>> {
        let evaluated = program.evaluate(variables, self.limits.call);
        let (result, cost) = (evaluated.result, evaluated.cost);
        let (is_message, result_of) = (true, &result);
        (self.observe)(RuleEvaluation {
            path,
            rule: &rule.rule,
            variables,
            number,
            index,
            is_message,
            result: result_of,
            cost,
        });
        if i64::try_from(cost).map_or(true, |cost| cost > self.left) {
            return Err(MessageTooDear::Budget);
        }
        if matches!(result, Err(EvalError::CostLimitExceeded)) {
            return Err(MessageTooDear::Call { expression: &rule.rule.message_expression });
        }
        self.spend(cost);
        let Ok(Cel::String(message)) = result else { return Ok(None) };
        let message = message.trim();
        let is_of_use = !message.is_empty() && message.len() <= MESSAGE_BYTES_MAX && !message.contains('\n');
        Ok(is_of_use.then(|| message.to_owned()))
    }
}

/// A `messageExpression` was so expensive that no more rules are run.
#[derive(Debug, thiserror::Error)]
enum MessageTooDear<'r> {
    #[error(
        "messageExpression evaluation failed due to running out of cost budget, no further validation rules will be run"
    )]
    Budget,
    #[error(
        "no further validation rules will be run due to call cost exceeds limit for messageExpression: {}",
        go_quote(expression)
    )]
    Call { expression: &'r str },
}

/// The detail of the error for a rule that fails to evaluate, and whether evaluation stops there.
fn failure_detail(error: &EvalError, rule: &RunnableRule) -> (String, bool) {
    let named = named(rule);
    match error {
        EvalError::CostLimitExceeded => {
            let why = "no further validation rules will be run due to call cost exceeds limit for rule";
            (format!("'{error}': {why}: {named}"), true)
        }
        EvalError::NoSuchOverload(_) => {
            let why = "call arguments did not match a supported operator, function or macro signature for rule";
            (format!("'{error}': {why}: {named}"), false)
        }
        EvalError::Failed(_) | EvalError::Internal(_) => (format!("{error} evaluating rule: {named}"), false),
    }
}

const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

fn optional<'a>(value: Result<Cel<'a>, EvalError>) -> Result<Cel<'a>, EvalError> {
    value.map(Cel::optional_of)
}

/// The name of the rule in errors.
fn named(rule: &RunnableRule) -> &str {
    let text = if rule.rule.message.is_empty() { &rule.rule.rule } else { &rule.rule.message };
    text.trim()
}

fn fault_at(rule: &RunnableRule, path: &Path<'_>, node: &RuleNode, detail: String) -> field::Error {
    at(rule, path, |path| field::Error::invalid(path, node.type_.as_str(), detail))
}

/// The version of Kubernetes that began to show the invalid value; before, errors showed its type.
const SHOWS_VALUES_SINCE: Minor = Minor::of(35);

/// What an error shows as the invalid value.
enum Shown<'v> {
    Value(&'v Value),
    Type,
}

/// The error that a value fails `rule`.
fn refusal(rule: &RunnableRule, path: &Path<'_>, node: &RuleNode, shown: Shown<'_>, detail: String) -> field::Error {
    let (omits_value, value) = match shown {
        Shown::Value(value) => (matches!(node.type_.as_str(), "object" | "array"), value.clone()),
        Shown::Type => (false, Value::from(node.type_.as_str())),
    };
    at(rule, path, |path| match rule.rule.reason.as_deref() {
        Some("FieldValueForbidden") => field::Error::forbidden(path, detail),
        Some("FieldValueRequired") => field::Error::required(path, detail),
        Some("FieldValueDuplicate") if omits_value => {
            field::Error { bad_value: None, ..field::Error::duplicate(path, "") }
        }
        Some("FieldValueDuplicate") => field::Error::duplicate(path, value),
        _ if omits_value => field::Error::invalid_omitted(path, detail),
        _ => field::Error::invalid(path, value, detail),
    })
}

/// An error at the field that `rule` names.
fn at(rule: &RunnableRule, path: &Path<'_>, error: impl FnOnce(&Path<'_>) -> field::Error) -> field::Error {
    match rule.field_path.as_str() {
        "" => error(path),
        below => error(&path.child(below)),
    }
}

#[cfg(test)]
mod tests;
