//! `AlwaysPullImages`: every image is pulled, so a pod runs only images that it is allowed to pull.
//!
//! Source: `plugin/pkg/admission/alwayspullimages`, release 1.37.

use std::collections::HashSet;

use async_trait::async_trait;

use super::{forbidden, is_about};
use crate::admission::{Admission, Attributes, Operation};
use crate::meta::Status;
use crate::meta::field::{Error, Path};
use crate::value::Value;

const ALWAYS: &str = "Always";
/// The container lists of a pod, in the order in which they are checked.
const CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

pub struct AlwaysPullImages;

#[async_trait]
impl Admission for AlwaysPullImages {
    fn concerns_custom_resources(&self) -> bool {
        false
    }

    async fn mutate(&self, attributes: &Attributes<'_>, object: &mut Value) -> Result<(), Status> {
        if is_concerned(attributes, object) {
            pull_always(object);
        }
        Ok(())
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: &Value) -> Result<(), Status> {
        match fault(object).filter(|_| is_concerned(attributes, object)) {
            None => Ok(()),
            Some(why) => Err(forbidden(attributes, object, &why)),
        }
    }
}

/// Whether the request creates a pod, or gives one an image that none of its containers had.
fn is_concerned(attributes: &Attributes<'_>, object: &Value) -> bool {
    let old = attributes.old.filter(|_| attributes.operation == Operation::Update);
    is_about(attributes, "", "pods") && old.is_none_or(|old| !images(object).is_subset(&images(old)))
}

fn images(pod: &Value) -> HashSet<&str> {
    let containers = CONTAINERS.iter().flat_map(|list| pod.items_at(&["spec", list]));
    containers.map(|container| container.str_at(&["image"])).collect()
}

fn pull_always(pod: &mut Value) {
    let Some(spec) = pod.get_mut("spec") else { return };
    for list in CONTAINERS {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            container.make_object().insert("imagePullPolicy", Value::from(ALWAYS));
        }
    }
    for volume in spec.get_mut("volumes").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(image) = volume.get_mut("image") {
            image.make_object().insert("pullPolicy", Value::from(ALWAYS));
        }
    }
}

/// The error for the first container or volume with another pull policy.
fn fault(pod: &Value) -> Option<String> {
    let spec = Path::new("spec");
    let told = |policy: &str, path: &Path<'_>| {
        (policy != ALWAYS).then(|| Error::not_supported(path, policy, &[ALWAYS]).to_string())
    };
    for list in CONTAINERS {
        let path = spec.child(list);
        for (index, container) in pod.items_at(&["spec", list]).iter().enumerate() {
            let path = path.index(index);
            let fault = told(container.str_at(&["imagePullPolicy"]), &path.child("imagePullPolicy"));
            if fault.is_some() {
                return fault;
            }
        }
    }
    let path = spec.child("volumes");
    pod.items_at(&["spec", "volumes"]).iter().enumerate().find_map(|(index, volume)| {
        let image = volume.get("image")?;
        let (path, policy) = (path.index(index), image.str_at(&["pullPolicy"]));
        let path = path.child("image");
        told(policy, &path.child("pullPolicy"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    #[test]
    fn every_image_is_pulled() {
        let text = "spec: {containers: [{name: c, image: i, imagePullPolicy: Never}], volumes: [{name: v, image: {}}]}";
        let mut pod = yaml::decode(text.as_bytes()).expect("the test is YAML");
        let told = "spec.containers[0].imagePullPolicy: Unsupported value: \"Never\": supported values: \"Always\"";
        assert_eq!(fault(&pod).as_deref(), Some(told));
        pull_always(&mut pod);
        assert_eq!(fault(&pod), None);
        assert_eq!(images(&pod), HashSet::from(["i"]));
    }
}
