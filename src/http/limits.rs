//! How many requests may be in progress at once, and for how long.
//!
//! A request that finds no place waits for a moment, as most requests take about a millisecond; then it is refused
//! with 429. One user has at most half of the places of each kind, and as many are left for others as any user has
//! ([`FairPool`]); so whatever some users send, others find a place. Members of `system:masters` need none, as in kube-apiserver.
//!
//! A request that waits for something else than the server has no place meanwhile. While its body arrives, or the
//! revision that it asks for, its place is lent, and it holds one of the places for idle requests; where none of those
//! is left, it keeps its own. While it waits for a webhook, it holds a place from a second pool of the same size, so
//! that a webhook that hangs blocks only the requests that wait for webhooks.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use prometheus_client::metrics::gauge::Gauge;
use tokio::time::Instant;

use super::metrics::Metrics;
use crate::memory::fair::{FairPool, FairUnits};
use crate::processor::ExpectedWork;
use crate::webhook::patience::{self, Releasable};

/// The message for clients that find no place.
pub(super) const TOO_MANY_REQUESTS: &str = patience::TOO_MANY_REQUESTS;
/// How long a request waits for a place.
const PLACE_WAIT: Duration = Duration::from_secs(1);
/// How long a request waits for a place under envtest, whose users are mostly members of `system:masters`.
const TESTS_PLACE_WAIT: Duration = Duration::from_secs(60);

/// How many long requests may be in progress or waiting for their turns.
const LONG_MAX: usize = 1024;
/// How many requests may wait for their bodies or for revisions without another place. As 64 KiB of a body are not
/// counted as memory, this bounds what all of them take.
const IDLE_MAX: usize = 512;

/// How much a server accepts at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Requests that change nothing, except watches; 0 for no limit.
    pub read_only: usize,
    /// Requests that may change something; 0 for no limit.
    pub mutating: usize,
    /// How long a request may take. A watch is answered at once and then goes on.
    pub request_timeout: Duration,
    /// How long a request waits for a place before it is refused.
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
            permit_wait: PLACE_WAIT,
            answer_delay: Duration::ZERO,
        }
    }
}

impl Limits {
    /// The same for a server whose users mostly belong to `system:masters`: the others hardly notice the limits either.
    pub fn of_masters(self) -> Self {
        Limits { permit_wait: TESTS_PLACE_WAIT, ..self }
    }
}

/// What a request does, as far as the limits care.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestKind {
    ReadOnly,
    Mutating,
    /// A watch or a connection: it needs no place.
    LongRunning,
}

/// All permits.
pub(super) struct Permits {
    /// `None` for no limit.
    read_only: Option<Row>,
    mutating: Option<Row>,
    /// For requests that will take long, so that they don't block others: they wait for their turns.
    long: Row,
    /// For requests that wait for their bodies or for revisions.
    idle: Arc<FairPool>,
    /// Requests that change nothing, and the others.
    in_flight: [Gauge; 2],
    wait: Duration,
}

/// The places for requests of one kind.
struct Row {
    places: Arc<FairPool>,
    /// For requests that wait for a webhook.
    aside: Arc<FairPool>,
}

/// The right to be in progress, until this is dropped.
pub(super) struct Permit {
    /// `None` if the request needs none.
    place: Option<Place>,
    in_flight: Gauge,
}

/// A request's place among those of all users.
struct Place {
    user: Box<str>,
    aside: Arc<FairPool>,
    /// The places for long requests; `None` if this is one of them.
    long: Option<Arc<FairPool>>,
    idle: Arc<FairPool>,
    wait: Duration,
    now: Mutex<PlaceNow>,
}

/// Where a request has its place at the moment.
struct PlaceNow {
    pool: Arc<FairPool>,
    /// A unit of `pool`, unless that is lent; `None` while it is taken back.
    unit: Option<FairUnits>,
    is_lent: bool,
    is_aside: bool,
}

impl Row {
    fn of(places: usize) -> Self {
        Row { places: Arc::new(FairPool::new(places)), aside: Arc::new(FairPool::new(places)) }
    }
}

impl Place {
    fn now(&self) -> MutexGuard<'_, PlaceNow> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn take_from(&self, pool: &FairPool, wait: Duration) -> Option<FairUnits> {
        pool.take(Some(&self.user), 1, Instant::now() + wait).await
    }
}

#[async_trait]
impl Releasable for Permit {
    async fn release(&self) -> bool {
        let Some(place) = self.place.as_ref().filter(|place| !place.now().is_aside) else { return true };
        let Some(unit) = place.take_from(&place.aside, PLACE_WAIT).await else { return false };
        *place.now() = PlaceNow { pool: Arc::clone(&place.aside), unit: Some(unit), is_lent: false, is_aside: true };
        true
    }

    fn make_room(&self) {
        let Some(place) = &self.place else { return };
        let mut now = place.now();
        let Some(long) = place.long.as_ref().filter(|long| !now.is_aside && !Arc::ptr_eq(long, &now.pool)) else {
            return;
        };
        // If no such place is left, the request keeps the one that it has.
        if let Some(unit) = long.try_take(Some(&place.user), 1) {
            *now = PlaceNow { pool: Arc::clone(long), unit: Some(unit), is_lent: false, is_aside: false };
        }
    }

    fn lend(&self) {
        let Some(place) = &self.place else { return };
        if let Some(unit) = place.idle.try_take(Some(&place.user), 1) {
            let mut now = place.now();
            now.unit = Some(unit);
            now.is_lent = true;
        }
    }

    async fn take_back(&self) -> bool {
        let Some(place) = self.place.as_ref().filter(|place| place.now().is_lent) else { return true };
        let pool = {
            let mut now = place.now();
            // The place for an idle request goes first: so nobody waits for a place while holding another one.
            now.unit = None;
            now.is_lent = false;
            Arc::clone(&now.pool)
        };
        let unit = place.take_from(&pool, place.wait).await;
        let is_back = unit.is_some();
        place.now().unit = unit;
        is_back
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.in_flight.dec();
    }
}

impl Permits {
    pub fn new(limits: &Limits, metrics: &Metrics) -> Self {
        let row = |places: usize| (places > 0).then(|| Row::of(places));
        Permits {
            read_only: row(limits.read_only),
            mutating: row(limits.mutating),
            long: Row::of(LONG_MAX),
            idle: Arc::new(FairPool::new(IDLE_MAX)),
            in_flight: ["readOnly", "mutating"].map(|kind| metrics.in_flight(kind)),
            wait: limits.permit_wait,
        }
    }

    /// A permit for a request of `user`, or of somebody who is not limited (`None`). `None` if no place becomes free in
    /// time.
    pub async fn take(&self, kind: RequestKind, expected: ExpectedWork, user: Option<&str>) -> Option<Permit> {
        let [reading, changing] = &self.in_flight;
        let (row, in_flight) = match kind {
            RequestKind::ReadOnly => (&self.read_only, reading),
            RequestKind::Mutating | RequestKind::LongRunning => (&self.mutating, changing),
        };
        let is_long = expected == ExpectedWork::Long;
        let row = if is_long { Some(&self.long) } else { row.as_ref() };
        let place = match (row, user) {
            (Some(row), Some(user)) => {
                let unit = row.places.take(Some(user), 1, Instant::now() + self.wait).await?;
                let pool = Arc::clone(&row.places);
                Some(Place {
                    user: user.into(),
                    aside: Arc::clone(&row.aside),
                    long: (!is_long).then(|| Arc::clone(&self.long.places)),
                    idle: Arc::clone(&self.idle),
                    wait: self.wait,
                    now: Mutex::new(PlaceNow { pool, unit: Some(unit), is_lent: false, is_aside: false }),
                })
            }
            _ => None,
        };
        in_flight.inc();
        Some(Permit { place, in_flight: in_flight.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meta::minor::Minor;

    const JANE: Option<&str> = Some("jane");
    const BOB: Option<&str> = Some("bob");

    fn permits(limits: Limits) -> Permits {
        Permits::new(&limits, &Metrics::new(Minor::NEWEST))
    }

    async fn read(permits: &Permits, user: Option<&str>) -> Option<Permit> {
        permits.take(RequestKind::ReadOnly, ExpectedWork::Short, user).await
    }

    async fn change(permits: &Permits, user: Option<&str>) -> Option<Permit> {
        permits.take(RequestKind::Mutating, ExpectedWork::Short, user).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_finds_no_place_in_time_is_refused() {
        let permits = permits(Limits { read_only: 1, mutating: 0, ..Limits::default() });
        let taken = read(&permits, JANE).await;
        assert!(taken.is_some());
        assert!(read(&permits, BOB).await.is_none());
        assert!(change(&permits, BOB).await.is_some(), "it has permits of its own");
        drop(taken);
        assert!(read(&permits, BOB).await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn one_user_has_half_of_the_places_and_members_of_masters_need_none() {
        let permits = permits(Limits { mutating: 4, ..Limits::default() });
        let _of_jane = [change(&permits, JANE).await.expect("it is free"), change(&permits, JANE).await.expect("too")];
        assert!(change(&permits, JANE).await.is_none());
        let _of_bob = change(&permits, BOB).await.expect("it is free");
        assert!(change(&permits, BOB).await.is_none(), "the last one is for others");
        let _of_joe = change(&permits, Some("joe")).await.expect("it is free");
        assert!(change(&permits, Some("ann")).await.is_none(), "there are no more than four");
        let mut of_masters = Vec::new();
        for _ in 0..10 {
            of_masters.push(change(&permits, None).await.expect("it needs no place"));
        }
        assert_eq!(permits.in_flight[1].get(), 14, "all are counted");
    }

    #[tokio::test(start_paused = true)]
    async fn requests_wait_longer_for_a_place_under_envtest() {
        let permits = permits(Limits { mutating: 1, ..Limits::default() }.of_masters());
        let taken = change(&permits, JANE).await;
        let next = change(&permits, BOB);
        let (next, ()) = tokio::join!(next, async {
            tokio::time::sleep(Duration::from_secs(10)).await;
            drop(taken);
        });
        assert!(next.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn what_turns_out_to_be_long_makes_room_for_what_is_short() {
        let permits = permits(Limits { mutating: 1, ..Limits::default() });
        let first = change(&permits, JANE).await.expect("there is one");
        assert!(change(&permits, BOB).await.is_none());
        first.make_room();
        first.make_room();
        assert_eq!(permits.long.places.free(), LONG_MAX - 1);
        assert!(change(&permits, BOB).await.is_some());
        first.lend();
        assert_eq!(permits.long.places.free(), LONG_MAX);
        assert!(first.take_back().await);
        assert_eq!(permits.long.places.free(), LONG_MAX - 1, "it goes back to where it was");
        drop(first);
        assert_eq!(permits.long.places.free(), LONG_MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_waits_for_a_webhook_makes_room_as_long_as_there_is_some_aside() {
        let permits = permits(Limits { read_only: 1, ..Limits::default() });
        let first = read(&permits, JANE).await.expect("there is one");
        assert!(first.release().await && first.release().await, "it is asked before each call");
        let second = read(&permits, BOB).await.expect("there is one again");
        assert!(!second.release().await);
        drop(first);
        assert!(second.release().await);
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_request_lends_its_place_as_long_as_there_is_one_for_it() {
        let permits = permits(Limits { mutating: 2, ..Limits::default() });
        let mut idle = Vec::new();
        for _ in 0..IDLE_MAX / 2 {
            let permit = change(&permits, JANE).await.expect("the place before is lent");
            permit.lend();
            idle.push(permit);
        }
        let last = change(&permits, JANE).await.expect("there is one");
        last.lend();
        assert!(change(&permits, JANE).await.is_none(), "it keeps its own place");
        assert!(last.take_back().await, "it has its place all the time");
        let other = change(&permits, BOB).await.expect("another user finds a place");
        other.lend();
        assert!(change(&permits, BOB).await.is_some());
        assert!(!idle[0].take_back().await, "no place is given back in time");
        drop(last);
        assert!(idle[1].take_back().await);
        drop(idle);
        assert_eq!(permits.idle.free(), IDLE_MAX - 1);
    }
}
