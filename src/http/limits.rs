//! How many requests are at work at once, and for how long.
//!
//! A request that finds no place waits a moment, as most are done in a millisecond; then it is refused with 429.
//! DIFFERS: kube-apiserver never refuses members of `system:masters`. Here everybody whom the kubeconfig was made for is
//! one, so the limits are for them, too.

use std::sync::Arc;
use std::time::Duration;

use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::metrics::Metrics;

/// How long a request waits for a place.
const PLACE_WAIT: Duration = Duration::from_secs(1);

/// What a server takes on at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Requests that change nothing, watches apart; 0 for any number.
    pub read_only: usize,
    /// Requests that may change something; 0 for any number.
    pub mutating: usize,
    /// How long a request may take. A watch is answered at once and then goes on.
    pub request_timeout: Duration,
}

impl Default for Limits {
    /// kube-apiserver's.
    fn default() -> Self {
        Limits { read_only: 400, mutating: 200, request_timeout: Duration::from_secs(60) }
    }
}

/// What a request does, as far as the limits care.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    ReadOnly,
    Mutating,
    /// A watch: it holds no place.
    LongRunning,
}

/// The places there are.
pub(super) struct Places {
    read_only: Row,
    mutating: Row,
}

struct Row {
    /// `None` for any number.
    free: Option<Arc<Semaphore>>,
    at_work: Gauge,
}

/// A place that is taken until this is dropped.
pub(super) struct Place {
    _permit: Option<OwnedSemaphorePermit>,
    at_work: Gauge,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.at_work.dec();
    }
}

impl Places {
    pub fn new(limits: &Limits, metrics: &Metrics) -> Self {
        let row = |places: usize, kind| Row {
            free: (places > 0).then(|| Arc::new(Semaphore::new(places.min(Semaphore::MAX_PERMITS)))),
            at_work: metrics.in_flight(kind),
        };
        Places { read_only: row(limits.read_only, "readOnly"), mutating: row(limits.mutating, "mutating") }
    }

    /// A place for a request; `None` where there is none for it.
    pub async fn take(&self, kind: Kind) -> Option<Place> {
        let row = match kind {
            Kind::ReadOnly => &self.read_only,
            Kind::Mutating | Kind::LongRunning => &self.mutating,
        };
        let permit = match &row.free {
            Some(free) => Some(timeout(PLACE_WAIT, Arc::clone(free).acquire_owned()).await.ok()?.ok()?),
            None => None,
        };
        row.at_work.inc();
        Some(Place { _permit: permit, at_work: row.at_work.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_finds_no_place_in_time_is_refused() {
        let limits = Limits { read_only: 1, mutating: 0, ..Limits::default() };
        let places = Places::new(&limits, &Metrics::new());
        let taken = places.take(Kind::ReadOnly).await;
        assert!(taken.is_some());
        assert!(places.take(Kind::ReadOnly).await.is_none());
        assert!(places.take(Kind::Mutating).await.is_some(), "it has places of its own");
        drop(taken);
        assert!(places.take(Kind::ReadOnly).await.is_some());
    }
}
