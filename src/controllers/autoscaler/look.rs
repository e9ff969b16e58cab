//! One look at an autoscaler: its target, the pods of that, and what its metrics propose together.

use std::sync::Arc;

use jiff::Timestamp;

use super::super::client::{Client, Kind, PODS, int_at, place, written};
use super::super::conditions::{self, DesiredCondition};
use super::super::pods;
use super::replicas::{Scene, Tolerances};
use super::sources::{MetricProposal, Unable, of_object, of_others, of_pods, of_resource};
use crate::meta::Status;
use crate::meta::api_version::group_of;
use crate::meta::selector::{LabelSelector, SelectorError};
use crate::object;
use crate::registry::{Subresource, Target};
use crate::store::{Collection, Stored};
use crate::value::Value;

pub(super) const AUTOSCALERS: Kind = Kind("autoscaling", "horizontalpodautoscalers");
/// How often a change of the scale is retried after a conflict with another change.
const ATTEMPTS_MAX: usize = 5;

/// How many replicas a target must have, and why.
pub(super) struct ScaleDecision {
    pub replicas: i64,
    pub reason: String,
    /// Those of the metrics.
    pub statuses: Value,
    /// Whether only a change can lead to another decision.
    pub is_settled: bool,
}

impl ScaleDecision {
    pub fn without_metrics(replicas: i64, reason: &str) -> Self {
        ScaleDecision { replicas, reason: reason.to_owned(), statuses: Value::Null, is_settled: true }
    }
}

/// Why a scale can't be read, in the words of kube-controller-manager.
#[derive(Debug, thiserror::Error)]
pub(super) enum ScaleError {
    #[error("no matches for kind \"{kind}\" in group \"{group}\"")]
    NotServed { kind: String, group: String },
    #[error("{}", .0.message)]
    Refused(Status),
}

impl From<Status> for ScaleError {
    fn from(status: Status) -> Self {
        ScaleError::Refused(status)
    }
}

/// Why it is not known which pods are the target's.
#[derive(Debug, thiserror::Error)]
pub(super) enum PodsError {
    #[error("selector is required")]
    Missing,
    #[error("couldn't convert selector into a corresponding internal selector object: {0}")]
    Unreadable(SelectorError),
    #[error(
        "couldn't convert selector into a corresponding internal selector object: it has more than {SELECTOR_BYTES_MAX} bytes"
    )]
    Long,
    #[error("pods by selector {selector} are controlled by multiple HPAs: [{}]", .keys.join(" "))]
    Ambiguous { selector: String, keys: Vec<String> },
}

impl PodsError {
    /// The reason for the condition `ScalingActive`.
    fn reason(&self) -> &'static str {
        match self {
            PodsError::Missing | PodsError::Unreadable(_) | PodsError::Long => "InvalidSelector",
            PodsError::Ambiguous { .. } => "AmbiguousSelector",
        }
    }
}

/// How long the selector of a target's pods may be: it is kept, and compared with those of all others.
const SELECTOR_BYTES_MAX: usize = 16 << 10;

/// The selector of a target's pods, which all autoscalers of the namespace are compared with.
pub(super) struct PodSelector {
    pub text: String,
    selector: LabelSelector,
}

impl PodSelector {
    /// Errors: it is missing, not a selector, or has more than `SELECTOR_BYTES_MAX`.
    pub fn read(text: &str) -> Result<Self, PodsError> {
        match text.len() {
            0 => Err(PodsError::Missing),
            1..=SELECTOR_BYTES_MAX => {
                let selector = LabelSelector::parse(text).map_err(PodsError::Unreadable)?;
                Ok(PodSelector { text: text.to_owned(), selector })
            }
            _ => Err(PodsError::Long),
        }
    }
}

/// Why the metrics together propose nothing.
#[derive(Debug, thiserror::Error)]
pub(super) enum MetricsError {
    #[error(transparent)]
    Pods(#[from] PodsError),
    #[error("invalid metrics ({invalid} invalid out of {all}), first error is: {first}")]
    Invalid { invalid: usize, all: usize, first: String },
}

/// An autoscaler that is being looked at.
pub(super) struct Look<'l> {
    pub client: &'l Client,
    pub key: &'l str,
    pub autoscaler: &'l Value,
    pub conditions: Vec<Value>,
    pub now: Timestamp,
}

impl<'l> Look<'l> {
    pub fn spec(&self) -> &'l Value {
        self.autoscaler.get("spec").unwrap_or(&Value::Null)
    }

    pub fn say(&mut self, (type_, status, reason): (&str, &str, &str), message: &str) {
        let said = DesiredCondition { type_, status, reason, message };
        conditions::set(&mut self.conditions, &said, &written(self.now));
    }

    /// The scale of the target, and the way to it.
    pub async fn scale(&self) -> Result<(Target, Value), ScaleError> {
        let reference = self.spec().get("scaleTargetRef").unwrap_or(&Value::Null);
        let (namespace, _) = place(self.autoscaler);
        let target = self.client.target_of(reference, namespace).await?;
        let Some(mut target) = target else {
            let (kind, group) =
                (reference.str_at(&["kind"]).to_owned(), group_of(reference.str_at(&["apiVersion"])).to_owned());
            return Err(ScaleError::NotServed { kind, group });
        };
        target.subresource = Subresource::Scale;
        let scale = self.client.registry.get_value(&target, None).await;
        Ok((target, scale?))
    }

    pub async fn tell_no_scale(&mut self, error: &ScaleError) -> Result<(), Status> {
        self.client.tell_warning(self.autoscaler, "FailedGetScale", error.to_string());
        let message = format!("the HPA controller was unable to get the target's current scale: {error}");
        self.say(("AbleToScale", "False", "FailedGetScale"), &message);
        self.write_conditions().await
    }

    pub async fn tell_not_changed(
        &mut self,
        current: i64,
        decision: ScaleDecision,
        error: &Status,
    ) -> Result<(), Status> {
        let (ScaleDecision { replicas, reason, statuses, .. }, why) = (decision, &error.message);
        let message = format!("New size: {replicas}; reason: {reason}; error: {why}");
        self.client.tell_warning(self.autoscaler, "FailedRescale", message);
        let message = format!("the HPA controller was unable to update the target scale: {why}");
        self.say(("AbleToScale", "False", "FailedUpdateScale"), &message);
        let desired = int_at(self.autoscaler, &["status", "desiredReplicas"]);
        self.write(current, desired, statuses, false).await
    }

    /// Sets the target's number of replicas.
    pub async fn change(&self, target: &Target, scale: &mut Value, replicas: i64) -> Result<(), Status> {
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

    /// The objects whose changes wake it: the target, and objects that have metrics.
    pub async fn watched(&self, target: &Target) -> Result<Vec<(Collection, String)>, Status> {
        let mut watched = vec![(target.resource.collection.clone(), target.key())];
        let (namespace, _) = place(self.autoscaler);
        for metric in self.spec().items_at(&["metrics"]) {
            let Some(described) = metric.at(&["object", "describedObject"]) else { continue };
            let found = self.client.target_of(described, namespace).await?;
            watched.extend(found.map(|target| (target.resource.collection.clone(), target.key())));
        }
        Ok(watched)
    }

    /// What all metrics together propose, whether all of them propose something, and the status of each. An error is
    /// the message if the target must be left alone.
    pub async fn ask(
        &mut self,
        scale: &Value,
        others: &[(String, Arc<PodSelector>)],
    ) -> Result<(Result<(MetricProposal, bool), MetricsError>, Value), Status> {
        let pods = match self.pods(scale, others).await? {
            Ok(pods) => pods,
            Err(error) => return Ok((Err(error.into()), Value::Null)),
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
                    // Go's value for a metric of which nothing is known.
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
            // The known metrics may add replicas, but not remove any.
            (Some(asked), Some(_)) if asked.replicas >= current => {
                Ok((Ok((self.active(asked, is_starting), false)), statuses))
            }
            (_, Some(unable)) => {
                let message = format!("the HPA was unable to compute the replica count: {}", unable.why);
                self.say(("ScalingActive", "False", unable.reason), &message);
                Ok((Err(MetricsError::Invalid { invalid, all, first: unable.told }), statuses))
            }
            (None, None) => Ok((Err(MetricsError::Invalid { invalid, all, first: "<nil>".to_owned() }), statuses)),
        }
    }

    fn active(&mut self, asked: MetricProposal, is_starting: bool) -> MetricProposal {
        let message = format!("the HPA was able to successfully calculate a replica count from {}", asked.name);
        self.say(("ScalingActive", "True", "ValidMetricFound"), &message);
        MetricProposal { is_starting, ..asked }
    }

    /// The pods of the target, if no other autoscaler has some of them. Otherwise it also reports why.
    async fn pods(
        &mut self,
        scale: &Value,
        others: &[(String, Arc<PodSelector>)],
    ) -> Result<Result<Vec<Value>, PodsError>, Status> {
        let found = self.selected(scale.str_at(&["status", "selector"]), others).await?;
        if let Err(error) = &found {
            let (reason, why) = (error.reason(), error.to_string());
            // The event has its own reason, and the condition its own text.
            let (told, said) = match error {
                PodsError::Missing => ("SelectorRequired", "the HPA target's scale is missing a selector"),
                _ => (reason, why.as_str()),
            };
            self.say(("ScalingActive", "False", reason), said);
            self.client.tell_warning(self.autoscaler, told, why);
        }
        Ok(found)
    }

    async fn selected(
        &self,
        text: &str,
        others: &[(String, Arc<PodSelector>)],
    ) -> Result<Result<Vec<Value>, PodsError>, Status> {
        let selector = match PodSelector::read(text) {
            Ok(PodSelector { selector, .. }) => selector,
            Err(error) => return Ok(Err(error)),
        };
        let (namespace, _) = place(self.autoscaler);
        let is_selected = |stored: &Stored| selector.matches(stored.sorted_labels());
        let pods = self.client.list(PODS, namespace, is_selected, pods::without_programs).await?;
        let has_some = |(_, other): &&(String, Arc<PodSelector>)| pods.iter().any(|pod| selects(&other.selector, pod));
        let mut keys: Vec<String> = others.iter().filter(has_some).map(|(key, _)| key.clone()).collect();
        if keys.is_empty() {
            return Ok(Ok(pods));
        }
        keys.push(self.key.to_owned());
        keys.sort_unstable();
        Ok(Err(PodsError::Ambiguous { selector: text.to_owned(), keys }))
    }

    /// What one metric proposes.
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

    pub async fn write(&self, current: i64, desired: i64, metrics: Value, is_changed: bool) -> Result<(), Status> {
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
    selector.matches(&pod.at(&["metadata", "labels"]))
}
