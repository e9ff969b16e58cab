//! CustomResourceDefinition, `apiextensions.k8s.io/v1`: its published fields as Rust types.
//!
//! The types of its fields, and the errors of Go's decoder, come from the published types (`schemas/types`).

mod fields;

use std::sync::Arc;

use crate::crd::{Column, Names, Scale};
use crate::meta::minor::Minor;
use crate::schema::json_schema::JsonSchema;
use crate::value::Value;

pub use fields::{decode, decode_in, read_in};

/// Kind and version of definitions.
pub const KIND: &str = "CustomResourceDefinition";
/// The apiVersion of definitions.
pub const API_VERSION: &str = "apiextensions.k8s.io/v1";

/// A definition.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Definition {
    /// As [`crate::meta::object_meta::decode`] gives it.
    pub metadata: Value,
    /// `spec`
    pub spec: Spec,
    /// `status`
    pub status: Status,
    /// The version of Kubernetes that reads it. Not a field of the object.
    pub minor: Minor,
}

/// `spec` of a definition.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spec {
    /// `spec.group`
    pub group: String,
    /// `spec.names`
    pub names: Names,
    /// `Cluster` or `Namespaced`, or any other text that was sent.
    pub scope: String,
    /// `spec.versions`
    pub versions: Vec<Version>,
    /// Whether a list of versions is given at all: messages distinguish `[]` from an absent list.
    pub names_versions: bool,
    /// `spec.conversion`
    pub conversion: Option<Conversion>,
    /// `spec.preserveUnknownFields`
    pub preserve_unknown_fields: bool,
}

/// An item of `spec.versions`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Version {
    /// `name`
    pub name: String,
    /// `served`
    pub served: bool,
    /// `storage`
    pub storage: bool,
    /// `deprecated`
    pub deprecated: bool,
    /// `deprecationWarning`
    pub deprecation_warning: Option<String>,
    /// `schema`; within it `openAPIV3Schema` may still be missing.
    pub schema: Option<Option<Arc<JsonSchema>>>,
    /// `subresources`
    pub subresources: Option<Subresources>,
    /// `additionalPrinterColumns`
    pub columns: Vec<Column>,
    /// JSON paths.
    pub selectable_fields: Vec<String>,
}

/// `subresources` of a version.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Subresources {
    /// Whether `status` is there.
    pub status: bool,
    /// `scale`
    pub scale: Option<Scale>,
}

/// `spec.conversion` of a definition.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conversion {
    /// `None` or `Webhook`, or any other text that was sent.
    pub strategy: String,
    /// `webhook`
    pub webhook: Option<WebhookConversion>,
}

/// `webhook` of a conversion.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WebhookConversion {
    /// `clientConfig`
    pub client_config: Option<ClientConfig>,
    /// `conversionReviewVersions`
    pub review_versions: Vec<String>,
}

/// Where a webhook is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClientConfig {
    /// `url`
    pub url: Option<String>,
    /// `service`
    pub service: Option<ServiceReference>,
    /// Base64.
    pub ca_bundle: Option<String>,
}

/// The Service that a webhook is behind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServiceReference {
    /// `namespace`
    pub namespace: String,
    /// `name`
    pub name: String,
    /// `path`
    pub path: Option<String>,
    /// `port`
    pub port: Option<i32>,
}

/// `status` of a definition.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Status {
    /// `conditions`
    pub conditions: Vec<Condition>,
    /// `acceptedNames`
    pub accepted_names: Names,
    /// `storedVersions`
    pub stored_versions: Vec<String>,
    /// `observedGeneration`
    pub observed_generation: i64,
}

/// An item of `status.conditions`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Condition {
    /// `type`
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// RFC 3339, or empty.
    pub last_transition_time: String,
    /// `reason`
    pub reason: String,
    /// `message`
    pub message: String,
    /// `observedGeneration`
    pub observed_generation: i64,
}

impl Definition {
    /// `metadata.name`.
    pub fn name(&self) -> &str {
        self.metadata.str_at(&["name"])
    }

    /// Whether it has a deletionTimestamp.
    pub fn is_being_deleted(&self) -> bool {
        self.metadata.get("deletionTimestamp").is_some()
    }

    /// The condition with this type.
    pub fn condition(&self, type_: &str) -> Option<&Condition> {
        self.status.conditions.iter().find(|condition| condition.type_ == type_)
    }

    /// Whether the condition of this type is True.
    pub fn is_true(&self, type_: &str) -> bool {
        self.condition(type_).is_some_and(|condition| condition.status == "True")
    }

    /// Sets a condition; its time only changes when its status does.
    pub fn set_condition(&mut self, mut condition: Condition, now: &str) {
        let known = self.status.conditions.iter_mut().find(|known| known.type_ == condition.type_);
        match known {
            None => {
                condition.last_transition_time = now.to_owned();
                self.status.conditions.push(condition);
            }
            Some(known) => {
                if known.status != condition.status || known.last_transition_time.is_empty() {
                    known.last_transition_time = now.to_owned();
                }
                known.status = condition.status;
                known.reason = condition.reason;
                known.message = condition.message;
            }
        }
    }

    /// The definition with a condition set; `None` if it has it already.
    pub fn with_condition(&self, condition: Condition, now: &str) -> Option<Definition> {
        let is_known = self.condition(&condition.type_).is_some_and(|known| known.says_same(&condition));
        if is_known {
            return None;
        }
        let mut changed = self.clone();
        changed.set_condition(condition, now);
        Some(changed)
    }
}

impl Condition {
    /// Whether both are equal except for the time.
    pub fn says_same(&self, other: &Condition) -> bool {
        self.status == other.status && self.reason == other.reason && self.message == other.message
    }
}
