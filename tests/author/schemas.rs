//! The JSON Schemas for editors: they take what is right, and refuse what is not.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::BOATS;
use super::suites::SUITE;

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
fn a_misspelled_keyword_is_a_fault() {
    let found = faults("crd.json", &BOATS.replace("maximum:", "max:"));
    assert_eq!(found.len(), 1);
    assert!(found[0].contains("properties/length") && found[0].contains("'max'"), "{found:?}");
}

#[test]
fn suites_are_checked() {
    assert_eq!(faults("suite.json", SUITE), Vec::<String>::new());
    let found = faults("suite.json", &SUITE.replace("expect:", "expects:"));
    assert!(!found.is_empty() && found.iter().all(|fault| fault.contains("'expects'")), "{found:?}");
}
