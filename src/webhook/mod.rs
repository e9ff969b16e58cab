//! Calls of webhooks: one POST of JSON over HTTPS, with Kubernetes' words for what can go wrong.
//!
//! In: an [`Endpoint`] and a body. Out: the body of the answer, or the text that a server of 1.37 puts behind `failed: `.
//! Connections are kept and used again; an endpoint with another CA bundle is another endpoint. No answer is longer than
//! [`ANSWER_BYTES_MAX`] and no call than its timeout, so that a webhook harms none but its own objects.
//!
//! Source: `rest.Request` of client-go 0.37, answers recorded from apiextensions-apiserver 1.37.

mod answer;
mod certificates;
mod connection;
mod credentials;
pub mod patience;
pub(crate) mod trust;

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use hyper::StatusCode;
use ipnet::IpNet;
use thiserror::Error;
use tokio::time::{sleep, timeout};

use crate::meta::Status;

pub use certificates::OldCertificates;
pub use connection::cleaned;
use connection::{CallError, ConnectError, Connections};

pub use credentials::Credentials;

/// The longest answer that is read, in bytes.
pub const ANSWER_BYTES_MAX: usize = 8 << 20;

/// The port of a service that names none.
pub const SERVICE_PORT: u16 = 443;

/// How often a call is tried that fails for a reason that passes, and how much longer each wait is than the one before.
/// Each is longer by a part of it that is drawn anew, of at most `BACKOFF_JITTER`.
/// Source: `k8s.io/apiserver/pkg/util/webhook`, release 1.37.
const TRIES: usize = 5;
const BACKOFF_FACTOR: f64 = 1.5;
const BACKOFF_JITTER: f64 = 0.2;

/// How often a webhook may ask for another try by `Retry-After`. Source: client-go.
const RETRIES_MAX: usize = 10;

/// How many endpoints are remembered.
const ENDPOINTS_MAX: usize = 200;

/// The address of a webhook, and the authorities that are trusted for it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Endpoint {
    pub address: Address,
    /// Certificates in PEM; empty for the system's own.
    pub ca_bundle: Vec<u8>,
    /// What a kubeconfig says beside; `None` for a caller without a name, who believes what the system does.
    pub access: Option<Arc<EndpointAccess>>,
}

/// The credentials for calls to an endpoint, and the certificates that are trusted for it.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct EndpointAccess {
    /// Whether the webhook's certificate is not verified.
    pub is_insecure: bool,
    /// What the certificate must be for, if not for the host.
    pub server_name: Option<String>,
    /// A certificate of the caller and its key, in PEM.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
    /// Headers of each call, with tokens.
    pub headers: Vec<(String, String)>,
}

impl fmt::Debug for EndpointAccess {
    /// Tells no secrets.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Access").field("server_name", &self.server_name).finish_non_exhaustive()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// `https://HOST[:PORT]/PATH`
    Url(String),
    /// A service; its `name.namespace.svc` is what the certificate must be for.
    Service { namespace: String, name: String, port: u16, path: String },
}

/// How the reference treats different types of webhooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Manner {
    /// The time limit of a call.
    pub limit: Duration,
    /// What is said when that is over, before an answer and within one.
    exceeded: [&'static str; 2],
    /// Whether an answer of any media type is read.
    reads_any_type: bool,
}

impl Manner {
    /// Conversion: the client has the limit.
    pub const fn of_conversion(limit: Duration) -> Self {
        let exceeded = [
            "context deadline exceeded (Client.Timeout exceeded while awaiting headers)",
            "context deadline exceeded (Client.Timeout or context cancellation while reading body)",
        ];
        Manner { limit, exceeded, reads_any_type: false }
    }

    /// Reviews of images: the client has the limit, too.
    pub const fn of_image_review(limit: Duration) -> Self {
        Manner { reads_any_type: true, ..Manner::of_conversion(limit) }
    }

    /// Admission: the call has the limit.
    pub const fn of_admission(limit: Duration) -> Self {
        Manner { limit, exceeded: ["context deadline exceeded"; 2], reads_any_type: true }
    }
}

/// A service of the cluster that this server is not part of, and where it really listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceAddress {
    pub namespace: String,
    pub name: String,
    /// The port of the service that this is about; `None` for all.
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

/// What is said of an answer that can't be read to its end.
fn unreadable(why: &str) -> String {
    format!("unexpected error when reading response body. Please retry. Original error: {why}")
}

/// A pause and a part of it that is drawn.
fn jittered(pause: Duration) -> Duration {
    let drawn = f64::from(uuid::Uuid::new_v4().as_bytes()[0]) / f64::from(u8::MAX);
    pause.mul_f64(1.0 + BACKOFF_JITTER * drawn)
}

/// A call that failed.
#[derive(Clone, Debug, Error)]
#[error("{text}")]
pub struct FailedCall {
    /// The message of a server of 1.37 about it.
    pub text: String,
    /// The status of the answer; `None` if there was none, or if it could not be read.
    pub status: Option<u16>,
    /// What an answer that is a failure comes to for a client of Kubernetes.
    pub stated: Option<Box<Status>>,
    /// Whether it took too long.
    pub is_timeout: bool,
    /// Whether it is worth a retry.
    may_pass: bool,
}

impl FailedCall {
    /// An answer with an HTTP status that is not a success, and what it comes to.
    fn answered(status: u16, stated: Status) -> Self {
        let (text, may_pass) = (stated.message.clone(), answer::may_pass(&stated));
        let is_timeout = StatusCode::GATEWAY_TIMEOUT == status;
        FailedCall { text, status: Some(status), stated: Some(Box::new(stated)), is_timeout, may_pass }
    }
}

impl From<String> for FailedCall {
    fn from(text: String) -> Self {
        FailedCall { text, status: None, stated: None, is_timeout: false, may_pass: false }
    }
}

/// Calls webhooks.
pub struct WebhookClient {
    services: Vec<ServiceAddress>,
    denied: Arc<[IpNet]>,
    connections: Mutex<HashMap<Endpoint, Arc<Connections>>>,
    /// What was counted of the certificates of webhooks.
    pub old_certificates: OldCertificates,
}

impl WebhookClient {
    /// A client that finds services at `services`, and connects to no address in `denied`.
    pub fn new(services: Vec<ServiceAddress>, denied: Vec<IpNet>) -> Self {
        let (connections, old_certificates) = Default::default();
        WebhookClient { services, denied: denied.into(), connections, old_certificates }
    }

    /// Posts as [`WebhookClient::call`] does, and again after `backoff` and longer where the reason of a failure may pass. `tell` is
    /// called with what became of each try, and how long it took.
    ///
    /// # Errors
    ///
    /// The error of the last attempt.
    pub async fn post_patiently(
        &self,
        endpoint: &Endpoint,
        body: Bytes,
        manner: Manner,
        mut backoff: Duration,
        mut tell: impl FnMut(&Result<Bytes, FailedCall>, Duration),
    ) -> Result<Bytes, FailedCall> {
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

    /// Posts the JSON in `body`, and returns the body of an answer with a status of 200 to 206.
    ///
    /// # Errors
    ///
    /// What became of the call.
    pub async fn call(&self, endpoint: &Endpoint, body: Bytes, manner: Manner) -> Result<Bytes, FailedCall> {
        let Manner { limit, exceeded: [without_answer, within_answer], reads_any_type } = manner;
        let connections = self.connections(endpoint).map_err(|error| error.to_string())?;
        let failed = |what: &str| {
            let text = format!("Post \"{}?timeout={}s\": {what}", connections.url(), limit.as_secs());
            FailedCall { may_pass: what.ends_with("connection reset by peer"), ..FailedCall::from(text) }
        };
        let begun = AtomicBool::new(false);
        let call = async {
            let mut tries = 0;
            loop {
                begun.store(false, Ordering::Relaxed);
                let answer = match connections.post(body.clone(), limit, &begun).await {
                    Ok(answer) => answer,
                    Err(CallError::Call(what)) => return Err(failed(&what)),
                    Err(CallError::Answer(what)) => return Err(unreadable(&what).into()),
                };
                match answer.pause().filter(|_| tries < RETRIES_MAX) {
                    Some(wait) => sleep(wait).await,
                    None => return answer.into_body(reads_any_type),
                }
                tries += 1;
            }
        };
        timeout(limit, call).await.unwrap_or_else(|_| {
            let failure =
                if begun.load(Ordering::Relaxed) { unreadable(within_answer).into() } else { failed(without_answer) };
            Err(FailedCall { is_timeout: true, ..failure })
        })
    }

    fn connections(&self, endpoint: &Endpoint) -> Result<Arc<Connections>, ConnectError> {
        let mut known = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(connections) = known.get(endpoint) {
            return Ok(connections.clone());
        }
        if known.len() == ENDPOINTS_MAX {
            known.clear();
        }
        let counted = self.old_certificates.clone();
        let connections = Connections::new(endpoint, &self.services, Arc::clone(&self.denied), counted)?;
        let connections = Arc::new(connections);
        known.insert(endpoint.clone(), connections.clone());
        Ok(connections)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
