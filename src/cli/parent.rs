//! A server that a test started ends with the process of that test: one that is killed leaves no server behind.

use std::io;
#[cfg(target_os = "linux")]
use std::{sync::mpsc, thread};

use rustix::process::{Pid, Signal as Number, getpid, getppid, kill_process};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The stack of the thread that asks the system: it does nothing else.
#[cfg(target_os = "linux")]
const THREAD_STACK_BYTES: usize = 64 << 10;

/// Has this process told to end, as by SIGTERM, once its parent is gone.
///
/// The system tells when the parent's thread ends that started it. The parent may go on then, and so does this process.
/// `parent` is the process that started this one, for those who know it: it may be gone by now, and this process another's.
///
/// # Errors
///
/// The system refuses to tell, or the parent is gone already.
pub fn end_with_parent(parent: Option<Pid>) -> io::Result<()> {
    let parent = parent.or_else(getppid);
    let watch = Watch::begin()?;
    if getppid() != parent {
        return Err(io::Error::other("the process that started this one is gone"));
    }
    tokio::spawn(until_gone(parent, watch));
    Ok(())
}

async fn until_gone(parent: Option<Pid>, mut watch: Watch) {
    while getppid() == parent {
        watch.next().await;
    }
    _ = kill_process(getpid(), Number::TERM);
}

/// Tells when it is time to look whether the parent is still there.
struct Watch {
    /// Handled, so that it ends nobody.
    signals: Signal,
}

#[cfg(target_os = "linux")]
impl Watch {
    fn begin() -> io::Result<Self> {
        let signals = signal(SignalKind::user_defined2())?;
        let (told, asked) = mpsc::sync_channel(1);
        // What is asked for ends with the thread that asks, and those of the runtime may end when they have nothing to do.
        thread::Builder::new().name("parent".to_owned()).stack_size(THREAD_STACK_BYTES).spawn(move || {
            _ = told.send(rustix::process::set_parent_process_death_signal(Some(Number::USR2)));
            loop {
                thread::park();
            }
        })?;
        asked.recv().map_err(io::Error::other)??;
        Ok(Watch { signals })
    }

    async fn next(&mut self) {
        _ = self.signals.recv().await;
    }
}

#[cfg(not(target_os = "linux"))]
impl Watch {
    fn begin() -> io::Result<Self> {
        Ok(Watch { signals: signal(SignalKind::user_defined2())? })
    }

    async fn next(&mut self) {
        const LOOKED_EVERY: std::time::Duration = std::time::Duration::from_millis(500);
        _ = tokio::time::timeout(LOOKED_EVERY, self.signals.recv()).await;
    }
}
