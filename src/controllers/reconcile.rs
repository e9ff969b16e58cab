//! What the controllers of workloads share: each says which changes concern which of its objects, and what is done for one.
//!
//! They run in the loop of all controllers ([`super::changes`]). A key is `namespace/name`, or the name in cluster
//! scope. Changes are gathered for a moment, so that what comes in a row is looked at once. A controller that is switched
//! off takes no task and no memory.

use std::future::ready;
use std::sync::Arc;

use tokio::time::Instant;

use super::changes::{self, Controller};
use super::queue::{Progress, Queue};
use crate::meta::Status;
use crate::processor::background;
use crate::registry::Registry;
use crate::store::{At, Collection, FeedEntry, Moment};

/// A controller of workloads.
pub(super) trait Reconciler: Send + Sync {
    /// What it does, for the log.
    const TASK: &str;

    /// How many objects are looked at at once.
    const AT_ONCE: usize = 32;

    /// The collections that it knows from the start: what they hold is noted as if it came then, in this order.
    fn collections(&self) -> Vec<Collection>;

    /// Further ones, looked up at each beginning: those of kinds that are defined while it runs.
    fn found_collections(&self) -> impl Future<Output = Vec<Collection>> + Send {
        ready(Vec::new())
    }

    /// What is looked at at the start, whatever is there.
    fn first_keys(&self) -> Vec<String> {
        Vec::new()
    }

    /// The keys that a change is about. Every change is told once, in order, also at the start.
    fn note(&self, change: &FeedEntry) -> Vec<String>;

    /// Forgets what it has noted, before all is told anew.
    fn forget(&self) {}

    /// Does what is to be done for a key as it is stored now. It may be done again, and be given up at any point.
    fn reconcile(&self, key: &str) -> impl Future<Output = Result<Progress, Status>> + Send;
}

/// Runs one for as long as it is not dropped.
pub(super) async fn run<R: Reconciler>(registry: Arc<Registry>, reconciler: R) {
    let storage = registry.storage.clone();
    background(changes::run(storage, Loop { registry, reconciler })).await;
}

struct Loop<R> {
    registry: Arc<Registry>,
    reconciler: R,
}

impl<R: Reconciler> Controller for Loop<R> {
    type Key = String;
    const AT_ONCE: usize = R::AT_ONCE;
    const TASK: &str = R::TASK;

    async fn begin(&self, queue: &mut Queue<String>) -> Result<Moment, Status> {
        // Before the state is read: what changes meanwhile is seen twice rather than never.
        let before = self.registry.storage.now();
        self.reconciler.forget();
        let mut collections = self.reconciler.collections();
        collections.extend(self.reconciler.found_collections().await);
        for collection in collections {
            let snapshot = self.registry.storage.snapshot(&collection, At::Newest).await;
            let snapshot = snapshot.map_err(|_| Status::internal_error("what is stored can't be read"))?;
            for stored in snapshot.range("", None) {
                let change = FeedEntry {
                    collection: collection.clone(),
                    key: Arc::clone(&stored.key),
                    uid: Arc::clone(&stored.uid),
                    revision: stored.revision,
                    stored: Some(Arc::clone(stored)),
                };
                self.note(&change, queue);
            }
        }
        let now = Instant::now();
        self.reconciler.first_keys().into_iter().for_each(|key| queue.add_soon(key, now));
        Ok(before)
    }

    fn note(&self, change: &FeedEntry, queue: &mut Queue<String>) {
        let now = Instant::now();
        self.reconciler.note(change).into_iter().for_each(|key| queue.add_soon(key, now));
    }

    async fn reconcile(&self, key: &String) -> Result<Progress, Status> {
        match self.reconciler.reconcile(key).await {
            // It is gone, or what it depends on: the change that says so follows.
            Err(status) if status.code == 404 => Ok(Progress::Done),
            outcome => outcome,
        }
    }
}
