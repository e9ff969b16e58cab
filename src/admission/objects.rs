//! Where plugins look up objects of built-in kinds.

use async_trait::async_trait;

use crate::meta::Status;
use crate::value::Value;

/// A kind of objects, and their namespace: empty for kinds that have none.
#[derive(Clone, Copy, Debug)]
pub struct Place<'p> {
    pub group: &'p str,
    pub plural: &'p str,
    pub namespace: &'p str,
}

/// The objects as they are stored.
#[async_trait]
pub trait Objects: Send + Sync {
    /// The object of a name; `None` where there is none.
    async fn get(&self, place: Place<'_>, name: &str) -> Result<Option<Value>, Status>;

    /// All objects, in the order of their names, each with its `resourceVersion`.
    async fn list(&self, place: Place<'_>) -> Result<Vec<Value>, Status>;

    /// Replaces an object that was listed; `false` where somebody else has written it since.
    async fn replace(&self, place: Place<'_>, object: Value) -> Result<bool, Status>;
}
