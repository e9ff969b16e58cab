//! The plugins about pods that are on by default: Priority, DefaultTolerationSeconds and RuntimeClass.
//!
//! What they decide is [`pod_object`]'s; here stands when they are asked, and where they learn of classes.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;

use super::owner_references::forbidden;
use super::{Admission, Attributes, Operation};
use crate::kinds::pod_object::{priority, runtime_class, tolerations};
use crate::meta::Status;
use crate::value::Value;

const PRIORITY_CLASSES: (&str, &str) = ("scheduling.k8s.io", "priorityclasses");
const RUNTIME_CLASSES: (&str, &str) = ("node.k8s.io", "runtimeclasses");

/// Objects without a namespace, by group and plural.
#[async_trait]
pub trait Objects: Send + Sync {
    async fn get(&self, group: &str, plural: &str, name: &str) -> Result<Option<Value>, Status>;

    async fn list(&self, group: &str, plural: &str) -> Result<Vec<Value>, Status>;
}

/// Whether a write is about objects of a resource, not parts of them.
fn is_of(attributes: &Attributes<'_>, (group, plural): (&str, &str)) -> bool {
    let version = attributes.version;
    attributes.subresource.is_empty() && version.group == group && version.names.plural == plural
}

fn is_of_pods(attributes: &Attributes<'_>) -> bool {
    is_of(attributes, ("", "pods"))
}

/// Sets the priority of pods, and lets one class alone be the default.
pub struct Priority {
    pub objects: Arc<dyn Objects>,
}

#[async_trait]
impl Admission for Priority {
    async fn mutate(&self, attributes: &Attributes<'_>, object: &mut Value) -> Result<(), Status> {
        match (attributes.operation, attributes.old) {
            _ if !is_of_pods(attributes) => {}
            (Operation::Update, Some(old)) => priority::admit_update(object, old),
            (Operation::Create, _) => {
                let (group, plural) = PRIORITY_CLASSES;
                let classes = self.objects.list(group, plural).await?;
                let by_name: HashMap<&str, &Value> =
                    classes.iter().map(|class| (class.str_at(&["metadata", "name"]), class)).collect();
                let default = priority::default_class(&classes);
                let outcome = priority::admit_create(object, |name| by_name.get(name).copied(), default);
                outcome.map_err(|why| forbidden(attributes, object, &why))?;
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
        let (group, plural) = PRIORITY_CLASSES;
        let classes = self.objects.list(group, plural).await?;
        let Some(known) = priority::default_class(&classes) else { return Ok(()) };
        let name = known.str_at(&["metadata", "name"]);
        if attributes.operation == Operation::Update && name == object.str_at(&["metadata", "name"]) {
            return Ok(());
        }
        let why = format!("PriorityClass {name} is already marked as default. Only one default can exist");
        Err(forbidden(attributes, object, &why))
    }
}

/// Lets pods stay for a while on a node that is not ready or not reached.
pub struct DefaultTolerationSeconds;

#[async_trait]
impl Admission for DefaultTolerationSeconds {
    async fn mutate(&self, attributes: &Attributes<'_>, object: &mut Value) -> Result<(), Status> {
        if is_of_pods(attributes) && attributes.operation != Operation::Delete {
            tolerations::admit(object);
        }
        Ok(())
    }

    async fn validate(&self, _: &Attributes<'_>, _: &Value) -> Result<(), Status> {
        Ok(())
    }
}

/// Sets in new pods what the class says that they run in.
pub struct RuntimeClass {
    pub objects: Arc<dyn Objects>,
}

impl RuntimeClass {
    /// The class of a pod; `None` for a pod that names none.
    async fn class(&self, attributes: &Attributes<'_>, pod: &Value) -> Result<Option<Value>, Status> {
        let Some(name) = runtime_class::name(pod) else { return Ok(None) };
        let (group, plural) = RUNTIME_CLASSES;
        let class = self.objects.get(group, plural, name).await?;
        class.map(Some).ok_or_else(|| forbidden(attributes, pod, &runtime_class::not_found(name)))
    }
}

#[async_trait]
impl Admission for RuntimeClass {
    async fn mutate(&self, attributes: &Attributes<'_>, object: &mut Value) -> Result<(), Status> {
        if attributes.operation != Operation::Create || !is_of_pods(attributes) {
            return Ok(());
        }
        let class = self.class(attributes, object).await?;
        runtime_class::admit(object, class.as_ref()).map_err(|why| forbidden(attributes, object, &why))
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: &Value) -> Result<(), Status> {
        if attributes.operation != Operation::Create || !is_of_pods(attributes) {
            return Ok(());
        }
        let class = self.class(attributes, object).await?;
        runtime_class::validate(object, class.as_ref()).map_err(|why| forbidden(attributes, object, &why))
    }
}
