//! Objects of other kinds than pods and nodes that stages are for, whatever serves the kind.
//!
//! A kind is known by what is stored: the collection of a definition that comes later is found by its first object.

use std::sync::Arc;

use super::follow::Followed;
use super::stages::{KindOfStage, Stage};
use super::template::Context;
use crate::controllers::client::Client;
use crate::controllers::queue::Progress;
use crate::controllers::reconcile::{self, Reconciler};
use crate::meta::Status;
use crate::object;
use crate::registry::Registry;
use crate::store::{Collection, Entry};
use crate::value::{Value, json};

struct Others {
    client: Client,
    kinds: Vec<Staged>,
    /// The collections that are there at the start.
    collections: Vec<Collection>,
}

/// A kind with its stages.
struct Staged {
    kind: KindOfStage,
    /// What the bytes of each of its objects contain.
    mark: Vec<u8>,
    followed: Followed,
}

impl Others {
    fn kind_of(&self, group: &str, kind: &str) -> Option<&Staged> {
        self.kinds.iter().find(|staged| staged.kind.group() == group && staged.kind.kind == kind)
    }
}

/// A key has the collection of an object before it: `GROUP/PLURAL/KEY`.
impl Reconciler for Others {
    const TASK: &str = "following the stages of other kinds";

    fn collections(&self) -> Vec<Collection> {
        self.collections.clone()
    }

    fn note(&self, change: &Entry) -> Vec<String> {
        let (group, plural) = change.collection.names();
        let key = || format!("{group}/{plural}/{}", change.key);
        let of_group = || self.kinds.iter().filter(|staged| staged.kind.group() == group);
        let Some(stored) = &change.stored else {
            of_group().for_each(|staged| staged.followed.release(&key()));
            return Vec::new();
        };
        let has = |mark: &[u8]| stored.bytes.windows(mark.len()).any(|window| window == mark);
        if of_group().any(|staged| has(&staged.mark)) { vec![key()] } else { Vec::new() }
    }

    async fn reconcile(&self, key: &str) -> Result<Progress, Status> {
        let mut parts = key.splitn(3, '/');
        let [group, plural, name] = [(); 3].map(|()| parts.next().unwrap_or_default());
        let storage = &self.client.registry.storage;
        let stored = storage.get(&Collection::new(group, plural), name).await;
        let Some(stored) = stored.map_err(|error| Status::internal_error(&error.to_string()))? else {
            return Ok(Progress::Done);
        };
        let stored = json::decode(&stored.bytes).map_err(|error| Status::internal_error(&error.to_string()))?;
        let Some(staged) = self.kind_of(group, stored.str_at(&["kind"])) else { return Ok(Progress::Done) };
        let Some(object) = self.client.read_as(&staged.kind.api_version, &stored).await? else {
            return Ok(Progress::Done);
        };
        let context = Context { now: self.client.now(), addresses: None };
        let progress = staged.followed.follow(&self.client, key, &object, &context).await?;
        Ok(progress.unwrap_or(Progress::Done))
    }
}

/// Follows the stages of other kinds, if there are any.
pub(super) async fn run(registry: Arc<Registry>, client: Client, stages: Vec<Stage>) {
    let mut kinds: Vec<(KindOfStage, Vec<Stage>)> = Vec::new();
    for stage in stages {
        let is_same = |kind: &KindOfStage| kind.group() == stage.of.group() && kind.kind == stage.of.kind;
        match kinds.iter_mut().find(|(kind, _)| is_same(kind)) {
            Some((_, stages)) => stages.push(stage),
            None => kinds.push((stage.of.clone(), vec![stage])),
        }
    }
    if kinds.is_empty() {
        return;
    }
    let mut collections = Vec::new();
    for (kind, _) in &kinds {
        let reference = object! { "apiVersion" => kind.api_version.as_str(), "kind" => kind.kind.as_str() };
        match client.target_of(&reference, "").await {
            Ok(found) => collections.extend(found.map(|target| target.resource.collection.clone())),
            Err(status) => tracing::warn!(kind.kind, status.message, "a kind of stages can't be looked up"),
        }
    }
    let staged = |(kind, stages): (KindOfStage, Vec<Stage>)| {
        let mark = format!("\"kind\":{}", json::encode_to_string(&Value::from(kind.kind.as_str()))).into_bytes();
        Staged { kind, mark, followed: Followed::new(stages) }
    };
    let kinds = kinds.into_iter().map(staged).collect();
    reconcile::run(registry, Others { client, kinds, collections }).await;
}
