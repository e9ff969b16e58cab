//! Policies: the result of each expression for the request, and its estimated cost.

use super::inputs::{Inputs, Pane};
use super::shown::{SHOWN_MAX, line, number, texts};
use super::verdict::parts;
use crate::author::Catalog;
use crate::author::policies::coverage::{Coverage, Tried};
use crate::author::policies::price::{LIMIT, Prices, price};
use crate::author::policies::{Policies, PolicyExpression};
use crate::object;
use crate::value::Value;

/// The policies that are evaluated, and those that the server would refuse.
pub fn show(inputs: &Inputs, catalog: &Catalog, policies: &Policies, coverage: &Coverage) -> Value {
    let mut shown = Vec::new();
    for (kind, name, places) in coverage.policies() {
        let document = inputs.documents(Pane::Definition).iter().find(|document| {
            document.value.str_at(&["kind"]) == kind && document.value.str_at(&["metadata", "name"]) == name
        });
        let prices = document.map(|document| price(&document.value, catalog));
        let place_of = |field: &str| document.map(|document| document.place(field));
        let expressions = places.iter().filter(|(place, _)| place.decides()).take(SHOWN_MAX).map(|(place, tried)| {
            let place_in_text = place_of(&format!("spec.{}", place.shown()));
            object! {
                "field" => place.shown(),
                "expression" => tried.text.as_str(),
                "outcome" => outcome(*place, tried),
                "line" => line(place_in_text),
                "cost" => prices.as_ref().and_then(|prices| cost(prices, *place)).map_or(Value::Null, number),
                "limit" => number(LIMIT),
                "parts" => parts(&tried.parts),
            }
        });
        let expressions: Vec<Value> = expressions.collect();
        shown.push(object! {
            "kind" => kind,
            "name" => name,
            "line" => line(place_of("metadata.name")),
            "expressions" => expressions,
        });
    }
    let refused = policies.refused().iter().take(SHOWN_MAX).map(|(name, errors)| {
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        object! { "name" => name.as_str(), "errors" => texts(&errors) }
    });
    object! { "asked" => shown, "refused" => refused.collect::<Vec<_>>() }
}

fn outcome(place: PolicyExpression, tried: &Tried) -> &'static str {
    let is_mutation = matches!(place, PolicyExpression::Mutation(_));
    match (tried.held, tried.failed, tried.broke) {
        (_, _, 1..) => "error",
        (_, 1.., _) if is_mutation => "unchanged",
        (_, 1.., _) => "false",
        (1.., ..) if is_mutation => "changed",
        (1.., ..) => "true",
        _ => "not evaluated",
    }
}

/// The estimated cost of an expression; for a mutation, of either form.
fn cost(prices: &Prices, place: PolicyExpression) -> Option<u64> {
    let head = format!("spec.{}.", place.shown());
    let is_it = |field: &str| field.strip_prefix(&head).is_some_and(|rest| rest.ends_with("expression"));
    prices.expressions.iter().find(|priced| is_it(&priced.field))?.cost
}
