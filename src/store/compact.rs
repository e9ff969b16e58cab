//! Compaction: superseded states go after a while, expired objects at their time.

use std::collections::VecDeque;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use crate::meta::Revision;

use super::database::{Database, WeakDatabase};
use super::{Collection, Guard, Op, StoreError, Stored, Write, WriteError};

/// How finely time is cut: a state stays at most this share longer than it must.
const STEPS: u32 = 10;
/// How often expired objects are looked for.
const EXPIRY_EVERY: Duration = Duration::from_secs(1);

/// Runs until the database is closed.
pub(super) async fn run(database: WeakDatabase, history: Duration) {
    let every = (history / STEPS).clamp(Duration::from_millis(10), EXPIRY_EVERY);
    let mut seen: VecDeque<(Instant, Revision)> = VecDeque::new();
    loop {
        tokio::time::sleep(every).await;
        let Some(database) = database.upgrade() else { return };
        let now = Instant::now();
        if seen.back().is_none_or(|(_, revision)| *revision < database.revision()) {
            seen.push_back((now, database.revision()));
        }
        let mut due = None;
        while let Some((_, revision)) = seen.front().filter(|(since, _)| now.duration_since(*since) >= history) {
            due = Some(*revision);
            seen.pop_front();
        }
        if let Some(due) = due
            && let Err(error) = database.compact(due).await
        {
            tracing::warn!(%error, "compaction failed, it will be tried again");
        }
        if let Err(error) = database.expire(Timestamp::now().as_millisecond()).await {
            tracing::warn!(%error, "expired objects could not be removed, it will be tried again");
        }
    }
}

/// Deletes what has expired, unless it has changed.
pub(super) async fn expire(database: &Database, expired: Vec<(Collection, Stored)>) -> Result<(), StoreError> {
    for (collection, stored) in expired {
        let guards = vec![Guard::At { revision: stored.revision }];
        let write = Write { collection, key: stored.key, op: Op::Delete, guards };
        match database.write(write).await {
            Ok(_) | Err(WriteError::GuardFailed) => {}
            // The others have their turn the next time.
            Err(WriteError::Busy) => return Ok(()),
            Err(WriteError::Store(error)) => return Err(error),
        }
    }
    Ok(())
}
