//! The base of the workload controllers: each defines which keys a change concerns, and how a key is reconciled.
//!
//! They run in the loop of all controllers ([`super::changes`]). A key is `namespace/name`, or the name in cluster
//! scope. Changes are collected for a moment, so that a burst is handled once. A controller that is switched off needs
//! no task and no memory.

use std::future::ready;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::time::Instant;

use super::changes::{self, DynController};
use super::decoded;
use super::queue::{Progress, Queue, namespace_of};
use crate::meta::Status;
use crate::registry::Registry;
use crate::store::{ChangeEvent, Collection, Moment};

/// A controller of workloads.
pub(super) trait Reconciler: Send + Sync {
    /// What it does, for the log.
    const TASK: &str;

    /// How many objects are handled concurrently.
    const AT_ONCE: usize = 32;

    /// The collections that it reads at the start: their objects are noted as if they had just been created, in this
    /// order.
    fn collections(&self) -> Vec<Collection>;

    /// Further collections, looked up at each start: those of kinds that are defined while it runs.
    fn found_collections(&self) -> impl Future<Output = Vec<Collection>> + Send {
        ready(Vec::new())
    }

    /// The keys that are always handled at the start.
    fn first_keys(&self) -> Vec<String> {
        Vec::new()
    }

    /// The keys that a change concerns. It gets every change once, in order, also at the start.
    fn note(&self, change: &ChangeEvent) -> Vec<String>;

    /// Forgets what it has noted, before everything is noted again.
    fn forget(&self) {}

    /// Does what is necessary for a key, based on what is stored now. It may be repeated, and be cancelled at any
    /// point.
    fn reconcile(&self, key: &str) -> impl Future<Output = Result<Progress, Status>> + Send;
}

/// A reconciler behind a pointer: the code that runs it is compiled once.
trait DynReconciler: Send + Sync {
    fn at_once(&self) -> usize;
    fn task(&self) -> &'static str;
    fn collections(&self) -> Vec<Collection>;
    fn found_collections(&self) -> BoxFuture<'_, Vec<Collection>>;
    fn first_keys(&self) -> Vec<String>;
    fn note(&self, change: &ChangeEvent) -> Vec<String>;
    fn forget(&self);
    fn reconcile<'r>(&'r self, key: &'r str) -> BoxFuture<'r, Result<Progress, Status>>;
}

impl<R: Reconciler> DynReconciler for R {
    fn at_once(&self) -> usize {
        R::AT_ONCE
    }

    fn task(&self) -> &'static str {
        R::TASK
    }

    fn collections(&self) -> Vec<Collection> {
        Reconciler::collections(self)
    }

    fn found_collections(&self) -> BoxFuture<'_, Vec<Collection>> {
        Reconciler::found_collections(self).boxed()
    }

    fn first_keys(&self) -> Vec<String> {
        Reconciler::first_keys(self)
    }

    fn note(&self, change: &ChangeEvent) -> Vec<String> {
        Reconciler::note(self, change)
    }

    fn forget(&self) {
        Reconciler::forget(self);
    }

    fn reconcile<'r>(&'r self, key: &'r str) -> BoxFuture<'r, Result<Progress, Status>> {
        Reconciler::reconcile(self, key).boxed()
    }
}

/// Runs one until it is dropped.
pub(super) fn run<R: Reconciler + 'static>(registry: Arc<Registry>, reconciler: R) -> impl Future<Output = ()> + Send {
    run_dyn(registry, Box::new(reconciler))
}

async fn run_dyn(registry: Arc<Registry>, reconciler: Box<dyn DynReconciler>) {
    let (storage, turns) = (registry.storage.clone(), registry.background.clone());
    turns.run(changes::run(storage, Loop { registry, reconciler })).await;
}

struct Loop {
    registry: Arc<Registry>,
    reconciler: Box<dyn DynReconciler>,
}

impl Loop {
    async fn begin(&self, queue: &mut Queue<String>) -> Result<Moment, Status> {
        // Taken before the state is read: changes in between are then seen twice rather than never.
        let before = self.registry.storage.now();
        self.reconciler.forget();
        let mut collections = self.reconciler.collections();
        collections.extend(self.reconciler.found_collections().await);
        for collection in collections {
            let mut pages = self.registry.storage.pages(&collection, "");
            let unreadable = |_| Status::internal_error("what is stored can't be read");
            while let Some(page) = pages.next().await.map_err(unreadable)? {
                for stored in page.objects() {
                    let change = ChangeEvent {
                        collection: collection.clone(),
                        key: Arc::clone(&stored.key),
                        uid: Arc::clone(&stored.uid),
                        revision: stored.revision,
                        stored: Some(Arc::clone(stored)),
                    };
                    self.note(&change, queue);
                }
            }
        }
        let now = Instant::now();
        self.reconciler.first_keys().into_iter().for_each(|key| queue.add_soon(key, now));
        Ok(before)
    }

    async fn reconcile(&self, key: &str) -> Result<Progress, Status> {
        let reconciled = self.reconciler.reconcile(key);
        match decoded::counted(&self.registry.memory, namespace_of(key), reconciled).await {
            // The object, or one that it depends on, is gone: a change will follow that shows this.
            Err(status) if status.code == 404 => Ok(Progress::Done),
            outcome => outcome,
        }
    }
}

impl DynController<String> for Loop {
    fn at_once(&self) -> usize {
        self.reconciler.at_once()
    }

    fn task(&self) -> &'static str {
        self.reconciler.task()
    }

    fn begin<'c>(&'c self, queue: &'c mut Queue<String>) -> BoxFuture<'c, Result<Moment, Status>> {
        self.begin(queue).boxed()
    }

    fn note(&self, change: &ChangeEvent, queue: &mut Queue<String>) {
        let now = Instant::now();
        self.reconciler.note(change).into_iter().for_each(|key| queue.add_soon(key, now));
    }

    fn reconcile<'c>(&'c self, key: &'c String) -> BoxFuture<'c, Result<Progress, Status>> {
        self.reconcile(key).boxed()
    }
}
