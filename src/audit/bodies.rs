//! The objects of a request and of its response, as the audit log holds them.
//!
//! Source: `pkg/audit/request.go` of apiserver, release 1.36.

use super::{AuditLevel, Extent};
use crate::kinds::layout;
use crate::value::json::Layout::{self, Sorted, Struct};
use crate::value::{Value, json};

/// The fields of `DeleteOptions`, in the order of the Go type.
static DELETE_OPTIONS: Layout = Struct(&[
    ("kind", &Sorted),
    ("apiVersion", &Sorted),
    ("gracePeriodSeconds", &Sorted),
    ("preconditions", &Struct(&[("uid", &Sorted), ("resourceVersion", &Sorted)])),
    ("orphanDependents", &Sorted),
    ("propagationPolicy", &Sorted),
    ("dryRun", &Sorted),
    ("ignoreStoreReadErrorWithClusterBreakingPotential", &Sorted),
]);

/// The objects of one request, as far as the log holds them.
#[derive(Clone, Debug, Default)]
pub struct Bodies {
    /// The object that was sent: an object with its defaults set, options, or a patch.
    pub request: Option<Value>,
    /// The object that was returned, in the form that the client asked for.
    response: Option<Value>,
    /// The `Status` that was returned, if the response is one.
    status: Option<Value>,
}

impl Bodies {
    /// Records the response. Its object is kept only if `is_kept`; a `Status` is always kept.
    pub fn answer(&mut self, answer: &Value, is_kept: bool) {
        if answer.str_at(&["kind"]) == "Status" && answer.str_at(&["apiVersion"]) == "v1" {
            self.status = Some(answer.clone());
        }
        self.response = is_kept.then(|| answer.clone());
    }

    /// The `Status` that was returned, if the response is one.
    pub fn status(&self) -> Option<&Value> {
        self.status.as_ref()
    }

    /// Appends the fields `requestObject` and `responseObject` to the JSON of an event, as far
    /// as `extent` allows.
    pub(super) fn append_to(&self, event: &mut Vec<u8>, extent: &Extent) {
        let fields = [
            (AuditLevel::Request, "requestObject", &self.request),
            (AuditLevel::RequestResponse, "responseObject", &self.response),
        ];
        for (level, name, object) in fields {
            if let Some(object) = object
                && extent.level >= level
            {
                event.extend_from_slice(format!(",\"{name}\":").as_bytes());
                event.extend_from_slice(&encode(object, extent.omits_managed_fields));
            }
        }
    }
}

fn encode(object: &Value, omits_managed_fields: bool) -> Vec<u8> {
    let layout = if object.str_at(&["kind"]) == "DeleteOptions" { DELETE_OPTIONS } else { layout::of(object) };
    if !omits_managed_fields {
        return json::encode_as(object, layout);
    }
    let mut object = object.clone();
    remove_managed_fields(&mut object);
    json::encode_as(&object, layout)
}

/// Removes the managed fields of an object, of a list's items, and of a table's rows.
fn remove_managed_fields(object: &mut Value) {
    remove_own_managed_fields(object);
    let Value::Object(fields) = object else { return };
    if let Some(Value::Array(items)) = fields.get_mut("items") {
        items.iter_mut().for_each(remove_own_managed_fields);
    }
    if let Some(Value::Array(rows)) = fields.get_mut("rows") {
        rows.iter_mut().filter_map(|row| row.get_mut("object")).for_each(remove_own_managed_fields);
    }
}

fn remove_own_managed_fields(object: &mut Value) {
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.remove("managedFields");
    }
}
