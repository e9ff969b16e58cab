//! The form of an answer: objects themselves, their metadata, or a Table.

use std::sync::Arc;

use jiff::Timestamp;

use crate::clock::Clock;
use crate::registry::{Subresource, Target};
use crate::value::Value;

use super::negotiate::{Transform, TransformKind};
use super::query::{IncludeObject, QueryError};
use super::table::{self, Columns};

/// The form of an answer.
#[derive(Clone)]
pub(super) struct AnswerShape {
    pub transform: Option<Transform>,
    pub include: IncludeObject,
    /// An invalid `includeObject`: reported only if there is an object to show.
    pub fault: Option<QueryError>,
    /// Of a Table.
    pub columns: Option<Arc<Columns>>,
    /// The clock that ages in a Table are computed by.
    pub clock: Clock,
}

impl AnswerShape {
    /// Errors: the `includeObject` of a Table is invalid.
    pub fn check(&self) -> Result<(), QueryError> {
        self.fault.clone().map_or(Ok(()), Err)
    }

    /// Whether single objects can't have the form, as it is one of lists.
    pub fn is_for_lists(&self) -> bool {
        self.transform.is_some_and(|transform| transform.kind == TransformKind::PartialObjectMetadataList)
    }

    /// Whether objects go out as they are.
    pub fn is_plain(&self) -> bool {
        self.transform.is_none()
    }

    /// One object, or the object of an event; column definitions go with the first event of a Table alone, and ages in it
    /// are those at `now`.
    pub fn object(&self, object: Value, with_definitions: bool, now: Timestamp) -> Value {
        match (self.transform, &self.columns) {
            (Some(transform), Some(columns)) => {
                let metadata = object.get("metadata").cloned().unwrap_or_default();
                table::table(columns, transform, &metadata, [object], self.include, with_definitions, now)
            }
            (Some(transform), None) => table::partial(object, transform),
            (None, _) => object,
        }
    }
}

pub(super) fn columns(target: &Target) -> Columns {
    let resource = &target.resource;
    match (resource.definition.is_some(), resource.strategy.table()) {
        (is_custom, _) if target.subresource == Subresource::Scale => Columns::scale(!is_custom),
        (true, _) => Columns::custom(&target.version.columns),
        (false, Some(table)) => Columns::built_in(table, resource.strategy),
        (false, None) => Columns::definition(),
    }
}

/// Groups whose kinds have no tables for `/status`.
const STATUS_WITHOUT_TABLE: [&str; 3] = ["apiextensions.k8s.io", "apiregistration.k8s.io", "resource.k8s.io"];

/// Whether the endpoint of a built-in kind can answer with a Table.
pub(super) fn has_table(target: &Target) -> bool {
    match target.subresource {
        Subresource::Main | Subresource::Scale => true,
        Subresource::Status => !STATUS_WITHOUT_TABLE.contains(&target.version.group.as_str()),
        Subresource::Part(_) => false,
    }
}

/// What Go calls the type of objects, as messages name it.
pub(super) fn go_type(target: &Target) -> String {
    let version = &target.version;
    let package = match (target.subresource, version.group.as_str()) {
        (Subresource::Scale, _) if target.resource.definition.is_some() => return "v1.Scale".to_owned(),
        (Subresource::Scale, _) => return "autoscaling.Scale".to_owned(),
        _ if target.resource.definition.is_some() => return "unstructured.Unstructured".to_owned(),
        (_, "") => "core",
        (_, group) => {
            let of_group = group.split('.').next().unwrap_or_default();
            target.resource.strategy.internal_package().unwrap_or(of_group)
        }
    };
    format!("{package}.{}", version.names.kind)
}
