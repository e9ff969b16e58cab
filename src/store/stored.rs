//! A state of an object as it is stored, and a change from one state to the next.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use bytes::Bytes;

use crate::memory::{Portion, Reservation};
use crate::meta::Revision;
use crate::meta::selector::{Labels as _, PackedLabels};
use crate::value::json;
use crate::work;

use super::encoded::{Splice, metadata_field};
use super::findings::ChangeFindings;
use super::forms::Forms;
use super::{Encoded, StoreError};

/// How many derived forms of a state are kept.
const DERIVED_MAX: usize = 2;

/// One state of one object.
#[derive(Debug)]
pub struct Stored {
    pub key: Arc<str>,
    pub revision: Revision,
    pub created: Revision,
    pub uid: Arc<str>,
    /// The version of `bytes`.
    pub stored_version: Arc<str>,
    pub schema_generation: i64,
    /// Compact canonical JSON without `metadata.resourceVersion`.
    pub bytes: Bytes,
    pub expires_at_ms: Option<i64>,
    pub(super) served_under: ServedUnder,
    /// Where the resourceVersion belongs in `bytes`; for an object from the database it is determined when that is
    /// first sent.
    pub(super) splice: OnceLock<Splice>,
    pub(super) labels: OnceLock<PackedLabels>,
    /// Unused for most objects, as they are sent as they are stored.
    pub(super) derived: OnceLock<Box<Mutex<Vec<Derived>>>>,
}

/// A generation of the schemas, if one is known.
#[derive(Debug)]
pub(super) struct ServedUnder(AtomicI64);

impl ServedUnder {
    const UNKNOWN: i64 = i64::MIN;

    fn get(&self) -> Option<i64> {
        Some(self.0.load(Ordering::Relaxed)).filter(|generation| *generation != Self::UNKNOWN)
    }

    fn set(&self, generation: i64) {
        self.0.store(generation, Ordering::Relaxed);
    }
}

impl From<Option<i64>> for ServedUnder {
    fn from(generation: Option<i64>) -> Self {
        ServedUnder(AtomicI64::new(generation.unwrap_or(Self::UNKNOWN)))
    }
}

/// A state is identified by its key and its revision; the rest follows from them.
impl PartialEq for Stored {
    fn eq(&self, other: &Self) -> bool {
        self.revision == other.revision && self.key == other.key
    }
}

#[derive(Debug)]
pub(super) struct Derived {
    version: Box<str>,
    schema_generation: i64,
    encoded: Encoded,
    _counted: Portion,
}

impl Stored {
    /// Whether the database returned something else than what was written.
    pub fn is_damaged(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The error for a read of it, if it is damaged.
    pub fn garbled(&self) -> StoreError {
        StoreError::Garbled { key: Arc::clone(&self.key), revision: self.revision }
    }

    /// The value of the label `name`.
    pub fn label(&self, name: &str) -> Option<&str> {
        self.sorted_labels().value(name)
    }

    /// Names and values of all labels.
    pub fn labels(&self) -> impl Iterator<Item = (&str, &str)> {
        self.sorted_labels().pairs()
    }

    /// All labels. They are decoded once, at the first selection.
    pub fn sorted_labels(&self) -> &PackedLabels {
        let read = || {
            let labels = self.metadata_field("\"labels\"").and_then(|labels| json::decode(labels).ok());
            PackedLabels::from(&labels.as_ref())
        };
        self.labels.get_or_init(|| work::essential(read))
    }

    /// The JSON of a field of the metadata, by its name in quotes; nothing else of the object is decoded.
    pub fn metadata_field(&self, quoted_name: &str) -> Option<&[u8]> {
        metadata_field(&self.bytes, quoted_name)
    }

    /// The stored bytes, in the form in which they are sent if deriving changes nothing.
    pub fn raw(&self) -> Encoded {
        Encoded::with_splice(self.bytes.clone(), *self.splice.get_or_init(|| Splice::of(&self.bytes)))
    }

    /// Whether clients get the stored bytes unchanged in their stored version, under this generation of the schemas.
    pub fn is_served_raw(&self, schema_generation: i64) -> bool {
        self.served_under.get() == Some(schema_generation)
    }

    /// Records the result for [`Stored::is_served_raw`].
    pub fn note_served_raw(&self, schema_generation: i64) {
        self.served_under.set(schema_generation);
    }

    /// The form kept for a served version under this generation of the schemas.
    pub fn derived(&self, version: &str, schema_generation: i64) -> Option<Encoded> {
        let derived = self.derived.get()?.lock().unwrap_or_else(PoisonError::into_inner);
        let found =
            derived.iter().find(|kept| *kept.version == *version && kept.schema_generation == schema_generation);
        found.map(|kept| kept.encoded.clone())
    }

    /// Keeps a derived form for a version and a generation of the schemas, unless there already is one; if there are too
    /// many, the oldest is dropped. It is counted as memory until then.
    pub fn keep_derived(&self, (version, schema_generation): (&str, i64), encoded: Encoded, counted: Portion) {
        let derived = self.derived.get_or_init(Box::default);
        let mut derived = derived.lock().unwrap_or_else(PoisonError::into_inner);
        if derived.iter().any(|kept| *kept.version == *version && kept.schema_generation == schema_generation) {
            return;
        }
        derived.retain(|kept| *kept.version != *version);
        if derived.len() == DERIVED_MAX {
            derived.remove(0);
        }
        // One by one, as most objects are read in only one version.
        derived.reserve_exact(1);
        derived.push(Derived { version: version.into(), schema_generation, encoded, _counted: counted });
    }
}

#[cfg(test)]
impl Stored {
    /// A first state for tests.
    pub(crate) fn fixture(key: &str, uid: &str, bytes: impl Into<Bytes>) -> Self {
        const REVISION: Revision = Revision::new(1);
        Stored {
            key: key.into(),
            revision: REVISION,
            created: REVISION,
            uid: uid.into(),
            stored_version: "v1".into(),
            schema_generation: 1,
            bytes: bytes.into(),
            expires_at_ms: None,
            served_under: None.into(),
            splice: OnceLock::new(),
            labels: OnceLock::new(),
            derived: OnceLock::new(),
        }
    }
}

/// One change of one object.
#[derive(Debug)]
pub struct Change {
    pub revision: Revision,
    /// The state after the change; for a deletion, the last state.
    pub object: Arc<Stored>,
    /// The state before; `None` for a creation.
    pub previous: Option<Arc<Stored>>,
    pub deleted: bool,
    /// The events that watches send for it.
    pub forms: Forms,
    /// What they find out about it.
    pub findings: ChangeFindings,
    /// The memory that is reserved for it as long as slow clients have not read it.
    reserved: Mutex<Weak<Reservation>>,
}

impl Change {
    /// A change that no watch has seen.
    pub(super) fn new(revision: Revision, object: Arc<Stored>, previous: Option<Arc<Stored>>, deleted: bool) -> Self {
        let (forms, findings, reserved) = Default::default();
        Change { revision, object, previous, deleted, forms, findings, reserved }
    }

    /// The memory that is reserved for it.
    pub(super) fn reserved(&self) -> Option<Arc<Reservation>> {
        self.reserved.lock().unwrap_or_else(PoisonError::into_inner).upgrade()
    }

    /// Shares memory for it, unless some has been reserved meanwhile; returns what is reserved.
    pub(super) fn keep_reserved(&self, new: Reservation) -> Arc<Reservation> {
        let mut reserved = self.reserved.lock().unwrap_or_else(PoisonError::into_inner);
        reserved.upgrade().unwrap_or_else(|| {
            let new = Arc::new(new);
            *reserved = Arc::downgrade(&new);
            new
        })
    }

    /// Drops what was made for watches: most have sent it. Does not block, as the view is locked meanwhile.
    pub(super) fn forget(&self) {
        self.forms.forget();
        self.findings.forget();
    }

    /// The size of both states.
    pub(super) fn size_bytes(&self) -> usize {
        // A deletion has only the state before it.
        let after = if self.deleted { 0 } else { self.object.bytes.len() };
        after + self.left_behind_bytes()
    }

    /// The size of the state that the change replaced or removed.
    pub(super) fn left_behind_bytes(&self) -> usize {
        self.previous.as_ref().map_or(0, |previous| previous.bytes.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::objects::{Objects, by_key};

    #[test]
    fn an_object_takes_little_beside_its_bytes() {
        const OBJECTS: usize = 1_000;
        const OBJECT_BYTES: usize = 2_000;
        assert!(size_of::<Stored>() <= 176, "{} bytes", size_of::<Stored>());
        let mut objects = Objects::new();
        let taken = allocation_counter::measure(|| {
            let stored = (0..OBJECTS).map(|at| Stored {
                stored_version: crate::store::interned("v1"),
                ..Stored::fixture(
                    &format!("default/widget-{at:04}"),
                    "0b3f3b1c-58f4-4b1e-9c55-9cbb1a4d2d3e",
                    vec![b' '; OBJECT_BYTES],
                )
            });
            objects = by_key(stored.collect());
        });
        let beside = taken.bytes_current / OBJECTS as i64 - OBJECT_BYTES as i64;
        assert!(beside <= 420, "{beside} bytes");
        assert_eq!(objects.len(), OBJECTS);
    }
}
