//! The texts of `fieldsV1` that were read last on this thread: most objects of a kind are written by the same programs,
//! which own the same fields in each, so that their texts are equal byte by byte.
//!
//! Input: a text. Output: its steps, as they were found before. What is kept is bounded: some 128 KiB for a thread.
//! It does not change results, nor the work that is counted.

use std::cell::RefCell;
use std::sync::Arc;

use super::text_steps::Steps;
use crate::work;

/// How many texts are kept; each has one place.
const PLACES: usize = 16;
/// Longer texts, and those with more steps, are read each time.
const TEXT_BYTES_MAX: usize = 4 << 10;
const STEPS_MAX: usize = 256;

thread_local! {
    static KNOWN: RefCell<Vec<Option<KnownText>>> = const { RefCell::new(Vec::new()) };
}

struct KnownText {
    text: Box<str>,
    steps: Arc<Steps>,
}

/// The steps of `text`: those known, or those that `read` finds.
pub(super) fn steps_of(text: &str, read: impl FnOnce() -> Option<Steps>) -> Option<Arc<Steps>> {
    work::bytes(text.len());
    if text.len() > TEXT_BYTES_MAX {
        return read().map(Arc::new);
    }
    let place = (hash(text.as_bytes()) % PLACES as u64) as usize;
    let found = KNOWN.with_borrow(|known| {
        let known = known.get(place)?.as_ref().filter(|known| *known.text == *text)?;
        Some(Arc::clone(&known.steps))
    });
    if found.is_some() {
        return found;
    }
    let steps = Arc::new(read()?);
    if steps.len() > STEPS_MAX {
        return Some(steps);
    }
    let known = KnownText { text: text.into(), steps: Arc::clone(&steps) };
    KNOWN.with_borrow_mut(|all| {
        all.resize_with(PLACES, || None);
        all[place] = Some(known);
    });
    Some(steps)
}

/// Of eight bytes at a time. Who finds texts with the same hash gains nothing: they are compared.
fn hash(bytes: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |hash: u64, word: u64| (hash.rotate_left(5) ^ word).wrapping_mul(FACTOR);
    let (chunks, rest) = bytes.as_chunks();
    let hash = chunks.iter().fold(bytes.len() as u64, |hash, chunk| mix(hash, u64::from_le_bytes(*chunk)));
    let hash = rest.iter().fold(hash, |hash, byte| mix(hash, u64::from(*byte)));
    hash ^ (hash >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apply::fields_text::FieldsText;

    /// Texts that no other test reads.
    fn text(at: usize) -> String {
        format!("{{\"f:known-texts-{at}\":{{\"f:a\":{{}}}}}}")
    }

    #[test]
    fn a_text_is_read_once_and_again_when_another_took_its_place() {
        let is_read = |text: &str| {
            let mut is_read = false;
            let read = || {
                is_read = true;
                Some(Steps::default())
            };
            steps_of(text, read).expect("it can be read");
            is_read
        };
        assert!(is_read(&text(0)) && !is_read(&text(0)));
        (1..100 * PLACES).for_each(|at| assert!(is_read(&text(at))));
        assert!(is_read(&text(0)));
        let long = "x".repeat(TEXT_BYTES_MAX + 1);
        assert!(is_read(&long) && is_read(&long));
        assert!(steps_of("[", || None).is_none() && is_read("["));
    }

    #[test]
    fn a_text_that_is_known_has_its_own_steps() {
        let texts: Vec<String> = (1_000..1_100).map(text).collect();
        for text in texts.iter().chain(&texts).chain(texts.iter().rev()) {
            let fields = FieldsText::read(text.as_str().into()).expect("it is what is written");
            assert_eq!(fields.root().set().encode_text(), *text);
        }
    }
}
