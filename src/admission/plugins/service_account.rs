//! `ServiceAccount`: a pod has an existing service account, gets its token, and refers only to
//! secrets that the account allows.
//!
//! Source: `plugin/pkg/admission/serviceaccount`, release 1.36.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use uuid::Uuid;

use super::forbidden;
use crate::admission::{Admission, Attributes, Objects, Operation, ScopedResource};
use crate::kinds::pod_object::service_account;
use crate::meta::{Status, names};
use crate::value::{Value, go_quote};
use crate::write::metadata::name_suffix;

/// The service account of pods that name none.
const DEFAULT: &str = "default";
/// How often this account is looked up, and the interval.
const DEFAULT_TRIES: u32 = 10;
const TRY_EVERY: Duration = Duration::from_millis(100);

pub struct ServiceAccount {
    pub objects: Arc<dyn Objects>,
}

#[async_trait]
impl Admission for ServiceAccount {
    fn concerns_custom_resources(&self) -> bool {
        false
    }

    async fn mutate(&self, attributes: &Attributes<'_>, object: &mut Value) -> Result<(), Status> {
        if !is_new_pod(attributes) {
            return Ok(());
        }
        if service_account::is_mirror(object) {
            return check_mirror(attributes, object);
        }
        let name = service_account::set_default(object);
        let account = self.account(attributes, object, &name).await?;
        service_account::admit(object, &account, &|| name_suffix(Uuid::new_v4().as_u128()));
        // The secrets are checked in both rounds: plugins after this one, and webhooks, do not see a refused pod.
        check_secrets(attributes, object, &account)
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: &Value) -> Result<(), Status> {
        let is_ephemeral = is_of_pods(attributes) && attributes.subresource == "ephemeralcontainers";
        if !is_ephemeral && !is_new_pod(attributes) {
            return Ok(());
        }
        if service_account::is_mirror(object) && !is_ephemeral {
            return check_mirror(attributes, object);
        }
        let refused = |why: &str| forbidden(attributes, object, why);
        let name = object.str_at(&["spec", "serviceAccountName"]);
        if name.is_empty() {
            let (namespace, pod) = (attributes.namespace, object.str_at(&["metadata", "name"]));
            return Err(refused(&format!("no service account specified for pod {namespace}/{pod}")));
        }
        let account = self.account(attributes, object, name).await?;
        if is_ephemeral {
            // Go returns this error as it is, without a status.
            let checked = service_account::check_secrets(object, &account, true);
            return checked.map_err(|why| Status::plain(500, &why.to_string()));
        }
        check_secrets(attributes, object, &account)
    }
}

impl ServiceAccount {
    async fn account(&self, attributes: &Attributes<'_>, pod: &Value, name: &str) -> Result<Value, Status> {
        let namespace = attributes.namespace;
        // A controller creates the default account soon after its namespace.
        let tries = if name == DEFAULT { DEFAULT_TRIES } else { 1 };
        for attempt in 0..tries {
            if attempt > 0 {
                tokio::time::sleep(TRY_EVERY).await;
            }
            let place = ScopedResource { group: "", plural: "serviceaccounts", namespace };
            if let Some(found) = self.objects.get(place, name).await? {
                return Ok(found);
            }
        }
        let why = names::unfit_for_request(name);
        let why = why.unwrap_or_else(|| format!("serviceaccount {} not found", go_quote(name)));
        let why = format!("error looking up service account {namespace}/{name}: {why}");
        Err(forbidden(attributes, pod, &why))
    }
}

fn check_secrets(attributes: &Attributes<'_>, pod: &Value, account: &Value) -> Result<(), Status> {
    service_account::check_secrets(pod, account, false).map_err(|why| forbidden(attributes, pod, &why.to_string()))
}

fn check_mirror(attributes: &Attributes<'_>, pod: &Value) -> Result<(), Status> {
    service_account::check_mirror(pod).map_err(|why| forbidden(attributes, pod, why))
}

fn is_of_pods(attributes: &Attributes<'_>) -> bool {
    attributes.version.group.is_empty() && attributes.version.names.plural == "pods"
}

fn is_new_pod(attributes: &Attributes<'_>) -> bool {
    is_of_pods(attributes) && attributes.subresource.is_empty() && attributes.operation == Operation::Create
}
