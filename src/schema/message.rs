//! Kinds that Go has a type for: one table says how such a type is read, written and patched.
//!
//! In: the schema file of a built-in kind. Out: a [`Message`], a table of fields with Go's names and the form of each
//! value, and the [`Structural`] schema that the engine of custom kinds works on.
//! [`Message::decode`] brings a value into the form that Go writes it in, and has Go's words for what does not fit.
//!
//! Source: `k8s.io/api` and `sigs.k8s.io/json`, as Kubernetes 1.37 uses them.

use std::fmt;

use super::convert::to_structural;
use super::json_schema;
use super::structural::{Structural, StructuralOrBool};
use super::typed::{Findings, Stop, Typed};
use crate::meta::{object_meta, time};
use crate::value::{Map, Value, base64, yaml};

/// A struct in Go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// Without its package: `ObjectReference`.
    pub name: String,
    /// Sorted by name.
    pub fields: Vec<Field>,
}

/// A field of a [`Message`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// As JSON has it.
    pub name: String,
    pub presence: Presence,
    pub form: Form,
}

/// What is written of a zero value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Nothing; but a message is written as `{}`, and a time as `null`.
    Omitted,
    /// `""`, `0`, `false` or `null`.
    Always,
    /// A zero value is told from an absent one, and written.
    Pointer,
}

/// What a value looks like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// With Go's name of its type: `string`, `v1.SecretType`.
    String(String),
    Bool,
    Int32,
    Int64,
    /// In base64.
    Bytes,
    /// RFC 3339 in whole seconds.
    Time,
    /// RFC 3339 in microseconds.
    MicroTime,
    /// `metadata` of an object.
    ObjectMeta,
    List(Box<Form>),
    /// From strings.
    Map(Box<Form>),
    Message(Message),
}

/// The schema of a built-in kind, as both sides need it.
pub struct KindSchema {
    pub message: Message,
    pub structural: Structural,
}

/// A schema file that can't be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaError(String);

impl fmt::Display for SchemaError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for SchemaError {}

impl KindSchema {
    /// Reads a schema file: YAML, a structural schema with Go's facts beside each property. What the
    /// keywords mean stands in `schemas/namespace.yaml`.
    pub fn read(text: &str) -> Result<Self, SchemaError> {
        let file = yaml::decode(text.as_bytes()).map_err(|error| SchemaError(error.to_string()))?;
        let (schema, _) = json_schema::decode(&file).map_err(SchemaError)?;
        let mut structural = to_structural(&schema).map_err(|error| SchemaError(error.to_string()))?;
        set_patch_keys(&file, &mut structural);
        Ok(KindSchema { message: Message::read(&file)?, structural })
    }
}

/// Definitions have no say in patches, so conversion leaves these keywords out.
fn set_patch_keys(file: &Value, schema: &mut Structural) {
    let text = |name: &str| file.get(name).and_then(Value::as_str).map(str::to_owned);
    schema.extensions.patch_merge_key = text("x-kubernetes-patch-merge-key");
    schema.extensions.patch_strategy = text("x-kubernetes-patch-strategy");
    for (name, property) in &mut schema.properties {
        if let Some(file) = file.at(&["properties", name]) {
            set_patch_keys(file, property);
        }
    }
    if let (Some(file), Some(items)) = (file.get("items"), &mut schema.items) {
        set_patch_keys(file, items);
    }
    if let (Some(file), Some(StructuralOrBool::Structural(values))) =
        (file.get("additionalProperties"), &mut schema.additional_properties)
    {
        set_patch_keys(file, values);
    }
}

impl Message {
    fn read(file: &Value) -> Result<Self, SchemaError> {
        let name = file.str_at(&["x-go-type"]);
        let name = name.rsplit('.').next().unwrap_or_default().to_owned();
        let properties = file.get("properties").and_then(Value::as_object);
        let properties = properties.ok_or_else(|| SchemaError(format!("`{name}` has no properties")))?;
        let fields = properties.iter().map(|(name, property)| Field::read(name, property)).collect::<Result<_, _>>()?;
        Ok(Message { name, fields })
    }

    /// The field `name`.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.binary_search_by(|field| field.name.as_str().cmp(name)).ok().map(|at| &self.fields[at])
    }

    /// `object` as Go writes it after it has read it, and what strict reading minds.
    ///
    /// # Errors
    ///
    /// Go's text: `json: cannot unmarshal number into Go struct field ConfigMap.data of type string`.
    pub fn decode(&self, object: &Value) -> Result<(Value, Findings), String> {
        Typed::run(|typed| self.decode_at(typed, object))
    }

    /// Why a tree that was patched can't be restored as an object of this type, where that is not read from text. Go then has
    /// other words than for text: `cannot restore map from slice`.
    pub fn restore_error(&self, object: &Value) -> Option<String> {
        let fields = object.as_object()?.iter();
        let mut errors = fields.filter_map(|(name, value)| self.field(name)?.form.restore_error(value));
        errors.next()
    }

    /// What Go writes of an object that nothing was read into.
    pub fn zero(&self) -> Value {
        let fields = self.fields.iter().filter_map(|field| Some((field.name.clone(), field.zero()?)));
        Value::Object(Map::from_fields(fields.collect()))
    }

    fn decode_at<'v>(&'v self, typed: &mut Typed<'v>, value: &'v Value) -> Result<Value, Stop> {
        let mut read = Map::new();
        typed.structure(value, &self.name, |typed, name, value| {
            let Some(field) = self.field(name) else { return Ok(false) };
            if let Some(value) = field.form.decode(typed, value)? {
                read.insert(name, value);
            }
            Ok(true)
        })?;
        let fields = self.fields.iter().filter_map(|field| {
            let value = match read.remove(&field.name) {
                Some(value) if field.keeps(&value) => value,
                _ => field.zero()?,
            };
            Some((field.name.clone(), value))
        });
        Ok(Value::Object(Map::from_fields(fields.collect())))
    }
}

impl Field {
    fn read(name: &str, property: &Value) -> Result<Self, SchemaError> {
        let presence = match property.str_at(&["x-go"]) {
            "" => Presence::Omitted,
            "always" => Presence::Always,
            "pointer" => Presence::Pointer,
            other => return Err(SchemaError(format!("`{name}`: there is no `x-go: {other}`"))),
        };
        let form = match name {
            "metadata" => Form::ObjectMeta,
            _ => Form::read(property).map_err(|SchemaError(why)| SchemaError(format!("`{name}`: {why}")))?,
        };
        Ok(Field { name: name.to_owned(), presence, form })
    }

    fn zero(&self) -> Option<Value> {
        match (self.presence, &self.form) {
            (Presence::Pointer, _) => None,
            (_, Form::Message(message)) => Some(message.zero()),
            (_, Form::ObjectMeta) => Some(Value::Object(Map::new())),
            (_, Form::Time | Form::MicroTime) => Some(Value::Null),
            (Presence::Omitted, _) => None,
            (Presence::Always, form) => Some(form.zero()),
        }
    }

    /// Whether a value that was read is written.
    fn keeps(&self, value: &Value) -> bool {
        match (self.presence, value) {
            (Presence::Always | Presence::Pointer, _) => true,
            (Presence::Omitted, Value::Null | Value::Bool(false) | Value::Int(0)) => false,
            (Presence::Omitted, Value::String(text)) => !text.is_empty(),
            (Presence::Omitted, Value::Array(items)) => !items.is_empty(),
            (Presence::Omitted, Value::Object(fields)) => !fields.is_empty(),
            (Presence::Omitted, _) => true,
        }
    }
}

impl Form {
    fn read(schema: &Value) -> Result<Self, SchemaError> {
        let go_type = schema.str_at(&["x-go-type"]);
        Ok(match (schema.str_at(&["type"]), schema.str_at(&["format"])) {
            ("string", "byte") => Form::Bytes,
            ("string", "date-time") if go_type == "v1.MicroTime" => Form::MicroTime,
            ("string", "date-time") => Form::Time,
            ("string", "") if go_type.is_empty() => Form::String("string".to_owned()),
            ("string", "") => Form::String(go_type.to_owned()),
            ("boolean", _) => Form::Bool,
            ("integer", "int32") => Form::Int32,
            ("integer", "int64") => Form::Int64,
            ("array", _) => Form::List(Box::new(Form::read(schema.get("items").unwrap_or(&Value::Null))?)),
            ("object", _) if schema.get("properties").is_some() => Form::Message(Message::read(schema)?),
            ("object", _) => {
                Form::Map(Box::new(Form::read(schema.get("additionalProperties").unwrap_or(&Value::Null))?))
            }
            (type_, format) => return Err(SchemaError(format!("no form has type `{type_}` and format `{format}`"))),
        })
    }

    /// What Go calls the type.
    fn go_type(&self) -> String {
        match self {
            Form::String(name) => name.clone(),
            Form::Bool => "bool".to_owned(),
            Form::Int32 => "int32".to_owned(),
            Form::Int64 => "int64".to_owned(),
            Form::Bytes => "[]uint8".to_owned(),
            Form::Time => "v1.Time".to_owned(),
            Form::MicroTime => "v1.MicroTime".to_owned(),
            Form::ObjectMeta => "v1.ObjectMeta".to_owned(),
            Form::List(item) => format!("[]{}", item.go_type()),
            Form::Map(value) => format!("map[string]{}", value.go_type()),
            Form::Message(message) => format!("v1.{}", message.name),
        }
    }

    /// What stands for nothing in a list or a map, and where a zero value is written.
    fn zero(&self) -> Value {
        match self {
            Form::String(_) => Value::from(""),
            Form::Bool => Value::Bool(false),
            Form::Int32 | Form::Int64 => Value::Int(0),
            Form::Bytes | Form::Time | Form::MicroTime | Form::List(_) | Form::Map(_) => Value::Null,
            Form::ObjectMeta => Value::Object(Map::new()),
            Form::Message(message) => message.zero(),
        }
    }

    fn restore_error(&self, value: &Value) -> Option<String> {
        let found = match value {
            Value::Null => return None,
            Value::Bool(_) => "bool",
            Value::Int(_) => "int64",
            Value::Float(_) => "float64",
            Value::String(_) => "string",
            Value::Array(_) => "slice",
            Value::Object(_) => "map",
        };
        match (self, value) {
            (Form::String(_), Value::String(_)) | (Form::Bool, Value::Bool(_)) => None,
            (Form::Int32 | Form::Int64, Value::Int(_)) | (Form::ObjectMeta, Value::Object(_)) => None,
            (Form::String(go_type), Value::Int(_)) => Some(format!("cannot convert int64 to {go_type}")),
            (Form::Int32 | Form::Int64, Value::Float(_)) => {
                Some(format!("cannot convert float64 to {}", self.go_type()))
            }
            (Form::String(_), _) => Some("unrecognized type: string".to_owned()),
            (Form::Bool | Form::Int32 | Form::Int64, _) => Some(format!("unrecognized type: {}", self.go_type())),
            (Form::Bytes, Value::String(text)) => {
                base64::decode(text).err().map(|error| format!("error decoding from json: {error}"))
            }
            (Form::Time, Value::String(text)) => time::normalize(text).err(),
            (Form::MicroTime, Value::String(text)) => time::normalize_micro(text).err(),
            (Form::Time | Form::MicroTime, _) => object_meta::time_field(value).err(),
            (Form::List(form), Value::Array(items)) => items.iter().find_map(|item| form.restore_error(item)),
            (Form::Map(form), Value::Object(entries)) => entries.values().find_map(|value| form.restore_error(value)),
            (Form::Message(message), Value::Object(_)) => message.restore_error(value),
            (Form::Bytes | Form::List(_), _) => Some(format!("cannot restore slice from {found}")),
            (Form::Map(_), _) => Some(format!("cannot restore map from {found}")),
            (Form::ObjectMeta | Form::Message(_), _) => Some(format!("cannot restore struct from: {found}")),
        }
    }

    /// The value as Go writes it; `None` for one that leaves the field as it was.
    fn decode<'v>(&'v self, typed: &mut Typed<'v>, value: &'v Value) -> Result<Option<Value>, Stop> {
        let or_zero = |form: &Form, value: Option<Value>| value.unwrap_or_else(|| form.zero());
        Ok(match self {
            Form::String(go_type) => typed.string_as(value, go_type).map(Value::String),
            Form::Bool => typed.boolean(value).map(Value::Bool),
            Form::Int32 => typed.int32(value).map(|number| Value::Int(number.into())),
            Form::Int64 => typed.int64(value).map(Value::Int),
            Form::Bytes => decode_bytes(typed, value),
            Form::Time => decode_time(typed, value, time::normalize),
            Form::MicroTime => decode_time(typed, value, time::normalize_micro),
            Form::ObjectMeta => match value {
                Value::Null => None,
                Value::Object(_) => typed.adopt(object_meta::decode(value)),
                _ => {
                    typed.structure(value, "ObjectMeta", |_, _, _| Ok(true))?;
                    None
                }
            },
            Form::List(item) => {
                let items =
                    typed.list(value, &self.go_type(), |typed, value| Ok(or_zero(item, item.decode(typed, value)?)))?;
                items.map(Value::Array)
            }
            Form::Map(form) => {
                let entries: Option<Map> =
                    typed.map(value, &self.go_type(), |typed, value| Ok(or_zero(form, form.decode(typed, value)?)))?;
                entries.map(Value::Object)
            }
            Form::Message(_) if value.is_null() => None,
            Form::Message(message) => Some(message.decode_at(typed, value)?),
        })
    }
}

fn decode_bytes(typed: &mut Typed<'_>, value: &Value) -> Option<Value> {
    let text = typed.string_as(value, "[]uint8")?;
    match base64::decode(&text) {
        Ok(bytes) => Some(Value::String(base64::encode(&bytes))),
        Err(error) => {
            typed.save(error);
            None
        }
    }
}

/// A time; the zero time is null.
fn decode_time(
    typed: &mut Typed<'_>,
    value: &Value,
    normalize: fn(&str) -> Result<Option<String>, String>,
) -> Option<Value> {
    let outcome = match value {
        Value::Null => return None,
        Value::String(text) => normalize(text).map(|time| time.map_or(Value::Null, Value::String)),
        // The type reads itself: the error is that of a string on its own.
        other => object_meta::time_field(other).map(Option::unwrap_or_default),
    };
    typed.adopt(outcome.map(|time| (time, Vec::new())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::json;

    const FILES: [(&str, &str); 7] = [
        ("Namespace", include_str!("../../schemas/namespace.yaml")),
        ("ConfigMap", include_str!("../../schemas/configmap.yaml")),
        ("Secret", include_str!("../../schemas/secret.yaml")),
        ("ServiceAccount", include_str!("../../schemas/serviceaccount.yaml")),
        ("Event", include_str!("../../schemas/event.yaml")),
        ("events.k8s.io", include_str!("../../schemas/event.events.k8s.io.yaml")),
        ("Lease", include_str!("../../schemas/lease.yaml")),
    ];

    fn message(kind: &str) -> Message {
        let (_, file) = FILES.iter().find(|(name, _)| *name == kind).expect("the kind has a file");
        KindSchema::read(file).expect("the file is a schema").message
    }

    /// What is written after `text` was read, or the error. Expectations come from `k8s.io/api` 0.37.2.
    #[track_caller]
    fn check(kind: &str, text: &str, expected: &str) {
        let object = json::decode(text.as_bytes()).expect("the test is JSON");
        let found = match message(kind).decode(&object) {
            Ok((object, findings)) if findings.unknown.is_empty() => json::encode_to_string(&object),
            Ok((object, findings)) => {
                format!("{} unknown {}", json::encode_to_string(&object), findings.unknown.join(" "))
            }
            Err(error) => error,
        };
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn zero_values_are_written_as_go_writes_them() {
        check("ConfigMap", "{}", r#"{"metadata":{}}"#);
        check("ConfigMap", r#"{"data":{},"immutable":false}"#, r#"{"immutable":false,"metadata":{}}"#);
        check("Secret", r#"{"type":"","stringData":{"x":null}}"#, r#"{"metadata":{},"stringData":{"x":""}}"#);
        check(
            "events.k8s.io",
            r#"{"series":{}}"#,
            r#"{"deprecatedFirstTimestamp":null,"deprecatedLastTimestamp":null,"deprecatedSource":{},"eventTime":null,"metadata":{},"regarding":{},"series":{"count":0,"lastObservedTime":null}}"#,
        );
        check(
            "Lease",
            r#"{"spec":{"holderIdentity":"","leaseDurationSeconds":0,"acquireTime":null,"renewTime":"0001-01-01T00:00:00.000000Z"}}"#,
            r#"{"metadata":{},"spec":{"holderIdentity":"","leaseDurationSeconds":0,"renewTime":null}}"#,
        );
        check("Namespace", r#"{"spec":null}"#, r#"{"metadata":{},"spec":{},"status":{}}"#);
    }

    #[test]
    fn nulls_in_lists_and_maps_are_zero_values() {
        check(
            "ConfigMap",
            r#"{"data":{"a":null},"binaryData":{"x":null,"y":"aGk=","z":""}}"#,
            r#"{"binaryData":{"x":null,"y":"aGk=","z":""},"data":{"a":""},"metadata":{}}"#,
        );
        check(
            "ServiceAccount",
            r#"{"secrets":[null,{"name":"x","foo":1,"uid":""}],"imagePullSecrets":[]}"#,
            r#"{"metadata":{},"secrets":[{},{"name":"x"}]} unknown secrets[1].foo"#,
        );
    }

    #[test]
    fn what_does_not_fit_is_told_in_the_words_of_go() {
        let unfit = |what: &str| format!("json: cannot unmarshal {what}");
        for (kind, text, expected) in [
            ("ConfigMap", r#"{"data":{"a":1}}"#, "number into Go struct field ConfigMap.data of type string"),
            ("ConfigMap", r#"{"data":[]}"#, "array into Go struct field ConfigMap.data of type map[string]string"),
            (
                "ConfigMap",
                r#"{"binaryData":{"x":3}}"#,
                "number into Go struct field ConfigMap.binaryData of type []uint8",
            ),
            ("ConfigMap", r#"{"metadata":3}"#, "number into Go struct field ConfigMap.metadata of type v1.ObjectMeta"),
            ("Secret", r#"{"type":3}"#, "number into Go struct field Secret.type of type v1.SecretType"),
            (
                "ServiceAccount",
                r#"{"secrets":[{"name":3}]}"#,
                "number into Go struct field ObjectReference.secrets.name of type string",
            ),
            (
                "ServiceAccount",
                r#"{"secrets":{"a":1}}"#,
                "object into Go struct field ServiceAccount.secrets of type []v1.ObjectReference",
            ),
            (
                "ServiceAccount",
                r#"{"secrets":["a"]}"#,
                "string into Go struct field ServiceAccount.secrets of type v1.ObjectReference",
            ),
            ("Namespace", r#"{"spec":[]}"#, "array into Go struct field Namespace.spec of type v1.NamespaceSpec"),
            ("Event", r#"{"count":1.5}"#, "number 1.5 into Go struct field Event.count of type int32"),
            (
                "Lease",
                r#"{"spec":{"strategy":3}}"#,
                "number into Go struct field LeaseSpec.spec.strategy of type v1.CoordinatedLeaseStrategy",
            ),
        ] {
            check(kind, text, &unfit(expected));
        }
        check("Secret", r#"{"data":{"x":"!!!"}}"#, "illegal base64 data at input byte 0");
    }

    #[test]
    fn what_can_not_be_restored_is_told_in_the_words_of_go() {
        for (kind, text, expected) in [
            ("ConfigMap", r#"{"data":[1]}"#, "cannot restore map from slice"),
            ("ConfigMap", r#"{"data":{"a":1}}"#, "cannot convert int64 to string"),
            ("ConfigMap", r#"{"data":{"a":true}}"#, "unrecognized type: string"),
            ("ConfigMap", r#"{"immutable":1}"#, "unrecognized type: bool"),
            (
                "ConfigMap",
                r#"{"binaryData":{"a":"??"}}"#,
                "error decoding from json: illegal base64 data at input byte 0",
            ),
            ("ConfigMap", r#"{"binaryData":{"a":1}}"#, "cannot restore slice from int64"),
            ("ConfigMap", r#"{"metadata":1}"#, "cannot restore struct from: int64"),
            ("Secret", r#"{"type":1}"#, "cannot convert int64 to v1.SecretType"),
            ("ServiceAccount", r#"{"secrets":["x",null]}"#, "cannot restore struct from: string"),
            ("Event", r#"{"count":1.5}"#, "cannot convert float64 to int32"),
            ("Event", r#"{"firstTimestamp":3}"#, "json: cannot unmarshal number into Go value of type string"),
        ] {
            let object = json::decode(text.as_bytes()).expect("the test is JSON");
            assert_eq!(message(kind).restore_error(&object).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn micro_times_have_six_digits() {
        let parsing = |text: &str, rest: &str, element: &str| {
            format!(
                r#"parsing time "{text}" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "{rest}" as "{element}""#
            )
        };
        let event = |time: &str| format!(r#"{{"spec":{{"renewTime":"{time}"}}}}"#);
        let time = "2026-01-01T00:00:00Z";
        check("Lease", &event(time), &parsing(time, "Z", ".000000"));
        let time = "2026-01-01T00:00:00.123456789+02:00";
        check("Lease", &event(time), &parsing(time, "789+02:00", "Z07:00"));
        check(
            "Lease",
            &event("2026-01-01T00:00:00.123450+02:00"),
            r#"{"metadata":{},"spec":{"renewTime":"2025-12-31T22:00:00.123450Z"}}"#,
        );
    }
}
