//! Aggregated cluster roles: they collect the rules of other roles, selected by labels.
//!
//! Source: the cluster role aggregation controller of Kubernetes 1.37.

use std::sync::Arc;

use memchr::memmem;
use tokio::time::Instant;

use super::changes::Controller;
use super::identity::service_account;
use super::queue::{Progress, Queue};
use crate::kinds::RBAC_GROUP;
use crate::meta::Status;
use crate::meta::selector::LabelSelector;
use crate::object;
use crate::registry::{FieldValidation, PatchRequest, PatchType, Registry, Subresource, Target, Warnings};
use crate::store::{At, ChangeEvent, Collection, Moment, Snapshot};
use crate::value::{Value, json};

const PLURAL: &str = "clusterroles";
/// Its service account, and the manager of what it sets.
const NAME: &str = "clusterrole-aggregation-controller";
/// A text that the bytes of every aggregated role contain.
const MARK: &[u8] = b"\"aggregationRule\"";
/// How long a chain of roles is followed at once.
const ROUNDS_MAX: usize = 8;

/// Keeps the rules of aggregated roles up to date.
pub(super) struct Aggregation {
    pub registry: Arc<Registry>,
}

/// All roles are looked at together, as only their selectors show which of them a change concerns.
impl Controller for Aggregation {
    type Key = ();
    const AT_ONCE: usize = 1;
    const TASK: &str = "gathering the rules of roles";

    async fn begin(&self, queue: &mut Queue<()>) -> Result<Moment, Status> {
        let before = self.registry.storage.now();
        queue.add((), Instant::now());
        Ok(before)
    }

    fn note(&self, change: &ChangeEvent, queue: &mut Queue<()>) {
        if change.collection.is(RBAC_GROUP, PLURAL) {
            queue.add((), Instant::now());
        }
    }

    async fn reconcile(&self, (): &()) -> Result<Progress, Status> {
        aggregate(&self.registry).await.map(|_| Progress::Done)
    }
}

/// Aggregates until nothing changes any more: aggregated roles may be aggregated in turn.
pub async fn aggregate_roles(registry: &Arc<Registry>) -> Result<(), Status> {
    for _ in 0..ROUNDS_MAX {
        if !aggregate(registry).await? {
            break;
        }
    }
    Ok(())
}

fn collection() -> Collection {
    Collection::new(RBAC_GROUP, PLURAL)
}

/// Aggregates once, and returns whether anything changed. A role that can't be changed does not block the others.
async fn aggregate(registry: &Arc<Registry>) -> Result<bool, Status> {
    let snapshot = registry.storage.snapshot(&collection(), At::Newest).await;
    let snapshot = snapshot.map_err(|_| Status::internal_error("the cluster roles can't be read"))?;
    let mut outcome = Ok(false);
    for stored in snapshot.range("", None) {
        if memmem::find(&stored.bytes, MARK).is_none() {
            continue;
        }
        let Ok(role) = json::decode(&stored.bytes) else { continue };
        let Some(rules) = gather(&role, &snapshot) else { continue };
        if rules == role.items_at(&["rules"]) {
            continue;
        }
        outcome = match apply(registry, &stored.key, rules).await {
            Ok(()) => outcome.map(|_| true),
            Err(status) => Err(status),
        };
    }
    outcome
}

/// The rules that a role must have; `None` for one that is not aggregated. A selector that can't be read selects
/// nothing.
fn gather(role: &Value, roles: &Snapshot) -> Option<Vec<Value>> {
    role.at(&["aggregationRule"])?;
    let name = role.str_at(&["metadata", "name"]);
    let mut rules = Vec::new();
    for selector in role.items_at(&["aggregationRule", "clusterRoleSelectors"]) {
        let Ok(selector) = LabelSelector::decode(selector) else { continue };
        let parts =
            roles.range("", None).filter(|part| *part.key != *name && selector.matches(|label| part.label(label)));
        for part in parts {
            let Ok(part) = json::decode(&part.bytes) else { continue };
            for rule in part.items_at(&["rules"]) {
                if !rules.contains(rule) {
                    rules.push(rule.clone());
                }
            }
        }
    }
    Some(rules)
}

async fn apply(registry: &Arc<Registry>, name: &str, rules: Vec<Value>) -> Result<(), Status> {
    let resource = registry.resolve(RBAC_GROUP, PLURAL).await?.ok_or_else(Status::not_found_generic)?;
    let version = Arc::clone(resource.first());
    let (namespace, name) = (String::new(), name.to_owned());
    let mut applied = object! {
        "apiVersion" => version.api_version(),
        "kind" => version.names.kind.as_str(),
        "metadata" => object! { "name" => name.as_str() },
    };
    if !rules.is_empty() {
        applied.make_object().insert("rules", Value::Array(rules));
    }
    let target = Target { resource, version, subresource: Subresource::Main, namespace, name };
    let request = PatchRequest {
        patch_type: PatchType::Apply,
        bytes: json::encode(&applied).into(),
        field_validation: FieldValidation::Ignore,
        manager: NAME.to_owned(),
        force: true,
        dry_run: false,
        options: Value::Null,
    };
    registry.patch(&target, &service_account(NAME), &request, &mut Warnings::default()).await.map(drop)
}
