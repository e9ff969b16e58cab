//! Documents that have been built, cached by a hash of what they describe.
//!
//! A document is built once, however many ask for it at the same time: the others wait for it without a thread. If the
//! request that builds it is ended, the next one builds it.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::Bytes;
use tokio::sync::OnceCell;

use super::frame::gzip;
use super::openapi;
use crate::webhook::patience;

/// How many documents are kept under one name.
const KEPT_MAX: usize = 4;

/// OpenAPI documents, built on the first request, and rebuilt when what they describe has changed. Control planes that
/// serve the same resources share them.
#[derive(Default)]
pub(super) struct Documents {
    kept: Mutex<KeptDocuments>,
}

#[derive(Default)]
struct KeptDocuments {
    by_name: BTreeMap<String, Vec<KeptDocument>>,
    /// How often any document was asked for.
    asked: u64,
}

struct KeptDocument {
    hash: String,
    place: DocumentPlace,
    /// The value of `asked` when it was last asked for.
    last_asked: u64,
}

/// A document, once it is built: whoever asks for it before that waits for it.
type DocumentPlace = Arc<OnceCell<Arc<CachedDocument>>>;

/// A document, with everything that is the same for each answer. All answers share its bytes.
pub(super) struct CachedDocument {
    pub bytes: Bytes,
    /// Its entity tag, in quotes.
    pub tag: String,
    compressed: OnceCell<Option<Bytes>>,
}

impl CachedDocument {
    pub fn new(bytes: Vec<u8>) -> Self {
        let tag = format!("\"{}\"", openapi::etag(&bytes));
        CachedDocument { bytes: bytes.into(), tag, compressed: OnceCell::new() }
    }

    /// Its bytes under gzip; `None` if they can't be compressed. They are compressed once, as they are built once.
    pub async fn compressed(&self) -> Option<Bytes> {
        let compress = || async { gzip(&self.bytes).ok().map(Bytes::from) };
        self.compressed.get_or_init(compress).await.clone()
    }

    fn size_bytes(&self) -> usize {
        self.bytes.len() + self.compressed.get().and_then(Option::as_ref).map_or(0, Bytes::len)
    }
}

impl Documents {
    /// The document of this name and hash. Those that were not asked for for longest are dropped where all together
    /// have more than `bytes_max` bytes; the last one stays, however large it is.
    ///
    /// It is built outside of the lock, as that may take long and the request may be ended meanwhile.
    /// Errors: those of `made`, which makes it.
    pub async fn get<E>(
        &self,
        (name, hash): (&str, &str),
        bytes_max: usize,
        made: impl Future<Output = Result<Vec<u8>, E>>,
    ) -> Result<Arc<CachedDocument>, E> {
        let place = self.locked().place(name, hash);
        if let Some(document) = place.get() {
            return Ok(Arc::clone(document));
        }
        // Short requests must not wait for a permit until it is built.
        patience::make_room();
        let document = place.get_or_try_init(|| async { Ok(Arc::new(CachedDocument::new(made.await?))) }).await?;
        let mut kept = self.locked();
        // Others may have been asked for while it was built.
        kept.known_place(name, hash);
        kept.make_room(bytes_max);
        Ok(Arc::clone(document))
    }

    fn locked(&self) -> MutexGuard<'_, KeptDocuments> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeptDocuments {
    /// The place of a document that is asked for now.
    fn place(&mut self, name: &str, hash: &str) -> DocumentPlace {
        if let Some(place) = self.known_place(name, hash) {
            return place;
        }
        let of_name = self.by_name.entry(name.to_owned()).or_default();
        of_name.retain(KeptDocument::is_needed);
        if of_name.len() >= KEPT_MAX {
            let oldest = of_name.iter().filter(|kept| kept.place.initialized()).map(|kept| kept.last_asked).min();
            of_name.retain(|kept| Some(kept.last_asked) != oldest);
        }
        let place = DocumentPlace::default();
        of_name.push(KeptDocument { hash: hash.to_owned(), place: Arc::clone(&place), last_asked: self.asked });
        place
    }

    fn known_place(&mut self, name: &str, hash: &str) -> Option<DocumentPlace> {
        self.asked += 1;
        let known = self.by_name.get_mut(name)?.iter_mut().find(|kept| kept.hash == hash)?;
        known.last_asked = self.asked;
        Some(Arc::clone(&known.place))
    }

    fn make_room(&mut self, bytes_max: usize) {
        let built = self.by_name.values().flatten().filter_map(|kept| Some((kept.last_asked, kept.size_bytes()?)));
        let mut built: Vec<(u64, usize)> = built.collect();
        built.sort_unstable_by_key(|(last_asked, _)| Reverse(*last_asked));
        let mut room = bytes_max;
        let fits = |(_, bytes): &&(u64, usize)| room.checked_sub(*bytes).inspect(|left| room = *left).is_some();
        let stay = built.iter().take_while(fits).count().max(1);
        let Some((dropped, _)) = built.get(stay) else { return };
        self.by_name.retain(|_, of_name| {
            of_name.retain(|kept| kept.is_needed() && (kept.last_asked > *dropped || !kept.place.initialized()));
            !of_name.is_empty()
        });
    }
}

impl KeptDocument {
    /// Whether it is built, or somebody builds it.
    fn is_needed(&self) -> bool {
        self.place.initialized() || Arc::strong_count(&self.place) > 1
    }

    /// `None` until it is built.
    fn size_bytes(&self) -> Option<usize> {
        self.place.get().map(|document| document.size_bytes() + self.hash.len())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::convert::Infallible;
    use std::pin::pin;

    use futures_util::FutureExt as _;

    use super::*;
    use crate::processor::{ExpectedWork, Processor, metered};

    const ENDLESS: usize = usize::MAX;

    async fn get(
        documents: &Documents,
        of: (&str, &str),
        bytes_max: usize,
        make: impl FnOnce() -> Vec<u8>,
    ) -> Arc<CachedDocument> {
        let Ok(document) = documents.get(of, bytes_max, async { Ok::<_, Infallible>(make()) }).await;
        document
    }

    #[tokio::test]
    async fn a_document_that_can_not_be_made_is_made_by_the_next_one() {
        let documents = Documents::default();
        let failed = documents.get(("v2", "a"), ENDLESS, async { Err("no memory") }).await;
        assert_eq!(failed.err(), Some("no memory"));
        assert_eq!(&*get(&documents, ("v2", "a"), ENDLESS, || b"{}".to_vec()).await.bytes, b"{}");
    }

    #[tokio::test]
    async fn a_document_is_made_and_compressed_once_for_all_answers() {
        let documents = Documents::default();
        let first = get(&documents, ("v2", "a"), ENDLESS, || b"{}".repeat(1_000)).await;
        let again = get(&documents, ("v2", "a"), ENDLESS, || panic!("it is known")).await;
        assert_eq!((first.bytes.as_ptr(), &first.tag), (again.bytes.as_ptr(), &again.tag));
        let (one, other) = (first.compressed().await, again.compressed().await);
        assert_eq!(one.expect("it is compressed").as_ptr(), other.expect("it is compressed").as_ptr());
        let changed = get(&documents, ("v2", "b"), ENDLESS, || b"[]".repeat(1_000)).await;
        assert_ne!(changed.tag, first.tag);
    }

    #[tokio::test]
    async fn who_asks_for_a_document_that_is_being_built_waits_for_it() {
        let documents = Documents::default();
        let mut waiting: Vec<_> = (0..30)
            .map(|_| Box::pin(get(&documents, ("v2", "a"), ENDLESS, || panic!("somebody else builds it"))))
            .collect();
        let first = get(&documents, ("v2", "a"), ENDLESS, || {
            assert!(waiting.iter_mut().all(|waiting| waiting.now_or_never().is_none()));
            // Another one is no reason to wait.
            let other = get(&documents, ("v3", "a"), ENDLESS, || b"[]".to_vec()).now_or_never();
            assert!(other.is_some());
            b"{}".to_vec()
        });
        let first = first.await;
        for waiting in waiting {
            assert_eq!(waiting.await.bytes.as_ptr(), first.bytes.as_ptr());
        }
    }

    #[tokio::test]
    async fn a_document_whose_request_is_ended_is_built_by_the_next_one() {
        let documents = Documents::default();
        let share = Processor::default().share("jane", "a kind", ExpectedWork::Short);
        let mut next = pin!(get(&documents, ("v2", "a"), ENDLESS, || b"{}".to_vec()));
        let ended = metered(&share, async {
            let first = get(&documents, ("v2", "a"), ENDLESS, || {
                assert!(next.as_mut().now_or_never().is_none());
                share.cancel();
                (0..u64::MAX).for_each(|_| crate::work::step());
                Vec::new()
            });
            first.await.bytes.clone()
        });
        assert!(ended.await.is_err());
        assert_eq!(&*next.await.bytes, b"{}");
    }

    #[tokio::test]
    async fn those_that_were_not_asked_for_for_longest_make_room() {
        let (documents, built) = (Documents::default(), Cell::new(0));
        let built_for = async |names: &str, bytes: usize| {
            built.set(0);
            for name in names.split(' ') {
                let make = || {
                    built.set(built.get() + 1);
                    vec![b'x'; bytes]
                };
                get(&documents, (name, "h"), 100, make).await;
            }
            built.get()
        };
        assert_eq!(built_for("a b", 40).await, 2);
        assert_eq!(built_for("a c", 40).await, 1, "all three are too many");
        assert_eq!(built_for("a c a c", 40).await, 0, "the one that was used last stays");
        assert_eq!(built_for("b", 40).await, 1);
        assert_eq!(built_for("large large large", 200).await, 1, "it stays until another one takes its place");
        assert_eq!(built_for("a", 40).await, 1, "it left no room for others");
        assert_eq!(built_for("large", 200).await, 1);
    }

    #[tokio::test]
    async fn of_one_name_few_documents_are_kept() {
        let documents = Documents::default();
        for hash in ["a", "b", "c", "d", "a", "e"] {
            get(&documents, ("v2", hash), ENDLESS, Vec::new).await;
        }
        let hashes: Vec<String> = documents.locked().by_name["v2"].iter().map(|kept| kept.hash.clone()).collect();
        assert_eq!(hashes, ["a", "c", "d", "e"]);
    }
}
