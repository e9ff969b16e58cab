//! The accept loop and what happens on one connection.

use std::convert::Infallible;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use hyper::body::Incoming;
use hyper::header::{self, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

use super::cork::cork;
use super::cors;
use super::gate::{self, Gate};
use super::heads::RequestHead;
use super::host;
use super::loopback;
use super::open::{Activity, ConnectionActivity, ConnectionSlot, OpenConnections};
use super::pace;
use super::plain;
use super::stall::{self, Backlog, CutStalled};
use super::tls::{Peer, Tls};
use crate::auth::{AuthenticationNotes, UserInfo};
use crate::http::{Cut, PeerAddress, Stop, Stopping};
use crate::memory::{Full, Memory};

const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
const HEADERS_READ_MAX: Duration = Duration::from_secs(32);
const HEADERS_SIZE_BYTES_MAX: usize = 1 << 20;
/// Of the header fields of HTTP/2, with 32 bytes for each: over the wire, a field may be a single byte.
const FIELDS_SIZE_BYTES_MAX: u32 = 256 << 10;
const HEADERS_COUNT_MAX: usize = 1000;
/// The number of streams that client-go opens on one connection before it opens a second one.
const STREAMS_MAX: u32 = 1000;
/// The limit of unread bytes of one body, and of all bodies on a connection.
const STREAM_UNREAD_BYTES_MAX: u32 = 128 << 10;
const CONNECTION_UNREAD_BYTES_MAX: u32 = 512 << 10;
/// How many streams of a connection may be in error, as long as it lasts: connections of clients last for days.
const RESET_STREAMS_MAX: usize = 4 * STREAMS_MAX as usize;
/// How many streams may be cancelled in the turn of the connection in which they came: a flood of them ends it. Streams
/// that have begun, such as watches, may all be cancelled at once.
const RESET_AT_ONCE_MAX: usize = 100;
const PING_INTERVAL: Duration = Duration::from_secs(30);
const PING_ANSWER_MAX: Duration = Duration::from_secs(15);
/// How long a client may take to read any of the data that is sent to it.
const STALLED_MAX: Duration = Duration::from_secs(30);
/// How long requests may take to finish once the server stops.
const DRAIN_MAX: Duration = Duration::from_millis(400);
/// How long an idle connection may take to close when it is told to.
const CLOSE_MAX: Duration = Duration::from_secs(1);
/// How long a new connection may go without a request: kube-apiserver's `ReadHeaderTimeout`.
const FIRST_REQUEST_MAX: Duration = HEADERS_READ_MAX;
/// How long a connection may go without another request: kube-apiserver's `IdleTimeout`.
const IDLE_MAX: Duration = Duration::from_secs(90);
/// How long to wait when the process has no file descriptor left for another connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);
/// How often that is logged.
const ACCEPT_TOLD_INTERVAL: Duration = Duration::from_secs(10);

/// What answers requests: anything that is a tower service of hyper's requests, such as an `axum::Router`.
pub trait Service:
    tower::Service<Request<Incoming>, Response = Response<Body>, Error = Infallible, Future: Send>
    + Clone
    + Send
    + Sync
    + 'static
{
}

impl<S> Service for S where
    S: tower::Service<Request<Incoming>, Response = Response<Body>, Error = Infallible, Future: Send>
        + Clone
        + Send
        + Sync
        + 'static
{
}

/// All listeners of one service.
pub struct Connections<S> {
    service: S,
    gate: Gate,
    open: OpenConnections,
    stop: Stop,
    stopping: Stopping,
    /// Each task holds a clone; the receiver ends when the last one is gone.
    alive: mpsc::Sender<Infallible>,
    all_done: mpsc::Receiver<Infallible>,
}

impl<S: Service> Connections<S> {
    /// Serves at most `connections_max` connections at once.
    pub fn new(service: S, gate: Gate, connections_max: usize) -> Self {
        Connections::among(service, gate, OpenConnections::new(connections_max, Arc::new(Memory::of_system())))
    }

    /// Serves connections that share their slots with other services.
    pub fn among(service: S, gate: Gate, open: OpenConnections) -> Self {
        let (stop, stopping) = Stop::new();
        let (alive, all_done) = mpsc::channel(1);
        Connections { service, gate, open, stop, stopping, alive, all_done }
    }

    /// The slots of its connections.
    pub fn places(&self) -> OpenConnections {
        self.open.clone()
    }

    /// Accepts connections with TLS until the server stops.
    pub fn listen(&self, listener: TcpListener, tls: Tls) {
        let connection = self.connection();
        self.accept(listener, move |stream, place| {
            let (tls, connection) = (tls.clone(), connection.clone());
            async move {
                let acceptor = TlsAcceptor::from(tls.config(stream.local_addr().ok().map(|reached| reached.ip())));
                let address = stream.peer_addr().ok().map(PeerAddress);
                let activity = connection.open.activity();
                let is_plain = tokio::select! {
                    is_plain = timeout(HANDSHAKE_MAX, plain::is_http(&stream)) => is_plain,
                    () = activity.close_requested() => return,
                };
                match is_plain {
                    Ok(false) => {}
                    Ok(true) => return plain::answer(stream).await,
                    Err(_) => return tracing::debug!("TLS handshake took too long"),
                }
                let stream = CutStalled::new(stream, STALLED_MAX);
                let backlog = stream.backlog();
                let handshake = timeout(HANDSHAKE_MAX, acceptor.accept(stream));
                let stream = tokio::select! {
                    shaken = handshake => match shaken {
                        Ok(Ok(stream)) => stream,
                        Ok(Err(error)) => return tracing::debug!(%error, "TLS handshake failed"),
                        Err(_) => return tracing::debug!("TLS handshake took too long"),
                    },
                    () = activity.close_requested() => return,
                };
                let peer = tls.peer(stream.get_ref().1);
                connection.serve((stream, place), backlog, ListenerKind::Tls(peer), address, activity).await;
            }
        });
    }

    /// Accepts plain HTTP until the server stops; every request is an administrator's.
    pub fn listen_insecure(&self, listener: TcpListener) {
        let connection = self.connection();
        self.accept(listener, move |stream, place| {
            let connection = connection.clone();
            async move {
                let address = stream.peer_addr().ok().map(PeerAddress);
                let activity = connection.open.activity();
                let stream = CutStalled::new(stream, STALLED_MAX);
                let backlog = stream.backlog();
                connection.serve((stream, place), backlog, ListenerKind::Loopback, address, activity).await;
            }
        });
    }

    /// Stops accepting, ends the watches, and waits until every request has its answer, for at most 400 ms or `drain`.
    /// What takes longer is cut off: it was not acknowledged.
    pub async fn shut_down(self, drain: Option<Duration>) {
        let Connections { stop, alive, mut all_done, .. } = self;
        stop.stop();
        drop(alive);
        let drain = drain.unwrap_or(DRAIN_MAX);
        if timeout(drain, all_done.recv()).await.is_err() {
            tracing::warn!("some requests took longer than {} ms to finish and are cut off", drain.as_millis());
        }
    }

    fn connection(&self) -> Connection<S> {
        Connection {
            service: self.service.clone(),
            gate: self.gate.clone(),
            open: self.open.clone(),
            stopping: self.stopping.clone(),
        }
    }

    fn accept<F>(&self, listener: TcpListener, serve: impl Fn(TcpStream, ConnectionSlot) -> F + Send + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (mut stopping, alive, open) = (self.stopping.clone(), self.alive.clone(), self.open.clone());
        tokio::spawn(async move {
            let mut errors = AcceptErrors::default();
            loop {
                let next = next(&listener, &open, &alive, &mut errors);
                let accepted = tokio::select! {
                    accepted = next => accepted,
                    () = stopping.stopped() => return,
                };
                if let Some((stream, place)) = accepted {
                    // Events are small and late ones are worth nothing. Without it they are late, not lost.
                    let _ = stream.set_nodelay(true);
                    stall::bound_unsent(&stream);
                    tokio::spawn(serve(stream, place));
                }
            }
        });
    }
}

/// The next connection, and its slot; `None` if accepting failed.
async fn next(
    listener: &TcpListener,
    open: &OpenConnections,
    alive: &mpsc::Sender<Infallible>,
    errors: &mut AcceptErrors,
) -> Option<(TcpStream, ConnectionSlot)> {
    match listener.accept().await {
        Ok((stream, _)) => open.admit(alive.clone()).await.map(|place| (stream, place)),
        Err(error) => {
            errors.tell(&error);
            open.close_longest_idle();
            tokio::time::sleep(ACCEPT_PAUSE).await;
            None
        }
    }
}

/// Persistent errors while accepting connections, which are logged now and then.
#[derive(Default)]
struct AcceptErrors {
    told: Option<Instant>,
}

impl AcceptErrors {
    fn tell(&mut self, error: &std::io::Error) {
        if self.told.is_none_or(|told| told.elapsed() >= ACCEPT_TOLD_INTERVAL) {
            tracing::warn!(%error, "cannot accept a connection");
            self.told = Some(Instant::now());
        }
    }
}

/// How a connection came in.
#[derive(Clone)]
enum ListenerKind {
    Tls(Peer),
    Loopback,
}

#[derive(Clone)]
struct Connection<S> {
    service: S,
    gate: Gate,
    open: OpenConnections,
    stopping: Stopping,
}

impl<S: Service> Connection<S> {
    /// Serves one connection until the client or the server ends it.
    async fn serve(
        self,
        (stream, place): (impl AsyncRead + AsyncWrite + Send + Unpin + 'static, ConnectionSlot),
        backlog: Backlog,
        listener: ListenerKind,
        address: Option<PeerAddress>,
        activity: Arc<Activity>,
    ) {
        let mut stopping = self.stopping.clone();
        let heads = self.open.heads(address);
        let stream = heads.counted(stream, place);
        let answer = service_fn(|mut request: Request<Incoming>| {
            if let Some(address) = address {
                request.extensions_mut().insert(address);
            }
            let (in_flight, head) = (activity.begin(), heads.of(&request));
            let answer = self.answer((request, head), &backlog, &listener, &activity);
            async move {
                let Ok((answer, head)) = answer.await;
                match answer.extensions().get::<Cut>() {
                    Some(cut) => Err(*cut),
                    None => Ok(in_flight.holding(head).during(answer)),
                }
            }
        });
        let builder = builder();
        let (stream, cork) = cork(stream);
        let mut serving = pin!(builder.serve_connection_with_upgrades(TokioIo::new(stream), answer));
        let mut turns = cork.turns(serving.as_mut());
        let mut deadline = Instant::now() + FIRST_REQUEST_MAX;
        let mut ending = false;
        loop {
            let time_to_end = tokio::select! {
                ended = &mut turns => {
                    if let Err(error) = ended {
                        tracing::debug!(%error, "connection ended");
                    }
                    return;
                }
                () = stopping.stopped(), if !ending => Some(DRAIN_MAX),
                () = activity.cut() => return,
                () = activity.close_requested(), if !ending => Some(CLOSE_MAX),
                () = sleep_until(deadline) => {
                    let (doing, now) = (activity.doing(), Instant::now());
                    if ending && (doing != ConnectionActivity::Something || stopping.is_stopping()) {
                        return;
                    }
                    deadline = idle_until(doing);
                    (deadline <= now).then_some(CLOSE_MAX)
                },
            };
            if let Some(time) = time_to_end {
                if let Some(serving) = turns.running() {
                    serving.graceful_shutdown();
                }
                deadline = Instant::now() + time;
                ending = true;
            }
        }
    }

    fn answer(
        &self,
        (mut request, mut head): (Request<Incoming>, RequestHead),
        backlog: &Backlog,
        listener: &ListenerKind,
        activity: &Arc<Activity>,
    ) -> impl Future<Output = Result<(Response<Body>, RequestHead), Infallible>> + use<S> {
        request.extensions_mut().insert(self.stopping.clone());
        let is_last = head.leaves_large_buffer();
        let (service, gate) = (self.service.clone(), self.gate.clone());
        let (backlog, listener, activity) = (backlog.clone(), listener.clone(), Arc::clone(activity));
        async move {
            if let Some(refusal) = host::refusal(request.version(), request.method(), request.headers()) {
                return Ok((refusal, head));
            }
            let origin = gate.allowed_origins.origin(request.headers());
            let mut answer = if origin.is_some() && request.method() == Method::OPTIONS {
                gate::with_audit_id(gate::preflight(), request.headers())
            } else {
                let mut refused = gate.admit(&listener, &mut request).await;
                if let Some(user) = request.extensions().get::<UserInfo>() {
                    activity.note_user(user);
                    refused = refused.or_else(|| head.count_for(user).err().map(|Full| gate.crowded(&request)));
                }
                match refused {
                    Some(refusal) => gate::with_audit_id(refusal, request.headers()),
                    None => pace::follow(service.oneshot(request).await?, &backlog),
                }
            };
            if let Some(origin) = origin {
                cors::allow(origin, &mut answer);
            }
            if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
                head.upgrade();
            } else if is_last {
                answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            Ok((answer, head))
        }
    }
}

/// How long a connection may stay open without a request.
fn idle_until(doing: ConnectionActivity) -> Instant {
    match doing {
        ConnectionActivity::Something => Instant::now() + IDLE_MAX,
        ConnectionActivity::NothingYet(since) => since + FIRST_REQUEST_MAX,
        ConnectionActivity::Nothing(since) => since + IDLE_MAX,
    }
}

impl Gate {
    /// Adds the user of a request to its extensions; returns the answer if the request is refused.
    async fn admit(&self, listener: &ListenerKind, request: &mut Request<Incoming>) -> Option<Response<Body>> {
        let user = match listener {
            ListenerKind::Loopback if !loopback::is_local_request(request.uri(), request.headers()) => {
                return Some(gate::not_local());
            }
            ListenerKind::Loopback => UserInfo::unsecured(),
            ListenerKind::Tls(peer) => {
                let mut notes = AuthenticationNotes::default();
                let user = self.authenticate(peer, request.headers(), &mut notes).await;
                if notes != AuthenticationNotes::default() {
                    request.extensions_mut().insert(notes);
                }
                match user {
                    Some(user) => user,
                    None if gate::is_health_path(request.uri().path()) => return None,
                    None => return Some(self.refuse(peer, request)),
                }
            }
        };
        request.extensions_mut().insert(user);
        None
    }
}

fn builder() -> Builder<pace::Streams> {
    let mut builder = Builder::new(pace::Streams::new(STALLED_MAX));
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS_READ_MAX)
        .max_headers(HEADERS_COUNT_MAX)
        .max_buf_size(HEADERS_SIZE_BYTES_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .max_pending_accept_reset_streams(RESET_AT_ONCE_MAX)
        .max_local_error_reset_streams(RESET_STREAMS_MAX)
        .max_header_list_size(FIELDS_SIZE_BYTES_MAX)
        .initial_stream_window_size(STREAM_UNREAD_BYTES_MAX)
        .initial_connection_window_size(CONNECTION_UNREAD_BYTES_MAX)
        .max_send_buf_size(pace::STREAM_BUFFER_BYTES_MAX)
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_ANSWER_MAX);
    builder
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

    use super::*;
    use crate::auth::Tokens;

    /// When a connection over TLS is closed on which `sent` is all that comes.
    async fn closed_after(sent: &[u8]) -> Duration {
        answered_and_closed_after(sent).await.1
    }

    /// The client's end of a new connection, which holds so many bytes that were not read.
    async fn connected(connections: &Connections<Router>, unread_bytes_max: usize) -> DuplexStream {
        let connection = connections.connection();
        let (activity, (theirs, ours)) = (connection.open.activity(), duplex(unread_bytes_max));
        let place = connection.open.admit(connections.alive.clone()).await.expect("there is one");
        let listener = ListenerKind::Tls(Peer::Unnamed);
        tokio::spawn(connection.serve((ours, place), Backlog::default(), listener, None, activity));
        theirs
    }

    /// All that such a connection answers, and when it is closed.
    async fn answered_and_closed_after(sent: &[u8]) -> (String, Duration) {
        let app = Router::new().fallback(async || "ok");
        let connections = Connections::new(app, Gate::new(Arc::new(Tokens::default())), 1);
        let started = Instant::now();
        let mut theirs = connected(&connections, 1 << 16).await;
        theirs.write_all(sent).await.expect("it is read");
        let mut answer = Vec::new();
        theirs.read_to_end(&mut answer).await.expect("it is closed");
        (String::from_utf8_lossy(&answer).into_owned(), started.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_read_a_large_head_is_not_kept() {
        for (path, code) in [("/livez", 200), ("/version", 401)] {
            for (length, is_kept) in [(60_000, true), (70_000, false), (420_000, false)] {
                let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\nX-A: {}\r\n\r\n", "a".repeat(length));
                let (answer, closed) = answered_and_closed_after(request.as_bytes()).await;
                assert!(answer.starts_with(&format!("HTTP/1.1 {code} ")), "{answer}");
                assert_eq!(!answer.contains("connection: close\r\n"), is_kept, "{length} bytes: {answer}");
                assert_eq!(!closed.is_zero(), is_kept, "{length} bytes");
            }
        }
    }

    #[tokio::test]
    async fn a_head_that_memory_has_no_room_for_ends_its_connection() {
        let app = Router::new().fallback(async || "ok");
        let connections = Connections::among(
            app,
            Gate::new(Arc::new(Tokens::default())),
            OpenConnections::new(8, Arc::new(Memory::new(1))),
        );
        let mut open = Vec::new();
        let mut ended = 0;
        for _ in 0..4 {
            let mut theirs = connected(&connections, 1 << 10).await;
            let head = format!("GET / HTTP/1.1\r\nX-A: {}", "a".repeat(400 << 10));
            ended += usize::from(theirs.write_all(head.as_bytes()).await.is_err());
            open.push(theirs);
        }
        assert_eq!(ended, 2);
        drop(open);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_without_requests_is_closed() {
        let within = |closed: Duration, expected: Duration| (expected..expected + CLOSE_MAX * 2).contains(&closed);
        assert!(within(closed_after(b"").await, FIRST_REQUEST_MAX));
        assert!(within(closed_after(b"GET / HT").await, FIRST_REQUEST_MAX));
        // The preface of HTTP/2 and empty settings, and no stream.
        let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
        assert!(within(closed_after(preface).await, FIRST_REQUEST_MAX));
        assert!(closed_after(b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n").await <= IDLE_MAX + CLOSE_MAX * 2);
        assert!(closed_after(b"GET /livez HTTP/1.1\r\n\r\n").await.is_zero(), "a refusal ends it");
    }
}
