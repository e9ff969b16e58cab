//! YAML decoding and encoding.

use kubeskiff::value::{Value, yaml};

use super::{Linear, Target};

pub const TARGET: Target = Target {
    name: "yaml",
    run,
    steps: Linear { beside: 1 << 20, per_byte: 200 },
    allocated_bytes: Linear { beside: 4 << 20, per_byte: 6_000 },
};

/// What is decoded and encoded decodes to the same value, unless it has a merge key; strict decoding reads the same
/// value, and the first of all documents is the one that is read alone.
fn run(data: &[u8]) {
    let all = yaml::decode_all(data);
    let Ok(value) = yaml::decode(data) else {
        assert!(all.is_err(), "a document that does not decode is none of several");
        return;
    };
    if let Ok(all) = all {
        assert_eq!(all.first().cloned().unwrap_or_default(), value, "the first document is the one that is read");
    }
    let (strict, _) = yaml::decode_strict(data).expect("strict decoding only tells more");
    assert_eq!(value, strict, "strict decoding reads the same value");
    if has_merge_key(&value) {
        return;
    }
    let encoded = yaml::encode(&value);
    let again = yaml::decode(encoded.as_bytes()).expect("what we encode is YAML");
    assert_eq!(value, again, "decode after encode is the identity:\n{encoded}");
}

/// Whether a field is called `<<`, as a tag of its own makes it: it is written without quotes, as sigs.k8s.io/yaml writes it, and
/// then read as a merge.
fn has_merge_key(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.iter().any(|(name, field)| name == "<<" || has_merge_key(field)),
        Value::Array(items) => items.iter().any(has_merge_key),
        _ => false,
    }
}
