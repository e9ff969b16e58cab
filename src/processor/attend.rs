//! Watches over work while it runs on a thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;

use super::Share;
use super::turns::{Alone, Turn, poll_on_thread};
use crate::work::{Ended, Oversee, Polled};

/// How long work may run on the thread where it began.
const INLINE_MAX: Duration = Duration::from_millis(1);
/// Work that takes longer than this is long even if it made few steps. (The system may have run
/// other threads meanwhile.)
const INLINE_WALL_MAX: Duration = Duration::from_millis(4);
/// A part of a stream that takes no longer is short. Parts are small: many streams that make one after another keep the
/// processors as busy as long work would.
pub(super) const SHORT_PART_MAX: Duration = Duration::from_micros(200);
/// How many checks work may make before it counts as long: in [`INLINE_MAX`] of real work there are
/// more.
const LOOKS_INLINE_MAX: u32 = 8;
/// How long one request works before another one gets a turn.
const SLICE: Duration = Duration::from_millis(50);
/// How long to sleep so that another thread can take over the other tasks of this one: at first, and at most. On a busy
/// machine it takes longer to be woken.
const HAND_OVER_PAUSE: Duration = Duration::from_micros(100);
const HAND_OVER_PAUSE_MAX: Duration = Duration::from_millis(1);
/// How long work goes on at most before it tries again to hand them over.
const HAND_OVER_EVERY_MAX: Duration = Duration::from_millis(32);
/// How long the server's own background work waits for the answer of a service.
const BACKGROUND_WAIT_MAX: Duration = Duration::from_secs(30);

/// Whether the server's own background work blocks a thread to wait: at most one thread at a time.
static BACKGROUND_WAITS: AtomicBool = AtomicBool::new(false);

/// Watches over a request.
pub(super) struct Attendant {
    share: Arc<Share>,
    run: WorkStretch,
    /// The processor time of earlier runs, and the thread's clock at the first check of this run.
    used: Duration,
    clock: Duration,
    turn: Option<(Turn, Instant)>,
    /// Until when the request continues without a turn, because too many others wait.
    alone: Option<(Alone, Instant)>,
}

/// Watches over the server's own background work, and over streams that go on for long: it needs no turn, and nothing
/// ends it.
pub(super) struct Background {
    run: WorkStretch,
    /// Whether it is a stream, whose parts are alike: if one was not short, the next leaves its thread at once.
    is_stream: bool,
    was_short: bool,
}

/// One stretch of work on a thread.
struct WorkStretch {
    begun: Instant,
    looks: u32,
    hand_over: HandOver,
}

/// The next try to hand over a thread's other tasks.
struct HandOver {
    due: Instant,
    /// The pause that it takes.
    pause: Duration,
    /// From there to the one after it.
    interval: Duration,
}

impl WorkStretch {
    fn begin() -> Self {
        let now = Instant::now();
        let hand_over = HandOver { due: now, pause: HAND_OVER_PAUSE, interval: INLINE_MAX };
        WorkStretch { begun: now, looks: 0, hand_over }
    }

    fn is_long(&self, now: Instant) -> bool {
        let ran = now.duration_since(self.begun);
        ran > INLINE_WALL_MAX || (ran > INLINE_MAX && self.looks > LOOKS_INLINE_MAX)
    }

    /// Lets another thread take over the sockets and tasks of this one. That may not happen at
    /// once, so it is retried at growing intervals, which have a bound: those tasks wait.
    fn hand_over(&mut self, now: Instant) {
        let HandOver { due, pause, interval } = self.hand_over;
        if now >= due {
            leave_thread_for(pause);
            self.hand_over = HandOver {
                due: now + interval,
                pause: (pause * 2).min(HAND_OVER_PAUSE_MAX),
                interval: (interval * 4).min(HAND_OVER_EVERY_MAX),
            };
        }
    }
}

impl Attendant {
    pub fn new(share: Arc<Share>) -> Self {
        Attendant {
            share,
            run: WorkStretch::begin(),
            used: Duration::ZERO,
            clock: Duration::ZERO,
            turn: None,
            alone: None,
        }
    }

    fn is_long(&self, now: Instant) -> bool {
        self.share.was_long.load(Ordering::Relaxed) || self.turn.is_some() || self.run.is_long(now)
    }

    fn take_turn(&mut self, now: Instant) -> Result<(), Ended> {
        if self.turn.is_none() {
            self.turn = self.share.waited_for().map(|turn| (turn, now));
        }
        match &self.turn {
            Some((_, since))
                if now.duration_since(*since) < SLICE || !self.share.turns.are_wanted(&self.share.user) =>
            {
                return Ok(());
            }
            Some(_) => self.turn = None,
            None if self.alone.as_ref().is_some_and(|(_, until)| now < *until) => return Ok(()),
            None => {}
        }
        let share = &self.share;
        let take = || share.turns.take_on_thread(&share.user, || share.is_wanted(Instant::now()));
        match on_blocking_thread(take) {
            Ok(turn) => (self.turn, self.alone) = (Some((turn, Instant::now())), None),
            // Its writes may already be stored: if the client retried the request, it would write
            // twice.
            Err(Ended::Overload) if share.is_change => {
                let alone = self.alone.take().map_or_else(|| share.turns.go_alone(), |(alone, _)| alone);
                self.alone = Some((alone, Instant::now() + SLICE));
            }
            Err(ended) => return Err(ended),
        }
        Ok(())
    }

    fn note_look(&mut self) {
        if self.run.looks == 0 {
            self.clock = processor_time();
        }
        self.run.looks += 1;
    }

    fn used(&self) -> Duration {
        match self.run.looks {
            0 => self.used,
            _ => self.used + processor_time().saturating_sub(self.clock),
        }
    }
}

impl Oversee for Attendant {
    fn begin(&mut self) {
        self.run = WorkStretch::begin();
    }

    fn look(&mut self) -> Result<(), Ended> {
        let now = Instant::now();
        self.note_look();
        self.share.is_wanted(now)?;
        if !self.is_long(now) {
            return Ok(());
        }
        if self.run.is_long(now) {
            self.share.note_long();
        }
        if self.used() > self.share.budget {
            return Err(Ended::Budget);
        }
        self.share.has_memory()?;
        self.run.hand_over(now);
        if self.share.takes_turns { self.take_turn(now) } else { Ok(()) }
    }

    fn glance(&mut self) {
        let now = Instant::now();
        self.note_look();
        if self.is_long(now) {
            self.run.hand_over(now);
        }
    }

    fn commit(&mut self) {
        self.share.has_written.store(true, Ordering::Relaxed);
    }

    /// Gives up the turn while it waits. The waiting time does not make the request a long one.
    fn wait(&mut self, poll: Polled<'_>) -> Result<(), Ended> {
        may_hold_thread()?;
        let _asking = self.share.turns.ask()?;
        self.end();
        let waited = block_in_place(|| poll_on_thread(poll, || self.share.is_wanted(Instant::now())));
        self.run = WorkStretch::begin();
        waited
    }

    fn end(&mut self) {
        self.used = self.used();
        (self.turn, self.alone) = (None, None);
        // Also drop a turn that was granted before the work began, and was not used.
        drop(self.share.waited_for());
    }
}

impl Background {
    pub fn new() -> Self {
        Background { run: WorkStretch::begin(), is_stream: false, was_short: true }
    }

    pub fn of_stream() -> Self {
        Background { is_stream: true, ..Background::new() }
    }
}

impl Oversee for Background {
    fn begin(&mut self) {
        self.run = WorkStretch::begin();
    }

    fn look(&mut self) -> Result<(), Ended> {
        self.glance();
        Ok(())
    }

    fn glance(&mut self) {
        let now = Instant::now();
        self.run.looks += 1;
        if self.run.is_long(now) || (self.is_stream && !self.was_short) {
            self.run.hand_over(now);
        }
    }

    fn wait(&mut self, poll: Polled<'_>) -> Result<(), Ended> {
        may_hold_thread()?;
        let _waits = BackgroundWaits::begin()?;
        let until = Instant::now() + BACKGROUND_WAIT_MAX;
        let in_time = || if Instant::now() < until { Ok(()) } else { Err(Ended::Overload) };
        let waited = block_in_place(|| poll_on_thread(poll, in_time));
        self.run = WorkStretch::begin();
        waited
    }

    fn end(&mut self) {
        // A look that found nothing to do says nothing about the next part.
        if self.run.looks > 0 {
            self.was_short = self.run.begun.elapsed() <= SHORT_PART_MAX;
        }
    }
}

/// A wait of the server's own background work, until this is dropped.
struct BackgroundWaits;

impl BackgroundWaits {
    /// Registers a wait, or returns an error if there is one already.
    fn begin() -> Result<Self, Ended> {
        if BACKGROUND_WAITS.swap(true, Ordering::AcqRel) { Err(Ended::Overload) } else { Ok(BackgroundWaits) }
    }
}

impl Drop for BackgroundWaits {
    fn drop(&mut self) {
        BACKGROUND_WAITS.store(false, Ordering::Release);
    }
}

/// Checks that this thread may block: an error if the runtime has no other thread, as then
/// everything would stop.
fn may_hold_thread() -> Result<(), Ended> {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => Ok(()),
        _ => Err(Ended::Overload),
    }
}

/// Gives another thread time to take over the other tasks of this one.
pub(super) fn leave_thread() {
    leave_thread_for(HAND_OVER_PAUSE);
}

fn leave_thread_for(pause: Duration) {
    on_blocking_thread(|| thread::sleep(pause));
}

/// Runs a blocking function; if this is a thread of the runtime, another thread takes its place.
fn on_blocking_thread<T>(block: impl FnOnce() -> T) -> T {
    if may_hold_thread().is_ok() { block_in_place(block) } else { block() }
}

/// The processor time of this thread.
#[cfg(unix)]
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// The wall time, as this system does not report the processor time of a thread.
#[cfg(not(unix))]
fn processor_time() -> Duration {
    static START: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);
    START.elapsed()
}
