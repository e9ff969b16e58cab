//! The accept loop and what happens on one connection.

use std::convert::Infallible;
use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use axum::body::Body;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

use super::gate::{self, Gate};
use super::loopback;
use super::pace;
use super::stall::CutStalled;
use super::tls::{Peer, Tls};
use crate::auth::UserInfo;
use crate::http::{PeerAddress, Stop, Stopping};

const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
const HEADERS_READ_MAX: Duration = Duration::from_secs(32);
const HEADERS_SIZE_BYTES_MAX: usize = 1 << 20;
const HEADERS_COUNT_MAX: usize = 1000;
/// What client-go opens on one connection before it takes a second one.
const STREAMS_MAX: u32 = 1000;
/// A client may cancel all its watches at once; each reset waits here until it is seen.
const RESET_STREAMS_MAX: usize = 4 * STREAMS_MAX as usize;
const PING_INTERVAL: Duration = Duration::from_secs(30);
const PING_ANSWER_MAX: Duration = Duration::from_secs(15);
/// How long a client may take to read something of what it is sent.
const STALLED_MAX: Duration = Duration::from_secs(30);
/// How long requests may take to finish once the server stops.
const DRAIN_MAX: Duration = Duration::from_secs(10);
/// How long to wait when the process has no file descriptor left for another connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

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

/// Everything that listens for one service.
pub struct Connections<S> {
    service: S,
    gate: Gate,
    stop: Stop,
    stopping: Stopping,
    /// Each task holds a clone; the receiver ends when the last one is gone.
    alive: mpsc::Sender<Infallible>,
    all_done: mpsc::Receiver<Infallible>,
}

impl<S: Service> Connections<S> {
    pub fn new(service: S, gate: Gate) -> Self {
        let (stop, stopping) = Stop::new();
        let (alive, all_done) = mpsc::channel(1);
        Connections { service, gate, stop, stopping, alive, all_done }
    }

    /// Accepts connections with TLS until the server stops.
    pub fn listen(&self, listener: TcpListener, tls: Tls) {
        let acceptor = TlsAcceptor::from(tls.config());
        let connection = self.connection();
        self.accept(listener, move |stream| {
            let (acceptor, tls, connection) = (acceptor.clone(), tls.clone(), connection.clone());
            async move {
                let address = stream.peer_addr().ok().map(PeerAddress);
                let stream = CutStalled::new(stream, STALLED_MAX);
                let stream = match timeout(HANDSHAKE_MAX, acceptor.accept(stream)).await {
                    Ok(Ok(stream)) => stream,
                    Ok(Err(error)) => return tracing::debug!(%error, "TLS handshake failed"),
                    Err(_) => return tracing::debug!("TLS handshake took too long"),
                };
                let peer = tls.peer(stream.get_ref().1);
                connection.serve(stream, Door::Tls(peer), address).await;
            }
        });
    }

    /// Accepts plain HTTP until the server stops; every request is an administrator's.
    pub fn listen_insecure(&self, listener: TcpListener) {
        let connection = self.connection();
        self.accept(listener, move |stream| {
            let connection = connection.clone();
            async move {
                let address = stream.peer_addr().ok().map(PeerAddress);
                connection.serve(CutStalled::new(stream, STALLED_MAX), Door::Loopback, address).await;
            }
        });
    }

    /// Stops accepting, ends the watches, and waits until every request has its answer, 10 s at most.
    pub async fn shut_down(self) {
        let Connections { stop, alive, mut all_done, .. } = self;
        stop.stop();
        drop(alive);
        if timeout(DRAIN_MAX, all_done.recv()).await.is_err() {
            tracing::warn!("some requests took longer than {} s to finish and are cut off", DRAIN_MAX.as_secs());
        }
    }

    fn connection(&self) -> Connection<S> {
        Connection { service: self.service.clone(), gate: self.gate.clone(), stopping: self.stopping.clone() }
    }

    fn accept<F>(&self, listener: TcpListener, serve: impl Fn(TcpStream) -> F + Send + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (mut stopping, alive) = (self.stopping.clone(), self.alive.clone());
        tokio::spawn(async move {
            loop {
                let accepted = tokio::select! {
                    accepted = listener.accept() => accepted,
                    () = stopping.stopped() => return,
                };
                match accepted {
                    Ok((stream, _)) => {
                        // Events are small and late ones are worth nothing. Without it they are late, not lost.
                        let _ = stream.set_nodelay(true);
                        let (served, alive) = (serve(stream), alive.clone());
                        tokio::spawn(async move {
                            served.await;
                            drop(alive);
                        });
                    }
                    Err(error) => {
                        tracing::warn!(%error, "cannot accept a connection");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                }
            }
        });
    }
}

/// How a connection came in.
#[derive(Clone)]
enum Door {
    Tls(Peer),
    Loopback,
}

#[derive(Clone)]
struct Connection<S> {
    service: S,
    gate: Gate,
    stopping: Stopping,
}

impl<S: Service> Connection<S> {
    /// Serves one connection until its client or the server ends it.
    async fn serve(
        self,
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        door: Door,
        address: Option<PeerAddress>,
    ) {
        let mut stopping = self.stopping.clone();
        let answer = service_fn(|mut request: Request<Incoming>| {
            if let Some(address) = address {
                request.extensions_mut().insert(address);
            }
            self.answer(request, &door)
        });
        let builder = builder();
        let mut serving = pin!(builder.serve_connection_with_upgrades(TokioIo::new(stream), answer));
        let mut draining = false;
        loop {
            tokio::select! {
                ended = serving.as_mut() => {
                    if let Err(error) = ended {
                        tracing::debug!(%error, "connection ended");
                    }
                    return;
                }
                () = stopping.stopped(), if !draining => {
                    serving.as_mut().graceful_shutdown();
                    draining = true;
                }
            }
        }
    }

    fn answer(
        &self,
        mut request: Request<Incoming>,
        door: &Door,
    ) -> impl Future<Output = Result<Response<Body>, Infallible>> + use<S> {
        request.extensions_mut().insert(self.stopping.clone());
        let (service, gate, door) = (self.service.clone(), self.gate.clone(), door.clone());
        async move {
            match gate.admit(&door, &mut request).await {
                Some(refusal) => Ok(gate::with_audit_id(refusal, request.headers())),
                None => service.oneshot(request).await.map(pace::follow),
            }
        }
    }
}

impl Gate {
    /// Notes among the extensions of a request who sends it; the answer to one who is not let in.
    async fn admit(&self, door: &Door, request: &mut Request<Incoming>) -> Option<Response<Body>> {
        let user = match door {
            Door::Loopback if !loopback::is_local_request(request.uri(), request.headers()) => {
                return Some(gate::not_local());
            }
            Door::Loopback => UserInfo::unsecured(),
            Door::Tls(peer) => match self.who(peer, request.headers()).await {
                Some(user) => user,
                None => return (!gate::is_health_path(request.uri().path())).then(gate::unauthorized),
            },
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
        .max_pending_accept_reset_streams(RESET_STREAMS_MAX)
        .max_local_error_reset_streams(RESET_STREAMS_MAX)
        .max_header_list_size(HEADERS_SIZE_BYTES_MAX as u32)
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_ANSWER_MAX);
    builder
}
