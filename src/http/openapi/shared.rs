//! What all documents share: definitions and parameters that stand in files.

use std::sync::LazyLock;

use crate::value::{Map, Value, json};
use crate::work;

/// Definitions and parameters that all kinds share, in the words of v3.
pub(super) struct SharedDefinitions {
    pub(super) definitions: Map,
    pub(super) parameters: Map,
}

pub(super) static SHARED: LazyLock<SharedDefinitions> = LazyLock::new(|| work::essential(read_shared));

fn read_shared() -> SharedDefinitions {
    let text = include_str!("../../../schemas/openapi.json");
    let document = json::decode(text.as_bytes()).expect("schemas/openapi.json is JSON");
    let part = |name| document.get(name).and_then(Value::as_object).cloned().unwrap_or_default();
    SharedDefinitions { definitions: part("definitions"), parameters: part("parameters") }
}
