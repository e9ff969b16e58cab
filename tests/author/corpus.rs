//! The corpus offline: the verdicts are those that a real server of 1.37 gave.

use std::collections::{BTreeMap, BTreeSet};

use kubeskiff::author::{self, CheckOptions, Checked, DefinedKind};
use kubeskiff::value;
use serde_json::Value;

use crate::beside::{DEFINITIONS, OBJECTS};

/// Real definitions and objects, with what a real server said of them.
pub struct Corpus {
    /// By the names of their definitions.
    pub kinds: BTreeMap<String, DefinedKind>,
    /// The definitions as they were written.
    pub definitions: Vec<Value>,
    pub cases: Vec<Value>,
}

/// The corpus; `None` where it is not there, which is then told.
pub fn open() -> Option<Corpus> {
    let (definitions, cases) = (DEFINITIONS.read()?, OBJECTS.read()?);
    let definitions = definitions.into_iter().filter(|case| case.get("mutation").is_none());
    let definitions: Vec<Value> = definitions.map(|mut case| case["crd"].take()).collect();
    let name = |definition: &Value| Some(definition["metadata"]["name"].as_str()?.to_owned());
    let kinds = definitions
        .iter()
        .filter_map(|found| Some((name(found)?, DefinedKind::new(&converted(found)).ok()?)))
        .collect();
    Some(Corpus { kinds, definitions, cases })
}

#[test]
fn offline_verdicts_are_those_of_the_server() {
    let Some(corpus) = open() else { return };
    let mut equal = 0;
    let mut different = Vec::new();
    for case in &corpus.cases {
        let Some(kind) = case["crd"].as_str().and_then(|name| corpus.kinds.get(name)) else { continue };
        match difference(kind, case) {
            None => equal += 1,
            Some(why) => different.push(format!("{}: {why}", case["name"])),
        }
    }
    println!("corpus offline: {equal} verdicts equal, {} different", different.len());
    let shown = different.iter().take(20).map(String::as_str).collect::<Vec<_>>().join("\n");
    assert!(different.is_empty(), "{shown}");
    assert!(equal > 1000, "only {equal} objects");
}

fn difference(kind: &DefinedKind, case: &Value) -> Option<String> {
    let (expected, object) = (&case["expect"], converted(&case["object"]));
    let is_update = case["method"] == "PUT";
    let checked = if is_update {
        author::update(kind, &object, &converted(&case["old"]), CheckOptions::default())
    } else {
        author::create(kind, &object, CheckOptions::default())
    };
    let is_strict = case["query"].to_string().contains("Strict");
    let unknown: Vec<String> = checked.unknown.iter().map(|path| format!("unknown field \"{path}\"")).collect();
    let message = expected["status"]["message"].as_str().unwrap_or_default();
    let code = expected["code"].as_i64()?;
    let verdict = match code {
        200 | 201 if checked.errors.is_empty() && (unknown.is_empty() || !is_strict) => {
            difference_of_objects(kind, &expected["object"], &checked)
        }
        400 if is_strict && !unknown.is_empty() => {
            (!message.ends_with(&unknown.join(", "))).then(|| format!("wanted {message}, got {unknown:?}"))
        }
        400 if !checked.errors.is_empty() => {
            let detail = &checked.errors[0].error.detail;
            (!message.contains(detail)).then(|| format!("wanted {message}, got {detail}"))
        }
        422 => difference_of_errors(&expected["status"]["details"]["causes"], &checked),
        code => Some(format!("wanted {code}, got {:?}, unknown {unknown:?}", checked.errors)),
    };
    verdict.or_else(|| {
        let ratcheted = checked.ratcheted.iter().map(ToString::to_string);
        let told: BTreeSet<String> = match code {
            // Nothing else is looked at behind a reader's refusal.
            400 => kind.served(&object).and_then(|version| version.deprecation_warning.clone()).into_iter().collect(),
            _ if is_strict => checked.warnings.into_iter().chain(ratcheted).collect(),
            _ => unknown.into_iter().chain(checked.warnings).chain(ratcheted).collect(),
        };
        let wanted = expected["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let wanted: BTreeSet<String> = wanted.map(str::to_owned).collect();
        (told != wanted).then(|| format!("wanted the warnings {wanted:?}, got {told:?}"))
    })
}

fn difference_of_errors(causes: &Value, checked: &Checked) -> Option<String> {
    let text = |cause: &Value, name: &str| cause[name].as_str().unwrap_or_default().to_owned();
    let causes = causes.as_array().into_iter().flatten();
    let wanted: BTreeSet<_> = causes
        .map(|cause| (text(cause, "reason"), text(cause, "field"), without_digits(&text(cause, "message"))))
        .collect();
    let errors = checked.errors.iter().map(|found| &found.error);
    let found: BTreeSet<_> = errors
        .map(|error| (error.kind.reason().to_owned(), error.field.clone(), without_digits(&error.body())))
        .collect();
    (wanted != found).then(|| format!("wanted {wanted:?}, got {found:?}"))
}

/// What a server alone knows is left out, and the status, where an object can't change it.
fn difference_of_objects(kind: &DefinedKind, wanted: &Value, checked: &Checked) -> Option<String> {
    let has_status_apart = kind.served(&checked.object).is_some_and(|version| version.status);
    let bare = |object: &value::Value| {
        let mut object: Value = serde_json::from_slice(&value::json::encode(object)).expect("it is JSON");
        if has_status_apart {
            object.as_object_mut()?.remove("status");
        }
        let metadata = object["metadata"].as_object_mut()?;
        let of_server =
            ["creationTimestamp", "generation", "managedFields", "namespace", "resourceVersion", "selfLink", "uid"];
        of_server.iter().for_each(|name| _ = metadata.remove(*name));
        if metadata.contains_key("generateName") {
            metadata.remove("name");
        }
        Some(object)
    };
    let (wanted, found) = (bare(&converted(wanted)), bare(&checked.object));
    (wanted != found).then(|| format!("wanted {wanted:?}, got {found:?}"))
}

/// The name of an object's type in messages about rules holds the time of its making.
fn without_digits(message: &str) -> String {
    if message.contains("selfType") {
        message.chars().filter(|character| !character.is_ascii_digit()).collect()
    } else {
        message.to_owned()
    }
}

pub fn converted(value: &Value) -> value::Value {
    value::json::decode(value.to_string().as_bytes()).expect("it came from JSON")
}
