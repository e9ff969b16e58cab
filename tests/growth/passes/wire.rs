//! Protobuf, built-in types, and what stands in the head of a request.

use std::sync::LazyLock;

use kubeskiff::crd::ServedVersion;
use kubeskiff::http::delete_options::DeleteOptions;
use kubeskiff::http::query::{ListOptions, Query, WriteOptions};
use kubeskiff::http::{negotiate, path};
use kubeskiff::kinds;
use kubeskiff::protobuf;
use kubeskiff::types::Message;
use kubeskiff::value::{Value, base64, json};

use crate::inputs::{METADATA, Make, Shape, fields, items, list, value};
use crate::pass::{Pass, pass};

const SIZE: usize = 40;

static PODS: LazyLock<ServedVersion> =
    LazyLock::new(|| kinds::find("", "pods").expect("it is built in").served_version());
static CONFIG_MAP: LazyLock<&Message> = LazyLock::new(|| kinds::type_of("v1", "ConfigMap").expect("it is built in"));

fn config_map(metadata: &str, data: &str) -> Value {
    value(&format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"a",{metadata}}},"data":{data}}}"#))
}

pub fn passes() -> Vec<Pass> {
    let mut passes = Vec::new();
    let data = |size: usize| fields(size, |at| format!(r#""k{at}":"v""#));
    let objects = METADATA.into_iter().map(|(shape, metadata)| {
        let object = move |size| config_map(&metadata(size), "{}");
        (shape, Box::new(object) as Make<Value>)
    });
    let wide = move |size| config_map(r#""uid":"u""#, &data(size));
    let objects = objects.chain([("many entries", Box::new(wide) as Make<Value>)]);
    for (shape, object) in objects {
        let object = std::sync::Arc::new(object);
        let make = || {
            let object = std::sync::Arc::clone(&object);
            move |size| object(size)
        };
        let (bytes, text) = (make(), make());
        passes.extend([
            pass("type decode", shape, SIZE, make(), |object| CONFIG_MAP.decode(object).is_ok()),
            pass("protobuf encode", shape, SIZE, make(), |object| {
                let (object, _) = CONFIG_MAP.decode(object).ok()?;
                Some(protobuf::encode(&CONFIG_MAP, &object))
            }),
            pass(
                "protobuf of a text",
                shape,
                SIZE,
                move |size| json::encode(&text(size)),
                |text| kinds::seal_text(text),
            ),
            pass(
                "protobuf decode",
                shape,
                SIZE,
                move |size| {
                    let (object, _) = CONFIG_MAP.decode(&bytes(size)).unwrap_or_default();
                    protobuf::encode(&CONFIG_MAP, &object)
                },
                |bytes| protobuf::decode(&CONFIG_MAP, bytes).is_ok(),
            ),
            pass("kind validate", shape, SIZE, make(), |object| {
                kinds::find("", "configmaps").map(|kind| kind.strategy.validate_create(&kind.served_version(), object))
            }),
            pass("fields in their order", shape, SIZE, make(), |object| {
                json::encode_as(object, kinds::layout::of(object))
            }),
        ]);
    }
    passes.extend(heads());
    passes
}

fn heads() -> Vec<Pass> {
    let of = |text: &'static str| move |size: usize| text.repeat(size);
    let queries: [Shape; 4] = [
        ("many parameters", |size| items(size, |at| format!("p{at}=1")).replace(',', "&")),
        ("one parameter many times", |size| "dryRun=All&".repeat(size)),
        ("escapes", |size| format!("labelSelector={}", "%61".repeat(size))),
        ("nothing but separators", |size| "&=;".repeat(size)),
    ];
    let mut passes = Vec::new();
    for (shape, text) in queries {
        passes.push(pass("query", shape, SIZE, text, |text| {
            let query = Query::parse(text);
            let listed = ListOptions::decode(&query).map(|mut options| options.validate(true));
            let deleted = DeleteOptions::decode(&query).map(|options| options.validate());
            (
                listed.is_ok(),
                deleted.is_ok(),
                WriteOptions::create(&query).is_ok(),
                WriteOptions::patch(&query, true).is_ok(),
            )
        }));
    }
    passes.extend([
        pass("request path", "slashes", SIZE, of("/"), |text| path::parse(text)),
        pass("request path", "parts", SIZE, of("/apis"), |text| path::parse(text)),
        pass("request path", "escapes", SIZE, |size| format!("/apis/{}", "%41".repeat(size)), |text| path::parse(text)),
        pass("accept header", "many types", SIZE, of("application/json;as=Table;v=v1;g=meta.k8s.io,"), |text| {
            negotiate::clauses(text).len()
        }),
        pass(
            "accept header",
            "many parameters",
            SIZE,
            |size| format!("application/json{}", ";a=b".repeat(size)),
            |text| negotiate::format(text, "", &Query::parse(""), negotiate::Endpoint::Custom).is_ok(),
        ),
        pass(
            "options in a body",
            "many dry runs",
            SIZE,
            |size| value(&format!(r#"{{"dryRun":{}}}"#, list(size, |_| r#""All""#.to_owned()))),
            |body| DeleteOptions::from_body(body, &PODS).map(|options| (options.validate().is_ok(), options.encode())),
        ),
        pass(
            "base64",
            "a long text",
            SIZE,
            |size| base64::encode("abc".repeat(size).as_bytes()),
            |text| base64::decode(text),
        ),
    ]);
    passes
}
