//! The limits that the system sets for the process: file descriptors, and address space for stacks.

use std::thread;

#[cfg(unix)]
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::processor::THREADS_BESIDE;

/// Documents may be nested 10,000 levels deep, and are walked by recursion. Only pages that are touched cost memory.
pub const STACK_BYTES: u64 = 64 << 20;
/// Descriptors that connections never take: for the database, logs, calls of webhooks, and the next connection while
/// another one is closed for it.
const RESERVED: u64 = 64;
/// Address space for everything but the threads of the runtime: code, objects, and the database's own threads.
const ADDRESSES_RESERVED_BYTES: u64 = 512 << 20;

/// Raises the limit of descriptors as far as possible, and returns how many of them connections may use.
///
/// If there are few, half of them stay reserved.
pub fn connections_max() -> usize {
    let granted = raised();
    usize::try_from(granted - RESERVED.min(granted / 2)).unwrap_or(usize::MAX)
}

/// The limit of descriptors, after raising it as far as possible.
#[cfg(unix)]
fn raised() -> u64 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    // If the hard limit is above the system's own maximum, this fails; then the soft limit stays.
    match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        Ok(()) => maximum.unwrap_or(u64::MAX),
        Err(_) => current.unwrap_or(u64::MAX),
    }
}

/// Other systems have no such limit.
#[cfg(not(unix))]
fn raised() -> u64 {
    u64::MAX
}

/// The threads of a runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threads {
    pub workers: usize,
    /// For blocking work, such as disk access.
    pub blocking: usize,
}

/// The threads of this program's runtime: as many workers as there are processors, or as many as fit into the address
/// space, which may be limited (`ulimit -v`). `None` if there is not even room for one of each.
pub fn threads() -> Option<Threads> {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let wanted = Threads { workers: processors, blocking: THREADS_BESIDE };
    match addresses() {
        Some(limit) => threads_within(limit, wanted, STACK_BYTES),
        None => Some(wanted),
    }
}

fn threads_within(limit: u64, wanted: Threads, stack_bytes: u64) -> Option<Threads> {
    // The allocators use the same amount again for each thread.
    let fitting = limit.saturating_sub(ADDRESSES_RESERVED_BYTES) / (2 * stack_bytes);
    let each = usize::try_from(fitting / 2).unwrap_or(usize::MAX);
    (each > 0).then(|| Threads { workers: wanted.workers.min(each), blocking: wanted.blocking.min(each) })
}

/// The limit of the address space in bytes; `None` for no limit.
#[cfg(unix)]
pub fn addresses() -> Option<u64> {
    getrlimit(Resource::As).current
}

/// Other systems have no such limit.
#[cfg(not(unix))]
pub fn addresses() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_addresses_are_few_there_are_fewer_threads_and_at_last_none() {
        let wanted = Threads { workers: 8, blocking: 512 };
        let within = |mib: u64| threads_within(mib << 20, wanted, 64 << 20);
        assert_eq!(within(1 << 30), Some(wanted));
        assert_eq!(within(2048), Some(Threads { workers: 6, blocking: 6 }));
        assert_eq!(within(768), Some(Threads { workers: 1, blocking: 1 }));
        assert_eq!(within(512), None);
    }
}
