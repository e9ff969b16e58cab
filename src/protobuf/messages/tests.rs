//! The tables against the messages of the crate `k8s-pb`, which are generated from the same `generated.proto` files.

use k8s_pb::api::{autoscaling, coordination, core, events};
use k8s_pb::apiextensions_apiserver::pkg::apis::apiextensions;
use k8s_pb::apimachinery::pkg::apis::meta;
use proptest::prelude::*;

use super::super::table::{Codec, Field, Kind, Shape};
use super::super::{decode, encode};
use super::*;
use crate::object;
use crate::value::{Value, base64};

/// Reads bytes as the other generator's message; gives its bytes and how it prints.
type Other = fn(&[u8]) -> (Vec<u8>, String);

fn other<M: prost::Message + Default + std::fmt::Debug>(bytes: &[u8]) -> (Vec<u8>, String) {
    let message = M::decode(bytes).expect("the other side reads it");
    (message.encode_to_vec(), format!("{message:#?}"))
}

/// Every kind of the tables beside the other generator's message.
const OTHERS: &[(&str, &str, Other)] = &[
    ("v1", "Status", other::<meta::v1::Status>),
    ("meta.k8s.io/v1", "PartialObjectMetadata", other::<meta::v1::PartialObjectMetadata>),
    ("meta.k8s.io/v1", "PartialObjectMetadataList", other::<meta::v1::PartialObjectMetadataList>),
    ("meta.k8s.io/v1beta1", "PartialObjectMetadata", other::<meta::v1::PartialObjectMetadata>),
    ("meta.k8s.io/v1beta1", "PartialObjectMetadataList", other::<meta::v1beta1::PartialObjectMetadataList>),
    ("", "APIVersions", other::<meta::v1::APIVersions>),
    ("v1", "APIGroupList", other::<meta::v1::APIGroupList>),
    ("v1", "APIGroup", other::<meta::v1::APIGroup>),
    ("v1", "APIResourceList", other::<meta::v1::APIResourceList>),
    ("v1", "Namespace", other::<core::v1::Namespace>),
    ("v1", "NamespaceList", other::<core::v1::NamespaceList>),
    ("v1", "ConfigMap", other::<core::v1::ConfigMap>),
    ("v1", "ConfigMapList", other::<core::v1::ConfigMapList>),
    ("v1", "Secret", other::<core::v1::Secret>),
    ("v1", "SecretList", other::<core::v1::SecretList>),
    ("v1", "ServiceAccount", other::<core::v1::ServiceAccount>),
    ("v1", "ServiceAccountList", other::<core::v1::ServiceAccountList>),
    ("v1", "Event", other::<core::v1::Event>),
    ("v1", "EventList", other::<core::v1::EventList>),
    ("events.k8s.io/v1", "Event", other::<events::v1::Event>),
    ("events.k8s.io/v1", "EventList", other::<events::v1::EventList>),
    ("coordination.k8s.io/v1", "Lease", other::<coordination::v1::Lease>),
    ("coordination.k8s.io/v1", "LeaseList", other::<coordination::v1::LeaseList>),
    ("autoscaling/v1", "Scale", other::<autoscaling::v1::Scale>),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition", other::<apiextensions::v1::CustomResourceDefinition>),
    (
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinitionList",
        other::<apiextensions::v1::CustomResourceDefinitionList>,
    ),
];

/// Fields that the crate is too old for.
const NEWER: [&str; 1] = ["shardInfo"];

/// Makes values from the tables.
struct Maker {
    /// Of a pseudo-random sequence; `None` makes everything there is.
    state: Option<u64>,
}

impl Maker {
    fn chance(&mut self, choices: u64) -> u64 {
        let Some(state) = &mut self.state else { return 1 };
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        *state % choices
    }

    /// `schemas` counts how many schemas may still be nested.
    fn message(&mut self, message: &'static Message, schemas: usize) -> Value {
        match message.codec {
            Codec::Object => {
                let is_schema = std::ptr::eq(message, &json_schema::JSON_SCHEMA_PROPS);
                let mut fields = object! {};
                for field in message.fields.iter().filter(|field| !NEWER.contains(&field.json)) {
                    let is_too_deep = is_schema && schemas == 0 && matches!(field.kind, Kind::Message(_));
                    if self.chance(3) > 0 && !is_too_deep {
                        fields
                            .make_object()
                            .insert(field.json, self.field(field, schemas.saturating_sub(usize::from(is_schema))));
                    }
                }
                fields
            }
            Codec::Time => Value::from("2026-01-02T03:04:05Z"),
            Codec::MicroTime => Value::from("1926-01-02T03:04:05.000006Z"),
            Codec::Json | Codec::FieldsV1 => object! { "f:a" => Value::Array(vec![Value::Int(1), Value::Null]) },
            Codec::List => Value::Array(vec![Value::from("get")]),
            Codec::Members | Codec::OneOrMore | Codec::Any | Codec::Choice(_) => Value::Null,
            Codec::SchemaOrBool if self.chance(2) == 0 => Value::Bool(self.chance(2) == 0),
            Codec::SchemaOrArray if self.chance(2) == 0 => {
                Value::Array(vec![self.message(&json_schema::JSON_SCHEMA_PROPS, schemas)])
            }
            Codec::SchemaOrStringArray if self.chance(2) == 0 => Value::Array(vec![Value::from("a")]),
            Codec::SchemaOrBool | Codec::SchemaOrArray | Codec::SchemaOrStringArray => {
                self.message(&json_schema::JSON_SCHEMA_PROPS, schemas)
            }
        }
    }

    fn field(&mut self, field: &'static Field, schemas: usize) -> Value {
        let value = match field.kind {
            Kind::Bool => Value::Bool(self.chance(2) == 1),
            Kind::Int32 | Kind::Int64 => Value::Int(number(field) * self.chance(3) as i64),
            Kind::Double => Value::Float(0.5 * self.chance(3) as f64),
            Kind::String => Value::from(if self.chance(3) == 0 { "" } else { field.json }),
            Kind::Bytes => Value::String(base64::encode(field.json.as_bytes())),
            Kind::Message(message) => self.message(message, schemas),
        };
        match field.shape {
            Shape::Value | Shape::Pointer => value,
            Shape::List => Value::Array(vec![value]),
            Shape::Map | Shape::Extensions => object! { "key" => value },
        }
    }
}

/// A number that tells the field's name.
fn number(field: &Field) -> i64 {
    field.json.bytes().fold(7, |number, byte| (number * 31 + i64::from(byte)) % 1_000_003)
}

#[test]
fn every_kind_has_an_independent_message() {
    for (api_version, kind, _) in TYPES.iter().flat_map(|types| types.iter()) {
        let known = OTHERS.iter().any(|(known, name, _)| known == api_version && name == kind);
        assert!(known, "{api_version} {kind} is checked against nothing");
    }
}

#[test]
fn texts_and_numbers_arrive_in_the_field_of_their_name() {
    /// A name in either spelling; some are words of Rust, some have a `$`.
    fn plain(name: &str) -> String {
        let name = name.trim_start_matches("r#").trim_start_matches('$');
        name.replace(['_', '-'], "").to_lowercase()
    }
    let mut fields = 0;
    for (api_version, kind, other) in OTHERS {
        let message = message_of(api_version, kind).expect("the kind is in the tables");
        let (_, printed) = other(&encode(message, &Maker { state: None }.message(message, 2)));
        let lines: Vec<&str> = printed.lines().map(|line| line.trim().trim_end_matches(',')).collect();
        for [name, value] in lines.windows(2).filter_map(|pair| <[&str; 2]>::try_from(pair).ok()) {
            let Some(name) = name.strip_suffix(": Some(") else { continue };
            if let Some(text) = value.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
                assert_eq!(plain(name), plain(text), "of {api_version} {kind}");
                fields += 1;
            } else if let Ok(found) = value.parse::<i64>()
                && !matches!(name, "seconds" | "nanos")
            {
                let mut pending = vec![message];
                let mut seen: Vec<*const Message> = Vec::new();
                let mut names = Vec::new();
                while let Some(message) = pending.pop() {
                    if seen.contains(&std::ptr::from_ref(message)) {
                        continue;
                    }
                    seen.push(message);
                    for field in message.fields {
                        if let Kind::Message(message) = field.kind {
                            pending.push(message);
                        }
                        if number(field) == found {
                            names.push(plain(field.json));
                        }
                    }
                }
                assert!(names.contains(&plain(name)), "{name} of {api_version} {kind} is {found}");
                fields += 1;
            }
        }
    }
    assert!(fields > 1000, "{fields}");
}

#[test]
fn fields_stand_in_the_order_of_their_numbers() {
    let mut pending: Vec<&Message> =
        TYPES.iter().flat_map(|types| types.iter()).map(|(.., message)| *message).collect();
    pending.extend([&DELETE_OPTIONS, &OPEN_API_V2, &UNKNOWN]);
    let mut seen: Vec<*const Message> = Vec::new();
    while let Some(message) = pending.pop() {
        if seen.contains(&std::ptr::from_ref(message)) {
            continue;
        }
        seen.push(message);
        let numbers: Vec<_> = message.fields.iter().map(|field| field.number).collect();
        assert!(numbers.is_sorted_by(|left, right| left < right), "the fields of {} are not in order", message.name);
        pending.extend(message.fields.iter().filter_map(|field| match field.kind {
            Kind::Message(message) => Some(message),
            _ => None,
        }));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn objects_go_through_another_codec_unchanged(seed in 1_u64..) {
        for (api_version, kind, other) in OTHERS {
            let message = message_of(api_version, kind).expect("the kind is in the tables");
            let value = Maker { state: Some(seed) }.message(message, 2);
            let bytes = encode(message, &value);
            let object = decode(message, &bytes).expect("we read what we write");
            let (back, _) = other(&bytes);
            prop_assert_eq!(encode(message, &object), bytes);
            prop_assert_eq!(decode(message, &back), Ok(object));
        }
    }
}
