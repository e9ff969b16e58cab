//! The memory that is available for clients' requests, and who gets it.
//!
//! Input: how much an operation will take, before it begins. Output: a [`Reservation`], in the order of the calls, or
//! an error if there is no memory. Reservations are estimates; the memory that the process really uses is checked as
//! well, and while it is near the limit, only one operation begins at a time. Nothing here allocates or frees memory:
//! it only counts.
//!
//! The budget is `--memory-limit`, or what the system gives the process: a quarter for objects that are cached for
//! reads, a quarter for requests in flight and for answers that are built as a whole, another quarter for the objects
//! that requests are checked against, another for what controllers have decoded, of which a namespace has at most half, a
//! thirty-second for bodies that are being read, half for watches, and an eighth
//! each for changes and for former states that their clients have not read, for the references to owners that the
//! garbage collector follows, for the roles and bindings that are in force, for admission policies, for what nodes need, and for objects in the forms that clients
//! get. The shares add up to more than the budget, as they are never all used up. Each control plane beside the main
//! one takes its part of an eighth. The memory of a request is estimated before it begins, from the number of bytes and
//! values in its body. A request that finds no memory waits in a queue, first come, first served, for five seconds;
//! then it is answered with 429. An eighth of the memory for requests is for small ones alone ([`request_pool`]). A
//! user has at most half of the memory for bodies, for requests and their answers, for watches and for their changes,
//! and as much is left for others as any user has ([`fair`]), also while a client is slow to read an answer; a request
//! takes all that it needs once, so that no two wait for each other. An operation that is larger than the user's share
//! takes all of it; an answer that would take more than half of the limit is a 429 at once. What a webhook answers is
//! read and decoded as the body of a request is, and each webhook has its share. There is one pool for bodies that are
//! being read, one for the work on them, one for the objects that they are checked against, one for parts of large
//! collections that are listed (whose reader may then wait for the work on its answer), and one for decoding what
//! webhooks answer, so that no request that waits for memory holds what others wait for. A controller that writes waits
//! for work while it holds what it has decoded, which no request needs.
//!
//! Beside the estimates, the memory that the process really uses counts: near the limit, one request begins at a time,
//! the view drops the objects that nobody watches, and compiled schemas that were not used for longest are dropped. At
//! the limit, long-running work is ended ([`Memory::is_out`]). If the address space is limited (`ulimit -v`), half of
//! it is counted here: the rest is for the stacks of threads, and for what the allocator reserves.
//!
//! A collection is in memory while it is listed or watched, unless it has more than half of the limit: then each
//! request reads the part from the database that it needs, at most a sixteenth of the limit. Lists of more than 128
//! KiB are streamed from the snapshot as JSON; tables, YAML and protobuf are built as a whole, and their memory is
//! reserved. OpenAPI documents are kept in an eighth of the limit, or 16 MiB if that is more; near the limit, only
//! the last one. The in-memory databases of all control planes together hold at most half of the limit, former
//! revisions included, and those beside the main one leave it an eighth of that; a write beyond that is refused as
//! etcd refuses a write beyond its quota.

pub mod fair;
mod request_pool;
mod room;
mod system;

use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::available_parallelism;
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep};

use fair::{FairPool, FairUnits};
use request_pool::{RequestPool, SMALL_BYTES_MAX};
use system::{own_bytes, system_limit_bytes};

pub use room::{Full, Growth, Portion, RETRY_AFTER_SECONDS, Room};

/// How long an operation waits for memory before it is refused.
pub const WAIT: Duration = Duration::from_secs(5);
/// How long a measurement of the process's memory is valid: a thread fills some 20 MiB in that
/// time.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// The pause between two measurements while an operation waits for memory.
const PAUSE: Duration = Duration::from_millis(20);
/// The unit of reservations.
const UNIT_BYTES: usize = 1 << 10;
/// What a server needs in any case, in bytes; a lower limit is raised to this.
const LIMIT_BYTES_MIN: usize = 32 << 20;
/// What a watch with a slow client costs, on a shared connection or on one of its own without TLS, beside what its
/// selectors hold.
const WATCH_BYTES: usize = 24 << 10;
/// What a decoded value costs beside its text, including the copies that a request makes of it.
const VALUE_BYTES: usize = 160;
/// How often a request holds the text of its body: as received, decoded, in the object that it is
/// compared with, on its way to the database, stored, returned. Measured with bodies of 3 MiB.
const TEXT_COPIES: usize = 12;
/// The divisor of the limit that gives the share of bodies that are being read; so for the
/// following shares.
const BODIES_SHARE: usize = 32;
/// How many large bodies are read at the same time at least, as far as they have arrived: as many as there are processors.
const READ_AT_ONCE_MIN: usize = 2;
/// For long heads of requests.
const HEADS_SHARE: usize = 16;
/// For open connections.
const CONNECTIONS_SHARE: usize = 2;
/// What a connection over TLS takes, in bytes, about: between 40 KiB with a watch, and 140 with a short body that does not
/// end. Measured with thousands: of the latter, as many as there may be have three quarters of the limit.
const CONNECTION_BYTES: usize = 96 << 10;
/// For requests in flight and answers that are built as a whole; as much again for the objects that
/// requests are checked against, and for decoding what webhooks answer.
const WORK_SHARE: usize = 4;
/// For the objects that controllers have decoded to reconcile keys.
const RECONCILED_SHARE: usize = 4;
/// What a decoded value takes beside its text, in bytes, with its name or its place in a list.
const DECODED_VALUE_BYTES: usize = 64;
/// For watches.
const WATCHES_SHARE: usize = 2;
/// For changes that slow clients of watches have not read.
const CHANGES_SHARE: usize = 8;
/// For former states that the clients of lists have not read.
const HELD_SHARE: usize = 8;
/// For objects that are cached for reads.
const VIEW_SHARE: usize = 4;
/// For in-memory databases, including former revisions.
const STORE_SHARE: usize = 2;
/// The part of the share of in-memory databases that is left to the main control plane, as a divisor.
const MAIN_STORE_SHARE: usize = 8;
/// For what control planes cost beside their objects.
const PLANES_SHARE: usize = 8;
/// What a control plane costs beside its objects: its listener, definitions, tasks, and keys. Measured with thousands.
const PLANE_BYTES: usize = 128 << 10;
/// For the references to owners that the garbage collector follows.
const REFERENCES_SHARE: usize = 8;
/// What such a reference takes, in bytes. Measured with hundreds of thousands.
pub const REFERENCE_BYTES: usize = 160;
/// An object may have so many of them even if the others take all of their share.
const REFERENCES_FREE: usize = 16;
/// For the roles and bindings that are in force.
const GRANTS_SHARE: usize = 8;
/// For the objects that nodes need, by the references of pods.
const NODES_SHARE: usize = 8;
/// For objects in the forms that clients get, where these differ from what is stored.
const DERIVED_SHARE: usize = 8;
/// For the admission policies that are in force.
const POLICIES_SHARE: usize = 8;
/// For the faults of all control planes.
const FAULTS_SHARE: usize = 32;
/// For the certificates of webhooks that connections are kept to.
const WEBHOOKS_SHARE: usize = 16;
/// How many bytes of them are kept at most, whatever the limit is.
const WEBHOOKS_BYTES_MAX: usize = 64 << 20;
/// For OpenAPI documents that are kept.
const DOCUMENTS_SHARE: usize = 8;
/// How many bytes of them are kept at least, whatever the limit is: those of the built-in kinds.
const DOCUMENTS_BYTES_MIN: usize = 16 << 20;
/// How many bytes are kept at most: four times as many as the v2 document has where it is largest.
const DOCUMENTS_BYTES_MAX: usize = 256 << 20;
/// For parts of collections that are too large to stay in memory.
const PARTS_SHARE: usize = 8;
/// For a single answer that is built as a whole.
const ANSWER_SHARE: usize = 2;
/// For a single collection that is read from the database to be listed or watched.
const COLLECTION_SHARE: usize = 2;
/// The use of memory, in percent of the limit, above which it is short.
const SHORT_PERCENT: usize = 85;
/// The use above which there is none left.
const OUT_PERCENT: usize = 95;
/// The memory budget of a process.
#[derive(Debug)]
pub struct Memory {
    limit_bytes: usize,
    bodies: FairPool,
    heads: FairPool,
    reading: Semaphore,
    work: RequestPool,
    listed: RequestPool,
    parts: RequestPool,
    answered: RequestPool,
    reconciled: FairPool,
    watches: FairPool,
    changes: FairPool,
    store: Arc<Room>,
    stores_beside: Arc<Room>,
    planes: Arc<Room>,
    references: Arc<Room>,
    grants: Arc<Room>,
    nodes: Arc<Room>,
    policies: Arc<Room>,
    derived: Arc<Room>,
    faults: Arc<Room>,
    begun: Instant,
    /// The last measurement: milliseconds since `begun`, shifted, and the percentage of the limit
    /// in use.
    looked: AtomicU64,
}

/// Memory that is kept free for its holder until the reservation is dropped.
#[derive(Debug)]
pub struct Reservation(FairUnits);

impl Reservation {
    /// Gives back all but so many bytes.
    pub fn shrink(&mut self, bytes: usize) {
        self.0.shrink(units_for(bytes));
    }

    /// How many bytes are reserved.
    pub fn bytes(&self) -> usize {
        self.0.units() as usize * UNIT_BYTES
    }

    /// Reserves so many bytes more of the same pool, at once or not at all.
    pub fn more(&self, bytes: usize) -> Result<Reservation, Full> {
        self.0.more(units_for(bytes)).map(Reservation).ok_or(Full)
    }
}

impl Memory {
    /// A budget of `limit_bytes`, but at least `LIMIT_BYTES_MIN`.
    pub fn new(limit_bytes: usize) -> Self {
        let limit_bytes = limit_bytes.max(LIMIT_BYTES_MIN);
        let store = Room::of(limit_bytes / STORE_SHARE);
        let beside_bytes = store.bytes_max - store.bytes_max / MAIN_STORE_SHARE;
        Memory {
            limit_bytes,
            bodies: FairPool::new(limit_bytes / BODIES_SHARE / UNIT_BYTES),
            heads: FairPool::new(limit_bytes / HEADS_SHARE / UNIT_BYTES),
            reading: Semaphore::new(available_parallelism().map_or(0, NonZero::get).max(READ_AT_ONCE_MIN)),
            work: RequestPool::new(limit_bytes / WORK_SHARE),
            listed: RequestPool::new(limit_bytes / WORK_SHARE),
            parts: RequestPool::new(limit_bytes / PARTS_SHARE),
            answered: RequestPool::new(limit_bytes / WORK_SHARE),
            reconciled: FairPool::new(limit_bytes / RECONCILED_SHARE / UNIT_BYTES),
            watches: FairPool::new(limit_bytes / WATCHES_SHARE / UNIT_BYTES),
            changes: FairPool::new(limit_bytes / CHANGES_SHARE / UNIT_BYTES),
            stores_beside: Room::within(&store, beside_bytes),
            store,
            planes: Room::of(limit_bytes / PLANES_SHARE),
            references: Room::of(limit_bytes / REFERENCES_SHARE),
            grants: Room::of(limit_bytes / GRANTS_SHARE),
            nodes: Room::of(limit_bytes / NODES_SHARE),
            policies: Room::of(limit_bytes / POLICIES_SHARE),
            derived: Room::of(limit_bytes / DERIVED_SHARE),
            faults: Room::of(limit_bytes / FAULTS_SHARE),
            begun: Instant::now(),
            looked: AtomicU64::new(0),
        }
    }

    /// A budget of as much memory as the system gives the process.
    pub fn of_system() -> Self {
        Memory::new(system_limit_bytes().unwrap_or(usize::MAX))
    }

    pub fn limit_bytes(&self) -> usize {
        self.limit_bytes
    }

    /// How many bytes of objects may be cached for reads.
    pub fn view_bytes_max(&self) -> usize {
        self.limit_bytes / VIEW_SHARE
    }

    /// How many bytes a collection may have that is read from the database as a whole.
    pub fn collection_bytes_max(&self) -> usize {
        self.limit_bytes / COLLECTION_SHARE
    }

    /// How many connections there may be.
    pub fn connections_max(&self) -> usize {
        self.limit_bytes / CONNECTIONS_SHARE / CONNECTION_BYTES
    }

    /// How many bytes of former states the readers of a database may hold.
    pub fn held_bytes_max(&self) -> usize {
        self.limit_bytes / HELD_SHARE
    }

    /// How many bytes the objects of a page of a list may have, but for the last one: its client may be slow.
    pub fn page_bytes_max(&self) -> usize {
        self.held_bytes_max() / 2
    }

    /// How many bytes the certificates of webhooks may take that connections are kept to.
    pub fn webhooks_bytes_max(&self) -> usize {
        (self.limit_bytes / WEBHOOKS_SHARE).min(WEBHOOKS_BYTES_MAX)
    }

    /// How many bytes of OpenAPI documents may be kept now; the one that was asked for last is kept in any case.
    pub fn documents_bytes_max(&self) -> usize {
        if self.is_short() {
            return 0;
        }
        (self.limit_bytes / DOCUMENTS_SHARE).clamp(DOCUMENTS_BYTES_MIN, DOCUMENTS_BYTES_MAX)
    }

    /// The room that the in-memory databases share.
    pub fn store_room(&self) -> Arc<Room> {
        Arc::clone(&self.store)
    }

    /// The part of it that the databases of control planes beside the main one share, beside what copies have in common
    /// with their origin.
    pub fn store_room_beside(&self) -> Arc<Room> {
        Arc::clone(&self.stores_beside)
    }

    /// An empty part of the memory for references to owners, which grows with those that are known.
    pub fn for_references(&self) -> Portion {
        self.references.take(0)
    }

    /// Whether an object that had `before` references to owners may have `count`; an error if those that are known have
    /// taken the memory for them, or for a few twice as much.
    pub fn check_references(&self, before: usize, count: usize) -> Result<(), Full> {
        let bytes_of = |count: usize| count.saturating_mul(REFERENCE_BYTES);
        let growth = Growth { bytes_before: bytes_of(before), bytes: bytes_of(count) };
        self.references.check(&growth, bytes_of(REFERENCES_FREE))
    }

    /// An empty part of the memory for what nodes need.
    pub fn for_nodes(&self) -> Portion {
        self.nodes.take(0)
    }

    /// An empty part of the memory for roles and bindings, which grows with those that are in force.
    pub fn for_grants(&self) -> Portion {
        self.grants.take(0)
    }

    /// Whether a role or a binding may grow; an error if those that are in force have taken the memory for them, or for a
    /// small one twice as much.
    pub fn check_grant(&self, growth: &Growth) -> Result<(), Full> {
        self.grants.check(growth, room::SMALL_BYTES)
    }

    /// An empty part of the memory for admission policies, which grows with those that are in force.
    pub fn for_policies(&self) -> Portion {
        self.policies.take(0)
    }

    /// Takes the memory by which an admission policy grows; an error if those that are in force have taken it.
    pub fn for_policy(&self, growth: &Growth) -> Result<Option<Portion>, Full> {
        self.policies.check(growth, room::SMALL_BYTES)?;
        let more = growth.bytes.saturating_sub(growth.bytes_before);
        Ok((more > 0).then(|| self.policies.take(more)))
    }

    /// How much memory all admission policies may take.
    pub fn policies_bytes_max(&self) -> usize {
        self.policies.bytes_max
    }

    /// Takes memory to keep an object in a form that clients get; `None` if those that are kept have taken all of it.
    pub fn for_derived(&self, bytes: usize) -> Option<Portion> {
        self.derived.try_take(bytes).ok()
    }

    /// Takes memory for a fault that is to be injected; an error if those of all control planes have taken it.
    pub fn for_fault(&self, bytes: usize) -> Result<Portion, Full> {
        self.faults.try_take(bytes)
    }

    /// How many bytes the roles and bindings that are in force take.
    pub fn grant_bytes(&self) -> usize {
        self.grants.taken()
    }

    /// How many bytes the known references to owners take.
    pub fn reference_bytes(&self) -> usize {
        self.references.taken()
    }

    /// Takes memory for one more control plane, beside what its objects take; an error if there are too many.
    pub fn for_plane(&self) -> Result<Portion, Full> {
        self.planes.try_take(PLANE_BYTES)
    }

    /// Reserves memory to read a body of so many bytes that a user or a webhook sends; `None` for a user whose
    /// share is not limited. A body that is larger than the share takes all of it.
    pub async fn for_body(&self, sender: Option<&str>, bytes: usize) -> Result<Reservation, Full> {
        self.bodies.take(sender, units_for(bytes), Instant::now() + WAIT).await.map(Reservation).ok_or(Full)
    }

    /// Waits for a turn to read what has arrived of a large body; `None` if there are none any more, which does not happen.
    pub async fn turn_to_read(&self) -> Option<SemaphorePermit<'_>> {
        self.reading.acquire().await.ok()
    }

    /// Reserves memory for the head of a request from an address or of a user, at once or not at all.
    pub fn for_head(&self, sender: Option<&str>, bytes: usize) -> Result<Reservation, Full> {
        self.heads.try_take(sender, units_for(bytes)).map(Reservation).ok_or(Full)
    }

    /// Reserves memory to decode what a webhook answers. The holder must not ask for more of it.
    pub async fn for_decoding(&self, webhook: &str, body: &[u8]) -> Result<Reservation, Full> {
        self.within(&self.answered, Some(webhook), work_bytes(body)).await
    }

    /// Reserves memory for objects of a namespace that a controller has decoded, within `time`. More than the share of a
    /// namespace takes all of it.
    pub async fn for_reconciled(&self, namespace: &str, bytes: usize, time: Duration) -> Result<Reservation, Full> {
        let taken = self.reconciled.take(Some(namespace), units_for(bytes), Instant::now() + time);
        taken.await.map(Reservation).ok_or(Full)
    }

    /// Reserves memory for a write that a controller makes, which changes an object that is stored as `before`.
    pub async fn for_work_of(&self, user: &str, body: &[u8], before: &[u8]) -> Result<Reservation, Full> {
        self.within(&self.work, Some(user), work_bytes(body) + work_bytes(before)).await
    }

    /// Reserves memory for the work of a request with its body and an object of `stored_bytes` in
    /// the database.
    pub async fn for_work_on(&self, user: Option<&str>, body: &[u8], stored_bytes: usize) -> Result<Reservation, Full> {
        let bytes = work_bytes(body) + stored_bytes.saturating_mul(TEXT_COPIES);
        self.within(&self.work, user, bytes).await
    }

    /// Reserves memory for the objects that a request is checked against, beside that for its own
    /// work; fails at once for more than the process could hold beside the rest. The holder must
    /// not ask for more of it.
    pub async fn for_listed(&self, bytes: usize) -> Result<Reservation, Full> {
        if bytes > self.answer_bytes_max() { Err(Full) } else { self.within(&self.listed, None, bytes).await }
    }

    /// Reserves memory for a part of a collection that is read from the database, until it is answered.
    pub async fn for_part(&self, user: Option<&str>, bytes: usize) -> Result<Reservation, Full> {
        self.within(&self.parts, user, bytes).await
    }

    async fn within(&self, pool: &RequestPool, user: Option<&str>, bytes: usize) -> Result<Reservation, Full> {
        let until = Instant::now() + WAIT;
        // What is small goes on until there is none left.
        let is_blocked = || if bytes <= SMALL_BYTES_MAX { self.is_out() } else { self.is_short() };
        while !pool.is_idle() && is_blocked() {
            if Instant::now() > until {
                return Err(Full);
            }
            sleep(PAUSE).await;
        }
        pool.take(user, bytes, until).await.map(Reservation).ok_or(Full)
    }

    /// Reserves memory for an answer of so many bytes that is built as a whole; fails at once for
    /// more than the process could hold beside the rest.
    pub async fn for_answer(&self, user: Option<&str>, bytes: usize) -> Result<Reservation, Full> {
        if bytes > self.answer_bytes_max() { Err(Full) } else { self.within(&self.work, user, bytes).await }
    }

    /// How many bytes an answer that is built as a whole may take.
    pub fn answer_bytes_max(&self) -> usize {
        self.limit_bytes / ANSWER_SHARE
    }

    /// Reserves memory for a watch whose selectors hold so many bytes, at once or not at all, as watches last long.
    pub fn for_watch(&self, user: Option<&str>, selectors_bytes: usize) -> Result<Reservation, Full> {
        let units = units_for(WATCH_BYTES.saturating_add(selectors_bytes));
        self.watches.try_take(user, units).map(Reservation).ok_or(Full)
    }

    /// Reserves memory for changes that the client of a watch may be slow to read, or for the pieces of a list.
    pub async fn for_changes(&self, user: Option<&str>, bytes: usize) -> Result<Reservation, Full> {
        self.changes.take(user, units_for(bytes), Instant::now() + WAIT).await.map(Reservation).ok_or(Full)
    }

    /// Whether the process uses nearly all of its limit.
    pub fn is_short(&self) -> bool {
        self.used_percent() > SHORT_PERCENT
    }

    /// Whether the process uses all of its limit: whatever takes more must end.
    pub fn is_out(&self) -> bool {
        self.used_percent() > OUT_PERCENT
    }

    /// How much of the limit the process uses, in percent, at most 255. A measurement is valid for
    /// [`LOOK_EVERY`].
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

/// The units for so many bytes.
fn units_for(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX)
}

/// The estimated memory of a request that decodes `body`, from its length and the number of values
/// in it.
fn work_bytes(body: &[u8]) -> usize {
    body.len() * TEXT_COPIES + values_of(body) * VALUE_BYTES
}

/// How many bytes an object takes while it is decoded, about.
pub fn decoded_bytes(text: &[u8]) -> usize {
    text.len() + values_of(text) * DECODED_VALUE_BYTES
}

/// How many values are in a text, about.
fn values_of(body: &[u8]) -> usize {
    // Chunks are short enough for a `u8` counter: so the compiler can compare many bytes at once.
    let begins =
        |byte: &u8| u8::from((*byte == b',') | (*byte == b':') | (*byte == b'{') | (*byte == b'[') | (*byte == b'\n'));
    let chunks = body.chunks(usize::from(u8::MAX));
    chunks.map(|chunk| usize::from(chunk.iter().map(begins).sum::<u8>())).sum()
}

/// Why a text is not a memory limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BytesError {
    #[error("expected a number of bytes, such as 512Mi")]
    NotANumber,
    #[error("must be at least {}Mi", LIMIT_BYTES_MIN >> 20)]
    TooFew,
    #[error("there is no such machine")]
    TooMany,
}

/// Parses a number of bytes as the API writes memory quantities: `100Mi`, `1Gi`, `500000`.
///
/// # Errors
///
/// The text is not a number, or it is below the minimum or too large.
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

    /// Larger than what has memory of its own.
    const LARGE_BYTES: usize = 1 << 20;

    #[tokio::test(start_paused = true)]
    async fn what_is_larger_than_all_runs_alone_and_others_wait_their_turn() {
        let memory = Arc::new(Memory::new(1 << 40));
        let huge = memory.within(&memory.work, None, usize::MAX / 2).await.expect("there is all of it");
        assert_eq!(
            memory.within(&memory.work, None, LARGE_BYTES).await.err(),
            Some(Full),
            "it waits, then it is refused"
        );
        let waiting = tokio::spawn({
            let memory = Arc::clone(&memory);
            async move { memory.within(&memory.work, None, LARGE_BYTES).await.is_ok() }
        });
        tokio::task::yield_now().await;
        drop(huge);
        assert!(waiting.await.expect("it does not panic"));
    }

    #[tokio::test(start_paused = true)]
    async fn the_answers_of_one_user_leave_memory_for_others() {
        let memory = Memory::new(1 << 30);
        let jane = Some("jane");
        let huge = memory.for_answer(jane, 1 << 29).await.expect("there is half of it");
        assert_eq!(memory.for_answer(jane, LARGE_BYTES).await.err(), Some(Full), "the user has no more");
        let others = memory.for_work_on(Some("joe"), b"{}", 1 << 20).await;
        drop((huge, others.expect("there is some for others")));
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_waits_no_longer_where_memory_is_short_at_first() {
        let memory = Memory::new(1 << 40);
        let all = memory.within(&memory.work, None, usize::MAX / 2).await.expect("there is all of it");
        // Until then the process is said to use all of its limit.
        let short_ms = 4_000_u64;
        memory.looked.store((short_ms << 8) | 100, Ordering::Relaxed);
        let began = Instant::now();
        assert_eq!(memory.within(&memory.work, None, LARGE_BYTES).await.err(), Some(Full));
        assert!(began.elapsed() >= WAIT && began.elapsed() < WAIT + 2 * PAUSE, "{:?}", began.elapsed());
        drop(all);
    }

    #[tokio::test]
    async fn an_answer_that_could_never_be_held_is_refused_at_once() {
        let memory = Memory::new(1 << 40);
        assert!(memory.for_answer(None, 1 << 39).await.is_ok());
        assert_eq!(memory.for_answer(None, (1 << 39) + 1).await.err(), Some(Full));
    }

    #[test]
    fn a_watch_is_refused_at_once_where_there_are_too_many() {
        let memory = Memory::new(LIMIT_BYTES_MIN);
        let watches: Vec<_> = std::iter::from_fn(|| memory.for_watch(None, 0).ok()).collect();
        assert_eq!(watches.len(), LIMIT_BYTES_MIN / WATCHES_SHARE / WATCH_BYTES);
        drop(watches);
        let watches: Vec<_> = std::iter::from_fn(|| memory.for_watch(Some("jane"), 0).ok()).collect();
        assert_eq!(watches.len(), LIMIT_BYTES_MIN / WATCHES_SHARE / WATCH_BYTES / 2, "half is for others");
        assert!(memory.for_watch(Some("joe"), 0).is_ok());
    }

    #[test]
    fn a_watch_counts_for_what_its_selectors_hold() {
        let memory = Memory::new(LIMIT_BYTES_MIN);
        let selectors_bytes = 40 * WATCH_BYTES;
        let watches: Vec<_> = std::iter::from_fn(|| memory.for_watch(None, selectors_bytes).ok()).collect();
        assert_eq!(watches.len(), LIMIT_BYTES_MIN / WATCHES_SHARE / (41 * WATCH_BYTES));
    }

    #[test]
    fn what_is_small_has_room_until_twice_as_much_is_taken() {
        let memory = Memory::new(LIMIT_BYTES_MIN);
        let mut taken = memory.for_grants();
        let bytes_max = LIMIT_BYTES_MIN / GRANTS_SHARE;
        let grows = |bytes_before, bytes| memory.check_grant(&Growth { bytes_before, bytes }).is_ok();
        let check = |bytes: usize| grows(0, bytes);
        assert!(check(bytes_max) && !check(bytes_max + 1));
        taken.resize(bytes_max);
        assert!(check(room::SMALL_BYTES) && !check(room::SMALL_BYTES + 1));
        assert!(grows(1 << 20, 1 << 20) && !grows(1 << 20, (1 << 20) + 1));
        taken.resize(2 * bytes_max - 1);
        assert!(check(1) && !check(2));
        taken.resize(9 * bytes_max);
        assert!(check(0) && grows(7, 6), "what takes nothing more is in nobody's way");
        assert!(memory.check_references(0, 0).is_ok());
        drop(taken);
        assert!(check(bytes_max));
    }

    #[test]
    fn control_planes_are_counted_and_leave_room_to_the_main_one() {
        let memory = Memory::new(LIMIT_BYTES_MIN);
        let planes: Vec<_> = std::iter::from_fn(|| memory.for_plane().ok()).collect();
        assert_eq!(planes.len(), LIMIT_BYTES_MIN / PLANES_SHARE / PLANE_BYTES);
        drop(planes);
        assert!(memory.for_plane().is_ok());
        let (main, beside) = (memory.store_room(), memory.store_room_beside());
        let unit = main.bytes_max / MAIN_STORE_SHARE;
        let taken = beside.take(beside.bytes_max);
        assert_eq!([beside.has(1), main.has(unit), main.has(unit + 1)], [false, true, false]);
        drop(taken);
        let taken = main.take(2 * unit);
        assert_eq!([beside.has(6 * unit), beside.has(6 * unit + 1)], [true, false], "they share the whole");
        drop(taken);
        assert_eq!([main.taken(), beside.taken()], [0, 0]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_the_process_has_for_itself_is_counted() {
        const TAKEN_BYTES: usize = 64 << 20;
        let before = own_bytes().expect("the system tells");
        let taken = std::hint::black_box(vec![1_u8; TAKEN_BYTES]);
        let after = own_bytes().expect("the system tells");
        // Other tests allocate and free memory at the same time.
        assert!(after > before + taken.len() / 2, "{before}, {after}");
    }

    #[test]
    fn many_small_values_take_more_than_one_large_text() {
        let numbers = "1,".repeat(500);
        assert_eq!(work_bytes(&b",".repeat(700)), 700 * (TEXT_COPIES + VALUE_BYTES));
        assert!(work_bytes(numbers.as_bytes()) > 5 * work_bytes("x".repeat(1000).as_bytes()));
    }
}
