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
pub fn profile_of(annotation: &str) -> Option<Value> {
    match annotation {
        "unconfined" => Some(object! { "type" => "Unconfined" }),
        "runtime/default" => Some(object! { "type" => "RuntimeDefault" }),
        _ => {
            let profile = annotation.strip_prefix(LOCALHOST).filter(|profile| !profile.is_empty())?;
            Some(object! { "type" => "Localhost", "localhostProfile" => profile })
        }
    }
}

/// Sets the profiles that a new pod's annotations name in its containers' fields, and warns of such annotations.
pub fn apply_annotations(pod: &mut Value, warnings: &mut Vec<String>) {
    let Some(spec) = pod.get("spec").filter(|spec| !is_windows(spec)) else { return };
    let of_pod = spec.at(&["securityContext", "appArmorProfile"]).cloned();
    let annotations = pod.at(&["metadata", "annotations"]).cloned().unwrap_or_default();
    for name in CONTAINER_LISTS {
        let Some(Value::Array(containers)) = pod.at_mut(&["spec", name]) else { continue };
        for container in containers {
            work::step();
            let key = format!("{PREFIX}{}", container.str_at(&["name"]));
            let Some(annotation) = annotations.get(&key).and_then(Value::as_str) else { continue };
            if container.at(&["securityContext", "appArmorProfile"]).is_some_and(|profile| !profile.is_null()) {
                continue;
            }
            let profile = profile_of(annotation).filter(is_valid);
            if profile.is_some() && profile == of_pod {
                continue;
            }
            if let Some(profile) = profile {
                let context = container.make_object().entry("securityContext").make_object();
                context.insert("appArmorProfile", profile);
            }
            warnings.push(format!(
                "metadata.annotations[{key}]: deprecated since v1.30; use the \"appArmorProfile\" field instead"
            ));
        }
    }
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
        let mut warnings = Vec::new();
        apply_annotations(&mut object, &mut warnings);
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
