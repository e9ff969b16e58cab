//! Connections to one webhook: opened when needed, and kept for the next call.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Body;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::http::uri::InvalidUri;
use hyper::{Request, Uri, header};
use hyper_util::rt::TokioIo;
use ipnet::IpNet;
use rustls::pki_types::{InvalidDnsNameError, ServerName};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio_rustls::TlsConnector;

use super::answer::WebhookAnswer;
use super::certificates::{Flaws, OldCertificates};
use super::trust::TrustError;
use super::{
    ANSWER_BYTES_MAX, ANSWER_UNCOUNTED_BYTES_MAX, Address, AnswerBody, Endpoint, ServiceAddress, WebhookClient,
    lookups, trust,
};
use crate::memory::{self, Memory, Reservation};

/// Any error.
type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// How many idle connections are kept.
const IDLE_MAX: usize = 16;

/// How many bytes of interim responses (1xx) are read before a response. Source: Go's client.
const INTERIM_BYTES_MAX: usize = 10 << 20;
/// What a response has beside its headers, and a header beside its name and value, in bytes.
const RESPONSE_LINE_BYTES: usize = 20;
const HEADER_BYTES: usize = 4;

/// How far a call has come, for the error after its time limit.
#[derive(Default)]
pub(super) struct CallProgress {
    /// Whether the response headers have arrived.
    pub begun: AtomicBool,
    /// Whether the call waits for memory to read the response.
    pub waits_for_memory: AtomicBool,
}

/// Why a call has no response.
pub(super) enum CallError {
    /// The call failed; the text follows `Post "URL": `.
    Call(String),
    /// The response can't be read.
    Answer(String),
    /// There is no memory to read the response.
    Crowded,
}

/// Why a connection failed. The texts are those of Go's client, if it has such an error.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectError {
    #[error(transparent)]
    Trust(#[from] TrustError),
    #[error("parse \"{url}\": {source}")]
    Url { url: String, source: InvalidUri },
    #[error(transparent)]
    NoService(#[from] NoService),
    #[error("dial tcp: lookup {0}: no such host")]
    NoHost(String),
    #[error("dial tcp {0}: the address is denied by --webhook-deny-cidr")]
    Denied(SocketAddr),
    #[error("dial tcp {address}: {}", describe_connect(source))]
    Dial { address: SocketAddr, source: io::Error },
    #[error("{}", trust::describe(source, server_name))]
    Untrusted { server_name: String, source: rustls::Error },
    #[error("EOF")]
    Closed,
    #[error(transparent)]
    Name(#[from] InvalidDnsNameError),
    #[error(transparent)]
    Http(#[from] hyper::Error),
    #[error(transparent)]
    Socket(#[from] io::Error),
}

/// A service without a configured address.
#[derive(Clone, Debug, thiserror::Error)]
#[error("service \"{0}\" not found")]
pub(super) struct NoService(String);

/// The connections to one webhook.
pub(super) struct Connections {
    url: String,
    /// The `Host` header.
    authority: String,
    path: String,
    /// The name that the certificate must match.
    server_name: String,
    /// Headers in addition to those that every call has.
    headers: Vec<(String, String)>,
    /// The address to connect to, as `HOST:PORT`, or an error for an unknown service.
    place: Result<String, NoService>,
    /// The address ranges that are never connected to.
    denied: Arc<[IpNet]>,
    connector: TlsConnector,
    memory: Arc<Memory>,
    idle: Mutex<Vec<WebhookConnection>>,
    old_certificates: OldCertificates,
}

/// One connection, and the flaws of the server's certificates.
struct WebhookConnection {
    sender: SendRequest<Full<Bytes>>,
    flaws: Flaws,
}

impl Connections {
    pub fn new(endpoint: &Endpoint, client: &WebhookClient) -> Result<Self, ConnectError> {
        let access = endpoint.access.as_deref().cloned().unwrap_or_default();
        let verifier = if access.is_insecure { trust::anybody() } else { trust::verifier(&endpoint.ca_bundle)? };
        let connector = TlsConnector::from(Arc::new(trust::identified(verifier, access.identity.as_ref())?));
        let (authority, path, server_name, place) = match &endpoint.address {
            Address::Service { namespace, name, port, path } => {
                let is_it = |service: &&ServiceAddress| service.namespace == *namespace && service.name == *name;
                let found =
                    client.services.iter().filter(is_it).find(|service| service.port.is_none_or(|own| own == *port));
                let place = found.map(|service| service.address.clone());
                let server_name = format!("{name}.{namespace}.svc");
                let place = place.ok_or_else(|| NoService(name.clone()));
                (format!("{server_name}:{port}"), escaped(&cleaned(path.as_bytes())), server_name, place)
            }
            Address::Url(url) => {
                let uri: Uri = url.parse().map_err(|source| ConnectError::Url { url: url.clone(), source })?;
                let host = uri.host().unwrap_or_default();
                let authority = uri.authority().map(|authority| authority.as_str().to_owned()).unwrap_or_default();
                let place = format!("{host}:{}", uri.port_u16().unwrap_or(443));
                let bare = host.trim_start_matches('[').trim_end_matches(']');
                let server_name = access.server_name.unwrap_or_else(|| bare.to_owned());
                (authority, escaped(&cleaned(&unescaped(uri.path()))), server_name, Ok(place))
            }
        };
        let url = format!("https://{authority}{path}");
        Ok(Connections {
            url,
            authority,
            path,
            server_name,
            headers: access.headers,
            place,
            denied: Arc::clone(&client.denied),
            connector,
            memory: Arc::clone(&client.memory),
            idle: Mutex::default(),
            old_certificates: client.old_certificates.clone(),
        })
    }

    /// The URL of the webhook, without a query.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Makes one call, and reports its progress. If the webhook has
    /// closed an idle connection before anything was sent, another one is used; as in Go, a review
    /// that was sent is not sent again.
    pub async fn post(
        &self,
        body: Bytes,
        limit: Duration,
        progress: &CallProgress,
    ) -> Result<WebhookAnswer, CallError> {
        while let Some(connection) = self.take_idle() {
            match self.send(connection, &body, limit, progress).await {
                Err(SendError::Unsent) => {}
                sent => return sent.map_err(CallError::from),
            }
        }
        let connection = self.connect().await.map_err(|error| CallError::Call(error.to_string()))?;
        self.send(connection, &body, limit, progress).await.map_err(CallError::from)
    }

    fn take_idle(&self) -> Option<WebhookConnection> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        std::iter::from_fn(|| idle.pop()).find(|connection| connection.sender.is_ready())
    }

    async fn connect(&self) -> Result<WebhookConnection, ConnectError> {
        let place = self.place.as_ref().map_err(NoService::clone)?;
        let host = place.rsplit_once(':').map_or(place.as_str(), |(host, _)| host);
        let mut failure = ConnectError::NoHost(host.to_owned());
        for address in lookups::addresses(place).await {
            // The address that is checked is the one that is used, whatever the name resolves to
            // later.
            if is_denied(&self.denied, address.ip()) {
                failure = ConnectError::Denied(address);
                continue;
            }
            match TcpStream::connect(address).await {
                Ok(stream) => return self.begin(stream).await,
                Err(source) => failure = ConnectError::Dial { address, source },
            }
        }
        Err(failure)
    }

    async fn begin(&self, stream: TcpStream) -> Result<WebhookConnection, ConnectError> {
        // A review is sent in one piece, and its response is waited for; without this option the
        // socket would only delay it.
        stream.set_nodelay(true)?;
        let name = ServerName::try_from(self.server_name.clone())?;
        let stream = self.connector.connect(name, stream).await.map_err(|error| self.handshake_error(error))?;
        let flaws = Flaws::of(stream.get_ref().1.peer_certificates().unwrap_or_default());
        let (sender, driver) = handshake(TokioIo::new(stream)).await?;
        // The task ends with the connection.
        tokio::spawn(driver);
        Ok(WebhookConnection { sender, flaws })
    }

    async fn send(
        &self,
        mut connection: WebhookConnection,
        body: &Bytes,
        limit: Duration,
        progress: &CallProgress,
    ) -> Result<WebhookAnswer, SendError> {
        let mut request = Request::post(format!("{}?timeout={}s", self.path, limit.as_secs()))
            .header(header::HOST, &self.authority)
            .header(header::USER_AGENT, concat!("skiff/", env!("CARGO_PKG_VERSION")))
            .header(header::ACCEPT, "application/json, */*")
            .header(header::CONTENT_TYPE, "application/json");
        for (name, value) in &self.headers {
            request = request.header(name.as_str(), value.as_str());
        }
        let mut request =
            request.body(Full::new(body.clone())).map_err(|error| SendError::Answer(error.to_string()))?;
        let too_many_interim = bound_interim(&mut request);
        let response = tokio::select! {
            biased;
            () = too_many_interim.notified() => return Err(SendError::TooManyInterim),
            response = connection.sender.try_send_request(request) => response.map_err(|error| {
                // hyper gives back a request of which nothing was sent.
                if error.message().is_some() { SendError::Unsent } else { SendError::Closed }
            })?,
        };
        self.old_certificates.count(connection.flaws);
        progress.begun.store(true, Ordering::Relaxed);
        let text = |name: header::HeaderName| {
            response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
        };
        let status = response.status().as_u16();
        let retry_after = text(header::RETRY_AFTER).and_then(|seconds| seconds.parse().ok());
        let content_type = text(header::CONTENT_TYPE);
        let memory = AnswerMemory { memory: &self.memory, webhook: &self.url, waits: &progress.waits_for_memory };
        let body = read(response.into_body(), &memory).await?;
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_MAX && !connection.sender.is_closed() {
            idle.push(connection);
        }
        Ok(WebhookAnswer { status, content_type, retry_after, body })
    }

    fn handshake_error(&self, error: io::Error) -> ConnectError {
        let tls = error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>());
        match tls {
            Some(tls) => {
                self.old_certificates.count(trust::flaws(tls));
                ConnectError::Untrusted { server_name: self.server_name.clone(), source: tls.clone() }
            }
            None if error.kind() == ErrorKind::UnexpectedEof => ConnectError::Closed,
            None => error.into(),
        }
    }
}

/// Counts the bytes of interim responses to `request`. The result is notified when there are too many.
fn bound_interim<B>(request: &mut Request<B>) -> Arc<Notify> {
    let (seen_bytes, too_many) = (AtomicUsize::new(0), Arc::new(Notify::new()));
    hyper::ext::on_informational(request, {
        let too_many = Arc::clone(&too_many);
        move |response| {
            let headers = response.headers().iter();
            let header_bytes = headers.map(|(name, value)| name.as_str().len() + value.len() + HEADER_BYTES);
            let bytes = RESPONSE_LINE_BYTES + header_bytes.sum::<usize>();
            if seen_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > INTERIM_BYTES_MAX {
                too_many.notify_one();
            }
        }
    });
    too_many
}

/// Where memory for the response of a webhook is reserved.
struct AnswerMemory<'c> {
    memory: &'c Memory,
    /// The URL of the webhook.
    webhook: &'c str,
    /// Whether a reservation is waited for.
    waits: &'c AtomicBool,
}

impl AnswerMemory<'_> {
    async fn reserve(&self, bytes: usize) -> Result<Reservation, SendError> {
        self.waits.store(true, Ordering::Relaxed);
        let reserved = self.memory.for_body(Some(self.webhook), bytes).await;
        self.waits.store(false, Ordering::Relaxed);
        reserved.map_err(|memory::Full| SendError::Crowded)
    }
}

/// Reads a body into one piece of memory: many small parts would take far more than what is in them. For more than what
/// is read without, memory is reserved for the whole body at once.
async fn read<B>(body: B, memory: &AnswerMemory<'_>) -> Result<AnswerBody, SendError>
where
    B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin,
{
    let announced = body.size_hint().upper().and_then(|bytes| usize::try_from(bytes).ok());
    let bytes_max = announced.map_or(ANSWER_BYTES_MAX, |bytes| bytes.min(ANSWER_BYTES_MAX));
    let mut body = Limited::new(body, ANSWER_BYTES_MAX);
    let (mut all, mut reserved) = (BytesMut::new(), None);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| SendError::Answer(describe_body(&*error)))?;
        let Ok(part) = frame.into_data() else { continue };
        if all.len() + part.len() > ANSWER_UNCOUNTED_BYTES_MAX && reserved.is_none() {
            reserved = Some(memory.reserve(bytes_max).await?);
        }
        all.extend_from_slice(&part);
    }
    Ok(AnswerBody { bytes: all.freeze(), reserved })
}

/// Why a connection gave no response.
enum SendError {
    /// The connection was closed before anything was sent.
    Unsent,
    /// The connection was closed before a response began.
    Closed,
    /// The response can't be read.
    Answer(String),
    /// There were too many interim responses.
    TooManyInterim,
    /// There is no memory to read the response.
    Crowded,
}

impl From<SendError> for CallError {
    fn from(error: SendError) -> Self {
        match error {
            SendError::Unsent | SendError::Closed => CallError::Call("EOF".to_owned()),
            SendError::TooManyInterim => CallError::Call(format!(
                "net/http: server response headers exceeded {INTERIM_BYTES_MAX} bytes; aborted"
            )),
            SendError::Answer(what) => CallError::Answer(what),
            SendError::Crowded => CallError::Crowded,
        }
    }
}

/// The path from the root, without empty and dot segments: Go's `path.Join("/", path)`, which
/// client-go applies.
pub fn cleaned(path: &[u8]) -> Vec<u8> {
    let mut segments: Vec<&[u8]> = Vec::new();
    for segment in path.split(|byte| *byte == b'/') {
        match segment {
            b"" | b"." => {}
            b".." => _ = segments.pop(),
            other => segments.push(other),
        }
    }
    [b"/".as_slice(), &segments.join(&b'/')].concat()
}

/// Decodes percent-encoding, such as `%2F` for a slash; malformed escapes are kept.
fn unescaped(path: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let [first, after @ ..] = rest {
        // A sign is not a digit.
        let digits = after.get(..2).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        rest = after;
        match digits.filter(|_| *first == b'%').map(|digits| u8::from_str_radix(digits, 16)) {
            Some(Ok(byte)) => {
                out.push(byte);
                rest = &after[2..];
            }
            _ => out.push(*first),
        }
    }
    out
}

/// Encodes a path as Go's `url.URL` does.
fn escaped(path: &[u8]) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path {
        if byte.is_ascii_alphanumeric() || b"-_.~$&+,/:;=@".contains(byte) {
            out.push(char::from(*byte))
        } else {
            out.push_str(&format!("%{byte:02X}"))
        }
    }
    out
}

/// Go's error for a response body that can't be read.
fn describe_body(error: &(dyn std::error::Error + 'static)) -> String {
    let chain = || std::iter::successors(Some(error), |error| error.source());
    let is_cut = |error: &(dyn std::error::Error + 'static)| {
        let incomplete = error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_incomplete_message);
        incomplete || error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == ErrorKind::UnexpectedEof)
    };
    if chain().any(is_cut) {
        "unexpected EOF".to_owned()
    } else {
        chain().last().map(ToString::to_string).unwrap_or_default()
    }
}

/// Go's error for a failed connection.
fn describe_connect(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
        ErrorKind::ConnectionReset => "connect: connection reset by peer".to_owned(),
        ErrorKind::HostUnreachable => "connect: no route to host".to_owned(),
        ErrorKind::NetworkUnreachable => "connect: network is unreachable".to_owned(),
        ErrorKind::TimedOut => "i/o timeout".to_owned(),
        _ => format!("connect: {error}"),
    }
}
/// Whether an address is in one of the ranges, also as an IPv4-mapped IPv6 address.
fn is_denied(denied: &[IpNet], address: IpAddr) -> bool {
    denied.iter().any(|range| range.contains(&address) || range.contains(&address.to_canonical()))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http_body_util::StreamBody;
    use hyper::HeaderMap;
    use hyper::body::Frame;

    use super::*;

    #[test]
    fn paths_are_cleaned_as_client_go_does() {
        let of_url = |path: &str| escaped(&cleaned(&unescaped(path)));
        for (path, expected) in [
            ("", "/"),
            ("//mutate-x", "/mutate-x"),
            ("/a/../b", "/b"),
            ("/../b", "/b"),
            ("/c/", "/c"),
            ("/./f", "/f"),
            ("/%2Fi", "/i"),
            ("/a%20b/%C3%A9", "/a%20b/%C3%A9"),
            ("x", "/x"),
        ] {
            assert_eq!(of_url(path), expected, "{path}");
        }
        assert_eq!(escaped(&cleaned(b"/%2Fi")), "/%252Fi", "a service's path is not escaped");
    }

    /// A body of so many parts of `part_bytes` each.
    fn body_of(parts: u8, part_bytes: usize) -> impl Body<Data = Bytes, Error = Infallible> + Unpin {
        let part = move |at: u8| Ok(Frame::data(Bytes::from(vec![at; part_bytes])));
        let parts = (0..parts).map(part).chain([Ok(Frame::trailers(HeaderMap::new()))]);
        StreamBody::new(futures_util::stream::iter(parts.collect::<Vec<Result<_, Infallible>>>()))
    }

    async fn read_with(
        memory: &Memory,
        body: impl Body<Data = Bytes, Error = Infallible> + Unpin,
    ) -> Option<AnswerBody> {
        let waits = AtomicBool::new(false);
        match read(body, &AnswerMemory { memory, webhook: "https://a", waits: &waits }).await {
            Ok(body) => Some(body),
            Err(error) => {
                assert!(matches!(error, SendError::Crowded));
                None
            }
        }
    }

    #[tokio::test]
    async fn a_body_of_many_parts_is_read_into_one() {
        let read = read_with(&Memory::new(1 << 30), body_of(200, 1)).await.unwrap_or_default();
        assert!(read.iter().copied().eq(0..200) && read.reserved.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn memory_for_long_bodies_is_reserved_by_webhook() {
        let memory = Memory::new(1 << 30);
        let mut bodies = Vec::new();
        while let Some(body) = read_with(&memory, body_of(100, 1 << 10)).await {
            assert!(body.len() == 100 << 10 && body.reserved.is_some());
            bodies.push(body);
        }
        assert_eq!(bodies.len(), 2, "a thirty-second of the limit is for bodies, and half of that for a webhook");
        assert!(read_with(&memory, body_of(10, 1 << 10)).await.is_some(), "short ones need none");
        assert!(memory.for_body(Some("https://b"), 1 << 20).await.is_ok(), "others have theirs");
        let body = bodies.pop().expect("there is one").decodable(&memory, "https://a").await.expect("there is memory");
        assert!(body.reserved.is_some());
        assert!(read_with(&memory, body_of(100, 1 << 10)).await.is_some(), "what is read is not reserved any more");
    }

    #[test]
    fn an_address_is_denied_in_both_of_its_forms() {
        let denied = ["169.254.0.0/16", "fd00::/8"].map(|range| range.parse().expect("it is a range"));
        let check = |address: &str| is_denied(&denied, address.parse().expect("it is an address"));
        assert!(["169.254.169.254", "::ffff:169.254.169.254", "fd00::1"].into_iter().all(check));
        assert!(!["169.253.0.1", "127.0.0.1", "fe80::1", "::1"].into_iter().any(check));
    }
}
