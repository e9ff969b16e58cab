//! The largest definitions of the corpus.

use kubeskiff::value::{json, yaml};

use crate::beside::DEFINITIONS;

/// The texts of the largest definitions, in YAML.
pub fn largest() -> Option<Vec<String>> {
    let mut definitions: Vec<String> = DEFINITIONS.read()?.iter().map(|line| line["crd"].to_string()).collect();
    definitions.sort_by_key(|text| std::cmp::Reverse(text.len()));
    let yaml = |text: &String| yaml::encode(&json::decode(text.as_bytes()).expect("it is JSON"));
    Some(definitions.iter().take(10).map(yaml).collect())
}
