//! A server that a test started ends with the process of that test: one that is killed leaves no server behind.

use std::io;

use rustix::process::{Pid, Signal as Number, getpid, getppid, kill_process};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Has this process told to end, as by SIGTERM, once its parent is gone.
///
/// The system tells when the parent's thread ends that started it. The parent may go on then, and so does this process.
///
/// # Errors
///
/// The system refuses to tell.
pub fn end_with_parent() -> io::Result<()> {
    let parent = getppid();
    let watch = Watch::begin()?;
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
        rustix::process::set_parent_process_death_signal(Some(Number::USR2))?;
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
