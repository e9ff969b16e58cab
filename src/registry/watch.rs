//! WATCH: the changes of a collection as a stream of events, from a revision on.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use crate::meta::{Revision, Status};
use crate::store::{self, At, Encoded, Stored, WatchError};

use super::list::{ListRequest, split_key};
use super::{Registry, Target, store_failed};

/// How often a watch tells how far it is.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);

/// How long before its end a watch tells how far it is.
const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);

/// Where a watch begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// With every object there is, as ADDED, at this revision or a newer one.
    State(Option<Revision>),
    /// With the changes after this revision.
    After(Revision),
    /// With the changes from now on.
    Now,
}

/// What a WATCH asks for.
#[derive(Clone, Debug)]
pub struct WatchRequest {
    pub start: Start,
    /// The selectors.
    pub select: ListRequest,
    pub bookmarks: bool,
    /// Whether a bookmark marks the end of the initial events.
    pub marks_initial_end: bool,
    pub timeout: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventType {
    Added,
    Modified,
    Deleted,
    Bookmark,
    Error,
}

impl EventType {
    pub const fn as_str(self) -> &'static str {
        match self {
            EventType::Added => "ADDED",
            EventType::Modified => "MODIFIED",
            EventType::Deleted => "DELETED",
            EventType::Bookmark => "BOOKMARK",
            EventType::Error => "ERROR",
        }
    }
}

/// One event, ready to be framed.
pub enum Event {
    /// An object in the state after the change, or, for a deletion, before it; the revision is that of the change.
    Object { kind: EventType, object: Encoded, revision: Revision },
    Bookmark { revision: Revision, initial_end: bool },
    /// The last event of a watch that can't go on.
    Error(Status),
}

/// A running watch.
pub struct Watch {
    registry: Arc<Registry>,
    target: Target,
    select: ListRequest,
    events: store::Watch,
    waiting: VecDeque<Event>,
    initial: Option<Initial>,
    bookmarks: Option<Bookmarks>,
    ends: Instant,
    ended: bool,
}

/// Objects still to be sent as ADDED.
struct Initial {
    rows: std::vec::IntoIter<Arc<Stored>>,
    revision: Revision,
    marks_end: bool,
}

struct Bookmarks {
    interval: Interval,
    before_end: Option<Instant>,
    /// The revision that the client knows.
    told: Revision,
}

impl Registry {
    /// Starts to watch `target`'s collection.
    ///
    /// Errors: 504 for initial events at a revision that is not there yet. A revision that is gone is an event.
    pub async fn watch(self: &Arc<Self>, target: &Target, request: &WatchRequest) -> Result<Watch, Status> {
        let collection = &target.resource.collection;
        let mut waiting = VecDeque::new();
        let mut initial = None;
        let after = match request.start {
            Start::State(revision) => {
                self.wait_for(revision).await?;
                let snapshot = self.storage.snapshot(collection, At::Newest).await.map_err(|error| match error {
                    store::SnapshotError::Expired { .. } => Status::expired("too old resource version"),
                    store::SnapshotError::Store(error) => store_failed(error),
                })?;
                let prefix = match target.namespace.is_empty() {
                    true => String::new(),
                    false => format!("{}/", target.namespace),
                };
                let rows: Vec<_> = snapshot.range(&prefix, None).cloned().collect();
                let revision = snapshot.revision();
                initial = Some(Initial { rows: rows.into_iter(), revision, marks_end: request.marks_initial_end });
                revision
            }
            Start::After(revision) => revision,
            Start::Now => self.storage.revision(),
        };
        let (events, ended) = match self.storage.watch(collection, after).await {
            Ok(events) => (events, false),
            Err(WatchError::Expired { compacted }) => {
                let message = format!("too old resource version: {after} ({compacted})");
                waiting.push_back(Event::Error(Status::expired(&message)));
                (store::Watch::empty(), true)
            }
            Err(WatchError::Store(error)) => return Err(store_failed(error)),
        };
        let ends = Instant::now() + request.timeout;
        let bookmarks = request.bookmarks.then(|| {
            let mut interval = interval_at(Instant::now() + BOOKMARK_EVERY, BOOKMARK_EVERY);
            interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
            let before_end = (request.timeout > BOOKMARK_BEFORE_END).then(|| ends - BOOKMARK_BEFORE_END);
            Bookmarks { interval, before_end, told: after }
        });
        Ok(Watch {
            registry: Arc::clone(self),
            target: target.clone(),
            select: request.select.clone(),
            events,
            waiting,
            initial,
            bookmarks,
            ends,
            ended,
        })
    }
}

impl Watch {
    /// The next event; `None` at the end. Cancel-safe.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return Some(event);
            }
            if self.ended {
                return None;
            }
            if let Some(initial) = &mut self.initial {
                match initial.rows.next() {
                    Some(stored) => self.add_initial(stored).await,
                    None => self.finish_initial(),
                }
                continue;
            }
            tokio::select! {
                biased;
                change = self.events.next() => match change {
                    Some(change) => self.add_change(change).await,
                    None => self.ended = true,
                },
                () = tick(&mut self.bookmarks) => self.add_bookmark(),
                () = tokio::time::sleep_until(self.ends) => self.ended = true,
            }
        }
    }

    async fn add_initial(&mut self, stored: Arc<Stored>) {
        match self.selected(&stored).await {
            Ok(Some(object)) => {
                self.waiting.push_back(Event::Object { kind: EventType::Added, object, revision: stored.revision });
            }
            Ok(None) => {}
            Err(status) => self.fail(status),
        }
    }

    fn finish_initial(&mut self) {
        let Some(initial) = self.initial.take() else { return };
        if initial.marks_end && self.bookmarks.is_some() {
            self.waiting.push_back(Event::Bookmark { revision: initial.revision, initial_end: true });
        }
    }

    /// Turns a change into an event: what an object is for this watch depends on whether the selectors selected it before
    /// and select it now.
    async fn add_change(&mut self, change: Arc<store::Change>) {
        if !self.concerns(&change.object) {
            return;
        }
        let result = async {
            let now = match change.deleted {
                true => None,
                false => self.selected(&change.object).await?,
            };
            let before = match &change.previous {
                Some(previous) => self.selected(previous).await?,
                None => None,
            };
            Ok(match (now, before) {
                (Some(object), None) => Some((EventType::Added, object)),
                (Some(object), Some(_)) => Some((EventType::Modified, object)),
                (None, Some(object)) => Some((EventType::Deleted, object)),
                (None, None) => None,
            })
        };
        match result.await {
            Ok(Some((kind, object))) => {
                self.waiting.push_back(Event::Object { kind, object, revision: change.revision });
                if let Some(bookmarks) = &mut self.bookmarks {
                    bookmarks.told = change.revision;
                }
            }
            Ok(None) => {}
            Err(status) => self.fail(status),
        }
    }

    fn concerns(&self, stored: &Stored) -> bool {
        let namespace = &self.target.namespace;
        namespace.is_empty() || split_key(&self.target, &stored.key).0 == namespace
    }

    /// The object as it is sent, if the selectors select it.
    async fn selected(&self, stored: &Arc<Stored>) -> Result<Option<Encoded>, Status> {
        let target = self.registry.refresh(&self.target).await?;
        match self.registry.selects(&target, &self.select, stored).await? {
            true => self.registry.encoded(&target.resource, &target.version, stored).await.map(Some),
            false => Ok(None),
        }
    }

    /// Tells how far the watch is, if the client does not know.
    fn add_bookmark(&mut self) {
        let seen = self.events.seen();
        let Some(bookmarks) = &mut self.bookmarks else { return };
        if seen > bookmarks.told {
            bookmarks.told = seen;
            self.waiting.push_back(Event::Bookmark { revision: seen, initial_end: false });
        }
    }

    /// A resource that is gone ends its watches; anything else is told.
    fn fail(&mut self, status: Status) {
        self.ended = true;
        if status.code != 404 {
            self.waiting.push_back(Event::Error(status));
        }
    }
}

/// Waits for the next time to tell how far a watch is; forever where it does not tell.
async fn tick(bookmarks: &mut Option<Bookmarks>) {
    let Some(bookmarks) = bookmarks else { return std::future::pending().await };
    match bookmarks.before_end {
        Some(before_end) => tokio::select! {
            _ = bookmarks.interval.tick() => {}
            () = tokio::time::sleep_until(before_end) => bookmarks.before_end = None,
        },
        None => _ = bookmarks.interval.tick().await,
    }
}
