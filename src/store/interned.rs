//! Texts that many objects share, kept in memory once: names of versions.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock};

/// How many texts are shared at most; further ones are not.
const KNOWN_MAX: usize = 256;

static KNOWN: RwLock<BTreeSet<Arc<str>>> = RwLock::new(BTreeSet::new());

/// `text`, shared with all earlier callers for the same text.
pub fn interned(text: &str) -> Arc<str> {
    if let Some(known) = KNOWN.read().unwrap_or_else(PoisonError::into_inner).get(text) {
        return Arc::clone(known);
    }
    let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
    // Another thread may have been faster.
    if let Some(known) = known.get(text) {
        return Arc::clone(known);
    }
    let text: Arc<str> = text.into();
    if known.len() < KNOWN_MAX {
        known.insert(Arc::clone(&text));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_are_one() {
        let (one, other) = (interned("v1interned"), interned("v1interned"));
        assert!(Arc::ptr_eq(&one, &other));
        assert!(!Arc::ptr_eq(&one, &interned("v2interned")));
    }
}
