//! Evaluates the expressions of policies: their input, their variables, and their budget.
//!
//! Variables are evaluated on first use, once per group of expressions; their cost counts against the group's budget.
//!
//! Source: `k8s.io/apiserver/pkg/admission/plugin/cel/{activation,composition,condition}.go`, release 1.37.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::sync::Arc;

use thiserror::Error;

use super::environment::Declarations;
use super::expression::{CompileError, Expression};
use crate::cel::cost::model::CALL_LIMIT;
use crate::cel::eval::map::Map as CelMap;
use crate::cel::eval::{BoundValue, Compose, EvalError, Value as Cel};
use crate::cel::library::authorizer::{self, CheckedResource, RuleAuthorizer};
use crate::schema::rules::trace::{PartValue, Trace};
use crate::value::{Value, go_quote};

/// The total cost allowed for the expressions of a group.
pub const BUDGET: u64 = 10_000_000;
/// The total cost allowed for the match conditions of a webhook or a policy.
pub const CONDITIONS_BUDGET: u64 = 2_500_000;
/// The error if a group costs more than its budget.
pub const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";
/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EvaluationError {
    /// It does not compile.
    #[error("compilation error: {0}")]
    Compile(CompileError),
    /// Its evaluation fails.
    #[error("expression '{expression}' resulted in error: {error}")]
    Evaluate {
        /// The expression.
        expression: String,
        /// The error.
        error: EvalError,
    },
}

/// The maximum total depth of the expressions of variables that depend on each other: all of them are on the stack.
///
/// DIFFERS: the reference has no such limit, as Go's stack grows.
const LEVELS_MAX: usize = 10_000;
/// The levels that a variable adds to those of its expression.
const VARIABLE_LEVELS: usize = 10;

/// The parts of a request that expressions see. Absent parts are null.
#[derive(Clone)]
pub struct PolicyInput<'v> {
    /// The object, in the version that the rules matched, like `old_object`.
    pub object: &'v Value,
    /// The object before the request; null for a new one.
    pub old_object: &'v Value,
    /// The AdmissionRequest without its objects.
    pub request: &'v Value,
    /// The Namespace of the object; null if it has none.
    pub namespace: &'v Value,
    /// The parameters; null if there are none.
    pub params: &'v Value,
    /// The authorizer behind `authorizer`; `None` for expressions that don't have it.
    pub authorizer: Option<Arc<dyn RuleAuthorizer>>,
    /// The resource that the request named, whose version may differ from the one that matched.
    pub request_resource: &'v CheckedResource,
}

/// The variables of a policy.
#[derive(Debug, Default)]
pub struct Variables {
    all: Vec<(String, Expression)>,
    /// The index of each variable by its name; of several with the same name, the last one counts.
    places: HashMap<String, usize>,
}

impl Variables {
    /// Adds a variable that later expressions may use.
    pub fn add(&mut self, name: &str, expression: Expression) {
        self.places.insert(name.to_owned(), self.all.len());
        self.all.push((name.to_owned(), expression));
    }

    /// Their expressions.
    pub(super) fn expressions(&self) -> impl Iterator<Item = &Expression> {
        self.all.iter().map(|(_, expression)| expression)
    }
}

/// The error that the expressions of a group exceed its budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfBudget;

/// The variables of a group of expressions, and the rest of its budget.
pub struct Activation<'a> {
    bindings: Vec<BoundValue<'a>>,
    variables: Option<&'a Variables>,
    /// The variables that were used.
    values: RefCell<Vec<VariableState<'a>>>,
    /// The depth of the variables that are being evaluated.
    levels: Cell<usize>,
    /// The cost of variables since the last expression.
    composed_cost: Cell<u64>,
    left: u64,
}

#[derive(Clone)]
enum VariableState<'a> {
    Unknown,
    Pending,
    Known(Result<Cel<'a>, EvalError>),
}

impl<'a> Activation<'a> {
    /// Makes an activation for expressions that were compiled with `declared`, or a subset of it.
    pub fn new(
        input: &PolicyInput<'a>,
        declared: &Declarations,
        variables: Option<&'a Variables>,
        budget: u64,
    ) -> Self {
        let known = |value: Cel<'a>| Some(Ok(value));
        let mut bindings = vec![
            known(Cel::json(input.object)),
            known(Cel::json(input.old_object)),
            known(Cel::json(input.namespace)),
            known(Cel::json(input.request)),
        ];
        if declared.variables.is_some() {
            bindings.push(known(Cel::Map(CelMap::Variables)));
        }
        if declared.params.is_some() {
            bindings.push(known(Cel::json(input.params)));
        }
        if let Some(asked) = &input.authorizer {
            bindings.push(known(authorizer::authorizer(Arc::clone(asked))));
            bindings.push(known(authorizer::request_resource(Arc::clone(asked), input.request_resource.clone())));
        }
        Activation {
            bindings,
            variables,
            values: RefCell::new(vec![VariableState::Unknown; variables.map_or(0, |variables| variables.all.len())]),
            levels: Cell::new(0),
            composed_cost: Cell::new(0),
            left: budget,
        }
    }

    /// The rest of the budget.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Evaluates an expression to its value, or to the reason why it has none.
    ///
    /// # Errors
    /// The budget is exhausted: nothing more may be evaluated.
    pub fn evaluate(&mut self, expression: &'a Expression) -> Result<Result<Cel<'a>, EvaluationError>, OutOfBudget> {
        let program = match &expression.program {
            Ok(program) => program,
            Err(error) => return Ok(Err(EvaluationError::Compile(error.clone()))),
        };
        let evaluation = program.evaluate_composed(&self.bindings, Some(&*self), CALL_LIMIT);
        let cost = self.composed_cost.take().saturating_add(evaluation.cost);
        self.left = self.left.checked_sub(cost).ok_or(OutOfBudget)?;
        let failed = |error| EvaluationError::Evaluate { expression: expression.text.clone(), error };
        Ok(evaluation.result.map_err(failed))
    }

    /// The variables that were used, by index, and whether each had a value.
    pub fn read(&self) -> Vec<(usize, bool)> {
        let values = self.values.borrow();
        let known = values.iter().enumerate().filter_map(|(at, state)| match state {
            VariableState::Known(value) => Some((at, value.is_ok())),
            VariableState::Unknown | VariableState::Pending => None,
        });
        known.collect()
    }

    /// The values of the parts of an expression.
    pub fn parts(&self, trace: &'a Trace) -> Vec<PartValue> {
        trace.values_composed(&self.bindings, Some(self))
    }

    fn compose(&self, (name, expression): &'a (String, Expression)) -> Result<Cel<'a>, EvalError> {
        let name = go_quote(name);
        let program = match &expression.program {
            Ok(program) => program,
            Err(why) => return Err(EvalError::new(format!("composited variable {name} fails to compile: {why}"))),
        };
        let before = self.levels.get();
        let levels = before.saturating_add(program.levels()).saturating_add(VARIABLE_LEVELS);
        if levels > LEVELS_MAX {
            return Err(EvalError::new(format!("composited variable {name} needs too many others")));
        }
        self.levels.set(levels);
        let evaluation = program.evaluate_composed(&self.bindings, Some(self), CALL_LIMIT);
        self.levels.set(before);
        self.composed_cost.set(self.composed_cost.get().saturating_add(evaluation.cost));
        let failed =
            |error: EvalError| EvalError::new(format!("composited variable {name} fails to evaluate: {error}"));
        evaluation.result.map_err(failed)
    }
}

impl<'a> Compose<'a> for Activation<'a> {
    fn value(&self, name: &str) -> Option<Result<Cel<'a>, EvalError>> {
        let variables = self.variables?;
        let place = *variables.places.get(name)?;
        let state = std::mem::replace(&mut self.values.borrow_mut()[place], VariableState::Pending);
        let value = match state {
            VariableState::Known(value) => value,
            VariableState::Unknown => self.compose(variables.all.get(place)?),
            VariableState::Pending => {
                Err(EvalError::new(format!("composited variable {} needs itself", go_quote(name))))
            }
        };
        self.values.borrow_mut()[place] = VariableState::Known(value.clone());
        Some(value)
    }
}
