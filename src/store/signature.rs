//! Signatures of labels: they show quickly which objects of a collection can't have a label that a selector requires.
//!
//! Each object of a collection has one, computed at the first selection by labels. A selection then walks over the
//! nodes of the collection's map, and only looks at objects that may be selected: one label sets three of 63 bits.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::meta::selector::LabelSelector;

/// A Bloom filter of labels: it may seem to contain others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature(pub(super) u64);

impl Signature {
    /// The signature of no labels: every object has those.
    pub const NONE: Signature = Signature(0);

    /// The labels that every object selected by `selector` has.
    pub fn required(selector: &LabelSelector) -> Signature {
        Signature::of(selector.required())
    }

    /// The signature of labels with their values, or with any value if none is given.
    pub(super) fn of<'l>(labels: impl Iterator<Item = (&'l str, Option<&'l str>)>) -> Signature {
        let bits = labels.map(|(name, value)| {
            let mut hasher = DefaultHasher::new();
            name.hash(&mut hasher);
            let named = bit(hasher.finish());
            let Some(value) = value else { return named };
            value.hash(&mut hasher);
            let both = hasher.finish();
            named | bit(both) | bit(both >> 32)
        });
        Signature(bits.fold(0, |all, bits| all | bits))
    }

    /// Whether an object with this signature may have all labels of the other; there are no false negatives.
    pub(super) fn may_hold(self, other: Signature) -> bool {
        self.0 & other.0 == other.0
    }
}

/// One of 63 bits.
fn bit(hash: u64) -> u64 {
    1 << (hash % 63)
}
