//! One request, read once: what every endpoint asks of its headers.

use std::borrow::Cow;
use std::future::poll_fn;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::{HeaderMap, HeaderName, Method, Request, header};
use http_body_util::{LengthLimitError, Limited};
use hyper::body::Frame;

use crate::audit::AuditLevel;
use crate::auth::{AuthenticationNotes, UserInfo};
use crate::memory::{Full, Memory, Reservation};
use crate::meta::selector::{FieldSelector, LabelSelector};
use crate::meta::{Status, names};
use crate::patch::json_patch;
use crate::processor::Share;
use crate::registry::Warnings;
use crate::webhook::patience;

use super::Stopping;
use super::limits::TOO_MANY_REQUESTS;
use super::observe::Observed;
use super::path::{ResourcePath, Selected, Verb};
use super::query::{ListOptions, Query};
use super::websocket::Upgrade;

pub(super) const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

/// The largest body that is accepted, as in kube-apiserver.
pub const BODY_BYTES_MAX: usize = 3 << 20;

/// So much of a body is read at once, whoever waits for memory.
const BODY_UNCOUNTED_BYTES_MAX: usize = 64 << 10;

/// How much of a large body is read in a turn.
const TURN_BYTES: usize = 128 << 10;

/// The headers that begin like this ask for impersonation.
const IMPERSONATION_PREFIX: &str = "impersonate-";

/// The peer's address, kept among the request's extensions.
#[derive(Clone, Copy, Debug)]
pub struct PeerAddress(pub SocketAddr);

/// A request without its body.
pub(super) struct Exchange {
    pub method: Method,
    /// As it was sent.
    pub path: String,
    pub uri: String,
    pub query: Query,
    pub accept: String,
    pub accept_encoding: String,
    /// Whether the server compresses answers for clients that accept it.
    pub is_compressed: bool,
    pub content_type: String,
    pub user_agent: String,
    pub if_none_match: String,
    /// How many bytes the client says that it sends; 0 if it does not say.
    pub content_length: usize,
    pub user: UserInfo,
    /// The headers that ask for impersonation. They are decoded once the request has a permit: over HTTP/2 a short
    /// request may name a long value many times, and these share it.
    pub impersonation: HeaderMap,
    pub stopping: Option<Stopping>,
    pub warnings: Mutex<Warnings>,
    /// What authentication told for the audit log.
    pub authentication: Vec<(&'static str, String)>,
    /// The request's id in the audit log: the one that the client sent, or a new one.
    pub audit_id: String,
    sources: Sources,
    /// Set if the request asks for a WebSocket.
    pub upgrade: Option<Upgrade>,
    /// Set once the path is read.
    pub observed: OnceLock<Arc<Observed>>,
    /// The request's share of the processors, set together with `observed`.
    pub share: OnceLock<Arc<Share>>,
    /// How many changes old the state is that is shown, if a fault asks for an old one.
    pub stale_by: OnceLock<u64>,
    /// The length of the stored object that the request is about.
    pub stored_bytes: AtomicUsize,
    /// Memory that the request needs until it is answered.
    reserved: Mutex<Vec<Reservation>>,
}

impl Exchange {
    /// Takes a request apart.
    pub fn read(request: Request<Body>) -> (Self, Body) {
        let (mut parts, body) = request.into_parts();
        let upgrade = Upgrade::of(&mut parts);
        let user = parts.extensions.remove::<UserInfo>();
        let notes = parts.extensions.remove::<AuthenticationNotes>().unwrap_or_default();
        let mut warnings = Warnings::default();
        notes.warnings.iter().for_each(|text| warnings.add(*text));
        let exchange = Exchange {
            method: parts.method,
            path: parts.uri.path().to_owned(),
            uri: parts.uri.path_and_query().map(ToString::to_string).unwrap_or_default(),
            query: Query::parse(parts.uri.query().unwrap_or_default()),
            accept: text(&parts.headers, header::ACCEPT),
            accept_encoding: text(&parts.headers, header::ACCEPT_ENCODING),
            is_compressed: true,
            content_type: text(&parts.headers, header::CONTENT_TYPE),
            user_agent: text(&parts.headers, header::USER_AGENT),
            if_none_match: text(&parts.headers, header::IF_NONE_MATCH),
            content_length: text(&parts.headers, header::CONTENT_LENGTH).parse().unwrap_or_default(),
            user: user.unwrap_or_default(),
            impersonation: impersonation(&parts.headers),
            stopping: parts.extensions.get::<Stopping>().cloned(),
            warnings: Mutex::new(warnings),
            authentication: notes.annotations,
            audit_id: audit_id(&parts.headers),
            sources: Sources::of(&parts.headers, parts.extensions.get::<PeerAddress>().copied()),
            upgrade,
            observed: OnceLock::new(),
            share: OnceLock::new(),
            stale_by: OnceLock::new(),
            stored_bytes: AtomicUsize::new(0),
            reserved: Mutex::default(),
        };
        (exchange, body)
    }

    /// The user whose share of what is scarce the request takes from ([`UserInfo::sharer`]); `None` for members of
    /// `system:masters`, whose share is not limited.
    pub fn limited_user(&self) -> Option<&str> {
        (!self.user.is_in(UserInfo::MASTERS)).then_some(self.user.sharer())
    }

    /// The addresses that the request came through, the first sender first.
    pub fn source_ips(&self) -> Vec<String> {
        self.sources.addresses()
    }

    /// The verb that the request asks for on the resource of `path`.
    pub fn verb(&self, path: &ResourcePath) -> Verb {
        path.verb(self.method.as_str(), self.query.flag("watch").unwrap_or_default())
    }

    /// The name of the object that a request is about: the one in the path, or the one that a list or watch selects.
    ///
    /// Source: `RequestInfoFactory` of apiserver 1.37.
    pub fn object_name<'a>(&self, path: &'a ResourcePath, verb: Verb) -> Cow<'a, str> {
        let names_many = path.name.is_empty() && path.verb_prefix.is_empty();
        if !names_many || !matches!(verb, Verb::List | Verb::Watch) {
            return Cow::Borrowed(&path.name);
        }
        Cow::Owned(self.selected_name().unwrap_or_default())
    }

    /// The one name that the options of a list select; `None` also if any of them can't be read.
    fn selected_name(&self) -> Option<String> {
        let options = ListOptions::decode(&self.query).ok()?;
        let fields = FieldSelector::parse(&options.field_selector).ok()?;
        let name = fields.requires_exact("metadata.name")?;
        LabelSelector::parse(&options.label_selector).ok()?;
        names::is_path_segment(name, false).is_empty().then(|| name.to_owned())
    }

    /// What a list, a watch or a deletion of a collection selects, as far as that can be read: also beside options that
    /// can't be. A path with the verb in it selects nothing.
    ///
    /// Source: `RequestInfoFactory` of apiserver 1.37.
    pub fn selected(&self, path: &ResourcePath, verb: Verb) -> Selected {
        let selects = matches!(verb, Verb::List | Verb::Watch | Verb::DeleteCollection);
        if !selects || !path.verb_prefix.is_empty() {
            return Selected::default();
        }
        let text = |name: &str| self.query.first(name).unwrap_or_default();
        Selected {
            fields: FieldSelector::parse(text("fieldSelector")).ok(),
            labels: LabelSelector::parse(text("labelSelector")).ok(),
        }
    }

    /// Reads a body, up to the limit, and reserves the memory that is needed to decode it. While the body arrives, others
    /// may have the request's place.
    ///
    /// Errors: 413 for a body that is too large, 429 if there is not enough memory or no place in time.
    pub async fn read_body(&self, memory: &Memory, body: Body) -> Result<Bytes, Status> {
        let size_bytes =
            body.size_hint().upper().map_or(BODY_BYTES_MAX, |bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        let stored_bytes = self.stored_bytes.load(Ordering::Relaxed);
        if size_bytes == 0 && stored_bytes < BODY_UNCOUNTED_BYTES_MAX {
            return Ok(Bytes::new());
        }
        let collected = collect(body, size_bytes.min(BODY_BYTES_MAX), (memory, self.limited_user()));
        let (bytes, room) = patience::lending(collected).await??;
        // Before the body is scanned, which is already work.
        self.ready().await?;
        let made_bytes = if self.may_copy(&bytes) { json_patch::COPIED_BYTES_MAX } else { 0 };
        let reserved = memory.for_work_on(self.limited_user(), &bytes, stored_bytes + made_bytes).await;
        self.hold(reserved.map_err(|Full| no_memory())?);
        drop(room);
        Ok(bytes)
    }

    /// Whether the body is a patch with `copy` operations: its result may be larger than the body.
    fn may_copy(&self, body: &[u8]) -> bool {
        // A name may contain escapes.
        let begins = |at: usize| body[at] == b'\\' || body[at..].starts_with(b"copy");
        self.content_type.starts_with("application/json-patch+json") && (0..body.len()).any(begins)
    }

    /// Reserves memory for an answer of so many bytes that is built as a whole.
    ///
    /// Errors: 429 if there is not enough in time.
    pub async fn reserve_answer(&self, memory: &Memory, bytes: usize) -> Result<(), Status> {
        let reserved = memory.for_answer(self.limited_user(), bytes).await;
        self.hold(reserved.map_err(|Full| no_memory())?);
        Ok(())
    }

    /// The same in place of what was reserved before, of which nothing is needed any more: what a user may have at most
    /// must be free for it.
    pub async fn reserve_instead(&self, memory: &Memory, bytes: usize) -> Result<(), Status> {
        drop(self.reserved_for_answer(0));
        self.reserve_answer(memory, bytes).await
    }

    /// Keeps memory reserved until the request is answered.
    pub fn hold(&self, reserved: Reservation) {
        self.reserved.lock().unwrap_or_else(PoisonError::into_inner).push(reserved);
    }

    /// Takes so many bytes, or as many as there are, of the memory that was reserved for the request, for an answer that
    /// is on its way to its client; the rest is given back. `None` if none was reserved.
    pub fn reserved_for_answer(&self, bytes: usize) -> Option<Reservation> {
        let reserved = std::mem::take(&mut *self.reserved.lock().unwrap_or_else(PoisonError::into_inner));
        let mut kept = reserved.into_iter().max_by_key(Reservation::bytes)?;
        kept.shrink(bytes);
        Some(kept)
    }

    /// Drops what authentication told for the client and the audit log.
    pub fn forget_authentication(&mut self) {
        self.authentication.clear();
        self.warnings = Mutex::default();
    }

    /// Passes the request's observer to `tell`, if there is one.
    pub fn observe(&self, tell: impl FnOnce(&Observed)) {
        if let Some(observed) = self.observed.get() {
            tell(observed);
        }
    }

    /// Warnings of a verb that reads an object; the object is kept if there is an audit log.
    pub fn warnings_of_object(&self) -> Warnings {
        let mut is_logged = false;
        self.observe(|observed| is_logged = observed.is_logged(AuditLevel::Metadata));
        if is_logged { Warnings::with_sent_object() } else { Warnings::default() }
    }

    /// Adds the warnings that a verb found, and passes on what is meant for the audit log.
    pub fn warn(&self, mut found: Warnings) {
        self.observe(|observed| {
            if let Some(object) = found.take_sent_object() {
                observed.sent(object);
            }
            found.annotations().iter().for_each(|(name, text)| observed.annotate(name.clone(), text));
            found.request_annotations().iter().for_each(|(name, text)| observed.annotate_requests(name.clone(), text));
            observed.took(|latencies| latencies.webhooks.add(found.webhook_times()));
        });
        let mut warnings = self.warnings.lock().unwrap_or_else(PoisonError::into_inner);
        warnings.absorb(found.into_notes());
    }
}

impl Exchange {
    /// Waits until it is this request's turn, if it is likely to take long.
    ///
    /// Errors: too many requests wait.
    pub async fn ready(&self) -> Result<(), Status> {
        match self.share.get() {
            Some(share) => {
                if share.waits() {
                    patience::make_room();
                }
                share.ready().await.map_err(|_| Status::too_many_requests(TOO_MANY_REQUESTS, 1))
            }
            None => Ok(()),
        }
    }
}

/// A request's id in the audit log and in the header `Audit-Id` of its answer: the one that the client sent, or a new
/// one.
pub fn audit_id(headers: &HeaderMap) -> String {
    let given = headers.get(AUDIT_ID).and_then(|value| value.to_str().ok()).filter(|id| !id.is_empty());
    given.map_or_else(|| uuid::Uuid::new_v4().to_string(), str::to_owned)
}

/// The value of a header, and of one in several lines the first, as Go reads it. Bytes that are not UTF-8 become U+FFFD.
fn text(headers: &HeaderMap, name: HeaderName) -> String {
    headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).unwrap_or_default()
}

/// The headers that ask for impersonation, with values that are not copied.
fn impersonation(headers: &HeaderMap) -> HeaderMap {
    let asking = headers.iter().filter(|(name, _)| name.as_str().starts_with(IMPERSONATION_PREFIX));
    asking.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Reads a body of at most `size_bytes` into one buffer: each part is freed once it has been copied. Memory for the whole
/// body is reserved once more has arrived than is read without: nobody reserves any by announcing a body.
///
/// What has arrived of large bodies is decrypted and copied by turns: hundreds of them would keep all threads from
/// everything else.
///
/// Errors: 413 for a body that is too large, 429 if there is no memory for it in time, 500 for one that breaks off.
async fn collect(
    body: Body,
    size_bytes: usize,
    (memory, user): (&Memory, Option<&str>),
) -> Result<(Bytes, Option<Reservation>), Status> {
    let mut body = Limited::new(body, BODY_BYTES_MAX);
    let mut bytes = Vec::with_capacity(size_bytes.min(BODY_UNCOUNTED_BYTES_MAX));
    let (mut room, mut turn, mut turn_bytes) = (None, None, 0);
    while let Some(frame) = next_frame(&mut body, &mut turn).await {
        match frame {
            Ok(frame) => {
                let data = frame.into_data().unwrap_or_default();
                let arrived_bytes = bytes.len() + data.len();
                if arrived_bytes > BODY_UNCOUNTED_BYTES_MAX && room.is_none() {
                    room = Some(memory.for_body(user, size_bytes).await.map_err(|Full| no_memory())?);
                }
                if arrived_bytes > bytes.capacity() {
                    bytes.reserve_exact(size_bytes.saturating_sub(bytes.len()).max(data.len()));
                }
                bytes.extend_from_slice(&data);
                turn_bytes += data.len();
                if room.is_some() && (turn.is_none() || turn_bytes > TURN_BYTES) {
                    drop(turn.take());
                    (turn, turn_bytes) = (memory.turn_to_read().await, 0);
                }
            }
            Err(error) if error.is::<LengthLimitError>() => {
                return Err(Status::request_entity_too_large(&format!("limit is {BODY_BYTES_MAX}")));
            }
            // The library's message for a body that breaks off is not meant for clients.
            Err(_) => return Err(Status::plain(500, "unexpected EOF")),
        }
    }
    Ok((bytes.into(), room))
}

/// The next frame of a body. The turn is given back while there is none.
async fn next_frame<B: HttpBody + Unpin, T>(
    body: &mut B,
    turn: &mut Option<T>,
) -> Option<Result<Frame<B::Data>, B::Error>> {
    poll_fn(|context| {
        let next = Pin::new(&mut *body).poll_frame(context);
        if next.is_pending() {
            *turn = None;
        }
        next
    })
    .await
}

/// The answer to a request if there is no memory for it.
pub(super) fn no_memory() -> Status {
    Full.into()
}

/// The addresses that a request came through, as its headers and its connection tell them.
struct Sources {
    /// The headers `X-Forwarded-For` and `X-Real-Ip`.
    forwarded: String,
    real: String,
    peer: Option<PeerAddress>,
}

impl Sources {
    fn of(headers: &HeaderMap, peer: Option<PeerAddress>) -> Self {
        Sources {
            forwarded: text(headers, HeaderName::from_static("x-forwarded-for")),
            real: text(headers, HeaderName::from_static("x-real-ip")),
            peer,
        }
    }

    /// The addresses that proxies recorded, then the peer of the connection.
    fn addresses(&self) -> Vec<String> {
        let address = |text: &str| text.trim().parse::<IpAddr>().ok().map(|address| address.to_string());
        let mut addresses: Vec<String> = self.forwarded.split(',').filter_map(address).collect();
        let real = address(&self.real).filter(|real| !addresses.contains(real));
        addresses.extend(real);
        let peer = self.peer.map(|PeerAddress(peer)| peer.ip().to_string());
        let peer = peer.filter(|peer| addresses.last() != Some(peer));
        addresses.extend(peer);
        addresses
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use futures_util::{FutureExt as _, StreamExt as _, stream};

    use super::super::path::{Target, parse};
    use super::*;

    /// An exchange with `user`, who belongs to no group.
    fn exchange_of(user: &str) -> Exchange {
        let (exchange, _) = Exchange::read(Request::builder().body(Body::empty()).expect("it is a request"));
        Exchange { user: UserInfo { name: user.to_owned(), ..UserInfo::default() }, ..exchange }
    }

    /// A body of which so many bytes arrive, and no end. It may have up to 3 MiB.
    fn stalled(bytes: usize) -> Body {
        let arrived = stream::iter([Ok::<_, std::io::Error>(Bytes::from(vec![b' '; bytes]))]);
        Body::from_stream(arrived.chain(stream::pending()))
    }

    #[tokio::test]
    async fn bodies_that_do_not_arrive_take_nothing_and_those_of_one_user_take_half() {
        let memory = Memory::new(512 << 20);
        let jane = exchange_of("jane");
        let reads_another = || {
            let body = Body::from(vec![b' '; 100_000]);
            matches!(exchange_of("bob").read_body(&memory, body).now_or_never(), Some(Ok(bytes)) if bytes.len() == 100_000)
        };
        for arrived_bytes in [1, BODY_UNCOUNTED_BYTES_MAX, BODY_UNCOUNTED_BYTES_MAX + 1] {
            let mut reading: Vec<_> =
                (0..10).map(|_| Box::pin(jane.read_body(&memory, stalled(arrived_bytes)))).collect();
            assert!(reading.iter_mut().all(|reading| reading.now_or_never().is_none()));
            assert!(reads_another(), "beside ten bodies of which {arrived_bytes} bytes have arrived");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_large_body_waits_for_those_of_its_user_and_is_refused_in_the_end() {
        let memory = Memory::new(512 << 20);
        let jane = exchange_of("jane");
        let mut first: Vec<_> = (0..2).map(|_| Box::pin(jane.read_body(&memory, stalled(100_000)))).collect();
        assert!(first.iter_mut().all(|reading| reading.now_or_never().is_none()));
        let refused = jane.read_body(&memory, stalled(100_000)).await.expect_err("there is no memory for it");
        assert_eq!(refused, no_memory());
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_may_have_all_that_its_user_may_have() {
        let memory = Memory::new(64 << 20);
        let jane = exchange_of("jane");
        jane.read_body(&memory, Body::from(vec![b' '; 10_000])).await.expect("there is memory for it");
        // More than half of what requests have.
        let bytes = 15 << 20;
        assert_eq!(jane.reserve_answer(&memory, bytes).await, Err(no_memory()), "beside the body");
        assert_eq!(jane.reserve_instead(&memory, bytes).await, Ok(()));
        assert_eq!(jane.reserve_instead(&memory, 64 << 20).await, Err(no_memory()), "more than an answer may have");
    }

    #[tokio::test]
    async fn bodies_that_wait_for_their_clients_keep_nobody_from_reading() {
        let memory = Memory::new(512 << 20);
        let of = |at: usize| exchange_of(&format!("user {at}"));
        let exchanges: Vec<_> = (0..3).map(of).collect();
        let read = |exchange| Box::pin(Exchange::read_body(exchange, &memory, stalled(1 << 20)));
        let mut stalled: Vec<_> = exchanges.iter().map(read).collect();
        assert!(stalled.iter_mut().all(|reading| reading.now_or_never().is_none()));
        let parts = (0..20).map(|_| Ok::<_, std::io::Error>(Bytes::from(vec![b' '; 100_000])));
        let read = exchange_of("jane").read_body(&memory, Body::from_stream(stream::iter(parts))).await;
        assert_eq!(read.map(|body| body.len()), Ok(2_000_000));
    }

    #[test]
    fn values_that_a_request_names_often_are_in_memory_once() {
        let group = HeaderValue::from_maybe_shared(Bytes::from(vec![b'g'; 3900])).expect("it is a value");
        let mut request = Request::builder().header("impersonate-user", "joe").header("accept", "a");
        for _ in 0..250 {
            request = request.header("impersonate-group", group.clone());
        }
        let (exchange, _) = Exchange::read(request.body(Body::empty()).expect("it is a request"));
        assert_eq!(exchange.impersonation.len(), 251);
        let groups = exchange.impersonation.get_all("impersonate-group");
        assert!(groups.iter().all(|value| value.as_bytes().as_ptr() == group.as_bytes().as_ptr()));
    }

    /// The name and the selectors that authorizers are told of.
    fn told(uri: &str) -> (String, [bool; 2]) {
        let request = Request::builder().uri(uri).body(Body::empty()).expect("it is a request");
        let (exchange, _) = Exchange::read(request);
        let Ok(Target::Resource(path)) = parse(&exchange.path) else { panic!("{uri} is not of a resource") };
        let verb = exchange.verb(&path);
        let selected = exchange.selected(&path, verb);
        let has = [selected.fields.is_some_and(|it| !it.is_empty()), selected.labels.is_some_and(|it| !it.is_empty())];
        (exchange.object_name(&path, verb).into_owned(), has)
    }

    #[test]
    fn of_a_header_in_two_lines_the_first_counts() {
        let request = Request::builder().header("accept", "application/yaml").header("accept", "application/json");
        let (exchange, _) = Exchange::read(request.body(Body::empty()).expect("it is a request"));
        assert_eq!(exchange.accept, "application/yaml");
    }

    #[test]
    fn authorizers_are_told_what_a_request_selects_unless_its_path_has_the_verb() {
        let selectors = "fieldSelector=metadata.name%3Da&labelSelector=b%3Dc";
        assert_eq!(told(&format!("/api/v1/pods?{selectors}")), ("a".to_owned(), [true, true]));
        assert_eq!(told(&format!("/api/v1/pods?watch=1&{selectors}")), ("a".to_owned(), [true, true]));
        assert_eq!(told(&format!("/api/v1/watch/pods?{selectors}")), (String::new(), [false, false]));
        assert_eq!(told(&format!("/api/v1/namespaces/n/pods/a?{selectors}")), ("a".to_owned(), [false, false]));
        // The name comes from options that are read as a whole, the selectors do not.
        assert_eq!(told(&format!("/api/v1/pods?limit=x&{selectors}")), (String::new(), [true, true]));
        let unreadable = "fieldSelector=metadata.name%3Da&labelSelector=%3D%3D";
        assert_eq!(told(&format!("/api/v1/pods?{unreadable}")), (String::new(), [true, false]));
    }
}
