//! How a table shows the metrics of an autoscaler in v2: `cpu: 30%/80%, 5/10 (avg) + 1 more...`.
//!
//! Source: `formatHPAMetrics` of Kubernetes 1.37.

use crate::value::Value;
use crate::work;

const SHOWN_MAX: usize = 2;
const UNKNOWN: &str = "<unknown>";
/// How Go prints a quantity that is not there.
const NIL: &str = "<nil>";

/// The current and the target values, metric by metric.
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
        let is_told = matches!(name, "external" | "object");
        let (suffix, missing) = if is_told { (" (avg)", UNKNOWN) } else { ("", NIL) };
        return format!("{prefix}{}/{average}{suffix}", amount(current, "averageValue", missing));
    }
    if !is_resource {
        return format!("{}/{}", amount(current, "value", NIL), spec.str_at(&[name, "target", "value"]));
    }
    let percent = |value: Option<&Value>, otherwise: &str| {
        let number = value.and_then(|value| value.get("averageUtilization")).and_then(Value::as_i64);
        number.map_or_else(|| otherwise.to_owned(), |number| format!("{number}%"))
    };
    format!("{prefix}{}/{}", percent(current, UNKNOWN), percent(spec.at(&[name, "target"]), "<auto>"))
}

/// An amount of the status; `missing` if there is a status without it.
fn amount<'v>(current: Option<&'v Value>, name: &str, missing: &'v str) -> &'v str {
    current.map_or(UNKNOWN, |current| current.get(name).and_then(Value::as_str).unwrap_or(missing))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    #[test]
    fn a_status_without_an_amount_shows_nil_where_go_does() {
        let check = |spec: &str, status: Option<&str>, expected: &str| {
            let read = |text: &str| yaml::decode(text.as_bytes()).expect("the test is YAML");
            assert_eq!(metric(&read(spec), status.map(read).as_ref()), expected);
        };
        let pods = "{type: Pods, pods: {target: {averageValue: 1k}}}";
        check(pods, None, "<unknown>/1k");
        check(pods, Some("{pods: {current: {}}}"), "<nil>/1k");
        let external = "{type: External, external: {target: {averageValue: 1k}}}";
        check(external, Some("{external: {current: {}}}"), "<unknown>/1k (avg)");
        let external = "{type: External, external: {target: {value: 1k}}}";
        check(external, Some("{external: {current: {}}}"), "<nil>/1k");
    }
}
