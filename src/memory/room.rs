//! Room for what is kept: how much may be taken, and how much is.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::meta::Status;

/// How long a refused client is told to wait.
pub const RETRY_AFTER_SECONDS: u32 = 1;
/// What is small has room until so many times the share is taken.
const SMALL_TIMES: usize = 2;
/// How small that is, for what a user's objects take beside their text.
pub(super) const SMALL_BYTES: usize = 4 << 10;

/// How many bytes the in-memory databases of a process may hold together; so for its control planes, and for what it
/// knows of all objects.
#[derive(Debug)]
pub struct Room {
    pub(super) bytes_max: usize,
    taken: AtomicUsize,
    /// The room that this one is a part of.
    whole: Option<Arc<Room>>,
}

/// A part of a room, taken until it is dropped.
#[derive(Debug)]
pub struct Portion {
    room: Arc<Room>,
    bytes: usize,
}

/// How many bytes something took, and how many it will take.
#[derive(Clone, Copy, Debug)]
pub struct Growth {
    pub bytes_before: usize,
    pub bytes: usize,
}

/// No memory became free in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

impl From<Full> for Status {
    fn from(_: Full) -> Self {
        let why = "the server has no memory left for this request, please try again later";
        Status::too_many_requests(why, RETRY_AFTER_SECONDS)
    }
}

impl Room {
    pub fn of(bytes_max: usize) -> Arc<Self> {
        Arc::new(Room { bytes_max, taken: AtomicUsize::new(0), whole: None })
    }

    /// A part of another room.
    pub fn within(whole: &Arc<Room>, bytes_max: usize) -> Arc<Self> {
        Arc::new(Room { bytes_max, taken: AtomicUsize::new(0), whole: Some(Arc::clone(whole)) })
    }

    /// A room without a limit.
    pub fn endless() -> Arc<Self> {
        Room::of(usize::MAX)
    }

    /// Whether so many more bytes fit. Others may take them at the same time: then slightly more
    /// than the limit is taken.
    pub fn has(&self, bytes: usize) -> bool {
        self.all().all(|room| room.taken().saturating_add(bytes) <= room.bytes_max)
    }

    /// Whether something may grow to so many bytes. What is small has room until more is taken, and what does not grow
    /// always has.
    pub(super) fn check(&self, growth: &Growth, bytes_small: usize) -> Result<(), Full> {
        let times = if growth.bytes <= bytes_small { SMALL_TIMES } else { 1 };
        let more = growth.bytes.saturating_sub(growth.bytes_before);
        let has_room = || self.taken().saturating_add(more) <= self.bytes_max.saturating_mul(times);
        if more == 0 || has_room() { Ok(()) } else { Err(Full) }
    }

    pub fn take(self: &Arc<Self>, bytes: usize) -> Portion {
        self.all().for_each(|room| _ = room.taken.fetch_add(bytes, Ordering::Relaxed));
        Portion { room: Arc::clone(self), bytes }
    }

    /// Takes so many bytes if they fit.
    pub fn try_take(self: &Arc<Self>, bytes: usize) -> Result<Portion, Full> {
        if self.has(bytes) { Ok(self.take(bytes)) } else { Err(Full) }
    }

    /// This room, and those that it is a part of.
    fn all(&self) -> impl Iterator<Item = &Room> {
        std::iter::successors(Some(self), |room| room.whole.as_deref())
    }

    pub fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }
}

impl Portion {
    /// Whether something in it may grow; an error if its room is taken, or, if that is small, twice as much.
    pub fn check(&self, growth: &Growth) -> Result<(), Full> {
        self.room.check(growth, SMALL_BYTES)
    }

    /// Takes more, or gives back some.
    pub fn resize(&mut self, bytes: usize) {
        for room in self.room.all() {
            if bytes > self.bytes {
                room.taken.fetch_add(bytes - self.bytes, Ordering::Relaxed);
            } else {
                room.taken.fetch_sub(self.bytes - bytes, Ordering::Relaxed);
            }
        }
        self.bytes = bytes;
    }
}

impl Drop for Portion {
    fn drop(&mut self) {
        self.room.all().for_each(|room| _ = room.taken.fetch_sub(self.bytes, Ordering::Relaxed));
    }
}
