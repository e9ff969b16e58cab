//! AppArmor profiles: the annotations that there were before the fields.
//!
//! Source: `applyAppArmorVersionSkew` of the pod's strategy.

use crate::kinds::pod::CONTAINER_LISTS;
use crate::object;
use crate::value::Value;
use crate::work;

use super::is_windows;

const PREFIX: &str = "container.apparmor.security.beta.kubernetes.io/";
const LOCALHOST: &str = "localhost/";
const PROFILE_BYTES_MAX: usize = 4095;

/// The field for an annotation; `None` for a text that is not a profile.
fn profile_of(annotation: &str) -> Option<Value> {
    match annotation {
        "unconfined" => Some(object! { "type" => "Unconfined" }),
        "runtime/default" => Some(object! { "type" => "RuntimeDefault" }),
        _ => {
            let profile = annotation.strip_prefix(LOCALHOST).filter(|profile| !profile.is_empty())?;
            Some(object! { "type" => "Localhost", "localhostProfile" => profile })
        }
    }
}

/// Sets the profiles that a new pod's annotations name in its containers' fields.
pub fn apply_annotations(pod: &mut Value) {
    let annotations = pod.at(&["metadata", "annotations"]).cloned().unwrap_or_default();
    let Some(spec) = pod.get_mut("spec").filter(|spec| !is_windows(spec)) else { return };
    let of_pod = spec.at(&["securityContext", "appArmorProfile"]).cloned();
    for name in CONTAINER_LISTS {
        let Some(Value::Array(containers)) = spec.get_mut(name) else { continue };
        for container in containers {
            work::step();
            if let Some((_, Some(profile))) = deprecated(container, &annotations, of_pod.as_ref()) {
                let context = container.make_object().entry("securityContext").make_object();
                context.insert("appArmorProfile", profile);
            }
        }
    }
}

/// Warnings of the annotations of a new pod, as it was sent.
pub fn warnings(pod: &Value) -> Vec<String> {
    let Some(spec) = pod.get("spec").filter(|spec| !is_windows(spec)) else { return Vec::new() };
    let Some(annotations) = pod.at(&["metadata", "annotations"]) else { return Vec::new() };
    let of_pod = spec.at(&["securityContext", "appArmorProfile"]);
    let containers = CONTAINER_LISTS.iter().flat_map(|name| spec.items_at(&[name]));
    let found = containers.filter_map(|container| deprecated(container, annotations, of_pod));
    let warning = |(key, _)| {
        format!("metadata.annotations[{key}]: deprecated since v1.30; use the \"appArmorProfile\" field instead")
    };
    found.map(warning).collect()
}

/// The annotation of a container without its own profile, unless it equals that of the pod; and its profile, if it is
/// valid.
fn deprecated(container: &Value, annotations: &Value, of_pod: Option<&Value>) -> Option<(String, Option<Value>)> {
    let key = format!("{PREFIX}{}", container.str_at(&["name"]));
    let annotation = annotations.get(&key).and_then(Value::as_str)?;
    if container.at(&["securityContext", "appArmorProfile"]).is_some_and(|profile| !profile.is_null()) {
        return None;
    }
    let profile = profile_of(annotation).filter(is_valid);
    (profile.is_none() || profile.as_ref() != of_pod).then_some((key, profile))
}

/// Whether the profile's name would be valid in the field.
fn is_valid(profile: &Value) -> bool {
    let name = profile.str_at(&["localhostProfile"]);
    name.trim() == name && name.len() <= PROFILE_BYTES_MAX
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    fn pod(annotation: &str, context: &str) -> Value {
        let text = format!(
            "metadata: {{annotations: {{{PREFIX}c: {annotation}}}}}\nspec: {{containers: [{{name: c, securityContext: {context}}}]}}"
        );
        yaml::decode(text.as_bytes()).expect("YAML")
    }

    #[test]
    fn annotations_become_fields_with_a_warning() {
        let mut object = pod("localhost/x", "{}");
        let warnings = warnings(&object);
        apply_annotations(&mut object);
        let context = object.items_at(&["spec", "containers"])[0].get("securityContext").cloned();
        let profile = object! { "type" => "Localhost", "localhostProfile" => "x" };
        assert_eq!(context, Some(object! { "appArmorProfile" => profile }));
        let warning = "metadata.annotations[container.apparmor.security.beta.kubernetes.io/c]: deprecated since v1.30; use the \
                       \"appArmorProfile\" field instead";
        assert_eq!(warnings, [warning]);
    }
}
