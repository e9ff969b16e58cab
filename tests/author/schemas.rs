//! The JSON Schemas for editors: they take what is right, and refuse what is not.

use std::fs;
use std::path::Path;

use kubeskiff::author;
use serde_json::Value;

use super::suites::SUITE;
use super::{BOATS, corpus};

/// What a schema of ours has against a text in YAML.
fn faults(schema: &str, text: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas").join(schema);
    let schema: Value = serde_json::from_slice(&fs::read(path).expect("the schema is there")).expect("it is JSON");
    let validator = jsonschema::draft7::new(&schema).expect("it is a schema");
    let value = kubeskiff::value::yaml::decode(text.as_bytes()).expect("the test is YAML");
    let value = serde_json::from_slice(&kubeskiff::value::json::encode(&value)).expect("it is JSON");
    validator.iter_errors(&value).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

#[test]
fn the_examples_are_definitions() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("crd-examples");
    for example in fs::read_dir(examples).expect("the examples are there") {
        let file = example.expect("the folder is readable").path().join("crd.yaml");
        let text = fs::read_to_string(&file).expect("the file is there");
        assert_eq!(faults("crd.json", &text), Vec::<String>::new(), "{}", file.display());
    }
    assert_eq!(faults("crd.json", BOATS), Vec::<String>::new());
}

#[test]
fn what_a_server_takes_of_the_corpus_is_a_definition() {
    let Some(corpus) = corpus::open() else { return };
    let (mut checked, mut found) = (0, Vec::new());
    for definition in &corpus.definitions {
        let checks = author::define(&corpus::converted(definition), None);
        // A strict server does not take what it has no name for.
        let is_taken = checks.is_ok_and(|checked| checked.errors.is_empty() && checked.unknown.is_empty());
        if is_taken {
            let name = &definition["metadata"]["name"];
            let faults = faults("crd.json", &definition.to_string());
            // Below `items` the server drops unknown keywords without a word; an editor tells them all the same.
            let is_dropped = |fault: &String| fault.contains("/items/") && fault.contains("Additional properties");
            found.extend(faults.iter().filter(|fault| !is_dropped(fault)).map(|fault| format!("{name}: {fault}")));
            checked += 1;
        }
    }
    assert_eq!(found, Vec::<String>::new());
    assert!(checked > 200, "only {checked} definitions");
}

#[test]
fn a_misspelled_keyword_is_a_fault() {
    let found = faults("crd.json", &BOATS.replace("maximum: 30", "max: 30"));
    assert_eq!(found.len(), 1);
    assert!(found[0].contains("properties/length") && found[0].contains("'max'"), "{found:?}");
}

#[test]
fn suites_are_checked() {
    assert_eq!(faults("suite.json", SUITE), Vec::<String>::new());
    let found = faults("suite.json", &SUITE.replace("expect:", "expects:"));
    assert!(!found.is_empty() && found.iter().all(|fault| fault.contains("'expects'")), "{found:?}");
}
