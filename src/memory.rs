//! How much memory there is for what clients ask for, and who gets it.
//!
//! In: how much something will take, before it is begun. Out: a [`Reservation`], in the order in which they were asked for,
//! or the word that there is none. What is reserved is an estimate; how much the process really has is looked at beside it,
//! and while that is too much, only one thing at a time is begun. Nothing here allocates or frees: it only counts.
//!
//! It hands out what there is, `--memory-limit` or what the system gives: a quarter for objects that are kept to be
//! read, a quarter for requests at work and answers made as a whole, a thirty-second for bodies that are being read,
//! half for watches; together they are more than all, as they are never all used up. What a request takes is
//! estimated before it is begun, from the bytes and values in its body. A request that finds none waits in a queue,
//! first come, first served, for five seconds; then it is a 429. What is larger than all runs alone; an answer that
//! would take more than half of the limit is a 429 at once. There are a pool for bodies to be read, one for those that are
//! worked on, and one for objects that these are held against, so that nothing that waits for memory holds what others
//! wait for.
//! Beside the estimates stands what the process really has: near the limit one request begins at a time, the view
//! forgets what nobody watches, and compiled definitions go. At the limit, work that takes long is ended ([`Memory::is_out`]).
//! Where addresses are limited (`ulimit -v`), half of them are for what is counted here: the rest is for the stacks of threads,
//! and for what the allocator sets aside.
//!
//! A collection is in memory while it is listed or watched: one of more than half of the limit, in a SQLite file, is refused.
//! Lists beyond 128 KiB go out piece by piece from the snapshot as JSON; tables, YAML and protobuf are made as a whole, and
//! reserved for. Databases in memory, those of all control planes together, hold half of the limit at most, former states
//! with the present ones; what would be more is refused as etcd does beyond its quota.

use std::fs;
use std::io::Read as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};

use crate::meta::Status;

/// How long something waits for memory before it is refused.
const WAIT: Duration = Duration::from_secs(5);
/// How long a refused client is told to wait.
pub const RETRY_AFTER_SECONDS: u32 = 1;
/// How long a look at the memory of the process holds: meanwhile a thread fills some 20 MiB.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// How long something that waits for memory pauses before it looks again.
const PAUSE: Duration = Duration::from_millis(20);
/// What is reserved is counted in these.
const UNIT_BYTES: usize = 1 << 10;
/// What a server needs in any case, in bytes; a limit below it is taken for this.
const LIMIT_BYTES_MIN: usize = 32 << 20;
/// What a watch costs whose client reads slowly, on a connection that it shares or on one of its own without TLS.
const WATCH_BYTES: usize = 24 << 10;
/// What a decoded value costs beside its text, with the copies of it that a request makes.
const VALUE_BYTES: usize = 160;
/// How often a request holds the text of its body: as it was sent, decoded, in what it is compared with, on its way to the
/// database, stored, answered. Measured with bodies of 3 MiB.
const TEXT_COPIES: usize = 12;
/// Which part of the limit is for bodies that are being read.
const BODIES_SHARE: usize = 32;
/// Which part is for requests at work and answers that are made as a whole.
const WORK_SHARE: usize = 4;
/// Which part is for watches.
const WATCHES_SHARE: usize = 2;
/// Which part is for objects that are kept in memory to be read.
const VIEW_SHARE: usize = 4;
/// Which part is for what databases in memory hold, their former states with it.
const STORE_SHARE: usize = 2;
/// Which part of the limit an answer may take that is made as a whole.
const ANSWER_SHARE: usize = 2;
/// Which part a collection may take that is read from the database to be listed or watched.
const COLLECTION_SHARE: usize = 2;
/// How full the memory of the process may be, in percent of the limit, before it counts as short.
const SHORT_PERCENT: usize = 85;
/// How full it may be before there is none left.
const OUT_PERCENT: usize = 95;
/// Which part of the addresses that the process may have can be memory that it counts.
#[cfg(unix)]
const ADDRESSES_SHARE: usize = 2;

/// The memory of a process.
#[derive(Debug)]
pub struct Memory {
    limit_bytes: usize,
    bodies: Pool,
    work: Pool,
    listed: Pool,
    watches: Pool,
    store: Arc<Room>,
    begun: Instant,
    /// Milliseconds since `begun` at the last look, and how many percent of the limit the process had then.
    looked: AtomicU64,
}

/// Memory of one use, handed out in the order in which it was asked for.
#[derive(Debug)]
struct Pool {
    free: Arc<Semaphore>,
    units: u32,
}

/// How many bytes there are for what databases in memory hold, all of the process together.
#[derive(Debug)]
pub struct Room {
    bytes_max: usize,
    taken: AtomicUsize,
}

/// A part of a room, until it is dropped.
#[derive(Debug)]
pub struct Portion {
    room: Arc<Room>,
    bytes: usize,
}

/// Memory that is kept free for its holder until this is dropped.
#[derive(Debug)]
pub struct Reservation {
    units: OwnedSemaphorePermit,
}

/// There was no memory in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

impl From<Full> for Status {
    fn from(_: Full) -> Self {
        let why = "the server has no memory left for this request, please try again later";
        Status::too_many_requests(why, RETRY_AFTER_SECONDS)
    }
}

impl Pool {
    fn new(bytes: usize) -> Self {
        let units = u32::try_from((bytes / UNIT_BYTES).min(Semaphore::MAX_PERMITS)).unwrap_or(u32::MAX);
        Pool { free: Arc::new(Semaphore::new(units as usize)), units }
    }

    /// What is more than all there is gets all there is: it runs alone.
    fn units_for(&self, bytes: usize) -> u32 {
        u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX).min(self.units)
    }

    async fn reserve(&self, bytes: usize) -> Result<Reservation, Full> {
        let units = Arc::clone(&self.free).acquire_many_owned(self.units_for(bytes));
        match timeout(WAIT, units).await {
            Ok(Ok(units)) => Ok(Reservation { units }),
            _ => Err(Full),
        }
    }

    fn is_idle(&self) -> bool {
        self.free.available_permits() == self.units as usize
    }
}

impl Reservation {
    /// So many bytes more for the same use; at once or not at all.
    pub fn more(&self, bytes: usize) -> Result<Reservation, Full> {
        let units = u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX);
        let more = Arc::clone(self.units.semaphore()).try_acquire_many_owned(units);
        more.map(|units| Reservation { units }).map_err(|_| Full)
    }
}

impl Room {
    pub fn of(bytes_max: usize) -> Arc<Self> {
        Arc::new(Room { bytes_max, taken: AtomicUsize::new(0) })
    }

    /// One that everything fits into.
    pub fn endless() -> Arc<Self> {
        Room::of(usize::MAX)
    }

    /// Whether so many bytes more fit. Others may take them at the same time: then a little more is taken than there is.
    pub fn has(&self, bytes: usize) -> bool {
        self.taken().saturating_add(bytes) <= self.bytes_max
    }

    pub fn take(self: &Arc<Self>, bytes: usize) -> Portion {
        self.taken.fetch_add(bytes, Ordering::Relaxed);
        Portion { room: Arc::clone(self), bytes }
    }

    pub fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }
}

impl Drop for Portion {
    fn drop(&mut self) {
        self.room.taken.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Memory {
    /// Hands out `limit_bytes` together.
    pub fn new(limit_bytes: usize) -> Self {
        let limit_bytes = limit_bytes.max(LIMIT_BYTES_MIN);
        Memory {
            limit_bytes,
            bodies: Pool::new(limit_bytes / BODIES_SHARE),
            work: Pool::new(limit_bytes / WORK_SHARE),
            listed: Pool::new(limit_bytes / WORK_SHARE),
            watches: Pool::new(limit_bytes / WATCHES_SHARE),
            store: Room::of(limit_bytes / STORE_SHARE),
            begun: Instant::now(),
            looked: AtomicU64::new(0),
        }
    }

    /// As much as the system gives the process.
    pub fn of_system() -> Self {
        Memory::new(system_limit_bytes().unwrap_or(usize::MAX))
    }

    pub fn limit_bytes(&self) -> usize {
        self.limit_bytes
    }

    /// How many bytes of objects may be kept to be read.
    pub fn view_bytes_max(&self) -> usize {
        self.limit_bytes / VIEW_SHARE
    }

    /// How many bytes a collection may have that is read from the database as a whole.
    pub fn collection_bytes_max(&self) -> usize {
        self.limit_bytes / COLLECTION_SHARE
    }

    /// What databases in memory share.
    pub fn store_room(&self) -> Arc<Room> {
        Arc::clone(&self.store)
    }

    /// Memory to read a body of so many bytes.
    pub async fn for_body(&self, bytes: usize) -> Result<Reservation, Full> {
        self.bodies.reserve(bytes).await
    }

    /// Memory for what a request does with its body and an object that is stored in `stored_bytes`.
    pub async fn for_work_on(&self, body: &[u8], stored_bytes: usize) -> Result<Reservation, Full> {
        self.for_work(work_bytes(body) + stored_bytes.saturating_mul(TEXT_COPIES)).await
    }

    /// Memory for work that takes so many bytes.
    pub async fn for_work(&self, bytes: usize) -> Result<Reservation, Full> {
        self.within(&self.work, bytes).await
    }

    /// Memory for objects that a request, which has some for its own work, is held against; at once none for more than
    /// the process could hold beside the rest. Whoever holds it asks for no other.
    pub async fn for_listed(&self, bytes: usize) -> Result<Reservation, Full> {
        if bytes > self.limit_bytes / ANSWER_SHARE { Err(Full) } else { self.within(&self.listed, bytes).await }
    }

    async fn within(&self, pool: &Pool, bytes: usize) -> Result<Reservation, Full> {
        let until = Instant::now() + WAIT;
        let reservation = loop {
            let alone = pool.is_idle();
            if alone || !self.is_short() {
                break pool.reserve(bytes).await?;
            }
            if Instant::now() > until {
                return Err(Full);
            }
            sleep(PAUSE).await;
        };
        Ok(reservation)
    }

    /// Memory for an answer that is made as a whole, and takes so many bytes; at once none for what the process could not
    /// hold beside the rest.
    pub async fn for_answer(&self, bytes: usize) -> Result<Reservation, Full> {
        if bytes > self.limit_bytes / ANSWER_SHARE { Err(Full) } else { self.for_work(bytes).await }
    }

    /// Memory for a watch; at once or not at all, as those that have some go on for long.
    pub fn for_watch(&self) -> Result<Reservation, Full> {
        let units = Arc::clone(&self.watches.free).try_acquire_many_owned(self.watches.units_for(WATCH_BYTES));
        units.map(|units| Reservation { units }).map_err(|_| Full)
    }

    /// Whether the process has nearly all that it may.
    pub fn is_short(&self) -> bool {
        self.used_percent() > SHORT_PERCENT
    }

    /// Whether the process has all that it may: whatever takes more is to end.
    pub fn is_out(&self) -> bool {
        self.used_percent() > OUT_PERCENT
    }

    /// How many percent of the limit the process has, up to 255. A look at it holds for [`LOOK_EVERY`].
    fn used_percent(&self) -> usize {
        const PERCENT_BITS: u32 = 8;
        let now_ms = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let looked = self.looked.load(Ordering::Relaxed);
        if looked > 0 && now_ms < (looked >> PERCENT_BITS) + LOOK_EVERY.as_millis() as u64 {
            return usize::from(looked as u8);
        }
        let used = own_bytes().unwrap_or_default() / (self.limit_bytes / 100);
        let used = u8::try_from(used).unwrap_or(u8::MAX);
        self.looked.store((now_ms << PERCENT_BITS) | u64::from(used).max(1), Ordering::Relaxed);
        usize::from(used)
    }
}

/// What a request takes that decodes `body`, by the number of values that may be in it.
fn work_bytes(body: &[u8]) -> usize {
    // Many bytes are compared at once, and counted in a byte: in a chunk there are no more than that holds.
    let begins =
        |byte: &u8| u8::from((*byte == b',') | (*byte == b':') | (*byte == b'{') | (*byte == b'[') | (*byte == b'\n'));
    let chunks = body.chunks(usize::from(u8::MAX));
    let values: usize = chunks.map(|chunk| usize::from(chunk.iter().map(begins).sum::<u8>())).sum();
    body.len() * TEXT_COPIES + values * VALUE_BYTES
}

/// How much memory the process has for itself: what is mapped from files can be given back.
///
/// In pages, `statm` has the size, what is resident and what of that is mapped from files. (`status` says it as well, for a
/// multiple of the work.)
fn own_bytes() -> Option<usize> {
    let mut told = [0; 128];
    let length = fs::File::open("/proc/self/statm").ok()?.read(&mut told).ok()?;
    let mut counts = str::from_utf8(told.get(..length)?).ok()?.split(' ').skip(1).map_while(|count| count.parse().ok());
    let (resident, of_files): (usize, usize) = (counts.next()?, counts.next()?);
    resident.saturating_sub(of_files).checked_mul(page_bytes())
}

#[cfg(unix)]
fn page_bytes() -> usize {
    rustix::param::page_size()
}

/// Other systems don't have the file in which memory is counted in pages.
#[cfg(not(unix))]
fn page_bytes() -> usize {
    1
}

/// The least of what the process, its group and the machine have; `None` where the system does not tell.
fn system_limit_bytes() -> Option<usize> {
    let groups = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let of_groups = groups.iter().filter_map(|path| fs::read_to_string(path).ok()?.trim().parse().ok());
    let of_own = own_group().and_then(|path| fs::read_to_string(path).ok()?.trim().parse().ok());
    of_groups.chain(of_own).chain(machine_bytes()).chain(address_bytes()).min()
}

/// What may be counted of the addresses that the process may have.
#[cfg(unix)]
fn address_bytes() -> Option<usize> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::As).current?;
    usize::try_from(limit).ok().map(|limit| limit / ADDRESSES_SHARE)
}

/// Other systems have no such limit.
#[cfg(not(unix))]
fn address_bytes() -> Option<usize> {
    None
}

/// The limit of the process' own group, where that is not the root of what it sees.
fn own_group() -> Option<String> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    Some(format!("/sys/fs/cgroup{path}/memory.max"))
}

fn machine_bytes() -> Option<usize> {
    let told = fs::read_to_string("/proc/meminfo").ok()?;
    let total = told.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    total.trim().strip_suffix(" kB")?.trim().parse::<usize>().ok()?.checked_mul(1 << 10)
}

/// Why a text is not a limit of memory.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BytesError {
    #[error("expected a number of bytes, such as 512Mi")]
    NotANumber,
    #[error("must be at least {}Mi", LIMIT_BYTES_MIN >> 20)]
    TooFew,
    #[error("there is no such machine")]
    TooMany,
}

/// Reads a number of bytes as the API writes quantities of memory: `100Mi`, `1Gi`, `500000`.
///
/// # Errors
///
/// It is not a number, or not one of a machine.
pub fn parse_bytes(text: &str) -> Result<usize, BytesError> {
    const SUFFIXES: [(&str, u32); 4] = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40)];
    let (digits, shift) =
        SUFFIXES.iter().find_map(|(suffix, shift)| Some((text.strip_suffix(suffix)?, *shift))).unwrap_or((text, 0));
    let number = digits.parse::<usize>().map_err(|_| BytesError::NotANumber)?;
    match number.checked_mul(1 << shift) {
        Some(bytes) if bytes >= LIMIT_BYTES_MIN => Ok(bytes),
        Some(_) => Err(BytesError::TooFew),
        None => Err(BytesError::TooMany),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_number_of_bytes() {
        assert_eq!((parse_bytes("96Mi"), parse_bytes("1Gi")), (Ok(96 << 20), Ok(1 << 30)));
        assert_eq!(parse_bytes("100000000"), Ok(100_000_000));
        for wrong in ["", "Mi", "1.5Gi", "-1", "1Mi", "99999999999Ti"] {
            assert!(parse_bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_larger_than_all_runs_alone_and_others_wait_their_turn() {
        let memory = Arc::new(Memory::new(1 << 40));
        let huge = memory.work.reserve(usize::MAX / 2).await.expect("there is all of it");
        assert_eq!(memory.work.reserve(1).await.err(), Some(Full), "it waits, then it is refused");
        let waiting = tokio::spawn({
            let memory = Arc::clone(&memory);
            async move { memory.work.reserve(1).await.is_ok() }
        });
        tokio::task::yield_now().await;
        drop(huge);
        assert!(waiting.await.expect("it does not panic"));
    }

    #[tokio::test]
    async fn an_answer_that_could_never_be_held_is_refused_at_once() {
        let memory = Memory::new(1 << 40);
        assert!(memory.for_answer(1 << 39).await.is_ok());
        assert_eq!(memory.for_answer((1 << 39) + 1).await.err(), Some(Full));
    }

    #[test]
    fn a_watch_is_refused_at_once_where_there_are_too_many() {
        let memory = Memory::new(LIMIT_BYTES_MIN);
        let watches: Vec<_> = std::iter::from_fn(|| memory.for_watch().ok()).collect();
        assert_eq!(watches.len(), LIMIT_BYTES_MIN / WATCHES_SHARE / WATCH_BYTES);
        drop(watches);
        assert!(memory.for_watch().is_ok());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_the_process_has_for_itself_is_counted() {
        const TAKEN_BYTES: usize = 64 << 20;
        let before = own_bytes().expect("the system tells");
        let taken = std::hint::black_box(vec![1_u8; TAKEN_BYTES]);
        let after = own_bytes().expect("the system tells");
        // Other tests take and give back at the same time.
        assert!(after > before + taken.len() / 2, "{before}, {after}");
    }

    #[test]
    fn many_small_values_take_more_than_one_large_text() {
        let numbers = "1,".repeat(500);
        assert_eq!(work_bytes(&b",".repeat(700)), 700 * (TEXT_COPIES + VALUE_BYTES));
        assert!(work_bytes(numbers.as_bytes()) > 5 * work_bytes("x".repeat(1000).as_bytes()));
    }
}
