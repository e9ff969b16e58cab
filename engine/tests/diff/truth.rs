//! Made-up definitions, changed and asked.

use kubeskiff_engine::author::diff::{DefinitionChange, Degree, diff, refused, replay};
use kubeskiff_engine::author::{CheckOptions, DefinedKind, create};
use kubeskiff_engine::value::{self, json};
use serde_json::{Value, json as written};

use super::generator::Generator;

/// How many pairs of definitions, and how many objects for each.
const PAIRS: u64 = 2_000;
const OBJECTS: usize = 8;

/// The engine's value.
pub fn converted(value: &Value) -> value::Value {
    json::decode(value.to_string().as_bytes()).expect("it is JSON")
}

fn definition(spec: &Value) -> Value {
    let schema = written!({"type": "object", "properties": {"spec": spec}});
    written!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "boats.harbour.example.com"},
        "spec": {
            "group": "harbour.example.com",
            "scope": "Namespaced",
            "names": {"plural": "boats", "singular": "boat", "kind": "Boat", "listKind": "BoatList"},
            "versions": [
                {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}
            ],
        },
    })
}

/// Why an object that the old kind takes says that not all is safe; `None` if it comes through.
pub fn harm(old: &DefinedKind, new: &DefinedKind, object: &value::Value) -> Option<String> {
    let before = create(old, object, CheckOptions::default());
    if !before.errors.is_empty() {
        return None;
    }
    // What is dropped was never there.
    let stored = if before.unknown.is_empty() { object } else { &before.object };
    let replayed = replay(old, new, stored);
    let harm: Vec<String> =
        replayed.errors.into_iter().chain(replayed.lost.into_iter().map(|lost| format!("{lost} is lost"))).collect();
    (!harm.is_empty()).then(|| format!("{}: {}", json::encode_to_string(stored), harm.join("; ")))
}

/// Whether all `changes` are called safe; with none there is nothing to be told at all.
pub fn are_safe(changes: &[DefinitionChange]) -> bool {
    changes.iter().all(|change| change.degree == Degree::Safe)
}

/// The kind, unless the server refuses its definition.
fn kind(spec: &Value) -> Option<DefinedKind> {
    DefinedKind::new(&converted(&definition(spec))).ok().filter(|kind| kind.errors.is_empty())
}

#[test]
fn what_is_called_safe_harms_no_object() {
    let (mut compared, mut asked, mut false_safe) = (0, 0, Vec::new());
    for seed in 1..=PAIRS {
        let mut generator = Generator::new(seed);
        let spec = generator.object_schema(3);
        let mut changed = spec.clone();
        generator.change(&mut changed);
        let (Some(old), Some(new)) = (kind(&spec), kind(&changed)) else { continue };
        compared += 1;
        let changes = diff(&old, &new);
        if !are_safe(&changes) || !refused(Some(&old), &new).is_empty() {
            continue;
        }
        for _ in 0..OBJECTS {
            let object = written!({
                "apiVersion": "harbour.example.com/v1",
                "kind": "Boat",
                "metadata": {"name": "a"},
                "spec": generator.value(&spec, 3),
            });
            asked += 1;
            if let Some(harm) = harm(&old, &new, &converted(&object)) {
                false_safe.push(format!("{seed}: {spec}\n  became {changed}\n  {changes:?}\n  {harm}"));
                break;
            }
        }
    }
    println!("{compared} pairs, {asked} objects of those that are called safe");
    assert!(
        false_safe.is_empty(),
        "{} of {compared}:\n{}",
        false_safe.len(),
        false_safe[..false_safe.len().min(12)].join("\n")
    );
    assert!(compared > PAIRS / 4 && asked > 1_000, "{compared} pairs, {asked} objects");
}
