//! `/resize`: other resources for the containers of a pod that runs.
//!
//! Source: `ResizeStrategy` and `ValidatePodResize`.

use crate::kinds::pod::annotations::MIRROR;
use crate::kinds::{metadata, pod as template, semantic};
use crate::meta::field::{Error, ErrorList, Path};
use crate::meta::field_ref::FieldRef;
use crate::meta::gate::Gate;
use crate::meta::minor::Minor;
use crate::object;
use crate::value::{Map, Value};
use crate::work;

use super::{annotation, create, is_sidecar, is_windows, keep, keep_metadata, prepare, qos};

const LISTS: [&str; 2] = ["containers", "initContainers"];
const RESIZED: [&str; 2] = ["cpu", "memory"];
const POD_LEVEL_DISABLED: &str = "resize of pods with pod-level resources is forbidden when \
                                  InPlacePodLevelResourcesVerticalScalingEnabled feature gate is disabled";

/// Takes all but resources and how they are resized from the old pod.
///
/// Containers that are others than before are left for validation to refuse.
pub fn prepare(minor: Minor, new: &mut Value, old: &Value) {
    let count = |pod: &Value, list: &str| pod.items_at(&["spec", list]).len();
    if LISTS.iter().all(|list| count(new, list) == count(old, list)) {
        let wanted = new.get("spec").cloned().unwrap_or_default();
        keep(new, old, "spec");
        keep(new, old, "status");
        keep_metadata(new, old);
        let spec = new.make_object().entry("spec");
        if minor.opens(Gate::InPlacePodLevelResourcesVerticalScaling) {
            keep(spec, &wanted, "resources");
        }
        for list in LISTS {
            let containers = resized(wanted.items_at(&[list]), old.items_at(&["spec", list]));
            if !containers.is_empty() {
                spec.make_object().insert(list, Value::Array(containers));
            }
        }
    }
    template::drop_disabled_pod_fields(minor, new, Some(old));
    prepare::raise_generation(minor, new, old);
}

/// The old containers with new resources; the new ones, if they are others.
fn resized(new: &[Value], old: &[Value]) -> Vec<Value> {
    let name = |container: &Value| container.str_at(&["name"]).to_owned();
    if new.iter().zip(old).any(|(new, old)| name(new) != name(old)) {
        return new.to_vec();
    }
    let resize = |(new, old): (&Value, &Value)| {
        work::step();
        let mut container = old.clone();
        for field in ["resources", "resizePolicy"] {
            keep(&mut container, new, field);
        }
        container
    };
    new.iter().zip(old).map(resize).collect()
}

/// The errors of a resized pod.
pub fn validate(minor: Minor, new: &Value, old: &Value) -> ErrorList {
    let whole = |why: &str| -> ErrorList { Error::forbidden(&Path::new(""), why).into() };
    if annotation(old, MIRROR).is_some() {
        return whole("static pods cannot be resized");
    }
    let null = Value::Null;
    let old_spec = old.get("spec").unwrap_or(&null);
    if is_windows(old_spec) {
        return whole("windows pods cannot be resized");
    }
    let root = FieldRef::root(new);
    let spec = root.field("spec");
    let mut errors = metadata::validate_update(new, old);
    errors.extend(create::validate_metadata_and_spec(
        new,
        &template::PodValidationOptions::for_pod(minor, new, Some(old)),
    ));
    if qos::class(old) != qos::computed_class(new) {
        let class = new.str_at(&["status", "qosClass"]);
        errors.push(Error::invalid(spec.path(), class, "Pod QOS Class may not change as a result of resizing"));
    }
    if !is_supported(old) {
        errors.push(spec.forbidden("Pod running on node without support for resize"));
    }
    let mut munged = spec.value().cloned().unwrap_or_default();
    if has_resources(old_spec) || has_resources(&munged) {
        if !minor.opens(Gate::InPlacePodLevelResourcesVerticalScaling) {
            errors.push(Error::forbidden(&Path::new(""), POD_LEVEL_DISABLED));
            return errors;
        }
        errors.extend(validate_pod_level(&spec, old_spec, &mut munged));
    }
    if !old.items_at(&["status", "nodeAllocatableResourceClaimStatuses"]).is_empty() {
        errors.push(spec.forbidden("pods with node allocatable resource claims cannot be resized"));
    }
    let others = validate_order(&spec, old_spec);
    let are_others = !others.is_empty();
    errors.extend(others);
    if are_others {
        return errors;
    }
    let resizes_init = minor.opens(Gate::InPlacePodVerticalScalingInitContainers);
    for list in ["initContainers", "containers"] {
        let is_resizable = |container: &Value| list == "containers" || resizes_init || is_sidecar(container);
        errors.extend(validate_removals(&spec.field(list), old_spec.items_at(&[list]), is_resizable));
    }
    errors.extend(validate_containers(&spec, old_spec, &mut munged));
    errors.extend(validate_init_containers(minor, &spec, old_spec, &mut munged));
    if errors.is_empty() && !semantic::equal("spec", Some(&munged), Some(old_spec)) {
        errors.push(spec.forbidden("only cpu and memory resources are mutable"));
    }
    errors
}

/// Whether the node of the pod supports resizing, as far as is known.
fn is_supported(pod: &Value) -> bool {
    let is_set = |value: Option<&Value>| value.is_some_and(|value| !value.is_null());
    let mut statuses = pod.items_at(&["status", "containerStatuses"]).iter();
    let running = statuses.find(|status| is_set(status.at(&["state", "running"])));
    running.is_none_or(|status| is_set(status.get("resources")))
}

/// Whether the pod as a whole has resources.
fn has_resources(spec: &Value) -> bool {
    let is_filled =
        |list: &str| spec.at(&["resources", list]).and_then(Value::as_object).is_some_and(|list| !list.is_empty());
    is_filled("requests") || is_filled("limits")
}

/// Resources of the whole pod; in `munged` those that may change are then as they were.
fn validate_pod_level(spec: &FieldRef<'_>, old_spec: &Value, munged: &mut Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let resources = spec.field("resources");
    let old = old_spec.get("resources").filter(|old| !old.is_null());
    if let Some(old) = old {
        if !resources.is_set() {
            return resources.forbidden("pod-level resources cannot be removed").into();
        }
        for (name, why) in [
            ("requests", "pod-level resource requests cannot be removed"),
            ("limits", "pod-level resource limits cannot be removed"),
        ] {
            let list = resources.field(name);
            if is_removed(&list, old.get(name)) {
                errors.push(list.forbidden(why));
            }
        }
    }
    if let Some(resources) = resources.value() {
        let mut masked = mask(resources, old.unwrap_or(&Value::Null));
        let claims = resources.items_at(&["claims"]);
        if !claims.is_empty() {
            masked.make_object().insert("claims", Value::Array(claims.to_vec()));
        }
        let is_empty = ["requests", "limits"].iter().all(|list| masked.get(list).is_none()) && claims.is_empty();
        if old.is_none() && is_empty {
            munged.make_object().remove("resources");
        } else {
            munged.make_object().insert("resources", masked);
        }
    }
    if !semantic::equal("resources", munged.get("resources"), old) {
        errors.push(spec.forbidden("only cpu and memory resources are mutable at pod-level"));
    }
    errors
}

/// Whether a resource was removed from the list.
fn is_removed(list: &FieldRef<'_>, before: Option<&Value>) -> bool {
    let Some(before) = before.and_then(Value::as_object) else { return false };
    before.keys().any(|resource| list.value().is_none_or(|list| list.get(resource).is_none()))
}

/// Requests and limits, with the old values of what may be resized, and nothing else.
fn mask(resources: &Value, old: &Value) -> Value {
    let mut masked = object! {};
    for name in ["limits", "requests"] {
        let (list, before) = (resources.get(name).and_then(Value::as_object), old.get(name));
        let mut list: Map = list.cloned().unwrap_or_default();
        for resource in RESIZED {
            match before.and_then(|before| before.get(resource)) {
                Some(quantity) => _ = list.insert(resource, quantity.clone()),
                None => _ = list.remove(resource),
            }
        }
        if !list.is_empty() {
            masked.make_object().insert(name, Value::Object(list));
        }
    }
    masked
}

/// The containers must be the same, in their order.
fn validate_order(spec: &FieldRef<'_>, old_spec: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    for name in LISTS {
        let (list, old) = (spec.field(name), old_spec.items_at(&[name]));
        if list.len() != old.len() {
            errors.push(list.forbidden(format!("{name} may not be added or removed on resize")));
            continue;
        }
        for (container, old) in list.items().zip(old) {
            let own = container.field("name");
            if own.text() != old.str_at(&["name"]) {
                errors.push(own.forbidden(format!("{name} may not be renamed or reordered on resize")));
            }
        }
    }
    errors
}

/// Requests and limits may change, but not go.
fn validate_removals(containers: &FieldRef<'_>, old: &[Value], is_resizable: impl Fn(&Value) -> bool) -> ErrorList {
    let mut errors = ErrorList::new();
    let null = Value::Null;
    for (container, old) in containers.items().zip(old).filter(|(_, old)| is_resizable(old)) {
        let resources = container.field("resources");
        let old = old.get("resources").unwrap_or(&null);
        for (name, why) in
            [("requests", "resource requests cannot be removed"), ("limits", "resource limits cannot be removed")]
        {
            let list = resources.field(name);
            if is_removed(&list, old.get(name)) {
                errors.push(list.forbidden(why));
            }
        }
    }
    errors
}

/// The container with the old values of what may be resized.
fn masked_container(container: &Value, old: &Value) -> Value {
    let (null, mut masked) = (Value::Null, container.clone());
    let of = |container: &Value| container.get("resources").cloned().unwrap_or(null.clone());
    let resources = mask(&of(container), &of(old));
    masked.make_object().insert("resources", resources);
    masked
}

/// Puts masked containers into the spec.
fn set_containers(munged: &mut Value, list: &str, containers: Vec<Value>) {
    if !containers.is_empty() {
        munged.make_object().insert(list, Value::Array(containers));
    }
}

fn validate_containers(spec: &FieldRef<'_>, old_spec: &Value, munged: &mut Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut containers = Vec::new();
    let new = munged.items_at(&["containers"]).to_vec();
    for (container, old) in new.iter().zip(old_spec.items_at(&["containers"])) {
        let masked = masked_container(container, old);
        if !semantic::equal("", Some(&masked), Some(old)) {
            errors.push(spec.forbidden("only cpu and memory resources are mutable"));
        }
        containers.push(masked);
    }
    set_containers(munged, "containers", containers);
    errors
}

fn validate_init_containers(minor: Minor, spec: &FieldRef<'_>, old_spec: &Value, munged: &mut Value) -> ErrorList {
    const NOT_RESIZED: &str = "only cpu and memory resources for init or sidecar containers are mutable";
    const RESTARTED: &str = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized";
    let mut errors = ErrorList::new();
    let mut containers = Vec::new();
    let list = spec.field("initContainers");
    for (container, old) in list.items().zip(old_spec.items_at(&["initContainers"])) {
        let new = container.value().cloned().unwrap_or_default();
        if !is_sidecar(&new) && !minor.opens(Gate::InPlacePodVerticalScalingInitContainers) {
            if !semantic::equal("", Some(&new), Some(old)) {
                errors.push(spec.forbidden("resources for non-sidecar init containers are immutable"));
            }
            containers.push(new);
            continue;
        }
        let masked = masked_container(&new, old);
        if !semantic::equal("", Some(&masked), Some(old)) {
            errors.push(container.forbidden(NOT_RESIZED));
        }
        if !is_sidecar(&new) && !semantic::equal("", Some(&new), Some(old)) {
            let policies = new.items_at(&["resizePolicy"]).iter();
            for _ in policies.filter(|policy| policy.str_at(&["restartPolicy"]) == "RestartContainer") {
                errors.push(container.forbidden(RESTARTED));
            }
        }
        containers.push(masked);
    }
    set_containers(munged, "initContainers", containers);
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::pod_object::read;

    fn check(old: &str, new: &str) -> String {
        let read = |spec: &str| {
            let text =
                format!("metadata: {{name: a, namespace: b, resourceVersion: '1', generation: 1}}\nspec: {spec}");
            read(&text)
        };
        let (old, mut new) = (read(old), read(new));
        prepare(Minor::NEWEST, &mut new, &old);
        validate(Minor::NEWEST, &new, &old).aggregate()
    }

    fn one(resources: &str) -> String {
        format!("{{containers: [{{name: c, image: i, resources: {resources}}}]}}")
    }

    #[test]
    fn processors_and_memory_are_resized() {
        let old = one("{requests: {cpu: '1', ephemeral-storage: '1'}}");
        assert_eq!(check(&old, &one("{requests: {cpu: '2', ephemeral-storage: '1'}}")), "");
        assert_eq!(
            check(
                &old,
                "{hostname: h, containers: [{name: c, image: j, resources: {requests: {cpu: '2', ephemeral-storage: '1'}}}]}"
            ),
            ""
        );
        assert_eq!(
            check(&old, &one("{requests: {cpu: '1', ephemeral-storage: '2'}}")),
            "spec: Forbidden: only cpu and memory resources are mutable"
        );
        assert_eq!(
            check(&old, &one("{requests: {ephemeral-storage: '1'}}")),
            "[spec: Invalid value: \"\": Pod QOS Class may not change as a result of resizing, \
             spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed]"
        );
        assert_eq!(
            check(&old, "{containers: [{name: d, image: i, resources: {requests: {cpu: '1'}}}]}"),
            "spec.containers[0].name: Forbidden: containers may not be renamed or reordered on resize"
        );
        assert_eq!(
            check(&old, "{containers: [{name: c, image: i, resources: {requests: {cpu: '1'}}}, {name: d, image: i}]}"),
            "spec.containers: Forbidden: containers may not be added or removed on resize"
        );
    }

    #[test]
    fn the_pod_as_a_whole_is_resized() {
        let old = "{containers: [{name: c, image: i, resources: {}}], resources: {requests: {cpu: '1'}}}";
        assert_eq!(
            check(old, "{containers: [{name: c, image: i, resources: {}}], resources: {requests: {cpu: '2'}}}"),
            ""
        );
        let told = check(old, "{containers: [{name: c, image: i, resources: {}}]}");
        assert!(told.contains("spec.resources: Forbidden: pod-level resources cannot be removed"), "{told}");
    }
}
