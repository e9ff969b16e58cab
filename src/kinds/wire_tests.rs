//! The tables against the messages of the crate `k8s-pb`, which are generated from the same `generated.proto` files.

use std::fs;
use std::path::Path;

use k8s_pb::api::{authentication, autoscaling};
use k8s_pb::apimachinery::pkg::apis::meta;

use super::*;
use crate::object;
use crate::protobuf::messages::{DELETE_OPTIONS, OPEN_API_V2};
use crate::protobuf::{decode, encode};
use crate::types::{self, Codec, Field, Shape};
use crate::value::{Value, base64};

/// Reads bytes as the other generator's message; gives its bytes and how it prints.
type Other = fn(&[u8]) -> (Vec<u8>, String);

fn other<M: prost::Message + Default + std::fmt::Debug>(bytes: &[u8]) -> (Vec<u8>, String) {
    let message = M::decode(bytes).expect("the other side reads it");
    (message.encode_to_vec(), format!("{message:#?}"))
}

/// What is no built-in kind, beside the other generator's message.
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
    ("autoscaling/v1", "Scale", other::<autoscaling::v1::Scale>),
    ("authentication.k8s.io/v1", "TokenRequest", other::<authentication::v1::TokenRequest>),
];

/// Checks that the messages of a kind and of its list are what the other generator takes them for. The file of every kind
/// has a test that calls this.
pub fn agree<M, L>(kind: &Kind)
where
    M: prost::Message + Default + std::fmt::Debug,
    L: prost::Message + Default + std::fmt::Debug,
{
    check(kind.message, other::<M>);
    check(kind.list.expect("the kind is listed"), other::<L>);
}

/// As [`agree`], for a kind that nobody lists.
pub fn agree_on_question<M: prost::Message + Default + std::fmt::Debug>(kind: &Kind) {
    check(kind.message, other::<M>);
}

fn check(message: &'static Message, other: Other) {
    check_names(message, other);
    for seed in 1..32 {
        let value = Maker { state: Some(u64::wrapping_mul(seed, 0x9e37_79b9_7f4a_7c15)) }.message(message, 2);
        let bytes = encode(message, &value);
        let object = decode(message, &bytes).expect("we read what we write");
        let (back, _) = other(&bytes);
        assert_eq!(encode(message, &object), bytes, "{}", message.name);
        assert_eq!(decode(message, &back), Ok(object), "{}", message.name);
    }
}

/// Fields that the crate is too old for.
const NEWER: [&str; 4] = ["shardInfo", "podPreemptionPolicy", "runningInUserNamespace", "attestations"];

/// Fields of this type hold the type itself.
const JSON_SCHEMA: &str = "JSONSchemaProps";

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
                let is_schema = message.name == JSON_SCHEMA;
                let mut fields = object! {};
                for field in message.fields.iter().filter(|field| !NEWER.contains(&field.json)) {
                    let is_too_deep = is_schema && schemas == 0 && matches!(field.kind, types::Kind::Message(_));
                    if let (Shape::Inline, types::Kind::Message(embedded)) = (field.shape, field.kind) {
                        if let Value::Object(embedded) = self.message(embedded, schemas) {
                            embedded.into_iter().for_each(|(name, value)| _ = fields.make_object().insert(name, value));
                        }
                    } else if self.chance(3) > 0 && !is_too_deep {
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
            Codec::Quantity => Value::from("string"),
            Codec::List => Value::Array(vec![Value::from("get")]),
            Codec::Members | Codec::OneOrMore | Codec::Any | Codec::Choice(_) => Value::Null,
            Codec::SchemaOrBool if self.chance(2) == 0 => Value::Bool(self.chance(2) == 0),
            Codec::SchemaOrArray if self.chance(2) == 0 => Value::Array(vec![self.schema(message, schemas)]),
            Codec::SchemaOrStringArray if self.chance(2) == 0 => Value::Array(vec![Value::from("a")]),
            Codec::SchemaOrBool | Codec::SchemaOrArray | Codec::SchemaOrStringArray => self.schema(message, schemas),
        }
    }

    /// What `message` holds beside other forms.
    fn schema(&mut self, message: &'static Message, schemas: usize) -> Value {
        let schema = message.fields.iter().find_map(|field| match field.kind {
            types::Kind::Message(schema) if schema.name == JSON_SCHEMA => Some(schema),
            _ => None,
        });
        self.message(schema.expect("the message holds a schema"), schemas)
    }

    fn field(&mut self, field: &'static Field, schemas: usize) -> Value {
        let value = match field.kind {
            types::Kind::Bool => Value::Bool(self.chance(2) == 1),
            types::Kind::Int32 | types::Kind::Int64 => Value::Int(number(field) * self.chance(3) as i64),
            types::Kind::Double => Value::Float(0.5 * self.chance(3) as f64),
            types::Kind::String => Value::from(if self.chance(3) == 0 { "" } else { field.json }),
            types::Kind::Bytes => Value::String(base64::encode(field.json.as_bytes())),
            types::Kind::Message(message) => self.message(message, schemas),
        };
        match field.shape {
            Shape::Value | Shape::Pointer | Shape::Inline => value,
            Shape::List => Value::Array(vec![value]),
            Shape::Map | Shape::Extensions => object! { "key" => value },
        }
    }
}

/// A number that tells the field's name.
fn number(field: &Field) -> i64 {
    field.json.bytes().fold(7, |number, byte| (number * 31 + i64::from(byte)) % 1_000_003)
}

/// Texts and numbers arrive in the field of their name.
fn check_names(message: &'static Message, other: Other) {
    /// A name in either spelling; some are words of Rust, some have a `$`.
    fn plain(name: &str) -> String {
        let name = name.trim_start_matches("r#").trim_start_matches('$');
        name.replace(['_', '-'], "").to_lowercase()
    }
    let (_, printed) = other(&encode(message, &Maker { state: None }.message(message, 2)));
    let lines: Vec<&str> = printed.lines().map(|line| line.trim().trim_end_matches(',')).collect();
    let mut fields = 0;
    for [name, value] in lines.windows(2).filter_map(|pair| <[&str; 2]>::try_from(pair).ok()) {
        let Some(name) = name.strip_suffix(": Some(") else { continue };
        if let Some(text) = value.strip_prefix('"').and_then(|text| text.strip_suffix('"')) {
            assert_eq!(plain(name), plain(text), "of {}", message.name);
            fields += 1;
        } else if let Ok(found) = value.parse::<i64>()
            && !matches!(name, "seconds" | "nanos")
        {
            let within = messages_within(message);
            let known = within.iter().flat_map(|message| message.fields).filter(|field| number(field) == found);
            let names: Vec<String> = known.map(|field| plain(field.json)).collect();
            assert!(names.contains(&plain(name)), "{name} of {} is {found}", message.name);
            fields += 1;
        }
    }
    assert!(fields > 0 || message.fields.is_empty(), "nothing of {} was found", message.name);
}

/// A message and those that its fields hold, each once.
fn messages_within(message: &'static Message) -> Vec<&'static Message> {
    let mut found: Vec<&Message> = vec![message];
    let mut at = 0;
    while at < found.len() {
        for field in found[at].fields {
            if let types::Kind::Message(inner) = field.kind
                && !found.iter().any(|known| std::ptr::eq(*known, inner))
            {
                found.push(inner);
            }
        }
        at += 1;
    }
    found
}

#[test]
fn what_is_no_kind_goes_through_another_codec_unchanged() {
    for (api_version, kind, other) in OTHERS {
        check(message_of(api_version, kind).expect("the kind is in the tables"), *other);
    }
}

#[test]
fn every_file_compares_its_kinds_with_another_codec() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/kinds/served");
    for entry in fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("the folder is readable").path();
        let text = fs::read_to_string(&path).expect("the file is readable");
        assert!(text.contains("wire_tests::agree"), "{} is checked against nothing", path.display());
    }
}

#[test]
fn no_two_fields_have_one_number() {
    for message in all().map(|kind| kind.message).chain([&DELETE_OPTIONS, &OPEN_API_V2]).flat_map(messages_within) {
        let mut numbers: Vec<_> = message.by_number().map(|(_, field)| field.number).collect();
        assert!(numbers.is_sorted(), "{}", message.name);
        numbers.dedup();
        assert_eq!(numbers.len(), message.fields.len(), "{}", message.name);
    }
}
