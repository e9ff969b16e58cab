//! `ExtendedResourceToleration`: a pod gets tolerations for taints named after the extended
//! resources that it requests.
//!
//! Source: `plugin/pkg/admission/extendedresourcetoleration`, release 1.37.

use std::collections::BTreeSet;

use async_trait::async_trait;

use super::is_about;
use crate::admission::{Admission, Attributes, Operation};
use crate::kinds::resources::is_extended;
use crate::meta::Status;
use crate::object;
use crate::value::Value;

pub struct ExtendedResourceToleration;

#[async_trait]
impl Admission for ExtendedResourceToleration {
    fn concerns_custom_resources(&self) -> bool {
        false
    }

    async fn mutate(&self, attributes: &Attributes<'_>, object: &mut Value) -> Result<(), Status> {
        if attributes.operation != Operation::Delete && is_about(attributes, "", "pods") {
            tolerate(object);
        }
        Ok(())
    }

    async fn validate(&self, _: &Attributes<'_>, _: &Value) -> Result<(), Status> {
        Ok(())
    }
}

fn tolerate(pod: &mut Value) {
    let containers = ["containers", "initContainers"].into_iter().flat_map(|list| pod.items_at(&["spec", list]));
    let requests = containers.filter_map(|container| container.at(&["resources", "requests"])?.as_object());
    let names = requests.flat_map(|requests| requests.iter().map(|(name, _)| name.to_string()));
    let wanted: BTreeSet<String> = names.filter(|name| is_extended(name)).collect();
    if wanted.is_empty() {
        return;
    }
    let tolerations = pod.make_object().entry("spec").make_object().entry("tolerations");
    if !matches!(tolerations, Value::Array(_)) {
        *tolerations = Value::Array(Vec::new());
    }
    let Some(tolerations) = tolerations.as_array_mut() else { return };
    for name in wanted {
        let toleration = object! { "key" => name.as_str(), "operator" => "Exists", "effect" => "NoSchedule" };
        let is_same = |other: &Value| {
            ["key", "operator", "effect", "value"]
                .iter()
                .all(|field| other.str_at(&[field]) == toleration.str_at(&[field]))
        };
        let mut is_there = false;
        for other in tolerations.iter_mut().filter(|other| is_same(other)) {
            *other = toleration.clone();
            is_there = true;
        }
        if !is_there {
            tolerations.push(toleration);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    #[test]
    fn each_extended_resource_is_tolerated_once() {
        let text = "spec: {containers: [{resources: {requests: {cpu: 1, example.com/b: 1}}}], \
                    initContainers: [{resources: {requests: {example.com/a: 1, example.com/b: 1}}}], \
                    tolerations: [{key: example.com/b, operator: Exists, effect: NoSchedule, tolerationSeconds: 3}]}";
        let mut pod = yaml::decode(text.as_bytes()).expect("the test is YAML");
        tolerate(&mut pod);
        let tolerations = pod.items_at(&["spec", "tolerations"]);
        let keys: Vec<&str> = tolerations.iter().map(|toleration| toleration.str_at(&["key"])).collect();
        assert_eq!(keys, ["example.com/b", "example.com/a"]);
        assert_eq!(tolerations[0].get("tolerationSeconds"), None);
    }
}
