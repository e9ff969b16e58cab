//! Where plugins look up objects of built-in kinds.

use std::ops::Deref;

use async_trait::async_trait;

use crate::memory::Reservation;
use crate::meta::Status;
use crate::value::Value;

/// A kind of objects, and their namespace: empty for kinds that have none.
#[derive(Clone, Copy, Debug)]
pub struct ScopedResource<'p> {
    pub group: &'p str,
    pub plural: &'p str,
    pub namespace: &'p str,
}

/// A check of an object before it is decoded: of its stored JSON.
pub type TextFilter<'f> = &'f (dyn Fn(&[u8]) -> bool + Send + Sync);

/// Objects that were listed, and the memory that is kept free for them as long.
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

/// The objects as they are stored.
#[async_trait]
pub trait Objects: Send + Sync {
    /// The object of a name; `None` where there is none.
    async fn get(&self, place: ScopedResource<'_>, name: &str) -> Result<Option<Value>, Status>;

    /// The labels of an object; null where there is no such object, or it has none.
    async fn labels(&self, place: ScopedResource<'_>, name: &str) -> Result<Value, Status> {
        let object = self.get(place, name).await?.unwrap_or_default();
        Ok(object.at(&["metadata", "labels"]).cloned().unwrap_or_default())
    }

    /// Whether there is any object that is `wanted` by its text.
    async fn any_of(&self, place: ScopedResource<'_>, wanted: TextFilter<'_>) -> Result<bool, Status>;

    /// All objects, in the order of their names, each with its `resourceVersion`.
    ///
    /// Errors: among others, there is no memory for them.
    async fn list(&self, place: ScopedResource<'_>) -> Result<Listed, Status> {
        self.list_of(place, &|_| true).await
    }

    /// Those of them that are `wanted` by their texts: the others are not decoded.
    async fn list_of(&self, place: ScopedResource<'_>, wanted: TextFilter<'_>) -> Result<Listed, Status>;

    /// Replaces an object that was listed; `false` if it has been written since.
    async fn replace(&self, place: ScopedResource<'_>, object: Value) -> Result<bool, Status>;
}
