//! What types and fields are, for people: `schemas/descriptions.txt.gz`, made from the comments of the published Go modules.
//!
//! The texts are unpacked when a document first shows one: a server that nobody asks for `/openapi` never holds them.

use std::collections::HashMap;
use std::io::Read as _;
use std::sync::LazyLock;

use flate2::read::GzDecoder;

static PACKED: &[u8] = include_bytes!("../../../schemas/descriptions.txt.gz");

/// The texts by the names of what they describe: `core.v1.Namespace.spec`.
static TEXTS: LazyLock<HashMap<&str, &str>> = LazyLock::new(|| {
    let lines = super::source::leak(unpack()).lines();
    lines.filter_map(|line| line.split_once(": ")).collect()
});

/// All texts; none where they can't be unpacked, which a test rules out.
fn unpack() -> String {
    let mut text = String::new();
    match GzDecoder::new(PACKED).read_to_string(&mut text) {
        Ok(_) => text,
        Err(_) => String::new(),
    }
}

/// What a type of a package is, or one of its fields; empty where nothing is said.
pub(super) fn description(package: &str, type_: &str, field: &str) -> String {
    let name = if field.is_empty() { format!("{package}.{type_}") } else { format!("{package}.{type_}.{field}") };
    TEXTS.get(name.as_str()).map(|text| unescape(text)).unwrap_or_default()
}

/// The text of a line: `\n` is the end of a line, `\\` a backslash.
fn unescape(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        text.push(match character {
            '\\' => match characters.next() {
                Some('n') => '\n',
                Some(other) => other,
                None => break,
            },
            other => other,
        });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_texts_are_those_of_the_published_types() {
        assert!(description("core.v1", "Pod", "").starts_with("Pod is a collection of containers"));
        assert!(description("core.v1", "PodSpec", "nodeName").contains("node"));
        assert!(description("meta.v1", "TypeMeta", "kind").starts_with("Kind is a string value"));
        assert_eq!(description("core.v1", "Pod", "none"), "");
    }

    #[test]
    fn lines_and_backslashes_come_back() {
        assert_eq!(unescape(r"a\nb\\n"), "a\nb\\n");
    }
}
