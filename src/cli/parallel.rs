//! Work on many things at once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Documents may be nested deep, and are walked by recursion. Only pages that are touched cost memory.
const STACK_BYTES: usize = 64 << 20;

/// `work` on each of `items`, on all processors; what it returns, in the order of the items.
pub fn map<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(items.len());
    let next = AtomicUsize::new(0);
    let run = || {
        let mut done = Vec::new();
        while let Some((at, item)) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|at| Some((at, items.get(at)?)))
        {
            done.push((at, work(item)));
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
