//! Documents that were made, kept by a hash of what they describe.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes of documents that are kept; one document may have more.
const KEPT_BYTES_MAX: usize = 64 << 20;

/// OpenAPI documents, made when they are first asked for, and again when what they describe has changed.
#[derive(Default)]
pub(super) struct Documents {
    made: Mutex<BTreeMap<String, Made>>,
}

#[derive(Clone)]
struct Made {
    hash: String,
    document: Arc<Vec<u8>>,
}

impl Documents {
    /// The document is made outside of the lock, as that may take long and be ended.
    pub fn get(&self, name: &str, hash: &str, make: impl FnOnce() -> Vec<u8>) -> Arc<Vec<u8>> {
        if let Some(made) = self.locked().get(name).filter(|made| made.hash == hash) {
            return Arc::clone(&made.document);
        }
        let document = Arc::new(make());
        let mut known = self.locked();
        known.remove(name);
        let kept: usize = known.values().map(|made| made.document.len()).sum();
        if kept + document.len() > KEPT_BYTES_MAX {
            known.clear();
        }
        known.insert(name.to_owned(), Made { hash: hash.to_owned(), document: Arc::clone(&document) });
        document
    }

    fn locked(&self) -> MutexGuard<'_, BTreeMap<String, Made>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
