//! The field whose bytes Go keeps as they were sent: how it is written in what is stored, and in what is to be.
//!
//! What is stored is compact but for this field, where there is space between its tokens. So its text is told from the bytes in
//! the store, and objects of kinds without such a field cost nothing.

use crate::kinds::strategy::Strategy;
use crate::store::Stored;
use crate::value::{Value, json, written};
use crate::write::RawFieldTexts;

/// Where an object that is to be written comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextOrigin<'a> {
    /// JSON that a client sent.
    Json(&'a [u8]),
    /// A patch of JSON: it is made to the object as a client reads it, and leaves alone what it does not name.
    JsonPatch,
    /// An apply: if it changes nothing, the object stays as it is stored.
    Apply,
    /// All else makes the bytes anew: YAML and strategic merges by way of values, and protobuf comes from clients that write
    /// it compact.
    Values,
}

/// The texts of the field, owned.
#[derive(Default)]
pub(in crate::registry) struct RawField {
    new: Option<String>,
    old: Option<String>,
}

impl RawField {
    /// What is known before admission of the object `new`, which is to be written over `live`, if that is there.
    pub(super) fn of(
        strategy: &dyn Strategy,
        origin: TextOrigin<'_>,
        new: &Value,
        live: Option<(&Value, &Stored)>,
    ) -> Self {
        let Some(field) = strategy.raw_field() else { return RawField::default() };
        let old = live.and_then(|(_, stored)| written::text_of_field(&stored.bytes, field)).map(str::to_owned);
        let is_as_before = |same: fn(&Value, &str) -> Option<Value>| {
            live.is_some_and(|(object, _)| same(new, field) == same(object, field))
        };
        let new = match origin {
            TextOrigin::Json(bytes) => written::text_of_field(bytes, field).map(str::to_owned),
            TextOrigin::JsonPatch if is_as_before(|object, field| object.get(field).cloned()) => {
                old.as_deref().map(written::compact)
            }
            TextOrigin::Apply if is_as_before(|object, _| Some(without_managers(object))) => old.clone(),
            TextOrigin::JsonPatch | TextOrigin::Apply | TextOrigin::Values => None,
        };
        RawField { new, old }
    }

    /// As validation compares them.
    pub fn texts(&self) -> RawFieldTexts<'_> {
        RawFieldTexts { new: self.new.as_deref(), old: self.old.as_deref() }
    }

    /// The bytes of `object` for the store, some `bytes` long.
    pub fn encode(&self, strategy: &dyn Strategy, object: &Value, bytes: usize) -> Vec<u8> {
        encode(strategy, object, self.new.as_deref(), bytes)
    }
}

/// The bytes of `object` for the store, with the field written as it is in `stored`.
pub(in crate::registry) fn encode_over(strategy: &dyn Strategy, object: &Value, stored: &Stored) -> Vec<u8> {
    let text = strategy.raw_field().and_then(|field| written::text_of_field(&stored.bytes, field));
    encode(strategy, object, text, stored.bytes.len())
}

/// A text stands for the value that it says alone: admission may have changed it.
fn encode(strategy: &dyn Strategy, object: &Value, text: Option<&str>, bytes: usize) -> Vec<u8> {
    let field = strategy.raw_field();
    let kept = field
        .zip(text.filter(|text| written::is_spaced(text)))
        .filter(|(field, text)| json::decode(text.as_bytes()).is_ok_and(|value| object.get(field) == Some(&value)));
    match kept {
        Some((field, text)) => written::encode_with_text(object, field, text, bytes),
        None => json::encode_with_capacity(object, bytes),
    }
}

fn without_managers(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.remove("managedFields");
    }
    object
}
