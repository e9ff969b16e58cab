//! The scheduler: pods get nodes, or a condition with the reason.
//!
//! It decides under one lock, based on its own state of the nodes and the pods on them; a pod is counted on its node
//! before it is bound there. Pods that find no node wait until a node changes, or for something else that may lift the
//! refusal: a pod that is deleted, added or relabelled, or a claim.
//!
//! Source: kube-scheduler of Kubernetes 1.37, whose plugins, reasons and events these are.

mod term;
mod pod;
mod budget;
mod state;
mod refusal;
mod pending;
mod neighbours;
mod filter;
mod choice;
mod preemption;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use self::budget::Budget;
use self::pending::PendingPod;
use self::state::{Awaits, Event, State, Waiting, asked};
use super::client::{Client, Kind, NODES, PODS, int_at, is_going, key_of, place};
use super::decoded;
use super::pods;
use super::queue::Progress;
use super::reconcile::Reconciler;
use super::workload::{ControllerContext, Running};
use crate::kinds::pod_object::conditions::{self, Condition};
use crate::meta::{Status, time};
use crate::object;
use crate::store::{ChangeEvent, Collection};
use crate::value::{Value, json};

const NAME: &str = "default-scheduler";
const NAMESPACES: Kind = Kind("", "namespaces");
const CLAIMS: Kind = Kind("", "persistentvolumeclaims");
const BUDGETS: Kind = Kind("policy", "poddisruptionbudgets");
const VOLUMES: Kind = Kind("", "persistentvolumes");
const CLASSES: Kind = Kind("storage.k8s.io", "storageclasses");
/// The node that a volume is created for.
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

struct Scheduler {
    client: Client,
    state: Mutex<State>,
}

/// The decision about a pod.
enum Decision {
    Bind(String),
    /// Other pods must make room on a node, for this reason.
    Preempt(String, Vec<String>, String),
    Wait(String),
}

impl Reconciler for Scheduler {
    const TASK: &str = "scheduling pods";
    const AT_ONCE: usize = 64;

    fn collections(&self) -> Vec<Collection> {
        [NAMESPACES, NODES, PODS, CLAIMS, BUDGETS].map(Kind::collection).into()
    }

    fn forget(&self) {
        *self.state() = State::default();
    }

    fn note(&self, change: &ChangeEvent) -> Vec<String> {
        let read = || change.stored.as_ref().and_then(|stored| json::decode(&stored.bytes).ok());
        if PODS.is(&change.collection) {
            return self.note_pod(&change.key, read().as_ref());
        }
        let mut state = self.state();
        let event = if NODES.is(&change.collection) {
            state.take_in_node(&change.key, read().as_ref())
        } else if NAMESPACES.is(&change.collection) {
            let labels = read().and_then(|it| it.at(&["metadata", "labels"]).and_then(Value::as_object).cloned());
            let labels = change.stored.as_ref().map(|_| labels.unwrap_or_default());
            state.take_in_namespace(&change.key, labels)
        } else if BUDGETS.is(&change.collection) {
            match read().as_ref().and_then(Budget::of) {
                Some(budget) => state.budgets.insert(change.key.to_string(), budget),
                None => state.budgets.remove(&*change.key),
            };
            None
        } else {
            let is_of_volumes = [CLAIMS, CLASSES].iter().any(|kind| kind.is(&change.collection));
            is_of_volumes.then_some(Event::Volume)
        };
        state.woken_by(event)
    }

    async fn reconcile(&self, key: &str) -> Result<Progress, Status> {
        let Some(pod) = self.client.get(PODS, key).await?.filter(is_to_be_scheduled) else {
            self.state().waiting.remove(key);
            return Ok(Progress::Done);
        };
        if !pod.items_at(&["spec", "volumes"]).is_empty() {
            // This comes before the claims are read: changes in between wake the pod.
            self.await_volumes(key, &pod);
        }
        let volumes = self.volumes_of(&pod).await?;
        let decision = match &volumes {
            Volumes::Missing(why) => Decision::Wait(self.refuse_all(why)),
            Volumes::Bound(terms) | Volumes::WaitForNode(_, terms) => {
                let wanted = PendingPod { volumes: terms.clone(), ..PendingPod::of(&pod) };
                self.decide(wanted, matches!(volumes, Volumes::WaitForNode(..)))
            }
        };
        match (decision, volumes) {
            (Decision::Bind(node), Volumes::WaitForNode(claims, _)) => self.choose_for(claims, &node).await,
            (Decision::Bind(node), _) => self.bind(&pod, &node).await,
            (Decision::Preempt(node, victims, why), _) => self.preempt(&pod, (&node, &victims), &why).await,
            (Decision::Wait(message), _) => self.report(&pod, &message, None).await,
        }
    }
}

/// Whether a pod is waiting for this scheduler.
fn is_to_be_scheduled(pod: &Value) -> bool {
    pod.str_at(&["spec", "nodeName"]).is_empty()
        && pod.str_at(&["spec", "schedulerName"]) == NAME
        && pod.items_at(&["spec", "schedulingGates"]).is_empty()
        && !is_going(pod)
        && !pods::is_over(pod)
}

/// Whether the claims of a pod let it be scheduled.
enum Volumes {
    /// They have volumes, with these node affinities.
    Bound(Vec<Value>),
    /// The first of these get volumes only when the pod has a node.
    WaitForNode(Vec<Value>, Vec<Value>),
    Missing(String),
}

impl Scheduler {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note_pod(&self, key: &str, pod: Option<&Value>) -> Vec<String> {
        let mut state = self.state();
        if let Some(pod) = pod.filter(|pod| is_to_be_scheduled(pod)) {
            let key = key_of(pod);
            let is_known = state.waiting.get(&key).is_some_and(|known| known.asked == asked(pod));
            return if is_known { Vec::new() } else { vec![key] };
        }
        let event = state.take_in_pod(key, pod);
        if pod.is_none() {
            state.waiting.remove(key);
        }
        state.woken_by(event)
    }

    /// Finds a node for a pod, which is counted on it from now on, unless the pod `only_chooses`.
    fn decide(&self, wanted: PendingPod<'_>, only_chooses: bool) -> Decision {
        let mut state = self.state();
        let refused = match choice::choose(&wanted, &state) {
            Ok(node) => {
                if !only_chooses {
                    state.waiting.remove(&wanted.pod.key);
                    state.assume(&node, wanted.pod);
                }
                return Decision::Bind(node);
            }
            Err(refused) => refused,
        };
        let preempts = wanted.object.str_at(&["spec", "preemptionPolicy"]) != "Never";
        // Room is already being made, unless all the victims are gone.
        let is_promised = state.nominated.get(&wanted.pod.key).is_some_and(|(node, _)| {
            state.nodes.get(node).is_some_and(|node| node.pods.values().any(|pod| pod.is_going))
        });
        let victims = if preempts && !is_promised { preemption::victims(&wanted, &refused, &state) } else { None };
        let awaits = refusal::awaited(&refused);
        let awaits = if victims.is_some() || is_promised { awaits.and(Awaits::ROOM) } else { awaits };
        state.waiting.insert(wanted.pod.key.clone(), Waiting { awaits, asked: asked(wanted.object) });
        match victims {
            Some((node, victims)) => {
                state.nominated.insert(wanted.pod.key.clone(), (node.clone(), wanted.pod));
                Decision::Preempt(node, victims, refusal::reasons(&refused))
            }
            None if preempts && is_promised => Decision::Wait(refusal::told_while_others_go(&refused)),
            None => Decision::Wait(refusal::told(&refused, preempts)),
        }
    }

    /// The message for a pod that no node at all is possible for. It ends like that of kube-scheduler, whose plugin for
    /// resource claims has no state of the pod in this case.
    fn refuse_all(&self, why: &str) -> String {
        format!("0/{} nodes are available: {why}. not found", self.state().nodes().count())
    }

    /// Looks at the claims of a pod.
    async fn volumes_of(&self, pod: &Value) -> Result<Volumes, Status> {
        let (namespace, name) = place(pod);
        let (mut waiting, mut terms) = (Vec::new(), Vec::new());
        for volume in pod.items_at(&["spec", "volumes"]) {
            let is_own = volume.at(&["ephemeral"]).is_some_and(|it| !it.is_null());
            let claim = match volume.str_at(&["persistentVolumeClaim", "claimName"]) {
                "" if is_own => format!("{name}-{}", volume.str_at(&["name"])),
                "" => continue,
                claim => claim.to_owned(),
            };
            let found = self.client.get(CLAIMS, &format!("{namespace}/{claim}")).await?;
            let Some(found) = found else {
                return Ok(Volumes::Missing(if is_own {
                    format!("waiting for ephemeral volume controller to create the persistentvolumeclaim {claim:?}")
                } else {
                    format!("persistentvolumeclaim {claim:?} not found")
                }));
            };
            if is_going(&found) {
                return Ok(Volumes::Missing(format!("persistentvolumeclaim {claim:?} is being deleted")));
            }
            if found.str_at(&["status", "phase"]) == "Bound" {
                let volume = self.client.get(VOLUMES, found.str_at(&["spec", "volumeName"])).await?;
                let required = volume.as_ref().and_then(|volume| volume.at(&["spec", "nodeAffinity", "required"]));
                terms.extend(required.filter(|terms| !terms.is_null()).cloned());
                continue;
            }
            let class = self.client.get(CLASSES, found.str_at(&["spec", "storageClassName"])).await?;
            if class.is_none_or(|class| class.str_at(&["volumeBindingMode"]) != "WaitForFirstConsumer") {
                return Ok(Volumes::Missing("pod has unbound immediate PersistentVolumeClaims".to_owned()));
            }
            decoded::keep(&found).await?;
            waiting.push(found);
        }
        Ok(if waiting.is_empty() { Volumes::Bound(terms) } else { Volumes::WaitForNode(waiting, terms) })
    }

    fn await_volumes(&self, key: &str, pod: &Value) {
        let waiting = Waiting { awaits: Awaits::VOLUMES, asked: asked(pod) };
        self.state().waiting.insert(key.to_owned(), waiting);
    }

    /// Sets the node that volumes must be created for; the pod is bound once they exist.
    async fn choose_for(&self, claims: Vec<Value>, node: &str) -> Result<Progress, Status> {
        for claim in claims {
            let (namespace, name) = place(&claim);
            if claim.at(&["metadata", "annotations", SELECTED_NODE]).is_some() {
                continue;
            }
            let patch = object! { "metadata" => object! { "annotations" => object! { SELECTED_NODE => node } } };
            self.client.merge(CLAIMS, namespace, name, &patch).await?;
        }
        Ok(Progress::Waits)
    }

    async fn bind(&self, pod: &Value, node: &str) -> Result<Progress, Status> {
        match self.client.bind(pod, node).await {
            Ok(()) => {
                let message = format!("Successfully assigned {} to {node}", key_of(pod));
                self.client.tell_during("Binding", pod, ("Normal", "Scheduled"), message);
                Ok(Progress::Done)
            }
            Err(status) => {
                self.state().take_away(&key_of(pod));
                Err(status)
            }
        }
    }

    /// Evicts pods with lower priority to make room on a node.
    async fn preempt(&self, pod: &Value, (node, victims): (&str, &[String]), why: &str) -> Result<Progress, Status> {
        for key in victims {
            let Some(victim) = self.client.get(PODS, key).await? else { continue };
            let now = time::format_seconds(self.client.now());
            let message = format!("{NAME}: preempting to accommodate a higher priority pod");
            let condition = Condition {
                kind: "DisruptionTarget",
                status: "True",
                reason: "PreemptionByScheduler",
                message: &message,
            };
            let mut marked = victim.clone();
            conditions::set(&mut marked, &condition, &now);
            let status = marked.get("status").cloned().unwrap_or_default();
            self.client.update_status(PODS, &victim, status).await?;
            self.client.delete(PODS, &victim, None).await?;
            let by = pod.str_at(&["metadata", "uid"]);
            let message = format!("Preempted by pod {by} on node {node}");
            self.client.tell_during("Preempting", &victim, ("Normal", "Preempted"), message);
        }
        self.report(pod, why, Some(node)).await
    }

    /// Reports why a pod has no node yet.
    async fn report(&self, pod: &Value, message: &str, nominated: Option<&str>) -> Result<Progress, Status> {
        let known = conditions::find(pod, conditions::SCHEDULED);
        let is_told = known.is_some_and(|known| known.str_at(&["message"]) == message);
        if !is_told {
            self.client.tell_during("Scheduling", pod, ("Warning", "FailedScheduling"), message.to_owned());
            let said = Condition { kind: conditions::SCHEDULED, status: "False", reason: "Unschedulable", message };
            let mut changed = pod.clone();
            conditions::set(&mut changed, &said, &time::format_seconds(self.client.now()));
            let mut status = changed.get("status").cloned().unwrap_or_default();
            note_generation(&mut status, int_at(pod, &["metadata", "generation"]));
            if let Some(node) = nominated {
                status.make_object().insert("nominatedNodeName", Value::from(node));
            }
            self.client.update_status(PODS, pod, status).await?;
        }
        Ok(Progress::Waits)
    }
}

/// Sets the observed generation in the condition that explains why a pod has no node.
fn note_generation(status: &mut Value, generation: i64) {
    let Some(Value::Array(conditions)) = status.make_object().get_mut("conditions") else { return };
    let scheduled = conditions.iter_mut().find(|condition| condition.str_at(&["type"]) == conditions::SCHEDULED);
    if let Some(condition) = scheduled.filter(|_| generation > 0) {
        condition.make_object().insert("observedGeneration", Value::Int(generation));
    }
}

/// Starts it.
pub(super) fn start(context: &ControllerContext) -> Running {
    let client = context.client("kube-scheduler").of_user("system:kube-scheduler").called(NAME);
    Box::pin(super::reconcile::run(Arc::clone(&context.registry), Scheduler { client, state: Mutex::default() }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controllers::recorder::Recorder;
    use crate::registry::fixture;
    use crate::value::yaml;

    #[tokio::test]
    async fn a_pod_that_is_told_why_it_waits_is_not_looked_at_again_for_that() {
        let registry = fixture::registry().await;
        let client = Client::new(&registry, &Recorder::start(&registry), "kube-scheduler");
        let scheduler = Scheduler { client, state: Mutex::default() };
        let read = |text: &str| yaml::decode(text.as_bytes()).expect("YAML");
        let pod = read("metadata: {name: p, namespace: d}\nspec: {schedulerName: default-scheduler}");
        assert_eq!(scheduler.note_pod("d/p", Some(&pod)), ["d/p"]);
        assert!(matches!(scheduler.decide(PendingPod::of(&pod), false), Decision::Wait(_)));
        let mut told = pod.clone();
        told.make_object().insert("status", read("nominatedNodeName: here"));
        assert!(scheduler.note_pod("d/p", Some(&told)).is_empty());
        let labelled =
            read("metadata: {name: p, namespace: d, labels: {a: b}}\nspec: {schedulerName: default-scheduler}");
        assert_eq!(scheduler.note_pod("d/p", Some(&labelled)), ["d/p"]);
    }

    #[test]
    fn only_pods_without_a_node_are_scheduled() {
        let check = |pod: &str| is_to_be_scheduled(&yaml::decode(pod.as_bytes()).expect("YAML"));
        assert!(check("spec: {schedulerName: default-scheduler}"));
        assert!(!check("spec: {schedulerName: mine}"));
        assert!(!check("spec: {schedulerName: default-scheduler, nodeName: here}"));
        assert!(!check("spec: {schedulerName: default-scheduler, schedulingGates: [{name: g}]}"));
        assert!(!check("metadata: {deletionTimestamp: now}\nspec: {schedulerName: default-scheduler}"));
    }
}
