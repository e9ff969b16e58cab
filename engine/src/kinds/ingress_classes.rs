//! The class of an ingress, and which one an ingress gets that names none.
//!
//! Source: `plugin/pkg/admission/network/defaultingressclass` of Kubernetes 1.37.

use std::cmp::Reverse;

use crate::value::Value;

/// Names the class of an ingress in the old way.
pub(super) const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";
const IS_DEFAULT: &str = "ingressclass.kubernetes.io/is-default-class";

/// Whether ingresses that name no class get this one.
pub(super) fn is_default(class: &Value) -> bool {
    class.str_at(&["metadata", "annotations", IS_DEFAULT]) == "true"
}

/// What [`set_default`] reads of classes.
pub const READ: [&[&str]; 3] =
    [&["metadata", "name"], &["metadata", "creationTimestamp"], &["metadata", "annotations", IS_DEFAULT]];

/// Gives an ingress that names no class the default one, the newest of several.
pub fn set_default<'c>(ingress: &mut Value, classes: impl Iterator<Item = &'c Value>) {
    if class(ingress).is_some() || class_annotation(ingress).is_some() {
        return;
    }
    let text = |class: &'c Value, name: &str| class.str_at(&["metadata", name]);
    // Times in whole seconds compare as texts.
    let newest = classes
        .filter(|class| is_default(class))
        .min_by_key(|class| (Reverse(text(class, "creationTimestamp")), text(class, "name")));
    if let Some(class) = newest {
        let spec = ingress.make_object().entry("spec").make_object();
        spec.insert("ingressClassName", Value::from(text(class, "name")));
    }
}

/// The class that an ingress names in the old way.
pub(super) fn class_annotation(ingress: &Value) -> Option<&str> {
    ingress.at(&["metadata", "annotations", CLASS_ANNOTATION])?.as_str()
}

/// The class of an ingress.
pub(super) fn class(ingress: &Value) -> Option<&str> {
    ingress.at(&["spec", "ingressClassName"])?.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object;
    use crate::value::yaml;

    #[test]
    fn an_ingress_gets_the_newest_default_class() {
        let yaml = |text: &str| yaml::decode(text.as_bytes()).expect("it is YAML");
        let class_of = |name: &str, created: &str, is_default: &str| {
            let annotations = object! { IS_DEFAULT => is_default };
            let metadata = object! { "name" => name, "creationTimestamp" => created, "annotations" => annotations };
            object! { "metadata" => metadata }
        };
        let classes = [
            class_of("old", "2026-01-01T00:00:00Z", "true"),
            class_of("z", "2026-01-02T00:00:00Z", "true"),
            class_of("b", "2026-01-02T00:00:00Z", "true"),
            class_of("a", "2026-01-03T00:00:00Z", "false"),
        ];
        for (ingress, expected) in [
            ("{spec: {}}", Some("b")),
            ("{spec: {ingressClassName: own}}", Some("own")),
            ("{metadata: {annotations: {kubernetes.io/ingress.class: x}}, spec: {}}", None),
        ] {
            let mut ingress = yaml(ingress);
            set_default(&mut ingress, classes.iter());
            assert_eq!(class(&ingress), expected);
        }
    }
}
