//! SARIF 2.1.0, which code review systems read.

use std::collections::BTreeSet;

use super::{Annotation, AnnotationLevel, Described};
use crate::object;
use crate::value::{Value, json};

/// Encodes the findings; `described` supplies the descriptions of their ids.
pub fn show(annotations: &[Annotation], described: &[Described]) -> String {
    let ids: BTreeSet<&str> = annotations.iter().map(|annotation| annotation.id.as_str()).collect();
    let rules: Vec<Value> = ids
        .into_iter()
        .map(|id| match described.iter().find(|described| described.id == id) {
            None => object! { "id" => id },
            Some(described) => object! {
                "id" => id,
                "shortDescription" => object! { "text" => described.summary },
                "help" => object! { "text" => described.help.as_str() },
            },
        })
        .collect();
    let results: Vec<Value> = annotations.iter().map(result).collect();
    let driver = object! { "name" => "skiff", "version" => env!("CARGO_PKG_VERSION"), "rules" => rules };
    let log = object! {
        "$schema" => "https://json.schemastore.org/sarif-2.1.0.json",
        "version" => "2.1.0",
        "runs" => vec![object! { "tool" => object! { "driver" => driver }, "results" => results }],
    };
    format!("{}\n", json::encode_to_string(&log))
}

fn result(annotation: &Annotation) -> Value {
    let mut location = object! { "artifactLocation" => object! { "uri" => uri(&annotation.file) } };
    if let Some(place) = annotation.place {
        let region = object! { "startLine" => place.line as i64, "startColumn" => place.column as i64 };
        location.make_object().insert("region", region);
    }
    object! {
        "ruleId" => annotation.id.as_str(),
        "level" => match annotation.level {
            AnnotationLevel::Error => "error",
            AnnotationLevel::Warning => "warning",
            AnnotationLevel::Note => "note",
        },
        "message" => object! { "text" => annotation.message.as_str() },
        "locations" => vec![object! { "physicalLocation" => location }],
    }
}

/// Encodes a path as a relative reference; other characters are percent-encoded.
fn uri(path: &str) -> String {
    let path = path.strip_prefix("./").unwrap_or(path);
    path.bytes().fold(String::with_capacity(path.len()), |uri, byte| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => {
            uri + &char::from(byte).to_string()
        }
        byte => format!("{uri}%{byte:02X}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_references() {
        assert_eq!(uri("./a b/ü:c.yaml"), "a%20b/%C3%BC%3Ac.yaml");
    }
}
