//! What a kind does differently: how its objects are read, prepared and checked.

use std::sync::Arc;

use crate::crd::{ServedVersion, write};
use crate::meta::field::ErrorList;
use crate::schema::typed::Findings;
use crate::value::Value;

/// The part of an object that a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subresource {
    Main,
    Status,
    Scale,
    /// Of a namespace: what must be done before it goes.
    Finalize,
}

impl Subresource {
    /// As paths and `managedFields` name it.
    pub const fn name(self) -> &'static str {
        match self {
            Subresource::Main => "",
            Subresource::Status => "status",
            Subresource::Scale => "scale",
            Subresource::Finalize => "finalize",
        }
    }
}

/// An object in the form of its version, and the paths of what was not specified.
pub struct Decoded {
    pub object: Value,
    pub findings: Findings,
    /// Whether Go has a type for the kind: it then reads strictly in one go, errors come in the order of the text.
    pub is_typed: bool,
}

impl Decoded {
    /// Unknown fields of a kind that is unstructured in Go, too.
    pub fn unstructured(object: Value, unknown: Vec<String>) -> Self {
        Decoded { object, findings: Findings { unknown, opaque: Vec::new() }, is_typed: false }
    }
}

/// A kind's own ways. Everything else is the same for all kinds and stands in the verbs' files.
pub trait Strategy: Send + Sync {
    /// Brings `object`, as a client sent it, into the form of the version it names. Errors are Go's texts.
    fn decode(&self, object: Value, versions: &[Arc<ServedVersion>]) -> Result<Decoded, String>;

    /// Whether a body may leave apiVersion and kind out, as typed kinds allow.
    fn may_leave_type_out(&self) -> bool;

    fn prepare_create(&self, version: &ServedVersion, object: &mut Value);

    fn validate_create(&self, version: &ServedVersion, object: &Value) -> ErrorList;

    fn prepare_update(&self, version: &ServedVersion, subresource: Subresource, new: &mut Value, old: &Value);

    fn validate_update(&self, version: &ServedVersion, subresource: Subresource, new: &Value, old: &Value) -> ErrorList;

    /// Warnings for the client that wrote `new`.
    fn warnings(&self, version: &ServedVersion, subresource: Subresource, new: &Value, old: Option<&Value>) -> Vec<String>;

    /// Whether an update may leave the resourceVersion out.
    fn allows_unconditional_update(&self) -> bool;

    /// Top-level fields that a write to `subresource` resets, which its manager therefore does not own.
    fn reset_fields(&self, version: &ServedVersion, subresource: Subresource) -> &'static [&'static str];

    /// What the first deletion of an object does before its finalizers are looked at: an object that stays, or nothing.
    ///
    /// `now` is RFC 3339.
    fn begin_delete(&self, _object: &Value, _now: &str) -> Option<Value> {
        None
    }

    /// Whether the object, its finalizers gone, must stay for another reason (a namespace with content).
    fn must_stay(&self, _object: &Value) -> bool {
        false
    }
}

/// The strategy of every custom resource.
pub struct Custom;

impl Strategy for Custom {
    fn decode(&self, mut object: Value, versions: &[Arc<ServedVersion>]) -> Result<Decoded, String> {
        let unknown_fields = write::decode(&mut object, versions, write::Origin::Request)?;
        Ok(Decoded::unstructured(object, unknown_fields))
    }

    fn may_leave_type_out(&self) -> bool {
        false
    }

    fn prepare_create(&self, version: &ServedVersion, object: &mut Value) {
        write::prepare_create(version, object);
    }

    fn validate_create(&self, version: &ServedVersion, object: &Value) -> ErrorList {
        write::validate_create(version, object)
    }

    fn prepare_update(&self, version: &ServedVersion, subresource: Subresource, new: &mut Value, old: &Value) {
        match subresource {
            Subresource::Status => write::prepare_status_update(new, old),
            Subresource::Main | Subresource::Scale | Subresource::Finalize => write::prepare_update(version, new, old),
        }
    }

    fn validate_update(&self, version: &ServedVersion, subresource: Subresource, new: &Value, old: &Value) -> ErrorList {
        match subresource {
            Subresource::Status => write::validate_status_update(version, new, old),
            Subresource::Main | Subresource::Scale | Subresource::Finalize => write::validate_update(version, new, old),
        }
    }

    fn warnings(&self, _: &ServedVersion, subresource: Subresource, new: &Value, old: Option<&Value>) -> Vec<String> {
        match subresource {
            Subresource::Status => Vec::new(),
            Subresource::Main | Subresource::Scale | Subresource::Finalize => write::warnings(new, old),
        }
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn reset_fields(&self, version: &ServedVersion, subresource: Subresource) -> &'static [&'static str] {
        match subresource {
            Subresource::Main if version.status => &["status"],
            Subresource::Status => &["metadata", "spec"],
            Subresource::Main | Subresource::Scale | Subresource::Finalize => &[],
        }
    }
}
