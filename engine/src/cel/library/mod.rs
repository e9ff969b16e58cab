//! The functions that expressions may call, one family a file. What a function takes and gives, what it costs and what it
//! does stand there together, in one [`Overload`](super::function::Overload) a signature.
//!
//! A function is added to the file of its family, and nowhere else. A family is added as a file with
//! `pub(super) fn functions() -> Vec<Function>` and a line in [`KUBERNETES`], whose order matters: of the functions of one
//! name, overloads are tried in that order. Prices that several families share stand in
//! [`cost::formula`](super::cost::formula). What an expression must not use before a version of Kubernetes knows it says so
//! by `since`.
//!
//! The ids, results and texts of errors are those of cel-go 0.29 and the Kubernetes libraries 1.37. What the evaluator
//! does itself is declared as such: `&&`, `||`, `?:`, `==`, `!=`, selection, indices, and `or` and `orValue` of
//! optionals, whose right side may stay unevaluated.

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

/// What Kubernetes adds to it, without [`lists`].
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

/// The version of Kubernetes whose library of lists stands behind all others; before, it stood in front of them.
const LISTS_LAST: Minor = Minor::of(37);

/// All functions that the CEL standard has.
pub fn standard() -> Vec<Function> {
    STANDARD.iter().flat_map(|family| family()).collect()
}

/// All functions that an expression of Kubernetes may call that is to be understood by `version`, at the prices of a server
/// of `minor`.
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

/// The first version of Kubernetes whose new expressions may use a function, a macro, or functions whose names begin with
/// such a name; `None` for what none knows.
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

/// `functions`, known since that version.
fn since(version: u16, functions: Vec<Function>) -> Vec<Function> {
    let dated = functions.into_iter().map(|mut function| {
        for overload in &mut function.overloads {
            Arc::make_mut(overload).since = Minor::of(version);
        }
        function
    });
    dated.collect()
}
