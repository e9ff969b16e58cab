//! JSON decoding and encoding.

use kubeskiff::value::json;

use super::{Linear, Target};

pub const TARGET: Target = Target {
    name: "json",
    run,
    steps: Linear { beside: 1 << 20, per_byte: 200 },
    allocated_bytes: Linear { beside: 1 << 20, per_byte: 3_000 },
};

/// What was encoded once stays as it is: decoded, indented or not, and encoded again it is the same value and the same text. (The
/// first value may differ: whole doubles become integers, as in Go.) Strict decoding reads the same value.
fn run(data: &[u8]) {
    let decoded = json::decode(data);
    let strict = json::decode_strict(data);
    assert_eq!(decoded.is_ok(), strict.is_ok(), "strict decoding agrees on what is JSON");
    let (Ok(value), Ok((strict, _))) = (decoded, strict) else { return };
    assert_eq!(value, strict, "strict decoding reads the same value");
    let once = json::decode(&json::encode(&value)).expect("what we encode is JSON");
    let text = json::encode_to_string(&once);
    for text in [text.as_bytes(), &json::indent(text.as_bytes())] {
        assert_eq!(json::decode(text), Ok(once.clone()), "decode after encode is the identity");
    }
    let again = json::decode(text.as_bytes()).expect("it was JSON a line above");
    assert_eq!(json::encode_to_string(&again), text, "encoding is canonical");
}
