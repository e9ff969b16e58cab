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
        if !is_concerned(attributes, object) {
            return Ok(());
        }
        let refusals = faults(object).into_iter().map(|why| forbidden(attributes, object, &why).message);
        // Several refusals in one are an error of the server, as is one.
        match refusals.collect::<Vec<_>>().as_slice() {
            [] => Ok(()),
            [one] => Err(Status::plain(500, one)),
            several => Err(Status::plain(500, &format!("[{}]", several.join(", ")))),
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

/// The errors of containers and volumes with another pull policy.
fn faults(pod: &Value) -> Vec<String> {
    let spec = Path::new("spec");
    let mut faults = Vec::new();
    let mut check = |policy: &str, path: &Path<'_>| {
        if policy != ALWAYS {
            faults.push(Error::not_supported(path, policy, &[ALWAYS]).to_string());
        }
    };
    for list in CONTAINERS {
        let path = spec.child(list);
        for (index, container) in pod.items_at(&["spec", list]).iter().enumerate() {
            let path = path.index(index);
            check(container.str_at(&["imagePullPolicy"]), &path.child("imagePullPolicy"));
        }
    }
    let path = spec.child("volumes");
    for (index, volume) in pod.items_at(&["spec", "volumes"]).iter().enumerate() {
        let Some(image) = volume.get("image") else { continue };
        let path = path.index(index);
        let path = path.child("image");
        check(image.str_at(&["pullPolicy"]), &path.child("pullPolicy"));
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    #[test]
    fn every_image_is_pulled() {
        let text = "spec: {containers: [{name: c, image: i, imagePullPolicy: Never}], volumes: [{name: v, image: {}}]}";
        let mut pod = yaml::decode(text.as_bytes()).expect("the test is YAML");
        let container =
            "spec.containers[0].imagePullPolicy: Unsupported value: \"Never\": supported values: \"Always\"";
        let volume = "spec.volumes[0].image.pullPolicy: Unsupported value: \"\": supported values: \"Always\"";
        assert_eq!(faults(&pod), [container, volume]);
        pull_always(&mut pod);
        assert!(faults(&pod).is_empty());
        assert_eq!(images(&pod), HashSet::from(["i"]));
    }
}
