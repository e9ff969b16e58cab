//! Compaction: superseded states are removed after a while, expired objects at their time.
//!
//! What is found in a file at the start counts as old as the file: so a database is compacted even if it is never open
//! for that long.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use crate::clock::Clock;
use crate::meta::Revision;

use super::database::WeakDatabase;

/// The number of steps that the history is divided into: a state stays at most one step longer than it must.
const STEPS: u32 = 10;
/// The minimum time between two checks.
const EVERY_MIN: Duration = Duration::from_millis(10);
/// How often expired objects are looked for.
const EXPIRY_EVERY: Duration = Duration::from_secs(1);

/// Runs until the database is closed. While there is nothing to remove, it waits for a write without using a timer.
/// `found` is the revision at the start, and the age of what is stored up to it.
pub(super) async fn run(database: WeakDatabase, history: Duration, found: (Revision, Duration), clock: Clock) {
    let every = (history / STEPS).clamp(EVERY_MIN, EXPIRY_EVERY);
    let mut seen: VecDeque<(Instant, Revision)> = VecDeque::new();
    let mut moves = clock.moves();
    let Some(mut newest) = database.upgrade().map(|database| database.newest()) else { return };
    let (revision, age) = found;
    if let Some(since) = Instant::now().checked_sub(age.min(history))
        && database.upgrade().is_some_and(|database| database.compacted() < revision)
    {
        seen.push_back((since, revision));
    }
    loop {
        let Some(may_expire) = database.upgrade().map(|database| database.may_expire()) else { return };
        let is_at_rest = !may_expire && seen.is_empty();
        tokio::select! {
            () = tokio::time::sleep(every), if !is_at_rest => {}
            () = moves.next() => {}
            written = newest.changed(), if is_at_rest => if written.is_err() { return },
        }
        let Some(database) = database.upgrade() else { return };
        let now = Instant::now();
        if seen.back().is_none_or(|(_, revision)| *revision < database.revision())
            && database.compacted() < database.revision()
        {
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
        if let Err(error) = database.expire(clock.now().as_millisecond()).await {
            tracing::warn!(%error, "expired objects could not be removed, it will be tried again");
        }
    }
}
