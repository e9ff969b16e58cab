//! Calls to webhooks: one POST of JSON over HTTPS, with the error messages of Kubernetes.
//!
//! Input: an [`Endpoint`] and a body. Output: the body of the response, or the text that a server of 1.37
//! puts after `failed: `. Connections are kept and reused; an endpoint with another CA bundle is
//! another endpoint. No response is longer than [`ANSWER_BYTES_MAX`], memory is reserved for those
//! above [`ANSWER_UNCOUNTED_BYTES_MAX`], and no call takes longer than its timeout, so a webhook affects
//! only the objects that it is called for.
//!
//! Source: `rest.Request` of client-go 0.37; responses recorded from apiextensions-apiserver 1.37.

mod answer;
mod certificates;
mod connection;
mod credentials;
#[cfg(test)]
mod fixture;
mod known;
mod lookups;
pub mod patience;
pub(crate) mod trust;

use std::fmt;
use std::ops::Deref;
use std::str::FromStr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use hyper::StatusCode;
use ipnet::IpNet;
use thiserror::Error;
use tokio::time::{sleep, timeout};

use crate::memory::{Full, Memory, Reservation};
use crate::meta::Status;
use crate::work;

pub use certificates::OldCertificates;
pub use connection::cleaned;
use connection::{CallError, CallProgress, ConnectError, Connections};
use known::KnownWebhooks;

pub use credentials::Credentials;

/// The longest response that is read, in bytes.
pub const ANSWER_BYTES_MAX: usize = 8 << 20;

/// Responses up to this length are read and decoded without a memory reservation, in bytes.
pub const ANSWER_UNCOUNTED_BYTES_MAX: usize = 64 << 10;

/// The default port of a service.
pub const SERVICE_PORT: u16 = 443;

/// How often a call is tried that fails with a temporary error, and by which factor each pause is
/// longer than the one before. Each pause is extended by a random part of it, of at most
/// `BACKOFF_JITTER`.
///
/// Source: `k8s.io/apiserver/pkg/util/webhook`, release 1.37.
const TRIES: usize = 5;
const BACKOFF_FACTOR: f64 = 1.5;
const BACKOFF_JITTER: f64 = 0.2;

/// How often a webhook may ask for another try by `Retry-After`. Source: client-go.
const RETRIES_MAX: usize = 10;

/// The address of a webhook, and the authorities that are trusted for it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Endpoint {
    pub address: Address,
    /// Certificates in PEM; empty for the system's own.
    pub ca_bundle: Vec<u8>,
    /// Settings from a kubeconfig; `None` for anonymous calls with the default verification.
    pub access: Option<Arc<EndpointAccess>>,
}

/// The credentials for calls to an endpoint, and how its certificate is verified.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct EndpointAccess {
    /// Whether the webhook's certificate is not verified.
    pub is_insecure: bool,
    /// The name that the certificate must match, if not the host.
    pub server_name: Option<String>,
    /// The client's certificate and its key, in PEM.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
    /// Headers of each call, such as tokens.
    pub headers: Vec<(String, String)>,
}

impl fmt::Debug for EndpointAccess {
    /// Omits the credentials.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Access").field("server_name", &self.server_name).finish_non_exhaustive()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// `https://HOST[:PORT]/PATH`
    Url(String),
    /// A service; its certificate must match `name.namespace.svc`.
    Service { namespace: String, name: String, port: u16, path: String },
}

/// How Kubernetes treats a kind of webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Manner {
    /// The time limit of a call.
    pub limit: Duration,
    /// The error text when the time limit is over: before the response headers, and while the body
    /// is read.
    exceeded: [&'static str; 2],
    /// Whether a response of any media type is read.
    reads_any_type: bool,
}

impl Manner {
    /// For conversion: the HTTP client has the time limit.
    pub const fn of_conversion(limit: Duration) -> Self {
        let exceeded = [
            "context deadline exceeded (Client.Timeout exceeded while awaiting headers)",
            "context deadline exceeded (Client.Timeout or context cancellation while reading body)",
        ];
        Manner { limit, exceeded, reads_any_type: false }
    }

    /// For image reviews: the HTTP client has the time limit, too.
    pub const fn of_image_review(limit: Duration) -> Self {
        Manner { reads_any_type: true, ..Manner::of_conversion(limit) }
    }

    /// For admission: the request's context has the time limit.
    pub const fn of_admission(limit: Duration) -> Self {
        Manner { limit, exceeded: ["context deadline exceeded"; 2], reads_any_type: true }
    }
}

/// A service of the cluster that this server is not part of, and the address where it listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceAddress {
    pub namespace: String,
    pub name: String,
    /// The port of the service that the address is for; `None` for all.
    pub port: Option<u16>,
    /// `HOST:PORT`
    pub address: String,
}

impl FromStr for ServiceAddress {
    type Err = &'static str;

    /// Reads `NAMESPACE/NAME[:PORT]=HOST:PORT`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = |port: &str| port.parse::<u16>().map_err(|_| "the port is not a number below 65536");
        let (service, address) = text.split_once('=').ok_or("expected NAMESPACE/NAME=HOST:PORT")?;
        let (namespace, name) = service.split_once('/').ok_or("expected NAMESPACE/NAME before `=`")?;
        let (name, port) = match name.split_once(':') {
            Some((name, port)) => (name, Some(number(port)?)),
            None => (name, None),
        };
        number(address.rsplit_once(':').ok_or("expected HOST:PORT behind `=`")?.1)?;
        Ok(ServiceAddress { namespace: namespace.to_owned(), name: name.to_owned(), port, address: address.to_owned() })
    }
}

/// The error for a response that can't be read to its end.
fn unreadable(why: &str) -> String {
    format!("unexpected error when reading response body. Please retry. Original error: {why}")
}

/// A pause, extended by a random part of it.
fn jittered(pause: Duration) -> Duration {
    let drawn = f64::from(uuid::Uuid::new_v4().as_bytes()[0]) / f64::from(u8::MAX);
    pause.mul_f64(1.0 + BACKOFF_JITTER * drawn)
}

/// A call that failed.
#[derive(Clone, Debug, Error)]
#[error("{text}")]
pub struct FailedCall {
    /// The message of a server of 1.37 for it.
    pub text: String,
    /// The status code of the response; `None` if there was none, or if it could not be read.
    pub status: Option<u16>,
    /// The `Status` that an unsuccessful response stands for.
    pub stated: Option<Box<Status>>,
    /// Whether the time limit was exceeded.
    pub is_timeout: bool,
    /// Whether this server has no memory for the response: that must not decide about the request.
    pub is_crowded: bool,
    /// Whether the call is worth a retry.
    may_pass: bool,
}

impl FailedCall {
    /// The failure for a response with an unsuccessful status code, and the `Status` that it stands
    /// for.
    fn answered(status: u16, stated: Status) -> Self {
        let (text, may_pass) = (stated.message.clone(), answer::may_pass(&stated));
        let is_timeout = StatusCode::GATEWAY_TIMEOUT == status;
        let stated = Some(Box::new(stated));
        FailedCall { status: Some(status), stated, is_timeout, may_pass, ..FailedCall::from(text) }
    }

    fn crowded() -> Self {
        FailedCall { is_crowded: true, ..FailedCall::from(patience::CROWDED.to_owned()) }
    }
}

impl From<String> for FailedCall {
    fn from(text: String) -> Self {
        FailedCall { text, status: None, stated: None, is_timeout: false, is_crowded: false, may_pass: false }
    }
}

/// The body of a response, with the memory that is reserved for it.
#[derive(Debug, Default)]
pub struct AnswerBody {
    bytes: Bytes,
    /// `None` for a short body.
    reserved: Option<Reservation>,
}

impl Deref for AnswerBody {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl AnswerBody {
    /// The body, with memory for decoding it instead of that for reading it.
    async fn decodable(self, memory: &Memory, webhook: &str) -> Result<Self, Full> {
        let reserved = match &self.reserved {
            Some(_) => Some(memory.for_decoding(webhook, &self.bytes).await?),
            None => None,
        };
        Ok(AnswerBody { reserved, ..self })
    }
}

/// Calls webhooks, and keeps connections to them.
pub struct WebhookClient {
    services: Vec<ServiceAddress>,
    denied: Arc<[IpNet]>,
    memory: Arc<Memory>,
    known: Mutex<KnownWebhooks>,
    /// The metrics of the webhooks' certificates.
    pub old_certificates: OldCertificates,
}

impl WebhookClient {
    /// A client that finds services at `services`, never connects to an address in `denied`, and reserves `memory` for
    /// long responses.
    pub fn new(services: Vec<ServiceAddress>, denied: Vec<IpNet>, memory: Arc<Memory>) -> Self {
        let known = Mutex::new(KnownWebhooks::new(memory.webhooks_bytes_max()));
        WebhookClient { services, denied: denied.into(), memory, known, old_certificates: OldCertificates::default() }
    }

    /// Calls [`WebhookClient::call`], and retries temporary failures after `backoff` and longer
    /// pauses. `tell` is called with the outcome of each try and its duration.
    ///
    /// # Errors
    ///
    /// The error of the last try.
    pub async fn post_patiently(
        &self,
        endpoint: &Endpoint,
        body: Bytes,
        manner: Manner,
        mut backoff: Duration,
        mut tell: impl FnMut(&Result<AnswerBody, FailedCall>, Duration),
    ) -> Result<AnswerBody, FailedCall> {
        let mut tries = 1;
        loop {
            let began = Instant::now();
            let outcome = self.call(endpoint, body.clone(), manner).await;
            tell(&outcome, began.elapsed());
            match outcome {
                Err(failure) if failure.may_pass && tries < TRIES => sleep(jittered(backoff)).await,
                outcome => return outcome,
            }
            backoff = backoff.mul_f64(BACKOFF_FACTOR);
            tries += 1;
        }
    }

    /// Posts the JSON in `body`, and returns the body of a response with a status code from 200 to
    /// 206.
    ///
    /// # Errors
    ///
    /// The call failed, took too long, or had another status code, or there is no memory for the response.
    pub async fn call(&self, endpoint: &Endpoint, body: Bytes, manner: Manner) -> Result<AnswerBody, FailedCall> {
        let Manner { limit, exceeded: [without_answer, within_answer], reads_any_type } = manner;
        let connections = self.connections(endpoint).map_err(|error| error.to_string())?;
        let failed = |what: &str| {
            let text = format!("Post \"{}?timeout={}s\": {what}", connections.url(), limit.as_secs());
            FailedCall { may_pass: what.ends_with("connection reset by peer"), ..FailedCall::from(text) }
        };
        let progress = CallProgress::default();
        let call = async {
            let mut tries = 0;
            loop {
                progress.begun.store(false, Ordering::Relaxed);
                let answer = match connections.post(body.clone(), limit, &progress).await {
                    Ok(answer) => answer,
                    Err(CallError::Call(what)) => return Err(failed(&what)),
                    Err(CallError::Answer(what)) => return Err(unreadable(&what).into()),
                    Err(CallError::Crowded) => return Err(FailedCall::crowded()),
                };
                match answer.pause().filter(|_| tries < RETRIES_MAX) {
                    Some(wait) => sleep(wait).await,
                    None => return answer.into_body(reads_any_type),
                }
                tries += 1;
            }
        };
        let answered = timeout(limit, call).await.unwrap_or_else(|_| {
            let failure = if progress.waits_for_memory.load(Ordering::Relaxed) {
                FailedCall::crowded()
            } else if progress.begun.load(Ordering::Relaxed) {
                unreadable(within_answer).into()
            } else {
                failed(without_answer)
            };
            Err(FailedCall { is_timeout: true, ..failure })
        });
        answered?.decodable(&self.memory, connections.url()).await.map_err(|Full| FailedCall::crowded())
    }

    fn connections(&self, endpoint: &Endpoint) -> Result<Arc<Connections>, ConnectError> {
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(connections) = known().get(endpoint) {
            return Ok(connections);
        }
        // The certificates of a bundle are parsed while nobody waits.
        work::bytes(endpoint.ca_bundle.len());
        let connections = Arc::new(Connections::new(endpoint, self)?);
        Ok(known().keep(endpoint, connections))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn interim_responses_are_bounded() {
        let interim = format!("HTTP/1.1 100 Continue\r\nx: {}\r\n\r\n", "y".repeat(100 << 10));
        let answered = async |times: usize| {
            let answer = interim.repeat(times) + "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
            let (url, _) = fixture::webhook(answer.into_bytes()).await;
            let access = EndpointAccess { is_insecure: true, ..EndpointAccess::default() };
            let endpoint =
                Endpoint { address: Address::Url(url), ca_bundle: Vec::new(), access: Some(Arc::new(access)) };
            let client = WebhookClient::new(Vec::new(), Vec::new(), Arc::new(Memory::of_system()));
            let manner = Manner::of_admission(Duration::from_secs(30));
            let answer = client.call(&endpoint, Bytes::from_static(b"{}"), manner).await;
            answer.map(|body| body.to_vec()).map_err(|failure| failure.text)
        };
        assert_eq!(answered(90).await.as_deref(), Ok(&b"{}"[..]));
        let refused = answered(110).await.expect_err("they are more than 10 MiB");
        assert!(refused.ends_with("net/http: server response headers exceeded 10485760 bytes; aborted"), "{refused}");
    }

    #[test]
    fn a_service_is_for_all_of_its_ports_or_for_one() {
        let read = |text: &str| text.parse::<ServiceAddress>();
        let all = read("n/a=localhost:1").expect("it is one");
        assert_eq!((all.port, all.name.as_str(), all.address.as_str()), (None, "a", "localhost:1"));
        assert_eq!(read("n/a:8443=[::1]:9").map(|service| service.port), Ok(Some(8443)));
        assert_eq!(read("n/a:x=localhost:1"), Err("the port is not a number below 65536"));
        assert_eq!(read("a=localhost:1"), Err("expected NAMESPACE/NAME before `=`"));
    }
}
