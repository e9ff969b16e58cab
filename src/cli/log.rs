//! Writes the log to stderr, in a thread of its own.
//!
//! Logging never waits and never fails, whatever happens to stderr: a line that can't be written is
//! lost. If the reader is slower than the log, lines beyond a bound are dropped and counted in a
//! message.

use std::io::{self, IsTerminal as _, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;

use tracing_subscriber::EnvFilter;

/// How many lines may wait to be written.
const WAITING_MAX: usize = 1024;
/// How long the process waits for the last lines when it ends.
const LAST_LINES_WAIT: Duration = Duration::from_millis(100);
/// The default level of the log.
const LEVEL: &str = "warn";

/// A handle to the log of the process.
#[derive(Clone)]
pub struct Log {
    waiting: SyncSender<Message>,
    lost: Arc<AtomicU64>,
}

enum Message {
    Line(Vec<u8>),
    /// Sent once all previous lines are written.
    Flushed(SyncSender<()>),
}

impl Log {
    /// Starts the log, with the levels from `SKIFF_LOG`.
    ///
    /// # Errors
    ///
    /// The thread that writes the log can't be started.
    pub fn begin() -> io::Result<Self> {
        let log = Log::to(io::stderr())?;
        let lines = log.clone();
        // Only in tests there may be another subscriber already.
        _ = tracing::subscriber::set_global_default(
            tracing_subscriber::fmt()
                .with_writer(move || lines.clone())
                // It would report them by a macro that panics.
                .log_internal_errors(false)
                .with_ansi(io::stderr().is_terminal())
                .with_env_filter(EnvFilter::try_from_env("SKIFF_LOG").unwrap_or_else(|_| LEVEL.into()))
                .finish(),
        );
        Ok(log)
    }

    fn to(out: impl Write + Send + 'static) -> io::Result<Self> {
        let (waiting, lines) = sync_channel(WAITING_MAX);
        let lost = Arc::new(AtomicU64::new(0));
        let told = Arc::clone(&lost);
        thread::Builder::new().name("log".to_owned()).spawn(move || write(&lines, out, &told))?;
        Ok(Log { waiting, lost })
    }

    /// Waits for a short time until the previous lines are written.
    pub fn flush(&self) {
        let (flushed, waiting) = sync_channel(1);
        if self.waiting.try_send(Message::Flushed(flushed)).is_ok() {
            _ = waiting.recv_timeout(LAST_LINES_WAIT);
        }
    }
}

fn write(lines: &Receiver<Message>, mut out: impl Write, lost: &AtomicU64) {
    for message in lines {
        match message {
            Message::Line(line) => _ = out.write_all(&line),
            Message::Flushed(waiting) => _ = waiting.try_send(()),
        }
        let count = lost.swap(0, Ordering::Relaxed);
        if count > 0 {
            _ = out.write_all(format!("skiff: lines of the log are lost, as they came too fast: {count}\n").as_bytes());
        }
    }
}

/// Each call passes a whole line.
impl Write for Log {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if let Err(TrySendError::Full(_)) = self.waiting.try_send(Message::Line(line.to_vec())) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Writes only while it may.
    #[derive(Clone, Default)]
    struct Slow {
        written: Arc<Mutex<Vec<u8>>>,
        may_write: Arc<Mutex<()>>,
    }

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _may = self.may_write.lock().expect("no thread panics");
            self.written.lock().expect("no thread panics").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn logging_does_not_wait_and_what_is_lost_is_counted() {
        let out = Slow::default();
        let stuck = out.may_write.lock().expect("no thread panics");
        let log = Log::to(out.clone()).expect("a thread can be made");
        for line in 0..WAITING_MAX + 100 {
            log.clone().write_all(format!("{line}\n").as_bytes()).expect("it does not fail");
        }
        drop(stuck);
        // The count is taken before it is written.
        let text = || String::from_utf8(out.written.lock().expect("no thread panics").clone()).expect("it is text");
        while !text().contains("lines of the log are lost") {
            thread::yield_now();
        }
        let written = text();
        assert!(written.starts_with("0\n"), "{written}");
        assert!(written.lines().count() <= WAITING_MAX + 2);
    }

    #[test]
    fn a_broken_stderr_costs_nothing() {
        struct Gone;
        impl Write for Gone {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
        }
        let mut log = Log::to(Gone).expect("a thread can be made");
        log.write_all(b"a line\n").expect("it does not fail");
        Log::flush(&log);
        log.write_all(b"another line\n").expect("it does not fail");
    }
}
