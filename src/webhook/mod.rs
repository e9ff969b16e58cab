//! Calls of webhooks: one POST of JSON over HTTPS, with Kubernetes' words for what can go wrong.
//!
//! In: an [`Endpoint`] and a body. Out: the body of the answer, or the text that a server of 1.37 puts behind `failed: `.
//! Connections are kept and used again; an endpoint with another CA bundle is another endpoint. No answer is longer than
//! [`ANSWER_BYTES_MAX`] and no call than its timeout, so that a webhook harms none but its own objects.
//!
//! Source: `rest.Request` of client-go 0.37, answers recorded from apiextensions-apiserver 1.37.

mod answer;
mod connection;
pub(crate) mod trust;

use std::collections::HashMap;
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{sleep, timeout};

use answer::Answer;
use connection::{CallError, Connections};

/// The longest answer that is read, in bytes.
pub const ANSWER_BYTES_MAX: usize = 32 << 20;

/// How often a webhook may ask for another try by `Retry-After`. Source: client-go.
const RETRIES_MAX: usize = 10;

/// How many endpoints are remembered.
const ENDPOINTS_MAX: usize = 200;

/// Where a webhook is, and whom to believe that it is there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Endpoint {
    pub address: Address,
    /// Certificates in PEM; empty for those that the system trusts.
    pub ca_bundle: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// `https://HOST[:PORT]/PATH`
    Url(String),
    /// A service; its `name.namespace.svc` is what the certificate must be for.
    Service { namespace: String, name: String, port: u16, path: String },
}

/// A service of the cluster that this server is not part of, and where it really listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceAddress {
    pub namespace: String,
    pub name: String,
    /// `HOST:PORT`
    pub address: String,
}

impl FromStr for ServiceAddress {
    type Err = &'static str;

    /// Reads `NAMESPACE/NAME=HOST:PORT`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (service, address) = text.split_once('=').ok_or("expected NAMESPACE/NAME=HOST:PORT")?;
        let (namespace, name) = service.split_once('/').ok_or("expected NAMESPACE/NAME before `=`")?;
        let port = address.rsplit_once(':').ok_or("expected HOST:PORT behind `=`")?.1;
        let _: u16 = port.parse().map_err(|_| "the port is no number below 65536")?;
        Ok(ServiceAddress { namespace: namespace.to_owned(), name: name.to_owned(), address: address.to_owned() })
    }
}

/// Calls webhooks.
pub struct Client {
    services: Vec<ServiceAddress>,
    connections: Mutex<HashMap<Endpoint, Arc<Connections>>>,
}

impl Client {
    /// A client that finds services at `services`.
    pub fn new(services: Vec<ServiceAddress>) -> Self {
        Client { services, connections: Mutex::default() }
    }

    /// Posts `body`, JSON, and gives the body of an answer with a status of 200 to 206.
    ///
    /// # Errors
    ///
    /// What a server of 1.37 says of such a call.
    pub async fn post(&self, endpoint: &Endpoint, body: Bytes, limit: Duration) -> Result<Bytes, String> {
        let connections = self.connections(endpoint)?;
        let failed = |what: &str| format!("Post \"{}?timeout={}s\": {what}", connections.url(), limit.as_secs());
        let call = async {
            let mut tries = 0;
            loop {
                let answer = match connections.post(body.clone(), limit).await {
                    Ok(answer) => answer,
                    Err(CallError::Call(what)) => return Err(failed(&what)),
                    Err(CallError::Answer(what)) => return Err(what),
                };
                match answer.retry_after.filter(|_| tries < RETRIES_MAX) {
                    Some(wait) => sleep(wait).await,
                    None => return Answer::into_body(answer),
                }
                tries += 1;
            }
        };
        let late = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)";
        timeout(limit, call).await.unwrap_or_else(|_| Err(failed(late)))
    }

    fn connections(&self, endpoint: &Endpoint) -> Result<Arc<Connections>, String> {
        let mut known = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(connections) = known.get(endpoint) {
            return Ok(connections.clone());
        }
        if known.len() == ENDPOINTS_MAX {
            known.clear();
        }
        let connections = Arc::new(Connections::new(endpoint, &self.services)?);
        known.insert(endpoint.clone(), connections.clone());
        Ok(connections)
    }
}
