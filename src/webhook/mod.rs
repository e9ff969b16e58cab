//! Calls to webhooks: one POST of JSON over HTTPS, with the error messages of Kubernetes.
//!
//! Input: an [`Endpoint`] and a body. Output: the body of the response, or the text that a server of 1.37
//! puts after `failed: `. Connections are kept and reused; an endpoint with another CA bundle is
//! another endpoint. No response is longer than [`ANSWER_BYTES_MAX`], and no call takes longer than
//! its timeout, so a webhook affects only the objects that it is called for.
//!
//! Source: `rest.Request` of client-go 0.37; responses recorded from apiextensions-apiserver 1.37.

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

/// The longest response that is read, in bytes.
pub const ANSWER_BYTES_MAX: usize = 8 << 20;

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

/// For how many endpoints connections are kept.
const ENDPOINTS_MAX: usize = 200;

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
    /// Whether the call is worth a retry.
    may_pass: bool,
}

impl FailedCall {
    /// The failure for a response with an unsuccessful status code, and the `Status` that it stands
    /// for.
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

/// Calls webhooks, and keeps connections to them.
pub struct WebhookClient {
    services: Vec<ServiceAddress>,
    denied: Arc<[IpNet]>,
    connections: Mutex<HashMap<Endpoint, Arc<Connections>>>,
    /// The metrics of the webhooks' certificates.
    pub old_certificates: OldCertificates,
}

impl WebhookClient {
    /// A client that finds services at `services`, and never connects to an address in `denied`.
    pub fn new(services: Vec<ServiceAddress>, denied: Vec<IpNet>) -> Self {
        let (connections, old_certificates) = Default::default();
        WebhookClient { services, denied: denied.into(), connections, old_certificates }
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

    /// Posts the JSON in `body`, and returns the body of a response with a status code from 200 to
    /// 206.
    ///
    /// # Errors
    ///
    /// The call failed, took too long, or had another status code.
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
