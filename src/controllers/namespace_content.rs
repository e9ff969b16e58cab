//! What every namespace has from the start: the account `default`, and the authority to trust in `kube-root-ca.crt`.
//!
//! Source: the service account controller and the root CA publisher of Kubernetes 1.37.

use std::sync::Arc;

use tokio::time::Instant;

use super::changes::Controller;
use super::changes::queue_all;
use super::identity::{CONTROLLER_MANAGER, user};
use super::queue::{Progress, Queue};
use crate::kinds;
use crate::meta::Status;
use crate::object;
use crate::registry::{FieldValidation, PatchRequest, PatchType, Registry, Subresource, Target, Warnings};
use crate::store::{ChangeEvent, Collection, Moment};
use crate::value::{Value, json};

/// The name of the data with the authority.
const AUTHORITY: &str = "kube-root-ca.crt";

/// What namespaces must contain.
pub(super) struct NamespaceContent {
    pub registry: Arc<Registry>,
    /// The account `default`.
    pub accounts: bool,
    /// The authority to trust, in PEM.
    pub authority_pem: Option<String>,
}

/// A key is the name of a namespace.
impl Controller for NamespaceContent {
    type Key = String;
    const AT_ONCE: usize = 128;
    const TASK: &str = "filling a namespace";

    async fn begin(&self, queue: &mut Queue<String>) -> Result<Moment, Status> {
        queue_all(&self.registry, &self.registry.definitions.namespaces(), queue, str::to_owned).await
    }

    fn note(&self, change: &ChangeEvent, queue: &mut Queue<String>) {
        let is_new = change.stored.as_ref().is_some_and(|stored| stored.created == stored.revision);
        let namespace = match change.key.split_once('/') {
            None if is_new && change.collection == self.registry.definitions.namespaces() => &*change.key,
            Some((namespace, "default")) if change.stored.is_none() && change.collection == accounts() => namespace,
            Some((namespace, AUTHORITY)) if change.collection == config_maps() => namespace,
            _ => return,
        };
        queue.add(namespace.to_owned(), Instant::now());
    }

    /// Creates what is missing in a namespace that is not being deleted.
    async fn reconcile(&self, namespace: &String) -> Result<Progress, Status> {
        let registry = &self.registry;
        let Some(object) = get(registry, &registry.definitions.namespaces(), namespace).await? else {
            return Ok(Progress::Done);
        };
        if object.at(&["metadata", "deletionTimestamp"]).is_some() {
            return Ok(Progress::Done);
        }
        let (account, authority) = tokio::join!(self.make_account(namespace), self.make_authority(namespace));
        account.and(authority).map(|()| Progress::Done)
    }
}

impl NamespaceContent {
    async fn make_account(&self, namespace: &str) -> Result<(), Status> {
        if !self.accounts || get(&self.registry, &accounts(), &format!("{namespace}/default")).await?.is_some() {
            return Ok(());
        }
        make(&self.registry, "serviceaccounts", namespace, kinds::namespaces::default_account()).await
    }

    async fn make_authority(&self, namespace: &str) -> Result<(), Status> {
        let Some(authority_pem) = &self.authority_pem else { return Ok(()) };
        let wanted = kinds::namespaces::root_authority(authority_pem);
        match get(&self.registry, &config_maps(), &format!("{namespace}/{AUTHORITY}")).await? {
            Some(found) if found.get("data") == wanted.get("data") => Ok(()),
            Some(_) => restore(&self.registry, namespace, &wanted).await,
            None => make(&self.registry, "configmaps", namespace, wanted).await,
        }
    }
}

fn accounts() -> Collection {
    Collection::new("", "serviceaccounts")
}

fn config_maps() -> Collection {
    Collection::new("", "configmaps")
}

async fn get(registry: &Registry, collection: &Collection, key: &str) -> Result<Option<Value>, Status> {
    let stored = registry.storage.get(collection, key).await;
    let stored = stored.map_err(|error| Status::internal_error(&error.to_string()))?;
    let decoded = stored.map(|stored| json::decode(&stored.bytes)).transpose();
    decoded.map_err(|error| Status::internal_error(&error.to_string()))
}

async fn make(registry: &Arc<Registry>, plural: &str, namespace: &str, object: Value) -> Result<(), Status> {
    let made = registry.create_own("", plural, namespace, CONTROLLER_MANAGER, object).await;
    settled(made)
}

/// Restores the contents of the ConfigMap with the authority.
async fn restore(registry: &Arc<Registry>, namespace: &str, wanted: &Value) -> Result<(), Status> {
    let resource = registry.resolve("", "configmaps").await?.ok_or_else(Status::not_found_generic)?;
    let version = Arc::clone(resource.first());
    let (namespace, name) = (namespace.to_owned(), wanted.str_at(&["metadata", "name"]).to_owned());
    let target = Target { resource, version, subresource: Subresource::Main, namespace, name };
    let data = wanted.get("data").cloned().unwrap_or_default();
    let patch = vec![object! { "op" => "add", "path" => "/data", "value" => data }];
    let request = PatchRequest {
        patch_type: PatchType::Json,
        bytes: json::encode(&Value::Array(patch)).into(),
        field_validation: FieldValidation::Ignore,
        manager: CONTROLLER_MANAGER.to_owned(),
        force: false,
        dry_run: false,
        options: Value::Null,
    };
    settled(registry.patch(&target, &user(), &request, &mut Warnings::default()).await.map(drop))
}

/// It is not a failure if another writer was faster, if the namespace is gone or being deleted, or if the object is
/// immutable.
fn settled(outcome: Result<(), Status>) -> Result<(), Status> {
    match outcome {
        Err(status) if !matches!(status.code, 403 | 404 | 409 | 422) => Err(status),
        _ => Ok(()),
    }
}
