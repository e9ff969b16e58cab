//! Finalizers that controllers add to objects and remove from them. Those of others stay as they are.
//!
//! The whole list is written at once, so each write names the object's resourceVersion: if another writer has changed
//! the object since it was read, the answer is 409, and the controller loop retries it.

use super::client::{Client, Kind, place};
use crate::meta::Status;
use crate::object;
use crate::value::Value;

/// Whether an object has a finalizer.
pub(super) fn has(object: &Value, finalizer: &str) -> bool {
    object.items_at(&["metadata", "finalizers"]).iter().any(|name| name.as_str() == Some(finalizer))
}

/// Adds a finalizer to an object; returns the result.
///
/// Errors: 404, 409 if the object has changed since it was read, and those of any write.
pub(super) async fn add(client: &Client, kind: Kind, object: &Value, finalizer: &str) -> Result<Value, Status> {
    let kept = others(object, finalizer).chain([Value::from(finalizer)]);
    replace(client, kind, object, kept.collect()).await
}

/// Removes a finalizer from an object; returns the result.
///
/// Errors: as of [`add`].
pub(super) async fn remove(client: &Client, kind: Kind, object: &Value, finalizer: &str) -> Result<Value, Status> {
    replace(client, kind, object, others(object, finalizer).collect()).await
}

fn others(object: &Value, finalizer: &str) -> impl Iterator<Item = Value> {
    let finalizers = object.items_at(&["metadata", "finalizers"]).iter();
    finalizers.filter(move |name| name.as_str() != Some(finalizer)).cloned()
}

async fn replace(client: &Client, kind: Kind, object: &Value, finalizers: Vec<Value>) -> Result<Value, Status> {
    let (namespace, name) = place(object);
    client.merge(kind, namespace, name, &patch(object, finalizers)).await
}

/// The merge patch that replaces the finalizers of an object that has not changed since it was read.
pub(super) fn patch(object: &Value, finalizers: Vec<Value>) -> Value {
    let finalizers = if finalizers.is_empty() { Value::Null } else { Value::Array(finalizers) };
    object! { "metadata" => object! {
        "uid" => object.str_at(&["metadata", "uid"]),
        "resourceVersion" => object.str_at(&["metadata", "resourceVersion"]),
        "finalizers" => finalizers,
    } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    fn read(text: &str) -> Value {
        yaml::decode(text.as_bytes()).expect("YAML")
    }

    #[test]
    fn finalizers_of_others_stay() {
        let object = read("metadata: {uid: u, resourceVersion: '7', finalizers: [a/b, c/d]}");
        assert!(has(&object, "a/b") && !has(&object, "a"));
        let kept: Vec<Value> = others(&object, "a/b").collect();
        assert_eq!(kept, [Value::from("c/d")]);
        assert_eq!(others(&object, "e/f").count(), 2);
    }

    #[test]
    fn a_patch_is_only_for_the_object_as_it_was_read() {
        let object = read("metadata: {name: o, uid: u, resourceVersion: '7', finalizers: [a/b, c/d]}");
        let check = |finalizer: &str, expected: &str| {
            assert_eq!(patch(&object, others(&object, finalizer).collect()), read(expected));
        };
        check("a/b", "metadata: {uid: u, resourceVersion: '7', finalizers: [c/d]}");
        assert_eq!(patch(&object, Vec::new()), read("metadata: {uid: u, resourceVersion: '7', finalizers: null}"));
    }
}
