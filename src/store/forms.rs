//! What clients are told of a change, in each form that they ask for: made once for all of them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};

use bytes::Bytes;

use crate::crd::ServedVersion;
use crate::work;

/// How many forms of a change are kept.
const FORMS_MAX: usize = 8;

/// How large a form may be that is kept. Larger ones are made for each who asks.
const FORM_BYTES_MAX: usize = 64 << 10;

/// How clients are told of a change.
#[derive(Clone, Debug)]
pub struct Form {
    /// The version that the object is in, under one generation of its schema.
    pub version: Arc<ServedVersion>,
    /// The type of the event.
    pub event: &'static str,
    /// The media type of the frame.
    pub media_type: &'static str,
    /// The version of the metadata that are told in place of the object.
    pub metadata_of: Option<&'static str>,
    pub is_compressed: bool,
}

impl PartialEq for Form {
    fn eq(&self, other: &Self) -> bool {
        let parts = |form: &Form| (form.event, form.media_type, form.metadata_of, form.is_compressed);
        Arc::ptr_eq(&self.version, &other.version) && parts(self) == parts(other)
    }
}

/// The forms of one change.
#[derive(Debug, Default)]
pub struct Forms {
    /// Most of those who watch have been told of the change: nothing is kept any more.
    is_old: AtomicBool,
    made: Mutex<Vec<(Form, Bytes)>>,
}

impl Forms {
    /// The bytes of a form. Those who ask while they are made wait for them.
    ///
    /// Errors: those of `make`, after which nothing is kept.
    pub fn get_or_make<E>(&self, form: Form, make: impl FnOnce() -> Result<Bytes, E>) -> Result<Bytes, E> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_old.load(Ordering::Relaxed) {
            made.clear();
            drop(made);
            return make();
        }
        if let Some((_, bytes)) = made.iter().find(|(known, _)| *known == form) {
            return Ok(bytes.clone());
        }
        let bytes = work::essential(make)?;
        if bytes.len() <= FORM_BYTES_MAX {
            if made.len() == FORMS_MAX {
                made.remove(0);
            }
            made.push((form, bytes.clone()));
        }
        Ok(bytes)
    }

    /// Keeps nothing any more: who is told so late has it made anew. Waits for nobody, as the view is locked meanwhile.
    pub(super) fn forget(&self) {
        self.is_old.store(true, Ordering::Relaxed);
        match self.made.try_lock() {
            Ok(mut made) => *made = Vec::new(),
            Err(TryLockError::Poisoned(poisoned)) => *poisoned.into_inner() = Vec::new(),
            Err(TryLockError::WouldBlock) => {}
        }
    }
}
