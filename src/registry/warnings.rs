//! Warnings and audit annotations of a request, besides its answer.
//!
//! Input: texts, from the steps of a verb. Output: those that Warning headers have room for, each once, in their order;
//! and the annotations for the audit log.
//!
//! Source: `k8s.io/apiserver/pkg/endpoints/filters/warning.go`, release 1.37.

use std::collections::{BTreeMap, HashSet};
use std::hash::{BuildHasher, RandomState};

use crate::admission::{Notes, WebhookTimes};
use crate::meta::field::ErrorList;
use crate::types::decoder::Empty;
use crate::value::Value;
use crate::work;

/// How many characters of warnings are sent in full.
pub const WARNINGS_CHARACTERS_MAX: usize = 4096;
/// How many characters of each are sent if they exceed that limit.
pub const WARNING_CHARACTERS_MAX: usize = 256;

/// The texts of Warning headers, and annotations of the audit log.
#[derive(Clone, Debug, Default)]
pub struct Warnings {
    notes: Notes,
    /// The hashes of all texts.
    seen: HashSet<u64>,
    hasher: RandomState,
    characters: usize,
    /// The number of characters if each text is truncated.
    cut_characters: usize,
    /// Empty lists and maps in the object as sent. Go keeps them until it encodes the object, so errors show them.
    sent_empty: Vec<Empty>,
    /// Whether admission has replaced the object of this attempt, and with it the empty lists and maps.
    is_replaced: bool,
    /// Whether the object in the request is kept.
    keeps_object: bool,
    sent_object: Option<Value>,
}

impl Warnings {
    /// Warnings that keep the object in the request, for the audit log.
    pub fn with_sent_object() -> Self {
        Warnings { keeps_object: true, ..Warnings::default() }
    }

    /// Remembers the object of the request, decoded and with defaults, if it is wanted.
    pub fn note_object(&mut self, object: &Value) {
        if self.keeps_object {
            self.sent_object = Some(object.clone());
        }
    }

    /// The object of the request, if it was decoded and kept.
    pub fn take_sent_object(&mut self) -> Option<Value> {
        self.sent_object.take()
    }

    /// Adds a text, unless it has been added already or would not be sent.
    pub fn add(&mut self, text: impl Into<String>) {
        let mut text = text.into();
        work::bytes(text.len());
        if text.is_empty() || self.is_full() || !self.seen.insert(self.hasher.hash_one(&text)) {
            return;
        }
        // If a single text is too long, only its beginning is sent.
        if let Some((end, _)) = text.char_indices().nth(WARNINGS_CHARACTERS_MAX + 1) {
            text.truncate(end);
        }
        let characters = text.chars().count();
        self.characters += characters;
        self.cut_characters += characters.min(WARNING_CHARACTERS_MAX);
        self.notes.warnings.push(text);
    }

    /// Whether further texts would not be sent.
    fn is_full(&self) -> bool {
        self.characters > WARNINGS_CHARACTERS_MAX && self.cut_characters >= WARNINGS_CHARACTERS_MAX
    }

    pub fn texts(&self) -> &[String] {
        &self.notes.warnings
    }

    /// Annotations of the audit log, by their names.
    pub fn annotations(&self) -> &BTreeMap<String, String> {
        &self.notes.annotations
    }

    /// Annotations for events of the level `Request` and above.
    pub fn request_annotations(&self) -> &BTreeMap<String, String> {
        &self.notes.request_annotations
    }

    /// How long webhooks were waited for.
    pub fn webhook_times(&self) -> WebhookTimes {
        self.notes.webhook_times
    }

    /// Adds the contents of `notes`; of an annotation that is there already, the first value stays.
    pub fn absorb(&mut self, notes: Notes) {
        self.extend(notes.warnings);
        for (name, text) in notes.annotations {
            self.notes.annotations.entry(name).or_insert(text);
        }
        for (name, text) in notes.request_annotations {
            self.notes.request_annotations.entry(name).or_insert(text);
        }
        self.notes.webhook_times.add(notes.webhook_times);
    }

    pub fn into_notes(self) -> Notes {
        self.notes
    }

    /// The warnings of the next attempt at the same request.
    pub fn for_next_try(&self) -> Self {
        Warnings { sent_empty: self.sent_empty.clone(), ..Warnings::default() }
    }

    /// Remembers the empty lists and maps of the object in the request.
    pub fn note_empty(&mut self, empty: Vec<Empty>) {
        self.sent_empty = empty;
    }

    /// Records that a webhook or a policy has replaced the object: it was decoded again, from JSON without empty lists
    /// and maps.
    pub fn note_replaced(&mut self) {
        self.is_replaced = true;
    }

    /// The empty lists and maps of the object in the request.
    pub fn sent_empty(&self) -> &[Empty] {
        &self.sent_empty
    }

    /// Whether the object in the request had an empty list or map that `object` lacks.
    pub fn has_empty_in(&self, object: &Value) -> bool {
        !self.is_replaced && self.sent_empty.iter().any(|empty| empty.is_missing_in(object))
    }

    /// The errors of `object` that `validate` finds where what came empty, and is left out of it, is put back: what `is_told`
    /// from none at any rate, and what errors show, if they are about the same then.
    pub fn with_empty(
        &self,
        object: &Value,
        errors: ErrorList,
        is_told: impl Fn(&Empty) -> bool,
        mut validate: impl FnMut(Value) -> ErrorList,
    ) -> ErrorList {
        if self.is_replaced || self.sent_empty.is_empty() {
            return errors;
        }
        let mut sent = object.clone();
        let restore = |sent: &mut Value, is_meant: &dyn Fn(&Empty) -> bool| {
            let mut is_any = false;
            for empty in self.sent_empty.iter().filter(|empty| is_meant(empty)) {
                empty.restore(sent);
                is_any = true;
            }
            is_any
        };
        let errors = if restore(&mut sent, &is_told) { validate(sent.clone()) } else { errors };
        if errors.is_empty() || !restore(&mut sent, &|empty| empty.is_shown) {
            return errors;
        }
        let shown = validate(sent);
        let is_same = shown.len() == errors.len()
            && shown
                .iter()
                .zip(errors.iter())
                .all(|(shown, error)| (shown.kind, &shown.field) == (error.kind, &error.field));
        if is_same { shown } else { errors }
    }
}

impl Extend<String> for Warnings {
    fn extend<I: IntoIterator<Item = String>>(&mut self, texts: I) {
        texts.into_iter().for_each(|text| self.add(text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warned(count: usize, text: impl Fn(usize) -> String) -> Warnings {
        let mut warnings = Warnings::default();
        warnings.extend((0..count).map(text));
        warnings
    }

    #[test]
    fn a_text_is_kept_once_and_in_its_place() {
        assert_eq!(warned(10, |at| format!("text {}", at % 3)).texts(), ["text 0", "text 1", "text 2"]);
    }

    #[test]
    fn what_is_not_sent_is_not_kept() {
        assert_eq!(warned(80_000, |at| format!("unknown field \"f{at}\"")).texts().len(), 211);
        assert_eq!(warned(40, |_| "x".repeat(200)).texts().len(), 1);
        let long = warned(40, |at| format!("{at:02}{}", "x".repeat(1 << 20)));
        assert_eq!(long.texts().len(), 16);
        assert!(long.texts().iter().all(|text| text.len() == WARNINGS_CHARACTERS_MAX + 1));
    }

    #[test]
    fn ten_times_the_warnings_take_ten_times_the_steps() {
        let steps = |count| work::counted(|| warned(count, |at| format!("unknown field \"f{at}\""))).1;
        let (few, many) = (steps(8_000), steps(80_000));
        assert!(many < 13 * few, "{few} steps, then {many}");
    }
}
