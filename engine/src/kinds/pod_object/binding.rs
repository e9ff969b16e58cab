//! `/binding`: a pod gets a node.
//!
//! Source: `BindingREST` of `pkg/registry/core/pod/storage` and `ValidatePodBinding`.

use thiserror::Error;

use crate::meta::Status;
use crate::meta::field::{self, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::gate::Gate;
use crate::meta::minor::Minor;
use crate::value::{Value, go_quote};

use super::conditions::{self, Condition};

/// Checks a binding that was sent for the pod `name`.
///
/// # Errors
///
/// 400 for another name, 500 for a target that is not a node, as the reference answers.
pub fn check(binding: &Value, name: &str) -> Result<(), Status> {
    if binding.str_at(&["metadata", "name"]) != name {
        return Err(Status::bad_request("name in URL does not match name in Binding object"));
    }
    let errors = validate(binding);
    if errors.is_empty() { Ok(()) } else { Err(Status::plain(500, &errors.aggregate())) }
}

fn validate(binding: &Value) -> ErrorList {
    let root = FieldRef::root(binding);
    let target = root.field("target");
    let (kind, name) = (target.field("kind"), target.field("name"));
    let mut errors = ErrorList::new();
    if !matches!(kind.text(), "" | "Node") {
        errors.push(field::Error::not_supported(kind.path(), kind.text(), &["Node", "<empty>"]));
    }
    if name.is_empty() {
        errors.push(name.required(""));
    }
    errors
}

/// Why a pod can't be bound.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BindError {
    /// It is being deleted.
    #[error("pod {0} is being deleted, cannot be assigned to a host")]
    Deleted(String),
    /// It has a node already.
    #[error("pod {name} is already assigned to node {}", go_quote(.node))]
    Assigned {
        /// The pod.
        name: String,
        /// Its node.
        node: String,
    },
    /// It waits for scheduling gates to be removed.
    #[error("pod {0} has non-empty .spec.schedulingGates")]
    Gated(String),
}

/// The pod, bound. `now` is RFC 3339.
///
/// # Errors
///
/// The pod is being deleted, has a node, or has scheduling gates: a [`conflict`].
pub fn bind(minor: Minor, pod: &Value, binding: &Value, now: &str) -> Result<Value, BindError> {
    let (name, node) = (pod.str_at(&["metadata", "name"]), pod.str_at(&["spec", "nodeName"]));
    if pod.at(&["metadata", "deletionTimestamp"]).is_some() {
        return Err(BindError::Deleted(name.to_owned()));
    }
    if !node.is_empty() {
        return Err(BindError::Assigned { name: name.to_owned(), node: node.to_owned() });
    }
    if !pod.items_at(&["spec", "schedulingGates"]).is_empty() {
        return Err(BindError::Gated(name.to_owned()));
    }
    let mut bound = pod.clone();
    let fields = bound.make_object();
    fields.entry("spec").make_object().insert("nodeName", Value::from(binding.str_at(&["target", "name"])));
    if minor.opens(Gate::ClearingNominatedNodeNameAfterBinding) {
        fields.entry("status").make_object().remove("nominatedNodeName");
    }
    for list in ["annotations", "labels"] {
        let Some(added) = binding.at(&["metadata", list]).and_then(Value::as_object) else { continue };
        let own = fields.entry("metadata").make_object().entry(list).make_object();
        for (key, value) in added.iter() {
            own.insert(key, value.clone());
        }
    }
    let condition = Condition { kind: conditions::SCHEDULED, status: "True", reason: "", message: "" };
    conditions::set(&mut bound, &condition, now);
    Ok(bound)
}

/// The conflict of a pod that can't be bound.
pub fn conflict(name: &str, why: &BindError) -> Status {
    Status::conflict("", "pods/binding", name, &why.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    fn read(text: &str) -> Value {
        yaml::decode(text.as_bytes()).expect("YAML")
    }

    #[test]
    fn a_binding_names_a_node() {
        let told = |binding: &str| check(&read(binding), "a").expect_err("it is refused").message;
        assert_eq!(told("metadata: {name: b}"), "name in URL does not match name in Binding object");
        assert_eq!(
            told("metadata: {name: a}\ntarget: {kind: Rack, name: ''}"),
            "[target.kind: Unsupported value: \"Rack\": supported values: \"Node\", \"<empty>\", target.name: Required value]"
        );
    }

    #[test]
    fn a_pod_is_bound_once() {
        let binding = read("metadata: {name: a, labels: {l: m}}\ntarget: {name: node}");
        let bound = bind(Minor::NEWEST, &read("metadata: {name: a}"), &binding, "now").expect("it is bound");
        assert_eq!((bound.str_at(&["spec", "nodeName"]), bound.str_at(&["metadata", "labels", "l"])), ("node", "m"));
        assert!(conditions::is_true(&bound, "PodScheduled"));
        let why = bind(Minor::NEWEST, &bound, &binding, "now").expect_err("it has a node");
        assert_eq!(why.to_string(), "pod a is already assigned to node \"node\"");
    }

    #[test]
    fn a_bound_pod_is_no_longer_nominated_since_1_35() {
        let pod = read("metadata: {name: a}\nstatus: {nominatedNodeName: other}");
        let nominated = |number| {
            let binding = read("metadata: {name: a}\ntarget: {name: node}");
            let bound = bind(Minor::of(number), &pod, &binding, "now").expect("it is bound");
            bound.str_at(&["status", "nominatedNodeName"]).to_owned()
        };
        assert_eq!((nominated(34).as_str(), nominated(35).as_str()), ("other", ""));
    }
}
