//! Deployments: ReplicaSets for each template that there was, of which the newest takes over at the pace of the strategy.
//!
//! Source: `pkg/controller/deployment` of Kubernetes 1.37.

mod figures;
mod status;

use std::sync::Arc;

use jiff::Timestamp;

use self::figures::{DESIRED, MAX, Wanted, annotated, replicas};
use self::status::ObservedDeployment;
use super::client::{Client, Kind, int_at, is_going, key_of};
use super::conditions;
use super::family::{self, Family};
use super::queue::Progress;
use super::reconcile::Reconciler;
use super::template_hash::template_hash;
use super::workload::{Means, Running};
use crate::meta::Status;
use crate::object;
use crate::store::{ChangeEvent, Collection};
use crate::value::{Map, Value};

const DEPLOYMENTS: Kind = Kind("apps", "deployments");
const SETS: Kind = Kind("apps", "replicasets");
const HASH: &str = "pod-template-hash";
const REVISION: &str = "deployment.kubernetes.io/revision";
const HISTORY: &str = "deployment.kubernetes.io/revision-history";
/// Annotations of a Deployment that its ReplicaSets do not get.
const OWN_ANNOTATIONS: [&str; 6] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    HISTORY,
    DESIRED,
    MAX,
    "deprecated.deployment.rollback.rollback.to",
];
/// The limit of old ReplicaSets that stands for no limit.
const NO_LIMIT: i64 = i32::MAX as i64;

struct Deployments {
    client: Client,
    family: Family,
}

/// A Deployment at work: itself, and its ReplicaSets as they are made and changed.
struct Rollout<'r> {
    client: &'r Client,
    family: &'r Family,
    deployment: Value,
    wanted: Wanted,
    new: Option<Value>,
    /// The oldest first.
    old: Vec<Value>,
    /// How often the name of its ReplicaSet was taken.
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
            // The change brings it up again.
            return self.client.update_status(DEPLOYMENTS, &deployment, status).await.map(|()| Progress::Done);
        }
        let (new, old) = told_apart(&deployment, sets);
        let wanted = Wanted::of(&deployment);
        let collisions = deployment.at(&["status", "collisionCount"]).and_then(Value::as_i64);
        let (client, family) = (&self.client, &self.family);
        Rollout { client, family, deployment, wanted, new, old, collisions, now }.run().await
    }
}

/// The ReplicaSet of the present template, and the others, the oldest first.
fn told_apart(deployment: &Value, mut sets: Vec<Value>) -> (Option<Value>, Vec<Value>) {
    sets.sort_by_cached_key(|set| {
        let metadata = |field: &str| set.str_at(&["metadata", field]).to_owned();
        (metadata("creationTimestamp"), metadata("name"))
    });
    let template = without_hash(deployment.at(&["spec", "template"]));
    let at = sets.iter().position(|set| without_hash(set.at(&["spec", "template"])) == template);
    let new = at.map(|at| sets.remove(at));
    (new, sets)
}

/// A template without the label that tells it from others.
fn without_hash(template: Option<&Value>) -> Value {
    let mut template = template.cloned().unwrap_or_default();
    if let Some(Value::Object(labels)) = template.at_mut(&["metadata", "labels"]) {
        labels.remove(HASH);
    }
    template
}

fn revision(object: &Value) -> i64 {
    annotated(object, REVISION).unwrap_or_default()
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

    /// Whether the Deployment has other replicas than its active ReplicaSets know of.
    fn was_scaled(&self) -> bool {
        let mut active = self.old.iter().chain(&self.new).filter(|set| replicas(set) > 0);
        active.any(|set| annotated(set, DESIRED).is_some_and(|desired| desired != self.wanted.replicas))
    }

    /// A rolling update: more of the new ones first, then less of the old ones.
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

    /// All of the old ones go before the first of the new ones comes.
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

    /// Makes the ReplicaSet of the present template, or marks the one that is there as the newest.
    async fn make_new(&mut self, is_rolling: bool) -> Result<(), Status> {
        if self.new.is_some() {
            return self.mark_new().await;
        }
        let all = figures::sum(&self.old, replicas);
        let size = figures::of_new(self.wanted, is_rolling, 0, all);
        let set = self.new_set(size);
        let name = set.str_at(&["metadata", "name"]).to_owned();
        let said = match self.client.create(SETS, &set).await {
            Ok(made) => {
                self.family.add(&self.deployment, &made);
                self.new = Some(made);
                if size > 0 {
                    let message = format!("Scaled up replica set {name} from 0 to {size}");
                    self.client.tell_normal(&self.deployment, "ScalingReplicaSet", message);
                }
                ("True", "NewReplicaSetCreated", format!("Created new replica set {name:?}"))
            }
            Err(status) if status.is_already_exists() => return self.count_collision(status, &name).await,
            Err(status) => {
                let message = format!("Failed to create new replica set {name:?}: {}", status.message);
                self.client.tell_warning(&self.deployment, "ReplicaSetCreateError", message);
                let said = ("False", "ReplicaSetCreateError", status.message.as_str());
                if let Some(told) = status::said_of_new(&self.deployment, said, self.now) {
                    self.client.update_status(DEPLOYMENTS, &self.deployment, told).await?;
                }
                return Err(status);
            }
        };
        let said = (said.0, said.1, said.2.as_str());
        if let Some(told) = status::said_of_new(&self.deployment, said, self.now) {
            self.deployment.make_object().insert("status", told);
        }
        self.set_revision().await
    }

    /// Counts that the name of the ReplicaSet belongs to another one, so that it gets another name.
    async fn count_collision(&mut self, refused: Status, name: &str) -> Result<(), Status> {
        let key = match self.deployment.str_at(&["metadata", "namespace"]) {
            "" => name.to_owned(),
            namespace => format!("{namespace}/{name}"),
        };
        let uid = self.deployment.str_at(&["metadata", "uid"]);
        let own = self.client.get(SETS, &key).await?.filter(|set| {
            let mut owners = set.items_at(&["metadata", "ownerReferences"]).iter();
            owners.any(|owner| owner.str_at(&["uid"]) == uid)
        });
        if let Some(own) = own.filter(|own| {
            without_hash(own.at(&["spec", "template"])) == without_hash(self.deployment.at(&["spec", "template"]))
        }) {
            self.family.add(&self.deployment, &own);
            return Err(refused);
        }
        let mut status = self.deployment.get("status").cloned().unwrap_or_default();
        let count = self.collisions.unwrap_or_default() + 1;
        status.make_object().insert("collisionCount", Value::Int(count));
        self.client.update_status(DEPLOYMENTS, &self.deployment, status).await?;
        Err(refused)
    }

    /// The ReplicaSet of the present template.
    fn new_set(&self, size: i64) -> Value {
        let deployment = &self.deployment;
        let mut template = deployment.at(&["spec", "template"]).cloned().unwrap_or_default();
        let hash = template_hash(&template, self.collisions);
        let labels = template.make_object().entry("metadata").make_object().entry("labels").make_object();
        labels.insert(HASH, Value::from(hash.as_str()));
        let labels = labels.clone();
        let mut selector = deployment.at(&["spec", "selector"]).cloned().unwrap_or_default();
        selector.make_object().entry("matchLabels").make_object().insert(HASH, Value::from(hash.as_str()));
        let mut annotations = own_annotations(deployment);
        annotations.insert(REVISION, Value::String((self.newest_revision().saturating_add(1)).to_string()));
        annotations.insert(DESIRED, Value::String(self.wanted.replicas.to_string()));
        annotations.insert(MAX, Value::String(self.wanted.max().to_string()));
        object! {
            "apiVersion" => "apps/v1",
            "kind" => "ReplicaSet",
            "metadata" => object! {
                "name" => format!("{}-{hash}", deployment.str_at(&["metadata", "name"])),
                "namespace" => deployment.str_at(&["metadata", "namespace"]),
                "labels" => labels,
                "annotations" => annotations,
                "ownerReferences" => vec![self.family.reference(deployment)],
            },
            "spec" => object! {
                "replicas" => size,
                "minReadySeconds" => int_at(deployment, &["spec", "minReadySeconds"]),
                "selector" => selector,
                "template" => template,
            },
        }
    }

    /// The newest revision of the old ReplicaSets.
    fn newest_revision(&self) -> i64 {
        self.old.iter().map(revision).max().unwrap_or_default()
    }

    /// Gives the new ReplicaSet the newest revision, and what else the Deployment says of it.
    async fn mark_new(&mut self) -> Result<(), Status> {
        let Some(new) = &self.new else { return Ok(()) };
        let mut marked = new.clone();
        let before = revision(new);
        let newest = (self.newest_revision().saturating_add(1)).max(before);
        let annotations = marked.make_object().entry("metadata").make_object().entry("annotations").make_object();
        for (name, value) in own_annotations(&self.deployment) {
            annotations.insert(name, value);
        }
        if before < newest {
            annotations.insert(REVISION, Value::String(newest.to_string()));
            if before > 0 {
                let history = annotations.get(HISTORY).and_then(Value::as_str).unwrap_or_default();
                let separator = if history.is_empty() { "" } else { "," };
                let history = format!("{history}{separator}{before}");
                annotations.insert(HISTORY, Value::String(history));
            }
        }
        let seconds = int_at(&self.deployment, &["spec", "minReadySeconds"]);
        if int_at(new, &["spec", "minReadySeconds"]) != seconds {
            marked.make_object().entry("spec").make_object().insert("minReadySeconds", Value::Int(seconds));
        }
        if marked != *new {
            self.new = Some(self.client.update(SETS, &marked).await?);
        }
        if conditions::find(conditions::of(&self.deployment), "Progressing").is_none() {
            let name = marked.str_at(&["metadata", "name"]);
            let message = format!("Found new replica set {name:?}");
            let said = ("True", "FoundNewReplicaSet", message.as_str());
            if let Some(told) = status::said_of_new(&self.deployment, said, self.now) {
                self.deployment.make_object().insert("status", told);
            }
        }
        self.set_revision().await
    }

    /// Notes the revision of the new ReplicaSet in the Deployment.
    async fn set_revision(&mut self) -> Result<(), Status> {
        let Some(new) = &self.new else { return Ok(()) };
        let revision = new.str_at(&["metadata", "annotations", REVISION]);
        if revision.is_empty() || self.deployment.str_at(&["metadata", "annotations", REVISION]) == revision {
            return Ok(());
        }
        let status = self.deployment.get("status").cloned().unwrap_or_default();
        let mut marked = self.deployment.clone();
        let annotations = marked.make_object().entry("metadata").make_object().entry("annotations").make_object();
        annotations.insert(REVISION, Value::from(revision));
        // By way of the status, so that the generation, which counts changed annotations, stays as it is.
        self.deployment = self.client.write_status(DEPLOYMENTS, &marked, status).await?;
        Ok(())
    }

    /// Spreads other replicas over the ReplicaSets that are there.
    async fn scale(&mut self) -> Result<(), Status> {
        let is_active = |set: &&Value| replicas(set) > 0;
        let active = self.old.iter().chain(&self.new).filter(is_active).count();
        let is_saturated = self.new.as_ref().is_some_and(|new| {
            let desired = annotated(new, DESIRED).unwrap_or_default();
            [replicas(new), desired, figures::available(new)].iter().all(|count| *count == self.wanted.replicas)
        });
        let sizes: Vec<i64> = self.old.iter().map(replicas).collect();
        if active <= 1 {
            return self.scale_only(sizes).await;
        }
        if is_saturated {
            let none = vec![0; sizes.len()];
            return self.scale_old(&none).await.map(drop);
        }
        if self.deployment.str_at(&["spec", "strategy", "type"]) != "RollingUpdate" {
            return Ok(());
        }
        let sets: Vec<Value> = self.old.iter().chain(&self.new).filter(is_active).cloned().collect();
        let total = int_at(&self.deployment, &["status", "replicas"]);
        let scaled = figures::in_proportion(self.wanted, total, &sets);
        let size_of = |set: &Value| {
            let at = sets.iter().position(|known| key_of(known) == key_of(set));
            at.map_or_else(|| replicas(set), |at| scaled[at])
        };
        let old: Vec<i64> = self.old.iter().map(size_of).collect();
        let new = self.new.as_ref().map(size_of);
        self.scale_old(&old).await?;
        match new {
            Some(size) => self.scale_new(size).await.map(drop),
            None => Ok(()),
        }
    }

    /// Gives all replicas to the one ReplicaSet that is active, or that would be.
    async fn scale_only(&mut self, mut sizes: Vec<i64>) -> Result<(), Status> {
        let wanted = self.wanted.replicas;
        let active = self.old.iter().position(|set| replicas(set) > 0);
        match (active, &self.new) {
            (Some(at), _) => sizes[at] = wanted,
            (None, Some(_)) => return self.scale_new(wanted).await.map(drop),
            (None, None) => {
                if let Some(latest) = sizes.last_mut() {
                    *latest = wanted;
                }
            }
        }
        self.scale_old(&sizes).await.map(drop)
    }

    async fn scale_new(&mut self, size: i64) -> Result<bool, Status> {
        let Some(new) = &self.new else { return Ok(false) };
        let (scaled, changed) = self.scale_set(new, size).await?;
        self.new = Some(scaled);
        Ok(changed)
    }

    /// Gives the old ReplicaSets their sizes, one for each; tells whether any has another one now.
    async fn scale_old(&mut self, sizes: &[i64]) -> Result<bool, Status> {
        let mut any = false;
        for (at, size) in sizes.iter().enumerate() {
            if replicas(&self.old[at]) == 0 && *size == 0 {
                continue;
            }
            let (scaled, changed) = self.scale_set(&self.old[at], *size).await?;
            self.old[at] = scaled;
            any |= changed;
        }
        Ok(any)
    }

    /// Gives a ReplicaSet a size, and notes what it is a part of.
    async fn scale_set(&self, set: &Value, size: i64) -> Result<(Value, bool), Status> {
        let before = replicas(set);
        let known = (annotated(set, DESIRED), annotated(set, MAX));
        let noted = known == (Some(self.wanted.replicas), Some(self.wanted.max()));
        if before == size && noted {
            return Ok((set.clone(), false));
        }
        let mut scaled = set.clone();
        scaled.make_object().entry("spec").make_object().insert("replicas", Value::Int(size));
        let annotations = scaled.make_object().entry("metadata").make_object().entry("annotations").make_object();
        annotations.insert(DESIRED, Value::String(self.wanted.replicas.to_string()));
        annotations.insert(MAX, Value::String(self.wanted.max().to_string()));
        let scaled = self.client.update(SETS, &scaled).await?;
        if before != size {
            let direction = if before < size { "up" } else { "down" };
            let name = scaled.str_at(&["metadata", "name"]);
            let message = format!("Scaled {direction} replica set {name} from {before} to {size}");
            self.client.tell_normal(&self.deployment, "ScalingReplicaSet", message);
        }
        Ok((scaled, before != size))
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
        // What is stored has not what was said meanwhile: compared is what was read.
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

/// The annotations of a Deployment that its ReplicaSets get.
fn own_annotations(deployment: &Value) -> Map {
    let annotations = deployment.at(&["metadata", "annotations"]).and_then(Value::as_object);
    let mut annotations = annotations.cloned().unwrap_or_default();
    annotations.retain(|name, _| !OWN_ANNOTATIONS.contains(&name));
    annotations
}

/// Starts it.
pub(super) fn start(means: &Means) -> Running {
    let family = Family::new(DEPLOYMENTS, ("apps/v1", "Deployment"), SETS);
    let deployments = Deployments { client: means.client("deployment-controller"), family };
    Box::pin(super::reconcile::run(Arc::clone(&means.registry), deployments))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    fn read(text: &str) -> Value {
        yaml::decode(text.as_bytes()).expect("YAML")
    }

    #[test]
    fn the_new_set_is_the_one_with_the_same_template() {
        let template = |image: &str, hash: &str| {
            format!("{{metadata: {{labels: {{a: b{hash}}}}}, spec: {{containers: [{{image: {image}}}]}}}}")
        };
        let set = |name: &str, created: i64, image: &str| {
            let template = template(image, &format!(", {HASH}: x"));
            read(&format!("metadata: {{name: {name}, creationTimestamp: '{created}'}}\nspec: {{template: {template}}}"))
        };
        let deployment = read(&format!("spec: {{template: {}}}", template("two", "")));
        let sets = vec![set("three", 3, "three"), set("two", 2, "two"), set("one", 1, "one")];
        let (new, old) = told_apart(&deployment, sets);
        let names: Vec<&str> = new.iter().chain(&old).map(|set| set.str_at(&["metadata", "name"])).collect();
        assert_eq!(names, ["two", "one", "three"]);
        let (new, old) = told_apart(&deployment, vec![set("one", 1, "one")]);
        assert!(new.is_none() && old.len() == 1);
    }

    #[test]
    fn sets_have_the_annotations_of_their_deployment_but_some() {
        let deployment = read(&format!("metadata: {{annotations: {{kept: a, {REVISION}: '3', {MAX}: '4'}}}}"));
        assert_eq!(own_annotations(&deployment).keys().collect::<Vec<_>>(), ["kept"]);
    }
}
