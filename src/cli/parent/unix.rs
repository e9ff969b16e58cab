//! Processes without a parent get another one: so one that has another than before has lost its own.

use std::io;
use std::num::NonZeroU32;
#[cfg(target_os = "linux")]
use std::{sync::mpsc, thread};

use rustix::process::{Pid, getppid};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::gone_already;

/// The stack of the thread that asks the system: it does nothing else.
#[cfg(target_os = "linux")]
const THREAD_STACK_BYTES: usize = 64 << 10;

/// The process that started this one.
///
/// The system tells when the parent's thread ends that started it. The parent may go on then, and so does this process.
pub struct Parent {
    process: Option<Pid>,
    /// Tells when it is time to look. Handled, so that it ends nobody.
    signals: Signal,
}

impl Parent {
    /// Errors: as of `end_with_parent`.
    pub fn find(known: Option<NonZeroU32>) -> io::Result<Self> {
        let known = known.and_then(|number| Pid::from_raw(i32::try_from(number.get()).ok()?));
        let process = known.or_else(getppid);
        let parent = Parent { process, signals: told()? };
        if getppid() == process { Ok(parent) } else { Err(gone_already()) }
    }

    /// Waits until it is gone.
    pub async fn gone(mut self) {
        while getppid() == self.process {
            self.next().await;
        }
    }
}

#[cfg(target_os = "linux")]
fn told() -> io::Result<Signal> {
    use rustix::process::{Signal as Number, set_parent_process_death_signal};

    let signals = signal(SignalKind::user_defined2())?;
    let (told, asked) = mpsc::sync_channel(1);
    // What is asked for ends with the thread that asks, and those of the runtime may end when they have nothing to do.
    thread::Builder::new().name("parent".to_owned()).stack_size(THREAD_STACK_BYTES).spawn(move || {
        _ = told.send(set_parent_process_death_signal(Some(Number::USR2)));
        loop {
            thread::park();
        }
    })?;
    asked.recv().map_err(io::Error::other)??;
    Ok(signals)
}

#[cfg(target_os = "linux")]
impl Parent {
    async fn next(&mut self) {
        _ = self.signals.recv().await;
    }
}

#[cfg(not(target_os = "linux"))]
fn told() -> io::Result<Signal> {
    signal(SignalKind::user_defined2())
}

#[cfg(not(target_os = "linux"))]
impl Parent {
    async fn next(&mut self) {
        const LOOKED_EVERY: std::time::Duration = std::time::Duration::from_millis(500);
        _ = tokio::time::timeout(LOOKED_EVERY, self.signals.recv()).await;
    }
}
