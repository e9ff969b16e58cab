//! DaemonSets: a pod on each node that allows it.
//!
//! Source: `pkg/controller/daemon` of Kubernetes 1.37.

mod plan;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use self::plan::{ObservedDaemonSet, allowed, hold_back, new_pod, node_of, plan, status_of};
use super::back_off::BackOff;
use super::client::{Client, Kind, NODES, PODS, is_going, key_of, read, sooner};
use super::family::{self, Family};
use super::history::{self, POD_HASH};
use super::pod_control::{create_pods, delete_pods};
use super::pods;
use super::queue::Progress;
use super::reconcile::Reconciler;
use super::workload::{ControllerContext, Running};
use crate::meta::Status;
use crate::store::{ChangeEvent, Collection, Stored};
use crate::value::Value;

const SETS: Kind = Kind("apps", "daemonsets");
const TYPE: (&str, &str) = ("apps/v1", "DaemonSet");
/// How long a node waits for a new pod after the first one failed, and at most, in seconds.
const FAILURE_S: i64 = 1;
const FAILURE_S_MAX: i64 = 15 * 60;

struct DaemonSets {
    client: Client,
    family: Family,
    sets: Mutex<BTreeSet<String>>,
    /// Of failed pods, by set and node.
    failures: Mutex<BackOff>,
}

impl Reconciler for DaemonSets {
    const TASK: &str = "keeping daemon sets";

    fn collections(&self) -> Vec<Collection> {
        vec![SETS.collection(), PODS.collection()]
    }

    fn note(&self, change: &ChangeEvent) -> Vec<String> {
        let mut sets = self.sets.lock().unwrap_or_else(PoisonError::into_inner);
        if NODES.is(&change.collection) {
            return sets.iter().cloned().collect();
        }
        if SETS.is(&change.collection) {
            match change.stored {
                Some(_) => sets.insert(change.key.to_string()),
                None => sets.remove(&*change.key),
            };
        }
        self.family.note(change)
    }

    fn forget(&self) {
        self.family.forget();
    }

    async fn reconcile(&self, key: &str) -> Result<Progress, Status> {
        let Some(set) = self.client.get(SETS, key).await? else { return Ok(Progress::Done) };
        let Some(selector) = family::selector(&set).filter(|_| !is_going(&set)) else { return Ok(Progress::Done) };
        let found = self.family.claimed(&self.client, &set, &selector).await?;
        let nodes = self.client.stored(NODES, "", |_| true).await?;
        let verdict = |node: Arc<Stored>| Ok((Arc::clone(&node.key), allowed(&set, &read(&node)?)));
        let nodes = nodes.into_iter().map(verdict).collect::<Result<BTreeMap<_, _>, Status>>()?;
        let revisions = history::revisions(&self.client, TYPE, &set).await?;
        let hash = revisions.last().map(history::hash_of).unwrap_or_default().to_owned();
        let seen = ObservedDaemonSet::new(&set, &nodes, &found, &hash, self.client.now());
        let mut plan = plan(&seen);
        let pause = hold_back(&seen, &mut plan, &mut self.failures.lock().unwrap_or_else(PoisonError::into_inner));
        plan.delete.values().for_each(|pod| self.tell_of_ended(&set, pod));
        let gone: Vec<Value> = plan.delete.values().map(|pod| (*pod).clone()).collect();
        delete_pods(&self.client, &set, &gone).await?;
        let made = plan.create.iter().map(|node| new_pod(&set, node, &hash, self.family.reference(&set)));
        create_pods(&self.client, &self.family, &set, made).await?;
        let (status, again) = status_of(&seen);
        self.client.update_status(SETS, &set, status).await?;
        let limit = set.at(&["spec", "revisionHistoryLimit"]).and_then(Value::as_i64).unwrap_or(10);
        let live: Vec<&str> = found.iter().map(|pod| pod.str_at(&["metadata", "labels", POD_HASH])).collect();
        history::clean_up(&self.client, &revisions, limit, &live).await?;
        Ok(sooner(again, pause).map_or(Progress::Done, Progress::After))
    }
}

impl DaemonSets {
    /// Reports a pod that is deleted because it has ended.
    fn tell_of_ended(&self, set: &Value, pod: &Value) {
        let (key, node) = (key_of(pod), node_of(pod));
        match pod.str_at(&["status", "phase"]) {
            "Failed" => {
                let message = format!("Found failed daemon pod {key} on node {node}, will try to kill it");
                self.client.tell_warning(set, "FailedDaemonPod", message);
            }
            "Succeeded" => {
                let message = format!("Found succeeded daemon pod {key} on node {node}, will try to delete it");
                self.client.tell_normal(set, "SucceededDaemonPod", message);
            }
            _ => {}
        }
    }
}

/// Starts it.
pub(super) fn start(context: &ControllerContext) -> Running {
    let family = Family::new(SETS, TYPE, PODS, pods::without_programs);
    let failures = Mutex::new(BackOff::new(FAILURE_S, FAILURE_S_MAX));
    let client = context.client("daemon-set-controller").called("daemonset-controller");
    let sets = DaemonSets { client, family, sets: Mutex::default(), failures };
    Box::pin(super::reconcile::run(Arc::clone(&context.registry), sets))
}
