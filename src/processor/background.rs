//! Turns of the work that the server does by itself, such as its controllers.
//!
//! The controllers of all control planes run on the threads that serve requests, and compute for milliseconds at a
//! time. So few of them work at once, in the order in which they asked, however many control planes there are: a
//! request finds a processor as if there was one control plane.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

use super::background;

/// How many work at once at least: one may hold its turn while it waits for a service.
const AT_ONCE_MIN: usize = 2;

/// The turns, shared by all clones.
#[derive(Clone)]
pub struct BackgroundTurns(Arc<Semaphore>);

type WaitingPermit = Pin<Box<dyn Future<Output = Result<OwnedSemaphorePermit, AcquireError>> + Send>>;

impl Default for BackgroundTurns {
    /// As many as there are processors.
    fn default() -> Self {
        BackgroundTurns::of(std::thread::available_parallelism().map_or(1, usize::from))
    }
}

impl BackgroundTurns {
    fn of(processors: usize) -> Self {
        BackgroundTurns(Arc::new(Semaphore::new(processors.max(AT_ONCE_MIN))))
    }

    /// Runs [`background()`] work, which has a turn whenever it is polled.
    pub fn run<F: Future>(&self, work: F) -> impl Future<Output = F::Output> + use<F> {
        let turns = Arc::clone(&self.0);
        let mut work = Box::pin(background(work));
        let mut waiting = None;
        poll_fn(move |context| match poll_turn(&turns, &mut waiting, context) {
            Poll::Ready(_turn) => work.as_mut().poll(context),
            Poll::Pending => Poll::Pending,
        })
    }
}

/// The next turn; `None` if there are none any more, which does not happen.
fn poll_turn(
    turns: &Arc<Semaphore>,
    waiting: &mut Option<WaitingPermit>,
    context: &mut Context<'_>,
) -> Poll<Option<OwnedSemaphorePermit>> {
    if waiting.is_none()
        && let Ok(turn) = Arc::clone(turns).try_acquire_owned()
    {
        return Poll::Ready(Some(turn));
    }
    let first = waiting.get_or_insert_with(|| Box::pin(Arc::clone(turns).acquire_owned()));
    let turn = std::task::ready!(first.as_mut().poll(context));
    *waiting = None;
    Poll::Ready(turn.ok())
}

impl fmt::Debug for BackgroundTurns {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("BackgroundTurns").field(&self.0.available_permits()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::task::{JoinSet, yield_now};

    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn few_work_at_once_and_all_get_to_their_end() {
        let turns = BackgroundTurns::of(1);
        let (at_work, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let mut running = JoinSet::new();
        for _ in 0..50 {
            let (at_work, most) = (Arc::clone(&at_work), Arc::clone(&most));
            running.spawn(turns.run(async move {
                for _ in 0..20 {
                    most.fetch_max(at_work.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    std::thread::yield_now();
                    at_work.fetch_sub(1, Ordering::SeqCst);
                    yield_now().await;
                }
            }));
        }
        while let Some(ended) = running.join_next().await {
            ended.expect("nothing panics");
        }
        let most = most.load(Ordering::SeqCst);
        assert!((1..=AT_ONCE_MIN).contains(&most), "{most} at once");
        assert_eq!(turns.0.available_permits(), AT_ONCE_MIN);
    }

    #[tokio::test]
    async fn what_waits_for_something_else_holds_no_turn() {
        let turns = BackgroundTurns::of(1);
        let mut waiting: Vec<_> = (0..10).map(|_| Box::pin(turns.run(std::future::pending::<()>()))).collect();
        for work in &mut waiting {
            assert!(futures_util::poll!(work.as_mut()).is_pending());
        }
        assert_eq!(turns.run(async { 1 }).await, 1);
    }
}
