//! The event of a reference to an owner that is in another namespace.

use crate::controllers::identity::CONTROLLER_MANAGER;
use crate::meta::time;
use crate::object;
use crate::registry::{Registry, Target};
use crate::store::Stored;
use crate::value::Value;

const COMPONENT: &str = "garbage-collector-controller";

/// Records that the owner in `reference` does not exist in the object's namespace. If the event can't be written, it is
/// dropped.
///
/// Source: `reportInvalidNamespaceOwnerRef` of the garbage collector, and the event recorder of client-go 0.37.
pub(super) async fn record_misplaced(registry: &Registry, target: &Target, item: &Stored, reference: &Value) {
    let version = &target.version;
    let [api_version, kind, name, uid] = ["apiVersion", "kind", "name", "uid"].map(|field| reference.str_at(&[field]));
    let namespace = &target.namespace;
    let owner = format!("[{api_version}/{kind}, namespace: {namespace}, name: {name}, uid: {uid}]");
    let now = registry.clock.now();
    let at = time::format_seconds(now);
    // Of an object in cluster scope, the event is in the default namespace.
    let event_namespace = if namespace.is_empty() { "default" } else { namespace };
    let mut involved = object! {
        "kind" => version.names.kind.clone(),
        "name" => target.name.clone(),
        "uid" => item.uid.to_string(),
        "apiVersion" => version.api_version(),
    };
    if !namespace.is_empty() {
        involved.make_object().insert("namespace", Value::from(namespace.as_str()));
    }
    let event = object! {
        "metadata" => object! {
            "name" => format!("{}.{:x}", target.name, now.as_nanosecond()),
            "namespace" => event_namespace,
        },
        "involvedObject" => involved,
        "reason" => "OwnerRefInvalidNamespace",
        "message" => format!("ownerRef {owner} does not exist in namespace {namespace:?}"),
        "source" => object! { "component" => COMPONENT },
        "firstTimestamp" => at.clone(),
        "lastTimestamp" => at,
        "count" => 1_i64,
        "type" => "Warning",
        "reportingComponent" => COMPONENT,
        "reportingInstance" => "",
    };
    let recorded = registry.create_own("", "events", event_namespace, CONTROLLER_MANAGER, event).await;
    if let Err(status) = recorded {
        tracing::warn!(message = status.message, "an event could not be recorded");
    }
}
