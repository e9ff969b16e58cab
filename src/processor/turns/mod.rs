//! Turns: a queue that is fair to all users.
//!
//! There are as many turns as processors. Waiting users are served in rotation, and the requests of
//! each in the order in which they came; so a user with a thousand requests delays another user by
//! only one. Once many requests that have begun hold threads, these go before requests that have
//! not begun, and none of them gives up its turn to one that has not: so a short request finds a
//! thread.

use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use crate::work::Ended;

/// How many requests of one user may wait to begin long work, and how many others of the same user
/// may wait.
const WAITING_PER_USER_MAX: usize = 256;
/// How many requests of all users together may wait.
const WAITING_MAX: usize = 4096;
/// How many requests may hold a thread while they wait for a turn, as they were not expected to be
/// long; fewer if there are few threads.
const THREADS_WAITING_MAX: usize = 32;
/// How many requests may hold a thread while they wait for the answer of a service; fewer if there
/// are few threads.
const THREADS_ASKING_MAX: usize = 32;
/// How often a request that holds a thread checks whether it is still wanted.
const WANTED_INTERVAL: Duration = Duration::from_millis(20);

pub(super) struct Turns {
    queue: Mutex<TurnQueue>,
    bounds: Bounds,
}

/// How many requests may do what at once. Together they leave one thread for blocking calls such as
/// disk access: if all threads were held, nobody would be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bounds {
    turns: usize,
    threads_waiting_max: usize,
    threads_asking_max: usize,
    /// How many requests may continue without a turn; with more, no request begins without one.
    alone_max: usize,
    /// How many requests may hold a thread while they wait; with more, none gives up its turn for
    /// one that has not begun.
    begun_max: usize,
}

impl Bounds {
    /// The bounds for so many processors, and so many threads `beside` those that serve sockets.
    fn of(processors: usize, beside: usize) -> Self {
        let free = beside.saturating_sub(1);
        // One is left for requests that wait for a service.
        let turns = processors.min(free.saturating_sub(1)).max(1);
        let left = free.saturating_sub(turns);
        let asking = left.div_ceil(3).min(THREADS_ASKING_MAX);
        let half = ((left - asking) / 2).min(THREADS_WAITING_MAX);
        let begun = half / 2;
        Bounds { turns, threads_waiting_max: half, threads_asking_max: asking, alone_max: half, begun_max: begun }
    }
}

/// The kind of a waiting request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaiterKind {
    /// It is long and has not begun: it holds little.
    ToBegin,
    /// It has begun and holds a thread, or it is expected to be short.
    ToGoOn,
}

struct TurnQueue {
    free: usize,
    /// The waiting requests, by user; no entry is empty.
    waiting: BTreeMap<Arc<str>, VecDeque<Arc<Waiter>>>,
    /// The waiting users in the order of their turns.
    users: VecDeque<Arc<str>>,
    count: usize,
    threads: usize,
    /// How many requests hold a thread while they wait for the answer of a service.
    asking: usize,
    /// How many requests continue without a turn.
    alone: usize,
}

struct Waiter {
    kind: WaiterKind,
    granted: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

/// A turn, until it is dropped.
pub(super) struct Turn(Arc<Turns>);

/// A future that resolves to a turn.
pub(super) struct WaitingTurn {
    turns: Arc<Turns>,
    user: Arc<str>,
    waiter: Arc<Waiter>,
    is_done: bool,
}

impl Turns {
    /// As many turns as there are processors, or fewer if there are few threads `beside` those that
    /// serve sockets.
    pub fn new(processors: usize, beside: usize) -> Self {
        let bounds = Bounds::of(processors, beside);
        let (waiting, users) = (BTreeMap::new(), VecDeque::new());
        let queue = TurnQueue { free: bounds.turns, waiting, users, count: 0, threads: 0, asking: 0, alone: 0 };
        Turns { queue: Mutex::new(queue), bounds }
    }

    /// The next turn of `user`.
    ///
    /// # Errors
    ///
    /// Too many requests wait.
    pub fn take(self: &Arc<Self>, user: &Arc<str>, kind: WaiterKind) -> Result<WaitingTurn, Ended> {
        let waiter = Arc::new(Waiter { kind, granted: AtomicBool::default(), waker: Mutex::default() });
        let mut queue = self.queue();
        if queue.free > 0 {
            queue.free -= 1;
            waiter.granted.store(true, Ordering::Release);
        } else {
            queue.add(user, &waiter)?;
        }
        drop(queue);
        Ok(WaitingTurn { turns: Arc::clone(self), user: Arc::clone(user), waiter, is_done: false })
    }

    /// The next turn of `user`; blocks this thread as long as `wanted` returns `Ok`.
    ///
    /// # Errors
    ///
    /// Too many requests wait, or the error of `wanted`.
    pub fn take_on_thread(
        self: &Arc<Self>,
        user: &Arc<str>,
        wanted: impl FnMut() -> Result<(), Ended>,
    ) -> Result<Turn, Ended> {
        let mut waiting = self.take(user, WaiterKind::ToGoOn)?;
        let _holding = HoldingThread::new(self, &waiting)?;
        poll_on_thread(|context| Pin::new(&mut waiting).poll(context), wanted)
    }

    /// Allows a request to hold a thread while it waits for the answer of a service, until the
    /// result is dropped.
    ///
    /// # Errors
    ///
    /// Too many requests do so.
    pub fn ask(self: &Arc<Self>) -> Result<Asking, Ended> {
        let mut queue = self.queue();
        if queue.asking >= self.bounds.threads_asking_max {
            return Err(Ended::Overload);
        }
        queue.asking += 1;
        Ok(Asking(Arc::clone(self)))
    }

    /// Records a request that continues without a turn, because it can't be refused.
    pub fn go_alone(self: &Arc<Self>) -> Alone {
        self.queue().alone += 1;
        Alone(Arc::clone(self))
    }

    /// Whether `user` must not begin anything without a turn: no thread is left for requests that
    /// wait, and either others of the user wait, or too many continue without a turn.
    pub fn are_short_for(&self, user: &Arc<str>) -> bool {
        let queue = self.queue();
        let is_full = queue.free == 0 && queue.threads >= self.bounds.threads_waiting_max;
        is_full && (queue.alone >= self.bounds.alone_max || queue.waiting.contains_key(user))
    }

    /// Whether `user` has to give up a turn for a waiting request. A request that has begun holds a
    /// thread while it waits for its next turn; so once many do, a user's request continues rather
    /// than let more of the same user begin.
    pub fn are_wanted(&self, user: &Arc<str>) -> bool {
        let queue = self.queue();
        match queue.waiting.get(user) {
            Some(own) if queue.users.len() == 1 => self.begins_more(&queue) || goes_on(own).is_some(),
            _ => queue.count > 0,
        }
    }

    fn begins_more(&self, queue: &TurnQueue) -> bool {
        queue.threads < self.bounds.begun_max
    }

    fn queue(&self) -> MutexGuard<'_, TurnQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes a turn that has become free to the next request.
    fn pass_on(&self) {
        let mut queue = self.queue();
        let begins_more = self.begins_more(&queue);
        let next = queue.next(begins_more);
        if next.is_none() {
            queue.free += 1;
        }
        drop(queue);
        if let Some(waiter) = next {
            waiter.grant();
        }
    }
}

impl TurnQueue {
    fn add(&mut self, user: &Arc<str>, waiter: &Arc<Waiter>) -> Result<(), Ended> {
        let of_user = self.waiting.get(user);
        let like_it = of_user.into_iter().flatten().filter(|other| other.kind == waiter.kind).count();
        if like_it >= WAITING_PER_USER_MAX || self.count >= WAITING_MAX {
            return Err(Ended::Overload);
        }
        if of_user.is_none() {
            self.users.push_back(Arc::clone(user));
        }
        self.waiting.entry(Arc::clone(user)).or_default().push_back(Arc::clone(waiter));
        self.count += 1;
        Ok(())
    }

    /// The next request of the next user; if no more are to begin, preferably one that has begun.
    fn next(&mut self, begins_more: bool) -> Option<Arc<Waiter>> {
        let user = self.users.pop_front()?;
        let of_user = self.waiting.get_mut(&user)?;
        let at = if begins_more { 0 } else { goes_on(of_user).unwrap_or(0) };
        let waiter = of_user.remove(at)?;
        self.count -= 1;
        if of_user.is_empty() {
            self.waiting.remove(&user);
        } else {
            self.users.push_back(user);
        }
        Some(waiter)
    }

    fn remove(&mut self, user: &Arc<str>, waiter: &Arc<Waiter>) {
        let Some(of_user) = self.waiting.get_mut(user) else { return };
        let before = of_user.len();
        of_user.retain(|other| !Arc::ptr_eq(other, waiter));
        self.count -= before - of_user.len();
        if of_user.is_empty() {
            self.waiting.remove(user);
            self.users.retain(|other| other != user);
        }
    }
}

/// The position of the first request that goes on.
fn goes_on(of_user: &VecDeque<Arc<Waiter>>) -> Option<usize> {
    of_user.iter().position(|waiter| waiter.kind == WaiterKind::ToGoOn)
}

impl Waiter {
    fn grant(&self) {
        let waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.granted.store(true, Ordering::Release);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Future for WaitingTurn {
    type Output = Turn;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Turn> {
        *self.waiter.waker.lock().unwrap_or_else(PoisonError::into_inner) = Some(context.waker().clone());
        // A grant made before the waker was stored is seen here; a later one wakes the task.
        if !self.waiter.granted.load(Ordering::Acquire) {
            return Poll::Pending;
        }
        self.is_done = true;
        Poll::Ready(Turn(Arc::clone(&self.turns)))
    }
}

impl Drop for WaitingTurn {
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        let mut queue = self.turns.queue();
        queue.remove(&self.user, &self.waiter);
        drop(queue);
        // The turn may have been granted meanwhile: a waiter that is not in the queue any more is
        // granted none.
        if self.waiter.granted.load(Ordering::Acquire) {
            self.turns.pass_on();
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.pass_on();
    }
}

/// A request that holds a thread while it waits, until this is dropped.
struct HoldingThread<'a>(&'a Turns);

impl<'a> HoldingThread<'a> {
    /// An error if too many requests do so.
    fn new(turns: &'a Turns, waiting: &WaitingTurn) -> Result<Self, Ended> {
        let mut queue = turns.queue();
        if queue.threads >= turns.bounds.threads_waiting_max && !waiting.waiter.granted.load(Ordering::Acquire) {
            return Err(Ended::Overload);
        }
        queue.threads += 1;
        Ok(HoldingThread(turns))
    }
}

impl Drop for HoldingThread<'_> {
    fn drop(&mut self) {
        self.0.queue().threads -= 1;
    }
}

/// A request that continues without a turn, until this is dropped.
pub(super) struct Alone(Arc<Turns>);

impl Drop for Alone {
    fn drop(&mut self) {
        self.0.queue().alone -= 1;
    }
}

/// A request that holds a thread while it waits for the answer of a service, until this is dropped.
pub(super) struct Asking(Arc<Turns>);

impl Drop for Asking {
    fn drop(&mut self) {
        self.0.queue().asking -= 1;
    }
}

/// Polls on this thread until there is a result, as long as `wanted` returns `Ok`.
///
/// # Errors
///
/// The error of `wanted`.
pub(super) fn poll_on_thread<T>(
    mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
    mut wanted: impl FnMut() -> Result<(), Ended>,
) -> Result<T, Ended> {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(ready) = poll(&mut context) {
            return Ok(ready);
        }
        wanted()?;
        thread::park_timeout(WANTED_INTERVAL);
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[cfg(test)]
mod tests;
