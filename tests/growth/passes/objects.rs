//! Objects along a schema: each pass by itself, and all of a write.

use std::sync::{Arc, LazyLock};

use jiff::Timestamp;
use kubeskiff::author::{self, Catalog, CheckOptions, DefinedKind, diff};
use kubeskiff::crd::write::{self, Origin};
use kubeskiff::crd::{ServedVersion, conversion_review};
use kubeskiff::http::negotiate::{Transform, TransformKind};
use kubeskiff::http::query::IncludeObject;
use kubeskiff::http::table::{self, Columns};
use kubeskiff::meta::Status;
use kubeskiff::meta::field::{self, Path};
use kubeskiff::schema::structural::Structural;
use kubeskiff::schema::{coerce, correlate, default, list_type, prune, strict, validate};
use kubeskiff::types::decoder;
use kubeskiff::value::{Value, json};

use crate::inputs::{METADATA, SPECS, definition, fields, list, structural, value, widget};
use crate::pass::{Pass, pass};

const SIZE: usize = 15;

static SCHEMA: LazyLock<Structural> = LazyLock::new(structural);
static KIND: LazyLock<DefinedKind> =
    LazyLock::new(|| DefinedKind::new(&value(&definition(crate::inputs::SCHEMA))).expect("it is a definition"));

fn versions() -> &'static [Arc<ServedVersion>] {
    &KIND.versions
}

pub fn passes() -> Vec<Pass> {
    let mut passes = Vec::new();
    for (shape, spec) in SPECS {
        let object = move |size| value(&widget("", &spec(size)));
        let text = move |size| widget("", &spec(size));
        let pair = move |size| (object(size), object(size));
        let from_nothing = move |size| (object(size), value(&widget("", "{}")));
        passes.extend([
            pass("prune", shape, SIZE, object, |object| prune::prune(&mut object.clone(), &SCHEMA, true)),
            pass("default", shape, SIZE, object, |object| default::apply(&mut object.clone(), &SCHEMA)),
            pass(
                "drop nulls",
                shape,
                SIZE,
                move |size| value(&text(size).replace(":1", ":null")),
                |object| default::prune_non_nullable_nulls(&mut object.clone(), &SCHEMA),
            ),
            pass("coerce", shape, SIZE, object, |object| {
                coerce::coerce(&Path::ROOT, &mut object.clone(), &SCHEMA, false, false).is_ok()
            }),
            pass("validate", shape, SIZE, object, |object| validate::validate(&Path::ROOT, object, &SCHEMA)),
            pass("validate an update", shape, SIZE, pair, |(new, old)| {
                validate::validate_update(&Path::ROOT, new, old, &SCHEMA)
            }),
            pass("validate list types", shape, SIZE, object, |object| {
                list_type::validate(&Path::ROOT, object, &SCHEMA)
            }),
            pass("correlate", shape, SIZE, pair, |(new, old)| {
                correlate::Correlated::new(new, old, &SCHEMA).field("spec").is_some_and(|spec| spec.is_unchanged())
            }),
            pass("write a new object", shape, SIZE, object, create),
            pass("write a changed object", shape, SIZE, pair, update),
            pass("write over an empty object", shape, SIZE, from_nothing, update),
            pass("refuse", shape, SIZE, move |size| validate::validate(&Path::ROOT, &object(size), &SCHEMA), refuse),
            pass("strict faults in their order", shape, SIZE, text, |text| {
                let (mut object, duplicates) = json::decode_strict(text.as_bytes()).expect("the input is JSON");
                let unknown = prune::prune(&mut object, &SCHEMA, true);
                strict::in_document_order(
                    text.as_bytes(),
                    duplicates,
                    &decoder::Findings { unknown, ..Default::default() },
                )
            }),
            pass("check as an author", shape, SIZE, object, |object| {
                author::create(&KIND, object, CheckOptions::default())
            }),
            pass("replay", shape, SIZE, object, |object| diff::replay(&KIND, &KIND, object)),
            pass("conversion review", shape, SIZE, object, convert),
        ]);
    }
    for (shape, metadata) in METADATA {
        let object = move |size| value(&widget(&metadata(size), "{}"));
        let pair = move |size| (object(size), object(size));
        let from_nothing = move |size| (object(size), value(&widget("", "{}")));
        passes.extend([
            pass("write new metadata", shape, SIZE, object, create),
            pass("write changed metadata", shape, SIZE, pair, update),
            pass("write metadata over an empty object", shape, SIZE, from_nothing, update),
            pass("convert metadata", shape, SIZE, object, convert),
        ]);
    }
    passes.push(pass(
        "check as an author",
        "many objects of a schema as wide",
        100,
        |size| {
            let properties =
                (0..size).map(|at| format!(r#""p{at}":{{"type":"string"}}"#)).collect::<Vec<_>>().join(",");
            let items = format!(r#"{{"type":"array","items":{{"type":"object","properties":{{{properties}}}}}}}"#);
            let schema = format!(
                r#"{{"type":"object","properties":{{"spec":{{"type":"object","properties":{{"l":{items}}}}}}}}}"#
            );
            let object = value(&widget("", &format!(r#"{{"l":[{}]}}"#, vec![r#"{"p1":"a"}"#; size].join(","))));
            (DefinedKind::new(&value(&definition(&schema))).expect("it is a definition"), object)
        },
        |(kind, object)| author::create(kind, object, CheckOptions::default()),
    ));
    passes.extend(tables());
    passes.push(pass(
        "catalog",
        "many objects",
        SIZE,
        |size| vec![value(&widget("", "{}")); size],
        |objects| {
            let mut catalog = Catalog::default();
            _ = catalog.add(&value(&definition(crate::inputs::SCHEMA)));
            objects.iter().filter(|object| catalog.of(object).is_some()).count()
        },
    ));
    passes
}

fn create(object: &Value) -> field::ErrorList {
    let mut object = object.clone();
    if write::decode(&mut object, versions(), Origin::Request).is_err() {
        return field::ErrorList::default();
    }
    write::prepare_create(&versions()[0], &mut object);
    _ = write::warnings(&object, None);
    write::validate_create(&versions()[0], &object)
}

fn update((new, old): &(Value, Value)) -> field::ErrorList {
    let mut new = new.clone();
    if write::decode(&mut new, versions(), Origin::Request).is_err() {
        return field::ErrorList::default();
    }
    write::prepare_update(&versions()[0], &mut new, old);
    _ = write::warnings(&new, Some(old));
    write::validate_update(&versions()[0], &new, old, &mut Vec::new())
}

fn refuse(errors: &field::ErrorList) -> Vec<u8> {
    _ = errors.aggregate();
    json::encode(&Status::invalid("example.com", "Widget", "a", errors).to_value())
}

fn convert(object: &Value) -> bool {
    let review = conversion_review::Review {
        version: conversion_review::ConversionReviewVersion::V1,
        uid: "u",
        desired: "example.com/v2",
        object,
    };
    _ = review.request();
    let mut converted = object.clone();
    converted.make_object().insert("apiVersion", "example.com/v2".into());
    let answer = kubeskiff::object! {
        "apiVersion" => "apiextensions.k8s.io/v1",
        "kind" => "ConversionReview",
        "response" => kubeskiff::object! {
            "uid" => "u",
            "result" => kubeskiff::object! { "status" => "Success" },
            "convertedObjects" => vec![converted],
        },
    };
    review.response(&json::encode(&answer)).is_ok()
}

fn tables() -> Vec<Pass> {
    const V1: Transform = Transform { kind: TransformKind::Table, version: "v1" };
    let shapes: [(&str, &str); 5] = [
        ("a field", ".spec.text"),
        ("a list", ".spec.list"),
        ("all items", ".spec.list[*]"),
        ("everything below", "..name"),
        ("a filter", ".spec.items[?(@.name==\"n1\")].port"),
    ];
    let mut passes = Vec::new();
    for (shape, path) in shapes {
        let columns = move || {
            let column =
                kubeskiff::crd::Column { json_path: path.to_owned(), ..kubeskiff::crd::Column::string("c", "") };
            Columns::custom(&[column])
        };
        let many = move |size| {
            (columns(), vec![value(&widget("", r#"{"text":"x","list":["a"],"items":[{"name":"n1"}]}"#)); size])
        };
        let wide = move |size: usize| {
            let items = list(size, |at| format!(r#"{{"name":"n{at}","port":{at}}}"#));
            let list = list(size, |at| format!(r#""n{at}""#));
            (columns(), vec![value(&widget("", &format!(r#"{{"list":{list},"items":{items}}}"#)))])
        };
        fn rows((columns, objects): &(Columns, Vec<Value>)) -> Value {
            let now = Timestamp::UNIX_EPOCH;
            table::table(columns, V1, &Value::Null, objects.iter().cloned(), IncludeObject::Object, true, now)
        }
        passes.push(pass("table of many objects", shape, SIZE, many, rows));
        passes.push(pass("table of a wide object", shape, SIZE, wide, rows));
    }
    let labelled = |size: usize| {
        vec![value(&widget(&format!(r#""labels":{}"#, fields(5, |at| format!(r#""k{at}":"v""#))), "{}")); size]
    };
    passes.push(pass("partial metadata", "many objects", SIZE, labelled, |objects| {
        table::partial_list(&Value::Null, objects.iter().cloned(), V1)
    }));
    passes
}
