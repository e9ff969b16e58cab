//! How many requests may be in progress at once, and for how long.
//!
//! A request that finds no permit waits for a moment, as most requests take about a millisecond; then it is refused
//! with 429. While a request waits for a webhook, it holds a permit from a second pool of the same size, so that a
//! webhook that hangs blocks only the requests that wait for webhooks.
//! DIFFERS: kube-apiserver never refuses members of `system:masters`. Here every user of the kubeconfig is a member, so
//! the limits apply to members, too; the stand-in for kube-apiserver lets them wait for a minute.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::metrics::Metrics;
use crate::processor::ExpectedWork;
use crate::webhook::patience::Releasable;

/// The message for clients that find no permit.
pub(super) const TOO_MANY_REQUESTS: &str = "Too many requests, please try again later.";
/// How long a request waits for a permit.
const PERMIT_WAIT: Duration = Duration::from_secs(1);
/// How long a request waits if the users belong to `system:masters`, as under envtest.
const MASTERS_PERMIT_WAIT: Duration = Duration::from_secs(60);

/// How many long requests may be in progress or waiting for their turns.
const LONG_MAX: usize = 1024;

/// How much a server accepts at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Requests that change nothing, except watches; 0 for no limit.
    pub read_only: usize,
    /// Requests that may change something; 0 for no limit.
    pub mutating: usize,
    /// How long a request may take. A watch is answered at once and then goes on.
    pub request_timeout: Duration,
    /// How long a request waits for a permit before it is refused.
    pub permit_wait: Duration,
    /// How long the answer of a write comes after its events, where somebody watches what it has changed.
    pub answer_delay: Duration,
}

impl Default for Limits {
    /// The defaults of kube-apiserver.
    fn default() -> Self {
        Limits {
            read_only: 400,
            mutating: 200,
            request_timeout: Duration::from_secs(60),
            permit_wait: PERMIT_WAIT,
            answer_delay: Duration::ZERO,
        }
    }
}

impl Limits {
    /// The same for a server whose users all belong to `system:masters`; kube-apiserver does not refuse those.
    pub fn of_masters(self) -> Self {
        Limits { permit_wait: MASTERS_PERMIT_WAIT, ..self }
    }
}

/// What a request does, as far as the limits care.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestKind {
    ReadOnly,
    Mutating,
    /// A watch or a connection: it holds no permit.
    LongRunning,
}

/// All permits.
pub(super) struct Permits {
    read_only: Row,
    mutating: Row,
    /// For requests that will take long, so that they don't block others: they wait for their turns.
    long: Row,
    /// Requests that change nothing, and the others.
    in_flight: [Gauge; 2],
    wait: Duration,
}

struct Row {
    /// `None` for no limit.
    free: Option<Arc<Semaphore>>,
    /// For requests that wait for a webhook.
    aside: Arc<Semaphore>,
}

/// A permit that is held until this is dropped.
pub(super) struct Permit {
    permit: Mutex<Option<OwnedSemaphorePermit>>,
    /// Set if the number of permits is not limited, or if this permit is from `aside`.
    may_wait: AtomicBool,
    aside: Arc<Semaphore>,
    /// The permits for long requests; `None` if this is one of them.
    long: Option<Arc<Semaphore>>,
    in_flight: Gauge,
}

#[async_trait]
impl Releasable for Permit {
    async fn release(&self) -> bool {
        if self.may_wait.load(Ordering::Relaxed) {
            return true;
        }
        let Ok(Ok(aside)) = timeout(PERMIT_WAIT, Arc::clone(&self.aside).acquire_owned()).await else { return false };
        *self.permit.lock().unwrap_or_else(PoisonError::into_inner) = Some(aside);
        self.may_wait.store(true, Ordering::Relaxed);
        true
    }

    fn make_room(&self) {
        let mut permit = self.permit.lock().unwrap_or_else(PoisonError::into_inner);
        // If no such permit is left, the request keeps the one that it has.
        let long = self.long.as_ref().and_then(|long| Arc::clone(long).try_acquire_owned().ok());
        if permit.is_some() && !self.may_wait.load(Ordering::Relaxed) && long.is_some() {
            *permit = long;
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.in_flight.dec();
    }
}

impl Permits {
    pub fn new(limits: &Limits, metrics: &Metrics) -> Self {
        let row = |permits: usize| Row {
            free: (permits > 0).then(|| Arc::new(Semaphore::new(permits.min(Semaphore::MAX_PERMITS)))),
            aside: Arc::new(Semaphore::new(permits.min(Semaphore::MAX_PERMITS))),
        };
        Permits {
            read_only: row(limits.read_only),
            mutating: row(limits.mutating),
            long: row(LONG_MAX),
            in_flight: ["readOnly", "mutating"].map(|kind| metrics.in_flight(kind)),
            wait: limits.permit_wait,
        }
    }

    /// A permit for a request; `None` if none becomes free in time.
    pub async fn take(&self, kind: RequestKind, expected: ExpectedWork) -> Option<Permit> {
        let [reading, changing] = &self.in_flight;
        let (row, in_flight) = match kind {
            RequestKind::ReadOnly => (&self.read_only, reading),
            RequestKind::Mutating | RequestKind::LongRunning => (&self.mutating, changing),
        };
        let row = if expected == ExpectedWork::Long { &self.long } else { row };
        let permit = match &row.free {
            Some(free) => Some(timeout(self.wait, Arc::clone(free).acquire_owned()).await.ok()?.ok()?),
            None => None,
        };
        in_flight.inc();
        Some(Permit {
            may_wait: AtomicBool::new(permit.is_none()),
            permit: Mutex::new(permit),
            aside: Arc::clone(&row.aside),
            long: self.long.free.clone().filter(|_| expected == ExpectedWork::Short),
            in_flight: in_flight.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meta::minor::Minor;

    #[tokio::test(start_paused = true)]
    async fn a_request_that_finds_no_place_in_time_is_refused() {
        let limits = Limits { read_only: 1, mutating: 0, ..Limits::default() };
        let permits = Permits::new(&limits, &Metrics::new(Minor::NEWEST));
        let taken = permits.take(RequestKind::ReadOnly, ExpectedWork::Short).await;
        assert!(taken.is_some());
        assert!(permits.take(RequestKind::ReadOnly, ExpectedWork::Short).await.is_none());
        assert!(permits.take(RequestKind::Mutating, ExpectedWork::Short).await.is_some(), "it has permits of its own");
        drop(taken);
        assert!(permits.take(RequestKind::ReadOnly, ExpectedWork::Short).await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn masters_wait_for_a_place() {
        let limits = Limits { mutating: 1, ..Limits::default() }.of_masters();
        let permits = Permits::new(&limits, &Metrics::new(Minor::NEWEST));
        let taken = permits.take(RequestKind::Mutating, ExpectedWork::Short).await;
        let next = permits.take(RequestKind::Mutating, ExpectedWork::Short);
        let (next, ()) = tokio::join!(next, async {
            tokio::time::sleep(Duration::from_secs(10)).await;
            drop(taken);
        });
        assert!(next.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn what_turns_out_to_be_long_makes_room_for_what_is_short() {
        let limits = Limits { mutating: 1, ..Limits::default() };
        let permits = Permits::new(&limits, &Metrics::new(Minor::NEWEST));
        let first = permits.take(RequestKind::Mutating, ExpectedWork::Short).await.expect("there is one");
        assert!(permits.take(RequestKind::Mutating, ExpectedWork::Short).await.is_none());
        first.make_room();
        first.make_room();
        let free = permits.long.free.as_ref().expect("they are counted");
        assert_eq!(free.available_permits(), LONG_MAX - 1);
        assert!(permits.take(RequestKind::Mutating, ExpectedWork::Short).await.is_some());
        drop(first);
        assert_eq!(free.available_permits(), LONG_MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_waits_for_a_webhook_makes_room_as_long_as_there_is_some_aside() {
        let limits = Limits { read_only: 1, ..Limits::default() };
        let permits = Permits::new(&limits, &Metrics::new(Minor::NEWEST));
        let first = permits.take(RequestKind::ReadOnly, ExpectedWork::Short).await.expect("there is one");
        assert!(first.release().await && first.release().await, "it is asked before each call");
        let second = permits.take(RequestKind::ReadOnly, ExpectedWork::Short).await.expect("there is one again");
        assert!(!second.release().await);
        drop(first);
        assert!(second.release().await);
    }
}
