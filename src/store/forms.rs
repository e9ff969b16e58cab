//! What clients are told of a change, in each form that they ask for: made once for all of them.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use crate::crd::ServedVersion;
use crate::work;

/// How many forms of a change are kept.
const FORMS_MAX: usize = 8;

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
pub struct Forms(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    /// Most of those who watch have been told of the change.
    is_old: bool,
    made: Vec<(Form, Bytes)>,
}

impl Forms {
    /// The bytes of a form. Those who ask while they are made wait for them.
    ///
    /// Errors: those of `make`, after which nothing is kept.
    pub fn get_or_make<E>(&self, form: Form, make: impl FnOnce() -> Result<Bytes, E>) -> Result<Bytes, E> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, bytes)) = kept.made.iter().find(|(made, _)| *made == form) {
            return Ok(bytes.clone());
        }
        if kept.is_old {
            drop(kept);
            return make();
        }
        let bytes = work::essential(make)?;
        if kept.made.len() == FORMS_MAX {
            kept.made.remove(0);
        }
        kept.made.push((form, bytes.clone()));
        Ok(bytes)
    }

    /// Keeps nothing any more: who is told so late has it made anew.
    pub(super) fn forget(&self) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *kept = Kept { is_old: true, made: Vec::new() };
    }
}
