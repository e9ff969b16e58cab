//! The corpus offline: the verdicts are those that a real server of 1.37 gave.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use flate2::read::GzDecoder;
use kubeskiff::author::{self, Kind, Options};
use kubeskiff::value;
use serde_json::Value;

#[test]
fn offline_verdicts_are_those_of_the_server() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus");
    if !folder.is_dir() {
        eprintln!("left out: the corpus is not there");
        return;
    }
    let definitions = lines(&folder.join("crds.jsonl.gz"));
    let definitions = definitions.iter().filter(|case| case.get("mutation").is_none());
    let kinds: BTreeMap<&str, Kind> = definitions
        .filter_map(|case| Some((case["name"].as_str()?, Kind::new(&converted(&case["crd"])).ok()?)))
        .collect();
    let mut equal = 0;
    let mut different = Vec::new();
    for case in lines(&folder.join("crs.jsonl.gz")) {
        let Some(kind) = case["crd"].as_str().and_then(|name| kinds.get(name)) else { continue };
        match difference(kind, &case) {
            None => equal += 1,
            Some(why) => different.push(format!("{}: {why}", case["name"])),
        }
    }
    println!("corpus offline: {equal} verdicts equal, {} different", different.len());
    let shown = different.iter().take(20).map(String::as_str).collect::<Vec<_>>().join("\n");
    assert!(different.is_empty(), "{shown}");
    assert!(equal > 1000, "only {equal} objects");
}

fn difference(kind: &Kind, case: &Value) -> Option<String> {
    let (expected, object) = (&case["expect"], converted(&case["object"]));
    let queries = case["query"].to_string();
    let checked = match case["method"].as_str() {
        Some("PUT") => author::update(kind, &object, &converted(&case["old"]), Options::default()),
        _ => author::create(kind, &object, Options::default()),
    };
    let is_strict = queries.contains("Strict");
    let code = expected["code"].as_i64()?;
    let errors: BTreeSet<(String, String)> =
        checked.errors.iter().map(|found| (found.error.field.clone(), found.error.body())).collect();
    match code {
        200 | 201 if errors.is_empty() && (checked.unknown.is_empty() || !is_strict) => None,
        400 if is_strict && !checked.unknown.is_empty() => None,
        400 if !errors.is_empty() => None,
        422 => {
            let causes = expected["status"]["details"]["causes"].as_array();
            let text = |cause: &Value, name: &str| cause[name].as_str().unwrap_or_default().to_owned();
            let wanted: BTreeSet<(String, String)> =
                causes.into_iter().flatten().map(|cause| (text(cause, "field"), text(cause, "message"))).collect();
            let masked = |set: &BTreeSet<(String, String)>| -> BTreeSet<(String, String)> {
                set.iter().map(|(field, message)| (field.clone(), without_digits(message))).collect()
            };
            (masked(&wanted) != masked(&errors)).then(|| format!("wanted {wanted:?}, got {errors:?}"))
        }
        code => Some(format!("wanted {code}, got {errors:?}, unknown {:?}", checked.unknown)),
    }
}

/// The name of an object's type in messages about rules holds the time of its making.
fn without_digits(message: &str) -> String {
    match message.contains("selfType") {
        true => message.chars().filter(|character| !character.is_ascii_digit()).collect(),
        false => message.to_owned(),
    }
}

fn converted(value: &Value) -> value::Value {
    value::json::decode(value.to_string().as_bytes()).expect("it came from JSON")
}

fn lines(path: &Path) -> Vec<Value> {
    let lines = BufReader::new(GzDecoder::new(File::open(path).expect("the corpus is there"))).lines();
    lines.map(|line| serde_json::from_str(&line.expect("it is text")).expect("a case is JSON")).collect()
}
