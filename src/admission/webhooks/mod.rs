//! `MutatingAdmissionWebhook` and `ValidatingAdmissionWebhook`: the webhooks of webhook
//! configurations.
//!
//! Input: a write, and the configurations as they are stored at that moment. Output: the object as the
//! webhooks left it, or the refusal by one of them.
//!
//! - `admission::webhooks` is the step; `review` (the request to a webhook and the meaning of its
//!   answer) is pure, and so are the rules, selectors and match conditions that webhooks share with
//!   policies (`policy`). What the step needs of a resource (its versions, conversion, defaults,
//!   pruning) it gets from `Forms`, and stored configurations from `WebhookSource`; the registry
//!   implements both, so the layers stay separate.
//! - Configurations are read from the view for each write, and cached by revision with compiled
//!   expressions. So they take effect with the write that changes them, and no notification is
//!   needed.
//! - Mutating webhooks run inside the loop that retries a write: after a conflict they see the
//!   object as it is then, as in Kubernetes. Between webhooks, an object in the version of a
//!   webhook is only defaulted; it is pruned once, when it is converted back.
//! - No lock is held, and nothing is queued, during a call: only the request waits that the webhook
//!   was called for. What a request holds that others need is its place among the requests in
//!   flight. It gives that up for one in a separate pool (`webhook::patience`, `http::limits`) of
//!   the same size, so a webhook that hangs uses bounded memory and blocks only the requests that
//!   wait for it.
//! - Fields that a webhook sets have no owner: ownership is computed before admission, and only
//!   repaired afterwards if it was broken.
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
use super::{Admission, AdmissionResult, Attributes, Figures, Operation, WebhookCall, WebhookTimes};
use crate::auth;
use crate::crd::ServedVersion;
use crate::meta::Status;
use crate::meta::gate::Gate;
use crate::value::{Value, go_quote};
use crate::webhook::{Credentials, Endpoint, Manner, WebhookClient, patience};

use configuration::SideEffects;
use review::{WebhookAnswerError, WebhookVerdict};

pub use configuration::{Configuration, Webhook, WebhookKind};

/// The group of the configurations.
const GROUP: &str = "admissionregistration.k8s.io";

/// The code that is counted for a webhook without an answer, or with one that can't be decoded.
const UNAVAILABLE: u16 = 503;

/// Kinds that no stored webhook applies to: a webhook that refuses everything could not be removed
/// any more.
const EXEMPT: [&str; 6] = [
    "ValidatingWebhookConfiguration",
    "MutatingWebhookConfiguration",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
];

/// The source of configurations.
#[async_trait]
pub trait WebhookSource: NamespaceLabels {
    /// The configurations as of now: those from files, then the stored ones, sorted by name.
    async fn configurations(&self) -> Result<Arc<[Arc<Configuration>]>, Status>;

    /// The configurations from files.
    fn in_files(&self) -> Arc<[Arc<Configuration>]>;
}

/// The admission step that calls webhooks.
pub struct Webhooks<S> {
    pub source: S,
    pub client: Arc<WebhookClient>,
    /// The credentials for the calls.
    pub credentials: Arc<Credentials>,
    /// The authorizer behind the variable `authorizer` of match conditions.
    pub authorizer: Arc<dyn auth::Authorizer>,
    pub figures: Arc<Figures>,
    /// The kind of those that it calls.
    pub kind: WebhookKind,
}

#[async_trait]
impl<S: WebhookSource> Admission for Webhooks<S> {
    async fn mutate(&self, attributes: &Attributes<'_>, object: &mut Value) -> Result<(), Status> {
        if matches!(attributes.operation, Operation::Create | Operation::Update) && is_exempt(attributes) {
            // Before one is written, it is found out how much memory the others take. Nothing else depends on it.
            _ = self.source.configurations().await;
        }
        if self.kind != WebhookKind::Mutating {
            return Ok(());
        }
        let configurations = self.asked(attributes).await?;
        if configurations.is_empty() { Ok(()) } else { self.call_mutating(&configurations, attributes, object).await }
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: &Value) -> Result<(), Status> {
        if self.kind != WebhookKind::Validating {
            return Ok(());
        }
        let configurations = self.asked(attributes).await?;
        if configurations.is_empty() { Ok(()) } else { self.call_validating(&configurations, attributes, object).await }
    }

    fn takes_connections(&self) -> bool {
        true
    }
}

impl<S> Webhooks<S> {
    /// The endpoint of a webhook, with the credentials for its host.
    fn endpoint<'w>(&self, webhook: &'w Webhook) -> Cow<'w, Endpoint> {
        match self.credentials.of(&webhook.endpoint.address) {
            None => Cow::Borrowed(&webhook.endpoint),
            access => Cow::Owned(Endpoint { access, ..webhook.endpoint.clone() }),
        }
    }
}

/// Whether the request asks what a client is or may do: a webhook must not keep anyone from asking.
fn is_review(attributes: &Attributes<'_>) -> bool {
    let version = attributes.version;
    matches!(&*version.group, "authentication.k8s.io" | "authorization.k8s.io")
        && version.minor.opens(Gate::ExcludeAdmissionWebhookVirtualResources)
}

fn is_exempt(attributes: &Attributes<'_>) -> bool {
    attributes.version.group == GROUP && EXEMPT.contains(&attributes.version.names.kind.as_str())
}

/// Why a webhook gives no verdict.
#[derive(Clone, Debug, PartialEq)]
enum VerdictError {
    /// The call failed, with the code that is counted: the failure policy decides about the
    /// request.
    Failed(String, u16),
    /// The webhook refuses the request.
    Refused(Status),
    /// The webhook can't be called, or its answer can't be applied: the request fails, whatever the
    /// failure policy.
    Broken(Status),
}

impl VerdictError {
    /// Too many requests wait for webhooks, or there is no memory for an answer.
    fn crowded() -> Self {
        VerdictError::Broken(Status::too_many_requests(patience::CROWDED, 1))
    }

    /// The answer to a request that fails for this reason.
    fn into_status(self, webhook: &Webhook) -> Status {
        match self {
            VerdictError::Failed(why, _) => {
                Status::internal_error(&format!("failed calling webhook {}: {why}", go_quote(&webhook.name)))
            }
            VerdictError::Refused(status) | VerdictError::Broken(status) => status,
        }
    }
}

/// The objects of a request, in the version that a webhook accepts.
#[derive(Clone, Copy)]
struct SentObjects<'s> {
    version: &'s ServedVersion,
    object: &'s Value,
    old: &'s Value,
}

impl<S: WebhookSource> Webhooks<S> {
    /// The configurations whose webhooks may be called for a request.
    async fn asked(&self, attributes: &Attributes<'_>) -> Result<Arc<[Arc<Configuration>]>, Status> {
        if is_review(attributes) {
            Ok(Arc::default())
        } else if is_exempt(attributes) {
            Ok(self.source.in_files())
        } else {
            self.source.configurations().await
        }
    }

    /// Counts the outcome of a webhook.
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

    /// Calls a webhook and returns its verdict; a refusal is an error.
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
            return Err(VerdictError::crowded());
        }
        let uid = Uuid::new_v4().to_string();
        let request = attributes.request(sent.version);
        let body = review::encode(version, &uid, request, sent.object, sent.old);
        let manner = Manner::of_admission(webhook.timeout);
        let began = Instant::now();
        let answer = self.client.call(&self.endpoint(webhook), Bytes::from(body), manner).await;
        attributes.told.waited(match kind {
            WebhookKind::Mutating => WebhookTimes { mutating: began.elapsed(), ..WebhookTimes::default() },
            WebhookKind::Validating => WebhookTimes { validating: began.elapsed(), ..WebhookTimes::default() },
        });
        let failed = |why: String, code| VerdictError::Failed(format!("failed to call webhook: {why}"), code);
        let answer = answer.map_err(|failure| {
            let code = failure.status.unwrap_or(UNAVAILABLE);
            if failure.is_crowded { VerdictError::crowded() } else { failed(failure.text, code) }
        })?;
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

/// Passes on the annotations and warnings of a webhook.
fn tell(webhook: &Webhook, attributes: &Attributes<'_>, verdict: &WebhookVerdict) {
    for (key, text) in &verdict.audit_annotations {
        let name = format!("{}/{key}", webhook.name);
        if name.matches('/').count() == 1 && crate::meta::names::is_qualified_name(&name).is_empty() {
            attributes.told.annotate(name, text);
        }
    }
    verdict.warnings.iter().for_each(|text| attributes.told.warn(text));
}
