//! A short hash of a template, in the alphabet of Kubernetes' names.
//!
//! DIFFERS: Kubernetes hashes a dump of Go's memory, which only Go can produce. This is another hash of the same length
//! and alphabet, over the JSON of the template; it is as stable.

use crate::value::{Value, json};

/// No vowels, so that no words result.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// FNV-1a, as Kubernetes takes it.
fn fnv_32a(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

/// The hash of a template. `collisions` changes it if the previous one was taken.
pub(super) fn template_hash(template: &Value, collisions: Option<i64>) -> String {
    let mut bytes = json::encode(template);
    if let Some(collisions) = collisions {
        bytes.extend(collisions.to_le_bytes());
    }
    encode(&fnv_32a(&bytes).to_string())
}

/// Each character, as one of the alphabet.
fn encode(text: &str) -> String {
    text.bytes().map(|byte| char::from(ALPHABET[usize::from(byte) % ALPHABET.len()])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object;

    #[test]
    fn a_hash_is_a_word_of_the_alphabet() {
        assert_eq!(fnv_32a(b"a"), 0xe40c_292c);
        assert_eq!(encode("0123456789"), "456789bcdf");
        let template = object! { "spec" => object! { "a" => 1 } };
        let hash = template_hash(&template, None);
        assert_eq!(hash, template_hash(&template, None));
        assert_ne!(hash, template_hash(&template, Some(1)));
        assert!((5..=10).contains(&hash.len()) && hash.bytes().all(|byte| ALPHABET.contains(&byte)), "{hash}");
    }
}
