//! `ObjectMeta`: how Go's decoder reads it, and what it must look like.
//!
//! Metadata is typed in every kind: what a client sends goes through the type and back, so unknown fields are gone, nulls
//! are what their type is when empty, and times are in whole seconds. Here it stays a [`Value`] that has made this way.
//!
//! Source: `metav1.ObjectMeta` and `apimachinery/pkg/api/validation`, release 1.37; answers recorded from it.

use std::collections::{BTreeSet, HashSet};

use super::field::{Error, ErrorList, ErrorType, Path};
use super::unmarshal::UnmarshalError;
use super::{names, time};
use crate::object;
use crate::value::json::Layout;
use crate::value::number::format_float;
use crate::value::{Map, Value, go_quote, is_printable, json, json_type};
use crate::work;

/// Bytes of all annotations together, with their names.
pub const ANNOTATIONS_BYTES_MAX: i64 = 256 << 10;
/// How long the name of a field manager may be.
pub const MANAGER_BYTES_MAX: usize = 128;
const SUBRESOURCE_BYTES_MAX: usize = 256;

/// Go's type of a field, as far as its decoder cares.
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

/// The fields, and whether an empty one is left out.
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

/// Metadata after its way through the type, and the unknown fields, relative to it (`ownerReferences[0].x`).
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
        let Ok(at) = FIELDS.binary_search_by(|(field, _)| (*field).cmp(name)) else {
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

/// Whether [`decode`] gives `metadata` back as it is, without unknown fields: so it mostly is. It may be false where
/// decoding would change nothing.
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
        let Ok(at) = FIELDS.binary_search_by(|(field, _)| (*field).cmp(name)) else { return false };
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

/// [`decode`] for metadata that is stored already: a field that does not fit its type is gone.
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
    /// The first mismatch; it is told at the end, as Go's decoder goes on after it.
    saved: Option<UnmarshalError>,
}

/// A field by the Go names on the way to it: of `OwnerReference`, `ownerReferences.uid`.
type GoPath<'a> = (&'a str, &'a str);

impl MetaDecoder {
    /// A field as it is stored; `None` where it is empty and therefore left out. An error stops everything.
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

/// A time in whole seconds. Its type decodes itself, so a bad one ends everything.
///
/// # Errors
///
/// What Go says of it, without a position.
pub fn time_field(value: &Value) -> Result<Option<Value>, UnmarshalError> {
    match value {
        Value::Null => Ok(None),
        // A pointer to no time is a pointer still, and prints as null.
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

/// Marks an object as being deleted: the first time raises its generation. `now` is RFC 3339.
pub fn mark_deleted(object: &mut Value, now: &str) {
    let metadata = object.make_object().entry("metadata").make_object();
    if !metadata.contains_key("deletionTimestamp") {
        if let Some(Value::Int(generation @ 1..)) = metadata.get_mut("generation") {
            *generation = generation.saturating_add(1);
        }
        metadata.insert("deletionTimestamp", Value::from(now));
    }
    metadata.insert("deletionGracePeriodSeconds", Value::Int(0));
}

/// What is wrong with the metadata of a new object whose name is there already.
///
/// `name_check` tells what is wrong with a name; with `true`, with a prefix that characters will follow.
pub fn validate(
    metadata: &Value,
    namespaced: bool,
    name_check: impl Fn(&str, bool) -> Vec<String>,
    path: &Path<'_>,
) -> ErrorList {
    let mut errors = ErrorList::new();
    let text = |name: &str| metadata.str_at(&[name]);
    let (generate_name, name) = (text("generateName"), text("name"));
    if !generate_name.is_empty() {
        let faults = name_check(generate_name, true).into_iter();
        errors.extend(faults.map(|fault| Error::invalid(&path.child("generateName"), generate_name, fault)));
    }
    if name.is_empty() {
        errors.push(Error::required(&path.child("name"), "name or generateName is required"))
    } else {
        let faults = name_check(name, false).into_iter();
        errors.extend(faults.map(|fault| Error::invalid(&path.child("name"), name, fault)));
    }
    let (namespace, namespace_path) = (text("namespace"), path.child("namespace"));
    match (namespaced, namespace.is_empty()) {
        (true, true) => errors.push(Error::required(&namespace_path, "")),
        (true, false) => {
            let faults = names::is_dns1123_label(namespace).into_iter();
            errors.extend(faults.map(|fault| Error::invalid(&namespace_path, namespace, fault)));
        }
        (false, false) => errors.push(Error::forbidden(&namespace_path, "not allowed on this type")),
        (false, true) => {}
    }
    errors.extend(validate_generation(metadata, path));
    errors.extend(validate_labels(metadata.get("labels").unwrap_or(&Value::Null), &path.child("labels")));
    errors
        .extend(validate_annotations(metadata.get("annotations").unwrap_or(&Value::Null), &path.child("annotations")));
    errors.extend(validate_owner_references(metadata, path));
    errors.extend(validate_finalizers(metadata, path));
    errors.extend(validate_managed_fields(metadata, path));
    errors
}

/// What is wrong with the metadata of a changed object.
pub fn validate_update(new: &Value, old: &Value, path: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    if old.get("deletionTimestamp").is_some() {
        let added = added_finalizers(new, old);
        if !added.is_empty() {
            let added: Vec<String> = added.into_iter().map(go_quote).collect();
            let detail = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                added.join(", ")
            );
            errors.push(Error::forbidden(&path.child("finalizers"), detail));
        }
    }
    if new.str_at(&["resourceVersion"]).is_empty() {
        errors.push(Error::invalid(&path.child("resourceVersion"), "", "must be specified for an update"));
    }
    errors.extend(validate_generation(new, path));
    let generation = |metadata: &Value| metadata.get("generation").and_then(Value::as_i64).unwrap_or_default();
    if generation(new) < generation(old) {
        errors.push(Error::invalid(&path.child("generation"), generation(new), "must not be decremented"));
    }
    let immutable =
        ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"];
    for name in immutable {
        let (now, before) = (new.get(name), old.get(name));
        if now != before {
            let absent = match name {
                "name" | "namespace" | "uid" => Value::from(""),
                _ => Value::Null,
            };
            errors.push(Error::invalid(&path.child(name), now.cloned().unwrap_or(absent), "field is immutable"));
        }
    }
    errors.extend(validate_labels(new.get("labels").unwrap_or(&Value::Null), &path.child("labels")));
    errors.extend(validate_annotations(new.get("annotations").unwrap_or(&Value::Null), &path.child("annotations")));
    errors.extend(validate_owner_references(new, path));
    errors.extend(validate_managed_fields(new, path));
    errors
}

/// Finalizers that `new` has and `old` had not, each once, sorted. Both are metadata.
pub fn added_finalizers<'v>(new: &'v Value, old: &Value) -> Vec<&'v str> {
    let before: HashSet<&str> = texts(old, "finalizers").into_iter().collect();
    let added = texts(new, "finalizers").into_iter().inspect(|name| work::bytes(name.len()));
    let added: BTreeSet<&str> = added.filter(|name| !before.contains(name)).collect();
    added.into_iter().collect()
}

fn texts<'v>(metadata: &'v Value, name: &str) -> Vec<&'v str> {
    let list = metadata.get(name).and_then(Value::as_array).unwrap_or_default();
    list.iter().filter_map(Value::as_str).collect()
}

fn entries(map: &Value) -> impl Iterator<Item = (&str, &str)> {
    map.as_object().into_iter().flat_map(Map::iter).map(|(key, value)| (key, value.as_str().unwrap_or_default()))
}

fn validate_generation(metadata: &Value, path: &Path<'_>) -> Option<Error> {
    let generation = metadata.get("generation").and_then(Value::as_i64).filter(|generation| *generation < 0)?;
    Some(Error::invalid(&path.child("generation"), generation, "must be greater than or equal to 0"))
}

/// Every error of `labels`, a map of strings that stands at `path`.
pub fn validate_labels(labels: &Value, path: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    for (key, value) in entries(labels) {
        work::bytes(key.len() + value.len());
        errors.extend(names::is_qualified_name(key).into_iter().map(|fault| Error::invalid(path, key, fault)));
        errors.extend(names::is_valid_label_value(value).into_iter().map(|fault| Error::invalid(path, value, fault)));
    }
    errors
}

/// Every error of `annotations`, a map of strings that stands at `path`.
pub fn validate_annotations(annotations: &Value, path: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut bytes = 0_usize;
    for (key, value) in entries(annotations) {
        bytes += key.len() + value.len();
        work::bytes(key.len());
        let lower: String = key.chars().filter_map(|character| character.to_lowercase().next()).collect();
        let faults = names::is_qualified_name(&lower).into_iter();
        errors.extend(faults.map(|fault| Error::invalid(path, key, fault)));
    }
    if i64::try_from(bytes).is_ok_and(|bytes| bytes > ANNOTATIONS_BYTES_MAX) {
        errors.push(Error::too_long(path, ANNOTATIONS_BYTES_MAX));
    }
    errors
}

fn validate_owner_references(metadata: &Value, path: &Path<'_>) -> ErrorList {
    let list_path = path.child("ownerReferences");
    let mut errors = ErrorList::new();
    let references = metadata.get("ownerReferences").and_then(Value::as_array).unwrap_or_default();
    let mut controller: Option<String> = None;
    for (index, reference) in references.iter().enumerate() {
        work::step();
        let path = list_path.index(index);
        let api_version = reference.str_at(&["apiVersion"]);
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        if api_version.is_empty() {
            errors.push(Error::required(&path.child("apiVersion"), "must not be empty"));
        } else if version.is_empty() || version.contains('/') {
            let detail = "must be <group>/<version> or <version>";
            errors.push(Error::invalid(&path.child("apiVersion"), api_version, detail));
        }
        for name in ["kind", "name", "uid"] {
            if reference.str_at(&[name]).is_empty() {
                errors.push(Error::required(&path.child(name), "must not be empty"));
            }
        }
        if (group, version, reference.str_at(&["kind"])) == ("", "v1", "Event") {
            let detail = "/v1, Kind=Event is disallowed from being an owner";
            errors.push(Error::invalid(&path, reference.clone(), detail).shown_as(show_owner_references(reference)));
        }
        if reference.get("controller").and_then(Value::as_bool) == Some(true) {
            let this = format!("{}/{}", reference.str_at(&["kind"]), reference.str_at(&["name"]));
            match &controller {
                None => controller = Some(this),
                // Each such error shows all references.
                Some(first) => errors.push_with(ErrorType::Invalid, || {
                    let detail = format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references for {first} and \
                         {this}"
                    );
                    let references = Value::Array(references.to_vec());
                    let shown = show_owner_references(&references);
                    Error::invalid(&list_path, references, detail).shown_as(shown)
                }),
            }
        }
    }
    errors
}

static OWNER_REFERENCE: Layout = Layout::Struct(&[
    ("apiVersion", &Layout::Sorted),
    ("kind", &Layout::Sorted),
    ("name", &Layout::Sorted),
    ("uid", &Layout::Sorted),
    ("controller", &Layout::Sorted),
    ("blockOwnerDeletion", &Layout::Sorted),
]);

/// References in the order of Go's struct.
fn show_owner_references(references: &Value) -> String {
    String::from_utf8_lossy(&json::encode_as(references, OWNER_REFERENCE)).into_owned()
}

fn validate_finalizers(metadata: &Value, path: &Path<'_>) -> ErrorList {
    let path = path.child("finalizers");
    let finalizers = texts(metadata, "finalizers");
    let mut errors = ErrorList::new();
    for name in &finalizers {
        work::bytes(name.len());
        errors.extend(names::is_qualified_name(name).into_iter().map(|fault| Error::invalid(&path, *name, fault)));
    }
    if finalizers.contains(&"orphan") && finalizers.contains(&"foregroundDeletion") {
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        let shown: Vec<Value> = finalizers.iter().map(|name| Value::from(*name)).collect();
        errors.push(Error::invalid(&path, shown, detail));
    }
    errors
}

fn validate_managed_fields(metadata: &Value, path: &Path<'_>) -> ErrorList {
    let path = path.child("managedFields");
    let mut errors = ErrorList::new();
    let entries = metadata.get("managedFields").and_then(Value::as_array).unwrap_or_default();
    for (index, entry) in entries.iter().enumerate() {
        work::step();
        let path = path.index(index);
        match entry.str_at(&["operation"]) {
            "" => errors.push(Error::required(&path.child("operation"), "must not be empty")),
            "Apply" | "Update" => {}
            other => errors.push(Error::not_supported(&path.child("operation"), other, &["Apply", "Update"])),
        }
        let fields_type = entry.str_at(&["fieldsType"]);
        if !matches!(fields_type, "" | "FieldsV1") {
            errors.push(Error::invalid(&path.child("fieldsType"), fields_type, "must be `FieldsV1`"));
        }
        errors.extend(validate_manager(entry.str_at(&["manager"]), &path.child("manager")));
        if entry.str_at(&["subresource"]).len() > SUBRESOURCE_BYTES_MAX {
            errors.push(Error::too_long(&path.child("subresource"), SUBRESOURCE_BYTES_MAX as i64));
        }
    }
    errors
}

/// What is wrong with the name of a field manager.
pub fn validate_manager(manager: &str, path: &Path<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    if manager.len() > MANAGER_BYTES_MAX {
        errors.push(Error::too_long(path, MANAGER_BYTES_MAX as i64));
    }
    for (at, character) in manager.char_indices().filter(|(_, character)| !is_printable(*character)) {
        errors.push_with(ErrorType::Invalid, || {
            let detail = format!("invalid character U+{:04X} (at position {at})", u32::from(character));
            Error::invalid(path, manager, detail)
        });
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meta::field::ERRORS_BYTES_MAX;

    #[track_caller]
    fn check(metadata: &str, expect: Result<(&str, &[&str]), &str>) {
        let metadata = json::decode(metadata.as_bytes()).expect("the test is JSON");
        let decoded = decode(&metadata);
        let decoded = decoded.as_ref().map(|(value, unknown)| {
            (json::encode_to_string(value), unknown.iter().map(String::as_str).collect::<Vec<_>>())
        });
        match (decoded, expect) {
            (Ok((value, unknown)), Ok((expected, fields))) => {
                assert_eq!((value.as_str(), unknown.as_slice()), (expected, fields))
            }
            (Err(error), Err(expected)) => assert_eq!(error.to_string(), expected),
            (decoded, expect) => panic!("{decoded:?} is not {expect:?}"),
        }
    }

    #[test]
    fn metadata_goes_through_its_type() {
        check(r#"{"name":"a","labels":{"x":null},"foo":1}"#, Ok((r#"{"labels":{"x":""},"name":"a"}"#, &["foo"])));
        check(r#"{"annotations":{},"creationTimestamp":null,"name":""}"#, Ok(("{}", &[])));
        check(
            r#"{"creationTimestamp":"2026-01-02T03:04:05.678+01:00"}"#,
            Ok((r#"{"creationTimestamp":"2026-01-02T02:04:05Z"}"#, &[])),
        );
    }

    /// `count` items of a list in metadata.
    fn metadata(list: &str, count: usize, item: impl Fn(usize) -> Value) -> Value {
        object! { "name" => "a", "resourceVersion" => "1", list => (0..count).map(item).collect::<Vec<_>>() }
    }

    /// Decodes and validates, tenfold.
    #[track_caller]
    fn check_growth(made: impl Fn(usize) -> Value) {
        let steps = |count| {
            let sent = made(count);
            let before = object! { "deletionTimestamp" => "2026-01-02T03:04:05Z" };
            let (bytes, steps) = work::counted(|| {
                let (decoded, _) = decode(&sent).expect("the test is metadata");
                let mut errors = validate(&decoded, false, names::name_is_dns1123_subdomain, &Path::ROOT);
                errors.extend(validate_update(&decoded, &before, &Path::ROOT));
                errors.aggregate().len()
            });
            assert!(bytes < 2 * ERRORS_BYTES_MAX, "{bytes} bytes");
            steps
        };
        let (few, many) = (steps(1000), steps(10_000));
        assert!(many < 13 * few, "{few} steps, then {many}");
    }

    #[test]
    fn ten_times_the_metadata_takes_ten_times_the_steps() {
        let reference =
            |at: usize| object! { "uid" => format!("u{at}"), "controller" => true, "kind" => "A", "name" => "b" };
        check_growth(|count| metadata("ownerReferences", count, reference));
        check_growth(|count| metadata("finalizers", count, |at| Value::from(format!("f{at}"))));
        let entry =
            |at: usize| object! { "manager" => format!("m{at}"), "operation" => "Apply", "fieldsV1" => object! {} };
        check_growth(|count| metadata("managedFields", count, entry));
        let texts =
            |count: usize| (0..count).map(|at| (format!("-{}", at * 7 % count), Value::from("-"))).collect::<Map>();
        check_growth(|count| object! { "labels" => texts(count), "annotations" => texts(count) });
        check_growth(|count| metadata("managedFields", 1, |_| object! { "manager" => "\u{1}".repeat(count) }));
    }

    #[test]
    fn a_wrong_type_is_told_in_gos_words() {
        check(
            r#"{"labels":{"x":1}}"#,
            Err("json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string"),
        );
        check(r#""x""#, Err("json: cannot unmarshal string into Go value of type v1.ObjectMeta"));
        check(
            r#"{"creationTimestamp":"bad"}"#,
            Err(r#"parsing time "bad" as "2006-01-02T15:04:05Z07:00": cannot parse "bad" as "2006""#),
        );
    }
}
