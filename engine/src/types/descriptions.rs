//! Descriptions of types and fields, for people: `schemas/descriptions.txt`.

use std::collections::HashMap;
use std::sync::LazyLock;

/// The descriptions by the names of their subjects: `core.v1.Namespace.spec`.
static SENTENCES: LazyLock<HashMap<&str, &str>> = LazyLock::new(|| {
    let lines = include_str!(concat!(env!("SCHEMAS"), "/descriptions.txt")).lines();
    lines.filter_map(|line| line.split_once(": ")).collect()
});

/// The description of a type of a package, or of one of its fields; empty if there is none.
pub(super) fn description(package: &str, type_: &str, field: &str) -> &'static str {
    let name = if field.is_empty() { format!("{package}.{type_}") } else { format!("{package}.{type_}.{field}") };
    SENTENCES.get(name.as_str()).copied().unwrap_or_default()
}
