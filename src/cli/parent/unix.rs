//! A process whose parent ends gets another parent: so a change of the parent id means that the
//! parent has ended.

use std::io;
use std::num::NonZeroU32;
#[cfg(target_os = "linux")]
use std::{sync::mpsc, thread};

use rustix::process::{Pid, getppid};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::gone_already;

/// The stack of the thread that subscribes to the notification; it does nothing else.
#[cfg(target_os = "linux")]
const THREAD_STACK_BYTES: usize = 64 << 10;

/// The process that started this one.
///
/// The system notifies when the thread of the parent that started this process ends. If the parent
/// itself continues, so does this process.
pub struct Parent {
    process: Option<Pid>,
    /// Signals to check the parent. They are handled, so they don't end the process.
    signals: Signal,
}

impl Parent {
    /// Finds the parent; `known` is its id, if the caller knows it.
    ///
    /// # Errors
    ///
    /// As for `end_with_parent`.
    pub fn find(known: Option<NonZeroU32>) -> io::Result<Self> {
        let known = known.and_then(|number| Pid::from_raw(i32::try_from(number.get()).ok()?));
        let process = known.or_else(getppid);
        let parent = Parent { process, signals: told()? };
        if getppid() == process { Ok(parent) } else { Err(gone_already()) }
    }

    /// Waits until the parent has ended.
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
    // The subscription ends with its thread, and idle threads of the runtime may end.
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
