//! A function of the language: what it takes and gives, what a call costs, and what it does. All of it stands here once.

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
    /// What it can be called with.
    pub overloads: Vec<Arc<Overload>>,
    /// How its arguments are evaluated.
    pub calling: Calling,
}

/// One signature of a function.
#[derive(Clone, Debug)]
pub struct Overload {
    /// The name of the overload, in costs and errors.
    pub id: &'static str,
    /// `target.function(…)`: `params[0]` is the target.
    pub is_member: bool,
    /// The types of the arguments; of a method, the first is what it is called on.
    pub params: Vec<Type>,
    /// The type of the result.
    pub result: Type,
    /// Names of the type parameters in `params` and `result`.
    pub type_params: Vec<Arc<str>>,
    /// What a call costs, before it is made and after.
    pub cost: Cost,
    /// The size of the text that a conversion makes, which servers take to be unbounded: only estimates that no server makes
    /// go by it.
    pub text_size: Option<TextSize>,
    /// What a call does.
    pub run: CalledBy,
    /// The first version of Kubernetes that knows it.
    pub since: Minor,
    /// The first version of Kubernetes whose servers have it, where cel-go brought it to a library that was there before:
    /// new expressions may use it there at once.
    pub built: Minor,
    /// The first version of Kubernetes whose servers no longer have it.
    pub until: Option<Minor>,
    /// What a call cost in versions before the one named, the oldest first.
    pub former_costs: Vec<(Minor, Cost)>,
    /// What a call did in versions before the one named, the oldest first.
    pub former_runs: Vec<(Minor, Implementation)>,
}

/// What an overload does. `arguments` agree with its parameters, of which lists and maps are known to be such, not what
/// they hold; the target of a member function is the first.
pub type Implementation = for<'a> fn(&mut CallScope<'_>, &[Value<'a>]) -> Result<Value<'a>, EvalError>;

/// The size of a result by those of the arguments.
pub type TextSize = fn(&Sizes<'_, '_>) -> Range;

/// Who makes a call.
#[derive(Clone, Copy, Debug)]
pub enum CalledBy {
    /// This function, with the values of the arguments.
    Function(Implementation),
    /// The evaluator itself: it may leave an argument unevaluated, or goes on from what an argument names.
    Evaluator,
}

/// How calls of a function are made. What is not said is as with most functions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Calling {
    /// How a call is answered that no overload takes.
    pub mismatch: Mismatch,
    /// All overloads are one to the reference, which finds out for itself what it was given.
    pub is_single: bool,
    /// The second argument is a regular expression. A constant one is compiled with the program.
    pub has_pattern: bool,
    /// A call with a constant is made when the program is compiled.
    pub is_folded: bool,
    /// The first argument that fails ends the call, whatever the number of arguments, as where there are three of them.
    pub stops_at_failure: bool,
}

/// What an error says of a call that no overload takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mismatch {
    /// The function and the types of the arguments.
    #[default]
    Types,
    /// Nothing.
    Bare,
    /// What the function itself says: nobody looks at the arguments before.
    Unguarded,
    /// Nothing if the first argument takes part in such operations at all, else the function.
    Trait(Trait),
}

/// Operations that values of some types take part in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trait {
    /// Has `+`.
    Adder,
    /// Has an order.
    Comparer,
    /// Has `/`.
    Divider,
    /// Has items that can be gone over by index.
    List,
    /// Has `matches`.
    Matcher,
    /// Has `%`.
    Modder,
    /// Has `*`.
    Multiplier,
    /// Has a negative.
    Negator,
    /// Has `size`.
    Sizer,
    /// Has `-`.
    Subtractor,
}

impl Function {
    /// A function of this name, called as usual.
    pub fn new(name: &'static str, overloads: impl IntoIterator<Item = Overload>) -> Self {
        let overloads = overloads.into_iter().map(Arc::new).collect();
        Function { name, overloads, calling: Calling::default() }
    }

    /// The same, with calls that are made like this.
    #[must_use]
    pub fn calling(self, calling: Calling) -> Self {
        Function { calling, ..self }
    }

    /// What a call costs where the types of the arguments leave more than one overload, so that only the evaluation finds
    /// it: the price that goes with the name, or one step.
    pub fn unresolved_cost(&self) -> Cost {
        let of_name = self.overloads.iter().find(|overload| overload.cost.is_of_name());
        of_name.map_or(Cost::One, |overload| overload.cost)
    }
}

impl Calling {
    /// One implementation for all values that take part in such operations.
    pub const fn by_trait(operation: Trait) -> Calling {
        Calling { mismatch: Mismatch::Trait(operation), is_single: true, ..Calling::USUAL }
    }

    /// Calls whose mismatches are told without any detail.
    pub const BARE: Calling = Calling { mismatch: Mismatch::Bare, ..Calling::USUAL };

    /// All arguments are evaluated before the call, and errors are passed on.
    pub const USUAL: Calling = Calling {
        mismatch: Mismatch::Types,
        is_single: false,
        has_pattern: false,
        is_folded: false,
        stops_at_failure: false,
    };
}

impl Overload {
    /// `function(params) -> result`.
    pub fn global(
        id: &'static str,
        params: impl Into<Vec<Type>>,
        result: Type,
        cost: Cost,
        run: Implementation,
    ) -> Self {
        Overload::declare(id, false, params.into(), result, cost, CalledBy::Function(run))
    }

    /// `params[0].function(params[1..]) -> result`.
    pub fn member(
        id: &'static str,
        params: impl Into<Vec<Type>>,
        result: Type,
        cost: Cost,
        run: Implementation,
    ) -> Self {
        Overload::declare(id, true, params.into(), result, cost, CalledBy::Function(run))
    }

    /// The same as [`Overload::global`], but the evaluator makes the calls.
    pub(in crate::cel) fn evaluated(id: &'static str, params: impl Into<Vec<Type>>, result: Type, cost: Cost) -> Self {
        Overload::declare(id, false, params.into(), result, cost, CalledBy::Evaluator)
    }

    /// The same as [`Overload::member`], but the evaluator makes the calls.
    pub(in crate::cel) fn evaluated_member(
        id: &'static str,
        params: impl Into<Vec<Type>>,
        result: Type,
        cost: Cost,
    ) -> Self {
        Overload::declare(id, true, params.into(), result, cost, CalledBy::Evaluator)
    }

    /// The same, known since that version.
    #[must_use]
    pub fn since(self, minor: u16) -> Self {
        Overload { since: Minor::of(minor), ..self }
    }

    /// The same, which no server has since that version.
    #[must_use]
    pub fn until(self, minor: u16) -> Self {
        Overload { until: Some(Minor::of(minor)), ..self }
    }

    /// Whether servers of `minor` have it for expressions that are to be understood by `version`.
    pub fn is_known(&self, minor: Minor, version: Minor) -> bool {
        self.since <= version && self.built <= minor && self.until.is_none_or(|until| minor < until)
    }

    /// The same, which servers have since that version.
    #[must_use]
    pub fn built(self, minor: u16) -> Self {
        Overload { built: Minor::of(minor), ..self }
    }

    /// The same, whose calls cost this before that version. Of several such, the oldest is told first.
    #[must_use]
    pub fn before(mut self, minor: u16, cost: Cost) -> Self {
        self.former_costs.push((Minor::of(minor), cost));
        self
    }

    /// The same, whose calls did this before that version. Of several such, the oldest is told first.
    #[must_use]
    pub fn formerly(mut self, minor: u16, run: Implementation) -> Self {
        self.former_runs.push((Minor::of(minor), run));
        self
    }

    /// The same, which makes a text of this size.
    #[must_use]
    pub fn making(self, size: TextSize) -> Self {
        Overload { text_size: Some(size), ..self }
    }

    /// The first version of Kubernetes whose new expressions may call it: what the version before knows, or what its own
    /// servers brought to a library that was known.
    pub fn new_since(&self) -> Minor {
        self.built.max(self.since.next())
    }

    /// What a call costs in that version.
    pub fn cost_in(&self, minor: Minor) -> Cost {
        self.former_costs.iter().find(|(before, _)| minor < *before).map_or(self.cost, |(_, cost)| *cost)
    }

    /// Whether it was another one in some version.
    pub fn has_changed(&self) -> bool {
        !self.former_costs.is_empty() || !self.former_runs.is_empty()
    }

    /// What a call does in that version.
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
