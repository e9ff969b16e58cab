//! Counting of work: every long loop says how far it has come, and may be told to go no further.
//!
//! In: the steps of the passes, as they take them. Out: their number, and now and then a look at whoever watches over
//! the work of this thread, which may end it. A pass calls [`steps`] in its loops and needs to know nothing else.
//!
//! A step is some 20 to 100 ns: a value that is visited, a key that is compared, 64 bytes that are copied or scanned. What
//! moves or copies `n` items takes `n` steps; see [`bytes()`] for texts.
//!
//! Work that is ended unwinds to [`Meter::run`] without a result: nothing that is half done is ever seen, cached or stored.
//! So no pass has to pass on that it was ended. What is done under a lock, or made once for all, is [`essential`].
//!
//! The count is the one state here that is not passed as an argument, as in `tests/tidy.rs`: it changes no result, and an
//! argument of each function of every pass would hide what they are about.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::task::{Context, Poll};

/// Steps from one look of the overseer to the next: some 50 to 100 µs.
const STEPS_PER_LOOK: u64 = 1000;
/// Bytes that are copied or scanned in a step.
const BYTES_PER_STEP: usize = 64;

/// Watches over work.
pub trait Oversee: Send {
    /// A run of the work begins on this thread.
    fn begin(&mut self) {}

    /// Is called about every 1,000 steps on the thread that takes them, and may make it wait.
    ///
    /// Errors: the work is to end at once, for this reason.
    ///
    /// # Errors
    ///
    /// Why the work is to end.
    fn look(&mut self) -> Result<(), Ended>;

    /// The same in the midst of what others wait for: it is not to wait, and is not ended.
    fn glance(&mut self) {}

    /// Something that the work does lasts from here on, whatever becomes of the work: whoever asked for it must not be told
    /// to ask again.
    fn commit(&mut self) {}

    /// Holds this thread until `poll` is ready, as the work waits for what is made elsewhere, such as the answer of a service.
    ///
    /// # Errors
    ///
    /// [`Ended::Overload`] where no thread may be held for it; otherwise why the work is to end.
    fn wait(&mut self, poll: Polled<'_>) -> Result<(), Ended> {
        _ = poll;
        Err(Ended::Overload)
    }

    /// The run is over, for now or for good.
    fn end(&mut self) {}
}

/// What work waits for, to be polled until it is ready.
pub type Polled<'a> = &'a mut dyn FnMut(&mut Context<'_>) -> Poll<()>;

/// No thread may be held: too many are, or there is nobody to say so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoThread;

/// Why work was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The one that wanted the result is gone.
    Cancelled,
    /// The time for it is over.
    Deadline,
    /// It has used all the processor time that it may.
    Budget,
    /// There is no room for it: neither processor time nor memory.
    Overload,
}

/// Work that is watched over, on one thread at a time.
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
    /// Steps that are left until the next look.
    static LEFT: Cell<u64> = const { Cell::new(STEPS_PER_LOOK) };
    /// Steps taken up to the last look.
    static TAKEN: Cell<u64> = const { Cell::new(0) };
    /// Whether others wait for what this thread does.
    static ESSENTIAL: Cell<bool> = const { Cell::new(false) };
    static OVERSEER: RefCell<Option<Box<dyn Oversee>>> = const { RefCell::new(None) };
}

/// Counts steps that are being taken. Does not return where the work is ended.
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

/// Counts the copying or scanning of so many bytes, as a step at least.
#[inline]
pub fn bytes(count: usize) {
    steps(1 + count / BYTES_PER_STEP);
}

/// Runs work and tells how many steps it took.
pub fn counted<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let before = taken();
    let result = work();
    (result, taken() - before)
}

/// Does what others wait for, who hold a thread meanwhile: what is made once for all, or under a lock. It is bounded by
/// other means, so it is neither ended nor made to wait.
pub fn essential<T>(work: impl FnOnce() -> T) -> T {
    let outer = ESSENTIAL.replace(true);
    // Nothing ends it; where it panics, the thread is no longer essential either.
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

/// Says that something lasts from here on that this work does: see [`Oversee::commit`].
pub fn commit() {
    OVERSEER.with_borrow_mut(|overseer| {
        if let Some(overseer) = overseer {
            overseer.commit();
        }
    });
}

/// Holds this thread until `poll` is ready: see [`Oversee::wait`]. Does not return where the work is ended meanwhile.
///
/// # Errors
///
/// No thread may be held.
pub fn wait(poll: Polled<'_>) -> Result<(), NoThread> {
    // It is taken out, as in `look`.
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
    // What is dropped while the thread unwinds is not ended once more.
    if std::thread::panicking() {
        return;
    }
    // It is taken out, as it may run what takes steps.
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
    /// A meter that asks `overseer` whether to go on.
    pub fn new(overseer: impl Oversee + 'static) -> Self {
        Meter { overseer: Some(Box::new(overseer)) }
    }

    /// Runs work on this thread, watched over. What has been left half done is not to be used after an error.
    ///
    /// # Errors
    ///
    /// It was ended, or it panicked.
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
        // Without a meter nobody ends anything.
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
