//! The objects of a collection at one revision.

use std::ops::{Bound, Deref};
use std::sync::Arc;

use imbl::ordmap::DiffItem;

use crate::meta::Revision;
use crate::work;

use super::key_range::KeyRange;
use super::objects::{Held, Objects};
use super::{Change, Collection, Signature, Stored};

/// The objects of a collection at one revision.
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub(super) collection: Collection,
    pub(super) objects: Objects,
    pub(super) revision: Revision,
    /// How many bytes of former states it has alone, as they were read from the log.
    pub(super) own_bytes: usize,
}

impl Snapshot {
    pub fn revision(&self) -> Revision {
        self.revision
    }

    pub fn len(&self) -> usize {
        self.objects.len()
    }

    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// The objects whose keys begin with `prefix`, from the key `start` on, in byte order.
    pub fn range(&self, prefix: &str, start: Option<&str>) -> impl Iterator<Item = &Arc<Stored>> {
        self.range_of(prefix, start, Signature::NONE)
    }

    /// The objects of [`Snapshot::range`] that may have the labels of a signature; others are skipped without looking
    /// at them.
    pub fn range_of(&self, prefix: &str, start: Option<&str>, labels: Signature) -> impl Iterator<Item = &Arc<Stored>> {
        let range = start.into_iter().fold(KeyRange::of(prefix), KeyRange::starting);
        self.held(&range).filter(move |held| held.may_have(labels)).map(Deref::deref)
    }

    /// The objects of a range of keys, in byte order.
    pub(super) fn within<'s>(&'s self, range: &KeyRange) -> impl Iterator<Item = &'s Arc<Stored>> + use<'s> {
        self.held(range).map(Deref::deref)
    }

    fn held<'s>(&'s self, range: &KeyRange) -> impl Iterator<Item = &'s Held> + use<'s> {
        // A range may be empty, and then end before it begins.
        let is_empty = range.end().is_some_and(|end| end <= range.from());
        let end = range.end().filter(|_| !is_empty).map_or(Bound::Unbounded, Bound::Excluded);
        let held = self.objects.range::<(Bound<&str>, Bound<&str>), str>((Bound::Included(range.from()), end));
        held.take_while(move |_| !is_empty).map(|(_, held)| {
            work::step();
            held
        })
    }

    pub(super) fn remove(&mut self, key: &str) {
        _ = self.objects.remove(key);
    }

    /// Drops the objects from the key `start` on.
    pub(super) fn cut(&mut self, start: &str) {
        let (before, _) = self.objects.split(start);
        self.objects = before;
    }

    /// Whether it holds the same objects in the same states as `other`; fast, and without false positives.
    pub fn is_same(&self, other: &Snapshot) -> bool {
        self.objects.ptr_eq(&other.objects)
    }

    /// The keys whose objects differ from those of `before`, each with its object now, if any. Parts that both share
    /// are skipped.
    pub fn changes_since<'s>(
        &'s self,
        before: &'s Snapshot,
    ) -> impl Iterator<Item = (&'s Arc<str>, Option<&'s Arc<Stored>>)> {
        before.objects.diff(&self.objects).map(|change| match change {
            DiffItem::Add(key, held) => (key, Some(&**held)),
            DiffItem::Update { new: (key, held), .. } => (key, Some(&**held)),
            DiffItem::Remove(key, _) => (key, None),
        })
    }

    pub(super) fn collection(&self) -> &Collection {
        &self.collection
    }

    /// Reverts the key of `change` to its state before the change.
    pub(super) fn take_back(&mut self, change: &Change) {
        match &change.previous {
            Some(previous) => _ = self.objects.insert(Arc::clone(&previous.key), Arc::clone(previous).into()),
            None => _ = self.objects.remove(&change.object.key),
        }
    }
}
