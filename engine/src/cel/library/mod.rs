//! The functions that expressions may call, one family per file. The signature, the cost and the implementation of a
//! function are defined together, in one [`Overload`](super::function::Overload) per signature.
//!
//! To add a function, change only the file of its family. To add a family, add a file with a function `functions`, and
//! a line in [`KUBERNETES`]. The order of the lines matters: overloads of functions with the same name are tried in
//! that order. Cost formulas that several families share are in [`cost::formula`](super::cost::formula). A function
//! that expressions must not use before some version of Kubernetes says so by `since`.
//!
//! The ids, results and error messages are those of cel-go 0.29 and the Kubernetes 1.37 libraries. The functions that
//! the evaluator executes itself are declared as such: `&&`, `||`, `?:`, `==`, `!=`, selection, indices, and `or` and
//! `orValue` of optionals, whose right operand may stay unevaluated.

pub mod authorizer;

mod arithmetic;
mod comparison;
mod comprehensions;
mod containers;
mod conversion;
pub(in crate::cel) mod json_patch;
mod list_extensions;
mod lists;
mod logic;
mod named_format;
mod network;
mod optionals;
mod quantity;
mod regex;
mod semver;
mod sets;
mod strings;
mod texts;
pub(in crate::cel) mod time;
mod urls;

mod arguments;
mod formatting;
mod sort;

#[cfg(test)]
mod tests;

pub use super::calendar::{duration_text, timestamp_syntax, timestamp_text};

use std::sync::Arc;

use super::function::Function;
use super::macros;
use crate::meta::field::Undeclared;
use crate::meta::minor::Minor;

type FunctionFamily = fn() -> Vec<Function>;

/// The CEL standard.
const STANDARD: [FunctionFamily; 7] = [
    logic::functions,
    comparison::functions,
    arithmetic::functions,
    containers::functions,
    conversion::functions,
    texts::functions,
    time::functions,
];

/// The families that Kubernetes adds to the standard, without [`lists`].
const KUBERNETES: [FunctionFamily; 12] = [
    urls::functions,
    regex::functions,
    authorizer::functions,
    optionals::functions,
    quantity::functions,
    strings::functions,
    sets::functions,
    network::functions,
    named_format::functions,
    comprehensions::functions,
    semver::functions,
    list_extensions::functions,
];

/// The first version of Kubernetes that puts its list library after all others; before, it came before them.
const LISTS_LAST: Minor = Minor::of(37);

/// All functions of the CEL standard.
pub fn standard() -> Vec<Function> {
    STANDARD.iter().flat_map(|family| family()).collect()
}

/// All functions that an expression may call which Kubernetes `version` must understand, with the costs and the
/// behaviour of a server of `minor`.
pub fn kubernetes(minor: Minor, version: Minor) -> Vec<Function> {
    let lists: FunctionFamily = lists::functions;
    let (first, last) = if version < LISTS_LAST { (Some(lists), None) } else { (None, Some(lists)) };
    let families = STANDARD.into_iter().chain(first).chain(KUBERNETES).chain(last);
    let known = families.flat_map(|family| family()).map(|mut function| {
        function.overloads.retain(|overload| overload.is_known(minor, version));
        for overload in function.overloads.iter_mut().filter(|overload| overload.has_changed()) {
            let (cost, run) = (overload.cost_in(minor), overload.run_in(minor));
            let overload = Arc::make_mut(overload);
            (overload.cost, overload.run) = (cost, run);
        }
        function
    });
    known.filter(|function| !function.overloads.is_empty()).collect()
}

/// The first version of Kubernetes whose new expressions may use a function, a macro, or functions whose names start
/// with the given name and a dot; `None` if no version has them.
pub fn new_since(undeclared: &Undeclared) -> Option<Minor> {
    let is_it = |known: &str| match undeclared {
        Undeclared::Name(name) => known.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with('.')),
        Undeclared::Function(name) => known == name,
    };
    let functions = kubernetes(Minor::NEWEST, Minor::NEWEST);
    let known = functions.iter().filter(|function| is_it(function.name));
    let of_functions = known.flat_map(|function| &function.overloads).map(|overload| overload.new_since());
    let of_macro = match undeclared {
        Undeclared::Name(_) => None,
        Undeclared::Function(name) => macros::since(name).map(Minor::next),
    };
    of_functions.chain(of_macro).min()
}

/// Sets the first version of Kubernetes that has `functions`.
fn since(version: u16, functions: Vec<Function>) -> Vec<Function> {
    let dated = functions.into_iter().map(|mut function| {
        for overload in &mut function.overloads {
            Arc::make_mut(overload).since = Minor::of(version);
        }
        function
    });
    dated.collect()
}
