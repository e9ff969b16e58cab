//! YAML decoding and encoding.

use kubeskiff::value::yaml;

/// What is decoded and encoded decodes to the same value; strict decoding reads the same value, and the first of all
/// documents is the one that is read alone.
pub fn run(data: &[u8]) {
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
    let encoded = yaml::encode(&value);
    let again = yaml::decode(encoded.as_bytes()).expect("what we encode is YAML");
    assert_eq!(value, again, "decode after encode is the identity:\n{encoded}");
}
