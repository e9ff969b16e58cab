//! How Go's decoder reads metadata.
//!
//! The fields are listed here, and not only in the type data, as every write and every read of an object decodes
//! metadata: most of it is unchanged, which [`is_decoded`] detects without allocating. With the type data it takes
//! twice as long. Go's decoder sees metadata as the encoder of unstructured content has written it, so that a whole
//! double is an integer here and nowhere else. A test of the types ensures that no published field is missing.

use super::super::time;
use super::super::unmarshal::UnmarshalError;
use crate::object;
use crate::value::number::format_float;
use crate::value::{Map, Value, json_type, place_of};
use crate::work;

/// The Go type of a field, as far as its decoder cares.
#[derive(Clone, Copy)]
enum MetaType {
    Text,
    Int64,
    Time,
    TextMap,
    Texts,
    OwnerReferences,
    ManagedFields,
}

/// The fields, sorted.
const FIELDS: [(&str, MetaType); 15] = [
    ("annotations", MetaType::TextMap),
    ("creationTimestamp", MetaType::Time),
    ("deletionGracePeriodSeconds", MetaType::Int64),
    ("deletionTimestamp", MetaType::Time),
    ("finalizers", MetaType::Texts),
    ("generateName", MetaType::Text),
    ("generation", MetaType::Int64),
    ("labels", MetaType::TextMap),
    ("managedFields", MetaType::ManagedFields),
    ("name", MetaType::Text),
    ("namespace", MetaType::Text),
    ("ownerReferences", MetaType::OwnerReferences),
    ("resourceVersion", MetaType::Text),
    ("selfLink", MetaType::Text),
    ("uid", MetaType::Text),
];

/// Metadata after decoding and encoding it by its type, and the unknown fields, relative to it
/// (`ownerReferences[0].x`).
///
/// # Errors
///
/// The first field of a wrong type: `json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string`.
pub fn decode(metadata: &Value) -> Result<(Value, Vec<String>), UnmarshalError> {
    let fields = match metadata {
        Value::Null => return Ok((object! {}, Vec::new())),
        Value::Object(fields) => fields,
        other => {
            return Err(UnmarshalError::of_type(json_type(other), "v1.ObjectMeta"));
        }
    };
    let mut decoder = MetaDecoder::default();
    let mut decoded = Map::new();
    for (name, value) in fields.iter() {
        work::step();
        let Some(at) = place_of(&FIELDS, name, |(field, _)| field) else {
            decoder.unknown.push(name.to_owned());
            continue;
        };
        if let Some(value) = decoder.field(name, FIELDS[at].1, value)? {
            decoded.insert(name, value);
        }
    }
    match decoder.saved {
        Some(error) => Err(error),
        None => Ok((Value::Object(decoded), decoder.unknown)),
    }
}

/// Whether [`decode`] returns `metadata` unchanged and without unknown fields, as it mostly does. It may be false even
/// if so.
pub fn is_decoded(metadata: &Value) -> bool {
    let Value::Object(fields) = metadata else { return false };
    let is_text = |value: &Value| matches!(value, Value::String(_));
    let is_text_map =
        |value: &Value| value.as_object().is_some_and(|texts| !texts.is_empty() && texts.values().all(is_text));
    let is_list = |value: &Value, is_item: fn(&Map) -> bool| {
        let items = value.as_array().unwrap_or_default();
        !items.is_empty() && items.iter().all(|item| item.as_object().is_some_and(is_item))
    };
    fields.iter().all(|(name, value)| {
        work::step();
        let Some(at) = place_of(&FIELDS, name, |(field, _)| field) else { return false };
        match FIELDS[at].1 {
            MetaType::Text => value.as_str().is_some_and(|text| !text.is_empty()),
            MetaType::Int64 => value.as_i64().is_some_and(|number| number != 0 || name != "generation"),
            MetaType::Time => value.as_str().is_some_and(time::is_normal),
            MetaType::TextMap => is_text_map(value),
            MetaType::Texts => value.as_array().is_some_and(|texts| !texts.is_empty() && texts.iter().all(is_text)),
            MetaType::OwnerReferences => is_list(value, is_owner_reference),
            MetaType::ManagedFields => is_list(value, is_managed_fields_entry),
        }
    })
}

fn is_owner_reference(fields: &Map) -> bool {
    const TEXTS: [&str; 4] = ["apiVersion", "kind", "name", "uid"];
    TEXTS.iter().all(|name| fields.get(name).is_some_and(|value| matches!(value, Value::String(_))))
        && fields.iter().all(|(name, value)| match name {
            "controller" | "blockOwnerDeletion" => matches!(value, Value::Bool(_)),
            _ => TEXTS.contains(&name),
        })
}

fn is_managed_fields_entry(fields: &Map) -> bool {
    fields.iter().all(|(name, value)| match name {
        "manager" | "operation" | "apiVersion" | "fieldsType" | "subresource" => {
            value.as_str().is_some_and(|text| !text.is_empty())
        }
        "time" => value.as_str().is_some_and(time::is_normal),
        "fieldsV1" => !value.is_null(),
        _ => false,
    })
}

/// [`decode`] for metadata that is stored already: drops fields that do not fit their type.
pub fn decode_leniently(metadata: &Value) -> Value {
    let mut kept = Map::new();
    for (name, value) in metadata.as_object().into_iter().flat_map(Map::iter) {
        let alone = object! { name => value.clone() };
        if let Ok((Value::Object(decoded), _)) = decode(&alone) {
            for (name, value) in decoded {
                kept.insert(name, value);
            }
        }
    }
    Value::Object(kept)
}

#[derive(Default)]
struct MetaDecoder {
    unknown: Vec<String>,
    /// The first mismatch; it is reported at the end, as Go's decoder continues after it.
    saved: Option<UnmarshalError>,
}

/// A field by the Go names on its path: of `OwnerReference`, `ownerReferences.uid`.
type GoPath<'a> = (&'a str, &'a str);

impl MetaDecoder {
    /// A field as it is stored; `None` if it is empty and therefore omitted. An error stops everything.
    fn field(&mut self, name: &str, type_: MetaType, value: &Value) -> Result<Option<Value>, UnmarshalError> {
        if value.is_null() {
            return Ok(None);
        }
        let at = ("ObjectMeta", name);
        Ok(match type_ {
            MetaType::Text => {
                let go_type = if name == "uid" { "types.UID" } else { "string" };
                self.text(at, go_type, value).filter(|text| !text.is_empty()).map(Value::String)
            }
            MetaType::Int64 => match value {
                Value::Int(0) if name == "generation" => None,
                Value::Int(number) => Some(Value::Int(*number)),
                // Go's decoder sees the number as it is encoded, so a whole double is an integer.
                Value::Float(number) => {
                    let text = format_float(*number);
                    match text.parse() {
                        Ok(number) => self.field(name, type_, &Value::Int(number))?,
                        Err(_) => {
                            self.save(at, format!("number {text}"), "int64");
                            None
                        }
                    }
                }
                other => self.mismatch(at, "int64", other),
            },
            MetaType::Time => time_at(at, value)?.filter(|time| name != "creationTimestamp" || !time.is_null()),
            MetaType::TextMap => self.text_map(at, value),
            MetaType::Texts => self.texts(at, value),
            MetaType::OwnerReferences => self.list(at, "[]v1.OwnerReference", value, Self::owner_reference)?,
            MetaType::ManagedFields => self.list(at, "[]v1.ManagedFieldsEntry", value, Self::managed_fields_entry)?,
        })
    }

    fn save(&mut self, (structure, fields): GoPath<'_>, found: impl Into<String>, go_type: &str) {
        self.saved.get_or_insert_with(|| UnmarshalError::of_type(found, go_type).below(structure, fields));
    }

    fn mismatch<T>(&mut self, at: GoPath<'_>, go_type: &str, value: &Value) -> Option<T> {
        self.save(at, json_type(value), go_type);
        None
    }

    fn text(&mut self, at: GoPath<'_>, go_type: &str, value: &Value) -> Option<String> {
        match value {
            Value::Null => Some(String::new()),
            Value::String(text) => {
                work::bytes(text.len());
                Some(text.clone())
            }
            other => self.mismatch(at, go_type, other),
        }
    }

    fn text_map(&mut self, at: GoPath<'_>, value: &Value) -> Option<Value> {
        let Value::Object(entries) = value else { return self.mismatch(at, "map[string]string", value) };
        let mut texts = Map::new();
        for (key, value) in entries.iter() {
            work::bytes(key.len());
            texts.insert(key, Value::String(self.text(at, "string", value).unwrap_or_default()));
        }
        (!texts.is_empty()).then_some(Value::Object(texts))
    }

    fn texts(&mut self, at: GoPath<'_>, value: &Value) -> Option<Value> {
        let Value::Array(items) = value else { return self.mismatch(at, "[]string", value) };
        work::steps(items.len());
        let texts: Vec<Value> =
            items.iter().map(|item| Value::String(self.text(at, "string", item).unwrap_or_default())).collect();
        (!texts.is_empty()).then_some(Value::Array(texts))
    }

    fn list(
        &mut self,
        at: GoPath<'_>,
        go_type: &str,
        value: &Value,
        item: fn(&mut Self, &str, &Map) -> Result<Value, UnmarshalError>,
    ) -> Result<Option<Value>, UnmarshalError> {
        let Value::Array(items) = value else { return Ok(self.mismatch(at, go_type, value)) };
        let mut decoded = Vec::with_capacity(items.len());
        for (index, value) in items.iter().enumerate() {
            work::step();
            let empty = Map::new();
            let fields = match value {
                Value::Object(fields) => fields,
                Value::Null => &empty,
                other => {
                    self.mismatch::<()>(at, go_type.trim_start_matches("[]"), other);
                    continue;
                }
            };
            decoded.push(item(self, &format!("{}[{index}]", at.1), fields)?);
        }
        Ok((!decoded.is_empty()).then_some(Value::Array(decoded)))
    }

    fn owner_reference(&mut self, path: &str, fields: &Map) -> Result<Value, UnmarshalError> {
        let mut reference = object! { "apiVersion" => "", "kind" => "", "name" => "", "uid" => "" };
        let decoded = reference.make_object();
        for (name, value) in fields.iter() {
            let way = format!("ownerReferences.{name}");
            let at = ("OwnerReference", way.as_str());
            match name {
                "apiVersion" | "kind" | "name" | "uid" => {
                    let go_type = if name == "uid" { "types.UID" } else { "string" };
                    let text = self.text(at, go_type, value).unwrap_or_default();
                    decoded.insert(name, Value::String(text));
                }
                "controller" | "blockOwnerDeletion" => match value {
                    Value::Null => {}
                    Value::Bool(truth) => _ = decoded.insert(name, Value::Bool(*truth)),
                    other => self.mismatch::<()>(at, "bool", other).unwrap_or_default(),
                },
                _ => self.unknown.push(format!("{path}.{name}")),
            }
        }
        Ok(reference)
    }

    fn managed_fields_entry(&mut self, path: &str, fields: &Map) -> Result<Value, UnmarshalError> {
        let mut decoded = Map::new();
        for (name, value) in fields.iter() {
            let way = format!("managedFields.{name}");
            let at = ("ManagedFieldsEntry", way.as_str());
            match name {
                "manager" | "operation" | "apiVersion" | "fieldsType" | "subresource" => {
                    let go_type = if name == "operation" { "v1.ManagedFieldsOperationType" } else { "string" };
                    let text = self.text(at, go_type, value).unwrap_or_default();
                    if !text.is_empty() {
                        decoded.insert(name, Value::String(text));
                    }
                }
                "time" => {
                    if let Some(time) = time_at(at, value)? {
                        decoded.insert(name, time);
                    }
                }
                "fieldsV1" => {
                    if !value.is_null() {
                        decoded.insert(name, value.clone());
                    }
                }
                _ => self.unknown.push(format!("{path}.{name}")),
            }
        }
        Ok(Value::Object(decoded))
    }
}

/// A time in whole seconds. Its type decodes itself, so an invalid time ends everything.
///
/// # Errors
///
/// Go's error, without a position.
pub fn time_field(value: &Value) -> Result<Option<Value>, UnmarshalError> {
    match value {
        Value::Null => Ok(None),
        // A pointer to a zero time is not nil, and prints as null.
        Value::String(text) => {
            let time = time::normalize(text).map_err(UnmarshalError::other)?;
            Ok(Some(time.map_or(Value::Null, Value::String)))
        }
        other => Err(UnmarshalError::of_type(json_type(other), "string")),
    }
}

/// [`time_field`], with its position.
fn time_at((structure, fields): GoPath<'_>, value: &Value) -> Result<Option<Value>, UnmarshalError> {
    time_field(value).map_err(|error| error.below(structure, fields))
}
