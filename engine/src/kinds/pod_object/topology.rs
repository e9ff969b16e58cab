//! Labels that a pod gets from its node: where the node is.
//!
//! Source: `plugin/pkg/admission/podtopologylabels`, release 1.36.

use crate::value::Value;

const LABELS: [&str; 2] = ["topology.kubernetes.io/zone", "topology.kubernetes.io/region"];

/// Copies the topology labels of `node` to a pod, or to the binding of one; existing values are replaced.
pub fn admit(object: &mut Value, node: &Value) {
    for name in LABELS {
        if let Some(label) = node.at(&["metadata", "labels", name]) {
            let metadata = object.make_object().entry("metadata").make_object();
            metadata.entry("labels").make_object().insert(name, label.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    #[test]
    fn where_a_node_is_goes_to_its_pods() {
        let read = |text: &str| yaml::decode(text.as_bytes()).expect("the test is YAML");
        let node = read("metadata: {labels: {topology.kubernetes.io/zone: z, other: o}}");
        let mut pod = read("metadata: {labels: {topology.kubernetes.io/zone: old, own: a}}");
        admit(&mut pod, &node);
        assert_eq!(pod, read("metadata: {labels: {topology.kubernetes.io/zone: z, own: a}}"));
        let mut bare = read("spec: {}");
        admit(&mut bare, &read("metadata: {}"));
        assert_eq!(bare, read("spec: {}"));
    }
}
