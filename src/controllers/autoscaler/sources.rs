//! What one metric of an autoscaler proposes, by its source, and the messages if it proposes nothing.

use super::super::client::place;
use super::super::selector_text::go_selector;
use super::metrics::{self, MetricError};
use super::replicas::{Proposal, ReplicasError, Scene};
use crate::meta::quantity::Quantity;
use crate::object;
use crate::value::Value;

/// What a metric proposes.
pub(super) struct MetricProposal {
    pub replicas: i64,
    /// Its name in events.
    pub name: String,
    pub status: Value,
    pub is_starting: bool,
}

/// Why a metric proposes nothing.
pub(super) struct Unable {
    pub reason: &'static str,
    /// The text for the condition and its event.
    pub why: String,
    /// The text in the message about all metrics.
    pub told: String,
}

/// Why a source proposes nothing, in the words of kube-controller-manager.
#[derive(Debug, thiserror::Error)]
enum SourceError {
    #[error("unable to get metrics for resource {resource}: {error}")]
    Resource { resource: String, error: MetricError },
    #[error("unable to get metric {name}: {error}")]
    Pods { name: String, error: MetricError },
    // The words stand as Go has them, the error in the place of the name.
    #[error(
        "unable to get metric {name}: {kind} on {namespace} {object}/unable to fetch metrics from custom metrics API: the \
         server could not find the metric {name} for {plural} {object}"
    )]
    Object { name: String, kind: String, namespace: String, plural: String, object: String },
    #[error("unable to get external metric {0}: no metrics returned from external metrics API")]
    External(String),
    #[error("failed to get {resource} {what}: {error}")]
    Usage { resource: String, what: &'static str, error: Box<SourceError> },
    #[error(transparent)]
    Replicas(#[from] ReplicasError),
    #[error(
        "invalid resource metric source: neither an average utilization target nor an average value (usage) target was set"
    )]
    NoResourceTarget,
    #[error("invalid {0} metric source: neither a value target nor an average value target was set")]
    NoTarget(&'static str),
}

impl Unable {
    /// An error with a different text in the message about all metrics.
    fn new(reason: &'static str, why: &impl ToString, told: String) -> Self {
        Unable { reason, why: why.to_string(), told }
    }
}

/// A quantity of a target, in thousandths.
fn milli(target: &Value, field: &str) -> Option<i64> {
    let text = target.get(field)?.as_str()?;
    Quantity::parse(text).ok().map(|quantity| quantity.milli_value())
}

/// What pods or a container of theirs use of a resource; `source` is the field of the metric.
pub(super) fn of_resource(metric: &Value, scene: &Scene<'_>, source: &'static str) -> Result<MetricProposal, Unable> {
    let spec = metric.get(source).unwrap_or(&Value::Null);
    let (resource, container) = (spec.str_at(&["name"]), spec.str_at(&["container"]));
    let is_of_container = source == "containerResource";
    let (found, name) = usage(spec, scene, is_of_container);
    let Proposal { replicas, average, utilization } = found.map_err(|why| {
        let (reason, what) = if is_of_container {
            ("FailedGetContainerResourceMetric", format!("{container} container"))
        } else {
            ("FailedGetResourceMetric", format!("{resource} resource"))
        };
        Unable::new(reason, &why, format!("failed to get {what} metric value: {why}"))
    })?;
    let mut current = object! { "averageValue" => metrics::written(resource, average) };
    if spec.get("target").and_then(|target| milli(target, "averageValue")).is_none() {
        current.make_object().insert("averageUtilization", Value::Int(utilization));
    }
    let mut status = object! { "current" => current, "name" => resource };
    if is_of_container {
        status.make_object().insert("container", Value::from(container));
    }
    let status = object! { "type" => metric.str_at(&["type"]), source => status };
    Ok(MetricProposal { replicas, name, status, is_starting: scene.has_unready(resource) })
}

/// The result for the use of a resource, and its name.
fn usage(spec: &Value, scene: &Scene<'_>, is_of_container: bool) -> (Result<Proposal, SourceError>, String) {
    let (resource, container) = (spec.str_at(&["name"]), spec.str_at(&["container"]));
    let target = spec.get("target").unwrap_or(&Value::Null);
    let used = metrics::of_resource(scene.pods, resource, container)
        .map_err(|error| SourceError::Resource { resource: resource.to_owned(), error });
    let of = |what| move |error| SourceError::Usage { resource: resource.to_owned(), what, error: Box::new(error) };
    match (milli(target, "averageValue"), target.get("averageUtilization").and_then(Value::as_i64)) {
        (Some(average), _) => {
            let found = used.and_then(|used| Ok(scene.by_average(used, resource, average)?));
            (found.map_err(of("usage")), format!("{resource} resource"))
        }
        (None, Some(utilization)) => {
            let found = used.and_then(|used| Ok(scene.by_utilization(used, resource, container, utilization)?));
            let kind = if is_of_container { " container" } else { "" };
            let name = format!("{resource}{kind} resource utilization (percentage of request)");
            (found.map_err(of("utilization")), name)
        }
        (None, None) => (Err(SourceError::NoResourceTarget), String::new()),
    }
}

pub(super) fn of_pods(metric: &Value, scene: &Scene<'_>) -> Result<MetricProposal, Unable> {
    let identifier = metric.at(&["pods", "metric"]).cloned().unwrap_or_default();
    let name = identifier.str_at(&["name"]);
    let target = metric.at(&["pods", "target"]).and_then(|target| milli(target, "averageValue")).unwrap_or_default();
    let used = metrics::of_pods(scene.pods, name).map_err(|error| SourceError::Pods { name: name.to_owned(), error });
    let found = used.and_then(|used| Ok(scene.by_average(used, "", target)?));
    let Proposal { replicas, average, .. } = found
        .map_err(|why| Unable::new("FailedGetPodsMetric", &why, format!("failed to get pods metric value: {why}")))?;
    let current = object! { "averageValue" => metrics::written("", average) };
    let name = format!("pods metric {name}");
    let pods = object! { "current" => current, "metric" => identifier };
    let status = object! { "type" => "Pods", "pods" => pods };
    Ok(MetricProposal { replicas, name, status, is_starting: scene.has_unready("") })
}

/// A metric of the described object, which is given with the plural name of its kind, if it exists.
pub(super) fn of_object(
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
    let used =
        object.as_ref().and_then(|object| metrics::of_object(object, &name)).ok_or_else(|| SourceError::Object {
            name: name.clone(),
            kind: kind.clone(),
            namespace: namespace.to_owned(),
            plural,
            object: object_name.clone(),
        });
    let target = spec.get("target").unwrap_or(&Value::Null);
    let unable = |why: SourceError, within: &str| {
        Unable::new("FailedGetObjectMetric", &why, format!("failed to get object metric value: {within}{why}"))
    };
    let (replicas, current, called) = match (milli(target, "value"), milli(target, "averageValue")) {
        (Some(value), _) => {
            let found = used.and_then(|used| Ok((scene.by_value(used, value)?, used)));
            let (replicas, used) = found.map_err(|why: SourceError| unable(why, ""))?;
            (replicas, object! { "value" => metrics::written("", used) }, format!("{kind} metric {name}"))
        }
        (None, Some(average)) => {
            let used = used.map_err(|why| unable(why, &format!("failed to get {name} object metric: ")))?;
            let (replicas, share) = scene.by_share(used, average, counted);
            let current = object! { "averageValue" => metrics::written("", share) };
            (replicas, current, format!("external metric {name}({})", go_selector(identifier.get("selector"))))
        }
        (None, None) => {
            return Err(unable(SourceError::NoTarget("object"), ""));
        }
    };
    let status = object! { "current" => current, "describedObject" => described, "metric" => identifier };
    let status = object! { "type" => "Object", "object" => status };
    Ok(MetricProposal { replicas, name: called, status, is_starting: false })
}

/// An external metric, which is an annotation of the autoscaler.
pub(super) fn of_others(
    autoscaler: &Value,
    metric: &Value,
    scene: &Scene<'_>,
    counted: i64,
) -> Result<MetricProposal, Unable> {
    let spec = metric.get("external").unwrap_or(&Value::Null);
    let identifier = spec.get("metric").cloned().unwrap_or_default();
    let name = identifier.str_at(&["name"]).to_owned();
    let selector = go_selector(identifier.get("selector"));
    let (namespace, _) = place(autoscaler);
    let used = metrics::of_object(autoscaler, &name)
        .ok_or_else(|| SourceError::External(format!("{namespace}/{name}/{selector}")));
    let target = spec.get("target").unwrap_or(&Value::Null);
    let unable = |why: SourceError, within: &str| {
        Unable::new(
            "FailedGetExternalMetric",
            &why,
            format!("failed to get {name} external metric value: {within}{why}"),
        )
    };
    let (replicas, current) = match (milli(target, "averageValue"), milli(target, "value")) {
        (Some(average), _) => {
            let used = used.map_err(|why| unable(why, &format!("failed to get {name} external metric: ")))?;
            let (replicas, share) = scene.by_share(used, average, counted);
            (replicas, object! { "averageValue" => metrics::written("", share) })
        }
        (None, Some(value)) => {
            let found = used.and_then(|used| Ok((scene.by_value(used, value)?, used)));
            let (replicas, used) =
                found.map_err(|why| unable(why, &format!("failed to get external metric {name}: ")))?;
            (replicas, object! { "value" => metrics::written("", used) })
        }
        (None, None) => {
            return Err(unable(SourceError::NoTarget("external"), ""));
        }
    };
    let status = object! { "current" => current, "metric" => identifier };
    let status = object! { "type" => "External", "external" => status };
    Ok(MetricProposal { replicas, name: format!("external metric {name}({selector})"), status, is_starting: false })
}
