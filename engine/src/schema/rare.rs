//! Parts of a schema's nodes that few nodes have.
//!
//! A definition has hundreds of nodes, and a server hundreds of definitions: a part that is absent takes only a
//! pointer.

use std::ops::{Deref, DerefMut};

/// A part that reads as blank, and is as large as a pointer, until something is set.
#[derive(Clone, Debug, Default)]
pub struct Rare<T>(Option<Box<T>>);

/// What can be left out of a node.
pub trait Blank: Default + PartialEq + 'static {
    /// The value of a part that was left out.
    fn blank() -> &'static Self;
}

impl<T: Blank> Rare<T> {
    /// The part if it is set: the fast path, as few nodes have it.
    pub fn get(&self) -> Option<&T> {
        self.0.as_deref()
    }

    /// Whether nothing is said.
    pub fn is_blank(&self) -> bool {
        self.get().is_none_or(|part| part == T::blank())
    }
}

impl<T: Blank> From<T> for Rare<T> {
    fn from(part: T) -> Self {
        Rare((part != *T::blank()).then(|| Box::new(part)))
    }
}

impl<T: Blank> Deref for Rare<T> {
    type Target = T;

    fn deref(&self) -> &T {
        match &self.0 {
            Some(part) => part,
            None => T::blank(),
        }
    }
}

impl<T: Blank> DerefMut for Rare<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.get_or_insert_default()
    }
}

/// A part that is set to blank equals one that is left out.
impl<T: Blank> PartialEq for Rare<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}
