//! How plugins look up objects of built-in kinds.

use std::ops::Deref;

use async_trait::async_trait;

use crate::memory::Reservation;
use crate::meta::Status;
use crate::value::Value;

/// A resource, and the namespace of the objects; empty for cluster-scoped resources.
#[derive(Clone, Copy, Debug)]
pub struct ScopedResource<'p> {
    pub group: &'p str,
    pub plural: &'p str,
    pub namespace: &'p str,
}

/// A filter that is applied to an object's stored JSON, before it is decoded.
pub type TextFilter<'f> = &'f (dyn Fn(&[u8]) -> bool + Send + Sync);

/// A list of objects, with the memory that is reserved for it.
#[derive(Default)]
pub struct Listed {
    objects: Vec<Value>,
    _reserved: Option<Reservation>,
}

impl Listed {
    pub fn new(objects: Vec<Value>, reserved: Option<Reservation>) -> Self {
        Listed { objects, _reserved: reserved }
    }
}

impl Deref for Listed {
    type Target = [Value];

    fn deref(&self) -> &[Value] {
        &self.objects
    }
}

/// Reads and replaces stored objects.
#[async_trait]
pub trait Objects: Send + Sync {
    /// An object by name; `None` if it does not exist.
    async fn get(&self, place: ScopedResource<'_>, name: &str) -> Result<Option<Value>, Status>;

    /// The labels of an object; null if it does not exist or has none.
    async fn labels(&self, place: ScopedResource<'_>, name: &str) -> Result<Value, Status> {
        let object = self.get(place, name).await?.unwrap_or_default();
        Ok(object.at(&["metadata", "labels"]).cloned().unwrap_or_default())
    }

    /// Whether there is any object whose JSON is `wanted`.
    async fn any_of(&self, place: ScopedResource<'_>, wanted: TextFilter<'_>) -> Result<bool, Status>;

    /// All objects, sorted by name, each with its `resourceVersion`.
    ///
    /// # Errors
    ///
    /// The objects can't be read, or there is no memory for them.
    async fn list(&self, place: ScopedResource<'_>) -> Result<Listed, Status> {
        self.list_of(place, &|_| true).await
    }

    /// The objects whose JSON is `wanted`; the others are not decoded.
    async fn list_of(&self, place: ScopedResource<'_>, wanted: TextFilter<'_>) -> Result<Listed, Status>;

    /// All objects, sorted by name, with at least the fields at these paths: they are decoded one after the other, and
    /// the others left out, as are texts of more than a KiB.
    ///
    /// # Errors
    ///
    /// The objects can't be read, or there is no memory for one of them.
    async fn list_fields(&self, place: ScopedResource<'_>, _: &[&[&str]]) -> Result<Vec<Value>, Status> {
        Ok(self.list(place).await?.to_vec())
    }

    /// Replaces an object that was listed; returns `false` if it has been written since.
    async fn replace(&self, place: ScopedResource<'_>, object: Value) -> Result<bool, Status>;
}
