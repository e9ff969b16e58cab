//! Objects for tests of controllers.

use std::sync::Arc;

use super::client::{Client, Kind, PODS};
use super::recorder::Recorder;
use crate::meta::OBJECT_BYTES_MAX;
use crate::registry::{Registry, fixture};
use crate::store::Encoded;
use crate::value::{Value, yaml};

/// The client of a controller.
pub(super) fn client(registry: &Arc<Registry>) -> Client {
    Client::new(registry, &Recorder::start(registry), "test")
}

/// An object from YAML.
pub(super) fn read(text: &str) -> Value {
    yaml::decode(text.as_bytes()).expect("YAML")
}

/// Stores an object as it is, unasked.
pub(super) async fn store(registry: &Registry, kind: Kind, key: &str, object: &Value) {
    let named = (key, object.str_at(&["metadata", "uid"]));
    fixture::store(&registry.storage, &kind.collection(), named, Encoded::of(object)).await;
}

/// Stores a pod of a node, with a status. If it is not `writable`, no status of it can be written.
pub(super) async fn store_pod(registry: &Registry, name: &str, node: &str, is_writable: bool) {
    let condition = if is_writable { "Ready" } else { "not qualified" };
    let pod = read(&format!(
        "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, namespace: default, uid: u}}, spec: {{nodeName: {node}, \
         containers: [{{name: c, image: i}}]}}, status: {{phase: Running, conditions: [{{type: Ready, status: 'True'}}, \
         {{type: {condition}, status: 'True'}}]}}}}"
    ));
    store(registry, PODS, &format!("default/{name}"), &pod).await;
}

/// The object, so large that no write adds anything to it.
pub(super) fn oversized(mut object: Value) -> Value {
    let annotations = object.make_object().entry("metadata").make_object().entry("annotations").make_object();
    annotations.insert("x", Value::String("x".repeat(OBJECT_BYTES_MAX)));
    object
}
