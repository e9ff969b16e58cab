//! Documents that were made, kept by a hash of what they describe.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes of documents that are kept; one document may have more.
const KEPT_BYTES_MAX: usize = 64 << 20;
/// How many documents of a name are kept.
const KEPT_MAX: usize = 4;

/// OpenAPI documents, made when they are first asked for, and again when what they describe has changed. Control planes that
/// serve the same share them.
#[derive(Default)]
pub(super) struct Documents {
    made: Mutex<BTreeMap<String, Vec<Made>>>,
}

#[derive(Clone)]
struct Made {
    hash: String,
    document: Arc<Vec<u8>>,
}

impl Documents {
    /// The document is made outside of the lock, as that may take long and be ended.
    pub fn get(&self, name: &str, hash: &str, make: impl FnOnce() -> Vec<u8>) -> Arc<Vec<u8>> {
        let is_it = |made: &&Made| made.hash == hash;
        let known = self.locked().get(name).and_then(|made| made.iter().find(is_it).cloned());
        if let Some(made) = known {
            return made.document;
        }
        let document = Arc::new(make());
        let mut known = self.locked();
        let kept: usize = known.values().flatten().map(|made| made.document.len()).sum();
        if kept + document.len() > KEPT_BYTES_MAX {
            known.clear();
        }
        let of_name = known.entry(name.to_owned()).or_default();
        of_name.retain(|made| made.hash != hash);
        if of_name.len() == KEPT_MAX {
            of_name.remove(0);
        }
        of_name.push(Made { hash: hash.to_owned(), document: Arc::clone(&document) });
        document
    }

    fn locked(&self) -> MutexGuard<'_, BTreeMap<String, Vec<Made>>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
