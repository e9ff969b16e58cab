//! The texts of `fieldsV1` that were read last on this thread: most objects of a kind are written by the same programs,
//! which own the same fields in each, so that their texts are equal byte by byte.
//!
//! Input: a text. Output: its steps, as they were found before. What is kept is bounded by number and length.

use std::cell::RefCell;
use std::sync::Arc;

use super::fields_text::Steps;
use crate::work;

/// How many texts are kept; each has one place.
const PLACES: usize = 32;
/// Longer texts are read each time.
const TEXT_BYTES_MAX: usize = 4 << 10;

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

    #[test]
    fn a_text_is_read_once_and_again_when_another_took_its_place() {
        let steps = |text: &str| {
            let mut is_read = false;
            let read = || {
                is_read = true;
                Some(Steps::default())
            };
            steps_of(text, read).expect("it can be read");
            is_read
        };
        assert!(steps("{\"f:a\":{}}") && !steps("{\"f:a\":{}}"));
        let others = (0..100 * PLACES).filter(|at| steps(&format!("{{\"f:{at}\":{{}}}}"))).count();
        assert_eq!(others, 100 * PLACES);
        assert!(steps("{\"f:a\":{}}"));
        let long = "x".repeat(TEXT_BYTES_MAX + 1);
        assert!(steps(&long) && steps(&long));
        assert!(steps_of("[", || None).is_none());
        assert!(steps("["));
    }
}
