//! Built-in kinds for people: which one a name stands for, and what is published of it in a version of Kubernetes.

use crate::kinds::Kind;
use crate::kinds::runtime_config::RuntimeConfig;
use crate::meta::minor::Minor;
use crate::schema::of_type::described;
use crate::schema::structural::Structural;
use crate::types;

/// The kind that `name` stands for as kubectl takes it, which is its name, plural, singular or a short name: in `api_version` if
/// one is given, or else in the version that its objects are stored in, where that is served.
pub fn kind(minor: Minor, name: &str, api_version: Option<&str>) -> Option<&'static Kind> {
    let config = RuntimeConfig::of(minor);
    let is_it = |kind: &&Kind| {
        [kind.kind, kind.plural, kind.singular].iter().any(|known| known.eq_ignore_ascii_case(name))
            || kind.short_names.contains(&name)
    };
    let is_wanted = |kind: &&Kind| api_version.is_none_or(|wanted| kind.api_version() == wanted);
    let found = || config.kinds().filter(is_it).filter(is_wanted);
    found().find(|kind| kind.is_stored()).or_else(|| found().next())
}

/// What that minor publishes of the kind.
pub fn schema(minor: Minor, kind: &Kind) -> Option<Structural> {
    let named = types::of_kind(kind.group, kind.version, kind.kind)?;
    Some(described(minor, named.message()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::author::explain::explain;

    #[track_caller]
    fn check(minor: u16, name: &str, api_version: Option<&str>, expected: Option<&str>) {
        let found = kind(Minor::of(minor), name, api_version);
        assert_eq!(found.map(Kind::api_version).as_deref(), expected, "{name}");
    }

    #[test]
    fn kinds_are_known_by_the_names_that_kubectl_takes() {
        check(37, "deploy", None, Some("apps/v1"));
        check(37, "Deployment", None, Some("apps/v1"));
        check(37, "hpa", None, Some("autoscaling/v2"));
        check(37, "hpa", Some("autoscaling/v1"), Some("autoscaling/v1"));
        check(37, "events", None, Some("v1"));
        check(37, "events", Some("events.k8s.io/v1"), Some("events.k8s.io/v1"));
        check(37, "boats", None, None);
        check(33, "deviceclasses", None, None);
        check(34, "deviceclasses", None, Some("resource.k8s.io/v1"));
    }

    #[test]
    fn a_field_is_explained_as_the_minor_publishes_it() {
        let told = |minor, path: &str| {
            let pods = kind(Minor::of(minor), "pods", None).expect("all minors have pods");
            let schema = schema(Minor::of(minor), pods).expect("it has a type");
            explain(&schema, path).map(|told| told.constraints).map_err(|unknown| unknown.name)
        };
        assert_eq!(told(33, "spec.hostnameOverride"), Err("hostnameOverride".to_owned()));
        assert_eq!(told(34, "spec.hostnameOverride"), Ok(Vec::new()));
        let operators = |minor| told(minor, "spec.tolerations.operator").expect("it is there").concat();
        assert!(!operators(34).contains("Lt") && operators(35).contains("Lt"), "{} {}", operators(34), operators(35));
    }
}
