//! `MutatingAdmissionWebhook` and `ValidatingAdmissionWebhook`: webhooks that configurations name.
//!
//! In: a write, and the configurations as they are stored at that moment. Out: the object as webhooks left it, or the
//! refusal of one of them. No lock is held and nothing is queued while a webhook is waited for: whoever waits is the
//! request alone that it was called for.
//!
//! - `admission::webhooks` is the step; `review` (what is said and what an answer is worth) is pure, and so are the rules,
//!   selectors and match conditions that webhooks share with policies (`policy`). What it needs of a resource (its versions, conversion, defaults, pruning) it
//!   asks of `Forms`, what is stored of `Source`; the registry is behind both, so the layers stay.
//! - Configurations are read from the view for each write and kept decoded by their revision, expressions compiled.
//!   So they take effect with the write that changes them, and nobody has to be told.
//! - Mutating webhooks run inside the loop that repeats a write: after a lost race they see the object as it is then,
//!   as in the reference. An object in the version of a webhook is only defaulted between webhooks; it is pruned
//!   once, when it goes back.
//! - No lock is held, and nothing is queued, over a call. What a request holds that others need is its place among
//!   those at work. It gives that up for one aside (`webhook::patience`, `http::limits`): there are as many of these,
//!   so that a webhook that hangs bounds memory and stops nobody but those who wait for it.
//! - What a webhook sets is nobody's: ownership is computed before admission, and only mended after it where it was
//!   broken.
//!
//! Source: `k8s.io/apiserver/pkg/admission/plugin/webhook`, release 1.37.

mod configuration;
mod invocation;
mod mutating;
mod review;
mod validating;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use bytes::Bytes;
use uuid::Uuid;

use super::matcher::NamespaceLabels;
use super::{Admission, AdmissionResult, Attributes, Figures, WebhookCall};
use crate::auth;
use crate::crd::ServedVersion;
use crate::meta::Status;
use crate::value::{Value, go_quote};
use crate::webhook::{Credentials, Endpoint, Manner, WebhookClient, patience};

use configuration::SideEffects;
use review::{WebhookAnswerError, WebhookVerdict};

pub use configuration::{Configuration, Webhook, WebhookKind};

/// The group of the configurations.
const GROUP: &str = "admissionregistration.k8s.io";

/// The code that is counted for a webhook that gave no answer, or none that can be read.
const UNAVAILABLE: u16 = 503;

/// Kinds that no stored webhook is asked about: one that refuses everything could not be removed any more.
const EXEMPT: [&str; 6] = [
    "ValidatingWebhookConfiguration",
    "MutatingWebhookConfiguration",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
];

/// Where the step learns of configurations.
#[async_trait]
pub trait WebhookSource: NamespaceLabels {
    /// The configurations of a kind as they are now: those that stand in files, then those that are stored, by their names.
    async fn configurations(&self, kind: WebhookKind) -> Result<Vec<Arc<Configuration>>, Status>;

    /// Those that stand in files.
    fn in_files(&self) -> Vec<Arc<Configuration>>;
}

/// The step of admission that calls webhooks.
pub struct Webhooks<S> {
    pub source: S,
    pub client: Arc<WebhookClient>,
    /// Who calls them.
    pub credentials: Arc<Credentials>,
    /// Whom the variable `authorizer` of match conditions asks.
    pub authorizer: Arc<dyn auth::Authorizer>,
    pub figures: Arc<Figures>,
    pub mutating: bool,
    pub validating: bool,
}

#[async_trait]
impl<S: WebhookSource> Admission for Webhooks<S> {
    async fn mutate(&self, attributes: &Attributes<'_>, object: &mut Value) -> Result<(), Status> {
        if !self.mutating {
            return Ok(());
        }
        let configurations = self.asked(WebhookKind::Mutating, attributes).await?;
        if configurations.is_empty() { Ok(()) } else { self.call_mutating(&configurations, attributes, object).await }
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: &Value) -> Result<(), Status> {
        if !self.validating {
            return Ok(());
        }
        let configurations = self.asked(WebhookKind::Validating, attributes).await?;
        if configurations.is_empty() { Ok(()) } else { self.call_validating(&configurations, attributes, object).await }
    }

    fn takes_connections(&self) -> bool {
        true
    }
}

impl<S> Webhooks<S> {
    /// Where a webhook is, with the credentials for its host.
    fn endpoint<'w>(&self, webhook: &'w Webhook) -> Cow<'w, Endpoint> {
        match self.credentials.of(&webhook.endpoint.address) {
            None => Cow::Borrowed(&webhook.endpoint),
            access => Cow::Owned(Endpoint { access, ..webhook.endpoint.clone() }),
        }
    }
}

fn is_exempt(attributes: &Attributes<'_>) -> bool {
    attributes.version.group == GROUP && EXEMPT.contains(&attributes.version.names.kind.as_str())
}

/// Why a webhook gives no verdict.
#[derive(Clone, Debug, PartialEq)]
enum VerdictError {
    /// The call failed, with the code that is counted: what becomes of the request is the configuration's to say.
    Failed(String, u16),
    /// The webhook refuses the request.
    Refused(Status),
    /// The webhook can't be asked, or wants what can't be done: the request fails, whatever the configuration says.
    Broken(Status),
}

impl VerdictError {
    /// What the request is answered with that fails for it.
    fn into_status(self, webhook: &Webhook) -> Status {
        match self {
            VerdictError::Failed(why, _) => {
                Status::internal_error(&format!("failed calling webhook {}: {why}", go_quote(&webhook.name)))
            }
            VerdictError::Refused(status) | VerdictError::Broken(status) => status,
        }
    }
}

/// The objects of a request, in the version that a webhook takes.
#[derive(Clone, Copy)]
struct SentObjects<'s> {
    version: &'s ServedVersion,
    object: &'s Value,
    old: &'s Value,
}

impl<S: WebhookSource> Webhooks<S> {
    /// The configurations whose webhooks may be called for a request.
    async fn asked(&self, kind: WebhookKind, attributes: &Attributes<'_>) -> Result<Vec<Arc<Configuration>>, Status> {
        if is_exempt(attributes) { Ok(self.source.in_files()) } else { self.source.configurations(kind).await }
    }

    /// Counts what came of a webhook.
    fn count(
        &self,
        webhook: &Webhook,
        kind: WebhookKind,
        attributes: &Attributes<'_>,
        (began, error): (Instant, Option<&VerdictError>),
    ) {
        let (code, outcome) = match error {
            None => (200, AdmissionResult::Allowed),
            Some(VerdictError::Refused(status)) => (status.code, AdmissionResult::Refused),
            Some(VerdictError::Broken(_)) => (0, AdmissionResult::Broken),
            Some(VerdictError::Failed(_, code)) if webhook.is_ignored => (*code, AdmissionResult::PassedOver),
            Some(VerdictError::Failed(_, code)) => (*code, AdmissionResult::Failed),
        };
        self.figures.called(&WebhookCall {
            name: &webhook.name,
            step: if kind == WebhookKind::Mutating { "admit" } else { "validating" },
            operation: attributes.operation,
            took: began.elapsed(),
            code,
            outcome,
        });
    }

    /// Calls a webhook: its verdict, unless that is a refusal.
    async fn call(
        &self,
        webhook: &Webhook,
        kind: WebhookKind,
        attributes: &Attributes<'_>,
        sent: SentObjects<'_>,
    ) -> Result<WebhookVerdict, VerdictError> {
        if attributes.dry_run {
            match webhook.side_effects {
                SideEffects::NoneOnDryRun => {}
                SideEffects::Unsaid => return Err(VerdictError::Failed("Webhook SideEffects is nil".to_owned(), 400)),
                SideEffects::Possible => {
                    let name = go_quote(&webhook.name);
                    let why = format!("admission webhook {name} does not support dry run");
                    return Err(VerdictError::Broken(Status::bad_request(&why)));
                }
            }
        }
        let Some(version) = webhook.review_version else {
            let why = "could not create admission objects: webhook does not accept known AdmissionReview versions (v1, \
                       v1beta1)";
            return Err(VerdictError::Failed(why.to_owned(), 400));
        };
        if !patience::release().await {
            return Err(VerdictError::Broken(Status::too_many_requests(patience::CROWDED, 1)));
        }
        let uid = Uuid::new_v4().to_string();
        let request = attributes.request(sent.version);
        let body = review::encode(version, &uid, request, sent.object, sent.old);
        let manner = Manner::of_admission(webhook.timeout);
        let answer = self.client.call(&self.endpoint(webhook), Bytes::from(body), manner).await;
        let failed = |why: String, code| VerdictError::Failed(format!("failed to call webhook: {why}"), code);
        let answer = answer.map_err(|failure| failed(failure.text, failure.status.unwrap_or(UNAVAILABLE)))?;
        let verdict =
            review::verdict(version, &uid, kind == WebhookKind::Mutating, &answer).map_err(|fault| match fault {
                WebhookAnswerError::Unreadable(why) => failed(why, UNAVAILABLE),
                WebhookAnswerError::Invalid(why) => {
                    VerdictError::Failed(format!("received invalid webhook response: {why}"), UNAVAILABLE)
                }
            })?;
        tell(webhook, attributes, &verdict);
        if verdict.allowed {
            Ok(verdict)
        } else {
            Err(VerdictError::Refused(review::refusal(&webhook.name, verdict.status)))
        }
    }
}

/// Passes on what a webhook says beside its verdict.
fn tell(webhook: &Webhook, attributes: &Attributes<'_>, verdict: &WebhookVerdict) {
    for (key, text) in &verdict.audit_annotations {
        let name = format!("{}/{key}", webhook.name);
        if name.matches('/').count() == 1 && crate::meta::names::is_qualified_name(&name).is_empty() {
            attributes.told.annotate(name, text);
        }
    }
    verdict.warnings.iter().for_each(|text| attributes.told.warn(text));
}
