//! Conversion of metrics between the versions: their targets and their current values.
//!
//! Source: `pkg/apis/autoscaling/v1/conversion.go` of Kubernetes 1.37.

use crate::object;
use crate::value::Value;

/// A kind of metric: its name, and each field's place in v1 and in v2.
struct Source {
    name: &'static str,
    fields: &'static [(&'static str, &'static [&'static str])],
}

const NAME: &[&str] = &["metric", "name"];
const SELECTOR: &[&str] = &["metric", "selector"];
const VALUE: &[&str] = &["target", "value"];
const AVERAGE: &[&str] = &["target", "averageValue"];
const UTILIZATION: &[&str] = &["target", "averageUtilization"];
const CURRENT_VALUE: &[&str] = &["current", "value"];
const CURRENT_AVERAGE: &[&str] = &["current", "averageValue"];
const CURRENT_UTILIZATION: &[&str] = &["current", "averageUtilization"];

/// What is wanted.
const SPECS: [Source; 5] = [
    Source {
        name: "object",
        fields: &[
            ("target", &["describedObject"]),
            ("metricName", NAME),
            ("targetValue", VALUE),
            ("selector", SELECTOR),
            ("averageValue", AVERAGE),
        ],
    },
    Source { name: "pods", fields: &[("metricName", NAME), ("targetAverageValue", AVERAGE), ("selector", SELECTOR)] },
    Source {
        name: "resource",
        fields: &[("name", &["name"]), ("targetAverageUtilization", UTILIZATION), ("targetAverageValue", AVERAGE)],
    },
    Source {
        name: "containerResource",
        fields: &[
            ("name", &["name"]),
            ("targetAverageUtilization", UTILIZATION),
            ("targetAverageValue", AVERAGE),
            ("container", &["container"]),
        ],
    },
    Source {
        name: "external",
        fields: &[
            ("metricName", NAME),
            ("metricSelector", SELECTOR),
            ("targetValue", VALUE),
            ("targetAverageValue", AVERAGE),
        ],
    },
];

/// What was measured.
const STATUSES: [Source; 5] = [
    Source {
        name: "object",
        fields: &[
            ("target", &["describedObject"]),
            ("metricName", NAME),
            ("currentValue", CURRENT_VALUE),
            ("selector", SELECTOR),
            ("averageValue", CURRENT_AVERAGE),
        ],
    },
    Source {
        name: "pods",
        fields: &[("metricName", NAME), ("currentAverageValue", CURRENT_AVERAGE), ("selector", SELECTOR)],
    },
    Source {
        name: "resource",
        fields: &[
            ("name", &["name"]),
            ("currentAverageUtilization", CURRENT_UTILIZATION),
            ("currentAverageValue", CURRENT_AVERAGE),
        ],
    },
    Source {
        name: "containerResource",
        fields: &[
            ("name", &["name"]),
            ("currentAverageUtilization", CURRENT_UTILIZATION),
            ("currentAverageValue", CURRENT_AVERAGE),
            ("container", &["container"]),
        ],
    },
    Source {
        name: "external",
        fields: &[
            ("metricName", NAME),
            ("metricSelector", SELECTOR),
            ("currentValue", CURRENT_VALUE),
            ("currentAverageValue", CURRENT_AVERAGE),
        ],
    },
];

/// A `MetricSpec` of v1, in v2.
pub fn spec_to_v2(metric: &Value) -> Value {
    let mut converted = to_v2(metric, &SPECS);
    for source in &SPECS {
        if let Some(source_value) = converted.get_mut(source.name) {
            set_target_type(source.name, source_value);
        }
    }
    converted
}

/// A `MetricSpec` of v2, in v1.
pub fn spec_to_v1(metric: &Value) -> Value {
    to_v1(metric, &SPECS)
}

/// A `MetricStatus` of v1, in v2.
pub fn status_to_v2(metric: &Value) -> Value {
    to_v2(metric, &STATUSES)
}

/// A `MetricStatus` of v2, in v1.
pub fn status_to_v1(metric: &Value) -> Value {
    to_v1(metric, &STATUSES)
}

fn present<'v>(value: &'v Value, path: &[&str]) -> Option<&'v Value> {
    value.at(path).filter(|value| !value.is_null())
}

fn to_v2(metric: &Value, sources: &[Source]) -> Value {
    convert(metric, sources, |from, fields| {
        let mut to = object! {};
        for (name, path) in fields {
            let Some(value) = present(from, &[name]) else { continue };
            let place = path.iter().fold(&mut to, |place, step| place.make_object().entry(step));
            *place = value.clone();
        }
        to
    })
}

fn to_v1(metric: &Value, sources: &[Source]) -> Value {
    convert(metric, sources, |from, fields| {
        let mut to = object! {};
        for (name, path) in fields {
            if let Some(value) = present(from, path) {
                to.make_object().insert(*name, value.clone());
            }
        }
        to
    })
}

type Fields = [(&'static str, &'static [&'static str])];

fn convert(metric: &Value, sources: &[Source], convert_source: impl Fn(&Value, &Fields) -> Value) -> Value {
    let mut converted = object! { "type" => metric.str_at(&["type"]) };
    for source in sources {
        if let Some(value) = present(metric, &[source.name]) {
            converted.make_object().insert(source.name, convert_source(value, source.fields));
        }
    }
    converted
}

/// v1 does not say which of its numbers is the target.
fn set_target_type(source: &str, value: &mut Value) {
    let has = |value: &Value, path: &[&str]| present(value, path).is_some();
    let type_ = match source {
        "object" if has(value, AVERAGE) => {
            // Without an amount v1 writes 0.
            if value.str_at(VALUE) == "0"
                && let Some(Value::Object(target)) = value.get_mut("target")
            {
                target.remove("value");
            }
            "AverageValue"
        }
        "object" => "Value",
        "external" if has(value, VALUE) => "Value",
        "resource" | "containerResource" if has(value, UTILIZATION) => "Utilization",
        _ => "AverageValue",
    };
    value.make_object().entry("target").make_object().insert("type", Value::from(type_));
}
