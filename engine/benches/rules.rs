//! What rules cost: compiling one, and running those of an object, also in the `cel` crate; and the same for all rules of
//! the corpus where that is at hand, in `../shared/corpus` beside the project.
//!
//!     cargo bench -p kubeskiff-engine --bench rules

use std::fs::File;
use std::hint::black_box;
use std::io::{BufRead as _, BufReader};
use std::path::Path as FilePath;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use flate2::read::GzDecoder;
use kubeskiff_engine::meta::field::Path;
use kubeskiff_engine::schema::rules::{CostLimits, Rules, any};
use kubeskiff_engine::schema::structural::Structural;
use kubeskiff_engine::schema::{convert, json_schema};
use kubeskiff_engine::value::{Value, json};

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

/// A version of a definition with rules, and the objects that the corpus has of it.
struct Kind {
    schema: Structural,
    objects: Vec<Value>,
}

/// The lines of a file of the corpus; none where it is not there.
fn lines(name: &str) -> Vec<Value> {
    let path = FilePath::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/corpus").join(name);
    let Ok(file) = File::open(&path) else { return Vec::new() };
    let lines = BufReader::new(GzDecoder::new(file)).lines();
    lines.map(|line| json::decode(line.expect("the file is text").as_bytes()).expect("each line is JSON")).collect()
}

fn kinds() -> Vec<Kind> {
    let objects = lines("crs.jsonl.gz");
    let mut kinds = Vec::new();
    for case in lines("crds.jsonl.gz").iter().filter(|case| case.get("mutation").is_none()) {
        for version in case.at(&["crd", "spec", "versions"]).and_then(Value::as_array).into_iter().flatten() {
            let Some(schema) = version.at(&["schema", "openAPIV3Schema"]) else { continue };
            let Ok((schema, _)) = json_schema::decode(schema) else { continue };
            let Ok(schema) = convert::to_structural(&schema) else { continue };
            if !any(&schema) {
                continue;
            }
            let api_version = format!("{}/{}", case.str_at(&["crd", "spec", "group"]), version.str_at(&["name"]));
            let kind = case.str_at(&["crd", "spec", "names", "kind"]);
            let is_of_kind =
                |object: &&Value| object.str_at(&["apiVersion"]) == api_version && object.str_at(&["kind"]) == kind;
            let objects = objects.iter().filter_map(|case| case.get("object")).filter(is_of_kind).cloned().collect();
            kinds.push(Kind { schema, objects });
        }
    }
    kinds
}

/// How many rules stand in `schema`.
fn count(schema: &Structural) -> usize {
    let values = schema.additional_properties.as_ref().and_then(|values| values.structural());
    let below = schema.properties.values().chain(schema.items.as_deref()).chain(values);
    schema.validations.len() + below.map(count).sum::<usize>()
}

/// One round compiles all rules of the corpus, or runs those of all its objects.
fn corpus(criterion: &mut Criterion) {
    let kinds = kinds();
    if kinds.is_empty() {
        eprintln!("left out: the corpus is not there");
        return;
    }
    let mut group = criterion.benchmark_group("corpus");
    group.sample_size(10);
    group.throughput(Throughput::Elements(kinds.iter().map(|kind| count(&kind.schema) as u64).sum()));
    group.bench_function("compile, per rule", |bench| {
        bench.iter(|| {
            for kind in &kinds {
                black_box(Rules::compile(&kind.schema, true));
            }
        });
    });
    let compiled: Vec<(Rules, &[Value])> =
        kinds.iter().map(|kind| (Rules::compile(&kind.schema, true), kind.objects.as_slice())).collect();
    let mut runs = 0;
    for (rules, objects) in &compiled {
        for object in *objects {
            rules.evaluate(&Path::ROOT, object, None, None, CostLimits::default(), &mut |_| runs += 1);
        }
    }
    group.throughput(Throughput::Elements(runs));
    group.bench_function("run, per evaluation", |bench| {
        bench.iter(|| {
            for (rules, objects) in &compiled {
                for object in *objects {
                    black_box(rules.check(object, None, None));
                }
            }
        });
    });
    group.finish();
}

criterion_group!(benches, rules, another_interpreter, corpus);
criterion_main!(benches);
