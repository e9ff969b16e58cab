//! The examples: the definitions of the surrounding project, those of `crd-examples`, and one with
//! a policy.

use super::super::definitions::is_definition;
use super::super::documents::{ManifestDocument, ManifestText, read_each};
use super::super::project::Project;
use crate::meta::api_version::group_of;
use crate::object;
use crate::value::{Value, yaml};

/// How many definitions of a project are listed.
const PROJECT_EXAMPLES_MAX: usize = 200;
/// The total size of their texts, in bytes; the page loads all of them.
const PROJECT_BYTES_MAX: usize = 8 << 20;

/// The texts of an example.
struct Example {
    name: &'static str,
    definition: &'static str,
    object: &'static str,
    old: &'static str,
    request: &'static str,
}

const EXAMPLES: [Example; 9] = [
    Example {
        name: "Rules over fields",
        definition: include_str!("../../../crd-examples/rules/crd.yaml"),
        object: include_str!("../../../crd-examples/rules/invalid/bounds.yaml"),
        old: "",
        request: "",
    },
    Example {
        name: "A first definition",
        definition: include_str!("../../../crd-examples/cron-table/crd.yaml"),
        object: include_str!("../../../crd-examples/cron-table/invalid/values.yaml"),
        old: "",
        request: "",
    },
    Example {
        name: "Transitions: an update",
        definition: include_str!("../../../crd-examples/transitions/crd.yaml"),
        object: include_str!("../../../crd-examples/transitions/invalid/shrunk.yaml"),
        old: include_str!("../../../crd-examples/transitions/invalid/shrunk.old.yaml"),
        request: "",
    },
    Example {
        name: "A policy, its parameters, and a user",
        definition: include_str!("../../../ui/examples/policy.yaml"),
        object: include_str!("../../../ui/examples/object.yaml"),
        old: "",
        request: include_str!("../../../ui/examples/request.yaml"),
    },
    Example {
        name: "One of several fields",
        definition: include_str!("../../../crd-examples/one-of/crd.yaml"),
        object: include_str!("../../../crd-examples/one-of/invalid/both.yaml"),
        old: "",
        request: "",
    },
    Example {
        name: "Lists that are sets and maps",
        definition: include_str!("../../../crd-examples/list-types/crd.yaml"),
        object: include_str!("../../../crd-examples/list-types/invalid/same-keys.yaml"),
        old: "",
        request: "",
    },
    Example {
        name: "Several versions",
        definition: include_str!("../../../crd-examples/cluster-versions/crd.yaml"),
        object: include_str!("../../../crd-examples/cluster-versions/valid/v1beta1.yaml"),
        old: "",
        request: "",
    },
    Example {
        name: "Objects within objects",
        definition: include_str!("../../../crd-examples/embedded-resource/crd.yaml"),
        object: include_str!("../../../crd-examples/embedded-resource/invalid/labels.yaml"),
        old: "",
        request: "",
    },
    Example {
        name: "Scaling",
        definition: include_str!("../../../crd-examples/scale/crd.yaml"),
        object: include_str!("../../../crd-examples/scale/valid/default.yaml"),
        old: "",
        request: "",
    },
];

/// All examples with their texts, those of the project first. The project's files are read again.
pub fn list(project: &Project) -> Value {
    let shown = |Example { name, definition, object, old, request }: &Example| {
        object! {
            "name" => *name,
            "definition" => *definition,
            "object" => *object,
            "old" => *old,
            "request" => *request,
        }
    };
    let mut examples = of_project(project);
    examples.extend(EXAMPLES.iter().map(shown));
    Value::Array(examples)
}

/// Each definition of a project, with the project's policies and its first object of the kind.
/// Unreadable files are left out: other commands report them.
fn of_project(project: &Project) -> Vec<Value> {
    let definitions = read_each(&project.definitions);
    let objects = read_each(&project.objects);
    let policies: Vec<String> =
        read_each(&project.policies).iter().map(|source| source.text.trim_end().to_owned()).collect();
    let mut left = PROJECT_BYTES_MAX;
    let texts = definitions.iter().flat_map(|source| source.documents.iter().map(move |document| (source, document)));
    let made = texts.filter(|(_, document)| is_definition(&document.value)).map_while(|(source, document)| {
        let definition = [&[text_of(source, document)][..], &policies].concat().join("\n---\n");
        let object = object_of(&objects, &document.value).unwrap_or_default();
        left = left.checked_sub(definition.len() + object.len())?;
        Some(object! {
            "name" => format!("{} ({})", document.value.str_at(&["metadata", "name"]), source.name),
            "definition" => definition,
            "object" => object,
            "old" => "",
            "request" => "",
        })
    });
    made.take(PROJECT_EXAMPLES_MAX).collect()
}

/// The text of a document as it is written, if it is the only one in its file; otherwise it is
/// encoded.
fn text_of(source: &ManifestText, document: &ManifestDocument) -> String {
    match (source.documents.len(), source.faults.len()) {
        (1, 0) => source.text.trim_end().to_owned(),
        _ => yaml::encode(&document.value).trim_end().to_owned(),
    }
}

/// The first object of a definition's kind.
fn object_of(sources: &[ManifestText], definition: &Value) -> Option<String> {
    let (group, kind) = (definition.str_at(&["spec", "group"]), definition.str_at(&["spec", "names", "kind"]));
    let is_it = |object: &Value| object.str_at(&["kind"]) == kind && group_of(object.str_at(&["apiVersion"])) == group;
    let mut all = sources.iter().flat_map(|source| source.documents.iter().map(move |document| (source, document)));
    let (source, document) = all.find(|(_, document)| is_it(&document.value))?;
    Some(text_of(source, document) + "\n")
}
