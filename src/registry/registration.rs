//! Registers definitions, and waits until the controllers have decided whether their objects are served.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use crate::crd::Definition as CustomResourceDefinition;
use crate::crd::names;
use crate::meta::Status;
use crate::meta::minor::Minor;
use crate::object;
use crate::store::{At, Stored, WatchError};
use crate::value::{Value, json};

use super::definitions::{GROUP, PLURAL, decode_definition};
use super::identity::{OWN_MANAGER, own_user};
use super::{FieldValidation, PatchRequest, PatchType, Registry, Subresource, Target, Warnings, store_failed};

/// How long the answer to a write of a definition waits for the controllers' decision: if they run, it takes some
/// milliseconds.
const DECISION_WAIT: Duration = Duration::from_secs(1);

/// How far the controllers are with a definition.
enum DefinitionProgress {
    /// Its objects are served.
    Served,
    /// They are not served, for this reason.
    Refused(String),
    /// They have not looked at it yet.
    Pending,
}

impl Registry {
    /// Registers a definition as `kubectl apply` would: it is created, or its spec is updated.
    pub async fn register(&self, definition: Value) -> Result<(), Status> {
        match self.create_own(GROUP, PLURAL, "", OWN_MANAGER, definition.clone()).await {
            Err(status) if status.is_already_exists() => {}
            other => return other,
        }
        let target = self.own_target(GROUP, PLURAL, definition.str_at(&["metadata", "name"])).await?;
        let request = PatchRequest {
            patch_type: PatchType::Merge,
            bytes: json::encode(&object! { "spec" => definition.get("spec").cloned().unwrap_or_default() }).into(),
            field_validation: FieldValidation::Ignore,
            manager: OWN_MANAGER.to_owned(),
            force: false,
            dry_run: false,
            options: Value::Null,
        };
        self.patch(&target, &own_user(), &request, &mut Warnings::default()).await.map(drop)
    }

    /// Waits until the controllers have decided on the definition `name`. Returns the reason if its objects are not
    /// served: another definition has its names, or it is gone.
    pub async fn wait_until_served(&self, name: &str) -> Result<Option<String>, Status> {
        let collection = self.definitions.collection();
        loop {
            let failed = |error| store_failed(&collection, "get", error);
            let seen = self.storage.revision(&collection);
            match self.decision(name).await? {
                DefinitionProgress::Served => return Ok(None),
                DefinitionProgress::Refused(why) => return Ok(Some(why)),
                DefinitionProgress::Pending => {}
            }
            match self.storage.watch(&collection, seen).await {
                Ok(mut changes) => _ = changes.next().await,
                // So many changes have happened that it is best to look again.
                Err(WatchError::Expired { .. }) => {}
                Err(WatchError::Store(error)) => return Err(failed(error)),
            }
        }
    }

    /// Delays the answer to a write of a definition until the controllers have decided on it, so that its objects can
    /// be used at once; for at most [`DECISION_WAIT`], as the controllers may run elsewhere. Returns at once for other
    /// objects.
    pub async fn settle(&self, target: &Target, written: &Value) {
        let is_main = matches!(target.subresource, Subresource::Main);
        if is_main || target.subresource == Subresource::Status {
            self.follow_up(target, written.str_at(&["metadata", "name"])).await;
        }
        if !is_main || target.resource.collection != self.definitions.collection() {
            return;
        }
        let served = self.wait_until_served(written.str_at(&["metadata", "name"]));
        // The definition's conditions show the outcome.
        _ = timeout(DECISION_WAIT, served).await;
    }

    /// The controllers' decision on a definition as it is stored now.
    async fn decision(&self, name: &str) -> Result<DefinitionProgress, Status> {
        let collection = self.definitions.collection();
        let stored = self.storage.get(&collection, name).await;
        let Some(stored) = stored.map_err(|error| store_failed(&collection, "get", error))? else {
            return Ok(DefinitionProgress::Refused("it has been deleted".to_owned()));
        };
        let definition = decode_definition(&stored, self.definitions.minor)?;
        if definition.is_being_deleted() {
            return Ok(DefinitionProgress::Served);
        }
        let is_new = definition.spec.names != definition.status.accepted_names;
        match definition.condition("NamesAccepted").filter(|known| known.status == "False") {
            None if is_new => Ok(DefinitionProgress::Pending),
            // The names that were refused may have been different ones.
            Some(_) if is_new && !self.is_refused(&definition).await? => Ok(DefinitionProgress::Pending),
            Some(refused) => Ok(DefinitionProgress::Refused(refused.message.clone())),
            None if definition.is_true("Established") => Ok(DefinitionProgress::Served),
            None => match names::establish(&definition, "") {
                Some(_) => Ok(DefinitionProgress::Pending),
                None => {
                    let why = definition.condition("Established").map(|known| known.message.clone());
                    Ok(DefinitionProgress::Refused(why.unwrap_or_default()))
                }
            },
        }
    }

    /// Whether the names that a definition asks for conflict with others in its group.
    async fn is_refused(&self, definition: &CustomResourceDefinition) -> Result<bool, Status> {
        let snapshot = self.storage.snapshot(&self.definitions.collection(), At::Newest).await;
        let snapshot = snapshot.map_err(|_| Status::internal_error("definitions can't be read"))?;
        let is_of_group =
            |stored: &&Arc<Stored>| stored.key.split_once('.').is_some_and(|(_, group)| group == definition.spec.group);
        let names_of = |stored: &Arc<Stored>| {
            decode_definition(stored, Minor::NEWEST).map(|definition| definition.status.accepted_names)
        };
        let in_group = snapshot.range("", None).filter(is_of_group).map(names_of).collect::<Result<Vec<_>, _>>()?;
        Ok(names::accept(definition, &in_group, "").is_none())
    }
}
