//! How a write changes the object that it finds.
//!
//! Source: `UpdatedObjectInfo` of `k8s.io/apiserver/pkg/registry/rest`, release 1.37.

use std::sync::{Mutex, PoisonError};

use crate::apply::FieldManager;
use crate::meta::Status;
use crate::value::Value;

use super::super::decode::{Format, has_labels, labels_are_left_out};
use super::super::patched::{self, PatchRequest, PatchType};
use super::super::scaled::{self, ScaleRequest};
use super::super::{Body, Subresource, Target, Warnings};
use super::kept::TextOrigin;

/// The desired state of an object. It is computed for each attempt, and is the same for the same object.
pub(in crate::registry) enum Desired<'a> {
    /// As it was sent; with the body that it was decoded from, if a client sent it.
    Sent { object: Sent<'a>, manager: &'a str, sent: Option<&'a Body> },
    /// Patched.
    Patched(&'a PatchRequest),
    /// With other replicas.
    Scaled(&'a ScaleRequest<'a>),
    /// A namespace without the finalizer of its content.
    Emptied,
}

/// An object as it was sent. Most writes need it once: so the first use takes it, and later ones build it again.
pub(in crate::registry) struct Sent<'a> {
    first: Mutex<Option<Value>>,
    again: &'a (dyn Fn() -> Result<Value, Status> + Sync),
}

impl<'a> Sent<'a> {
    /// `again` returns the same as `first`, from the same input.
    pub fn new(first: Value, again: &'a (dyn Fn() -> Result<Value, Status> + Sync)) -> Self {
        Sent { first: Mutex::new(Some(first)), again }
    }

    fn take(&self) -> Result<Value, Status> {
        let first = self.first.lock().unwrap_or_else(PoisonError::into_inner).take();
        first.map_or_else(self.again, Ok)
    }
}

impl Desired<'_> {
    /// The new object, with the owners of its fields. `live` is the existing object; `now` is RFC 3339.
    ///
    /// Errors: those of PATCH, for a patch that does not apply.
    pub fn make(
        &self,
        target: &Target,
        fields: &FieldManager<'_>,
        live: Option<&Value>,
        now: &str,
        warnings: &mut Warnings,
    ) -> Result<Value, Status> {
        match self {
            Desired::Sent { object, manager, .. } => {
                let mut object = object.take()?;
                target.resource.strategy.set_times(&mut object, now);
                if live.is_some() {
                    target.resource.strategy.drop_empty(&mut object);
                }
                Ok(fields.update_sent(live, object, warnings.sent_empty(), manager, now))
            }
            Desired::Patched(request) => patched::patched((target, request), fields, live, now, warnings),
            Desired::Scaled(request) => scaled::scaled((target, request), live.unwrap_or(&Value::Null), now, warnings),
            Desired::Emptied => Ok(emptied(live.unwrap_or(&Value::Null))),
        }
    }
}

impl Desired<'_> {
    /// The verb of a change, in the terms of authorization.
    pub(super) fn verb(&self) -> &'static str {
        match self {
            Desired::Patched(_) | Desired::Scaled(ScaleRequest::Patch(_)) => "patch",
            _ => "update",
        }
    }

    /// The source of the object's bytes.
    pub(super) fn origin(&self, subresource: Subresource) -> TextOrigin<'_> {
        match self {
            _ if subresource != Subresource::Main => TextOrigin::Stored,
            Desired::Sent { sent: Some(body), .. } => match body.format {
                Format::Json => TextOrigin::Json(&body.bytes),
                Format::Protobuf => TextOrigin::Protobuf(&body.bytes),
                Format::Yaml => TextOrigin::Values,
            },
            Desired::Patched(request) => match request.patch_type {
                PatchType::Json | PatchType::Merge => TextOrigin::JsonPatch,
                PatchType::Apply => TextOrigin::Apply,
                PatchType::StrategicMerge => TextOrigin::Values,
            },
            Desired::Sent { sent: None, .. } | Desired::Emptied => TextOrigin::Stored,
            Desired::Scaled(_) => TextOrigin::Values,
        }
    }

    /// Whether a new object was sent without labels.
    pub fn leaves_labels_out(&self, target: &Target) -> bool {
        match self {
            Desired::Sent { sent: Some(body), .. } => labels_are_left_out(body, target),
            Desired::Patched(request) if request.patch_type == PatchType::Apply => {
                patched::decode_applied(target.version.minor, &request.bytes)
                    .is_ok_and(|(applied, _)| !has_labels(&applied))
            }
            _ => false,
        }
    }
}

fn emptied(namespace: &Value) -> Value {
    let mut emptied = namespace.clone();
    let Some(Value::Object(spec)) = emptied.at_mut(&["spec"]) else { return emptied };
    if let Some(Value::Array(finalizers)) = spec.get_mut("finalizers") {
        finalizers.retain(|name| name.as_str() != Some("kubernetes"));
        if finalizers.is_empty() {
            spec.remove("finalizers");
        }
    }
    emptied
}
