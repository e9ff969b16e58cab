//! What a write costs before rules: an object of 2 KB with some fifty fields through decode, prune, default, validate; and
//! one of 1 MiB with lists of thousands of items, whose validation stands beside its parsing.
//!
//!     cargo bench -p kubeskiff-engine --bench passes

use std::hint::black_box;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use kubeskiff_engine::meta::field::Path;
use kubeskiff_engine::schema::structural::Structural;
use kubeskiff_engine::schema::{convert, default, json_schema, list_type, prune, validate};
use kubeskiff_engine::value::{Value, json};

const FIELDS: usize = 6;
const CONTAINERS: usize = 5;

fn schema() -> Structural {
    let container = (0..FIELDS).map(|field| {
        format!(r#""field{field}":{{"type":"string","maxLength":80,"pattern":"^[a-z0-9-]+$","default":"none"}}"#)
    });
    let text = format!(
        r#"{{"type":"object","properties":{{"apiVersion":{{"type":"string"}},"kind":{{"type":"string"}},
            "metadata":{{"type":"object"}},
            "spec":{{"type":"object","required":["replicas"],"properties":{{
                "replicas":{{"type":"integer","minimum":0,"maximum":100}},
                "port":{{"x-kubernetes-int-or-string":true,"anyOf":[{{"type":"integer"}},{{"type":"string"}}]}},
                "mode":{{"type":"string","enum":["fast","safe"]}},
                "labels":{{"type":"object","additionalProperties":{{"type":"string"}}}},
                "containers":{{"type":"array","maxItems":16,"items":{{"type":"object","required":["name"],
                    "properties":{{"name":{{"type":"string"}},"ports":{{"type":"array","items":{{"type":"integer"}}}},{}}}}}}}
            }}}}}}}}"#,
        container.collect::<Vec<_>>().join(",")
    );
    let schema = json::decode(text.as_bytes()).expect("the schema is JSON");
    convert::to_structural(&json_schema::decode(&schema).expect("the schema decodes").0).expect("it is structural")
}

fn object() -> Vec<u8> {
    let container = |number: usize| {
        let fields =
            (0..FIELDS).map(|field| format!(r#""field{field}":"some-value-that-is-{number}-long-enough-to-count""#));
        let fields = fields.collect::<Vec<_>>().join(",");
        format!(r#"{{"name":"container-{number}","ports":[80,443,8080],{fields}}}"#)
    };
    let containers = (0..CONTAINERS).map(container).collect::<Vec<_>>().join(",");
    format!(
        r#"{{"apiVersion":"example.com/v1","kind":"Widget","metadata":{{"name":"a","namespace":"default"}},
            "spec":{{"replicas":3,"port":"http","mode":"fast","labels":{{"app":"a","tier":"b","zone":"c"}},
            "containers":[{containers}]}}}}"#
    )
    .into_bytes()
}

fn passes(criterion: &mut Criterion) {
    let (schema, bytes) = (schema(), object());
    let decoded = json::decode(&bytes).expect("the object is JSON");
    let mut group = criterion.benchmark_group(format!("{} bytes", bytes.len()));
    group.bench_function("decode", |bench| bench.iter(|| json::decode(black_box(&bytes))));
    let copy = || decoded.clone();
    group.bench_function("prune", |bench| {
        bench.iter_batched_ref(copy, |value| prune::prune(value, &schema, true), BatchSize::SmallInput);
    });
    group.bench_function("default", |bench| {
        bench.iter_batched_ref(copy, |value| default::apply(value, &schema), BatchSize::SmallInput);
    });
    group.bench_function("validate", |bench| {
        bench.iter(|| validate::validate(&Path::ROOT, black_box(&decoded), &schema));
    });
    group.bench_function("all", |bench| bench.iter(|| write(&bytes, &schema)));
    group.finish();
}

fn write(bytes: &[u8], schema: &Structural) -> Value {
    let mut value = json::decode(black_box(bytes)).expect("the object is JSON");
    prune::prune(&mut value, schema, true);
    _ = default::apply(&mut value, schema);
    assert!(validate::validate(&Path::ROOT, &value, schema).is_empty(), "the object is valid");
    value
}

/// An object of 1 MiB: a set and a map list of some thousand items each.
fn large() -> (Structural, Vec<u8>) {
    const ITEMS: usize = 8_000;
    let schema = r#"{"type":"object","properties":{"apiVersion":{"type":"string"},"kind":{"type":"string"},
        "metadata":{"type":"object"},"spec":{"type":"object","properties":{
            "names":{"type":"array","maxItems":10000,"x-kubernetes-list-type":"set","items":{"type":"string","maxLength":80}},
            "ports":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name","port"],
                "items":{"type":"object","required":["name","port"],"properties":{
                    "name":{"type":"string","pattern":"^[a-z0-9-]+$"},"port":{"type":"integer","minimum":1,"maximum":65535},
                    "mode":{"type":"string","enum":["fast","safe"]}}}}}}}}"#;
    let schema = json::decode(schema.as_bytes()).expect("the schema is JSON");
    let schema = convert::to_structural(&json_schema::decode(&schema).expect("the schema decodes").0);
    let names = (0..ITEMS).map(|at| format!(r#""a-name-that-is-long-enough-to-make-a-mebibyte-{at}""#));
    let ports =
        (0..ITEMS).map(|at| format!(r#"{{"name":"port-number-{at}-of-so-many","port":{},"mode":"safe"}}"#, at + 1));
    let text = format!(
        r#"{{"apiVersion":"example.com/v1","kind":"Widget","metadata":{{"name":"a"}},"spec":{{"names":[{}],"ports":[{}]}}}}"#,
        names.collect::<Vec<_>>().join(","),
        ports.collect::<Vec<_>>().join(",")
    );
    (schema.expect("it is structural"), text.into_bytes())
}

fn large_passes(criterion: &mut Criterion) {
    let (schema, bytes) = large();
    let decoded = json::decode(&bytes).expect("the object is JSON");
    let mut group = criterion.benchmark_group(format!("{} bytes", bytes.len()));
    group.sample_size(20);
    group.bench_function("decode", |bench| bench.iter(|| json::decode(black_box(&bytes))));
    group.bench_function("validate and list types", |bench| {
        bench.iter(|| {
            let value = black_box(&decoded);
            let errors = validate::validate(&Path::ROOT, value, &schema);
            (errors, list_type::validate(&Path::ROOT, value, &schema))
        });
    });
    group.finish();
}

criterion_group!(benches, passes, large_passes);
criterion_main!(benches);
