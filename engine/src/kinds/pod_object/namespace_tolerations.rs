//! The admission plugin PodTolerationRestriction: the tolerations that a namespace gives to its pods, and those that it allows.
//!
//! A namespace has both in annotations, as lists of tolerations in JSON; those of the cluster apply if it does not.
//! Source: `plugin/pkg/admission/podtolerationrestriction` and `pkg/util/tolerations`.

use thiserror::Error;

use super::qos;
use super::runtime_class::{covers, merge_tolerations};
use crate::meta::unmarshal::UnmarshalError;
use crate::object;
use crate::types::{self, decoder::TypedDecoder};
use crate::value::{Value, json};

const DEFAULTS: &str = "scheduler.alpha.kubernetes.io/defaultTolerations";
const ALLOWED: &str = "scheduler.alpha.kubernetes.io/tolerationsWhitelist";
const MEMORY_PRESSURE: &str = "node.kubernetes.io/memory-pressure";

/// The tolerations of pods whose namespaces say nothing of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterTolerations {
    /// The tolerations that pods get.
    pub default: Vec<Value>,
    /// The tolerations that pods may have; any, if it is empty.
    pub allowed: Vec<Value>,
}

/// Why a pod is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TolerationsError {
    /// The annotation of the namespace is not JSON.
    #[error("{0}")]
    NotJson(String),
    /// The annotation of the namespace is not a list of tolerations.
    #[error(transparent)]
    NotTolerations(#[from] UnmarshalError),
    /// The pod tolerates more than this scope, `namespace` or `cluster`, allows.
    #[error("pod tolerations (possibly merged with namespace default tolerations) conflict with its {0} whitelist")]
    Conflict(&'static str),
}

/// Gives a pod the tolerations of its namespace if it `is_new`, and, if it asks for resources, the toleration of memory
/// pressure.
///
/// # Errors
///
/// The errors of the annotation of the namespace.
pub fn admit(
    pod: &mut Value,
    namespace: &Value,
    cluster: &ClusterTolerations,
    is_new: bool,
) -> Result<(), TolerationsError> {
    let mut more =
        if is_new { tolerations(namespace, DEFAULTS)?.unwrap_or_else(|| cluster.default.clone()) } else { Vec::new() };
    if qos::class(pod) != "BestEffort" {
        more.push(object! { "key" => MEMORY_PRESSURE, "operator" => "Exists", "effect" => "NoSchedule" });
    }
    if !more.is_empty() {
        merge_tolerations(pod.make_object().entry("spec"), &more);
    }
    Ok(())
}

/// Checks that a pod tolerates no more than its namespace, or else the cluster, allows.
///
/// # Errors
///
/// Why it is refused, or what is wrong with the annotation of the namespace.
pub fn validate(pod: &Value, namespace: &Value, cluster: &ClusterTolerations) -> Result<(), TolerationsError> {
    let own = pod.items_at(&["spec", "tolerations"]);
    if own.is_empty() {
        return Ok(());
    }
    let own_allowed = tolerations(namespace, ALLOWED)?;
    let scope = if own_allowed.is_some() { "namespace" } else { "cluster" };
    let allowed = own_allowed.as_ref().unwrap_or(&cluster.allowed);
    let is_allowed = |toleration: &Value| allowed.iter().any(|wider| covers(wider, toleration));
    if allowed.is_empty() || own.iter().all(is_allowed) {
        return Ok(());
    }
    Err(TolerationsError::Conflict(scope))
}

/// The tolerations in an annotation; `None` if there is no such annotation.
fn tolerations(namespace: &Value, annotation: &str) -> Result<Option<Vec<Value>>, TolerationsError> {
    let Some(text) = namespace.at(&["metadata", "annotations", annotation]).and_then(Value::as_str) else {
        return Ok(None);
    };
    if text.is_empty() {
        return Ok(Some(Vec::new()));
    }
    let list = json::decode(text.as_bytes()).map_err(|error| TolerationsError::NotJson(error.to_string()))?;
    TypedDecoder::run(|typed| typed.list(&list, "[]v1.Toleration", |_, _| Ok(())))?;
    let message = types::message_named("core.v1", "Toleration");
    let tolerations = list.items_at(&[]).iter().map(|toleration| Ok(message.decode(toleration)?.0));
    tolerations.collect::<Result<_, _>>().map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    fn read(text: &str) -> Value {
        yaml::decode(text.as_bytes()).expect("the test is YAML")
    }

    fn namespace(annotation: &str, tolerations: &str) -> Value {
        object! { "metadata" => object! { "annotations" => object! { annotation => tolerations } } }
    }

    #[test]
    fn a_new_pod_gets_what_its_namespace_tolerates() {
        let namespace = namespace(DEFAULTS, r#"[{"key":"a","operator":"Exists"}]"#);
        let mut pod = read("spec: {tolerations: [{key: b, operator: Exists}]}");
        admit(&mut pod, &namespace, &ClusterTolerations::default(), true).expect("the annotation is right");
        assert_eq!(pod.items_at(&["spec", "tolerations"]).len(), 2);
        let mut old = read("spec: {}");
        admit(&mut old, &namespace, &ClusterTolerations::default(), false).expect("the annotation is right");
        assert_eq!(old, read("spec: {}"));
    }

    #[test]
    fn a_new_pod_gets_what_the_cluster_tolerates_where_its_namespace_says_nothing() {
        let cluster = ClusterTolerations { default: vec![object! { "key" => "a" }], ..ClusterTolerations::default() };
        let added = |namespace: &Value| {
            let mut pod = read("spec: {}");
            admit(&mut pod, namespace, &cluster, true).expect("the annotation is right");
            pod.items_at(&["spec", "tolerations"]).len()
        };
        assert_eq!((added(&read("{}")), added(&namespace(DEFAULTS, ""))), (1, 0));
    }

    #[test]
    fn a_pod_that_asks_for_resources_tolerates_a_lack_of_memory() {
        let mut pod = read("spec: {containers: [{name: c, resources: {requests: {cpu: '1'}}}]}");
        admit(&mut pod, &read("{}"), &ClusterTolerations::default(), true).expect("there is no annotation");
        assert_eq!(pod.items_at(&["spec", "tolerations"])[0].str_at(&["key"]), MEMORY_PRESSURE);
    }

    #[test]
    fn what_is_not_allowed_is_refused() {
        let namespace = namespace(ALLOWED, r#"[{"key":"a","operator":"Exists"}]"#);
        let cluster = ClusterTolerations { allowed: vec![object! { "key" => "b" }], ..ClusterTolerations::default() };
        let pod = |tolerations: &str| read(&format!("spec: {{tolerations: {tolerations}}}"));
        let check = |tolerations: &str| validate(&pod(tolerations), &namespace, &cluster);
        assert_eq!(check("[]"), Ok(()));
        assert_eq!(check("[{key: a, operator: Equal, value: v}]"), Ok(()));
        assert!(
            check("[{key: b, operator: Exists}]")
                .is_err_and(|why| why.to_string().ends_with("its namespace whitelist"))
        );
        assert!(tolerations(&self::namespace(ALLOWED, "["), ALLOWED).is_err());
        let refused = |text: &str| {
            let refused = tolerations(&self::namespace(ALLOWED, text), ALLOWED).expect_err("it is wrong");
            refused.to_string()
        };
        assert_eq!(refused("{}"), "json: cannot unmarshal object into Go value of type []v1.Toleration");
        assert_eq!(refused("[{}, 1]"), "json: cannot unmarshal number into Go value of type v1.Toleration");
        let why = "json: cannot unmarshal bool into Go struct field Toleration.key of type string";
        assert_eq!(refused(r#"[{"key":true}]"#), why);
        // If the namespace has none, those of the cluster apply.
        let check = |tolerations: &str| validate(&pod(tolerations), &read("{}"), &cluster);
        assert_eq!(check("[{key: b}]"), Ok(()));
        assert!(check("[{key: a}]").is_err_and(|why| why.to_string().ends_with("its cluster whitelist")));
    }
}
