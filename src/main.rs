//! The `skiff` binary.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Documents may be nested 10,000 levels deep, and are walked by recursion. Only pages that are touched cost memory.
const STACK_BYTES: usize = 64 << 20;

fn main() -> ExitCode {
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
