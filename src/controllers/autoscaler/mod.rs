//! HorizontalPodAutoscalers: their targets follow the measurements.
//!
//! Input: annotations that represent measurements ([`metrics`]). What a metric proposes is in [`replicas`], what
//! history allows in [`limits`], both pure. Changes are handled when they occur; after a target was changed, the next
//! look follows at the interval of kube-controller-manager. What changes only with time is looked at with the same
//! interval; nothing else is.
//!
//! Past recommendations and changes are in memory, as in kube-controller-manager: after a restart they begin anew.
//!
//! Source: `pkg/controller/podautoscaler` of Kubernetes 1.37.

mod limits;
mod look;
mod metrics;
mod replicas;
mod sources;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use self::limits::{Memory, bounds};
use self::look::{AUTOSCALERS, Look, PodSelector, ScaleDecision};
use super::client::{Client, PODS, int_at, left};
use super::conditions;
use super::queue::Progress;
use super::reconcile::Reconciler;
use super::workload::{ControllerContext, Running};
use crate::meta::Status;
use crate::store::{ChangeEvent, Collection};
use crate::value::Value;

/// The time between two looks.
const PERIOD_S: i64 = 15;
const AGAIN: Progress = Progress::After(Duration::from_secs(PERIOD_S.unsigned_abs()));

struct Autoscalers {
    client: Client,
    known: Mutex<BTreeMap<String, AutoscalerState>>,
}

/// What is known of an autoscaler.
#[derive(Default)]
struct AutoscalerState {
    memory: Memory,
    /// When its target was last changed.
    changed: Option<Timestamp>,
    /// The selector of its target's pods; `None` if it is not valid, or too long.
    selector: Option<Arc<PodSelector>>,
    /// Whether the other autoscalers of the namespace must still be queued because of this selector: it may select
    /// their pods.
    is_news: bool,
    /// What it depends on besides pods.
    watched: Vec<(Collection, String)>,
}

impl Reconciler for Autoscalers {
    const TASK: &str = "scaling by metrics";

    fn collections(&self) -> Vec<Collection> {
        vec![AUTOSCALERS.collection()]
    }

    fn note(&self, change: &ChangeEvent) -> Vec<String> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if AUTOSCALERS.is(&change.collection) {
            let is_news = match change.stored {
                Some(_) => std::mem::take(&mut known.entry(change.key.to_string()).or_default().is_news),
                None => known.remove(&*change.key).is_some(),
            };
            let mut keys = vec![change.key.to_string()];
            if is_news {
                let others = beside(&known, &change.key).filter(|(other, _)| ***other != *change.key);
                keys.extend(others.map(|(other, _)| other.clone()));
            }
            return keys;
        }
        let is_pod = PODS.is(&change.collection);
        let is_watched = |known: &AutoscalerState| {
            known.watched.iter().any(|(collection, key)| *collection == change.collection && **key == *change.key)
        };
        let those = beside(&known, &change.key);
        those.filter(|(_, known)| is_pod || is_watched(known)).map(|(key, _)| key.clone()).collect()
    }

    fn forget(&self) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    async fn reconcile(&self, key: &str) -> Result<Progress, Status> {
        let Some(autoscaler) = self.client.get(AUTOSCALERS, key).await? else { return Ok(Progress::Done) };
        let now = self.client.now();
        let changed = self.with(key, |known| known.changed);
        if let Some(pause) = changed.and_then(|changed| left(changed, PERIOD_S, now)) {
            return Ok(Progress::After(pause));
        }
        let conditions = conditions::of(&autoscaler).to_vec();
        let look = Look { client: &self.client, key, autoscaler: &autoscaler, conditions, now };
        self.look(look).await
    }
}

impl Autoscalers {
    fn with<T>(&self, key: &str, then: impl FnOnce(&mut AutoscalerState) -> T) -> T {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        then(known.entry(key.to_owned()).or_default())
    }

    async fn look(&self, mut look: Look<'_>) -> Result<Progress, Status> {
        let (target, mut scale) = match look.scale().await {
            Ok(found) => found,
            Err(error) => return look.tell_no_scale(&error).await.map(|()| AGAIN),
        };
        let message = "the HPA controller was able to get the target's current scale";
        look.say(("AbleToScale", "True", "SucceededGetScale"), message);
        let watched = look.watched(&target).await?;
        self.remember(&look, &scale, watched);
        let Some(decision) = self.decide(&mut look, &scale).await? else { return Ok(AGAIN) };
        let current = int_at(&scale, &["spec", "replicas"]);
        let is_changed = decision.replicas != current;
        if is_changed && let Err(error) = look.change(&target, &mut scale, decision.replicas).await {
            look.tell_not_changed(current, decision, &error).await?;
            return Ok(AGAIN);
        }
        if is_changed {
            self.note_change(&mut look, current, &decision);
        }
        look.write(current, decision.replicas, decision.statuses, is_changed).await?;
        Ok(if is_changed || !decision.is_settled { AGAIN } else { Progress::Done })
    }

    /// Remembers the properties of an autoscaler's target.
    fn remember(&self, look: &Look<'_>, scale: &Value, watched: Vec<(Collection, String)>) {
        let text = scale.str_at(&["status", "selector"]);
        let mut all = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        // Those of the same target share it.
        let same = beside(&all, look.key).filter_map(|(_, known)| known.selector.as_ref()).find(|it| it.text == text);
        let same = same.cloned();
        let selector = same.or_else(|| PodSelector::read(text).ok().map(Arc::new));
        let known = all.entry(look.key.to_owned()).or_default();
        known.memory.begin(int_at(scale, &["spec", "replicas"]), look.now);
        known.is_news |= known.selector.as_ref().map(|known| &known.text) != selector.as_ref().map(|now| &now.text);
        (known.selector, known.watched) = (selector, watched);
    }

    /// How many replicas the target of this scale must have; `None` if its metrics don't determine that, which is then
    /// reported.
    async fn decide(&self, look: &mut Look<'_>, scale: &Value) -> Result<Option<ScaleDecision>, Status> {
        let (least, most) = bounds(look.spec());
        let current = int_at(scale, &["spec", "replicas"]);
        let to_bound = |replicas, reason: &str| Some(ScaleDecision::without_metrics(replicas, reason));
        Ok(match current {
            0 => {
                let message = "scaling is disabled since the replica count of the target is zero";
                look.say(("ScalingActive", "False", "ScalingDisabled"), message);
                to_bound(0, "")
            }
            _ if current > most => to_bound(most, "Current number of replicas above Spec.MaxReplicas"),
            _ if current < least => to_bound(least, "Current number of replicas below Spec.MinReplicas"),
            _ => self.decide_by_metrics(look, scale, current).await?,
        })
    }

    async fn decide_by_metrics(
        &self,
        look: &mut Look<'_>,
        scale: &Value,
        current: i64,
    ) -> Result<Option<ScaleDecision>, Status> {
        let others = self.others(look.key);
        let (found, statuses) = look.ask(scale, &others).await?;
        let (asked, is_whole) = match found {
            Ok(found) => found,
            Err(error) => {
                let desired = int_at(look.autoscaler, &["status", "desiredReplicas"]);
                look.write(current, desired, statuses, false).await?;
                look.client.tell_warning(look.autoscaler, "FailedComputeMetricsReplicas", error.to_string());
                return Ok(None);
            }
        };
        let reason = match asked.replicas.cmp(&current) {
            Ordering::Greater => format!("{} above target", asked.name),
            Ordering::Less => "All metrics below target".to_owned(),
            Ordering::Equal => String::new(),
        };
        let allow = |known: &mut AutoscalerState| known.memory.allow(look.spec(), current, asked.replicas, look.now);
        let allowed = self.with(look.key, allow);
        look.say(("AbleToScale", "True", allowed.able.0), allowed.able.1);
        let (is_limited, why, message) = allowed.limited;
        look.say(("ScalingLimited", if is_limited { "True" } else { "False" }, why), message);
        let is_settled = is_whole && !asked.is_starting && !allowed.passes();
        Ok(Some(ScaleDecision { replicas: allowed.replicas, reason, statuses, is_settled }))
    }

    /// Reports and remembers that the target was changed.
    fn note_change(&self, look: &mut Look<'_>, current: i64, decision: &ScaleDecision) {
        let ScaleDecision { replicas, reason, .. } = decision;
        let message = format!("the HPA controller was able to update the target scale to {replicas}");
        look.say(("AbleToScale", "True", "SucceededRescale"), &message);
        let message = format!("New size: {replicas}; reason: {reason}");
        look.client.tell_normal(look.autoscaler, "SuccessfulRescale", message);
        self.with(look.key, |known| {
            known.changed = Some(look.now);
            known.memory.note_change(look.spec(), current, *replicas, look.now);
        });
    }

    /// The selectors of the other autoscalers of the namespace, by their keys.
    fn others(&self, key: &str) -> Vec<(String, Arc<PodSelector>)> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let those = beside(&known, key).filter(|(other, _)| *other != key);
        those.filter_map(|(other, known)| Some((other.clone(), Arc::clone(known.selector.as_ref()?)))).collect()
    }
}

/// What is known of the autoscalers in the namespace of an object; nothing for one of cluster scope.
fn beside<'k>(
    known: &'k BTreeMap<String, AutoscalerState>,
    key: &str,
) -> impl Iterator<Item = (&'k String, &'k AutoscalerState)> + use<'k> {
    let prefix = key.split_once('/').map(|(namespace, _)| format!("{namespace}/"));
    let those =
        prefix.map(|prefix| known.range(prefix.clone()..).take_while(move |(other, _)| other.starts_with(&prefix)));
    those.into_iter().flatten()
}

/// Starts it.
pub(super) fn start(context: &ControllerContext) -> Running {
    let client = context.client("horizontal-pod-autoscaler");
    let autoscalers = Autoscalers { client, known: Mutex::default() };
    Box::pin(super::reconcile::run(Arc::clone(&context.registry), autoscalers))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn autoscalers_are_beside_the_objects_of_their_namespace() {
        let keys = ["a/x", "b/x", "b/y", "b-c/x"];
        let known: BTreeMap<String, AutoscalerState> =
            keys.iter().map(|key| ((*key).to_owned(), AutoscalerState::default())).collect();
        let check = |key: &str, expected: &[&str]| {
            assert_eq!(beside(&known, key).map(|(key, _)| key.as_str()).collect::<Vec<_>>(), expected, "{key}");
        };
        check("b/z", &["b/x", "b/y"]);
        check("c/z", &[]);
        // An object in cluster scope is in no namespace.
        check("b", &[]);
    }
}
