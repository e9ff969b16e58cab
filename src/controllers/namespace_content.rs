//! What every namespace has from the start: the account `default`, and the authority to trust in `kube-root-ca.crt`.
//!
//! Source: the service account controller and the root CA publisher of Kubernetes 1.37.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::stream::{FuturesUnordered, StreamExt as _};

use super::changes::Keys;
use super::{CONTROLLER_MANAGER, user};
use crate::meta::Status;
use crate::object;
use crate::registry::{FieldValidation, PatchRequest, PatchType, Registry, Subresource, Target, Warnings, kinds};
use crate::store::{At, Collection};
use crate::value::{Value, json};

/// How many namespaces are filled at once.
const AT_ONCE: usize = 128;

/// Makes in each namespace what is missing, also what somebody deletes.
pub(super) async fn run(registry: &Arc<Registry>, authority_pem: &str) {
    let namespaces = registry.definitions.namespaces();
    let mut keys = Keys::new(vec![
        (namespaces.clone(), |change| change.previous.is_none()),
        (accounts(), |change| change.deleted && change.object.key.ends_with("/default")),
        (config_maps(), |change| change.object.key.ends_with("/kube-root-ca.crt")),
    ]);
    loop {
        let after = registry.storage.revision();
        let snapshot = registry.storage.snapshot(&namespaces, At::Newest).await;
        let mut open: BTreeSet<String> =
            snapshot.iter().flat_map(|all| all.range("", None)).map(|stored| stored.key.to_string()).collect();
        let mut watching = keys.watch(registry, after).await;
        while watching {
            let mut under_way = FuturesUnordered::new();
            for name in std::mem::take(&mut open) {
                if under_way.len() == AT_ONCE {
                    open.extend(under_way.next().await.flatten());
                }
                under_way.push(try_fill(registry, name, authority_pem));
            }
            while let Some(again) = under_way.next().await {
                open.extend(again);
            }
            drop(under_way);
            watching = keys.next(&mut open).await;
        }
    }
}

fn accounts() -> Collection {
    Collection::new("", "serviceaccounts")
}

fn config_maps() -> Collection {
    Collection::new("", "configmaps")
}

/// [`fill`]; gives the name back where it is to be tried again.
async fn try_fill(registry: &Arc<Registry>, name: String, authority_pem: &str) -> Option<String> {
    let again = match fill(registry, &name, authority_pem).await {
        Ok(()) => false,
        Err(status) => {
            let message = &status.message;
            tracing::warn!(message, name, "a namespace could not be filled, it will be tried again");
            true
        }
    };
    again.then_some(name)
}

/// Makes what is missing in a namespace that is there to stay.
async fn fill(registry: &Arc<Registry>, namespace: &str, authority_pem: &str) -> Result<(), Status> {
    let Some(object) = get(registry, &registry.definitions.namespaces(), namespace).await? else { return Ok(()) };
    if object.at(&["metadata", "deletionTimestamp"]).is_some() {
        return Ok(());
    }
    let account = async {
        match get(registry, &accounts(), &format!("{namespace}/default")).await? {
            Some(_) => Ok(()),
            None => make(registry, "serviceaccounts", namespace, kinds::default_service_account()).await,
        }
    };
    let authority = async {
        let wanted = kinds::root_authority(authority_pem);
        match get(registry, &config_maps(), &format!("{namespace}/kube-root-ca.crt")).await? {
            Some(found) if found.get("data") == wanted.get("data") => Ok(()),
            Some(_) => restore(registry, namespace, &wanted).await,
            None => make(registry, "configmaps", namespace, wanted).await,
        }
    };
    let (account, authority) = tokio::join!(account, authority);
    account.and(authority)
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

/// Gives the data of the authority its contents back.
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
    };
    settled(registry.patch(&target, &user(), &request, &mut Warnings::default()).await.map(drop))
}

/// Who was faster, and a namespace that has gone or is going, are no failures; nor is an object that must not be changed.
fn settled(outcome: Result<(), Status>) -> Result<(), Status> {
    match outcome {
        Err(status) if !matches!(status.code, 403 | 404 | 409 | 422) => Err(status),
        _ => Ok(()),
    }
}
