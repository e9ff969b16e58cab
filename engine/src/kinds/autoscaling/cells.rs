//! How a table shows the metrics of an autoscaler in v2: `cpu: 30%/80%, 5/10 (avg) + 1 more...`.
//!
//! Source: `formatHPAMetrics` of Kubernetes 1.37.

use crate::value::Value;
use crate::work;

const SHOWN_MAX: usize = 2;
const UNKNOWN: &str = "<unknown>";

/// What is measured and wanted, metric by metric.
pub fn metrics(autoscaler: &Value) -> String {
    let specs = autoscaler.items_at(&["spec", "metrics"]);
    let statuses = autoscaler.items_at(&["status", "currentMetrics"]);
    if specs.is_empty() {
        return "<none>".to_owned();
    }
    work::steps(specs.len());
    let shown = specs.iter().enumerate().take(SHOWN_MAX);
    let texts: Vec<String> = shown.map(|(at, spec)| metric(spec, statuses.get(at))).collect();
    let text = texts.join(", ");
    match specs.len().checked_sub(SHOWN_MAX) {
        Some(more @ 1..) => format!("{text} + {more} more..."),
        _ => text,
    }
}

fn metric(spec: &Value, status: Option<&Value>) -> String {
    let name = match spec.str_at(&["type"]) {
        "External" => "external",
        "Pods" => "pods",
        "Object" => "object",
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        _ => return "<unknown type>".to_owned(),
    };
    let current = status.and_then(|status| status.at(&[name, "current"]));
    let is_resource = matches!(name, "resource" | "containerResource");
    let prefix = if is_resource { format!("{}: ", spec.str_at(&[name, "name"])) } else { String::new() };
    let average = spec.str_at(&[name, "target", "averageValue"]);
    if !average.is_empty() {
        let suffix = if matches!(name, "external" | "object") { " (avg)" } else { "" };
        return format!("{prefix}{}/{average}{suffix}", amount(current, "averageValue"));
    }
    if !is_resource {
        return format!("{}/{}", amount(current, "value"), spec.str_at(&[name, "target", "value"]));
    }
    let percent = |value: Option<&Value>, otherwise: &str| {
        let number = value.and_then(|value| value.get("averageUtilization")).and_then(Value::as_i64);
        number.map_or_else(|| otherwise.to_owned(), |number| format!("{number}%"))
    };
    format!("{prefix}{}/{}", percent(current, UNKNOWN), percent(spec.at(&[name, "target"]), "<auto>"))
}

fn amount<'v>(current: Option<&'v Value>, name: &str) -> &'v str {
    current.and_then(|current| current.get(name)).and_then(Value::as_str).unwrap_or(UNKNOWN)
}
