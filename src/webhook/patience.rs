//! Resources that a request releases while it waits for a webhook or for its turn.
//!
//! A request may hold a resource that others need: a place among the requests in flight. The code
//! that runs the request defines how it is released; the code that calls a webhook releases it
//! first, and knows nothing else about it.
//!
//! The resource is task-local instead of an argument: it would pass through every step of the
//! registry, of admission and of conversion, none of which decides anything by it, and a task that
//! holds nothing works as well.

use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;

tokio::task_local! {
    static HELD: Arc<dyn Releasable>;
}

/// The message for a request that finds too many others waiting for webhooks.
pub const CROWDED: &str = "too many requests wait for webhooks, please try again later";

/// A resource that a request holds.
#[async_trait]
pub trait Releasable: Send + Sync {
    /// Releases the resource until the end of the request. Returns false if too many are already
    /// waiting for webhooks: then no webhook may be called.
    async fn release(&self) -> bool;

    /// Makes room for short requests, as this one will take long.
    fn make_room(&self);
}

/// Runs a request that holds `held`.
pub fn holding<F: Future>(held: Arc<dyn Releasable>, request: F) -> impl Future<Output = F::Output> {
    HELD.scope(held, request)
}

/// Releases the resource of the current request; returns false if the request may not wait for a
/// webhook.
pub async fn release() -> bool {
    match HELD.try_with(Arc::clone) {
        Ok(held) => held.release().await,
        Err(_) => true,
    }
}

/// Makes room for short requests, at the expense of the current one.
pub fn make_room() {
    _ = HELD.try_with(|held| held.make_room());
}
