//! A document on its way: what it says of each resource is text at once, as values take ten times the memory.

use std::collections::{BTreeMap, HashSet};

use crate::types::collect_references;
use crate::value::{Key, Map, Value, json};

/// Parts of a document, by their names.
#[derive(Default)]
pub(super) struct Pieces {
    texts: BTreeMap<String, Vec<u8>>,
    bytes: usize,
}

impl Pieces {
    /// The texts of these parts; what they refer to is added to `wanted`.
    pub fn of(parts: Map, wanted: &mut HashSet<String>) -> Self {
        let text = |(name, part): (Key, Value)| {
            collect_references(&part, wanted);
            let mut text = Vec::with_capacity(part.size_bytes());
            json::encode_into(&part, &mut text);
            text.shrink_to_fit();
            (name.to_string(), text)
        };
        let texts: BTreeMap<_, _> = parts.into_iter().map(text).collect();
        let bytes = texts.iter().map(|(name, text)| name.len() + text.len() + 4).sum();
        Pieces { texts, bytes }
    }

    pub fn has(&self, name: &str) -> bool {
        self.texts.contains_key(name)
    }

    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// The length of the parts, in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds the parts of others.
    pub fn append(&mut self, others: Pieces) {
        self.texts.extend(others.texts);
        self.bytes += others.bytes;
    }
}

/// A field of a document.
pub(super) enum DocumentField {
    Value(Value),
    Pieces(Pieces),
    Object(BTreeMap<&'static str, DocumentField>),
}

impl From<Pieces> for DocumentField {
    fn from(pieces: Pieces) -> Self {
        DocumentField::Pieces(pieces)
    }
}

impl From<Value> for DocumentField {
    fn from(value: Value) -> Self {
        DocumentField::Value(value)
    }
}

impl DocumentField {
    /// As JSON. Every part is freed as soon as it is written.
    pub fn text(self) -> Vec<u8> {
        let mut text = Vec::with_capacity(self.bytes());
        self.write(&mut text);
        text
    }

    /// About its length, in bytes.
    fn bytes(&self) -> usize {
        match self {
            DocumentField::Value(value) => value.size_bytes(),
            DocumentField::Pieces(pieces) => pieces.bytes(),
            DocumentField::Object(fields) => fields.values().map(DocumentField::bytes).sum(),
        }
    }

    fn write(self, out: &mut Vec<u8>) {
        match self {
            DocumentField::Value(value) => json::encode_into(&value, out),
            DocumentField::Pieces(pieces) => {
                json::encode_fields(pieces.texts.into_iter(), out, |_, text, out| out.extend_from_slice(&text));
            }
            DocumentField::Object(fields) => {
                json::encode_fields(fields.into_iter(), out, |_, field, out| field.write(out))
            }
        }
    }
}
