//! Answers of the store that callers share who ask at the same time.

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use super::super::StoreError;

/// How old the answer to a ping may be if nothing has failed.
pub(super) const PING_AGE_MAX: Duration = Duration::from_millis(50);

/// Reads of the newest revision: callers that arrive while one runs share the next.
#[derive(Default)]
pub(super) struct Probe {
    begun: AtomicU64,
    /// The number of the last one that succeeded, counted from 1.
    done: Mutex<u64>,
}

impl Probe {
    /// Waits for a read that began after this was called: `read`, unless another caller's does.
    pub async fn share(&self, read: impl Future<Output = Result<(), StoreError>>) -> Result<(), StoreError> {
        let wanted = self.begun.load(Ordering::SeqCst) + 1;
        let mut done = self.done.lock().await;
        if *done >= wanted {
            return Ok(());
        }
        let number = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
        read.await?;
        *done = number;
        Ok(())
    }
}

/// Whether the database is well, as it was last asked.
#[derive(Default)]
pub(super) struct Pings {
    last: Mutex<Option<Ping>>,
}

/// When the database was last asked whether it is well, and its answer.
struct Ping {
    asked: Instant,
    answer: Result<(), StoreError>,
}

impl Pings {
    /// The answer of `ask`, or of another caller's that is not too old.
    pub async fn share(
        &self,
        ask: impl Future<Output = Result<(), StoreError>>,
        is_faulty: impl Fn() -> bool,
    ) -> Result<(), StoreError> {
        let arrived = Instant::now();
        let mut last = self.last.lock().await;
        if let Some(Ping { asked, answer }) = &*last
            && (*asked >= arrived || answer.is_ok() && !is_faulty() && asked.elapsed() < PING_AGE_MAX)
        {
            return answer.clone();
        }
        let asked = Instant::now();
        let answer = ask.await;
        *last = Some(Ping { asked, answer: answer.clone() });
        answer
    }
}
