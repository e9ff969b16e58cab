//! What server-side apply costs: of an object of 2 KB, and of one of 200 KB with a list of a thousand keyed items.
//!
//!     cargo bench -p kubeskiff-engine --bench apply
//!
//! Goals, CPU alone: 60 µs and 10 ms.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use kubeskiff_engine::apply::{ConvertError, FieldManager, ResetFields, TypeSchema, Versions};
use kubeskiff_engine::meta::minor::Minor;
use kubeskiff_engine::schema::{convert, json_schema};
use kubeskiff_engine::value::{Value, json};

const VERSION: &str = "example.com/v1";
const BEFORE: &str = "2026-01-01T00:00:00Z";
const NOW: &str = "2026-01-01T00:00:05Z";

struct OneVersion(TypeSchema);

impl Versions for OneVersion {
    fn types(&self, api_version: &str) -> Option<&TypeSchema> {
        (api_version == VERSION).then_some(&self.0)
    }

    fn convert(&self, _: &Value, _: &str) -> Result<Value, ConvertError> {
        Err(ConvertError::MissingVersion)
    }
}

fn types() -> TypeSchema {
    let text = r#"{"type":"object","properties":{"spec":{"type":"object","properties":{"items":{"type":"array",
        "x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name"],"items":{"type":"object","properties":{
            "name":{"type":"string"},"port":{"type":"integer"},"image":{"type":"string"},"text":{"type":"string"},
            "labels":{"type":"object","additionalProperties":{"type":"string"}}}}}}}}}"#;
    let schema = json::decode(text.as_bytes()).expect("the schema is JSON");
    let (schema, _) = json_schema::decode(&schema).expect("the schema decodes");
    TypeSchema::of_custom_resource(&convert::to_structural(&schema).expect("it is structural"), false)
}

/// Some 200 bytes per item; every second one has another port than with another `port`.
fn object(items: usize, port: usize) -> Value {
    let item = |number: usize| {
        let port = if number.is_multiple_of(2) { 8080 } else { port };
        format!(
            r#"{{"name":"item-{number:04}","port":{port},"image":"registry/application-{number:04}:1.2.3",
                "text":"some-value-that-is-{number}-long-enough-to-count-as-one-of-many",
                "labels":{{"app":"application-{number}","tier":"backend","zone":"c"}}}}"#
        )
    };
    let items: Vec<String> = (0..items).map(item).collect();
    let text = format!(
        r#"{{"apiVersion":"{VERSION}","kind":"Widget","metadata":{{"name":"a","namespace":"default"}},
            "spec":{{"items":[{}]}}}}"#,
        items.join(",")
    );
    json::decode(text.as_bytes()).expect("the object is JSON")
}

fn apply(criterion: &mut Criterion) {
    let (versions, reset_fields) = (OneVersion(types()), ResetFields::default());
    let manager = FieldManager {
        minor: Minor::NEWEST,
        versions: &versions,
        version: VERSION,
        kind: "Widget",
        subresource: "",
        reset_fields: &reset_fields,
    };
    for items in [10, 1_000] {
        let (first, second) = (object(items, 80), object(items, 443));
        let live = manager.apply(None, &first, "one", false, BEFORE).expect("nobody owns it yet").object;
        let bytes = json::encode_to_string(&first).len();
        let mut group = criterion.benchmark_group(format!("apply of {bytes} bytes"));
        group.bench_function("no change", |bench| {
            bench.iter(|| manager.apply(Some(black_box(&live)), black_box(&first), "one", false, NOW));
        });
        group.bench_function("half of the items change", |bench| {
            bench.iter(|| manager.apply(Some(black_box(&live)), black_box(&second), "one", false, NOW));
        });
        group.bench_function("taken from another manager", |bench| {
            bench.iter(|| manager.apply(Some(black_box(&live)), black_box(&second), "two", true, NOW));
        });
        group.bench_function("conflicts", |bench| {
            bench.iter(|| manager.apply(Some(black_box(&live)), black_box(&second), "two", false, NOW));
        });
        group.finish();
    }
}

criterion_group!(benches, apply);
criterion_main!(benches);
