//! HorizontalPodAutoscalers: their targets follow what is measured.
//!
//! In: annotations that stand for measurements ([`metrics`]). What a metric asks for is in [`replicas`], what history allows
//! in [`limits`], both pure. A change is looked at as it comes; after a target was changed, the next look is as long after it
//! as kube-controller-manager's. What only time changes is looked at in the same rhythm, and nothing otherwise.
//!
//! What was recommended and done is in memory, as it is there: after a new start it begins anew.
//!
//! Source: `pkg/controller/podautoscaler` of Kubernetes 1.37.

mod limits;
mod metrics;
mod replicas;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use self::limits::{Memory, bounds};
use self::replicas::{Proposal, Scene, Tolerances};
use super::client::{Client, Kind, PODS, int_at, left, place, written};
use super::conditions::{self, Said};
use super::queue::Progress;
use super::reconcile::Reconciler;
use super::workload::{Means, Running};
use crate::meta::Status;
use crate::meta::selector::LabelSelector;
use crate::object;
use crate::registry::{Subresource, Target};
use crate::store::{Collection, FeedEntry};
use crate::value::Value;

const AUTOSCALERS: Kind = Kind("autoscaling", "horizontalpodautoscalers");
/// How long there is between two looks.
const PERIOD_S: i64 = 15;
/// How often a change of the scale is tried again that another change got ahead of.
const ATTEMPTS_MAX: usize = 5;

struct Autoscalers {
    client: Client,
    known: Mutex<BTreeMap<String, AutoscalerState>>,
}

/// What is known of an autoscaler.
#[derive(Default)]
struct AutoscalerState {
    memory: Memory,
    /// When its target was changed.
    changed: Option<Timestamp>,
    /// The selector of its target's pods.
    selector: String,
    /// Whether the others of the namespace are still to be told of this selector: it may be about pods of theirs.
    is_news: bool,
    /// What it depends on beside pods.
    watched: Vec<(Collection, String)>,
}

/// What a metric asks for.
struct MetricProposal {
    replicas: i64,
    /// What it is called in events.
    name: String,
    status: Value,
    is_starting: bool,
}

/// Why a metric asks for nothing.
struct Unable {
    reason: &'static str,
    /// As the condition and its event have it.
    why: String,
    /// As it is told of all metrics.
    told: String,
}

/// An autoscaler that is being looked at.
struct Look<'l> {
    client: &'l Client,
    key: &'l str,
    autoscaler: &'l Value,
    conditions: Vec<Value>,
    now: Timestamp,
}

impl Reconciler for Autoscalers {
    const TASK: &str = "scaling by metrics";

    fn collections(&self) -> Vec<Collection> {
        vec![AUTOSCALERS.collection()]
    }

    fn note(&self, change: &FeedEntry) -> Vec<String> {
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
        let again = Ok(Progress::After(Duration::from_secs(PERIOD_S.unsigned_abs())));
        let spec = look.autoscaler.get("spec").unwrap_or(&Value::Null);
        let (target, mut scale) = match look.scale().await {
            Ok(found) => found,
            Err(why) => {
                look.client.tell_warning(look.autoscaler, "FailedGetScale", why.clone());
                let message = format!("the HPA controller was unable to get the target's current scale: {why}");
                look.say(("AbleToScale", "False", "FailedGetScale"), &message);
                look.write_conditions().await?;
                return again;
            }
        };
        let message = "the HPA controller was able to get the target's current scale";
        look.say(("AbleToScale", "True", "SucceededGetScale"), message);
        let current = int_at(&scale, &["spec", "replicas"]);
        let selector = scale.str_at(&["status", "selector"]).to_owned();
        let watched = look.watched(&target).await?;
        self.with(look.key, |known| {
            known.memory.begin(current, look.now);
            known.is_news |= known.selector != selector;
            (known.selector, known.watched) = (selector.clone(), watched);
        });
        let (least, most) = bounds(spec);
        let mut statuses = Value::Null;
        let mut is_settled = true;
        let (wanted, reason) = match current {
            0 => {
                let message = "scaling is disabled since the replica count of the target is zero";
                look.say(("ScalingActive", "False", "ScalingDisabled"), message);
                (0, String::new())
            }
            _ if current > most => (most, "Current number of replicas above Spec.MaxReplicas".to_owned()),
            _ if current < least => (least, "Current number of replicas below Spec.MinReplicas".to_owned()),
            _ => {
                let others = self.others(look.key, &selector);
                let (found, of_metrics) = look.ask(&scale, &others).await?;
                statuses = of_metrics;
                let (asked, is_whole) = match found {
                    Ok(found) => found,
                    Err(why) => {
                        let desired = int_at(look.autoscaler, &["status", "desiredReplicas"]);
                        look.write(current, desired, statuses, false).await?;
                        look.client.tell_warning(look.autoscaler, "FailedComputeMetricsReplicas", why);
                        return again;
                    }
                };
                let reason = match asked.replicas.cmp(&current) {
                    std::cmp::Ordering::Greater => format!("{} above target", asked.name),
                    std::cmp::Ordering::Less => "All metrics below target".to_owned(),
                    std::cmp::Ordering::Equal => String::new(),
                };
                let allowed = self.with(look.key, |known| known.memory.allow(spec, current, asked.replicas, look.now));
                look.say(("AbleToScale", "True", allowed.able.0), allowed.able.1);
                let (is_limited, why, message) = allowed.limited;
                look.say(("ScalingLimited", if is_limited { "True" } else { "False" }, why), message);
                is_settled = is_whole && !asked.is_starting && !allowed.passes();
                (allowed.replicas, reason)
            }
        };
        let is_changed = wanted != current;
        if is_changed {
            if let Err(error) = look.change(&target, &mut scale, wanted).await {
                let why = &error.message;
                let message = format!("New size: {wanted}; reason: {reason}; error: {why}");
                look.client.tell_warning(look.autoscaler, "FailedRescale", message);
                let message = format!("the HPA controller was unable to update the target scale: {why}");
                look.say(("AbleToScale", "False", "FailedUpdateScale"), &message);
                let desired = int_at(look.autoscaler, &["status", "desiredReplicas"]);
                look.write(current, desired, statuses, false).await?;
                return again;
            }
            let message = format!("the HPA controller was able to update the target scale to {wanted}");
            look.say(("AbleToScale", "True", "SucceededRescale"), &message);
            let message = format!("New size: {wanted}; reason: {reason}");
            look.client.tell_normal(look.autoscaler, "SuccessfulRescale", message);
            self.with(look.key, |known| {
                known.changed = Some(look.now);
                known.memory.note_change(spec, current, wanted, look.now);
            });
        }
        look.write(current, wanted, statuses, is_changed).await?;
        if is_changed || !is_settled { again } else { Ok(Progress::Done) }
    }

    /// The selectors of the other autoscalers of the namespace, by their keys.
    fn others(&self, key: &str, own: &str) -> Vec<(String, String)> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let those = beside(&known, key);
        let those = those.filter(|(other, known)| *other != key && !known.selector.is_empty() && !own.is_empty());
        those.map(|(other, known)| (other.clone(), known.selector.clone())).collect()
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

impl Look<'_> {
    fn spec(&self) -> &Value {
        self.autoscaler.get("spec").unwrap_or(&Value::Null)
    }

    fn say(&mut self, (type_, status, reason): (&str, &str, &str), message: &str) {
        let said = Said { type_, status, reason, message };
        conditions::set(&mut self.conditions, &said, &written(self.now));
    }

    /// The scale of the target, and the way to it.
    async fn scale(&self) -> Result<(Target, Value), String> {
        let reference = self.spec().get("scaleTargetRef").unwrap_or(&Value::Null);
        let (namespace, _) = place(self.autoscaler);
        let target = self.client.target_of(reference, namespace).await.map_err(|status| status.message)?;
        let Some(mut target) = target else {
            let group = group_of(reference);
            return Err(format!("no matches for kind \"{}\" in group \"{group}\"", reference.str_at(&["kind"])));
        };
        target.subresource = Subresource::Scale;
        let scale = self.client.registry.get_value(&target, None).await;
        Ok((target, scale.map_err(|status| status.message)?))
    }

    /// Gives the target so many replicas.
    async fn change(&self, target: &Target, scale: &mut Value, replicas: i64) -> Result<(), Status> {
        let mut attempt = 1;
        loop {
            scale.make_object().entry("spec").make_object().insert("replicas", Value::Int(replicas));
            match self.client.update_scale(target, scale).await {
                Err(status) if status.code == 409 && attempt < ATTEMPTS_MAX => {
                    *scale = self.client.registry.get_value(target, None).await?;
                    attempt += 1;
                }
                outcome => return outcome,
            }
        }
    }

    /// What a change of wakes it: the target, and objects that have metrics.
    async fn watched(&self, target: &Target) -> Result<Vec<(Collection, String)>, Status> {
        let mut watched = vec![(target.resource.collection.clone(), target.key())];
        let (namespace, _) = place(self.autoscaler);
        for metric in self.spec().items_at(&["metrics"]) {
            let Some(described) = metric.at(&["object", "describedObject"]) else { continue };
            let found = self.client.target_of(described, namespace).await?;
            watched.extend(found.map(|target| (target.resource.collection.clone(), target.key())));
        }
        Ok(watched)
    }

    /// What all metrics together ask for, whether all of them do, and the status of each. An error is what to tell where the
    /// target is to be left alone.
    async fn ask(
        &mut self,
        scale: &Value,
        others: &[(String, String)],
    ) -> Result<(Result<(MetricProposal, bool), String>, Value), Status> {
        let pods = match self.pods(scale, others).await? {
            Ok(pods) => pods,
            Err(why) => return Ok((Err(why), Value::Null)),
        };
        let pods: Vec<&Value> = pods.iter().collect();
        let current = int_at(scale, &["spec", "replicas"]);
        let scene = Scene { pods: &pods, current, tolerances: Tolerances::of(self.spec()), now: self.now };
        let counted = int_at(scale, &["status", "replicas"]);
        let specs = self.spec().items_at(&["metrics"]).to_vec();
        let (mut most, mut first, mut invalid) = (None::<MetricProposal>, None::<Unable>, 0);
        let mut statuses = Vec::new();
        let mut is_starting = false;
        for metric in &specs {
            match self.ask_one(metric, &scene, counted).await? {
                Ok(asked) => {
                    statuses.push(asked.status.clone());
                    is_starting |= asked.is_starting;
                    if most.as_ref().is_none_or(|most| most.replicas == 0 || asked.replicas > most.replicas) {
                        most = Some(asked);
                    }
                }
                Err(unable) => {
                    self.client.tell_warning(self.autoscaler, unable.reason, unable.why.clone());
                    // What Go has of a metric of which nothing is known.
                    statuses.push(object! { "type" => "" });
                    invalid += 1;
                    first.get_or_insert(unable);
                }
            }
        }
        let statuses = Value::Array(statuses);
        let all = specs.len();
        match (most, first) {
            (Some(asked), None) => Ok((Ok((self.active(asked, is_starting), true)), statuses)),
            // Those that are known may add replicas, but take none away.
            (Some(asked), Some(_)) if asked.replicas >= current => {
                Ok((Ok((self.active(asked, is_starting), false)), statuses))
            }
            (_, Some(unable)) => {
                let message = format!("the HPA was unable to compute the replica count: {}", unable.why);
                self.say(("ScalingActive", "False", unable.reason), &message);
                let why = format!("invalid metrics ({invalid} invalid out of {all}), first error is: {}", unable.told);
                Ok((Err(why), statuses))
            }
            (None, None) => {
                Ok((Err("invalid metrics (0 invalid out of 0), first error is: <nil>".to_owned()), statuses))
            }
        }
    }

    fn active(&mut self, asked: MetricProposal, is_starting: bool) -> MetricProposal {
        let message = format!("the HPA was able to successfully calculate a replica count from {}", asked.name);
        self.say(("ScalingActive", "True", "ValidMetricFound"), &message);
        MetricProposal { is_starting, ..asked }
    }

    /// The pods of the target, if no other autoscaler has some of them.
    async fn pods(&mut self, scale: &Value, others: &[(String, String)]) -> Result<Result<Vec<Value>, String>, Status> {
        let text = scale.str_at(&["status", "selector"]);
        if text.is_empty() {
            self.client.tell_warning(self.autoscaler, "SelectorRequired", "selector is required".to_owned());
            let message = "the HPA target's scale is missing a selector";
            self.say(("ScalingActive", "False", "InvalidSelector"), message);
            return Ok(Err("selector is required".to_owned()));
        }
        let selector = match LabelSelector::parse(text) {
            Ok(selector) => selector,
            Err(error) => {
                let why = format!("couldn't convert selector into a corresponding internal selector object: {error}");
                self.client.tell_warning(self.autoscaler, "InvalidSelector", why.clone());
                self.say(("ScalingActive", "False", "InvalidSelector"), &why);
                return Ok(Err(why));
            }
        };
        let (namespace, _) = place(self.autoscaler);
        let mut pods = self.client.list(PODS, namespace, |_| true).await?;
        pods.retain(|pod| selects(&selector, pod));
        let has_some = |(_, text): &&(String, String)| {
            LabelSelector::parse(text).is_ok_and(|other| pods.iter().any(|pod| selects(&other, pod)))
        };
        let mut keys: Vec<&str> = others.iter().filter(has_some).map(|(key, _)| key.as_str()).collect();
        if keys.is_empty() {
            return Ok(Ok(pods));
        }
        keys.push(self.key);
        keys.sort_unstable();
        let why = format!("pods by selector {text} are controlled by multiple HPAs: [{}]", keys.join(" "));
        self.client.tell_warning(self.autoscaler, "AmbiguousSelector", why.clone());
        self.say(("ScalingActive", "False", "AmbiguousSelector"), &why);
        Ok(Err(why))
    }

    /// What one metric asks for.
    async fn ask_one(
        &self,
        metric: &Value,
        scene: &Scene<'_>,
        counted: i64,
    ) -> Result<Result<MetricProposal, Unable>, Status> {
        Ok(match metric.str_at(&["type"]) {
            "Resource" => of_resource(metric, scene, "resource"),
            "ContainerResource" => of_resource(metric, scene, "containerResource"),
            "Pods" => of_pods(metric, scene),
            "External" => of_others(self.autoscaler, metric, scene, counted),
            "Object" => {
                let described = metric.at(&["object", "describedObject"]).unwrap_or(&Value::Null);
                let (namespace, _) = place(self.autoscaler);
                let found = match self.client.target_of(described, namespace).await? {
                    Some(target) => {
                        let plural = target.version.names.plural.clone();
                        (plural, self.client.registry.get_value(&target, None).await.ok())
                    }
                    None => (described.str_at(&["kind"]).to_lowercase(), None),
                };
                of_object(found, namespace, metric, scene, counted)
            }
            other => {
                let why = format!("unknown metric source type \"{other}\"");
                Err(Unable { reason: "InvalidMetricSourceType", told: why.clone(), why })
            }
        })
    }

    async fn write_conditions(&self) -> Result<(), Status> {
        let mut status = self.autoscaler.get("status").cloned().unwrap_or_else(|| object! {});
        conditions::put(&mut status, self.conditions.clone());
        self.client.update_status(AUTOSCALERS, self.autoscaler, status).await
    }

    async fn write(&self, current: i64, desired: i64, metrics: Value, is_changed: bool) -> Result<(), Status> {
        let mut status = object! { "currentReplicas" => current, "desiredReplicas" => desired };
        let fields = status.make_object();
        if !metrics.is_null() {
            fields.insert("currentMetrics", metrics);
        }
        let before = self.autoscaler.at(&["status", "lastScaleTime"]).filter(|time| !time.is_null());
        let scaled = if is_changed { Some(written(self.now)) } else { before.cloned() };
        scaled.into_iter().for_each(|time| _ = fields.insert("lastScaleTime", time));
        conditions::put(&mut status, self.conditions.clone());
        self.client.update_status(AUTOSCALERS, self.autoscaler, status).await
    }
}

fn selects(selector: &LabelSelector, pod: &Value) -> bool {
    let labels = pod.at(&["metadata", "labels"]).and_then(Value::as_object);
    selector.matches(|name| labels.and_then(|labels| labels.get(name)).and_then(Value::as_str))
}

fn group_of(reference: &Value) -> &str {
    reference.str_at(&["apiVersion"]).split_once('/').map_or("", |(group, _)| group)
}

/// A quantity of a target, in thousandths.
fn milli(target: &Value, field: &str) -> Option<i64> {
    let text = target.get(field)?.as_str()?;
    crate::meta::quantity::Quantity::parse(text).ok().map(|quantity| quantity.milli_value())
}

/// What pods or a container of theirs use of a resource; `source` is the field of the metric.
fn of_resource(metric: &Value, scene: &Scene<'_>, source: &'static str) -> Result<MetricProposal, Unable> {
    let spec = metric.get(source).unwrap_or(&Value::Null);
    let (resource, container) = (spec.str_at(&["name"]), spec.str_at(&["container"]));
    let is_of_container = source == "containerResource";
    let unable = |why: String| {
        let told = if is_of_container {
            format!("failed to get {container} container metric value: {why}")
        } else {
            format!("failed to get {resource} resource metric value: {why}")
        };
        let reason = if is_of_container { "FailedGetContainerResourceMetric" } else { "FailedGetResourceMetric" };
        Unable { reason, why, told }
    };
    let target = spec.get("target").unwrap_or(&Value::Null);
    let used = metrics::of_resource(scene.pods, resource, container)
        .map_err(|why| format!("unable to get metrics for resource {resource}: {why}"));
    let (found, name) = match (milli(target, "averageValue"), target.get("averageUtilization").and_then(Value::as_i64))
    {
        (Some(average), _) => {
            let found = used.and_then(|used| scene.by_average(used, resource, average));
            (found.map_err(|why| format!("failed to get {resource} usage: {why}")), format!("{resource} resource"))
        }
        (None, Some(utilization)) => {
            let found = used.and_then(|used| scene.by_utilization(used, resource, container, utilization));
            let of = if is_of_container { " container" } else { "" };
            let name = format!("{resource}{of} resource utilization (percentage of request)");
            (found.map_err(|why| format!("failed to get {resource} utilization: {why}")), name)
        }
        (None, None) => {
            let why = "invalid resource metric source: neither an average utilization target nor an average value (usage) target was set";
            (Err(why.to_owned()), String::new())
        }
    };
    let Proposal { replicas, average, utilization } = found.map_err(unable)?;
    let mut current = object! { "averageValue" => metrics::written(resource, average) };
    if milli(target, "averageValue").is_none() {
        current.make_object().insert("averageUtilization", Value::Int(utilization));
    }
    let mut status = object! { "current" => current, "name" => resource };
    if is_of_container {
        status.make_object().insert("container", Value::from(container));
    }
    let status = object! { "type" => metric.str_at(&["type"]), source => status };
    Ok(MetricProposal { replicas, name, status, is_starting: scene.has_unready(resource) })
}

fn of_pods(metric: &Value, scene: &Scene<'_>) -> Result<MetricProposal, Unable> {
    let identifier = metric.at(&["pods", "metric"]).cloned().unwrap_or_default();
    let name = identifier.str_at(&["name"]);
    let target = metric.at(&["pods", "target"]).and_then(|target| milli(target, "averageValue")).unwrap_or_default();
    let used = metrics::of_pods(scene.pods, name).map_err(|why| format!("unable to get metric {name}: {why}"));
    let found = used.and_then(|used| scene.by_average(used, "", target));
    let Proposal { replicas, average, .. } = found.map_err(|why| {
        let told = format!("failed to get pods metric value: {why}");
        Unable { reason: "FailedGetPodsMetric", why, told }
    })?;
    let current = object! { "averageValue" => metrics::written("", average) };
    let name = format!("pods metric {name}");
    let pods = object! { "current" => current, "metric" => identifier };
    let status = object! { "type" => "Pods", "pods" => pods };
    Ok(MetricProposal { replicas, name, status, is_starting: scene.has_unready("") })
}

/// What the described object has, which is there with the plural name of its kind, if it is.
fn of_object(
    (plural, object): (String, Option<Value>),
    namespace: &str,
    metric: &Value,
    scene: &Scene<'_>,
    counted: i64,
) -> Result<MetricProposal, Unable> {
    let spec = metric.get("object").unwrap_or(&Value::Null);
    let described = spec.get("describedObject").cloned().unwrap_or_default();
    let identifier = spec.get("metric").cloned().unwrap_or_default();
    let (kind, object_name) = (described.str_at(&["kind"]).to_owned(), described.str_at(&["name"]).to_owned());
    let name = identifier.str_at(&["name"]).to_owned();
    let used = object.as_ref().and_then(|object| metrics::of_object(object, &name)).ok_or_else(|| {
        let missing = format!("the server could not find the metric {name} for {plural} {object_name}");
        let fetched = format!("unable to fetch metrics from custom metrics API: {missing}");
        // The words stand as Go has them, the error in the place of the name.
        format!("unable to get metric {name}: {kind} on {namespace} {object_name}/{fetched}")
    });
    let target = spec.get("target").unwrap_or(&Value::Null);
    let unable = |why: String, told: String| {
        let told = format!("failed to get object metric value: {told}");
        Unable { reason: "FailedGetObjectMetric", why, told }
    };
    let (replicas, current, called) = match (milli(target, "value"), milli(target, "averageValue")) {
        (Some(value), _) => {
            let found = used.and_then(|used| Ok((scene.by_value(used, value)?, used)));
            let (replicas, used) = found.map_err(|why| unable(why.clone(), why))?;
            (replicas, object! { "value" => metrics::written("", used) }, format!("{kind} metric {name}"))
        }
        (None, Some(average)) => {
            let used = used.map_err(|why| unable(why.clone(), format!("failed to get {name} object metric: {why}")))?;
            let (replicas, share) = scene.by_share(used, average, counted);
            let current = object! { "averageValue" => metrics::written("", share) };
            (replicas, current, format!("external metric {name}({})", go_selector(identifier.get("selector"))))
        }
        (None, None) => {
            let why = "invalid object metric source: neither a value target nor an average value target was set";
            return Err(unable(why.to_owned(), why.to_owned()));
        }
    };
    let status = object! { "current" => current, "describedObject" => described, "metric" => identifier };
    let status = object! { "type" => "Object", "object" => status };
    Ok(MetricProposal { replicas, name: called, status, is_starting: false })
}

/// A metric from outside, which stands on the autoscaler.
fn of_others(autoscaler: &Value, metric: &Value, scene: &Scene<'_>, counted: i64) -> Result<MetricProposal, Unable> {
    let spec = metric.get("external").unwrap_or(&Value::Null);
    let identifier = spec.get("metric").cloned().unwrap_or_default();
    let name = identifier.str_at(&["name"]).to_owned();
    let selector = go_selector(identifier.get("selector"));
    let (namespace, _) = place(autoscaler);
    let used = metrics::of_object(autoscaler, &name).ok_or_else(|| {
        let missing = "no metrics returned from external metrics API";
        format!("unable to get external metric {namespace}/{name}/{selector}: {missing}")
    });
    let target = spec.get("target").unwrap_or(&Value::Null);
    let unable = |why: String, told: String| {
        let told = format!("failed to get {name} external metric value: {told}");
        Unable { reason: "FailedGetExternalMetric", why, told }
    };
    let (replicas, current) = match (milli(target, "averageValue"), milli(target, "value")) {
        (Some(average), _) => {
            let used =
                used.map_err(|why| unable(why.clone(), format!("failed to get {name} external metric: {why}")))?;
            let (replicas, share) = scene.by_share(used, average, counted);
            (replicas, object! { "averageValue" => metrics::written("", share) })
        }
        (None, Some(value)) => {
            let found = used.and_then(|used| Ok((scene.by_value(used, value)?, used)));
            let (replicas, used) =
                found.map_err(|why| unable(why.clone(), format!("failed to get external metric {name}: {why}")))?;
            (replicas, object! { "value" => metrics::written("", used) })
        }
        (None, None) => {
            let why = "invalid external metric source: neither a value target nor an average value target was set";
            return Err(unable(why.to_owned(), why.to_owned()));
        }
    };
    let status = object! { "current" => current, "metric" => identifier };
    let status = object! { "type" => "External", "external" => status };
    Ok(MetricProposal { replicas, name: format!("external metric {name}({selector})"), status, is_starting: false })
}

/// A selector as Go prints it.
fn go_selector(selector: Option<&Value>) -> String {
    let Some(selector) = selector.filter(|selector| !selector.is_null()) else { return "nil".to_owned() };
    let labels = selector.get("matchLabels").and_then(Value::as_object);
    let labels: String = labels
        .into_iter()
        .flat_map(crate::value::Map::iter)
        .map(|(name, value)| format!("{name}: {},", value.as_str().unwrap_or_default()))
        .collect();
    let expressions: String = selector
        .items_at(&["matchExpressions"])
        .iter()
        .map(|it| {
            let values: Vec<&str> = it.items_at(&["values"]).iter().filter_map(Value::as_str).collect();
            let (key, operator) = (it.str_at(&["key"]), it.str_at(&["operator"]));
            format!("LabelSelectorRequirement{{Key:{key},Operator:{operator},Values:[{}],}},", values.join(" "))
        })
        .collect();
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )
}

/// Starts it.
pub(super) fn start(means: &Means) -> Running {
    let client = means.client("horizontal-pod-autoscaler");
    let autoscalers = Autoscalers { client, known: Mutex::default() };
    Box::pin(super::reconcile::run(Arc::clone(&means.registry), autoscalers))
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
        // One of cluster scope is in no namespace.
        check("b", &[]);
    }
}
