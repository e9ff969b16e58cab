//! Functions of the language: the signatures, the cost and the implementation of each.

use std::sync::Arc;

use super::cost::{Cost, Range, Sizes};
use super::eval::{CallScope, EvalError, Value};
use super::types::Type;
use crate::meta::minor::Minor;

/// A function with all its overloads, in the order in which they are tried.
#[derive(Clone, Debug)]
pub struct Function {
    /// The name that calls use.
    pub name: &'static str,
    /// The overloads, in the order in which they are tried.
    pub overloads: Vec<Arc<Overload>>,
    /// How its arguments are evaluated.
    pub calling: Calling,
}

/// One signature of a function.
#[derive(Clone, Debug)]
pub struct Overload {
    /// The overload's id, as costs and errors refer to it.
    pub id: &'static str,
    /// Whether this is a method, `target.function(…)`; then `params[0]` is the target.
    pub is_member: bool,
    /// The types of the arguments; the first one of a method is the target.
    pub params: Vec<Type>,
    /// The type of the result.
    pub result: Type,
    /// The names of the type parameters in `params` and `result`.
    pub type_params: Vec<Arc<str>>,
    /// The cost of a call: the estimate, and the actual cost after the call.
    pub cost: Cost,
    /// The size of the text that a conversion returns. Servers treat it as unbounded; only estimates that no server
    /// makes use it.
    pub text_size: Option<TextSize>,
    /// How a call is executed.
    pub run: CalledBy,
    /// The first version of Kubernetes whose library has the overload.
    pub since: Minor,
    /// The first version of Kubernetes whose servers have the overload, if cel-go added it to a library that existed
    /// before. New expressions may use it in that version already.
    pub built: Minor,
    /// The first version of Kubernetes whose servers no longer have the overload.
    pub until: Option<Minor>,
    /// The costs of a call before the version given with each, oldest version first.
    pub former_costs: Vec<(Minor, Cost)>,
    /// The implementations before the version given with each, oldest version first.
    pub former_runs: Vec<(Minor, Implementation)>,
}

/// The implementation of an overload. `arguments` match its parameters; lists and maps are checked to be lists and
/// maps, but their elements are not checked. The first argument of a method is the target.
pub type Implementation = for<'a> fn(&mut CallScope<'_>, &[Value<'a>]) -> Result<Value<'a>, EvalError>;

/// Computes the size of a result from the sizes of the arguments.
pub type TextSize = fn(&Sizes<'_, '_>) -> Range;

/// How a call is executed.
#[derive(Clone, Copy, Debug)]
pub enum CalledBy {
    /// By this function, with the values of the arguments.
    Function(Implementation),
    /// By the evaluator itself, which may leave an argument unevaluated or continue from what an argument names.
    Evaluator,
}

/// How a function's arguments are evaluated, and how its overload is chosen. The default is the behaviour of most
/// functions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calling {
    /// The error of a call that no overload accepts.
    pub mismatch: Mismatch,
    /// Whether the reference implements all overloads as one function, which dispatches on the values itself.
    pub is_single: bool,
    /// Whether the second argument is a regular expression. A constant one is compiled with the program.
    pub has_pattern: bool,
    /// Whether a call with a constant argument is evaluated when the program is compiled.
    pub is_folded: bool,
    /// Whether the first argument that fails ends the call, even if there are fewer than three arguments. With three or
    /// more it always does.
    pub stops_at_failure: bool,
}

/// The error of a call that no overload accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mismatch {
    /// Names the function and the types of the arguments.
    #[default]
    Types,
    /// Says only that there is no such overload.
    Bare,
    /// Whatever the function itself returns: its arguments are not checked before the call.
    Unguarded,
    /// No details if the first argument's type supports such operations, else the function's name.
    Trait(Trait),
}

/// Operations that the values of some types support.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trait {
    /// Has `+`.
    Adder,
    /// Has an order: `<`, `<=`, `>`, `>=`.
    Comparer,
    /// Has `/`.
    Divider,
    /// Has items that can be accessed by index.
    List,
    /// Has `matches`.
    Matcher,
    /// Has `%`.
    Modder,
    /// Has `*`.
    Multiplier,
    /// Has unary `-`.
    Negator,
    /// Has `size`.
    Sizer,
    /// Has `-`.
    Subtractor,
}

impl Function {
    /// Makes a function called `name`, with the default [`Calling`].
    pub fn new(name: &'static str, overloads: impl IntoIterator<Item = Overload>) -> Self {
        let overloads = overloads.into_iter().map(Arc::new).collect();
        Function { name, overloads, calling: Calling::default() }
    }

    /// Sets how calls are made.
    #[must_use]
    pub fn calling(self, calling: Calling) -> Self {
        Function { calling, ..self }
    }

    /// The cost of a call whose overload is only known at evaluation, because several match the argument types: the
    /// cost that goes with the function's name, or one step.
    pub fn unresolved_cost(&self) -> Cost {
        let of_name = self.overloads.iter().find(|overload| overload.cost.is_of_name());
        of_name.map_or(Cost::One, |overload| overload.cost)
    }
}

impl Calling {
    /// One implementation for all values that support `operation`.
    pub const fn by_trait(operation: Trait) -> Calling {
        Calling { mismatch: Mismatch::Trait(operation), is_single: true, ..Calling::USUAL }
    }

    /// Calls whose mismatches are reported without details.
    pub const BARE: Calling = Calling { mismatch: Mismatch::Bare, ..Calling::USUAL };

    /// The default: all arguments are evaluated before the call, and their errors are passed on.
    pub const USUAL: Calling = Calling {
        mismatch: Mismatch::Types,
        is_single: false,
        has_pattern: false,
        is_folded: false,
        stops_at_failure: false,
    };
}

impl Overload {
    /// Declares `function(params) -> result`.
    pub fn global(
        id: &'static str,
        params: impl Into<Vec<Type>>,
        result: Type,
        cost: Cost,
        run: Implementation,
    ) -> Self {
        Overload::declare(id, false, params.into(), result, cost, CalledBy::Function(run))
    }

    /// Declares the method `params[0].function(params[1..]) -> result`.
    pub fn member(
        id: &'static str,
        params: impl Into<Vec<Type>>,
        result: Type,
        cost: Cost,
        run: Implementation,
    ) -> Self {
        Overload::declare(id, true, params.into(), result, cost, CalledBy::Function(run))
    }

    /// Declares the same as [`Overload::global`], but the evaluator executes the calls.
    pub(in crate::cel) fn evaluated(id: &'static str, params: impl Into<Vec<Type>>, result: Type, cost: Cost) -> Self {
        Overload::declare(id, false, params.into(), result, cost, CalledBy::Evaluator)
    }

    /// Declares the same as [`Overload::member`], but the evaluator executes the calls.
    pub(in crate::cel) fn evaluated_member(
        id: &'static str,
        params: impl Into<Vec<Type>>,
        result: Type,
        cost: Cost,
    ) -> Self {
        Overload::declare(id, true, params.into(), result, cost, CalledBy::Evaluator)
    }

    /// Sets the first version of Kubernetes whose library has the overload.
    #[must_use]
    pub fn since(self, minor: u16) -> Self {
        Overload { since: Minor::of(minor), ..self }
    }

    /// Sets the first version of Kubernetes whose servers no longer have the overload.
    #[must_use]
    pub fn until(self, minor: u16) -> Self {
        Overload { until: Some(Minor::of(minor)), ..self }
    }

    /// Whether servers of `minor` have the overload for expressions that `version` must understand.
    pub fn is_known(&self, minor: Minor, version: Minor) -> bool {
        self.since <= version && self.built <= minor && self.until.is_none_or(|until| minor < until)
    }

    /// Sets the first version of Kubernetes whose servers have the overload.
    #[must_use]
    pub fn built(self, minor: u16) -> Self {
        Overload { built: Minor::of(minor), ..self }
    }

    /// Adds the cost of a call before version `minor`. With several of them, call this for the oldest version first.
    #[must_use]
    pub fn before(mut self, minor: u16, cost: Cost) -> Self {
        self.former_costs.push((Minor::of(minor), cost));
        self
    }

    /// Adds the implementation before version `minor`. With several of them, call this for the oldest version first.
    #[must_use]
    pub fn formerly(mut self, minor: u16, run: Implementation) -> Self {
        self.former_runs.push((Minor::of(minor), run));
        self
    }

    /// Sets the size of the text that the overload returns.
    #[must_use]
    pub fn making(self, size: TextSize) -> Self {
        Overload { text_size: Some(size), ..self }
    }

    /// The first version of Kubernetes whose new expressions may call the overload: the one after the version whose
    /// library first had it, or the version whose servers added it to an existing library.
    pub fn new_since(&self) -> Minor {
        self.built.max(self.since.next())
    }

    /// The cost of a call in version `minor`.
    pub fn cost_in(&self, minor: Minor) -> Cost {
        self.former_costs.iter().find(|(before, _)| minor < *before).map_or(self.cost, |(_, cost)| *cost)
    }

    /// Whether the cost or the implementation differs in some version.
    pub fn has_changed(&self) -> bool {
        !self.former_costs.is_empty() || !self.former_runs.is_empty()
    }

    /// How a call is executed in version `minor`.
    pub fn run_in(&self, minor: Minor) -> CalledBy {
        let former = self.former_runs.iter().find(|(before, _)| minor < *before);
        former.map_or(self.run, |(_, run)| CalledBy::Function(*run))
    }

    fn declare(id: &'static str, is_member: bool, params: Vec<Type>, result: Type, cost: Cost, run: CalledBy) -> Self {
        let mut type_params = Vec::new();
        for ty in params.iter().chain([&result]) {
            collect_type_params(ty, &mut type_params);
        }
        let (since, built, until) = (Minor::of(0), Minor::of(0), None);
        let (former_costs, former_runs) = (Vec::new(), Vec::new());
        Overload {
            id,
            is_member,
            params,
            result,
            type_params,
            cost,
            text_size: None,
            run,
            since,
            built,
            until,
            former_costs,
            former_runs,
        }
    }
}

fn collect_type_params(ty: &Type, names: &mut Vec<Arc<str>>) {
    match ty {
        Type::Param(name) if !names.contains(name) => names.push(name.clone()),
        Type::List(element) => collect_type_params(element, names),
        Type::Map(entry) => {
            collect_type_params(&entry.0, names);
            collect_type_params(&entry.1, names);
        }
        Type::Opaque(opaque) => opaque.params.iter().for_each(|param| collect_type_params(param, names)),
        Type::Type(Some(of)) => collect_type_params(of, names),
        _ => {}
    }
}
