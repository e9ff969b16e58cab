//! Work on many things at once.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Documents may be nested deep, and are walked by recursion. Only pages that are touched cost memory.
const STACK_BYTES: usize = 64 << 20;
/// What takes no longer is done before anybody wonders.
const QUIET: Duration = Duration::from_millis(500);
const DRAW_INTERVAL: Duration = Duration::from_millis(100);

/// `work` on each of `items`, on all processors; what it returns, in the order of the items. Where that takes long, a
/// terminal on stderr shows how many of `items`, which are `things`, are done.
pub fn map<T: Sync, R: Send>(things: &str, items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(items.len());
    let next = AtomicUsize::new(0);
    let progress = Progress::new(things, items.len());
    let run = || {
        let mut done = Vec::new();
        while let Some((at, item)) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|at| Some((at, items.get(at)?)))
        {
            done.push((at, work(item)));
            progress.advance();
        }
        done
    };
    let mut results: Vec<(usize, R)> = thread::scope(|scope| {
        let spawn = |_| thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, run).ok();
        let handles: Vec<_> = (0..threads).filter_map(spawn).collect();
        // Where no thread could be made, this one does it all.
        let mut results = if handles.is_empty() { run() } else { Vec::new() };
        results.extend(handles.into_iter().filter_map(|handle| handle.join().ok()).flatten());
        results
    });
    results.sort_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}

/// A line on a terminal that says how far the work is. It goes when the work is done.
struct Progress<'p> {
    things: &'p str,
    total: usize,
    done: AtomicUsize,
    /// When to draw next; `None` where nobody looks.
    next: Option<Mutex<Instant>>,
    is_drawn: AtomicBool,
}

impl<'p> Progress<'p> {
    fn new(things: &'p str, total: usize) -> Self {
        let next = io::stderr().is_terminal().then(|| Mutex::new(Instant::now() + QUIET));
        Progress { things, total, done: AtomicUsize::new(0), next, is_drawn: AtomicBool::new(false) }
    }

    fn advance(&self) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        let Some(next) = &self.next else { return };
        let mut next = next.lock().unwrap_or_else(PoisonError::into_inner);
        if Instant::now() >= *next {
            *next = Instant::now() + DRAW_INTERVAL;
            self.is_drawn.store(true, Ordering::Relaxed);
            // Who can't be told how far the work is still gets what comes of it.
            let _ = write!(io::stderr(), "\r\x1b[K{done} of {} {}", self.total, self.things);
        }
    }
}

impl Drop for Progress<'_> {
    fn drop(&mut self) {
        if self.is_drawn.load(Ordering::Relaxed) {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
