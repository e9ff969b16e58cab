//! The loop of every controller: it reads the changes of all collections, and handles the keys that they concern.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::time::{Instant, sleep, sleep_until};

use super::queue::{InNamespace, Progress, Queue};
use crate::meta::Status;
use crate::registry::Registry;
use crate::store::{ChangeEvent, Collection, Moment, Storage};

/// How long a controller waits before it restarts.
const RESTART_DELAY: Duration = Duration::from_millis(500);

/// What names the things that a controller looks at.
pub(super) trait Key: InNamespace + Clone + Ord + fmt::Debug + Send + Sync {}

impl<K: InNamespace + Clone + Ord + fmt::Debug + Send + Sync> Key for K {}

/// What a controller acts on, and how.
pub(super) trait Controller: Send + Sync {
    /// Identifies what it handles.
    type Key: Key;

    /// How many keys are handled concurrently.
    const AT_ONCE: usize;

    /// What it does, for the log.
    const TASK: &str;

    /// Queues everything as it is stored, and returns the moment after which changes must be read.
    fn begin(&self, queue: &mut Queue<Self::Key>) -> impl Future<Output = Result<Moment, Status>> + Send;

    /// Queues what a change concerns. It gets every change, in order.
    fn note(&self, change: &ChangeEvent, queue: &mut Queue<Self::Key>);

    /// Does what is necessary for a key, based on what is stored now. It may be repeated, and be cancelled at any
    /// point.
    fn reconcile(&self, key: &Self::Key) -> impl Future<Output = Result<Progress, Status>> + Send;
}

/// A controller behind a pointer: the loop is compiled once for each type of key, and not for each controller.
pub(super) trait DynController<K>: Send + Sync {
    /// [`Controller::AT_ONCE`].
    fn at_once(&self) -> usize;
    /// [`Controller::TASK`].
    fn task(&self) -> &'static str;
    /// [`Controller::begin`].
    fn begin<'c>(&'c self, queue: &'c mut Queue<K>) -> BoxFuture<'c, Result<Moment, Status>>;
    /// [`Controller::note`].
    fn note(&self, change: &ChangeEvent, queue: &mut Queue<K>);
    /// [`Controller::reconcile`].
    fn reconcile<'c>(&'c self, key: &'c K) -> BoxFuture<'c, Result<Progress, Status>>;
}

impl<C: Controller> DynController<C::Key> for C {
    fn at_once(&self) -> usize {
        C::AT_ONCE
    }

    fn task(&self) -> &'static str {
        C::TASK
    }

    fn begin<'c>(&'c self, queue: &'c mut Queue<C::Key>) -> BoxFuture<'c, Result<Moment, Status>> {
        Controller::begin(self, queue).boxed()
    }

    fn note(&self, change: &ChangeEvent, queue: &mut Queue<C::Key>) {
        Controller::note(self, change, queue);
    }

    fn reconcile<'c>(&'c self, key: &'c C::Key) -> BoxFuture<'c, Result<Progress, Status>> {
        Controller::reconcile(self, key).boxed()
    }
}

/// How long a controller that panicked waits before it is started again; twice as long after each further panic, up to
/// a minute.
const PANIC_PAUSE: Duration = Duration::from_secs(1);
const PANIC_PAUSE_MAX: Duration = Duration::from_secs(60);

/// Keeps a controller running: after a panic it is restarted, after a pause.
///
/// The object that caused the panic is still stored, so the pauses grow. The panic itself was logged where it occurred.
pub(super) async fn keep_running<F: Future<Output = ()>>(name: &str, make: impl Fn() -> F) {
    let mut pause = PANIC_PAUSE;
    loop {
        let running = AssertUnwindSafe(make()).catch_unwind();
        if running.await.is_ok() {
            return;
        }
        tracing::error!(controller = name, pause_s = pause.as_secs(), "a controller panicked and is started again");
        sleep(pause).await;
        pause = (pause * 2).min(PANIC_PAUSE_MAX);
    }
}

/// Runs a controller; if changes were missed, it restarts from what is stored.
pub(super) async fn run<K: Key>(storage: Storage, controller: impl DynController<K>) {
    run_dyn(storage, &controller).await;
}

async fn run_dyn<K: Key>(storage: Storage, controller: &dyn DynController<K>) {
    loop {
        if let Err(status) = follow(&storage, controller).await {
            let task = controller.task();
            tracing::warn!(message = status.message, task, "a controller can't begin, it will try again");
        }
        sleep(RESTART_DELAY).await;
    }
}

/// Runs a controller until changes are missed.
async fn follow<K: Key>(storage: &Storage, controller: &dyn DynController<K>) -> Result<(), Status> {
    let mut queue = Queue::default();
    let mut feed = storage.feed(&controller.begin(&mut queue).await?);
    let mut under_way = FuturesUnordered::new();
    let clock = storage.clock();
    let mut moves = clock.moves();
    let at_once = controller.at_once();
    loop {
        while under_way.len() < at_once
            && let Some(key) = queue.take(Instant::now())
        {
            under_way.push(try_reconcile(controller, key));
        }
        let due = queue.next_due().filter(|_| under_way.len() < at_once);
        tokio::select! {
            changes = feed.next() => match changes {
                Some(changes) => changes.iter().for_each(|change| controller.note(change, &mut queue)),
                None => return Ok(()),
            },
            Some((key, progress)) = under_way.next() => {
                // If the clock is frozen, waiting for it is pointless.
                let waits = matches!(progress, Progress::After(_)) && clock.is_frozen();
                queue.put_back(key, if waits { Progress::Waits } else { progress }, Instant::now());
            }
            () = moves.next() => queue.hasten(Instant::now()),
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {}
        }
    }
}

/// [`Controller::reconcile`], which logs failures. A panic over one object does not affect the others.
async fn try_reconcile<K: Key>(controller: &dyn DynController<K>, key: K) -> (K, Progress) {
    // Created inside, so that a panic before the first poll is caught as well.
    let reconciled = AssertUnwindSafe(async { controller.reconcile(&key).await }).catch_unwind().await;
    let progress = match reconciled.unwrap_or_else(|_| Err(Status::internal_error("it panicked"))) {
        Ok(progress) => progress,
        // Another writer was faster.
        Err(status) if status.code == 409 => Progress::Failed,
        Err(status) => {
            // Of what has to wait for memory, there may be very many.
            if status.code != 429 || is_to_be_told() {
                let task = controller.task();
                tracing::warn!(message = status.message, ?key, "{task} failed, it will be tried again");
            }
            Progress::Failed
        }
    };
    (key, progress)
}

/// How often it is logged at most that a controller has to wait.
const TOLD_EVERY: Duration = Duration::from_secs(10);

/// Whether it is to be logged now that a controller has to wait.
fn is_to_be_told() -> bool {
    static TOLD: Mutex<Option<Instant>> = Mutex::new(None);
    let (mut told, now) = (TOLD.lock().unwrap_or_else(PoisonError::into_inner), Instant::now());
    let is_due = told.is_none_or(|told| now.duration_since(told) > TOLD_EVERY);
    if is_due {
        *told = Some(now);
    }
    is_due
}

/// Queues what each object of a collection concerns, by its key; returns the moment after which changes must be read.
pub(super) async fn queue_all(
    registry: &Registry,
    collection: &Collection,
    queue: &mut Queue<String>,
    about: impl Fn(&str) -> String,
) -> Result<Moment, Status> {
    // Taken before the state is read: changes in between are then seen twice rather than never.
    let before = registry.storage.now();
    let (mut pages, now) = (registry.storage.pages(collection, ""), Instant::now());
    let unreadable = |_| Status::internal_error("what is stored can't be read");
    while let Some(page) = pages.next().await.map_err(unreadable)? {
        page.objects().for_each(|stored| queue.add(about(&stored.key), now));
    }
    Ok(before)
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Waker};

    use super::*;
    use crate::registry::fixture;

    /// Handles keys while it holds much memory.
    struct Large(Storage);

    impl Controller for Large {
        type Key = String;
        const AT_ONCE: usize = 8;
        const TASK: &str = "looking at large things";

        async fn begin(&self, _: &mut Queue<String>) -> Result<Moment, Status> {
            Ok(self.0.now())
        }

        fn note(&self, _: &ChangeEvent, _: &mut Queue<String>) {}

        async fn reconcile(&self, _: &String) -> Result<Progress, Status> {
            let held = black_box([0_u8; 100_000]);
            tokio::task::yield_now().await;
            Ok(if black_box(held)[0] == 0 { Progress::Done } else { Progress::Failed })
        }
    }

    /// Panics at one of its keys, and at its first start.
    #[derive(Clone)]
    struct Broken {
        storage: Storage,
        begun: Arc<AtomicUsize>,
        seen: Arc<AtomicUsize>,
    }

    impl Controller for Broken {
        type Key = &'static str;
        const AT_ONCE: usize = 1;
        const TASK: &str = "looking at what breaks";

        async fn begin(&self, queue: &mut Queue<&'static str>) -> Result<Moment, Status> {
            let is_first = self.begun.fetch_add(1, Ordering::Relaxed) == 0;
            assert!(!is_first, "the first beginning fails in this test");
            ["breaks", "holds"].iter().for_each(|key| queue.add(key, Instant::now()));
            Ok(self.storage.now())
        }

        fn note(&self, _: &ChangeEvent, _: &mut Queue<&'static str>) {}

        async fn reconcile(&self, key: &&'static str) -> Result<Progress, Status> {
            assert_ne!(*key, "breaks", "this key breaks in this test");
            self.seen.fetch_add(1, Ordering::Relaxed);
            Ok(Progress::Done)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_panics_begins_anew_and_keeps_nothing_else_from_being_done() {
        let storage = fixture::registry().await.storage.clone();
        let broken = Broken { storage: storage.clone(), begun: Arc::default(), seen: Arc::default() };
        let running = keep_running("broken", || run(storage.clone(), broken.clone()));
        let seen = async {
            while broken.seen.load(Ordering::Relaxed) == 0 {
                sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            () = running => unreachable!("it never ends"),
            () = seen => {}
        }
        assert_eq!(broken.begun.load(Ordering::Relaxed), 2);
    }

    #[tokio::test]
    async fn a_controller_at_rest_keeps_no_room_for_its_work() {
        let storage = fixture::registry().await.storage.clone();
        let mut running = Box::pin(run(storage.clone(), Large(storage)));
        let counted = allocation_counter::measure(|| {
            _ = running.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        });
        assert!(counted.bytes_current < 50_000, "{} bytes", counted.bytes_current);
    }
}
