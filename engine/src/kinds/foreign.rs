//! Objects of a kind other than the expected one, where Go reads typed kinds: it decodes kinds that its scheme knows,
//! and then tries to convert them.
//!
//! Source: the groups that kube-apiserver 1.37 installs in its scheme, and `runtime.Scheme`'s errors for kinds that it
//! can't convert.

use crate::meta::scheme::SchemeError;
use crate::types::{self, Message};

/// How Go treats an object that names a kind or version other than the expected one.
pub enum Foreign {
    /// Another version of the expected kind: it is decoded, but has the wrong version.
    Version(&'static Message),
    /// It is read, and can't be converted; with Go's error.
    Kind(&'static Message, SchemeError),
}

/// Packages whose kinds are in schemes of their own, or in none.
const APART: [&str; 4] = ["admission", "apidiscovery", "apiextensions", "apiregistration"];
/// Kinds in every version of a group.
const OPTIONS: [&str; 7] =
    ["CreateOptions", "DeleteOptions", "GetOptions", "ListOptions", "PatchOptions", "UpdateOptions", "WatchEvent"];
/// Kinds in no group, which are registered in its first version all the same.
const UNVERSIONED: [&str; 5] = ["APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "Status"];

/// Decodes `kind` in `api_version`, where `wanted` of a group in another version is expected; `None` if Go does not
/// know the kind.
pub fn foreign((group, wanted): (&str, &str), api_version: &str, kind: &str) -> Option<Foreign> {
    let package = types::package_of_group(group)?;
    let message = registered(package, api_version, kind)?;
    let (sent_group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    let target = internal(package, wanted);
    if types::package_of_group(sent_group).is_some_and(|sent| internal(sent, kind) == target) {
        return Some(Foreign::Version(message));
    }
    Some(Foreign::Kind(message, SchemeError::not_convertible((version, kind), target)))
}

/// The type of a kind in the scheme that the kinds of `package` are in.
fn registered(package: &str, api_version: &str, kind: &str) -> Option<&'static Message> {
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    let own = types::package_of_group(group)?;
    let is_in_scheme = if APART.contains(&package) { own == package } else { !APART.contains(&own) };
    let is_version = is_in_scheme && types::objects(&format!("{own}.{version}")).next().is_some();
    let is_shared = OPTIONS.contains(&kind) || (api_version == "v1" && UNVERSIONED.contains(&kind));
    match (is_version, is_shared) {
        (false, _) => None,
        (true, true) => Some(types::message_named("meta.v1", kind)),
        (true, false) => {
            let message = types::of_kind(group, version, kind).map(types::Named::message);
            message.filter(|message| message.is_object)
        }
    }
}

/// The type that Go converts a kind to, whatever version it is in: its package and its name.
fn internal<'a>(package: &'a str, kind: &'a str) -> (&'a str, &'a str) {
    let package = match (package, kind) {
        (_, "Scale") => "autoscaling",
        ("events", _) => "core",
        ("extensions", "Ingress" | "IngressList" | "NetworkPolicy" | "NetworkPolicyList") => "networking",
        ("extensions", _) => "apps",
        _ => package,
    };
    (package, kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(wanted: (&str, &str), api_version: &str, kind: &str, expected: &str) {
        let found = match foreign(wanted, api_version, kind) {
            None => "unregistered".to_owned(),
            Some(Foreign::Version(_)) => "version".to_owned(),
            Some(Foreign::Kind(_, error)) => error.to_string(),
        };
        assert_eq!(found, expected, "{api_version} {kind}");
    }

    #[test]
    fn what_the_scheme_knows_is_converted_or_not() {
        let map = ("", "ConfigMap");
        check(map, "v1", "Secret", "converting (v1.Secret) to (core.ConfigMap): unknown conversion");
        check(
            map,
            "apps/v1beta2",
            "Deployment",
            "converting (v1beta2.Deployment) to (core.ConfigMap): unknown conversion",
        );
        check(map, "v1", "DeleteOptions", "converting (v1.DeleteOptions) to (core.ConfigMap): unknown conversion");
        check(map, "v1", "Status", "converting (v1.Status) to (core.ConfigMap): unknown conversion");
        check(map, "v1", "ConfigMapList", "converting (v1.ConfigMapList) to (core.ConfigMap): unknown conversion");
        check(("events.k8s.io", "Event"), "v1", "Pod", "converting (v1.Pod) to (core.Event): unknown conversion");
    }

    #[test]
    fn other_versions_and_groups_of_one_kind_are_read() {
        check(("autoscaling", "HorizontalPodAutoscaler"), "autoscaling/v1", "HorizontalPodAutoscaler", "version");
        check(("apps", "Deployment"), "extensions/v1beta1", "Deployment", "version");
        check(("networking.k8s.io", "Ingress"), "extensions/v1beta1", "Ingress", "version");
        check(("events.k8s.io", "Event"), "v1", "Event", "version");
    }

    #[test]
    fn what_the_scheme_lacks_is_not_registered() {
        let map = ("", "ConfigMap");
        check(map, "v2", "ConfigMap", "unregistered");
        check(map, "v1", "Nonsense", "unregistered");
        check(map, "v1", "PodSpec", "unregistered");
        check(map, "example.com/v1", "ConfigMap", "unregistered");
        check(map, "apiextensions.k8s.io/v1", "CustomResourceDefinition", "unregistered");
        let definition = ("apiextensions.k8s.io", "CustomResourceDefinition");
        check(definition, "v1", "ConfigMap", "unregistered");
    }
}
