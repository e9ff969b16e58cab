//! What it costs to send a built-in object as protobuf and as a row of a table: a Deployment as its controller leaves
//! it, with three owners of fields.
//!
//!     cargo bench -p kubeskiff-engine --bench protobuf

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use kubeskiff_engine::apply::PASSED_ON;
use kubeskiff_engine::protobuf::ItemTexts;
use kubeskiff_engine::value::{Value, json};
use kubeskiff_engine::{kinds, object};

const ITEMS: usize = 500;

/// The stored text of the object.
fn deployment() -> Vec<u8> {
    json::encode(&json::decode(include_bytes!("deployment.json")).expect("the file is JSON"))
}

fn protobuf(criterion: &mut Criterion) {
    let text = deployment();
    let mut group = criterion.benchmark_group(format!("a Deployment of {} bytes", text.len()));
    group.bench_function("as protobuf", |bench| bench.iter(|| kinds::seal_text(black_box(&text))));
    group.bench_function("as protobuf, decoded first", |bench| {
        bench.iter(|| kinds::seal(&json::decode(black_box(&text)).unwrap_or_default()));
    });
    group.bench_function("as JSON in Go's order", |bench| bench.iter(|| kinds::layout::lay_out(text.clone())));
    let strategy = kinds::find("apps", "deployments").expect("it is built in").strategy;
    let table = strategy.table().expect("it has columns");
    group.bench_function("the cells of a row", |bench| {
        bench.iter(|| {
            let object = json::decode_leaving(black_box(&text), PASSED_ON).unwrap_or_default();
            ((table.cells)(&object), object)
        });
    });
    group.finish();
    let mut group = criterion.benchmark_group("a list of Deployments");
    group.throughput(Throughput::Elements(ITEMS as u64));
    let list = object! { "apiVersion" => "apps/v1", "kind" => "DeploymentList", "metadata" => object! {} };
    group.bench_function("as protobuf", |bench| {
        bench.iter(|| {
            let write = |_, out: &mut Vec<u8>| out.extend_from_slice(black_box(&text));
            kinds::seal_list(&list, ItemTexts { count: ITEMS, size_bytes: ITEMS * text.len(), write })
        });
    });
    group.bench_function("as protobuf, decoded first", |bench| {
        bench.iter(|| {
            let items = (0..ITEMS).map(|_| json::decode(black_box(&text)).unwrap_or_default());
            let mut list = list.clone();
            list.make_object().insert("items", Value::Array(items.collect()));
            kinds::seal(&list)
        });
    });
    group.finish();
}

criterion_group!(benches, protobuf);
criterion_main!(benches);
