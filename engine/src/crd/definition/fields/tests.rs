//! Definitions, read and written.

use super::*;
use crate::crd::{defaults, names, strategy};
use crate::types::{Codec, Field, FieldKind, Shape};
use crate::value::json;

fn value(text: &str) -> Value {
    json::decode(text.as_bytes()).expect("the text is JSON")
}

fn check_error(text: &str, expected: &str) {
    let error = decode(&value(text)).map(drop).map_err(|error| error.to_string());
    assert_eq!(error, Err(expected.to_owned()));
}

#[test]
fn a_new_definition_has_an_empty_status_but_for_its_storage_version() {
    let text = r#"{
            "metadata": {"name": "foos.example.com"},
            "spec": {"group": "example.com", "scope": "Cluster", "names": {"plural": "foos", "kind": "Foo"},
                     "versions": [{"name": "v1", "served": true, "storage": true, "schema": {}}]},
            "status": {"storedVersions": ["v0"]}
        }"#;
    let text = value(text);
    let (mut definition, _) = decode(&text).expect("the definition is of the right types");
    defaults::set_defaults(&mut definition);
    strategy::prepare_create(&mut definition);
    let expected = r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
            "metadata":{"generation":1,"name":"foos.example.com"},
            "spec":{"conversion":{"strategy":"None"},"group":"example.com",
                "names":{"kind":"Foo","listKind":"FooList","plural":"foos","singular":"foo"},"scope":"Cluster",
                "versions":[{"name":"v1","schema":{},"served":true,"storage":true}]},
            "status":{"acceptedNames":{"kind":"","plural":""},"conditions":null,"storedVersions":["v1"]}}"#;
    assert_eq!(json::encode_to_string(&definition.encode()), json::encode_to_string(&value(expected)));
}

/// A value of a type with every field set; nested schemas are short.
fn filled(message: &Message, depth: usize) -> Value {
    const DEPTH_MAX: usize = 8;
    let one = |field: &Field| match field.kind {
        FieldKind::Bool => true.into(),
        FieldKind::Int32 | FieldKind::Int64 => Value::Int(7),
        FieldKind::Double => Value::Float(1.5),
        FieldKind::String => "a".into(),
        FieldKind::Bytes => "YQ==".into(),
        FieldKind::Message(inner) => match inner.codec {
            Codec::Object if inner.name == "ObjectMeta" => object! { "name" => "a" },
            Codec::Object if inner.name == message.name || depth == DEPTH_MAX => object! { "type" => "a" },
            Codec::Object => filled(&inner, depth + 1),
            Codec::Time => "2026-01-02T03:04:05Z".into(),
            Codec::SchemaOrBool => true.into(),
            Codec::SchemaOrStringArray => Value::Array(vec!["a".into()]),
            Codec::SchemaOrArray => object! { "type" => "a" },
            _ => Value::Int(7),
        },
    };
    let fields = message.members().map(|field| {
        let value = match field.shape {
            Shape::Value | Shape::Pointer | Shape::Inline => one(field),
            Shape::List => Value::Array(vec![one(field)]),
            Shape::Map | Shape::Extensions => object! { "k" => one(field) },
        };
        (field.json, value)
    });
    Value::Object(fields.collect())
}

#[test]
fn every_published_field_is_held() {
    let mut sent = filled(published(KIND), 0);
    if let Value::Object(fields) = &mut sent {
        fields.insert("apiVersion", API_VERSION.into());
        fields.insert("kind", KIND.into());
    }
    let (definition, findings) = decode(&sent).expect("the definition is of the right types");
    assert_eq!(findings.unknown, Vec::<String>::new());
    assert_eq!(json::encode_to_string(&definition.encode()), json::encode_to_string(&sent));
}

#[test]
fn wrong_types_are_told_in_gos_words() {
    check_error(
        r#"{"spec": {"names": []}}"#,
        "json: cannot unmarshal array into Go struct field CustomResourceDefinitionSpec.spec.names of type \
             v1.CustomResourceDefinitionNames",
    );
    check_error(
        r#"{"metadata": {"name": 5}}"#,
        "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.name of type string",
    );
    check_error(
        r#"{"spec": {"versions": [{"additionalPrinterColumns": [{"priority": "x"}]}]}}"#,
        "json: cannot unmarshal string into Go struct field \
             CustomResourceColumnDefinition.spec.versions.additionalPrinterColumns.priority of type int32",
    );
}

#[test]
fn a_webhook_with_nothing_in_it_is_dropped() {
    let text = value(r#"{"spec": {"conversion": {"strategy": "None", "webhook": {}}}}"#);
    let (definition, _) = decode(&text).expect("the definition is of the right types");
    assert_eq!(definition.spec.conversion, Some(Conversion { strategy: "None".to_owned(), webhook: None }));
}

#[test]
fn the_time_of_a_condition_changes_with_its_status_only() {
    let condition = |status: &str, reason: &str| names::condition("Mine", status, reason, "");
    let mut definition = Definition::default();
    for (status, reason, now) in [("True", "A", "1"), ("True", "B", "2"), ("False", "C", "3")] {
        definition.set_condition(condition(status, reason), now);
        let expected = if status == "True" { "1" } else { "3" };
        let known = definition.condition("Mine").expect("the condition was set");
        assert_eq!((known.reason.as_str(), known.last_transition_time.as_str()), (reason, expected));
    }
}
