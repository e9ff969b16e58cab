//! Admission: who may still change or refuse a write that is otherwise in order.
//!
//! Every write passes [`Admission::mutate`] after defaulting, inside the loop that repeats a write after a conflict, and
//! [`Admission::validate`] right before the commit. The registry prunes and defaults again what was mutated.

mod namespace_lifecycle;

use async_trait::async_trait;

use crate::auth::UserInfo;
use crate::crd::ServedVersion;
use crate::meta::Status;
use crate::value::Value;

pub use namespace_lifecycle::{NamespaceLifecycle, Namespaces, Phase};

/// What a write does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Create,
    Update,
    Delete,
}

/// All that is known of a write beside the new object.
#[derive(Clone, Copy)]
pub struct Attributes<'a> {
    pub operation: Operation,
    pub version: &'a ServedVersion,
    /// `""`, `status` or `scale`.
    pub subresource: &'a str,
    /// Empty for cluster scope.
    pub namespace: &'a str,
    /// Empty while a name is still to be generated, and for a collection.
    pub name: &'a str,
    pub old: Option<&'a Value>,
    pub user: &'a UserInfo,
    pub dry_run: bool,
}

/// One step of admission, or a chain of them.
#[async_trait]
pub trait Admission: Send + Sync {
    /// May change `object`; an error refuses the write. `object` is null for a deletion.
    async fn mutate(&self, attributes: &Attributes<'_>, object: &mut Value) -> Result<(), Status>;

    /// May refuse the write.
    async fn validate(&self, attributes: &Attributes<'_>, object: &Value) -> Result<(), Status>;
}

/// The steps of admission in their order.
#[derive(Default)]
pub struct Chain(pub Vec<Box<dyn Admission>>);

#[async_trait]
impl Admission for Chain {
    async fn mutate(&self, attributes: &Attributes<'_>, object: &mut Value) -> Result<(), Status> {
        for step in &self.0 {
            step.mutate(attributes, object).await?;
        }
        Ok(())
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: &Value) -> Result<(), Status> {
        for step in &self.0 {
            step.validate(attributes, object).await?;
        }
        Ok(())
    }
}
