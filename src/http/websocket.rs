//! A watch over a WebSocket: one frame per event, text for JSON and binary for protobuf.
//!
//! An event is sent from memory that all its receivers share, so a slow client costs no copy. So frames are written
//! here, and the library reads what the client sends and closes the connection. Where a frame takes long to make, its
//! connection leaves its thread, as a plain watch does.
//!
//! The handshake is that of Kubernetes' own library: a client may offer one sub-protocol, of any name, and gets it back.
//! Source: `k8s.io/apiserver/pkg/endpoints/handlers/watch.go` and `golang.org/x/net/websocket`.
//! DIFFERS: a client without an Origin header is served. Kubernetes refuses it with 403; the header protects browsers,
//! and these always send it.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, Uri, header};
use futures_util::{SinkExt as _, StreamExt as _};
use hyper::body::Buf as _;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWriteExt as _;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Message, Role, WebSocketConfig};

use crate::processor::StreamTurn;

/// The sub-protocol that holds a bearer token, as base64 of the URL alphabet; it is never part of the answer.
pub const TOKEN_PROTOCOL: &str = "base64url.bearer.authorization.k8s.io.";
/// Messages from a client are read and discarded; longer messages end the connection.
const RECEIVED_BYTES_MAX: usize = 64 << 10;
/// The length of the prefix of an event in a protobuf stream.
const PROTOBUF_LENGTH_BYTES: usize = 4;
/// How much is read of a client at a time.
const READ_BYTES: usize = 4 << 10;
/// How many bytes of answers to pings and of the end of the connection may wait for a client that does not read. Beyond
/// that, only the newest ping is answered.
const REPLIES_BYTES_MAX: usize = 4 << 10;
/// How long a client may take to receive an event.
const SEND_MAX: Duration = Duration::from_secs(30);

type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// The frames that are sent over a WebSocket.
pub(super) trait Frames: Send + 'static {
    /// Whether frames are text.
    fn is_text(&self) -> bool;

    /// The pieces of the next frame; `None` at the end. Cancel-safe.
    fn next(&mut self) -> impl Future<Output = Option<Vec<Bytes>>> + Send;
}

/// A request that asks for a WebSocket.
pub(super) struct Upgrade {
    key: String,
    version: String,
    protocols: Vec<String>,
    origin: String,
    on_upgrade: Mutex<Option<OnUpgrade>>,
}

/// Whether a request asks for a WebSocket.
pub fn is_upgrade(headers: &HeaderMap) -> bool {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let connection = headers.get_all(header::CONNECTION).iter().filter_map(|value| value.to_str().ok());
    text(header::UPGRADE).eq_ignore_ascii_case("websocket")
        && connection.into_iter().any(|value| value.to_ascii_lowercase().contains("upgrade"))
}

/// The sub-protocols that a client offers, in all its headers.
pub fn protocols(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let values = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim).filter(|protocol| !protocol.is_empty())
}

impl Upgrade {
    /// Takes what a handshake needs from a request; `None` if the request isn't an upgrade.
    pub fn of(parts: &mut Parts) -> Option<Self> {
        if !is_upgrade(&parts.headers) {
            return None;
        }
        let text = |name: HeaderName| {
            let value = parts.headers.get(name).and_then(|value| value.to_str().ok());
            value.unwrap_or_default().to_owned()
        };
        Some(Upgrade {
            key: text(header::SEC_WEBSOCKET_KEY),
            version: text(header::SEC_WEBSOCKET_VERSION),
            protocols: protocols(&parts.headers)
                .filter(|protocol| !protocol.starts_with(TOKEN_PROTOCOL))
                .map(str::to_owned)
                .collect(),
            origin: text(header::ORIGIN),
            on_upgrade: Mutex::new(parts.extensions.remove::<OnUpgrade>()),
        })
    }

    /// Completes the handshake and sends `frames`, each in its `turn` if they take long, until either side ends the
    /// connection.
    pub fn answer(&self, frames: impl Frames, turn: StreamTurn) -> Response<Body> {
        if self.key.is_empty() {
            return refusal(400, "mismatch challenge/response");
        }
        if self.version != "13" {
            let mut response = refusal(400, "missing or bad WebSocket Version");
            response.headers_mut().insert(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
            return response;
        }
        if !self.origin.is_empty() && self.origin.parse::<Uri>().is_err() {
            return refusal(403, "");
        }
        if self.protocols.len() > 1 {
            return refusal(400, "");
        }
        let on_upgrade = self.on_upgrade.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(on_upgrade) = on_upgrade else { return refusal(400, "not websocket protocol") };
        tokio::spawn(turn.run(send(on_upgrade, frames)));
        let mut response = Response::new(Body::empty());
        *response.status_mut() = axum::http::StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        if let Ok(accept) = HeaderValue::from_str(&derive_accept_key(self.key.as_bytes())) {
            headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
        }
        if let Some(protocol) = self.protocols.first().and_then(|protocol| HeaderValue::from_str(protocol).ok()) {
            headers.insert(header::SEC_WEBSOCKET_PROTOCOL, protocol);
        }
        response
    }
}

fn refusal(code: u16, text: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = axum::http::StatusCode::from_u16(code).unwrap_or_default();
    response
}

/// Sends an event as one frame, once the library has flushed its own messages.
async fn send_frame(socket: &mut Socket, is_text: bool, mut event: Vec<Bytes>) -> Result<(), Error> {
    if !is_text {
        // A WebSocket frame already has a length.
        skip(&mut event, PROTOBUF_LENGTH_BYTES);
    }
    socket.flush().await?;
    let stream = socket.get_mut();
    stream.write_all(&head(is_text, event.iter().map(Bytes::len).sum())).await?;
    for piece in event {
        stream.write_all(&piece).await?;
    }
    Ok(stream.flush().await?)
}

/// Removes this many bytes from the front.
fn skip(pieces: &mut [Bytes], mut bytes: usize) {
    for piece in pieces {
        let skipped = bytes.min(piece.len());
        piece.advance(skipped);
        bytes -= skipped;
    }
}

/// The header of an unfragmented frame that a server sends.
///
/// Source: RFC 6455, section 5.2.
fn head(is_text: bool, length: usize) -> Vec<u8> {
    const WHOLE: u8 = 0x80;
    const TEXT: u8 = 1;
    const BINARY: u8 = 2;
    let mut head = vec![WHOLE | if is_text { TEXT } else { BINARY }];
    match (u8::try_from(length), u16::try_from(length)) {
        (Ok(short @ ..126), _) => head.push(short),
        (_, Ok(middling)) => {
            head.push(126);
            head.extend(middling.to_be_bytes());
        }
        _ => {
            head.push(127);
            head.extend((length as u64).to_be_bytes());
        }
    }
    head
}

/// What a connection may have in memory.
fn config() -> WebSocketConfig {
    WebSocketConfig::default()
        .max_message_size(Some(RECEIVED_BYTES_MAX))
        .max_frame_size(Some(RECEIVED_BYTES_MAX))
        .read_buffer_size(READ_BYTES)
        .write_buffer_size(0)
        .max_write_buffer_size(REPLIES_BYTES_MAX)
}

async fn send(on_upgrade: OnUpgrade, mut frames: impl Frames) {
    let upgraded = match on_upgrade.await {
        Ok(upgraded) => upgraded,
        Err(error) => return tracing::debug!(%error, "no WebSocket came of a handshake"),
    };
    let mut socket = WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, Some(config())).await;
    loop {
        tokio::select! {
            event = frames.next() => {
                let Some(event) = event else { break };
                match timeout(SEND_MAX, send_frame(&mut socket, frames.is_text(), event)).await {
                    Ok(Ok(())) => {}
                    Ok(Err(_)) | Err(_) => return,
                }
            }
            received = socket.next() => match received {
                Some(Ok(Message::Close(_)) | Err(_)) | None => break,
                Some(Ok(_)) => {}
            },
        }
    }
    // A client that is already gone does not read it.
    _ = timeout(SEND_MAX, socket.close(None)).await;
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::task::Poll;

    use axum::http::Request;
    use futures_util::future::join;
    use hyper::body::Incoming;
    use hyper::service::service_fn;
    use hyper_util::rt::TokioExecutor;
    use hyper_util::server::conn::auto::Builder;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;
    use crate::processor::Processor;
    use crate::work;

    /// A frame that takes long to make: it tells whether another task ran meanwhile.
    struct LongFrame;

    impl Frames for LongFrame {
        fn is_text(&self) -> bool {
            true
        }

        async fn next(&mut self) -> Option<Vec<Bytes>> {
            const STEPS_MAX: u64 = 1 << 29;
            let has_run = Arc::new(AtomicBool::new(false));
            let other = Arc::clone(&has_run);
            tokio::spawn(async move { other.store(true, Ordering::Relaxed) });
            let ran = (0..STEPS_MAX).any(|_| {
                work::step();
                has_run.load(Ordering::Relaxed)
            });
            let told = if ran { "<others ran>" } else { "<nothing ran>" };
            Some(vec![Bytes::from_static(told.as_bytes())])
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_frame_that_takes_long_leaves_its_thread_to_others() {
        let (ours, mut client) = duplex(1 << 10);
        let answer = service_fn(|request: Request<Incoming>| {
            let upgrade = Upgrade::of(&mut request.into_parts().0).expect("it asks for one");
            async move { Ok::<_, Infallible>(upgrade.answer(LongFrame, Processor::default().stream_turn("jane"))) }
        });
        tokio::spawn(async move {
            _ = Builder::new(TokioExecutor::new()).serve_connection_with_upgrades(TokioIo::new(ours), answer).await;
        });
        let request = "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                       Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
        client.write_all(request.as_bytes()).await.expect("it reads");
        let mut received = String::new();
        while !received.ends_with('>') {
            let byte = client.read_u8().await.expect("it sends a frame");
            received.push(char::from(byte));
        }
        assert!(received.ends_with("<others ran>"), "{received}");
    }

    #[tokio::test]
    async fn pings_of_a_client_that_reads_nothing_take_little_memory() {
        const PINGS: usize = 10_000;
        // FIN and ping, masked by zeros.
        let ping = [&[0x89, 0x80 | 125, 0, 0, 0, 0][..], &[b'x'; 125]].concat();
        let (ours, mut client) = duplex(1 << 10);
        let mut socket = WebSocketStream::from_raw_socket(ours, Role::Server, Some(config())).await;
        let pinging = async {
            for _ in 0..PINGS {
                client.write_all(&ping).await.expect("it reads");
            }
        };
        let mut read = 0;
        let reading = async {
            while let Some(Ok(Message::Ping(_))) = socket.next().await {
                read += 1;
                if read == PINGS {
                    break;
                }
            }
        };
        let mut both = pin!(join(pinging, reading));
        let mut taken = 0;
        std::future::poll_fn(|context| {
            let mut polled = Poll::Pending;
            let counted = allocation_counter::measure(|| polled = both.as_mut().poll(context).map(|_| ()));
            taken += counted.bytes_current;
            polled
        })
        .await;
        assert!(taken < 64 << 10, "{taken} bytes");
        assert_eq!(read, PINGS);
    }

    #[test]
    fn a_frame_begins_with_its_length() {
        assert_eq!(head(true, 125), [0x81, 125]);
        assert_eq!(head(false, 126), [0x82, 126, 0, 126]);
        assert_eq!(head(true, 65_535), [0x81, 126, 0xff, 0xff]);
        assert_eq!(head(true, 65_536), [0x81, 127, 0, 0, 0, 0, 0, 1, 0, 0]);
    }

    #[test]
    fn what_stands_before_an_event_of_protobuf_is_not_sent() {
        let mut pieces = [&b"abc"[..], b"de", b"f"].map(Bytes::from_static);
        skip(&mut pieces, 4);
        assert_eq!(pieces.concat(), b"ef");
    }
}
