//! An autoscaler from version to version.
//!
//! Source: `pkg/apis/autoscaling/v1/conversion.go` of Kubernetes 1.37.

use super::{DEFAULT_CPU_UTILIZATION, behavior, cpu_metric, metrics};
use crate::kinds::defaults;
use crate::kinds::workloads::{remove_annotation, set_annotation};
use crate::types;
use crate::types::Message;
use crate::value::{Value, json};
use crate::work;

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";

/// The fields that v1 keeps, or kept, in annotations.
pub const ANNOTATIONS: [&str; 6] = [
    METRICS,
    CURRENT_METRICS,
    CONDITIONS,
    BEHAVIOR,
    "autoscaling.alpha.kubernetes.io/scale-down-tolerance",
    "autoscaling.alpha.kubernetes.io/scale-up-tolerance",
];

const V1: &str = "autoscaling/v1";
const V2: &str = "autoscaling/v2";

/// The autoscaler in the requested version, as Go writes it.
pub fn convert(autoscaler: &Value, api_version: &str) -> Value {
    let converted = match (autoscaler.str_at(&["apiVersion"]), api_version) {
        (V1, V2) => to_v2(autoscaler),
        (V2, V1) => to_v1(autoscaler),
        _ => autoscaler.clone(),
    };
    let version = api_version.rsplit('/').next().unwrap_or_default();
    let message = types::message_of_kind("autoscaling", version, "HorizontalPodAutoscaler");
    let Ok((mut written, _)) = message.decode(&converted) else { return converted };
    // The beginning of the year 1 is not a time for Go, but the pointer to it is set, and conversion copies that.
    if converted.at(&["metadata", "deletionTimestamp"]).is_some_and(Value::is_null) {
        written.make_object().entry("metadata").make_object().insert("deletionTimestamp", Value::Null);
    }
    written
}

/// Removes the annotations, whose content has been moved to fields or dropped.
pub fn drop_annotations(autoscaler: &mut Value) {
    ANNOTATIONS.iter().for_each(|name| remove_annotation(autoscaler, name));
}

fn to_v2(v1: &Value) -> Value {
    let mut v2 = v1.clone();
    v2.make_object().insert("apiVersion", Value::from(V2));
    convert_spec(v1, defaults::structure(&mut v2, "spec"));
    convert_status(v1, defaults::structure(&mut v2, "status"));
    drop_annotations(&mut v2);
    v2
}

fn annotation<'v>(autoscaler: &'v Value, name: &str) -> Option<&'v str> {
    autoscaler.at(&["metadata", "annotations", name]).and_then(Value::as_str)
}

fn convert_spec(v1: &Value, spec: &mut Value) {
    let fields = spec.make_object();
    let utilization = fields.remove("targetCPUUtilizationPercentage").as_ref().and_then(Value::as_i64);
    let others = annotation(v1, METRICS).and_then(|text| read(text, "MetricSpec")).unwrap_or_default();
    let mut metrics: Vec<Value> = others.iter().map(metrics::spec_to_v2).collect();
    metrics.extend(utilization.map(cpu_metric));
    if metrics.is_empty() {
        metrics.push(cpu_metric(DEFAULT_CPU_UTILIZATION));
    }
    fields.insert("metrics", Value::Array(metrics));
    if let Some(behavior) = annotation(v1, BEHAVIOR).and_then(behavior::from_annotation) {
        fields.insert("behavior", behavior);
    }
}

fn convert_status(v1: &Value, status: &mut Value) {
    let fields = status.make_object();
    let utilization = fields.remove("currentCPUUtilizationPercentage").as_ref().and_then(Value::as_i64);
    let used = |utilization: i64| {
        let current = crate::object! { "averageUtilization" => utilization };
        let resource = crate::object! { "name" => "cpu", "current" => current };
        vec![crate::object! { "type" => "Resource", "resource" => resource }]
    };
    let measured = annotation(v1, CURRENT_METRICS).and_then(|text| read(text, "MetricStatus"));
    let measured = measured.map(|measured| measured.iter().map(metrics::status_to_v2).collect());
    if let Some(measured) = measured.or_else(|| utilization.map(used)) {
        fields.insert("currentMetrics", Value::Array(measured));
    }
    let conditions = annotation(v1, CONDITIONS).and_then(|text| read(text, "HorizontalPodAutoscalerCondition"));
    if let Some(conditions) = conditions {
        fields.insert("conditions", Value::Array(conditions));
    }
}

fn to_v1(v2: &Value) -> Value {
    let mut v1 = v2.clone();
    v1.make_object().insert("apiVersion", Value::from(V1));
    drop_annotations(&mut v1);
    keep_metrics(v2, &mut v1);
    keep_status(v2, &mut v1);
    if let Some(behavior) = v2.at(&["spec", "behavior"]).filter(|behavior| !behavior.is_null()) {
        set_annotation(&mut v1, BEHAVIOR, &behavior::to_annotation(behavior));
    }
    defaults::structure(&mut v1, "spec").make_object().remove("behavior");
    v1
}

/// The use of processors in per cent, of a metric that wants that.
fn cpu_target(metric: &Value) -> Option<i64> {
    let is_cpu = metric.str_at(&["type"]) == "Resource" && metric.str_at(&["resource", "name"]) == "cpu";
    metric.at(&["resource", "target", "averageUtilization"]).and_then(Value::as_i64).filter(|_| is_cpu)
}

fn keep_metrics(v2: &Value, v1: &mut Value) {
    let metrics = v2.items_at(&["spec", "metrics"]);
    work::steps(metrics.len());
    let others: Vec<Value> =
        metrics.iter().filter(|metric| cpu_target(metric).is_none()).map(metrics::spec_to_v1).collect();
    if !others.is_empty() {
        set_annotation(v1, METRICS, &written(&others, "MetricSpec"));
    }
    let spec = defaults::structure(v1, "spec").make_object();
    spec.remove("metrics");
    if let Some(utilization) = metrics.iter().find_map(cpu_target) {
        spec.insert("targetCPUUtilizationPercentage", Value::Int(utilization));
    }
}

fn keep_status(v2: &Value, v1: &mut Value) {
    let measured = v2.items_at(&["status", "currentMetrics"]);
    work::steps(measured.len());
    if !measured.is_empty() {
        let converted: Vec<Value> = measured.iter().map(metrics::status_to_v1).collect();
        set_annotation(v1, CURRENT_METRICS, &written(&converted, "MetricStatus"));
    }
    let conditions = v2.items_at(&["status", "conditions"]);
    if !conditions.is_empty() {
        set_annotation(v1, CONDITIONS, &written(conditions, "HorizontalPodAutoscalerCondition"));
    }
    let status = defaults::structure(v1, "status").make_object();
    status.remove("currentMetrics");
    status.remove("conditions");
    let used = measured.iter().rev().find_map(|metric| {
        let is_cpu = metric.str_at(&["type"]) == "Resource" && metric.str_at(&["resource", "name"]) == "cpu";
        metric.at(&["resource", "current", "averageUtilization"]).and_then(Value::as_i64).filter(|_| is_cpu)
    });
    if let Some(used) = used {
        status.insert("currentCPUUtilizationPercentage", Value::Int(used));
    }
}

fn message(name: &str) -> &'static Message {
    types::message_named("autoscaling.v1", name)
}

/// The list in an annotation; `None` if it is malformed.
fn read(text: &str, type_: &str) -> Option<Vec<Value>> {
    let Value::Array(items) = json::decode(text.as_bytes()).ok()? else { return None };
    items.iter().map(|item| message(type_).decode(item).ok().map(|(item, _)| item)).collect()
}

/// The list as Go writes it.
fn written(items: &[Value], type_: &str) -> String {
    let texts = items.iter().map(|item| {
        let item = message(type_).decode(item).map_or_else(|_| item.clone(), |(item, _)| item);
        String::from_utf8(json::encode_as(&item, message(type_).layout())).unwrap_or_default()
    });
    format!("[{}]", texts.collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(v2: &str, v1: &str) {
        let read = |text: &str| json::decode(text.as_bytes()).expect("the test is JSON");
        let older = convert(&read(v2), V1);
        assert_eq!(json::encode_to_string(&older), v1);
        assert_eq!(json::encode_to_string(&convert(&older, V2)), v2);
    }

    #[test]
    fn what_v1_has_no_field_for_comes_back_from_annotations() {
        check(
            r#"{"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler","metadata":{"name":"a"},"spec":{"maxReplicas":3,"metrics":[{"pods":{"metric":{"name":"rps"},"target":{"averageValue":"1k","type":"AverageValue"}},"type":"Pods"},{"resource":{"name":"cpu","target":{"averageUtilization":50,"type":"Utilization"}},"type":"Resource"}],"scaleTargetRef":{"kind":"Deployment","name":"web"}},"status":{"currentMetrics":null,"desiredReplicas":0}}"#,
            r#"{"apiVersion":"autoscaling/v1","kind":"HorizontalPodAutoscaler","metadata":{"annotations":{"autoscaling.alpha.kubernetes.io/metrics":"[{\"type\":\"Pods\",\"pods\":{\"metricName\":\"rps\",\"targetAverageValue\":\"1k\"}}]"},"name":"a"},"spec":{"maxReplicas":3,"scaleTargetRef":{"kind":"Deployment","name":"web"},"targetCPUUtilizationPercentage":50},"status":{"currentReplicas":0,"desiredReplicas":0}}"#,
        );
    }
}
