//! The signals that end the server.

use std::io;
use std::process;
use std::thread;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

/// How long an orderly end may take. What is cut off then was not acknowledged: that is on disk.
const END_MAX: Duration = Duration::from_millis(900);
/// The thread waits, and does nothing else.
const STACK_BYTES: usize = 256 << 10;
/// The exit code after a second signal, as Kubernetes' programs have it.
const SECOND_SIGNAL: i32 = 1;

/// Waits for SIGTERM and SIGINT on a thread of its own, so that they count also while all others are busy.
///
/// The receiver gets the name of the first one. From then on the process has 900 ms to end by itself; it ends at once at
/// the second one.
///
/// # Errors
///
/// The thread can't be made, or the system refuses the handlers.
pub fn stop_requested() -> io::Result<oneshot::Receiver<&'static str>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut signals = {
        let _inside = runtime.enter();
        [signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?]
    };
    let (first, requested) = oneshot::channel();
    let waiting = async move {
        // A receiver that is gone needs no signal.
        _ = first.send(next(&mut signals).await);
        tokio::select! {
            _ = next(&mut signals) => process::exit(SECOND_SIGNAL),
            () = tokio::time::sleep(END_MAX) => process::exit(0),
        }
    };
    let thread = thread::Builder::new().name("signals".to_owned()).stack_size(STACK_BYTES);
    thread.spawn(move || runtime.block_on(waiting))?;
    Ok(requested)
}

async fn next([terminate, interrupt]: &mut [Signal; 2]) -> &'static str {
    tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    }
}
