//! The webhooks whose connections are kept: those that were called last.

use std::collections::HashMap;
use std::sync::Arc;

use super::Endpoint;
use super::connection::Connections;

/// How many there are at most.
const ENDPOINTS_MAX: usize = 200;
/// How often the certificates that are trusted for one are in memory: as text in its key, parsed, and as they are
/// compared with those of a server.
const BUNDLE_COPIES: usize = 4;

/// The connections to the webhooks that were called last.
pub(super) struct KnownWebhooks {
    by_endpoint: HashMap<Endpoint, KnownWebhook>,
    /// How many bytes their certificates take, about.
    bytes: usize,
    bytes_max: usize,
    calls: u64,
}

struct KnownWebhook {
    connections: Arc<Connections>,
    /// The number of its last call.
    called: u64,
}

impl KnownWebhooks {
    /// Those whose certificates take so many bytes, and the last one in any case.
    pub fn new(bytes_max: usize) -> Self {
        KnownWebhooks { by_endpoint: HashMap::new(), bytes: 0, bytes_max, calls: 0 }
    }

    /// The connections to a webhook that is called.
    pub fn get(&mut self, endpoint: &Endpoint) -> Option<Arc<Connections>> {
        let known = self.by_endpoint.get_mut(endpoint)?;
        self.calls += 1;
        known.called = self.calls;
        Some(Arc::clone(&known.connections))
    }

    /// Keeps the connections to a webhook that is called, unless somebody else did; returns those that are kept.
    pub fn keep(&mut self, endpoint: &Endpoint, connections: Arc<Connections>) -> Arc<Connections> {
        if let Some(known) = self.get(endpoint) {
            return known;
        }
        let bytes = bytes_of(endpoint);
        while self.by_endpoint.len() >= ENDPOINTS_MAX || self.bytes + bytes > self.bytes_max {
            let oldest = self.by_endpoint.iter().min_by_key(|(_, known)| known.called);
            let Some(oldest) = oldest.map(|(endpoint, _)| endpoint.clone()) else { break };
            self.by_endpoint.remove(&oldest);
            self.bytes -= bytes_of(&oldest);
        }
        self.calls += 1;
        self.bytes += bytes;
        let known = KnownWebhook { connections: Arc::clone(&connections), called: self.calls };
        self.by_endpoint.insert(endpoint.clone(), known);
        connections
    }
}

fn bytes_of(endpoint: &Endpoint) -> usize {
    endpoint.ca_bundle.len() * BUNDLE_COPIES
}

#[cfg(test)]
mod tests {
    use super::super::{Address, WebhookClient};
    use super::*;
    use crate::memory::Memory;

    const BUNDLE_BYTES: usize = 1_000;

    fn endpoint(at: usize, bundle_bytes: usize) -> Endpoint {
        let url = format!("https://localhost:1/{at}");
        Endpoint { address: Address::Url(url), ca_bundle: vec![b'\n'; bundle_bytes], access: None }
    }

    #[tokio::test]
    async fn those_that_were_called_last_are_kept() {
        let client = WebhookClient::new(Vec::new(), Vec::new(), Arc::new(Memory::of_system()));
        let mut known = KnownWebhooks::new(3 * BUNDLE_COPIES * BUNDLE_BYTES);
        let call = |known: &mut KnownWebhooks, endpoint: &Endpoint| {
            let made = Arc::new(Connections::new(endpoint, &client).expect("the URL is valid"));
            known.get(endpoint).unwrap_or_else(|| known.keep(endpoint, made))
        };
        let first = call(&mut known, &endpoint(0, BUNDLE_BYTES));
        for at in 1..10 {
            call(&mut known, &endpoint(at, BUNDLE_BYTES));
            assert!(Arc::ptr_eq(&call(&mut known, &endpoint(0, BUNDLE_BYTES)), &first));
            assert_eq!(known.by_endpoint.len(), 3.min(at + 1));
        }
        assert_eq!(known.bytes, known.bytes_max);
        call(&mut known, &endpoint(10, 100 * BUNDLE_BYTES));
        assert_eq!(known.by_endpoint.len(), 1, "the last one is kept however large it is");
        for at in 0..=ENDPOINTS_MAX {
            call(&mut known, &endpoint(at, 0));
        }
        assert_eq!((known.by_endpoint.len(), known.bytes), (ENDPOINTS_MAX, 0));
    }
}
