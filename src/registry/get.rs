//! GET of one object.

use std::sync::Arc;
use std::time::Duration;

use crate::meta::{Revision, Status};
use crate::store::{Encoded, Stored};
use crate::value::Value;

use super::{Registry, Subresource, Target, scale, store_failed};

/// How long a read waits for a revision that this process has not seen.
pub(super) const FRESH_WAIT: Duration = Duration::from_secs(3);

impl Registry {
    /// The object of `target` as it is to be sent.
    ///
    /// Errors: 404; 504 for a `resource_version` beyond the newest.
    pub async fn get(
        &self,
        target: &Target,
        resource_version: Option<Revision>,
    ) -> Result<(Arc<Stored>, Encoded), Status> {
        self.wait_for(resource_version).await?;
        let stored = self.stored(target).await?.ok_or_else(|| target.not_found())?;
        let (resource, version) = (&target.resource, &target.version);
        // A read at the newest does not make do with what a webhook said before.
        let encoded = match resource_version.is_none() && resource.is_converted_by_webhook(version, &stored) {
            true => self.encoded_anew(resource, version, &stored).await,
            false => self.encoded(resource, version, &stored).await,
        };
        let encoded = encoded.map_err(|error| error.refuse_read(&resource.collection, &stored))?;
        Ok((stored, encoded))
    }

    /// The object of `target` as a value; of its scale, where that is asked for.
    pub async fn get_value(&self, target: &Target, resource_version: Option<Revision>) -> Result<Value, Status> {
        self.wait_for(resource_version).await?;
        let stored = self.stored(target).await?.ok_or_else(|| target.not_found())?;
        let object = self.derive(&target.resource, &target.version, &stored).await;
        let object = object.map_err(|error| error.refuse_read(&target.resource.collection, &stored))?;
        match target.subresource {
            Subresource::Scale => scale::read(target, &object),
            _ => Ok(object),
        }
    }

    pub(super) async fn stored(&self, target: &Target) -> Result<Option<Arc<Stored>>, Status> {
        self.storage.get(&target.resource.collection, &target.key()).await.map_err(store_failed)
    }

    /// Waits until this process has seen all that any process had written before. At once where it is alone.
    pub async fn catch_up(&self) -> Result<(), Status> {
        self.storage.catch_up().await.map_err(store_failed)
    }

    /// Waits until this process has seen `revision`.
    pub(super) async fn wait_for(&self, revision: Option<Revision>) -> Result<(), Status> {
        let Some(revision) = revision else { return Ok(()) };
        match self.storage.wait_for(revision, FRESH_WAIT).await {
            true => Ok(()),
            false => Err(Status::too_large_resource_version(revision, self.storage.revision())),
        }
    }
}
