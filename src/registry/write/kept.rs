//! The field whose bytes Go keeps as they were sent: its text in the stored object, and in the new one.
//!
//! Stored JSON is compact except for this field, where whitespace between tokens is kept. So its text is found in the
//! stored bytes, and objects of kinds without such a field cost nothing.

use bytes::Bytes;

use crate::kinds;
use crate::kinds::strategy::Strategy;
use crate::protobuf;
use crate::store::{Encoded, Stored};
use crate::value::written::{self, value_at};
use crate::value::{Value, json};
use crate::write::RawFieldTexts;

/// The source of an object that is to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextOrigin<'a> {
    /// JSON that a client sent.
    Json(&'a [u8]),
    /// The same in protobuf, in its envelope.
    Protobuf(&'a [u8]),
    /// The stored object: this subresource does not write the field, or the server itself writes.
    Stored,
    /// A JSON patch: it is applied to the object as a client reads it, and does not change other fields.
    JsonPatch,
    /// An apply: if it changes nothing, the object stays as it is stored.
    Apply,
    /// Everything else creates new bytes: YAML and strategic merges are converted through values.
    Values,
}

/// The texts of the field, owned: one for each item, if it is in the items of a list.
#[derive(Default)]
pub(in crate::registry) struct RawField {
    new: Vec<Option<String>>,
    old: Vec<Option<String>>,
}

impl RawField {
    /// What is known before admission about the object `new`, which will replace `live`, if that exists.
    pub(super) fn of(
        strategy: &dyn Strategy,
        origin: TextOrigin<'_>,
        new: &Value,
        live: Option<(&Value, &Stored)>,
    ) -> Self {
        let path = strategy.raw_field();
        if path.is_empty() {
            return RawField::default();
        }
        let old = live.map(|(_, stored)| owned(&stored.bytes, path)).unwrap_or_default();
        let is_as_before = |at| live.is_some_and(|(object, _)| value_at(new, path, at) == value_at(object, path, at));
        let new = match origin {
            TextOrigin::Json(bytes) => owned(bytes, path),
            TextOrigin::Protobuf(bytes) => of_protobuf(bytes, new, path),
            TextOrigin::Stored => old.clone(),
            TextOrigin::JsonPatch => {
                let texts = old.iter().enumerate();
                texts.map(|(at, text)| text.as_deref().filter(|_| is_as_before(at)).map(written::compact)).collect()
            }
            TextOrigin::Apply if live.is_some_and(|(object, _)| without_managers(new) == without_managers(object)) => {
                old.clone()
            }
            TextOrigin::Apply | TextOrigin::Values => Vec::new(),
        };
        RawField { new, old }
    }

    /// The texts of an object that is changed, but not in the field.
    pub fn of_stored(strategy: &dyn Strategy, stored: &Stored) -> Self {
        let path = strategy.raw_field();
        let old = if path.is_empty() { Vec::new() } else { owned(&stored.bytes, path) };
        RawField { new: old.clone(), old }
    }

    /// In the form that validation compares.
    pub fn texts(&self) -> RawFieldTexts<'_> {
        RawFieldTexts { new: &self.new, old: &self.old }
    }

    /// The bytes of `object` for the store, about `bytes` long.
    pub fn encode(&self, strategy: &dyn Strategy, object: &Value, bytes: usize) -> Encoded {
        let texts: Vec<Option<&str>> = self.new.iter().map(Option::as_deref).collect();
        encode(strategy.raw_field(), object, &texts, bytes)
    }
}

fn owned(object: &[u8], path: &[&str]) -> Vec<Option<String>> {
    texts_of(object, path).into_iter().map(|text| text.map(str::to_owned)).collect()
}

/// The texts in a protobuf body that was decoded as `object`.
fn of_protobuf(body: &[u8], object: &Value, path: &[&str]) -> Vec<Option<String>> {
    let message = kinds::message_of(object.str_at(&["apiVersion"]), object.str_at(&["kind"]));
    let (Some(message), Ok(envelope)) = (message, protobuf::open(body)) else { return Vec::new() };
    let texts = protobuf::json_texts_at(message, envelope.raw, path);
    texts.into_iter().map(|text| text.map(str::to_owned)).collect()
}

fn texts_of<'o>(object: &'o [u8], path: &[&str]) -> Vec<Option<&'o str>> {
    std::str::from_utf8(object).map_or_else(|_| Vec::new(), |text| written::texts_at(text, path))
}

/// The bytes of `object` for the store, with the field written as it is in `stored`.
pub(in crate::registry) fn encode_over(strategy: &dyn Strategy, object: &Value, stored: &Stored) -> Encoded {
    let path = strategy.raw_field();
    let texts = if path.is_empty() { Vec::new() } else { texts_of(&stored.bytes, path) };
    encode(path, object, &texts, stored.bytes.len())
}

/// A text is used only if it still stands for the field's value: admission may have changed that.
fn encode(path: &[&str], object: &Value, texts: &[Option<&str>], bytes: usize) -> Encoded {
    let kept = |(at, text): (usize, &Option<&'_ str>)| {
        let says = |text: &&str| {
            written::is_spaced(text)
                && json::decode(text.as_bytes()).is_ok_and(|it| value_at(object, path, at) == Some(&it))
        };
        text.is_some_and(|text| says(&text))
    };
    let are_kept: Vec<bool> = texts.iter().enumerate().map(kept).collect();
    if !are_kept.contains(&true) {
        return Encoded::of_expected(object, bytes);
    }
    let texts: Vec<Option<&str>> = texts.iter().zip(are_kept).map(|(text, is_kept)| text.filter(|_| is_kept)).collect();
    Encoded::new(Bytes::copy_from_slice(&written::encode_with_texts(object, path, &texts, bytes)))
}

fn without_managers(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.remove("managedFields");
    }
    object
}
