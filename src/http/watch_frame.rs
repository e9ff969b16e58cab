//! An event of a watch as a frame of its stream: a line of JSON, or protobuf behind its length.
//!
//! A frame that all watches of one form send alike is built once, and kept with the change while that is one of the
//! newest.

use std::convert::Infallible;
use std::io;

use axum::body::Bytes;
use jiff::Timestamp;

use crate::kinds::{self, layout};
use crate::meta::Revision;
use crate::object;
use crate::protobuf;
use crate::registry::{EventType, SharedChange, Target, WatchEvent};
use crate::store::{ClientForm, Encoded, RowForm};
use crate::value::{Value, json};

use super::frame::{gzip_part, write_event};
use super::negotiate::Encoding;
use super::pieces::Pieces;
use super::shape::AnswerShape;
use super::table;

/// Counts the objects that were encoded for a watch on this thread, for a test.
#[cfg(test)]
mod tally {
    use std::cell::Cell;

    thread_local! {
        static SHAPED: Cell<usize> = const { Cell::new(0) };
    }

    pub fn count() {
        SHAPED.set(SHAPED.get() + 1);
    }

    pub fn shaped() -> usize {
        SHAPED.get()
    }
}

/// How many bytes a line of JSON adds to its object at most.
const AROUND_BYTES_MAX: usize = 40;

/// How the events of one watch are framed.
pub(super) struct Framing {
    pub encoding: Encoding,
    shape: AnswerShape,
    target: Target,
    /// Only the first event of a Table has column definitions.
    first: bool,
}

/// A frame under gzip.
pub(super) struct Packed {
    pub member: Bytes,
    /// How long the frame is.
    pub frame_bytes: usize,
}

impl Framing {
    pub fn new(encoding: Encoding, shape: AnswerShape, target: Target) -> Self {
        Framing { encoding, shape, target, first: true }
    }

    /// Whether events can't have the form, as it is one of lists.
    pub fn is_for_lists(&self) -> bool {
        self.shape.is_for_lists()
    }

    /// Whether the frame of an event is built for this watch alone, or for those that send it within a second, and not
    /// shared with all other watches or with other owners of the object.
    pub fn is_made_for_one(&self, event: &WatchEvent) -> bool {
        match event {
            WatchEvent::Object { shared, .. } => self.is_table() || (shared.is_none() && !self.is_raw()),
            WatchEvent::Bookmark { .. } | WatchEvent::Error(_) => false,
        }
    }

    /// Appends the frame of an event.
    pub fn write(&mut self, event: WatchEvent, out: &mut Pieces) {
        let version = &self.target.version;
        match event {
            WatchEvent::Error(status) => self.write_value(EventType::Error, &status.to_value(), out),
            WatchEvent::Bookmark { revision, initial_end } => {
                let mut metadata = object! { "resourceVersion" => revision.to_string() };
                if initial_end && let Value::Object(metadata) = &mut metadata {
                    metadata.insert("annotations", object! { "k8s.io/initial-events-end" => "true" });
                }
                let bookmark = object! {
                    "apiVersion" => version.api_version(),
                    "kind" => version.names.kind.clone(),
                    "metadata" => metadata,
                };
                let shaped = self.shape.object(bookmark, self.first, self.shape.clock.now());
                self.first = false;
                self.write_value(EventType::Bookmark, &shaped, out);
            }
            // Copying or sharing such objects is faster than a lookup.
            WatchEvent::Object { kind, object, revision, shared: Some(shared) } if !self.is_raw() => {
                out.share(self.frame(kind, &object, revision, &shared));
                self.first = false;
            }
            WatchEvent::Object { kind, object, revision, .. } => {
                self.write_object(kind, (&object, revision), self.shape.clock.now(), out);
                self.first = false;
            }
        }
    }

    /// The frame of an event that other watches may send as well, as a separate gzip member; `None` for other events.
    ///
    /// Errors: those of the compressor.
    pub fn packed(&self, event: &WatchEvent) -> io::Result<Option<Packed>> {
        let WatchEvent::Object { kind, object, revision, shared: Some(shared) } = event else { return Ok(None) };
        if self.is_table() {
            return Ok(None);
        }
        let frame = self.frame(*kind, object, *revision, shared);
        let form = ClientForm { is_compressed: true, ..self.form(*kind, shared, None) };
        let member = shared.change.forms.get_or_make(form, || gzip_part(&frame).map(Bytes::from))?;
        Ok(Some(Packed { member, frame_bytes: frame.len() }))
    }

    /// The frame of an event in the form of this watch.
    fn frame(&self, kind: EventType, object: &Encoded, revision: Revision, shared: &SharedChange) -> Bytes {
        let now = self.shape.clock.now();
        let make = || {
            let mut pieces = Pieces::default();
            self.write_object(kind, (object, revision), now, &mut pieces);
            Ok::<_, Infallible>(pieces.take_all().into())
        };
        // Ages are in seconds or more: so within a second, all watches send the same row.
        let row = self.is_table().then(|| RowForm {
            include: self.shape.include.as_str(),
            has_definitions: self.first,
            at_second: now.as_second(),
        });
        let Ok(frame) = shared.change.forms.get_or_make(self.form(kind, shared, row), make);
        frame
    }

    fn form(&self, kind: EventType, shared: &SharedChange, row: Option<RowForm>) -> ClientForm {
        ClientForm {
            version: shared.version.clone(),
            event: kind.as_str(),
            media_type: self.encoding.stream_content_type(),
            metadata_of: self.shape.transform.map(|transform| transform.version),
            row,
            is_compressed: false,
        }
    }

    /// Whether objects go out as they are stored, in the order of their names.
    fn is_raw(&self) -> bool {
        self.shape.is_plain() && self.encoding == Encoding::Json && self.target.resource.definition.is_some()
    }

    /// Whether events are rows, whose ages differ from one second to the next.
    fn is_table(&self) -> bool {
        self.shape.columns.is_some()
    }

    fn write_object(
        &self,
        kind: EventType,
        (object, revision): (&Encoded, Revision),
        now: Timestamp,
        out: &mut Pieces,
    ) {
        if self.is_raw() {
            out.reserve(object.len_max() + AROUND_BYTES_MAX);
            return write_event(kind, out, |out| out.object(object, revision));
        }
        #[cfg(test)]
        tally::count();
        if self.encoding == Encoding::Protobuf
            && let Some(sealed) = self.sealed(&object.to_bytes(revision))
        {
            return out.write(|out| protobuf::write_event(kind.as_str(), &sealed, out));
        }
        let mut text = Vec::new();
        if self.encoding == Encoding::Json
            && self.shape.is_plain()
            && layout::arrange_into(&object.to_bytes(revision), &[], &mut text)
        {
            return write_event(kind, out, |out| out.share(text.into()));
        }
        let object = object.to_value(revision);
        self.write_value(kind, &self.shape.object(object, self.first, now), out);
    }

    /// The body of an object, if it is made of its text.
    fn sealed(&self, object: &[u8]) -> Option<Vec<u8>> {
        let Some(transform) = self.shape.transform else { return kinds::seal_text(object) };
        let is_whole = !self.is_table() && table::shows_all_metadata(&self.target.version, [object].into_iter());
        if is_whole { kinds::seal_metadata(object, &transform.api_version()) } else { None }
    }

    /// Appends an event; a kind that has no message goes as JSON within its frame.
    fn write_value(&self, event: EventType, object: &Value, out: &mut Pieces) {
        let to_json = || json::encode_as(object, layout::of(object));
        match self.encoding {
            Encoding::Protobuf => {
                let bytes = kinds::seal(object).unwrap_or_else(to_json);
                out.write(|out| protobuf::write_event(event.as_str(), &bytes, out));
            }
            Encoding::Json | Encoding::Yaml => {
                write_event(event, out, |out| out.share(to_json().into()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::clock::Clock;
    use crate::http::negotiate::{Transform, TransformKind};
    use crate::http::query::IncludeObject;
    use crate::http::shape::columns;
    use crate::registry::fixture::{create_namespace, newest, registry, target};
    use crate::registry::{ListRequest, Registry, Start, WatchRequest};

    const WATCHERS: usize = 50;

    fn framing(encoding: Encoding, transform: Option<Transform>, target: &Target) -> Framing {
        let shape = AnswerShape {
            transform,
            include: IncludeObject::default(),
            fault: None,
            columns: None,
            clock: Clock::default(),
        };
        Framing::new(encoding, shape, target.clone())
    }

    /// The next event of each watch.
    async fn events(registry: &Arc<Registry>, target: &Target, name: &str) -> Vec<WatchEvent> {
        let request = WatchRequest {
            start: Start::After(newest(registry)),
            select: ListRequest::default(),
            bookmarks: false,
            marks_initial_end: false,
            timeout: Duration::from_secs(60),
            user: None,
        };
        let mut watches = Vec::new();
        for _ in 0..WATCHERS {
            watches.push(registry.watch(target, &request).await.expect("it starts"));
        }
        create_namespace(registry, name).await;
        let mut events = Vec::new();
        for watch in &mut watches {
            events.push(watch.next().await.expect("it has the change"));
        }
        events
    }

    #[tokio::test]
    async fn fifty_watches_of_one_form_have_an_event_made_once() {
        let registry = registry().await;
        let namespaces = target(&registry, "", "namespaces").await;
        let metadata = Transform { kind: TransformKind::PartialObjectMetadata, version: "v1" };
        for (name, encoding, transform) in
            [("a", Encoding::Json, None), ("b", Encoding::Protobuf, None), ("c", Encoding::Json, Some(metadata))]
        {
            let before = tally::shaped();
            let mut frames = Vec::new();
            for event in events(&registry, &namespaces, name).await {
                let mut pieces = Pieces::default();
                framing(encoding, transform, &namespaces).write(event, &mut pieces);
                frames.push(pieces.take_all());
            }
            assert_eq!(tally::shaped() - before, 1, "{name}");
            assert!(frames.iter().all(|frame| !frame.is_empty() && *frame == frames[0]), "{name}");
        }
    }

    #[tokio::test]
    async fn a_row_is_made_once_for_all_watches_within_a_second() {
        let registry = registry().await;
        let namespaces = target(&registry, "", "namespaces").await;
        let clock = Clock::frozen_at(Timestamp::UNIX_EPOCH);
        let framing = |include| {
            let transform = Some(Transform { kind: TransformKind::Table, version: "v1" });
            let columns = Some(Arc::new(columns(&namespaces)));
            let shape = AnswerShape { transform, include, fault: None, columns, clock: clock.clone() };
            Framing::new(Encoding::Json, shape, namespaces.clone())
        };
        let include = [IncludeObject::None, IncludeObject::Metadata];
        let (first, second) = (events(&registry, &namespaces, "a").await, events(&registry, &namespaces, "b").await);
        let before = tally::shaped();
        let mut rows = Vec::new();
        for (at, events) in first.into_iter().zip(second).enumerate() {
            let mut framing = framing(include[at % 2]);
            let mut row = |event| {
                let mut pieces = Pieces::default();
                framing.write(event, &mut pieces);
                pieces.take_all()
            };
            rows.push([row(events.0), row(events.1)]);
        }
        assert_eq!(tally::shaped() - before, 2 * 2, "with definitions and without, and with metadata and without");
        let definitions = |row: &[u8]| String::from_utf8_lossy(row).contains("columnDefinitions\":[{");
        assert!(rows.iter().all(|[first, second]| definitions(first) && !definitions(second)));
        assert!(rows.iter().skip(2).enumerate().all(|(at, row)| *row == rows[at % 2]) && rows[0] != rows[1]);
    }

    #[tokio::test]
    async fn an_event_is_compressed_once_for_all_watches() {
        let registry = registry().await;
        let namespaces = target(&registry, "", "namespaces").await;
        let before = tally::shaped();
        let framing = framing(Encoding::Json, None, &namespaces);
        let events = events(&registry, &namespaces, "a").await;
        let packed = events.iter().map(|event| framing.packed(event).expect("memory does not fail"));
        let packed: Vec<Packed> = packed.map(|packed| packed.expect("it is shared")).collect();
        assert_eq!(tally::shaped() - before, 1);
        // The same bytes in memory, not just equal ones.
        assert!(packed.iter().all(|one| one.member.as_ptr() == packed[0].member.as_ptr()));
    }

    #[tokio::test]
    async fn forms_differ_by_what_they_are_made_for() {
        let registry = registry().await;
        let namespaces = target(&registry, "", "namespaces").await;
        let metadata = |version| Some(Transform { kind: TransformKind::PartialObjectMetadata, version });
        let events = events(&registry, &namespaces, "a").await;
        let forms = [
            (Encoding::Json, None),
            (Encoding::Protobuf, None),
            (Encoding::Json, metadata("v1")),
            (Encoding::Json, metadata("v1beta1")),
        ];
        let mut frames = Vec::new();
        for ((encoding, transform), event) in forms.into_iter().zip(events) {
            let mut pieces = Pieces::default();
            framing(encoding, transform, &namespaces).write(event, &mut pieces);
            frames.push(pieces.take_all());
        }
        for (at, frame) in frames.iter().enumerate() {
            assert!(!frames[..at].contains(frame), "{at}");
        }
    }
}
