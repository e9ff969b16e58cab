//! What requests are answered from.
//!
//! It knows none of those who answer.

use std::sync::Arc;

use crate::audit;
use crate::auth::{Authorizer, TokenIssuer, Tokens};
use crate::meta::Status;
use crate::processor::Processor;
use crate::registry::Registry;

use super::document_cache::Documents;
use super::impersonation::LastModes;
use super::limits::{Limits, Places};
use super::metrics::Metrics;
use super::observe::Observer;

/// Who issues tokens of service accounts.
pub struct Issuing {
    pub issuer: Arc<TokenIssuer>,
    /// Where others find the keys that they are signed with.
    pub key_set_url: String,
}

/// What requests are answered from.
pub struct App {
    pub registry: Arc<Registry>,
    pub authorizer: Arc<dyn Authorizer>,
    /// Whose tokens are known, for reviews of them.
    pub tokens: Arc<Tokens>,
    /// `None` where no tokens are issued.
    pub issuing: Option<Issuing>,
    pub(super) documents: Documents,
    pub(super) observer: Observer,
    pub(super) places: Places,
    pub(super) limits: Limits,
    pub(super) impersonations: LastModes,
    pub(super) processor: Arc<Processor>,
}

impl App {
    /// An app with the limits of kube-apiserver and no audit log.
    pub fn new(registry: Arc<Registry>, authorizer: Arc<dyn Authorizer>) -> Self {
        App::with(registry, authorizer, Arc::default(), Limits::default(), None)
    }

    /// An app with limits of its own, that writes these logs of its requests.
    pub fn with(
        registry: Arc<Registry>,
        authorizer: Arc<dyn Authorizer>,
        tokens: Arc<Tokens>,
        limits: Limits,
        logs: impl IntoIterator<Item = audit::Log>,
    ) -> Self {
        let mut metrics = Metrics::new();
        if let Some(figures) = registry.admission.figures() {
            metrics.show_admission(&figures);
        }
        let metrics = Arc::new(metrics);
        let places = Places::new(&limits, &metrics);
        let observer = Observer { metrics, logs: logs.into_iter().collect() };
        let (documents, impersonations) = (Documents::default(), LastModes::default());
        let processor = Arc::default();
        App {
            registry,
            authorizer,
            tokens,
            issuing: None,
            documents,
            observer,
            places,
            limits,
            impersonations,
            processor,
        }
    }

    /// The same, with tokens issued by `issuing`.
    pub fn with_issuing(self, issuing: Issuing) -> Self {
        App { issuing: Some(issuing), ..self }
    }

    /// The processors that requests share, to be told when the server stops.
    pub fn processor(&self) -> Arc<Processor> {
        Arc::clone(&self.processor)
    }

    /// Takes in what roles and bindings are now, wherever they were changed.
    ///
    /// Errors: they can't be read. While the database is out of reach, those in memory count.
    pub(super) async fn refresh_policy(&self) -> Result<(), Status> {
        if self.registry.policy.is_some() {
            _ = self.registry.storage.catch_up().await;
        }
        self.authorizer.refresh().await
    }
}
