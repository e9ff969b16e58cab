//! Whether a webhook is called, and in which version.

use std::sync::Arc;

use super::{Sent, Source, Webhook, Webhooks};
use crate::admission::Attributes;
use crate::admission::asking::{Asking, request_resource};
use crate::admission::concern::{Concern, Fault};
use crate::crd::ServedVersion;
use crate::meta::Status;
use crate::policy::Input;
use crate::policy::conditions;
use crate::policy::environment::Declarations;
use crate::policy::evaluation::{Activation, CONDITIONS_BUDGET};
use crate::value::Value;

impl<S: Source> Webhooks<S> {
    /// The version that `webhook` is to be called in; `None` where it is not concerned. Its conditions are asked later,
    /// with the objects in that version.
    pub(super) async fn concerned(
        &self,
        webhook: &Webhook,
        concern: &Concern<'_>,
        object: &Value,
    ) -> Result<Option<Arc<ServedVersion>>, Status> {
        concern.version(&webhook.criteria, object, &self.source).await.map_err(Fault::into_status)
    }

    /// Whether the conditions of `webhook` hold; where that can't be told, the failure policy decides.
    pub(super) fn fulfils(
        &self,
        webhook: &Webhook,
        attributes: &Attributes<'_>,
        sent: Sent<'_>,
    ) -> Result<bool, Status> {
        if webhook.conditions.is_empty() {
            return Ok(true);
        }
        let request = attributes.request(sent.version);
        let input = Input {
            object: sent.object,
            old_object: sent.old,
            request: &request,
            namespace: &Value::Null,
            params: &Value::Null,
            authorizer: Some(Arc::new(Asking::new(&self.authorizer, attributes.user))),
            request_resource: &request_resource(attributes),
        };
        let mut activation = Activation::new(&input, &Declarations::default(), None, CONDITIONS_BUDGET);
        match conditions::hold(&webhook.conditions, &mut activation) {
            Ok(holds) => Ok(holds),
            Err(_) if webhook.is_ignored => Ok(false),
            Err(why) => {
                let version = attributes.version;
                Err(Status::forbidden(&version.group, &version.names.plural, attributes.name, &why))
            }
        }
    }
}
