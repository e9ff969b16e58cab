//! Examples to open: those of `crd-examples`, and one with a policy.

use crate::object;
use crate::value::Value;

/// Texts to begin with.
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

/// All examples with their texts.
pub fn list() -> Value {
    let shown = |Example { name, definition, object, old, request }: &Example| {
        object! {
            "name" => *name,
            "definition" => *definition,
            "object" => *object,
            "old" => *old,
            "request" => *request,
        }
    };
    Value::Array(EXAMPLES.iter().map(shown).collect())
}
