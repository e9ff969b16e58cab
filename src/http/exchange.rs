//! One request, read once: what every endpoint asks of its headers.

use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, OnceLock};

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderName, Method, Request, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};

use crate::auth::UserInfo;
use crate::meta::selector::FieldSelector;
use crate::meta::{Status, names};
use crate::registry::Warnings;

use super::Stopping;
use super::impersonation;
use super::observe::Observed;
use super::path::{ResourcePath, Verb};
use super::query::{ListOptions, Query};
use super::websocket::Upgrade;

/// The largest body, as kube-apiserver takes it.
pub const BODY_BYTES_MAX: usize = 3 << 20;

/// The other end of the connection that a request came by, among its extensions.
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
    pub content_type: String,
    pub user_agent: String,
    pub if_none_match: String,
    pub user: UserInfo,
    /// In whose name the request is sent, where that is another's than the sender's.
    pub wanted_user: Result<Option<UserInfo>, Status>,
    pub stopping: Option<Stopping>,
    pub warnings: Mutex<Warnings>,
    /// What names the request in the audit log: the client's word for it, or a new one.
    pub audit_id: String,
    /// Whom the request came through, the first sender first.
    pub source_ips: Vec<String>,
    /// Where a WebSocket is asked for.
    pub upgrade: Option<Upgrade>,
    /// Set once the path is read.
    pub observed: OnceLock<Arc<Observed>>,
}

impl Exchange {
    /// Takes a request apart.
    pub fn read(request: Request<Body>) -> (Self, Body) {
        let (mut parts, body) = request.into_parts();
        let upgrade = Upgrade::of(&mut parts);
        let user = parts.extensions.get::<UserInfo>().cloned();
        let exchange = Exchange {
            method: parts.method,
            path: parts.uri.path().to_owned(),
            uri: parts.uri.path_and_query().map(ToString::to_string).unwrap_or_default(),
            query: Query::parse(parts.uri.query().unwrap_or_default()),
            accept: text(&parts.headers, header::ACCEPT),
            accept_encoding: text(&parts.headers, header::ACCEPT_ENCODING),
            content_type: text(&parts.headers, header::CONTENT_TYPE),
            user_agent: text(&parts.headers, header::USER_AGENT),
            if_none_match: text(&parts.headers, header::IF_NONE_MATCH),
            user: user.unwrap_or_default(),
            wanted_user: impersonation::wanted(&parts.headers),
            stopping: parts.extensions.get::<Stopping>().cloned(),
            warnings: Mutex::default(),
            audit_id: super::audit_id(&parts.headers),
            source_ips: source_ips(&parts.headers, parts.extensions.get::<PeerAddress>().copied()),
            upgrade,
            observed: OnceLock::new(),
        };
        (exchange, body)
    }

    /// What the request wants done with the resource of `path`.
    pub fn verb(&self, path: &ResourcePath) -> Verb {
        path.verb(self.method.as_str(), self.query.flag("watch").unwrap_or_default())
    }

    /// The name of the object that a request is about: that of the path, or the one that a list or watch selects.
    ///
    /// Source: `RequestInfoFactory` of apiserver 1.37.
    pub fn object_name<'a>(&self, path: &'a ResourcePath, verb: Verb) -> Cow<'a, str> {
        if !path.name.is_empty() || !matches!(verb, Verb::List | Verb::Watch) {
            return Cow::Borrowed(&path.name);
        }
        let options = ListOptions::decode(&self.query).ok();
        let fields = options.and_then(|options| FieldSelector::parse(&options.field_selector).ok());
        let name = fields.as_ref().and_then(|fields| fields.requires_exact("metadata.name"));
        Cow::Owned(name.filter(|name| names::is_path_segment(name, false).is_empty()).unwrap_or_default().to_owned())
    }

    /// Tells what is observed, where anything is.
    pub fn observe(&self, tell: impl FnOnce(&Observed)) {
        if let Some(observed) = self.observed.get() {
            tell(observed);
        }
    }

    /// Adds the warnings that a verb found, and tells the audit log what is for it.
    pub fn warn(&self, found: Warnings) {
        self.observe(|observed| {
            found.annotations().iter().for_each(|(name, text)| observed.annotate(name.clone(), text));
        });
        let mut warnings = self.warnings.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        warnings.absorb(found.into_notes());
    }
}

/// The values of a header, joined as one list. Bytes that are no UTF-8 become U+FFFD.
fn text(headers: &HeaderMap, name: HeaderName) -> String {
    let values = headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()));
    values.collect::<Vec<_>>().join(",")
}

/// Reads a body, up to the limit.
pub(super) async fn read_body(body: Body) -> Result<Bytes, Status> {
    match Limited::new(body, BODY_BYTES_MAX).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => {
            Err(Status::request_entity_too_large(&format!("limit is {BODY_BYTES_MAX}")))
        }
        // What a library says of a body that breaks off is not for clients.
        Err(_) => Err(Status::plain(500, "unexpected EOF")),
    }
}

/// Whom a request came through: what proxies wrote down, then the other end of the connection.
fn source_ips(headers: &HeaderMap, peer: Option<PeerAddress>) -> Vec<String> {
    let address = |text: &str| text.trim().parse::<IpAddr>().ok().map(|address| address.to_string());
    let forwarded = text(headers, HeaderName::from_static("x-forwarded-for"));
    let mut addresses: Vec<String> = forwarded.split(',').filter_map(address).collect();
    let real = address(&text(headers, HeaderName::from_static("x-real-ip")));
    let real = real.filter(|real| !addresses.contains(real));
    addresses.extend(real);
    let peer = peer.map(|PeerAddress(peer)| peer.ip().to_string());
    let peer = peer.filter(|peer| addresses.last() != Some(peer));
    addresses.extend(peer);
    addresses
}
