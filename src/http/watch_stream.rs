//! A watch as a stream of frames over HTTP/1.1 and HTTP/2, or as texts or bytes over a WebSocket.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, Response, header};
use futures_util::stream;

use crate::audit::FAULT;
use crate::memory::{Full, Reservation};
use crate::registry::{Target, Watch, WatchEvent};

use super::Stopping;
use super::answer::add_warnings;
use super::exchange::Exchange;
use super::faults::{self, Cut, WatchEnd, WatchFault, WatchFaults};
use super::frame::gzip_part;
use super::metrics::WatchCounters;
use super::negotiate::{self, AnswerFormat, Encoding};
use super::observe::Observed;
use super::pieces::{COPIED_BYTES_MAX, Pieces};
use super::shape::AnswerShape;
use super::watch_frame::{Framing, Packed};
use super::websocket;

/// The time for sent data to arrive before a connection is cut.
const BEFORE_CUT: Duration = Duration::from_millis(20);
/// From this size on, an event that was built for one watch alone needs a reservation: less is reserved for what every
/// watch has.
const OWN_UNCOUNTED_BYTES_MAX: usize = 16 << 10;
/// How many bytes of events are compressed at once.
const COMPRESSED_BYTES_MAX: usize = 64 << 10;

/// The answer to a watch: its frames as they occur.
///
/// If it `compresses`, its frames are compressed for clients that accept gzip: whatever is sent together is a separate
/// gzip member, so that it can be read at once.
pub(super) fn answer(exchange: &Exchange, format: AnswerFormat, frames: Frames, compresses: bool) -> Response<Body> {
    let compress = compresses && negotiate::accepts_gzip(&exchange.accept_encoding);
    let body = Body::from_stream(stream::unfold(frames, move |mut frames| async move {
        let part = if compress { frames.packed().await } else { frames.part().await.map(Ok) };
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
    framing: Framing,
    stopping: Option<Stopping>,
    counters: WatchCounters,
    faults: WatchFaults,
    /// Whether the connection must be cut.
    is_cut: bool,
    /// Whether a fault has ended it.
    is_over: bool,
    /// Events that are encoded and not sent yet.
    pieces: Pieces,
    /// The request ends with the stream.
    observed: Option<Arc<Observed>>,
    reserved: Reservation,
    /// Memory for events that were made for this watch alone, until they are sent.
    reserved_for_own: Option<Reservation>,
    /// Whether there was not enough: then the watch ends.
    is_out_of_memory: bool,
}

impl Frames {
    pub fn new(
        exchange: &Exchange,
        encoding: Encoding,
        shape: AnswerShape,
        target: Target,
        watch: Watch,
        (counters, faults): (WatchCounters, WatchFaults),
        reserved: Reservation,
    ) -> Self {
        let (stopping, observed) = (exchange.stopping.clone(), exchange.observed.get().cloned());
        let pieces = Pieces::default();
        Frames {
            watch,
            framing: Framing::new(encoding, shape, target),
            stopping,
            counters,
            faults,
            is_cut: false,
            is_over: false,
            pieces,
            observed,
            reserved,
            reserved_for_own: None,
            is_out_of_memory: false,
        }
    }

    /// The next piece of the stream; `None` at the end.
    async fn part(&mut self) -> Option<Bytes> {
        if self.pieces.size_bytes() == 0 {
            let event = self.wait().await?;
            self.write(event);
            self.gather(COPIED_BYTES_MAX);
        }
        if self.is_out_of_memory { None } else { self.pieces.take() }
    }

    /// The next event, and any others that are already available, compressed; `None` at the end.
    ///
    /// A single event is compressed once for all watches of its form.
    async fn packed(&mut self) -> Option<io::Result<Bytes>> {
        let event = self.wait().await?;
        let next = self.ready();
        if next.is_none() {
            match self.framing.packed(&event).transpose() {
                Some(Ok(Packed { member, frame_bytes })) => {
                    self.counters.count(frame_bytes);
                    return Some(Ok(member));
                }
                Some(Err(error)) => return Some(Err(error)),
                None => {}
            }
        }
        self.write(event);
        if let Some(next) = next {
            self.write(next);
            self.gather(COMPRESSED_BYTES_MAX);
        }
        if self.is_out_of_memory {
            return None;
        }
        Some(gzip_part(&self.pieces.take_all()).map(Bytes::from))
    }

    /// Waits for the next event; `None` at the end. Cancel-safe.
    async fn wait(&mut self) -> Option<WatchEvent> {
        // What was built before has been sent.
        self.reserved_for_own = None;
        let event = loop {
            let (may_send, until) = match self.faults.look() {
                WatchFault::Free(until) => (true, until),
                WatchFault::Stalled => (false, None),
                WatchFault::Ends(end, label) => return self.end(end, &label).await,
            };
            tokio::select! {
                biased;
                () = stopped(&mut self.stopping) => return None,
                () = self.faults.changed(until) => {}
                event = self.watch.next(), if may_send => break event?,
            }
        };
        if self.framing.is_for_lists() && !matches!(event, WatchEvent::Error(_)) {
            return None;
        }
        Some(self.taken(event))
    }

    /// The next event, if it is available and may be sent.
    fn ready(&mut self) -> Option<WatchEvent> {
        if self.watch.is_quiet() || !matches!(self.faults.look(), WatchFault::Free(_)) {
            return None;
        }
        let event = futures_util::FutureExt::now_or_never(self.watch.next())??;
        Some(self.taken(event))
    }

    /// Collects the available events, up to `size_bytes_max`.
    fn gather(&mut self, size_bytes_max: usize) {
        while self.pieces.size_bytes() < size_bytes_max
            && let Some(event) = self.ready()
        {
            self.write(event);
        }
    }

    /// Returns an event that is about to be sent, after the faults have counted it.
    fn taken(&mut self, event: WatchEvent) -> WatchEvent {
        if matches!(event, WatchEvent::Object { .. }) {
            self.faults.sent();
        }
        event
    }

    /// Ends as a fault demands: with an event, without one, or by cutting the connection.
    async fn end(&mut self, end: WatchEnd, label: &str) -> Option<WatchEvent> {
        if std::mem::replace(&mut self.is_over, true) {
            return None;
        }
        if let Some(observed) = &self.observed {
            observed.annotate(FAULT, label);
        }
        match end {
            WatchEnd::Expired => Some(WatchEvent::Error(faults::watch_expired())),
            WatchEnd::Cut => {
                self.is_cut = true;
                // What was sent before must arrive first: a reset overtakes it.
                tokio::time::sleep(BEFORE_CUT).await;
                None
            }
            WatchEnd::Closed | WatchEnd::Stalled => None,
        }
    }

    fn write(&mut self, event: WatchEvent) {
        let before = self.pieces.size_bytes();
        let is_own = self.framing.is_made_for_one(&event);
        self.framing.write(event, &mut self.pieces);
        let bytes = self.pieces.size_bytes() - before;
        self.counters.count(bytes);
        if is_own && bytes > OWN_UNCOUNTED_BYTES_MAX {
            match self.reserved.more(bytes) {
                Ok(more) => self.reserved_for_own = Some(more),
                Err(Full) => self.is_out_of_memory = true,
            }
        }
    }
}

/// Waits until the server stops; forever if there is no `Stopping`.
async fn stopped(stopping: &mut Option<Stopping>) {
    match stopping {
        Some(stopping) => stopping.stopped().await,
        None => std::future::pending().await,
    }
}

impl websocket::Frames for Frames {
    fn is_text(&self) -> bool {
        self.framing.encoding != Encoding::Protobuf
    }

    async fn next(&mut self) -> Option<Vec<Bytes>> {
        let event = self.wait().await?;
        self.write(event);
        if self.is_out_of_memory {
            return None;
        }
        Some(std::iter::from_fn(|| self.pieces.take()).collect())
    }
}
