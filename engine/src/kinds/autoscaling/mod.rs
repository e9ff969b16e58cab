//! HorizontalPodAutoscaler in its two versions. v2 is stored and checked; v1 keeps in annotations what it has no fields for.
//!
//! Source: `pkg/apis/autoscaling` of Kubernetes 1.37.

pub(crate) mod behavior;
pub(crate) mod cells;
pub(crate) mod convert;
pub(crate) mod metrics;
pub(crate) mod validate;

use crate::object;
use crate::value::Value;

/// How many per cent of the processors the pods are to use where nobody says what to measure.
pub const DEFAULT_CPU_UTILIZATION: i64 = 80;

/// The metric of the processors' use.
pub fn cpu_metric(utilization: i64) -> Value {
    let target = object! { "type" => "Utilization", "averageUtilization" => utilization };
    object! { "type" => "Resource", "resource" => object! { "name" => "cpu", "target" => target } }
}
