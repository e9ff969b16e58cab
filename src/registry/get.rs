//! GET of one object.

use std::sync::Arc;
use std::time::Duration;

use crate::meta::{Revision, Status, names};
use crate::store::{Collection, Encoded, Stored};
use crate::value::{Value, go_quote};
use crate::webhook::patience;

use super::{Registry, Resource, Subresource, Target, scaled, store_failed};

/// How long a read waits for a revision that this process has not seen.
pub(super) const FRESH_WAIT: Duration = Duration::from_secs(3);

impl Registry {
    /// The object of `target`, ready to be sent.
    ///
    /// Errors: 404; 504 for a `resource_version` beyond the newest.
    pub async fn get(
        &self,
        target: &Target,
        resource_version: Option<Revision>,
    ) -> Result<(Arc<Stored>, Encoded), Status> {
        self.wait_for(&target.resource, resource_version).await?;
        let stored = self.stored(target).await?.ok_or_else(|| target.not_found())?;
        let (resource, version) = (&target.resource, &target.version);
        // A read of the newest state does not reuse earlier answers of a webhook.
        let encoded = if resource_version.is_none() && resource.is_converted_by_webhook(version, &stored) {
            self.encoded_anew(resource, version, &stored).await
        } else {
            self.encoded(resource, version, &stored).await
        };
        let encoded = encoded.map_err(|error| error.refuse_read(&resource.collection, &stored))?;
        Ok((stored, encoded))
    }

    /// The object of `target` as a value; of its scale, if that is requested.
    pub async fn get_value(&self, target: &Target, resource_version: Option<Revision>) -> Result<Value, Status> {
        self.wait_for(&target.resource, resource_version).await?;
        let stored = self.stored(target).await?.ok_or_else(|| target.not_found())?;
        let object = self.read_stored(target, &stored).await?;
        match target.subresource {
            Subresource::Scale => scaled::read(target, &object),
            _ => Ok(object),
        }
    }

    /// The object that is `stored`, in the version of `target`.
    pub(super) async fn read_stored(&self, target: &Target, stored: &Arc<Stored>) -> Result<Value, Status> {
        let object = self.derive(&target.resource, &target.version, stored).await;
        object.map_err(|error| error.refuse_read(&target.resource.collection, stored))
    }

    /// The object of `target`, if there is one. A name that no object can have is a 400.
    pub(super) async fn stored(&self, target: &Target) -> Result<Option<Arc<Stored>>, Status> {
        let faults = names::is_path_segment(&target.name, false);
        if !faults.is_empty() {
            let (name, faults) = (go_quote(&target.name), faults.join(";"));
            return Err(Status::bad_request(&format!("Name parameter invalid: {name}: {faults}")));
        }
        let collection = &target.resource.collection;
        let stored = self.storage.get(collection, &target.key()).await;
        stored.map_err(|error| store_failed(collection, "get", error))
    }

    /// Waits until this process has seen all that any process had written to the main database before. Returns at once
    /// if it is the only process.
    ///
    /// The error is that of `operation` on a resource.
    pub async fn catch_up(&self, group: &str, plural: &str, operation: &str) -> Result<(), Status> {
        let caught_up = self.storage.catch_up().await;
        caught_up.map_err(|error| store_failed(&Collection::new(group, plural), operation, error))
    }

    /// [`Registry::catch_up`] with the objects of a resource, if they are in another database.
    pub async fn catch_up_apart(&self, resource: &Resource, operation: &str) -> Result<(), Status> {
        let caught_up = self.storage.catch_up_apart(&resource.collection).await;
        caught_up.map_err(|error| store_failed(&resource.collection, operation, error))
    }

    /// Waits until this process has seen `revision` of a resource.
    pub(super) async fn wait_for(&self, resource: &Resource, revision: Option<Revision>) -> Result<(), Status> {
        let Some(revision) = revision else { return Ok(()) };
        let collection = &resource.collection;
        if patience::lending(self.storage.wait_for(collection, revision, FRESH_WAIT)).await? {
            Ok(())
        } else {
            let mut status = Status::too_large_resource_version(revision, self.storage.revision(collection));
            if resource.strategy.lifetime().is_some() {
                // Objects that expire are read from the store, and not from a cache that may catch up.
                status.details.get_or_insert_default().retry_after_seconds = 0;
            }
            Err(status)
        }
    }
}
