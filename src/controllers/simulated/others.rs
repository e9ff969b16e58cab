//! Objects of kinds other than pods and nodes that have stages, built-in or custom.
//!
//! A kind is known by what is stored: the collection of a definition that comes later is found by its first object.

use std::sync::Arc;

use memchr::memmem;

use super::follow::Followed;
use super::stages::{Stage, StagedKind};
use super::template::TemplateContext;
use crate::controllers::client::Client;
use crate::controllers::queue::Progress;
use crate::controllers::reconcile::{self, Reconciler};
use crate::meta::Status;
use crate::object;
use crate::registry::Registry;
use crate::store::{ChangeEvent, Collection};
use crate::value::{Value, json};

struct Others {
    client: Client,
    kinds: Vec<Staged>,
}

/// A kind in a version, with its stages.
struct Staged {
    kind: StagedKind,
    /// The group that its objects are stored under: of a kind that is served in several groups, the first.
    group: String,
    /// A text that the bytes of each of its objects contain.
    mark: Vec<u8>,
    followed: Followed,
}

impl Others {
    /// The kind that is stored under a group, in each version that has stages.
    fn versions_of<'o>(&'o self, group: &'o str, kind: &'o str) -> impl Iterator<Item = &'o Staged> {
        self.kinds.iter().filter(move |staged| staged.group == group && staged.kind.kind == kind)
    }
}

/// The collection of a kind; `None` if it is not served yet.
async fn collection_of(client: &Client, kind: &StagedKind) -> Option<Collection> {
    let reference = object! { "apiVersion" => kind.api_version.as_str(), "kind" => kind.kind.as_str() };
    match client.target_of(&reference, "").await {
        Ok(found) => found.map(|target| target.resource.collection.clone()),
        Err(status) => {
            tracing::warn!(kind.kind, status.message, "a kind of stages can't be looked up");
            None
        }
    }
}

/// The combined progress of an object that is followed in two versions.
fn together(one: Progress, other: Progress) -> Progress {
    match (one, other) {
        (Progress::After(one), Progress::After(other)) => Progress::After(one.min(other)),
        (Progress::After(pause), _) | (_, Progress::After(pause)) => Progress::After(pause),
        _ => Progress::Done,
    }
}

/// A key has the collection of an object before it: `GROUP/PLURAL/KEY`.
impl Reconciler for Others {
    const TASK: &str = "following the stages of other kinds";

    fn collections(&self) -> Vec<Collection> {
        Vec::new()
    }

    async fn found_collections(&self) -> Vec<Collection> {
        let mut found = Vec::new();
        for staged in &self.kinds {
            let collection = collection_of(&self.client, &staged.kind).await;
            found.extend(collection.filter(|collection| !found.contains(collection)));
        }
        found
    }

    fn forget(&self) {
        self.kinds.iter().for_each(|staged| staged.followed.begin_anew());
    }

    fn note(&self, change: &ChangeEvent) -> Vec<String> {
        let (group, plural) = change.collection.names();
        let key = || format!("{group}/{plural}/{}", change.key);
        let of_group = || self.kinds.iter().filter(|staged| staged.group == group);
        let Some(stored) = &change.stored else {
            of_group().for_each(|staged| staged.followed.release(&key()));
            return Vec::new();
        };
        let has = |mark: &[u8]| memmem::find(&stored.bytes, mark).is_some();
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
        let mut progress = Progress::Done;
        for staged in self.versions_of(group, stored.str_at(&["kind"])) {
            let Some(object) = self.client.read_as(&staged.kind.api_version, &stored).await? else { continue };
            let context = TemplateContext { now: self.client.now(), addresses: None };
            let came = staged.followed.follow(&self.client, key, &object, &context).await?;
            progress = together(progress, came.unwrap_or(Progress::Done));
        }
        Ok(progress)
    }
}

impl Others {
    async fn of(client: Client, stages: Vec<Stage>) -> Self {
        let mut kinds: Vec<(StagedKind, Vec<Stage>)> = Vec::new();
        for stage in stages {
            match kinds.iter_mut().find(|(kind, _)| *kind == stage.of) {
                Some((_, stages)) => stages.push(stage),
                None => kinds.push((stage.of.clone(), vec![stage])),
            }
        }
        let mut all = Vec::with_capacity(kinds.len());
        for (kind, stages) in kinds {
            // What is defined later is stored under its own group.
            let collection = collection_of(&client, &kind).await;
            let group = collection.map_or_else(|| kind.group().to_owned(), |found| found.names().0.to_owned());
            let mark = format!("\"kind\":{}", json::encode_to_string(&Value::from(kind.kind.as_str()))).into_bytes();
            let followed = Followed::new(stages, client.now());
            all.push(Staged { kind, group, mark, followed });
        }
        Others { client, kinds: all }
    }
}

/// Follows the stages of other kinds, if there are any.
pub(super) async fn run(registry: Arc<Registry>, client: Client, stages: Vec<Stage>) {
    if !stages.is_empty() {
        let others = Others::of(client, stages).await;
        reconcile::run(registry, others).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controllers::client::Kind;
    use crate::controllers::recorder::Recorder;
    use crate::registry::fixture;
    use crate::store::Encoded;
    use crate::value::yaml;

    fn read(text: &str) -> Value {
        yaml::decode(text.as_bytes()).expect("YAML")
    }

    /// Stages of all objects of kinds, each of which is named as `GROUP/VERSION KIND`, and what its patch makes of them.
    async fn others(stages: &[(&str, &str)]) -> Others {
        let registry = fixture::registry().await;
        let client = Client::new(&registry, &Recorder::start(&registry), "kubelet");
        let stage = |(kind, template): &(&str, &str)| {
            let (group, kind) = kind.split_once(' ').expect("a group and a kind");
            let text = format!(
                "{{apiVersion: kwok.x-k8s.io/v1alpha1, kind: Stage, spec: {{resourceRef: {{apiGroup: {group}, kind: {kind}}}, \
                 selector: {{}}, steps: [{{patch: {{template: '{template}'}}}}]}}}}"
            );
            Stage::read(&read(&text)).expect("it is understood").expect("it is a stage")
        };
        let stages = stages.iter().map(stage).collect();
        Others::of(client, stages).await
    }

    #[tokio::test]
    async fn a_kind_of_several_groups_is_followed_where_it_is_stored() {
        const EVENTS: Kind = Kind("", "events");
        let others = others(&[("events.k8s.io/v1 Event", "metadata: {labels: {l: seen}}")]).await;
        let event = "{apiVersion: v1, kind: Event, metadata: {name: e, namespace: default}, involvedObject: {namespace: default}}";
        others.client.create(EVENTS, &read(event)).await.expect("it is made");
        assert_eq!(others.found_collections().await, [EVENTS.collection()]);
        let stored = others.client.registry.storage.get(&EVENTS.collection(), "default/e").await.expect("it is read");
        let stored = stored.expect("it is there");
        let (key, uid, revision) = (Arc::clone(&stored.key), Arc::clone(&stored.uid), stored.revision);
        let change = ChangeEvent { collection: EVENTS.collection(), key, uid, revision, stored: Some(stored) };
        let keys = others.note(&change);
        assert_eq!(keys, ["/events/default/e"]);
        others.reconcile(&keys[0]).await.expect("it is followed");
        let event = others.client.get(EVENTS, "default/e").await.expect("it is read").expect("it is there");
        assert_eq!(event.str_at(&["metadata", "labels", "l"]), "seen");
    }

    #[tokio::test]
    async fn stages_of_one_kind_are_followed_in_the_version_of_each() {
        const SCALERS: Kind = Kind("autoscaling", "horizontalpodautoscalers");
        let others = others(&[
            ("autoscaling/v1 HorizontalPodAutoscaler", "spec: {targetCPUUtilizationPercentage: 7}"),
            ("autoscaling/v2 HorizontalPodAutoscaler", "spec: {behavior: {scaleUp: {selectPolicy: Disabled}}}"),
        ])
        .await;
        let scaler = "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: h, namespace: default}, spec: \
                      {maxReplicas: 2, scaleTargetRef: {kind: Deployment, name: d, apiVersion: apps/v1}}}";
        others.client.create(SCALERS, &read(scaler)).await.expect("it is made");
        others.reconcile("autoscaling/horizontalpodautoscalers/default/h").await.expect("it is followed");
        let scaler = others.client.get(SCALERS, "default/h").await.expect("it is read").expect("it is there");
        let metric = &scaler.items_at(&["spec", "metrics"])[0];
        assert_eq!(metric.at(&["resource", "target", "averageUtilization"]).and_then(Value::as_i64), Some(7));
        assert_eq!(scaler.str_at(&["spec", "behavior", "scaleUp", "selectPolicy"]), "Disabled");
    }

    #[tokio::test]
    async fn a_kind_that_is_defined_later_is_found_at_the_next_beginning() {
        let others = others(&[("example.com/v1 Boat", "spec: {}")]).await;
        assert_eq!(others.found_collections().await, []);
        let definition = "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: boats.example.com}, spec: \
                          {group: example.com, scope: Namespaced, names: {plural: boats, singular: boat, kind: Boat, listKind: BoatList}, \
                          versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}, status: \
                          {acceptedNames: {plural: boats, singular: boat, kind: Boat, listKind: BoatList}, conditions: [{type: \
                          NamesAccepted, status: 'True'}, {type: Established, status: 'True'}]}}";
        let (definitions, named) = (others.client.registry.definitions.collection(), ("boats.example.com", "u"));
        fixture::store(&others.client.registry.storage, &definitions, named, Encoded::of(&read(definition))).await;
        assert_eq!(others.found_collections().await, [Collection::new("example.com", "boats")]);
    }
}
