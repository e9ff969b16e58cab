//! The admission plugins PodResizeValidator and NodeDeclaredFeatureValidator: what a node can do for a pod that changes on it.
//!
//! Source: `plugin/pkg/admission/{podresize,nodedeclaredfeatures}` and `k8s.io/component-helpers/nodedeclaredfeatures`.

use crate::kinds::{pod, semantic};
use crate::meta::quantity::Quantity;
use crate::value::{Value, go_quote};

use super::is_sidecar;

/// Why a pod is not resized: text, and cause.
pub type Refused = (String, &'static str);

/// Features that a node must declare for a change of a pod.
pub fn features(new: &Value, old: &Value) -> Vec<&'static str> {
    let resources = |pod: &Value| pod.at(&["spec", "resources"]).cloned();
    let of_pod = !semantic::equal("resources", resources(new).as_ref(), resources(old).as_ref());
    let pairs = old.items_at(&["spec", "initContainers"]).iter().zip(new.items_at(&["spec", "initContainers"]));
    let of_init = pairs.into_iter().any(|(old, new)| {
        !is_sidecar(old) && !semantic::equal("resources", old.get("resources"), new.get("resources"))
    });
    let mut features = Vec::new();
    features.extend(of_pod.then_some("InPlacePodLevelResourcesVerticalScaling"));
    features.extend(of_init.then_some("InPlacePodVerticalScalingInitContainers"));
    features
}

/// Why a node does not support the features of a change.
pub fn missing(features: &[&str], node: &Value) -> Option<String> {
    let declared = node.items_at(&["status", "declaredFeatures"]);
    let is_missing = |feature: &&&str| !declared.iter().any(|declared| declared.as_str() == Some(**feature));
    let missing: Vec<&str> = features.iter().filter(is_missing).copied().collect();
    let name = go_quote(node.str_at(&["metadata", "name"]));
    let listed = missing.join(", ");
    (!missing.is_empty())
        .then(|| format!("pod update requires features {listed} which are not available on node {name}"))
}

/// Why a pod is not resized on its node.
pub fn refuse(pod: &Value, node: &Value) -> Option<Refused> {
    let os = node.at(&["metadata", "labels", "kubernetes.io/os"]).and_then(Value::as_str);
    if let Some(os) = os.filter(|os| *os != "linux") {
        let name = go_quote(node.str_at(&["metadata", "name"]));
        let why = format!("pod resize is only supported on linux nodes, node {name} is {}", go_quote(os));
        return Some((why, "UnsupportedPlatform"));
    }
    let spec = pod.get("spec").unwrap_or(&Value::Null);
    let requests = pod::requests(spec);
    let zero = || Quantity::from_i64(0);
    let mut faults = Vec::new();
    for (name, unit) in [("cpu", 1000), ("memory", 1)] {
        let has = Quantity::parse(node.str_at(&["status", "allocatable", name])).unwrap_or_else(|_| zero());
        let wanted = requests.get(name).cloned().unwrap_or_else(zero);
        if wanted > has {
            let (wanted, has) = (wanted.as_approximate_f64(), has.as_approximate_f64());
            let shown = |number: f64| (number * f64::from(unit)).ceil() as i64;
            faults.push(format!("{name}, requested: {}, allocatable: {}", shown(wanted), shown(has)));
        }
    }
    let why = format!("node didn't have enough allocatable resources: {}", faults.join("; "));
    (!faults.is_empty()).then_some((why, "NodeCapacity"))
}
