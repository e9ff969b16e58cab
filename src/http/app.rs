//! The state that requests are answered from.
//!
//! It does not depend on the modules that answer.

use std::sync::Arc;

use tokio::sync::Notify;

use crate::audit;
use crate::auth::{Authorizer, TokenIssuer, Tokens};
use crate::memory::Memory;
use crate::meta::Status;
use crate::processor::Processor;
use crate::registry::Registry;

use super::document_cache::Documents;
use super::early_refusals::EarlyRefusals;
use super::faults::Faults;
use super::impersonation::LastModes;
use super::limits::{Limits, Permits};
use super::metrics::Metrics;
use super::observe::Observer;
use super::planes::Planes;

/// The issuer of service accounts' tokens.
pub struct Issuing {
    pub issuer: Arc<TokenIssuer>,
    /// Where others find the public keys of the signing keys.
    pub key_set_url: String,
}

/// What the control planes of a process share: documents, keyed by what they describe, and the turns on the processors.
#[derive(Clone, Default)]
pub struct Shared {
    documents: Arc<Documents>,
    processor: Arc<Processor>,
}

impl Shared {
    /// For a runtime with this many threads besides those that serve sockets, and a process with this much memory.
    pub fn among(threads_beside: usize, memory: Arc<Memory>) -> Self {
        let processor = Processor::with_threads(threads_beside).within_memory(move || memory.is_out());
        Shared { processor: Arc::new(processor), ..Shared::default() }
    }

    /// The processor scheduler that requests share, so that it can be told when the server stops.
    pub fn processor(&self) -> Arc<Processor> {
        Arc::clone(&self.processor)
    }
}

/// The state that requests are answered from.
pub struct App {
    pub registry: Arc<Registry>,
    pub authorizer: Arc<dyn Authorizer>,
    /// The authenticator of tokens, for reviews of them.
    pub tokens: Arc<Tokens>,
    /// `None` if no tokens are issued.
    pub issuing: Option<Issuing>,
    /// The address that clients are told of: `IP:PORT`.
    pub address: String,
    /// The other control planes of the process; `None` for one that is not the main one.
    pub planes: Option<Arc<dyn Planes>>,
    /// Distinguishes this control plane from the others; empty for the main one.
    pub(super) plane: Arc<str>,
    /// Notified of each request.
    pub(super) asked: Option<Arc<Notify>>,
    pub(super) documents: Arc<Documents>,
    pub(super) observer: Observer,
    pub(super) permits: Permits,
    pub(super) limits: Limits,
    pub(super) impersonations: LastModes,
    pub(super) processor: Arc<Processor>,
    /// The faults that a test has injected into requests.
    pub(super) faults: Arc<Faults>,
}

impl App {
    /// An app with the limits of kube-apiserver and no audit log.
    pub fn new(registry: Arc<Registry>, authorizer: Arc<dyn Authorizer>) -> Self {
        App::with(registry, authorizer, Arc::default(), Limits::default(), Arc::new([]))
    }

    /// An app with the given limits, which writes its requests to these logs.
    pub fn with(
        registry: Arc<Registry>,
        authorizer: Arc<dyn Authorizer>,
        tokens: Arc<Tokens>,
        limits: Limits,
        logs: Arc<[audit::Log]>,
    ) -> Self {
        let mut metrics = Metrics::new(registry.definitions.minor);
        if let Some(figures) = registry.admission.figures() {
            metrics.show_admission(&figures);
        }
        if let Some(figures) = authorizer.figures() {
            metrics.show_authorization(figures);
        }
        let metrics = Arc::new(metrics);
        let permits = Permits::new(&limits, &metrics);
        let observer = Observer { metrics, logs };
        let Shared { documents, processor } = Shared::default();
        let (impersonations, faults) = (LastModes::default(), Arc::default());
        App {
            registry,
            authorizer,
            tokens,
            issuing: None,
            address: String::new(),
            planes: None,
            plane: "".into(),
            asked: None,
            documents,
            observer,
            permits,
            limits,
            impersonations,
            processor,
            faults,
        }
    }

    /// The same, with `issuing` as the issuer of tokens.
    pub fn with_issuing(self, issuing: Issuing) -> Self {
        App { issuing: Some(issuing), ..self }
    }

    /// The same, which tells clients that it is at `address`.
    pub fn at(self, address: String) -> Self {
        App { address, ..self }
    }

    /// The same, with the other control planes of the process.
    pub fn with_planes(self, planes: Arc<dyn Planes>) -> Self {
        App { planes: Some(planes), ..self }
    }

    /// The same for the control plane of that name, next to others that share the rest; `asked` is notified of each
    /// request.
    pub fn beside(self, name: Arc<str>, shared: Shared, asked: Arc<Notify>) -> Self {
        let Shared { documents, processor } = shared;
        App { plane: name, asked: Some(asked), documents, processor, ..self }
    }

    /// The same with what the control planes of a process share.
    pub fn sharing(self, shared: Shared) -> Self {
        let Shared { documents, processor } = shared;
        App { documents, processor, ..self }
    }

    /// Answers requests that are refused before their sender is known.
    pub fn early_refusals(&self) -> EarlyRefusals {
        EarlyRefusals { logs: Arc::clone(&self.observer.logs), plane: Arc::clone(&self.plane) }
    }

    /// Takes in the current roles and bindings, wherever they were changed.
    ///
    /// Errors: they can't be read. While the database is out of reach, those in memory count.
    pub(super) async fn refresh_policy(&self) -> Result<(), Status> {
        if self.registry.policy.is_some() {
            _ = self.registry.storage.catch_up().await;
        }
        self.authorizer.refresh().await
    }
}
