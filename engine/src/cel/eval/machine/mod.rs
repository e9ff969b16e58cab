//! The interpreter: evaluates the compiled form and counts its cost.
//!
//! Costs are counted as the reference counts them, step by step, whether or not a step fails: a part of an expression
//! that is not evaluated costs nothing, and an evaluation stops as soon as it costs more than its limit.

mod attribute;
mod call;
mod comprehension;
mod construct;

use std::sync::Arc;

use super::error::EvalError;
use super::list::List;
use super::map::check_hashable;
use super::node::{Comparison, ConstantSet, NoOptional, PlanNode};
use super::value::{CallScope, Value};
use crate::cel::cost::actual::{comparison, equality};
use crate::cel::cost::model;
use crate::work;

/// The result of a step.
pub(super) type StepResult<'a> = Result<Value<'a>, EvalError>;

/// The value of a variable: `None` if the activation does not have it; an error if the host's value does not fit its
/// form.
pub type BoundValue<'a> = Option<Result<Value<'a>, EvalError>>;

/// Variables that are evaluated on use: the content of [`Map::Variables`](super::map::Map).
pub trait Compose<'a> {
    /// The value of the variable `name`; `None` if there is no such variable.
    fn value(&self, name: &str) -> Option<Result<Value<'a>, EvalError>>;
}

/// The state of an evaluation.
pub(super) struct Machine<'a, 'm> {
    names: &'a [Arc<str>],
    variables: &'m [BoundValue<'a>],
    composed: Option<&'m dyn Compose<'a>>,
    locals: Vec<Local<'a>>,
    scope: CallScope<'a>,
    cost: u64,
    limit: u64,
}

/// A variable of a comprehension.
#[derive(Default)]
enum Local<'a> {
    #[default]
    Unset,
    /// The initial accumulator: evaluated on first use, if ever.
    Pending(&'a PlanNode),
    Set(StepResult<'a>),
    /// An item of the range; it is read on use.
    Item {
        list: List<'a>,
        index: usize,
    },
}

/// The evaluation exceeded its cost limit.
struct LimitExceeded;

impl From<LimitExceeded> for EvalError {
    fn from(_: LimitExceeded) -> Self {
        EvalError::CostLimitExceeded
    }
}

/// Whether a step ended the evaluation: then the result is passed on, and nothing more is charged.
fn is_over<T>(outcome: &Result<T, EvalError>) -> bool {
    outcome.as_ref().is_err_and(EvalError::is_final)
}

/// The maximum number of work steps that are counted for a cost: the work for a cost above every limit is not done.
const STEPS_PER_CHARGE_MAX: usize = 1 << 20;

impl<'a, 'm> Machine<'a, 'm> {
    /// `names` are those of `variables`.
    pub(super) fn new(names: &'a [Arc<str>], variables: &'m [BoundValue<'a>], slots: usize, limit: u64) -> Self {
        let locals = std::iter::repeat_with(Local::default).take(slots).collect();
        Machine { names, variables, composed: None, locals, scope: CallScope::default(), cost: 0, limit }
    }

    /// Adds variables that are evaluated on use.
    pub(super) fn with_composed(mut self, composed: Option<&'m dyn Compose<'a>>) -> Self {
        self.composed = composed;
        self
    }

    pub(super) fn cost(&self) -> u64 {
        self.cost
    }

    fn charge(&mut self, cost: u64) -> Result<(), LimitExceeded> {
        self.cost = self.cost.saturating_add(cost);
        if cost > model::CALL {
            work::steps(usize::try_from(cost).unwrap_or(usize::MAX).min(STEPS_PER_CHARGE_MAX));
        }
        if self.cost > self.limit { Err(LimitExceeded) } else { Ok(()) }
    }

    fn can_afford(&self, cost: u64) -> bool {
        self.cost.saturating_add(cost) <= self.limit
    }

    /// Charges steps of cost 1; the first one that exceeds the limit ends the evaluation.
    fn charge_steps(&mut self, steps: u64) -> Result<(), LimitExceeded> {
        self.charge(steps).inspect_err(|_| self.cost = self.limit.saturating_add(1))
    }

    /// Charges for a step with this `outcome`, which becomes the final error if the limit is exceeded; a final error is
    /// not charged.
    fn charge_for(&mut self, outcome: &mut StepResult<'a>, cost: u64) {
        if !is_over(outcome)
            && let Err(exceeded) = self.charge(cost)
        {
            *outcome = Err(exceeded.into());
        }
    }

    /// Evaluates `node`. This only dispatches: each step is a separate function, never inlined, so that none pays for
    /// the stack and the registers of another.
    pub(super) fn evaluate(&mut self, node: &'a PlanNode) -> StepResult<'a> {
        work::step();
        match node {
            PlanNode::Constant(value) => constant(value),
            PlanNode::Local(slot) => self.local(*slot, model::SELECT),
            PlanNode::Attribute(attribute) => self.attribute(attribute),
            PlanNode::And(terms) => self.logical(terms, false),
            PlanNode::Or(terms) => self.logical(terms, true),
            PlanNode::Compare(sides, how) => self.compare(sides, *how),
            PlanNode::Call(call) => self.call(call),
            PlanNode::Quantifier(quantifier) => self.quantify(quantifier),
            PlanNode::Fold(fold) => self.fold(fold),
            PlanNode::Append(append) => self.append(append),
            rare => self.evaluate_rare(rare),
        }
    }

    #[inline(never)]
    fn evaluate_rare(&mut self, node: &'a PlanNode) -> StepResult<'a> {
        match node {
            PlanNode::Variable(place) => {
                self.charge(model::SELECT)?;
                self.variable(*place)
            }
            PlanNode::Undeclared(name) => Err(no_such_attribute(name)),
            PlanNode::NotStrictlyFalse(argument) => {
                let mut value = self.evaluate(argument);
                self.charge_for(&mut value, model::CALL);
                match value {
                    Err(error) if error.is_final() => Err(error),
                    value => Ok(Value::Bool(!matches!(value, Ok(Value::Bool(false))))),
                }
            }
            PlanNode::OptionalOr(sides, other) => match self.evaluate(&sides[0])? {
                Value::Optional(None) => self.evaluate(&sides[1]),
                value @ Value::Optional(Some(_)) => Ok(value),
                value => not_optional(value, *other),
            },
            PlanNode::OptionalOrValue(sides, other) => match self.evaluate(&sides[0])? {
                Value::Optional(None) => self.evaluate(&sides[1]),
                Value::Optional(Some(value)) => Value::clone(&value).read(),
                value => not_optional(value, *other),
            },
            PlanNode::Membership(membership) => {
                let element = self.evaluate(&membership.element)?;
                check_hashable(&element)?;
                Ok(Value::Bool(membership.set.contains(&element)))
            }
            PlanNode::List(elements) => {
                let mut list = self.list(elements);
                self.charge_for(&mut list, model::MAKE_LIST);
                list
            }
            PlanNode::Map(entries) => {
                let mut map = self.map(entries);
                self.charge_for(&mut map, model::MAKE_MAP);
                map
            }
            PlanNode::Message(message) => {
                let mut value = self.message(message);
                self.charge_for(&mut value, model::MAKE_STRUCT);
                value
            }
            PlanNode::Insert(insert) => self.insert(insert),
            PlanNode::Merge(merge) => self.merge(merge),
            common => self.evaluate(common),
        }
    }

    fn variable(&self, place: usize) -> StepResult<'a> {
        match self.variables.get(place) {
            Some(Some(value)) => value.clone(),
            Some(None) | None => Err(no_such_attribute(self.names.get(place).map_or("", |name| &**name))),
        }
    }

    /// Reads the variable in `slot`, for `cost`.
    #[inline(never)]
    fn local(&mut self, slot: usize, cost: u64) -> StepResult<'a> {
        if let Local::Pending(init) = self.locals[slot] {
            match self.evaluate(init) {
                Err(error) if error.is_final() => return Err(error),
                start => self.locals[slot] = Local::Set(start),
            }
        }
        self.charge(cost)?;
        match &self.locals[slot] {
            Local::Item { list, index } => list.item(*index),
            Local::Set(value) => value.clone(),
            Local::Pending(_) | Local::Unset => Err(no_such_attribute("")),
        }
    }

    /// Evaluates `&&`, which `false` decides, or `||`, which `true` does. Errors only count if nothing decides.
    #[inline(never)]
    fn logical(&mut self, terms: &'a [PlanNode; 2], decisive: bool) -> StepResult<'a> {
        let mut failed = None;
        for term in terms {
            match self.evaluate(term) {
                Ok(Value::Bool(truth)) if truth == decisive => return Ok(Value::Bool(decisive)),
                Ok(Value::Bool(_)) => {}
                Ok(_) => _ = failed.get_or_insert_with(EvalError::no_such_overload),
                Err(error) if error.is_final() => return Err(error),
                Err(error) => _ = failed.get_or_insert(error),
            }
        }
        failed.map_or(Ok(Value::Bool(!decisive)), Err)
    }

    #[inline(never)]
    fn compare(&mut self, sides: &'a [PlanNode; 2], how: Comparison) -> StepResult<'a> {
        let left = self.evaluate(&sides[0]);
        if is_over(&left) {
            return left;
        }
        let right = self.evaluate(&sides[1]);
        if is_over(&right) {
            return right;
        }
        // An operand that failed counts as a scalar.
        let [first, second] = [&left, &right].map(|side| side.as_ref().unwrap_or(&Value::Null));
        let size = second.content_size();
        self.charge(if how.is_by_size { comparison(first.content_size(), size) } else { equality(first, size) })?;
        let equal = left?.is(&right?);
        // Values that cannot be compared are not equal.
        if how.is_equals { equal.map(Value::Bool) } else { Ok(Value::Bool(equal != Ok(true))) }
    }
}

fn no_such_attribute(name: &str) -> EvalError {
    EvalError::new(format!("no such attribute(s): {name}"))
}

#[inline(never)]
fn constant<'a>(value: &'a Value<'static>) -> StepResult<'a> {
    Ok(value.lend())
}

impl ConstantSet {
    fn contains(&self, value: &Value<'_>) -> bool {
        match value {
            Value::Bool(truth) => self.bools[usize::from(*truth)],
            Value::Int(number) => self.ints.contains(number),
            Value::Uint(number) => self.uints.contains(number),
            Value::Double(number) => !number.is_nan() && self.doubles.contains(&(number + 0.0).to_bits()),
            Value::String(text) => self.strings.contains(text.as_str()),
            _ => false,
        }
    }
}

/// The result for a value that is not an optional.
fn not_optional(value: Value<'_>, how: NoOptional) -> StepResult<'_> {
    match how {
        NoOptional::Fails => Err(EvalError::no_such_overload()),
        NoOptional::IsKept => Ok(value),
    }
}
