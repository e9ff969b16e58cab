//! Cuts off an HTTP/2 stream whose client no longer reads, but no other stream of the connection.
//!
//! The connection of such a client is alive: other streams are read. So the body of an answer records when it has
//! handed over a part, and the task of the stream ends if the next part is not requested in time. Ending a task resets
//! its stream.
//!
//! A stream's pace goes with its task and is not an argument: hyper starts the task through the executor and calls the service
//! that makes the body, and hands nothing from the one to the other.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes};
use hyper::Response;
use hyper::body::{Body as _, Frame, SizeHint};
use hyper::rt::Executor;
use tokio::time::{Sleep, sleep};

use super::stall::Backlog;

/// A part of a body. What is handed over is kept until it is sent, so this limits the memory for a client that stops
/// reading.
const PART_BYTES_MAX: usize = 16 << 10;
/// How much unsent data an HTTP/2 stream keeps, besides one part.
pub const STREAM_BUFFER_BYTES_MAX: usize = 8 << 10;

tokio::task_local! {
    static PACE: Arc<Pace>;
}

/// Runs the streams of a connection, and ends those whose client reads nothing for a time.
#[derive(Clone)]
pub struct Streams {
    stalled_max: Duration,
}

impl Streams {
    pub const fn new(stalled_max: Duration) -> Self {
        Streams { stalled_max }
    }
}

impl<F> Executor<F> for Streams
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, stream: F) {
        tokio::spawn(Paced {
            stream: Box::pin(stream),
            pace: Arc::default(),
            stalled_max: self.stalled_max,
            waiting: None,
        });
    }
}

/// How many parts a body has handed over, twice; odd while the last one waits for its client.
#[derive(Default)]
struct Pace(AtomicU64);

impl Pace {
    /// The part that is waiting for the client, if any.
    fn waiting(&self) -> Option<u64> {
        Some(self.0.load(Ordering::Relaxed)).filter(|at| at % 2 == 1)
    }
}

/// The task of a stream.
struct Paced<F> {
    stream: Pin<Box<F>>,
    pace: Arc<Pace>,
    stalled_max: Duration,
    /// The part that is waiting for the client, and how long it may still wait.
    waiting: Option<(u64, Pin<Box<Sleep>>)>,
}

impl<F: Future<Output = ()>> Future for Paced<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let task = &mut *self;
        if PACE.sync_scope(Arc::clone(&task.pace), || task.stream.as_mut().poll(context)).is_ready() {
            return Poll::Ready(());
        }
        let Some(part) = task.pace.waiting() else {
            task.waiting = None;
            return Poll::Pending;
        };
        let waiting = match &mut task.waiting {
            Some((of, waiting)) if *of == part => waiting,
            waiting => &mut waiting.insert((part, Box::pin(sleep(task.stalled_max)))).1,
        };
        ready!(waiting.as_mut().poll(context));
        tracing::debug!("a client has ceased to read a stream, which is cut off");
        Poll::Ready(())
    }
}

/// The answer, with a body that hands over no more than its client can take.
///
/// On a stream of HTTP/2 it tells its pace; on HTTP/1.1, where `backlog` is that of the whole connection, it waits until what
/// was handed over is written.
pub fn follow(answer: Response<Body>, backlog: &Backlog) -> Response<Body> {
    if answer.body().size_hint().exact().is_some_and(|bytes| bytes <= PART_BYTES_MAX as u64) {
        return answer;
    }
    let room = match PACE.try_with(Arc::clone) {
        Ok(pace) => Room::Stream(pace),
        Err(_) => Room::Connection { backlog: backlog.clone(), since_flush_bytes: 0 },
    };
    answer.map(|body| Body::new(PacedBody { body, rest: Bytes::new(), room }))
}

/// A body in parts.
struct PacedBody {
    body: Body,
    /// What is left of a frame that was more than a part.
    rest: Bytes,
    room: Room,
}

/// Where the parts of a body go.
enum Room {
    Stream(Arc<Pace>),
    Connection {
        backlog: Backlog,
        /// How much was handed over since the connection last had a turn to write.
        since_flush_bytes: usize,
    },
}

impl Room {
    /// Ready when there is room for another part.
    fn poll(&mut self, context: &Context<'_>) -> Poll<()> {
        match self {
            Room::Stream(pace) => {
                if pace.waiting().is_some() {
                    pace.0.fetch_add(1, Ordering::Relaxed);
                }
                Poll::Ready(())
            }
            Room::Connection { backlog, since_flush_bytes } => {
                ready!(backlog.poll_cleared(context));
                if *since_flush_bytes < PART_BYTES_MAX {
                    return Poll::Ready(());
                }
                // What the client accepts is unknown until the connection has tried to write.
                *since_flush_bytes = 0;
                context.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }

    fn hand_over(&mut self, part: &Bytes) {
        match self {
            Room::Stream(pace) => _ = pace.0.fetch_add(1, Ordering::Relaxed),
            Room::Connection { since_flush_bytes, .. } => *since_flush_bytes += part.len(),
        }
    }
}

impl hyper::body::Body for PacedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let paced = &mut *self;
        ready!(paced.room.poll(context));
        if paced.rest.is_empty() {
            match ready!(Pin::new(&mut paced.body).poll_frame(context)).map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(data))) => paced.rest = data,
                Some(Ok(Err(other))) => return Poll::Ready(Some(Ok(other))),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
        let part = paced.rest.split_to(paced.rest.len().min(PART_BYTES_MAX));
        paced.room.hand_over(&part);
        Poll::Ready(Some(Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (hint, rest) = (self.body.size_hint(), self.rest.len() as u64);
        let mut sized = SizeHint::new();
        sized.set_lower(hint.lower() + rest);
        if let Some(upper) = hint.upper() {
            sized.set_upper(upper + rest);
        }
        sized
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http_body_util::{BodyExt as _, Empty};
    use hyper::Request;
    use hyper::body::Incoming;
    use hyper::client::conn::http2;
    use hyper::service::service_fn;
    use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
    use tokio::time::Instant;

    use super::*;

    const STALLED_MAX: Duration = Duration::from_secs(30);
    const LENGTH_BYTES: usize = 1 << 20;

    async fn answer(_: Request<Incoming>) -> Result<Response<Body>, Infallible> {
        Ok(follow(Response::new(Body::from(vec![b'x'; LENGTH_BYTES])), &Backlog::default()))
    }

    /// A client of a server whose answers are of [`LENGTH_BYTES`].
    async fn connect() -> http2::SendRequest<Empty<Bytes>> {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let mut server = hyper::server::conn::http2::Builder::new(Streams::new(STALLED_MAX));
        server.timer(TokioTimer::new());
        tokio::spawn(server.serve_connection(TokioIo::new(ours), service_fn(answer)));
        let mut client = http2::Builder::new(TokioExecutor::new());
        client.initial_stream_window_size(1 << 16);
        let (client, connection) = client.handshake(TokioIo::new(theirs)).await.expect("there is a server");
        tokio::spawn(connection);
        client
    }

    async fn get(client: &mut http2::SendRequest<Empty<Bytes>>) -> Incoming {
        client.send_request(Request::new(Empty::new())).await.expect("there is an answer").into_body()
    }

    /// Reads to the end, with a pause after each frame; returns how much there was, and whether it came to its end.
    async fn read(mut body: Incoming, pause: Duration) -> (usize, bool) {
        let mut length = 0;
        while let Some(frame) = body.frame().await {
            match frame {
                Ok(frame) => length += frame.data_ref().map_or(0, Bytes::len),
                Err(_) => return (length, false),
            }
            tokio::time::sleep(pause).await;
        }
        (length, true)
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_is_not_read_is_cut_off_and_no_other() {
        let mut client = connect().await;
        let unread = get(&mut client).await;
        tokio::time::sleep(STALLED_MAX * 2 / 3).await;
        assert_eq!(read(get(&mut client).await, Duration::ZERO).await, (LENGTH_BYTES, true));
        tokio::time::sleep(STALLED_MAX).await;
        let (length, whole) = read(unread, Duration::ZERO).await;
        assert!(length < LENGTH_BYTES && !whole, "{length} bytes");
        assert_eq!(read(get(&mut client).await, Duration::ZERO).await, (LENGTH_BYTES, true));
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_is_read_slowly_goes_on() {
        let begun = Instant::now();
        let mut client = connect().await;
        assert_eq!(read(get(&mut client).await, STALLED_MAX / 10).await, (LENGTH_BYTES, true));
        assert!(begun.elapsed() > STALLED_MAX, "it took longer than one may stall");
    }
}
