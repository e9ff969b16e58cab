//! Controllers: they watch, compare, and write what is missing. Each is idempotent and starts anew from what is stored.
//!
//! They run in one process at a time, under a lease row.

mod changes;
mod definitions;
mod namespace_content;
mod namespaces;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::auth::UserInfo;
use crate::registry::Registry;

/// Who the controllers are to the registry.
const USER: &str = "system:apiserver";
/// The manager of the fields that they set.
const MANAGER: &str = "kube-apiserver";
/// The manager of the fields that the controllers of Kubernetes' controller manager set.
const CONTROLLER_MANAGER: &str = "kube-controller-manager";
const LEASE: &str = "controllers";
const LEASE_TTL: Duration = Duration::from_secs(15);
const LEASE_RENEWED_EVERY: Duration = Duration::from_secs(5);
/// How long a failure waits before it is tried again.
const RETRY_AFTER: Duration = Duration::from_millis(500);

/// Runs the controllers for as long as this process holds the lease.
///
/// `authority_pem` is published in every namespace. Nothing is done before `begin` is notified: what controllers write is not
/// to be waited for by those who only want to start.
pub fn start(registry: Arc<Registry>, authority_pem: String, begin: Arc<Notify>) -> JoinHandle<()> {
    tokio::spawn(async move {
        begin.notified().await;
        let holder = Uuid::new_v4().to_string();
        loop {
            if has_lease(&registry, &holder).await {
                tokio::select! {
                    () = definitions::run(&registry) => {}
                    () = namespaces::run(&registry) => {}
                    () = namespace_content::run(&registry, &authority_pem) => {}
                    () = lose_lease(&registry, &holder) => {}
                }
            }
            tokio::time::sleep(LEASE_RENEWED_EVERY).await;
        }
    })
}

async fn has_lease(registry: &Registry, holder: &str) -> bool {
    match registry.storage.lease(LEASE, holder, LEASE_TTL).await {
        Ok(held) => held,
        Err(error) => {
            tracing::warn!(%error, "the lease of the controllers could not be renewed");
            false
        }
    }
}

/// Renews the lease until it is another's.
async fn lose_lease(registry: &Registry, holder: &str) {
    loop {
        tokio::time::sleep(LEASE_RENEWED_EVERY).await;
        if !has_lease(registry, holder).await {
            return;
        }
    }
}

fn user() -> UserInfo {
    UserInfo::authenticated(USER, vec![UserInfo::MASTERS.to_owned()])
}
