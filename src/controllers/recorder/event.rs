//! An event as a controller tells it.

use std::borrow::Cow;

use crate::object;
use crate::value::Value;

/// An event about an object.
pub struct RecordedEvent {
    pub component: &'static str,
    /// `involvedObject`.
    pub involved: Value,
    pub type_: &'static str,
    pub reason: Cow<'static, str>,
    pub message: String,
    /// The action; set by controllers that use the form of `events.k8s.io`.
    pub action: Option<&'static str>,
}

impl RecordedEvent {
    pub fn new(
        component: &'static str,
        object: &Value,
        type_: &'static str,
        reason: Cow<'static, str>,
        message: String,
    ) -> Self {
        let metadata = |field: &str| object.str_at(&["metadata", field]);
        let mut involved = object! {
            "kind" => object.str_at(&["kind"]),
            "apiVersion" => object.str_at(&["apiVersion"]),
            "name" => metadata("name"),
            "uid" => metadata("uid"),
        };
        for field in ["namespace", "resourceVersion"] {
            if !metadata(field).is_empty() {
                involved.make_object().insert(field, Value::from(metadata(field)));
            }
        }
        RecordedEvent { component, involved, type_, reason, message, action: None }
    }

    /// The same in the form of `events.k8s.io`.
    pub fn during(mut self, action: &'static str) -> Self {
        self.action = Some(action);
        self
    }
}
