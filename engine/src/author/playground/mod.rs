//! How definitions and policies judge an object: the results that the page of `skiff playground` shows.
//!
//! Input: texts as they are being typed: definitions and policies, an object, the object before the write, and the rest
//! of the request (`user`, `namespace`, `params`, `operation`, `subresource`, as in a suite's case). Output: JSON
//! values with the verdict, each rule with its cost and the values of its parts, what was defaulted and pruned,
//! findings, and a suite's case. Texts that cannot be parsed are reported with their lines, and do not hide anything
//! else. The overseer of the work bounds how long it takes ([`crate::work`]).

mod bound;
mod case;
mod complete;
mod diff;
mod findings;
mod inputs;
mod minors;
mod object;
mod params;
mod policies;
mod rules;
mod shown;
mod user;
mod verdict;

use crate::author::policies::Policies;
use crate::author::policies::coverage::Coverage;
use crate::author::suite::{self, SuiteStage};
use crate::author::{Catalog, policies::RequestUser};
use crate::meta::minor::Minor;
use crate::object;
use crate::value::Value;

pub use bound::add_bound;
pub use case::case;
pub use complete::complete;
pub use findings::fix;
pub use inputs::{InputError, Inputs};
pub use user::with_user;

/// Returns the request with another value of a parameter: [`params::with_param`] for the kinds of the inputs.
pub fn with_param(inputs: &Inputs, wanted: &Value) -> Option<String> {
    params::with_param(inputs, &catalog(inputs, inputs.minor(), &mut Vec::new()), wanted)
}

pub use inputs::Pane;

/// Finds the user that a UserInfo describes.
pub type FindUser<'w> = &'w dyn Fn(Value) -> RequestUser;

/// Returns all results for the inputs. `policies` are those among [`Inputs::manifests`].
pub fn evaluate(inputs: &Inputs, policies: &Policies, find_user: FindUser<'_>) -> Value {
    let mut answer = evaluate_in(inputs.minor(), inputs, policies, find_user);
    let minors = minors::show(inputs, &answer, &|minor| evaluate_in(minor, inputs, policies, find_user));
    answer.make_object().insert("minors", minors);
    answer
}

/// The results for one minor version of Kubernetes.
fn evaluate_in(minor: Minor, inputs: &Inputs, policies: &Policies, find_user: FindUser<'_>) -> Value {
    let mut markers = inputs.faults();
    let catalog = catalog(inputs, minor, &mut markers);
    let findings = findings::find(inputs, minor, &mut markers);
    let mut tried = Coverage::tracing(policies);
    let stage = SuiteStage { catalog: &catalog, policies, find_user };
    let written = inputs.case();
    let admitted = written.as_ref().and_then(|case| suite::admit(case, &stage, &mut tried));
    let ratcheted = match (&written, &admitted) {
        (Some(case), Some(admitted)) => suite::ratcheted(catalog.of(&case.object), case, &admitted.checked),
        _ => Vec::new(),
    };
    let runs = admitted.as_ref().map_or(&[][..], |admitted| &admitted.checked.runs);
    object! {
        "verdict" => verdict::show(inputs, admitted.as_ref(), &ratcheted, &mut markers),
        "rules" => rules::show(inputs, &catalog, runs),
        "object" => object::show(written.as_ref(), admitted.as_ref()),
        "policies" => policies::show(inputs, &catalog, policies, &tried),
        "findings" => findings,
        "user" => user::show(inputs),
        "params" => params::show(inputs, &catalog),
        "markers" => markers.iter().map(inputs::Marker::show).collect::<Vec<_>>(),
    }
}

/// The kinds of the definitions, for a minor version of Kubernetes; invalid ones are reported.
fn catalog(inputs: &Inputs, minor: Minor, markers: &mut Vec<inputs::Marker>) -> Catalog {
    let mut catalog = Catalog::of_minor(minor);
    for document in inputs.definitions() {
        if let Err(fault) = catalog.add(&document.value) {
            markers.push(inputs::Marker::error(Pane::Definition, Some(document.place("")), fault.to_string()));
        }
    }
    catalog
}

#[cfg(test)]
mod tests;
