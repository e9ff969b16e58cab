//! Processor time for requests: long work leaves the threads that serve sockets, waits for its
//! turn, and is ended at its deadline.
//!
//! Input: the future that answers a request, and the user who sent it. Output: its answer, or why it was
//! ended.
//!
//! Every request begins on the thread where it arrived, as most are done within a fraction of a
//! millisecond. A request that takes longer hands the sockets and tasks of its thread to another
//! thread ([`attend`]), and continues when its user has a turn ([`turns`]): as many of these run as
//! there are processors, each for a time slice. A request of a kind that was long the last time
//! waits for a turn before it begins, without holding a thread ([`record`]).
//!
//! # Rationale
//!
//! Work that a client can make long must not hold the threads that serve everybody. Most requests
//! take a fraction of a millisecond, and a change of threads would cost each of them a tenth of
//! that. So a request begins where it arrived, and only one that turns out to be long moves.
//!
//! - **Loops count.** Passes call `work::steps` as they go, which decrements a thread-local
//!   counter. About every 1,000 steps, some 50 to 100 µs, the overseer of the work checks whether
//!   anybody still wants the result, its deadline, and its budget of processor time (10 s). The
//!   counter is the only state in the pure layers that is not an argument. It changes no result,
//!   and a parameter in every function of every pass would hide what they are about.
//! - **Work is ended by unwinding** (`resume_unwind`, no panic hook), caught where the request is
//!   answered (`processor::metered`). No pass has to return an error for it, and nothing incomplete
//!   is ever seen, stored or cached: shared values are built outside of locks, or under
//!   `work::essential`, and are then neither ended nor made to wait. So release builds unwind; a
//!   panic ends one request (500), not the process.
//! - **After a millisecond a request is long.** It hands the sockets and tasks of its thread to
//!   another thread (`block_in_place`) and waits for a turn: there are as many turns as processors,
//!   each a slice of 50 ms, given in rotation to the users who wait (`processor::turns`). The
//!   system's scheduler does the rest: a thread that wakes for a small request goes before one that
//!   computes.
//! - **A request that was long the last time, or has a body of 32 KiB, waits for its turn before it
//!   begins** (`processor::record`), as a task without a thread, and under another limit of requests
//!   in flight than small requests. A thousand of them hold a thousand tasks. As soon as the first
//!   request of a kind turns out to be long, this is known for the whole kind, including requests
//!   that arrived with it and have not begun.
//! - **The number of requests that hold threads is bounded by the number of threads**, which is
//!   small under `ulimit -v`: one thread is always left for blocking calls. Once as many requests
//!   wait on threads as may, a user with waiting requests begins nothing without a turn; a change
//!   that has begun is never refused, and continues without one. Before that, at half as many, a
//!   user's requests that have begun continue before more of the same user's begin: so a short
//!   request finds a thread beside a thousand long ones of its user.
//! - **A request that waits for a service in the middle of its work holds a thread** (expressions
//!   that ask an authorization webhook). Its turn is given up meanwhile, it waits no longer than
//!   until its own deadline, and only a few may do so at once: the others are refused.
//! - **When memory runs out, long work is ended** (429), unless it has written something: the
//!   estimates made before the work should prevent that case, and this holds where they are wrong.
//!   Short work allocates little, and continues.
//! - A request that changes something runs in a task of its own, which is told when its client
//!   disconnects.
//! - **A body that is made while it is sent waits for a turn before its next part if one took long
//!   lately** (`processor::stream_turns`), without holding a thread: a thread that waited would hold up the
//!   other streams of its connection.
//! - Rejected: a pool of threads for all requests costs each of them a change of threads; deciding
//!   by size alone misses rules and patterns that are slow on small bodies; restarting long work
//!   elsewhere requires that every step before it can be repeated.

mod attend;
mod background;
mod metered;
mod record;
mod stream_turns;
mod turns;

use std::hash::{BuildHasher as _, Hash, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

pub use background::BackgroundTurns;
pub use metered::{background, meter, metered, stream_meter};
pub use stream_turns::StreamTurn;

use crate::work::Ended;
use attend::Attendant;
use record::Record;
use stream_turns::StreamTurns;
use turns::{Turn, Turns, WaiterKind};

/// The total processor time that a request may take.
pub const BUDGET: Duration = Duration::from_secs(10);

/// The processor time for building an answer while it is sent: enough for a list of a gigabyte,
/// compressed.
const BODY_BUDGET: Duration = Duration::from_secs(60);

/// How many threads a runtime has by default besides those that serve sockets: tokio's own limit.
pub const THREADS_BESIDE: usize = 512;

/// How long active requests may continue once the server stops.
const STOP_GRACE: Duration = Duration::from_millis(300);

/// The processors, shared by all requests.
pub struct Processor {
    turns: Arc<Turns>,
    streams: StreamTurns,
    is_out_of_memory: IsOutOfMemory,
    stopped: Arc<OnceLock<Instant>>,
    record: Arc<Record>,
    hasher: RandomState,
}

/// Returns whether the process has reached its memory limit.
type IsOutOfMemory = Arc<dyn Fn() -> bool + Send + Sync>;

/// One request's share of the processors.
pub struct Share {
    /// The user whose turns it takes.
    user: Arc<str>,
    turns: Arc<Turns>,
    /// When the server was told to stop.
    stopped: Arc<OnceLock<Instant>>,
    /// A hash of its kind.
    kind: u64,
    record: Arc<Record>,
    /// What was expected of it when it arrived.
    expected: ExpectedWork,
    /// Whether it may write something; once it has begun, it is not refused because others wait.
    is_change: bool,
    /// Whether it has written something.
    has_written: AtomicBool,
    is_out_of_memory: IsOutOfMemory,
    takes_turns: bool,
    /// The processor time that it may take.
    budget: Duration,
    /// Whether it has turned out to be long.
    was_long: AtomicBool,
    cancelled: AtomicBool,
    deadline: Mutex<Option<Instant>>,
    /// A turn that was granted before the work began, until the work takes it.
    turn: Mutex<Option<Turn>>,
}

/// How long a request is expected to take, before it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpectedWork {
    Short,
    Long,
}

impl Default for Processor {
    fn default() -> Self {
        Processor::with_threads(THREADS_BESIDE)
    }
}

impl Processor {
    /// All processors of the machine, in a runtime with this many threads `beside` those that serve
    /// sockets.
    pub fn with_threads(beside: usize) -> Self {
        Processor::of(std::thread::available_parallelism().map_or(1, usize::from), beside)
    }

    /// So many processors, and so many threads beside those that serve sockets.
    fn of(processors: usize, beside: usize) -> Self {
        Processor {
            turns: Arc::new(Turns::new(processors, beside)),
            streams: StreamTurns::new(processors),
            is_out_of_memory: Arc::new(|| false),
            stopped: Arc::default(),
            record: Arc::default(),
            hasher: RandomState::new(),
        }
    }

    /// The same in a process with a memory limit; `is_out` returns whether it is reached.
    #[must_use]
    pub fn within_memory(self, is_out: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Processor { is_out_of_memory: Arc::new(is_out), ..self }
    }

    /// The share of a request of `user`. Requests with an equal `kind` are expected to take about
    /// as long as before; if nothing is known, `guess` counts.
    pub fn share(&self, user: &str, kind: impl Hash, guess: ExpectedWork) -> Arc<Share> {
        self.made(user, kind, guess, false)
    }

    /// The share of a request that may write something: once it has begun, it is not refused
    /// because others wait.
    pub fn share_of_change(&self, user: &str, kind: impl Hash, guess: ExpectedWork) -> Arc<Share> {
        self.made(user, kind, guess, true)
    }

    /// The turns of a response body of `user` that is made while it is sent.
    pub fn stream_turn(&self, user: &str) -> StreamTurn {
        self.streams.of(user)
    }

    /// The share of a response body that is built while it is sent. It takes no turns while it makes a
    /// part ([`Processor::stream_turn`]), as the other streams of its connection would wait with it. How
    /// long a client takes to read the body does not matter.
    pub fn share_of_body(&self, of: &Share) -> Arc<Share> {
        let kind = self.hasher.hash_one((&of.user, "body"));
        Arc::new(Share {
            user: Arc::clone(&of.user),
            turns: Arc::clone(&self.turns),
            stopped: Arc::clone(&self.stopped),
            kind,
            expected: ExpectedWork::Short,
            record: Arc::clone(&self.record),
            is_change: true,
            has_written: AtomicBool::new(false),
            is_out_of_memory: Arc::clone(&self.is_out_of_memory),
            takes_turns: false,
            budget: BODY_BUDGET,
            was_long: AtomicBool::new(false),
            cancelled: AtomicBool::new(false),
            deadline: Mutex::default(),
            turn: Mutex::default(),
        })
    }

    fn made(&self, user: &str, kind: impl Hash, guess: ExpectedWork, is_change: bool) -> Arc<Share> {
        let kind = self.hasher.hash_one((user, kind));
        Arc::new(Share {
            user: Arc::from(user),
            turns: Arc::clone(&self.turns),
            stopped: Arc::clone(&self.stopped),
            kind,
            expected: self.record.expected(kind).unwrap_or(guess),
            record: Arc::clone(&self.record),
            is_change,
            has_written: AtomicBool::new(false),
            is_out_of_memory: Arc::clone(&self.is_out_of_memory),
            takes_turns: true,
            budget: BUDGET,
            was_long: AtomicBool::new(false),
            cancelled: AtomicBool::new(false),
            deadline: Mutex::default(),
            turn: Mutex::default(),
        })
    }

    /// Ends all work after a short grace period, because the server is stopping.
    pub fn stop(&self) {
        self.stopped.get_or_init(Instant::now);
    }

    /// Records that the request was short, if it was expected to be long.
    pub fn done(&self, share: &Share) {
        if share.expected == ExpectedWork::Long && !share.was_long.load(Ordering::Relaxed) {
            self.record.note(share.kind, ExpectedWork::Short);
        }
    }
}

impl Share {
    /// The user whose turns it takes.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// How long the request is expected to take, by what is known now.
    pub fn expected(&self) -> ExpectedWork {
        match self.record.expected(self.kind) {
            Some(ExpectedWork::Long) => ExpectedWork::Long,
            _ => self.expected,
        }
    }

    /// Whether the request waits for a turn before it begins.
    pub fn waits(&self) -> bool {
        self.expected() == ExpectedWork::Long || self.turns.are_short_for(&self.user)
    }

    /// Records at once that the request is long: a thousand like it may wait to begin.
    fn note_long(&self) {
        if !self.was_long.swap(true, Ordering::Relaxed) {
            self.record.note(self.kind, ExpectedWork::Long);
        }
    }

    /// Cancels the request, because nobody waits for the answer any more.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Sets the time at which the request is ended.
    pub fn set_deadline(&self, deadline: Instant) {
        *self.deadline.lock().unwrap_or_else(PoisonError::into_inner) = Some(deadline);
    }

    /// Waits for a turn if the request is likely to need one. Must be called right before the work
    /// begins: a turn lasts until the request waits for something else.
    ///
    /// # Errors
    ///
    /// Too many requests wait.
    pub async fn ready(&self) -> Result<(), Ended> {
        if self.waits() {
            let kind = if self.expected() == ExpectedWork::Long { WaiterKind::ToBegin } else { WaiterKind::ToGoOn };
            let turn = self.turns.take(&self.user, kind)?.await;
            *self.turn.lock().unwrap_or_else(PoisonError::into_inner) = Some(turn);
            // Before the first step, as the first check may come late.
            attend::leave_thread();
        }
        Ok(())
    }

    fn attendant(self: &Arc<Self>) -> Attendant {
        Attendant::new(Arc::clone(self))
    }

    fn waited_for(&self) -> Option<Turn> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// An error if there is no memory left for this long request, unless it has written something.
    fn has_memory(&self) -> Result<(), Ended> {
        let may_end = !self.has_written.load(Ordering::Relaxed);
        if may_end && (self.is_out_of_memory)() { Err(Ended::Overload) } else { Ok(()) }
    }

    /// An error if the request must end.
    fn is_wanted(&self, now: Instant) -> Result<(), Ended> {
        let is_stopped = self.stopped.get().is_some_and(|stopped| now.duration_since(*stopped) > STOP_GRACE);
        if is_stopped || self.cancelled.load(Ordering::Relaxed) {
            return Err(Ended::Cancelled);
        }
        let deadline = *self.deadline.lock().unwrap_or_else(PoisonError::into_inner);
        match deadline {
            Some(deadline) if now >= deadline => Err(Ended::Deadline),
            _ => Ok(()),
        }
    }
}
