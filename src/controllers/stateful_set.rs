//! StatefulSets: pods with a number each, which they keep, with volumes of their own, one after the other.
//!
//! DIFFERS: `maxUnavailable` is one, whatever it says.
//!
//! Source: `pkg/controller/statefulset` of Kubernetes 1.37.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::client::{Client, Kind, PODS, int_at, is_going, place, sooner};
use super::family::{self, Family};
use super::history::{self, POD_HASH};
use super::pods::{self, Availability};
use super::queue::Progress;
use super::reconcile::Reconciler;
use super::workload::{Means, Running};
use crate::meta::Status;
use crate::object;
use crate::store::{Collection, Entry};
use crate::value::Value;

const SETS: Kind = Kind("apps", "statefulsets");
const CLAIMS: Kind = Kind("", "persistentvolumeclaims");
const TYPE: (&str, &str) = ("apps/v1", "StatefulSet");
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

    fn note(&self, change: &Entry) -> Vec<String> {
        self.family.note(change)
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
        let now = self.client.now();
        let seen = Seen { set: &set, pods: by_ordinal(&set, &found), current: names[0], update: names[1], now };
        let step = next(&seen);
        if let Some(act) = &step.act {
            self.carry_out(&set, act, [current, update]).await?;
        }
        self.client.update_status(SETS, &set, status_of(&seen)).await?;
        if step.act.is_none() {
            self.retain_claims(&seen).await?;
        }
        let limit = set.at(&["spec", "revisionHistoryLimit"]).and_then(Value::as_i64).unwrap_or(10);
        let live: Vec<&str> = found.iter().map(|pod| pod.str_at(&["metadata", "labels", POD_HASH])).collect();
        let live = [live, names.into()].concat();
        history::clean_up(&self.client, &revisions, limit, &live).await?;
        Ok(match (&step.act, step.again) {
            // There may be more to do at once.
            (Some(_), _) => Progress::After(Duration::ZERO),
            (None, Some(pause)) => Progress::After(pause),
            (None, None) => Progress::Done,
        })
    }
}

impl StatefulSets {
    async fn carry_out(&self, set: &Value, act: &Act, [current, update]: [&Value; 2]) -> Result<(), Status> {
        match act {
            Act::Create { ordinal, of_update } => {
                self.make_claims(set, *ordinal).await?;
                let revision = if *of_update { update } else { current };
                let pod = new_pod(set, revision, *ordinal, self.family.reference(set));
                let (name, kind) = (pod.str_at(&["metadata", "name"]), set.str_at(&["metadata", "name"]));
                match self.client.create(PODS, &pod).await {
                    Ok(made) => {
                        self.family.add(set, &made);
                        let message = format!("create Pod {name} in StatefulSet {kind} successful");
                        self.client.tell_normal(set, "SuccessfulCreate", message);
                        Ok(())
                    }
                    Err(status) => {
                        let why = &status.message;
                        let message = format!("create Pod {name} in StatefulSet {kind} failed error: {why}");
                        self.client.tell_warning(set, "FailedCreate", message);
                        Err(status)
                    }
                }
            }
            Act::Delete(pod) => {
                let (name, kind) = (pod.str_at(&["metadata", "name"]), set.str_at(&["metadata", "name"]));
                self.client.delete(PODS, pod, None).await?;
                let message = format!("delete Pod {name} in StatefulSet {kind} successful");
                self.client.tell_normal(set, "SuccessfulDelete", message);
                Ok(())
            }
        }
    }

    /// Does with the claims what the policy says: those of a set that is deleted go with it, those of pods that a smaller set no
    /// longer has go after them.
    async fn retain_claims(&self, seen: &Seen<'_>) -> Result<(), Status> {
        let deletes = |when: &str| seen.set.str_at(&["spec", "persistentVolumeClaimRetentionPolicy", when]) == "Delete";
        if !deletes("whenDeleted") && !deletes("whenScaled") {
            return Ok(());
        }
        let (namespace, name) = place(seen.set);
        let infix = format!("-{name}-");
        for claim in self.client.list(CLAIMS, namespace, |stored| stored.key.contains(&infix)).await? {
            let Some(ordinal) = claim_ordinal(seen.set, &claim).filter(|_| !is_going(&claim)) else { continue };
            let is_surplus = !(seen.first()..seen.end()).contains(&ordinal) && !seen.pods.contains_key(&ordinal);
            if is_surplus && deletes("whenScaled") {
                self.client.delete(CLAIMS, &claim, None).await?;
            } else if let Some(owners) = owners_of_claim(seen.set, &claim, deletes("whenDeleted")) {
                let uid = claim.str_at(&["metadata", "uid"]);
                let patch = object! { "metadata" => object! { "uid" => uid, "ownerReferences" => owners } };
                self.client.merge(CLAIMS, namespace, claim.str_at(&["metadata", "name"]), &patch).await?;
            }
        }
        Ok(())
    }

    /// Makes the claims of a pod that are not there.
    async fn make_claims(&self, set: &Value, ordinal: i64) -> Result<(), Status> {
        for template in set.items_at(&["spec", "volumeClaimTemplates"]) {
            let claim = claim_of(set, template, ordinal);
            let (namespace, name) = place(&claim);
            if self.client.get(CLAIMS, &format!("{namespace}/{name}")).await?.is_some() {
                continue;
            }
            self.client.create(CLAIMS, &claim).await?;
            let (pod, set_name) = (pod_name(set, ordinal), set.str_at(&["metadata", "name"]));
            let message = format!("create Claim {name} Pod {pod} in StatefulSet {set_name} success");
            self.client.tell_normal(set, "SuccessfulCreate", message);
        }
        Ok(())
    }
}

fn pod_name(set: &Value, ordinal: i64) -> String {
    format!("{}-{ordinal}", set.str_at(&["metadata", "name"]))
}

/// The number of a pod of this set.
fn ordinal_of(set: &Value, pod: &Value) -> Option<i64> {
    let (parent, ordinal) = pod.str_at(&["metadata", "name"]).rsplit_once('-')?;
    ordinal.parse().ok().filter(|_| parent == set.str_at(&["metadata", "name"]))
}

fn by_ordinal<'p>(set: &Value, pods: &'p [Value]) -> BTreeMap<i64, &'p Value> {
    pods.iter().filter_map(|pod| Some((ordinal_of(set, pod)?, pod))).collect()
}

fn claim_name(set: &Value, template: &Value, ordinal: i64) -> String {
    format!("{}-{}", template.str_at(&["metadata", "name"]), pod_name(set, ordinal))
}

/// The number of the pod that a claim of this set is for.
fn claim_ordinal(set: &Value, claim: &Value) -> Option<i64> {
    let name = claim.str_at(&["metadata", "name"]);
    set.items_at(&["spec", "volumeClaimTemplates"]).iter().find_map(|template| {
        let prefix = format!("{}-{}-", template.str_at(&["metadata", "name"]), set.str_at(&["metadata", "name"]));
        name.strip_prefix(&prefix)?.parse().ok()
    })
}

/// The owners that a claim is to have; `None` where it has them.
fn owners_of_claim(set: &Value, claim: &Value, goes_with_set: bool) -> Option<Vec<Value>> {
    let uid = set.str_at(&["metadata", "uid"]);
    let mut owners = claim.items_at(&["metadata", "ownerReferences"]).to_vec();
    let is_owner = owners.iter().any(|owner| owner.str_at(&["uid"]) == uid);
    match (goes_with_set, is_owner) {
        (true, false) => owners.push(family::reference(TYPE, set)),
        (false, true) => owners.retain(|owner| owner.str_at(&["uid"]) != uid),
        _ => return None,
    }
    Some(owners)
}

fn claim_of(set: &Value, template: &Value, ordinal: i64) -> Value {
    let mut claim = template.clone();
    let fields = claim.make_object();
    fields.remove("status");
    fields.insert("apiVersion", Value::from("v1"));
    fields.insert("kind", Value::from("PersistentVolumeClaim"));
    let metadata = fields.entry("metadata").make_object();
    metadata.insert("name", Value::String(claim_name(set, template, ordinal)));
    metadata.insert("namespace", Value::from(set.str_at(&["metadata", "namespace"])));
    let labels = metadata.entry("labels").make_object();
    let selected = set.at(&["spec", "selector", "matchLabels"]).and_then(Value::as_object);
    selected.into_iter().flat_map(|it| it.iter()).for_each(|(name, value)| _ = labels.insert(name, value.clone()));
    claim
}

/// The pod of a number, of a revision.
fn new_pod(set: &Value, revision: &Value, ordinal: i64, reference: Value) -> Value {
    let mut pod = pods::of_template(&history::template_of(revision), set, reference);
    let name = pod_name(set, ordinal);
    let metadata = pod.make_object().entry("metadata").make_object();
    metadata.remove("generateName");
    metadata.insert("name", Value::from(name.as_str()));
    let labels = metadata.entry("labels").make_object();
    labels.insert(POD_NAME, Value::from(name.as_str()));
    labels.insert(POD_INDEX, Value::String(ordinal.to_string()));
    labels.insert(POD_HASH, Value::from(revision.str_at(&["metadata", "name"])));
    let mut volumes = Vec::new();
    for template in set.items_at(&["spec", "volumeClaimTemplates"]) {
        let claim = object! { "claimName" => claim_name(set, template, ordinal) };
        volumes.push(object! { "name" => template.str_at(&["metadata", "name"]), "persistentVolumeClaim" => claim });
    }
    let spec = pod.make_object().entry("spec").make_object();
    let own = spec.get("volumes").and_then(Value::as_array).unwrap_or_default();
    let is_own = |volume: &&Value| !volumes.iter().any(|known| known.get("name") == volume.get("name"));
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

/// A set with its pods.
struct Seen<'s> {
    set: &'s Value,
    pods: BTreeMap<i64, &'s Value>,
    /// The names of the revision that pods have, and of the one that they are to have.
    current: &'s str,
    update: &'s str,
    now: Timestamp,
}

impl Seen<'_> {
    fn first(&self) -> i64 {
        int_at(self.set, &["spec", "ordinals", "start"])
    }

    /// One past the last number.
    fn end(&self) -> i64 {
        self.first() + int_at(self.set, &["spec", "replicas"])
    }

    fn is_rolling(&self) -> bool {
        self.set.str_at(&["spec", "updateStrategy", "type"]) != "OnDelete"
    }

    /// The first number that is of the new revision.
    fn partition(&self) -> i64 {
        self.first() + int_at(self.set, &["spec", "updateStrategy", "rollingUpdate", "partition"])
    }

    fn is_available(&self, pod: &Value) -> Availability {
        match pod.str_at(&["status", "phase"]) {
            "Running" => pods::availability(pod, int_at(self.set, &["spec", "minReadySeconds"]), self.now),
            _ => Availability::No,
        }
    }
}

fn is_of(pod: &Value, revision: &str) -> bool {
    pod.str_at(&["metadata", "labels", POD_HASH]) == revision
}

/// What is done about one pod.
#[derive(Debug, PartialEq)]
enum Act {
    Create { ordinal: i64, of_update: bool },
    Delete(Value),
}

/// What is done now, and when to look again.
#[derive(Debug, Default, PartialEq)]
struct Step {
    act: Option<Act>,
    again: Option<Duration>,
}

fn act(act: Act) -> Step {
    Step { act: Some(act), again: None }
}

/// The next step. Where pods are to come one after the other, each waits for those before it.
fn next(seen: &Seen<'_>) -> Step {
    let in_order = seen.set.str_at(&["spec", "podManagementPolicy"]) != "Parallel";
    let mut again = None;
    for ordinal in seen.first()..seen.end() {
        let Some(pod) = seen.pods.get(&ordinal) else {
            let of_update = !seen.is_rolling() || ordinal >= seen.partition();
            return act(Act::Create { ordinal, of_update });
        };
        if pods::is_over(pod) && !is_going(pod) {
            return act(Act::Delete((*pod).clone()));
        }
        let available = seen.is_available(pod);
        if let Availability::In(pause) = available {
            again = sooner(again, Some(pause));
        }
        if in_order && (is_going(pod) || available != Availability::Yes) {
            return Step { act: None, again };
        }
    }
    let condemned = seen.pods.iter().rev().filter(|(ordinal, _)| !(seen.first()..seen.end()).contains(ordinal));
    for (_, pod) in condemned {
        if !is_going(pod) {
            return act(Act::Delete((*pod).clone()));
        }
        if in_order {
            return Step { act: None, again };
        }
    }
    if !seen.is_rolling() {
        return Step { act: None, again };
    }
    for ordinal in (seen.partition().max(seen.first())..seen.end()).rev() {
        let Some(pod) = seen.pods.get(&ordinal) else { break };
        if !is_of(pod, seen.update) && !is_going(pod) {
            return act(Act::Delete((*pod).clone()));
        }
        if is_going(pod) || seen.is_available(pod) != Availability::Yes {
            break;
        }
    }
    Step { act: None, again }
}

fn status_of(seen: &Seen<'_>) -> Value {
    let count = |is_wanted: &dyn Fn(&Value) -> bool| seen.pods.values().filter(|pod| is_wanted(pod)).count() as i64;
    let wanted = int_at(seen.set, &["spec", "replicas"]);
    let is_ready = |pod: &Value| pod.str_at(&["status", "phase"]) == "Running" && pods::is_ready(pod);
    let ready = count(&is_ready);
    let stays = |pod: &Value| !is_going(pod);
    let updated = count(&|pod| stays(pod) && is_of(pod, seen.update));
    let replicas = count(&|_| true);
    let is_done = seen.is_rolling() && [updated, replicas, ready].iter().all(|count| *count == wanted);
    let current = if is_done { seen.update } else { seen.current };
    let counts = [
        ("readyReplicas", ready),
        ("currentReplicas", count(&|pod| stays(pod) && is_of(pod, current))),
        ("updatedReplicas", updated),
    ];
    let available = count(&|pod| stays(pod) && seen.is_available(pod) == Availability::Yes);
    let mut status = object! {
        "observedGeneration" => int_at(seen.set, &["metadata", "generation"]),
        "replicas" => replicas,
        "availableReplicas" => available,
        "currentRevision" => current,
        "updateRevision" => seen.update,
        "collisionCount" => int_at(seen.set, &["status", "collisionCount"]),
    };
    let fields = status.make_object();
    counts.into_iter().filter(|(_, count)| *count > 0).for_each(|(name, count)| _ = fields.insert(name, count.into()));
    if let Some(conditions) = seen.set.at(&["status", "conditions"]) {
        fields.insert("conditions", conditions.clone());
    }
    status
}

/// Starts it.
pub(super) fn start(means: &Means) -> Running {
    let family = Family::new(SETS, TYPE, PODS);
    let sets = StatefulSets { client: means.client("statefulset-controller"), family };
    Box::pin(super::reconcile::run(Arc::clone(&means.registry), sets))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    fn read(text: &str) -> Value {
        yaml::decode(text.as_bytes()).expect("YAML")
    }

    fn pod(ordinal: i64, revision: &str, status: &str) -> Value {
        let running = "{phase: Running, conditions: [{type: Ready, status: 'True'}]}";
        let status = if status.is_empty() { running } else { status };
        read(&format!("metadata: {{name: s-{ordinal}, labels: {{{POD_HASH}: {revision}}}}}\nstatus: {status}"))
    }

    fn set(spec: &str) -> Value {
        read(&format!("metadata: {{name: s, namespace: d}}\nspec: {{{spec}}}"))
    }

    #[track_caller]
    fn check(spec: &str, pods: &[Value], expected: &str) {
        let set = set(spec);
        let now = "2026-01-01T00:01:00Z".parse().expect("a time");
        let seen = Seen { set: &set, pods: by_ordinal(&set, pods), current: "old", update: "new", now };
        let told = match next(&seen).act {
            None => String::new(),
            Some(Act::Create { ordinal, of_update }) => {
                format!("create {ordinal} {}", if of_update { "new" } else { "old" })
            }
            Some(Act::Delete(pod)) => format!("delete {}", pod.str_at(&["metadata", "name"])),
        };
        assert_eq!(told, expected);
    }

    #[test]
    fn pods_come_and_go_in_order() {
        let two = "replicas: 2";
        check(two, &[], "create 0 new");
        check(two, &[pod(0, "new", "{phase: Pending}")], "");
        check("replicas: 2, podManagementPolicy: Parallel", &[pod(0, "new", "{phase: Pending}")], "create 1 new");
        check(two, &[pod(0, "new", "")], "create 1 new");
        check(two, &[pod(0, "new", "{phase: Failed}")], "delete s-0");
        check("replicas: 1", &[pod(0, "new", ""), pod(1, "new", ""), pod(2, "new", "")], "delete s-2");
        check("replicas: 1, ordinals: {start: 5}", &[], "create 5 new");
    }

    #[test]
    fn an_update_goes_from_the_last_to_the_partition() {
        let pods = [pod(0, "old", ""), pod(1, "old", ""), pod(2, "new", "")];
        check("replicas: 3", &pods, "delete s-1");
        let partition = "replicas: 3, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 2}}";
        check(partition, &pods, "");
        check(partition, &pods[1..], "create 0 old");
        check("replicas: 3, updateStrategy: {type: OnDelete}", &pods, "");
        check("replicas: 2", &[pod(0, "old", ""), pod(1, "new", "{phase: Running}")], "");
    }

    #[test]
    fn the_status_takes_the_new_revision_over_when_all_have_it() {
        let set = set("replicas: 2");
        let now = "2026-01-01T00:01:00Z".parse().expect("a time");
        let status = |pods: &[Value]| {
            status_of(&Seen { set: &set, pods: by_ordinal(&set, pods), current: "old", update: "new", now })
        };
        let half = status(&[pod(0, "old", ""), pod(1, "new", "")]);
        assert_eq!((half.str_at(&["currentRevision"]), int_at(&half, &["updatedReplicas"])), ("old", 1));
        let done = status(&[pod(0, "new", ""), pod(1, "new", "")]);
        assert_eq!((done.str_at(&["currentRevision"]), int_at(&done, &["currentReplicas"])), ("new", 2));
    }

    #[test]
    fn claims_go_with_their_set_where_they_are_to() {
        let set = read("metadata: {name: s, uid: u}");
        let owned = read("metadata: {ownerReferences: [{uid: u}, {uid: v}]}");
        let count = |claim: &Value, goes: bool| owners_of_claim(&set, claim, goes).map(|owners| owners.len());
        assert_eq!((count(&owned, true), count(&owned, false)), (None, Some(1)));
        assert_eq!((count(&object! {}, true), count(&object! {}, false)), (Some(1), None));
    }

    #[test]
    fn a_pod_has_its_number_and_its_claims() {
        let set =
            set("serviceName: svc, volumeClaimTemplates: [{metadata: {name: data}}], selector: {matchLabels: {a: b}}");
        let revision = read("metadata: {name: r}\ndata: {spec: {template: {spec: {volumes: [{name: tmp}]}}}}");
        let pod = new_pod(&set, &revision, 3, object! {});
        let text = |path: &[&str]| pod.str_at(path).to_owned();
        assert_eq!((text(&["metadata", "name"]).as_str(), text(&["spec", "subdomain"]).as_str()), ("s-3", "svc"));
        let claim = &pod.items_at(&["spec", "volumes"])[0];
        assert_eq!(claim.str_at(&["persistentVolumeClaim", "claimName"]), "data-s-3");
        assert_eq!(claim_ordinal(&set, &read("metadata: {name: data-s-3}")), Some(3));
        assert_eq!(claim_ordinal(&set, &read("metadata: {name: other-s-3}")), None);
        let claim = claim_of(&set, &set.items_at(&["spec", "volumeClaimTemplates"])[0], 3);
        assert_eq!(claim.str_at(&["metadata", "labels", "a"]), "b");
    }
}
