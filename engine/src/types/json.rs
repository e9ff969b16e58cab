//! JSON of a type, as Go reads and writes it.
//!
//! Input: a value. Output: the value as Go writes it after reading it, or Go's error for what does not fit.
//!
//! Source: `encoding/json` and `sigs.k8s.io/json`, as Kubernetes 1.37 uses them.

use std::borrow::Cow;
use std::fmt;

use super::decoder::{FieldDecodeError, Findings, Stop, TypedDecoder};
use super::table::MessageMember;
use super::{Codec, Field, FieldKind, Message, Shape, find};
use crate::meta::minor::Minor;
use crate::meta::quantity::Quantity;
use crate::meta::time::{self, TimeError};
use crate::meta::unmarshal::UnmarshalError;
use crate::meta::{duration, object_meta};
use crate::value::{Key, Map, Value, base64, json};

impl Message {
    /// `object` as Go writes it after reading it, and the findings for strict decoding.
    ///
    /// # Errors
    ///
    /// Go's text: `json: cannot unmarshal number into Go struct field ConfigMap.data of type string`.
    pub fn decode(&'static self, object: &Value) -> Result<(Value, Findings), UnmarshalError> {
        TypedDecoder::run(|typed| self.decode_at(typed, object))
    }

    /// The findings for strict decoding of `object` in that version of Kubernetes, to which later fields are unknown.
    ///
    /// # Errors
    ///
    /// Go's text for a value that can't be read.
    pub fn check(&'static self, minor: Minor, object: &Value) -> Result<Findings, UnmarshalError> {
        TypedDecoder::run_in(minor, |typed| self.decode_at(typed, object)).map(|(_, findings)| findings)
    }

    /// Removes the fields that a version of Kubernetes does not know yet.
    pub fn forget_newer(&'static self, minor: Minor, object: &mut Value) {
        if let Value::Object(fields) = object {
            fields.retain(|name, _| self.member(name).is_none_or(|field| field.is_known_in(minor)));
        }
        self.for_each_member(object, |field, value| field.forget_newer(minor, value));
    }

    /// Every error in reading `object`, up to a limit, in the order of its fields' names.
    pub fn faults(&'static self, object: &Value) -> Vec<FieldDecodeError> {
        TypedDecoder::faults(|typed| self.decode_at(typed, object))
    }

    /// A zero object of the type as Go writes it.
    pub fn zero(&self) -> Value {
        Value::Object(self.written_of(Map::new()))
    }

    /// An object with these fields as Go writes it: with the zeros that it does not omit.
    pub fn with_zeros(&self, mut fields: Map) -> Value {
        for field in self.members().filter(|field| field.always) {
            if !fields.contains_key(field.json)
                && let Some(zero) = field.zero()
            {
                fields.insert(field.json, zero);
            }
        }
        Value::Object(fields)
    }

    fn decode_at<'v>(&'static self, typed: &mut TypedDecoder<'v>, value: &'v Value) -> Result<Value, Stop> {
        let mut read = Map::new();
        typed.structure_in(self.package, value, self.name, |typed, name, value| {
            let known = self.member_of_name(name).filter(|member| member.field.is_known_in(typed.minor()));
            let Some(MessageMember { field, way, .. }) = known else { return Ok(false) };
            let decoded = if way.is_empty() {
                field.decode(typed, value)?
            } else {
                typed.embedded(way, |typed| field.decode(typed, value))?
            };
            if let Some(value) = decoded {
                if field.is_left_out_empty(&value) && (self.is_of_selector() || !self.is_of_meta()) {
                    typed.empty(field.shape == Shape::List, !self.is_of_selector());
                }
                read.insert(Key::new_static(field.json), value);
            }
            Ok(true)
        })?;
        Ok(Value::Object(self.written_of(read)))
    }

    /// An object with the fields `read` as Go writes it: with the zeros that it does not omit, and without the empty
    /// values that it does.
    fn written_of(&self, read: Map) -> Map {
        let mut fields = Vec::with_capacity(read.len());
        let mut read = read.into_iter().peekable();
        for MessageMember { field, .. } in self.members_by_name() {
            let value = match read.next_if(|(name, _)| name == field.json) {
                Some((_, value)) if field.keeps(&value) => Some(value),
                _ => field.zero(),
            };
            fields.extend(value.map(|value| (Key::new_static(field.json), value)));
        }
        debug_assert!(read.next().is_none(), "what was read has a member of {} each", self.name);
        Map::from_fields(fields)
    }

    /// Whether the type is from apimachinery, which errors show as the API's JSON.
    fn is_of_meta(&'static self) -> bool {
        find("meta.v1", self.name).is_some_and(|named| std::ptr::eq(named.message(), self))
    }

    /// Whether the type is part of a label selector, which is in apimachinery but not metadata.
    fn is_of_selector(&self) -> bool {
        matches!(self.name, "LabelSelector" | "LabelSelectorRequirement")
    }

    pub(crate) fn is_object_meta(&self) -> bool {
        self.name == "ObjectMeta"
    }
}

impl Field {
    /// Whether a version of Kubernetes knows it.
    pub(crate) fn is_known_in(&self, minor: Minor) -> bool {
        self.since.is_none_or(|since| since <= minor)
    }

    fn forget_newer(&'static self, minor: Minor, value: &mut Value) {
        let FieldKind::Message(message) = self.kind else { return };
        if !matches!(message.codec, Codec::Object) {
            return;
        }
        let one = |value: &mut Value| message.get().forget_newer(minor, value);
        match (self.shape, value) {
            (Shape::List, Value::Array(items)) => items.iter_mut().for_each(one),
            (Shape::Map, Value::Object(entries)) => entries.values_mut().for_each(one),
            (Shape::Value | Shape::Pointer | Shape::Inline, value) => one(value),
            _ => {}
        }
    }

    /// A zero value of the field as Go writes it.
    fn zero(&self) -> Option<Value> {
        match self.shape {
            _ if !self.always => None,
            Shape::Value | Shape::Inline => Some(self.kind.zero()),
            Shape::Pointer | Shape::List | Shape::Map | Shape::Extensions => Some(Value::Null),
        }
    }

    /// Whether a decoded value is an empty list or map that is not written.
    fn is_left_out_empty(&self, value: &Value) -> bool {
        matches!(self.shape, Shape::List | Shape::Map) && !self.keeps(value)
    }

    /// Whether a decoded value is written.
    fn keeps(&self, value: &Value) -> bool {
        match value {
            _ if self.always || self.shape == Shape::Pointer => true,
            Value::Null | Value::Bool(false) | Value::Int(0) => false,
            Value::String(text) => !text.is_empty(),
            Value::Array(items) => !items.is_empty(),
            Value::Object(fields) => !fields.is_empty(),
            _ => true,
        }
    }

    /// The value as Go writes it; `None` if it leaves the field as it was.
    fn decode<'v>(&'static self, typed: &mut TypedDecoder<'v>, value: &'v Value) -> Result<Option<Value>, Stop> {
        let one = |typed: &mut TypedDecoder<'v>, value: &'v Value| {
            Ok(self.kind.decode(self.go_type, typed, value)?.unwrap_or_else(|| self.kind.zero()))
        };
        match self.shape {
            // A nil pointer: the type does not see the null, even if it decodes itself.
            Shape::Pointer if value.is_null() => Ok(None),
            Shape::Value | Shape::Pointer | Shape::Inline => self.kind.decode(self.go_type, typed, value),
            Shape::List => Ok(typed.list(value, GoContainer(self), one)?.map(Value::Array)),
            Shape::Map | Shape::Extensions => Ok(typed.map(value, GoContainer(self), one)?.map(Value::Object)),
        }
    }
}

/// The Go name of the type of a field that is a list or a map.
struct GoContainer<'f>(&'f Field);

impl fmt::Display for GoContainer<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let GoContainer(field) = self;
        match (field.container_type, field.shape) {
            (Some(name), _) => out.write_str(name),
            (None, Shape::List) => write!(out, "[]{}", field.kind.go_type(field.go_type)),
            (None, _) => write!(out, "map[string]{}", field.kind.go_type(field.go_type)),
        }
    }
}

impl FieldKind {
    /// The Go name of the type, if it has no `name` of its own.
    pub(super) fn go_type(self, name: Option<&'static str>) -> Cow<'static, str> {
        match self {
            FieldKind::String => name.unwrap_or("string").into(),
            FieldKind::Bool => "bool".into(),
            FieldKind::Int32 => "int32".into(),
            FieldKind::Int64 => "int64".into(),
            FieldKind::Double => "float64".into(),
            FieldKind::Bytes => "[]uint8".into(),
            FieldKind::Message(message) => match (name, message.codec) {
                (Some(name), _) => name.into(),
                (None, _) => message.go_type().into(),
            },
        }
    }

    /// A zero value as it is written.
    fn zero(self) -> Value {
        match self {
            FieldKind::String => Value::from(""),
            FieldKind::Bool => Value::Bool(false),
            FieldKind::Int32 | FieldKind::Int64 | FieldKind::Double => Value::Int(0),
            FieldKind::Bytes => Value::Null,
            FieldKind::Message(message) => match message.codec {
                Codec::Quantity => Value::from("0"),
                Codec::IntOrString => Value::Int(0),
                Codec::Duration => Value::from("0s"),
                Codec::List => Value::Null,
                Codec::Object if message.is_object_meta() => Value::Object(Map::new()),
                Codec::Object => message.get().zero(),
                _ => Value::Null,
            },
        }
    }

    /// The value as Go writes it; `None` if it leaves the field as it was.
    fn decode<'v>(
        self,
        go_type: Option<&'static str>,
        typed: &mut TypedDecoder<'v>,
        value: &'v Value,
    ) -> Result<Option<Value>, Stop> {
        Ok(match self {
            FieldKind::String => typed.string_as(value, go_type.unwrap_or("string")).map(Value::String),
            FieldKind::Bool => typed.boolean(value).map(Value::Bool),
            FieldKind::Int32 => typed.int32(value).map(|number| Value::Int(number.into())),
            FieldKind::Int64 => typed.int64(value).map(Value::Int),
            FieldKind::Double => typed.float64(value).map(Value::Float),
            FieldKind::Bytes => decode_bytes(typed, value)?,
            FieldKind::Message(message) => match message.codec {
                Codec::Time => decode_time(typed, value, time::normalize),
                Codec::MicroTime => decode_time(typed, value, time::normalize_micro),
                Codec::Quantity => decode_quantity(typed, value),
                Codec::IntOrString => decode_int_or_string(typed, value),
                Codec::Duration => decode_duration(typed, value),
                _ if value.is_null() => None,
                Codec::Object if message.is_object_meta() => decode_metadata(typed, value)?,
                Codec::Object => Some(message.get().decode_at(typed, value)?),
                Codec::List => {
                    let items = &message.get().fields[0];
                    let go_type = self.go_type(go_type);
                    let item = |typed: &mut TypedDecoder<'v>, value: &'v Value| {
                        let read = items.kind.decode(items.go_type, typed, value)?;
                        Ok(read.unwrap_or_else(|| items.kind.zero()))
                    };
                    typed.list(value, &go_type, item)?.map(Value::Array)
                }
                Codec::SchemaOrArray | Codec::SchemaOrBool | Codec::SchemaOrStringArray => {
                    typed.own(|typed| decode_alternative(message.get(), typed, value))?
                }
                _ => {
                    typed.opaque();
                    Some(value.clone())
                }
            },
        })
    }
}

/// A schema, or what is allowed in its place: a list, or a boolean.
fn decode_alternative<'v>(
    message: &'static Message,
    typed: &mut TypedDecoder<'v>,
    value: &'v Value,
) -> Result<Option<Value>, Stop> {
    let of_shape = |shape| message.fields.iter().find(|field| field.shape == shape);
    match (message.codec, value) {
        (_, Value::Object(_)) => of_shape(Shape::Pointer).map_or(Ok(None), |schema| schema.decode(typed, value)),
        (Codec::SchemaOrBool, Value::Bool(_)) => Ok(Some(value.clone())),
        (Codec::SchemaOrBool, _) => Err(Stop::other("boolean or JSON schema expected")),
        (_, Value::Array(_)) => of_shape(Shape::List).map_or(Ok(None), |list| list.decode(typed, value)),
        _ => Ok(Some(Value::Null)),
    }
}

fn decode_metadata<'v>(typed: &mut TypedDecoder<'v>, value: &'v Value) -> Result<Option<Value>, Stop> {
    if matches!(value, Value::Object(_)) {
        typed.empty_within(value, &["annotations", "labels", "ownerReferences", "finalizers", "managedFields"]);
        return Ok(typed.adopt(object_meta::decode(value)));
    }
    typed.structure(value, "ObjectMeta", |_, _, _| Ok(true))?;
    Ok(None)
}

/// Bytes: a text in base64, or a list of numbers.
fn decode_bytes<'v>(typed: &mut TypedDecoder<'v>, value: &'v Value) -> Result<Option<Value>, Stop> {
    if matches!(value, Value::Array(_)) {
        let bytes = typed.list(value, "[]uint8", |typed, item| Ok(typed.uint8(item).unwrap_or_default()))?;
        return Ok(bytes.map(|bytes: Vec<u8>| Value::String(base64::encode(&bytes))));
    }
    Ok(decode_text(typed, value))
}

fn decode_text(typed: &mut TypedDecoder<'_>, value: &Value) -> Option<Value> {
    let text = typed.string_as(value, "[]uint8")?;
    match base64::decode(&text) {
        Ok(bytes) => Some(Value::String(base64::encode(&bytes))),
        Err(error) => {
            typed.save(error.to_string());
            None
        }
    }
}

/// A time; the zero time is null.
fn decode_time(
    typed: &mut TypedDecoder<'_>,
    value: &Value,
    normalize: fn(&str) -> Result<Option<String>, TimeError>,
) -> Option<Value> {
    let outcome = match value {
        Value::Null => return None,
        Value::String(text) => {
            normalize(text).map(|time| time.map_or(Value::Null, Value::String)).map_err(UnmarshalError::other)
        }
        // The type decodes itself: the error is that of a string on its own.
        other => object_meta::time_field(other).map(Option::unwrap_or_default),
    };
    typed.adopt(outcome.map(|time| (time, Vec::new())))
}

/// A quantity in its canonical form; a number is allowed, too; null is not a quantity.
fn decode_quantity(typed: &mut TypedDecoder<'_>, value: &Value) -> Option<Value> {
    let text = match value {
        Value::Null => return Some(Value::from("0")),
        Value::String(text) => text.clone(),
        other => crate::value::json::encode_to_string(other),
    };
    let quantity = Quantity::parse(text.trim()).map(|quantity| Value::String(quantity.to_string()));
    typed.adopt(quantity.map(|text| (text, Vec::new())).map_err(UnmarshalError::other))
}

/// A number or a text, as `intstr` reads it.
fn decode_int_or_string(typed: &mut TypedDecoder<'_>, value: &Value) -> Option<Value> {
    let read = match value {
        Value::Null => Ok(Value::Int(0)),
        Value::String(_) => Ok(value.clone()),
        Value::Int(number) if i32::try_from(*number).is_ok() => Ok(value.clone()),
        other => Err(unfit_on_its_own(other, "int32")),
    };
    typed.adopt(read.map(|value| (value, Vec::new())))
}

/// A duration, as Go prints it.
fn decode_duration(typed: &mut TypedDecoder<'_>, value: &Value) -> Option<Value> {
    let read = match value {
        Value::Null => return None,
        Value::String(text) => duration::parse_go(text).map_err(UnmarshalError::other),
        other => Err(unfit_on_its_own(other, "string")),
    };
    typed.adopt(read.map(|nanoseconds| (Value::String(duration::print_go(nanoseconds)), Vec::new())))
}

/// Go's error for a value that a type which decodes itself does not accept.
pub(super) fn unfit_on_its_own(value: &Value, go_type: &str) -> UnmarshalError {
    let what = match value {
        Value::Int(_) | Value::Float(_) if go_type != "string" => format!("number {}", json::encode_to_string(value)),
        Value::Int(_) | Value::Float(_) => "number".to_owned(),
        Value::Bool(_) => "bool".to_owned(),
        Value::Array(_) => "array".to_owned(),
        _ => "object".to_owned(),
    };
    UnmarshalError::of_type(what, go_type)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds;
    use crate::value::json;

    fn message(kind: &str) -> &'static Message {
        let api_version = match kind {
            "Lease" => "coordination.k8s.io/v1",
            "NewEvent" => "events.k8s.io/v1",
            _ => "v1",
        };
        kinds::type_of(api_version, kind.trim_start_matches("New")).expect("the kind is built in")
    }

    /// Checks what is written after `text` was read, or the error. Expectations come from `k8s.io/api` 0.37.2.
    #[track_caller]
    fn check(kind: &str, text: &str, expected: &str) {
        let object = json::decode(text.as_bytes()).expect("the test is JSON");
        let found = match message(kind).decode(&object) {
            Ok((object, findings)) if findings.unknown.is_empty() => json::encode_to_string(&object),
            Ok((object, findings)) => {
                format!("{} unknown {}", json::encode_to_string(&object), findings.unknown.join(" "))
            }
            Err(error) => error.to_string(),
        };
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn fields_are_known_from_their_minor_on() {
        let text = r#"{"spec":{"hostnameOverride":"a","containers":[{"name":"c","restartPolicyRules":[]}],"nope":1}}"#;
        let mut pod = json::decode(text.as_bytes()).expect("it is JSON");
        let unknown = |minor, pod: &Value| message("Pod").check(Minor::of(minor), pod).expect("it is a pod").unknown;
        assert_eq!(unknown(34, &pod), ["spec.nope"]);
        let newer = ["spec.containers[0].restartPolicyRules", "spec.hostnameOverride", "spec.nope"];
        assert_eq!(unknown(33, &pod), newer);
        message("Pod").forget_newer(Minor::of(33), &mut pod);
        assert_eq!(json::encode_to_string(&pod), r#"{"spec":{"containers":[{"name":"c"}],"nope":1}}"#);
    }

    #[test]
    fn zero_values_are_written_as_go_writes_them() {
        check("ConfigMap", "{}", r#"{"metadata":{}}"#);
        check("ConfigMap", r#"{"data":{},"immutable":false}"#, r#"{"immutable":false,"metadata":{}}"#);
        check("Secret", r#"{"type":"","stringData":{"x":null}}"#, r#"{"metadata":{},"stringData":{"x":""}}"#);
        check(
            "NewEvent",
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
    fn what_came_empty_is_remembered_and_not_shown_in_types_that_errors_show_as_json() {
        let text = br#"{"spec":{"containers":[{"args":[]}],"nodeSelector":{},"affinity":{"podAffinity":{
            "requiredDuringSchedulingIgnoredDuringExecution":[{"labelSelector":{"matchLabels":{}}}]}}}}"#;
        let object = json::decode(text).expect("the test is JSON");
        let (mut object, findings) = message("Pod").decode(&object).expect("the test is a pod");
        assert!(object.at(&["spec", "nodeSelector"]).is_none());
        findings.empty.iter().filter(|empty| empty.is_shown).for_each(|empty| empty.restore(&mut object));
        let shown = json::encode_to_string(&object);
        assert!(shown.contains(r#""args":[]"#) && shown.contains(r#""nodeSelector":{}"#), "{shown}");
        assert!(!shown.contains("matchLabels"), "{shown}");
        assert_eq!(findings.empty.len(), 3);
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

    #[test]
    fn metadata_that_is_read_by_hand_lacks_no_published_field() {
        let unknown = |sent: Value| crate::meta::object_meta::decode(&sent).expect("null fits every field").1;
        for field in super::super::object_meta().members() {
            assert_eq!(unknown(crate::object! { field.json => Value::Null }), Vec::<String>::new());
            if let (Shape::List, FieldKind::Message(items)) = (field.shape, field.kind) {
                let item: Map = items.members().map(|field| (field.json, Value::Null)).collect();
                assert_eq!(unknown(crate::object! { field.json => vec![Value::Object(item)] }), Vec::<String>::new());
            }
        }
    }

    #[test]
    fn lists_that_came_empty_leave_room_for_what_is_unknown() {
        let empty = || Value::Array(Vec::new());
        let lists = ["allOf", "anyOf", "enum", "oneOf", "required"].map(|name| (name, empty()));
        let schema = Value::Object(lists.into_iter().collect());
        // As many as are recorded; their paths together exceed the limit.
        let properties = (0..13).map(|at| (format!("{at}{}", "a".repeat(600 << 10)), schema.clone())).collect::<Map>();
        let sent = crate::object! { "properties" => properties, "zzz" => 1 };
        let findings = super::super::message_named("apiextensions.v1", "JSONSchemaProps").check(Minor::NEWEST, &sent);
        assert_eq!(findings.expect("it is of the type").unknown, ["zzz"]);
    }
}
