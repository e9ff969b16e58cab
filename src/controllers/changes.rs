//! The loop of every controller: it takes in the changes of all collections, and looks at the keys that they are about.

use std::fmt;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::time::{Instant, sleep, sleep_until};

use super::queue::{Progress, Queue};
use crate::meta::Status;
use crate::store::{Entry, Moment, Storage};

/// How long a controller waits before it starts anew.
const ANEW_AFTER: Duration = Duration::from_millis(500);

/// What a controller acts on, and how.
pub(super) trait Controller: Sync {
    /// What it looks at, one after the other.
    type Key: Clone + Ord + fmt::Debug + Send + Sync;

    /// How many keys are looked at at once.
    const AT_ONCE: usize;

    /// What it does, for the log.
    const TASK: &str;

    /// Queues everything as it is stored, and returns the moment after which changes are to be taken in.
    fn begin(&self, queue: &mut Queue<Self::Key>) -> impl Future<Output = Result<Moment, Status>> + Send;

    /// Queues what a change is about. Every change is taken in, in order.
    fn note(&self, change: &Entry, queue: &mut Queue<Self::Key>);

    /// Does what is to be done for a key as it is stored now. It may be done again, and be given up at any point.
    fn see_to(&self, key: &Self::Key) -> impl Future<Output = Result<Progress, Status>> + Send;
}

/// Runs a controller; where changes were missed it starts anew from what is stored.
pub(super) async fn run<C: Controller>(storage: Storage, controller: C) {
    loop {
        if let Err(status) = follow(&storage, &controller).await {
            tracing::warn!(message = status.message, task = C::TASK, "a controller can't begin, it will try again");
        }
        sleep(ANEW_AFTER).await;
    }
}

/// Runs a controller until changes are missed.
async fn follow<C: Controller>(storage: &Storage, controller: &C) -> Result<(), Status> {
    let mut queue = Queue::default();
    let mut feed = storage.feed(&controller.begin(&mut queue).await?);
    let mut under_way = FuturesUnordered::new();
    let clock = storage.clock();
    let mut moves = clock.moves();
    loop {
        while under_way.len() < C::AT_ONCE
            && let Some(key) = queue.take(Instant::now())
        {
            under_way.push(try_see_to(controller, key));
        }
        let due = queue.next_due().filter(|_| under_way.len() < C::AT_ONCE);
        tokio::select! {
            changes = feed.next() => match changes {
                Some(changes) => changes.iter().for_each(|change| controller.note(change, &mut queue)),
                None => return Ok(()),
            },
            Some((key, progress)) = under_way.next() => {
                // Where no time passes, nothing comes of waiting for it.
                let waits = matches!(progress, Progress::After(_)) && clock.is_frozen();
                queue.put_back(key, if waits { Progress::Waits } else { progress }, Instant::now());
            }
            () = moves.next() => queue.hasten(Instant::now()),
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {}
        }
    }
}

/// [`Controller::see_to`], which says what failed.
async fn try_see_to<C: Controller>(controller: &C, key: C::Key) -> (C::Key, Progress) {
    let progress = match controller.see_to(&key).await {
        Ok(progress) => progress,
        // Somebody was faster.
        Err(status) if status.code == 409 => Progress::Failed,
        Err(status) => {
            tracing::warn!(message = status.message, ?key, "{} failed, it will be tried again", C::TASK);
            Progress::Failed
        }
    };
    (key, progress)
}
