//! The steps of a text of `fieldsV1`, which is not kept here: where each begins and ends.

use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};

/// A step of the text: `"f:spec":{...}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TextStep {
    /// The start and end of the name, in bytes and without its quotes.
    pub name: (u32, u32),
    /// The end of the step, in bytes.
    pub end: u32,
    /// The index of the step that follows this one and everything below it.
    pub next: u32,
}

/// The steps of a text, which is not kept here.
#[derive(Debug, Default)]
pub(super) struct Steps {
    // INVARIANT: each step comes before those below it; their elements are spelled as `PathElement::encode` writes
    // them.
    list: Vec<TextStep>,
    /// The types that were found last not to change what is owned; 0 for none. Atomic only because steps are shared.
    settled_under: AtomicU64,
}

impl Steps {
    pub fn new(list: Vec<TextStep>) -> Self {
        Steps { list, settled_under: AtomicU64::new(0) }
    }

    /// Whether [`Steps::settle`] was called for the types with this id, and for no others since.
    pub fn is_settled(&self, types: u64) -> bool {
        self.settled_under.load(Ordering::Relaxed) == types
    }

    /// Notes that the types with this id change nothing of what is owned.
    pub fn settle(&self, types: u64) {
        self.settled_under.store(types, Ordering::Relaxed);
    }
}

impl Deref for Steps {
    type Target = [TextStep];

    fn deref(&self) -> &[TextStep] {
        &self.list
    }
}
