//! The ReplicaSet of the current template: it is created, or marked as the newest.

use super::figures::{self, DESIRED, MAX, replicas};
use super::sets::{HASH, REVISION, revision, without_hash};
use super::{DEPLOYMENTS, Rollout, SETS, status};
use crate::controllers::client::int_at;
use crate::controllers::conditions;
use crate::controllers::template_hash::template_hash;
use crate::meta::Status;
use crate::object;
use crate::value::{Map, Value};

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

impl Rollout<'_> {
    /// Creates the ReplicaSet of the current template, or marks the existing one as the newest.
    pub(super) async fn make_new(&mut self, is_rolling: bool) -> Result<(), Status> {
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

    /// Counts a name collision with another ReplicaSet, so that a different name is used.
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

    /// The ReplicaSet of the current template.
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

    /// Sets the newest revision on the new ReplicaSet, and the other settings of the Deployment.
    pub(super) async fn mark_new(&mut self) -> Result<(), Status> {
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

    /// Records the revision of the new ReplicaSet in the Deployment.
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
        // Through the status, so that the generation, which counts changed annotations, stays the same.
        self.deployment = self.client.write_status(DEPLOYMENTS, &marked, status).await?;
        Ok(())
    }
}

/// The annotations of a Deployment that its ReplicaSets get.
fn own_annotations(deployment: &Value) -> Map {
    let annotations = deployment.at(&["metadata", "annotations"]).and_then(Value::as_object);
    let mut annotations = annotations.cloned().unwrap_or_default();
    annotations.retain(|name, _| !OWN_ANNOTATIONS.contains(&name));
    annotations
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    #[test]
    fn sets_have_the_annotations_of_their_deployment_but_some() {
        let deployment =
            yaml::decode(format!("metadata: {{annotations: {{kept: a, {REVISION}: '3', {MAX}: '4'}}}}").as_bytes());
        let deployment = deployment.expect("YAML");
        assert_eq!(own_annotations(&deployment).keys().collect::<Vec<_>>(), ["kept"]);
    }
}
