//! Whether a webhook is called, and in which version.

use std::sync::Arc;
use std::time::Instant;

use super::{SentObjects, Webhook, WebhookKind, WebhookSource, Webhooks};
use crate::admission::expression_authorizer::{ExpressionAuthorizer, request_resource};
use crate::admission::matcher::{MatchError, Matcher};
use crate::admission::{AdmissionRound, Attributes, Evaluated};
use crate::crd::ServedVersion;
use crate::meta::Status;
use crate::policy::PolicyInput;
use crate::policy::conditions;
use crate::policy::environment::Declarations;
use crate::policy::evaluation::{Activation, CONDITIONS_BUDGET};
use crate::value::Value;

impl<S: WebhookSource> Webhooks<S> {
    /// The version in which `webhook` is to be called; `None` if it does not apply. Its match
    /// conditions are evaluated later, with the objects in that version.
    pub(super) async fn concerned(
        &self,
        webhook: &Webhook,
        matcher: &Matcher<'_>,
        object: &Value,
    ) -> Result<Option<Arc<ServedVersion>>, Status> {
        matcher.version(&webhook.criteria, object, &self.source).await.map_err(MatchError::into_status)
    }

    /// Whether the match conditions of `webhook` hold; if that can't be decided, the failure policy
    /// decides.
    pub(super) fn fulfils(
        &self,
        webhook: &Webhook,
        kind: WebhookKind,
        attributes: &Attributes<'_>,
        sent: SentObjects<'_>,
    ) -> Result<bool, Status> {
        if webhook.conditions.is_empty() {
            return Ok(true);
        }
        let request = attributes.request(sent.version);
        let input = PolicyInput {
            object: sent.object,
            old_object: sent.old,
            request: &conditions::request(&request),
            namespace: &Value::Null,
            params: &Value::Null,
            authorizer: Some(Arc::new(ExpressionAuthorizer::new(&self.authorizer, attributes.user))),
            request_resource: &request_resource(attributes),
        };
        let mut activation = Activation::new(&input, &Declarations::default(), None, CONDITIONS_BUDGET);
        let began = Instant::now();
        let asked = conditions::evaluate_all(&webhook.conditions, &mut activation);
        let (name, operation) = (webhook.name.as_str(), attributes.operation);
        self.figures.evaluated(&Evaluated {
            name,
            kind: "webhook",
            step: if kind == WebhookKind::Mutating { "admit" } else { "validating" },
            operation,
            took: began.elapsed(),
            hold: asked.hold == Ok(true),
            errors: asked.errors,
        });
        let round = if kind == WebhookKind::Mutating { AdmissionRound::Admit } else { AdmissionRound::Validate };
        match asked.hold {
            Ok(true) => Ok(true),
            Err(error) if !webhook.is_ignored => {
                let version = attributes.version;
                Err(Status::forbidden(&version.group, &version.names.plural, attributes.name, &error.to_string()))
            }
            Ok(false) | Err(_) => {
                self.figures.excluded(name, round, operation);
                Ok(false)
            }
        }
    }
}
