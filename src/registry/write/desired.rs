//! What a write makes of the object that it finds.
//!
//! Source: `UpdatedObjectInfo` of `k8s.io/apiserver/pkg/registry/rest`, release 1.37.

use crate::apply::FieldManager;
use crate::meta::Status;
use crate::value::Value;

use super::super::scale::{self, ScaleRequest};
use super::super::{PatchRequest, Target, Warnings, patch};

/// What an object is to be. It is asked again for each attempt, and gives the same for the same object.
pub(in crate::registry) enum Desired<'a> {
    /// As it was sent.
    Sent { object: &'a Value, manager: &'a str },
    /// Patched.
    Patched(&'a PatchRequest),
    /// With other replicas.
    Scaled(&'a ScaleRequest<'a>),
    /// A namespace without the finalizer of its content.
    Emptied,
}

impl Desired<'_> {
    /// The new object, with who owns which fields of it. `live` is what is there; `now` is RFC 3339.
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
            Desired::Sent { object, manager } => Ok(fields.update(live, (*object).clone(), manager, now)),
            Desired::Patched(request) => patch::patched((target, request), fields, live, now, warnings),
            Desired::Scaled(request) => scale::scaled((target, request), live.unwrap_or(&Value::Null), now, warnings),
            Desired::Emptied => Ok(emptied(live.unwrap_or(&Value::Null))),
        }
    }
}

fn emptied(namespace: &Value) -> Value {
    let mut emptied = namespace.clone();
    if let Some(Value::Array(finalizers)) = emptied.at_mut(&["spec", "finalizers"]) {
        finalizers.retain(|name| name.as_str() != Some("kubernetes"));
    }
    emptied
}
