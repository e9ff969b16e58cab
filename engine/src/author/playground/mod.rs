//! What a definition says to an object, all of it at once: the answers that the page of `skiff playground` shows.
//!
//! In: texts as somebody types them: definitions and policies, an object, what it was before, and the rest of the request
//! (`user`, `namespace`, `params`, `operation`, `subresource`, as a case of a suite has them). Out: JSON values with the
//! verdict, each rule with its cost and with the values of its parts, what was defaulted and pruned, findings, and a case of
//! a suite. Texts that can't be read are told of with their lines, and hide nothing else. How long it takes is bounded by
//! whoever watches over the work ([`crate::work`]).

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

/// The request with another value of a parameter: [`params::with_param`] of the kinds of the inputs.
pub fn with_param(inputs: &Inputs, wanted: &Value) -> Option<String> {
    params::with_param(inputs, &catalog(inputs, inputs.minor(), &mut Vec::new()), wanted)
}

pub use inputs::Pane;

/// The user that a UserInfo describes.
pub type FindUser<'w> = &'w dyn Fn(Value) -> RequestUser;

/// All that can be said of the inputs. `policies` are those among [`Inputs::manifests`].
pub fn evaluate(inputs: &Inputs, policies: &Policies, find_user: FindUser<'_>) -> Value {
    let mut answer = evaluate_in(inputs.minor(), inputs, policies, find_user);
    let minors = minors::show(inputs, &answer, &|minor| evaluate_in(minor, inputs, policies, find_user));
    answer.make_object().insert("minors", minors);
    answer
}

/// What one minor of Kubernetes says.
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

/// The kinds of the definitions, as a minor of Kubernetes has them; what is none is told of.
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
