//! The changes to a pod when Kubernetes converts it to its internal type and back: old names of fields follow the new
//! ones.
//!
//! Source: `pkg/apis/core/v1/conversion.go`.

use crate::object;
use crate::types::decoder::Empty;
use crate::value::Value;

/// Converts a decoded pod with its defaults into the form in which it is stored.
pub fn internalize(pod: &mut Value) {
    if let Some(spec) = pod.get_mut("spec") {
        limit_grace_period(spec);
    }
    if let Some(status) = pod.get_mut("status") {
        share_address(status);
    }
}

/// An empty overhead, which is more than none for [`super::runtime_class::validate`].
pub fn keep_empty_overhead(sent: &Value, pod: &mut Value) {
    let is_empty = |overhead: &&Value| overhead.as_object().is_some_and(|overhead| overhead.is_empty());
    if let Some(overhead) = sent.at(&["spec", "overhead"]).filter(is_empty) {
        pod.make_object().entry("spec").make_object().insert("overhead", overhead.clone());
    }
}

/// Requests follow from limits, and are an empty map if those are.
pub fn infer_empty_requests(empty: &mut Vec<Empty>) {
    const LISTS: [&str; 2] = ["containers", "initContainers"];
    let of_list = |limits: &&Empty| LISTS.iter().any(|&list| limits.is_at(&["spec", list, "*", "resources", "limits"]));
    let requests: Vec<_> = empty.iter().filter(of_list).map(|limits| limits.beside("requests")).collect();
    empty.extend(requests);
}

/// Takes away an overhead that is empty, which nothing that is stored has.
pub fn drop_empty_overhead(pod: &mut Value) {
    let is_empty = pod.at(&["spec", "overhead"]).and_then(Value::as_object).is_some_and(|overhead| overhead.is_empty());
    if let Some(spec) = pod.get_mut("spec").filter(|_| is_empty) {
        spec.make_object().remove("overhead");
    }
}

fn limit_grace_period(spec: &mut Value) {
    let field = "terminationGracePeriodSeconds";
    if spec.get(field).and_then(Value::as_i64).is_some_and(|seconds| seconds < 0) {
        spec.make_object().insert(field, Value::Int(1));
    }
}

/// `podIP` is the first of `podIPs`; if both are given and differ, the former counts.
fn share_address(status: &mut Value) {
    let (one, first) = (status.str_at(&["podIP"]), status.items_at(&["podIPs"]).first());
    let first = first.map(|first| first.str_at(&["ip"]));
    let (one, differs) = (one.to_owned(), !one.is_empty() && first != Some(one));
    let first = first.map(str::to_owned);
    let fields = status.make_object();
    if differs {
        fields.insert("podIPs", Value::Array(vec![object! { "ip" => one }]));
    } else if let Some(first) = first.filter(|first| !first.is_empty()) {
        fields.insert("podIP", Value::from(first));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{json, yaml};

    #[test]
    fn old_names_follow_the_new_ones() {
        let check = |pod: &str| {
            let mut pod = yaml::decode(pod.as_bytes()).expect("YAML");
            internalize(&mut pod);
            json::encode_to_string(&pod)
        };
        assert_eq!(
            check("spec: {terminationGracePeriodSeconds: -5}"),
            r#"{"spec":{"terminationGracePeriodSeconds":1}}"#
        );
        assert_eq!(check("status: {podIP: a, podIPs: [{ip: b}]}"), r#"{"status":{"podIP":"a","podIPs":[{"ip":"a"}]}}"#);
        assert_eq!(check("status: {podIPs: [{ip: b}]}"), r#"{"status":{"podIP":"b","podIPs":[{"ip":"b"}]}}"#);
    }
}
