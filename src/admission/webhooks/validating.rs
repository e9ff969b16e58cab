//! Validating webhooks: all are called at once, as none of them changes anything.

use std::sync::Arc;
use std::time::Instant;

use futures_util::stream::{FuturesUnordered, StreamExt as _};

use super::configuration::{Configuration, WebhookKind};
use super::mutating::convert;
use super::{SentObjects, VerdictError, Webhook, WebhookSource, Webhooks};
use crate::admission::Attributes;
use crate::admission::matcher::Matcher;
use crate::crd::ServedVersion;
use crate::meta::Status;
use crate::value::Value;

/// The audit annotation that names a webhook whose failure was ignored.
const FAILED_OPEN: &str = "failed-open.validating.webhook.admission.k8s.io";

/// The objects of the request in one version.
struct Versioned {
    version: Arc<ServedVersion>,
    object: Value,
    old: Value,
}

impl<S: WebhookSource> Webhooks<S> {
    /// Calls all webhooks that apply; the first refusal is returned.
    pub(super) async fn call_validating(
        &self,
        configurations: &[Arc<Configuration>],
        attributes: &Attributes<'_>,
        object: &Value,
    ) -> Result<(), Status> {
        let mut forms: Vec<Versioned> = Vec::new();
        let mut calls: Vec<(&Webhook, usize)> = Vec::new();
        let matcher = Matcher::new(attributes);
        for webhook in configurations.iter().flat_map(|configuration| &configuration.webhooks) {
            let Some(version) = self.concerned(webhook, &matcher, object).await? else { continue };
            let known = forms.iter().position(|form| Arc::ptr_eq(&form.version, &version));
            let at = match known {
                Some(at) => at,
                None => {
                    let old = attributes.old.cloned().unwrap_or_default();
                    forms.push(Versioned {
                        object: convert(object.clone(), attributes, &version).await?,
                        old: convert(old, attributes, &version).await?,
                        version,
                    });
                    forms.len() - 1
                }
            };
            if self.fulfils(webhook, WebhookKind::Validating, attributes, forms[at].sent())? {
                calls.push((webhook, at));
            }
        }
        let mut calls: FuturesUnordered<_> = calls
            .into_iter()
            .enumerate()
            .map(|(index, (webhook, at))| self.call_one(webhook, index, attributes, forms[at].sent()))
            .collect();
        // Even after a refusal, all calls are waited for, because of their warnings and
        // annotations.
        let mut refused = None;
        while let Some(outcome) = calls.next().await {
            if let Err(status) = outcome {
                refused.get_or_insert(status);
            }
        }
        refused.map_or(Ok(()), Err)
    }

    async fn call_one(
        &self,
        webhook: &Webhook,
        index: usize,
        attributes: &Attributes<'_>,
        sent: SentObjects<'_>,
    ) -> Result<(), Status> {
        let began = Instant::now();
        let called = self.call(webhook, WebhookKind::Validating, attributes, sent).await;
        self.count(webhook, WebhookKind::Validating, attributes, (began, called.as_ref().err()));
        match called {
            Ok(_) => Ok(()),
            Err(VerdictError::Failed(why, _)) if webhook.is_ignored => {
                tracing::warn!(webhook = webhook.name, why, "a webhook failed, and is passed over");
                attributes.told.annotate(format!("{FAILED_OPEN}/round_0_index_{index}"), &webhook.name);
                Ok(())
            }
            Err(error) => Err(error.into_status(webhook)),
        }
    }
}

impl Versioned {
    fn sent(&self) -> SentObjects<'_> {
        SentObjects { version: &self.version, object: &self.object, old: &self.old }
    }
}
