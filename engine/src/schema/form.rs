//! How expressions read an object of a schema.
//!
//! Input: a structural schema. Output: the [`HostForm`] through which values of it are read in place.
//! Source: k8s.io/apiserver 1.37, values of unstructured objects.

use std::sync::Arc;

use super::structural::{Structural, StructuralOrBool};
use crate::cel::escape::escape;
use crate::cel::eval::host::{HostField, HostForm, HostShape, ListForm, ListKeys, ListKind, MapForm};
use crate::meta::minor::Minor;
use crate::value::Map;
use crate::work;

/// The version of Kubernetes since which an object with nulls equals itself.
const NULLS_EQUAL_SINCE: Minor = Minor::of(34);

/// The form of what `schema` specifies. `is_resource` is for the root of a custom resource or an embedded one: those have
/// a kind, a version and a name even if the schema does not say so.
pub fn form(schema: &Structural, is_resource: bool) -> HostForm {
    form_in(Minor::NEWEST, schema, is_resource)
}

/// [`form`] as that version of Kubernetes reads objects.
pub fn form_in(minor: Minor, schema: &Structural, is_resource: bool) -> HostForm {
    work::step();
    let nulls_differ = minor < NULLS_EQUAL_SINCE;
    HostForm { nullable: schema.generic.nullable, nulls_differ, shape: shape(minor, schema, is_resource) }
}

fn shape(minor: Minor, schema: &Structural, is_resource: bool) -> HostShape {
    if schema.extensions.int_or_string {
        return HostShape::IntOrString;
    }
    match schema.generic.type_.as_str() {
        "object" => HostShape::Map(map(minor, schema, is_resource)),
        "array" => list(minor, schema),
        "string" => match schema.value_validation.as_deref().map_or("", |validation| validation.format.as_str()) {
            "duration" => HostShape::Duration,
            "date" => HostShape::Date,
            "date-time" => HostShape::DateTime,
            "byte" => HostShape::Bytes,
            _ => HostShape::String,
        },
        "number" => HostShape::Number,
        "integer" => HostShape::Integer,
        "boolean" => HostShape::Boolean,
        _ if schema.extensions.preserve_unknown_fields => HostShape::Preserved,
        other => HostShape::Unknown(other.to_owned()),
    }
}

fn map(minor: Minor, schema: &Structural, is_resource: bool) -> MapForm {
    let has_meta = is_resource || schema.extensions.embedded_resource;
    if !has_meta && schema.properties.is_empty() {
        return match schema.additional_properties.as_ref().and_then(StructuralOrBool::structural) {
            Some(values) => MapForm::Values(Arc::new(form_in(minor, values, false))),
            None => MapForm::Bare,
        };
    }
    let mut fields: Map<HostField> = schema
        .properties
        .iter()
        .map(|(name, property)| (name.to_owned(), field(name, form_in(minor, property, false))))
        .collect();
    if has_meta && !declares_meta(schema) {
        let plain = |shape| HostForm { nullable: false, nulls_differ: minor < NULLS_EQUAL_SINCE, shape };
        let text = |name| (String::from(name), field(name, plain(HostShape::String)));
        let metadata = MapForm::Fields(["name", "generateName"].map(text).into_iter().collect());
        let metadata = field("metadata", plain(HostShape::Map(metadata)));
        for (name, field) in [text("kind"), text("apiVersion"), ("metadata".to_owned(), metadata)] {
            fields.insert(name, field);
        }
    }
    MapForm::Fields(fields)
}

fn field(name: &str, form: HostForm) -> HostField {
    HostField { form: Arc::new(form), escaped: escape(name).map_or_else(|| name.to_owned(), Into::into) }
}

/// Whether a schema declares all fields that resources have, so that none have to be added.
fn declares_meta(schema: &Structural) -> bool {
    let is = |schema: &Structural, name: &str, type_: &str| {
        schema.properties.get(name).is_some_and(|property| property.generic.type_ == type_)
    };
    is(schema, "kind", "string")
        && is(schema, "apiVersion", "string")
        && is(schema, "metadata", "object")
        && schema
            .properties
            .get("metadata")
            .is_some_and(|metadata| is(metadata, "name", "string") && is(metadata, "generateName", "string"))
}

/// The version of Kubernetes since which sums of lists look keys up by the properties' own names.
const SUMS_BY_OWN_NAMES_SINCE: Minor = Minor::of(37);

fn list(minor: Minor, schema: &Structural) -> HostShape {
    let Some(items) = &schema.items else { return HostShape::BareList };
    let kind = match schema.extensions.list_type.as_deref() {
        None | Some("" | "atomic") => ListKind::Atomic,
        Some("set") => ListKind::Set,
        Some("map") => {
            let own = &schema.extensions.list_map_keys;
            let escaped: Vec<String> =
                own.iter().map(|key| escape(key).map_or_else(|| key.clone(), Into::into)).collect();
            let of_sums = if minor < SUMS_BY_OWN_NAMES_SINCE { escaped.clone() } else { own.clone() };
            ListKind::Map(ListKeys { escaped, of_sums })
        }
        Some(other) => return HostShape::UnknownList(other.to_owned()),
    };
    HostShape::List(Box::new(ListForm { item: Arc::new(form_in(minor, items, false)), kind }))
}
