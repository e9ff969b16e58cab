//! WATCH: the changes of a collection as a stream of events, starting at a revision.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, Interval, MissedTickBehavior, Sleep, interval_at, sleep_until};

use crate::crd::ServedVersion;
use crate::memory::{Full, Reservation};
use crate::meta::{Revision, Status, field};
use crate::store::{
    self, At, CollectionPart, Encoded, HandOut, PartReader, Revocable, Snapshot, SnapshotError, StoreError, Stored,
    TakenBack, WatchError,
};
use crate::value::json;
use crate::work;

use super::derive::Undecodable;
use super::list::{ListRequest, key_prefix, list_failed, split_key};
use super::selection::Selection;
use super::{Registry, Target, store_failed};

/// How often a watch sends a bookmark.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);

/// How long before its end a watch sends a bookmark.
const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);

/// How often a watch tries again to convert what could not be converted. Source: answers recorded from Kubernetes 1.37.
const RETRY_EVERY: Duration = Duration::from_millis(100);

/// How many of its initial objects a watch looks up at a time.
const INITIAL_ROWS: usize = 32;

/// Where a watch begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// With every existing object, as ADDED, at this revision or a newer one.
    State(Option<Revision>),
    /// With every object that existed at this revision, as ADDED, and the changes after it.
    Past(Revision),
    /// With the changes after this revision.
    After(Revision),
    /// With the changes from now on.
    Now,
}

/// The parameters of a WATCH.
#[derive(Clone, Debug)]
pub struct WatchRequest {
    pub start: Start,
    /// The selectors.
    pub select: ListRequest,
    pub bookmarks: bool,
    /// Whether a bookmark marks the end of the initial events.
    pub marks_initial_end: bool,
    pub timeout: Duration,
    /// The user whose share counts for what is sent slowly.
    pub user: Option<Arc<str>>,
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
pub enum WatchEvent {
    /// An object as of after the change, or, for a deletion, before it; the revision is that of the change.
    Object {
        kind: EventType,
        object: Encoded,
        revision: Revision,
        /// `None` for an initial object.
        shared: Option<SharedChange>,
    },
    Bookmark {
        revision: Revision,
        initial_end: bool,
    },
    /// The last event of a watch that can't go on.
    Error(Status),
}

/// The parts of an event that other watches share.
pub struct SharedChange {
    pub change: Arc<store::Change>,
    /// The version of its object.
    pub version: Arc<ServedVersion>,
}

/// A running watch.
pub struct Watch {
    registry: Arc<Registry>,
    target: Target,
    selection: Selection,
    events: store::LogWatch,
    waiting: VecDeque<WatchEvent>,
    initial: Option<Initial>,
    /// The change that is being converted to an event.
    change: Option<Arc<store::Change>>,
    bookmarks: Option<Bookmarks>,
    /// `None` for a built-in kind.
    definition: Option<DefinitionChanges>,
    /// Created once, and not for each event.
    ends: Pin<Box<Sleep>>,
    /// Set once the definition has changed: only what was committed until then is told.
    last: Option<Revision>,
    ended: bool,
}

/// The changes of the definition that the watched resource comes from.
struct DefinitionChanges {
    key: Arc<str>,
    changes: store::LogWatch,
}

impl DefinitionChanges {
    /// Waits until the definition has changed what it defines, or is gone. Source: kube-apiserver ends the watches of a
    /// custom resource whose spec or accepted names change. Cancel-safe.
    async fn changed(&mut self) {
        while let Some(change) = self.changes.next().await {
            if change.object.key == self.key && (change.deleted || redefines(&change)) {
                return;
            }
        }
    }
}

/// Whether a change of a definition changes what it defines: compared once for all watches of the kind.
fn redefines(change: &store::Change) -> bool {
    change.findings.redefines(|| defines_another(change))
}

fn defines_another(change: &store::Change) -> bool {
    let parts = |stored: &Stored| {
        let definition = json::decode(&stored.bytes).unwrap_or_default();
        ["spec", "status"].map(|part| match part {
            "spec" => definition.get(part).cloned(),
            _ => definition.at(&[part, "acceptedNames"]).cloned(),
        })
    };
    change.previous.as_ref().is_some_and(|previous| parts(previous) != parts(&change.object))
}

/// Objects still to be sent as ADDED.
struct Initial {
    objects: Revocable<InitialObjects>,
    /// The one that is sent next; `None` once all were sent.
    next: Option<Arc<Stored>>,
    /// Memory for it.
    reserved: Option<Reservation>,
    revision: Revision,
    marks_end: bool,
}

/// The objects of a snapshot that follow, in the order of their keys.
struct InitialObjects {
    snapshot: Snapshot,
    prefix: String,
    rows: VecDeque<Arc<Stored>>,
    /// Whether those in `rows` are the last.
    read_out: bool,
}

impl InitialObjects {
    fn new(snapshot: Snapshot, prefix: String) -> Self {
        let mut objects = InitialObjects { snapshot, prefix, rows: VecDeque::new(), read_out: false };
        objects.read(None);
        objects
    }

    fn read(&mut self, start: Option<&str>) {
        self.rows.extend(self.snapshot.range(&self.prefix, start).take(INITIAL_ROWS).cloned());
        self.read_out = self.rows.len() < INITIAL_ROWS;
    }
}

impl Iterator for InitialObjects {
    type Item = Arc<Stored>;

    fn next(&mut self) -> Option<Arc<Stored>> {
        let next = self.rows.pop_front()?;
        if self.rows.is_empty() && !self.read_out {
            self.read(Some(&format!("{}\0", next.key)));
        }
        Some(next)
    }
}

impl Initial {
    /// Moves on to the next object, if it is still held.
    fn advance(&mut self) -> Result<(), TakenBack> {
        self.reserved = None;
        self.next = self.objects.with(Iterator::next)?;
        Ok(())
    }
}

/// Why a watch has no event.
enum NoEvent {
    /// An object currently can't be converted to the version of the watch.
    Undecodable,
    Refused(Status),
    /// Objects have other selectable fields by now.
    Redefined,
}

impl From<Undecodable> for NoEvent {
    fn from(_: Undecodable) -> Self {
        NoEvent::Undecodable
    }
}

struct Bookmarks {
    interval: Interval,
    before_end: Option<Pin<Box<Sleep>>>,
    /// The revision at which the watch began: the client knows this already.
    start: Revision,
}

impl Bookmarks {
    fn new(timeout: Duration, ends: Instant, start: Revision) -> Self {
        let mut interval = interval_at(Instant::now() + BOOKMARK_EVERY, BOOKMARK_EVERY);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let before_end = (timeout > BOOKMARK_BEFORE_END).then(|| Box::pin(sleep_until(ends - BOOKMARK_BEFORE_END)));
        Bookmarks { interval, before_end, start }
    }
}

impl Registry {
    /// Starts to watch `target`'s collection.
    ///
    /// If the revision has been compacted, or does not exist yet and the initial events are requested at it, the error
    /// is an event.
    pub async fn watch(self: &Arc<Self>, target: &Target, request: &WatchRequest) -> Result<Watch, Status> {
        let collection = &target.resource.collection;
        let mut waiting = VecDeque::new();
        let (after, mut initial) = self.begin(target, request, &mut waiting).await?;
        if let Some(initial) = &mut initial {
            initial.marks_end &= request.bookmarks;
        }
        let mut ended = !waiting.is_empty();
        let events = match self.storage.watch(collection, after).await {
            Ok(events) => events,
            Err(WatchError::Expired { compacted }) => {
                let message = if target.resource.strategy.is_read_from_store() {
                    "The resourceVersion for the provided watch is too old.".to_owned()
                } else {
                    format!("too old resource version: {after} ({compacted})")
                };
                waiting.push_back(WatchEvent::Error(Status::expired(&message)));
                ended = true;
                store::LogWatch::empty()
            }
            Err(WatchError::Store(error)) => return Err(store_failed(collection, "list", error)),
        };
        let definition = self.follow_definition(target).await;
        let ends = Instant::now() + request.timeout;
        // The store marks the end of the initial events, and sends no other bookmarks.
        let has_bookmarks = request.bookmarks && !target.resource.strategy.is_read_from_store();
        let bookmarks = has_bookmarks.then(|| Bookmarks::new(request.timeout, ends, after));
        Ok(Watch {
            registry: Arc::clone(self),
            target: target.clone(),
            selection: Selection::bind(&request.select.labels, &request.select.fields, target),
            events,
            waiting,
            initial,
            change: None,
            bookmarks,
            definition,
            ends: Box::pin(sleep_until(ends)),
            last: None,
            ended,
        })
    }

    /// The revision after which changes are sent, and the objects that are sent before them. If the revision does not
    /// exist yet, the error is an event, after which the watch ends.
    async fn begin(
        &self,
        target: &Target,
        request: &WatchRequest,
        waiting: &mut VecDeque<WatchEvent>,
    ) -> Result<(Revision, Option<Initial>), Status> {
        match request.start {
            Start::State(revision) => {
                if let Err(too_large) = self.wait_for(&target.resource, revision).await {
                    waiting.push_back(WatchEvent::Error(too_large));
                }
                let part = self.initial_part(target, request, At::Newest).await?;
                // Of a whole collection, all are in memory anyway.
                let bytes = (!part.is_whole()).then(|| part.size_bytes());
                let (snapshot, _reserved) = part.into_snapshot();
                let objects = InitialObjects::new(snapshot, key_prefix(target));
                let initial = self.initial(target, request, objects, bytes);
                Ok((initial.revision, Some(initial)))
            }
            Start::Past(revision) => {
                let part = self.initial_part(target, request, At::Exact(revision)).await?;
                let (snapshot, _reserved) = part.into_snapshot();
                let bytes = snapshot.range("", None).map(|stored| stored.bytes.len()).sum();
                let objects = InitialObjects::new(snapshot, key_prefix(target));
                Ok((revision, Some(self.initial(target, request, objects, Some(bytes)))))
            }
            Start::After(revision) => Ok((revision, None)),
            Start::Now => Ok((self.storage.revision(&target.resource.collection), None)),
        }
    }

    /// The objects that a watch begins with.
    async fn initial_part(&self, target: &Target, request: &WatchRequest, at: At) -> Result<CollectionPart, Status> {
        let part = self.part(target, at, PartReader::Client(request.user.clone())).await;
        part.map_err(|error| match error {
            // With 429 client-go would ask for the same again; with this it lists, in pages.
            SnapshotError::Store(error @ StoreError::NoMemory) if request.marks_initial_end && request.bookmarks => {
                let detail = format!("sendInitialEvents is forbidden for this collection: {error}");
                let error = field::Error::forbidden(&field::Path::new("sendInitialEvents"), &detail);
                Status::invalid("meta.k8s.io", "ListOptions", "", &error.into())
            }
            error => list_failed(&target.resource.collection, error),
        })
    }

    /// Objects as a client that may be slow gets them; `bytes` is their size, if they are not the present ones.
    fn initial(
        &self,
        target: &Target,
        request: &WatchRequest,
        mut objects: InitialObjects,
        bytes: Option<usize>,
    ) -> Initial {
        let (revision, next) = (objects.snapshot.revision(), objects.next());
        let of = HandOut { collection: &target.resource.collection, revision, bytes, user: request.user.as_deref() };
        let objects = self.storage.hand_out(&of, objects);
        Initial { objects, next, reserved: None, revision, marks_end: request.marks_initial_end }
    }

    /// The changes of the definition of a custom resource, starting with the state that the target was resolved from.
    async fn follow_definition(&self, target: &Target) -> Option<DefinitionChanges> {
        let definition = target.resource.definition.as_ref()?;
        let collection = self.definitions.collection();
        let changes = match self.storage.watch(&collection, definition.revision).await {
            Ok(changes) => changes,
            // That state has been compacted; start with the current one.
            Err(_) => self.storage.watch(&collection, self.storage.revision(&collection)).await.ok()?,
        };
        Some(DefinitionChanges { key: Arc::clone(&definition.key), changes })
    }
}

impl Watch {
    /// The same watch, for a client that may be slow to read ([`store::LogWatch::read_by`]).
    pub fn read_by(mut self, user: Option<&str>) -> Self {
        self.events = self.events.read_by(user, &self.registry.memory);
        self
    }

    /// Whether no known change results in an event: `next` would most likely wait.
    pub fn is_quiet(&self) -> bool {
        self.waiting.is_empty() && self.initial.is_none() && self.change.is_none() && self.events.is_quiet()
    }

    /// The next event; `None` at the end. Cancel-safe.
    pub async fn next(&mut self) -> Option<WatchEvent> {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return Some(event);
            }
            if self.ended {
                return None;
            }
            if self.initial.is_some() || self.change.is_some() {
                self.make_event().await;
                continue;
            }
            if let Some(last) = self.last {
                // The client can't come back for these: the kind may be gone.
                self.change = self.events.next_visible().await.filter(|change| change.revision <= last);
                self.ended = self.change.is_none();
                continue;
            }
            tokio::select! {
                biased;
                change = self.events.next() => match change {
                    Some(change) => self.change = Some(change),
                    None => self.ended = true,
                },
                () = redefined(&mut self.definition) => {
                    self.last = Some(self.registry.storage.revision(&self.target.resource.collection));
                }
                due = tick(&mut self.bookmarks) => self.add_bookmark(due),
                () = &mut self.ends => self.ended = true,
            }
        }
    }

    /// Makes an event from the next initial object or the current change. An object that can't be converted stalls the
    /// watch until it can, as no event may be skipped.
    async fn make_event(&mut self) {
        let ends = self.ends.deadline();
        if let Some(initial) = &mut self.initial
            && let Some(next) = initial.next.as_ref().filter(|_| initial.reserved.is_none())
        {
            match self.events.reserve(next).await {
                Ok(reserved) => initial.reserved = reserved,
                Err(Full) => return self.ended = true,
            }
        }
        let made = tokio::select! {
            biased;
            made = self.try_make_event() => made,
            () = sleep_until(ends) => return self.ended = true,
        };
        match made {
            Ok(event) => {
                self.waiting.extend(event);
                match &mut self.initial {
                    Some(initial) => match initial.advance() {
                        Ok(()) if initial.next.is_none() => self.finish_initial(),
                        Ok(()) => {}
                        // The client begins anew.
                        Err(TakenBack) => self.ended = true,
                    },
                    None => self.change = None,
                }
            }
            Err(NoEvent::Undecodable) => {
                let again = Instant::now() + RETRY_EVERY;
                sleep_until(again.min(ends)).await;
                self.ended = Instant::now() >= ends;
            }
            Err(NoEvent::Refused(status)) => self.fail(status),
            Err(NoEvent::Redefined) => self.ended = true,
        }
    }

    async fn try_make_event(&self) -> Result<Option<WatchEvent>, NoEvent> {
        match (&self.initial, &self.change) {
            (Some(initial), _) => {
                let Some(stored) = &initial.next else { return Ok(None) };
                let target = self.refreshed().await?;
                if !self.registry.selects(&target, &self.selection, stored, None).await? {
                    return Ok(None);
                }
                let object = self.registry.encoded(&target.resource, &target.version, stored).await?;
                let (kind, revision) = (EventType::Added, stored.revision);
                Ok(Some(WatchEvent::Object { kind, object, revision, shared: None }))
            }
            (None, Some(change)) => self.event_of(change).await,
            (None, None) => Ok(None),
        }
    }

    fn finish_initial(&mut self) {
        let Some(initial) = self.initial.take() else { return };
        if initial.marks_end {
            self.waiting.push_back(WatchEvent::Bookmark { revision: initial.revision, initial_end: true });
        }
    }

    /// The type of an event depends on whether the selectors selected the object before the change and select it now.
    async fn event_of(&self, change: &Arc<store::Change>) -> Result<Option<WatchEvent>, NoEvent> {
        work::step();
        if !self.concerns(&change.object) {
            return Ok(None);
        }
        let target = self.refreshed().await?;
        let findings = Some(&change.findings);
        let is_selected = |stored| self.registry.selects(&target, &self.selection, stored, findings);
        let now = Some(&change.object).filter(|_| !change.deleted);
        let now = match now {
            Some(object) if is_selected(object).await? => Some(object),
            _ => None,
        };
        let before = match &change.previous {
            Some(previous) if is_selected(previous).await? => Some(previous),
            _ => None,
        };
        let (kind, stored) = match (now, before) {
            (Some(object), None) => (EventType::Added, object),
            (Some(object), Some(_)) => (EventType::Modified, object),
            (None, Some(previous)) => (EventType::Deleted, previous),
            (None, None) => return Ok(None),
        };
        let object = self.registry.encoded(&target.resource, &target.version, stored).await?;
        let shared = SharedChange { change: Arc::clone(change), version: Arc::clone(&target.version) };
        Ok(Some(WatchEvent::Object { kind, object, revision: change.revision, shared: Some(shared) }))
    }

    fn concerns(&self, stored: &Stored) -> bool {
        let namespace = &self.target.namespace;
        namespace.is_empty() || split_key(&self.target, &stored.key).0 == namespace
    }

    /// The watched target, as it is defined now.
    async fn refreshed(&self) -> Result<Cow<'_, Target>, NoEvent> {
        let target = match self.registry.refresh(&self.target).await {
            // Its last objects are told of as they were.
            Err(status) if status.code == 404 && self.last.is_some() => return Ok(Cow::Borrowed(&self.target)),
            refreshed => refreshed.map_err(NoEvent::Refused)?,
        };
        if self.selection.is_bound_to(&target) { Ok(target) } else { Err(NoEvent::Redefined) }
    }

    /// Adds a bookmark, if the watch has advanced since its beginning.
    ///
    /// Each minute the bookmark has the revision of the whole database, so that a quiet watch does not become too old
    /// to be resumed. Before the end it has that of the last change of the collection: Kubernetes learns of other
    /// changes only now and then, and so sends no bookmark at the end of a short and quiet watch.
    fn add_bookmark(&mut self, due: BookmarkDue) {
        let seen = match due {
            BookmarkDue::Minute => self.events.progress(),
            BookmarkDue::End => self.events.seen(),
        };
        if self.bookmarks.as_ref().is_some_and(|bookmarks| seen > bookmarks.start) {
            self.waiting.push_back(WatchEvent::Bookmark { revision: seen, initial_end: false });
        }
    }

    /// If the resource is gone, the watch ends; other errors are sent.
    fn fail(&mut self, status: Status) {
        self.ended = true;
        if status.code != 404 {
            self.waiting.push_back(WatchEvent::Error(status));
        }
    }
}

/// Waits until the definition of the watched resource changes; forever for a built-in kind.
async fn redefined(definition: &mut Option<DefinitionChanges>) {
    match definition {
        Some(definition) => definition.changed().await,
        None => std::future::pending().await,
    }
}

/// Why a bookmark is due.
#[derive(Clone, Copy)]
enum BookmarkDue {
    Minute,
    End,
}

/// Waits until the next bookmark is due; forever if the watch sends none.
async fn tick(bookmarks: &mut Option<Bookmarks>) -> BookmarkDue {
    let Some(bookmarks) = bookmarks else { return std::future::pending().await };
    match &mut bookmarks.before_end {
        Some(before_end) => tokio::select! {
            _ = bookmarks.interval.tick() => BookmarkDue::Minute,
            () = before_end => {
                bookmarks.before_end = None;
                BookmarkDue::End
            }
        },
        None => {
            bookmarks.interval.tick().await;
            BookmarkDue::Minute
        }
    }
}

#[cfg(test)]
mod tests;
