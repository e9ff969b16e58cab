//! Parallel work on many items.
//!
//! rayon is not used: it returns results in order only when all are there. Here they are taken in
//! order while others are still being computed, a bounded number waits for one that takes long, and
//! no item is started once the caller has enough. indicatif is not used either: the progress is a
//! single line that appears after a while, and only on a terminal.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal as _, Write as _};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The stack of the threads: documents may be nested deeply, and are walked by recursion. Only
/// pages that are used cost memory.
const STACK_BYTES: usize = 64 << 20;
/// Work that takes no longer shows no progress.
const QUIET: Duration = Duration::from_millis(500);
const DRAW_INTERVAL: Duration = Duration::from_millis(100);
/// How many results may wait for one that takes longer.
const AHEAD_MAX: usize = 4096;

/// Applies `work` to each of `items` on all processors, and returns the results in the order of the
/// items. If it takes long, a terminal on stderr shows how many of `items`, which are called
/// `things`, are done.
pub fn map<T: Sync, R: Send>(things: &str, items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let mut results = Vec::with_capacity(items.len());
    each(things, items, work, |done| {
        results.extend(done);
        ControlFlow::Continue(())
    });
    results
}

/// Like [`map`], but passes the results to `take` as they are completed, in the order of the items.
/// Once it breaks off, no item is started any more.
pub fn each<T: Sync, R: Send>(
    things: &str,
    items: &[T],
    work: impl Fn(&T) -> R + Sync,
    mut take: impl FnMut(Vec<R>) -> ControlFlow<()>,
) {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(items.len());
    let queue = WorkQueue::new(items.len());
    let run = || {
        while let Some(at) = queue.begin() {
            queue.finish(at, catch_unwind(AssertUnwindSafe(|| work(&items[at]))));
        }
    };
    thread::scope(|scope| {
        let spawn = |_: &usize| thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, run).is_ok();
        if (0..threads).filter(spawn).count() == 0 {
            // If no thread could be started, this one does all the work.
            _ = items.iter().try_for_each(|item| take(vec![work(item)]));
            return;
        }
        let _end = BreakOff(&queue);
        let mut progress = Progress::new(things, items.len());
        while let Some(results) = queue.take(&mut progress) {
            progress.clear();
            let results = results.into_iter().map(|result| result.unwrap_or_else(|panic| resume_unwind(panic)));
            if take(results.collect()).is_break() {
                return;
            }
        }
    });
}

/// Which items are started, and the results that have not been taken yet.
struct WorkQueue<R> {
    items: usize,
    state: Mutex<WorkState<R>>,
    /// Notified when the next result is available.
    has_result: Condvar,
    /// Notified when results were taken.
    has_room: Condvar,
}

struct WorkState<R> {
    begun: usize,
    taken: usize,
    /// A panic is passed on to the thread that takes the results.
    done: BTreeMap<usize, thread::Result<R>>,
}

impl<R> WorkQueue<R> {
    fn new(items: usize) -> Self {
        let state = Mutex::new(WorkState { begun: 0, taken: 0, done: BTreeMap::new() });
        WorkQueue { items, state, has_result: Condvar::new(), has_room: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, WorkState<R>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next item to work on; waits while too many results are not taken.
    fn begin(&self) -> Option<usize> {
        let is_full = |state: &mut WorkState<R>| state.begun < self.items && state.begun >= state.taken + AHEAD_MAX;
        let mut state = self.has_room.wait_while(self.state(), is_full).unwrap_or_else(PoisonError::into_inner);
        let at = state.begun;
        if at == self.items {
            return None;
        }
        state.begun += 1;
        Some(at)
    }

    fn finish(&self, at: usize, result: thread::Result<R>) {
        let mut state = self.state();
        state.done.insert(at, result);
        if at == state.taken {
            self.has_result.notify_one();
        }
    }

    /// Waits for the next results; `None` after the last ones.
    fn take(&self, progress: &mut Progress<'_>) -> Option<Vec<thread::Result<R>>> {
        let mut state = self.state();
        while state.taken < self.items {
            let mut results = Vec::new();
            let first = state.taken;
            while let Some(result) = state.done.remove(&(first + results.len())) {
                results.push(result);
            }
            state.taken += results.len();
            if !results.is_empty() {
                self.has_room.notify_all();
                return Some(results);
            }
            progress.draw(state.taken + state.done.len());
            let waited = self.has_result.wait_timeout(state, DRAW_INTERVAL);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        None
    }
}

/// Lets the threads of a queue end when the results are dropped.
struct BreakOff<'q, R>(&'q WorkQueue<R>);

impl<R> Drop for BreakOff<'_, R> {
    fn drop(&mut self) {
        self.0.state().begun = self.0.items;
        self.0.has_room.notify_all();
    }
}

/// A line on a terminal that shows the progress. It is cleared before other output, and when the
/// work is done.
struct Progress<'p> {
    things: &'p str,
    total: usize,
    /// When to draw next; `None` if stderr is not a terminal.
    next: Option<Instant>,
    is_drawn: bool,
}

impl<'p> Progress<'p> {
    fn new(things: &'p str, total: usize) -> Self {
        let next = io::stderr().is_terminal().then(|| Instant::now() + QUIET);
        Progress { things, total, next, is_drawn: false }
    }

    fn draw(&mut self, done: usize) {
        if self.next.is_some_and(|next| Instant::now() >= next) {
            self.next = Some(Instant::now() + DRAW_INTERVAL);
            self.is_drawn = true;
            // An error is ignored: results matter more than progress.
            _ = write!(io::stderr(), "\r\x1b[K{done} of {} {}", self.total, self.things);
        }
    }

    fn clear(&mut self) {
        if self.is_drawn {
            self.is_drawn = false;
            _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

impl Drop for Progress<'_> {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn results_come_in_the_order_of_the_items() {
        let items: Vec<usize> = (0..10_000).collect();
        let doubled = map("numbers", &items, |item| item * 2);
        assert!(doubled.iter().enumerate().all(|(at, doubled)| *doubled == at * 2));
        assert_eq!(doubled.len(), items.len());
        assert!(map("numbers", &[], |item: &usize| *item).is_empty());
    }

    #[test]
    fn nothing_more_is_begun_after_the_reader_has_gone() {
        let items: Vec<usize> = (0..100_000).collect();
        let begun = AtomicUsize::new(0);
        let mut taken = 0;
        each(
            "numbers",
            &items,
            |_| begun.fetch_add(1, Ordering::Relaxed),
            |results| {
                taken += results.len();
                ControlFlow::Break(())
            },
        );
        assert!(begun.into_inner() <= taken + AHEAD_MAX, "{taken} were taken");
    }
}
