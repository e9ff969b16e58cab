//! Calls of functions: their arguments, their results and their costs.

use super::{Machine, StepResult, is_over};
use crate::cel::cost::formula::{Formula, Wants};
use crate::cel::cost::{Called, Cost, model};
use crate::cel::eval::dispatch::is_adder;
use crate::cel::eval::error::EvalError;
use crate::cel::eval::node::{CallNode, PlanNode, Shortcut};
use crate::cel::eval::show::go_type;
use crate::cel::eval::value::Value;

/// The arguments of a call, as far as they were evaluated.
struct Arguments<A> {
    /// The values; null for an argument that failed.
    values: A,
    /// The first failure, and the index of the last one.
    failed: Option<(EvalError, usize)>,
}

impl<'a, A: AsRef<[Value<'a>]> + AsMut<[Value<'a>]>> Arguments<A> {
    fn of(values: A) -> Self {
        Arguments { values, failed: None }
    }

    /// Sets the argument at `place`, or records its failure.
    ///
    /// # Errors
    /// The failure ends the call.
    fn set(&mut self, call: &CallNode, place: usize, outcome: StepResult<'a>) -> Result<(), EvalError> {
        match outcome {
            Ok(argument) => self.values.as_mut()[place] = argument,
            Err(error) if error.is_final() => return Err(error),
            // There is no cost unless all arguments were evaluated.
            Err(error) if call.stops_at_failure && place + 1 < call.arguments.len() => return Err(error),
            Err(error) => {
                let first = self.failed.take().map_or(error, |(first, _)| first);
                self.failed = Some((first, place));
            }
        }
        Ok(())
    }
}

impl<'a> Machine<'a, '_> {
    #[inline(never)]
    pub(super) fn call(&mut self, call: &'a CallNode) -> StepResult<'a> {
        match (call.arguments.as_slice(), call.shortcut) {
            ([argument], Some(shortcut)) => self.call_with_one(call, shortcut, argument),
            ([left, right], Some(shortcut)) => self.call_with_two(call, shortcut, left, right),
            ([_], None) => self.evaluate_and_invoke(call, [const { Value::Null }; 1]),
            ([_, _], None) => self.evaluate_and_invoke(call, [const { Value::Null }; 2]),
            (arguments, _) => self.evaluate_and_invoke(call, vec![Value::Null; arguments.len()]),
        }
    }

    /// Evaluates a call with one argument. The most frequent functions are computed here, where the value already is.
    fn call_with_one(&mut self, call: &'a CallNode, shortcut: Shortcut, argument: &'a PlanNode) -> StepResult<'a> {
        let value = self.evaluate(argument);
        let size = match (shortcut, &value) {
            (Shortcut::Size, Ok(Value::String(text))) => text.characters(),
            (Shortcut::Size, Ok(Value::List(list))) => list.len() as u64,
            (Shortcut::Not, Ok(Value::Bool(truth))) => {
                self.charge(model::CALL)?;
                return Ok(Value::Bool(!truth));
            }
            _ => {
                let mut arguments = Arguments::of([Value::Null]);
                arguments.set(call, 0, value)?;
                return self.invoke(call, &mut arguments);
            }
        };
        self.charge(model::CALL)?;
        Ok(Value::Int(size as i64))
    }

    /// Evaluates a call with two arguments, like [`Machine::call_with_one`].
    fn call_with_two(
        &mut self,
        call: &'a CallNode,
        shortcut: Shortcut,
        left: &'a PlanNode,
        right: &'a PlanNode,
    ) -> StepResult<'a> {
        let left = self.evaluate(left);
        if is_over(&left) {
            return left;
        }
        let right = self.evaluate(right);
        if let (Ok(Value::Int(left)), Ok(Value::Int(right))) = (&left, &right)
            && let Some(truth) = shortcut.compare(*left, *right)
        {
            self.charge(model::CALL)?;
            return Ok(Value::Bool(truth));
        }
        let mut arguments = Arguments::of([Value::Null, Value::Null]);
        arguments.set(call, 0, left)?;
        arguments.set(call, 1, right)?;
        self.invoke(call, &mut arguments)
    }

    fn evaluate_and_invoke<A>(&mut self, call: &'a CallNode, values: A) -> StepResult<'a>
    where
        A: AsRef<[Value<'a>]> + AsMut<[Value<'a>]>,
    {
        let mut arguments = Arguments::of(values);
        for (place, argument) in call.arguments.iter().enumerate() {
            arguments.set(call, place, self.evaluate(argument))?;
        }
        self.invoke(call, &mut arguments)
    }

    /// Calls the function with `arguments`, unless one failed, and charges for it.
    fn invoke<A: AsRef<[Value<'a>]>>(&mut self, call: &'a CallNode, arguments: &mut Arguments<A>) -> StepResult<'a> {
        let values = arguments.values.as_ref();
        let (failed_at, mut result) = match arguments.failed.take() {
            Some((error, place)) => (Some(place), Err(error)),
            None => {
                self.refuse_pairs(&call.cost, values)?;
                self.scope.constant_pattern = call.pattern.as_ref();
                (None, call.invoke(&mut self.scope, values))
            }
        };
        let cost = match &call.cost {
            Cost::One => model::CALL,
            _ if is_over(&result) => return result,
            Cost::BySize(formula) => {
                check_priceable(formula, values, failed_at)?;
                formula.actual(&Called { arguments: values, result: result.as_ref().unwrap_or(&Value::Null) })
            }
        };
        self.charge_for(&mut result, cost);
        result
    }
}

impl<'a> Machine<'a, '_> {
    /// Ends a call that compares all pairs of items before it starts, if it costs too much in any case.
    fn refuse_pairs(&mut self, cost: &Cost, values: &[Value<'a>]) -> Result<(), EvalError> {
        match cost {
            Cost::BySize(formula) if formula.compares_pairs => {
                if !values.iter().all(|value| matches!(value, Value::List(_))) {
                    return Ok(());
                }
                let cost = formula.actual(&Called { arguments: values, result: &Value::Null });
                if self.can_afford(cost) { Ok(()) } else { Ok(self.charge(cost)?) }
            }
            _ => Ok(()),
        }
    }
}

/// Checks whether the reference can price a call at all: it requires lists if it traverses them. `failed_at` is the
/// last argument without a value.
fn check_priceable(formula: &Formula, values: &[Value<'_>], failed_at: Option<usize>) -> Result<(), EvalError> {
    let (place, wanted) = match formula.wants {
        Wants::Anything => return Ok(()),
        Wants::List(place) => (place, None),
        Wants::Int(place) => (place, Some("types.Int")),
    };
    let given = match values.get(place) {
        _ if failed_at == Some(place) => None,
        Some(Value::List(_)) if wanted.is_none() => return Ok(()),
        Some(Value::Int(_)) if wanted.is_some() => return Ok(()),
        given => given,
    };
    let ty = given.map_or("*types.Err", go_type);
    Err(EvalError::Internal(match wanted {
        Some(wanted) => format!("interface conversion: ref.Val is {ty}, not {wanted}").into(),
        None => {
            let lacks = if given.is_some_and(is_adder) { "Contains" } else { "Add" };
            format!("interface conversion: {ty} is not traits.Lister: missing method {lacks}").into()
        }
    }))
}
