//! Compaction: superseded states are removed after a while, expired objects at their time.
//!
//! Now and then it is noted in the database which revision is the newest, so that states also grow old if no process
//! runs for that long. What is found in a file at the start is at least as old as the file.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use crate::clock::Clock;
use crate::meta::Revision;

use super::StoreError;
use super::database::{Database, WeakDatabase};

/// The number of steps that the history is divided into: a state stays at most one step longer than it must, or two
/// after a start.
const STEPS: u32 = 10;
/// The part of a step, as a divisor, after which the first revision is noted.
const FIRST_NOTE_PART: u32 = 6;
/// The minimum time between two checks.
const EVERY_MIN: Duration = Duration::from_millis(10);
/// How often expired objects are looked for.
const EXPIRY_EVERY: Duration = Duration::from_secs(1);

/// Runs until the database is closed. While there is nothing to remove, it waits for a write without using a timer.
/// `found` is what [`found`] returned.
pub(super) async fn run(database: WeakDatabase, history: Duration, found: Vec<(Revision, Duration)>, clock: Clock) {
    let every = (history / STEPS).clamp(EVERY_MIN, EXPIRY_EVERY);
    let mut times = Times::of(history, found);
    let mut moves = clock.moves();
    let Some(mut newest) = database.upgrade().map(|database| database.newest()) else { return };
    loop {
        let Some(may_expire) = database.upgrade().map(|database| database.may_expire()) else { return };
        let is_at_rest = !may_expire && times.seen.is_empty();
        tokio::select! {
            () = tokio::time::sleep(every), if !is_at_rest => {}
            () = moves.next() => {}
            written = newest.changed(), if is_at_rest => if written.is_err() { return },
        }
        let Some(database) = database.upgrade() else { return };
        let now = Instant::now();
        if database.compacted() < database.revision() {
            times.see(database.revision(), now);
        }
        if let Some(due) = times.take_due(now)
            && let Err(error) = database.compact(due).await
        {
            tracing::warn!(%error, "compaction failed, it will be tried again");
        }
        if let Some((revision, age)) = times.unnoted(now) {
            match database.store().note_time(revision, age).await {
                Ok(()) => times.noted = (now, revision),
                Err(error) => {
                    tracing::warn!(%error, "the time of a revision could not be noted, it will be tried again");
                }
            }
        }
        if let Err(error) = database.expire(clock.now().as_millisecond()).await {
            tracing::warn!(%error, "expired objects could not be removed, it will be tried again");
        }
    }
}

/// What is in the database at the start that is not compacted yet: revisions in rising order, and the age of what was
/// stored up to each.
pub(super) async fn found(database: &Database) -> Result<Vec<(Revision, Duration)>, StoreError> {
    let store = database.store();
    let (compacted, age) = (database.compacted(), store.age());
    let mut all = store.noted_times().await?;
    all.push((database.revision(), age));
    all.retain(|(revision, _)| *revision > compacted);
    settle_ages(&mut all);
    Ok(all)
}

/// Makes no revision younger than one after it: a clock may have been set back.
fn settle_ages(found: &mut [(Revision, Duration)]) {
    let mut least = Duration::ZERO;
    for (_, age) in found.iter_mut().rev() {
        least = least.max(*age);
        *age = least;
    }
}

/// Which revision was the newest at which time, as far as they are not old enough to be compacted.
struct Times {
    history: Duration,
    /// Both rise.
    seen: VecDeque<(Instant, Revision)>,
    /// What was noted last, and when.
    noted: (Instant, Revision),
}

impl Times {
    /// Those that earlier processes noted, and at last the one at the start.
    fn of(history: Duration, found: Vec<(Revision, Duration)>) -> Self {
        let now = Instant::now();
        // The first note of a process is soon made: it may not run for long.
        let step = history / STEPS;
        let due = now.checked_sub(step.saturating_sub(step / FIRST_NOTE_PART)).unwrap_or(now);
        let mut times = Times { history, seen: VecDeque::new(), noted: (due, Revision::default()) };
        for (revision, age) in found {
            if let Some(at) = now.checked_sub(age.min(history)) {
                if let Some(&before) = times.seen.back() {
                    times.noted = before;
                }
                times.see(revision, at);
            }
        }
        times
    }

    /// If it is newer than those before.
    fn see(&mut self, newest: Revision, at: Instant) {
        if self.seen.back().is_none_or(|(_, before)| *before < newest) {
            self.seen.push_back((at, newest));
        }
    }

    /// The newest revision that is old enough to be compacted, the first time.
    fn take_due(&mut self, now: Instant) -> Option<Revision> {
        let mut due = None;
        while let Some((_, revision)) = self.seen.front().filter(|(at, _)| now.duration_since(*at) >= self.history) {
            due = Some(*revision);
            self.seen.pop_front();
        }
        due
    }

    /// The newest revision and for how long it has been that, unless it was noted, or another one a short while ago.
    fn unnoted(&self, now: Instant) -> Option<(Revision, Duration)> {
        let (since, newest) = *self.seen.back()?;
        let (at, noted) = self.noted;
        let is_due = noted < newest && now.duration_since(at) >= self.history / STEPS;
        is_due.then(|| (newest, now.duration_since(since)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Duration = Duration::from_secs(30);
    const HISTORY: Duration = Duration::from_secs(300);

    fn found(ages_s: &[u64]) -> Vec<(Revision, Duration)> {
        let revisions = (1..).map(|number| Revision::new(10 * number));
        let mut found: Vec<_> = revisions.zip(ages_s.iter().map(|age_s| Duration::from_secs(*age_s))).collect();
        settle_ages(&mut found);
        found
    }

    #[test]
    fn what_is_old_enough_is_due_whatever_the_clock_said() {
        let due = |ages_s: &[u64]| Times::of(HISTORY, found(ages_s)).take_due(Instant::now()).map(Revision::get);
        assert_eq!(due(&[400, 310, 200, 0]), Some(20));
        assert_eq!(due(&[299, 0]), None);
        assert_eq!(due(&[0, 310, 0]), Some(20), "the first was noted while the clock was ahead");
        assert_eq!(due(&[310]), Some(10));
        assert_eq!(due(&[]), None);
    }

    #[test]
    fn a_revision_is_noted_soon_after_the_start_and_then_once_a_step() {
        let begun = Instant::now();
        let mut times = Times::of(HISTORY, Vec::new());
        let revision = Revision::new(10);
        times.see(revision, begun);
        assert_eq!(times.unnoted(begun), None);
        let soon = begun + STEP / 2;
        assert_eq!(times.unnoted(soon), Some((revision, STEP / 2)));
        assert_eq!(times.unnoted(soon), Some((revision, STEP / 2)), "it was not noted");
        times.noted = (soon, revision);
        times.see(Revision::new(11), soon);
        assert_eq!([soon, soon + STEP].map(|now| times.unnoted(now).is_some()), [false, true]);
        let noted = Times::of(HISTORY, found(&[20, 10]));
        let now = Instant::now();
        assert_eq!([now, now + STEP / 2].map(|now| noted.unnoted(now).is_some()), [false, true]);
    }
}
