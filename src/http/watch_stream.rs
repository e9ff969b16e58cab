//! A watch as a stream of frames: lines of JSON, or protobuf behind its length, over HTTP/1.1 and HTTP/2; texts or bytes
//! over a WebSocket.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, Response, header};
use futures_util::stream;

use crate::audit::FAULT;
use crate::kinds::{self, layout};
use crate::memory::Reservation;
use crate::object;
use crate::protobuf;
use crate::registry::{Event, EventType, Target, Watch};
use crate::value::{Value, json};

use super::Stopping;
use super::answer::add_warnings;
use super::exchange::Exchange;
use super::faults::{self, Cut, End, Look, WatchFaults};
use super::frame::{gzip_part, write_event};
use super::metrics::WatchCounters;
use super::negotiate::{self, Encoding, Format};
use super::observe::Observed;
use super::pieces::{COPIED_BYTES_MAX, Pieces};
use super::shape::Shape;
use super::websocket;

/// How long what was sent may take to leave before a connection is cut.
const BEFORE_CUT: Duration = Duration::from_millis(20);
/// How many bytes of events are compressed at once.
const COMPRESSED_BYTES_MAX: usize = 64 << 10;

/// The answer to a watch: its frames as they come.
///
/// Those of a watch that begins with what there is (`is_watch_list`) are compressed for clients that accept it: what is
/// sent at once is a member of its own, so that it can be read at once.
pub(super) fn answer(exchange: &Exchange, format: Format, frames: Frames, is_watch_list: bool) -> Response<Body> {
    let compress = is_watch_list && negotiate::accepts_gzip(&exchange.accept_encoding);
    let body = Body::from_stream(stream::unfold(frames, move |mut frames| async move {
        let part = if compress {
            frames.chunk().await.map(|chunk| gzip_part(&chunk).map(Bytes::from))
        } else {
            frames.part().await.map(Ok)
        };
        let part = part.or_else(|| std::mem::take(&mut frames.is_cut).then(|| Err(io::Error::other(Cut))))?;
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
    faults: WatchFaults,
    /// Whether the connection is to break.
    is_cut: bool,
    /// Whether a fault has ended it.
    is_over: bool,
    /// Of events that are made and not sent yet.
    pieces: Pieces,
    /// The request is at its end when the stream is.
    observed: Option<Arc<Observed>>,
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
        (counters, faults): (WatchCounters, WatchFaults),
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
            faults,
            is_cut: false,
            is_over: false,
            pieces,
            observed,
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
        let event = loop {
            let (may_send, until) = match self.faults.look() {
                Look::Free(until) => (true, until),
                Look::Stalled => (false, None),
                Look::Ends(end, label) => return self.end(end, &label).await,
            };
            tokio::select! {
                biased;
                () = stopped(&mut self.stopping) => return None,
                () = self.faults.changed(until) => {}
                event = self.watch.next(), if may_send => break event?,
            }
        };
        if self.shape.is_for_lists() && !matches!(event, Event::Error(_)) {
            return None;
        }
        self.write(event);
        Some(())
    }

    /// Takes in what is there already, until there are `size_bytes_max`.
    fn gather(&mut self, size_bytes_max: usize) {
        while self.pieces.size_bytes() < size_bytes_max && matches!(self.faults.look(), Look::Free(_)) {
            match futures_util::FutureExt::now_or_never(self.watch.next()) {
                Some(Some(event)) => self.write(event),
                Some(None) | None => return,
            }
        }
    }

    /// Ends as a fault asks for it: with an event, with none, or with a connection that breaks.
    async fn end(&mut self, end: End, label: &str) -> Option<()> {
        if std::mem::replace(&mut self.is_over, true) {
            return None;
        }
        if let Some(observed) = &self.observed {
            observed.annotate(FAULT, label);
        }
        match end {
            End::Expired => {
                self.write(Event::Error(faults::watch_expired()));
                Some(())
            }
            End::Cut => {
                self.is_cut = true;
                // What was sent before is to arrive: a reset overtakes it.
                tokio::time::sleep(BEFORE_CUT).await;
                None
            }
            End::Closed | End::Stalled => None,
        }
    }

    fn write(&mut self, event: Event) {
        if matches!(event, Event::Object { .. }) {
            self.faults.sent();
        }
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

/// Waits until the server stops; forever where it does not tell.
async fn stopped(stopping: &mut Option<Stopping>) {
    match stopping {
        Some(stopping) => stopping.stopped().await,
        None => std::future::pending().await,
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
