//! The ReplicaSets of a Deployment: which one has the current template, and the revision of each.

use super::figures::annotated;
use crate::value::Value;

pub(super) const HASH: &str = "pod-template-hash";
pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";

/// The ReplicaSet of the current template, and the others, the oldest first.
pub(super) fn told_apart(deployment: &Value, mut sets: Vec<Value>) -> (Option<Value>, Vec<Value>) {
    sets.sort_by_cached_key(|set| {
        let metadata = |field: &str| set.str_at(&["metadata", field]).to_owned();
        (metadata("creationTimestamp"), metadata("name"))
    });
    let template = without_hash(deployment.at(&["spec", "template"]));
    let at = sets.iter().position(|set| without_hash(set.at(&["spec", "template"])) == template);
    let new = at.map(|at| sets.remove(at));
    (new, sets)
}

/// A template without the label that distinguishes it from others.
pub(super) fn without_hash(template: Option<&Value>) -> Value {
    let mut template = template.cloned().unwrap_or_default();
    if let Some(Value::Object(labels)) = template.at_mut(&["metadata", "labels"]) {
        labels.remove(HASH);
    }
    template
}

pub(super) fn revision(object: &Value) -> i64 {
    annotated(object, REVISION).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    fn read(text: &str) -> Value {
        yaml::decode(text.as_bytes()).expect("YAML")
    }

    #[test]
    fn the_new_set_is_the_one_with_the_same_template() {
        let template = |image: &str, hash: &str| {
            format!("{{metadata: {{labels: {{a: b{hash}}}}}, spec: {{containers: [{{image: {image}}}]}}}}")
        };
        let set = |name: &str, created: i64, image: &str| {
            let template = template(image, &format!(", {HASH}: x"));
            read(&format!("metadata: {{name: {name}, creationTimestamp: '{created}'}}\nspec: {{template: {template}}}"))
        };
        let deployment = read(&format!("spec: {{template: {}}}", template("two", "")));
        let sets = vec![set("three", 3, "three"), set("two", 2, "two"), set("one", 1, "one")];
        let (new, old) = told_apart(&deployment, sets);
        let names: Vec<&str> = new.iter().chain(&old).map(|set| set.str_at(&["metadata", "name"])).collect();
        assert_eq!(names, ["two", "one", "three"]);
        let (new, old) = told_apart(&deployment, vec![set("one", 1, "one")]);
        assert!(new.is_none() && old.len() == 1);
    }
}
