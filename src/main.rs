//! The `skiff` binary.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Documents may be nested 10,000 levels deep, and are walked by recursion. Only pages that are touched cost memory.
const STACK_BYTES: usize = 64 << 20;

fn main() -> ExitCode {
    avoid_huge_pages();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().thread_stack_size(STACK_BYTES).build();
    match runtime {
        // A task of its own: the main thread has the stack that the system gives it.
        Ok(runtime) => {
            runtime.block_on(async { tokio::spawn(kubeskiff::cli::run()).await.unwrap_or(ExitCode::FAILURE) })
        }
        Err(error) => {
            eprintln!("skiff: the runtime can't be started: {error}");
            ExitCode::FAILURE
        }
    }
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
