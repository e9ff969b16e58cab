//! What rules cost: compiling one, and running those of an object, also in the `cel` crate.
//!
//!     cargo bench --no-default-features --bench rules

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use kubeskiff::schema::rules::Rules;
use kubeskiff::schema::structural::Structural;
use kubeskiff::schema::{convert, json_schema};
use kubeskiff::value::{Value, json};

const ITEMS: usize = 100;

const RULES: [(&str, &str); 5] = [
    ("compare two fields", "self.replicas <= self.maxReplicas"),
    ("look at 100 items", "self.replicas <= self.maxReplicas && self.list.all(x, x.size() < 10)"),
    ("map 100 items", "self.list.map(x, x.size()).sum() < 1000"),
    ("match 100 items", "self.list.all(x, x.matches('^item-[0-9]+$'))"),
    ("find one of 100 entries", "self.entries.exists(e, e.name == 'name-99' && has(e.port) && e.port > 0)"),
];

fn schema(rule: &str) -> Structural {
    let text = format!(
        r#"{{"type":"object","properties":{{
            "replicas":{{"type":"integer"}},"maxReplicas":{{"type":"integer"}},
            "list":{{"type":"array","maxItems":100,"items":{{"type":"string","maxLength":20}}}},
            "entries":{{"type":"array","maxItems":100,"items":{{"type":"object","properties":{{
                "name":{{"type":"string","maxLength":20}},"port":{{"type":"integer"}}}}}}}}}},
            "x-kubernetes-validations":[{{"rule":{}}}]}}"#,
        json::encode_to_string(&Value::from(rule))
    );
    let schema = json::decode(text.as_bytes()).expect("the schema is JSON");
    convert::to_structural(&json_schema::decode(&schema).expect("the schema decodes").0).expect("it is structural")
}

fn object() -> Value {
    let list: Vec<String> = (0..ITEMS).map(|number| format!(r#""item-{number}""#)).collect();
    let entries: Vec<String> =
        (0..ITEMS).map(|number| format!(r#"{{"name":"name-{number}","port":{}}}"#, number + 1)).collect();
    let text =
        format!(r#"{{"replicas":3,"maxReplicas":5,"list":[{}],"entries":[{}]}}"#, list.join(","), entries.join(","));
    json::decode(text.as_bytes()).expect("the object is JSON")
}

fn rules(criterion: &mut Criterion) {
    let object = object();
    let mut group = criterion.benchmark_group("run");
    for (name, rule) in RULES {
        let rules = Rules::compile(&schema(rule), false);
        assert!(rules.check(&object, None, None).errors.is_empty(), "{rule} holds");
        group.bench_function(name, |bench| bench.iter(|| rules.check(black_box(&object), None, None)));
    }
    group.finish();
    let mut group = criterion.benchmark_group("compile");
    for (name, rule) in RULES {
        let schema = schema(rule);
        group.bench_function(name, |bench| bench.iter(|| Rules::compile(black_box(&schema), false)));
    }
    group.finish();
}

/// The `cel` crate with the same rules; what it doesn't know is left out. It neither checks nor prices what it compiles.
fn another_interpreter(criterion: &mut Criterion) {
    let object: serde_json::Value = serde_json::from_slice(&json::encode(&object())).expect("what is written is JSON");
    let mut context = cel::Context::default();
    context.add_variable("self", object).expect("the object is a value there");
    let known: Vec<(&str, &str, cel::Program)> = RULES
        .into_iter()
        .filter_map(|(name, rule)| Some((name, rule, cel::Program::compile(rule).ok()?)))
        .filter(|(_, _, program)| program.execute(&context).is_ok())
        .collect();
    let mut group = criterion.benchmark_group("run in the cel crate");
    for (name, _, program) in &known {
        group.bench_function(*name, |bench| bench.iter(|| program.execute(black_box(&context))));
    }
    group.finish();
    let mut group = criterion.benchmark_group("compile in the cel crate");
    for (name, rule, _) in &known {
        group.bench_function(*name, |bench| bench.iter(|| cel::Program::compile(black_box(rule))));
    }
    group.finish();
}

criterion_group!(benches, rules, another_interpreter);
criterion_main!(benches);
