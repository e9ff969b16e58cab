//! Plugins about pods that are enabled by default: Priority, DefaultTolerationSeconds,
//! RuntimeClass, and the checks of pod updates against the node.
//!
//! The decisions are made in [`crate::kinds::pod_object`]; this module decides when they apply, and
//! looks up classes and nodes.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;

use super::{Admission, Attributes, Objects, Operation, ScopedResource, forbidden};
use crate::kinds::pod_object::{priority, resize_admission, runtime_class, tolerations};
use crate::meta::{Cause, Status, names};
use crate::value::Value;

const PRIORITY_CLASSES: (&str, &str) = ("scheduling.k8s.io", "priorityclasses");
const RUNTIME_CLASSES: (&str, &str) = ("node.k8s.io", "runtimeclasses");

/// The place of cluster-scoped objects.
const fn place((group, plural): (&'static str, &'static str)) -> ScopedResource<'static> {
    ScopedResource { group, plural, namespace: "" }
}

/// Whether a write is about objects of a resource, not about a subresource.
fn is_of(attributes: &Attributes<'_>, (group, plural): (&str, &str)) -> bool {
    let version = attributes.version;
    attributes.subresource.is_empty() && version.group == group && version.names.plural == plural
}

fn is_of_pods(attributes: &Attributes<'_>) -> bool {
    is_of(attributes, ("", "pods"))
}

/// Sets the priority of pods, and allows only one default class.
pub struct Priority {
    pub objects: Arc<dyn Objects>,
}

#[async_trait]
impl Admission for Priority {
    fn concerns_custom_resources(&self) -> bool {
        false
    }

    async fn mutate(&self, attributes: &Attributes<'_>, object: &mut Value) -> Result<(), Status> {
        match (attributes.operation, attributes.old) {
            _ if !is_of_pods(attributes) => {}
            (Operation::Update, Some(old)) => priority::admit_update(object, old),
            (Operation::Create, _) => {
                let classes = self.objects.list_fields(place(PRIORITY_CLASSES), &priority::READ).await?;
                let by_name: HashMap<&str, &Value> =
                    classes.iter().map(|class| (class.str_at(&["metadata", "name"]), class)).collect();
                let default = priority::default_class(classes.iter());
                let outcome = priority::admit_create(object, |name| by_name.get(name).copied(), default);
                outcome.map_err(|why| forbidden(attributes, object, &why.to_string()))?;
            }
            _ => {}
        }
        Ok(())
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: &Value) -> Result<(), Status> {
        let is_default = || object.get("globalDefault").and_then(Value::as_bool) == Some(true);
        if attributes.operation == Operation::Delete || !is_of(attributes, PRIORITY_CLASSES) || !is_default() {
            return Ok(());
        }
        let classes = self.objects.list_fields(place(PRIORITY_CLASSES), &priority::READ).await?;
        let Some(known) = priority::default_class(classes.iter()) else { return Ok(()) };
        let name = known.str_at(&["metadata", "name"]);
        if attributes.operation == Operation::Update && name == object.str_at(&["metadata", "name"]) {
            return Ok(());
        }
        let why = format!("PriorityClass {name} is already marked as default. Only one default can exist");
        Err(forbidden(attributes, object, &why))
    }
}

/// Adds tolerations that let pods stay for a while on a node that is not ready or unreachable.
pub struct DefaultTolerationSeconds(pub tolerations::Seconds);

#[async_trait]
impl Admission for DefaultTolerationSeconds {
    fn concerns_custom_resources(&self) -> bool {
        false
    }

    async fn mutate(&self, attributes: &Attributes<'_>, object: &mut Value) -> Result<(), Status> {
        if is_of_pods(attributes) && attributes.operation != Operation::Delete {
            tolerations::admit(object, self.0);
        }
        Ok(())
    }

    async fn validate(&self, _: &Attributes<'_>, _: &Value) -> Result<(), Status> {
        Ok(())
    }
}

/// The node of an updated pod; `None` if the pod has no node or its generation is unchanged.
async fn node_of_changed(
    objects: &dyn Objects,
    attributes: &Attributes<'_>,
    pod: &Value,
) -> Result<Option<Value>, Status> {
    let generation = |pod: &Value| pod.at(&["metadata", "generation"]).and_then(Value::as_i64);
    let name = pod.str_at(&["spec", "nodeName"]);
    if name.is_empty() || attributes.old.is_none_or(|old| generation(old) == generation(pod)) {
        return Ok(None);
    }
    let node = objects.get(place(("", "nodes")), name).await?;
    let not_found = || forbidden(attributes, pod, &format!("node {} not found", crate::value::go_quote(name)));
    node.map(Some).ok_or_else(not_found)
}

/// Whether a write updates a pod through one of the subresources `parts`.
fn changes_pod(attributes: &Attributes<'_>, parts: &[&str]) -> bool {
    let version = attributes.version;
    let is_pod = version.group.is_empty() && version.names.plural == "pods";
    is_pod && attributes.operation == Operation::Update && parts.contains(&attributes.subresource)
}

/// Refuses updates that need features which the pod's node has not declared.
pub struct NodeDeclaredFeatureValidator {
    pub objects: Arc<dyn Objects>,
}

#[async_trait]
impl Admission for NodeDeclaredFeatureValidator {
    fn concerns_custom_resources(&self) -> bool {
        false
    }

    async fn mutate(&self, _: &Attributes<'_>, _: &mut Value) -> Result<(), Status> {
        Ok(())
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: &Value) -> Result<(), Status> {
        if !changes_pod(attributes, &["", "resize"]) {
            return Ok(());
        }
        let features = attributes.old.map(|old| resize_admission::features(object, old)).unwrap_or_default();
        if features.is_empty() {
            return Ok(());
        }
        let Some(node) = node_of_changed(&*self.objects, attributes, object).await? else { return Ok(()) };
        match resize_admission::missing(&features, &node) {
            Some(why) => Err(forbidden(attributes, object, &why)),
            None => Ok(()),
        }
    }
}

/// Refuses a resize to more resources than the pod's node has.
pub struct PodResizeValidator {
    pub objects: Arc<dyn Objects>,
}

#[async_trait]
impl Admission for PodResizeValidator {
    fn concerns_custom_resources(&self) -> bool {
        false
    }

    async fn mutate(&self, _: &Attributes<'_>, _: &mut Value) -> Result<(), Status> {
        Ok(())
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: &Value) -> Result<(), Status> {
        if !changes_pod(attributes, &["resize"]) {
            return Ok(());
        }
        let Some(node) = node_of_changed(&*self.objects, attributes, object).await? else { return Ok(()) };
        let Some((why, cause)) = resize_admission::refuse(object, &node) else { return Ok(()) };
        let mut status = forbidden(attributes, object, &why);
        if let Some(details) = &mut status.details {
            details.causes.push(Cause { reason: cause.to_owned(), ..Cause::default() });
        }
        Err(status)
    }
}

/// Sets the overhead and scheduling of a pod's runtime class in new pods.
pub struct RuntimeClass {
    pub objects: Arc<dyn Objects>,
}

impl RuntimeClass {
    /// The runtime class of a pod; `None` if the pod names none.
    async fn class(&self, attributes: &Attributes<'_>, pod: &Value) -> Result<Option<Value>, Status> {
        let Some(name) = runtime_class::name(pod) else { return Ok(None) };
        if let Some(why) = names::unfit_for_request(name) {
            return Err(Status::plain(500, &why));
        }
        let class = self.objects.get(place(RUNTIME_CLASSES), name).await?;
        class.map(Some).ok_or_else(|| forbidden(attributes, pod, &runtime_class::not_found(name)))
    }
}

#[async_trait]
impl Admission for RuntimeClass {
    fn concerns_custom_resources(&self) -> bool {
        false
    }

    async fn mutate(&self, attributes: &Attributes<'_>, object: &mut Value) -> Result<(), Status> {
        if attributes.operation != Operation::Create || !is_of_pods(attributes) {
            return Ok(());
        }
        let class = self.class(attributes, object).await?;
        runtime_class::admit(object, class.as_ref()).map_err(|why| forbidden(attributes, object, &why.to_string()))
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: &Value) -> Result<(), Status> {
        if attributes.operation != Operation::Create || !is_of_pods(attributes) {
            return Ok(());
        }
        let class = self.class(attributes, object).await?;
        runtime_class::validate(object, class.as_ref()).map_err(|why| forbidden(attributes, object, &why.to_string()))
    }
}
