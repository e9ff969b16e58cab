//! The signals that end the server, and their equivalents on Windows.

use std::io;
use std::process;
use std::thread;
use std::time::Duration;

use tokio::sync::oneshot;

/// How long an orderly shutdown may take. Whatever is cut off then was not acknowledged: acknowledged writes are on
/// disk.
const END_MAX: Duration = Duration::from_millis(900);
/// The thread waits, and does nothing else.
const STACK_BYTES: usize = 256 << 10;
/// The exit code after a second signal, as in Kubernetes' programs.
const SECOND_SIGNAL: i32 = 1;

/// Waits for SIGTERM and SIGINT on a thread of its own, so that they are handled even if all other threads are busy. On
/// Windows these are Ctrl-Break and the window's end, and Ctrl-C.
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
        Signals::handled()?
    };
    let (first, requested) = oneshot::channel();
    let waiting = async move {
        // If the receiver is gone, the signal is not needed.
        _ = first.send(signals.next().await);
        tokio::select! {
            _ = signals.next() => process::exit(SECOND_SIGNAL),
            () = tokio::time::sleep(END_MAX) => process::exit(0),
        }
    };
    let thread = thread::Builder::new().name("signals".to_owned()).stack_size(STACK_BYTES);
    thread.spawn(move || runtime.block_on(waiting))?;
    Ok(requested)
}

/// Ends this process as SIGTERM does.
#[cfg(unix)]
pub fn request_stop() {
    use rustix::process::{Signal, getpid, kill_process};
    _ = kill_process(getpid(), Signal::TERM);
}

#[cfg(unix)]
struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn handled() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Signals { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

/// The substitute on Windows, which has no signals: the process notifies itself.
#[cfg(windows)]
static STOP: tokio::sync::Notify = tokio::sync::Notify::const_new();

/// Ends this process as Ctrl-Break does.
#[cfg(windows)]
pub fn request_stop() {
    STOP.notify_one();
}

#[cfg(windows)]
struct Signals {
    ctrl_break: tokio::signal::windows::CtrlBreak,
    ctrl_close: tokio::signal::windows::CtrlClose,
    ctrl_c: tokio::signal::windows::CtrlC,
}

#[cfg(windows)]
impl Signals {
    fn handled() -> io::Result<Self> {
        use tokio::signal::windows::{ctrl_break, ctrl_c, ctrl_close};
        Ok(Signals { ctrl_break: ctrl_break()?, ctrl_close: ctrl_close()?, ctrl_c: ctrl_c()? })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.ctrl_break.recv() => "Ctrl-Break",
            _ = self.ctrl_close.recv() => "the end of its window",
            _ = self.ctrl_c.recv() => "Ctrl-C",
            () = STOP.notified() => "the end of its parent",
        }
    }
}
