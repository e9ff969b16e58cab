//! The encoded events of a change, in each form that clients ask for: encoded once for all of them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, TryLockError, Weak};

use bytes::Bytes;

use crate::crd::ServedVersion;
use crate::work;

/// How many forms of a change are kept.
const FORMS_MAX: usize = 8;

/// The maximum size of a form that is kept. Larger ones are in memory only while they are being sent.
const FORM_BYTES_MAX: usize = 64 << 10;

/// The form of an event.
#[derive(Clone, Debug)]
pub struct ClientForm {
    /// The version of the object, under one generation of its schema.
    pub version: Arc<ServedVersion>,
    /// The type of the event.
    pub event: &'static str,
    /// The media type of the frame.
    pub media_type: &'static str,
    /// The version of the metadata, if they are sent in place of the object.
    pub metadata_of: Option<&'static str>,
    /// If a row of a Table is sent in place of the object.
    pub row: Option<RowForm>,
    pub is_compressed: bool,
}

/// The form of a row of a Table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowForm {
    /// What it carries of its object.
    pub include: &'static str,
    pub has_definitions: bool,
    /// The second that its ages are computed at.
    pub at_second: i64,
}

impl PartialEq for ClientForm {
    fn eq(&self, other: &Self) -> bool {
        let parts = |form: &ClientForm| (form.event, form.media_type, form.metadata_of, form.row, form.is_compressed);
        Arc::ptr_eq(&self.version, &other.version) && parts(self) == parts(other)
    }
}

/// The forms of one change.
#[derive(Debug, Default)]
pub struct Forms {
    /// Most watches have sent the change: nothing more is kept.
    is_old: AtomicBool,
    made: Mutex<EncodedForms>,
}

#[derive(Debug, Default)]
struct EncodedForms {
    kept: Vec<(ClientForm, Bytes)>,
    /// Forms that are in memory only while they are being sent: slow clients share them.
    lent: Vec<(ClientForm, Weak<Bytes>)>,
}

/// Bytes that are in memory as long as they have an owner.
struct Lent(Arc<Bytes>);

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl EncodedForms {
    fn find(&self, form: &ClientForm) -> Option<Bytes> {
        let kept = self.kept.iter().find(|(known, _)| known == form).map(|(_, bytes)| bytes.clone());
        kept.or_else(|| {
            let (_, lent) = self.lent.iter().find(|(known, _)| known == form)?;
            lent.upgrade().map(|bytes| Bytes::from_owner(Lent(bytes)))
        })
    }

    fn keep(&mut self, form: ClientForm, bytes: &Bytes) {
        if self.kept.len() == FORMS_MAX {
            self.kept.remove(0);
        }
        self.kept.push((form, bytes.clone()));
    }

    fn lend(&mut self, form: ClientForm, bytes: Bytes) -> Bytes {
        self.lent.retain(|(_, lent)| lent.strong_count() > 0);
        let bytes = Arc::new(bytes);
        self.lent.push((form, Arc::downgrade(&bytes)));
        Bytes::from_owner(Lent(bytes))
    }
}

impl Forms {
    /// The bytes of a form. Callers that need them while they are being built wait for them.
    ///
    /// Errors: those of `make`, after which nothing is kept.
    pub fn get_or_make<E>(&self, form: ClientForm, make: impl FnOnce() -> Result<Bytes, E>) -> Result<Bytes, E> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let is_old = self.is_old.load(Ordering::Relaxed);
        if is_old {
            made.kept = Vec::new();
        }
        if let Some(bytes) = made.find(&form) {
            return Ok(bytes);
        }
        let bytes = work::essential(make)?;
        if is_old || bytes.len() > FORM_BYTES_MAX {
            return Ok(made.lend(form, bytes));
        }
        made.keep(form, &bytes);
        Ok(bytes)
    }

    /// Drops what is not in use. Does not block.
    pub(super) fn forget(&self) {
        self.is_old.store(true, Ordering::Relaxed);
        match self.made.try_lock() {
            Ok(mut made) => made.kept = Vec::new(),
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner().kept = Vec::new(),
            Err(TryLockError::WouldBlock) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::author::DefinedKind;
    use crate::value::yaml;

    fn form() -> ClientForm {
        let definition = "
            apiVersion: apiextensions.k8s.io/v1
            kind: CustomResourceDefinition
            metadata: {name: ships.harbour.example.com}
            spec:
              group: harbour.example.com
              scope: Cluster
              names: {plural: ships, singular: ship, kind: Ship, listKind: ShipList}
              versions:
                - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
        ";
        let kind =
            DefinedKind::new(&yaml::decode(definition.as_bytes()).expect("it is YAML")).expect("it defines a kind");
        let version = Arc::clone(&kind.versions[0]);
        ClientForm {
            version,
            event: "ADDED",
            media_type: "application/json",
            metadata_of: None,
            row: None,
            is_compressed: false,
        }
    }

    #[test]
    fn what_is_large_or_old_is_shared_for_as_long_as_somebody_has_it() {
        for (size_bytes, is_old) in [(FORM_BYTES_MAX + 1, false), (10, true)] {
            let (forms, form, made) = (Forms::default(), form(), std::cell::Cell::new(0));
            let get = || {
                let make = || {
                    made.set(made.get() + 1);
                    Ok::<_, Infallible>(Bytes::from(vec![0; size_bytes]))
                };
                let Ok(bytes) = forms.get_or_make(form.clone(), make);
                bytes
            };
            if is_old {
                forms.forget();
            }
            let held: Vec<Bytes> = (0..3).map(|_| get()).collect();
            assert_eq!((made.get(), held[0].as_ptr()), (1, held[2].as_ptr()), "the same bytes, not equal ones");
            drop(held);
            drop(get());
            assert_eq!(made.get(), 2, "nobody had it any more");
        }
    }
}
