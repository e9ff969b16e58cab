//! A watch over a WebSocket: one frame an event, text for JSON and binary for protobuf.
//!
//! The handshake is that of Kubernetes' own library: a client may offer one sub-protocol, of any name, and gets it back.
//! Source: `k8s.io/apiserver/pkg/endpoints/handlers/watch.go` and `golang.org/x/net/websocket`.
//! DIFFERS: a client without an Origin header is served. Kubernetes refuses it with 403; what the header protects, a
//! browser always sends one for.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, Uri, header};
use futures_util::{SinkExt as _, StreamExt as _};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Message, Role, WebSocketConfig};

/// The sub-protocol that holds a bearer token, as base64 of the URL alphabet; it is never answered with.
pub const TOKEN_PROTOCOL: &str = "base64url.bearer.authorization.k8s.io.";
/// What a client sends is read and forgotten; longer messages end the connection.
const RECEIVED_BYTES_MAX: usize = 64 << 10;
/// What stands before an event of a stream of protobuf.
const PROTOBUF_LENGTH_BYTES: usize = 4;
/// How long a client may take to read an event.
const SEND_MAX: Duration = Duration::from_secs(30);

/// What is sent over a WebSocket.
pub(super) trait Frames: Send + 'static {
    /// Whether frames are text.
    fn is_text(&self) -> bool;

    /// The next frame; `None` at the end. Cancel-safe.
    fn next(&mut self) -> impl Future<Output = Option<Vec<u8>>> + Send;
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
    /// Takes what a handshake needs from a request; `None` where none is asked for.
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

    /// Shakes hands and sends what `frames` has, until either side ends it.
    pub fn answer(&self, frames: impl Frames) -> Response<Body> {
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
        tokio::spawn(send(on_upgrade, frames));
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

async fn send(on_upgrade: OnUpgrade, mut frames: impl Frames) {
    let upgraded = match on_upgrade.await {
        Ok(upgraded) => upgraded,
        Err(error) => return tracing::debug!(%error, "no WebSocket came of a handshake"),
    };
    let config =
        WebSocketConfig::default().max_message_size(Some(RECEIVED_BYTES_MAX)).max_frame_size(Some(RECEIVED_BYTES_MAX));
    let mut socket = WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, Some(config)).await;
    loop {
        tokio::select! {
            event = frames.next() => {
                let Some(event) = event else { break };
                let message = if frames.is_text() { Message::text(String::from_utf8_lossy(&event).into_owned()) } else {
                    // The frame has a length of its own.
                    Message::binary(event.get(PROTOBUF_LENGTH_BYTES..).unwrap_or_default().to_vec()) };
                match timeout(SEND_MAX, socket.send(message)).await {
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
    // Whoever has gone already does not read it.
    _ = timeout(SEND_MAX, socket.close(None)).await;
}
