//! The steps at the end of a stage, and the resulting actions for an object.

use std::collections::HashSet;

use super::error::StageFault;
use crate::controllers::simulated::template::{Template, TemplateContext};
use crate::object;
use crate::registry::{PatchType, Subresource};
use crate::value::{Value, json, yaml};

/// A step as a stage has it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum StageStep {
    Event(StageEvent),
    Finalizers(FinalizerChange),
    Patch { part: Subresource, root: Option<String>, type_: PatchType, template: Template },
    Delete,
}

/// A change of an object's finalizers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FinalizerChange {
    pub add: Vec<String>,
    pub remove: Vec<String>,
    pub empty: bool,
}

impl FinalizerChange {
    /// The finalizers that an object must have, each once; `None` if it already has these.
    pub fn of(&self, object: &Value) -> Option<Vec<Value>> {
        let old: Vec<&str> = object.items_at(&["metadata", "finalizers"]).iter().filter_map(Value::as_str).collect();
        let kept = old.iter().copied().filter(|name| !self.empty && !self.remove.iter().any(|it| it == name));
        let mut seen = HashSet::new();
        let new: Vec<&str> =
            kept.chain(self.add.iter().map(String::as_str)).filter(|name| seen.insert(*name)).collect();
        (new != old).then(|| new.into_iter().map(Value::from).collect())
    }
}

/// An event of a stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StageEvent {
    pub is_warning: bool,
    pub reason: String,
    pub message: String,
}

/// An action for an object at the end of a stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StageAction {
    Event(StageEvent),
    Finalizers(FinalizerChange),
    Patch(Subresource, PatchType, Vec<u8>),
    Delete,
}

impl StageStep {
    pub fn action(&self, object: &Value, context: &TemplateContext) -> Result<StageAction, StageFault> {
        match self {
            StageStep::Event(event) => Ok(StageAction::Event(event.clone())),
            StageStep::Delete => Ok(StageAction::Delete),
            StageStep::Finalizers(change) => Ok(StageAction::Finalizers(change.clone())),
            StageStep::Patch { part, root, type_, template } => {
                let text = template.render(object, context)?;
                let made = yaml::decode(text.as_bytes())?;
                let patch = match root {
                    Some(root) if *type_ == PatchType::Json => below(root, made),
                    Some(root) => object! { root.as_str() => made },
                    None => made,
                };
                Ok(StageAction::Patch(*part, *type_, json::encode(&patch)))
            }
        }
    }
}

/// A patch in JSON whose paths begin at a field.
fn below(root: &str, mut operations: Value) -> Value {
    if let Value::Array(operations) = &mut operations {
        for operation in operations {
            let path = format!("/{root}{}", operation.str_at(&["path"]));
            operation.make_object().insert("path", Value::String(path));
        }
    }
    operations
}
