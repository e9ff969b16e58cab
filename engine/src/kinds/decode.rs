//! Decoding an object of a built-in kind as a version of Kubernetes does: fields that were added later are unknown to
//! it, and dropped.

use std::sync::Arc;

use super::older::older_type;
use super::strategy::{Decoded, Strategy};
use crate::crd::ServedVersion;
use crate::crd::write::ReadError;
use crate::value::Value;

/// Decodes `object` in `version`, as in the release of Kubernetes that this version is served for; `versions` are all
/// versions of the resource.
///
/// Custom resources and their definitions are decoded by their strategies, which handle minors themselves.
///
/// # Errors
/// A value that does not fit the type of the kind.
pub fn decode(
    strategy: &dyn Strategy,
    version: &ServedVersion,
    object: Value,
    versions: &[Arc<ServedVersion>],
) -> Result<Decoded, ReadError> {
    let forgets = asks_to_forget(&object);
    let mut decoded = decode_in(strategy, version, object, versions)?;
    if forgets && decoded.is_typed {
        let metadata = decoded.object.make_object().entry("metadata").make_object();
        metadata.insert("managedFields", Value::Array(Vec::new()));
    }
    Ok(decoded)
}

/// Whether a client asks to reset ownership by an empty list, which Go's types distinguish from an absent one.
fn asks_to_forget(object: &Value) -> bool {
    object.at(&["metadata", "managedFields"]).and_then(Value::as_array).is_some_and(<[Value]>::is_empty)
}

fn decode_in(
    strategy: &dyn Strategy,
    version: &ServedVersion,
    object: Value,
    versions: &[Arc<ServedVersion>],
) -> Result<Decoded, ReadError> {
    let Some(message) = older_type(version) else { return strategy.decode(object, versions) };
    let unknown = message.check(version.minor, &object)?.unknown;
    let mut known = object;
    message.forget_newer(version.minor, &mut known);
    let mut decoded = strategy.decode(known, versions)?;
    // Go's zero values came back.
    message.forget_newer(version.minor, &mut decoded.object);
    decoded.findings.unknown = unknown;
    Ok(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meta::minor::Minor;
    use crate::object;

    #[test]
    fn an_empty_list_of_managers_stays_a_list() {
        let maps = super::super::find("", "configmaps").expect("the kind is there");
        let version = Arc::new(maps.served_version());
        let read = |managers: Value| {
            let object = object! { "metadata" => object! { "name" => "a", "managedFields" => managers } };
            let decoded = decode(maps.strategy, &version, object, std::slice::from_ref(&version)).expect("it is a map");
            decoded.object.at(&["metadata", "managedFields"]).cloned()
        };
        assert_eq!(read(Value::Array(Vec::new())), Some(Value::Array(Vec::new())));
        assert_ne!(read(Value::Null), Some(Value::Array(Vec::new())));
    }

    #[test]
    fn fields_that_came_later_are_unknown_and_dropped() {
        let pods = super::super::find("", "pods").expect("the kind is there");
        let pod = object! {
            "metadata" => object! { "name" => "a" },
            "spec" => object! { "hostnameOverride" => "x", "nodeName" => "n" },
        };
        let check = |minor: u16, unknown: &[&str], has: bool| {
            let version = Arc::new(pods.served_version_in(Minor::of(minor)));
            let decoded = decode(pods.strategy, &version, pod.clone(), std::slice::from_ref(&version));
            let decoded = decoded.expect("it is a pod");
            assert_eq!(decoded.findings.unknown, unknown, "{minor}");
            assert_eq!(decoded.object.at(&["spec", "hostnameOverride"]).is_some(), has, "{minor}");
            assert_eq!(decoded.object.str_at(&["spec", "nodeName"]), "n");
        };
        check(33, &["spec.hostnameOverride"], false);
        check(34, &[], true);
        check(37, &[], true);
    }
}
