//! Counts work: every long loop reports its progress, and may be ended.
//!
//! Input: the steps of the passes, as they take them. Output: their number, and a regular call of the overseer of this
//! thread's work, which may end it. A pass calls [`steps`] in its loops and needs to know nothing else.
//!
//! A step takes some 20 to 100 ns. It is a value that is visited, a key that is compared, or 64 bytes that are copied
//! or scanned. Moving or copying `n` items takes `n` steps; see [`bytes()`] for texts.
//!
//! Work that is ended unwinds to [`Meter::run`] without a result: nothing half done is ever seen, cached or stored. So
//! no pass has to handle that it was ended. Work that is done under a lock, or once for all callers, is [`essential`].
//!
//! The count is not passed as an argument, as in `tests/tidy.rs`: it does not change results, and an argument of every
//! function of every pass would distract from their purpose.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::task::{Context, Poll};

/// The number of steps between two calls of the overseer: some 50 to 100 µs.
const STEPS_PER_LOOK: u64 = 1000;
/// The number of bytes that are copied or scanned in a step.
const BYTES_PER_STEP: usize = 64;

/// Oversees work.
pub trait Oversee: Send {
    /// Called when a run of the work begins on this thread.
    fn begin(&mut self) {}

    /// Called about every 1,000 steps on the thread that takes them; may make it wait.
    ///
    /// # Errors
    ///
    /// Why the work is to end.
    fn look(&mut self) -> Result<(), Ended>;

    /// Called instead of [`Oversee::look`] during work that others wait for, which must not wait and is not ended.
    fn glance(&mut self) {}

    /// Called when an effect of the work becomes permanent, whatever happens to the work: the requester must not be
    /// told to retry.
    fn commit(&mut self) {}

    /// Blocks this thread until `poll` is ready, while the work waits for something made elsewhere, such as the
    /// response of a service.
    ///
    /// # Errors
    ///
    /// [`Ended::Overload`] if no thread may be blocked for it; otherwise why the work is to end.
    fn wait(&mut self, poll: Polled<'_>) -> Result<(), Ended> {
        _ = poll;
        Err(Ended::Overload)
    }

    /// Called when the run is over, for now or for good.
    fn end(&mut self) {}
}

/// A future that work waits for, polled until it is ready.
pub type Polled<'a> = &'a mut dyn FnMut(&mut Context<'_>) -> Poll<()>;

/// The error that no thread may be blocked: too many are, or there is no overseer to allow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoThread;

/// Why work was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The requester is gone.
    Cancelled,
    /// Its deadline has passed.
    Deadline,
    /// It has used all of its processor time.
    Budget,
    /// There is no capacity for it, in processor time or memory.
    Overload,
}

/// Runs work with an overseer, on one thread at a time.
pub struct Meter {
    overseer: Option<Box<dyn Oversee>>,
}

/// How a run under a meter ended without a result.
pub enum Broken {
    /// The work was ended from outside.
    Ended(Ended),
    /// The work panicked.
    Panicked(Box<dyn Any + Send>),
}

thread_local! {
    /// The steps left until the next call of the overseer.
    static LEFT: Cell<u64> = const { Cell::new(STEPS_PER_LOOK) };
    /// The steps taken up to the last call of the overseer.
    static TAKEN: Cell<u64> = const { Cell::new(0) };
    /// Whether this thread does essential work.
    static ESSENTIAL: Cell<bool> = const { Cell::new(false) };
    static OVERSEER: RefCell<Option<Box<dyn Oversee>>> = const { RefCell::new(None) };
}

/// Counts `count` steps. Does not return if the work is ended.
#[inline]
pub fn steps(count: usize) {
    let (count, left) = (count as u64, LEFT.get());
    if count < left {
        LEFT.set(left - count);
    } else {
        look(count);
    }
}

/// Counts one step.
#[inline]
pub fn step() {
    steps(1);
}

/// Counts the copying or scanning of `count` bytes, as at least one step.
#[inline]
pub fn bytes(count: usize) {
    steps(1 + count / BYTES_PER_STEP);
}

/// Runs work and returns its result with the number of steps it took.
pub fn counted<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let before = taken();
    let result = work();
    (result, taken() - before)
}

/// Runs work that others wait for with blocked threads: work that is done once for all, or under a lock. It is bounded
/// by other means, so it is neither ended nor made to wait.
pub fn essential<T>(work: impl FnOnce() -> T) -> T {
    let outer = ESSENTIAL.replace(true);
    // The work is not ended; if it panics, this restores the thread's state.
    let restore = Restore(outer);
    let result = work();
    drop(restore);
    result
}

struct Restore(bool);

impl Drop for Restore {
    fn drop(&mut self) {
        ESSENTIAL.set(self.0);
    }
}

/// Reports that an effect of this work becomes permanent: see [`Oversee::commit`].
pub fn commit() {
    OVERSEER.with_borrow_mut(|overseer| {
        if let Some(overseer) = overseer {
            overseer.commit();
        }
    });
}

/// Blocks this thread until `poll` is ready: see [`Oversee::wait`]. Does not return if the work is ended meanwhile.
///
/// # Errors
///
/// No thread may be blocked.
pub fn wait(poll: Polled<'_>) -> Result<(), NoThread> {
    // The overseer is taken out, as in `look`.
    let mut overseer = OVERSEER.take().ok_or(NoThread)?;
    let waited = overseer.wait(poll);
    OVERSEER.set(Some(overseer));
    match waited {
        Ok(()) => Ok(()),
        Err(Ended::Overload) => Err(NoThread),
        Err(_) if ESSENTIAL.get() => Err(NoThread),
        Err(ended) => resume_unwind(Box::new(ended)),
    }
}

fn taken() -> u64 {
    TAKEN.get() + (STEPS_PER_LOOK - LEFT.get())
}

#[cold]
fn look(count: u64) {
    TAKEN.set(taken() + count);
    LEFT.set(STEPS_PER_LOOK);
    // Destructors that run while the thread unwinds are not ended again.
    if std::thread::panicking() {
        return;
    }
    // The overseer is taken out, because it may itself take steps.
    let Some(mut overseer) = OVERSEER.take() else { return };
    let verdict = if ESSENTIAL.get() {
        overseer.glance();
        Ok(())
    } else {
        overseer.look()
    };
    OVERSEER.set(Some(overseer));
    if let Err(ended) = verdict {
        resume_unwind(Box::new(ended));
    }
}

impl Meter {
    /// Makes a meter that asks `overseer` whether to continue.
    pub fn new(overseer: impl Oversee + 'static) -> Self {
        Meter { overseer: Some(Box::new(overseer)) }
    }

    /// Runs work on this thread with the overseer. After an error, half-done state must not be used.
    ///
    /// # Errors
    ///
    /// The work was ended, or it panicked.
    pub fn run<T>(&mut self, work: impl FnOnce() -> T) -> Result<T, Broken> {
        if let Some(overseer) = &mut self.overseer {
            overseer.begin();
        }
        let outer = OVERSEER.replace(self.overseer.take());
        let result = catch_unwind(AssertUnwindSafe(work));
        self.overseer = OVERSEER.replace(outer);
        if let Some(overseer) = &mut self.overseer {
            overseer.end();
        }
        result.map_err(|payload| match payload.downcast::<Ended>() {
            Ok(ended) => Broken::Ended(*ended),
            Err(payload) => Broken::Panicked(payload),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Looks(u64);

    impl Oversee for Looks {
        fn look(&mut self) -> Result<(), Ended> {
            self.0 = self.0.checked_sub(1).ok_or(Ended::Budget)?;
            Ok(())
        }
    }

    #[test]
    fn steps_are_counted_with_and_without_a_meter() {
        assert_eq!(counted(|| steps(5)).1, 5);
        assert_eq!(counted(|| (0..10_000).for_each(|_| step())).1, 10_000);
        assert_eq!(counted(|| bytes(6400)).1, 101);
        let mut meter = Meter::new(Looks(u64::MAX));
        assert_eq!(meter.run(|| counted(|| steps(1_000_000)).1).ok(), Some(1_000_000));
    }

    #[test]
    fn work_is_ended_where_it_stands() {
        let mut meter = Meter::new(Looks(3));
        let mut done = 0;
        let ended = meter.run(|| {
            (0..u64::MAX).for_each(|at| {
                step();
                done = at;
            })
        });
        assert!(matches!(ended, Err(Broken::Ended(Ended::Budget))));
        assert!((3 * STEPS_PER_LOOK - 1..=4 * STEPS_PER_LOOK).contains(&done), "{done}");
        // Without a meter nothing is ended.
        steps(1 << 30);
    }

    #[test]
    fn what_is_essential_is_not_ended() {
        let mut meter = Meter::new(Looks(0));
        assert_eq!(meter.run(|| essential(|| counted(|| (0..10_000).for_each(|_| step())).1)).ok(), Some(10_000));
        assert!(meter.run(|| (0..10_000).for_each(|_| step())).is_err());
    }

    #[test]
    fn work_waits_where_its_overseer_lets_it() {
        struct Waits(Result<(), Ended>);
        impl Oversee for Waits {
            fn look(&mut self) -> Result<(), Ended> {
                Ok(())
            }

            fn wait(&mut self, _: Polled<'_>) -> Result<(), Ended> {
                self.0
            }
        }
        let mut never = |_: &mut Context<'_>| Poll::Pending;
        assert_eq!(wait(&mut never), Err(NoThread));
        assert_eq!(Meter::new(Looks(1)).run(|| wait(&mut never)).ok(), Some(Err(NoThread)));
        assert_eq!(Meter::new(Waits(Ok(()))).run(|| wait(&mut never)).ok(), Some(Ok(())));
        assert_eq!(Meter::new(Waits(Err(Ended::Overload))).run(|| wait(&mut never)).ok(), Some(Err(NoThread)));
        let ended = Meter::new(Waits(Err(Ended::Deadline))).run(|| wait(&mut never));
        assert!(matches!(ended, Err(Broken::Ended(Ended::Deadline))));
    }

    #[test]
    fn a_panic_is_told_apart_and_what_is_dropped_meanwhile_goes_on() {
        struct Long;
        impl Drop for Long {
            fn drop(&mut self) {
                steps(1 << 20);
            }
        }
        let mut meter = Meter::new(Looks(0));
        let ended = meter.run(|| {
            let _long = Long;
            steps(1 << 20);
        });
        assert!(matches!(ended, Err(Broken::Ended(Ended::Budget))));
        assert!(matches!(meter.run(|| resume_unwind(Box::new("a panic"))), Err(Broken::Panicked(_))));
    }
}
