//! The `skiff` binary.

use std::io::{self, Write as _};
use std::mem;
use std::process::ExitCode;
use std::time::Duration;

use kubeskiff::cli;
use kubeskiff::server;
use tokio::runtime::{Builder, Runtime};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How long an idle blocking thread is kept for the next task. When the thread ends, the allocator
/// frees the memory that it holds for the thread.
const THREAD_KEPT: Duration = Duration::from_millis(50);

fn main() -> ExitCode {
    avoid_huge_pages();
    save_memory();
    match runtime() {
        Ok(runtime) => {
            let code = cli::run(&runtime);
            // Threads that are still computing are not waited for. A runtime that is shut down ends its timers, and
            // tasks that wait for one would panic while the process ends.
            mem::forget(runtime);
            code
        }
        Err(error) => {
            _ = writeln!(io::stderr(), "skiff: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Builds a runtime with one worker for each processor, or fewer if the address space has no room
/// for their stacks.
fn runtime() -> io::Result<Runtime> {
    let threads = server::threads().ok_or_else(|| {
        io::Error::other("the limit of the address space (ulimit -v) leaves no room for threads: it takes 768 MiB")
    })?;
    Builder::new_multi_thread()
        .enable_all()
        .thread_stack_size(server::STACK_BYTES as usize)
        .worker_threads(threads.workers)
        .max_blocking_threads(threads.blocking)
        .thread_keep_alive(THREAD_KEPT)
        .build()
}

/// Disables transparent huge pages for the process: with pages of 2 MiB, the first allocation of
/// each thread would take a whole one, and an idle server nearly twice its memory. A refusal of the
/// system is ignored: the only cost is that memory.
#[cfg(target_os = "linux")]
fn avoid_huge_pages() {
    _ = rustix::thread::disable_transparent_huge_pages(true);
}

/// Other systems do not use huge pages unless they are asked to.
#[cfg(not(target_os = "linux"))]
fn avoid_huge_pages() {}

/// Restarts the program with other allocator settings if address space or memory is limited: the
/// allocator reads its settings before `main`.
#[cfg(unix)]
fn save_memory() {
    use std::env;
    use std::os::unix::process::CommandExt as _;
    use std::process::Command;

    /// How many KiB of address space the allocator reserves at a time; its default is 1 GiB.
    const ALLOCATOR_RESERVE: (&str, &str) = ("MIMALLOC_ARENA_RESERVE", "32768");
    /// For how many milliseconds the allocator keeps the memory that a thread has freed, for each
    /// thread.
    const ALLOCATOR_DELAY: (&str, &str) = ("MIMALLOC_PURGE_DELAY", "0");
    /// The option that limits memory; the allocator has to help to stay below the limit.
    const MEMORY_LIMIT: &str = "--memory-limit";
    /// With less address space than this, the allocator is told to reserve less at a time.
    const ADDRESSES_AMPLE_BYTES: u64 = 4 << 30;

    let few_addresses = server::addresses().is_some_and(|limit| limit < ADDRESSES_AMPLE_BYTES);
    let limited = env::args_os().any(|argument| argument.to_string_lossy().starts_with(MEMORY_LIMIT));
    let wanted = [(few_addresses, ALLOCATOR_RESERVE), (limited, ALLOCATOR_DELAY)];
    let missing = wanted.into_iter().filter(|(applies, (name, _))| *applies && env::var_os(name).is_none());
    let missing: Vec<_> = missing.map(|(_, setting)| setting).collect();
    let (false, Ok(program), mut arguments) = (missing.is_empty(), env::current_exe(), env::args_os()) else { return };
    let called = arguments.next().unwrap_or_default();
    // If the restart fails, the program continues with the default settings.
    _ = Command::new(program).arg0(called).args(arguments).envs(missing).exec();
}

/// Other systems have no `exec`: the program continues with the default settings.
#[cfg(not(unix))]
fn save_memory() {}
