//! Signatures of labels: they tell at once which objects of a collection can't have a label that a selector asks for.
//!
//! Each object of a collection has one beside it, made when somebody first selects by labels. A selection then goes over the
//! nodes of the collection's map, and looks only at objects that may be selected: one label sets three of 63 bits.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::meta::selector::LabelSelector;

/// A set of labels, in which those of others may seem to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature(pub(super) u64);

impl Signature {
    /// That of no labels at all: every object has them.
    pub const NONE: Signature = Signature(0);

    /// What every object has that `selector` selects.
    pub fn required(selector: &LabelSelector) -> Signature {
        Signature::of(selector.required())
    }

    /// That of labels with their values, or with any where none is given.
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

    /// Whether what has this signature may have all that has the other; never wrongly denied.
    pub(super) fn may_hold(self, other: Signature) -> bool {
        self.0 & other.0 == other.0
    }
}

/// One of 63 bits.
fn bit(hash: u64) -> u64 {
    1 << (hash % 63)
}
