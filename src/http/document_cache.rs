//! Documents that have been built, cached by a hash of what they describe.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use axum::body::Bytes;

use super::frame::gzip;
use super::openapi;

/// How many bytes of documents are kept; a single document may be larger.
const KEPT_BYTES_MAX: usize = 64 << 20;
/// How many documents are kept under one name.
const KEPT_MAX: usize = 4;

/// OpenAPI documents, built on the first request, and rebuilt when what they describe has changed. Control planes that
/// serve the same resources share them.
#[derive(Default)]
pub(super) struct Documents {
    made: Mutex<BTreeMap<String, Vec<HashedDocument>>>,
}

#[derive(Clone)]
struct HashedDocument {
    hash: String,
    document: Arc<CachedDocument>,
}

/// A document, with everything that is the same for each answer. All answers share its bytes.
pub(super) struct CachedDocument {
    pub bytes: Bytes,
    /// Its entity tag, in quotes.
    pub tag: String,
    compressed: OnceLock<Bytes>,
}

impl CachedDocument {
    pub fn new(bytes: Vec<u8>) -> Self {
        let tag = format!("\"{}\"", openapi::etag(&bytes));
        CachedDocument { bytes: bytes.into(), tag, compressed: OnceLock::new() }
    }

    /// Its bytes under gzip; `None` if they can't be compressed. They are compressed outside of the lock, as the
    /// request may be ended meanwhile.
    pub fn compressed(&self) -> Option<Bytes> {
        if let Some(made) = self.compressed.get() {
            return Some(made.clone());
        }
        let made = gzip(&self.bytes).ok()?;
        Some(self.compressed.get_or_init(|| made.into()).clone())
    }

    fn size_bytes(&self) -> usize {
        self.bytes.len() + self.compressed.get().map_or(0, Bytes::len)
    }
}

impl Documents {
    /// The document is built outside of the lock, as that may take long and the request may be ended meanwhile.
    pub fn get(&self, name: &str, hash: &str, make: impl FnOnce() -> Vec<u8>) -> Arc<CachedDocument> {
        let is_it = |made: &&HashedDocument| made.hash == hash;
        let known = self.locked().get(name).and_then(|made| made.iter().find(is_it).cloned());
        if let Some(made) = known {
            return made.document;
        }
        let document = Arc::new(CachedDocument::new(make()));
        let mut known = self.locked();
        let kept: usize = known.values().flatten().map(|made| made.document.size_bytes()).sum();
        if kept + document.size_bytes() > KEPT_BYTES_MAX {
            known.clear();
        }
        let of_name = known.entry(name.to_owned()).or_default();
        of_name.retain(|made| made.hash != hash);
        if of_name.len() == KEPT_MAX {
            of_name.remove(0);
        }
        of_name.push(HashedDocument { hash: hash.to_owned(), document: Arc::clone(&document) });
        document
    }

    fn locked(&self) -> MutexGuard<'_, BTreeMap<String, Vec<HashedDocument>>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_made_and_compressed_once_for_all_answers() {
        let documents = Documents::default();
        let first = documents.get("v2", "a", || b"{}".repeat(1_000));
        let again = documents.get("v2", "a", || panic!("it is known"));
        assert_eq!((first.bytes.as_ptr(), &first.tag), (again.bytes.as_ptr(), &again.tag));
        let compressed = [&first, &again].map(|document| document.compressed().expect("it is compressed"));
        assert_eq!(compressed[0].as_ptr(), compressed[1].as_ptr());
        let changed = documents.get("v2", "b", || b"[]".repeat(1_000));
        assert_ne!(changed.tag, first.tag);
    }
}
