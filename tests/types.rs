//! The types of `schemas/types`, held to the facts of the published Go modules that stand beside the project: they were
//! read by another program.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::beside;

/// How many types are compared, of those that `schemas/types` has: the others have no fields, or are of other modules.
const COMPARED_MIN: usize = 1_400;

/// What both say of a field.
#[derive(Debug, PartialEq, Eq)]
struct Field {
    json: String,
    number: String,
    omitempty: bool,
    patch_strategy: Option<String>,
    merge_key: Option<String>,
    list_type: Option<String>,
    map_type: Option<String>,
}

#[test]
fn the_types_are_those_of_the_published_modules() {
    let Some(facts) = beside::TYPES.read() else { return };
    let facts: BTreeMap<(&str, &str), &Value> =
        facts.iter().map(|fact| ((text(fact, "package"), text(fact, "type")), fact)).collect();
    let mut compared = 0;
    for (package, name, fields) in types() {
        let Some(fact) = facts.get(&(package.as_str(), name.as_str())) else { continue };
        let expected: Vec<Field> = fact["fields"].as_array().into_iter().flatten().filter_map(published).collect();
        assert_eq!(fields, expected, "{package} {name}");
        compared += 1;
    }
    assert!(compared >= COMPARED_MIN, "only {compared} types were compared");
}

/// Each type of `schemas/types`: its package, its name and its fields.
fn types() -> Vec<(String, String, Vec<Field>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas/types");
    let mut types = Vec::new();
    for entry in fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("the folder is readable").path();
        let source = fs::read_to_string(&path).expect("the file is text");
        let (head, rest) = source.split_once("\ntype ").expect("a package has types");
        let package = head.trim_start_matches("# ").split(',').next().unwrap_or_default();
        // This package is not read and written as JSON says.
        if package.ends_with("/runtime") {
            continue;
        }
        for block in rest.split("\ntype ") {
            let name = block.split([' ', '\n']).next().unwrap_or_default();
            let fields = block.lines().filter_map(|line| line.strip_prefix('\t')).filter_map(ours).collect();
            types.push((package.to_owned(), name.to_owned(), fields));
        }
    }
    types
}

/// A line of `schemas/types`; `None` for a field without a name in JSON.
fn ours(line: &str) -> Option<Field> {
    let words: Vec<&str> = line.split(' ').collect();
    let word = |name: &str| words.iter().find_map(|word| word.strip_prefix(name)).map(str::to_owned);
    let [json, _, number, ..] = words.as_slice() else { return None };
    (*json != "-").then(|| Field {
        json: (*json).to_owned(),
        number: (*number).to_owned(),
        omitempty: words.contains(&"omitempty"),
        patch_strategy: word("patch="),
        merge_key: word("key="),
        list_type: word("list="),
        map_type: word("map="),
    })
}

/// A fact of a field; `None` for one without a name in JSON.
fn published(field: &Value) -> Option<Field> {
    let markers = &field["markers"];
    let list_type = match markers["listType"].as_str() {
        Some("map") => Some(format!("map({})", text(markers, "listMapKey"))),
        other => other.map(str::to_owned),
    };
    let owned = |value: &Value| value.as_str().map(str::to_owned);
    Some(Field {
        json: owned(&field["name"]).filter(|name| name != "-")?,
        number: field["number"].as_u64().map_or("-".to_owned(), |number| number.to_string()),
        omitempty: text(field, "omit").contains("omitempty"),
        patch_strategy: owned(&field["patchStrategy"]),
        merge_key: owned(&field["patchMergeKey"]),
        list_type,
        map_type: owned(&markers["mapType"]),
    })
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}
