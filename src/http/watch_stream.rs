//! A watch as a stream of frames: lines of JSON, or protobuf behind its length, over HTTP/1.1 and HTTP/2; texts or bytes
//! over a WebSocket.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, Response, header};
use futures_util::stream;

use crate::kinds::{self, layout};
use crate::memory::Reservation;
use crate::object;
use crate::protobuf;
use crate::registry::{Event, EventType, Target, Watch};
use crate::value::{Value, json};

use super::Stopping;
use super::answer::add_warnings;
use super::exchange::Exchange;
use super::frame::{gzip_part, write_event};
use super::metrics::WatchCounters;
use super::negotiate::{self, Encoding, Format};
use super::observe::Observed;
use super::pieces::{COPIED_BYTES_MAX, Pieces};
use super::shape::Shape;
use super::websocket;

/// How many bytes of events are compressed at once.
const COMPRESSED_BYTES_MAX: usize = 64 << 10;

/// The answer to a watch: its frames as they come.
///
/// Those of a watch that begins with what there is (`is_watch_list`) are compressed for clients that accept it: what is
/// sent at once is a member of its own, so that it can be read at once.
pub(super) fn answer(exchange: &Exchange, format: Format, frames: Frames, is_watch_list: bool) -> Response<Body> {
    let compress = is_watch_list && negotiate::accepts_gzip(&exchange.accept_encoding);
    let body = Body::from_stream(stream::unfold(frames, move |mut frames| async move {
        let part =
            if compress { gzip_part(&frames.chunk().await?).map(Bytes::from) } else { Ok(frames.part().await?) };
        Some((part, frames))
    }));
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(format.encoding.stream_content_type()));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    if compress {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        headers.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    }
    add_warnings(exchange, headers);
    response
}

/// The events of a watch, each as a frame of its stream.
pub(super) struct Frames {
    watch: Watch,
    encoding: Encoding,
    shape: Shape,
    target: Target,
    stopping: Option<Stopping>,
    counters: WatchCounters,
    /// Of events that are made and not sent yet.
    pieces: Pieces,
    /// The request is at its end when the stream is.
    _observed: Option<Arc<Observed>>,
    _reserved: Reservation,
    /// Column definitions go with the first event of a Table alone.
    first: bool,
}

impl Frames {
    pub fn new(
        exchange: &Exchange,
        encoding: Encoding,
        shape: Shape,
        target: Target,
        watch: Watch,
        counters: WatchCounters,
        reserved: Reservation,
    ) -> Self {
        let (stopping, observed) = (exchange.stopping.clone(), exchange.observed.get().cloned());
        let pieces = Pieces::default();
        Frames {
            watch,
            encoding,
            shape,
            target,
            stopping,
            counters,
            pieces,
            _observed: observed,
            _reserved: reserved,
            first: true,
        }
    }

    /// The next piece of the stream; `None` at the end.
    async fn part(&mut self) -> Option<Bytes> {
        if self.pieces.size_bytes() == 0 {
            self.wait().await?;
            self.gather(COPIED_BYTES_MAX);
        }
        self.pieces.take()
    }

    /// The next event, and those that are there already; `None` at the end.
    async fn chunk(&mut self) -> Option<Vec<u8>> {
        self.wait().await?;
        self.gather(COMPRESSED_BYTES_MAX);
        Some(self.pieces.take_all())
    }

    /// Waits for the next event; `None` at the end. Cancel-safe.
    async fn wait(&mut self) -> Option<()> {
        let event = match &mut self.stopping {
            Some(stopping) => tokio::select! {
                event = self.watch.next() => event?,
                () = stopping.stopped() => return None,
            },
            None => self.watch.next().await?,
        };
        if self.shape.is_for_lists() && !matches!(event, Event::Error(_)) {
            return None;
        }
        self.write(event);
        Some(())
    }

    /// Takes in what is there already, until there are `size_bytes_max`.
    fn gather(&mut self, size_bytes_max: usize) {
        while self.pieces.size_bytes() < size_bytes_max {
            match futures_util::FutureExt::now_or_never(self.watch.next()) {
                Some(Some(event)) => self.write(event),
                Some(None) | None => return,
            }
        }
    }

    fn write(&mut self, event: Event) {
        let mut pieces = std::mem::take(&mut self.pieces);
        let before = pieces.size_bytes();
        self.write_frame(event, &mut pieces);
        self.counters.count(pieces.size_bytes() - before);
        self.pieces = pieces;
    }

    fn write_frame(&mut self, event: Event, out: &mut Pieces) {
        let version = &self.target.version;
        match event {
            Event::Error(status) => self.write_value(EventType::Error, &status.to_value(), out),
            Event::Bookmark { revision, initial_end } => {
                let mut metadata = object! { "resourceVersion" => revision.to_string() };
                if initial_end && let Value::Object(metadata) = &mut metadata {
                    metadata.insert("annotations", object! { "k8s.io/initial-events-end" => "true" });
                }
                let bookmark = object! {
                    "apiVersion" => version.api_version(),
                    "kind" => version.names.kind.clone(),
                    "metadata" => metadata,
                };
                let shaped = self.shape.object(bookmark, self.first);
                self.first = false;
                self.write_value(EventType::Bookmark, &shaped, out);
            }
            Event::Object { kind, object, revision } if self.is_raw() => {
                write_event(kind, out, |out| out.object(&object, revision));
            }
            Event::Object { kind, object, revision } => {
                let mut bytes = Vec::with_capacity(object.len_max());
                object.write_to(&mut bytes, revision);
                let shaped = self.shape.object(json::decode(&bytes).unwrap_or_default(), self.first);
                self.first = false;
                self.write_value(kind, &shaped, out);
            }
        }
    }

    /// Whether objects go out as they are stored, in the order of their names.
    fn is_raw(&self) -> bool {
        self.shape.is_plain() && self.encoding == Encoding::Json && self.target.resource.definition.is_some()
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

impl websocket::Frames for Frames {
    fn is_text(&self) -> bool {
        self.encoding != Encoding::Protobuf
    }

    async fn next(&mut self) -> Option<Vec<u8>> {
        self.wait().await?;
        Some(self.pieces.take_all())
    }
}
