//! AppArmor profiles: the annotations that there were before the fields.
//!
//! Source: `applyAppArmorVersionSkew` of the pod's strategy and `validateAppArmorAnnotationsAndFieldsMatchOnCreate`.

use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::object;
use crate::value::Value;
use crate::work;

use super::{CONTAINER_LISTS, annotation, each_container, is_windows};

const PREFIX: &str = "container.apparmor.security.beta.kubernetes.io/";
const LOCALHOST: &str = "localhost/";
const PROFILE_BYTES_MAX: usize = 4095;

/// The field that an annotation stands for; `None` for a text that is no profile.
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

/// The annotation of a container without a profile of its own, unless it says what holds for the pod; and the profile that
/// it stands for, if it is one.
fn deprecated(container: &Value, annotations: &Value, of_pod: Option<&Value>) -> Option<(String, Option<Value>)> {
    let key = format!("{PREFIX}{}", container.str_at(&["name"]));
    let annotation = annotations.get(&key).and_then(Value::as_str)?;
    if container.at(&["securityContext", "appArmorProfile"]).is_some_and(|profile| !profile.is_null()) {
        return None;
    }
    let profile = profile_of(annotation).filter(is_valid);
    (profile.is_none() || profile.as_ref() != of_pod).then_some((key, profile))
}

/// Whether the profile's name could stand in the field.
fn is_valid(profile: &Value) -> bool {
    let name = profile.str_at(&["localhostProfile"]);
    name.trim() == name && name.len() <= PROFILE_BYTES_MAX
}

/// Annotations of a new pod that don't say what the fields say.
pub fn validate(pod: &Value, spec: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    if spec.value().is_none_or(is_windows) {
        return errors;
    }
    let context = spec.field("securityContext");
    let of_pod = context.field("appArmorProfile");
    each_container(spec, |container| {
        let key = format!("{PREFIX}{}", container.field("name").text());
        let context = container.field("securityContext");
        let field = context.field("appArmorProfile");
        let profile = if field.is_set() { field } else { of_pod };
        if let (Some(annotation), true) = (annotation(pod, &key), profile.is_set()) {
            // Also where the profile is that of the pod, the container is named.
            let told = FieldRef::new(profile.value(), *field.path());
            errors.extend(mismatch(&told, annotation));
        }
    });
    errors
}

fn mismatch(profile: &FieldRef<'_>, annotation: &str) -> Option<Error> {
    let kind = profile.field("type");
    let matches = match kind.text() {
        "Unconfined" => annotation == "unconfined",
        "RuntimeDefault" => annotation == "runtime/default",
        "Localhost" => match annotation.strip_prefix(LOCALHOST) {
            Some(name) => {
                let field = profile.field("localhostProfile");
                let fits = field.is_set() && field.text() == name;
                return (!fits).then(|| field.forbidden("apparmor profile in annotation and field must match"));
            }
            None => false,
        },
        _ => true,
    };
    (!matches).then(|| kind.forbidden("apparmor type in annotation and field must match"))
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

    #[test]
    fn annotation_and_field_must_match() {
        let check = |annotation: &str, profile: &str| {
            let object = pod(annotation, &format!("{{appArmorProfile: {profile}}}"));
            let root = FieldRef::root(&object);
            validate(&object, &root.field("spec")).aggregate()
        };
        assert_eq!(check("unconfined", "{type: Unconfined}"), "");
        assert_eq!(
            check("unconfined", "{type: RuntimeDefault}"),
            "spec.containers[0].securityContext.appArmorProfile.type: Forbidden: apparmor type in annotation and field must match"
        );
        assert_eq!(
            check("localhost/x", "{type: Localhost, localhostProfile: y}"),
            "spec.containers[0].securityContext.appArmorProfile.localhostProfile: Forbidden: apparmor profile in annotation and \
             field must match"
        );
    }
}
