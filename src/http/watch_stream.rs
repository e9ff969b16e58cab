//! A watch as a stream of frames: JSON lines over HTTP/1.1 and HTTP/2.

use std::collections::VecDeque;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, Response, header};
use futures_util::stream;

use crate::meta::layout;
use crate::object;
use crate::registry::{Event, EventType, Target, Watch};
use crate::value::{Value, json};

use super::Stopping;
use super::answer::add_warnings;
use super::exchange::Exchange;
use super::frame::write_event;
use super::negotiate::Format;
use super::resources::Shape;

/// How many bytes of events go to the connection at once.
const FRAMES_BYTES_MAX: usize = 64 << 10;

/// The answer to a watch: its frames as they come.
pub(super) fn answer(
    exchange: &Exchange,
    format: Format,
    shape: Shape,
    target: Target,
    watch: Watch,
) -> Response<Body> {
    let frames =
        Frames { watch, shape, target, stopping: exchange.stopping.clone(), ready: VecDeque::new(), first: true };
    let body = Body::from_stream(stream::unfold(frames, |mut frames| async move {
        let chunk = frames.next().await?;
        Some((Ok::<_, std::convert::Infallible>(chunk), frames))
    }));
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(format.encoding.stream_content_type()));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    add_warnings(exchange, headers);
    response
}

struct Frames {
    watch: Watch,
    shape: Shape,
    target: Target,
    stopping: Option<Stopping>,
    ready: VecDeque<Bytes>,
    /// Column definitions go with the first event of a Table alone.
    first: bool,
}

impl Frames {
    /// The next bytes; `None` at the end.
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(chunk) = self.ready.pop_front() {
            return Some(chunk);
        }
        let event = match &mut self.stopping {
            Some(stopping) => tokio::select! {
                event = self.watch.next() => event?,
                () = stopping.stopped() => return None,
            },
            None => self.watch.next().await?,
        };
        let mut out = Vec::new();
        self.write(event, &mut out);
        // What is there already goes along.
        while out.len() < FRAMES_BYTES_MAX {
            match futures_util::FutureExt::now_or_never(self.watch.next()) {
                Some(Some(event)) => self.write(event, &mut out),
                Some(None) | None => break,
            }
        }
        Some(out.into())
    }

    fn write(&mut self, event: Event, out: &mut Vec<u8>) {
        let version = &self.target.version;
        match event {
            Event::Error(status) => {
                write_event(EventType::Error, &layout::lay_out(json::encode(&status.to_value())), out)
            }
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
                write_event(EventType::Bookmark, &layout::lay_out(json::encode(&shaped)), out);
            }
            Event::Object { kind, object, revision } => {
                let mut bytes = Vec::with_capacity(object.len_max());
                object.write_to(&mut bytes, revision);
                if !self.shape.is_plain() {
                    let object = json::decode(&bytes).unwrap_or_default();
                    bytes = json::encode(&self.shape.object(object, self.first));
                }
                self.first = false;
                write_event(kind, &layout::lay_out(bytes), out);
            }
        }
    }
}
