//! The connections that are open: how many there may be, and which of them are idle.
//!
//! If the limit is reached, the connection that has been idle for the longest time is closed for the next one. A
//! connection is idle while none of its requests is being read, worked on or answered. If none is idle for a moment, the
//! newest one of the user who has most is cut off, so that one user's watches leave slots for others ([`super::shares`]).
//!
//! Several services may share the same slots. A service with a limited share waits until one of its own connections
//! closes once the share is used up, so that the others find slots.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::{Body, HttpBody as _};
use hyper::Response;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::{Instant, timeout};

use super::heads::{Heads, RequestHead};
use super::shares::{ConnectionShares, SharedConnection};
use crate::auth::UserInfo;
use crate::http::{PeerAddress, around};
use crate::memory::Memory;

/// How often to look for an idle connection while a new one waits for a slot.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// How long a connection is idle before it makes room for another one: a client that sends a request now and then, or
/// its first one, keeps it.
const IDLE_MIN: Duration = Duration::from_millis(200);

/// How long no slot may become free before a connection at work is cut off.
const FULL_MAX: Duration = Duration::from_millis(500);

/// Shared by all listeners.
#[derive(Clone)]
pub struct OpenConnections {
    places: Arc<Semaphore>,
    places_max: usize,
    /// For the heads of their requests.
    memory: Arc<Memory>,
    idle: Arc<Mutex<Idle>>,
    /// Those of this service.
    shares: ConnectionShares,
    /// The share of the slots that these connections may have; all, if there is none.
    share: Option<Arc<Semaphore>>,
    /// The server or control plane that these connections belong to.
    owner: u64,
}

/// The idle connections, the longest idle one first.
#[derive(Default)]
struct Idle {
    next: u64,
    connections: BTreeMap<u64, IdleConnection>,
}

struct IdleConnection {
    owner: u64,
    since: Instant,
    close: Arc<Notify>,
}

/// The slot of an open connection. It lasts as long as the socket, even if that has become a WebSocket.
pub struct ConnectionSlot {
    _permit: OwnedSemaphorePermit,
    /// The slot in the share of its service.
    _of_share: Option<OwnedSemaphorePermit>,
    /// The server waits for the last clone of it before it ends.
    _alive: mpsc::Sender<Infallible>,
}

/// What a connection is doing.
pub struct Activity {
    idle: Arc<Mutex<Idle>>,
    owner: u64,
    close: Arc<Notify>,
    /// Whose it is.
    shared: SharedConnection,
    /// Only changes under the lock of `idle`.
    state: Mutex<ConnectionState>,
}

struct ConnectionState {
    requests: usize,
    /// Its key among the idle connections, and since when it is idle.
    idle: Option<(u64, Instant)>,
    was_asked: bool,
}

/// What a connection is doing, for its idle timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionActivity {
    Something,
    /// No request has arrived on it yet.
    NothingYet(Instant),
    Nothing(Instant),
}

/// A request on a connection, until its answer is sent.
pub struct AtWork {
    activity: Arc<Activity>,
    head: Option<RequestHead>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl OpenConnections {
    /// For at most `connections_max` connections, and as many as `memory` has room for. Their long heads count in it.
    pub fn new(connections_max: usize, memory: Arc<Memory>) -> Self {
        let places_max = connections_max.min(memory.connections_max()).clamp(1, Semaphore::MAX_PERMITS);
        let places = Arc::new(Semaphore::new(places_max));
        let (idle, shares) = Default::default();
        OpenConnections { places, places_max, memory, idle, shares, share: None, owner: 0 }
    }

    /// Half of the same slots, for another service.
    pub fn half(&self) -> Self {
        let share = Arc::new(Semaphore::new(self.places_max.div_ceil(2)));
        let (owner, shares) = (lock(&self.idle).number(), ConnectionShares::default());
        OpenConnections { share: Some(share), owner, shares, ..self.clone() }
    }

    /// The heads of a connection from an address.
    pub fn heads(&self, address: Option<PeerAddress>) -> Heads {
        Heads::new(address, Arc::clone(&self.memory))
    }

    /// A slot for one more connection: at once, or when another one has closed.
    pub async fn admit(&self, alive: mpsc::Sender<Infallible>) -> Option<ConnectionSlot> {
        let of_share = match &self.share {
            Some(share) => Some(self.permit(share, Some(self.owner)).await?),
            None => None,
        };
        let permit = self.permit(&self.places, None).await?;
        Some(ConnectionSlot { _permit: permit, _of_share: of_share, _alive: alive })
    }

    /// One of the slots, for which idle connections are closed: those of `owner`, or any.
    async fn permit(&self, places: &Arc<Semaphore>, owner: Option<u64>) -> Option<OwnedSemaphorePermit> {
        let mut permit = Arc::clone(places).try_acquire_owned().ok();
        let begun = Instant::now();
        while permit.is_none() {
            if !self.close_longest_idle_of(owner, IDLE_MIN) && begun.elapsed() >= FULL_MAX {
                let places_max = if self.share.is_some() { self.places_max.div_ceil(2) } else { self.places_max };
                self.shares.cut_of_largest(places_max);
            }
            permit = match timeout(LOOK_INTERVAL, Arc::clone(places).acquire_owned()).await {
                Ok(acquired) => Some(acquired.ok()?),
                Err(_) => None,
            };
        }
        permit
    }

    /// Closes the connection that has been idle for the longest time, if there is one.
    pub fn close_longest_idle(&self) {
        self.close_longest_idle_of(None, Duration::ZERO);
    }

    /// Of those that have been idle for some time; returns whether there was one.
    fn close_longest_idle_of(&self, owner: Option<u64>, idle_min: Duration) -> bool {
        let mut idle = lock(&self.idle);
        let fits = |connection: &IdleConnection| {
            owner.is_none_or(|owner| connection.owner == owner) && connection.since.elapsed() >= idle_min
        };
        let longest = idle.connections.iter().find(|(_, connection)| fits(connection)).map(|(at, _)| *at);
        let longest = longest.and_then(|at| idle.connections.remove(&at));
        longest.inspect(|connection| connection.close.notify_one()).is_some()
    }

    /// The activity of a new connection.
    pub fn activity(&self) -> Arc<Activity> {
        let state = ConnectionState { requests: 0, idle: None, was_asked: false };
        let (idle, close) = (Arc::clone(&self.idle), Arc::new(Notify::new()));
        let shared = self.shares.connection();
        let activity = Activity { idle, owner: self.owner, close, shared, state: Mutex::new(state) };
        activity.rest(&mut lock(&activity.idle), &mut lock(&activity.state));
        Arc::new(activity)
    }
}

impl Idle {
    /// A unique number.
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn insert(&mut self, owner: u64, close: &Arc<Notify>) -> u64 {
        let at = self.number();
        self.connections.insert(at, IdleConnection { owner, since: Instant::now(), close: Arc::clone(close) });
        at
    }
}

impl Activity {
    fn rest(&self, idle: &mut Idle, state: &mut ConnectionState) {
        state.idle = Some((idle.insert(self.owner, &self.close), Instant::now()));
    }

    /// Records that a request has arrived.
    pub fn begin(self: &Arc<Self>) -> AtWork {
        let (mut idle, mut state) = (lock(&self.idle), lock(&self.state));
        state.requests += 1;
        state.was_asked = true;
        if let Some((at, _)) = state.idle.take() {
            idle.connections.remove(&at);
        }
        drop((idle, state));
        AtWork { activity: Arc::clone(self), head: None }
    }

    pub fn doing(&self) -> ConnectionActivity {
        let state = lock(&self.state);
        match state.idle {
            None => ConnectionActivity::Something,
            Some((_, since)) if state.was_asked => ConnectionActivity::Nothing(since),
            Some((_, since)) => ConnectionActivity::NothingYet(since),
        }
    }

    /// Records whose request is on it.
    pub fn note_user(&self, user: &UserInfo) {
        self.shared.note_user(user.sharer());
    }

    /// Waits until this connection must end at once, whatever is on it.
    pub async fn cut(&self) {
        self.shared.cut().await;
    }

    /// Waits until this connection must be closed for another one.
    pub async fn close_requested(&self) {
        self.close.notified().await;
    }
}

impl Drop for Activity {
    fn drop(&mut self) {
        if let Some((at, _)) = lock(&self.state).idle {
            lock(&self.idle).connections.remove(&at);
        }
    }
}

impl AtWork {
    /// Holds the head of the request, too.
    pub fn holding(mut self, head: RequestHead) -> Self {
        self.head = Some(head);
        self
    }

    /// The answer, during which the request still counts as active.
    pub fn during(self, answer: Response<Body>) -> Response<Body> {
        around(answer, move |body, context| {
            // The request ends with the body.
            let _at_work = &self;
            body.poll_frame(context)
        })
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        let activity = &self.activity;
        let (mut idle, mut state) = (lock(&activity.idle), lock(&activity.state));
        state.requests -= 1;
        if state.requests == 0 {
            activity.rest(&mut idle, &mut state);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alive() -> mpsc::Sender<Infallible> {
        mpsc::channel(1).0
    }

    fn opened(connections_max: usize) -> OpenConnections {
        OpenConnections::new(connections_max, Arc::new(Memory::of_system()))
    }

    #[test]
    fn there_are_as_many_as_memory_has_room_for() {
        let places_max = |wanted| OpenConnections::new(wanted, Arc::new(Memory::new(96 << 20))).places_max;
        assert_eq!((places_max(500), places_max(usize::MAX)), (500, 512));
    }

    #[tokio::test(start_paused = true)]
    async fn the_longest_idle_connection_makes_room_and_none_at_work_does() {
        let open = opened(2);
        let [first, second] = [open.activity(), open.activity()];
        let mut places = vec![open.admit(alive()).await, open.admit(alive()).await];
        let in_flight = first.begin();
        let admitted = tokio::spawn({
            let open = open.clone();
            async move { open.admit(alive()).await.is_some() }
        });
        second.close_requested().await;
        tokio::time::sleep(LOOK_INTERVAL * 3).await;
        assert!(!admitted.is_finished(), "its place is not free yet");
        places.pop();
        assert!(admitted.await.expect("it does not panic"));
        assert_eq!(first.doing(), ConnectionActivity::Something);
        drop(in_flight);
        assert!(matches!(first.doing(), ConnectionActivity::Nothing(_)));
        open.close_longest_idle();
        first.close_requested().await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_has_used_up_its_share_waits_for_its_own_connections() {
        let all = opened(4);
        let [greedy, other] = [all.half(), all.half()];
        let activities = [greedy.activity(), greedy.activity()];
        let at_work = activities.each_ref().map(Activity::begin);
        let mut places = vec![greedy.admit(alive()).await, greedy.admit(alive()).await];
        let resting = other.activity();
        places.push(other.admit(alive()).await);
        let mut waiting = tokio::spawn({
            let greedy = greedy.clone();
            async move { greedy.admit(alive()).await.is_some() }
        });
        assert!(timeout(LOOK_INTERVAL * 3, &mut waiting).await.is_err(), "its share is used up");
        assert!(timeout(LOOK_INTERVAL, resting.close_requested()).await.is_err(), "that of another is not closed");
        assert!(all.admit(alive()).await.is_some(), "others find a place");
        drop(at_work);
        activities[0].close_requested().await;
        places.remove(0);
        assert!(waiting.await.expect("it does not panic"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_idle_for_a_moment_before_it_makes_room() {
        let open = opened(1);
        let activity = open.activity();
        let place = open.admit(alive()).await;
        let waiting = tokio::spawn({
            let open = open.clone();
            async move { open.admit(alive()).await.is_some() }
        });
        let begun = Instant::now();
        for _ in 0..4 {
            tokio::time::sleep(IDLE_MIN / 2).await;
            drop(activity.begin());
        }
        activity.close_requested().await;
        assert!(begun.elapsed() >= IDLE_MIN * 3, "it was used");
        drop(place);
        assert!(waiting.await.expect("it does not panic"));
    }

    #[tokio::test(start_paused = true)]
    async fn where_none_is_idle_the_user_with_most_makes_room() {
        let open = opened(3);
        let activities = [(); 3].map(|()| open.activity());
        for (activity, name) in activities.iter().zip(["jane", "joe", "jane"]) {
            activity.note_user(&UserInfo::authenticated(name, Vec::new()));
        }
        let _at_work = activities.each_ref().map(Activity::begin);
        let mut places = vec![open.admit(alive()).await, open.admit(alive()).await, open.admit(alive()).await];
        let waiting = tokio::spawn({
            let open = open.clone();
            async move { open.admit(alive()).await.is_some() }
        });
        let begun = Instant::now();
        activities[2].cut().await;
        assert!(begun.elapsed() >= FULL_MAX, "one may become free in a moment");
        places.pop();
        assert!(waiting.await.expect("it does not panic"));
        assert!(timeout(LOOK_INTERVAL, activities[0].cut()).await.is_err());
    }

    #[tokio::test]
    async fn a_request_is_at_work_until_its_answer_is_sent() {
        let open = opened(1);
        let activity = open.activity();
        assert!(matches!(activity.doing(), ConnectionActivity::NothingYet(_)));
        let answer = activity.begin().during(Response::new(Body::from("text")));
        assert_eq!(answer.body().size_hint().exact(), Some(4));
        assert_eq!(activity.doing(), ConnectionActivity::Something);
        drop(answer);
        assert!(matches!(activity.doing(), ConnectionActivity::Nothing(_)));
        drop(activity);
        assert!(lock(&open.idle).connections.is_empty());
    }
}
