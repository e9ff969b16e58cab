//! The field whose bytes Go keeps as they were sent: how it is written in what is stored, and in what is to be.
//!
//! What is stored is compact but for this field, where there is space between its tokens. So its text is told from the bytes in
//! the store, and objects of kinds without such a field cost nothing.

use crate::kinds::strategy::Strategy;
use crate::store::Stored;
use crate::value::{Value, json, written};
use crate::write::Texts;

use super::super::decode::Format;
use super::super::{Body, PatchRequest, PatchType, Target};
use super::{Desired, Live};

/// The texts of the field, owned.
#[derive(Default)]
pub(in crate::registry) struct Kept {
    new: Option<String>,
    old: Option<String>,
}

impl Kept {
    /// What is known before admission of the object `new`, which is to be written over `live`.
    pub(super) fn of(target: &Target, desired: &Desired<'_>, new: &Value, live: Option<&Live>) -> Self {
        let Some(field) = target.resource.strategy.kept_as_written() else { return Kept::default() };
        let old = live.and_then(|live| written::text_of_field(&live.stored.bytes, field)).map(str::to_owned);
        let new = match desired {
            Desired::Sent { sent: Some(body), .. } => text_of_body(body, field),
            Desired::Patched(request) => old
                .as_deref()
                .zip(live)
                .and_then(|(text, live)| text_after_patch(request, field, text, (new, &live.object))),
            _ => None,
        };
        Kept { new, old }
    }

    /// As validation compares them.
    pub fn texts(&self) -> Texts<'_> {
        Texts { new: self.new.as_deref(), old: self.old.as_deref() }
    }

    /// The bytes of `object` for the store, some `bytes` long.
    pub fn encode(&self, strategy: &dyn Strategy, object: &Value, bytes: usize) -> Vec<u8> {
        encode(strategy, object, self.new.as_deref(), bytes)
    }
}

/// The bytes of `object` for the store, with the field written as it is in `stored`.
pub(in crate::registry) fn encode_over(strategy: &dyn Strategy, object: &Value, stored: &Stored) -> Vec<u8> {
    let text = strategy.kept_as_written().and_then(|field| written::text_of_field(&stored.bytes, field));
    encode(strategy, object, text, stored.bytes.len())
}

/// A text stands for the value that it says alone: admission may have changed it.
fn encode(strategy: &dyn Strategy, object: &Value, text: Option<&str>, bytes: usize) -> Vec<u8> {
    let field = strategy.kept_as_written();
    let kept = field
        .zip(text.filter(|text| written::is_spaced(text)))
        .filter(|(field, text)| json::decode(text.as_bytes()).is_ok_and(|value| object.get(field) == Some(&value)));
    match kept {
        Some((field, text)) => written::encode_with_text(object, field, text, bytes),
        None => json::encode_with_capacity(object, bytes),
    }
}

/// Only JSON is kept as it is; YAML is made JSON of, and protobuf comes from clients that write it compact.
fn text_of_body(body: &Body, field: &str) -> Option<String> {
    let text = if body.format == Format::Json { written::text_of_field(&body.bytes, field) } else { None };
    text.map(str::to_owned)
}

/// What becomes of `text` by a patch: those of JSON are made to the object as a client reads it, and leave alone what they
/// don't name; an apply that changes nothing leaves the object as it is stored. Others write all of it anew.
fn text_after_patch(request: &PatchRequest, field: &str, text: &str, (new, old): (&Value, &Value)) -> Option<String> {
    match request.patch_type {
        PatchType::Json | PatchType::Merge => (new.get(field) == old.get(field)).then(|| written::compact(text)),
        PatchType::StrategicMerge => None,
        PatchType::Apply => (without_managers(new) == without_managers(old)).then(|| text.to_owned()),
    }
}

fn without_managers(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.remove("managedFields");
    }
    object
}
