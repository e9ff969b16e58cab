//! Type-checks validating policies against the schemas of what they match, and puts warnings into their status.
//!
//! A policy is checked once for each generation: a kind that is defined later does not change the warnings.
//!
//! Source: the controller `validatingadmissionpolicy-status-controller` of Kubernetes 1.37.

use std::sync::Arc;

use super::changes::Controller;
use super::changes::queue_all;
use super::identity::service_account;
use super::queue::{Progress, Queue};
use crate::meta::Status;
use crate::object;
use crate::policy::type_check::{self, Warning};
use crate::policy::{GROUP, Policy as _, Validating};
use crate::registry::{FieldValidation, PatchRequest, PatchType, Registry, Subresource, Target, Warnings};
use crate::schema::of_type::Quantities;
use crate::store::{ChangeEvent, Collection, Moment};
use crate::value::{Value, json};

/// Its service account.
const ACCOUNT: &str = "validatingadmissionpolicy-status-controller";
/// The manager of what it sets.
const MANAGER: &str = "validatingadmissionpolicy-status";

/// Keeps `status.typeChecking` and `status.observedGeneration` of policies.
pub(super) struct PolicyTypes {
    pub registry: Arc<Registry>,
}

impl Controller for PolicyTypes {
    type Key = String;
    const AT_ONCE: usize = 1;
    const TASK: &str = "checking the types of a policy";

    async fn begin(&self, queue: &mut Queue<String>) -> Result<Moment, Status> {
        queue_all(&self.registry, &collection(), queue, str::to_owned).await
    }

    fn note(&self, change: &ChangeEvent, queue: &mut Queue<String>) {
        if change.collection.is(GROUP, Validating::POLICIES) {
            queue.add(change.key.to_string(), tokio::time::Instant::now());
        }
    }

    async fn reconcile(&self, name: &String) -> Result<Progress, Status> {
        let failed = |_| Status::internal_error("the policy can't be read");
        let stored = self.registry.storage.get(&collection(), name).await.map_err(failed)?;
        let Some(policy) = stored.and_then(|stored| json::decode(&stored.bytes).ok()) else {
            return Ok(Progress::Done);
        };
        let number = |path: &[&str]| policy.at(path).and_then(Value::as_i64).unwrap_or_default();
        let generation = number(&["metadata", "generation"]);
        if generation <= number(&["status", "observedGeneration"]) {
            return Ok(Progress::Done);
        }
        let resources = self.registry.resources().await?;
        let served: Vec<_> = resources.iter().flat_map(|resource| resource.versions.iter().cloned()).collect();
        let warnings = type_check::check(&policy, &served, Quantities::Hidden);
        self.tell(name, generation, warnings).await.map(|()| Progress::Done)
    }
}

fn collection() -> Collection {
    Collection::new(GROUP, Validating::POLICIES)
}

impl PolicyTypes {
    async fn tell(&self, name: &str, generation: i64, warnings: Vec<Warning>) -> Result<(), Status> {
        let resource = self.registry.resolve(GROUP, Validating::POLICIES).await?;
        let resource = resource.ok_or_else(Status::not_found_generic)?;
        let version = Arc::clone(resource.first());
        let warning = |Warning { field, text }: Warning| object! { "fieldRef" => field, "warning" => text };
        let warnings: Vec<Value> = warnings.into_iter().map(warning).collect();
        let checking = if warnings.is_empty() {
            object! {}
        } else {
            object! { "expressionWarnings" => warnings }
        };
        let applied = object! {
            "apiVersion" => version.api_version(),
            "kind" => version.names.kind.as_str(),
            "metadata" => object! { "name" => name },
            "status" => object! { "observedGeneration" => generation, "typeChecking" => checking },
        };
        let (namespace, name) = (String::new(), name.to_owned());
        let target = Target { resource, version, subresource: Subresource::Status, namespace, name };
        let request = PatchRequest {
            patch_type: PatchType::Apply,
            bytes: json::encode(&applied).into(),
            field_validation: FieldValidation::Ignore,
            manager: MANAGER.to_owned(),
            force: true,
            dry_run: false,
            options: Value::Null,
        };
        match self.registry.patch(&target, &service_account(ACCOUNT), &request, &mut Warnings::default()).await {
            // It was deleted meanwhile.
            Err(status) if status.code == 404 => Ok(()),
            outcome => outcome.map(drop),
        }
    }
}
