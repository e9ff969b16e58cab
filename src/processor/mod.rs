//! Processor time for requests: long work leaves the threads that serve sockets, waits for its turn, and is ended in
//! time.
//!
//! In: the future that answers a request, and whose it is. Out: its answer, or why it was ended.
//!
//! Every request begins where it came in, as most are done within a fraction of a millisecond. One that takes longer hands
//! its thread's sockets and tasks to another thread ([`attend`]), and goes on when it is its user's turn ([`turns`]): as
//! many of those run as there are processors, a while each. What was long the last time waits for a turn before it begins,
//! without holding a thread ([`record`]).
//!
//! # Why so
//!
//! Work that a client can make long must not hold the threads that serve everybody. Most requests take a fraction of
//! a millisecond, and a change of threads would cost each of them a tenth of that. So a request begins where it came
//! in, and only what turns out to be long moves.
//!
//! - **Loops count.** Passes call `work::steps` as they go; it decrements a number of the thread. About every 1,000
//!   steps, some 50 to 100 µs, the overseer of the work looks at it: whether anybody still wants it, its deadline,
//!   its budget of processor time (10 s). The count is the one state in the pure layers that is not an argument. It
//!   changes no result, and a parameter in every function of every pass would hide what they are about.
//! - **Work is ended by unwinding** (`resume_unwind`, no panic hook), caught where the request is answered
//!   (`processor::metered`). No pass has to carry an error for it, and nothing half made is ever seen, stored or
//!   cached: what is made once for all is made outside of locks, or is `work::essential` and is then neither ended
//!   nor made to wait. So release builds unwind; a panic is the end of one request (500) and not of the process.
//! - **After a millisecond a request is long.** It hands the sockets and tasks of its thread to another thread
//!   (`block_in_place`) and waits for a turn: there are as many as processors, a slice of 50 ms each, given in
//!   rotation to the users who wait (`processor::turns`). The system's scheduler does the rest: a thread that wakes
//!   for a small request goes before one that computes.
//! - **What was long the last time, or has a body of 32 KiB, waits for its turn before it begins**
//!   (`processor::record`), as a task without a thread, and in a place apart from those of small requests. A thousand
//!   of them hold a thousand tasks. What is long is known as such as soon as the first of its kind is, also to those that
//!   came with it and have not begun.
//! - **How many hold threads is bounded by the threads there are**, which are few under `ulimit -v`: one is always left to
//!   what blocks. Once as many wait on threads as may, a user who has others waiting begins nothing without a turn; a
//!   change that has begun is never refused, and goes on without one.
//!   Before it comes to that, at half as many, a user's requests that have begun go on before more of its own begin: what is
//!   short finds a thread beside a thousand of the user's that are long.
//! - **What waits for a service in the midst of its work holds a thread** (expressions that ask an authorization webhook). Its
//!   turn is given up meanwhile, it waits no longer than its request may take, and few do so at once: the others are refused.
//! - **Where memory runs out, what takes long is ended** (429), unless it has written something: estimates made before the
//!   work keep it from coming to that, and this holds where they are wrong. What is short makes little, and goes on.
//! - A request that changes something runs in a task of its own, which is told when its client goes.
//! - Tried and left: a pool of threads for all requests costs each a change of threads; deciding by size alone misses
//!   rules and patterns, which are long over small bodies; running long work again from its start elsewhere needs
//!   every step before it to be repeatable.

mod attend;
mod metered;
mod record;
mod turns;

use std::hash::{BuildHasher as _, Hash, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

pub use metered::{background, background_meter, meter, metered};

use crate::work::Ended;
use attend::Attendant;
use record::Record;
use turns::{Turn, Turns, WaiterKind};

/// Processor time that a request may take, all in all.
pub const BUDGET: Duration = Duration::from_secs(10);

/// Processor time that it may take to make an answer while it is sent: a list of a gigabyte, compressed.
const BODY_BUDGET: Duration = Duration::from_secs(60);

/// How many threads a runtime has besides those that serve sockets, by default: tokio's own limit.
pub const THREADS_BESIDE: usize = 512;

/// How long active requests may continue once the server stops.
const STOP_GRACE: Duration = Duration::from_millis(300);

/// The processors, shared by the requests.
pub struct Processor {
    turns: Arc<Turns>,
    is_out_of_memory: IsOutOfMemory,
    stopped: Arc<OnceLock<Instant>>,
    record: Arc<Record>,
    hasher: RandomState,
}

/// Returns whether the process has reached its memory limit.
type IsOutOfMemory = Arc<dyn Fn() -> bool + Send + Sync>;

/// One request's share.
pub struct Share {
    /// The user whose turn it takes.
    user: Arc<str>,
    turns: Arc<Turns>,
    /// When the server was told to stop.
    stopped: Arc<OnceLock<Instant>>,
    /// A hash of its kind.
    kind: u64,
    record: Arc<Record>,
    /// What was known when it arrived.
    expected: ExpectedWork,
    /// Whether it may write something; after that the client must not be told to retry.
    is_change: bool,
    /// Whether it has written something.
    has_written: AtomicBool,
    is_out_of_memory: IsOutOfMemory,
    takes_turns: bool,
    /// Processor time that it may take.
    budget: Duration,
    /// Set once it has taken long.
    was_long: AtomicBool,
    cancelled: AtomicBool,
    deadline: Mutex<Option<Instant>>,
    /// A turn that was waited for, until it begins.
    turn: Mutex<Option<Turn>>,
}

/// How long a request will take, as far as is known before it begins.
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
    /// All processors, in a runtime with this many threads `beside` those that serve sockets.
    pub fn with_threads(beside: usize) -> Self {
        Processor::of(std::thread::available_parallelism().map_or(1, usize::from), beside)
    }

    /// So many processors, and threads beside those that hold sockets.
    fn of(processors: usize, beside: usize) -> Self {
        Processor {
            turns: Arc::new(Turns::new(processors, beside)),
            is_out_of_memory: Arc::new(|| false),
            stopped: Arc::default(),
            record: Arc::default(),
            hasher: RandomState::new(),
        }
    }

    /// The same, in a process whose memory has a bound.
    #[must_use]
    pub fn within_memory(self, is_out: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Processor { is_out_of_memory: Arc::new(is_out), ..self }
    }

    /// The share of a request of `user`. Requests with an equal `kind` are expected to take about as long as before; if
    /// nothing is known, `guess` counts.
    pub fn share(&self, user: &str, kind: impl Hash, guess: ExpectedWork) -> Arc<Share> {
        self.made(user, kind, guess, false)
    }

    /// The same of a request that may write something: once it has begun, it is not refused because others are waiting.
    pub fn share_of_change(&self, user: &str, kind: impl Hash, guess: ExpectedWork) -> Arc<Share> {
        self.made(user, kind, guess, true)
    }

    /// The share of a body that is made while it is sent in answer to a request. It waits for no turns: the other streams of
    /// its connection would wait with it. How long a client takes to read it does not matter.
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

    /// Ends active work after a moment, as the server is stopping.
    pub fn stop(&self) {
        self.stopped.get_or_init(Instant::now);
    }

    /// Remembers that it did not take long, if that is new.
    pub fn done(&self, share: &Share) {
        if share.expected == ExpectedWork::Long && !share.was_long.load(Ordering::Relaxed) {
            self.record.note(share.kind, ExpectedWork::Short);
        }
    }
}

impl Share {
    /// How long it is expected to take by now.
    pub fn expected(&self) -> ExpectedWork {
        match self.record.expected(self.kind) {
            Some(ExpectedWork::Long) => ExpectedWork::Long,
            _ => self.expected,
        }
    }

    /// Whether it waits for a turn before it begins.
    pub fn waits(&self) -> bool {
        self.expected() == ExpectedWork::Long || self.turns.are_short_for(&self.user)
    }

    /// Remembers that it takes long, at once: a thousand like it may wait to begin.
    fn note_long(&self) {
        if !self.was_long.swap(true, Ordering::Relaxed) {
            self.record.note(self.kind, ExpectedWork::Long);
        }
    }

    /// Cancels the request, as nobody waits for the answer any more.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Sets the time after which the answer is worthless.
    pub fn set_deadline(&self, deadline: Instant) {
        *self.deadline.lock().unwrap_or_else(PoisonError::into_inner) = Some(deadline);
    }

    /// Waits for a turn if it is likely to need one. Must be called right before the work begins: a turn lasts until
    /// the request waits for something else.
    ///
    /// Errors: too many requests of this user wait.
    pub async fn ready(&self) -> Result<(), Ended> {
        if self.waits() {
            let kind = if self.expected() == ExpectedWork::Long { WaiterKind::ToBegin } else { WaiterKind::ToGoOn };
            let turn = self.turns.take(&self.user, kind)?.await;
            *self.turn.lock().unwrap_or_else(PoisonError::into_inner) = Some(turn);
            // Before the first step, as that may be long in coming.
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

    /// Errors: it is a long request, and there is no memory left for it.
    fn has_memory(&self) -> Result<(), Ended> {
        let may_end = !self.has_written.load(Ordering::Relaxed);
        if may_end && (self.is_out_of_memory)() { Err(Ended::Overload) } else { Ok(()) }
    }

    /// Errors: it must end.
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
