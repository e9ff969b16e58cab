//! Metadata of objects within objects: its types, its unknown fields, its validity.
//!
//! Input: a value and its schema. Output: the value with `metadata` as Kubernetes decodes it wherever
//! `x-kubernetes-embedded-resource` stands, or the errors there. The rest of the value is left alone.

use super::structural::{Structural, StructuralOrBool};
use crate::meta::field::{Error, ErrorList, Path};
use crate::meta::{names, object_meta};
use crate::value::{Map, Value};
use crate::work;

/// Checks types of embedded `apiVersion`, `kind` and `metadata`, drops unknown fields of the latter, and returns the
/// paths of these, sorted. With `is_resource_root`, `value` is such an object itself.
///
/// With `drop_invalid_fields`, fields of a wrong type are dropped and cause no error.
///
/// # Errors
///
/// The first field of a wrong type, in Go's words.
/// Source: Kubernetes documentation, "RawExtension"; answers recorded from apiextensions-apiserver 1.37.
pub fn coerce(
    path: &Path<'_>,
    value: &mut Value,
    schema: &Structural,
    is_resource_root: bool,
    drop_invalid_fields: bool,
) -> Result<Vec<String>, Box<Error>> {
    let mut coercion = Coercion { drop_invalid_fields, unknown: Vec::new(), bytes: 0 };
    coercion.enter(path, value, schema, is_resource_root || schema.extensions.embedded_resource)?;
    coercion.unknown.sort_unstable();
    Ok(coercion.unknown)
}

struct Coercion {
    drop_invalid_fields: bool,
    unknown: Vec<String>,
    /// Of `unknown`.
    bytes: usize,
}

/// The most bytes of paths of unknown fields that are reported.
const PATHS_BYTES_MAX: usize = 32 << 20;

impl Coercion {
    fn enter(
        &mut self,
        path: &Path<'_>,
        value: &mut Value,
        schema: &Structural,
        embedded: bool,
    ) -> Result<(), Box<Error>> {
        work::step();
        if schema.lacks.embedded_resources && !embedded {
            return Ok(());
        }
        match value {
            Value::Object(fields) => {
                if embedded {
                    self.coerce_type(path, fields, "apiVersion")?;
                    self.coerce_type(path, fields, "kind")?;
                    self.coerce_metadata(path, fields)?;
                }
                for (name, field) in fields.iter_mut() {
                    if let Some((path, schema)) = within(path, schema, name) {
                        self.enter(&path, field, schema, schema.extensions.embedded_resource)?;
                    }
                }
            }
            Value::Array(items) => {
                let Some(schema) = schema.items.as_deref() else { return Ok(()) };
                for (index, item) in items.iter_mut().enumerate() {
                    self.enter(&path.index(index), item, schema, schema.extensions.embedded_resource)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn coerce_type(&self, path: &Path<'_>, fields: &mut Map, name: &str) -> Result<(), Box<Error>> {
        match fields.get(name) {
            None | Some(Value::String(_)) => Ok(()),
            Some(_) if self.drop_invalid_fields => {
                fields.remove(name);
                Ok(())
            }
            Some(value) => Err(Box::new(Error::invalid(&path.child(name), value.clone(), "must be a string"))),
        }
    }

    fn coerce_metadata(&mut self, path: &Path<'_>, fields: &mut Map) -> Result<(), Box<Error>> {
        let Some(metadata) = fields.get_mut("metadata") else { return Ok(()) };
        let path = path.child("metadata");
        let (mut decoded, unknown) = match (object_meta::decode(metadata), &*metadata) {
            (Ok(decoded), _) => decoded,
            (Err(detail), _) if !self.drop_invalid_fields => {
                return Err(Box::new(Error::invalid(&path, metadata.clone(), detail.to_string())));
            }
            (Err(_), Value::Object(fields)) => decode_each(fields),
            (Err(_), _) => return Ok(()),
        };
        if let Some(decoded) = decoded.as_object_mut()
            && decoded.get("creationTimestamp").is_some_and(Value::is_null)
        {
            decoded.remove("creationTimestamp");
        }
        *metadata = decoded;
        for field in unknown {
            if self.bytes >= PATHS_BYTES_MAX {
                break;
            }
            let path = format!("{path}.{field}");
            work::bytes(path.len());
            self.bytes += path.len();
            self.unknown.push(path);
        }
        Ok(())
    }
}

/// Decodes metadata field by field, and drops the fields that fail.
fn decode_each(fields: &Map) -> (Value, Vec<String>) {
    let mut whole = Map::new();
    let mut unknown = Vec::new();
    for (name, value) in fields.iter() {
        let alone = Map::from_iter([(name.to_owned(), value.clone())]);
        if let Ok((Value::Object(decoded), more_unknown)) = object_meta::decode(&alone.into()) {
            unknown.extend(more_unknown);
            for (name, value) in decoded {
                if !value.is_null() {
                    whole.insert(name, value);
                }
            }
        }
    }
    (whole.into(), unknown)
}

/// The path and the schema of the field `name`, if the schema has such a field.
fn within<'a>(path: &'a Path<'a>, schema: &'a Structural, name: &'a str) -> Option<(Path<'a>, &'a Structural)> {
    match (schema.properties.get(name), &schema.additional_properties) {
        (Some(property), _) => Some((path.child(name), property)),
        (None, Some(StructuralOrBool::Structural(schema))) => Some((path.key(name), schema)),
        _ => None,
    }
}

/// Validates `apiVersion`, `kind` and `metadata` of embedded objects, and of `value` itself with `is_resource_root`.
///
/// `apiVersion` and `kind` must be there; names need only be valid as a segment of a URL's path.
/// Source: answers recorded from apiextensions-apiserver 1.37.
pub fn validate_embedded(path: &Path<'_>, value: &Value, schema: &Structural, is_resource_root: bool) -> ErrorList {
    let mut errors = ErrorList::new();
    validate_within(path, value, schema, is_resource_root || schema.extensions.embedded_resource, &mut errors);
    errors
}

fn validate_within(path: &Path<'_>, value: &Value, schema: &Structural, embedded: bool, errors: &mut ErrorList) {
    work::step();
    if schema.lacks.embedded_resources && !embedded {
        return;
    }
    match value {
        Value::Object(fields) => {
            if embedded {
                validate_resource(path, fields, errors);
            }
            for (name, field) in fields.iter() {
                if let Some((path, schema)) = within(path, schema, name) {
                    validate_within(&path, field, schema, schema.extensions.embedded_resource, errors);
                }
            }
        }
        Value::Array(items) => {
            let Some(schema) = schema.items.as_deref() else { return };
            for (index, item) in items.iter().enumerate() {
                validate_within(&path.index(index), item, schema, schema.extensions.embedded_resource, errors);
            }
        }
        _ => {}
    }
}

fn validate_resource(path: &Path<'_>, fields: &Map, errors: &mut ErrorList) {
    for name in ["apiVersion", "kind"] {
        if !fields.contains_key(name) {
            errors.push(Error::required(&path.child(name), ""));
        }
    }
    if let Some(value) = fields.get("apiVersion") {
        let path = path.child("apiVersion");
        match value {
            Value::String(text) if text.is_empty() => errors.push(Error::invalid(&path, "", "must not be empty")),
            Value::String(text) if text.matches('/').count() > 1 => {
                errors.push(Error::invalid(&path, text.as_str(), format!("unexpected GroupVersion string: {text}")));
            }
            Value::String(_) => {}
            _ => errors.push(Error::invalid(&path, value.clone(), "must be a string")),
        }
    }
    if let Some(value) = fields.get("kind") {
        let path = path.child("kind");
        match value {
            Value::String(text) if text.is_empty() => errors.push(Error::invalid(&path, "", "must not be empty")),
            Value::String(text) => {
                let faults = names::is_dns1035_label(&text.to_lowercase());
                if !faults.is_empty() {
                    let detail = format!("may have mixed case, but should otherwise match: {}", faults.join(","));
                    errors.push(Error::invalid(&path, text.as_str(), detail));
                }
            }
            _ => errors.push(Error::invalid(&path, value.clone(), "must be a string")),
        }
    }
    if let Some(metadata) = fields.get("metadata") {
        validate_metadata(&path.child("metadata"), metadata, errors);
    }
}

fn validate_metadata(path: &Path<'_>, metadata: &Value, errors: &mut ErrorList) {
    let mut decoded = match object_meta::decode(metadata) {
        Ok((decoded, _)) => decoded,
        Err(detail) => return errors.push(Error::invalid(path, metadata.clone(), detail.to_string())),
    };
    if decoded.str_at(&["name"]).is_empty()
        && let Some(decoded) = decoded.as_object_mut()
    {
        // The name may be missing here, unlike in the metadata of a stored object.
        decoded.insert("name", "fakename".into());
    }
    let namespaced = !decoded.str_at(&["namespace"]).is_empty();
    errors.extend(object_meta::validate(&decoded, namespaced, names::is_path_segment, path));
}
