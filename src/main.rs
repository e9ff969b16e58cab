//! The `skiff` binary.

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use kubeskiff::cli;
use kubeskiff::server;
use tokio::runtime::{Builder, Runtime};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How long a thread that blocked is kept for the next: the allocator gives back what it holds for a thread at its end.
const THREAD_KEPT: Duration = Duration::from_millis(50);

fn main() -> ExitCode {
    avoid_huge_pages();
    save_memory();
    match runtime() {
        Ok(runtime) => {
            // A task of its own: the main thread has the stack that the system gives it.
            let code = runtime.block_on(async { tokio::spawn(cli::run()).await.unwrap_or(ExitCode::FAILURE) });
            // A thread that still computes is not waited for.
            runtime.shutdown_background();
            code
        }
        Err(error) => {
            _ = writeln!(io::stderr(), "skiff: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A runtime with as many threads as there are processors, or as have addresses for their stacks.
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

/// Memory is taken in small pages, also where the system gives huge ones unasked: in pages of 2 MiB, each thread's first
/// object would take one, and an idle server nearly twice its memory. Where the system refuses, that is all that is lost.
#[cfg(target_os = "linux")]
fn avoid_huge_pages() {
    _ = rustix::thread::disable_transparent_huge_pages(true);
}

/// No other system has them without being asked.
#[cfg(not(target_os = "linux"))]
fn avoid_huge_pages() {}

/// Begins anew with a modest allocator where addresses or memory are few: it reads its settings before `main`.
#[cfg(unix)]
fn save_memory() {
    use std::env;
    use std::os::unix::process::CommandExt as _;
    use std::process::Command;

    /// The allocator takes 1 GiB of addresses at a time, unless this says how many KiB.
    const ALLOCATOR_RESERVE: (&str, &str) = ("MIMALLOC_ARENA_RESERVE", "32768");
    /// The allocator keeps what a thread has freed for a while, for each thread, unless this says for how many milliseconds.
    const ALLOCATOR_DELAY: (&str, &str) = ("MIMALLOC_PURGE_DELAY", "0");
    /// The option by which memory has a limit that the allocator is to help keep.
    const MEMORY_LIMIT: &str = "--memory-limit";
    /// Where there are fewer addresses than this, it is told to take fewer.
    const ADDRESSES_AMPLE_BYTES: u64 = 4 << 30;

    let few_addresses = server::addresses().is_some_and(|limit| limit < ADDRESSES_AMPLE_BYTES);
    let limited = env::args_os().any(|argument| argument.to_string_lossy().starts_with(MEMORY_LIMIT));
    let wanted = [(few_addresses, ALLOCATOR_RESERVE), (limited, ALLOCATOR_DELAY)];
    let missing = wanted.into_iter().filter(|(applies, (name, _))| *applies && env::var_os(name).is_none());
    let missing: Vec<_> = missing.map(|(_, setting)| setting).collect();
    let (false, Ok(program), mut arguments) = (missing.is_empty(), env::current_exe(), env::args_os()) else { return };
    let called = arguments.next().unwrap_or_default();
    // Where that is refused, it goes on as it is.
    _ = Command::new(program).arg0(called).args(arguments).envs(missing).exec();
}

/// Elsewhere it goes on as it is.
#[cfg(not(unix))]
fn save_memory() {}
