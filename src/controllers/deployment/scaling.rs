//! The sizes of a Deployment's ReplicaSets.

use super::figures::{self, DESIRED, MAX, annotated, replicas};
use super::{Rollout, SETS};
use crate::controllers::client::{int_at, key_of};
use crate::meta::Status;
use crate::value::Value;

impl Rollout<'_> {
    /// Distributes a changed number of replicas over the existing ReplicaSets.
    pub(super) async fn scale(&mut self) -> Result<(), Status> {
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

    /// Gives all replicas to the only active ReplicaSet, or to the one that would be.
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

    pub(super) async fn scale_new(&mut self, size: i64) -> Result<bool, Status> {
        let Some(new) = &self.new else { return Ok(false) };
        let (scaled, changed) = self.scale_set(new, size).await?;
        self.new = Some(scaled);
        Ok(changed)
    }

    /// Sets the sizes of the old ReplicaSets, one for each; returns whether any of them changed.
    pub(super) async fn scale_old(&mut self, sizes: &[i64]) -> Result<bool, Status> {
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

    /// Sets the size of a ReplicaSet, and records the total that it is a part of.
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
}
