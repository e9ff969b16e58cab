//! Seccomp profiles: the annotations that there were before the fields, which must say the same.
//!
//! Source: `validateSeccompAnnotationsAndFields`.

use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::value::Value;

use super::{annotation, each_container};

const OF_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const OF_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";

/// Annotations of a new pod that don't say what the fields say.
pub fn validate(pod: &Value, spec: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut check = |holder: &FieldRef<'_>, key: &str| {
        let context = holder.field("securityContext");
        let profile = context.field("seccompProfile");
        if let (true, Some(annotation)) = (profile.is_set(), annotation(pod, key)) {
            errors.extend(mismatch(&profile, annotation));
        }
    };
    check(spec, OF_POD);
    each_container(spec, |container| check(container, &format!("{OF_CONTAINER}{}", container.field("name").text())));
    errors
}

fn mismatch(profile: &FieldRef<'_>, annotation: &str) -> Option<Error> {
    let kind = profile.field("type");
    let matches = match kind.text() {
        "Unconfined" => annotation == "unconfined",
        "RuntimeDefault" => matches!(annotation, "runtime/default" | "docker/default"),
        "Localhost" => match annotation.strip_prefix("localhost/") {
            Some(name) => {
                let field = profile.field("localhostProfile");
                let fits = field.is_set() && field.text() == name;
                return (!fits).then(|| field.forbidden("seccomp profile in annotation and field must match"));
            }
            None => false,
        },
        _ => true,
    };
    (!matches).then(|| kind.forbidden("seccomp type in annotation and field must match"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    #[test]
    fn annotation_and_field_must_match() {
        let text = format!(
            "metadata: {{annotations: {{{OF_POD}: unconfined, {OF_CONTAINER}c: localhost/x}}}}\n\
             spec: {{securityContext: {{seccompProfile: {{type: RuntimeDefault}}}}, \
             containers: [{{name: c, securityContext: {{seccompProfile: {{type: Localhost, localhostProfile: y}}}}}}]}}"
        );
        let object = yaml::decode(text.as_bytes()).expect("YAML");
        let root = FieldRef::root(&object);
        let told = "[spec.securityContext.seccompProfile.type: Forbidden: seccomp type in annotation and field must match, \
                    spec.containers[0].securityContext.seccompProfile.localhostProfile: Forbidden: seccomp profile in \
                    annotation and field must match]";
        assert_eq!(validate(&object, &root.field("spec")).aggregate(), told);
    }
}
