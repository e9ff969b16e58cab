//! Conversion between the versions of a resource.

use async_trait::async_trait;

use crate::crd::ServedVersion;
use crate::meta::Status;
use crate::value::Value;

/// Brings objects from one version of a resource to another. Every read and every write passes here.
#[async_trait]
pub trait Convert: Send + Sync {
    /// `object` in the version `to`; it must not be called for an object that is there already.
    async fn convert(&self, object: Value, to: &ServedVersion) -> Result<Value, Status>;
}

/// The strategy `None`: only `apiVersion` changes.
pub struct Identity;

#[async_trait]
impl Convert for Identity {
    async fn convert(&self, mut object: Value, to: &ServedVersion) -> Result<Value, Status> {
        if let Value::Object(fields) = &mut object {
            fields.insert("apiVersion", Value::String(to.api_version()));
        }
        Ok(object)
    }
}
