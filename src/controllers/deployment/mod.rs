//! Deployments: a ReplicaSet for each template, current or past; the newest takes over at the pace of the strategy.
//!
//! Source: `pkg/controller/deployment` of Kubernetes 1.37.

mod figures;
mod sets;
mod status;
mod new_set;
mod scaling;

use std::sync::Arc;

use jiff::Timestamp;

use self::figures::{DESIRED, Wanted, annotated, replicas};
use self::sets::{revision, told_apart};
use self::status::ObservedDeployment;
use super::client::{Client, Kind, int_at, is_going, key_of, without_managers};
use super::family::{self, Family};
use super::queue::Progress;
use super::reconcile::Reconciler;
use super::workload::{ControllerContext, Running};
use crate::meta::Status;
use crate::store::{ChangeEvent, Collection};
use crate::value::Value;

const DEPLOYMENTS: Kind = Kind("apps", "deployments");
const SETS: Kind = Kind("apps", "replicasets");
/// The limit of old ReplicaSets that stands for no limit.
const NO_LIMIT: i64 = i32::MAX as i64;

struct Deployments {
    client: Client,
    family: Family,
}

/// A Deployment at work: itself, and its ReplicaSets, kept up to date with the changes made here.
struct Rollout<'r> {
    client: &'r Client,
    family: &'r Family,
    deployment: Value,
    wanted: Wanted,
    new: Option<Value>,
    /// The oldest first.
    old: Vec<Value>,
    /// How often the name for its ReplicaSet was taken.
    collisions: Option<i64>,
    now: Timestamp,
}

impl Reconciler for Deployments {
    const TASK: &str = "rolling out deployments";

    fn collections(&self) -> Vec<Collection> {
        vec![DEPLOYMENTS.collection(), SETS.collection()]
    }

    fn note(&self, change: &ChangeEvent) -> Vec<String> {
        self.family.note(change)
    }

    fn forget(&self) {
        self.family.forget();
    }

    async fn reconcile(&self, key: &str) -> Result<Progress, Status> {
        let Some(deployment) = self.client.get(DEPLOYMENTS, key).await? else { return Ok(Progress::Done) };
        let Some(selector) = family::selector(&deployment) else { return Ok(Progress::Done) };
        if selector.is_empty() {
            let message = "This deployment is selecting all pods. A non-empty selector is required.";
            self.client.tell_warning(&deployment, "SelectingAll", message.to_owned());
            return Ok(Progress::Done);
        }
        let sets = self.family.claimed(&self.client, &deployment, &selector).await?;
        let now = self.client.now();
        if let Some(status) = status::paused(&deployment, now).filter(|_| !is_going(&deployment)) {
            // That change queues it again.
            return self.client.update_status(DEPLOYMENTS, &deployment, status).await.map(|()| Progress::Done);
        }
        let (new, old) = told_apart(&deployment, sets);
        let wanted = Wanted::of(&deployment);
        let collisions = deployment.at(&["status", "collisionCount"]).and_then(Value::as_i64);
        let (client, family) = (&self.client, &self.family);
        Rollout { client, family, deployment, wanted, new, old, collisions, now }.run().await
    }
}

impl Rollout<'_> {
    async fn run(mut self) -> Result<Progress, Status> {
        if is_going(&self.deployment) {
            return self.write_counts().await;
        }
        let is_paused = self.deployment.at(&["spec", "paused"]).and_then(Value::as_bool) == Some(true);
        if is_paused || self.was_scaled() {
            self.mark_new().await?;
            self.scale().await?;
            if is_paused {
                self.clean_up().await?;
            }
            return self.write_counts().await;
        }
        match self.deployment.str_at(&["spec", "strategy", "type"]) {
            "Recreate" => self.recreate().await,
            _ => self.roll().await,
        }
    }

    /// Whether the Deployment's replicas differ from the number recorded in its active ReplicaSets.
    fn was_scaled(&self) -> bool {
        let mut active = self.old.iter().chain(&self.new).filter(|set| replicas(set) > 0);
        active.any(|set| annotated(set, DESIRED).is_some_and(|desired| desired != self.wanted.replicas))
    }

    /// A rolling update: first more new pods, then fewer old ones.
    async fn roll(mut self) -> Result<Progress, Status> {
        self.make_new(true).await?;
        let Some(new) = &self.new else { return Ok(Progress::Done) };
        let all = figures::sum(self.old.iter().chain(&self.new), replicas);
        let size = figures::of_new(self.wanted, true, replicas(new), all);
        if self.scale_new(size).await? {
            return self.write_status().await;
        }
        let sizes = figures::of_old(self.wanted, self.new.as_ref(), &self.old);
        if self.scale_old(&sizes).await? {
            return self.write_status().await;
        }
        self.clean_up_if_complete().await?;
        self.write_status().await
    }

    /// All old pods are gone before the first new one is created.
    async fn recreate(mut self) -> Result<Progress, Status> {
        let none = vec![0; self.old.len()];
        self.mark_new().await?;
        if self.scale_old(&none).await? {
            return self.write_status().await;
        }
        let runs = |set: &Value| {
            let count = |path: &[&str]| int_at(set, path) != 0;
            let unseen = int_at(set, &["status", "observedGeneration"]) < int_at(set, &["metadata", "generation"]);
            unseen || count(&["status", "replicas"]) || count(&["status", "terminatingReplicas"])
        };
        if self.old.iter().any(runs) {
            return self.write_status().await;
        }
        self.make_new(false).await?;
        if self.scale_new(self.wanted.replicas).await? {
            return self.write_status().await;
        }
        self.clean_up_if_complete().await?;
        self.write_status().await
    }

    fn seen(&self) -> ObservedDeployment<'_> {
        ObservedDeployment {
            deployment: &self.deployment,
            new: self.new.as_ref(),
            old: &self.old,
            collisions: self.collisions,
        }
    }

    async fn clean_up_if_complete(&self) -> Result<(), Status> {
        let status = status::counted(self.seen(), self.now);
        if status::is_complete(&self.deployment, &status) { self.clean_up().await } else { Ok(()) }
    }

    /// Deletes the ReplicaSets that are too old to be kept.
    async fn clean_up(&self) -> Result<(), Status> {
        let limit = self.deployment.at(&["spec", "revisionHistoryLimit"]).and_then(Value::as_i64);
        let Some(limit) = limit.filter(|limit| *limit != NO_LIMIT) else { return Ok(()) };
        let mut old: Vec<&Value> = self.old.iter().filter(|set| !is_going(set)).collect();
        old.sort_by_key(|set| revision(set));
        let surplus = old.len().saturating_sub(usize::try_from(limit).unwrap_or_default());
        let is_unused = |set: &&&Value| {
            let observed = int_at(set, &["status", "observedGeneration"]) >= int_at(set, &["metadata", "generation"]);
            replicas(set) == 0 && int_at(set, &["status", "replicas"]) == 0 && observed
        };
        for set in old[..surplus].iter().filter(is_unused) {
            self.client.delete(SETS, set, None).await?;
        }
        Ok(())
    }

    async fn write_counts(self) -> Result<Progress, Status> {
        let status = status::counted(self.seen(), self.now);
        self.write(status).await
    }

    async fn write_status(self) -> Result<Progress, Status> {
        let status = status::of_rollout(self.seen(), self.now);
        self.write(status).await
    }

    async fn write(self, status: Value) -> Result<Progress, Status> {
        // The stored object lacks the changes made meanwhile, so the one that was read is compared.
        let key = key_of(&self.deployment);
        let Some(stored) = self.client.get(DEPLOYMENTS, &key).await? else { return Ok(Progress::Done) };
        let version = |object: &Value| object.str_at(&["metadata", "resourceVersion"]).to_owned();
        if version(&stored) != version(&self.deployment) {
            return Ok(Progress::Failed);
        }
        let again = status::deadline(&self.deployment, &status, self.now);
        self.client.update_status(DEPLOYMENTS, &stored, status).await?;
        Ok(again.map_or(Progress::Done, Progress::After))
    }
}

/// Starts it.
pub(super) fn start(context: &ControllerContext) -> Running {
    let family = Family::new(DEPLOYMENTS, ("apps/v1", "Deployment"), SETS, without_managers);
    let deployments = Deployments { client: context.client("deployment-controller"), family };
    Box::pin(super::reconcile::run(Arc::clone(&context.registry), deployments))
}
