//! The server's errors for the new definition.

use crate::author::DefinedKind;
use crate::crd::{names, strategy, validate};
use crate::meta::field::Error;
use crate::value::Value;

/// An error of the new definition.
#[derive(Clone, Debug)]
pub struct NewError {
    /// The server's error.
    pub error: Error,
    /// Whether it is only refused as an update of the old definition.
    pub is_update: bool,
}

/// Why the server would refuse `new`: by itself, and in place of `old`, which is in use.
pub fn refused(old: Option<&DefinedKind>, new: &DefinedKind) -> Vec<NewError> {
    let mut refused: Vec<NewError> =
        new.errors.iter().map(|error| NewError { error: error.clone(), is_update: false }).collect();
    let Some(old) = old else { return refused };
    let (mut before, mut after) = (old.definition.clone(), new.definition.clone());
    after.metadata.make_object().insert("resourceVersion", Value::from("1"));
    // A file may have been taken from a cluster, with what the server adds.
    before.metadata = after.metadata.clone();
    before.status.conditions.push(names::condition("Established", "True", "", ""));
    strategy::prepare_update(&mut after, &before);
    let is_known =
        |error: &Error| new.errors.iter().any(|known| (&known.field, &known.detail) == (&error.field, &error.detail));
    for error in validate::update(&after, &before).iter().filter(|error| !is_known(error)) {
        refused.push(NewError { error: error.clone(), is_update: true });
    }
    refused
}
