//! HorizontalPodAutoscaler in its two versions. v2 is stored and validated; v1 keeps in annotations the data that it
//! has no fields for.
//!
//! Source: `pkg/apis/autoscaling` of Kubernetes 1.37.

pub(crate) mod behavior;
pub(crate) mod cells;
pub(crate) mod convert;
pub(crate) mod metrics;
pub(crate) mod validate;

use crate::object;
use crate::value::Value;

/// The default target for CPU utilization, in percent, if no metric is given.
pub const DEFAULT_CPU_UTILIZATION: i64 = 80;

/// The metric of the processors' use.
pub fn cpu_metric(utilization: i64) -> Value {
    let target = object! { "type" => "Utilization", "averageUtilization" => utilization };
    object! { "type" => "Resource", "resource" => object! { "name" => "cpu", "target" => target } }
}
