//! The verdict on the object: admitted, or refused with every error at its line.

use super::inputs::{Inputs, Marker, Pane};
use super::shown::{SHOWN_MAX, line, number, shortened, texts};
use crate::author::policies::admit::Admitted;
use crate::author::{PartValue, Rejected};
use crate::meta::field::ErrorType;
use crate::object;
use crate::value::Value;
use crate::value::yaml::TextPosition;

/// The server's response. Adds markers for the errors and warnings.
pub fn show(inputs: &Inputs, admitted: Option<&Admitted>, ratcheted: &[String], markers: &mut Vec<Marker>) -> Value {
    let Some(admitted) = admitted else { return nothing(inputs) };
    let checked = &admitted.checked;
    let document = inputs.first(Pane::Object);
    let place = |field: &str| document.map(|document| document.place(field));
    let unknown = checked.unknown.iter().map(|path| {
        let place = document.map(|document| document.key_place(path));
        markers.push(Marker::error(Pane::Object, place, format!("unknown field \"{path}\"")));
        let message = "unknown field: a strict client refuses it, others lose it";
        object! { "field" => path.as_str(), "message" => message, "line" => line(place) }
    });
    let unknown: Vec<Value> = unknown.take(SHOWN_MAX).collect();
    let mut errors = Vec::new();
    for rejected in checked.errors.iter().take(SHOWN_MAX) {
        let place = place(&rejected.error.field);
        markers.push(Marker::error(Pane::Object, place, rejected.error.body()));
        errors.push(error(rejected, place));
    }
    for text in &checked.warnings {
        markers.push(Marker::warning(Pane::Object, place(""), text.as_str()));
    }
    let denial = admitted.denial.as_ref().map(|denial| {
        markers.push(Marker::error(Pane::Object, place(""), denial.message.as_str()));
        object! {
            "message" => shortened(&denial.message),
            "reason" => denial.reason.as_str(),
            "code" => number(denial.code.into()),
        }
    });
    let is_refused = !checked.errors.is_empty() || denial.is_some();
    let outcome = match (is_refused, checked.unknown.is_empty()) {
        (true, _) => "refused",
        (false, false) => "unknown-fields",
        (false, true) => "admitted",
    };
    let annotations = admitted.annotations.iter().map(|(name, text)| format!("{name}: {text}")).collect::<Vec<_>>();
    object! {
        "outcome" => outcome,
        "operation" => if inputs.first(Pane::Old).is_some() { "update" } else { "create" },
        "errors" => errors,
        "errorsInAll" => number(checked.errors.len() as u64),
        "unknown" => unknown,
        "denial" => denial.unwrap_or_default(),
        "warnings" => texts(checked.warnings.iter().chain(&admitted.warnings)),
        "ratcheted" => texts(ratcheted),
        "annotations" => texts(&annotations),
        "cost" => number(checked.cost()),
    }
}

/// Why there is no verdict.
fn nothing(inputs: &Inputs) -> Value {
    let outcome = match inputs.first(Pane::Object) {
        None if inputs.is_broken(Pane::Object) => "unreadable",
        None => "empty",
        Some(_) if inputs.is_broken(Pane::Definition) => "broken-definition",
        Some(_) => "unknown-kind",
    };
    let object = inputs.first(Pane::Object).map(|document| &document.value);
    let text = |field: &str| object.map_or("", |object| object.str_at(&[field])).to_owned();
    object! { "outcome" => outcome, "kind" => text("kind"), "apiVersion" => text("apiVersion") }
}

fn error(rejected: &Rejected, place: Option<TextPosition>) -> Value {
    let error = &rejected.error;
    let message = if error.kind == ErrorType::TypeInvalid { error.detail.clone() } else { error.body() };
    object! {
        "field" => error.field.as_str(),
        "type" => error.kind.reason(),
        "message" => shortened(&message),
        "line" => line(place),
        "rule" => rejected.rule.as_deref().map_or(Value::Null, Value::from),
        "parts" => parts(&rejected.parts),
    }
}

/// The parts of a rule with their values.
pub fn parts(parts: &[PartValue]) -> Value {
    let part = |part: &PartValue| {
        object! {
            "text" => shortened(&part.text),
            "value" => part.value.as_str(),
            "truth" => part.truth.map_or(Value::Null, Value::Bool),
        }
    };
    Value::Array(parts.iter().take(SHOWN_MAX).map(part).collect())
}
