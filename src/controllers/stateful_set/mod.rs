//! StatefulSets: pods with stable numbers and their own volumes, created one after the other.
//!
//! Source: `pkg/controller/statefulset` of Kubernetes 1.37.

mod names;
mod claims;
mod plan;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use self::names::{TYPE, ordinal_of, pod_name};
use self::plan::{Act, ObservedStatefulSet};
use super::client::{Client, Kind, PODS, WHOLE, is_going, place};
use super::family::{self, Family};
use super::history::{self, POD_HASH};
use super::pods;
use super::queue::Progress;
use super::reconcile::Reconciler;
use super::workload::{ControllerContext, Running};
use crate::meta::Status;
use crate::object;
use crate::store::{ChangeEvent, Collection};
use crate::value::Value;

const SETS: Kind = Kind("apps", "statefulsets");
const CLAIMS: Kind = Kind("", "persistentvolumeclaims");
const POD_NAME: &str = "statefulset.kubernetes.io/pod-name";
const POD_INDEX: &str = "apps.kubernetes.io/pod-index";

struct StatefulSets {
    client: Client,
    family: Family,
}

impl Reconciler for StatefulSets {
    const TASK: &str = "keeping stateful sets";

    fn collections(&self) -> Vec<Collection> {
        vec![SETS.collection(), PODS.collection()]
    }

    fn note(&self, change: &ChangeEvent) -> Vec<String> {
        if CLAIMS.is(&change.collection) { self.note_claim(change) } else { self.family.note(change) }
    }

    fn forget(&self) {
        self.family.forget();
    }

    async fn reconcile(&self, key: &str) -> Result<Progress, Status> {
        let Some(set) = self.client.get(SETS, key).await? else { return Ok(Progress::Done) };
        let Some(selector) = family::selector(&set).filter(|_| !is_going(&set)) else { return Ok(Progress::Done) };
        let mut found = self.family.claimed(&self.client, &set, &selector).await?;
        found.retain(|pod| ordinal_of(&set, pod).is_some());
        let revisions = history::revisions(&self.client, TYPE, &set).await?;
        let Some(update) = revisions.last() else { return Ok(Progress::Done) };
        let current = set.str_at(&["status", "currentRevision"]);
        let current = revisions.iter().find(|it| it.str_at(&["metadata", "name"]) == current).unwrap_or(update);
        let names = [current, update].map(|revision| revision.str_at(&["metadata", "name"]));
        let pods = plan::by_ordinal(&set, &found);
        let seen = ObservedStatefulSet { set: &set, pods, current: names[0], update: names[1], now: self.client.now() };
        self.keep_claims(&seen).await?;
        self.keep_names(&seen).await?;
        let plan = plan::plan(&seen);
        let has_acted = self.carry_out_all(&set, &plan.acts, [current, update]).await;
        self.client.update_status(SETS, &set, plan::status_of(&seen)).await?;
        let has_acted = has_acted?;
        let limit = set.at(&["spec", "revisionHistoryLimit"]).and_then(Value::as_i64).unwrap_or(10);
        let live: Vec<&str> = found.iter().map(|pod| pod.str_at(&["metadata", "labels", POD_HASH])).collect();
        let live = [live, names.into()].concat();
        history::clean_up(&self.client, &revisions, limit, &live).await?;
        Ok(match plan.again {
            // There may be more to do at once.
            _ if has_acted => Progress::After(Duration::ZERO),
            Some(pause) => Progress::After(pause),
            None => Progress::Done,
        })
    }
}

impl StatefulSets {
    /// A pod may wait until the claim of an earlier one is gone.
    fn note_claim(&self, change: &ChangeEvent) -> Vec<String> {
        let Some((namespace, name)) = change.key.split_once('/').filter(|_| change.stored.is_none()) else {
            return Vec::new();
        };
        let keys = claims::sets_of_claim(name).map(|set| format!("{namespace}/{set}"));
        keys.filter(|key| self.family.has_owner(key)).collect()
    }

    /// Executes the actions one after the other; returns whether any of them could be done.
    async fn carry_out_all(&self, set: &Value, acts: &[Act], revisions: [&Value; 2]) -> Result<bool, Status> {
        let mut has_acted = false;
        for act in acts {
            has_acted |= match act {
                Act::Create { ordinal, of_update } => {
                    self.create(set, *ordinal, revisions[usize::from(*of_update)]).await?
                }
                Act::Delete(pod) => self.delete(set, pod).await?,
            };
        }
        Ok(has_acted)
    }

    /// Creates a pod with its claims, unless one of these still belongs to an earlier pod.
    async fn create(&self, set: &Value, ordinal: i64, revision: &Value) -> Result<bool, Status> {
        let pod = new_pod(set, revision, ordinal, self.family.reference(set));
        if claims::goes_with_pods(set) {
            for claim in self.claims_of(set, ordinal).await? {
                if claims::is_of_earlier_pod(&claim, &pod) {
                    return Ok(false);
                }
            }
        }
        let made = match self.make_claims(set, ordinal).await {
            Ok(()) => self.client.create(PODS, &pod).await,
            Err(status) => Err(status),
        };
        if made.as_ref().is_err_and(|status| status.reason == "AlreadyExists") {
            return made.map(|_| false);
        }
        self.tell(set, &pod, ["SuccessfulCreate", "FailedCreate"], "Create", made.as_ref().err());
        self.family.add(set, &made?);
        Ok(true)
    }

    async fn delete(&self, set: &Value, pod: &Value) -> Result<bool, Status> {
        let deleted = self.client.delete(PODS, pod, None).await;
        self.tell(set, pod, ["SuccessfulDelete", "FailedDelete"], "Delete", deleted.as_ref().err());
        deleted.map(|()| true)
    }

    /// Reports the outcome for a pod.
    fn tell(&self, set: &Value, pod: &Value, reasons: [&'static str; 2], verb: &str, failure: Option<&Status>) {
        let (pod, set_name) = (pod.str_at(&["metadata", "name"]), set.str_at(&["metadata", "name"]));
        let what = format!("{verb} Pod {pod} in StatefulSet {set_name}");
        match failure {
            None => self.client.tell_normal(set, reasons[0], format!("{what} successful")),
            Some(why) => self.client.tell_warning(set, reasons[1], format!("{what} failed error: {}", why.message)),
        }
    }

    /// The existing claims of a pod.
    async fn claims_of(&self, set: &Value, ordinal: i64) -> Result<Vec<Value>, Status> {
        let namespace = set.str_at(&["metadata", "namespace"]);
        let templates = set.items_at(&["spec", "volumeClaimTemplates"]).iter();
        let keys =
            templates.map(|template| format!("{namespace}/{}", claims::claim_name(set, template, ordinal)).into());
        self.client.get_all(CLAIMS, &keys.collect::<Vec<_>>(), WHOLE).await
    }

    /// Creates the claims that pods wait for, and sets the owners of claims that their policy requires.
    async fn keep_claims(&self, seen: &ObservedStatefulSet<'_>) -> Result<(), Status> {
        for (ordinal, pod) in &seen.pods {
            if pod.str_at(&["status", "phase"]) == "Pending" && !is_going(pod) {
                self.make_claims(seen.set, *ordinal).await?;
            }
            let claim_owner = claims::claim_owner(seen.set, seen.has_place(*ordinal));
            for claim in self.claims_of(seen.set, *ordinal).await? {
                if let Some(owners) = claims::owners_of_claim(seen.set, pod, &claim, claim_owner) {
                    self.give_owners(seen.set, pod, &claim, owners).await?;
                }
            }
        }
        Ok(())
    }

    /// Restores the name and number labels of the set's pods if the one with the name was removed.
    async fn keep_names(&self, seen: &ObservedStatefulSet<'_>) -> Result<(), Status> {
        for (ordinal, pod) in seen.pods.iter().filter(|(ordinal, pod)| seen.has_place(**ordinal) && !is_going(pod)) {
            let (namespace, name) = place(pod);
            if pod.str_at(&["metadata", "labels", POD_NAME]) == name {
                continue;
            }
            let labels = object! { POD_NAME => name, POD_INDEX => ordinal.to_string() };
            let metadata = object! { "uid" => pod.str_at(&["metadata", "uid"]), "labels" => labels };
            let kept = self.client.merge(PODS, namespace, name, &object! { "metadata" => metadata }).await;
            self.tell(seen.set, pod, ["SuccessfulUpdate", "FailedUpdate"], "Update", kept.as_ref().err());
            kept?;
        }
        Ok(())
    }

    async fn give_owners(&self, set: &Value, pod: &Value, claim: &Value, owners: Vec<Value>) -> Result<(), Status> {
        let (namespace, name) = place(claim);
        if claims::is_managed_by_others(set, pod, claim) {
            let message = format!(
                "PersistentVolumeClaim {name} has a conflicting OwnerReference that acts as a manging controller, the \
                 retention policy is ignored for this claim"
            );
            self.client.tell_warning(set, "ConflictingController", message);
        }
        let uid = claim.str_at(&["metadata", "uid"]);
        let patch = object! { "metadata" => object! { "uid" => uid, "ownerReferences" => owners } };
        self.client.merge(CLAIMS, namespace, name, &patch).await.map(drop)
    }

    /// Creates the missing claims of a pod.
    async fn make_claims(&self, set: &Value, ordinal: i64) -> Result<(), Status> {
        let (pod, set_name) = (pod_name(set, ordinal), set.str_at(&["metadata", "name"]));
        for template in set.items_at(&["spec", "volumeClaimTemplates"]) {
            let claim = claims::claim_of(set, template, ordinal);
            let (namespace, name) = place(&claim);
            match self.client.get(CLAIMS, &format!("{namespace}/{name}")).await? {
                Some(there) if is_going(&there) => {
                    return Err(Status::internal_error(&format!("pvc {name} is being deleted")));
                }
                Some(_) => continue,
                None => {}
            }
            match self.client.create(CLAIMS, &claim).await {
                Ok(_) => {
                    let message = format!("Create Claim {name} Pod {pod} in StatefulSet {set_name} success");
                    self.client.tell_normal(set, "SuccessfulCreate", message);
                }
                Err(mut status) => {
                    let what = format!("Create Claim {name} for Pod {pod} in StatefulSet {set_name}");
                    let message = format!("{what} failed error: {}", status.message);
                    self.client.tell_warning(set, "FailedCreate", message);
                    status.message = format!("failed to create PVC {name}: {}", status.message);
                    return Err(status);
                }
            }
        }
        Ok(())
    }
}

/// The pod of a number, of a revision.
fn new_pod(set: &Value, revision: &Value, ordinal: i64, reference: Value) -> Value {
    let mut pod = pods::of_template(&history::template_of(revision), set, reference);
    let name = pod_name(set, ordinal);
    let metadata = pod.make_object().entry("metadata").make_object();
    metadata.insert("name", Value::from(name.as_str()));
    let labels = metadata.entry("labels").make_object();
    labels.insert(POD_NAME, Value::from(name.as_str()));
    labels.insert(POD_INDEX, Value::String(ordinal.to_string()));
    labels.insert(POD_HASH, Value::from(revision.str_at(&["metadata", "name"])));
    let mut volumes = Vec::new();
    for template in set.items_at(&["spec", "volumeClaimTemplates"]) {
        let claim = object! { "claimName" => claims::claim_name(set, template, ordinal) };
        volumes.push(object! { "name" => template.str_at(&["metadata", "name"]), "persistentVolumeClaim" => claim });
    }
    let spec = pod.make_object().entry("spec").make_object();
    let own = spec.get("volumes").and_then(Value::as_array).unwrap_or_default();
    let claimed: HashSet<&str> = volumes.iter().map(|volume| volume.str_at(&["name"])).collect();
    let is_own = |volume: &&Value| !claimed.contains(volume.str_at(&["name"]));
    let all: Vec<Value> = volumes.iter().chain(own.iter().filter(is_own)).cloned().collect();
    if !all.is_empty() {
        spec.insert("volumes", Value::Array(all));
    }
    spec.insert("hostname", Value::String(name));
    let service = set.str_at(&["spec", "serviceName"]);
    if !service.is_empty() {
        spec.insert("subdomain", Value::from(service));
    }
    pod
}

/// Starts it.
pub(super) fn start(context: &ControllerContext) -> Running {
    let family = Family::new(SETS, TYPE, PODS, pods::without_programs);
    let sets = StatefulSets { client: context.client("statefulset-controller"), family };
    Box::pin(super::reconcile::run(Arc::clone(&context.registry), sets))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    fn read(text: &str) -> Value {
        yaml::decode(text.as_bytes()).expect("YAML")
    }

    #[test]
    fn a_pod_has_its_number_and_its_claims() {
        let set = read(
            "metadata: {name: s, namespace: d}\nspec: {serviceName: svc, volumeClaimTemplates: [{metadata: {name: data}}]}",
        );
        let revision = read("metadata: {name: r}\ndata: {spec: {template: {spec: {volumes: [{name: tmp}]}}}}");
        let pod = new_pod(&set, &revision, 3, object! {});
        let text = |path: &[&str]| pod.str_at(path).to_owned();
        assert_eq!((text(&["metadata", "name"]).as_str(), text(&["spec", "subdomain"]).as_str()), ("s-3", "svc"));
        let claim = &pod.items_at(&["spec", "volumes"])[0];
        assert_eq!(claim.str_at(&["persistentVolumeClaim", "claimName"]), "data-s-3");
        assert_eq!(ordinal_of(&set, &pod), Some(3));
        assert_eq!(ordinal_of(&set, &read("metadata: {name: other-3}")), None);
    }
}
