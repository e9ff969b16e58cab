//! The time that the clients of a control plane see.
//!
//! Input: nothing, or how the clock is to be set. Output: the time, and a notification of each change, so
//! that tasks that wait for a time check again. A clock either runs at the speed of the machine's
//! clock, with a fixed offset, or it is frozen. Whatever no client sees (timeouts, certificates,
//! leases between processes, logs) follows the machine's clock.

use std::sync::{Arc, PoisonError, RwLock};

use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;

/// The latest second since 1970 that a clock can be set to: the end of the year 9998, so that a
/// time one year later can still be written. The earliest is 0.
const SECONDS_MAX: i64 = 253_370_764_799;

/// A clock. A clone is another handle to the same clock.
#[derive(Clone, Debug)]
pub struct Clock(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    setting: RwLock<Setting>,
    moves: watch::Sender<u64>,
}

/// How a clock differs from the machine's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Setting {
    /// How far a running clock is ahead of the machine's clock; negative if it is behind.
    pub offset: SignedDuration,
    /// The time that a frozen clock shows; `None` for a running one.
    pub frozen: Option<Timestamp>,
}

/// A change of a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockStep {
    /// Set the clock to this time.
    Set(Timestamp),
    /// Move the clock forward, or back if negative.
    Advance(SignedDuration),
    /// Set how far the clock is ahead of the machine's clock; negative if it is behind.
    Offset(SignedDuration),
    /// Freeze the clock, or let it run on from the time that it shows.
    Freeze(bool),
    /// Follow the machine's clock again.
    Reset,
}

/// The clock would show a time before 1970 or after the year 9998.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfRange;

impl Default for Clock {
    /// A clock that follows the machine's clock.
    fn default() -> Self {
        Clock::with(Setting::default())
    }
}

impl Clock {
    fn with(setting: Setting) -> Self {
        Clock(Arc::new(Inner { setting: RwLock::new(setting), moves: watch::Sender::new(0) }))
    }

    /// A clock frozen at `time`.
    pub fn frozen_at(time: Timestamp) -> Self {
        Clock::with(Setting { frozen: Some(time), ..Setting::default() })
    }

    /// A new clock that shows the same time and is set independently.
    pub fn copy(&self) -> Self {
        Clock::with(self.setting())
    }

    /// The time that the clock shows.
    pub fn now(&self) -> Timestamp {
        self.setting().at(Timestamp::now())
    }

    pub fn setting(&self) -> Setting {
        *self.0.setting.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn is_frozen(&self) -> bool {
        self.setting().frozen.is_some()
    }

    /// Applies all of `steps` in order, or none of them.
    ///
    /// # Errors
    ///
    /// One of the steps leads to a time that is out of range.
    pub fn step(&self, steps: &[ClockStep]) -> Result<(), OutOfRange> {
        {
            let mut setting = self.0.setting.write().unwrap_or_else(PoisonError::into_inner);
            let machine = Timestamp::now();
            *setting = steps.iter().try_fold(*setting, |setting, step| setting.stepped(*step, machine))?;
        }
        self.0.moves.send_modify(|moves| *moves = moves.wrapping_add(1));
        Ok(())
    }

    /// A receiver of all changes from now on.
    pub fn moves(&self) -> Moves {
        Moves(self.0.moves.subscribe())
    }
}

impl Setting {
    /// The time that the clock shows when the machine's clock shows `machine`.
    fn at(&self, machine: Timestamp) -> Timestamp {
        self.frozen.unwrap_or_else(|| machine.saturating_add(self.offset).unwrap_or(machine))
    }

    fn stepped(self, step: ClockStep, machine: Timestamp) -> Result<Setting, OutOfRange> {
        let now = self.at(machine);
        let showing = |time: Timestamp| match self.frozen {
            Some(_) => Setting { frozen: Some(time), ..self },
            None => Setting { offset: time.duration_since(machine), ..self },
        };
        let moved = |from: Timestamp, by: SignedDuration| from.checked_add(by).map_err(|_| OutOfRange);
        let stepped = match step {
            ClockStep::Set(time) => showing(time),
            ClockStep::Advance(by) => showing(moved(now, by)?),
            ClockStep::Offset(offset) => showing(moved(machine, offset)?),
            ClockStep::Freeze(true) => Setting { frozen: Some(now), ..self },
            ClockStep::Freeze(false) => Setting { offset: now.duration_since(machine), frozen: None },
            ClockStep::Reset => Setting::default(),
        };
        let shown = stepped.at(machine);
        if (0..=SECONDS_MAX).contains(&shown.as_second()) { Ok(stepped) } else { Err(OutOfRange) }
    }
}

/// A receiver of a clock's changes.
pub struct Moves(watch::Receiver<u64>);

impl Moves {
    /// Waits until the clock is changed; never returns once all handles to the clock are dropped.
    /// Cancel-safe.
    pub async fn next(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: &str = "2030-01-01T12:00:00Z";

    fn at(text: &str) -> Timestamp {
        text.parse().expect("it is a time")
    }

    /// Checks what a clock shows after some steps, all taken at noon.
    fn check(steps: &[ClockStep], expect: &str) {
        let stepped = steps.iter().try_fold(Setting::default(), |setting, step| setting.stepped(*step, at(NOON)));
        assert_eq!(stepped.map(|setting| setting.at(at(NOON))), Ok(at(expect)), "{steps:?}");
    }

    #[test]
    fn a_clock_is_set_and_moved_whether_it_runs_or_stands() {
        let hour = SignedDuration::from_hours(1);
        check(&[ClockStep::Set(at("2031-01-01T00:00:00Z")), ClockStep::Advance(hour)], "2031-01-01T01:00:00Z");
        check(&[ClockStep::Freeze(true), ClockStep::Advance(hour), ClockStep::Freeze(false)], "2030-01-01T13:00:00Z");
        check(&[ClockStep::Advance(hour), ClockStep::Offset(-hour)], "2030-01-01T11:00:00Z");
        check(&[ClockStep::Freeze(true), ClockStep::Set(at("2031-01-01T00:00:00Z")), ClockStep::Reset], NOON);
    }

    #[test]
    fn one_that_stands_does_not_run_and_one_that_runs_does() {
        let stopped = Setting::default().stepped(ClockStep::Freeze(true), at(NOON)).expect("it is in range");
        assert_eq!(stopped.at(at("2040-01-01T00:00:00Z")), at(NOON));
        let runs = stopped.stepped(ClockStep::Freeze(false), at("2030-01-01T14:00:00Z")).expect("it is in range");
        assert_eq!(runs.at(at("2030-01-01T15:00:00Z")), at("2030-01-01T13:00:00Z"));
    }

    #[test]
    fn what_can_not_be_shown_is_refused_and_changes_nothing() {
        let clock = Clock::frozen_at(at(NOON));
        let hour = SignedDuration::from_hours(1);
        for step in [
            ClockStep::Set(at("1969-12-31T23:59:59Z")),
            ClockStep::Advance(hour * 100_000_000),
            ClockStep::Advance(-SignedDuration::MAX),
        ] {
            assert_eq!(clock.step(&[ClockStep::Advance(hour), step]), Err(OutOfRange), "{step:?}");
        }
        assert_eq!(clock.now(), at(NOON));
    }

    #[tokio::test]
    async fn a_waiting_receiver_is_told_of_a_move_and_a_copy_is_not_moved() {
        let clock = Clock::frozen_at(at(NOON));
        let (mut moves, copy) = (clock.moves(), clock.copy());
        clock.step(&[ClockStep::Advance(SignedDuration::from_secs(1))]).expect("it is in range");
        moves.next().await;
        assert_eq!((clock.now(), copy.now()), (at("2030-01-01T12:00:01Z"), at(NOON)));
    }
}
