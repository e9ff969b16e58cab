//! `crd-examples` as a specification: what stands in `valid` is created, and what stands in `invalid` is refused with
//! exactly the lines of the `.errors` file beside it. An object with a `.old.yaml` beside it is an update of that.
//!
//! A line is `FIELD: MESSAGE`, or one fault of strict decoding. The lines are those of apiextensions-apiserver v0.37.2, in our
//! order. `SKIFF_UPDATE=1` writes the files anew; read the difference like code.

use std::fs;
use std::path::{Path, PathBuf};

use kubeskiff::value::{Value, json, yaml};

use crate::server::{Answer, Folder, Server};

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/crd-examples");

#[test]
fn valid_examples_are_created_and_invalid_ones_give_their_errors() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory", "--crds", EXAMPLES]);
    let examples = entries(Path::new(EXAMPLES));
    assert!(examples.len() >= 5, "there are {} examples", examples.len());
    let mut faults = Vec::new();
    for example in examples {
        let definition = read(&example.join("crd.yaml"));
        for manifest in entries(&example.join("valid")).iter().filter(|path| is_manifest(path)) {
            let answer = write(&server, &definition, manifest);
            if ![200, 201].contains(&answer.status) {
                faults.push(format!("{}: {} {}", shown(manifest), answer.status, errors(&answer)));
            }
        }
        for manifest in entries(&example.join("invalid")).iter().filter(|path| is_manifest(path)) {
            let answer = write(&server, &definition, manifest);
            let (found, file) = (errors(&answer), manifest.with_extension("errors"));
            if std::env::var_os("SKIFF_UPDATE").is_some() {
                fs::write(&file, &found).expect("the folder is writable");
            }
            let expected = fs::read_to_string(&file).unwrap_or_default();
            if answer.status < 400 || found != expected {
                faults.push(format!("{}: {}\n{found}not\n{expected}", shown(manifest), answer.status));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Every file and folder of a folder, by name.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder is there");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("the folder is readable").path()).collect();
    paths.sort();
    paths
}

fn is_manifest(path: &Path) -> bool {
    let name = path.to_string_lossy();
    name.ends_with(".yaml") && !name.ends_with(".old.yaml")
}

fn shown(path: &Path) -> String {
    path.strip_prefix(EXAMPLES).unwrap_or(path).display().to_string()
}

fn read(path: &Path) -> Value {
    yaml::decode(&fs::read(path).expect("the file is there")).expect("the file is YAML")
}

/// Creates the object of a manifest as kubectl does; where there is an old one, that is created and replaced.
fn write(server: &Server, definition: &Value, manifest: &Path) -> Answer {
    let old = manifest.with_extension("old.yaml");
    if !old.exists() {
        let body = fs::read(manifest).expect("the file is there");
        return server.send("POST", &collection(definition, manifest), &[YAML], Some(&body));
    }
    let body = fs::read(&old).expect("the file is there");
    let created = server.send("POST", &collection(definition, &old), &[YAML], Some(&body));
    assert_eq!(created.status, 201, "{}", shown(&old));
    let mut object = read(manifest);
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut).expect("a manifest has metadata");
    let revision = created.json()["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
    metadata.insert("resourceVersion", Value::String(revision));
    let name = object.str_at(&["metadata", "name"]);
    let path = collection(definition, manifest).replace('?', &format!("/{name}?"));
    server.send("PUT", &path, &[("Content-Type", "application/json")], Some(&json::encode(&object)))
}

const YAML: (&str, &str) = ("Content-Type", "application/yaml");

/// The path of the collection that a manifest belongs to.
fn collection(definition: &Value, manifest: &Path) -> String {
    let object = read(manifest);
    let namespace = match definition.str_at(&["spec", "scope"]) {
        "Cluster" => "",
        _ => "/namespaces/default",
    };
    format!(
        "/apis/{}{namespace}/{}?fieldValidation=Strict",
        object.str_at(&["apiVersion"]),
        definition.str_at(&["spec", "names", "plural"]),
    )
}

/// One line for each fault: the causes of a `Status`, or what strict decoding found.
fn errors(answer: &Answer) -> String {
    let status = answer.json();
    let message = status["message"].as_str().unwrap_or_default();
    let lines: Vec<String> = match status.pointer("/details/causes").and_then(|causes| causes.as_array()) {
        Some(causes) => {
            let text = |cause: &serde_json::Value, field: &str| cause[field].as_str().unwrap_or_default().to_owned();
            causes.iter().map(|cause| format!("{}: {}", text(cause, "field"), text(cause, "message"))).collect()
        }
        None => match message.split_once("strict decoding error: ") {
            Some((_, faults)) => faults.split(", ").map(str::to_owned).collect(),
            None => vec![message.to_owned()],
        },
    };
    lines.iter().map(|line| format!("{line}\n")).collect()
}
