//! `/ephemeralcontainers`: containers that are added to a pod that runs.
//!
//! Source: `EphemeralContainersStrategy` and `ValidatePodEphemeralContainersUpdate`.

use std::collections::HashMap;

use crate::kinds::pod::annotations::MIRROR;
use crate::kinds::{diff, metadata, pod as template, semantic, show_internal};
use crate::meta::field::{Error, ErrorList, Path};
use crate::meta::field_ref::FieldRef;
use crate::meta::minor::Minor;
use crate::value::{Value, go_quote};
use crate::work;

use super::{annotation, create, keep, keep_metadata, prepare, update};

const CONTAINERS: &str = "ephemeralContainers";

/// Takes all but the containers from the old pod.
pub fn prepare(minor: Minor, new: &mut Value, old: &Value) {
    let containers = new.at(&["spec", CONTAINERS]).cloned();
    keep(new, old, "spec");
    keep(new, old, "status");
    keep_metadata(new, old);
    let spec = new.make_object().entry("spec").make_object();
    match containers {
        Some(containers) => _ = spec.insert(CONTAINERS, containers),
        None => _ = spec.remove(CONTAINERS),
    }
    template::drop_disabled_pod_fields(minor, new, Some(old));
    prepare::raise_generation(minor, new, old);
}

/// The errors of a pod whose ephemeral containers were changed: existing ones must stay as they were.
pub fn validate(minor: Minor, new: &Value, old: &Value) -> ErrorList {
    if annotation(old, MIRROR).is_some() {
        return Error::forbidden(&Path::new(""), "static pods do not support ephemeral containers").into();
    }
    let mut errors = metadata::validate_update(new, old);
    let options = template::PodValidationOptions::for_pod(minor, new, Some(old));
    errors.extend(create::validate_metadata_and_spec(new, &options));
    errors.extend(update::validate_annotations(new, old, &options));
    let root = FieldRef::root(new);
    let spec = root.field("spec");
    let list = spec.field(CONTAINERS);
    let containers = new.items_at(&["spec", CONTAINERS]);
    let containers: HashMap<&str, &Value> =
        containers.iter().map(|container| (container.str_at(&["name"]), container)).collect();
    for container in old.items_at(&["spec", CONTAINERS]) {
        work::step();
        let name = container.str_at(&["name"]);
        match containers.get(name) {
            None => {
                let why = format!("existing ephemeral containers {} may not be removed\n", go_quote(name));
                errors.push(list.forbidden(why));
            }
            Some(changed) if !semantic::equal("", Some(container), Some(changed)) => {
                let lines = |container: &Value| diff::in_lines(&show_internal("core.v1.EphemeralContainer", container));
                let difference = diff::unified(&lines(container), &lines(changed));
                let why = format!("existing ephemeral containers {} may not be changed\n{difference}", go_quote(name));
                errors.push(list.forbidden(why));
            }
            Some(_) => {}
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::pod_object::read;

    #[test]
    fn containers_are_added_and_stay() {
        let pod = |metadata: &str, containers: &str| {
            let text = format!(
                "metadata: {{name: a, namespace: b, resourceVersion: '1', {metadata}}}\nspec: {{containers: [{{name: c, image: i}}], {CONTAINERS}: {containers}}}"
            );
            read(&text)
        };
        let check = |old: &str, new: &str| validate(Minor::NEWEST, &pod("", new), &pod("", old)).aggregate();
        assert_eq!(check("[{name: d, image: i}]", "[{name: e, image: i}, {name: d, image: i}]"), "");
        assert_eq!(
            check("[{name: d, image: i}]", "[]"),
            "spec.ephemeralContainers: Forbidden: existing ephemeral containers \"d\" may not be removed\n"
        );
        assert!(check("[{name: d, image: i}]", "[{name: d, image: j}]").starts_with(
            "spec.ephemeralContainers: Forbidden: existing ephemeral containers \"d\" may not be changed\n@@ -"
        ));
        let mirrored = pod(&format!("annotations: {{{MIRROR}: x}}"), "[]");
        let told = validate(Minor::NEWEST, &mirrored, &mirrored).aggregate();
        assert_eq!(told, "[]: Forbidden: static pods do not support ephemeral containers");
        let mut new = pod("labels: {a: b}", "[{name: d}]");
        prepare(Minor::NEWEST, &mut new, &pod("generation: 1", "[]"));
        let generation = new.at(&["metadata", "generation"]).and_then(Value::as_i64);
        assert_eq!((generation, new.at(&["metadata", "labels"])), (Some(2), None));
    }
}
