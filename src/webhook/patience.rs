//! Resources that a request releases while it waits: for a webhook, its turn, its body, a revision.
//!
//! A request may hold a resource that others need: a place among the requests in flight. The code
//! that runs the request defines how it is released; the code that calls a webhook releases it
//! first, and knows nothing else about it.
//!
//! The resource is task-local instead of an argument: it would pass through every step of the
//! registry, of admission and of conversion, none of which decides anything by it, and a task that
//! holds nothing works as well.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use async_trait::async_trait;

use crate::meta::Status;

tokio::task_local! {
    static HELD: Arc<dyn Releasable>;
}

/// The message for a request that finds too many others waiting for webhooks.
pub const CROWDED: &str = "too many requests wait for webhooks, please try again later";
/// The message for a request that finds too many others in progress.
pub const TOO_MANY_REQUESTS: &str = "Too many requests, please try again later.";
/// How many seconds such a client is told to wait.
const RETRY_AFTER_SECONDS: u32 = 1;

/// A resource that was lent was not given back in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotGivenBack;

impl From<NotGivenBack> for Status {
    fn from(_: NotGivenBack) -> Self {
        Status::too_many_requests(TOO_MANY_REQUESTS, RETRY_AFTER_SECONDS)
    }
}

/// A resource that a request holds.
#[async_trait]
pub trait Releasable: Send + Sync {
    /// Releases the resource until the end of the request. Returns false if too many are already
    /// waiting for webhooks: then no webhook may be called.
    async fn release(&self) -> bool;

    /// Makes room for short requests, as this one will take long.
    fn make_room(&self);

    /// Lends the resource to others until it is taken back.
    fn lend(&self) {}

    /// Takes the resource back. Returns false if it is not given back in time.
    async fn take_back(&self) -> bool {
        true
    }
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

/// Waits for something that is no work for the server, and lends the resource of the current request meanwhile. What
/// is there already is returned at once.
///
/// # Errors
///
/// The resource is not given back in time.
pub async fn lending<T>(awaited: impl Future<Output = T>) -> Result<T, NotGivenBack> {
    let mut awaited = pin!(awaited);
    let Ok(held) = HELD.try_with(Arc::clone) else { return Ok(awaited.await) };
    if let Poll::Ready(there) = poll_fn(|context| Poll::Ready(awaited.as_mut().poll(context))).await {
        return Ok(there);
    }
    held.lend();
    let there = awaited.await;
    if held.take_back().await { Ok(there) } else { Err(NotGivenBack) }
}
