//! Declared types: what expressions see of a structural schema, and how large they must take it to be.
//!
//! Source: Kubernetes documentation, "Validation rules"; `k8s.io/apiserver/pkg/cel/common`, release 1.37.

use std::collections::{BTreeMap, HashSet};

use super::structural::{Structural, StructuralOrBool};
use crate::cel::cost::model::REQUEST_SIZE_BYTES_MAX;
use crate::cel::declared::{DeclField, DeclType, ObjectType};
use crate::cel::escape::escape;
use crate::cel::types::Type;
use crate::meta::minor::Minor;
use crate::value::Value;
use crate::work;

/// The length in bytes of a text that fills a request: two bytes go to the quotation marks.
const TEXT_BYTES_MAX: u64 = REQUEST_SIZE_BYTES_MAX - 2;
/// The version of Kubernetes that began to use `maxLength` for fields that may hold a number or a text.
const BOUNDS_INT_OR_STRING_SINCE: Minor = Minor::of(34);
/// The version of Kubernetes that began to know the maximum length of names.
const BOUNDS_NAMES_SINCE: Minor = Minor::of(37);
/// `metadata.name` is a DNS subdomain.
const NAME_LENGTH_MAX: i64 = 253;

/// The lengths of JSON texts, quotation marks included.
const EMPTY_TEXT_SIZE: u64 = 2;
const EMPTY_CONTAINER_SIZE: u64 = 2;
const NUMBER_SIZE_MIN: u64 = 1;
const BOOL_SIZE_MIN: u64 = 4;
const DATE_SIZE: u64 = 12;
const DATE_TIME_SIZE_MIN: u64 = 21;
const DATE_TIME_SIZE_MAX: u64 = 32;
const DURATION_SIZE_MIN: u64 = 3;
const DURATION_SIZE_MAX: u64 = 32;
/// What a property takes beside its name and value: two quotation marks, a colon and a comma.
const PROPERTY_SIZE: u64 = 4;

/// The declared type of the values of `schema`; `None` if expressions don't see them: values of any type, and lists and
/// maps of these.
///
/// `is_resource` is for the root of a custom resource or an embedded one. Those have a kind, a version and a name even if
/// the schema does not say so.
pub fn declare(schema: &Structural, is_resource: bool) -> Option<DeclType> {
    declare_in(Minor::NEWEST, schema, is_resource)
}

/// [`declare`] in that version of Kubernetes.
pub fn declare_in(minor: Minor, schema: &Structural, is_resource: bool) -> Option<DeclType> {
    work::step();
    let limits = schema.value_validation.as_deref();
    let bytes_max = || limits.and_then(|limits| limits.bounds.max_length).map(text_bytes_max);
    if schema.extensions.int_or_string {
        let bytes_max = bytes_max().filter(|_| minor >= BOUNDS_INT_OR_STRING_SINCE);
        return Some(DeclType::scalar(Type::Dyn, bytes_max.unwrap_or(TEXT_BYTES_MAX), NUMBER_SIZE_MIN));
    }
    let scalar = |ty, size_max, size_min| Some(DeclType::scalar(ty, size_max, size_min));
    match schema.generic.type_.as_str() {
        "array" => {
            let items = declare_nested(minor, schema.items.as_deref()?)?;
            let items_max = match limits.and_then(|limits| limits.bounds.max_items) {
                Some(max) => not_negative(max),
                None => (REQUEST_SIZE_BYTES_MAX - 2) / (items.min_serialized_size + 1),
            };
            Some(DeclType::list(items, items_max))
        }
        "object" => match schema.additional_properties.as_ref().and_then(StructuralOrBool::structural) {
            Some(values) => {
                let values = declare_nested(minor, values)?;
                let entries_max = match limits.and_then(|limits| limits.bounds.max_properties) {
                    Some(max) => not_negative(max),
                    // An empty key, a colon, a comma.
                    None => (REQUEST_SIZE_BYTES_MAX - 2) / (values.min_serialized_size + 6),
                };
                Some(DeclType::map(DeclType::scalar(Type::String, 0, EMPTY_TEXT_SIZE), values, entries_max))
            }
            None => Some(declare_object(minor, schema, is_resource)),
        },
        "string" => match limits.map_or("", |limits| limits.format.as_str()) {
            "byte" => {
                let bytes_max = limits.and_then(|limits| limits.bounds.max_length).map(not_negative);
                scalar(Type::Bytes, bytes_max.unwrap_or(TEXT_BYTES_MAX), EMPTY_TEXT_SIZE)
            }
            "duration" => scalar(Type::Duration, DURATION_SIZE_MAX, DURATION_SIZE_MIN),
            "date" => scalar(Type::Timestamp, DATE_SIZE, DATE_SIZE),
            "date-time" => scalar(Type::Timestamp, DATE_TIME_SIZE_MAX, DATE_TIME_SIZE_MIN),
            _ => {
                let size_max = bytes_max().or_else(|| longest_text(&limits?.enum_)).unwrap_or(TEXT_BYTES_MAX);
                scalar(Type::String, size_max, EMPTY_TEXT_SIZE)
            }
        },
        "boolean" => scalar(Type::Bool, 0, BOOL_SIZE_MIN),
        "number" => scalar(Type::Double, 0, NUMBER_SIZE_MIN),
        "integer" => scalar(Type::Int, 0, NUMBER_SIZE_MIN),
        _ => None,
    }
}

fn declare_nested(minor: Minor, schema: &Structural) -> Option<DeclType> {
    declare_in(minor, schema, schema.extensions.embedded_resource)
}

fn declare_object(minor: Minor, schema: &Structural, is_resource: bool) -> DeclType {
    let mut implied = Vec::new();
    if is_resource && !declares_meta(schema) {
        let text = |length_max: Option<i64>| {
            DeclType::scalar(Type::String, length_max.map_or(TEXT_BYTES_MAX, text_bytes_max), EMPTY_TEXT_SIZE)
        };
        implied.push(("kind", text(None)));
        implied.push(("apiVersion", text(None)));
        let metadata = schema.properties.get("metadata");
        let declared_max = |name: &str| metadata?.properties.get(name)?.value_validation.as_ref()?.bounds.max_length;
        // A generated name is at least one byte longer than its prefix.
        let names = [("name", NAME_LENGTH_MAX), ("generateName", NAME_LENGTH_MAX - 1)];
        let fields = names.into_iter().map(|(name, max)| {
            let known = Some(declared_max(name).map_or(max, |declared| declared.min(max)));
            let decl = text(known.filter(|_| minor >= BOUNDS_NAMES_SINCE));
            (name.to_owned(), DeclField { decl, required: false })
        });
        let metadata = ObjectType { name: OBJECT.to_owned(), fields: fields.collect() };
        implied.push(("metadata", DeclType::object(metadata, EMPTY_CONTAINER_SIZE)));
    }
    let required = schema.value_validation.as_ref().map_or(&[][..], |limits| &limits.required);
    work::steps(required.len());
    let required: HashSet<&str> = required.iter().map(String::as_str).collect();
    let mut fields = BTreeMap::new();
    let mut size_min = EMPTY_CONTAINER_SIZE;
    let mut add = |name: &str, decl: DeclType, has_default: bool| {
        let is_required = required.contains(name);
        if is_required && !has_default {
            size_min += name.len() as u64 + decl.min_serialized_size + PROPERTY_SIZE;
        }
        if let Some(escaped) = escape(name) {
            fields.insert(escaped.into_owned(), DeclField { decl, required: is_required });
        }
    };
    for (name, property) in schema.properties.iter() {
        if implied.iter().any(|(implied, _)| *implied == name) {
            continue;
        }
        if let Some(decl) = declare_nested(minor, property) {
            let default = property.generic.default.as_deref();
            add(name, decl, default.is_some_and(|default| !default.is_null()));
        }
    }
    for (name, decl) in implied {
        add(name, decl, false);
    }
    DeclType::object(ObjectType { name: OBJECT.to_owned(), fields }, size_min)
}

/// The name of an object type that has no name of its own yet.
const OBJECT: &str = "object";

/// Whether a schema declares all fields that resources have, so that none have to be added.
fn declares_meta(schema: &Structural) -> bool {
    let is = |schema: &Structural, name: &str, type_: &str| {
        schema.properties.get(name).is_some_and(|property| property.generic.type_ == type_)
    };
    let metadata = schema.properties.get("metadata").filter(|metadata| metadata.generic.type_ == "object");
    is(schema, "kind", "string")
        && is(schema, "apiVersion", "string")
        && metadata.is_some_and(|metadata| is(metadata, "name", "string") && is(metadata, "generateName", "string"))
}

fn not_negative(limit: i64) -> u64 {
    u64::try_from(limit).unwrap_or(0)
}

/// `maxLength` counts characters, of up to four bytes each.
fn text_bytes_max(length_max: i64) -> u64 {
    length_max.max(0).wrapping_mul(4) as u64
}

/// The length in bytes of the longest of these texts; `None` if nothing is enumerated.
fn longest_text(values: &[Value]) -> Option<u64> {
    let longest = values.iter().filter_map(Value::as_str).map(str::len).max().unwrap_or(0);
    (!values.is_empty()).then_some(longest as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::convert::to_structural;
    use crate::schema::json_schema;
    use crate::value::json;

    fn declared(schema: &str) -> Option<DeclType> {
        let schema = json::decode(schema.as_bytes()).expect("the schema is JSON");
        let (schema, _) = json_schema::decode(&schema).expect("it is a schema");
        declare(&to_structural(&schema).expect("it is structural"), false)
    }

    fn check(schema: &str, ty: &str, max_elements: u64, min_serialized_size: u64) {
        let decl = declared(schema).expect("expressions see it");
        assert_eq!(decl.ty.to_string(), ty, "{schema}");
        assert_eq!((decl.max_elements, decl.min_serialized_size), (max_elements, min_serialized_size), "{schema}");
    }

    #[test]
    fn scalars_have_the_sizes_that_their_limits_allow() {
        check(r#"{"type":"string"}"#, "string", 3_145_726, 2);
        check(r#"{"type":"string","maxLength":3}"#, "string", 12, 2);
        check(r#"{"type":"string","enum":["a","bcd"]}"#, "string", 3, 2);
        check(r#"{"type":"string","format":"byte","maxLength":5}"#, "bytes", 5, 2);
        check(r#"{"type":"string","format":"duration"}"#, "duration", 32, 3);
        check(r#"{"type":"string","format":"date"}"#, "timestamp", 12, 12);
        check(r#"{"type":"string","format":"date-time"}"#, "timestamp", 32, 21);
        check(r#"{"x-kubernetes-int-or-string":true}"#, "dyn", 3_145_726, 1);
        check(r#"{"type":"integer"}"#, "int", 0, 1);
        check(r#"{"type":"number"}"#, "double", 0, 1);
        check(r#"{"type":"boolean"}"#, "bool", 0, 4);
    }

    #[test]
    fn containers_hold_what_fits_into_a_request() {
        check(r#"{"type":"array","items":{"type":"integer"}}"#, "list(int)", 1_572_863, 2);
        check(r#"{"type":"array","maxItems":7,"items":{"type":"string"}}"#, "list(string)", 7, 2);
        check(r#"{"type":"object","additionalProperties":{"type":"string"}}"#, "map(string, string)", 393_215, 2);
        let schema = r#"{"type":"object","required":["a","b"],
            "properties":{"a":{"type":"integer"},"b":{"type":"integer","default":1},"c":{"type":"string"}}}"#;
        check(schema, "object", 0, 8);
    }

    #[test]
    fn what_may_hold_anything_is_not_declared() {
        assert!(declared(r#"{"x-kubernetes-preserve-unknown-fields":true}"#).is_none());
        assert!(declared(r#"{"type":"array","items":{"x-kubernetes-preserve-unknown-fields":true}}"#).is_none());
    }

    #[test]
    fn resources_have_a_kind_a_version_and_a_name() {
        let schema = json::decode(br#"{"type":"object","properties":{"spec-x":{"type":"string"}}}"#).expect("JSON");
        let (schema, _) = json_schema::decode(&schema).expect("it is a schema");
        let decl = declare(&to_structural(&schema).expect("it is structural"), true).expect("it is declared");
        let fields = |decl: &DeclType| match &decl.shape {
            crate::cel::declared::DeclShape::Object(object) => object.fields.keys().cloned().collect::<Vec<_>>(),
            _ => Vec::new(),
        };
        assert_eq!(fields(&decl), ["apiVersion", "kind", "metadata", "spec__dash__x"]);
        assert_eq!(decl.field("metadata").map(fields), Some(vec!["generateName".to_owned(), "name".to_owned()]));
    }
}
