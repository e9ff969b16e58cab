//! A watch as a stream of frames: lines of JSON, or protobuf behind its length, over HTTP/1.1 and HTTP/2; texts or bytes
//! over a WebSocket.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, Response, header};
use futures_util::stream;

use crate::kinds::{self, layout};
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
use super::resources::Shape;

/// How many bytes of events go to the connection at once.
const FRAMES_BYTES_MAX: usize = 64 << 10;

/// The answer to a watch: its frames as they come.
///
/// Those of a watch that begins with what there is (`is_watch_list`) are compressed for clients that accept it: what is
/// sent at once is a member of its own, so that it can be read at once.
pub(super) fn answer(exchange: &Exchange, format: Format, frames: Frames, is_watch_list: bool) -> Response<Body> {
    let compress = is_watch_list && negotiate::accepts_gzip(&exchange.accept_encoding);
    let body = Body::from_stream(stream::unfold(frames, move |mut frames| async move {
        let chunk = frames.chunk().await?;
        let chunk = match compress {
            true => gzip_part(&chunk),
            false => Ok(chunk),
        };
        Some((chunk.map(Bytes::from), frames))
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
    /// The request is at its end when the stream is.
    _observed: Option<Arc<Observed>>,
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
    ) -> Self {
        let (stopping, observed) = (exchange.stopping.clone(), exchange.observed.get().cloned());
        Frames { watch, encoding, shape, target, stopping, counters, _observed: observed, first: true }
    }

    /// Whether events are text.
    pub fn is_text(&self) -> bool {
        self.encoding != Encoding::Protobuf
    }

    /// The next event; `None` at the end. Cancel-safe.
    pub async fn event(&mut self) -> Option<Vec<u8>> {
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
        let mut out = Vec::new();
        self.write(event, &mut out);
        Some(out)
    }

    /// The next event, and those that are there already; `None` at the end.
    async fn chunk(&mut self) -> Option<Vec<u8>> {
        let mut out = self.event().await?;
        while out.len() < FRAMES_BYTES_MAX {
            match futures_util::FutureExt::now_or_never(self.watch.next()) {
                Some(Some(event)) => self.write(event, &mut out),
                Some(None) | None => break,
            }
        }
        Some(out)
    }

    fn write(&mut self, event: Event, out: &mut Vec<u8>) {
        let begin = out.len();
        self.write_frame(event, out);
        self.counters.count(out.len() - begin);
    }

    fn write_frame(&mut self, event: Event, out: &mut Vec<u8>) {
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
                write_event(kind, object.len_max(), out, |out| object.write_to(out, revision));
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
    fn write_value(&self, event: EventType, object: &Value, out: &mut Vec<u8>) {
        let to_json = || json::encode_as(object, layout::of(object));
        match self.encoding {
            Encoding::Protobuf => {
                protobuf::write_event(event.as_str(), &kinds::seal(object).unwrap_or_else(to_json), out)
            }
            Encoding::Json | Encoding::Yaml => {
                let bytes = to_json();
                write_event(event, bytes.len(), out, |out| out.extend_from_slice(&bytes));
            }
        }
    }
}
