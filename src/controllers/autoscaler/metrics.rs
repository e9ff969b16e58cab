//! The measurements: a test writes them into annotations of objects.
//!
//! | metric | where it is read |
//! |---|---|
//! | `cpu`, `memory` of pods and containers | the annotations `kwok.x-k8s.io/usage-cpu` and `-memory` of the pod: what each of its containers uses |
//! | of pods, by a name | the annotation `metrics.skiff.kubeskiff.dev/NAME` of the pod |
//! | of an object | the same of that object |
//! | from outside | the same of the autoscaler |
//!
//! All values are current, and metric selectors have no effect. Missing metrics are reported as kube-controller-manager
//! does.
//!
//! Source: `pkg/controller/podautoscaler/metrics`, release 1.37.

use std::collections::BTreeMap;

use crate::meta::quantity::Quantity;
use crate::value::Value;

const USAGE: &str = "kwok.x-k8s.io/usage-";
const METRIC: &str = "metrics.skiff.kubeskiff.dev/";

/// Why a metric is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum MetricError {
    #[error("no metrics returned from resource metrics API")]
    NoResource,
    #[error("no metrics returned from custom metrics API")]
    NoCustom,
}

/// Thousandths by the names of pods.
pub(super) type OfPods = BTreeMap<String, i64>;

/// What the pods use of a resource; of one container, if it is given.
///
/// # Errors
/// That none is measured.
pub(super) fn of_resource(pods: &[&Value], resource: &str, container: &str) -> Result<OfPods, MetricError> {
    let is_measured = |pod: &&&Value| ["cpu", "memory"].iter().any(|name| annotated(pod, USAGE, name).is_some());
    if !pods.iter().any(|pod| is_measured(&pod)) {
        return Err(MetricError::NoResource);
    }
    let usage = |pod: &&Value| {
        let each = annotated(pod, USAGE, resource)?;
        let containers = pod.items_at(&["spec", "containers"]);
        let is_it = |it: &&Value| container.is_empty() || it.str_at(&["name"]) == container;
        let count = containers.iter().filter(is_it).count() as i64;
        (count > 0).then(|| (name_of(pod), each.saturating_mul(count)))
    };
    Ok(pods.iter().filter_map(usage).collect())
}

/// A metric of pods.
///
/// # Errors
/// That no pod has it.
pub(super) fn of_pods(pods: &[&Value], metric: &str) -> Result<OfPods, MetricError> {
    let found: OfPods = pods.iter().filter_map(|pod| Some((name_of(pod), annotated(pod, METRIC, metric)?))).collect();
    if found.is_empty() { Err(MetricError::NoCustom) } else { Ok(found) }
}

/// A metric of an object, or one that an autoscaler has from outside.
pub(super) fn of_object(object: &Value, metric: &str) -> Option<i64> {
    annotated(object, METRIC, metric)
}

fn annotated(object: &Value, prefix: &str, name: &str) -> Option<i64> {
    let text = object.at(&["metadata", "annotations", &format!("{prefix}{name}")])?.as_str()?;
    Quantity::parse(text).ok().map(|quantity| quantity.milli_value())
}

fn name_of(pod: &Value) -> String {
    pod.str_at(&["metadata", "name"]).to_owned()
}

/// Thousandths in the form of a status: memory in powers of two if that is exact.
pub(super) fn written(resource: &str, milli: i64) -> String {
    const SUFFIXES: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    if resource == "memory" && milli % 1000 == 0 && milli / 1000 >= 1024 {
        let (mut bytes, mut power) = (milli / 1000, 0);
        while bytes % 1024 == 0 && power + 1 < SUFFIXES.len() {
            (bytes, power) = (bytes / 1024, power + 1);
        }
        return format!("{bytes}{}", SUFFIXES[power]);
    }
    Quantity::parse(&format!("{milli}m")).map_or_else(|_| milli.to_string(), |quantity| quantity.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    #[test]
    fn usage_is_that_of_each_container() {
        let pod = |text: &str| yaml::decode(text.as_bytes()).expect("YAML");
        let one = pod(
            "metadata: {name: a, annotations: {kwok.x-k8s.io/usage-cpu: 250m}}\nspec: {containers: [{name: c}, {name: d}]}",
        );
        let other = pod("metadata: {name: b}\nspec: {containers: [{name: c}]}");
        let read = |resource, container| of_resource(&[&one, &other], resource, container);
        assert_eq!(read("cpu", ""), Ok(OfPods::from([("a".to_owned(), 500)])));
        assert_eq!(read("cpu", "d"), Ok(OfPods::from([("a".to_owned(), 250)])));
        assert_eq!(read("cpu", "e"), Ok(OfPods::new()));
        assert_eq!(read("memory", ""), Ok(OfPods::new()));
        assert!(of_resource(&[&other], "cpu", "").is_err());
        assert!(of_pods(&[&one], "hits").is_err());
    }

    #[test]
    fn quantities_are_written_as_go_writes_them() {
        let check = |resource, milli, expected: &str| assert_eq!(written(resource, milli), expected);
        check("cpu", 500, "500m");
        check("cpu", 2000, "2");
        check("cpu", 0, "0");
        check("memory", 104_857_600_000, "100Mi");
        check("memory", 1_048_577_000, "1048577");
        check("memory", 2_000_000, "2000");
        check("memory", 500_000, "500");
        check("memory", 1_048_576_500, "1048576500m");
        check("hits", 2_000_000, "2k");
    }
}
