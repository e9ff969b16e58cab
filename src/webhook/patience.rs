//! Resources that a request releases while it waits for a webhook or for its turn.
//!
//! A request may hold what others need: a place among those that are at work. The code that runs the request says
//! how it is given up; the code that calls a webhook has it given up first, and knows no more of it.
//!
//! What is held goes with the task and is not an argument: it would pass through every step of the registry, of admission and
//! of conversion, of which none decides anything by it, and a task that holds nothing works as well.

use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;

tokio::task_local! {
    static HELD: Arc<dyn Releasable>;
}

/// The message for a request that finds too many others waiting.
pub const CROWDED: &str = "too many requests wait for webhooks, please try again later";

/// A resource that a request holds.
#[async_trait]
pub trait Releasable: Send + Sync {
    /// Releases it, until the end of the request. False if too many are already waiting for webhooks: then no webhook
    /// is called.
    async fn release(&self) -> bool;

    /// Gives it to requests that are short, as this one will take long.
    fn make_room(&self);
}

/// Runs a request that holds `held`.
pub fn holding<F: Future>(held: Arc<dyn Releasable>, request: F) -> impl Future<Output = F::Output> {
    HELD.scope(held, request)
}

/// Gives up what the request that runs holds; false where it may not go on to wait.
pub async fn release() -> bool {
    match HELD.try_with(Arc::clone) {
        Ok(held) => held.release().await,
        Err(_) => true,
    }
}

/// Gives what the request that runs holds to those that are short.
pub fn make_room() {
    _ = HELD.try_with(|held| held.make_room());
}
